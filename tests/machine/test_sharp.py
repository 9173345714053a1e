"""Where nothing is fuzzy the soft and the hard machine are the same machine."""

import jax
import numpy as np
import pytest

from nram.extensions import select_modules
from nram.machine import Wiring, run_hard, run_soft
from nram.modules import MODULE_NAMES

CASES = 100
STEPS = 8


@pytest.mark.parametrize(
    ("kind", "registers", "repeats", "size"), [("mlp", 3, 1, 6), ("lstm", 2, 1, 5), ("automaton", 2, 2, 4)]
)
def test_sharp_wires_make_the_soft_machine_the_hard_one(kind, registers, repeats, size, random_controllers, quick_jit):
    wiring = Wiring(registers, select_modules(MODULE_NAMES, repeats))
    # Logits in the hundred thousands: a lead of a thousandth makes a wire certain.
    controllers = random_controllers(kind, wiring, 5, (CASES,), output_scale=1e5, halt_bias=-3e4)
    rng = np.random.default_rng(size)
    memories = rng.integers(size, size=(CASES, size))
    limits = rng.integers(1, STEPS + 1, size=CASES)

    @quick_jit
    @jax.vmap
    def both(controller, memory, limit):
        soft = run_soft(controller, wiring, memory, limit, STEPS)
        return soft, run_hard(controller, wiring, memory, limit)

    soft, hard = jax.tree.map(np.asarray, both(controllers, memories, limits))
    before_halting = np.arange(STEPS) < hard.steps[:, None]
    sharp = (soft.entropy * before_halting).max(-1) < 1e-12  # no tie in any wire
    sharp &= np.isin(soft.finish, (0, 1)).all(-1)
    assert sharp.mean() > 0.8

    np.testing.assert_array_equal(soft.finish[sharp].argmax(-1) + 1, hard.steps[sharp])
    certain = np.eye(size)[hard.memory[sharp]]
    np.testing.assert_allclose(soft.output[sharp], certain, atol=1e-6)
    # The cases are of all kinds.
    assert 0.2 < hard.halted[sharp].mean() < 0.95
    assert (hard.memory != memories).any(-1)[sharp].mean() > 0.3
    assert len(set(hard.steps[sharp].tolist())) > 4
