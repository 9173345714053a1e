"""Programs by name or by file, from the zoo that ships with the package or from disk; and their tasks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

from nram.errors import UsageError, shown
from nram.extensions import get_task, known_task, task_names
from nram.limits import StepLimit
from nram.messages import command
from nram.programs.files import read_program
from nram.programs.ir import ORIGINS, Origin, Program
from nram.programs.sketch import Sketch
from nram.programs.sketch_text import holds_sketch, read_sketch, sketch_from_text
from nram.programs.text import from_text, is_sketch
from nram.tasks import Task

WEIGHTS, CERTIFICATE = "weights.safetensors", "certificate.json"  # files of the zoo, beside the programs


@dataclass(frozen=True)
class ZooEntry:
    """A program of the zoo."""

    name: str
    origin: Origin
    program: Program
    has_weights: bool
    """Whether the network it was extracted from ships with it."""
    has_certificate: bool
    """Whether a proof for every length ships with it."""

    @property
    def title(self) -> str:
        return f"{self.name}@{self.origin}"


def zoo_folder():
    """The zoo, as a resource of the package: one folder for each program, named NAME@ORIGIN."""
    return files("nram").joinpath("zoo")


@lru_cache(maxsize=1)
def zoo_entries() -> tuple[ZooEntry, ...]:
    """All programs of the zoo, sorted by name; a bare name means the first entry of that name."""
    entries = []
    for folder in zoo_folder().iterdir():
        name, at, origin = folder.name.partition("@")
        if at and origin in ORIGINS:
            text = folder.joinpath("program.nram").read_text()
            program = from_text(text, f"zoo program {folder.name}")
            has = [folder.joinpath(file).is_file() for file in (WEIGHTS, CERTIFICATE)]
            entries.append(ZooEntry(name, origin, program, *has))
    return tuple(sorted(entries, key=lambda entry: (entry.name, ORIGINS.index(entry.origin))))


def zoo_weights(entry: ZooEntry):
    """A context manager that gives the path of an entry's weights."""
    if not entry.has_weights:
        raise UsageError(f"{entry.title} has no weights: it was {entry.origin}")
    return as_file(zoo_folder().joinpath(entry.title, WEIGHTS))


def zoo_certificate(entry: ZooEntry):
    """A context manager that gives the path of an entry's certificate."""
    return as_file(zoo_folder().joinpath(entry.title, CERTIFICATE))


def find_entry(name: str) -> ZooEntry | None:
    """The entry that NAME or NAME@ORIGIN means."""
    return next((entry for entry in zoo_entries() if name in (entry.name, entry.title)), None)


def as_program(program: Program | str | os.PathLike[str]) -> Program:
    """A program that is given as it is, by its name or by its file."""
    if isinstance(program, Program):
        return program
    if not isinstance(program, str | os.PathLike):
        raise UsageError(f"{shown(program)} is no program: give a Program, a name or a file")
    return load_program(program if isinstance(program, str) else Path(program))


def load_program(name_or_path: str | Path) -> Program:
    """Load a program of the zoo by its name (`copy`, `copy@trained`), or from a file.

    A name of the zoo always means the zoo's program; write ./copy for a file of that name.
    """
    words = str(name_or_path)
    if isinstance(name_or_path, str):
        entry = find_entry(words)
        if entry is not None:
            return entry.program
        same = [entry.title for entry in zoo_entries() if entry.name == words.partition("@")[0]]
        if same and not Path(words).exists():
            raise UsageError(f"the zoo has no {words}: it has {', '.join(same)}")
    path = Path(name_or_path)
    if path.is_dir():
        if (path / "run.json").is_file():
            raise UsageError(f"{path} is a training run: {command('extract', path)} makes a program from it")
        raise UsageError(f"{path} is a folder: name a program file")
    if not path.exists():
        names = sorted({entry.name for entry in zoo_entries()})
        near = get_close_matches(words.lower(), names)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(
            f"there is no program '{words}': no such file, and the zoo has {', '.join(names) or 'nothing'}{hint}"
        )
    return read_program(path)


def load_sketch(sketch: Sketch | str | os.PathLike[str]) -> Sketch:
    """A sketch that is given as it is, by its text or by its file."""
    if isinstance(sketch, Sketch):
        return sketch
    if not isinstance(sketch, str | os.PathLike):
        raise UsageError(f"{shown(sketch)} is no sketch: give a Sketch, its text or a file")
    if isinstance(sketch, str) and is_sketch(sketch):
        return sketch_from_text(sketch)
    return read_sketch(Path(sketch))


def is_sketch_file(name_or_path: str) -> bool:
    """Whether a user means a sketch where a program or a sketch may stand. A name of the zoo means its program."""
    return find_entry(name_or_path) is None and holds_sketch(Path(name_or_path))


def task_of(program: Program, named: str | None = None) -> Task:
    """The task that the user names, by name or file, or else the task in the program's header.

    The header's task is looked up by name alone, so that reading a program file never executes another file.
    """
    if named is not None:
        return get_task(named)
    if program.task is None:
        raise UsageError(f"{program.name} does not say which task it is for: name one (--task)")
    if program.task not in task_names():
        raise UsageError(
            f"{program.name} is for the task {program.task!r}, which is not known here: "
            "name its file (--task path/to/task.py), or install its package"
        )
    return known_task(program.task)


def limit_for(program: Program, task: Task) -> StepLimit:
    """T(n) of a program on a task: the program's, if it has one and is for this task; otherwise the task's."""
    if program.limit is not None and program.task in (None, task.name):
        return program.limit
    return task.step_limit
