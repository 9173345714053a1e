"""The controller that runs a program on the machine: how it mixes rows, and which programs do not fit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.table_controller import table_controller

from nram.errors import UsageError
from nram.extensions import select_modules
from nram.machine import Wiring, run_soft
from nram.modules import MODULE_NAMES
from nram.programs.text import from_text

PAPER = select_modules(MODULE_NAMES)

COUNTDOWN = """nram program 1
name: countdown
origin: written
registers: a b

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
"""


def test_the_episode_of_the_soft_machine_ends_where_the_program_halts(quick_jit):
    """A row without a WRITE leaves the memory as it is."""
    wiring, memory = Wiring(2, PAPER), [4, 1, 2, 3, 0]
    controller = table_controller(from_text(COUNTDOWN), wiring)
    episode = quick_jit(lambda memory: run_soft(controller, wiring, memory, 20, 20))(jnp.asarray(memory))
    assert jnp.argmax(episode.output, -1).tolist() == memory
    assert episode.finish[6 - 1] == 1


def test_soft_flags_mix_the_rows_by_their_probabilities():
    program, wiring = from_text(COUNTDOWN), Wiring(2, PAPER)
    controller = table_controller(program, wiring)
    flags, state = jnp.array([0.25, 1.0]), (jnp.array([0.0, 1.0]),)
    decision, (following,) = controller.decide(wiring, flags, state)
    assert float(jax.nn.sigmoid(decision.halt)) == pytest.approx(0.25)
    new_b = jax.nn.softmax(decision.logits[-1])
    two = wiring.registers + MODULE_NAMES.index("TWO")
    assert float(new_b[two]) == pytest.approx(0.75) and float(new_b[1]) == pytest.approx(0.25)
    assert np.allclose(following, [0.0, 1.0])


@pytest.mark.parametrize(
    ("body", "modules", "complaint"),
    [
        ("o1 = INC(a)\n    o2 = READ(o1)\n    a := o2", MODULE_NAMES, "operation 2 needs a READ after module 5"),
        ("o1 = READ(2)\n    a := o1", MODULE_NAMES, "operation 1 needs a READ with 2 to be had before it"),
        ("a := 2", ("READ", "WRITE"), "a register takes the constant 2, and no module gives it"),
        ("a := 0", ("WRITE", "ZERO"), "module 1 is a WRITE that it does not use"),
    ],
)
def test_a_row_that_does_not_fit_is_named(body, modules, complaint):
    text = f"nram program 1\nname: p\norigin: written\nregisters: a\n\nwhen a > 0:\n    halt\nwhen a = 0:\n    {body}\n"
    if "WRITE" not in modules[:1]:
        text = text.replace("halt", "a := a\n    halt", 1)
    with pytest.raises(UsageError, match="does not fit into the wiring") as caught:
        table_controller(from_text(text), Wiring(1, select_modules(modules)))
    assert complaint in str(caught.value)


def test_another_number_of_registers_is_refused():
    with pytest.raises(UsageError, match="2 registers and the wiring 3"):
        table_controller(from_text(COUNTDOWN), Wiring(3, PAPER))
