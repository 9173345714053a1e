"""Training runs and learn folders: the list, one of them with its curves, what a running one adds, programs of members.

What a folder holds may come from somebody else. A damaged one is a line of the list that says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from starlette.concurrency import run_in_threadpool

from nram.errors import NramError, UntrustedFile, shown
from nram.explorer.answering import Refused, Turns, reading, stream
from nram.explorer.folders import MOST_MEMBERS, Entry, Kind, entries, find_entry
from nram.explorer.settings import MOST_TEXT, Settings
from nram.extensions import known_task
from nram.extras import require
from nram.files import is_locked, read_bounded
from nram.learning.summary import Reported, report_of, summary_of_learning
from nram.messages import pasted, shell_command
from nram.programs.files import program_from
from nram.programs.ir import Program
from nram.programs.library import ZooEntry, zoo_entries, zoo_weights
from nram.training.diagnosis import Diagnosis, diagnose
from nram.training.run_folder import Metrics, RunFolder, load_weights
from nram.training.summary import MOST_LINE, Status, Summary, metrics_of, shortened, summary_of_run

MOST_METRICS = 1 << 26  # bytes of metrics that are drawn
MOST_ROWS = 4000  # of curves; more cannot be seen
MOST_READ = 1 << 20  # bytes of metrics.jsonl at once
MOST_WAITING = 16  # requests for JAX; a server has 40 threads
POLL = 0.5  # seconds between two looks at a running run

Form = Literal["task", "every-input", "raw"]  # as `nram.programs.extract.from_run.Form`, which needs JAX
COLUMNS = (
    "group", "stage", "attempt", "step", "seconds", "best_error", "median_error", "level", "max_complexity",
    "solved_soft", "solved_hard", "best_hard", "best_halted", "population", "restarts", "perfect", "stage_ends",
)  # fmt: skip


# ---- the list


def list_runs(explorer: Any, parts: Mapping[str, str]) -> dict[str, Any]:
    """A line for every run and learn folder."""
    return {"runs": [_line(entry) for entry in entries(explorer.settings)]}


def _line(entry: Entry) -> dict[str, Any]:
    try:
        entry.require_safe()
        running = is_locked(entry.path / ".lock")
        summary = _summary(entry.path, entry.kind, running, entry.signature())
    except (NramError, OSError, ValueError) as error:
        summary = Summary(None, "damaged", shortened(str(error)))
    line = {"id": entry.id, "kind": entry.kind, "modified": entry.modified}
    return line | asdict(summary)


@lru_cache(maxsize=1000)
def _summary(path: Path, kind: Kind, running: bool, signature: tuple[Any, ...]) -> Summary:
    """Of a folder whose files have this signature."""
    return (summary_of_run if kind == "train" else summary_of_learning)(path, running)


# ---- one of them


def show_run(explorer: Any, parts: Mapping[str, str]) -> dict[str, Any]:
    """A run with its diagnosis and curves, or a learn folder with its report."""
    entry = find_entry(explorer.settings, parts["id"])
    found = _show_learning(entry) if entry.kind == "learn" else _show_training(entry)
    return {"id": entry.id, "kind": entry.kind, "folder": str(entry.path)} | found


def _show_training(entry: Entry) -> dict[str, Any]:
    path, running = entry.path, is_locked(entry.path / ".lock")
    metrics = path / "metrics.jsonl"
    if metrics.is_file() and metrics.stat().st_size > MOST_METRICS:
        words = shell_command("doctor", path)
        raise Refused(f"{metrics} is larger than {MOST_METRICS >> 20} MiB: look at the run with {words}")
    with _named_files(entry):
        diagnosis, groups, rows = _diagnosed(path, running, entry.signature())
    return {
        **asdict(diagnosis),
        "groups": groups,
        "metrics": {"columns": list(COLUMNS), "rows": _thinned(rows)},
        "lines": len(rows),
        "members": RunFolder(path).members()[:MOST_MEMBERS],
        "command": diagnosis.next,
    }


@lru_cache(maxsize=16)
def _diagnosed(path: Path, running: bool, signature: tuple[Any, ...]) -> tuple[Diagnosis, list[str], list[list[Any]]]:
    """The diagnosis, the names of the groups and the rows of the curves, for files of this signature."""
    run = RunFolder.open(path)
    return diagnose(run), list(run.config.group_names), [_row(one) for one in run.read_progress()]


def _row(metrics: Metrics) -> list[Any]:
    values = {**vars(metrics), "level": metrics.highest_level}
    return [values[column] for column in COLUMNS]


def _thinned(rows: list[list[Any]]) -> list[list[Any]]:
    """At most about MOST_ROWS rows: every so many of each group, and those at which a stage ends."""
    every = -(-len(rows) // MOST_ROWS)
    if every < 2:
        return rows
    group, ends = COLUMNS.index("group"), COLUMNS.index("stage_ends")
    seen: dict[int, int] = {}
    kept = []
    for index, row in enumerate(rows):
        seen[row[group]] = seen.get(row[group], -1) + 1
        if seen[row[group]] % every == 0 or row[ends] or index == len(rows) - 1:
            kept.append(row)
    return kept[-2 * MOST_ROWS :]


def _show_learning(entry: Entry) -> dict[str, Any]:
    report = report_of(entry.path)
    line = _line(entry)
    found = report or Reported(False)
    question = [] if found.question is None else [f"An open question: {shown(found.question.get('input'))}"]
    again = shell_command("learn", "EXAMPLES", out=entry.path, resume=True)
    return {
        "task": None,
        "status": line["status"],
        "verdict": line["words"],
        "facts": [shortened(text) for text in (*found.leaves_open[:50], *found.notes[:50], *question)],
        "explanation": None,
        "cures": [{"text": shortened(text), "command": None} for text in found.advice[:50]],
        "members": list(range(max(len(found.programs), found.program is not None))),
        "command": shell_command("show", pasted(entry.path / "program.json")) if found.program else again,
    }


@contextlib.contextmanager
def _named_files(entry: Entry) -> Iterator[None]:
    """Say how a run whose task or modules are Python files can be seen. They are never executed from the page."""
    try:
        yield
    except UntrustedFile as error:
        options = " ".join(f"--{kind} {path}" for kind, path in error.files)
        raise Refused(f"{error.reason}. If you trust this code, start 'nram serve {options}'") from None


# ---- what a running one adds


class _Follower:
    """Reads what is appended to the metrics of a run."""

    def __init__(self, entry: Entry, line: int):
        self.path = entry.path
        self.position, self.begun = 0, b""
        self.skipped = line
        self.status: Status | None = None

    def look(self) -> list[tuple[str, Any]]:
        """The events since the last look. A run that was cut back to its checkpoint is read again."""
        events: list[tuple[str, Any]] = []
        rows, again = self._rows()
        if again:
            events.append(("again", {}))
        if rows:
            events.append(("rows", {"rows": rows}))
        status = self._status()
        if status != self.status:
            self.status = status
            events.append(("status", {"status": status}))
        return events

    def _status(self) -> Status:
        if (self.path / "result.json").is_file():
            return "finished"
        if is_locked(self.path / ".lock"):
            return "running"
        return "stopped" if self.position else "new"

    def _rows(self) -> tuple[list[list[Any]], bool]:
        """Further rows, and whether the file begins again. Reads a piece of bounded size."""
        try:
            # Not through a link, and without waiting for the other end of a pipe.
            descriptor = os.open(
                self.path / "metrics.jsonl", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except OSError:
            return [], False
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise NramError(f"{file.name} is not a regular file")
            if again := status.st_size < self.position:
                self.position, self.begun, self.skipped = 0, b"", 0
            file.seek(self.position)
            content = file.read(MOST_READ)
        self.position += len(content)
        *lines, self.begun = (self.begun + content).split(b"\n")
        if len(self.begun) > MOST_LINE:
            raise NramError(f"{self.path / 'metrics.jsonl'} has a line of more than {MOST_LINE >> 10} KiB")
        passed = min(self.skipped, len(lines))
        self.skipped -= passed
        where = str(self.path / "metrics.jsonl")
        return [_row(metrics_of(line, where)) for line in lines[passed:]], again


async def follow_run(explorer: Any, parts: Mapping[str, Any]) -> AsyncIterator[tuple[str, Any]]:
    """The rows after a line as they are written, and the status when it changes. Ends when the run is finished."""
    entry = await run_in_threadpool(find_entry, explorer.settings, parts["id"])
    if entry.kind == "learn":
        raise Refused(f"{entry.id} is no training run: only those have curves")
    line = str(parts.get("line", 0))
    if re.fullmatch("[0-9]{1,9}", line) is None:
        raise Refused(f"{shown(line)} is not the number of a line")
    follower = _Follower(entry, int(line))
    yield "begin", {"line": follower.skipped}
    while True:
        events = await run_in_threadpool(follower.look)
        for event in events:
            yield event
        if follower.status == "finished" and not any(name == "rows" for name, _ in events):
            yield "end", {}
            return
        if not any(name == "rows" for name, _ in events):
            await asyncio.sleep(POLL)


# ---- members


JAX_TURNS = Turns(MOST_WAITING)


def open_member(settings: Settings, id: str, member: int) -> tuple[Entry, RunFolder, tuple[int, int]]:
    """A run that has this member, and what changes whenever the member's file does."""
    entry = find_entry(settings, id)
    if entry.kind == "learn":
        raise Refused(f"{id} is a folder of nram learn, which has programs and no network")
    require("train", "a trained member")
    run = RunFolder.open(entry.path)
    with _named_files(entry):
        _ = run.config  # a refusal comes before JAX
        status = run.member_file(member).stat()
    return entry, run, (status.st_mtime_ns, status.st_size)


