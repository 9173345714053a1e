"""Runs of programs in pieces: a page that shows steps fetches those around the one that it shows.

The beginning of a run is interpreted. What lies far behind it is reached in machine code, where the program allows it:
a program of one state is in the same situation after k steps as when it is stopped there.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from nram.errors import NramError
from nram.explorer.answering import action
from nram.explorer.references import Reference, program_of
from nram.explorer.settings import MOST_CELLS, MOST_PIECE, MOST_STEPS
from nram.modules import MODULES
from nram.programs.execute import engine_for, execute
from nram.programs.interpret import Ending, Machine
from nram.programs.ir import Program, Row
from nram.programs.memory import default_max_steps, prepare_memory
from nram.records import Span

if TYPE_CHECKING:
    from nram.explorer.server import Explorer

NEAR = 4000  # steps that are interpreted at once
MOST_INTERPRETED = 200_000  # steps of a program that machine code cannot stop and go on with
KEPT = 64  # runs
MOST_KEPT_CELLS = 100_000  # of the machines that are kept of one run


@dataclass(frozen=True)
class TraceRequest:
    program: Reference
    memory: Annotated[list[int], Span(0, MOST_CELLS)]
    memory_size: Annotated[int | None, Span(1, MOST_CELLS)] = None
    max_steps: Annotated[int | None, Span(0, MOST_STEPS)] = None
    start: Annotated[int, Span(0, MOST_STEPS)] = 0
    count: Annotated[int, Span(0, MOST_PIECE)] = 200


def trace(explorer: Explorer, request: TraceRequest) -> dict[str, Any]:
    """Some steps of a run, and how it ends."""
    program = program_of(explorer, request.program)
    memory = prepare_memory(request.memory, request.memory_size).tolist()
    if program.needs_limit and request.max_steps is None:
        raise NramError(f"{program.name} is right only when it is stopped at T(n): give the number of steps")
    limit = default_limit(program, len(memory)) if request.max_steps is None else request.max_steps
    ending, on_the_way = _runs.of(program, memory, limit)
    start = min(request.start, ending.steps)
    machine = machine_after(program, memory, start, on_the_way)
    return {
        "total": ending.steps,
        "halted": ending.halted,
        "limit": limit,
        "memory_size": len(memory),
        "start": start,
        "memory": list(machine.memory),
        "registers": list(machine.registers),
        "state": machine.state,
        "steps": [step_of(machine) for _ in range(min(request.count, ending.steps - start))],
        "ending": {"memory": ending.memory, "registers": ending.registers},
    }


def default_limit(program: Program, cells: int) -> int:
    """The step limit of a run for which none is given: that of the command line, or the most that can be shown."""
    limit = default_max_steps(cells)
    return limit if _is_native(program) else min(limit, MOST_INTERPRETED)


def step_of(machine: Machine) -> dict[str, Any]:
    """Carry out the next step, and say what happens in it."""
    row = machine.choose()
    before = {"state": machine.state, "row": machine.row, "registers": list(machine.registers)}
    done = machine.compute(row)
    reads, writes = _accesses(row, done.arguments, done.outputs)
    return before | {
        "arguments": done.arguments,
        "outputs": done.outputs,
        "reads": reads,
        "writes": writes,
        "next": list(done.registers),
        "halt": row.halt,
    }


def _accesses(row: Row, arguments: list[list[int]], outputs: list[int]) -> tuple[list[list[int]], list[list[int]]]:
    uses = [MODULES[operation.module].memory for operation in row.operations]
    reads = [[given[0], output] for use, given, output in zip(uses, arguments, outputs, strict=True) if use == "reads"]
    writes = [[given[0], given[1]] for use, given in zip(uses, arguments, strict=True) if use == "writes"]
    return reads, writes


def machine_after(program: Program, memory: list[int], steps: int, known: Sequence[Machine] = ()) -> Machine:
    """The machine after this many steps, which do not go beyond the end of the run. `known` are some before the end."""
    machine = Machine(program, memory)
    if steps > NEAR and _is_native(program):
        reached = execute(program, memory, steps, engine="native")
        machine.memory, machine.registers, machine.steps = reached.memory, reached.registers, reached.steps
    elif nearest := [one for one in known if one.steps <= steps]:
        machine = copied(nearest[-1])
    while machine.steps < steps:
        machine.compute(machine.choose())
    return machine


def copied(machine: Machine) -> Machine:
    other = Machine(machine.program, machine.memory)
    other.registers, other.state, other.steps = list(machine.registers), machine.state, machine.steps
    other.halted = machine.halted
    return other


def _is_native(program: Program) -> bool:
    return len(program.states) == 1 and engine_for(program, "auto") == "native"


class _Runs:
    """How runs end, and what they were on the way. The last ones are kept, because every piece of a run needs them."""

    def __init__(self) -> None:
        self.kept: OrderedDict[tuple[str, tuple[int, ...], int], tuple[Ending, list[Machine]]] = OrderedDict()
        self.lock = threading.Lock()

    def of(self, program: Program, memory: list[int], limit: int) -> tuple[Ending, list[Machine]]:
        key = program.fingerprint, tuple(memory), limit
        with self.lock:
            if (found := self.kept.get(key)) is not None:
                self.kept.move_to_end(key)
                return found
        found = _run(program, memory, limit)
        with self.lock:
            self.kept[key] = found
            while len(self.kept) > KEPT:
                self.kept.popitem(last=False)
        return found


def _run(program: Program, memory: list[int], limit: int) -> tuple[Ending, list[Machine]]:
    """How a run ends. Of an interpreted one, machines at several moments, from which pieces can begin."""
    native = _is_native(program)
    machine, on_the_way = Machine(program, memory), list[Machine]()
    most = min(limit, NEAR if native else MOST_INTERPRETED)
    every = max(NEAR, most * len(memory) // MOST_KEPT_CELLS)
    while not machine.halted and machine.steps < most:
        machine.compute(machine.choose())
        if not native and machine.steps % every == 0:
            on_the_way.append(copied(machine))
    if machine.halted or machine.steps == limit:
        return machine.ending(), on_the_way
    if not native:
        raise NramError(
            f"the run has not ended after {MOST_INTERPRETED:,} steps, the most for a program of several states or with "
            "modules that have no emitted form: give fewer steps, or a smaller memory"
        )
    reached = execute(program, memory, limit, engine="native")
    return Ending(reached.memory, reached.registers, reached.steps, reached.halted), []


_runs = _Runs()

ROUTES = [action("/api/trace", TraceRequest, trace)]
