"""The table of programs and memories that every executor runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random
from textwrap import dedent

from nram.extensions import get_task
from nram.modules import MODULES, Module
from nram.programs.files import read_program
from nram.programs.ir import Program
from nram.programs.library import zoo_entries
from nram.programs.text import from_text
from support.executors import Case

ROOT = Path(__file__).parents[2]
SIZE = 16  # of most memories, so that the machines are compiled once
LIMITS = (1, 2, 7, 30)
IDLING_MERGE = Path(__file__).parents[1] / "programs" / "shown" / "idling_merge.nram"
"""A trained program that is right under every limit and does not halt."""
KINDS = ("right", "idle", "stopped", "wrong")

HEAD = "nram program 1\nregisters: "
WRITTEN = {
    "a row without operations": "r1\nalways:\n    r1 := 1\n",
    "a row that halts at once": "r1\nalways:\n    halt\n",
    "all registers at once": "a b c\nalways:\n    o1 = INC(a)\n    a, b, c := b, c, o1\n",
    "a write is seen by the next read": """p
        when p = 0:
            WRITE(0, 2)
            o2 = READ(0)
            WRITE(o2, o2)
            p := o2
        otherwise:
            halt
        """,
    "constants from modules": """p
        when p = 0:
            o1 = ZERO()
            o2 = ONE()
            o3 = TWO()
            WRITE(o3, o2)
            WRITE(o2, o1)
            p := o3
        otherwise:
            halt
        """,
    "the wrap at M": """p
        always:
            o1 = DEC(p)
            WRITE(o1, p)
            o3 = ADD(o1, o1)
            WRITE(o3, o1)
            p := o1
        """,
    "states": """a b
        state 0:
        when a = 0:
            o1 = READ(0)
            a := o1
            next 1
        otherwise:
            halt
        state 1:
        when a > 0:
            o1 = DEC(a)
            a, b := o1, 2
        otherwise:
            halt
            next 0
        """,
    # The last row repeats while r2 = 0, or while r2 > 0 and r3 > 0; only in the second case does r3 matter.
    "a row that is reached in two ways": """r1 r2 r3
        when r1 = 0:
            o1 = READ(0)
            r1, r2, r3 := 1, o1, 1
        when r2 > 0, r3 = 0:
            halt
        otherwise:
            o1 = READ(r1)
            o2 = INC(r1)
            WRITE(r1, r2)
            r1, r3 := o2, o1
        """,
    "a loop that counts up and down": """up down more
        when up = 0:
            o1 = READ(0)
            up, down := 1, o1
        when down > 0:
            o1 = INC(up)
            o2 = DEC(down)
            o3 = MAX(up, down)
            WRITE(up, o3)
            up, down, more := o1, o2, up
        otherwise:
            halt
        """,
}


def table() -> dict[str, list[Case]]:
    """Cases by the program's name: those of the paper, of the zoo, of all tasks, right, wrong and idling, and more."""
    programs: dict[str, Program] = {name: from_text(HEAD + dedent(text)) for name, text in WRITTEN.items()}
    folders = [
        ROOT / "src/nram/examples" / "paper",
        *(ROOT / "tests" / "programs" / name for name in ("right", "idle", "wrong")),
    ]
    for folder in [*folders, ROOT / "tests" / "programs" / "stopped", ROOT / "benchmarks" / "native"]:
        programs |= {f"{folder.name}/{path.stem}": read_program(path) for path in sorted(folder.glob("*.nram"))}
    programs |= {f"zoo/{entry.title}": entry.program for entry in zoo_entries()}
    return {name: list(_cases(name, program)) for name, program in programs.items()}


def _cases(name: str, program: Program) -> Iterator[Case]:
    rng = Random(name)
    memories = [tuple(rng.randrange(SIZE) for _ in range(SIZE)) for _ in range(2)]
    if program.task is not None:
        task = get_task(program.task)
        memories += [
            tuple(instance.input)
            for n in (task.min_complexity, 3)
            for instance in task.sample(n, 1, seed=n, memory_size=SIZE)
        ]
    for memory in memories:
        for limit in LIMITS:
            yield Case(program, memory, limit)


def call_once(name: str) -> Program:
    """A program that puts what a module gives for the first two cells into the third, and halts."""
    arguments = ", ".join(("o1", "o2")[: MODULES[name].arity])
    text = f"""r1
        always:
            o1 = READ(0)
            o2 = READ(1)
            o3 = {name}({arguments})
            WRITE(2, o3)
            r1 := o3
            halt
        """
    return from_text(HEAD + dedent(text))


def module_cases(module: Module, sizes: tuple[int, ...] = (3, 4, 5)) -> list[Case]:
    """A module on all arguments."""
    program = call_once(module.name)
    return [Case(program, (a, b, *range(1, size - 1)), 3) for size in sizes for a, b in product(range(size), repeat=2)]
