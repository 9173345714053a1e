"""The table of modules: integer meanings are the paper's, fuzzy meanings are equation 2 exactly."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.errors import UsageError
from nram.extensions import select_modules
from nram.modules import MODULE_NAMES, PAPER_MODULES, Module

SIZES = range(3, 8)
CASES = 12  # random distributions per module and M
TABLE = {module.name: module for module in PAPER_MODULES}
ARITHMETIC = [module.name for module in PAPER_MODULES if module.memory == "nothing"]

# Section 'Modules' of the paper, with the arguments that a module does not ignore.
PAPER = {
    "ZERO": lambda M: 0,
    "ONE": lambda M: 1,
    "TWO": lambda M: 2,
    "INC": lambda M, a: 0 if a == M - 1 else a + 1,
    "ADD": lambda M, a, b: a + b if a + b < M else a + b - M,
    "SUB": lambda M, a, b: a - b if a >= b else a - b + M,
    "DEC": lambda M, a: M - 1 if a == 0 else a - 1,
    "LESS-THAN": lambda M, a, b: int(a < b),
    "LESS-OR-EQUAL-THAN": lambda M, a, b: int(a <= b),
    "EQUALITY-TEST": lambda M, a, b: int(a == b),
    "MIN": lambda M, a, b: min(a, b),
    "MAX": lambda M, a, b: max(a, b),
}


def _distributions(rng: np.random.Generator, size: int, *shape: int) -> np.ndarray:
    """Random distributions over 0..size-1: broad ones, peaked ones, ones with zeros, certain ones."""
    alpha = rng.choice([0.1, 1.0, 10.0], size=(*shape, 1))
    weights = rng.gamma(np.broadcast_to(alpha, (*shape, size))) + 1e-12
    weights *= rng.random((*shape, size)) < rng.choice([0.5, 1.0], size=(*shape, 1))
    weights[np.arange(size) == rng.integers(size, size=(*shape, 1))] += 1e-3
    return weights / weights.sum(-1, keepdims=True)


def _equation_2(module: Module, size: int, arguments: list[np.ndarray]) -> np.ndarray:
    expected = np.zeros(size)
    for values in itertools.product(range(size), repeat=module.arity):
        probability = np.prod([argument[value] for argument, value in zip(arguments, values, strict=True)])
        expected[module.integer(size, *values)] += probability
    return expected


def _expected_reading(memory: np.ndarray, pointer: np.ndarray) -> np.ndarray:
    size = len(pointer)
    expected = np.zeros(size)
    for address, held in itertools.product(range(size), repeat=2):
        cells = [-1] * size  # what the other cells hold must not matter
        cells[address] = held
        expected[TABLE["READ"].integer(cells, address)] += pointer[address] * memory[address, held]
    return expected


def _expected_memory(memory: np.ndarray, pointer: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The marginal distribution of every cell, over all (what it held, pointer, value)."""
    size = len(pointer)
    expected = np.zeros((size, size))
    for cell, held, address, written in itertools.product(range(size), repeat=4):
        cells = [-1] * size
        cells[cell] = held
        TABLE["WRITE"].integer(cells, address, written)
        probability = memory[cell, held] * pointer[address] * value[written]
        expected[cell, cells[cell]] += probability
    return expected


def _inputs(size: int):
    rng = np.random.default_rng(size)
    return _distributions(rng, size, CASES, size), _distributions(rng, size, CASES, 2)


def _fuzzy(xp, size: int, memory, pair) -> dict:
    """All modules on one memory and one pair of arguments."""
    results = {name: TABLE[name].fuzzy(xp, size, *pair[: TABLE[name].arity]) for name in ARITHMETIC}
    results["READ"] = TABLE["READ"].fuzzy(xp, memory, pair[0])
    results["WRITE"] = TABLE["WRITE"].fuzzy(xp, memory, pair[0], pair[1])
    return results


def _enumerated(size: int, memory, pair) -> dict:
    results = {name: _equation_2(TABLE[name], size, list(pair[: TABLE[name].arity])) for name in ARITHMETIC}
    results["READ"] = _expected_reading(memory, pair[0])
    results["WRITE"] = _expected_memory(memory, pair[0], pair[1])
    return results


