"""Members chosen by examples in random sequence, against every sequence written out."""

from collections import Counter
from itertools import permutations

import numpy as np

from nram.training.lexicase import TOLERANCE, choose_by_examples

ERRORS = np.array(
    [
        [0.5, 0.5, 0.5, 0.5],  # best in the mean with the next
        [0.4, 0.4, 0.6, 0.6],
        [0.0, 1.0, 1.0, 1.0],  # alone right in the first
        [0.9, 0.9, 0.9, 0.9],  # best in nothing
        [0.9, 0.4, 0.6, 0.5],
    ]
)


def shares_written_out(errors: np.ndarray, among: list[int]) -> np.ndarray:
    """How often each row is chosen, over every sequence of the examples."""
    shares, sequences = np.zeros(len(errors)), list(permutations(range(errors.shape[1])))
    for sequence in sequences:
        left = list(among)
        for example in sequence:
            least = min(errors[row, example] for row in left)
            left = [row for row in left if errors[row, example] <= least + TOLERANCE]
        shares[left] += 1 / len(left) / len(sequences)
    return shares


def test_parents_are_chosen_as_often_as_in_all_sequences_written_out():
    rng, counts, expected = np.random.default_rng(0), np.zeros(5), np.zeros(5)
    for _ in range(4000):
        replaced, parents = choose_by_examples(ERRORS, 2, rng)
        counts += np.bincount(parents, minlength=5)
        staying = [row for row in range(5) if row not in replaced]
        expected += 2 * shares_written_out(ERRORS, staying)
    np.testing.assert_allclose(counts / 8000, expected / 8000, atol=0.02)


def test_who_stays_is_chosen_in_the_same_way_one_after_the_other():
    rng = np.random.default_rng(1)
    lost = Counter(frozenset(choose_by_examples(ERRORS, 3, rng)[0].tolist()) for _ in range(4000))
    first = shares_written_out(ERRORS, [1, 2, 3, 4])  # of the one that stays beside row 0
    for row in range(1, 5):
        rest = frozenset({1, 2, 3, 4} - {row})
        assert abs(lost[rest] / 4000 - first[row]) < 0.03


def test_what_alone_can_do_something_is_cloned_though_its_mean_is_the_worst():
    parents = {row for seed in range(50) for row in choose_by_examples(ERRORS, 1, np.random.default_rng(seed))[1]}
    assert 2 in parents and 3 not in parents


def test_the_first_row_stays_and_what_is_not_finite_is_no_parent():
    errors = np.vstack([np.ones(6), np.zeros((6, 6)), np.full((1, 6), np.nan)])
    for seed in range(20):
        replaced, parents = choose_by_examples(errors, 3, np.random.default_rng(seed))
        assert len(replaced) == len(parents) == 3
        assert 0 not in replaced and 7 in replaced
        assert not set(parents) & {0, *replaced}


def test_a_difference_that_is_hardly_one_does_not_decide():
    errors = np.array([[0.50, 1.0], [0.51, 0.0], [0.9, 0.9]])
    parents = Counter(int(choose_by_examples(errors, 1, np.random.default_rng(seed))[1][0]) for seed in range(100))
    assert parents[1] == 100
