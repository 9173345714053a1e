"""What is counted: wrong cells, wrong instances, instances on which network and program agree."""

import numpy as np
import pytest

from nram import load_program
from nram.extensions import get_task
from nram.limits import LIMIT_NAMES, StepLimit
from nram.programs.interpret import interpret
from nram.programs.text import from_text
from nram.reproduction.measuring import (
    Instances,
    Measure,
    draw_instances,
    draw_large,
    measure,
    program_outputs,
    same_outputs,
)


def by_hand() -> Instances:
    """Two instances on four cells: cells 1 and 2 are outputs, only 1 is to be modified in the second."""
    return Instances(
        2,
        input=np.zeros((2, 4), np.int32),
        output=np.array([[9, 1, 2, 9], [9, 3, 3, 9]], np.int32),
        cells=np.array([[0, 1, 1, 0], [0, 1, 1, 0]], bool),
        scored=np.array([[0, 1, 1, 0], [0, 1, 0, 0]], bool),
        limits={name: np.ones(2, np.int32) for name in LIMIT_NAMES},
    )


def under(*memories: list[list[int]]) -> dict[str, np.ndarray]:
    """Outputs by limit."""
    return {name: np.array(memory, np.int32) for name, memory in zip(LIMIT_NAMES, memories, strict=True)}


RIGHT = [[0, 1, 2, 0], [0, 3, 3, 0]]  # other cells do not count
ONE_CELL_WRONG = [[0, 1, 0, 0], [0, 3, 3, 0]]
UNMODIFIED_CELL_WRONG = [[0, 1, 2, 0], [0, 3, 0, 0]]


def test_error_counts_cells_to_be_modified_and_wrong_counts_instances():
    found = measure(under(RIGHT, ONE_CELL_WRONG, UNMODIFIED_CELL_WRONG), by_hand())
    assert found.error == {"T": 0.0, "2T": 0.25, "20n+200": 0.0}
    assert found.wrong == {"T": 0, "2T": 1, "20n+200": 1}
    assert found.exact("T") == 1.0 and found.exact("2T") == 0.5


def test_right_at_the_limit_and_under_every_limit_are_told_apart():
    assert measure(under(RIGHT, RIGHT, RIGHT), by_hand()).right_under_every_limit
    later = measure(under(RIGHT, RIGHT, ONE_CELL_WRONG), by_hand())
    assert later.right_at_limit and not later.right_under_every_limit
    assert not measure(under(ONE_CELL_WRONG, RIGHT, RIGHT), by_hand()).right_at_limit


def test_two_that_are_wrong_in_the_same_way_are_same_outputs():
    wrong = under(ONE_CELL_WRONG, RIGHT, RIGHT)
    assert same_outputs(wrong, wrong, by_hand()) == 2
    assert same_outputs(wrong, under(RIGHT, RIGHT, RIGHT), by_hand()) == 1


def test_instances_are_those_of_eval_with_the_three_limits():
    from nram.training.evaluation import Trial, draw_trial

    instances = draw_instances(get_task("increment"), StepLimit(1, 4), 5, 40, 3)
    expected, n = draw_trial(Trial("increment", 5, 40, 3, "test"))
    assert tuple(instances.limits) == LIMIT_NAMES
    for limits, wanted in zip(instances.limits.values(), (n + 4, 2 * n + 8, 20 * n + 200), strict=True):
        np.testing.assert_array_equal(limits, wanted)
    assert n.min() >= 1 and (n == 5).sum() >= 20
    np.testing.assert_array_equal(instances.input, expected.input)


def test_a_longer_own_limit_is_never_cut_to_the_last_of_the_three():
    instances = draw_instances(get_task("increment"), StepLimit(0, 1000), 5, 40, 3)
    assert [set(limits) for limits in instances.limits.values()] == [{1000}, {2000}, {1000}]


def test_a_program_is_run_to_each_instance_s_own_limit():
    program = from_text("nram program 1\nregisters: a b\nalways:\n o1 = INC(b)\n WRITE(0, b)\n b := o1\n")
    instances = draw_instances(get_task("increment"), StepLimit(1, 0), 5, 40, 3)
    outputs = program_outputs(program, instances)
    for name, limits in instances.limits.items():
        for i, limit in enumerate(limits):
            expected = interpret(program, instances.input[i].tolist(), int(limit)).memory
            assert outputs[name][i].tolist() == list(expected)


def at_large(program, task: str, limit: StepLimit, complexity: int, count: int) -> Measure:
    instances = draw_large(get_task(task), limit, complexity, count, 0)
    return measure(program_outputs(program, instances), instances)


@pytest.mark.parametrize("name", ["listk", "merge"])
def test_a_searched_program_is_right_at_large_complexities(name):
    found = at_large(load_program(f"{name}@searched"), name, get_task(name).step_limit, 300, 3)
    assert (found.instances, found.max_complexity) == (3, 300) and found.right_under_every_limit


def test_large_instances_tell_which_limits_are_right():
    # It puts the first cell up by one in every step, so only one step is right.
    text = "nram program 1\nregisters: a\nalways:\n o1 = READ(a)\n o2 = INC(o1)\n WRITE(a, o2)\n"
    one, two = (at_large(from_text(text), "increment", StepLimit(0, 1), n, 5) for n in (1, 2))
    assert one.right_at_limit and not one.right_under_every_limit and one.wrong["2T"] > 0
    assert not two.right_at_limit and two.error["T"] == 0.5
