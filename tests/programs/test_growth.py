"""Steps against size: the words, and the size from which on a limit is broken."""

from __future__ import annotations

from random import Random

import pytest

from nram import load_program
from nram.extensions import get_task
from nram.limits import StepLimit
from nram.programs.execute import execute
from nram.programs.growth import FASTER, growth_of, growth_of_runs

SIZES = range(1, 11)
GROWTHS = {
    "constant": (lambda n: 4, "4 steps"),
    "one step": (lambda n: 1, "1 step"),
    "linear": (lambda n: 2 * n + 3, "about 2n + 3 steps"),
    "plain linear": (lambda n: n + 2, "about n + 2 steps"),
    "half": (lambda n: n // 2 + 4, "about 0.5n + 3.7 steps"),
    "minus": (lambda n: 3 * n - 2, "about 3n - 2 steps"),
    "quadratic": (lambda n: n * n + 3 * n + 1, "about n^2 + 3n + 1 steps"),
    "pure square": (lambda n: 2 * n * n, "about 2n^2 steps"),
    "cubic": (lambda n: n**3 + 10, "about n^3 + 10 steps"),
    "powers of two": (lambda n: 2 ** (n + 3), "faster than n^3 steps"),
}


@pytest.mark.parametrize("name", GROWTHS)
def test_growth_in_words(name):
    steps, words = GROWTHS[name]
    growth = growth_of([(n, steps(n)) for n in SIZES])
    assert growth is not None and str(growth) == words and growth.to_json()["words"] == words


def test_only_the_longest_run_of_a_size_counts():
    points = [(n, k) for n in SIZES for k in range(2, n + 3)]
    assert str(growth_of(points)) == "about n + 2 steps"


def test_noise_is_not_taken_for_a_higher_degree():
    rng = Random(3)
    points = [(n, 5 * n + rng.randint(-4, 4)) for n in range(1, 30)]
    growth = growth_of(points)
    assert growth is not None and growth.kind == "linear"
    assert growth.breaks(StepLimit(6, 20)) is None


def test_steps_that_only_vary_are_not_called_constant():
    growth = growth_of([(n, 40 if n % 3 else 5) for n in range(1, 20)])
    assert growth is not None and growth.kind == "unclear" and str(growth) == "up to 40 steps"


def test_one_size_says_nothing_and_two_say_no_more_than_a_constant():
    assert growth_of([(3, 5), (3, 7)]) is None
    assert str(growth_of([(3, 7), (4, 7)])) == "7 steps"


@pytest.mark.parametrize(
    ("steps", "limit", "broken"),
    [
        (lambda n: n * n, StepLimit(4, 34), 9),
        (lambda n: n * n, StepLimit(4, 2400), 52),
        (lambda n: n * n, StepLimit(1000, 0), 1001),
        (lambda n: 2 * n + 3, StepLimit(2, 8), None),
        (lambda n: 2 * n + 8, StepLimit(2, 8), None),
        (lambda n: 3 * n + 3, StepLimit(2, 40), 38),
        (lambda n: 7, StepLimit(0, 7), None),
        (lambda n: 2**n, StepLimit(1000, 0), 14),
    ],
)
def test_the_size_from_which_on_a_limit_is_broken(steps, limit, broken):
    """The first size beyond the measured ones at which the true steps exceed the limit."""
    growth = growth_of([(n, steps(n)) for n in range(1, 9)])
    assert growth is not None and growth.breaks(limit) == broken
    if broken is not None:
        assert steps(broken) > limit(broken) and steps(broken - 1) <= limit(broken - 1)


@pytest.mark.parametrize(("name", "words"), [("copy", "about n + 3 steps"), ("access", "2 steps")])
def test_programs_of_the_zoo_grow_as_they_are_built(name, words):
    program, task = load_program(f"{name}@searched"), get_task(name)
    points = []
    for n in range(1, 9):
        instances = task.sample(n, 5, n)
        ending = execute(program, [one.input for one in instances], instances[0].steps)
        points += [(n, steps) for steps in ending.steps]
    assert str(growth_of(points)) == words


def test_steps_that_follow_the_memory_are_told_by_its_size():
    sizes = [(1, 9), (2, 14), (3, 14), (4, 15), (5, 16), (6, 17), (7, 18), (8, 19)]
    walk = growth_of_runs([(n, cells, cells + 2) for n, cells in sizes])
    assert walk is not None and str(walk) == "about M + 2 steps"
    array = growth_of_runs([(n, n + 2, 2 * n + 1) for n in range(1, 9)])
    assert array is not None and str(array) == "about 2n + 1 steps"  # both explain it, and n is what people know
    fast = growth_of_runs([(n, 2 * n, 2**n) for n in range(1, 13)])
    assert fast is not None and (fast.kind, fast.letter) == (FASTER, "n")


def test_growth_with_the_size_is_not_hidden_by_few_memory_sizes():
    """The longest runs of three memory sizes lie near a line. The single runs do not."""
    runs = [(n, cells, n * n + 2 * n + 3) for cells in (14, 15, 16) for n in range(1, cells - 4)]
    growth = growth_of_runs(runs)
    assert growth is not None and str(growth) == "about n^2 + 2n + 3 steps" and growth.breaks(StepLimit(4, 100)) == 12


def test_steps_that_vary_are_told_as_the_most():
    growth = growth_of_runs([(n, 9, steps) for n in (3, 4, 5) for steps in (5, 37, 20)])
    assert growth is not None and growth.sentence == "It takes up to 37 steps"
    growth = growth_of([(n, steps) for n in SIZES for steps in (3, 2 * n + 3)])
    assert growth is not None and growth.sentence == "It takes at most about 2n + 3 steps"
    growth = growth_of([(n, 2 ** (n + 3)) for n in SIZES])
    assert growth is not None and growth.sentence == "Its steps grow faster than n^3"


NOISY = {
    "a cubic that bends down": [3, 7, 12, 15, 16, 17, 21, 26],
    "one long run": [3, 5, 7, 7, 9, 9, 11, 17],
    "three sizes": [3, 9, 40],
}


@pytest.mark.parametrize("case", NOISY)
def test_few_noisy_points_are_not_taken_for_fast_growth(case):
    growth = growth_of(enumerate(NOISY[case], 1))
    assert growth is not None and growth.kind in ("linear", "unclear")


def test_slopes_that_are_nearly_equal_break_no_limit():
    growth = growth_of([(n, 5 * n + n // 9) for n in range(1, 30)])
    assert growth is not None and growth.breaks(StepLimit(5, 20)) is None
