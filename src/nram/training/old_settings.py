"""Settings of earlier versions, in run folders, weights and configuration files, converted to those of today."""

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

RENAMED_HYPER = {"entropy_penalty": "wire_penalty"}
"""Hyperparameters: the name up to 0.2, and the name now."""


def converted(settings: Any) -> Any:
    """The settings with today's names. Others, right or wrong, are left as they are."""
    if not isinstance(settings, dict):
        return settings
    new = _with_new_hyper(settings)
    if isinstance(groups := settings.get("groups"), list):
        new["groups"] = [_with_new_hyper(group) if isinstance(group, dict) else group for group in groups]
    if isinstance(stages := settings.get("stages"), list):
        new["stages"] = [_converted_stage(stage, index) for index, stage in enumerate(stages)]
    return new


def _with_new_hyper(table: dict[str, Any]) -> dict[str, Any]:
    hyper = table.get("hyper")
    if not isinstance(hyper, dict):
        return dict(table)
    # An old name beside its new name stays: it is then refused as unknown.
    names = {name: new for name, new in RENAMED_HYPER.items() if new not in hyper}
    return {**table, "hyper": {names.get(name, name): value for name, value in hyper.items()}}


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
