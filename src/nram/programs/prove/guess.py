"""Guess an invariant from recorded runs: places, cells by name, arrays, and many facts that may turn out wrong."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from nram.limits import StepLimit
from nram.programs.ir import Program, Register
from nram.programs.prove.bank import Bank, affine, independent
from nram.programs.prove.compared import Compared, phase_of, read_registers
from nram.programs.prove.deadline import check_time
from nram.programs.prove.earlier import earlier_visits
from nram.programs.prove.invariant import INDEX, Array, Cell, History, Invariant, Range, register_variables, visits_of
from nram.programs.prove.runs import Inputs, Moment, Recorded, places_of
from nram.programs.prove.step import row_condition, row_of
from nram.tasks.base import Task
from nram.tasks.claim import SIZE, N
from nram.terms import (
    Term,
    children,
    choose,
    equal,
    evaluated,
    number,
    substituted,
    total,
    variables,
)

MOST_POINTS = 400  # of one place
FEW_POINTS = 60
MOST_WRITERS = 8  # of an array
MOST_WRAPPED = 0.2  # of the writes to an array
MOST_ADDRESSES = 3  # of one operation that does not write an array


@dataclass
class Points:
    """What was seen at a place, or when something was written: one entry for each time."""

    instances: list[int] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    visits: list[list[int]] = field(default_factory=list)

    def add(self, moment: Moment, visits: list[int]) -> None:
        self.instances.append(moment.instance)
        self.moments.append(moment)
        self.visits.append(list(visits))


class Guess:
    """The parts of an invariant, guessed one after the other."""

    def __init__(
        self,
        program: Program,
        task: Task,
        limit: StepLimit,
        recorded: Recorded,
        history: History,
        compare: bool,
        deadline: float,
    ):
        self.program, self.task, self.limit, self.history = program, task, limit, history
        self.deadline = deadline
        self.halts, self.compare = recorded.halts, compare
        self.inputs = Inputs(recorded.instances, task)
        assert task.claim is not None
        self.claimed = set(task.claim().numbers)
        self.places = recorded.places(history)
        self.numbers = {place: number for number, place in enumerate(self.places)}
        self.at_place = [Points() for _ in self.places]
        self.before: list[dict[int, None]] = [{} for _ in self.places]
        """For each place, those that come before it."""
        self.at_write: dict[tuple[int, int], Points] = {}
        """Of each write: index of the place, index of the operation."""
        self.at_end: dict[tuple[int, int], Points] = {}
        """The same for rows that halt. No form of the memory has to explain them."""
        for run in recorded.runs:
            visits, before = [0] * len(self.places), None
            for moment, place in zip(run, places_of(run, history), strict=True):
                which = self.numbers[place]
                self.at_place[which].add(moment, visits)
                at_write = self.at_end if row_of(program, place.row).halt else self.at_write
                for operation in moment.writes:
                    at_write.setdefault((which, operation), Points()).add(moment, visits)
                visits[which] += 1
                if before is not None:
                    self.before[which][before] = None
                before = which
        self.read = read_registers(program)
        self.unexplained: list[tuple[int, int]] = []
        self.cells: list[Cell] = []
        self.arrays: list[Array] = []
        self._explain_writes()

    def invariant(self) -> Invariant:
        """The whole guess."""
        own = [self._facts(which) for which in range(len(self.places))]
        always = [] if self.compare else earlier_visits(self.program, self.places, self.arrays, own)
        facts = tuple((*self._with_inherited(which, own), *always) for which in range(len(self.places)))
        parts = tuple(self.cells), tuple(self.arrays), tuple(self._changes())
        return Invariant(self.history, self.halts, tuple(self.places), facts, *parts)

    # ---- writes

    def _explain_writes(self) -> None:
        open_ones: list[tuple[int, int]] = []
        for writer, points in self.at_write.items():
            addresses = _addresses(points, writer)
            one = _most_in_a_run(points, addresses) == 1
            address = self._input_bank(points).find(addresses) if one else None
            if address is None:
                open_ones.append(writer)
            elif Cell(address) not in self.cells:
                self.cells.append(Cell(address))
        for size in range(1, min(MOST_WRITERS, len(open_ones)) + 1):
            for writers in combinations(open_ones, size):
                if not all(writer in open_ones for writer in writers):
                    continue
                array = self._array(writers, len(self.arrays))
                if array is not None:
                    self.arrays.append(array)
                    open_ones = [one for one in open_ones if one not in writers]
        for i, array in enumerate(self.arrays):  # the last writes to an array are often those of another place
            for writer in list(open_ones):
                longer = self._array((*self.arrays[i].writers, writer), i)
                if longer is not None and (longer.start, longer.slope) == (array.start, array.slope):
                    self.arrays[i] = longer
                    open_ones.remove(writer)
        for writer in open_ones:  # an address may wrap around: then it is one of two
            points = self.at_write[writer]
            if not self._follow(points, np.arange(len(points.moments)), _addresses(points, writer)):
                self.unexplained.append(writer)

    def _input_bank(self, points: Points) -> Bank:
        """Terms of the input alone."""
        check_time(self.deadline)
        instances = np.array(points.instances)
        return Bank(self.inputs, instances, self.inputs.at(instances)[0])

    def _array(self, writers: tuple[tuple[int, int], ...], index: int) -> Array | None:
        """What these writes do together, if the k-th goes to start + slope k and its value is a term of k."""
        points = Points()
        addresses, values, counts = [], [], []
        for writer in writers:
            seen = self.at_write[writer]
            for moment, visits in zip(seen.moments, seen.visits, strict=True):
                points.add(moment, visits)
                address, value = moment.writes[writer[1]]
                addresses.append(address)
                values.append(value)
                counts.append(sum(visits[place] for place, _ in writers))
        k = np.array(counts)
        if k.max() == 0 or len({place for place, _ in writers}) < len(writers):
            return None
        instances = np.array(points.instances)
        numbers, _ = self.inputs.at(instances)
        for slope in (1, -1):
            if _most_in_a_run(points, np.array(addresses) - slope * k) > 2:
                continue
            bank = self._input_bank(points)
            starts = bank.cover(np.array(addresses) - slope * k, 2)
            if starts is None:
                continue
            start = starts[0]
            # The last address may wrap around. Then it is a cell by itself.
            others = np.flatnonzero(bank.everywhere(start) + slope * k != np.array(addresses))
            if len(others) > MOST_WRAPPED * len(k) or not self._follow(points, others, np.array(addresses)):
                continue
            array = Array(start, slope, writers, INDEX)
            tail = array.tail(index)
            value = self._value(tail, instances, {INDEX: k, **numbers}, np.array(values))
            return replace(array, value=value)
        return None

    def _follow(self, points: Points, which: np.ndarray, addresses: np.ndarray) -> bool:
        """Follow the cells at these addresses by name, if the input says where they are."""
        if not len(which):
            return True
        few = Points()
        for i in which:
            few.add(points.moments[i], points.visits[i])
        if _most_in_a_run(few, addresses[which]) > MOST_ADDRESSES:
            return False
        cover = self._input_bank(few).cover(addresses[which], MOST_ADDRESSES)
        self.cells += [Cell(address) for address in cover or () if Cell(address) not in self.cells]
        return cover is not None

    def _value(self, tail: Term, instances: np.ndarray, atoms: dict[Term, np.ndarray], values: np.ndarray) -> Term:
        """The k-th value as a term of k, at least for the first so many; what comes after them has no other name."""
        found = Bank(self.inputs, instances, atoms).find(values)
        if found is not None:
            return found
        numbers = [N, *(name for name in atoms if name.op == "var" and name not in (N, SIZE, INDEX))]
        for offset in (1, 0, -1, -2):
            for bound in numbers:
                first = atoms[INDEX] < atoms[bound] + offset
                if first.any():
                    few = {name: array[first] for name, array in atoms.items()}
                    found = Bank(self.inputs, instances[first], few).find(values[first])
                    if found is not None:
                        return choose(bound + offset > INDEX, found, tail)
        return tail

    # ---- changes

    def _changes(self) -> list[Range]:
        """Where the program may write."""
        found = {Range(cell.address, cell.address): None for cell in self.cells}
        for array in self.arrays:
            last = self._last(array)
            found[Range(array.start, last) if array.slope > 0 else Range(last, array.start)] = None
        for writer, points in self.at_end.items():
            addresses = _addresses(points, writer)
            cover = self._input_bank(points).cover(addresses, MOST_ADDRESSES)
            found |= dict.fromkeys([self._span(points, addresses)] if cover is None else map(Range, cover, cover))
        return list(found)

    def _last(self, array: Array) -> Term:
        """The last address of an array in every run that writes to it, or a bound."""
        ends: dict[int, tuple[int, Moment]] = {}
        points = Points()
        for writer in array.writers:
            seen = self.at_write[writer]
            for moment, address in zip(seen.moments, _addresses(seen, writer), strict=True):
                if moment.instance not in ends or (address - ends[moment.instance][0]) * array.slope > 0:
                    ends[moment.instance] = int(address), moment
        for _, moment in ends.values():
            points.add(moment, [])
        last = np.array([address for address, _ in ends.values()])
        found = self._input_bank(points).find(last)
        if found is not None:
            return found
        if array.slope < 0:
            return number(0)
        return self._span(points, last).last

    def _span(self, points: Points, addresses: np.ndarray) -> Range:
        """A range that holds the addresses: from 0, n or about that to n or 2n or about that, or to the end."""
        n = self.inputs.at(np.array(points.instances))[0][N]
        bounds = {factor * N + offset: factor * n + offset for factor in (1, 2) for offset in range(-2, 4)}
        above = {term: values for term, values in bounds.items() if (addresses <= values).all()}
        below = {term: values for term, values in bounds.items() if (addresses >= values).all()}
        first = max(below, key=lambda term: int(below[term].sum())) if below else number(0)
        return Range(first, min(above, key=lambda term: int(above[term].sum())) if above else SIZE - 1)

    # ---- facts

    def _with_inherited(self, which: int, facts: list[list[Term]]) -> list[Term]:
        """For a place that few runs come to: also the facts of the places before it about what their rows leave alone.

        What was seen there a few times says too little, and much of it is chance.
        """
        found = dict.fromkeys(facts[which])
        if len(self.at_place[which].moments) < FEW_POINTS:
            for before in self.before[which]:
                row = row_of(self.program, self.places[before].row)
                registers = register_variables(self.program)
                changed = {registers[i].parts[0] for i, value in enumerate(row.registers) if value != Register(i)}
                earlier = {visits_of(before): visits_of(before) - 1}
                for fact in facts[before]:
                    if not changed & set(variables([fact])):
                        found[substituted(fact, earlier)] = None
            facts[which] = list(found)  # for the places that follow
        return list(found)

    def _facts(self, which: int) -> list[Term]:
        check_time(self.deadline)
        points = self.at_place[which]
        if len(points.moments) > MOST_POINTS:
            chosen = np.random.default_rng(0).choice(len(points.moments), MOST_POINTS, replace=False)
            picked = Points()
            for i in sorted(chosen):
                picked.add(points.moments[i], points.visits[i])
            points = picked
        numbers, functions = self.inputs.at(np.array(points.instances))
        visits = np.array(points.visits).reshape(len(points.moments), -1)
        counters = {visits_of(i): visits[:, i] for i in range(visits.shape[1])}
        data: dict[Term, np.ndarray] = {}
        values = {term.parts[0]: array for term, array in numbers.items() if term.op == "var"}
        known: dict[Term, np.ndarray] = {}
        for cell in self.cells:
            address = np.broadcast_to(evaluated(cell.address, values, functions, known), len(points.moments))
            held = [m.memory[a] if 0 <= a < len(m.memory) else 0 for m, a in zip(points.moments, address, strict=True)]
            data[cell.value] = np.array(held)
        registers = np.array([moment.registers for moment in points.moments])
        for i, name in enumerate(register_variables(self.program)):
            data[name] = registers[:, i]
        columns = {**numbers, **counters, **data}
        basis, dependent = independent(columns)
        facts = [row_condition(self.program, self.places[which].row, register_variables(self.program))]
        facts += [equal(name, term) for name, term in dependent.items()]
        # Registers and cells that are no sums of counts: cells of the input, or values of functions.
        atoms = {name: columns[name] for name in basis if name not in data}
        bank = Bank(self.inputs, np.array(points.instances), atoms)
        open_ones = []
        for name in basis:
            if name in data:
                found = bank.find(data[name])
                if found is None:
                    found = _wrapped(data[name], [(one, columns[one]) for one in atoms], numbers[SIZE])
                if found is not None:
                    facts.append(equal(name, found))
                else:
                    open_ones.append(name)
        lengths = self._lengths(counters)
        facts += self._equations(lengths, numbers)
        bounded = [name for name in basis if name not in data or name in open_ones]
        bounded += [name for name in dependent if name in counters or name == N]
        facts += self._bounds({name: columns[name] for name in bounded} | lengths)
        if self.compare:
            followed = {*self.read, *(cell.value for cell in self.cells)}
            pointers = {name: term for name, term in dependent.items() if name in followed}
            compared = Compared(phase_of(self.arrays, list(counters)), columns, functions)
            facts += compared.bounds(pointers, [name for name in numbers if name.parts[0] in self.claimed])
            facts += compared.cells(pointers, open_ones)
        if self.halts:
            facts.append(total(*((name, 1) for name in counters)) < self.limit.per_item * N + self.limit.constant)
        return list(dict.fromkeys(fact for fact in facts if fact.op != "true"))

    def _lengths(self, counters: dict[Term, np.ndarray]) -> dict[Term, np.ndarray]:
        """How many elements of each array were written, if several places write them."""
        several = (array for array in self.arrays if len(array.writers) > 1)
        return {
            array.written(list(counters)): np.sum([counters[visits_of(place)] for place, _ in array.writers], axis=0)
            for array in several
        }

    def _equations(self, lengths: dict[Term, np.ndarray], numbers: dict[Term, np.ndarray]) -> list[Term]:
        """Where few runs come, equations of single counts are chance, but not those of lengths and the input."""
        claimed = [name for name in numbers if name.parts[0] in self.claimed]
        facts = []
        for length, column in lengths.items():
            for names in ([N], [SIZE], [N, SIZE], [N, SIZE, *claimed]):  # the simplest
                found = affine(column, [numbers[name] for name in names])
                if found is not None:
                    facts.append(equal(length, total((number(found[0]), 1), *zip(names, found[1], strict=True))))
                    break
        return facts

    def _bounds(self, columns: dict[Term, np.ndarray]) -> list[Term]:
        """How far apart two numbers are at least."""
        facts = []
        # What is constant here has an equation already.
        chosen = {name: column for name, column in columns.items() if np.ptp(column) and name != SIZE}
        if self.limit.per_item > 1:
            chosen[2 * N] = 2 * columns[N]
        for name in list(chosen):
            if name.op == "var" and name.parts[0] in self.claimed:
                chosen[N - name] = columns[N] - columns[name]
        for name, column in chosen.items():
            least, most = int(column.min()), int(column.max())
            if least or name.op != "var" or not name.parts[0].startswith("visits"):
                facts.append(name >= least)
            if most <= 2:
                facts.append(name <= most)
            for other, against in chosen.items():
                if other != name and other not in children(name):
                    least = int((column - against).min())
                    if abs(least) <= 3 and (column - against).max() > least:
                        facts.append(other + least <= name)
        return facts


def _wrapped(values: np.ndarray, columns: list[tuple[Term, np.ndarray]], sizes: np.ndarray) -> Term | None:
    """A sum of the columns modulo M with these values, if it is at most M."""
    inside = values > 0  # at M it is 0
    if inside.all() or inside.sum() < len(columns) + 2:
        return None
    found = affine(values[inside], [column[inside] for _, column in columns])
    if found is None:
        return None
    term = total((number(found[0]), 1), *((name, factor) for (name, _), factor in zip(columns, found[1], strict=True)))
    whole = found[0] + sum(factor * column for (_, column), factor in zip(columns, found[1], strict=True))
    if not np.array_equal(np.where(whole == sizes, 0, whole), values):
        return None
    return choose(equal(term, SIZE), 0, term)


def _addresses(points: Points, writer: tuple[int, int]) -> np.ndarray:
    return np.array([moment.writes[writer[1]][0] for moment in points.moments])


def _most_in_a_run(points: Points, values: np.ndarray) -> int:
    """How many different values one run has at most. A term of the input alone has one."""
    pairs = np.unique(np.stack([np.array(points.instances), values]), axis=1)
    return int(np.unique(pairs[0], return_counts=True)[1].max())
