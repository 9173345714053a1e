"""Wires: softmaxes of the controller's output, and the weighted averages of values they stand for.

A constant value (of ZERO, ONE, TWO and WRITE) is never stored and a truth value has two places, so that most sums
have fewer terms than there are values.
"""

from __future__ import annotations

from typing import NamedTuple

from nram.llvm import Value
from nram.machine.kernels.common.vector_math import exponential, logarithm
from nram.machine.kernels.cpu.lanes import Lanes
from nram.machine.kernels.cpu.shape import KernelShape


def side_by_side(rows: int) -> int:
    """Places of so many rows that are summed at the same time: enough for the processor to be busy, and no more,
    because code is repeated for each of them."""
    return 6 if rows == 1 else 4


class Wire(NamedTuple):
    """Where the parts of one softmax are."""

    logits: Value  # vectors of a slot
    weights: Value
    norm: Value  # the distance from the log-probabilities to the logits


class Mixing:
    """The wires of one kernel, as code."""

    def __init__(self, to: Lanes, shape: KernelShape):
        self.to = to
        self.shape = shape

    def choose(self, wires: list[Wire], length: Value, log_epsilon: Value) -> Value:
        """Softmaxes of wires of the same length, side by side; returns the sum of their entropies.

        A hard machine takes the most probable value of each for certain, the first among equals.
        """
        to, nothing = self.to, self.to.number(0.0)

        def largest(v: Value, tops: list[Value]) -> list[Value]:
            return [to.at_least(self._logit(wire, v), top) for wire, top in zip(wires, tops, strict=True)]

        tops = to.repeat(length, largest, [to.load(wire.logits) for wire in wires])

        def raise_(v: Value, totals: list[Value]) -> list[Value]:
            results = []
            for wire, top, total in zip(wires, tops, totals, strict=True):
                power = exponential(to, to.sub(self._logit(wire, v), top))
                to.store(power, wire.weights, v)
                results.append(to.add(total, power))
            return results

        totals = to.repeat(length, raise_, [nothing] * len(wires))
        norms = [to.add(top, logarithm(to, total)) for top, total in zip(tops, totals, strict=True)]
        factors = [to.divide(to.number(1.0), total) for total in totals]
        for wire, norm in zip(wires, norms, strict=True):
            to.store(norm, wire.norm)

        def scale(v: Value, sums: list[Value]) -> list[Value]:
            entropies, taken = [], []
            for wire, top, norm, factor, total, given in zip(
                wires, tops, norms, factors, sums[: len(wires)], sums[len(wires) :], strict=True
            ):
                weight = to.mul(to.load(wire.weights, v), factor)
                logit = self._logit(wire, v)
                if self.shape.hard:
                    first = to.sub(to.number(1.0), given)
                    choice = to.choose(to.above(top, logit), nothing, first)
                    to.store(choice, wire.weights, v)
                    taken.append(to.add(given, choice))
                else:
                    to.store(weight, wire.weights, v)
                    taken.append(given)
                log = to.at_least(to.sub(logit, norm), log_epsilon)
                entropies.append(to.fma(weight, log, total))
            return [*entropies, *taken]

        sums = to.repeat(length, scale, [nothing] * (2 * len(wires)))
        return to.at.fneg(to.total(sums[: len(wires)]))

    def choose_back(
        self, wires: list[Wire], length: Value, gradients: list[Value], to_entropy: Value, log_epsilon: Value
    ) -> None:
        """From the gradients of the weights and of the entropy to those of the logits, which they replace."""
        to = self.to
        minus = to.at.fneg(to_entropy)
        norms = [to.load(wire.norm) for wire in wires]

        def bend(v: Value, sums: list[Value]) -> list[Value]:
            results = []
            for wire, norm, gradient, total in zip(wires, norms, gradients, sums, strict=True):
                log = to.sub(self._logit(wire, v), norm)
                above = to.above(log, log_epsilon)
                slope = to.choose(above, to.add(log, to.number(1.0)), log_epsilon)  # of w log(max(w, epsilon))
                whole = to.fma(minus, slope, to.load(gradient, v))
                to.store(whole, gradient, v)
                if self.shape.hard:  # backwards the wires are soft: this wire now, and its values later
                    to.store(exponential(to, log), wire.weights, v)
                results.append(to.fma(to.load(wire.weights, v), whole, total))
            return results

        means = to.repeat(length, bend, [to.number(0.0)] * len(wires))

        def finish(v: Value, _: list[Value]) -> list[Value]:
            for wire, gradient, mean in zip(wires, gradients, means, strict=True):
                own = to.mul(to.load(wire.weights, v), to.sub(to.load(gradient, v), mean))
                to.store(own, self._logit_place(wire, v))
            return []

        to.repeat(length, finish)

    def _logit_place(self, wire: Wire, v: Value) -> Value:
        return self.to.row(wire.logits, v, self.shape.vectors.lanes)

    def _logit(self, wire: Wire, v: Value) -> Value:
        return self.to.load(self._logit_place(wire, v))

    def mix(self, wires: range, weights: Value, values: Value, outs: list[Value]) -> None:
        """out[m] = sum over v of w[v] value[v, m], for wires of the same length side by side."""
        to, shape = self.to, self.shape
        length = shape.wiring.lengths[wires[0]]
        dense = [v for v in range(length) if shape.supports[v] == "all"]
        special = [v for v in range(length) if shape.supports[v] != "all"]
        own = [to.row(weights, shape.starts[wire]) for wire in wires]

        def sums(start: Value, count: int) -> None:
            totals = [[to.number(0.0)] * count for _ in wires]
            for v in dense:
                place = to.row(to.row(values, shape.value_rows[v]), start)
                parts = [to.load(weight, v) for weight in own]
                for m in range(count):
                    value = to.load(place, m)
                    for row, part in zip(totals, parts, strict=True):
                        row[m] = to.fma(part, value, row[m])
            for row, out in zip(totals, outs, strict=True):
                for m, total in enumerate(row):
                    to.store(total, to.row(out, start), m)

        to.chunks(shape.size, side_by_side(len(wires)), sums)
        for weight, out in zip(own, outs, strict=True):
            first = [to.load(out, m) for m in range(3)]  # to which alone truth values and constants add
            for v in special:
                part, support = to.load(weight, v), shape.supports[v]
                if isinstance(support, int):
                    first[support] = to.add(first[support], part)
                    continue
                place = to.row(values, shape.value_rows[v])
                for m in range(2):
                    first[m] = to.fma(part, to.load(place, m), first[m])
            for m, total in enumerate(first):
                to.store(total, out, m)

    def weight_gradient(self, wires: range, received: Value, values: Value, out: Value) -> None:
        """out[v] = sum over m of g[m] value[v, m], for wires of the same length side by side."""
        to, shape = self.to, self.shape
        length = shape.wiring.lengths[wires[0]]
        dense = [v for v in range(length) if shape.supports[v] == "all"]
        own = [to.row(received, wire * shape.size) for wire in wires]
        outs = [to.row(out, shape.starts[wire]) for wire in wires]
        largest = to.accumulators // len(wires)
        for begin in range(0, len(dense), largest):
            group = dense[begin : begin + largest]

            def term(m: Value, sums: list[Value], group=group) -> list[Value]:
                gradients = [to.load(row, m) for row in own]
                results = []
                for number, v in enumerate(group):
                    value = to.load(to.row(values, shape.value_rows[v]), m)
                    for wire, gradient in enumerate(gradients):
                        results.append(to.fma(gradient, value, sums[number * len(own) + wire]))
                return results

            sums = to.repeat(shape.size, term, [to.number(0.0)] * (len(group) * len(own)))
            for number, v in enumerate(group):
                for wire, place in enumerate(outs):
                    to.store(sums[number * len(own) + wire], place, v)
        for v in range(length):
            support = shape.supports[v]
            for row, place in zip(own, outs, strict=True):
                if support == "truth":
                    pair = to.row(values, shape.value_rows[v])
                    part = to.mul(to.load(row, 0), to.load(pair, 0))
                    to.store(to.fma(to.load(row, 1), to.load(pair, 1), part), place, v)
                elif isinstance(support, int):
                    to.store(to.load(row, support), place, v)

    def value_gradient(self, chosen: list[int], wires: range, weights: Value, received: Value, finish) -> None:
        """For values v side by side and their places m: finish(v, m, sum over wires of w[wire, v] g[wire, m])."""
        to, shape = self.to, self.shape
        places = 2 if shape.supports[chosen[0]] == "truth" else shape.size

        def part(start: Value, count: int) -> None:
            totals = [[to.number(0.0)] * count for _ in chosen]
            for wire in wires:
                own = [to.load(weights, shape.starts[wire] + v) for v in chosen]
                place = to.row(to.row(received, wire * shape.size), start)
                for m in range(count):
                    gradient = to.load(place, m)
                    for row, weight in zip(totals, own, strict=True):
                        row[m] = to.fma(weight, gradient, row[m])
            for v, row in zip(chosen, totals, strict=True):
                for m, total in enumerate(row):
                    finish(v, to.at.add(start, to.index(m)), total)

        to.chunks(places, side_by_side(len(chosen)), part)
