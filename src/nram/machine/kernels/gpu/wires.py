"""Wires: softmaxes, one per lane, and the weighted averages of values that they stand for.

The wires lie in shared memory as arrangement.py says. For softmaxes, each lane takes one wire and goes through its
weights, so that no sum needs another lane. For mixing, all lanes read the same four weights at once. In the backward
pass, four lanes share a wire: they compute the products of its gradient with the values, turn them into the gradients
of the logits, and store these in place of the weights.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from nram.llvm import Value
from nram.machine.kernels.gpu.arrangement import GROUP, HALF, QUAD
from nram.machine.kernels.gpu.shape import LANES, WarpShape
from nram.machine.kernels.gpu.warps import Columns, Warps


class Choice(NamedTuple):
    """A value that a wire can choose, in the backward pass."""

    offset: Value  # of its weight
    exists: Value  # false in lanes whose wire is shorter
    gradient: Value  # of its weight


class Wires:
    """The wires of one kernel, as code."""

    def __init__(self, code: Warps, shape: WarpShape, own: dict[str, Value], common: Value, epsilon: Value):
        self.code = code
        self.shape = shape
        self.arrangement = shape.arrangement
        self.weights, self.received, self.values = own["wires"], own["received"], own["values"]  # in shared memory
        self.table = code.place(common, shape.table_place)
        self.epsilon = epsilon

    def _halves(self, both: Value) -> tuple[Value, Value]:
        code, half = self.code, self.code.whole(HALF)
        return code.at.and_(both, code.whole((1 << HALF) - 1)), code.at.lshr(both, half)

    def choose(self) -> Value:
        """All softmaxes, in place of their logits; returns the sum of their entropies."""
        code, uncertain = self.code, self.code.nothing
        for group in range(self.shape.wire_groups):
            code.sync()
            start, length = self._halves(code.load_whole(self.table, group * LANES))
            logits = self._load(start, self._longest(group))
            there = [code.at.icmp_signed("<", code.whole(index), length) for index in range(len(logits))]
            top = logits[0]
            for exists, logit in zip(there[1:], logits[1:], strict=True):
                top = code.choose(exists, code.at_least(logit, top), top)
            powers = [
                code.choose(exists, code.exponential(code.sub(logit, top)), code.nothing)
                for exists, logit in zip(there, logits, strict=True)
            ]
            total = powers[0]
            for power in powers[1:]:
                total = code.add(total, power)
            factor = code.divide(code.number(1.0), code.choose(there[0], total, code.number(1.0)))
            weights = [code.mul(power, factor) for power in powers]
            for weight in weights:
                uncertain = code.fma(weight, code.rough_log(code.at_least(weight, self.epsilon)), uncertain)
            self._store(weights, start, there)
        code.sync()
        return code.at.fneg(code.total([uncertain]))

    def harden(self) -> None:
        """Give the most probable value of each wire the weight 1, the first if there are several, and the others 0."""
        code, one = self.code, self.code.number(1.0)
        for group in range(self.shape.wire_groups):
            code.sync()
            start, length = self._halves(code.load_whole(self.table, group * LANES))
            weights = self._load(start, self._longest(group))
            there = [code.at.icmp_signed("<", code.whole(index), length) for index in range(len(weights))]
            weights = [code.choose(exists, weight, code.nothing) for exists, weight in zip(there, weights, strict=True)]
            top = weights[0]
            for weight in weights[1:]:
                top = code.at_least(weight, top)
            certain, taken = [], code.nothing
            for weight in weights:
                certain.append(code.choose(code.above(top, weight), code.nothing, code.sub(one, taken)))
                taken = code.add(taken, certain[-1])
            self._store(certain, start, there)
        code.sync()

    def _longest(self, group: int) -> int:
        """The length of the longest of the wires that the lanes have at the same time."""
        slots = self.arrangement.slots[group * LANES : (group + 1) * LANES]
        return max(self.shape.wiring.lengths[wire] for wire in slots)

    def _load(self, start: Value, length: int) -> list[Value]:
        """The first weights of every lane's wire."""
        code, found = self.code, []
        for quad in range(0, length, QUAD):
            found += code.load_quads(self.weights, code.at.add(start, code.whole(quad)))
        return found[:length]

    def _store(self, weights: list[Value], start: Value, there: list[Value]) -> None:
        """Store the weights that exist. A lane with a short wire has loaded some of the next wire too, and ignores
        them; the syncs before the loads and the stores keep even those apart from what other lanes store."""
        code = self.code
        code.sync()
        padded = weights + [code.nothing] * (-len(weights) % QUAD)
        for quad in range(0, len(weights), QUAD):
            code.store_some(padded[quad : quad + QUAD], self.weights, code.at.add(start, code.whole(quad)), there[quad])

    def keep(self, record: Value) -> None:
        """Copy the weights into a record."""
        code = self.code
        for start in range(0, self.arrangement.end, LANES):
            code.store(code.load(self.weights, start), record, start)

    def kept(self, record: Value) -> list[Value]:
        """The weights of a record."""
        return [self.code.load(record, start) for start in range(0, self.arrangement.end, LANES)]

    def restore(self, weights: list[Value], values: list[Columns]) -> None:
        """Put the weights and values of a record into shared memory."""
        code, shape = self.code, self.shape
        code.store_columns(weights, self.weights)
        for v, row in shape.value_rows.items():
            code.store_first(shape.rows if v in shape.dense else QUAD, values[row], self.values, shape.value_places[v])

    # Mixing

    def _weights(self, wire: int, count: int) -> list[Value]:
        """The first weights of a wire, each in all lanes."""
        begin = self.arrangement.starts[wire]
        found = [weight for quad in range(0, count, QUAD) for weight in self.code.quad(self.weights, begin + quad)]
        return found[:count]

    def mixed(self, wire: int, values: list[Columns]) -> Columns:
        """The sum over v of w[v] value[v]."""
        code, choices = self.code, self.arrangement.choices(wire)
        sums: Columns = [code.nothing] * self.shape.columns
        for weight, v in zip(self._weights(wire, len(choices)), choices, strict=True):
            sums = [code.fma(weight, column, total) for column, total in zip(values[v], sums, strict=True)]
        return sums

    def pass_back(self, wire: int, gradient: Columns, to_values: list[Columns]) -> None:
        """Add w[v] times the gradient of a wire to that of every value it can choose, except for constants."""
        code, choices = self.code, self.arrangement.choices(wire)
        for weight, v in zip(self._weights(wire, sum(self.arrangement.counts(wire))), choices, strict=False):
            to_values[v] = [code.fma(weight, g, sum_) for g, sum_ in zip(gradient, to_values[v], strict=True)]

    # From the gradients of wires to those of logits

    def receive(self, wire: int, gradient: Columns, to_entropy: Value) -> None:
        """Gather the gradient of a wire. Once there are enough, the gradients of the logits replace the weights."""
        shape, slot = self.shape, self.arrangement.slots.index(wire)
        row = slot % shape.chunk
        self.code.store_first(shape.rows, gradient, self.received, row * shape.gradient_stride)
        if row + 1 == shape.chunk or slot + 1 == shape.wiring.wires:
            self._choose_back(slot - row, row + 1, to_entropy)

    def _choose_back(self, first: int, count: int, to_entropy: Value) -> None:
        """The gradients of the logits of `count` wires, from the slot `first` on. Lane l has the wires of the slots
        l % 8, l % 8 + 8, ..., and of each of them every fourth value from l // 8 on."""
        code, shape = self.code, self.shape
        minus, entries = code.at.fneg(to_entropy), shape.wire_groups * LANES
        eighth, fourth = self._own_wire(), self._own_value()
        code.sync()
        groups = range(0, count, GROUP)
        sums = self._products(len(groups))
        truths = self._truths(fourth)
        for group, dense in zip(groups, sums, strict=True):
            slot = code.at.add(eighth, code.whole(first + group))
            start, length = self._halves(code.load_each(self.table, slot, whole=True))
            all_, some = self._halves(code.load_each(self.table, code.at.add(slot, code.whole(entries)), whole=True))
            row = code.at.mul(code.at.add(eighth, code.whole(group)), code.whole(shape.gradient_stride))
            low = code.load_quads(self.received, row)
            constant = code.at.add(all_, some)
            parts = [
                (dense, code.whole(0), all_),
                (truths(low), all_, constant),
                (self._constants(low), constant, length),
            ]
            choices = []
            for found, begin, end in parts:
                for index, gradient in enumerate(found):
                    value = code.at.add(code.at.add(begin, fourth), code.whole(QUAD * index))
                    choices.append(Choice(code.at.add(start, value), code.at.icmp_signed("<", value, end), gradient))
            self._logits_back(choices, minus)
            code.sync()

    def _own_wire(self) -> Value:
        return self.code.at.and_(self.code.lane, self.code.whole(GROUP - 1))

    def _own_value(self) -> Value:
        return self.code.at.lshr(self.code.lane, self.code.whole(GROUP.bit_length() - 1))

    def _logits_back(self, choices: list[Choice], minus: Value) -> None:
        """From the gradients of the weights to those of the logits. Four lanes have the choices of a wire."""
        code, weights, wholes, mean = self.code, [], [], self.code.nothing
        for choice in choices:
            weight = code.choose(choice.exists, code.load_each(self.weights, choice.offset), code.nothing)
            slope = code.rough_log(code.at_least(weight, self.epsilon))  # of w log(max(w, epsilon))
            steeper = code.add(slope, code.number(1.0))
            slope = code.choose(code.above(weight, self.epsilon), steeper, slope)
            weights.append(weight)
            wholes.append(code.fma(minus, slope, choice.gradient))
            mean = code.fma(weight, wholes[-1], mean)
        for distance in (GROUP, 2 * GROUP):
            mean = code.add(mean, code.swapped(mean, distance))
        code.sync()  # every lane has loaded, also weights beyond its wire, which it ignores
        for choice, weight, whole in zip(choices, weights, wholes, strict=True):
            code.store_each(code.mul(weight, code.sub(whole, mean)), self.weights, choice.offset, choice.exists)

    def _products(self, groups: int) -> list[list[Value]]:
        """For every group of eight gathered wires, the sums over m of g[m] value[v, m], for the values that may be any
        number. Four numbers are read at once, and each is used several times."""
        code, shape = self.code, self.shape
        stride, last = code.whole(shape.gradient_stride), code.whole(len(shape.dense) - 1)
        rows = [code.at.add(self._own_wire(), code.whole(group * GROUP)) for group in range(groups)]
        columns = [code.at.add(self._own_value(), code.whole(index)) for index in range(0, len(shape.dense), QUAD)]
        bounded = [code.choose(code.at.icmp_signed("<", column, last), column, last) for column in columns]
        gradients, values = ([code.at.mul(index, stride) for index in indices] for indices in (rows, bounded))

        def four(m: Value, sums: list[Value]) -> list[Value]:
            here = code.spread(m)
            loaded = [code.load_quads(self.received, code.at.add(index, here)) for index in gradients]
            others = [code.load_quads(self.values, code.at.add(index, here)) for index in values]
            results = []
            for (quad, other), total in zip(product(loaded, others), sums, strict=True):
                for gradient, value in zip(quad, other, strict=True):
                    total = code.fma(gradient, value, total)
                results.append(total)
            return results

        sums = code.repeat(shape.rows, four, [code.nothing] * (len(rows) * len(columns)), step=QUAD)
        return [sums[start : start + len(columns)] for start in range(0, len(sums), len(columns))]

    def _truths(self, fourth: Value):
        """The same products for truth values, as a function of the gradient's first four numbers."""
        code, shape = self.code, self.shape
        count, begin = len(shape.value_rows) - len(shape.dense), len(shape.dense) * shape.gradient_stride
        loaded = []
        for first in range(0, count, QUAD):
            index = code.at.add(fourth, code.whole(first))
            index = code.choose(code.at.icmp_signed("<", index, code.whole(count - 1)), index, code.whole(count - 1))
            loaded.append(
                code.load_quads(self.values, code.at.add(code.at.mul(index, code.whole(QUAD)), code.whole(begin)))
            )
        return lambda low: [code.fma(low[1], yes, code.mul(low[0], no)) for no, yes, *_ in loaded]

    def _constants(self, low: list[Value]) -> list[Value]:
        """The same products for constants."""
        code, fourth = self.code, self._own_value()
        numbers = [support for support in self.shape.supports if isinstance(support, int)]
        found = []
        for start in range(0, len(numbers), QUAD):
            first, *others = numbers[start : start + QUAD]
            chosen = low[first]
            for lane, number in enumerate(others, 1):
                chosen = code.choose(code.at.icmp_signed("==", fourth, code.whole(lane)), low[number], chosen)
            found.append(chosen)
        return found
