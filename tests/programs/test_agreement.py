"""All executors agree: the soft machine with one-hot wires, the hard machine, the interpreter, the simplified program
and native code end with the same memory after the same steps, on random programs by the thousand and on the zoo.

NRAM_TEST_SCALE multiplies the numbers of random programs.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.table_controller import TableController, table_controller

from nram.errors import UsageError
from nram.extensions import get_task, select_modules
from nram.machine import Wiring, run_hard, run_soft, soft_step
from nram.machine.soft import Options, start_soft
from nram.modules import MODULE_NAMES
from nram.programs.execute import execute
from nram.programs.extract.table import extract_table
from nram.programs.interpret import Ending, interpret
from nram.programs.ir import Program
from nram.programs.library import ZooEntry, zoo_entries, zoo_weights
from nram.programs.simplify import simplify
from nram.programs.text import from_text

SCALE = int(os.environ.get("NRAM_TEST_SCALE", "1"))
PAPER = select_modules(MODULE_NAMES)
MOST_STATES = 3


class Ends(NamedTuple):
    """How runs ended; an axis of runs each."""

    memory: Any
    registers: Any
    steps: Any
    halted: Any

    def at(self, run: int) -> Ending:
        """One of them, as the interpreter gives it."""
        ended = jax.tree.map(lambda part: part[run].tolist(), self)
        return Ending(*ended)


def hard_ends(wiring: Wiring, limit: int, controller: Any, memory: Any) -> Ends:
    return Ends(*run_hard(controller, wiring, memory, limit))


def soft_ends(wiring: Wiring, limit: int, controller: Any, memory: Any) -> tuple[Ends, Any]:
    """The soft machine's state when it stops, read off as integers, and the least of their probabilities."""
    ready = controller.prepare(wiring)

    def step(state, _):
        state, halt, _ = soft_step(ready, wiring, Options(), state)
        return state, (state.registers, state.memory, jax.nn.sigmoid(halt))

    _, (registers, memories, willing) = jax.lax.scan(step, start_soft(controller, wiring, memory), length=limit)
    last = jnp.where(jnp.any(willing == 1), jnp.argmax(willing == 1), limit - 1)
    held, memory = registers[last], memories[last]
    certainty = jnp.minimum(jnp.min(jnp.max(held, -1)), jnp.min(jnp.max(memory, -1)))
    ends = Ends(jnp.argmax(memory, -1), jnp.argmax(held, -1), last + 1, willing[last] == 1)
    return ends, jnp.where(jnp.all((willing == 0) | (willing == 1)), certainty, 0.0)


def assert_the_same_but_registers(ends: Ending, expected: Ending) -> None:
    assert (ends.memory, ends.steps, ends.halted) == (expected.memory, expected.steps, expected.halted)


def native(program: Program, memory: list[int], limit: int) -> Ending:
    result = execute(program, memory, limit, engine="native")
    return Ending(result.memory, result.registers, result.steps, result.halted)


# ---- random programs


def stacked(programs: list[Program], wiring: Wiring) -> TableController:
    """Their tables as one controller with an axis of programs; states that a program has not are never entered."""
    tables = [table_controller(program, wiring) for program in programs]

    def padded(*parts: Any) -> jax.Array:
        whole = np.zeros((len(parts), MOST_STATES, *parts[0].shape[1:]), parts[0].dtype)
        for number, part in enumerate(parts):
            whole[number, : len(part)] = part
        return jnp.asarray(whole)

    return jax.tree.map(padded, *tables)


@pytest.mark.parametrize(
    ("registers", "size", "count", "simplified", "compiled"),
    [(1, 3, 1000, 200, 40), (2, 5, 800, 80, 20), (3, 7, 200, 20, 5)],
)
def test_random_programs_end_alike_in_all_executors(
    registers, size, count, simplified, compiled, random_program, random_memory, quick_jit
):
    wiring, rng, limit = Wiring(registers, PAPER), Random(registers), 12
    programs = [
        random_program(rng, registers=registers, states=rng.randint(1, MOST_STATES), full=True, halting=0.15)
        for _ in range(count * SCALE)
    ]
    memories = [random_memory(rng, size) for _ in programs]
    controllers = stacked(programs, wiring)

    def both(controller, memory):
        return hard_ends(wiring, limit, controller, memory), soft_ends(wiring, limit, controller, memory)

    hard, (soft, certainty) = jax.tree.map(
        np.asarray, quick_jit(jax.vmap(both))(controllers, jnp.asarray(memories, jnp.int32))
    )
    assert certainty.min() == 1.0
    assert 0.2 < hard.halted.mean() < 0.9
    expected = [interpret(program, memory, limit) for program, memory in zip(programs, memories, strict=True)]
    for number, ending in enumerate(expected):
        assert hard.at(number) == ending
        assert soft.at(number) == ending
    for number in range(simplified * SCALE):
        short = simplify(programs[number])
        assert_the_same_but_registers(interpret(short, memories[number], limit), expected[number])
    for number in range(compiled * SCALE):
        assert native(programs[number], memories[number], limit) == expected[number]


