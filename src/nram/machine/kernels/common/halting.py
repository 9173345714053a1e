"""Halting, loss, entropy and time of one step, forwards and backwards: what lanes and warps compute alike.

A machine that still runs stops at step t with probability f_t, and with certainty at its step limit. So it stops there
with probability p_t = f_t (1 - f_1) ... (1 - f_(t-1)). Loss and time are expectations over p_t.
"""

from __future__ import annotations

from nram.llvm import Value
from nram.machine.distributions import DOUBT
from nram.machine.kernels.common.code import Code
from nram.machine.kernels.common.specification import Specification
from nram.machine.kernels.common.vector_math import logarithm


class Halting:
    """One step of examples with these step limits."""

    def __init__(self, code: Code, shape: Specification, limit: Value, step: Value):
        self.code, self.shape, self.limit = code, shape, limit
        self.nothing, self.one = code.number(0.0), code.number(1.0)
        self.count = code.spread(code.at.sitofp(code.at.add(step, code.index(1)), code.scalar))  # steps from 1 on
        self.forced = code.at.fcmp_ordered(">=", self.count, limit)

    def stop(self, willing: Value) -> Value:
        """f_t, where the controller alone would stop with probability `willing`; a discrete one decides."""
        code = self.code
        if self.shape.straight_through:
            willing = code.choose(code.above(code.number(0.5), willing), self.nothing, self.one)
        return code.choose(self.forced, self.one, willing)

    def _counted(self, value: Value) -> Value:
        """The entropy of steps beyond the limit does not count."""
        return self.code.choose(self.code.at.fcmp_ordered("<=", self.count, self.limit), value, self.nothing)

    def add(self, sums: list[Value], stop: Value, finish: Value, cost: Value, uncertain: Value) -> list[Value]:
        """The sums after the step: the probability that the machine still runs, loss, entropy and time.

        `finish` is p_t, `cost` the loss if the machine stops here, `uncertain` the sum of the wires' entropies.
        """
        code, (running, loss, entropy, time) = self.code, sums
        mean = code.mul(uncertain, code.number(1.0 / self.shape.wiring.wires))
        return [
            code.mul(running, code.sub(self.one, stop)),
            code.fma(finish, cost, loss),
            code.add(entropy, self._counted(mean)),
            code.fma(finish, self.count, time),
        ]

    def time_back(self, seed: Value) -> Value:
        """The gradient of the time with respect to p_t."""
        return self.code.divide(self.code.mul(seed, self.count), self.limit)

    def entropy_back(self, seed: Value) -> Value:
        """The gradient of the entropy with respect to that of one wire."""
        code = self.code
        return self._counted(code.divide(seed, code.mul(self.limit, code.number(float(self.shape.wiring.wires)))))

    def back(self, running: Value, willing: Value, to_finish: Value, to_running: Value) -> tuple[Value, Value]:
        """The gradients with respect to the halting scalar, and to the probability that the machine ran before.

        `to_running` is that with respect to the probability that it runs afterwards. Backwards, halting is soft.
        """
        code, stop = self.code, self.stop(willing)
        slope = code.mul(code.mul(running, code.sub(to_finish, to_running)), willing)
        slope = code.mul(slope, code.sub(self.one, willing))
        before = code.fma(stop, to_finish, code.mul(code.sub(self.one, stop), to_running))
        return code.choose(self.forced, self.nothing, slope), before


def likelihood(code: Code, shape: Specification, seen: Value) -> Value:
    """What the loss takes the logarithm of."""
    return code.add(seen, code.number(DOUBT)) if shape.straight_through else seen


def log_share(code: Code, seen: Value, share: Value, epsilon: Value) -> Value:
    """A cell's part of the log-likelihood."""
    return code.mul(logarithm(code, code.at_least(seen, epsilon)), share)


def log_slope(code: Code, seen: Value, share: Value, epsilon: Value) -> Value:
    """The gradient of a cell's loss, share times -log(max(seen, epsilon))."""
    slope = code.at.fneg(code.divide(share, seen))
    return code.choose(code.above(seen, epsilon), slope, code.number(0.0))
