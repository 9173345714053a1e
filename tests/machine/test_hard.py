"""The discretised machine, beside an interpreter in plain Python that knows the paper and nothing of JAX."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.extensions import select_modules
from nram.machine import Wiring, hard_step, init_controller, run_hard
from nram.machine.hard import HardState
from nram.modules import MODULE_NAMES

CLOSE = 1e-4  # decisions closer than this may fall either way in float32: such cases are left out

ARITIES = dict(zip(MODULE_NAMES, [1, 0, 0, 0, 1, 2, 2, 1, 2, 2, 2, 2, 2, 2], strict=True))


def _module(name: str, size: int, memory: list[int], a: int = -1, b: int = -1) -> int:
    match name:
        case "READ":
            return memory[a]
        case "WRITE":
            memory[a] = b
            return 0
        case "ZERO" | "ONE" | "TWO":
            return ["ZERO", "ONE", "TWO"].index(name)
        case "INC":
            return (a + 1) % size
        case "DEC":
            return (a - 1) % size
        case "ADD":
            return (a + b) % size
        case "SUB":
            return (a - b) % size
        case "LESS-THAN":
            return int(a < b)
        case "LESS-OR-EQUAL-THAN":
            return int(a <= b)
        case "EQUALITY-TEST":
            return int(a == b)
        case "MIN":
            return min(a, b)
        case "MAX":
            return max(a, b)
    raise AssertionError(name)


class Run(NamedTuple):
    memory: list[int]
    registers: list[int]
    steps: int
    halted: bool
    close: bool  # whether some decision was a close one


class Interpreter:
    """Runs the raw weights of a controller (in float64) on lists of integers."""

    def __init__(self, kind: str, controller: Any, names: list[str], registers: int):
        self.kind, self.names, self.registers = kind, names, registers
        self.controller = jax.tree.map(lambda x: np.asarray(x, np.float64), controller)

    def run(self, memory: list[int], limit: int) -> Run:
        memory, registers = list(memory), [0] * self.registers
        self.close = False
        width = len(self.controller.output.weight)
        state: Any = {"mlp": None, "automaton": 0, "lstm": (np.zeros(width), np.zeros(width))}[self.kind]
        for step in range(limit):
            outputs, state = self._network([float(value == 0) for value in registers], state)
            wires = iter(outputs)
            values = list(registers)
            for name in self.names:
                arguments = [values[self._pick(wires, len(values))] for _ in range(ARITIES[name])]
                values.append(_module(name, len(memory), memory, *arguments))
            registers = [values[self._pick(wires, len(values))] for _ in registers]
            halt = next(wires)
            self.close |= abs(halt) < CLOSE
            rest = list(wires)
            if self.kind == "automaton":
                state = self._pick(iter(rest), len(rest))
            if 1 / (1 + np.exp(-halt)) >= 0.5:
                return Run(memory, registers, step + 1, True, self.close)
        return Run(memory, registers, limit, False, self.close)

    def _pick(self, wires, length: int) -> int:
        logits = [next(wires) for _ in range(length)]
        if length > 1:
            second, first = sorted(logits)[-2:]
            self.close |= first - second < CLOSE
        return logits.index(max(logits))

    def _network(self, flags: list[float], state: Any) -> tuple[np.ndarray, Any]:
        def layer(dense, x):
            return x @ dense.weight + dense.bias

        def sigmoid(x):
            return 1 / (1 + np.exp(-x))

        if self.kind == "lstm":
            previous, cell = state
            x = np.maximum(layer(self.controller.hidden, np.array(flags)), 0)
            admit, keep, fresh, emit = layer(self.controller.gates, np.append(x, previous)).reshape(4, -1)
            cell = sigmoid(keep) * cell + sigmoid(admit) * np.tanh(fresh)
            previous = sigmoid(emit) * np.tanh(cell)
            return layer(self.controller.output, previous), (previous, cell)
        x = np.array(flags)
        if self.kind == "automaton":
            x = np.append(x, np.eye(self.controller.states)[state])
        for dense in self.controller.hidden:
            x = np.maximum(layer(dense, x), 0)
        return layer(self.controller.output, x), state


CASES = 150


@pytest.mark.parametrize(
    ("kind", "registers", "repeats", "size"),
    [("mlp", 2, 1, 5), ("mlp", 4, 2, 9), ("lstm", 3, 1, 6), ("automaton", 2, 1, 7), ("automaton", 3, 2, 3)],
)
def test_it_does_what_the_interpreter_does(kind, registers, repeats, size, random_controllers, quick_jit):
    wiring = Wiring(registers, select_modules(MODULE_NAMES, repeats))
    controllers = random_controllers(kind, wiring, size, (CASES,), halt_scale=2.0, halt_bias=-0.5)
    rng = np.random.default_rng(size)
    memories = rng.integers(size, size=(CASES, size))
    limits = rng.integers(0, 12, size=CASES)
    run = quick_jit(jax.vmap(lambda controller, memory, limit: run_hard(controller, wiring, memory, limit)))
    results = jax.tree.map(np.asarray, run(controllers, memories, limits))

    names = list(MODULE_NAMES) * repeats
    outcomes = []
    for case in range(CASES):
        one = jax.tree.map(lambda x, case=case: x[case], controllers)
        expected = Interpreter(kind, one, names, registers).run(memories[case].tolist(), int(limits[case]))
        if expected.close:
            continue
        found = jax.tree.map(lambda x, case=case: x[case].tolist(), results)
        assert tuple(found) == expected[:4]
        changed = expected.memory != memories[case].tolist()
        outcomes.append((expected.halted, expected.steps, changed, any(expected.registers)))
    halted, steps, changed, nonzero = (np.array(column) for column in zip(*outcomes, strict=True))
    # The cases are of all kinds.
    assert len(outcomes) > 0.7 * CASES
    assert 0.2 < halted.mean() < 0.95
    assert set(steps.tolist()) >= set(range(6))
    assert changed.mean() > 0.3 and nonzero.mean() > 0.3


def _plain_mlp(wiring: Wiring, biases: dict[int, float]):
    """An MLP with all weights 0 and these biases in its output layer: one circuit for ever."""
    template = jax.eval_shape(
        lambda key: init_controller("mlp", wiring, hidden=2, states=1, key=key), jax.random.key(0)
    )
    controller: Any = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), template)
    bias = np.zeros(wiring.logits + 1, np.float32)
    bias[list(biases)] = list(biases.values())
    return eqx.tree_at(lambda c: c.output.bias, controller, jnp.asarray(bias))


def test_of_equal_wires_the_lowest_is_taken(quick_jit):
    wiring = Wiring(3, select_modules(MODULE_NAMES))
    state = HardState((), jnp.array([3, 1, 2]), jnp.array([0, 4, 2, 1, 3]))
    controller = _plain_mlp(wiring, {}).prepare(wiring)
    after, _ = quick_jit(lambda state: hard_step(controller, wiring, state))(state)
    np.testing.assert_array_equal(after.registers, [3, 3, 3])  # every wire takes r1
    np.testing.assert_array_equal(after.memory, [0, 4, 2, 3, 3])  # WRITE(r1, r1)


def test_of_two_equal_wires_that_lead_the_lower_is_taken(quick_jit):
    wiring = Wiring(1, select_modules(["ZERO", "ONE", "TWO", "TWO"]))  # r1 := r1, ZERO, ONE, TWO or TWO
    for leaders, expected in (({2: 1.0, 3: 1.0}, 1), ({3: 1.0, 4: 1.0}, 2), ({1: -1.0, 2: 0.5, 4: 0.5}, 1)):
        controller = _plain_mlp(wiring, leaders)
        result = quick_jit(lambda memory, c=controller: run_hard(c, wiring, memory, 1))(jnp.zeros(3, jnp.int32))
        np.testing.assert_array_equal(result.registers, [expected])


@pytest.mark.parametrize(("halt", "steps", "halted"), [(0.0, 1, True), (-1e-3, 5, False), (1e-3, 1, True)])
def test_it_halts_after_the_first_step_with_f_of_at_least_one_half_or_at_the_limit(halt, steps, halted, quick_jit):
    wiring = Wiring(1, select_modules(["INC"]))
    # INC(r1); r1 := INC
    controller = _plain_mlp(wiring, {2: 1.0, wiring.logits: halt})
    result = quick_jit(lambda memory: run_hard(controller, wiring, memory, 5))(jnp.zeros(7, jnp.int32))
    assert (int(result.steps), bool(result.halted)) == (steps, halted)
    np.testing.assert_array_equal(result.registers, [steps])


def test_with_no_steps_allowed_nothing_happens(quick_jit):
    wiring = Wiring(1, select_modules(["ONE", "WRITE"]))
    controller = _plain_mlp(wiring, {1: 1.0, 3: 1.0})
    run = quick_jit(lambda memory, limit: run_hard(controller, wiring, memory, limit))
    result = run(jnp.array([2, 2, 2]), 0)
    assert (int(result.steps), bool(result.halted)) == (0, False)
    np.testing.assert_array_equal(result.memory, [2, 2, 2])
    assert run(jnp.array([2, 2, 2]), 1).halted


def test_memories_of_several_sizes_run_together_as_each_runs_alone(random_controllers, quick_jit):
    wiring, sizes, width, cases = Wiring(3, select_modules(MODULE_NAMES)), (3, 8), 8, 30
    controllers = random_controllers("mlp", wiring, width, (cases,), halt_bias=-0.5)
    rng = np.random.default_rng(1)
    for_case = np.resize(sizes, cases)
    memories = np.zeros((cases, width), np.int32)
    for memory, size in zip(memories, for_case, strict=True):
        memory[:size] = rng.integers(size, size=size)
    together = quick_jit(jax.vmap(lambda c, memory, size: run_hard(c, wiring, memory, 9, size)))
    found = jax.tree.map(np.asarray, together(controllers, memories, for_case))
    for size in sizes:
        here = for_case == size
        alone = quick_jit(jax.vmap(lambda c, memory: run_hard(c, wiring, memory, 9)))
        expected = alone(jax.tree.map(lambda leaf, here=here: leaf[here], controllers), memories[here, :size])
        np.testing.assert_array_equal(found.memory[here, :size], expected.memory)
        np.testing.assert_array_equal(found.steps[here], expected.steps)
        assert not found.memory[here, size:].any()
    assert (found.memory != memories).any(axis=1).mean() > 0.3
