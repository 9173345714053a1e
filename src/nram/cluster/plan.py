"""The trials of a study: every task and seed with every combination of settings."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from nram.cluster.spec import PROTOCOL, Spec, Verb, as_word
from nram.errors import NramError
from nram.extensions import is_task_file
from nram.records import INVALID, Span, checked
from nram.training.trackers import TrackerName


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
    files: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of the files that it reads, by their paths, when the study began."""

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


def trial_from(data: Any, where: str) -> Trial:
    """The trial that plain data describes."""
    problems: list[str] = []
    found = checked(Trial, data, "", problems.append)
    if found is INVALID or not re.fullmatch(r"[A-Za-z0-9_.+-]{1,200}", found.name):
        raise NramError(f"{where} cannot be used: {'; '.join(problems[:3]) or 'a trial has a bad name'}")
    return found


def trials_of(spec: Spec) -> list[Trial]:
    """The trials: for every seed all variants of all tasks, so that a study that is stopped has compared them all."""
    variants = variants_of(spec)
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
                        spec.resources.gpus or 0.0,
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
class Variant:
    label: str
    """What distinguishes it; empty if there is one alone."""
    arm: str
    """The name of its arm; empty if there are none."""
    settings: dict[str, Any]
    protocol: str | None


def variants_of(spec: Spec) -> list[Variant]:
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
            found.append(Variant("-".join(filter(None, labels)), arm, settings, protocol))
    return found
