"""The process of one job: learn from examples, or verify a program. `jobs.py` starts it.

The request is a line of JSON on standard input, and events are lines of JSON on standard output. The line `stop`, or
the end of standard input because the server is gone, asks the job to save its work and end.
"""

from __future__ import annotations

import json
import math
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nram import process
from nram.errors import NramError
from nram.extensions import get_module, get_task
from nram.files import parse_json, remove_leftovers, write_atomically
from nram.learning.callbacks import LearningCallbacks
from nram.learning.job import LearningJob, Method
from nram.learning.judgement import Judgement
from nram.learning.report import to_json, to_text
from nram.limits import wrong_cells
from nram.messages import on_command_line
from nram.programs.evidence import evidence_in_parts
from nram.programs.files import program_from
from nram.programs.simplify import simplify
from nram.programs.text import to_text as program_to_text
from nram.programs.verify import Report as Verified
from nram.programs.verify import verify
from nram.records import read_record
from nram.search.callbacks import Best, Report
from nram.search.display import best_in_words
from nram.tasks.example_files import ExampleFile, Reading, read_examples
from nram.training.callbacks import Report as TrainingReport
from nram.training.callbacks import TrainingCallbacks

REPORT_SECONDS = 0.25  # between two reports
GRACE = 30.0  # seconds to save in, after the job was asked to stop
GRACE_ALONE = 8.0  # the same, after the server is gone or ends
MOST_PROGRAM = 1 << 16  # characters of a program that is shown on the way
NICENESS = 10  # the page goes before
MOST_FOLDERS = 1000  # of the same name

Emit = Callable[[str, Any], None]


@dataclass(frozen=True)
class LearnRequest:
    """What to learn. `kept` is the folder below which a new one is made for the result."""

    kept: str
    file: str
    """The name of the file of examples: letters, digits, - and _, and a suffix."""
    content: str
    budget: float
    method: Method
    seed: int
    cells: str | None
    result: str | None
    layout: str | None


@dataclass(frozen=True)
class VerifyRequest:
    """What to verify. The files define tasks and modules that the user has loaded into the server."""

    program: str
    task: str | None
    budget: float
    task_files: tuple[str, ...]
    module_files: tuple[str, ...]


def main() -> int:
    process.prepare("nram serve")
    os.nice(NICENESS)
    emit = _Emitter()
    stopping = _Stopping()
    try:
        with on_command_line(), process.interruptible() as signalled:
            line, more = _request()
            work = parse_json(line)
            stopping.listen(more, at_once="verify" in work)
            if "learn" in work:
                request = read_record(LearnRequest, work["learn"], "the request")
                _learn(request, emit, stopping, lambda: stopping.asked or signalled())
            else:
                _verify(read_record(VerifyRequest, work["verify"], "the request"), emit)
    except (NramError, OSError, ValueError) as error:
        emit("failed", {"error": str(error)})
        return 1
    except Exception as error:  # a mistake of ours: the page says so, and its other jobs go on
        emit("failed", {"error": f"this is a fault in nram: {type(error).__name__}: {error}"})
        return 1
    return 0


def _request() -> tuple[str, bytes]:
    """The first line of standard input, and what was read beyond it.

    Not through `sys.stdin`: a thread that waits there would disturb the end of the process.
    """
    content = b""
    while b"\n" not in content and (part := os.read(0, 1 << 20)):
        content += part
    line, _, more = content.partition(b"\n")
    return line.decode(), more


class _Emitter:
    """Writes events. A server that is gone is no error: the work is saved all the same."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.descriptor = os.dup(1)
        os.dup2(2, 1)  # whatever a library prints is not taken for an event

    def __call__(self, name: str, value: Any) -> None:
        line = memoryview(json.dumps([name, _finite(value)], allow_nan=False).encode() + b"\n")
        with self.lock:
            try:
                while line:
                    line = line[os.write(self.descriptor, line) :]
            except OSError:
                return


def _finite(value: Any) -> Any:
    """The same value, with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


