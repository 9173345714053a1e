"""Settings as nram 0.1 wrote them, in run folders, weights and configuration files, converted to those of today."""

from typing import Any

from nram.errors import UsageError, shown

RENAMED = {
    "hard": "straight_through",
    "cull": "cull.share",
    "forget": "cull.redraw",
    "waver": "cull.soften",
    "hardness": "cull.exponent",
    "lexicase": "cull.lexicase",
    "islands": "cull.islands",
    "patience": "cull.patience",
}
"""Settings of a stage: the name in 0.1, and the name now."""

REMOVED = ("sharing", "extra_steps")
"""Settings of a stage in 0.1 that no longer exist. They were 0 in every recipe."""


def converted(settings: Any) -> Any:
    """The settings with today's names. Others, right or wrong, are left as they are."""
    stages = settings.get("stages") if isinstance(settings, dict) else None
    if not isinstance(stages, list):
        return settings
    return {**settings, "stages": [_converted_stage(stage, index) for index, stage in enumerate(stages)]}


def _converted_stage(stage: Any, index: int) -> Any:
    if not isinstance(stage, dict):
        return stage
    new: dict[str, Any] = {}
    for name, value in stage.items():
        if name in REMOVED:
            if value:
                what = f"stages.{index}.{name} is {shown(value)}"
                raise UsageError(f"{what}, but this setting no longer exists: remove it, or use nram 0.1")
        elif name in RENAMED and not isinstance(value, dict):
            table, _, inner = RENAMED[name].rpartition(".")
            target = new.setdefault(table, {}) if table else new
            if isinstance(target, dict):  # otherwise it is named with the other problems
                target[inner] = value
        else:
            new[name] = value
    return new
