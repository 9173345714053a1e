"""From words to a configuration: the one place that does it.

A run's configuration is its task's recipe (`nram/recipes/TASK.toml`), then `--config FILE`, then every
`--set key=value`; each overrides the one before. All problems are reported at once.
"""

import copy
import dataclasses
import difflib
import typing
import warnings
from importlib import resources
from pathlib import Path
from typing import Any

from nram.errors import NramError, UntrustedFile, UsageError, shown
from nram.extensions import get_module, get_task, lasting_name, require_trusted
from nram.extensions.modules import split_names
from nram.files import parse_json, parse_toml, read_json, read_toml
from nram.records import checked, listed
from nram.training.config import StageConfig, TrainConfig, problems_of
from nram.training.old_settings import REMOVED, RENAMED, converted
from nram.training.ranges import Range

MOST_BYTES = 1 << 20  # of a file with settings


def load_config(
    task: str,
    *,
    file: Path | None = None,
    overrides: list[str] | None = None,
    seed: int | None = None,
    trust: bool = False,
) -> TrainConfig:
    """The task's recipe, then a file, then `key=value` overrides, checked.

    The user names the task and the overrides, so their Python files are executed. Those that only the file with the
    settings names are executed with `trust` alone.
    """
    data: dict[str, Any] = read_recipe(get_task(task).name)
    task = lasting_name(task)
    if file is not None:
        data = _merged(data, converted(_read_file(file)))
    if data.setdefault("task", task) != task:
        raise UsageError(f"the configuration is for the task {shown(data['task'])}, not {task!r}")
    problems: list[str] = []
    named: set[str] = set()
    for override in overrides or []:
        try:
            named.add(_apply_override(data, override))
        except UsageError as error:
            problems.append(str(error))
    if seed is not None:
        data["seed"] = seed
    modules = _resolve_modules(data)
    try:
        for module in modules if "machine.modules" in named else ():
            get_module(module)
    except UsageError as error:
        problems.append(f"machine: {error}")
    return _checked(data, problems, str(file), trust)


def read_recipe(task: str) -> dict[str, Any]:
    recipe = resources.files("nram") / "recipes" / f"{task}.toml"
    return parse_toml(recipe.read_text()) if recipe.is_file() else {}


def config_to_dict(config: Any) -> Any:
    """Plain data from which `config_from_dict` makes the same configuration."""
    if isinstance(config, Range):
        return config.as_config()
    if dataclasses.is_dataclass(config):
        return {f.name: config_to_dict(getattr(config, f.name)) for f in dataclasses.fields(config)}
    if isinstance(config, tuple):
        return [config_to_dict(item) for item in config]
    return config


