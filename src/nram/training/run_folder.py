"""The folder of a run: what it is, how far it got, and what it found.

run.json                 configuration, arguments, versions, device
metrics.jsonl            a line per report
checkpoint.safetensors   everything needed to go on
best/0.safetensors …     the best members, the first the best
result.json              how the run ended; its presence means 'finished'
"""

import contextlib
import fcntl
import json
import os
import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nram.errors import NramError, UsageError
from nram.files import write_atomically
from nram.runtime import versions
from nram.training.checkpoint import load_arrays, read_description, save_arrays
from nram.training.config import TrainConfig
from nram.training.settings import config_from_dict, config_to_dict, flat_settings

if TYPE_CHECKING:
    from nram.machine import Controller  # imported late, like JAX: a refusal needs neither

FORMAT = 2
READABLE = (1, 2)  # format 1 has the settings of nram 0.1, which are converted


class RunFolder:
    """A run on disk. Everything but the metrics is written atomically."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoint = path / "checkpoint.safetensors"
        self.metrics = path / "metrics.jsonl"

    # ---- opening

    @classmethod
    def create(cls, path: Path, config: TrainConfig, arguments: list[str], device: str) -> "RunFolder":
        """A new run in a folder that is empty or does not exist."""
        run = cls(path)
        run.require_new()
        with _refusals(path):
            path.mkdir(parents=True, exist_ok=True)
        record = {
            "format": FORMAT,
            "config": config_to_dict(config),
            "arguments": arguments,
            "versions": versions(),
            "device": device,
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        with run.locked():
            run.require_new()  # still: another process may have been faster
            run._write_json("run.json", record)
        return run

    def require_new(self) -> None:
        """Refuse a place where no run can begin. Nothing is written."""
        with _refusals(self.path):
            for place in (self.path, *self.path.parents):
                if place.exists() and not place.is_dir():
                    raise UsageError(f"{place} is a file: choose another --out")
            if self.exists:
                raise UsageError(f"{self.path} holds a run already: go on with it by --resume, or choose another --out")
            # What a process leaves behind that was killed before run.json was complete does not count.
            if self.path.is_dir() and any(e.name not in (".lock", "run.json.part") for e in self.path.iterdir()):
                raise UsageError(f"{self.path} is not empty and not a run (it has no run.json): choose another --out")

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """A run that exists."""
        run = cls(path)
        if not (path / "run.json").is_file():
            if path.exists() and not path.is_dir():
                raise UsageError(f"{path} is a file: name the folder of a run")
            what = "has no run.json" if path.is_dir() else "does not exist"
            raise UsageError(f"{path} is not a run: it {what}; 'nram train TASK --out {path}' makes one")
        found = run.record.get("format")
        if found not in READABLE:
            maker = run.record.get("versions", {}).get("nram", "unknown")
            raise UsageError(
                f"{path} was written in format {found} of the run folder, and this version of nram reads "
                f"formats {READABLE[0]} to {FORMAT}: use the version that made it ({maker})"
            )
        return run

    @classmethod
    def for_training(
        cls, path: Path, asked: TrainConfig, *, resume: bool, settings: bool, seed: int | None
    ) -> "RunFolder":
        """The run at this path, if it is to go on, or a place where one can begin. Nothing is written.

        A run that goes on must be of the task that was asked for. Its other settings are its own: they are compared
        with those asked for only if any were given (`settings`), and its seed if one was given.
        """
        run = cls(path)
        if not (resume and run.exists):
            run.require_new()
            return run
        run = cls.open(path)
        config = run.config
        if config.task != asked.task:
            raise UsageError(f"{path} is a run of the task '{config.task}': choose another --out")
        if settings:
            run.require_same(asked)
        elif seed is not None:
            run.require_same(replace(config, seed=seed))
        return run

    @property
    def exists(self) -> bool:
        return (self.path / "run.json").is_file()

    @contextlib.contextmanager
    def locked(self):
        """No two processes train in one folder."""
        with _refusals(self.path):
            lock = open(self.path / ".lock", "w")  # noqa: SIM115 (closed below)
        with lock:
            with _refusals(self.path):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise UsageError(f"another process is training in {self.path}: wait for it or stop it") from None
            yield

    # ---- what the run is

    @property
    def record(self) -> dict[str, Any]:
        record = self._read_json("run.json")
        if not isinstance(record, dict) or "format" not in record:
            raise NramError(f"{self.path / 'run.json'} is not the record of a run: restore it from a copy")
        return record

    @property
    def config(self) -> TrainConfig:
        try:
            return config_from_dict(self.record.get("config", {}))
        except UsageError as error:
            raise NramError(f"{self.path / 'run.json'} cannot be used: {error}") from None

    def differences(self, device: str) -> list[str]:
        """What has changed on this machine since the run began, of all that its bits depend on."""
        before = {**self.record.get("versions", {}), "device": self.record.get("device")}
        now = {**versions(), "device": device}
        return [f"{name} was {before.get(name)}, is {now[name]}" for name in now if before.get(name) != now[name]]

    def require_same(self, config: TrainConfig) -> None:
        """Refuse to go on with another configuration than the run began with."""
        before, now = flat_settings(self.config), flat_settings(config)
        changed = [name for name in before.keys() | now.keys() if before.get(name) != now.get(name)]
        if changed:
            lines = [
                f"  - {name}: {before.get(name)} in the run, {now.get(name)} asked for" for name in sorted(changed)
            ]
            raise UsageError(f"{self.path} has another configuration; choose another --out:\n" + "\n".join(lines))

    # ---- how far it got

    @property
    def result(self) -> dict[str, Any] | None:
        return self._read_json("result.json") if (self.path / "result.json").is_file() else None

    def write_result(self, result: dict[str, Any]) -> None:
        self._write_json("result.json", result)

    def append_metrics(self, row: dict[str, Any]) -> None:
        with _refusals(self.path), open(self.metrics, "a") as file:
            file.write(json.dumps(row) + "\n")

    def cut_metrics(self, lines: int) -> None:
        """Forget the rows written after the checkpoint: their steps are about to be repeated."""
        kept = self.metrics.read_bytes().splitlines(keepends=True)[:lines] if self.metrics.exists() else []
        write_atomically(self.metrics, b"".join(kept))

    # ---- what it found

    def save_member(self, rank: int, controller: "Controller", description: dict[str, Any]) -> None:
        with _refusals(self.path):
            (self.path / "best").mkdir(exist_ok=True)
        save_arrays(self.path / "best" / f"{rank}.safetensors", controller, description)

    def members(self) -> list[int]:
        return sorted(int(path.stem) for path in (self.path / "best").glob("*.safetensors"))

    def member_file(self, rank: int) -> Path:
        """Where a member is kept; a refusal if there is none of that rank."""
        path = self.path / "best" / f"{rank}.safetensors"
        if not path.is_file():
            have = ", ".join(map(str, self.members()))
            if not have:
                words = f"nram train {shlex.quote(self.config.task)} --out {shlex.quote(str(self.path))} --resume"
                raise UsageError(f"{self.path} has no trained member yet: finish it with {words}")
            raise UsageError(f"{self.path} has no member {rank}: it has {have}")
        return path

    def load_member(self, rank: int) -> tuple["Controller", dict[str, Any]]:
        return _load_controller(self.member_file(rank), self.config)

    # ---- files

    def _write_json(self, name: str, value: Any) -> None:
        write_atomically(self.path / name, (json.dumps(value, indent=2) + "\n").encode())

    def _read_json(self, name: str) -> Any:
        try:
            return json.loads((self.path / name).read_text())
        except (OSError, ValueError) as error:
            raise NramError(f"{self.path / name} cannot be read: {error}") from None


def load_weights(path: Path) -> tuple[TrainConfig, "Controller", dict[str, Any]]:
    """A member's file on its own, wherever it lies: it says itself what machine it belongs to."""
    config = read_config(path)
    return config, *_load_controller(path, config)


def read_config(path: Path) -> TrainConfig:
    """What a member's file says of the run that it comes from."""
    try:
        return config_from_dict(read_description(path)["config"])
    except (KeyError, UsageError) as error:
        raise NramError(f"{path} does not say how it was trained: {error}") from None


def _load_controller(path: Path, config: TrainConfig) -> tuple["Controller", dict[str, Any]]:
    import jax

    from nram.training.population import abstract_population

    one = abstract_population(config, 1).members.controller
    like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), one)
    return load_arrays(path, like)


@contextlib.contextmanager
def _refusals(path: Path):
    """What the file system refuses, said in one line."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise NramError(f"cannot write {os.fspath(where)}: {error.strerror}") from error
