"""The inner loop of the search: candidates changed, compiled to live code, run and judged. Compiled by Numba.

A candidate is a table of small integers, `genes[row]`, a row for every state and combination of flags:

    for each operation k: first argument, second argument, whether it is there (only WRITE can be absent)
    for each register: its new value; then halt (0 or 1); then the next state

Values are numbered: 0, 1, 2 are the constants, then the registers, then the operations' outputs.

What makes it fast: a change concerns one row, so only its operations are looked at again; a change that leaves the
row's live code as it was needs no run; only instances whose run visited the row are run again; and their runs stop
being counted as soon as the candidate is certain to be refused, the instances that refuse most often first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

CONSTANTS = 3
READ, INC, ADD, SUB, DEC, LESS, LESS_EQUAL, EQUAL, MIN, MAX, WRITE = range(11)
CODES = {
    "READ": READ,
    "INC": INC,
    "ADD": ADD,
    "SUB": SUB,
    "DEC": DEC,
    "LESS-THAN": LESS,
    "LESS-OR-EQUAL-THAN": LESS_EQUAL,
    "EQUALITY-TEST": EQUAL,
    "MIN": MIN,
    "MAX": MAX,
    "WRITE": WRITE,
}
GENES_PER_OPERATION = 3
ACTIVE_AT_FIRST = 12  # instances a chain starts with; those it gets wrong later join
JOINING_AT_ONCE = 4
LOOK_UP = 4096  # candidates between two looks at `watch`
NOT_HALTING = 0.25  # the cost of an instance on which it does not halt, in wholly wrong instances

_compiled: Any = njit(cache=True, nogil=True, boundscheck=False)


@_compiled
def _random(state):
    """xorshift64*: 63 random bits."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(1))


@_compiled
def _below(state, n):
    return (_random(state) >> 16) % n


@_compiled
def _uniform(state):
    return ((_random(state) >> 10) + 1) * (1.0 / 9007199254740993.0)


@_compiled
def pick_value(state, modules, registers, place):
    """A value that operation `place` may use: a constant, a register, or an earlier output that is not WRITE's."""
    while True:
        value = _below(state, CONSTANTS + registers + place)
        if value < CONSTANTS + registers or modules[value - CONSTANTS - registers] != WRITE:
            return value


@_compiled
def random_row(state, modules, registers, states, genes):
    count = len(modules)
    for k in range(count):
        genes[3 * k] = pick_value(state, modules, registers, k)
        genes[3 * k + 1] = pick_value(state, modules, registers, k)
        genes[3 * k + 2] = _below(state, 2) if modules[k] == WRITE else 1
    for r in range(registers):
        genes[3 * count + r] = pick_value(state, modules, registers, count)
    genes[3 * count + registers] = _below(state, 5) == 0
    genes[3 * count + registers + 1] = _below(state, states)


@_compiled
def compile_row(modules, arity, registers, genes, code, live):
    """The operations of a row that matter, as (module, first, second, output); returns how many."""
    count = len(modules)
    first_output = CONSTANTS + registers
    for k in range(count):
        live[k] = False
    if genes[3 * count + registers] == 0:
        for r in range(registers):
            value = genes[3 * count + r] - first_output
            if value >= 0:
                live[value] = True
    for k in range(count - 1, -1, -1):
        if modules[k] == WRITE:
            live[k] = genes[3 * k + 2] == 1
        if live[k]:
            for which in range(arity[k]):
                value = genes[3 * k + which] - first_output
                if value >= 0:
                    live[value] = True
    length = 0
    for k in range(count):
        if live[k]:
            code[length, 0] = modules[k]
            code[length, 1] = genes[3 * k]
            code[length, 2] = genes[3 * k + 1] if arity[k] == 2 else 0
            code[length, 3] = first_output + k
            length += 1
    return length


@_compiled
def run_instance(registers, genes, code, lengths, start, size, limit, cells, wanted, cell_count, memory, values, held):
    """Run one instance: its cost, and the rows it visited as bits."""
    for address in range(size):
        memory[address] = start[address]
    for number in range(CONSTANTS):
        values[number] = number
    for r in range(registers):
        values[CONSTANTS + r] = 0
    updates = genes.shape[1] - registers - 2
    visited = np.uint64(0)
    halted = False
    row = (1 << registers) - 1
    for _ in range(limit):
        visited |= np.uint64(1) << np.uint64(row)
        for j in range(lengths[row]):
            module = code[row, j, 0]
            x = values[code[row, j, 1]]
            y = values[code[row, j, 2]]
            if module == READ:
                z = memory[x]
            elif module == INC:
                z = x + 1 if x + 1 < size else 0
            elif module == ADD:
                z = x + y if x + y < size else x + y - size
            elif module == SUB:
                z = x - y if x >= y else x - y + size
            elif module == DEC:
                z = x - 1 if x > 0 else size - 1
            elif module == LESS:
                z = 1 if x < y else 0
            elif module == LESS_EQUAL:
                z = 1 if x <= y else 0
            elif module == EQUAL:
                z = 1 if x == y else 0
            elif module == MIN:
                z = x if x < y else y
            elif module == MAX:
                z = x if x > y else y
            else:
                memory[x] = y
                z = 0
            values[code[row, j, 3]] = z
        if genes[row, updates + registers] == 1:
            halted = True
            break
        for r in range(registers):
            held[r] = values[genes[row, updates + r]]
        row = genes[row, updates + registers + 1] << registers
        for r in range(registers):
            values[CONSTANTS + r] = held[r]
            if held[r] == 0:
                row |= 1 << r
    wrong = 0
    for c in range(cell_count):
        if memory[cells[c]] != wanted[c]:
            wrong += 1
    cost = wrong / cell_count
    return (cost if halted else cost + NOT_HALTING), visited


