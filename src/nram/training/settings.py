"""From words to a configuration: the one place that does it.

A run's configuration is the one recipe (`nram/training/recipe.toml`), or `--protocol NAME` or `--config FILE` in its
place, then every `--set key=value`. The recipe contains nothing about the task: its sizes and step limits are fitted to
what the task says about itself. All problems are reported at once.
"""

import dataclasses
import difflib
import hashlib
import random
import re
import typing
import warnings
from collections import Counter
from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Any

from nram.errors import NramError, UntrustedFile, UsageError, shown
from nram.extensions import get_module, get_task, lasting_name, require_trusted
from nram.extensions.modules import split_names
from nram.files import parse_json, parse_toml, read_json, read_toml
from nram.records import checked, listed
from nram.tasks.base import Task
from nram.training.config import DEFAULT_STAGES, GroupConfig, StageConfig, TrainConfig, problems_of
from nram.training.old_settings import REMOVED, RENAMED, RENAMED_HYPER, converted
from nram.training.ranges import Range

RECIPE = "recipe.toml"
PROTOCOLS = ("paper",)
MOST_COPIES = 16  # of a group
MOST_BYTES = 1 << 20  # of a file with settings
_OF_GROUPS = tuple(field.name for field in dataclasses.fields(GroupConfig))  # what every group has for itself


def load_config(
    task: str,
    *,
    file: Path | None = None,
    protocol: str | None = None,
    overrides: list[str] | None = None,
    seed: int | None = None,
    trust: bool = False,
) -> TrainConfig:
    """The recipe, or a protocol or a file in its place, then `key=value` overrides, checked.

    The user names the task and the overrides, so their Python files are executed. Those that only the file with the
    settings names are executed with `trust` alone.
    """
    known = get_task(task)
    task = lasting_name(task)
    if file and protocol:
        raise UsageError("--protocol and --config each replace the recipe: give one of them")
    if file is None:
        data = recipe(protocol)
        _fit_sizes(data, known)
    else:
        data = converted(_read_file(file))
    overrides = _copy_groups(data, overrides or [])
    if data.setdefault("task", task) != task:
        raise UsageError(f"the configuration is for the task {shown(data['task'])}, not {task!r}")
    problems: list[str] = []
    named: set[str] = set()
    for override in overrides:
        try:
            named.add(_apply_override(data, override))
        except UsageError as error:
            problems.append(str(error))
    if seed is not None:
        data["seed"] = seed
    _fill_in(data, known)
    modules = [name for table in _tables(data) for name in _resolve_modules(table)]
    try:
        for module in modules if "machine.modules" in named else ():
            get_module(module)
    except UsageError as error:
        problems.append(f"machine: {error}")
    return _checked(data, problems, str(file), trust)


def recipe(protocol: str | None = None) -> dict[str, Any]:
    """The settings of every run that has no file with settings, or those of a protocol."""
    if protocol not in (None, *PROTOCOLS):
        raise UsageError(f"unknown protocol {shown(protocol)}: choose from {', '.join(PROTOCOLS)}")
    name = f"protocol_{protocol}.toml" if protocol else RECIPE
    return parse_toml((resources.files("nram.training") / name).read_text())


def recipe_digest() -> str:
    """The first digits of the SHA-256 of the recipe: with another one, the same command trains otherwise."""
    return hashlib.sha256((resources.files("nram.training") / RECIPE).read_bytes()).hexdigest()[:12]


