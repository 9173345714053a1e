"""exp, log, tanh and the logistic function on vectors.

In float32 they are polynomials, good to about the last bit; in float64, which is for tests, the C library's functions
lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import log, log2, sqrt

import numpy as np

from nram.machine.kernels.cpu.lanes import Lanes, Value

LARGEST, SMALLEST = 88.0, -87.3  # beyond, exp in float32 is infinite or 0
EXPONENT_BITS, BIAS = 23, 127
TANH_SMALL = 0.6  # below, 1 - 2 / (exp(2x) + 1) loses digits
LN2_HIGH = 0.693359375  # few binary digits, so that its multiples are exact
LN2_LOW = log(2) - LN2_HIGH


def exponential(to: Lanes, x: Value) -> Value:
    """exp(x): 2^n exp(r) with |r| <= log(2) / 2."""
    if to.precision == "float64":
        return to.intrinsic("exp", x)
    bounded = to.at_least(to.at_most(x, to.number(LARGEST)), to.number(SMALLEST))
    n = to.intrinsic("rint", to.mul(bounded, to.number(log2(np.e))))
    r = to.fma(n, to.number(-LN2_HIGH), bounded)
    r = to.fma(n, to.number(-LN2_LOW), r)
    p = _polynomial(to, r, _fitted("exp", -log(2) / 2, log(2) / 2, 6))
    power = to.at.shl(to.at.fptosi(n, to.integers), to.whole(EXPONENT_BITS))
    result = to.at.bitcast(to.at.add(to.at.bitcast(p, to.integers), power), to.vector)
    result = to.choose(to.at.fcmp_ordered("<", x, to.number(SMALLEST)), to.number(0.0), result)
    return to.choose(to.at.fcmp_unordered("uno", x, x), x, result)


def logarithm(to: Lanes, x: Value) -> Value:
    """log(x) of positive numbers: with x = 2^n m, n log(2) + log(m), sqrt(1/2) <= m < sqrt(2)."""
    if to.precision == "float64":
        return to.intrinsic("log", x)
    bits = to.at.bitcast(x, to.integers)
    offset = to.whole(int(np.float32(sqrt(0.5)).view(np.int32)))
    shifted = to.at.sub(bits, offset)
    n = to.at.sitofp(to.at.ashr(shifted, to.whole(EXPONENT_BITS)), to.vector)
    mantissa = to.at.add(to.at.and_(shifted, to.whole((1 << EXPONENT_BITS) - 1)), offset)
    f = to.sub(to.at.bitcast(mantissa, to.vector), to.number(1.0))
    s = to.divide(f, to.add(f, to.number(2.0)))  # log(1 + f) = 2 artanh(s)
    z = to.mul(s, s)
    series = _polynomial(to, z, tuple(2 / (2 * k + 1) for k in range(6)))
    result = to.fma(n, to.number(LN2_HIGH), to.fma(n, to.number(LN2_LOW), to.mul(s, series)))
    finite = to.at.fcmp_ordered("<", x, to.number(float("inf")))
    return to.choose(finite, result, x)


def logistic(to: Lanes, x: Value) -> Value:
    """1 / (1 + exp(-x))"""
    one = to.number(1.0)
    return to.divide(one, to.add(one, exponential(to, to.at.fneg(x))))


def hyperbolic_tangent(to: Lanes, x: Value) -> Value:
    """1 - 2 / (exp(2x) + 1), near 0 a polynomial."""
    if to.precision == "float64":
        return to.intrinsic("tanh", x)
    one = to.number(1.0)
    far = to.sub(one, to.divide(to.number(2.0), to.add(exponential(to, to.add(x, x)), one)))
    near = to.mul(x, _polynomial(to, to.mul(x, x), _fitted("tanh", 0.0, TANH_SMALL**2, 6)))
    return to.choose(to.at.fcmp_ordered("<", to.intrinsic("fabs", x), to.number(TANH_SMALL)), near, far)


def _polynomial(to: Lanes, x: Value, coefficients: tuple[float, ...]) -> Value:
    """Horner's scheme, the constant coefficient first."""
    *lower, highest = coefficients
    result = to.number(highest)
    for coefficient in reversed(lower):
        result = to.fma(result, x, to.number(coefficient))
    return result


_FITTED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "tanh": lambda z: np.tanh(np.sqrt(z + 1e-30)) / np.sqrt(z + 1e-30),  # of the square: tanh(x) / x is even
}


@lru_cache(maxsize=8)
def _fitted(name: str, low: float, high: float, degree: int) -> tuple[float, ...]:
    """Coefficients of the polynomial through the Chebyshev points, all but the best one."""
    fit = np.polynomial.Chebyshev.interpolate(_FITTED[name], degree, domain=[low, high])
    coefficients = fit.convert(kind=np.polynomial.Polynomial).coef
    return tuple(float(np.float32(c)) for c in coefficients)
