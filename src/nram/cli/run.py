"""`nram run`: run a program on a memory."""

from __future__ import annotations

import argparse
import io
import json
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nram.cli.arguments import natural, positive
from nram.cli.memory_argument import HELP, add_input, named_memory, read_memory
from nram.cli.output import print_json
from nram.cli.program_argument import add_modules, add_program, limit_in_words, program_of, require_limit
from nram.display import counted, span
from nram.errors import NramError, UsageError
from nram.files import check_destination, write_result
from nram.limits import wrong_cells
from nram.programs.execute import ENGINES, Result, check_max_steps, execute
from nram.programs.ir import Program
from nram.programs.library import limit_for, task_of
from nram.programs.memory import narrow_cells, prepare_memory
from nram.tasks import BUILT_IN, TASKS
from nram.tasks.base import Instance, Task

MANY_CELLS = 400  # of larger memories only some rows are shown: the first, the last, and some that changed
FIRST_ROWS, LAST_ROWS, CHANGED_ROWS = 5, 2, 10
MANY_MEMORIES = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run a program until it halts: on a memory, on each memory of a batch, or on a sampled instance of a "
        "task. On an instance it runs for at most T(n) steps, and the answer is checked."
    )
    parser.epilog = (
        "The memory is printed whether the program halts or not. The exit status is 1 if the program is wrong on the "
        "instance. On a memory it is 1 if the program did not halt, unless --max-steps is given or the program's card "
        "says that it is right under every limit."
    )
    add_program(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--memory", metavar="CELLS", help=HELP)
    add_input(source)
    source.add_argument("--complexity", type=positive, metavar="N", help="sample an instance with this n instead")
    parser.add_argument("--task", metavar="TASK", help="task of the instance (default: the program's task)")
    parser.add_argument("--seed", type=natural, metavar="S", help="seed of the instance (default: 0)")
    parser.add_argument("--memory-size", type=positive, metavar="M", help="pad the memory with zeros to M cells")
    parser.add_argument(
        "--largest-value",
        type=positive,
        metavar="V",
        help="let values go up to V, whatever the number of cells: the memory is padded to V + 1 cells, which take no "
        "room until they are used, and only the cells given are shown",
    )
    parser.add_argument(
        "--max-steps", type=natural, metavar="N", help="default: T(n) on an instance, 64 M + 1024 on a memory"
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="machine code, or the reference interpreter (default: auto, machine code unless a user-defined module has "
        "no emitted form)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write the memory to a file: .npy, .json, or text for any other suffix"
    )
    parser.add_argument("--full", action="store_true", help="show every cell, however many there are")
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:
    program = program_of(arguments)
    task = _task(arguments, program)
    instance = None if task is None else _instance(arguments, task)
    limit = arguments.max_steps
    if task is None:
        require_limit(program, limit)
    elif limit is None:
        limit = limit_for(program, task)(arguments.complexity)
    memory = _memory(arguments, program) if instance is None else instance.input
    before = _before(arguments, memory)
    bound = check_max_steps(limit, before.shape[-1])
    _check_out(arguments.out, before.ndim == 2)
    given = memory if isinstance(memory, np.ndarray) else before
    started = time.perf_counter()
    result = execute(program, given, bound, arguments.memory_size, arguments.engine, arguments.largest_value)
    seconds = time.perf_counter() - started
    right = None if instance is None else not wrong_cells(result.memory, instance)
    if arguments.out is not None:
        _write(result.memory, arguments.out)
    if arguments.json:
        parts = {name: _plain(getattr(result, name)) for name in ("memory", "registers", "steps", "halted")}
        if arguments.input is not None:
            parts["results"] = _results(program, before, result)
        print_json(parts if instance is None else {**parts, "right": right, "cells": instance.cells})
    else:
        if arguments.input is not None:
            results = _results(program, before, result)
            for name, value in (results or {}).items():
                print(f"{name} = {' '.join(map(str, value)) if isinstance(value, list) else value}")
            if results is None:
                print(f"no result: it did not halt within {result.steps} steps")
        if task is not None and instance is not None:
            cells = f"{len(instance.cells):,} output cell{'' if len(instance.cells) == 1 else 's'}"
            at_limit = not result.halted and arguments.max_steps is None
            verdict = ("right" if right else "WRONG") + (f" at T(n) = {limit_for(program, task)}" if at_limit else "")
            print(f"{verdict}: {cells}, {seconds:.3f} s with checking and compiling")
        _show(program, before, result, instance, arguments.full)
        if arguments.out is not None:
            print(f"memory written to {arguments.out}")
    if right is False:
        return 1
    running = int(np.size(result.halted) - np.sum(result.halted))
    if not running or limit is not None:
        return 0
    if program.right_under_every_limit:
        if not arguments.json:
            print(f"{program.name} does not always halt; its card says that it is right under every limit from T(n) up")
        return 0
    sys.stdout.flush()
    who = program.name if before.ndim == 1 else f"{program.name}, on {running} of {len(before)} memories,"
    advice = "it may loop for ever on this input"
    if program.limit is not None:
        advice = f"give --max-steps; it should finish after {limit_in_words(program)} steps"
    raise NramError(f"{who} did not halt within {bound} steps, which is 64 M + 1024: {advice}")


def _task(arguments, program: Program) -> Task | None:
    """The task of the sampled instance, if one is asked for."""
    if arguments.complexity is None:
        given = [f"--{name}" for name in ("task", "seed") if getattr(arguments, name) is not None]
        if given:
            raise UsageError(f"{given[0]} is for a sampled instance: give --complexity instead of --memory")
        return None
    return task_of(program, arguments.task)


def _instance(arguments, task: Task) -> Instance:
    size, arguments.memory_size = arguments.memory_size, None  # the instance is sampled in that size
    return task.sample(arguments.complexity, 1, arguments.seed or 0, size)[0]


def _memory(arguments, program: Program) -> list | np.ndarray:
    """The memory that is given as a whole, or laid out from inputs by name."""
    if arguments.input is None:
        return read_memory(arguments.memory)
    return named_memory(program, arguments.input)


def _before(arguments, memory: list | np.ndarray) -> np.ndarray:
    """The memory before the run. With a largest value, the cells that were given."""
    if arguments.largest_value is None:
        return prepare_memory(memory, arguments.memory_size)
    if arguments.complexity is not None or arguments.memory_size is not None:
        other = "--complexity" if arguments.memory_size is None else "--memory-size"
        raise UsageError(f"--largest-value says how large the memory is: leave out one of it and {other}")
    return narrow_cells(memory, arguments.largest_value)


def _results(program: Program, before: np.ndarray, result: Result) -> dict[str, int | list[int]] | None:
    """The results by name; None if the program still ran when it was stopped, and was not made to be stopped."""
    assert program.layout is not None
    if not (result.halted or program.right_under_every_limit or program.needs_limit):
        return None
    return program.layout.results(before.tolist(), result.memory.tolist())


def _plain(value):
    """Arrays as lists, for JSON."""
    return value.tolist() if hasattr(value, "tolist") else value


# ---- files


def _check_out(path: Path | None, batch: bool) -> None:
    """Refuse a bad --out before the run."""
    if path is None:
        return
    check_destination(path)
    if batch and path.suffix not in (".npy", ".json"):
        raise UsageError(f"--out {path}: a batch of memories needs a file that ends in .npy or .json")


def _write(memory: np.ndarray, path: Path) -> None:
    if path.suffix == ".npy":
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, memory, allow_pickle=False)
        content = buffer.getvalue()
    elif path.suffix == ".json":
        content = (json.dumps(memory.tolist()) + "\n").encode()
    else:
        content = (" ".join(map(str, memory.tolist())) + "\n").encode()
    write_result(path, content)


