"""Native code of groups of rows: what is known about flags and room is right, and every limit stops at its step."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import nram
from nram.modules import PAPER_MODULES
from nram.programs.files import read_program
from nram.programs.interpret import interpret
from nram.programs.native.bounds import room_of
from nram.programs.native.flow import Flow, output_is_zero
from nram.programs.native.jit import compiled
from nram.programs.native.regions import groups_of
from nram.programs.text import from_text

SUITE = Path(nram.__file__).parent / "examples" / "suite" / "programs"

WALK = """nram program 1
registers: i depth value

when i = 0:
    i := 1
else when value = 0:
    v = READ(i)
    next_i = INC(i)
    deeper = INC(depth)
    i, depth, value := next_i, deeper, v
else when depth = 0:
    halt
else:
    v = READ(i)
    next_i = ADD(i, 2)
    higher = DEC(depth)
    i, depth, value := next_i, higher, v
"""


@pytest.mark.parametrize(
    "module", [module for module in PAPER_MODULES if module.memory == "nothing"], ids=lambda module: module.name
)
def test_a_flag_of_an_output_is_known_exactly_when_the_inputs_decide_it(module):
    for flags in product((True, False, None), repeat=module.arity):
        found = {
            module.integer(size, *values) == 0
            for size in (3, 4, 7)
            for values in product(range(size), repeat=module.arity)
            if all(flag is None or flag == (value == 0) for flag, value in zip(flags, values, strict=True))
        }
        assert output_is_zero(module, flags) == (found.pop() if len(found) == 1 else None)


def test_a_pointer_that_only_goes_up_has_room_and_a_depth_has_none_below():
    [group] = groups_of(Flow(from_text(WALK)))
    assert group.rows == ((0, 1), (0, 3))  # without wrapping around, the first row never comes again
    assert group.above.registers == {0, 1}
    assert (group.above.margin, group.above.per_step) == (2, 2)
    assert not group.below.registers


def test_what_a_register_gets_from_memory_has_no_room():
    row = from_text("nram program 1\nregisters: r1\n\nalways:\n    v = READ(r1)\n    o = INC(v)\n    r1 := o\n").states[
        0
    ][0]
    above, below, needs = room_of([(row, (None,))], 1)
    assert not above.registers and not below.registers and needs == [[None, None]]


@pytest.mark.parametrize("size", [3, 4, 9, 40])
def test_groups_end_as_in_the_interpreter_at_every_limit(size):
    program = from_text(WALK)
    for seed in range(4):
        memory = np.random.default_rng(seed).integers(0, 2, size).tolist()
        assert_same_at_every_limit(program, memory, 3 * size)


@pytest.mark.parametrize("name", sorted(path.stem for path in SUITE.glob("*.nram")))
def test_programs_of_the_suite_end_as_in_the_interpreter_at_every_limit(name):
    task = nram.get_task(str(SUITE.parent / f"{name}.py"))
    memory = task.sample(max(3, task.min_complexity), 1, seed=0)[0].input
    program = read_program(SUITE / f"{name}.nram")
    assert_same_at_every_limit(program, memory, interpret(program, memory, 1000).steps + 1)


def assert_same_at_every_limit(program, memory, most):
    code = compiled(program)
    for limit in range(most + 1):
        expected = interpret(program, memory, limit)
        for steps_at_once in (None, 3):
            batch = np.array([memory, memory], np.int32)
            registers, steps, halted = code.run_batch(batch, limit, steps_at_once)
            for i in range(2):
                found = batch[i].tolist(), registers[i].tolist(), int(steps[i]), bool(halted[i])
                assert found == (expected.memory, expected.registers, expected.steps, expected.halted), limit
