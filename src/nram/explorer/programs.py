"""What the page shows of a program: its text, its circuits, its evidence; files to download; instances of tasks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from nram import __version__
from nram.errors import NramError, shown
from nram.explorer.about import program_info
from nram.explorer.answering import Refused, Turns, action
from nram.explorer.folders import find_entry as find_run
from nram.explorer.references import Reference, program_of
from nram.explorer.settings import MOST_CELLS, MOST_EXAMPLES, MOST_STEPS, MOST_TEXT
from nram.extensions import known_task, task_names
from nram.extras import missing
from nram.pictures.circuits import program_svg
from nram.programs.files import to_json_text
from nram.programs.ir import Program
from nram.programs.library import find_entry, zoo_entries
from nram.programs.native.c_source import symbol_for, to_c
from nram.programs.python_source import function_name, to_python
from nram.programs.text import to_text
from nram.records import Span

if TYPE_CHECKING:
    from nram.explorer.server import Explorer

Form = Literal["text", "json", "svg", "c", "python"]
TYPES: dict[Form, tuple[str, str]] = {
    "text": (".nram", "text/plain"),
    "json": (".json", "application/json"),
    "svg": (".svg", "image/svg+xml"),
    "c": (".c", "text/x-c"),
    "python": (".py", "text/x-python"),
}

DRAWING_TURNS = Turns(16)


# ---- what there is


@dataclass(frozen=True)
class _Nothing:
    """A request without arguments."""


def start(explorer: Explorer, request: _Nothing) -> dict[str, Any]:
    """What the page can show: tasks, programs, and the limits of requests."""
    training = missing("train") is None
    return {
        "version": __version__,
        "tasks": [_task(name) for name in task_names()],
        "programs": [
            *(_listed(name, program, False) for name, program in explorer.settings.programs.items()),
            *(_listed(entry.title, entry.program, entry.has_weights and training) for entry in zoo_entries()),
        ],
        "limits": {
            "cells": MOST_CELLS,
            "steps": MOST_STEPS,
            "text": MOST_TEXT,
            "examples": MOST_EXAMPLES,
        },
    }


def _task(name: str) -> dict[str, Any]:
    task = known_task(name)
    words = {"name": name, "summary": task.summary, "layout": task.layout, "limit": str(task.step_limit)}
    return words | {"min_complexity": task.min_complexity, "trained_up_to": task.trained_up_to}


def _listed(title: str, program: Program, network: bool) -> dict[str, Any]:
    return {
        "name": title,
        "task": program.task,
        "origin": program.origin,
        "proven": program.proven_for_every_length,
        "network": network,
        "rows": program.rows,
        "operations": program.operations,
    }


# ---- one program


@dataclass(frozen=True)
class ProgramRequest:
    program: Reference


def show(explorer: Explorer, request: ProgramRequest) -> dict[str, Any]:
    """All that the page shows of a program."""
    program = program_of(explorer, request.program)
    name = request.program.name
    entry = None if name is None or name in explorer.settings.programs else find_entry(name)
    given = asdict(request.program) | {"name": entry.title if entry is not None else name}
    reference = {
        key: value for key, value in given.items() if value not in (None, 0) and (key, value) != ("form", "task")
    }
    run = request.program.run
    trained = run is not None and find_run(explorer.settings, run).kind == "train"  # a learn folder has programs alone
    network = trained or (entry is not None and entry.has_weights)
    title = reference.get("name", program.name)
    if run is not None:
        which = f"member {request.program.member}" if trained else f"program {request.program.member + 1}"
        title = f"{program.name}, {which} of {run}"
    with DRAWING_TURNS.taken():
        info = program_info(program)
    return info | {"program": reference, "title": title, "network": network}


# ---- files


@dataclass(frozen=True)
class DownloadRequest:
    program: Reference
    form: Form


def download(explorer: Explorer, request: DownloadRequest) -> dict[str, str]:
    """The content of a file of the program, in one of its forms."""
    program = program_of(explorer, request.program)
    symbol = symbol_for(program)
    suffix, kind = TYPES[request.form]
    contents = {
        "text": lambda: to_text(program),
        "json": lambda: to_json_text(program),
        "svg": lambda: program_svg(program),
        "c": lambda: to_c(program, symbol),
        "python": lambda: to_python(program, function_name(program)),
    }
    return {"name": f"{symbol}{suffix}", "type": kind, "content": contents[request.form]()}


# ---- instances


@dataclass(frozen=True)
class SampleRequest:
    task: str
    complexity: Annotated[int, Span(0, MOST_CELLS)]
    seed: Annotated[int, Span(0, 2**32 - 1)] = 0
    memory_size: Annotated[int | None, Span(1, MOST_CELLS)] = None


def sample(explorer: Explorer, request: SampleRequest) -> dict[str, Any]:
    """An instance of a task, with its answer."""
    if request.task not in task_names():
        raise Refused(f"there is no task {shown(request.task)}: choose one of {', '.join(task_names())}", 404)
    task = known_task(request.task)
    if task.min_complexity <= request.complexity and task.least_memory(request.complexity) > MOST_CELLS:
        raise NramError(f"n = {request.complexity} needs more than {MOST_CELLS} cells: choose a smaller n")
    instance = task.sample(request.complexity, 1, request.seed, request.memory_size)[0]
    return instance.as_dict() | {"complexity": request.complexity}


ROUTES = [
    action("/api/start", _Nothing, start),
    action("/api/program", ProgramRequest, show),
    action("/api/download", DownloadRequest, download),
    action("/api/sample", SampleRequest, sample),
]
