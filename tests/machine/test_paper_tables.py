"""The paper's tables of memory and registers, step by step, from circuits written by hand."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.extensions import select_modules
from nram.machine import Options, Wiring, hard_step, init_controller, run_hard, run_soft, soft_step
from nram.machine.controllers import Decision
from nram.machine.hard import HardState
from nram.machine.soft import start_soft
from nram.modules import MODULE_NAMES
from nram.soft_machine import SoftMachine

SHARP = 1e4

# Appendix 'Increment': memory, then r1 to r5, at the beginning of each step.
INCREMENT = """
 1 11 3 8 1 2  9 8 5 3 0 0 0 0 0 0   0  0  0  0  0
 2 11 3 8 1 2  9 8 5 3 0 0 0 0 0 0   1  2  2  2  1
 2 12 3 8 1 2  9 8 5 3 0 0 0 0 0 0   2 12 12 12  2
 2 12 4 8 1 2  9 8 5 3 0 0 0 0 0 0   3  4  4  4  3
 2 12 4 9 1 2  9 8 5 3 0 0 0 0 0 0   4  9  9  9  4
 2 12 4 9 2 2  9 8 5 3 0 0 0 0 0 0   5  2  2  2  5
 2 12 4 9 2 3  9 8 5 3 0 0 0 0 0 0   6  3  3  3  6
 2 12 4 9 2 3 10 8 5 3 0 0 0 0 0 0   7 10 10 10  7
 2 12 4 9 2 3 10 9 5 3 0 0 0 0 0 0   8  9  9  9  8
 2 12 4 9 2 3 10 9 6 3 0 0 0 0 0 0   9  6  6  6  9
 2 12 4 9 2 3 10 9 6 4 0 0 0 0 0 0  10  4  4  4 10
"""
# Appendix 'Access': memory, then r1 and r2.
ACCESS = """
 3 1 12 4 7 12 1 13 8 2 1 3 11 11 12 0   0 0
 3 1 12 4 7 12 1 13 8 2 1 3 11 11 12 0   3 0
 4 1 12 4 7 12 1 13 8 2 1 3 11 11 12 0   3 0
"""


def _rows(table: str) -> np.ndarray:
    return np.array([[int(word) for word in line.split()] for line in table.strip().splitlines()])


def _wire(wiring: Wiring, destination: str, argument: int = 0) -> int:
    """The row of a module's argument, or of a register ('r1' is the first)."""
    if destination.startswith("r"):
        return wiring.wires - wiring.registers + int(destination[1:]) - 1
    index = MODULE_NAMES.index(destination)
    return sum(module.arity for module in wiring.modules[:index]) + argument


def _value(wiring: Wiring, source: str) -> int:
    """Where a register's value or a module's output stands among the values."""
    if source.startswith("r"):
        return int(source[1:]) - 1
    return wiring.registers + MODULE_NAMES.index(source)


class OneCircuit(eqx.Module):
    """A controller that always puts out the same circuit and never wants to halt."""

    logits: jax.Array

    def prepare(self, wiring):
        return self

    def start(self):
        return ()

    def decide(self, wiring, flags, state):
        return Decision(self.logits, jnp.float32(-SHARP)), state

    def harden(self, state):
        return state


def _increment() -> tuple[OneCircuit, Wiring]:
    """WRITE(r1, INC(READ(r1))); r1 and r5 := r1 + 1; r2, r3, r4 := the number written."""
    wiring = Wiring(5, select_modules(MODULE_NAMES))
    logits = np.full((wiring.wires, wiring.values), -SHARP, np.float32)
    wires = [("READ", 0, "r1"), ("INC", 0, "READ"), ("ADD", 0, "r1"), ("ADD", 1, "ONE")]
    wires += [("WRITE", 0, "r1"), ("WRITE", 1, "INC"), ("r1", 0, "ADD"), ("r5", 0, "ADD")]
    wires += [(register, 0, "INC") for register in ("r2", "r3", "r4")]
    for destination, argument, source in wires:
        logits[_wire(wiring, destination, argument), _value(wiring, source)] = SHARP
    return OneCircuit(jnp.asarray(logits)), wiring