@_compiled
def judge(modules, arity, registers, genes, starts, sizes, limits, cells, wanted, cell_counts, costs):
    """The cost of every instance."""
    rows, count = len(genes), len(modules)
    code = np.zeros((rows, count, 4), np.int16)
    lengths = np.zeros(rows, np.int64)
    live = np.zeros(count, np.bool_)
    memory = np.zeros(starts.shape[1], np.int32)
    values = np.zeros(CONSTANTS + registers + count, np.int32)
    held = np.zeros(registers, np.int32)
    for row in range(rows):
        lengths[row] = compile_row(modules, arity, registers, genes[row], code[row], live)
    for i in range(len(sizes)):
        costs[i], _ = run_instance(
            registers,
            genes,
            code,
            lengths,
            starts[i],
            sizes[i],
            limits[i],
            cells[i],
            wanted[i],
            cell_counts[i],
            memory,
            values,
            held,
        )


@_compiled
def random_genes(seed, modules, registers, states, genes):
    """Fill a table at random."""
    state = np.empty(1, np.uint64)
    state[0] = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(0x2545F4914F6CDD1D)
    for _ in range(16):
        _random(state)
    for row in range(len(genes)):
        random_row(state, modules, registers, states, genes[row])


@_compiled
def _mutate(state, modules, arity, registers, states, genes, row):
    """Change one row."""
    count = len(modules)
    first_output = CONSTANTS + registers
    updates = 3 * count
    kind = _below(state, 100)
    if kind < 4:
        genes[row, updates + registers] ^= 1
    elif kind < 8:
        other = _below(state, len(genes))
        for g in range(genes.shape[1]):
            genes[row, g] = genes[other, g]
    elif kind < 12 and states > 1:
        genes[row, updates + registers + 1] = _below(state, states)
    elif kind < 24:
        # Insert an operation into a wire, or take one out of it.
        wire = updates + _below(state, registers)
        place = count
        if _below(state, 2) == 0:
            place = _below(state, count)
            wire = 3 * place + _below(state, arity[place])
        source = genes[row, wire] - first_output
        if kind < 18 and place > 0:
            k = _below(state, place)
            if modules[k] != WRITE and genes[row, wire] < first_output + k:
                genes[row, 3 * k + _below(state, arity[k])] = genes[row, wire]
                genes[row, wire] = first_output + k
        elif source >= 0:
            genes[row, wire] = genes[row, 3 * source + _below(state, arity[source])]
    else:
        while True:
            if _below(state, 3) == 0:
                genes[row, updates + _below(state, registers)] = pick_value(state, modules, registers, count)
            else:
                k = _below(state, count)
                if modules[k] == WRITE and _below(state, 3) == 0:
                    genes[row, 3 * k + 2] ^= 1
                else:
                    genes[row, 3 * k + _below(state, arity[k])] = pick_value(state, modules, registers, k)
            if _below(state, 3) > 0:
                return