def test_programs_of_any_shape_that_fit_end_alike(random_program, random_memory, quick_jit):
    """Rows with conditions, constants and few operations, in a wiring of three rounds of all modules."""
    wiring, rng, limit, size = Wiring(2, PAPER * 3), Random(1), 8, 5
    programs, controllers = [], []
    while len(programs) < 100:
        program = random_program(rng, registers=2, states=2, operations=2, halting=0.15)
        try:
            controllers.append(table_controller(program, wiring))
        except UsageError:
            continue
        programs.append(program)
    memories = [random_memory(rng, size) for _ in programs]
    together = jax.tree.map(lambda *parts: jnp.stack(parts), *controllers)
    run = quick_jit(jax.vmap(lambda controller, memory: hard_ends(wiring, limit, controller, memory)))
    hard = jax.tree.map(np.asarray, run(together, jnp.asarray(memories, jnp.int32)))
    for number, (program, memory) in enumerate(zip(programs, memories, strict=True)):
        assert hard.at(number) == interpret(program, memory, limit)


# ---- one-hot controllers

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


def test_a_row_without_a_write_leaves_the_memory_as_it_is(quick_jit):
    program, wiring = from_text(COUNTDOWN), Wiring(2, PAPER)
    controller = table_controller(program, wiring)
    memory = [4, 1, 2, 3, 0]
    run = quick_jit(
        lambda memory: (hard_ends(wiring, 20, controller, memory), soft_ends(wiring, 20, controller, memory))
    )
    hard, (soft, certainty) = jax.tree.map(np.asarray, run(jnp.asarray(memory)))
    episode = quick_jit(lambda memory: run_soft(controller, wiring, memory, 20, 20))(jnp.asarray(memory))
    expected = Ending(memory, [0, 2], 6, True)
    assert jnp.argmax(episode.output, -1).tolist() == expected.memory
    assert episode.finish[expected.steps - 1] == 1
    assert interpret(program, memory, 20) == expected
    for ends in (hard, soft):
        assert (ends.memory.tolist(), ends.registers.tolist()) == (expected.memory, expected.registers)
        assert (int(ends.steps), bool(ends.halted)) == (expected.steps, expected.halted)
    assert certainty == 1.0


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


# ---- the zoo


def zoo_controller(entry: ZooEntry) -> tuple[Any, Wiring]:
    from nram.training.checkpoint import load_arrays, read_description
    from nram.training.member import wiring_of
    from nram.training.population import abstract_population
    from nram.training.settings import config_from_dict

    with zoo_weights(entry) as path:
        config = config_from_dict(read_description(path)["config"])
        one = abstract_population(config, 1).members.controller
        like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), one)
        return load_arrays(path, like)[0], wiring_of(config.machine)


@pytest.mark.parametrize("entry", [e for e in zoo_entries() if e.has_weights], ids=lambda entry: entry.title)
def test_trained_weights_of_the_zoo_and_their_program_end_alike(entry, random_memory, quick_jit):
    task, rng, limit = get_task(entry.program.task or entry.name), Random(entry.title), 24
    controller, wiring = zoo_controller(entry)
    raw = extract_table(controller, wiring)
    short = simplify(raw)
    largest = task.min_complexity + 3
    size = task.least_memory(largest) + 1
    of_the_task = [
        instance.input
        for n in range(task.min_complexity, largest + 1)
        for instance in task.sample(n, 10, seed=n, memory_size=size)
    ]
    memories = of_the_task + [random_memory(rng, size) for _ in range(40)]
    one_hot = table_controller(raw, wiring)

    def run(memory):
        return hard_ends(wiring, limit, controller, memory), soft_ends(wiring, limit, one_hot, memory)

    hard, (soft, certainty) = jax.tree.map(np.asarray, quick_jit(jax.vmap(run))(jnp.asarray(memories, jnp.int32)))
    assert certainty.min() == 1.0
    for number, memory in enumerate(memories):
        expected = interpret(raw, memory, limit)
        assert hard.at(number) == expected
        assert soft.at(number) == expected
        assert native(raw, memory, limit) == expected
        assert_the_same_but_registers(interpret(short, memory, limit), expected)
        assert_the_same_but_registers(native(short, memory, limit), expected)
        if number < len(of_the_task):  # the zoo's program is made for the task's inputs
            assert_the_same_but_registers(interpret(entry.program, memory, limit), expected)
            assert_the_same_but_registers(native(entry.program, memory, limit), expected)
