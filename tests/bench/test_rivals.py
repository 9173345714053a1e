"""What programs are measured against: the C written by hand solves every task."""

import numpy as np
import pytest

from nram.bench.programs import measured_names, programs_for, task_of
from nram.bench.rivals import NUMPY, find_compiler, hand_written
from nram.limits import wrong_cells


@pytest.fixture(scope="module")
def solutions():
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("there is no C compiler")
    with hand_written(compiler) as found:
        yield found


@pytest.mark.parametrize("name", measured_names())
def test_c_and_numpy_solve_the_task(name, solutions):
    task = task_of(name)
    rivals = solutions(name) | ({"numpy": NUMPY[name]} if name in NUMPY else {})
    assert {"c_scalar", "c_fastest"} <= rivals.keys()
    for n in (task.min_complexity, 3, 9):
        instances = task.sample(n, 20, seed=n)
        for rival, solve in rivals.items():
            batch = np.array([instance.input for instance in instances], np.int32)
            solve(batch)
            for cells, instance in zip(batch.tolist(), instances, strict=True):
                assert not wrong_cells(cells, instance), f"{rival} on {instance.input}: {cells}"


def test_every_task_of_the_paper_has_two_programs_and_every_problem_one():
    assert [len(programs_for(name)) for name in measured_names()] == [2] * 10 + [1] * 48