def _tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The tables that hold the settings of a group: the groups, or the whole configuration where there are none."""
    groups = data.get("groups")
    if not isinstance(groups, list) or not groups:
        return [data]
    return [group for group in groups if isinstance(group, dict)]


def _copy_groups(data: dict[str, Any], overrides: list[str]) -> list[str]:
    """A group with `copies = 4` stands for four groups, each of which draws a structure of its own.

    Returns the overrides without `copies=...`, which changes every group that has copies.
    """
    groups = data.get("groups")
    if not isinstance(groups, list):
        return overrides  # it is named with the other problems
    copied = [group for group in groups if isinstance(group, dict) and "copies" in group]
    wanted = [override for override in overrides if override.partition("=")[0].strip() == "copies"]
    for override in wanted if copied else ():
        text = override.partition("=")[2].strip()
        for group in copied:
            group["copies"] = int(text) if text.isdecimal() and len(text) < 6 else text
    every: list[Any] = []
    for group in groups:
        copies = group.pop("copies", 1) if isinstance(group, dict) else 1
        if type(copies) is not int or not 1 <= copies <= MOST_COPIES:
            raise UsageError(f"copies of a group: a whole number from 1 to {MOST_COPIES}, not {shown(copies)}")
        if copies == 1:
            every.append(group)
        else:
            name = group.get("name", "group")
            every += [{**deepcopy(group), "name": f"{name} {number}"} for number in range(1, copies + 1)]
    data["groups"] = every
    return [override for override in overrides if not (copied and override in wanted)]


def _fit_sizes(data: dict[str, Any], task: Task) -> None:
    """Fit the sizes of the recipe to the task: 5 means the five smallest sizes, of a file of examples perhaps more.

    Those of a file of settings are used as they are.
    """
    for stage in (stage for table in _tables(data) for stage in _stages(table) or ()):
        if type(size := stage.get("max_complexity")) is int:
            sizes = task.examples.first_sizes(size) if task.examples else task.min_complexity - 1 + size
            stage["max_complexity"] = min(sizes, task.trained_up_to)


def _fill_in(data: dict[str, Any], task: Task) -> None:
    """Fill in what depends on the task and on the seed.

    A stage without `max_complexity` has the task's `trained_up_to`. A group may draw its structure, as in
    `registers = "4|6"`.
    """
    for index, table in enumerate(_tables(data)):
        machine = table.get("machine")
        for stage in _stages(table) or ():
            stage.setdefault("max_complexity", task.trained_up_to)
        if not isinstance(machine, dict):
            continue
        for name in ("registers", "repeats", "hidden", "controller"):
            if isinstance(value := machine.get(name), str):
                machine[name] = _drawn(value, f"structure {data.get('seed', 0)} {index} {name}")


def _drawn(choices: str, seed: str) -> Any:
    """One of some small numbers, as in 4|5|6, or of some words, as in mlp|lstm; the text itself if it is neither."""
    words = choices.split("|")
    if all(word.isdecimal() and len(word) < 6 for word in words):
        return int(random.Random(seed).choice(words))
    return random.Random(seed).choice(words) if all(word.isalpha() for word in words) else choices


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


def used_settings(config: TrainConfig) -> dict[str, Any]:
    """The flat settings without those outside of groups that each group has for itself: these mean nothing."""
    unused = _OF_GROUPS if config.groups else ()
    return {name: value for name, value in flat_settings(config).items() if name.partition(".")[0] not in unused}


def config_from_dict(data: Any, where: str = "a configuration", trust: bool = False) -> TrainConfig:
    """The configuration that `where` stores. The Python files that it names are executed with `trust` alone."""
    return _checked(converted(data), [], where, trust)


def _checked(data: Any, problems: list[str], where: str, trust: bool) -> TrainConfig:
    """The configuration, if neither `problems` nor this data holds any."""
    config = checked(TrainConfig, data, "", problems.append)
    if not problems:
        try:
            modules = [name for group in config.group_configs for name in group.machine.modules]
            require_trusted(config.task, modules, trust)
        except UntrustedFile as error:
            raise UntrustedFile(error.files, where) from None
        problems = problems_of(config)
    if problems:
        raise _refusal(problems, len(_tables(data)) if isinstance(data, dict) else 0)
    return config


def require_usable(config: TrainConfig) -> None:
    """Refuse settings that cannot work together or with the task."""
    if problems := problems_of(config):
        raise _refusal(problems, len(config.groups))


def _refusal(problems: list[str], groups: int) -> UsageError:
    """The problems, a line each. `--set` may cause the same problem in every group: it is told once."""
    number = r"(machine\.(?:registers|repeats|hidden) is '.*', not a whole number)$"
    problems = [re.sub(number, r"\1, nor several, as in 4|5|6", line) for line in problems]
    ends = {line: re.sub(r"^groups\.\d+[.:] ?", "", line) for line in problems}
    count = Counter(ends.values())
    told = dict.fromkeys(end if count[end] == groups > 1 else line for line, end in ends.items())
    return UsageError("the configuration has problems" + listed(list(told)))


def _read_file(file: Path) -> dict[str, Any]:
    read = read_json if file.suffix == ".json" else read_toml
    try:
        data = read(file, MOST_BYTES, "configuration")
    except NramError as error:
        raise UsageError(str(error)) from None
    if not isinstance(data, dict):
        raise UsageError(f"{file} should hold one JSON object of settings, like the 'config' of a run.json")
    return data


def setting_names(kind: type = TrainConfig) -> list[str]:
    """Every setting's dotted name, except those inside a stage (stages.0.steps) or a group (groups.0.batch)."""
    names = []
    for name, hint in typing.get_type_hints(kind).items():
        nested = dataclasses.is_dataclass(hint) and hint is not Range
        inner = setting_names(typing.cast(type, hint)) if nested else []
        names += [f"{name}.{one}" for one in inner] or [name]
    return [name for name in names if name != "task"]