class _Stopping:
    """Whether the job is asked to stop. If it does not end in time after that, the process ends all the same."""

    def __init__(self, descriptor: int = 0):
        self.descriptor = descriptor
        self.asked = False
        self.folder: Path | None = None
        """Where the job writes."""

    def listen(self, read: bytes, at_once: bool) -> None:
        """Listen to standard input. `at_once`: nothing is to be saved, so the process ends at the first word."""
        threading.Thread(target=self._listen, args=(read, at_once), daemon=True).start()

    def _listen(self, read: bytes, at_once: bool) -> None:
        told = read or os.read(self.descriptor, 100)  # "stop", or nothing at the end
        self.asked = True
        if not at_once:
            deadline = time.monotonic() + GRACE
            while told and select.select([self.descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                told = os.read(self.descriptor, 100)
            if not told:
                time.sleep(max(0.0, min(GRACE_ALONE, deadline - time.monotonic())))
        self._end()

    def _end(self) -> None:
        """End the process. Files are written atomically, so nothing is lost; no part of one is left."""
        if self.folder is not None:
            remove_leftovers(self.folder)
        os._exit(1)


# ---- learning


def _learn(request: LearnRequest, emit: Emit, stopping: _Stopping, asked: Callable[[], bool]) -> None:
    stopping.folder = folder = _new_folder(Path(request.kept), Path(request.file).stem)
    path = folder / request.file
    try:
        write_atomically(path, request.content.encode())
        results = tuple(name.strip() for name in (request.result or "").split(",") if name.strip())
        file = read_examples(path, Reading(request.cells, results, request.layout))
        job = LearningJob(file, folder, request.budget, request.seed, request.method)
        learned = job.run(_Telling(emit, file), asked)
    except (NramError, OSError) as error:
        if set(os.listdir(folder)) <= {request.file}:  # nothing was learned: the folder would only be in the way
            path.unlink(missing_ok=True)
            folder.rmdir()
        raise NramError(str(error).replace(str(path), request.file)) from None
    program = learned.program
    emit(
        "result",
        {
            "found": learned.found,
            "interrupted": learned.interrupted,
            "report": to_text(learned),
            "program": None if program is None else program_to_text(program),
            "json": to_json(learned),
            "folder": str(folder),
            "example": _example(file),
        },
    )


def _new_folder(kept: Path, name: str) -> Path:
    """A folder of this name that did not exist, with a number if it did."""
    kept.mkdir(parents=True, exist_ok=True)
    for number in range(1, MOST_FOLDERS):
        folder = kept / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise NramError(f"{kept} has too many folders called {name}: remove some, or rename the examples")


def _example(file: ExampleFile) -> dict[str, Any]:
    """A small example of the file, to look at the program with."""
    chosen = next((one for one in file.examples if one.size > 2), file.examples[-1])
    instance = chosen.instance
    return {
        "memory": instance.input,
        "expected": instance.output,
        "cells": instance.cells,
        "steps": instance.steps,
    }


class _Telling(LearningCallbacks):
    """Sends what happens as events."""

    def __init__(self, emit: Emit, file: ExampleFile):
        self.emit, self.file = emit, file
        self.training = _TellingTraining(emit)
        self.wrong_on_held_out = 0
        self.told = 0.0

    def note(self, text: str) -> None:
        self.emit("note", {"text": text})

    def report(self, report: Report) -> None:
        now = time.monotonic()
        if now - self.told >= REPORT_SECONDS:
            self.told = now
            value = asdict(report)
            value["rounds"] = value.pop("round")
            self.emit("report", {**value, "refused": self.wrong_on_held_out})

    def best(self, best: Best) -> None:
        instance = best.smallest
        text = program_to_text(simplify(best.program))
        value = {
            "text": best_in_words(best, self.file.layout),
            "wrong": best.wrong,
            "examples": best.pool,
            "seconds": best.seconds,
            "input": instance.input,
            "expected": instance.output,
            "cells": wrong_cells(best.obtained, instance),
            "steps": instance.steps,
            "program": text if len(text) <= MOST_PROGRAM else None,
        }
        self.emit("best", value)

    def refused(self, judgement: Judgement) -> None:
        self.wrong_on_held_out += 1
        if self.wrong_on_held_out == 1:
            held_out = judgement.held_out
            self.note(
                f"a program fits every training example, but only {held_out.right} of the {held_out.examples} held "
                "out: the search goes on, and counts others like it"
            )


class _TellingTraining(TrainingCallbacks):
    def __init__(self, emit: Emit):
        self.emit = emit

    def activity(self, text: str) -> None:
        self.emit("activity", {"text": text})

    def note(self, text: str) -> None:
        self.emit("note", {"text": text})

    def warning(self, text: str) -> None:
        self.emit("note", {"text": f"warning: {text}"})

    def report(self, report: TrainingReport) -> None:
        self.emit("training", {**asdict(report), "level": report.highest_level})


# ---- verification


def _verify(request: VerifyRequest, emit: Emit) -> None:
    for file in request.module_files:
        get_module(file)
    for file in request.task_files:
        get_task(file)
    program = program_from(request.program)
    report = verify(
        program, request.task, budget=request.budget, progress=lambda text: emit("note", {"text": text.strip()})
    )
    emit("result", _verified(report))


def _verified(report: Verified) -> dict[str, Any]:
    known = report.recorded()
    words = evidence_in_parts(known)
    return {
        "right": report.right,
        "verdict": report.verdict,
        "task": report.task.name,
        "limit": str(report.limit),
        "proven_for_every_length": report.proven_for_every_length,
        "proven": words["proven"],
        "tested": words["tested"],
        "undecided": [_skipped(one.method, one.complexity, one.what, one.why) for one in report.skipped],
        "counterexample": _counterexample(report),
        "report": report.to_text("PROGRAM"),
        "program": program_to_text(known) if report.right else None,
        "seconds": round(report.seconds, 2),
    }


def _skipped(method: str, complexity: tuple[int, int | None], what: str, why: str) -> str:
    low, high = complexity
    sizes = f"n from {low} up" if high is None else f"n = {low}" if low == high else f"n = {low} to {high}"
    return f"{method}, {sizes}{f', {what}' if what else ''}: {why}"


def _counterexample(report: Verified) -> dict[str, Any] | None:
    found = report.counterexample
    if found is None:
        return None
    wrong = [
        f"cell {cell} holds {found.obtained[cell]} and should hold {found.expected[cell]}"
        for cell in found.wrong_cells[:3]
    ]
    more = "" if len(found.wrong_cells) <= 3 else f", and {len(found.wrong_cells) - 3} more cells are wrong"
    limit = "" if found.at_first else ", which is more than T(n): it is right when it is stopped at T(n)"
    return {
        "memory": list(found.memory),
        "expected": list(found.expected),
        "cells": list(found.cells),
        "steps": found.limit,
        "complexity": found.complexity,
        "words": f"n = {found.complexity}, {len(found.memory)} cells: after {found.limit} steps at most{limit}, "
        f"{'; '.join(wrong)}{more}",
    }


if __name__ == "__main__":
    sys.exit(main())
