"""Modules of one's own in every executor: derived and written meanings, native code, searching, proofs, pictures."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random
from textwrap import dedent
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.errors import UsageError
from nram.extensions import get_module, get_task, register_module
from nram.module_tables import EquationTwo, on_arrays
from nram.modules import MODULES, PAPER_MODULES, Module
from nram.pictures.circuits import program_svg
from nram.programs.execute import execute
from nram.programs.interpret import interpret
from nram.programs.simplify import simplify
from nram.programs.text import from_text
from nram.programs.verify import verify
from nram.search.chains import blocks_of, table_costs
from nram.search.counterexamples import find_counterexamples
from nram.search.engine import Search
from nram.search.instances import Pool, task_pool
from nram.search.look_up import have_tables
from nram.search.structure import Structure, embed
from nram.tasks.base import Instance

EXAMPLES = Path(__file__).parents[2] / "src/nram/examples" / "modules"
HALVE = EXAMPLES / "halve.py"
MIDDLE = EXAMPLES / "middle.py"


def _emit_distance(b, x, y):
    """A choice inside of a sum inside of a choice."""
    total = b.add(b.choose(b.less(x, y), b.sub(y, x), b.sub(x, y)), b.number(1))
    return b.choose(b.equal(total, b.size), b.number(0), total)


OWN = (
    Module("PRODUCT", ("x", "y"), lambda M, x, y: x * y % M, emit=lambda b, x, y: b.multiply(x, y)),
    Module("QUOTIENT", ("x", "y"), lambda M, x, y: x // y if y else 0, emit=lambda b, x, y: b.divide(x, y)),
    Module("FURTHER", ("x", "y"), lambda M, x, y: (abs(x - y) + 1) % M, emit=_emit_distance),
    Module("LAST", (), lambda M: M - 1, emit=lambda b: b.sub(b.size, b.number(1))),
)
SILENT = tuple(Module(f"{module.name}-ONLY", module.arguments, module.integer) for module in OWN)
"""The same by their integer meaning alone."""
names = pytest.mark.parametrize("name", [module.name for module in (*OWN, *SILENT)])
emitted = pytest.mark.parametrize("name", [module.name for module in OWN])

READY: list[Module] = []


@pytest.fixture(autouse=True)
def known(forgotten):
    """OWN and SILENT, checked once and known to every test of this file."""
    if not READY:
        READY.extend(map(register_module, (*OWN, *SILENT)))
    MODULES.update((module.name, module) for module in READY)


def call_once(name: str) -> str:
    """A program that puts what a module gives for the first two cells into the third, and halts."""
    arguments = ", ".join(("o1", "o2")[: MODULES[name].arity])
    return dedent(f"""\
        nram program 1
        registers: r1

        always:
            o1 = READ(0)
            o2 = READ(1)
            o3 = {name}({arguments})
            WRITE(2, o3)
            r1 := o3
            halt
        """)


def memories(size: int) -> list[list[int]]:
    return [[a, b] + [0] * (size - 2) for a, b in product(range(size), repeat=2)]


def after(name: str, memory: list[int]) -> list[int]:
    """The memory after `call_once`."""
    output = MODULES[name].integer(len(memory), *memory[: MODULES[name].arity])
    return [*memory[:2], output, *memory[3:]]


# ---- the meanings


@names
def test_the_fuzzy_meaning_is_equation_2_by_enumeration(name, float64):
    module, rng = MODULES[name], np.random.default_rng(1)
    for size, xp in ((3, np), (4, np), (6, np), (4, jnp)):
        distributions = rng.dirichlet(np.ones(size), size=module.arity)
        expected = np.zeros(size)
        for arguments in product(range(size), repeat=module.arity):
            expected[module.integer(size, *arguments)] += np.prod(
                [distributions[i, value] for i, value in enumerate(arguments)]
            )
        found = module.fuzzy(xp, size, *map(xp.asarray, distributions))
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12)


@pytest.mark.parametrize(
    "module", [module for module in PAPER_MODULES if module.memory == "nothing"], ids=lambda module: module.name
)
def test_the_closed_forms_of_the_paper_are_what_would_be_derived(module):
    rng = np.random.default_rng(2)
    distributions = rng.dirichlet(np.ones(7), size=module.arity)
    derived = EquationTwo(module.name, module.integer, module.arity)
    np.testing.assert_allclose(module.fuzzy(np, 7, *distributions), derived(np, 7, *distributions), atol=1e-12)


def test_the_derived_meaning_has_a_gradient(float64):
    module, size = MODULES["QUOTIENT-ONLY"], 5
    rng = np.random.default_rng(3)
    a, b, weights = (jnp.asarray(rng.dirichlet(np.ones(size))) for _ in range(3))
    gradient = jax.grad(lambda a: module.fuzzy(jnp, size, a, b) @ weights)(a)
    # It is linear in each argument, so its slope is its value at a certain one.
    expected = [module.fuzzy(jnp, size, jnp.eye(size)[i], b) @ weights for i in range(size)]
    np.testing.assert_allclose(gradient, np.array(expected), atol=1e-12)


def test_a_fuzzy_meaning_that_needs_too_much_is_refused_with_the_cure():
    with pytest.raises(UsageError, match=r"QUOTIENT-ONLY has no fuzzy form.*1000\^3.*add fuzzy="):
        MODULES["QUOTIENT-ONLY"].fuzzy(np, 1000, np.ones(1000), np.ones(1000))


@names
def test_arrays_mean_the_same_as_integers(name):
    module, size = MODULES[name], 6
    arguments = [np.array(column, np.int32) for column in zip(*product(range(size), repeat=2), strict=True)]
    expected = [module.integer(size, *map(int, row)) for row in zip(*arguments[: module.arity], strict=True)]
    given = arguments[: module.arity]
    for xp in (np, jnp):
        found = on_arrays(module, xp, size, *map(xp.asarray, given))
        np.testing.assert_array_equal(np.asarray(found), expected if module.arity else size - 1)


# ---- the executors


def test_a_loop_of_machine_code_with_a_module_of_ones_own_agrees():
    # Pointers go up by one while the module works on what they point at: the rows become a loop of many steps.
    text = """\
        nram program 1
        registers: p going

        when going = 0:
            p, going := 1, 1
        when p > 0:
            o1 = READ(p)
            o2 = FURTHER(o1, p)
            o3 = QUOTIENT(p, 2)
            o4 = PRODUCT(o2, o3)
            WRITE(p, o4)
            o5 = INC(p)
            p := o5
        otherwise:
            halt
        """
    program, rng = from_text(dedent(text)), Random(4)
    for size in (3, 7, 40):
        memory = [rng.randrange(size) for _ in range(size)]
        ending = interpret(program, memory, 100)
        result = execute(program, memory, 100, engine="native")
        assert (result.memory, result.steps, result.halted) == (ending.memory, ending.steps, ending.halted)


def test_a_program_that_cannot_be_emitted_runs_all_the_same_and_says_what_is_missing():
    program = from_text(call_once("PRODUCT-ONLY"))
    assert program.run([3, 2, 0, 0]).memory == [3, 2, 2, 0]
    with pytest.raises(UsageError, match="PRODUCT-ONLY has no emitted form.*add emit=lambda builder, x, y: ..."):
        execute(program, [3, 2, 0, 0], engine="native")


def test_emitted_code_never_leaves_the_memory_even_where_it_was_not_tried():
    # Wrong for one M alone, which no check on loading looks at.
    wrong = Module("JUMP", ("x",), lambda M, x: x, emit=lambda b, x: _beyond(b, x))
    register_module(wrong)
    result = execute(from_text(call_once("JUMP")), [4, 0] + [0] * 98, engine="native")
    assert result.memory[2] == 0


def _beyond(b, x):
    hundred = b.number(100)
    return b.choose(b.equal(b.size, hundred), hundred, x)


# ---- simplifying and drawing


def test_the_simplifier_takes_the_module_for_what_it_is_unknown():
    text = """\
        nram program 1
        registers: r1 r2

        when r1 = 0:
            o1 = READ(0)
            o2 = FURTHER(o1, o1)
            o3 = FURTHER(o1, o1)
            o4 = PRODUCT(o1, 0)
            o5 = QUOTIENT(o1, 2)
            o6 = SUB(o2, o3)
            o7 = ADD(o4, o6)
            o8 = LAST()
            WRITE(1, o7)
            WRITE(2, o8)
            r1, r2 := o2, o5
        otherwise:
            halt
        """
    program = from_text(dedent(text))
    shorter = simplify(program)
    used = [operation.module for row in shorter.states[0] for operation in row.operations]
    # Equal ones are shared and the dead one goes; what it gives for constants is never guessed.
    assert used.count("FURTHER") == 1 and "QUOTIENT" not in used and "PRODUCT" in used and "LAST" in used
    assert "SUB" not in used
    for size in (3, 4, 9):
        for first in range(size):
            memory = [first] + [0] * (size - 1)
            one, other = interpret(program, memory, 5), interpret(shorter, memory, 5)
            assert (one.memory, one.steps, one.halted) == (other.memory, other.steps, other.halted)


@names
def test_it_is_drawn_like_any_other(name):
    assert f">{name}<" in program_svg(from_text(call_once(name)))


# ---- searching and verifying


@pytest.mark.parametrize("name", ["HALVE", "QUOTIENT-ONLY"])
def test_a_search_finds_a_program_that_uses_it_and_verifying_says_what_is_not_proven(name):
    get_module(HALVE)
    task = get_task(MIDDLE)
    structure = Structure(1, modules=("READ", name, "INC", "READ", "WRITE"))
    search = Search(
        task_pool(task, 0),
        lambda program: find_counterexamples(program, task, 1),
        structures=(structure,),
        most_candidates=2_000_000,
    )
    program = search.run().program
    assert program is not None and name in str(program)
    again = from_text(str(program))
    assert again == program and again.fingerprint == program.fingerprint
    structure, genes = embed(program)
    assert simplify(structure.program(genes)).states == simplify(program).states
    report = verify(program, task, budget=10, symbolic_up_to=2, largest=20)
    assert report.right
    proven = [finding for finding in report.findings if finding.method == "symbolic"]
    told = [skip for skip in report.skipped if skip.method == "symbolic"]
    if name == "HALVE":
        assert [finding.complexity for finding in proven] == [(1, 2)] and proven[0].proven
        assert "the emitted form of HALVE, which proofs use" in told[0].what and "only tested" in told[0].why
    else:
        assert not proven and "QUOTIENT-ONLY has no emitted form" in told[0].why


@names
def test_the_kernel_of_the_search_agrees_on_all_arguments(name):
    program = from_text(call_once(name))
    structure, genes = embed(program)
    sizes = (3, 4, 5, 7)
    instances = [
        Instance(memory, interpret(program, memory, 1).memory, list(range(size)), [2], 1)
        for size in sizes
        for memory in memories(size)
    ]
    Random(name).shuffle(instances)
    pool = Pool(tuple(instances))
    have_tables(structure.kinds, sizes)
    assert not table_costs(structure, genes, blocks_of(pool), len(pool)).any()
    genes[:, 3 * (len(structure.sequence) - 1) + 1] = 0  # WRITE(2, 0), which is not always right
    assert table_costs(structure, genes, blocks_of(pool), len(pool)).any()


@emitted
def test_proofs_take_the_emitted_form_for_what_it_is(name):
    # What the program gives for all values at once is compared with a formula written by hand.
    import z3

    from nram.programs.verify.machine import Facts, SymbolicMachine

    x, y, size = (z3.Int(letter) for letter in ("x", "y", "M"))
    distance: Any = z3.If(x < y, y - x, x - y)
    inside = (size >= 3, x >= 0, x < size, y >= 0, y < size)
    formulas = {
        "PRODUCT": (x * y) % size,
        "QUOTIENT": z3.If(y == 0, 0, x / y),
        "FURTHER": (distance + 1) % size,
        "LAST": size - 1,
    }
    machine = SymbolicMachine(from_text(call_once(name)), size, Facts(inside, float("inf")), split=False)
    found = MODULES[name].emit(machine, *(x, y)[: MODULES[name].arity])
    solver = z3.Solver()
    solver.add(*inside, found != formulas[name])
    assert solver.check() == z3.unsat


def test_a_search_whose_tables_would_be_too_large_is_refused_with_the_cure():
    task = get_task(MIDDLE)
    structure = Structure(1, modules=("READ", "QUOTIENT-ONLY", "WRITE"))
    pool = task_pool(task, 0).joined(task.sample(3000, 1, 0))
    search = Search(pool, lambda program: [], structures=(structure,), most_candidates=10)
    with pytest.raises(UsageError, match="QUOTIENT-ONLY has no emitted form.*too large for the search: add emit="):
        search.run()