@pytest.mark.parametrize("size", SIZES)
def test_fuzzy_meanings_are_the_enumeration_of_equation_2(size):
    for memory, pair in zip(*_inputs(size), strict=True):
        expected = _enumerated(size, memory, pair)
        for name, result in _fuzzy(np, size, memory, list(pair)).items():
            np.testing.assert_allclose(result, expected[name], rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("size", SIZES)
def test_fuzzy_meanings_in_jax_are_the_enumeration_of_equation_2(size, float64):
    memories, pairs = _inputs(size)
    quickly = {"xla_backend_optimization_level": 0}
    compiled = jax.jit(jax.vmap(lambda memory, pair: _fuzzy(jnp, size, memory, list(pair))), compiler_options=quickly)
    results = jax.tree.map(np.asarray, compiled(memories, pairs))
    for case in range(CASES):
        expected = _enumerated(size, memories[case], pairs[case])
        assert results.keys() == expected.keys()
        for name, result in results.items():
            assert result.dtype == np.float64, name
            np.testing.assert_allclose(result[case], expected[name], rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", ARITHMETIC)
def test_integer_meanings_are_the_papers(name):
    module = TABLE[name]
    for size in (3, 4, 7, 10):
        for values in itertools.product(range(size), repeat=module.arity):
            result = module.integer(size, *values)
            assert type(result) is int
            assert result == PAPER[name](size, *values), (size, values)


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "traced"])
def test_integer_meanings_serve_whole_arrays(xp):
    for size in (3, 6):
        first, second = (axis.ravel() for axis in np.mgrid[:size, :size].astype(np.int32))

        def all_modules(a, b, size=size):
            return {name: TABLE[name].integer(size, *(a, b)[: TABLE[name].arity]) for name in ARITHMETIC}

        run = jax.jit(all_modules) if xp is jnp else all_modules
        for name, result in run(xp.asarray(first), xp.asarray(second)).items():
            arguments = [first, second][: TABLE[name].arity]
            expected = [PAPER[name](size, *map(int, row)) for row in zip(*arguments, strict=True)]
            np.testing.assert_array_equal(result, expected if arguments else PAPER[name](size), name)
            assert np.issubdtype(np.asarray(result).dtype, np.integer), name


def test_reading_gives_the_cell_at_the_pointer_and_writing_changes_that_cell_alone():
    read, write = TABLE["READ"].integer, TABLE["WRITE"].integer
    for memory in ([5, 3, 4, 1, 0, 2], np.array([5, 3, 4, 1, 0, 2])):
        assert [read(memory, pointer) for pointer in range(6)] == [5, 3, 4, 1, 0, 2]
        assert write(memory, 2, 0) is None
        assert list(memory) == [5, 3, 0, 1, 0, 2]
    traced = jax.jit(jax.vmap(read, in_axes=(None, 0)))
    np.testing.assert_array_equal(traced(jnp.array([5, 3, 4, 1, 0, 2]), jnp.arange(6)), [5, 3, 4, 1, 0, 2])


def test_the_fourteen_modules_in_the_order_of_the_paper():
    assert (
        *("READ", "ZERO", "ONE", "TWO", "INC", "ADD", "SUB", "DEC"),
        *("LESS-THAN", "LESS-OR-EQUAL-THAN", "EQUALITY-TEST", "MIN", "MAX", "WRITE"),
    ) == MODULE_NAMES
    assert tuple(module.name for module in PAPER_MODULES) == MODULE_NAMES


def test_a_module_has_as_many_arguments_as_it_uses():
    assert [module.arity for module in PAPER_MODULES] == [1, 0, 0, 0, 1, 2, 2, 1, 2, 2, 2, 2, 2, 2]
    touching = {module.name: module.memory for module in PAPER_MODULES if module.memory != "nothing"}
    assert touching == {"READ": "reads", "WRITE": "writes"}


def test_selecting_keeps_the_order_and_repeats_the_whole_sequence():
    chosen = select_modules(["WRITE", "READ", "INC", "READ"], repeats=3)
    assert [module.name for module in chosen] == ["WRITE", "READ", "INC", "READ"] * 3
    twice = [module.name for module in select_modules(MODULE_NAMES, 2)]
    assert (twice[0], twice[14], twice[1], twice[15]) == ("READ", "READ", "ZERO", "ZERO")
    assert len(twice) == 28


@pytest.mark.parametrize(
    ("name", "near"),
    [("WRIT", "WRITE"), ("less", "LESS-THAN"), ("add", "ADD"), ("EQUALITY", "EQUALITY-TEST"), ("MAXX", "MAX")],
)
def test_an_unknown_module_is_refused_and_near_names_are_given(name, near):
    with pytest.raises(UsageError) as refusal:
        select_modules(["READ", name])
    before, _, hint = str(refusal.value).partition("did you mean")
    assert f"'{name}'" in before
    assert near in hint


def test_a_name_like_no_other_is_answered_with_all_names():
    with pytest.raises(UsageError) as refusal:
        select_modules(["@"])
    assert all(name in str(refusal.value) for name in MODULE_NAMES)


@pytest.mark.parametrize(("names", "repeats", "told"), [([], 1, "at least one"), (["READ"], 0, "repeats is 0")])
def test_a_machine_without_modules_is_refused(names, repeats, told):
    with pytest.raises(UsageError, match=told):
        select_modules(names, repeats)
