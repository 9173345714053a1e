"""The curriculum follows the paper's appendix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.training.config import CurriculumConfig
from nram.training.curriculum import Progress, advance, draw_complexity, first_level

COUNT = 200_000


def expected_shares(level: int, low: int, high: int) -> np.ndarray:
    """The appendix's distribution, summed by hand: e is geometric from 0, the rest is cut at `high`."""
    share = np.zeros(high + 1)
    share[low:] += 0.10 / (high - low + 1)
    for extra in range(60):
        chance = 0.5 ** (extra + 1)
        reach = min(level + extra, high)
        share[low : reach + 1] += 0.25 * chance / (reach - low + 1)
        share[reach] += 0.65 * chance
    return share


@pytest.mark.parametrize(("level", "low", "high"), [(1, 1, 15), (4, 1, 6), (2, 2, 20), (6, 1, 6), (3, 3, 3)])
def test_complexities_follow_the_appendix(level, low, high):
    drawn = np.asarray(draw_complexity(jax.random.key(level), jnp.int32(level), low, high, COUNT))
    assert drawn.min() >= low
    assert drawn.max() <= high
    shares = np.bincount(drawn, minlength=high + 1) / COUNT
    expected = expected_shares(level, low, high)
    assert np.all(np.abs(shares - expected) < 5 * np.sqrt(expected / COUNT) + 1e-9)


def test_a_level_is_raised_when_the_error_has_become_small_and_never_beyond_the_top():
    config = CurriculumConfig(threshold=0.1, interval=20)
    progress, levels = first_level(1), []
    for step in range(300):
        progress = advance(progress, jnp.float32(0.0), jnp.int32(step), 3, config)
        levels.append(int(progress.level))
    raises = np.flatnonzero(np.diff(levels)) + 1
    assert levels[-1] == 3
    assert len(raises) == 2
    assert raises[1] - raises[0] >= config.interval


def test_raises_are_separated_by_the_interval_even_without_error():
    config = CurriculumConfig(threshold=0.99, interval=7)
    progress, raised = first_level(1), []
    for step in range(1, 60):
        before = int(progress.level)
        progress = advance(progress, jnp.float32(0.0), jnp.int32(step), 100, config)
        if int(progress.level) > before:
            raised.append(step)
    assert min(np.diff(raised)) == config.interval


def test_a_member_that_keeps_failing_stays_where_it_is():
    progress = Progress(jnp.int32(2), jnp.float32(0.5), jnp.int32(0))
    for step in range(100):
        progress = advance(progress, jnp.float32(0.4), jnp.int32(step), 5, CurriculumConfig())
    assert int(progress.level) == 2
    assert float(progress.error) == pytest.approx(0.4, abs=0.01)