def flat_settings(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every setting by its dotted name, those of the stages as stages.0.steps; a list of words stays one setting."""
    value = config_to_dict(config)
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        pairs = list(enumerate(value))
    else:
        return {prefix: value}
    return {k: v for key, inner in pairs for k, v in flat_settings(inner, f"{prefix}.{key}".lstrip(".")).items()}


def config_from_dict(data: Any, where: str = "a configuration", trust: bool = False) -> TrainConfig:
    """The configuration that `where` stores. The Python files that it names are executed with `trust` alone."""
    return _checked(converted(data), [], where, trust)


def _checked(data: Any, problems: list[str], where: str, trust: bool) -> TrainConfig:
    """The configuration, if neither `problems` nor this data holds any."""
    config = checked(TrainConfig, data, "", problems.append)
    if not problems:
        try:
            require_trusted(config.task, config.machine.modules, trust)
        except UntrustedFile as error:
            raise UntrustedFile(error.files, where) from None
        require_usable(config)
    if problems:
        raise UsageError("the configuration has problems" + listed(problems))
    return config


def require_usable(config: TrainConfig) -> None:
    """Refuse settings that cannot work together or with the task."""
    if problems := problems_of(config):
        raise UsageError("the configuration has problems" + listed(problems))


def _read_file(file: Path) -> dict[str, Any]:
    read = read_json if file.suffix == ".json" else read_toml
    try:
        data = read(file, MOST_BYTES, "configuration")
    except NramError as error:
        raise UsageError(str(error)) from None
    if not isinstance(data, dict):
        raise UsageError(f"{file} should hold one JSON object of settings, like the 'config' of a run.json")
    return data


def _merged(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in top.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def setting_names(kind: type = TrainConfig) -> list[str]:
    """Every setting's dotted name, except those inside a stage (stages.0.steps)."""
    names = []
    for name, hint in typing.get_type_hints(kind).items():
        nested = dataclasses.is_dataclass(hint) and hint is not Range
        inner = setting_names(typing.cast(type, hint)) if nested else []
        names += [f"{name}.{one}" for one in inner] or [name]
    return [name for name in names if name != "task"]


def _full_name(key: str) -> str:
    """The dotted name that this key means: itself, or the one setting whose last part it is."""
    names, of_stages = setting_names(), setting_names(StageConfig)
    stage, _, rest = key.removeprefix("stages.").partition(".") if key.startswith("stages.") else ("*", "", key)
    if rest in REMOVED:
        raise UsageError(f"the setting '{key}' no longer exists: leave it out")
    if rest in RENAMED and rest != RENAMED[rest].split(".")[-1]:
        text = f"the setting '{key}' is now called {RENAMED[rest]}: the old name goes in nram 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        rest = RENAMED[rest]
    ends = [name for name in names if key in (name, name.split(".")[-1])]
    if key in ends or len(ends) == 1:
        return key if key in ends else ends[0]
    ends = [name for name in of_stages if rest in (name, name.split(".")[-1])]
    if len(ends) == 1 and (stage == "*" or stage.isdecimal()):
        return f"stages.{stage}.{ends[0]}"
    near = _nearest(key, names + [f"stages.0.{name}" for name in of_stages])
    hint = f"did you mean {' or '.join(near)}?" if near else "'nram train TASK --set help' lists the settings"
    raise UsageError(f"unknown setting {shown(key)}: {hint}")


def _nearest(key: str, names: list[str]) -> list[str]:
    """The dotted names that are about as near to the key as the nearest, as a whole or by their last part."""

    key = key[:60]

    def likeness(name: str) -> float:
        pairs = ((key, name), (key.split(".")[-1], name.split(".")[-1]))
        return max(difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)

    least = max(0.6, max(map(likeness, names)) - 0.15)
    return sorted((name for name in names if likeness(name) >= least), key=likeness, reverse=True)[:3]


def _resolve_modules(data: dict[str, Any]) -> list[str]:
    """The modules. They may be written as READ,INC,halve.py; files are stored by their absolute paths."""
    machine = data.get("machine")
    if not isinstance(machine, dict):
        return []  # it is named with the other problems
    modules = machine.get("modules")
    if isinstance(modules, str):
        modules = list(split_names(modules))
    if not isinstance(modules, list):
        return []
    named = [lasting_name(word) if isinstance(word, str) else word for word in modules]
    data["machine"] = {**machine, "modules": named}
    return [word for word in named if isinstance(word, str)]


def _apply_override(data: dict[str, Any], override: str) -> str:
    """Change the data as an override says. Returns the whole name of the setting."""
    key, equals, text = override.partition("=")
    if not equals:
        raise UsageError(f"--set takes key=value, not {shown(override)}")
    name = _full_name(key.strip())
    try:
        value: Any = parse_json(text)
    except ValueError:
        value = text.strip()
    first, *rest = name.split(".")
    if first != "stages" or not rest:
        _set(data, [first, *rest], value)
        return name
    stages = data.setdefault("stages", [config_to_dict(stage) for stage in TrainConfig("copy").stages])
    if not isinstance(stages, list) or not all(isinstance(stage, dict) for stage in stages):
        return name  # the file has something else in this place: it is named with the other problems
    chosen = range(len(stages)) if rest[0] == "*" else [int(rest[0])]
    for index in chosen:
        if index >= len(stages):
            raise UsageError(f"there is no {shown(name)[1:-1]}: the stages are numbered from 0 to {len(stages) - 1}")
        stages[index] = copy.deepcopy(stages[index])
        _set(stages[index], rest[1:], value)
    return name


def _set(table: dict[str, Any], parts: list[str], value: Any) -> None:
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            return  # the file has something else in this place: it is named with the other problems
    table[parts[-1]] = value
