"""Wires: softmaxes a lane each, and the weighted averages of values they stand for.

The wires lie in shared memory as arrangement.py says. For a softmax every lane has a wire of its own and goes through
its weights, so that no sum needs another lane. For mixing, four weights are read at once by all lanes. In the backward
pass four lanes share a wire: they hold the products of its gradient with the values, and turn them into the gradients
of the logits in the weights' places.
"""

from __future__ import annotations

from itertools import product

from nram.llvm import Value
from nram.machine.kernels.gpu.arrangement import GROUP, HALF, QUAD
from nram.machine.kernels.gpu.shape import LANES, WarpShape
from nram.machine.kernels.gpu.warps import Columns, Warps


class Wires:
    """The wires of one kernel, as code."""

    def __init__(self, to: Warps, shape: WarpShape, own: dict[str, Value], common: Value, epsilon: Value):
        self.to = to
        self.shape = shape
        self.arrangement = shape.arrangement
        self.place, self.received, self.values = own["wires"], own["received"], own["values"]  # in shared memory
        self.table = to.place(common, shape.table_place)
        self.epsilon = epsilon

    def _halves(self, both: Value) -> tuple[Value, Value]:
        to, half = self.to, self.to.whole(HALF)
        return to.at.and_(both, to.whole((1 << HALF) - 1)), to.at.lshr(both, half)

    def choose(self) -> Value:
        """All softmaxes, in place of their logits; returns the sum of their entropies."""
        to, uncertain = self.to, self.to.nothing
        to.sync()
        for group in range(self.shape.wire_groups):
            start, length = self._halves(to.load_whole(self.table, group * LANES))
            logits = self._load(start, self._longest(group))
            there = [to.at.icmp_signed("<", to.whole(number), length) for number in range(len(logits))]
            top = logits[0]
            for exists, logit in zip(there[1:], logits[1:], strict=True):
                top = to.choose(exists, to.at_least(logit, top), top)
            powers = [
                to.choose(exists, to.exponential(to.sub(logit, top)), to.nothing)
                for exists, logit in zip(there, logits, strict=True)
            ]
            total = powers[0]
            for power in powers[1:]:
                total = to.add(total, power)
            factor = to.divide(to.number(1.0), to.choose(there[0], total, to.number(1.0)))
            weights = [to.mul(power, factor) for power in powers]
            for weight in weights:
                uncertain = to.fma(weight, to.rough_log(to.at_least(weight, self.epsilon)), uncertain)
            self._store(weights, start, there)
        to.sync()
        return to.at.fneg(to.total([uncertain]))

    def harden(self) -> None:
        """Put certainty on the most probable value of every wire, the first among equals."""
        to, one = self.to, self.to.number(1.0)
        for group in range(self.shape.wire_groups):
            start, length = self._halves(to.load_whole(self.table, group * LANES))
            weights = self._load(start, self._longest(group))
            there = [to.at.icmp_signed("<", to.whole(number), length) for number in range(len(weights))]
            own = [to.choose(exists, weight, to.nothing) for exists, weight in zip(there, weights, strict=True)]
            top = own[0]
            for weight in own[1:]:
                top = to.at_least(weight, top)
            certain, given = [], to.nothing
            for weight in own:
                certain.append(to.choose(to.above(top, weight), to.nothing, to.sub(one, given)))
                given = to.add(given, certain[-1])
            self._store(certain, start, there)
        to.sync()

    def _longest(self, group: int) -> int:
        """Of the wires that the lanes have at the same time."""
        slots = self.arrangement.slots[group * LANES : (group + 1) * LANES]
        return max(self.shape.wiring.lengths[wire] for wire in slots)

    def _load(self, start: Value, length: int) -> list[Value]:
        """So many places of every lane's wire."""
        to, found = self.to, []
        for quad in range(0, length, QUAD):
            found += to.load_quads(self.place, to.at.add(start, to.whole(quad)))
        return found[:length]

    def _store(self, weights: list[Value], start: Value, there: list[Value]) -> None:
        to = self.to
        padded = weights + [to.nothing] * (-len(weights) % QUAD)
        for quad in range(0, len(weights), QUAD):
            to.store_some(padded[quad : quad + QUAD], self.place, to.at.add(start, to.whole(quad)), there[quad])

    def keep(self, record: Value) -> None:
        """Copy the weights into a record."""
        to = self.to
        for start in range(0, self.arrangement.end, LANES):
            to.store(to.load(self.place, start), record, start)

    def kept(self, record: Value) -> list[Value]:
        """The weights of a record."""
        return [self.to.load(record, start) for start in range(0, self.arrangement.end, LANES)]

    def restore(self, weights: list[Value], values: list[Columns]) -> None:
        """Put what a record kept of weights and values into shared memory."""
        to, shape = self.to, self.shape
        to.store_columns(weights, self.place)
        for v, row in shape.value_rows.items():
            to.store_first(shape.rows if v in shape.dense else QUAD, values[row], self.values, shape.value_places[v])

    # Mixing

    def _weights(self, wire: int, count: int) -> list[Value]:
        """The first of a wire."""
        begin = self.arrangement.starts[wire]
        found = [weight for quad in range(0, count, QUAD) for weight in self.to.quad(self.place, begin + quad)]
        return found[:count]

    def mixed(self, wire: int, values: list[Columns]) -> Columns:
        """The sum over v of w[v] value[v]."""
        to, choices = self.to, self.arrangement.choices(wire)
        sums: Columns = [to.nothing] * self.shape.columns
        for weight, v in zip(self._weights(wire, len(choices)), choices, strict=True):
            sums = [to.fma(weight, column, total) for column, total in zip(values[v], sums, strict=True)]
        return sums

    def pass_back(self, wire: int, gradient: Columns, to_values: list[Columns]) -> None:
        """Add w[v] times the gradient of a wire to that of every value it can choose, unless it is a constant."""
        to, choices = self.to, self.arrangement.choices(wire)
        for weight, v in zip(self._weights(wire, sum(self.arrangement.counts(wire))), choices, strict=False):
            to_values[v] = [to.fma(weight, g, sum_) for g, sum_ in zip(gradient, to_values[v], strict=True)]

    # From the gradients of wires to those of logits

    def receive(self, wire: int, gradient: Columns, to_entropy: Value) -> None:
        """Gather the gradient of a wire. Once enough of them are there, those of the logits take the weights' place."""
        shape, slot = self.shape, self.arrangement.slots.index(wire)
        row = slot % shape.chunk
        self.to.store_first(shape.rows, gradient, self.received, row * shape.gradient_stride)
        if row + 1 == shape.chunk or slot + 1 == shape.wiring.wires:
            self._choose_back(slot - row, row + 1, to_entropy)

    def _choose_back(self, first: int, count: int, to_entropy: Value) -> None:
        """For so many wires from a slot on: lane l has those of slots l % 8, l % 8 + 8, ... and of each every fourth
        value from l // 8 on."""
        to, shape = self.to, self.shape
        minus, entries = to.at.fneg(to_entropy), shape.wire_groups * LANES
        eighth, fourth = self._own_wire(), self._own_value()
        to.sync()
        groups = range(0, count, GROUP)
        sums = self._products(len(groups))
        truths = self._truths(fourth)
        for group, dense in zip(groups, sums, strict=True):
            slot = to.at.add(eighth, to.whole(first + group))
            start, length = self._halves(to.load_each(self.table, slot, whole=True))
            all_, some = self._halves(to.load_each(self.table, to.at.add(slot, to.whole(entries)), whole=True))
            row = to.at.mul(to.at.add(eighth, to.whole(group)), to.whole(shape.gradient_stride))
            low = to.load_quads(self.received, row)
            constant = to.at.add(all_, some)
            parts = [
                (dense, to.whole(0), all_),
                (truths(low), all_, constant),
                (self._constants(low), constant, length),
            ]
            places, gradients = [], []
            for found, begin, end in parts:
                for number, gradient in enumerate(found):
                    place = to.at.add(to.at.add(begin, fourth), to.whole(QUAD * number))
                    places.append((to.at.add(start, place), to.at.icmp_signed("<", place, end)))
                    gradients.append(gradient)
            self._logits_back(places, gradients, minus)
        to.sync()

    def _own_wire(self) -> Value:
        return self.to.at.and_(self.to.lane, self.to.whole(GROUP - 1))

    def _own_value(self) -> Value:
        return self.to.at.lshr(self.to.lane, self.to.whole(GROUP.bit_length() - 1))

    def _logits_back(self, places: list[tuple[Value, Value]], gradients: list[Value], minus: Value) -> None:
        """From the gradients of the weights at these places, where they exist; four lanes have those of a wire."""
        to, weights, wholes, mean = self.to, [], [], self.to.nothing
        for (place, there), gradient in zip(places, gradients, strict=True):
            weight = to.choose(there, to.load_each(self.place, place), to.nothing)
            slope = to.rough_log(to.at_least(weight, self.epsilon))  # of w log(max(w, epsilon))
            steeper = to.add(slope, to.number(1.0))
            slope = to.choose(to.above(weight, self.epsilon), steeper, slope)
            weights.append(weight)
            wholes.append(to.fma(minus, slope, gradient))
            mean = to.fma(weight, wholes[-1], mean)
        for distance in (GROUP, 2 * GROUP):
            mean = to.add(mean, to.swapped(mean, distance))
        for (place, there), weight, whole in zip(places, weights, wholes, strict=True):
            to.store_each(to.mul(weight, to.sub(whole, mean)), self.place, place, there)

    def _products(self, groups: int) -> list[list[Value]]:
        """For every group of eight gathered wires: the sums over m of g[m] value[v, m] for values that may be any
        number. What four numbers are read at once is used several times."""
        to, shape = self.to, self.shape
        stride, last = to.whole(shape.gradient_stride), to.whole(len(shape.dense) - 1)
        rows = [to.at.add(self._own_wire(), to.whole(group * GROUP)) for group in range(groups)]
        places = [to.at.add(self._own_value(), to.whole(number)) for number in range(0, len(shape.dense), QUAD)]
        bounded = [to.choose(to.at.icmp_signed("<", place, last), place, last) for place in places]
        gradients, values = ([to.at.mul(row, stride) for row in own] for own in (rows, bounded))

        def four(m: Value, sums: list[Value]) -> list[Value]:
            here = to.spread(m)
            loaded = [to.load_quads(self.received, to.at.add(index, here)) for index in gradients]
            others = [to.load_quads(self.values, to.at.add(index, here)) for index in values]
            results = []
            for (quad, other), total in zip(product(loaded, others), sums, strict=True):
                for own, value in zip(quad, other, strict=True):
                    total = to.fma(own, value, total)
                results.append(total)
            return results

        sums = to.repeat(shape.rows, four, [to.nothing] * (len(rows) * len(places)), step=QUAD)
        return [sums[start : start + len(places)] for start in range(0, len(sums), len(places))]

    def _truths(self, fourth: Value):
        """The same for truth values, as a function of the gradient's first four numbers."""
        to, shape = self.to, self.shape
        count, begin = len(shape.value_rows) - len(shape.dense), len(shape.dense) * shape.gradient_stride
        loaded = []
        for number in range(0, count, QUAD):
            place = to.at.add(fourth, to.whole(number))
            place = to.choose(to.at.icmp_signed("<", place, to.whole(count - 1)), place, to.whole(count - 1))
            loaded.append(to.load_quads(self.values, to.at.add(to.at.mul(place, to.whole(QUAD)), to.whole(begin))))
        return lambda low: [to.fma(low[1], yes, to.mul(low[0], no)) for no, yes, *_ in loaded]

    def _constants(self, low: list[Value]) -> list[Value]:
        """The same for constants."""
        to, fourth = self.to, self._own_value()
        numbers = [support for support in self.shape.supports if isinstance(support, int)]
        found = []
        for start in range(0, len(numbers), QUAD):
            first, *others = numbers[start : start + QUAD]
            chosen = low[first]
            for lane, number in enumerate(others, 1):
                chosen = to.choose(to.at.icmp_signed("==", fourth, to.whole(lane)), low[number], chosen)
            found.append(chosen)
        return found
