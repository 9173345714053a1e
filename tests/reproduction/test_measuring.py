"""What is counted: wrong cells, wrong instances, instances on which network and program agree."""

import jax.numpy as jnp
import numpy as np
import pytest

from nram import load_program
from nram.extensions import get_task
from nram.limits import LIMIT_NAMES, StepLimit
from nram.programs.interpret import interpret
from nram.programs.text import from_text
from nram.reproduction.measuring import (
    Instances,
    alike,
    compared,
    draw_instances,
    program_outputs,
    run_beyond,
)
from nram.tasks import TracedInstance


def by_hand() -> Instances:
    """Two instances on four cells: cells 1 and 2 are outputs, only 1 is to be modified in the second."""
    traced = TracedInstance(
        input=jnp.zeros((2, 4), jnp.int32),
        output=jnp.array([[9, 1, 2, 9], [9, 3, 3, 9]], jnp.int32),
        cells=jnp.array([[0, 1, 1, 0], [0, 1, 1, 0]], bool),
        scored=jnp.array([[0, 1, 1, 0], [0, 1, 0, 0]], bool),
    )
    return Instances(2, np.array([2, 2]), traced, np.ones((2, 3), np.int32))


def under(*memories: list[list[int]]) -> np.ndarray:
    """Outputs [instances, limits, M] from those of each limit."""
    return np.stack([np.array(memory, np.int32) for memory in memories], axis=1)


RIGHT = [[0, 1, 2, 0], [0, 3, 3, 0]]  # other cells do not count
ONE_CELL_WRONG = [[0, 1, 0, 0], [0, 3, 3, 0]]
UNMODIFIED_CELL_WRONG = [[0, 1, 2, 0], [0, 3, 0, 0]]


def test_error_counts_cells_to_be_modified_and_wrong_counts_instances():
    measure = compared(under(RIGHT, ONE_CELL_WRONG, UNMODIFIED_CELL_WRONG), by_hand())
    assert measure.error == {"T": 0.0, "2T": 0.25, "20n+200": 0.0}
    assert measure.wrong == {"T": 0, "2T": 1, "20n+200": 1}
    assert measure.exact("T") == 1.0 and measure.exact("2T") == 0.5


def test_right_at_the_limit_and_under_every_limit_are_told_apart():
    assert compared(under(RIGHT, RIGHT, RIGHT), by_hand()).right_under_every_limit
    later = compared(under(RIGHT, RIGHT, ONE_CELL_WRONG), by_hand())
    assert later.right_at_limit and not later.right_under_every_limit
    assert not compared(under(ONE_CELL_WRONG, RIGHT, RIGHT), by_hand()).right_at_limit


def test_two_that_are_wrong_in_the_same_way_are_alike():
    wrong = under(ONE_CELL_WRONG, RIGHT, RIGHT)
    assert alike(wrong, wrong, by_hand()) == 2
    assert alike(wrong, under(RIGHT, RIGHT, RIGHT), by_hand()) == 1


def test_instances_are_those_of_eval_with_the_three_limits():
    from nram.training.evaluation import Trial, draw_trial

    task = get_task("increment")
    instances = draw_instances(task, StepLimit(1, 4), 5, 40, 3)
    n = instances.complexity
    np.testing.assert_array_equal(instances.limits, np.stack([n + 4, 2 * n + 8, 20 * n + 200], axis=1))
    assert n.min() >= 1 and (n == 5).sum() >= 20
    expected, _ = draw_trial(Trial("increment", 5, 40, 3, "test"))
    np.testing.assert_array_equal(instances.traced.input, expected.input)


def test_a_longer_own_limit_is_never_cut_to_the_last_of_the_three():
    instances = draw_instances(get_task("increment"), StepLimit(0, 1000), 5, 40, 3)
    assert (instances.limits == [1000, 2000, 1000]).all()


def test_a_program_is_run_to_each_instance_s_own_limit():
    program = from_text("nram program 1\nregisters: a b\nalways:\n o1 = INC(b)\n WRITE(0, b)\n b := o1\n")
    instances = draw_instances(get_task("increment"), StepLimit(1, 0), 5, 40, 3)
    outputs = program_outputs(program, instances)
    for place, limits in enumerate(instances.limits):
        start = np.asarray(instances.traced.input)[place].tolist()
        for column, limit in enumerate(limits):
            expected = interpret(program, start, int(limit)).memory
            assert outputs[place, column].tolist() == list(expected)


@pytest.mark.parametrize("name", ["listk", "merge"])
def test_a_searched_program_is_right_far_beyond(name):
    beyond = run_beyond(load_program(f"{name}@searched"), get_task(name), 300, 3, 0)
    assert (beyond.instances, beyond.right) == (3, LIMIT_NAMES)


def test_beyond_tells_which_limits_are_right():
    # It puts the first cell up by one in every step, so only one step is right.
    text = "nram program 1\ntask: increment\nlimit: 1\nregisters: a\nalways:\n o1 = READ(a)\n o2 = INC(o1)\n"
    program = from_text(text + " WRITE(a, o2)\n")
    beyond = run_beyond(program, get_task("increment"), 1, 5, 0)
    assert beyond.right_at_limit and not beyond.right_under_every_limit
    assert not run_beyond(program, get_task("increment"), 2, 5, 0).right_at_limit