# ---- text


def _show(program: Program, before: np.ndarray, result: Result, instance: Instance | None, full: bool) -> None:
    if before.ndim == 1:
        cells = _output_cells(program, before, list(result.memory)) if instance is None else instance.cells
        _show_one(program, program.name, before, result, cells, full)
        return
    count = len(before)
    shown = count if full or count <= MANY_MEMORIES else MANY_MEMORIES
    for i in range(shown):
        one = Result(result.memory[i], result.registers[i].tolist(), result.steps[i], result.halted[i])
        _show_one(program, f"{program.name}, memory {i + 1} of {count}", before[i], one, (), full)
        print()
    if shown < count:
        print(f"... and {count - shown} more memories (--full shows all)")
    halted = int(result.halted.sum())
    print(f"{halted} of {count} halted, after at most {int(result.steps.max(initial=0))} steps")


def _output_cells(program: Program, before: np.ndarray, after: Sequence[int]) -> list[int]:
    """The output cells, by the program's layout or by its task. None are known if the memory has another layout.

    The oracle of a user-defined task is not asked: on other memories it may never return.
    """
    memory, layout = before.tolist(), program.layout
    try:
        if layout is not None:
            return layout.answer(memory, layout.results(memory, after))[1]
        return TASKS[program.task].oracle(memory)[1] if program.task in BUILT_IN else []
    except (IndexError, ValueError, UsageError):
        return []


def _show_one(
    program: Program, title: str, before: np.ndarray, result: Result, cells: Sequence[int], full: bool
) -> None:
    ending = "halted after" if result.halted else "did not halt within"
    print(f"{title}: {ending} {result.steps} step{'' if result.steps == 1 else 's'}")
    after = result.memory
    changed = int((before != after).sum())
    marks = f"{changed} changed, in brackets" if changed else "none changed"
    full = full or len(after) <= MANY_CELLS
    asked = ""
    if cells:
        asked = (
            "; ^ marks the output cells"
            if full
            else f"; {counted(len(cells), 'output cell')}, " + span("address", cells)
        )
    print(f"memory, {len(after)} cells, {marks}{asked}:")
    _show_cells(before, after, set(cells) if full else set(), full)
    words = ", ".join(f"{name} = {value}" for name, value in zip(program.registers, result.registers, strict=True))
    print(textwrap.fill(f"registers: {words}", 100, subsequent_indent="  "))


def _show_cells(before: np.ndarray, after: np.ndarray, asked: set[int], full: bool) -> None:
    """Print rows of cells, each with the address of its first cell, and marks below the cells that are asked for."""
    width = len(str(int(after.max())))
    address = len(str(len(after) - 1))
    columns = next((columns for columns in (20, 10) if address + 4 + columns * (width + 2) <= 100), 5)
    count = -(-len(after) // columns)
    rows = set(range(count))
    if not full:
        changed = np.unique(np.flatnonzero(before != after) // columns)[:CHANGED_ROWS]
        rows = {*range(FIRST_ROWS), *range(count - LAST_ROWS, count), *changed.tolist()}
    row_before = -1
    for row in sorted(rows):
        if row > row_before + 1:
            print(f"  {'...':>{address}}")
        row_before = row
        cells = range(row * columns, min((row + 1) * columns, len(after)))
        words = [f"[{after[c]:{width}}]" if after[c] != before[c] else f" {after[c]:{width}} " for c in cells]
        print(f"  {row * columns:{address}}: {''.join(words)}".rstrip())
        if not asked.isdisjoint(cells):
            print((" " * (address + 4) + "".join(f" {('^' if c in asked else ' ') * width} " for c in cells)).rstrip())
    if len(rows) < count:
        print(f"  {len(rows)} of {count} rows (--full shows all, --out writes the cells to a file)")