@_compiled
def run_chain(
    seed,
    modules,
    arity,
    registers,
    states,
    genes,
    starts,
    sizes,
    limits,
    cells,
    wanted,
    cell_counts,
    budget,
    hot,
    cold,
    length_cost,
    must_fit,
    watch,
):
    """Anneal `genes` in place for at most `budget` candidates.

    Returns (whether it fits every instance, candidates, runs of instances, the least cost seen, instances in play).
    `length_cost` is the cost of a live operation in a row that is visited. With `must_fit` the start must fit, only
    candidates that fit too are taken, the whole budget is used, and `genes` ends as the best of them: for shortening.
    `watch` is for whoever waits: it says stop if its first number is not 0, and is told the candidates so far, the cost
    and the instances in play.
    """
    count = len(modules)
    rows, width = genes.shape
    total_instances = len(sizes)
    state = np.empty(1, np.uint64)
    state[0] = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    for _ in range(16):
        _random(state)

    code = np.zeros((rows, count, 4), np.int16)
    lengths = np.zeros(rows, np.int64)
    old_code = np.zeros((count, 4), np.int16)
    old_genes = np.zeros(width, np.int16)
    best_genes = genes.copy()
    live = np.zeros(count, np.bool_)
    memory = np.zeros(starts.shape[1], np.int32)
    values = np.zeros(CONSTANTS + registers + count, np.int32)
    held = np.zeros(registers, np.int32)
    cost = np.zeros(total_instances)
    new_cost = np.zeros(total_instances)
    visited = np.zeros(total_instances, np.uint64)
    new_visited = np.zeros(total_instances, np.uint64)
    rerun = np.zeros(total_instances, np.int64)
    order = np.arange(total_instances)
    for i in range(total_instances - 1, 0, -1):
        j = _below(state, i + 1)
        order[i], order[j] = order[j], order[i]
    active = total_instances if must_fit else min(ACTIVE_AT_FIRST, total_instances)

    for row in range(rows):
        lengths[row] = compile_row(modules, arity, registers, genes[row], code[row], live)
    total = 0.0
    anywhere = np.uint64(0)
    for q in range(active):
        i = order[q]
        cost[i], visited[i] = run_instance(
            registers,
            genes,
            code,
            lengths,
            starts[i],
            sizes[i],
            limits[i],
            cells[i],
            wanted[i],
            cell_counts[i],
            memory,
            values,
            held,
        )
        total += cost[i]
        anywhere |= visited[i]
    best = total
    shortest = 1 << 30
    runs = active
    temperature = hot
    cooling = (cold / hot) ** (1.0 / budget)

    for candidate in range(budget):
        temperature *= cooling
        if candidate % LOOK_UP == 0:
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
        _mutate(state, modules, arity, registers, states, genes, row)
        lengths[row] = compile_row(modules, arity, registers, genes[row], code[row], live)

        halts = genes[row, width - 2] == 1
        same = lengths[row] == old_length and genes[row, width - 2] == old_genes[width - 2]
        if same and not halts:
            for g in range(width - 2 - registers, width):
                same = same and genes[row, g] == old_genes[g]
        if same:
            for j in range(old_length):
                for part in range(4):
                    same = same and code[row, j, part] == old_code[j, part]
        if same:
            continue

        bit = np.uint64(1) << np.uint64(row)
        longer = 0.0
        if anywhere & bit != 0:
            longer = length_cost * (lengths[row] - old_length)
        bound = total - longer - temperature * math.log(_uniform(state))
        if must_fit:
            bound = min(bound, 1e-9)
            if longer > 0 and _uniform(state) > math.exp(-longer / temperature):
                bound = -1.0
        new_total = 0.0
        for q in range(active):
            if visited[order[q]] & bit == 0:
                new_total += cost[order[q]]
        taken = new_total <= bound
        count_rerun = 0
        if taken:
            for q in range(active):
                i = order[q]
                if visited[i] & bit != 0:
                    new_cost[i], new_visited[i] = run_instance(
                        registers,
                        genes,
                        code,
                        lengths,
                        starts[i],
                        sizes[i],
                        limits[i],
                        cells[i],
                        wanted[i],
                        cell_counts[i],
                        memory,
                        values,
                        held,
                    )
                    rerun[count_rerun] = i
                    count_rerun += 1
                    new_total += new_cost[i]
                    if new_total > bound:
                        taken = False
                        if q > 0:
                            order[q], order[q - 1] = order[q - 1], order[q]
                        break
        runs += count_rerun
        if not taken:
            for g in range(width):
                genes[row, g] = old_genes[g]
            lengths[row] = old_length
            for j in range(old_length):
                for part in range(4):
                    code[row, j, part] = old_code[j, part]
            continue
        total = new_total
        for q in range(count_rerun):
            cost[rerun[q]] = new_cost[rerun[q]]
            visited[rerun[q]] = new_visited[rerun[q]]
        anywhere = np.uint64(0)
        for q in range(active):
            anywhere |= visited[order[q]]
        best = min(best, total)
        if total > 1e-9:
            continue
        if must_fit:
            length = 0
            for r in range(rows):
                if (anywhere >> np.uint64(r)) & np.uint64(1) == 1:
                    length += lengths[r] + 1
            if length < shortest:
                shortest = length
                best_genes[:] = genes
            continue
        joining = 0
        for q in range(active, total_instances):
            i = order[q]
            cost[i], visited[i] = run_instance(
                registers,
                genes,
                code,
                lengths,
                starts[i],
                sizes[i],
                limits[i],
                cells[i],
                wanted[i],
                cell_counts[i],
                memory,
                values,
                held,
            )
            runs += 1
            if cost[i] > 0 and joining < JOINING_AT_ONCE:
                order[active + joining], order[q] = order[q], order[active + joining]
                joining += 1
                total += cost[i]
                anywhere |= visited[i]
        if joining == 0:
            return True, candidate + 1, runs, 0.0, active
        active += joining
        best = total
    if must_fit:
        genes[:] = best_genes
        return True, budget, runs, 0.0, active
    return False, budget, runs, best, active
