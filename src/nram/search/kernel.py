"""The inner loop of the search: change a table, compile the changed row, run it, keep it or undo it. Compiled by Numba.

A candidate is a table of small integers, `genes[row]`, with a row for every state and combination of flags:

    for each operation k: first argument, second argument, whether it is present (only WRITE can be absent)
    for each register: its new value; then halt (0 or 1); then the next state

Values are numbered: 0, 1, 2 are the constants, then come the registers, then the operations' outputs.

A table of a sketch has its own operations in every row, genes that never change, and a choice of which row applies:
`Holes` has all this. Without a sketch `holes` is None, and Numba compiles the chain without it.

What makes it fast:
- A change concerns one row, so only that row is compiled again.
- If the row's live code stays the same, the candidate does the same as before, and nothing is run.
- Only instances whose run visited the row are run again, sixteen at a time (`lanes`).
- A candidate is given up as soon as it is almost certain to be refused: if it would be even when the instances that
  are still to run cost a fifth less than now. The blocks that refuse most candidates a step come first.

Everything is in one file, with the numbers that `lanes` shares. The machine code is cached until this file changes, so
a change in another file would leave old code in use.

Numba hands over the fields of a record one by one, and counts references to arrays by atomic instructions unless it
sees that it need not. It sees that in inlined functions, and in functions with one exit and without local names for a
record's arrays. The functions of the inner loop are written like this, which saves a fifth of the time.

Compiled functions only index arrays. Python makes the arrays, because `np.zeros`, `reshape`, `copy` and `max` within a
compiled function double the time that Numba takes to compile it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from nram.numba_cache import cached_on_disk

SOURCES = ("search/kernel.py",)  # all that determines the code which Numba compiles here
LANES = 16  # instances of a block, which run at once
LINE = 16  # int32 of a cache line
LARGEST_OF_BYTES = 128  # the largest M for which sums, below 2 M, fit into a byte
CONSTANTS = 3  # 0, 1 and 2. Written here because the cache sees changes of this file alone

JOINING_AT_ONCE = 4  # failed instances that come into play together
LOOK_UP = 4096  # candidates between two looks at the monitor, unless they take
LOOK_UP_STEPS = 1 << 21  # steps of lanes
NOT_HALTING = 0.25  # the cost of an instance on which the program does not halt; a wholly wrong one costs 1
ROW_LENGTH = 2  # what a visited row counts beside its operations
FRESH = 35  # percent of new sources that are operations which were dead before
STILL_TO_COME = 0.8  # of what instances cost now: so much, at least, they are expected to cost a candidate
BLOCK_STEPS = 4  # what a block takes beside its steps, in steps
LATELY = 0.1  # the weight of the last look in the share of time in which an instance was wrong
FOR_ALL = 0.5  # of the weight of an instance, what all have; the rest goes to those that were wrong most of the time
MOST_WEIGHT = 4.0
ZERO_COST = 1e-9  # sums of costs below this are 0 but for rounding

# Columns of `Shape.operations`, of `Table.code` and of the monitor.
MODULE, ARITY, WRITES = range(3)
CODE_MODULE, CODE_FIRST, CODE_SECOND, CODE_OUTPUT = range(4)
END = -1  # in place of a module, after the last operation of a row
STOP, CANDIDATES, COST, IN_PLAY = range(4)


class Frame(NamedTuple):
    """The position of everything in the frame that `run_block` gets: addresses of arrays, and numbers.

    What a program computes with are cells: of 32 bits, or of 8 where M is small.
    """

    code: int  # int16 [rows, operations + 1, 4]: module, first argument, second argument, output; `END` as a module
    genes: int  # int16 [rows, width]; `run_block` reads the last registers + 2: new values, halt, next state
    starts: int  # cells [most cells, LANES]
    wanted: int  # cells [most cells, LANES]; all bits set where anything will do
    sizes: int  # int32 [LANES]
    limits: int  # int32 [LANES]
    memory: int  # room for cells [most cells, LANES]
    values: int  # room for cells [values, LANES]
    wrong: int  # result, int32 [LANES]: output cells that are not as wanted
    visited: int  # result, uint64 [LANES]: the rows visited, a bit each
    row_of: int  # int32 [states * flags]: of a sketch, the row for every state and combination of flags; otherwise 0
    code_width: int  # from here on the frame holds the numbers themselves
    width: int
    lines: int  # of the memory, `LINE` int32 each
    longest: int  # of the limits
    lanes: int  # the lanes to run, a bit each


AT = Frame(*range(len(Frame._fields)))
FIRST_NUMBER = AT.code_width


class Shape(NamedTuple):
    """What all tables of a structure share."""

    run_block: int
    """The address of the code that runs a block of instances."""
    per_word: int
    """Cells in 32 bits: 1, or 4 where they are bytes."""
    operations: np.ndarray
    """int64 [operations, 3]: index of the module, number of its arguments, whether it writes."""
    registers: int
    states: int


class Holes(NamedTuple):
    """What a chain may change in the table of a sketch. Nobody else uses these arrays."""

    operations: np.ndarray
    """int64 [rows, operations, 3]: as in `Shape`, but of each row. Where the module is a hole, the present one."""
    free: np.ndarray
    """bool [rows, width]: the genes that may change."""
    alike: np.ndarray
    """int64 [rows]: rows with the same number, not -1, belong to bodies that are holes, with the same operations.
    A gene means the same in all of them."""
    may_change: np.ndarray
    """uint64 [1]: the rows with a gene that may change, a bit each."""
    places: np.ndarray
    """int64: the genes that may change, of one row after another."""
    first_place: np.ndarray
    """int64 [rows + 1]: where those of each row begin in `places`."""
    choices: np.ndarray
    """int64 [rows, operations, 2]: of a module that is a hole, the first of its `kinds` and their number; or 0."""
    kinds: np.ndarray
    """int64 [kinds, 3]: rows of `operations`."""
    conditions: np.ndarray
    """int16 [open rows, width]: for each register 0: no condition, 1: = 0, 2: > 0."""
    old_conditions: np.ndarray
    best_conditions: np.ndarray
    wishes: np.ndarray
    """int64 [open conditions, 3]: open row, register, and from how many wishes it chooses: 2 or 3."""
    written: np.ndarray
    """int16 [rows of the sketch, registers]: conditions, where they are written."""
    open_row: np.ndarray
    """int64 [rows of the sketch]: the row of `conditions`, or -1: they are written."""
    state_of: np.ndarray
    """int64 [rows of the sketch]"""
    targets: np.ndarray
    """int64 [rows of the sketch, flags]: the row of the table that it means under these flags."""
    row_of: np.ndarray
    """int32 [states * flags]: the row of the table that applies."""


class Blocks(NamedTuple):
    """Instances in lanes, all int32. Unused lanes hold zeros."""

    starts: np.ndarray
    """[blocks, cells, lanes]"""
    sizes: np.ndarray
    """[blocks, lanes]"""
    limits: np.ndarray
    """[blocks, lanes]"""
    cells: np.ndarray
    """[blocks, output cells, lanes]"""
    wanted: np.ndarray
    """[blocks, output cells, lanes]"""
    counts: np.ndarray
    """[blocks, lanes], of output cells"""


class Annealing(NamedTuple):
    """How a chain is annealed. Costs and temperatures are in wholly wrong instances."""

    seed: int
    budget: int
    """The most candidates."""
    hot: float
    cold: float
    length_cost: float
    """Of a live operation in a row that is visited."""
    at_first: int
    """Instances in play from the start. Others join when a candidate gets them wrong."""
    must_fit: bool = False
    """Shorten a table that fits: take only candidates that fit too, use the whole budget, end with the shortest."""
    weigh: bool = False
    """Let instances that stay wrong count more and more."""


class Table(NamedTuple):
    """A table with the live code of its rows."""

    genes: np.ndarray
    code: np.ndarray
    lengths: np.ndarray
    live: np.ndarray


class Runs(NamedTuple):
    """How to run the blocks, and what came out: of the current table, and of the candidate.

    It has just what the inner loop needs. Arrays of [lanes] have the lanes of all blocks, one after another.
    """

    run_block: int
    frames_address: int
    frames: np.ndarray
    """int64 [blocks, len(AT)]"""
    counts: np.ndarray
    """[lanes], of output cells"""
    cost: np.ndarray
    """[lanes]"""
    visited: np.ndarray
    """[lanes], the rows that the run visited, a bit each"""
    wrong: np.ndarray
    """[lanes], wrong output cells of the candidate"""
    new_cost: np.ndarray
    new_visited: np.ndarray
    turn: np.ndarray
    """The order in which blocks are run: those that refuse most candidates a step come first."""
    refusals: np.ndarray
    """[blocks], of late"""
    steps: np.ndarray
    """[blocks], of late"""
    weight: np.ndarray
    """[lanes], of an instance: all costs have this factor"""
    hardness: np.ndarray
    """[lanes], the share of time, of late, in which the current table was wrong on an instance"""
    room: np.ndarray
    """Where `run_block` works; here to stay alive."""
    per_word: int
    starts: np.ndarray
    """int32 [blocks, words]: `Blocks.starts` as `run_block` takes it."""
    wanted: np.ndarray
    """The same with what is wanted in the end, and all bits set elsewhere."""


class Work(NamedTuple):
    """Arrays of a chain that nobody else uses."""

    state: np.ndarray
    """Of the random numbers."""
    old: Table
    """One row: the changed one as it was."""
    old_live: np.ndarray
    """`live` of that row."""
    best: np.ndarray
    """The shortest genes that fit."""


class Evaluation(NamedTuple):
    """How a table does on the instances in play."""

    cost: float
    length: int
    visited: Any
    """The rows that any run visits, a bit each; uint64."""


class ChainEnd(NamedTuple):
    """How a chain ended."""

    fits: bool
    """Whether the table is right on every instance."""
    candidates: int
    runs: int
    """Of single instances."""
    best: float
    """The least cost seen since the last instances joined."""
    active: int
    """Instances in play."""


# Nothing divides by 0. No array is made here, so Numba need not count references: it compiles faster without.
_OPTIONS: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy", "_nrt": False}
_INNER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _compiled(function: Callable) -> Any:
    """Compile a function that Python calls. Its machine code, with that of all inner functions, is cached."""
    return cached_on_disk(njit(**_OPTIONS)(function), SOURCES)


# Only compiled functions call these: without the code by which Python would call them they compile faster.
_inner = njit(**_INNER)
_inlined = njit(**_INNER, forceinline=True)


@intrinsic
def _call(_typing, _address, _frame):  # pyright: ignore
    """Call the function at an address with another address."""
    from llvmlite import ir

    def generate(_context, builder, _signature, arguments):
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1]])

    return types.int64(types.int64, types.int64), generate


# ---- random numbers


@_inner
def _random(state):
    """64 random bits, by xorshift64*."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(2685821657736338717)


