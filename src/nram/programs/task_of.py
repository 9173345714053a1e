"""Which task a program is for."""

from __future__ import annotations

from nram.errors import UsageError
from nram.programs.ir import Program
from nram.tasks import Task, get_task, task_names


def task_of(program: Program, named: str | None = None) -> Task:
    """The task that the user names, by name or file, or else the program's own.

    A program's own is looked up by name alone: whatever a program file says, no other file is executed for it.
    """
    if named is not None:
        return get_task(named)
    if program.task is None:
        raise UsageError(f"{program.name} does not say which task it is for: name one (--task)")
    if program.task not in task_names():
        raise UsageError(
            f"{program.name} is for the task {program.task!r}, which is not known here: "
            "name its file (--task path/to/task.py), or install the package that it comes with"
        )
    return get_task(program.task)
