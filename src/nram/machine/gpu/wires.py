"""Wires: softmaxes a lane each, and the weighted averages of values they stand for.

The wires lie in shared memory as [wire, value]. For a softmax, forwards and backwards, every lane has a wire of its own
and goes through its values, so that no sum needs another lane. For mixing, four weights are read at once by all lanes.
"""

from __future__ import annotations

from itertools import chain, product

from nram.machine.gpu.shape import GROUP, LANES, QUAD, WarpShape
from nram.machine.gpu.warps import Columns, Value, Warps


class Wires:
    """The wires of one kernel, as code."""

    def __init__(self, to: Warps, shape: WarpShape, own: dict[str, Value], lengths: Value, epsilon: Value):
        self.to = to
        self.shape = shape
        self.place, self.received, self.values = own["wires"], own["received"], own["values"]  # in shared memory
        groups = range(shape.wire_groups)
        self.lengths = [to.load_whole(lengths, group * LANES) for group in groups]  # of every lane's wire, or 0
        self.epsilon = epsilon
        self.quads = range(0, shape.wiring.values, QUAD)

    def choose(self) -> Value:
        """All softmaxes, in place of their logits; returns the sum of their entropies."""
        to, uncertain = self.to, self.to.nothing
        to.sync()
        for group in range(self.shape.wire_groups):
            length, index = self._lanes(group, self.shape.wire_stride)
            logits = self._load(index)
            there = [to.at.icmp_signed("<", to.whole(v), length) for v in range(len(logits))]
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
            self._store(weights, index, there[0])
        to.sync()
        return to.at.fneg(to.total([uncertain]))

    def _lanes(self, group: int, stride: int) -> tuple[Value, Value]:
        """The length of every lane's wire, and where it begins; idle lanes look at the last wire."""
        to, last = self.to, self.shape.wiring.wires - 1
        wire = to.at.add(to.lane, to.whole(group * LANES))
        if (group + 1) * LANES > last + 1:
            wire = self._at_most(wire, last)
        return self.lengths[group], to.at.mul(wire, to.whole(stride))

    def _load(self, index: Value) -> list[Value]:
        """All places of every lane's wire."""
        to, found = self.to, []
        for quad in self.quads:
            found += to.load_quads(self.place, to.at.add(index, to.whole(quad)))
        return found[: self.shape.wiring.values]

    def _store(self, values: list[Value], index: Value, where: Value) -> None:
        to = self.to
        padded = values + [to.nothing] * (-len(values) % QUAD)
        for quad in self.quads:
            to.store_quads(padded[quad : quad + QUAD], self.place, to.at.add(index, to.whole(quad)), where)

    def keep(self, record: Value) -> None:
        """Copy the weights into a record."""
        to = self.to
        for start in range(0, self.shape.chosen, LANES):
            to.store(to.load(self.place, start), record, start)

    def kept(self, record: Value) -> list[Value]:
        """The weights of a record."""
        return [self.to.load(record, start) for start in range(0, self.shape.chosen, LANES)]

    def restore(self, weights: list[Value], values: list[Columns]) -> None:
        """Put what a record kept of weights and values into shared memory."""
        to, shape = self.to, self.shape
        to.store_columns(weights, self.place)
        for v, row in shape.value_rows.items():
            place = shape.value_places[v]
            if v in shape.dense:
                to.store_columns(values[row], self.values, place)
            else:
                to.store_each(values[row][0], self.values, to.at.add(to.lane, to.whole(place)), to.before(QUAD))

    # Mixing

    def _weights(self, wire: int) -> list[Value]:
        length = self.shape.wiring.lengths[wire]
        begin = wire * self.shape.wire_stride
        found = [weight for quad in range(0, length, QUAD) for weight in self.to.quad(self.place, begin + quad)]
        return found[:length]

    def mixed(self, wire: int, values: list[Columns]) -> Columns:
        """The sum over v of w[v] value[v]."""
        to = self.to
        sums: Columns = [to.nothing] * self.shape.columns
        for weight, value in zip(self._weights(wire), values, strict=False):
            sums = [to.fma(weight, column, total) for column, total in zip(value, sums, strict=True)]
        return sums

    def pass_back(self, wire: int, gradient: Columns, to_values: list[Columns]) -> None:
        """Add w[v] times the gradient of a wire to that of every value it can choose."""
        to = self.to
        for v, weight in enumerate(self._weights(wire)):
            if isinstance(self.shape.supports[v], str):
                to_values[v] = [to.fma(weight, g, sum_) for g, sum_ in zip(gradient, to_values[v], strict=True)]

    # From the gradients of wires to those of logits

    def choose_back(self, to_entropy: Value) -> None:
        """In place of the weights, the gradients of the logits: from what the wires received, and the values."""
        to, minus = self.to, self.to.at.fneg(to_entropy)
        to.sync()
        for group in range(self.shape.wire_groups):
            length, index = self._lanes(group, self.shape.wire_stride)
            gradients = self._weight_gradients(group)
            weights = self._load(index)
            wholes, mean = [], to.nothing
            for gradient, weight in zip(gradients, weights, strict=True):
                slope = to.rough_log(to.at_least(weight, self.epsilon))  # of w log(max(w, epsilon))
                steeper = to.add(slope, to.number(1.0))
                slope = to.choose(to.above(weight, self.epsilon), steeper, slope)
                whole = to.fma(minus, slope, gradient)
                wholes.append(whole)
                mean = to.fma(weight, whole, mean)
            logits = [to.mul(weight, to.sub(whole, mean)) for weight, whole in zip(weights, wholes, strict=True)]
            self._store(logits, index, to.at.icmp_signed(">", length, to.whole(0)))
        to.sync()

    def _weight_gradients(self, group: int) -> list[Value]:
        """For every lane's wire and every value v: the sum over m of g[m] value[v, m].

        Lane l first takes the wires l % 8, l % 8 + 8, ... and every fourth value from l // 8 on, so that four numbers
        read at once are used several times; the sums reach the lanes of their wires by way of the gradients' place."""
        to, shape = self.to, self.shape
        stride, count = to.whole(shape.gradient_stride), min(LANES, shape.wiring.wires - group * LANES)
        dense = range(0, len(shape.dense), QUAD)
        first_wire = to.at.and_(to.lane, to.whole(GROUP - 1))
        first_value = to.at.lshr(to.lane, to.whole(GROUP.bit_length() - 1))
        wires = [to.at.add(first_wire, to.whole(group * LANES + number)) for number in range(0, count, GROUP)]
        places = [to.at.add(first_value, to.whole(number)) for number in dense]
        gradients = [to.at.mul(self._at_most(wire, shape.wiring.wires - 1), stride) for wire in wires]
        values = [to.at.mul(self._at_most(place, len(shape.dense) - 1), stride) for place in places]

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

        sums = to.repeat(shape.rows, four, [to.nothing] * (len(wires) * len(places)), step=QUAD)
        _length, index = self._lanes(group, shape.gradient_stride)
        first = to.load_quads(self.received, index)
        to.sync()
        for (wire, place), total in zip(product(wires, places), sums, strict=True):
            to.store_each(total, self.received, to.at.add(to.at.mul(wire, stride), place))
        to.sync()
        quads = [to.load_quads(self.received, to.at.add(index, to.whole(start))) for start in dense]
        found = dict(zip(shape.dense, chain(*quads), strict=False))
        for v, support in enumerate(shape.supports):
            if support == "truth":
                no, yes, *_rest = to.quad(self.values, shape.value_places[v])
                found[v] = to.fma(first[1], yes, to.mul(first[0], no))
            elif isinstance(support, int):
                found[v] = first[support]
        return [found[v] for v in range(len(shape.supports))]

    def _at_most(self, number: Value, bound: int) -> Value:
        to = self.to
        return to.choose(to.at.icmp_signed("<", number, to.whole(bound)), number, to.whole(bound))
