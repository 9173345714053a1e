"""The TOML file that describes a study, and the trials that follow from it.

Everything is checked here, before anything runs. Every problem has the path of its field.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from nram.display import counted
from nram.errors import NramError, UntrustedFile, UsageError, shown
from nram.extensions import get_task, is_file_name, is_task_file, require_trusted
from nram.extensions.modules import split_names
from nram.files import read_bounded, read_toml
from nram.limits import StepLimit
from nram.records import INVALID, Span, checked, listed, members
from nram.search.job import Space
from nram.tasks.example_files import Reading, read_examples
from nram.training.settings import PROTOCOLS, load_config
from nram.training.trackers import TrackerName

MOST_BYTES = 1 << 20  # of a specification
MOST_TRIALS = 100_000
MOST_SEEDS = 100_000
MOST_FILE_BYTES = 1 << 28  # of a file of examples
MOST_LABEL = 40  # letters of an arm's name
PROTOCOL = "protocol"
LARGEST_SEED = 2**32 - 1  # JAX would silently take a larger one modulo 2**32

Verb = Literal["train", "search", "learn"]


class Seeds(tuple[int, ...]):
    """Seeds: one, a list, or a range in words, as "0..9"."""

    @classmethod
    def parse(cls, value: Any) -> Seeds:
        found = [value] if type(value) is int else value
        if isinstance(value, str):
            ends = re.fullmatch(r"\s*(\d{1,10})\s*\.\.\s*(\d{1,10})\s*", value)
            if ends is None:
                raise ValueError(f"{shown(value)} is no range of seeds: write it as '0..9'")
            first, last = int(ends[1]), int(ends[2])
            if last < first:
                raise ValueError(f"{shown(value)} is empty: write the smaller seed first")
            if last - first >= MOST_SEEDS:
                raise ValueError(f"{shown(value)} has more than {MOST_SEEDS:,} seeds")
            found = list(range(first, last + 1))
        if not isinstance(found, list) or not found or any(type(seed) is not int for seed in found):
            raise ValueError(f"{shown(value)} is not a seed, a list of seeds, or a range as '0..9'")
        if wrong := [seed for seed in found if not 0 <= seed <= LARGEST_SEED]:
            raise ValueError(f"{shown(wrong[0])} is not from 0 to {LARGEST_SEED}")
        if len(set(found)) < len(found):
            raise ValueError("a seed is there twice")
        return cls(found)


@dataclass(frozen=True)
class Drawn:
    """A setting that is drawn at random: one of several values, or a number between two."""

    choices: tuple[Any, ...] = ()
    least: float = 0.0
    most: float = 0.0
    log: bool = False
    whole: bool = False

    @classmethod
    def parse(cls, value: Any) -> Drawn:
        if isinstance(value, list):
            if not value:
                raise ValueError("the list of choices is empty")
            return cls(choices=tuple(value))
        if not isinstance(value, dict):
            raise ValueError(
                f"{shown(value)} is neither a list of choices nor a range, as {{from = 1e-3, to = 1e-1, log = true}}"
            )
        if unknown := value.keys() - {"from", "to", "log", "whole"}:
            raise ValueError(f"{sorted(unknown)[0]} is unknown: a range has from, to, log and whole")
        ends = [value.get(name) for name in ("from", "to")]
        least, most = (math.nan if end is None or isinstance(end, str | bool) else float(end) for end in ends)
        if not math.isfinite(least) or not math.isfinite(most):
            raise ValueError("a range needs from and to, which are numbers")
        log, whole = value.get("log", False), value.get("whole", False)
        if type(log) is not bool or type(whole) is not bool:
            raise ValueError("log and whole are true or false")
        if least >= most or (log and least <= 0):
            raise ValueError("from must be less than to" + (", and above 0 with log" if log else ""))
        if whole and not (least.is_integer() and most.is_integer()):
            raise ValueError("with whole, from and to are whole numbers")
        return cls((), least, most, log, whole)

    def draw(self, source: random.Random) -> Any:
        if self.choices:
            return source.choice(self.choices)
        if self.whole and not self.log:
            return source.randint(int(self.least), int(self.most))
        if not self.log:
            return source.uniform(self.least, self.most)
        value = math.exp(source.uniform(math.log(self.least), math.log(self.most)))
        return min(max(round(value), int(self.least)), int(self.most)) if self.whole else value


@dataclass(frozen=True)
class RandomDraws:
    """Settings that are drawn at random. Every task and seed has the same draws."""

    trials: Annotated[int, Span(1, MOST_TRIALS)]
    """Draws for each task and seed."""
    settings: dict[str, Drawn]
    seed: int = 0

    def combinations(self) -> Iterator[dict[str, Any]]:
        for index in range(self.trials):
            yield {
                name: drawn.draw(random.Random(f"{self.seed} {index} {name}")) for name, drawn in self.settings.items()
            }


@dataclass(frozen=True)
class Resources:
    """What one trial has for itself."""

    cores: Annotated[int, Span(1, 4096)] = 1
    gpus: Annotated[float, Span(0, 64)] = 0.0
    """A fraction means that trials share a GPU."""
    memory: Annotated[float | None, Span(0.01, 1 << 20)] = None
    """GiB that a Ray cluster reserves."""

    def __post_init__(self) -> None:
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise UsageError(f"gpus is {self.gpus:g}: give a fraction below 1, or a whole number")


@dataclass(frozen=True)
class EarlyStopping:
    """Hopeless trials are stopped early by ASHA, on a Ray cluster. Trials of the same task are compared."""

    grace: Annotated[float, Span(1, 1e9)]
    """Seconds of every trial before it can be stopped."""
    reduction: Annotated[int, Span(2, 100)] = 3
    """One of so many trials goes on at each rung."""


@dataclass(frozen=True)
class Spec:
    """A study as its file describes it. Paths in it are absolute."""

    verb: Verb = "train"
    tasks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Of examples."""
    seeds: Seeds = Seeds([0])
    budget: Annotated[float | None, Span(0.1, 1e9)] = None
    """Seconds of each trial."""
    seconds: Annotated[float | None, Span(0.1, 1e9)] = None
    """Seconds of one command; what is not finished then goes on with --resume."""
    protocol: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """Those of every trial."""
    grid: dict[str, list[Any]] = field(default_factory=dict)
    """Settings with several values: every combination is tried."""
    arms: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Variants by name, each with its settings. `protocol` among them takes the place of the study's."""
    random: RandomDraws | None = None
    resources: Resources = Resources()
    early_stopping: EarlyStopping | None = None
    storage: str | None = None
    """Where the workers of a cluster keep trials: a shared folder, or a location as s3://bucket/folder."""
    track: tuple[TrackerName, ...] | None = None
    """Tools that get the scalars of each trial, as `nram train --track`."""

    def to_json(self) -> dict[str, Any]:
        """Plain data, the same for the same study."""
        return json.loads(json.dumps(asdict(self)))


