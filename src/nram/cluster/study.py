"""The folder of a study.

study.json        the specification, the trials that follow from it, and the digests of the files that it names
runs/NAME         a run folder for each trial, as the verb makes it
trials/NAME.json  what a trial came to; it exists only if the trial has ended
trials/NAME.log   what its processes printed
results.jsonl     a line for each trial that has ended: made from trials/, and made again whenever a command starts
summary.json      the table of the study
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from nram.cluster.checks import digests_of
from nram.cluster.plan import Trial, trial_from
from nram.cluster.spec import Spec
from nram.cluster.spec_file import spec_from
from nram.cluster.trial import Outcome, Place
from nram.errors import NramError, UsageError, shown
from nram.files import is_leftover, is_locked, locked, make_folder, read_json, write_atomically
from nram.records import Tolerant, read_record
from nram.runtime import versions
from nram.training.settings import recipe_digest

FORMAT = 1
MOST_BYTES = 1 << 28
LOCK = ".lock"
FREE = ("seconds",)
"""Fields of a specification that may change when a study goes on."""


@dataclass(frozen=True)
class StudyRecord(Tolerant):
    """The content of study.json."""

    format: int
    spec: dict[str, Any]
    trials: list[dict[str, Any]]
    files: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of the files that the specification names."""
    versions: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    created: str = "unknown"
    id: str = ""
    """No other study has it."""
    recipe: str = ""
    """Of training, as `recipe_digest`; empty where nothing is trained."""


