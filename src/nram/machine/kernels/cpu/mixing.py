"""Wires: softmaxes of the controller's output, and the weighted averages of values that they stand for.

A constant value (of ZERO, ONE, TWO and WRITE) is not stored, and of a truth value only two numbers are. So most sums
have fewer terms than there are values.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

from nram.llvm import Value
from nram.machine.kernels.common.vector_math import exponential, logarithm
from nram.machine.kernels.cpu.lanes import Lanes
from nram.machine.kernels.cpu.shape import KernelShape


class Wire(NamedTuple):
    """The addresses of the parts of one softmax."""

    logits: Value  # in a slot
    weights: Value
    norm: Value  # logits minus norm are the log-probabilities


class Mixing:
    """The wires of one kernel, as code."""

    def __init__(self, code: Lanes, shape: KernelShape):
        self.code = code
        self.shape = shape

    def choose(self, wires: list[Wire], length: Value, log_epsilon: Value) -> Value:
        """Softmaxes of wires of the same length, side by side; returns the sum of their entropies.

        In a straight-through pass the weights are 1 for the most probable value, the first if there are several, and 0
        for the others.
        """
        code, nothing = self.code, self.code.number(0.0)

        def largest(v: Value, tops: list[Value]) -> list[Value]:
            return [code.at_least(self._logit(wire, v), top) for wire, top in zip(wires, tops, strict=True)]

        tops = code.repeat(length, largest, [code.load(wire.logits) for wire in wires])

        def power_of(v: Value, totals: list[Value]) -> list[Value]:
            results = []
            for wire, top, total in zip(wires, tops, totals, strict=True):
                power = exponential(code, code.sub(self._logit(wire, v), top))
                code.store(power, wire.weights, v)
                results.append(code.add(total, power))
            return results

        totals = code.repeat(length, power_of, [nothing] * len(wires))
        norms = [code.add(top, logarithm(code, total)) for top, total in zip(tops, totals, strict=True)]
        factors = [code.divide(code.number(1.0), total) for total in totals]
        for wire, norm in zip(wires, norms, strict=True):
            code.store(norm, wire.norm)

        def scale(v: Value, carried: list[Value]) -> list[Value]:
            entropies, taken = carried[: len(wires)], carried[len(wires) :]
            for i, wire in enumerate(wires):
                weight, logit = code.mul(code.load(wire.weights, v), factors[i]), self._logit(wire, v)
                log = code.at_least(code.sub(logit, norms[i]), log_epsilon)
                entropies[i] = code.fma(weight, log, entropies[i])
                if self.shape.straight_through:
                    left = code.sub(code.number(1.0), taken[i])  # 0 once a value was taken
                    weight = code.choose(code.above(tops[i], logit), nothing, left)
                    taken[i] = code.add(taken[i], weight)
                code.store(weight, wire.weights, v)
            return [*entropies, *taken]

        carried = code.repeat(length, scale, [nothing] * (2 * len(wires)))
        return code.at.fneg(code.total(carried[: len(wires)]))

    def choose_back(
        self, wires: list[Wire], length: Value, gradients: list[Value], to_entropy: Value, log_epsilon: Value
    ) -> None:
        """From the gradients of the weights and of the entropy to those of the logits, which they replace."""
        code = self.code
        minus = code.at.fneg(to_entropy)
        norms = [code.load(wire.norm) for wire in wires]

        def to_weights(v: Value, sums: list[Value]) -> list[Value]:
            results = []
            for wire, norm, gradient, total in zip(wires, norms, gradients, sums, strict=True):
                log = code.sub(self._logit(wire, v), norm)
                above = code.above(log, log_epsilon)
                slope = code.choose(above, code.add(log, code.number(1.0)), log_epsilon)  # of w log(max(w, epsilon))
                whole = code.fma(minus, slope, code.load(gradient, v))
                code.store(whole, gradient, v)
                if self.shape.straight_through:  # the backward pass is soft, here and where values get their gradients
                    code.store(exponential(code, log), wire.weights, v)
                results.append(code.fma(code.load(wire.weights, v), whole, total))
            return results

        means = code.repeat(length, to_weights, [code.number(0.0)] * len(wires))

        def finish(v: Value, _: list[Value]) -> list[Value]:
            for wire, gradient, mean in zip(wires, gradients, means, strict=True):
                to_logit = code.mul(code.load(wire.weights, v), code.sub(code.load(gradient, v), mean))
                code.store(to_logit, self._logit_address(wire, v))
            return []

        code.repeat(length, finish)

    def _logit_address(self, wire: Wire, v: Value) -> Value:
        return self.code.row(wire.logits, v, self.shape.vectors.lanes)

    def _logit(self, wire: Wire, v: Value) -> Value:
        return self.code.load(self._logit_address(wire, v))

    def mix(self, wires: range, weights: Value, values: Value, outs: list[Value]) -> None:
        """out[m] = sum over v of w[v] value[v, m], for wires of the same length side by side."""
        code, shape = self.code, self.shape
        choices = range(shape.wiring.lengths[wires[0]])
        dense = [v for v in choices if shape.supports[v] == "all"]
        rows = [code.row(values, shape.value_rows[v]) for v in dense]
        of_wires = [code.row(weights, shape.starts[wire]) for wire in wires]

        def finish(wire: int, start: Value, m: int, total: Value) -> None:
            code.store(total, code.row(outs[wire], start), m)

        self._sum_rows(shape.size, rows, len(wires), lambda wire, k: code.load(of_wires[wire], dense[k]), finish)
        for of_wire, out in zip(of_wires, outs, strict=True):
            first = [code.load(out, m) for m in range(3)]  # truth values and constants are 0, 1 or 2
            for v in choices:
                support = shape.supports[v]
                if isinstance(support, int):
                    first[support] = code.add(first[support], code.load(of_wire, v))
                elif support == "truth":
                    weight, truth = code.load(of_wire, v), code.row(values, shape.value_rows[v])
                    first[:2] = [code.fma(weight, code.load(truth, m), first[m]) for m in range(2)]
            for m, total in enumerate(first):
                code.store(total, out, m)

    def _sum_rows(
        self,
        length: int,
        rows: list[Value],
        outputs: int,
        weight: Callable[[int, int], Value],
        finish: Callable[[int, Value, int, Value], None],
    ) -> None:
        """finish(o, start, m, total) for outputs o side by side and all start + m below `length`, where total is the
        sum over k of weight(o, k) rows[k][start + m]."""
        code = self.code

        def part(start: Value, count: int) -> None:
            totals = [[code.number(0.0)] * count for _ in range(outputs)]
            for k, row in enumerate(rows):
                begin = code.row(row, start)
                factors = [weight(o, k) for o in range(outputs)]
                for m in range(count):
                    value = code.load(begin, m)
                    for sums, factor in zip(totals, factors, strict=True):
                        sums[m] = code.fma(factor, value, sums[m])
            for o, sums in enumerate(totals):
                for m, total in enumerate(sums):
                    finish(o, start, m, total)

        # Several sums at once keep the processor busy; more of them would only repeat code.
        code.chunks(length, 6 if outputs == 1 else 4, part)

    def weight_gradient(self, wires: range, received: Value, values: Value, out: Value) -> None:
        """out[v] = sum over m of g[m] value[v, m], for wires of the same length side by side."""
        code, shape = self.code, self.shape
        length = shape.wiring.lengths[wires[0]]
        dense = [v for v in range(length) if shape.supports[v] == "all"]
        gradients = [code.row(received, wire * shape.size) for wire in wires]
        outs = [code.row(out, shape.starts[wire]) for wire in wires]
        largest = code.accumulators // len(wires)
        for begin in range(0, len(dense), largest):
            group = dense[begin : begin + largest]

            def term(m: Value, sums: list[Value], group=group) -> list[Value]:
                parts = [code.load(gradient, m) for gradient in gradients]
                column = [code.load(code.row(values, shape.value_rows[v]), m) for v in group]
                factors = zip(product(column, parts), sums, strict=True)
                return [code.fma(value, part, total) for (value, part), total in factors]

            sums = code.repeat(shape.size, term, [code.number(0.0)] * (len(group) * len(wires)))
            for (v, target), total in zip(product(group, outs), sums, strict=True):
                code.store(total, target, v)
        for v in range(length):
            support = shape.supports[v]
            for gradient, target in zip(gradients, outs, strict=True):
                if support == "truth":
                    truth = code.row(values, shape.value_rows[v])
                    part = code.mul(code.load(gradient, 0), code.load(truth, 0))
                    code.store(code.fma(code.load(gradient, 1), code.load(truth, 1), part), target, v)
                elif isinstance(support, int):
                    code.store(code.load(gradient, support), target, v)

    def value_gradient(self, chosen: list[int], wires: range, weights: Value, received: Value, finish) -> None:
        """finish(v, m, sum over wires of w[wire, v] g[wire, m]) for some values v side by side, and all m."""
        code, shape = self.code, self.shape
        rows = [code.row(received, wire * shape.size) for wire in wires]
        self._sum_rows(
            2 if shape.supports[chosen[0]] == "truth" else shape.size,
            rows,
            len(chosen),
            lambda o, k: code.load(weights, shape.starts[wires[k]] + chosen[o]),
            lambda o, start, m, total: finish(chosen[o], code.at.add(start, code.index(m)), total),
        )