def _full_name(key: str, kind: type = TrainConfig) -> str:
    """The dotted name that this key means: itself, or the one setting whose last part it is."""
    if (old := key.removeprefix("hyper.")) in RENAMED_HYPER:
        _warn_of_old_name(key, f"hyper.{RENAMED_HYPER[old]}", "0.4")
        key = f"hyper.{RENAMED_HYPER[old]}"
    names, of_stages = setting_names(kind), setting_names(StageConfig)
    stage, _, rest = key.removeprefix("stages.").partition(".") if key.startswith("stages.") else ("*", "", key)
    if rest in REMOVED:
        raise UsageError(f"the setting '{key}' no longer exists: leave it out")
    if rest in RENAMED and rest != RENAMED[rest].split(".")[-1]:
        _warn_of_old_name(key, RENAMED[rest], "0.3")
        rest = RENAMED[rest]
    ends = [name for name in names if key in (name, name.split(".")[-1])]
    if key in ends or len(ends) == 1:
        return key if key in ends else ends[0]
    ends = [name for name in of_stages if rest in (name, name.split(".")[-1])]
    if len(ends) == 1 and (stage == "*" or stage.isdecimal()):
        return f"stages.{stage}.{ends[0]}"
    if kind is TrainConfig and rest in setting_names(GroupConfig):
        raise UsageError(f"{key} is a setting of each group: name one, as in groups.1.{key}=...")
    near = _nearest(key, names + [f"stages.0.{name}" for name in of_stages])
    hint = f"did you mean {' or '.join(near)}?" if near else "'nram train TASK --set help' lists the settings"
    raise UsageError(f"unknown setting {shown(key)}: {hint}")


def _warn_of_old_name(old: str, new: str, end: str) -> None:
    text = f"the setting '{old}' is now called {new}: the old name goes in nram {end}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)


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
    key = key.strip()
    group, _, inner = key.removeprefix("groups.").partition(".") if key.startswith("groups.") else ("", "", "")
    if group and not inner:
        raise UsageError(f"{shown(key)[1:-1]} is a whole group: name one of its settings, as in groups.0.batch")
    name = _full_name(inner, GroupConfig) if group else _full_name(key)
    try:
        value: Any = parse_json(text)
    except ValueError:
        value = text.strip()
    parts = name.split(".")
    tables = _tables(data) if parts[0] in _OF_GROUPS or group else [data]
    if group:
        tables = [table for index, table in enumerate(tables) if group in (str(index), table.get("name"))]
        if not data.get("groups") or not tables:
            names = [f"{index} ({one.get('name')})" for index, one in enumerate(_tables(data)) if one is not data]
            has = f"its groups are {', '.join(names)}" if names else "it has no groups"
            raise UsageError(f"there is no setting {shown(key)}: {has}")
    if parts[0] != "stages" or len(parts) == 1:
        for table in tables:
            _set(table, parts, value)
        return name
    stages = [_stages(table) for table in tables]
    if None in stages:
        return name  # the file has something else in this place: it is named with the other problems
    most = max(len(found or ()) for found in stages)
    if parts[1] != "*" and int(parts[1]) >= most:
        raise UsageError(f"there is no {shown(name)[1:-1]}: the stages are numbered from 0 to {most - 1}")
    for found in stages:
        for index, stage in enumerate(found or ()):
            if parts[1] in ("*", str(index)):
                _set(stage, parts[2:], value)
    return name


def _stages(table: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The stages of a group, the default ones if it names none; None if they are not tables."""
    stages = table.setdefault("stages", [config_to_dict(stage) for stage in DEFAULT_STAGES])
    return stages if isinstance(stages, list) and all(isinstance(stage, dict) for stage in stages) else None


def _set(table: dict[str, Any], parts: list[str], value: Any) -> None:
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            return  # the file has something else in this place: it is named with the other problems
    table[parts[-1]] = value