def program_of_member(settings: Settings, run: str, member: int, form: Form = "task") -> Program:
    """The program of a member of a run, or a program of a learn folder, by its number from 0."""
    entry = find_entry(settings, run)
    if entry.kind == "learn":
        return _learned_program(entry, member)
    entry, _, version = open_member(settings, run, member)
    with _named_files(entry), JAX_TURNS.taken():
        return _extracted(str(entry.path), member, version, form)


def program_of_weights(entry: ZooEntry, form: Form) -> Program:
    """The program of a network of the zoo, in a form that does not ship."""
    if not entry.has_weights:
        raise Refused(f"{entry.title} has no network from which it was extracted: it was {entry.origin}")
    require("train", "extraction")
    with JAX_TURNS.taken():
        return _extracted(entry.title, None, (0, 0), form)


@lru_cache(maxsize=32)
def _extracted(source: str, member: int | None, version: tuple[int, int], form: Form) -> Program:
    """The program of a member of the run in a folder, or, without a member, of a network of the zoo."""
    from nram.programs.extract.from_run import extract_controller, extract_run  # JAX
    from nram.training.member import wiring_of

    if member is not None:
        return extract_run(RunFolder.open(Path(source)), member, form).program
    entry = next(one for one in zoo_entries() if one.title == source)
    with zoo_weights(entry) as path:
        config, controller, _ = load_weights(path)
    found = extract_controller(controller, wiring_of(config.machine), known_task(config.task), form).program
    return replace(found, limit=entry.program.limit)


def _learned_program(entry: Entry, number: int) -> Program:
    file = entry.path / "programs" / f"{number + 1}.nram"
    if number == 0 and not file.is_file():
        file = entry.path / "program.nram"
    if not file.is_file():
        raise Refused(f"{entry.path} has no program {number + 1}", 404)
    return program_from(read_bounded(file, MOST_TEXT, "program").decode(errors="replace"), str(file))


ROUTES = [
    reading("/api/runs", list_runs),
    stream("/api/runs/{id:path}/events/{line}", follow_run),
    stream("/api/runs/{id:path}/events", follow_run),
    reading("/api/runs/{id:path}", show_run),
]
