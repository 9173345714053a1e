"""Blocks of sixteen instances do in every lane what the reference interpreter does, and nothing in the others."""

from __future__ import annotations

import ctypes
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from nram.bench.search import live_code
from nram.programs.interpret import Ending, interpret, trace
from nram.programs.ir import MODULES, Program
from nram.search.chains import blocks_of, random_table, shape_of, table_costs
from nram.search.instances import Pool
from nram.search.kernel import CONSTANTS, LANES, LARGEST_OF_BYTES, Blocks, Frame, new_table
from nram.search.structure import Structure
from nram.tasks.base import Instance

STRUCTURES = (
    Structure(1),
    Structure(1, 3, states=3),
    Structure(2, 2, states=2),
    Structure(3),
    Structure(3, 2, states=3),
    Structure(4, 3),
    Structure(4, 1, states=3),
    Structure(5, 1, states=2),
)
CELLS = pytest.mark.parametrize("cell", [np.uint8, np.int32])
ALL_LANES = (1 << LANES) - 1
GUARD = 177  # stands around the room that a block is given


class Ran(NamedTuple):
    """What became of a block."""

    halted: int
    wrong: np.ndarray
    visited: np.ndarray
    memory: np.ndarray


def run_lanes(structure: Structure, genes: np.ndarray, blocks: Blocks, block: int, lanes: int, cell: Any) -> Ran:
    """The code that the search calls, called with the same frame; writing outside its room is an error."""
    shape = shape_of(structure, blocks if cell is np.uint8 else None)
    assert shape.per_word * np.dtype(cell).itemsize == 4
    table = new_table(shape, genes)
    starts, sizes, limits, cells, wanted, counts = (np.ascontiguousarray(array[block]) for array in blocks)
    lines = -(-len(starts) // shape.per_word)
    start, end = (np.full((lines * shape.per_word, LANES), fill, np.int32) for fill in (0, -1))
    start[: len(starts)] = starts
    for lane in range(LANES):
        end[cells[: counts[lane], lane], lane] = wanted[: counts[lane], lane]
    given = [start.astype(cell), end.astype(cell), sizes, limits]
    before = [array.copy() for array in (*table, *given)]
    kinds = (cell, cell, np.int32, np.uint64)
    heights = (len(start), CONSTANTS + structure.registers + len(structure.operations), 1, 1)
    rooms = [np.full((height + 2, LANES), GUARD, kind) for height, kind in zip(heights, kinds, strict=True)]
    memory, values, wrong, visited = (room[1:] for room in rooms)
    frame = Frame(
        code=table.code.ctypes.data,
        genes=genes.ctypes.data,
        starts=given[0].ctypes.data,
        wanted=given[1].ctypes.data,
        sizes=sizes.ctypes.data,
        limits=limits.ctypes.data,
        memory=memory.ctypes.data,
        values=values.ctypes.data,
        wrong=wrong.ctypes.data,
        visited=visited.ctypes.data,
        row_of=0,
        code_width=table.code[0].size,
        width=structure.width,
        lines=lines,
        longest=int(limits.max()),
        lanes=lanes,
    )
    frame = np.array(frame, np.int64)
    kept = frame.copy()
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(shape.run_block)
    halted = function(frame.ctypes.data)
    assert (frame == kept).all()
    for array, old in zip((*table, *given), before, strict=True):
        assert (array == old).all()
    for room in rooms:
        assert (room[[0, -1]] == GUARD).all()
    memory, _, wrong, visited = (room[1:-1] for room in rooms)
    return Ran(halted, wrong[0], visited[0], memory[: len(starts)])


def expected(program: Program, instance: Instance) -> tuple[Ending, set[int]]:
    """The ending by the interpreter, and the rows that it visited."""
    visited: set[int] = set()
    registers = len(program.registers)
    ending = None
    for event in trace(program, instance.input, instance.steps):
        if isinstance(event, Ending):
            ending = event
            continue
        flags = sum((value == 0) << r for r, value in enumerate(event.registers))
        visited.add((event.state << registers) + flags)
    assert ending is not None
    return ending, visited


def any_pool(rng: Random, count: int) -> Pool:
    """Instances of no task: memories of many sizes, any cells, any wishes, any limits."""
    instances = []
    for _ in range(count):
        size = rng.randint(3, 17)
        memory, wish = ([rng.randrange(size) for _ in range(size)] for _ in range(2))
        cells = rng.sample(range(size), rng.randint(1, size))
        instances.append(Instance(memory, wish, cells, cells, rng.choice([1, 2, 3, 7, 20, 41])))
    return Pool(tuple(instances))


def some_lanes(rng: Random, count: int) -> int:
    """Lanes of a block that holds so many instances: all, one or some of them."""
    return rng.choice(((1 << count) - 1, 1 << rng.randrange(count), rng.randrange(1, 1 << count)))


@CELLS
@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_every_lane_asked_for_runs_as_in_the_interpreter_and_the_others_rest(structure, cell):
    rng = Random(str(structure))
    pool = any_pool(rng, 2 * LANES + 5)
    blocks, shape = blocks_of(pool), shape_of(structure)
    halts = stops = 0
    used: set[str] = set()
    for seed in range(16):
        genes = random_table(structure, seed)
        if seed % 2:
            genes[:, -2] *= np.array([rng.random() < 0.2 for _ in genes], np.int16)  # halting less often: longer runs
        program = structure.program(genes)
        for block in range(3):
            here = pool.instances[block * LANES : (block + 1) * LANES]
            lanes = some_lanes(rng, len(here))
            ran = run_lanes(structure, genes, blocks, block, lanes, cell)
            for lane in range(LANES):
                if not lanes >> lane & 1:
                    assert not ran.halted >> lane & 1 and ran.visited[lane] == 0
                    assert (ran.memory[:, lane] == blocks[0][block, :, lane]).all()
                    continue
                instance = here[lane]
                ending, visited = expected(program, instance)
                used |= {structure.kinds[line[0]].name for row in visited for line in live_code(shape, genes[row])[0]}
                wrong = sum(ending.memory[cell] != instance.output[cell] for cell in instance.cells)
                unused = len(ran.memory) - len(ending.memory)
                assert ran.memory[:, lane].tolist() == [*ending.memory, *[0] * unused]
                assert (ran.halted >> lane & 1, ran.wrong[lane]) == (ending.halted, wrong)
                assert ran.visited[lane] == sum(1 << row for row in visited)
                halts, stops = halts + ending.halted, stops + (not ending.halted)
    assert used == set(structure.sequence)
    assert halts > 20 and stops > 20


@CELLS
@pytest.mark.parametrize("name", Structure(1).sequence)
def test_a_module_is_right_on_all_arguments_in_memories_of_several_sizes_in_one_block(name, cell):
    structure = Structure(1, 3)
    genes = _table_for(structure, name)
    program = structure.program(genes)
    instances = []
    for size in (3, 4, 5, 7):
        for a in range(size):
            for b in range(size):
                memory = [a, b, *range(1, size - 1)]
                after = interpret(program, memory, 1).memory
                if MODULES[name].memory == "nothing":
                    arguments = (a, b)[: MODULES[name].arity]
                    assert after[2] == MODULES[name].integer(size, *arguments)
                instances.append(Instance(memory, after, list(range(size)), [2], 1))
    Random(name).shuffle(instances)
    pool = Pool(tuple(instances))
    blocks = blocks_of(pool)
    for block in range(len(blocks[0])):
        count = min(LANES, len(pool) - block * LANES)
        ran = run_lanes(structure, genes, blocks, block, (1 << count) - 1, cell)
        assert ran.halted == (1 << count) - 1
        assert not ran.wrong[:count].any()


@pytest.mark.parametrize("name", Structure(1).sequence)
def test_the_largest_numbers_of_bytes_are_right(name):
    """In a memory of M = 128: sums come near to 256, and every line of the memory is read and written."""
    structure, size = Structure(1, 3), LARGEST_OF_BYTES
    genes = _table_for(structure, name)
    program, rng = structure.program(genes), Random(name)
    instances = []
    for a, b in [(size - 1, size - 1), (size - 1, 0), *((rng.randrange(size), rng.randrange(size)) for _ in range(14))]:
        memory = [a, b, *(rng.randrange(size) for _ in range(size - 2))]
        instances.append(Instance(memory, interpret(program, memory, 1).memory, list(range(size)), [2], 1))
    ran = run_lanes(structure, genes, blocks_of(Pool(tuple(instances))), 0, ALL_LANES, np.uint8)
    assert ran.halted == ALL_LANES and not ran.wrong.any()
    for lane, instance in enumerate(instances):
        assert ran.memory[:, lane].tolist() == instance.output


def test_an_output_cell_that_is_named_twice_counts_once():
    once, twice = (Instance([0, 1, 2], [1, 1, 2], cells, [0], 1) for cells in ([0, 1], [0, 0, 1]))
    structure = Structure(1)
    one, other = (
        table_costs(structure, random_table(structure, 0), blocks_of(Pool((instance,))), 1)
        for instance in (once, twice)
    )
    assert one == other


@pytest.mark.parametrize(("size", "per_word"), [(LARGEST_OF_BYTES, 4), (LARGEST_OF_BYTES + 1, 1)])
def test_cells_are_bytes_where_all_memories_are_small(size, per_word):
    pool = Pool((Instance([0] * size, [0] * size, [0], [0], 1),))
    assert shape_of(Structure(1), blocks_of(pool)).per_word == per_word


def _table_for(structure: Structure, name: str) -> np.ndarray:
    """One step: the first two cells are read, the module is applied to them, its output written to the third cell."""
    once = len(structure.sequence) // 3
    first_output = CONSTANTS + structure.registers
    place = 2 * once + structure.sequence.index(name)
    write = 3 * once - 1
    genes = np.zeros((structure.rows, structure.width), np.int16)
    for row in genes:
        row[3 * once] = 1  # the first READ has address 0, the second 1
        row[3 * place : 3 * place + 2] = first_output, first_output + once
        row[3 * write + 2] = 1
        if place != write:
            row[3 * write : 3 * write + 2] = 2, first_output + place
        row[-2] = 1
    return genes


@CELLS
def test_a_block_without_lanes_to_run_does_nothing(cell):
    structure = Structure(2)
    pool = any_pool(Random(0), LANES)
    blocks = blocks_of(pool)
    ran = run_lanes(structure, random_table(structure, 0), blocks, 0, 0, cell)
    assert ran.halted == 0 and not ran.visited.any()
    assert (ran.memory == blocks[0][0]).all()


@CELLS
def test_what_a_lane_does_depends_on_no_other_lane(cell):
    structure = Structure(3, 2)
    pool = any_pool(Random(5), LANES)
    genes = random_table(structure, 11)
    together = run_lanes(structure, genes, blocks_of(pool), 0, ALL_LANES, cell)
    for lane in range(LANES):
        alone = run_lanes(structure, genes, blocks_of(pool), 0, 1 << lane, cell)
        assert alone.halted >> lane & 1 == together.halted >> lane & 1
        for one, other in zip(alone[1:], together[1:], strict=True):
            assert (np.asarray(one)[..., lane] == np.asarray(other)[..., lane]).all()


def test_the_order_of_a_pool_says_which_lane_an_instance_has():
    pool = any_pool(Random(2), LANES + 3)
    order = Random(3).sample(range(len(pool)), len(pool))
    starts, sizes, limits, cells, wanted, counts = blocks_of(pool, order)
    assert starts.shape[::2] == (2, LANES) and all(array.dtype == np.int32 for array in (starts, sizes, cells, counts))
    for place, number in enumerate(order):
        block, lane = divmod(place, LANES)
        instance = pool.instances[number]
        assert starts[block, : sizes[block, lane], lane].tolist() == instance.input
        assert limits[block, lane] == instance.steps and counts[block, lane] == len(instance.cells)
        assert cells[block, : counts[block, lane], lane].tolist() == instance.cells
        assert [instance.output[cell] for cell in instance.cells] == wanted[block, : len(instance.cells), lane].tolist()
    assert not sizes[1, 3:].any() and not limits[1, 3:].any() and not counts[1, 3:].any()