@dataclass(frozen=True)
class Trial:
    """One run of a study."""

    name: str
    """Of its folder; no other trial of the study has it."""
    verb: Verb
    subject: str
    """A task, or a file by its absolute path."""
    seed: int
    label: str = ""
    """Which of the variants it is; empty if there is one alone."""
    settings: dict[str, Any] = field(default_factory=dict)
    budget: float | None = None
    protocol: str | None = None
    cores: Annotated[int, Span(1, 4096)] = 1
    gpus: Annotated[float, Span(0, 64)] = 0.0
    track: tuple[TrackerName, ...] = ()

    @property
    def overrides(self) -> list[str]:
        """The settings as words for --set."""
        return [f"{name}={as_word(value)}" for name, value in self.settings.items()]

    @property
    def words(self) -> list[str]:
        """The command after `nram` that does the same."""
        words = [self.verb, self.subject, "--seed", str(self.seed)]
        if self.verb == "train":
            words += ["--protocol", self.protocol] if self.protocol else []
            return words + [word for override in self.overrides for word in ("--set", override)]
        # What a study leaves out unless it is asked for: verification, and further programs that fit.
        own = {"verify-budget": 0} if self.verb == "search" else {"alternatives": 0}
        words += ["--budget", f"{self.budget:g}"]
        return words + [word for name, value in (own | self.settings).items() for word in (f"--{name}", as_word(value))]

    @property
    def is_examples(self) -> bool:
        """Whether its subject is a file of examples, with any suffix or none. Names of tasks are no paths."""
        return os.path.isabs(self.subject) and not is_task_file(self.subject)

    @property
    def task(self) -> str:
        """What the table calls it."""
        return Path(self.subject).stem if os.path.isabs(self.subject) else self.subject


