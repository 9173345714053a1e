"""Populations run by tables, beside the discretised machine step by step."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.extensions import select_modules
from nram.machine import Wiring, run_hard
from nram.machine.kernels.discrete import run_tables
from nram.machine.tables import discrete_table
from nram.modules import MODULE_NAMES, Module

MACHINES, MEMORIES, MOST_STEPS = 12, 10, 9
OWN = (
    Module("HALF", ("a",), lambda size, a: a // 2),
    Module("APART", ("a", "b"), lambda size, a, b: abs(a - b)),
    Module("LAST", (), lambda size: size - 1),
    Module("PRODUCT", ("x", "y"), lambda size, x, y: x * y % size, emit=lambda b, x, y: b.multiply(x, y)),
)


def exact_controllers(kind: str, wiring: Wiring, random_controllers: Any) -> Any:
    """Weights that are multiples of 1/4: sums are exact in any order, and many wires tie."""
    made = random_controllers(kind, wiring, 1, (MACHINES,), output_scale=2.0, halt_scale=2.0, halt_bias=-0.5)
    return jax.tree.map(lambda leaf: jnp.round(4 * leaf) / 4, made)


def tables_of(controllers: Any, wiring: Wiring, quick_jit: Any) -> np.ndarray:
    return np.asarray(quick_jit(jax.vmap(lambda one: discrete_table(one, wiring)))(controllers))


@pytest.mark.parametrize(
    ("kind", "registers", "modules", "size"),
    [
        ("mlp", 1, select_modules(("TWO", "READ", "ADD", "WRITE")), 3),
        ("mlp", 4, select_modules(MODULE_NAMES, 2), 9),
        ("automaton", 2, select_modules(MODULE_NAMES), 7),
        ("automaton", 3, select_modules(("READ", "INC", "WRITE"), 3), 5),
        ("mlp", 3, (*OWN, *select_modules(("READ", "SUB", "WRITE"))), 6),
    ],
)
def test_tables_do_what_the_controllers_do_step_by_step(kind, registers, modules, size, random_controllers, quick_jit):
    wiring, rng = Wiring(registers, modules), np.random.default_rng(size)
    controllers = exact_controllers(kind, wiring, random_controllers)
    memories = rng.integers(size, size=(MEMORIES, size))
    limits = rng.integers(0, MOST_STEPS, size=(MACHINES, MEMORIES))
    found = run_tables(wiring, tables_of(controllers, wiring, quick_jit), memories, limits, np.full(MEMORIES, size))

    def one(controller, limits):
        return jax.vmap(lambda memory, limit: run_hard(controller, wiring, memory, limit))(memories, limits)

    expected = quick_jit(jax.vmap(one))(controllers, limits)
    for name in found._fields:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    # The cases are of all kinds.
    assert len(np.unique(found.steps)) > 3 and 0 < np.mean(found.halted) < 1
    assert np.any(found.memory != memories) == any(module.memory == "writes" for module in modules)


def test_memories_of_several_sizes_run_together(random_controllers, quick_jit):
    wiring = Wiring(2, (*OWN, *select_modules(MODULE_NAMES)))
    tables = tables_of(exact_controllers("mlp", wiring, random_controllers), wiring, quick_jit)
    rng, longest = np.random.default_rng(0), 8
    sizes = rng.integers(3, longest + 1, MEMORIES)
    memories = rng.integers(sizes[:, None], size=(MEMORIES, longest))
    memories[np.arange(longest) >= sizes[:, None]] = 99  # unused cells hold anything
    limits = np.full((MACHINES, MEMORIES), MOST_STEPS)
    together = run_tables(wiring, tables, memories, limits, sizes)
    for index, size in enumerate(sizes):
        alone = run_tables(wiring, tables, memories[index, None, :size], limits[:, :1], sizes[index, None])
        np.testing.assert_array_equal(together.memory[:, index, :size], alone.memory[:, 0])
        assert np.all(together.memory[:, index, size:] == 99)
        np.testing.assert_array_equal(together.steps[:, index], alone.steps[:, 0])


@pytest.mark.parametrize("memory", [[0, 1], [0, 1, 3], [0, -1, 2]])
def test_memories_that_code_cannot_trust_are_refused(memory):
    wiring = Wiring(1, select_modules(("READ",)))
    table = np.zeros((1, 2, wiring.wires + 2), np.int16)
    with pytest.raises(ValueError, match="at least 3 cells, with numbers from 0 to M - 1"):
        run_tables(wiring, table, np.array([memory]), np.ones((1, 1)), np.array([len(memory)]))
