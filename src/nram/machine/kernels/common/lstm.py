"""A cell of the LSTM, forwards and backwards, from its gates: what lanes and warps compute alike."""

from __future__ import annotations

from nram.llvm import Value
from nram.machine.kernels.common.code import Code
from nram.machine.kernels.common.vector_math import hyperbolic_tangent, logistic

GATES = 4
KEPT = 6  # values of a cell that the backward pass needs


def cell_forward(code: Code, gates: list[Value], before: Value) -> tuple[list[Value], Value, Value]:
    """The values to be kept, the cell afterwards, and its output."""
    admit, keep, emit = (logistic(code, gates[index]) for index in (0, 1, 3))
    fresh = hyperbolic_tangent(code, gates[2])
    after = code.fma(keep, before, code.mul(admit, fresh))
    bent = hyperbolic_tangent(code, after)
    return [admit, keep, fresh, emit, before, bent], after, code.mul(emit, bent)


def cell_back(code: Code, kept: list[Value], to_output: Value, to_after: Value) -> tuple[list[Value], Value]:
    """The gradients with respect to the gates, and to the cell before."""
    (admit, keep, fresh, emit, before, bent), one = kept, code.number(1.0)

    def logistic_slope(y: Value) -> Value:
        return code.mul(y, code.sub(one, y))

    def tangent_slope(y: Value) -> Value:
        return code.sub(one, code.mul(y, y))

    to_cell = code.add(code.mul(code.mul(to_output, emit), tangent_slope(bent)), to_after)
    slopes = (
        code.mul(fresh, logistic_slope(admit)),
        code.mul(before, logistic_slope(keep)),
        code.mul(admit, tangent_slope(fresh)),
    )
    to_emit = code.mul(code.mul(to_output, bent), logistic_slope(emit))
    return [*(code.mul(to_cell, slope) for slope in slopes), to_emit], code.mul(to_cell, keep)
