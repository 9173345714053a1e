"""The folder of a training run.

run.json                 configuration, arguments, versions, device
metrics.jsonl            a line per report
checkpoint.safetensors   everything needed to continue the run
best/0.safetensors …     the best members, the best one first
result.json              how the run ended; it exists only if the run is finished
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nram.errors import NramError, UntrustedFile, UsageError, shown
from nram.extras import require
from nram.files import (
    is_leftover,
    is_locked,
    locked,
    parse_json,
    read_bounded,
    read_json,
    read_text,
    remove_leftovers,
    require_plain,
    write_atomically,
)
from nram.messages import command
from nram.records import Tolerant, read_record
from nram.runtime import versions
from nram.training.checkpoint import load_arrays, read_description, save_arrays
from nram.training.config import TrainConfig
from nram.training.settings import config_from_dict, config_to_dict, used_settings

if TYPE_CHECKING:
    from nram.machine import Controller  # imports JAX, which opening a run does not need

FORMAT = 2
LOCK = ".lock"
READABLE = (1, 2)  # format 1 has the settings of nram 0.1, which are converted
MOST_BYTES = 1 << 24  # of run.json and result.json
MOST_METRICS_BYTES = 1 << 30  # a line for every few steps


@dataclass(frozen=True)
class RunRecord(Tolerant):
    """The content of run.json."""

    format: int
    config: dict[str, Any]
    """The settings: `RunFolder.config` checks them."""
    arguments: tuple[str, ...] = ()
    """The command after `nram`."""
    versions: dict[str, str] = field(default_factory=dict)
    device: str = "unknown"
    created: str = "unknown"


@dataclass(frozen=True)
class Failure:
    """How many members failed in one part of their examination, under which limit first."""

    part: Literal["hard", "far", "soft"]
    limit: str
    members: int


@dataclass(frozen=True)
class Converged(Tolerant):
    """How many members of a run that ranks them by training converged: error 0 at the size of training."""

    members: int
    soft: int
    hard: int
    both: int
    updates: int  # of each member


@dataclass(frozen=True)
class Result(Tolerant):
    """What is used of result.json."""

    perfect_members: int
    examined_members: int
    best_validation_exact_hard: float
    seconds: float
    failed_examinations: tuple[Failure, ...] = ()
    halting_members: int | None = None  # of the perfect ones
    converged: Converged | None = None

    @property
    def learned(self) -> bool:
        return self.converged.soft > 0 if self.converged else self.perfect_members > 0


@dataclass(frozen=True)
class Metrics(Tolerant):
    """What is used of a line of metrics.jsonl. Fields with a default are missing in older runs."""

    stage: int
    max_complexity: int
    seconds: float
    median_error: float
    best_error: float
    step: int = 0
    stage_ends: bool = False
    population: int = 1
    levels: dict[str, int] = field(default_factory=dict)
    solved_soft: float = 0.0
    solved_hard: float | None = None
    best_exact: float | None = None
    best_hard: float | None = None
    best_halted: float | None = None
    skipped: int = 0
    waits: bool = False
    peak_memory: int | None = None
    perfect: int = 0
    failed: str | None = None
    group: int = 0
    attempt: int = 0
    restarts: int = 0
    checks: int = 0

    @property
    def highest_level(self) -> int:
        return max((int(level) for level in self.levels if re.fullmatch("[0-9]{1,9}", level)), default=1)


class RunFolder:
    """A run on disk. Everything but the metrics is written atomically."""

    def __init__(self, path: Path, trust: bool = False):
        self.path = path
        self.trust = trust  # whether Python files that only run.json names are executed
        self.checkpoint = path / "checkpoint.safetensors"
        self.metrics = path / "metrics.jsonl"

    # ---- opening

    @classmethod
    def create(cls, path: Path, config: TrainConfig, arguments: list[str], device: str) -> "RunFolder":
        """Create a run in a folder that is empty or does not exist."""
        run = cls(path)
        run.require_new()
        with _refusals(path):
            path.mkdir(parents=True, exist_ok=True)
        # A word of the command may be the name of a file that is not text. The record is.
        words = tuple(word.encode(errors="replace").decode() for word in arguments)
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        record = RunRecord(FORMAT, config_to_dict(config), words, versions(), device, created)
        with run.locked():
            run.require_new()  # still: another process may have been faster
            run.write_json("run.json", asdict(record))
        return run

    def require_new(self) -> None:
        """Refuse a folder in which no run can start. Nothing is written."""
        with _refusals(self.path):
            for folder in (self.path, *self.path.parents):
                if folder.exists() and not folder.is_dir():
                    raise UsageError(f"{folder} is a file: choose another --out")
            if self.exists:
                raise UsageError(f"{self.path} holds a run already: go on with it by --resume, or choose another --out")
            # A process that was killed before run.json was complete may leave its lock and a temporary file.
            if self.path.is_dir() and any(e.name != LOCK and not is_leftover(e) for e in self.path.iterdir()):
                raise UsageError(f"{self.path} is not empty and not a run (it has no run.json): choose another --out")

    @classmethod
    def open(cls, path: Path, trust: bool = False) -> "RunFolder":
        """Open a run that exists."""
        run = cls(path, trust)
        if not (path / "run.json").is_file():
            if path.exists() and not path.is_dir():
                raise UsageError(f"{path} is a file: name the folder of a run")
            what = "has no run.json" if path.is_dir() else "does not exist"
            raise UsageError(f"{path} is not a run: it {what}; {command('train', 'TASK', out=path)} makes one")
        for file in (run.metrics, run.checkpoint, path / "result.json", path / "best"):
            require_plain(file)
        _ = run.record  # what cannot be read is refused now, not later
        return run

    @property
    def exists(self) -> bool:
        return (self.path / "run.json").is_file()

    @property
    def is_running(self) -> bool:
        """Whether a process is training in this folder."""
        return is_locked(self.path / LOCK)

    @contextlib.contextmanager
    def locked(self):
        """Hold the folder's lock, so that no other process trains in it."""
        with locked(self.path / LOCK, f"another process is training in {self.path}: wait for it or stop it"):
            remove_leftovers(self.path)
            yield

    # ---- configuration

    @property
    def record(self) -> RunRecord:
        path = self.path / "run.json"
        value = self._read_json("run.json")
        version = value.get("format") if isinstance(value, dict) else None
        if type(version) is int and version not in READABLE:
            made = value.get("versions")
            maker = made.get("nram", "unknown") if isinstance(made, dict) else "unknown"
            raise UsageError(
                f"{self.path} was written in format {shown(version)} of the run folder, and this version of nram reads "
                f"formats {READABLE[0]} to {FORMAT}: use the version that made it ({shown(maker)})"
            )
        return read_record(RunRecord, value, str(path), "; restore it from a copy")

    @property
    def config(self) -> TrainConfig:
        where = str(self.path / "run.json")
        try:
            return config_from_dict(self.record.config, where, self.trust)
        except UntrustedFile:
            raise
        except UsageError as error:
            raise NramError(f"{where} cannot be used: {error}") from None

    def resume_command(self, config: TrainConfig, track: str | None = None) -> str:
        """The command that continues this run. It names the files of user-defined modules."""
        return command("train", config.task, out=self.path, resume=True, module=list(config.module_files), track=track)

    def differences(self, device: str) -> list[str]:
        """What has changed since the run was started, of everything that its exact result depends on."""
        before = {**self.record.versions, "device": self.record.device}
        now = {**versions(), "device": device}
        return [f"{name} was {before.get(name)}, is {now[name]}" for name in now if before.get(name) != now[name]]

    def require_task(self, task: str) -> None:
        """Refuse a run of another task. The file of that task is not needed for this, and not executed."""
        stored = self.record.config.get("task")
        if isinstance(stored, str) and stored != task:
            raise UsageError(f"{self.path} is a run of the task {stored!r}: choose another --out")

    def require_same(self, config: TrainConfig) -> None:
        """Refuse another configuration than the one that the run was started with."""
        self.require_task(config.task)
        stored = self.config
        before, now = used_settings(stored), used_settings(config)
        names = before.keys() | now.keys()
        if stored.group_names != config.group_names:  # their names say more than a line for each of their settings
            before["groups"], now["groups"] = (", ".join(one.group_names) or "none" for one in (stored, config))
            names = before.keys() & now.keys()
        changed = [name for name in names if before.get(name) != now.get(name)]
        if changed:
            lines = [
                f"  - {name}: {before.get(name)} in the run, {now.get(name)} asked for" for name in sorted(changed)
            ]
            raise UsageError(f"{self.path} has another configuration; choose another --out:\n" + "\n".join(lines))

    # ---- progress and result

    @property
    def result(self) -> dict[str, Any] | None:
        """The content of result.json; None if the run is not finished."""
        path = self.path / "result.json"
        if not path.is_file():
            return None
        result = self._read_json("result.json")
        read_record(Result, result, str(path))
        return result

    @property
    def ending(self) -> Result | None:
        """The same, with the fields that are used."""
        result = self.result
        return None if result is None else read_record(Result, result, str(self.path / "result.json"))

    def write_result(self, result: dict[str, Any]) -> None:
        self.write_json("result.json", result)

    def append_metrics(self, row: dict[str, Any]) -> None:
        with _refusals(self.path), open(self.metrics, "a") as file:
            file.write(json.dumps(row) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl, as they are."""
        return [row for row, _ in self._metrics_rows()]

    def read_progress(self) -> list[Metrics]:
        """The rows of metrics.jsonl, with the fields that are used."""
        return [metrics for _, metrics in self._metrics_rows()]

    def _metrics_rows(self) -> Iterator[tuple[dict[str, Any], Metrics]]:
        if not self.metrics.exists():
            return
        lines = read_text(self.metrics, MOST_METRICS_BYTES, "file of metrics").split("\n")[:-1]
        for number, line in enumerate(lines, 1):
            where = f"{self.metrics}, line {number},"
            try:
                row = parse_json(line, infinite=True)
            except ValueError as error:
                raise NramError(f"{where} cannot be read: {error}") from None
            yield row, read_record(Metrics, row, where)

    def cut_metrics(self, lines: int) -> int:
        """Keep the first `lines` rows: the steps after them are about to be repeated. Returns how many of them lack."""
        written = read_bounded(self.metrics, MOST_METRICS_BYTES, "file of metrics") if self.metrics.exists() else b""
        kept = [line for line in written.splitlines(keepends=True)[:lines] if line.endswith(b"\n")]
        write_atomically(self.metrics, b"".join(kept))
        return lines - len(kept)

    # ---- members

    def save_member(self, rank: int, controller: "Controller", description: dict[str, Any]) -> None:
        with _refusals(self.path):
            (self.path / "best").mkdir(exist_ok=True)
        save_arrays(self.path / "best" / f"{rank}.safetensors", controller, description)

    def members(self) -> list[int]:
        stems = (path.stem for path in (self.path / "best").glob("*.safetensors"))
        return sorted(int(stem) for stem in stems if re.fullmatch("[0-9]{1,9}", stem))

    def member_file(self, rank: int) -> Path:
        """The file of a member; a refusal if there is no member of this rank."""
        path = self.path / "best" / f"{rank}.safetensors"
        if not path.is_file():
            have = ", ".join(map(str, self.members()))
            if not have:
                words = self.resume_command(self.config)
                raise UsageError(f"{self.path} has no trained member yet: finish it with {words}")
            raise UsageError(f"{self.path} has no member {rank}: it has {have}")
        return path

    def load_member(self, rank: int) -> tuple[TrainConfig, "Controller", dict[str, Any]]:
        """The configuration of a member's group, its controller and its description."""
        config, path = self.config, self.member_file(rank)
        controller, description = _load_controller(path, lambda found: _group_of(config, path, found))
        return _group_of(config, path, description), controller, description

    def member_config(self, rank: int) -> TrainConfig:
        """The configuration of a member's group."""
        path = self.member_file(rank)
        return _group_of(self.config, path, read_description(path))

    # ---- files

    def write_json(self, name: str, value: Any) -> None:
        write_atomically(self.path / name, (json.dumps(value, indent=2) + "\n").encode())

    def _read_json(self, name: str) -> Any:
        try:
            return read_json(self.path / name, MOST_BYTES)
        except UsageError as error:  # the file is damaged, not the user's request
            raise NramError(str(error)) from None


def _group_of(config: TrainConfig, path: Path, description: dict[str, Any]) -> TrainConfig:
    groups, index = config.group_configs, description.get("group", 0)
    if type(index) is not int or not 0 <= index < len(groups):
        raise NramError(f"{path} cannot be used: it names group {shown(index)}, and its run has {len(groups)}")
    return groups[index]


def load_weights(path: Path, trust: bool = False) -> tuple[TrainConfig, "Controller", dict[str, Any]]:
    """Configuration, controller and description of a member's file. Such a file can be read outside its run."""
    controller, description = _load_controller(path, lambda description: described_config(path, description, trust))
    return described_config(path, description, trust), controller, description


def read_config(path: Path, trust: bool = False) -> TrainConfig:
    """The configuration that a member's file was trained with."""
    return described_config(path, read_description(path), trust)


def described_config(path: Path, description: dict[str, Any], trust: bool = False) -> TrainConfig:
    """The configuration in the description of a file of weights."""
    try:
        return config_from_dict(description.get("config"), str(path), trust)
    except UntrustedFile:
        raise
    except UsageError as error:
        raise NramError(f"{path} does not say how it was trained: {error}") from None


def _load_controller(
    path: Path, config_of: Callable[[dict[str, Any]], TrainConfig]
) -> tuple["Controller", dict[str, Any]]:
    require("train", "a trained member")
    from nram.training.member import abstract_controller  # JAX

    return load_arrays(path, lambda description: abstract_controller(config_of(description).machine))


@contextlib.contextmanager
def _refusals(path: Path):
    """Turn an error of the file system into one clear line."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise NramError(f"cannot write {os.fspath(where)}: {error.strerror}") from error
