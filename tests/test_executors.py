"""Every executor ends as the interpreter does: one table of programs and memories, all modules, random programs.

NRAM_TEST_SCALE multiplies the numbers of random programs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from random import Random

import jax
import numpy as np
import pytest
from support.executors import (
    EXECUTORS,
    Case,
    Executor,
    c_library,
    disagreements,
    hard,
    native,
    quick_jit,
    simplified,
    soft,
)
from support.program_cases import call_once, module_cases, table
from support.random_programs import random_memory, random_program

from nram.extensions import get_task, register_module
from nram.machine import run_hard
from nram.modules import MODULES, PAPER_MODULES, Module
from nram.programs.extract.table import extract_table
from nram.programs.interpret import interpret
from nram.programs.library import ZooEntry, zoo_entries, zoo_weights
from nram.programs.native.jit import CompiledProgram
from nram.training.member import wiring_of
from nram.training.run_folder import load_weights

SCALE = int(os.environ.get("NRAM_TEST_SCALE", "1"))
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def executors(names: Iterator[str] | tuple[str, ...] = tuple(EXECUTORS)) -> pytest.MarkDecorator:
    marks = {"C library": [needs_gcc]}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks.get(name, ())) for name in names])


def check(executor: Executor, cases: list[Case], share: float) -> None:
    """The executor can run this share of the cases, and in all of them it ends as the interpreter does."""
    count, problems = disagreements(executor, cases)
    assert not problems, problems[0]
    assert count >= share * len(cases), f"only {count} of {len(cases)} cases can be run"


# ---- the table


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(case for cases in table().values() for case in cases)


@executors()
def test_the_table_of_programs_and_memories(name):
    # Not every program fits into a table of the search.
    check(EXECUTORS[name], list(all_cases()), {"lanes": 0.95}.get(name, 1.0))


def test_the_table_has_runs_that_halt_and_runs_that_are_stopped():
    assert 0.2 < np.mean([case.expected.halted for case in all_cases()]) < 0.8
    assert {module.name for case in all_cases() for module in case.program.modules} == {m.name for m in PAPER_MODULES}


# ---- all modules on all arguments


def _emit_further(b, x, y):
    """A choice inside of a sum inside of a choice."""
    total = b.add(b.choose(b.less(x, y), b.sub(y, x), b.sub(x, y)), b.number(1))
    return b.choose(b.equal(total, b.size), b.number(0), total)


USER_DEFINED = (
    Module("PRODUCT", ("x", "y"), lambda M, x, y: x * y % M, emit=lambda b, x, y: b.multiply(x, y)),
    Module("QUOTIENT", ("x", "y"), lambda M, x, y: x // y if y else 0, emit=lambda b, x, y: b.divide(x, y)),
    Module("FURTHER", ("x", "y"), lambda M, x, y: (abs(x - y) + 1) % M, emit=_emit_further),
    Module("LAST", (), lambda M: M - 1, emit=lambda b: b.sub(b.size, b.number(1))),
)
SILENT = tuple(Module(f"{module.name}-ONLY", module.arguments, module.integer) for module in USER_DEFINED)
"""The same with an integer meaning alone: machine code, C and proofs cannot run them, the others can."""
SIZES = {"soft": (4,), "hard": (4,)}  # these machines are compiled for every memory size


@executors()
def test_all_modules_on_all_arguments(name):
    known = [*PAPER_MODULES, *map(register_module, USER_DEFINED)]
    check(EXECUTORS[name], [case for module in known for case in module_cases(module, SIZES.get(name, (3, 4, 5)))], 1.0)


@executors(("soft", "hard", "simplified", "lanes"))
def test_modules_without_an_emitted_form_on_all_arguments(name):
    silent = list(map(register_module, SILENT))
    sizes = SIZES.get(name, (3, 4, 5))
    check(EXECUTORS[name], [case for module in silent for case in module_cases(module, sizes)], 1.0)


@pytest.mark.parametrize("module", [*PAPER_MODULES, *USER_DEFINED], ids=lambda module: module.name)
def test_modules_on_a_memory_of_a_million_cells(module):
    if not module.built_in:
        register_module(module)
    size, arguments = 1_000_003, (1_000_002, 999_999)
    memory = np.zeros((1, size), np.int32)
    memory[0, :2] = arguments
    memory[0, arguments[0]] = 5
    CompiledProgram(call_once(module.name)).run_batch(memory, 5)
    if module.memory == "nothing":
        assert memory[0, 2] == MODULES[module.name].integer(size, *arguments[: module.arity])
    else:
        assert memory[0, arguments[0]] == (5 if module.memory == "reads" else arguments[1])


# ---- random programs


@cache
def random_cases(seed: int, count: int) -> list[Case]:
    """Programs of any shape, one in ten a full table, each on memories of two sizes under several limits."""
    cases = []
    for index in range(count * SCALE):
        rng = Random(f"{seed} {index}")
        full = {"full": True, "registers": rng.choice([1, 2]), "states": 1} if index % 10 == 0 else {}
        program = random_program(rng, halting=rng.choice([0.0, 0.1, 0.3]), **full)
        for size in (3, rng.randint(4, 20)):
            for limit in (0, 1, rng.randint(2, 9), rng.randint(10, 150)):
                cases.append(Case(program, tuple(random_memory(rng, size)), limit))
    return cases


COUNTS = {
    "simplified": 250,
    "native": 120,
    "native in small parts": 120,
    "native table walk": 40,
    "LLVM library": 120,
    "C library": 400,
    "Python source": 400,
    "page": 400,
    "lanes": 150,
    "symbolic": 250,
    "terms": 40,
}


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
@executors(tuple(COUNTS))
def test_random_programs(name, seed):
    check(EXECUTORS[name], random_cases(seed, COUNTS[name]), 0.6 if name == "lanes" else 1.0)


@needs_gcc
@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_random_programs_in_optimised_c(level):
    check(lambda cases: c_library(cases, level), random_cases(3, 100), 1.0)


@pytest.mark.parametrize(("registers", "size", "count"), [(1, 3, 1000), (2, 5, 800), (3, 7, 200)])
def test_random_full_tables_on_the_soft_and_the_hard_machine(registers, size, count):
    """A row for all flags and all modules in every row, as extraction gives them."""
    rng = Random(registers)
    programs = [
        random_program(rng, registers=registers, states=rng.randint(1, 3), full=True, halting=0.15)
        for _ in range(count * SCALE)
    ]
    cases = [Case(program, tuple(random_memory(rng, size)), 12) for program in programs]
    assert 0.2 < np.mean([case.expected.halted for case in cases]) < 0.9
    for executor in (hard, soft):
        check(executor, cases, 1.0)


def test_random_programs_of_any_shape_on_the_hard_machine():
    rng = Random(1)
    programs = [random_program(rng, registers=2, states=2, operations=2, halting=0.15) for _ in range(100)]
    check(hard, [Case(program, tuple(random_memory(rng, 5)), 8) for program in programs], 0.9)


# ---- the zoo's weights


@pytest.mark.parametrize("entry", [e for e in zoo_entries() if e.has_weights], ids=lambda entry: entry.title)
def test_trained_weights_and_their_programs(entry: ZooEntry):
    """The discretised machine with the weights, its raw program, and the zoo's program on inputs of the task."""
    task, rng, limit = get_task(entry.program.task or entry.name), Random(entry.title), 24
    with zoo_weights(entry) as path:
        config, controller, _ = load_weights(path)
    wiring = wiring_of(config.machine)
    raw = extract_table(controller, wiring)
    largest = task.min_complexity + 3
    size = task.least_memory(largest) + 1
    instances = [
        tuple(instance.input)
        for n in range(task.min_complexity, largest + 1)
        for instance in task.sample(n, 10, seed=n, memory_size=size)
    ]
    memories = instances + [tuple(random_memory(rng, size)) for _ in range(40)]
    run = quick_jit(jax.vmap(lambda memory: run_hard(controller, wiring, memory, limit)))
    ended = jax.tree.map(np.asarray, run(np.array(memories, np.int32)))
    for i, memory in enumerate(memories):
        ending = interpret(raw, memory, limit)
        assert ended.memory[i].tolist() == ending.memory and ended.registers[i].tolist() == ending.registers
        assert (ended.steps[i], ended.halted[i]) == (ending.steps, ending.halted)
        if i < len(instances):
            short = interpret(entry.program, memory, limit)
            assert (short.memory, short.steps, short.halted) == (ending.memory, ending.steps, ending.halted)
    for executor in (native, simplified):
        check(executor, [Case(raw, memory, limit) for memory in memories], 1.0)
