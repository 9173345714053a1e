"""What is checked of a study before anything runs: every trial's task, files and settings."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from nram.cluster.options import SearchSettings, reading_of, settings_of
from nram.cluster.plan import Trial, variants_of
from nram.cluster.spec import Spec
from nram.cluster.spec_file import files_in, module_names, names_modules
from nram.errors import NramError, UntrustedFile, UsageError
from nram.extensions import get_task, is_task_file, require_trusted
from nram.files import read_bounded
from nram.records import listed
from nram.search.job import ZOO, Library
from nram.tasks.example_files import read_examples
from nram.training.settings import load_config

MOST_FILE_BYTES = 1 << 28  # of a file of examples


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
    arms = {variant.label: variant.arm for variant in variants_of(spec)}
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
        raise UsageError(f"the study cannot be run{listed(_once(problems, spec))}")


def _once(problems: list[str], spec: Spec) -> list[str]:
    """Each problem once, and each range from which values are drawn: every draw may be wrong in the same way."""
    ranges = {f"random.settings.{name}": one for name, one in spec.drawn.items() if not one.choices}
    told: dict[str, str] = {}
    for problem in problems:
        place = problem.partition(":")[0]
        drawn = ranges.get(place)
        wants_whole = drawn is not None and not drawn.whole and problem.endswith("not a whole number")
        hint = ": write whole = true into its range" if wants_whole else ""
        told.setdefault(problem if drawn is None else place, problem + hint)
    return list(told.values())


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
        [module for name, value in trial.settings.items() if names_modules(name) for module in module_names(value)],
        trust,
    )
    if trial.verb == "train":
        load_config(trial.subject, protocol=trial.protocol, overrides=trial.overrides, seed=trial.seed, trust=trust)
        return
    settings = settings_of(trial)
    if isinstance(settings, SearchSettings):
        _ = settings.space.structures
        _check_library(settings.library)
    if trial.is_examples:
        try:
            read_examples(Path(trial.subject), reading_of(settings))
        except NramError as error:
            raise _BadExamples(str(error)) from None


def _check_library(library: str) -> None:
    if library == ZOO:  # it is the default, and is there
        return
    try:
        Library.named(library)
    except NramError as error:
        raise UsageError(f"library cannot be used: {error}") from None


def digests_of(spec: Spec) -> dict[str, str]:
    """The SHA-256 of every file that the study names: it does not go on with other ones."""
    files = [*spec.files, *(task for task in spec.tasks if is_task_file(task))]
    files += [file for name, value in spec.values() for file in files_in(name, value)]
    return {file: _digest(file) for file in files}


def with_digests(trials: list[Trial], known: Mapping[str, str] | None = None) -> list[Trial]:
    """The trials with the digests of the files that each reads: those that are known, or of the files as they are."""
    digest = cache(_digest) if known is None else known.get
    found = [{file: digest(file) for file in _files_of(trial)} for trial in trials]
    return [
        replace(trial, files={file: value for file, value in files.items() if value is not None})
        for trial, files in zip(trials, found, strict=True)
    ]


def _files_of(trial: Trial) -> list[str]:
    subject = [trial.subject] if os.path.isabs(trial.subject) else []
    return subject + [file for name, value in trial.settings.items() for file in files_in(name, value)]


def require_same_files(trial: Trial) -> None:
    """Refuse to go on if a file that the trial reads has changed since the study began."""
    for file, digest in trial.files.items():
        if _digest(file) != digest:
            raise NramError(
                f"{file} has changed since the study began: restore it and go on with --resume, or begin another study"
            )


def _digest(file: str) -> str:
    return hashlib.sha256(read_bounded(Path(file), MOST_FILE_BYTES)).hexdigest()
