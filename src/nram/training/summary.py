"""A run in one line, read from its folder: what it has reached, and how to go on. For lists of runs.

What a folder holds may come from somebody else: nothing is executed, and what is read is bounded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nram.errors import NramError
from nram.files import parse_json, read_bounded
from nram.messages import shell_command, visible
from nram.records import read_record
from nram.training.diagnosis import result_text
from nram.training.history import duration, share_text
from nram.training.run_folder import Metrics, RunFolder

MOST_WORDS = 300  # letters of a line
MOST_RECORD = 1 << 20  # bytes of run.json
MOST_LINE = 1 << 16  # bytes of a line of metrics.jsonl

Status = Literal["running", "finished", "stopped", "new", "damaged"]


@dataclass(frozen=True)
class Summary:
    """What a list says of a run."""

    task: str | None
    status: Status
    words: str
    """What it has reached, as a sentence."""
    next: str | None = None
    """The command to go on with."""


def summary_of_run(path: Path, running: bool) -> Summary:
    """Of a folder of `nram train`. NramError: it is damaged."""
    read_bounded(path / "run.json", MOST_RECORD, "run.json of the list")
    run = RunFolder.open(path)
    named = run.record.config.get("task")
    task = Path(named).stem if isinstance(named, str) else None
    if (result := run.ending) is not None:
        verdict = "LEARNED" if result.learned else "NOT LEARNED"
        words = shortened(f"{verdict}. {result_text(result)}")
        return Summary(task, "finished", words, shell_command("eval" if result.learned else "doctor", path))
    last = last_metrics(run.metrics)
    again = shell_command("train", named or "TASK", out=path, resume=True, module=_module_files(run))
    onwards = None if running else again
    if last is None:
        words = "Nothing is measured yet." if running else "No step was made."
        return Summary(task, "running" if running else "new", words, onwards)
    hard = "" if last.best_hard is None else f", {share_text(last.best_hard)} right as a program"
    words = f"After {duration(last.seconds)}: error {last.best_error:.3f}{hard}."
    return Summary(task, "running" if running else "stopped", words, onwards)


def _module_files(run: RunFolder) -> list[str]:
    """The files of modules that a run names, for its command. They are not executed."""
    config = run.record.config
    groups = config.get("groups") or [config]
    found = []
    for group in groups if isinstance(groups, list) else ():
        machine = group.get("machine") if isinstance(group, dict) else None
        modules = machine.get("modules") if isinstance(machine, dict) else None
        found += [one for one in modules if isinstance(one, str)] if isinstance(modules, list) else []
    return list(dict.fromkeys(name for name in found if name.endswith(".py")))


def last_metrics(path: Path) -> Metrics | None:
    """The last complete line of metrics.jsonl."""
    if not path.is_file():
        return None
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 2 * MOST_LINE))
        lines = file.read(2 * MOST_LINE).split(b"\n")[:-1]
    return None if not lines else metrics_of(lines[-1], str(path))


def metrics_of(line: bytes, where: str) -> Metrics:
    """A line of metrics.jsonl."""
    try:
        return read_record(Metrics, parse_json(line.decode(), infinite=True), where)
    except ValueError as error:
        raise NramError(f"{where} cannot be read: {error}") from None


def shortened(text: str) -> str:
    """The text as one line of a list."""
    text = visible(text.replace("\n", " "))
    return text if len(text) <= MOST_WORDS else f"{text[:MOST_WORDS]} ..."