def _access() -> tuple[Any, Wiring]:
    """WRITE(0, READ(r1)); r1 := READ(r1) while r1 is 0, then r1 := r1 and halt. The hidden layers hand the
    flag of r1 on to the output layer."""
    wiring = Wiring(2, select_modules(MODULE_NAMES))
    template = jax.eval_shape(
        lambda key: init_controller("mlp", wiring, hidden=2, states=1, key=key), jax.random.key(0)
    )
    weight = np.zeros((2, wiring.logits + 1), np.float32)
    bias = np.zeros(wiring.logits + 1, np.float32)

    def place(destination, argument, source):
        return wiring.layout[_wire(wiring, destination, argument), _value(wiring, source)]

    for wire in (("READ", 0, "r1"), ("WRITE", 0, "ZERO"), ("WRITE", 1, "READ"), ("r2", 0, "ZERO")):
        bias[place(*wire)] = SHARP
    weight[0, place("r1", 0, "READ")] = 2 * SHARP  # when r1 is 0
    bias[place("r1", 0, "r1")] = SHARP  # otherwise
    weight[0, wiring.logits] = -2 * SHARP
    bias[wiring.logits] = SHARP
    layers: Any = jax.tree.map(lambda leaf: jnp.eye(*leaf.shape) if leaf.ndim == 2 else jnp.zeros(2), template)
    output = jnp.asarray(weight), jnp.asarray(bias)
    return eqx.tree_at(lambda c: (c.output.weight, c.output.bias), layers, output), wiring


TABLES = {"increment": (_increment, INCREMENT), "access": (_access, ACCESS)}
tables = pytest.mark.parametrize("name", TABLES)


@tables
def test_the_hard_machine_goes_through_the_papers_table(name, quick_jit):
    program, table = TABLES[name]
    controller, wiring = program()
    rows = _rows(table)
    step = quick_jit(partial(hard_step, controller.prepare(wiring), wiring))
    state = HardState(controller.start(), jnp.zeros(wiring.registers, jnp.int32), jnp.asarray(rows[0, :16]))
    halts = []
    for row in rows[1:]:
        state, halting = step(state)
        halts.append(bool(halting))
        np.testing.assert_array_equal(np.append(state.memory, state.registers), row)
    assert halts == ([False, True] if name == "access" else [False] * 10)


@tables
def test_the_soft_machine_goes_through_the_papers_table(name, quick_jit):
    program, table = TABLES[name]
    controller, wiring = program()
    rows = _rows(table)
    step = quick_jit(partial(soft_step, controller.prepare(wiring), wiring, Options()))
    state = start_soft(controller, wiring, jnp.asarray(rows[0, :16]))
    for row in rows[1:]:
        state = step(state).state
        found = np.concatenate([state.memory, state.registers])
        np.testing.assert_allclose(found, np.eye(16)[row], atol=1e-6)


@tables
@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_the_public_machine_goes_through_the_papers_table(name, mode, quick_jit):
    program, table = TABLES[name]
    rows, machine = _rows(table), SoftMachine(*program())
    run = quick_jit(lambda memory: machine(memory, len(rows) - 1, mode=mode, keep_memory=True))
    recording = run(jnp.asarray(rows[0, :16]))
    found = np.concatenate([recording.memory, recording.registers], axis=1)
    np.testing.assert_allclose(found, np.eye(16)[rows], atol=1e-6)


def test_a_program_that_halts_by_itself_stops_there_on_both_machines(quick_jit):
    """Access, with the same weights in memories of three sizes and many steps to spare."""
    controller, wiring = _access()
    for memory, expected in (([2, 0, 1], 1), ([3, 0, 1, 2], 2), ([5, 6, 0, 0, 0, 4, 1], 4)):
        soft = quick_jit(lambda memory: run_soft(controller, wiring, memory, 10, 10))(jnp.array(memory))
        hard = quick_jit(lambda memory: run_hard(controller, wiring, memory, 10))(jnp.array(memory))
        assert hard.memory.tolist() == soft.output.argmax(-1).tolist() == [expected, *memory[1:]]
        assert (int(hard.steps), bool(hard.halted)) == (2, True)
        np.testing.assert_allclose(soft.finish, np.eye(10)[1], atol=1e-6)


def test_a_program_that_never_halts_runs_to_the_limit_on_both_machines(quick_jit):
    controller, wiring = _increment()
    memory = jnp.array([4, 0, 3, 3, 1])
    expected = [0, 1, 4, 3, 1]  # three cells incremented, one of them around M
    soft = quick_jit(lambda memory: run_soft(controller, wiring, memory, 3, 6))(memory)
    hard = quick_jit(lambda memory: run_hard(controller, wiring, memory, 3))(memory)
    assert hard.memory.tolist() == soft.output.argmax(-1).tolist() == expected
    assert (int(hard.steps), bool(hard.halted)) == (3, False)
    np.testing.assert_allclose(soft.finish, np.eye(6)[2], atol=1e-6)
