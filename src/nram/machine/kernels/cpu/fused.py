"""Terms of the algebra of distributions as loops over vectors.

Each loop goes over all c once. It keeps running sums in registers and computes whatever these sums allow, so that
nothing but the results is stored. Sums from below need a loop upwards and sums from above a loop downwards: loops of an
even number go upwards, the others downwards. Only where a term has sums of both kinds, the former are stored for the
loop of the latter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nram.algebra import Term
from nram.machine.kernels.cpu.lanes import Lanes, Value

UPWARDS, DOWNWARDS = ("at_most", "below"), ("at_least", "above")


def loop_of(term: Term) -> int:
    """The number of the first loop that can compute a term."""
    number = max(map(loop_of, term.operands), default=0)
    other_way = (UPWARDS, DOWNWARDS)[(number + 1) % 2]
    return number + 1 if term.operation in other_way else number


def compute_together(
    b: Lanes, size: int, rows: list[Value], outs: dict[Term, Value], scratch: Value, finish: Callable[[Value], Value]
) -> None:
    """Store finish(term[c]) for all c and all terms of `outs`. `rows` are the arguments; `scratch` has room for two."""
    parts = list(dict.fromkeys(part for term in outs for part in term.parts))
    sums = [part for part in parts if part.operation in (*UPWARDS, *DOWNWARDS, "truth")]
    needed = {operand for part in parts for operand in part.operands if loop_of(operand) < loop_of(part)}
    stored = {part: b.row(scratch, i * size) for i, part in enumerate(part for part in sums if part in needed)}
    slopes = {part: _slope(b, rows[part.operands[0].number]) for part in parts if part.operation == "slope"}
    for number in range(1 + max(map(loop_of, outs))):
        results = {term: out for term, out in outs.items() if loop_of(term) == number and term.operation != "truth"}
        own = [part for part in sums if loop_of(part) == number]

        def step(index: Value, totals: list[Value], number=number, results=results, own=own) -> list[Value]:
            c = index if number % 2 == 0 else b.at.sub(b.index(size - 1), index)
            loads = {part: row for part, row in stored.items() if loop_of(part) < number}
            here = Values(b, c, rows, loads, dict(zip(own, totals, strict=True)), dict(slopes))
            for term, out in results.items():
                b.store(finish(here.value(term)), out, c)
            for part in own:
                if part in stored:
                    b.store(here.value(part), stored[part], c)
            return [here.total(part) for part in own]

        if own:
            totals = b.repeat(size, step, [b.number(0.0)] * len(own))
            for part, truth in zip(own, totals, strict=True):
                if part.operation == "truth":
                    b.store(b.sub(b.number(1.0), truth), outs[part], 0)
                    b.store(truth, outs[part], 1)
        elif results:
            b.each(size, lambda c: [step(c, [])][:0])


def _slope(b: Lanes, gradient: Value) -> Value:
    """By the probability that a truth value is 1, where that it is 0 has the rest."""
    return b.sub(b.load(gradient, 1), b.load(gradient, 0))


@dataclass
class Values:
    """The values of terms at one c."""

    b: Lanes
    c: Value
    rows: list[Value]
    stored: dict[Term, Value]  # rows of sums from earlier loops
    before: dict[Term, Value]  # the running sums without this c
    known: dict[Term, Value]
    after: dict[Term, Value] = field(default_factory=dict)

    def value(self, term: Term) -> Value:
        if term not in self.known:
            self.known[term] = self._compute(term)
        return self.known[term]

    def _compute(self, term: Term) -> Value:
        b = self.b
        if term in self.stored:
            return b.load(self.stored[term], self.c)
        match term.operation, term.operands:
            case "argument", _:
                return b.load(self.rows[term.number], self.c)
            case (("below" | "above"), _):
                return self.before[term]
            case (("at_most" | "at_least"), _):
                return self.total(term)
            case (("multiply" | "scale"), [x, y]):
                return b.mul(self.value(x), self.value(y))
            case "multiply_add", [x, y, z]:
                return b.fma(self.value(x), self.value(y), self.value(z))
        raise ValueError(f"there is no code for {term.operation}")

    def total(self, term: Term) -> Value:
        """A running sum with this c; a product is added in the same instruction."""
        if term not in self.after:
            added = term.operands if term.operation == "truth" else term.operands[0].operands
            if term.operation == "truth" or term.operands[0].operation in ("multiply", "scale"):
                x, y = added
                self.after[term] = self.b.fma(self.value(x), self.value(y), self.before[term])
            else:
                self.after[term] = self.b.add(self.before[term], self.value(term.operands[0]))
        return self.after[term]
