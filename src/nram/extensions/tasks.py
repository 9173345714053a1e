"""Tasks from outside this package: a Python file named by its path, or an entry point of another package.

Either is checked before it is used, and its functions are watched afterwards: whatever goes wrong in them is told with
the file, the line and what to change, not as a stack of calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from nram.errors import UsageError
from nram.extensions import loading as foreign
from nram.extensions import task_checks as checks
from nram.extensions.loading import is_file_name
from nram.tasks.base import Task, Term

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["checked", "entry_points", "is_file_name", "load_entry_point", "load_file", "providers", "watched"]

GROUP = "nram.tasks"
"""The group of entry points in which other packages name their tasks."""


def load_file(path: Path) -> Task:
    """The TASK of a Python file. A process reads a file once, so a run does not change under way."""
    return _read_file(path.resolve(), str(path))


_read: dict[Path, Task] = {}


def _read_file(path: Path, shown: str) -> Task:
    if path not in _read:
        found = getattr(foreign.import_file(path, shown, "task"), "TASK", None)
        if found is None:
            raise UsageError(f"{shown} defines no TASK: end it with TASK = Task(name=..., ...)")
        _read[path] = _usable(found, shown, str(path))
    return _read[path]


# ---- entry points


@cache
def entry_points() -> dict[str, list[EntryPoint]]:
    """The tasks of other packages that are installed, by name; nothing is imported yet."""
    return foreign.find_entry_points(GROUP)


def providers(name: str) -> str:
    """The packages that register this name, in words."""
    return foreign.providers_of(entry_points()[name])


@cache
def load_entry_point(name: str) -> Task:
    found, shown, file = foreign.import_entry_point(name, entry_points()[name], "task")
    task = _usable(found, shown, file)
    if task.name != name:
        raise UsageError(
            f"{shown} registers the task {task.name!r} under the name {name!r}: give the entry point the task's name"
        )
    return task


# ---- what goes wrong in the functions of a task


def _usable(found: Any, shown: str, file: str) -> Task:
    """The task, checked and watched."""
    if not isinstance(found, Task):
        raise UsageError(f"the TASK of {shown} is a {type(found).__name__}: make it one of nram.tasks.Task")
    return checked(found, shown, file)


def checked(task: Task, shown: str, file: str | None = None) -> Task:
    """The task as `watched` has it, if nothing is wrong with it on small sizes."""
    checks.refuse(checks.field_problems(task), shown)
    watching = watched(task, shown, file)
    checks.check_behaviour(watching, shown)
    return watching


def watched(task: Task, shown: str, file: str | None) -> Task:
    """The same task, whose functions tell what is wrong with them at every call."""

    calling = partial(foreign.calling, shown=shown, file=file)

    def least_memory(n: int) -> int:
        with calling(f"least_memory({n})"):
            return task.least_memory(n)

    def sample_input(rng: Random, n: int, memory_size: int) -> list[int]:
        what = f"sample_input(rng, {n}, {memory_size})"
        with calling(what):
            memory = task.sample_input(rng, n, memory_size)
        checks.refuse(checks.memory_problems(memory, memory_size, what), shown)
        return memory

    def oracle(memory: Sequence[int]) -> tuple[list[int], list[int]]:
        what = f"oracle({checks.short(list(memory))})"
        with calling(what):
            answer = task.oracle(memory)
        checks.refuse(checks.answer_problems(answer, memory, what), shown)
        return answer

    def scored_cells(memory: Sequence[int], cells: list[int]) -> list[int]:
        what = f"scored_cells({checks.short(list(memory))}, {checks.short(cells)})"
        with calling(what):
            scored = task.scored_cells(memory, cells)
        checks.refuse(checks.scored_problems(scored, cells, what), shown)
        return scored

    def legal_inputs(n: int, memory_size: int) -> Iterator[list[int]]:
        assert task.legal_inputs is not None
        what = f"legal_inputs({n}, {memory_size})"
        with calling(what):
            for memory in task.legal_inputs(n, memory_size):
                checks.refuse(checks.memory_problems(memory, memory_size, what), shown)
                yield memory

    def symbolic(n: int, memory_size: Term) -> Iterator[Any]:
        assert task.symbolic is not None
        # Only now: it needs z3, and so does whoever asks for the cases. Nothing is proven from a wrong description.
        with calling("symbolic"):
            problems = [*islice(checks.symbolic_problems(task, task.symbolic), 1)]
        checks.refuse(problems, shown)
        with calling(f"symbolic({n}, {memory_size})"):
            yield from task.symbolic(n, memory_size)

    return replace(
        task,
        least_memory=least_memory,
        sample_input=sample_input,
        oracle=oracle,
        scored_cells=scored_cells,
        legal_inputs=legal_inputs if task.legal_inputs is not None else None,
        symbolic=symbolic if task.symbolic is not None else None,
    )
