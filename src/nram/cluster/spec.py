"""What the specification of a study can say: its fields, their types and their limits."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from nram.errors import UsageError, shown
from nram.records import Span
from nram.training.trackers import TrackerName

MOST_TRIALS = 100_000
MOST_SEEDS = 100_000
LARGEST_SEED = 2**32 - 1  # JAX would silently take a larger one modulo 2**32
PROTOCOL = "protocol"  # among the settings of an arm

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
    gpus: Annotated[float | None, Span(0, 64)] = None
    """A fraction means that trials share a GPU. None: it is decided when the study begins, by the GPUs at hand."""
    memory: Annotated[float | None, Span(0.01, 1 << 20)] = None
    """GiB that a Ray cluster reserves."""

    def __post_init__(self) -> None:
        if self.gpus is not None and self.gpus > 1 and self.gpus != int(self.gpus):
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

    def values(self) -> Iterator[tuple[str, Any]]:
        """Every setting, with each value that is written for it."""
        yield from self.settings.items()
        yield from ((name, value) for name, values in self.grid.items() for value in values)
        for own in self.arms.values():
            yield from own.items()
        yield from ((name, choice) for name, one in self.drawn.items() for choice in one.choices)

    @property
    def drawn(self) -> dict[str, Drawn]:
        """The settings that are drawn at random."""
        return self.random.settings if self.random else {}

    def with_values(self, change: Callable[[str, Any], Any]) -> Spec:
        """The same study with each of these values changed."""

        def changed(settings: dict[str, Any]) -> dict[str, Any]:
            return {name: change(name, value) for name, value in settings.items()}

        drawn = self.random and replace(
            self.random,
            settings={
                name: replace(one, choices=tuple(change(name, choice) for choice in one.choices))
                for name, one in self.random.settings.items()
            },
        )
        return replace(
            self,
            settings=changed(self.settings),
            grid={name: [change(name, value) for value in values] for name, values in self.grid.items()},
            arms={label: changed(own) for label, own in self.arms.items()},
            random=drawn,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data, the same for the same study."""
        return json.loads(json.dumps(asdict(self)))


def as_word(value: Any) -> str:
    """The value of a setting as --set takes it."""
    return value if isinstance(value, str) else json.dumps(value)
