"""The inner loop of the search: candidates changed, compiled to live code, run and judged. Compiled by Numba.

A candidate is a table of small integers, `genes[row]`, a row for every state and combination of flags:

    for each operation k: first argument, second argument, whether it is there (only WRITE can be absent)
    for each register: its new value; then halt (0 or 1); then the next state

Values are numbered: 0, 1, 2 are the constants, then the registers, then the operations' outputs. `operations[k]` is
(number of the module, its arguments, whether it writes).

What makes it fast: a change concerns one row, so only its operations are looked at again; a change that leaves the
row's live code as it was needs no run; only instances whose run visited the row are run again, sixteen at a time
(`lanes`); and a candidate is given up as soon as it is certain to be refused, the blocks that refuse most first.

One file, although it has parts (chance, tables, changes, blocks, the chain): Numba keeps the machine code of a function
until its own file changes, so functions called from another file would stay as they were.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from nram.search.lanes import CONSTANTS, FRAME, LANES

JOINING_AT_ONCE = 4  # instances that a chain gets wrong and has not had in play
LOOK_UP = 4096  # candidates between two looks at `watch`, unless they take
LOOK_UP_STEPS = 1 << 21  # steps of lanes
NOT_HALTING = 0.25  # the cost of an instance on which it does not halt, in wholly wrong instances
ROW_LENGTH = 2  # what a row that is visited counts beside its operations
FRESH = 35  # of 100 new sources are an operation that was dead before

CODE, LENGTHS, GENES, OPERATIONS, WIDTH, REGISTERS = range(6)
(STARTS, SIZES, LIMITS, CELLS, WANTED, COUNTS, MOST_CELLS, MOST_OUTPUTS, LONGEST, AT_WORK) = range(6, 16)
MEMORY, VALUES, HELD, WRONG, VISITED = range(16, 21)
assert len(FRAME) == 21


def _compiled(function) -> Any:
    try:
        return njit(cache=True, nogil=True, boundscheck=False)(function)
    except RuntimeError:  # nowhere to keep it: a user without a home, a package that cannot be written to
        return njit(nogil=True, boundscheck=False)(function)


@intrinsic
def _call(_typing, _address, _frame):  # pyright: ignore
    """A function at an address, called with another address."""
    from llvmlite import ir

    def generate(_context, builder, _signature, arguments):
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1]])

    return types.int64(types.int64, types.int64), generate


@_compiled
def _random(state):
    """xorshift64*: 64 random bits."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(2685821657736338717)