def as_word(value: Any) -> str:
    """The value of a setting as --set takes it."""
    return value if isinstance(value, str) else json.dumps(value)


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


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a trial of `nram search`: its options."""

    registers: Annotated[int | None, Span(1, 64)] = None
    repeats: Annotated[int | None, Span(1, 64)] = None
    states: Annotated[int | None, Span(1, 64)] = None
    modules: str | None = None
    candidates: Annotated[int | None, Span(1, 1 << 60)] = None
    cells: str | None = None
    result: str | None = None
    layout: str | None = None

    @property
    def space(self) -> Space:
        modules = None if self.modules is None else split_names(self.modules)
        return Space(self.registers, self.repeats, self.states, modules)


class Steps(StepLimit):
    """A step limit in words, as 3n+10."""

    @classmethod
    def parse(cls, value: Any) -> StepLimit:
        limit = cls.from_text(value.replace(" ", "")) if isinstance(value, str) else None
        if limit is None or limit(1) < 1:
            raise ValueError(f"{shown(value)} is not a step limit: write it as '3n+10' or '40'")
        return limit


@dataclass(frozen=True)
class LearnSettings:
    """The settings of a trial of `nram learn`: its options."""

    method: Literal["both", "search", "train"] = "both"
    alternatives: Annotated[int, Span(0, 100)] = 0
    steps: Steps | None = None
    cells: str | None = None
    result: str | None = None
    layout: str | None = None


def reading_of(settings: SearchSettings | LearnSettings) -> Reading:
    names = tuple(name.strip() for name in (settings.result or "").split(",") if name.strip())
    return Reading(settings.cells, names, settings.layout)


# ---- reading


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
    found = members(Spec, {**data, **tables}, lambda key: key, lambda text: problems.append(_without_null(text)))
    if not problems:
        try:
            spec = _with_paths(Spec(**found), folder)
        except OSError as error:
            raise UsageError(f"{where} names a file that cannot be used: {error}") from None
        problems += _problems_of(spec)
        if not problems:
            return spec
    raise UsageError(f"{where} cannot be used{listed(problems)}")


def _without_null(problem: str) -> str:
    """The problem of a field that may be left out. TOML has no null."""
    return problem.removesuffix(" or null")


def _with_paths(spec: Spec, folder: Path) -> Spec:
    def whole(name: str, is_file: bool) -> str:
        return str((folder / name).resolve()) if is_file else name

    files = tuple(whole(name, True) for name in spec.files)
    tasks = tuple(whole(name, is_task_file(name)) for name in spec.tasks)

    def modules(settings: dict[str, Any]) -> dict[str, Any]:
        """Settings in which files of modules have their whole paths."""
        return {
            name: _whole_modules(value, folder) if _names_modules(name) else value for name, value in settings.items()
        }

    grid = {
        name: [_whole_modules(one, folder) if _names_modules(name) else one for one in values]
        for name, values in spec.grid.items()
    }
    arms = {label: modules(own) for label, own in spec.arms.items()}
    spec = replace(spec, settings=modules(spec.settings), grid=grid, arms=arms)
    storage = spec.storage
    if storage is not None and "://" not in storage:
        storage = str((folder / storage).resolve())
    return replace(spec, files=files, tasks=tasks, storage=storage)


def _names_modules(setting: str) -> bool:
    return setting.rpartition(".")[2] == "modules"


def _module_names(value: Any) -> list[str]:
    names = split_names(value) if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return [name for name in names if isinstance(name, str)]


def _whole_modules(value: Any, folder: Path) -> Any:
    """The modules of a setting. Files get their whole paths; what else is wrong with them is told later."""
    if not any(map(is_file_name, _module_names(value))):
        return value
    names = [str((folder / name).resolve()) if is_file_name(name) else name for name in _module_names(value)]
    return ",".join(names) if isinstance(value, str) else names


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
    drawn = spec.random.settings if spec.random is not None else {}
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


# ---- trials


def trials_of(spec: Spec) -> list[Trial]:
    """The trials: for every seed all variants of all tasks, so that a study that is stopped has compared them all."""
    variants = _variants(spec)
    subjects = _named([*spec.tasks, *spec.files])
    trials = []
    for seed in spec.seeds:
        for variant in variants:
            for short, subject in subjects:
                words = [short, variant.label, str(seed)] if variant.label else [short, str(seed)]
                trials.append(
                    Trial(
                        "-".join(words),
                        spec.verb,
                        subject,
                        seed,
                        variant.label,
                        variant.settings,
                        spec.budget,
                        variant.protocol,
                        spec.resources.cores,
                        spec.resources.gpus,
                        spec.track or (),
                    )  # fmt: skip
                )
    assert len({trial.name for trial in trials}) == len(trials)
    return trials


def _named(subjects: Iterable[str]) -> list[tuple[str, str]]:
    """Each with a short name for folders, different for all."""
    found: dict[str, str] = {}
    for subject in subjects:
        short = re.sub(r"[^A-Za-z0-9_]+", "_", Path(subject).stem).strip("_")[:40] or "task"
        numbered = (short if number == 1 else f"{short}_{number}" for number in itertools.count(1))
        found[next(name for name in numbered if name not in found)] = subject
    return list(found.items())


@dataclass(frozen=True)
class _Variant:
    label: str
    """What distinguishes it; empty if there is one alone."""
    arm: str
    """The name of its arm; empty if there are none."""
    settings: dict[str, Any]
    protocol: str | None


def _variants(spec: Spec) -> list[_Variant]:
    grid = [dict(zip(spec.grid, values, strict=True)) for values in itertools.product(*spec.grid.values())]
    draws = list(spec.random.combinations()) if spec.random else [{}]
    found = []
    for arm, own in spec.arms.items() or [("", {})]:
        for (index, one), (number, drawn) in itertools.product(enumerate(grid), enumerate(draws)):
            labels = [arm, f"g{index}" if len(grid) > 1 else "", f"r{number}" if spec.random else ""]
            settings = {
                **spec.settings,
                **one,
                **drawn,
                **{name: value for name, value in own.items() if name != PROTOCOL},
            }
            protocol = own.get(PROTOCOL, spec.protocol)
            found.append(_Variant("-".join(filter(None, labels)), arm, settings, protocol))
    return found


def check_trials(spec: Spec, trials: list[Trial], trust: bool) -> None:
    """Refuse trials whose task or settings cannot be used. Python files are executed if the user named them."""
    problems: list[str] = []
    for index, task in enumerate(spec.tasks):
        if is_task_file(task):
            require_trusted(task, [], trust)
        try:
            get_task(task)
        except UntrustedFile:
            raise
        except NramError as error:
            problems.append(f"tasks.{index}: {error}")
    checks: dict[str, Trial] = {}
    for trial in trials:  # the seed changes nothing here
        checks.setdefault(json.dumps([trial.subject, trial.label]), trial)
    arms = {variant.label: variant.arm for variant in _variants(spec)}
    for trial in checks.values() if not problems else ():
        try:
            _check(trial, trust)
        except UntrustedFile:
            raise
        except NramError as error:
            lines = re.findall(r"^  - (.*)$", str(error), re.MULTILINE) or [str(error)]
            arm, of_file = arms.get(trial.label, ""), isinstance(error, _BadExamples)
            problems += [f"{_place_of(spec, trial, arm, line, of_file)}: {line}" for line in lines]
    if problems:
        raise UsageError(f"the study cannot be run{listed(list(dict.fromkeys(problems)))}")


class _BadExamples(UsageError):
    """A file of examples cannot be used."""


def _place_of(spec: Spec, trial: Trial, arm: str, words: str, of_file: bool) -> str:
    """The part of the specification that an error is about, as far as its words say it."""
    tables: dict[str, Iterable[str]] = {f"arms.{arm}": spec.arms[arm]} if arm else {}  # it changes what all others have
    tables |= {"settings": spec.settings, "grid": spec.grid}
    tables |= {"random.settings": spec.random.settings} if spec.random else {}
    # A path may hold the name of a setting.
    plain = words.replace(trial.subject, "") if os.path.isabs(trial.subject) else words
    named = []
    for name, settings in tables.items():
        for key in settings:
            if found := re.search(rf"(?<![\w.]){re.escape(key)}(?![\w])", plain):
                named.append((found.start(), -len(key), f"{name}.{key}" if key.isidentifier() else f'{name}."{key}"'))
    if named:  # the first and longest: what follows may be a hint at others
        return min(named, key=lambda one: one[:2])[2]
    if of_file:
        return f"files.{spec.files.index(trial.subject)}"
    return f"arms.{arm}" if arm else f"trial {trial.name}"


def _check(trial: Trial, trust: bool) -> None:
    # What the specification names, the user has not named: it is a file that somebody else may have written.
    require_trusted(
        trial.subject if is_task_file(trial.subject) else "",
        [module for name, value in trial.settings.items() if _names_modules(name) for module in _module_names(value)],
        trust,
    )
    if trial.verb == "train":
        load_config(trial.subject, protocol=trial.protocol, overrides=trial.overrides, seed=trial.seed, trust=trust)
        return
    settings = settings_of(trial)
    if isinstance(settings, SearchSettings):
        _ = settings.space.structures
    if trial.is_examples:
        try:
            read_examples(Path(trial.subject), reading_of(settings))
        except NramError as error:
            raise _BadExamples(str(error)) from None


def settings_of(trial: Trial) -> SearchSettings | LearnSettings:
    """The checked settings of a trial of `nram search` or `nram learn`."""
    kind = SearchSettings if trial.verb == "search" else LearnSettings
    problems: list[str] = []
    found = members(kind, trial.settings, lambda key: key, lambda text: problems.append(_without_null(text)))
    if problems:
        raise UsageError("; ".join(problems))
    return kind(**found)


def trial_from(data: Any, where: str) -> Trial:
    """The trial that plain data describes."""
    problems: list[str] = []
    found = checked(Trial, data, "", problems.append)
    if found is INVALID or not re.fullmatch(r"[A-Za-z0-9_.+-]{1,200}", found.name):
        raise NramError(f"{where} cannot be used: {'; '.join(problems[:3]) or 'a trial has a bad name'}")
    return found


def digests_of(spec: Spec) -> dict[str, str]:
    """The SHA-256 of every file that the study names: it does not go on with other ones."""
    files = [*spec.files, *(task for task in spec.tasks if is_task_file(task))]
    return {file: hashlib.sha256(read_bounded(Path(file), MOST_FILE_BYTES)).hexdigest() for file in files}