@_inner
def _below(state, n):
    return np.int64(((_random(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@_inner
def _uniform(state):
    return (np.float64(_random(state) >> np.uint64(11)) + 1.0) * (1.0 / 9007199254740993.0)


@_compiled
def _seed(state, seed, constant):
    """Start the random numbers."""
    state[0] = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + constant
    for _ in range(16):
        _random(state)


def _seeded(seed: int, constant: int) -> np.ndarray:
    state = np.empty(1, np.uint64)
    _seed(state, seed, np.uint64(constant))
    return state


# ---- tables


@_inner
def _any_value(state, shape, k):
    """A value that operation `k` may use: a constant, a register, or an earlier output that is not WRITE's."""
    first_output = CONSTANTS + shape.registers
    while True:
        value = _below(state, first_output + k)
        if value < first_output or shape.operations[value - first_output, WRITES] == 0:
            return value


def random_genes(seed: int, shape: Shape, genes: np.ndarray, holes: Holes | None = None) -> None:
    """Fill a table at random; of a sketch, its holes."""
    state = _seeded(seed, 0x2545F4914F6CDD1D)
    if holes is None:
        _fill(state, shape, genes)
    else:
        _fill_holes(state, shape, genes, holes)


@_compiled
def _fill(state, shape, genes):
    for row in range(len(genes)):
        _fill_row(state, shape, genes, row)


@_inlined
def _fill_row(state, shape, genes, row):
    operations, registers = shape.operations, shape.registers
    count = len(operations)
    for k in range(count):
        genes[row, 3 * k] = _any_value(state, shape, k)
        genes[row, 3 * k + 1] = _any_value(state, shape, k)
        genes[row, 3 * k + 2] = _below(state, 2) if operations[k, WRITES] == 1 else 1
    for r in range(registers):
        genes[row, 3 * count + r] = _any_value(state, shape, count)
    genes[row, 3 * count + registers] = _below(state, 5) == 0
    genes[row, 3 * count + registers + 1] = _below(state, shape.states)


@_compiled
def _fill_holes(state, shape, genes, holes):
    """Fill the holes of a table at random. Row 0 of `old_conditions` has room for a row of genes."""
    written = holes.old_conditions
    for row in range(len(genes)):
        for g in range(genes.shape[1]):
            written[0, g] = genes[row, g]
        _fill_row(state, _shape_of_row(shape, holes, row), genes, row)
        for g in range(genes.shape[1]):
            if not holes.free[row, g]:
                genes[row, g] = written[0, g]
        for k in range(holes.choices.shape[1]):
            if holes.choices[row, k, 1] > 0:
                genes[row, 3 * k + 2] = 1 + _below(state, holes.choices[row, k, 1])
    for place in range(len(holes.wishes)):
        _change_wish(state, holes, place)


@_inlined
def _shape_of_row(shape, holes, row):
    """The shape of one row: of a sketch, with its own operations."""
    if holes is None:
        return shape
    return Shape(shape.run_block, shape.per_word, holes.operations[row], shape.registers, shape.states)


@_inner
def _change_wish(state, holes, place):
    """Change one condition that is a hole."""
    row, register, count = holes.wishes[place, 0], holes.wishes[place, 1], holes.wishes[place, 2]
    holes.conditions[row, register] = _below(state, count) + 3 - count


@_inner
def _choose_modules(holes, genes, row):
    """Make the modules of a row's operations those that its genes choose."""
    for k in range(holes.choices.shape[1]):
        if holes.choices[row, k, 1] > 0:
            kind = holes.choices[row, k, 0] + genes[row, 3 * k + 2] - 1
            for part in range(3):
                holes.operations[row, k, part] = holes.kinds[kind, part]


@_inner
def _choose_rows(holes):
    """Find the row for every state and combination of flags: the first whose conditions hold.

    Returns the rows, a bit each, that no longer apply somewhere where they applied before.
    """
    flags, registers = holes.targets.shape[1], holes.written.shape[1]
    lost = np.uint64(0)
    for at in range(len(holes.row_of)):
        state, now = at // flags, at % flags
        found = -1
        index = 0
        while found < 0 and index < len(holes.open_row):
            if holes.state_of[index] == state:
                holds = True
                for r in range(registers):
                    wish = holes.written[index, r]
                    if holes.open_row[index] >= 0:
                        wish = holes.conditions[holes.open_row[index], r]
                    holds = holds and (wish == 0 or (wish == 1) == ((now >> r) & 1 == 1))
                if holds:
                    found = holes.targets[index, now]
            index += 1
        if found != holes.row_of[at]:
            if holes.row_of[at] >= 0:
                lost |= np.uint64(1) << np.uint64(holes.row_of[at])
            holes.row_of[at] = found
    return lost


@_compiled
def _settle(holes, genes):
    """Derive everything that follows from the genes of a table."""
    for row in range(len(genes)):
        _choose_modules(holes, genes, row)
    _choose_rows(holes)


@_inner
def compile_row(shape, table, row):
    """Find the operations of a row that matter, and write them to the table's code, in their order.

    An operation is live if it writes, or if a live operation or a register uses its output. A row that halts updates
    no registers.
    """
    genes, code, live = table.genes, table.code, table.live
    operations, registers = shape.operations, shape.registers
    count = len(operations)
    first_output = CONSTANTS + registers
    for k in range(count):
        live[row, k] = False
    if genes[row, 3 * count + registers] == 0:
        for r in range(registers):
            value = genes[row, 3 * count + r] - first_output
            if value >= 0:
                live[row, value] = True
    for k in range(count - 1, -1, -1):
        if operations[k, WRITES] == 1:
            live[row, k] = genes[row, 3 * k + 2] == 1
        if live[row, k]:
            for which in range(operations[k, ARITY]):
                value = genes[row, 3 * k + which] - first_output
                if value >= 0:
                    live[row, value] = True
    length = 0
    for k in range(count):
        if live[row, k]:
            code[row, length, CODE_MODULE] = operations[k, MODULE]
            code[row, length, CODE_FIRST] = genes[row, 3 * k]
            code[row, length, CODE_SECOND] = genes[row, 3 * k + 1] if operations[k, ARITY] == 2 else 0
            code[row, length, CODE_OUTPUT] = first_output + k
            length += 1
    code[row, length, CODE_MODULE] = END
    table.lengths[row] = length


@_compiled
def _compile_rows(shape, holes, table):
    for row in range(len(table.lengths)):
        compile_row(_shape_of_row(shape, holes, row), table, row)


def new_table(shape: Shape, genes: np.ndarray, holes: Holes | None = None) -> Table:
    """Genes with the live code of every row."""
    if holes is not None:
        _settle(holes, genes)
    rows, count = len(genes), len(shape.operations)
    table = Table(
        genes, np.zeros((rows, count + 1, 4), np.int16), np.zeros(rows, np.int64), np.zeros((rows, count), np.bool_)
    )
    _compile_rows(shape, holes, table)
    return table


@_inner
def _copy_row(source, row, target, to_row):
    """Copy a row of a table with its code: to remember it before a change, and to undo the change."""
    for g in range(source.genes.shape[1]):
        target.genes[to_row, g] = source.genes[row, g]
    length = source.lengths[row]
    target.lengths[to_row] = length
    for j in range(length + 1):
        for part in range(4):
            target.code[to_row, j, part] = source.code[row, j, part]
    for k in range(source.live.shape[1]):
        target.live[to_row, k] = source.live[row, k]


@_inner
def _does_the_same(registers, table, row, old):
    """Whether a changed row has the live code of the old one, and, unless it halts, the same register updates."""
    genes, width = table.genes, table.genes.shape[1]
    halt = width - 2
    same = table.lengths[row] == old.lengths[0] and genes[row, halt] == old.genes[0, halt]
    if same and genes[row, halt] == 0:
        for g in range(halt - registers, width):
            same = same and genes[row, g] == old.genes[0, g]
    if same:
        for j in range(old.lengths[0]):
            for part in range(4):
                same = same and table.code[row, j, part] == old.code[0, j, part]
    return same


# ---- changes


@_inlined
def _near_value(state, shape, k, live):
    """A constant, a register, or an output before operation `k` that is in use already."""
    kind = _below(state, 8)
    if kind == 0:
        return _below(state, CONSTANTS)
    if kind >= 4 and k > 0:
        for _ in range(6):
            other = _below(state, k)
            if live[other] and shape.operations[other, WRITES] == 0:
                return CONSTANTS + shape.registers + other
    return CONSTANTS + _below(state, shape.registers)


@_inlined
def _source(state, shape, k, live, genes, row):
    """A new source for an argument of `k`: a near value, or a dead operation, most often with new arguments."""
    if _below(state, 100) < FRESH and k > 0:
        other = _below(state, k)
        for _ in range(4):
            if shape.operations[other, WRITES] == 0 and not live[other]:
                break
            other = _below(state, k)
        if shape.operations[other, WRITES] == 0:
            if not live[other]:
                for which in range(shape.operations[other, ARITY]):
                    if _below(state, 4) > 0:
                        genes[row, 3 * other + which] = _near_value(state, shape, other, live)
            return CONSTANTS + shape.registers + other
    return _near_value(state, shape, k, live)


@_inlined
def _live_wire(state, shape, live):
    """The index of a gene that matters, and its operation: an argument of a live operation, or a register's value.

    Registers come after all operations, so their values may use any of them: `k` is then the number of operations.
    """
    count = len(shape.operations)
    if _below(state, 3) > 0:
        for _ in range(32):
            k = _below(state, count)
            if live[k]:
                return 3 * k + _below(state, shape.operations[k, ARITY]), k
    return 3 * count + _below(state, shape.registers), count


@_inlined
def _rewire(state, shape, genes, row, live):
    """Change one wire of a row: take an operation out of it, put one in, exchange two wires, or join it elsewhere."""
    registers, count = shape.registers, len(shape.operations)
    first_output = CONSTANTS + registers
    wire, k = _live_wire(state, shape, live)
    what = _below(state, 100)
    behind = genes[row, wire] - first_output
    if what < 12 and behind >= 0:
        genes[row, wire] = genes[row, 3 * behind + _below(state, shape.operations[behind, ARITY])]
    elif 12 <= what < 30:
        if k > 0:
            other = _below(state, k)
            if shape.operations[other, WRITES] == 0 and genes[row, wire] < first_output + other and not live[other]:
                which = _below(state, shape.operations[other, ARITY])
                genes[row, 3 * other + which] = genes[row, wire]
                if shape.operations[other, ARITY] == 2 and _below(state, 3) > 0:
                    genes[row, 3 * other + 1 - which] = _near_value(state, shape, other, live)
                genes[row, wire] = first_output + other
    elif 30 <= what < 36:
        one, other = 3 * count + _below(state, registers), 3 * count + _below(state, registers)
        if k < count and shape.operations[k, ARITY] == 2:
            one, other = 3 * k, 3 * k + 1
        genes[row, one], genes[row, other] = genes[row, other], genes[row, one]
    else:
        genes[row, wire] = _source(state, shape, k, live, genes, row)


@_inner
def _inherit(state, shape, genes, row, other, live):
    """Connect a live wire as in another row, with the operations there that lead to it and are dead here."""
    count = len(shape.operations)
    first_output = CONSTANTS + shape.registers
    wire, k = _live_wire(state, shape, live)
    genes[row, wire] = genes[other, wire]
    needed = _bit_of(genes[row, wire] - first_output)
    for j in range(min(k, count, 64) - 1, -1, -1):
        if (needed >> np.uint64(j)) & np.uint64(1) == 1 and not live[j]:
            for which in range(shape.operations[j, ARITY]):
                genes[row, 3 * j + which] = genes[other, 3 * j + which]
                needed |= _bit_of(genes[row, 3 * j + which] - first_output)


@_inlined
def _bit_of(index):
    """A number with this bit; 0 for constants and registers, which are below 0, and for what a word has no bit for."""
    return np.uint64(1) << np.uint64(index) if 0 <= index < 64 else np.uint64(0)


@_inlined
def _toggle_write(state, shape, genes, row, live):
    """Remove a WRITE from a row, or put one in, most often with new arguments."""
    k = _below(state, len(shape.operations))
    for _ in range(64):
        if shape.operations[k, WRITES] == 1:
            break
        k = _below(state, len(shape.operations))
    if shape.operations[k, WRITES] == 1:
        genes[row, 3 * k + 2] ^= 1
        if genes[row, 3 * k + 2] == 1:
            for which in range(2):
                if _below(state, 3) > 0:
                    genes[row, 3 * k + which] = _source(state, shape, k, live, genes, row)


@_inlined
def _mutate(state, shape, holes, genes, row, live):
    """Change one row of a table; `live` tells which of its operations are live."""
    halt = 3 * len(shape.operations) + shape.registers
    kind = _below(state, 100)
    if kind < 4:
        genes[row, halt] ^= 1
    elif kind < 8:
        other = _below(state, len(genes))
        if _are_alike(holes, row, other):
            for g in range(genes.shape[1]):
                genes[row, g] = genes[other, g]
    elif kind < 12 and shape.states > 1:
        genes[row, halt + 1] = _below(state, shape.states)
    elif kind < 18:
        _toggle_write(state, shape, genes, row, live)
    elif kind < 28:
        other = _below(state, len(genes))
        if _are_alike(holes, row, other):
            _inherit(state, shape, genes, row, other, live)
    else:
        again = True
        while again:
            _rewire(state, shape, genes, row, live)
            again = _below(state, 3) == 0


@_compiled
def mutate(state, shape, genes, row, live):
    """The same, for Python to call. The search does not need it, so it does not compile it."""
    _mutate(state, shape, None, genes, row, live)


@_inlined
def _are_alike(holes, row, other):
    """Whether a row's genes mean the same in another row."""
    if holes is None:
        return True
    return holes.alike[row] >= 0 and holes.alike[row] == holes.alike[other]


@_inner
def _set_anew(state, shape, holes, genes, row):
    """Give one gene that may change any of its values."""
    first, registers = holes.first_place[row], shape.registers
    gene = holes.places[first + _below(state, holes.first_place[row + 1] - first)]
    count = len(shape.operations)
    k = min(gene // 3, count)
    if gene == 3 * count + registers:
        genes[row, gene] ^= 1
    elif gene == 3 * count + registers + 1:
        genes[row, gene] = _below(state, shape.states)
    elif k < count and gene % 3 == 2:
        if holes.choices[row, k, 1] > 0:
            genes[row, gene] = 1 + _below(state, holes.choices[row, k, 1])
        elif shape.operations[k, WRITES] == 1:
            genes[row, gene] ^= 1
    else:
        genes[row, gene] = _any_value(state, shape, k)


@_inlined
def _change_row(state, shape, holes, table, row, old, live):
    """Change one row of a table, and compile it."""
    if holes is None:
        _mutate(state, shape, holes, table.genes, row, live)
        compile_row(shape, table, row)
    else:
        row_shape = _shape_of_row(shape, holes, row)
        if holes.alike[row] < 0 and _below(state, 2) == 0:
            _set_anew(state, row_shape, holes, table.genes, row)
        else:
            _mutate(state, row_shape, holes, table.genes, row, live)
            for g in range(table.genes.shape[1]):
                if not holes.free[row, g]:
                    table.genes[row, g] = old.genes[0, g]
        _choose_modules(holes, table.genes, row)
        compile_row(row_shape, table, row)


@_inlined
def _neighbour(state, shape, holes, row):
    """The row whose flags are those of a row but for one."""
    flag = 1 << _below(state, shape.registers)
    if holes is None:
        return row ^ flag
    for at in range(len(holes.row_of)):
        if holes.row_of[at] == row:
            return np.int64(holes.row_of[at ^ flag])
    return row


@_inlined
def _follow_neighbour(state, shape, holes, table, row, visited):
    """Let a row that no run visits do what a visited row does whose flags are the same but one.

    A change elsewhere may lead runs to this row. Then they go on as if that flag did not matter, which is most often
    so, and not at random.
    """
    for _ in range(4):
        other = _neighbour(state, shape, holes, row)
        if other >= 0 and (visited >> np.uint64(other)) & np.uint64(1) == 1 and _are_alike(holes, row, other):
            _copy_row(table, other, table, row)
            break


@_inlined
def _change(state, shape, holes, table, visited, old, live):
    """Change a table: a row, or of a sketch a condition.

    Returns the row, or -1, and the rows, a bit each, that do something else than before or apply elsewhere.
    """
    row, changed = np.int64(-1), np.uint64(0)
    if not _is_for_conditions(state, holes):
        row = _choose_row(state, holes, len(table.genes), visited)
        _copy_row(table, row, old, 0)
        if (visited >> np.uint64(row)) & np.uint64(1) == 0 and _are_alike(holes, row, row):
            _follow_neighbour(state, shape, holes, table, row, visited)
        else:
            _change_row(state, shape, holes, table, row, old, live)
        if not _does_the_same(shape.registers, table, row, old):
            changed = np.uint64(1) << np.uint64(row)
    elif holes is not None:
        _copy_genes(holes.conditions, holes.old_conditions)
        _change_wish(state, holes, _below(state, len(holes.wishes)))
        changed = _choose_rows(holes)
    return row, changed


@_inlined
def _is_for_conditions(state, holes):
    """Whether the next change is one of conditions."""
    if holes is None:
        return False
    return len(holes.wishes) > 0 and (holes.may_change[0] == 0 or _below(state, 8) == 0)


@_inlined
def _undo(holes, table, row, old):
    """Undo a change."""
    if holes is None:
        _copy_row(old, 0, table, row)
    elif row >= 0:
        _copy_row(old, 0, table, row)
        _choose_modules(holes, table.genes, row)
    else:
        _copy_genes(holes.old_conditions, holes.conditions)
        _choose_rows(holes)


# ---- runs


def _new_runs(shape: Shape, table: Table, blocks: Blocks, holes: Holes | None = None) -> Runs:
    """Frames for all blocks, with room for the runs and their results."""
    count, lanes = len(blocks.starts), len(blocks.starts) * LANES
    memory = -(-blocks.starts.shape[1] // shape.per_word)
    values = CONSTANTS + shape.registers + len(shape.operations)
    frames = np.zeros((count, len(AT)), np.int64)
    runs = Runs(
        shape.run_block,
        frames.ctypes.data,
        frames,
        blocks.counts.reshape(lanes),
        np.zeros(lanes),
        np.zeros(lanes, np.uint64),
        np.zeros(lanes, np.int32),
        np.zeros(lanes),
        np.zeros(lanes, np.uint64),
        np.arange(count),
        np.zeros(count),
        np.zeros(count),
        np.ones(lanes),
        np.zeros(lanes),
        _lines(memory + values),
        shape.per_word,
        _lines(count * memory).reshape(count, memory * LINE),
        _lines(count * memory).reshape(count, memory * LINE),
    )
    shared = Frame._fields[: AT.starts]
    for at, name in enumerate(shared):
        frames[:, at] = getattr(table, name).ctypes.data
    parts = runs.starts, runs.wanted, blocks.sizes, blocks.limits
    for at, array in enumerate(parts, AT.starts):
        frames[:, at] = _addresses(array, count)
    room = runs.room
    frames[:, AT.memory], frames[:, AT.values] = room.ctypes.data, room[memory:].ctypes.data
    frames[:, AT.wrong], frames[:, AT.visited] = _addresses(runs.wrong, count), _addresses(runs.new_visited, count)
    if holes is not None:
        frames[:, AT.row_of] = holes.row_of.ctypes.data
    frames[:, AT.code_width], frames[:, AT.width] = table.code[0].size, table.genes.shape[1]
    _prepare_all(runs, blocks)
    return runs


def _lines(count: int) -> np.ndarray:
    """Zeros, int32 [lines, LINE], each a whole cache line: a vector across two of them would take longer."""
    room = np.zeros((count + 1) * LINE, np.int32)
    first = -room.ctypes.data // room.itemsize % LINE
    return room[first : first + count * LINE].reshape(count, LINE)


def _addresses(array: np.ndarray, blocks: int) -> np.ndarray:
    """The address of each block's part of an array."""
    return array.ctypes.data + array.nbytes // blocks * np.arange(blocks)


@_compiled
def _prepare_all(runs, blocks):
    _prepare_blocks(runs, blocks, 0, len(runs.frames))


@_inner
def _prepare_blocks(runs, blocks, first, after):
    """Put the instances of some blocks into the form of `run_block`.

    A block's own largest sizes come into its frame, so that a block of small instances takes little time.
    """
    for block in range(first, after):
        cells = longest = 0
        for word in range(runs.starts.shape[1]):
            runs.starts[block, word], runs.wanted[block, word] = 0, -1
        for lane in range(LANES):
            cells = max(cells, blocks.sizes[block, lane])
            longest = max(longest, blocks.limits[block, lane])
            for cell in range(blocks.sizes[block, lane]):
                _put_cell(runs.starts, runs.per_word, block, cell, lane, blocks.starts[block, cell, lane])
            for k in range(blocks.counts[block, lane]):
                cell = blocks.cells[block, k, lane]
                _put_cell(runs.wanted, runs.per_word, block, cell, lane, blocks.wanted[block, k, lane])
        runs.frames[block, AT.lines] = (cells + runs.per_word - 1) // runs.per_word
        runs.frames[block, AT.longest] = longest


@_inner
def _put_cell(words, per_word, block, cell, lane, value):
    """Write a cell; four of them share a word where they are bytes."""
    place, bits = cell * LANES + lane, 32 // per_word
    word, shift = place // per_word, place % per_word * bits
    others = ~(((1 << bits) - 1) << shift)
    words[block, word] = (words[block, word] & others) | (np.int64(value) << shift)


@_inner
def _run(runs, block, lanes):
    """Run some lanes of a block, a bit each. Returns those that halted."""
    runs.frames[block, AT.lanes] = lanes
    return _call(runs.run_block, runs.frames_address + 8 * len(AT) * block)  # pyright: ignore


@_inner
def _cost(runs, i, halted):
    """The cost of an instance whose block was just run."""
    cost = runs.wrong[i] / runs.counts[i]
    return runs.weight[i] * (cost if (halted >> (i % LANES)) & 1 else cost + NOT_HALTING)


def costs_of(shape: Shape, genes: np.ndarray, blocks: Blocks, costs: np.ndarray, holes: Holes | None = None) -> None:
    """Write the cost of a table on every instance to `costs`."""
    table = new_table(shape, genes, holes)
    _write_costs(_new_runs(shape, table, blocks, holes), costs)
    del table  # not before: frames hold its plain addresses


@_compiled
def _write_costs(runs, costs):
    for block in range(len(runs.frames)):
        count = min(LANES, len(costs) - block * LANES)
        halted = _run(runs, block, (1 << count) - 1)
        for i in range(block * LANES, block * LANES + count):
            costs[i] = _cost(runs, i, halted)


# ---- the chain


@_inner
def _length(table, visited):
    """The length of the rows that are visited."""
    length = 0
    for row in range(len(table.lengths)):
        if (visited >> np.uint64(row)) & np.uint64(1) == 1:
            length += table.lengths[row] + ROW_LENGTH
    return length


@_inner
def _first_evaluation(runs, table, active):
    """Run the first table on all instances in play."""
    cost = 0.0
    visited = np.uint64(0)
    for block in range((active + LANES - 1) // LANES):
        in_play = min(LANES, active - block * LANES)
        halted = _run(runs, block, (1 << in_play) - 1)
        for i in range(block * LANES, block * LANES + in_play):
            runs.cost[i], runs.visited[i] = _cost(runs, i, halted), runs.new_visited[i]
            cost += runs.cost[i]
            visited |= runs.visited[i]
    return Evaluation(cost, _length(table, visited), visited)


@_inner
def _choose_row(state, holes, rows, visited):
    """A row to change: most often one that is visited. A change of another has no effect yet."""
    row = _below(state, rows)
    if holes is None:
        if _below(state, 16) > 0:
            while (visited >> np.uint64(row)) & np.uint64(1) == 0:
                row = _below(state, rows)
    else:
        wanted = holes.may_change[0]
        if _below(state, 16) > 0 and visited & wanted != 0:
            wanted &= visited
        while (wanted >> np.uint64(row)) & np.uint64(1) == 0:
            row = _below(state, rows)
    return row


@_inlined
def _acceptable(state, settings, temperature, table, now, row):
    """The most energy, and the most cost of the instances, that a candidate may have.

    Metropolis' rule, with its random number drawn first: so a run can stop as soon as its cost is above the bound.
    """
    energy = now.cost + settings.length_cost * now.length - temperature * math.log(_uniform(state))
    bound = energy
    if row >= 0 and (now.visited >> np.uint64(row)) & np.uint64(1) == 1:  # it, at least, will be visited again
        bound -= settings.length_cost * table.lengths[row]
    if settings.must_fit:
        bound = min(bound, ZERO_COST)
    return energy, bound


@_inner
def _lanes_to_run(runs, active, changed):
    """Put the lanes that visited a changed row into the frames. Returns cost and visited rows of all others."""
    cost = 0.0
    visited = np.uint64(0)
    for block in range((active + LANES - 1) // LANES):
        lanes = 0
        for i in range(block * LANES, min(active, (block + 1) * LANES)):
            if runs.visited[i] & changed == 0:
                cost += runs.cost[i]
                visited |= runs.visited[i]
            else:
                lanes |= 1 << (i % LANES)
        runs.frames[block, AT.lanes] = lanes
    return cost, visited


@_inner
def _run_until_refused(runs, active, cost, visited, to_come, bound):
    """Run the lanes noted in the frames, block by block, while the cost is within the bound.

    `to_come` is what these lanes cost now. Returns cost and visited rows, and how many instances and steps this took.
    The cost of a candidate that is given up is infinite.
    """
    in_play = (active + LANES - 1) // LANES
    count = steps = q = 0
    while q < in_play and cost + STILL_TO_COME * to_come <= bound:
        block = runs.turn[q]
        lanes = runs.frames[block, AT.lanes]
        if lanes != 0:
            halted = _run(runs, block, lanes)
            for lane in range(LANES):
                if (lanes >> lane) & 1:
                    i = block * LANES + lane
                    runs.new_cost[i] = _cost(runs, i, halted)
                    cost += runs.new_cost[i]
                    to_come -= runs.cost[i]
                    visited |= runs.new_visited[i]
                    count += 1
            steps += runs.frames[block, AT.longest]
            runs.steps[block] += runs.frames[block, AT.longest] + BLOCK_STEPS
            if cost + STILL_TO_COME * to_come > bound:
                runs.refusals[block] += 1
        q += 1
    return cost if cost + STILL_TO_COME * to_come <= bound else math.inf, visited, count, steps


@_inner
def _take_turns(runs, active):
    """Order the blocks in play by the candidates that they refused a step, and forget half of that."""
    in_play = (active + LANES - 1) // LANES
    for last in range(1, in_play):
        block, q = runs.turn[last], last
        while q > 0 and runs.refusals[block] * runs.steps[runs.turn[q - 1]] > (
            runs.refusals[runs.turn[q - 1]] * runs.steps[block]
        ):
            runs.turn[q] = runs.turn[q - 1]
            q -= 1
        runs.turn[q] = block
    for block in range(in_play):
        runs.refusals[block] *= 0.5
        runs.steps[block] *= 0.5


@_inner
def _weigh(runs, active):
    """Let instances count more that were wrong most of the time, and the others less. Returns the cost of all now.

    A table that is right on many easy instances and wrong on the same few hard ones thus becomes worse with time, and
    the chain leaves it.
    """
    hardness = cost = 0.0
    for i in range(active):
        runs.hardness[i] += LATELY * ((1.0 if runs.cost[i] > 0 else 0.0) - runs.hardness[i])
        hardness += runs.hardness[i]
    for i in range(active):
        share = runs.hardness[i] * active / hardness if hardness > 0 else 1.0
        weight = min(MOST_WEIGHT, FOR_ALL + (1.0 - FOR_ALL) * share)
        runs.cost[i] *= weight / runs.weight[i]
        runs.weight[i] = weight
        cost += runs.cost[i]
    return cost


@_inner
def _keep(runs, active):
    """Make the candidate's costs and visited rows the current ones."""
    for block in range((active + LANES - 1) // LANES):
        lanes = runs.frames[block, AT.lanes]
        for lane in range(LANES):
            if (lanes >> lane) & 1:
                i = block * LANES + lane
                runs.cost[i], runs.visited[i] = runs.new_cost[i], runs.new_visited[i]


@_inner
def _exchange(blocks, one, other):
    """Exchange two instances between their lanes."""
    starts, sizes, limits, cells, wanted, counts = blocks
    b, i, c, j = one // LANES, one % LANES, other // LANES, other % LANES
    for address in range(starts.shape[1]):
        starts[b, address, i], starts[c, address, j] = starts[c, address, j], starts[b, address, i]
    for k in range(cells.shape[1]):
        cells[b, k, i], cells[c, k, j] = cells[c, k, j], cells[b, k, i]
        wanted[b, k, i], wanted[c, k, j] = wanted[c, k, j], wanted[b, k, i]
    sizes[b, i], sizes[c, j] = sizes[c, j], sizes[b, i]
    limits[b, i], limits[c, j] = limits[c, j], limits[b, i]
    counts[b, i], counts[c, j] = counts[c, j], counts[b, i]


@_inner
def _join(runs, table, blocks, active, instances, now):
    """Run the instances that are not in play until a few fail, and bring those into play.

    Returns how many join, how many were run, and the evaluation with them.
    """
    cost, visited = now.cost, now.visited
    joining = count = 0
    first = active
    while first < instances and joining < JOINING_AT_ONCE:
        block = first // LANES
        until = min(instances, (block + 1) * LANES)
        halted = _run(runs, block, ((1 << (until - first)) - 1) << (first % LANES))
        count += until - first
        for other in range(first, until):
            failed = _cost(runs, other, halted)
            if failed > 0 and joining < JOINING_AT_ONCE:
                i = active + joining
                _exchange(blocks, i, other)
                runs.cost[i], runs.visited[i] = failed, runs.new_visited[other]
                cost += failed
                visited |= runs.new_visited[other]
                joining += 1
        first = until
    for block in range(len(runs.turn)):
        runs.turn[block] = block  # more blocks may be in play now: `turn` must begin with just those
    _prepare_blocks(runs, blocks, active // LANES, (first + LANES - 1) // LANES)  # all that exchanged instances
    return joining, count, Evaluation(cost, _length(table, visited), visited)


@_inner
def _copy_genes(source, target):
    for row in range(source.shape[0]):
        for g in range(source.shape[1]):
            target[row, g] = source[row, g]


def run_chain(
    shape: Shape,
    genes: np.ndarray,
    blocks: Blocks,
    instances: int,
    settings: Annealing,
    monitor: np.ndarray,
    holes: Holes | None = None,
) -> ChainEnd:
    """Anneal `genes` in place.

    `blocks` hold this many `instances`; the chain exchanges them between lanes, so that those in play come first. The
    monitor is shared with the thread that waits: it sets STOP to end the chain, and reads CANDIDATES, COST and IN_PLAY.
    """
    table = new_table(shape, genes, holes)
    old = _room_for_row(table)
    work = Work(_seeded(settings.seed, 0x632BE59BD9B4E019), old, old.live[0], genes.copy())
    runs = _new_runs(shape, table, blocks, holes)
    return _anneal(shape, holes, table, runs, work, blocks, instances, settings, monitor)


def _room_for_row(table: Table) -> Table:
    """A table of one row."""
    return Table(*(np.zeros_like(array[:1]) for array in table))


@_compiled
def _anneal(shape, holes, table, runs, work, blocks, instances, settings, monitor):
    state, genes, old = work.state, table.genes, work.old
    active = instances if settings.must_fit else min(settings.at_first, instances)
    now = _first_evaluation(runs, table, active)
    best, shortest = now.cost, now.length
    ran, steps = active, 0
    temperature = settings.hot
    cooling = (settings.cold / settings.hot) ** (1.0 / settings.budget)

    for candidate in range(settings.budget):
        temperature *= cooling
        if candidate % LOOK_UP == 0 or steps > LOOK_UP_STEPS:
            steps = 0
            _take_turns(runs, active)
            if settings.weigh and candidate > 0:
                now = Evaluation(_weigh(runs, active), now.length, now.visited)
            monitor[CANDIDATES], monitor[COST], monitor[IN_PLAY] = candidate, now.cost, active
            if monitor[STOP] != 0:
                return ChainEnd(False, candidate, ran, best, active)
        row, changed = _change(state, shape, holes, table, now.visited, old, work.old_live)
        if changed == 0:
            continue
        energy, bound = _acceptable(state, settings, temperature, table, now, row)
        cost, visited = _lanes_to_run(runs, active, changed)
        cost, visited, more, more_steps = _run_until_refused(runs, active, cost, visited, now.cost - cost, bound)
        ran += more
        steps += more_steps
        length = _length(table, visited) if cost <= bound else 0
        if cost > bound or cost + settings.length_cost * length > energy:
            _undo(holes, table, row, old)
            continue
        now = Evaluation(cost, length, visited)
        _keep(runs, active)
        best = min(best, now.cost)
        if now.cost > ZERO_COST:
            continue
        if settings.must_fit:
            if now.length < shortest:
                shortest = now.length
                _copy_genes(genes, work.best)
                if holes is not None:
                    _copy_genes(holes.conditions, holes.best_conditions)
            continue
        joining, more, now = _join(runs, table, blocks, active, instances, now)
        ran += more
        if joining == 0:
            return ChainEnd(True, candidate + 1, ran, 0.0, active)
        active += joining
        best = now.cost
    if settings.must_fit:
        _copy_genes(work.best, genes)
        if holes is not None:
            _copy_genes(holes.best_conditions, holes.conditions)
        best = 0.0
    return ChainEnd(settings.must_fit, settings.budget, ran, best, active)