@_compiled
def _below(state, n):
    return np.int64(((_random(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@_compiled
def _uniform(state):
    return (np.float64(_random(state) >> np.uint64(11)) + 1.0) * (1.0 / 9007199254740993.0)


@_compiled
def _seeded(seed, constant):
    state = np.empty(1, np.uint64)
    state[0] = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(constant)
    for _ in range(16):
        _random(state)
    return state


# ---- tables


@_compiled
def _any_value(state, operations, registers, place):
    """A value that operation `place` may use: a constant, a register, or an earlier output that is not WRITE's."""
    while True:
        value = _below(state, CONSTANTS + registers + place)
        if value < CONSTANTS + registers or operations[value - CONSTANTS - registers, 2] == 0:
            return value


@_compiled
def random_genes(seed, operations, registers, states, genes):
    """Fill a table at random."""
    state = _seeded(seed, 0x2545F4914F6CDD1D)
    count = len(operations)
    for row in range(len(genes)):
        for k in range(count):
            genes[row, 3 * k] = _any_value(state, operations, registers, k)
            genes[row, 3 * k + 1] = _any_value(state, operations, registers, k)
            genes[row, 3 * k + 2] = _below(state, 2) if operations[k, 2] == 1 else 1
        for r in range(registers):
            genes[row, 3 * count + r] = _any_value(state, operations, registers, count)
        genes[row, 3 * count + registers] = _below(state, 5) == 0
        genes[row, 3 * count + registers + 1] = _below(state, states)


@_compiled
def compile_row(operations, registers, genes, code, live):
    """The operations of a row that matter, as (module, first, second, output); returns how many."""
    count = len(operations)
    first_output = CONSTANTS + registers
    for k in range(count):
        live[k] = False
    if genes[3 * count + registers] == 0:
        for r in range(registers):
            value = genes[3 * count + r] - first_output
            if value >= 0:
                live[value] = True
    for k in range(count - 1, -1, -1):
        if operations[k, 2] == 1:
            live[k] = genes[3 * k + 2] == 1
        if live[k]:
            for which in range(operations[k, 1]):
                value = genes[3 * k + which] - first_output
                if value >= 0:
                    live[value] = True
    length = 0
    for k in range(count):
        if live[k]:
            code[length, 0] = operations[k, 0]
            code[length, 1] = genes[3 * k]
            code[length, 2] = genes[3 * k + 1] if operations[k, 1] == 2 else 0
            code[length, 3] = first_output + k
            length += 1
    return length


# ---- changes


@_compiled
def _near_value(state, operations, registers, place, live):
    """A constant, a register, or an output that is in use already."""
    kind = _below(state, 8)
    if kind == 0:
        return _below(state, CONSTANTS)
    if kind >= 4 and place > 0:
        for _ in range(6):
            k = _below(state, place)
            if live[k] and operations[k, 2] == 0:
                return CONSTANTS + registers + k
    return CONSTANTS + _below(state, registers)


@_compiled
def _source(state, operations, registers, place, live, genes):
    """What a wire may be joined to: a near value, or an operation that was dead, most often with new arguments."""
    if _below(state, 100) < FRESH and place > 0:
        k = _below(state, place)
        for _ in range(4):
            if operations[k, 2] == 0 and not live[k]:
                break
            k = _below(state, place)
        if operations[k, 2] == 0:
            if not live[k]:
                for which in range(operations[k, 1]):
                    if _below(state, 4) > 0:
                        genes[3 * k + which] = _near_value(state, operations, registers, k, live)
            return CONSTANTS + registers + k
    return _near_value(state, operations, registers, place, live)


@_compiled
def _live_wire(state, operations, registers, live):
    """An argument of a live operation, or the new value of a register: its place among the genes, and whose it is."""
    count = len(operations)
    if _below(state, 3) > 0:
        for _ in range(32):
            k = _below(state, count)
            if live[k]:
                return 3 * k + _below(state, operations[k, 1]), k
    return 3 * count + _below(state, registers), count


@_compiled
def _rewire(state, operations, registers, genes, live):
    """Change one wire of a row: join it elsewhere, take an operation out of it, put one in, or exchange two."""
    count = len(operations)
    first_output = CONSTANTS + registers
    wire, place = _live_wire(state, operations, registers, live)
    what = _below(state, 100)
    behind = genes[wire] - first_output
    if what < 12 and behind >= 0:
        genes[wire] = genes[3 * behind + _below(state, operations[behind, 1])]
    elif 12 <= what < 30:
        if place > 0:
            k = _below(state, place)
            if operations[k, 2] == 0 and genes[wire] < first_output + k and not live[k]:
                which = _below(state, operations[k, 1])
                genes[3 * k + which] = genes[wire]
                if operations[k, 1] == 2 and _below(state, 3) > 0:
                    genes[3 * k + 1 - which] = _near_value(state, operations, registers, k, live)
                genes[wire] = first_output + k
    elif 30 <= what < 36:
        one, other = 3 * count + _below(state, registers), 3 * count + _below(state, registers)
        if place < count and operations[place, 1] == 2:
            one, other = 3 * place, 3 * place + 1
        genes[one], genes[other] = genes[other], genes[one]
    else:
        genes[wire] = _source(state, operations, registers, place, live, genes)


@_compiled
def _mutate(state, operations, registers, states, genes, row, live):
    """Change one row; `live` says which of its operations are."""
    count = len(operations)
    halt = 3 * count + registers
    kind = _below(state, 100)
    if kind < 4:
        genes[row, halt] ^= 1
    elif kind < 8:
        other = _below(state, len(genes))
        for g in range(genes.shape[1]):
            genes[row, g] = genes[other, g]
    elif kind < 12 and states > 1:
        genes[row, halt + 1] = _below(state, states)
    elif kind < 18:
        k = _below(state, count)
        for _ in range(64):
            if operations[k, 2] == 1:
                break
            k = _below(state, count)
        if operations[k, 2] == 1:
            genes[row, 3 * k + 2] ^= 1
            if genes[row, 3 * k + 2] == 1:
                for which in range(2):
                    if _below(state, 3) > 0:
                        genes[row, 3 * k + which] = _source(state, operations, registers, k, live, genes[row])
    else:
        _rewire(state, operations, registers, genes[row], live)
        while _below(state, 3) == 0:
            _rewire(state, operations, registers, genes[row], live)


# ---- blocks of instances


@_compiled
def _exchange(one, other, starts, sizes, limits, cells, wanted, counts):
    """Exchange two instances between their lanes."""
    b, i, c, j = one // LANES, one % LANES, other // LANES, other % LANES
    for address in range(starts.shape[1]):
        starts[b, address, i], starts[c, address, j] = starts[c, address, j], starts[b, address, i]
    for number in range(cells.shape[1]):
        cells[b, number, i], cells[c, number, j] = cells[c, number, j], cells[b, number, i]
        wanted[b, number, i], wanted[c, number, j] = wanted[c, number, j], wanted[b, number, i]
    sizes[b, i], sizes[c, j] = sizes[c, j], sizes[b, i]
    limits[b, i], limits[c, j] = limits[c, j], limits[b, i]
    counts[b, i], counts[c, j] = counts[c, j], counts[b, i]


@_compiled
def _room(operations, registers, genes, code, lengths, blocks, frame):
    """Fill what stays in a frame for the whole of a chain; where the results will stand.

    All room is one array: while a part of it is in use, none of it is given back.
    """
    values = blocks[0].shape[1]
    held = values + CONSTANTS + registers + len(operations)
    results = held + registers
    room = np.zeros((results + 3, LANES), np.int32)
    frame[CODE], frame[LENGTHS], frame[GENES] = code.ctypes.data, lengths.ctypes.data, genes.ctypes.data
    frame[OPERATIONS], frame[WIDTH], frame[REGISTERS] = len(operations), genes.shape[1], registers
    frame[MEMORY], frame[VALUES], frame[HELD] = room.ctypes.data, room[values:].ctypes.data, room[held:].ctypes.data
    frame[WRONG], frame[VISITED] = room[results:].ctypes.data, room[results + 1 :].ctypes.data
    return room[results], room[results + 1 :].reshape(2 * LANES).view(np.uint64)


@_compiled
def _run(run_block, frame, blocks, block, lanes):
    """Run some lanes of a block; which of them halted. The block's own sizes count, not the largest of the pool."""
    starts, sizes, limits, cells, wanted, counts = blocks
    frame[STARTS], frame[SIZES], frame[LIMITS] = (
        starts[block].ctypes.data,
        sizes[block].ctypes.data,
        limits[block].ctypes.data,
    )
    frame[CELLS], frame[WANTED], frame[COUNTS] = (
        cells[block].ctypes.data,
        wanted[block].ctypes.data,
        counts[block].ctypes.data,
    )
    longest = most_cells = most_outputs = 0
    for lane in range(LANES):
        longest = max(longest, limits[block, lane])
        most_cells = max(most_cells, sizes[block, lane])
        most_outputs = max(most_outputs, counts[block, lane])
    frame[MOST_CELLS], frame[MOST_OUTPUTS] = most_cells, most_outputs
    frame[LONGEST], frame[AT_WORK] = longest, lanes
    return _call(run_block, frame.ctypes.data)  # pyright: ignore[reportCallIssue]


@_compiled
def _cost(wrong, counts, halted, lane):
    cost = wrong[lane] / counts[lane]
    return cost if (halted >> lane) & 1 else cost + NOT_HALTING


@_compiled
def judge(run_block, operations, registers, genes, blocks, total_instances, costs):
    """The cost of every instance."""
    code = np.zeros((len(genes), len(operations), 4), np.int16)
    lengths = np.zeros(len(genes), np.int64)
    live = np.zeros(len(operations), np.bool_)
    frame = np.zeros(len(FRAME), np.int64)
    wrong, _ = _room(operations, registers, genes, code, lengths, blocks, frame)
    for row in range(len(genes)):
        lengths[row] = compile_row(operations, registers, genes[row], code[row], live)
    for block in range(len(blocks[0])):
        count = min(LANES, total_instances - block * LANES)
        halted = _run(run_block, frame, blocks, block, (1 << count) - 1)
        for lane in range(count):
            costs[block * LANES + lane] = _cost(wrong, blocks[5][block], halted, lane)
    # The frame holds addresses only: what they lead to must be in use until here.
    return len(code) + len(lengths)


@_compiled
def _length(lengths, anywhere):
    """Of the rows that are visited."""
    length = 0
    for row in range(len(lengths)):
        if (anywhere >> np.uint64(row)) & np.uint64(1) == 1:
            length += lengths[row] + ROW_LENGTH
    return length


@_compiled
def run_chain(
    run_block,
    seed,
    operations,
    registers,
    states,
    genes,
    blocks,
    total_instances,
    budget,
    hot,
    cold,
    length_cost,
    at_first,
    must_fit,
    watch,
):
    """Anneal `genes` in place for at most `budget` candidates.

    Returns (whether it fits every instance, candidates, runs of instances, the least cost seen, instances in play).
    `blocks` are the instances in their lanes, which change places here; the first `at_first` are in play at once,
    others join when they are got wrong. `length_cost` is the cost of a live operation in a row that is visited. With
    `must_fit` the start must fit, only candidates that fit too are taken, the whole budget is used, and `genes` ends
    as the shortest of them. `watch` is for whoever waits: it says stop if its first number is not 0, and is told the
    candidates so far, the cost and the instances in play.
    """
    state = _seeded(seed, 0x632BE59BD9B4E019)
    count = len(operations)
    rows, width = genes.shape
    starts, sizes, limits, cells, wanted, counts = blocks
    active = total_instances if must_fit else min(at_first, total_instances)

    code = np.zeros((rows, count, 4), np.int16)
    lengths = np.zeros(rows, np.int64)
    live = np.zeros((rows, count), np.bool_)
    old_code = np.zeros((count, 4), np.int16)
    old_genes = np.zeros(width, np.int16)
    old_live = np.zeros(count, np.bool_)
    best_genes = genes.copy()
    frame = np.zeros(len(FRAME), np.int64)
    wrong, seen = _room(operations, registers, genes, code, lengths, blocks, frame)
    cost = np.zeros(len(starts) * LANES)
    new_cost = np.zeros(len(starts) * LANES)
    visited = np.zeros(len(starts) * LANES, np.uint64)
    new_visited = np.zeros(len(starts) * LANES, np.uint64)
    rerun = np.zeros(len(starts), np.int64)  # lanes, a bit each
    turn = np.arange(len(starts))  # the blocks, those that refuse first

    for row in range(rows):
        lengths[row] = compile_row(operations, registers, genes[row], code[row], live[row])
    total = 0.0
    anywhere = np.uint64(0)
    for block in range((active + LANES - 1) // LANES):
        in_play = min(LANES, active - block * LANES)
        halted = _run(run_block, frame, blocks, block, (1 << in_play) - 1)
        for lane in range(in_play):
            place = block * LANES + lane
            cost[place], visited[place] = _cost(wrong, counts[block], halted, lane), seen[lane]
            total += cost[place]
            anywhere |= visited[place]
    length = _length(lengths, anywhere)
    best = total
    shortest = length if must_fit else 1 << 30
    runs = active
    work = 0
    temperature = hot
    cooling = (cold / hot) ** (1.0 / budget)

    for candidate in range(budget):
        temperature *= cooling
        if candidate % LOOK_UP == 0 or work > LOOK_UP_STEPS:
            work = 0
            watch[1], watch[2], watch[3] = candidate, total, active
            if watch[0] != 0:
                return False, candidate, runs, best, active
        row = _below(state, rows)
        if _below(state, 16) > 0:
            while (anywhere >> np.uint64(row)) & np.uint64(1) == 0:
                row = _below(state, rows)
        for g in range(width):
            old_genes[g] = genes[row, g]
        old_length = lengths[row]
        for j in range(old_length):
            for part in range(4):
                old_code[j, part] = code[row, j, part]
        for k in range(count):
            old_live[k] = live[row, k]
        _mutate(state, operations, registers, states, genes, row, old_live)
        lengths[row] = compile_row(operations, registers, genes[row], code[row], live[row])

        same = lengths[row] == old_length and genes[row, width - 2] == old_genes[width - 2]
        if same and genes[row, width - 2] == 0:
            for g in range(width - 2 - registers, width):
                same = same and genes[row, g] == old_genes[g]
        if same:
            for j in range(old_length):
                for part in range(4):
                    same = same and code[row, j, part] == old_code[j, part]
        if same:
            continue

        bit = np.uint64(1) << np.uint64(row)
        energy = total + length_cost * length - temperature * math.log(_uniform(state))
        bound = energy
        if anywhere & bit != 0:
            bound -= length_cost * lengths[row]
        if must_fit:
            bound = min(bound, 1e-9)
        new_total = 0.0
        now = np.uint64(0)
        blocks_in_play = (active + LANES - 1) // LANES
        for block in range(blocks_in_play):
            lanes = 0
            for place in range(block * LANES, min(active, (block + 1) * LANES)):
                if visited[place] & bit == 0:
                    new_total += cost[place]
                    now |= visited[place]
                else:
                    lanes |= 1 << (place - block * LANES)
            rerun[block] = lanes
        new_length = length
        taken = new_total <= bound
        if taken:
            for q in range(blocks_in_play):
                block = turn[q]
                if rerun[block] == 0:
                    continue
                halted = _run(run_block, frame, blocks, block, rerun[block])
                work += frame[LONGEST]
                for lane in range(LANES):
                    if (rerun[block] >> lane) & 1:
                        place = block * LANES + lane
                        new_cost[place] = _cost(wrong, counts[block], halted, lane)
                        new_visited[place] = seen[lane]
                        new_total += new_cost[place]
                        now |= seen[lane]
                        runs += 1
                if new_total > bound:
                    taken = False
                    if q > 0:
                        turn[q], turn[q - 1] = turn[q - 1], turn[q]
                    break
        if taken:
            new_length = _length(lengths, now)
            taken = new_total + length_cost * new_length <= energy
        if not taken:
            for g in range(width):
                genes[row, g] = old_genes[g]
            lengths[row] = old_length
            for j in range(old_length):
                for part in range(4):
                    code[row, j, part] = old_code[j, part]
            for k in range(count):
                live[row, k] = old_live[k]
            continue
        total, length, anywhere = new_total, new_length, now
        for block in range(blocks_in_play):
            for lane in range(LANES):
                if (rerun[block] >> lane) & 1:
                    place = block * LANES + lane
                    cost[place], visited[place] = new_cost[place], new_visited[place]
        best = min(best, total)
        if total > 1e-9:
            continue
        if must_fit:
            if length < shortest:
                shortest = length
                best_genes[:] = genes
            continue

        # It fits what is in play: those of the others that it gets wrong join.
        joining = 0
        place = active
        while place < total_instances and joining < JOINING_AT_ONCE:
            block = place // LANES
            until = min(total_instances, (block + 1) * LANES)
            lanes = ((1 << (until - place)) - 1) << (place - block * LANES)
            halted = _run(run_block, frame, blocks, block, lanes)
            runs += until - place
            for other in range(place, until):
                lane = other - block * LANES
                failed = _cost(wrong, counts[block], halted, lane)
                if failed > 0 and joining < JOINING_AT_ONCE:
                    where = active + joining
                    _exchange(where, other, starts, sizes, limits, cells, wanted, counts)
                    cost[where], visited[where] = failed, seen[lane]
                    total += failed
                    anywhere |= seen[lane]
                    joining += 1
            place = until
        if joining == 0:
            return True, candidate + 1, runs, 0.0, active
        active += joining
        length = _length(lengths, anywhere)
        best = total
        # The order of blocks must stay one of those in play.
        for q in range(len(turn)):
            turn[q] = q
    if must_fit:
        genes[:] = best_genes
        return True, budget, runs, 0.0, active
    return False, budget, runs, best, active
