"""The TOML file that describes a study: read and checked. Every problem has the path of its field."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from nram.cluster.spec import MOST_TRIALS, PROTOCOL, Spec, as_word
from nram.display import counted
from nram.errors import NramError, UsageError, shown
from nram.extensions import is_file_name, is_task_file
from nram.extensions.modules import split_names
from nram.files import read_toml
from nram.programs.library import find_entry
from nram.records import listed, members
from nram.search.job import NONE, ZOO
from nram.training.settings import PROTOCOLS

MOST_BYTES = 1 << 20  # of a specification
MOST_LABEL = 40  # letters of an arm's name
LIBRARY = "library"  # the setting of a search


def read_spec(path: Path) -> Spec:
    """The specification in a TOML file. All problems of its fields are told at once."""
    try:
        data = read_toml(path, MOST_BYTES, "specification of a study")
    except UsageError:
        raise
    except NramError as error:  # it is the user's own file
        raise UsageError(str(error)) from None
    return spec_from(data, str(path), path.parent)


def spec_from(data: dict[str, Any], where: str, folder: Path) -> Spec:
    """The specification that plain data describes. Relative paths in it begin in `folder`."""
    problems: list[str] = []
    try:
        tables = {name: _plain(data[name]) for name in ("settings", "grid", "arms") if name in data}
        if isinstance(drawn := data.get("random"), dict) and "settings" in drawn:
            tables["random"] = {**drawn, "settings": _plain(drawn["settings"])}
    except UsageError as error:
        raise UsageError(f"{where} cannot be used: {error}") from None
    found = members(Spec, {**data, **tables}, lambda key: key, lambda text: problems.append(without_null(text)))
    if not problems:
        try:
            spec = _with_paths(Spec(**found), folder)
        except OSError as error:
            raise UsageError(f"{where} names a file that cannot be used: {error}") from None
        problems += _problems_of(spec)
        if not problems:
            return spec
    raise UsageError(f"{where} cannot be used{listed(problems)}")


def without_null(problem: str) -> str:
    """The problem of a field that may be left out. TOML has no null."""
    return problem.removesuffix(" or null")


def _with_paths(spec: Spec, folder: Path) -> Spec:
    def whole(name: str, is_file: bool) -> str:
        return str((folder / name).resolve()) if is_file else name

    files = tuple(whole(name, True) for name in spec.files)
    tasks = tuple(whole(name, is_task_file(name)) for name in spec.tasks)

    spec = spec.with_values(lambda name, value: _whole_names(name, value, folder))
    storage = spec.storage
    if storage is not None and "://" not in storage:
        storage = str((folder / storage).resolve())
    return replace(spec, files=files, tasks=tasks, storage=storage)


def names_modules(setting: str) -> bool:
    return setting.rpartition(".")[2] == "modules"


def module_names(value: Any) -> list[str]:
    names = split_names(value) if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return [name for name in names if isinstance(name, str)]


def program_names(library: Any) -> list[str]:
    """The programs of a library that names some: those of the zoo, and files."""
    named = isinstance(library, str) and library not in (ZOO, NONE)
    return [name.strip() for name in library.split(",")] if named else []


def files_in(setting: str, value: Any, folder: Path = Path()) -> list[str]:
    """The files that a setting names: those of user-defined modules, and the programs of a library."""
    if names_modules(setting):
        return [name for name in module_names(value) if is_file_name(name)]
    if setting != LIBRARY:
        return []
    others = [name for name in program_names(value) if name and find_entry(name) is None]
    # What looks like a name and is no file is a mistake, which is told later, with the nearest name of the zoo.
    return [name for name in others if os.sep in name or Path(name).suffix or (folder / name).exists()]


def _whole_names(setting: str, value: Any, folder: Path) -> Any:
    """The value of a setting, with the whole paths of its files. What else is wrong with them is told later."""
    files = files_in(setting, value, folder)
    if not files:
        return value
    names = module_names(value) if names_modules(setting) else program_names(value)
    whole = [str((folder / name).resolve()) if name in files else name for name in names]
    return ",".join(whole) if isinstance(value, str) else whole


def _problems_of(spec: Spec) -> list[str]:
    """What is wrong between fields."""
    problems = []
    if not spec.tasks and not spec.files:
        problems.append("tasks is missing: name what is to be learned, as tasks = ['copy', 'merge']")
    if spec.verb == "train" and spec.files:
        problems.append("files: 'train' learns tasks; take verb = 'learn' for files of examples")
    if spec.verb == "learn" and spec.tasks:
        problems.append("tasks: 'learn' learns files of examples: name them in files, or take another verb")
    protocols = {} if spec.protocol is None else {PROTOCOL: spec.protocol}
    protocols |= {f"arms.{label}.{PROTOCOL}": own[PROTOCOL] for label, own in spec.arms.items() if PROTOCOL in own}
    for name, protocol in protocols.items():
        if spec.verb != "train":
            problems.append(f"{name} is for verb = 'train', not for {spec.verb!r}")
        elif protocol not in PROTOCOLS:
            problems.append(f"{name} is {shown(protocol)}, not one of {', '.join(PROTOCOLS)}")
    if spec.verb != "train" and spec.budget is None:
        problems.append(f"budget is missing: the seconds of each trial of nram {spec.verb}")
    if spec.track and spec.verb != "train":
        problems.append(f"track is for verb = 'train', not for {spec.verb!r}")
    if spec.early_stopping is not None and (spec.verb != "train" or spec.budget is None):
        problems.append("early_stopping needs verb = 'train' and a budget")
    if spec.resources.gpus and spec.verb == "search":
        problems.append("resources.gpus: 'search' uses no GPU")
    for name, words in (("tasks", spec.tasks), ("files", spec.files)):
        problems += [f"{name}: {shown(word)} is there twice" for word, times in Counter(words).items() if times > 1]
    for label in spec.arms:
        if not re.fullmatch(rf"[A-Za-z0-9_.+-]{{1,{MOST_LABEL}}}", label):
            problems.append(f"arms.{shown(label)}: name an arm by at most {MOST_LABEL} letters, digits and any of _.+-")
    for name, values in spec.grid.items():
        if not values:
            problems.append(f"grid.{name} is empty: give at least one value")
        if len(set(map(as_word, values))) < len(values):
            problems.append(f"grid.{name} has a value twice")
    drawn = spec.drawn
    if spec.random is not None and not drawn:
        problems.append("random.settings is empty: name the settings to be drawn")
    places = {"settings": spec.settings, "grid": spec.grid, "random.settings": drawn}
    for (first, one), (second, other) in itertools.combinations(places.items(), 2):
        problems += [f"{second}.{name} is in {first} too: give it once" for name in one.keys() & other.keys()]
    for label, arm in spec.arms.items():  # an arm may change what all others have
        varied = (spec.grid.keys() | drawn.keys()) & arm.keys()
        problems += [f"arms.{label}.{name} is in grid or random too: give it once" for name in sorted(varied)]
    count = math.prod(map(len, spec.grid.values())) * max(1, len(spec.arms)) * len(spec.seeds)
    count *= (spec.random.trials if spec.random else 1) * (len(spec.tasks) + len(spec.files))
    if count > MOST_TRIALS:
        problems.append(f"the study has {counted(count, 'trial')}: the most is {MOST_TRIALS:,}")
    return problems


def _plain(value: Any) -> Any:
    """The value of a setting as JSON has it. Infinity is a word, as for --set."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, str | bool | int | float):
        raise UsageError(f"{value} is a date or a time: no setting is one")
    return value
