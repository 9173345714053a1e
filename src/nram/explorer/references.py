"""Which program a request means: one of the zoo or the command line, a text, a run's member, a job's result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from nram.errors import UsageError, shown
from nram.explorer.answering import Refused
from nram.explorer.runs import Form, program_of_member, program_of_weights
from nram.explorer.settings import MOST_TEXT
from nram.programs.files import program_from
from nram.programs.ir import Program
from nram.programs.library import find_entry
from nram.records import Span

if TYPE_CHECKING:
    from nram.explorer.server import Explorer


@dataclass(frozen=True)
class Reference:
    """One of `name`, `text`, `run` (with `member`) and `job`."""

    name: str | None = None
    text: str | None = None
    run: str | None = None
    member: Annotated[int, Span(0, 10**6)] = 0
    job: str | None = None
    form: Form = "task"
    """Of a trained network's program: simplified for the inputs of its task, with the same meaning on every memory, or
    as it was extracted."""


def program_of(explorer: Explorer, reference: Reference) -> Program:
    """The program that a reference means. No file is read by its path, and no Python file is loaded."""
    if reference.text is not None:
        if len(reference.text) > MOST_TEXT:
            raise Refused(f"the program has more than {MOST_TEXT:,} characters", 413)
        return _read(reference.text)
    if reference.run is not None:
        return program_of_member(explorer.settings, reference.run, reference.member, reference.form)
    if reference.job is not None:
        return explorer.jobs.program_of(reference.job)
    if reference.name is None:
        raise UsageError("the request names no program: give name, text, run or job")
    if (given := explorer.settings.programs.get(reference.name)) is not None:
        return given
    entry = find_entry(reference.name)
    if entry is None:
        raise Refused(f"there is no program {shown(reference.name)}: choose one of the list, or open its file", 404)
    if reference.form != "task":
        return program_of_weights(entry, reference.form)
    return entry.program


@lru_cache(maxsize=64)
def _read(text: str) -> Program:
    return program_from(text)
