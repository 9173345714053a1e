"""Threads that change what native code works on: it works on checked copies, so no thread leads it out of bounds."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.racing import Other

from nram.errors import UsageError
from nram.programs.memory import prepare_memory
from nram.search.chains import blocks_of
from nram.search.instances import Pool
from nram.tasks.base import Instance


def race(kind: str, seconds: int) -> None:
    words = [sys.executable, "-m", "support.racing", kind, str(seconds)]
    run = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr  # the status of a process that left its memory is that of a signal
    done, refused = map(int, run.stdout.split())
    assert done and refused


@pytest.mark.parametrize("kind", ["program", "pool"])
def test_a_race_does_not_lead_out_of_bounds(kind):
    race(kind, 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["program", "pool"])
def test_a_race_of_a_minute_does_not_lead_out_of_bounds(kind):
    race(kind, 60)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_a_prepared_memory_is_a_copy(kind):
    array = np.ones((2, 8), kind)
    for given in (array, array[0], Other(array), array[:, ::2], np.asfortranarray(array)):
        prepared = prepare_memory(given)
        assert not np.shares_memory(prepared, array) and prepared.flags.c_contiguous and prepared.flags.writeable
        assert prepared.dtype == np.int32


class Twofold(int):
    """A whole number that compares as another one than it turns into."""

    def __int__(self) -> int:
        return 4


def test_a_memory_size_is_checked_as_it_is_used():
    with pytest.raises(UsageError, match="memory size 4 is smaller"):
        prepare_memory([1, 1, 1, 1, 1], Twofold(100))


def test_a_pool_keeps_what_it_has_checked():
    instances = [Instance([1, 2, 3, 0], [1, 2, 3, 3], [3], [3], 5) for _ in range(2)]
    pool = Pool(tuple(instances))
    instances[0].input[0] = instances[0].cells[0] = 1 << 20
    instances[1].input.append(1 << 20)
    blocks = blocks_of(pool)
    assert blocks.starts.max() == 3 and blocks.cells.max() == 3 and blocks.sizes.max() == 4


@pytest.mark.parametrize(
    "change",
    [
        {"input": [4, 0, 0, 0]},
        {"input": [-1, 0, 0, 0]},
        {"input": [0, 0]},
        {"input": [[0, 0, 0, 0]] * 4},
        {"input": [2**70, 0, 0, 0]},
        {"output": [0, 0, 0]},
        {"output": [0, 0, 0, 4]},
        {"cells": []},
        {"cells": [4]},
        {"cells": [-1]},
        {"steps": 0},
        {"steps": 10**12},
    ],
)
def test_a_pool_refuses_what_would_lead_out_of_bounds(change):
    parts = {"input": [0] * 4, "output": [0] * 4, "cells": [3], "scored": [3], "steps": 5}
    Pool((Instance(**parts),))
    with pytest.raises(UsageError, match="instance 2 cannot be searched by"):
        Pool((Instance(**parts), Instance(**{**parts, **change})))
