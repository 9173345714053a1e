"""A race with native code, for a process of its own: if the code leaves its memory, the process dies.

    python -m support.racing program SECONDS     programs run on memories that another thread changes
    python -m support.racing pool SECONDS        the search gets instances that another thread changes

It prints how many runs were carried out and how many were refused.
"""

import sys
import threading
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np

from nram.errors import UsageError
from nram.programs.text import from_text
from nram.search.chains import blocks_of, table_costs
from nram.search.instances import Pool
from nram.search.structure import embed
from nram.tasks.base import Instance

FAR = 1 << 26  # as an address, it leads far away from the memory
SIZE = 1 << 16  # the larger, the more time between two looks at the same cell
CHANGED = 5  # the cell that changes

# Go through all cells and write where they point.
FOLLOW = """nram program 1
name: follow
origin: written
registers: i

otherwise:
    o1 = READ(i)
    WRITE(o1, o1)
    o3 = INC(i)
    i := o3
"""


class Other:
    """An object that NumPy can read, and whose numbers another thread changes."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.array  # whatever was asked for


def race(run: Callable[[], None], change: Callable[[int], None], seconds: float) -> tuple[int, int]:
    """Call `run` while another thread changes what it works on; how often it worked, and how often it was refused."""
    run()  # compiles
    stop = threading.Event()

    def keep_changing() -> None:
        while not stop.is_set():
            change(FAR)
            change(1)

    thread = threading.Thread(target=keep_changing)
    thread.start()
    done = refused = 0
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end or not (done and refused):
            try:
                run()
                done += 1
            except UsageError:
                refused += 1
    finally:
        stop.set()
        thread.join()
    return done, refused


def race_with_programs(seconds: float) -> tuple[int, int]:
    program = from_text(FOLLOW)
    array = np.ones(SIZE, np.int64)
    rows, cells = np.ones((2, SIZE), np.int32), [1] * 64
    forms = [array, array.reshape(4, -1), Other(array), rows, list(rows), cells, [cells, cells]]
    turns = cycle(forms)

    def change(value: int) -> None:
        array[CHANGED] = rows[1, CHANGED] = cells[CHANGED] = value

    return race(lambda: void(program.run(next(turns), max_steps=10)), change, seconds)


def race_with_pools(seconds: float) -> tuple[int, int]:
    structure, genes = embed(from_text(FOLLOW))
    instances = [Instance([1] * 100, [1] * 100, [5], [5], 100) for _ in range(40)]

    def change(value: int) -> None:
        instances[-1].input[CHANGED] = value
        time.sleep(1e-5)

    def run() -> None:
        pool = Pool(tuple(instances))
        table_costs(structure, genes, blocks_of(pool), len(pool))

    return race(run, change, seconds)


def void(_: Any) -> None:
    pass


if __name__ == "__main__":
    races = {"program": race_with_programs, "pool": race_with_pools}
    sys.setswitchinterval(1e-5)  # threads take turns often
    print(*races[sys.argv[1]](float(sys.argv[2])))