class Study:
    """A study on disk."""

    def __init__(self, path: Path):
        self.path = path
        self.place = Place(path)
        self.results = path / "results.jsonl"

    # ---- opening

    @property
    def exists(self) -> bool:
        return (self.path / "study.json").is_file()

    @property
    def is_running(self) -> bool:
        return is_locked(self.path / LOCK)

    def require_new(self) -> None:
        """Refuse a folder in which no study can begin. Nothing is written."""
        if self.exists:
            raise UsageError(f"{self.path} holds a study already: go on with it by --resume, or choose another --out")
        try:
            if self.path.exists() and not self.path.is_dir():
                raise UsageError(f"{self.path} is a file: choose another --out")
            if self.path.is_dir() and any(one.name != LOCK and not is_leftover(one) for one in self.path.iterdir()):
                raise UsageError(
                    f"{self.path} is not empty and not a study (it has no study.json): choose another --out"
                )
        except OSError as error:
            raise NramError(f"cannot use {self.path}: {error.strerror}") from None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock of the study, so that no other command works on it."""
        make_folder(self.path)
        busy = f"another process works on the study {self.path}: wait for it or stop it"
        with locked(self.path / LOCK, busy):
            for folder in (self.path, self.path / "trials"):  # run folders remove their own
                for file in filter(is_leftover, folder.glob(".*.part")):
                    with contextlib.suppress(OSError):
                        file.unlink()
            yield

    def create(self, spec: Spec, trials: list[Trial], arguments: list[str]) -> None:
        """Write study.json. The caller holds the lock."""
        self.require_new()
        words = tuple(word.encode(errors="replace").decode() for word in arguments)
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        values = [asdict(trial) for trial in trials]
        recipe = "" if spec.verb == "search" else recipe_digest()
        # Of the files that trials read, as they were when the trials were made: starting Ray takes seconds.
        digests = digests_of(spec)
        for trial in trials:
            digests |= trial.files
        record = StudyRecord(FORMAT, spec.to_json(), values, digests, versions(), words, created, token_hex(6), recipe)
        write_atomically(
            self.path / "study.json", (json.dumps(asdict(record), indent=1, allow_nan=False) + "\n").encode()
        )

    @property
    def record(self) -> StudyRecord:
        path = self.path / "study.json"
        try:
            value = read_json(path, MOST_BYTES)
        except NramError as error:  # the file is damaged, not the user's request
            raise NramError(f"{error}; restore it from a copy, or begin another study with --out") from None
        if isinstance(value, dict) and type(value.get("format")) is int and value["format"] != FORMAT:
            raise UsageError(f"{path} has format {shown(value['format'])}, and this version of nram reads {FORMAT}")
        return read_record(StudyRecord, value, str(path), "; restore it from a copy")

    @property
    def spec(self) -> Spec:
        try:
            data = {name: value for name, value in self.record.spec.items() if value is not None}
            if isinstance(drawn := data.get("random"), dict) and isinstance(drawn.get("settings"), dict):
                data["random"] = {**drawn, "settings": {k: _drawn(v) for k, v in drawn["settings"].items()}}
            return spec_from(data, str(self.path / "study.json"), self.path)
        except UsageError as error:
            raise NramError(f"{error}; restore it from a copy") from None

    @property
    def trials(self) -> list[Trial]:
        """The trials as they were drawn when the study began."""
        where = str(self.path / "study.json")
        found = [trial_from(one, where) for one in self.record.trials]
        if len({trial.name for trial in found}) < len(found):
            raise NramError(f"{where} cannot be used: it has a trial twice; restore it from a copy")
        return found

    def as_begun(self, spec: Spec) -> Spec:
        """A specification with what was decided when the study began, where it leaves that open."""
        if spec.resources.gpus is not None:
            return spec
        return replace(spec, resources=replace(spec.resources, gpus=self.spec.resources.gpus))

    def require_same(self, spec: Spec) -> None:
        """Refuse to go on with another specification, or with other files than the study began with."""
        record, now = self.record, spec.to_json()
        changed = [
            f"  - {name}: {json.dumps(record.spec.get(name))} in the study, {json.dumps(now[name])} asked for"
            for name in now
            if name not in FREE and record.spec.get(name) != now[name]
        ]
        if changed:
            text = "\n".join(changed)
            raise UsageError(f"{self.path} is a study with another specification; choose another --out:\n{text}")
        digests = digests_of(spec)
        if others := [file for file, digest in digests.items() if record.files.get(file, digest) != digest]:
            raise UsageError(
                f"{self.path} began with another content of {', '.join(others)}: restore it, or choose another --out"
            )

    def differences(self) -> list[str]:
        """What has changed since the study began: versions, and the recipe of training."""
        record = self.record
        before, now = record.versions, versions()
        if record.recipe:
            before, now = before | {"the recipe": record.recipe}, now | {"the recipe": recipe_digest()}
        return [f"{name} was {before.get(name)}, is {now[name]}" for name in now if before.get(name) != now[name]]

    # ---- results

    def outcomes(self, trials: list[Trial], noted: list[str] | None = None) -> dict[str, Outcome]:
        """What the trials came to that have ended. A damaged file counts as none; `noted` gets a line that says so."""
        found = {}
        for trial in trials:
            try:
                outcome = self.place.read_outcome(trial.name)
                if outcome is not None and (outcome.subject, outcome.seed, outcome.settings) != (
                    trial.subject, trial.seed, trial.settings,
                ):  # fmt: skip
                    raise NramError(f"{self.place.outcome(trial.name)} is about another trial")
            except NramError as error:
                if noted is not None:
                    noted.append(f"{error}: this trial is looked at again, from its run folder")
                continue
            if outcome is not None:
                found[trial.name] = outcome
        return found

    def write_results(self, outcomes: dict[str, Outcome]) -> None:
        """Make results.jsonl from what the trials came to."""
        write_atomically(self.results, "".join(map(_line, outcomes.values())).encode())

    def append_result(self, outcome: Outcome) -> None:
        try:
            with open(self.results, "ab") as file:
                file.write(_line(outcome).encode())
        except OSError as error:
            raise NramError(f"cannot write {self.results}: {error.strerror}") from error

    def write_summary(self, summary: dict[str, Any]) -> None:
        write_atomically(self.path / "summary.json", (json.dumps(summary, indent=1) + "\n").encode())


def _line(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome)) + "\n"


def _drawn(value: Any) -> Any:
    """A setting that is drawn, as a specification writes it."""
    if not isinstance(value, dict) or value.get("choices"):
        return value["choices"] if isinstance(value, dict) else value
    return {"from": value.get("least"), "to": value.get("most"), "log": value.get("log"), "whole": value.get("whole")}
