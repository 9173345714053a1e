"""exp, log, tanh and the logistic function on vectors.

In float32 they are polynomials, right to about the last bit. In float64, which is for tests, they are the functions of
the C library, lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import log, log2, sqrt

import numpy as np

from nram.llvm import Value
from nram.machine.kernels.common.code import Code

LARGEST, SMALLEST = 88.0, -87.3  # beyond them exp in float32 is infinite or 0
EXPONENT_BITS, BIAS = 23, 127
TANH_SMALL = 0.6  # for smaller |x|, 1 - 2 / (exp(2x) + 1) loses digits
LN2_HIGH = 0.693359375  # it has few binary digits, so that its multiples are exact
LN2_LOW = log(2) - LN2_HIGH


def exponential(code: Code, x: Value) -> Value:
    """exp(x): 2^n exp(r) with |r| <= log(2) / 2."""
    if code.precision == "float64":
        return code.intrinsic("exp", x)
    bounded = code.at_least(code.at_most(x, code.number(LARGEST)), code.number(SMALLEST))
    # n log(2) is subtracted in two parts: the first product is exact, so that r has no rounding error of its size.
    n = code.intrinsic("rint", code.mul(bounded, code.number(log2(np.e))))
    r = code.fma(n, code.number(-LN2_HIGH), bounded)
    r = code.fma(n, code.number(-LN2_LOW), r)
    p = _polynomial(code, r, _fitted("exp", -log(2) / 2, log(2) / 2, 6))
    # To multiply by 2^n, add n to the bits of the exponent.
    power = code.at.shl(code.at.fptosi(n, code.integers), code.whole(EXPONENT_BITS))
    result = code.at.bitcast(code.at.add(code.at.bitcast(p, code.integers), power), code.vector)
    result = code.choose(code.at.fcmp_ordered("<", x, code.number(SMALLEST)), code.number(0.0), result)
    return code.choose(code.at.fcmp_unordered("uno", x, x), x, result)


def logarithm(code: Code, x: Value) -> Value:
    """log(x) of positive numbers: n log(2) + log(m) with x = 2^n m, sqrt(1/2) <= m < sqrt(2)."""
    if code.precision == "float64":
        return code.intrinsic("log", x)
    # Subtract sqrt(1/2) from the bits: the upper bits are n, the lower ones the mantissa of m, shifted likewise.
    bits = code.at.bitcast(x, code.integers)
    offset = code.whole(int(np.float32(sqrt(0.5)).view(np.int32)))
    shifted = code.at.sub(bits, offset)
    n = code.at.sitofp(code.at.ashr(shifted, code.whole(EXPONENT_BITS)), code.vector)
    mantissa = code.at.add(code.at.and_(shifted, code.whole((1 << EXPONENT_BITS) - 1)), offset)
    f = code.sub(code.at.bitcast(mantissa, code.vector), code.number(1.0))
    s = code.divide(f, code.add(f, code.number(2.0)))  # log(1 + f) = 2 artanh(s)
    z = code.mul(s, s)
    series = _polynomial(code, z, tuple(2 / (2 * k + 1) for k in range(6)))
    result = code.fma(n, code.number(LN2_HIGH), code.fma(n, code.number(LN2_LOW), code.mul(s, series)))
    finite = code.at.fcmp_ordered("<", x, code.number(float("inf")))
    return code.choose(finite, result, x)


def logistic(code: Code, x: Value) -> Value:
    """1 / (1 + exp(-x))"""
    one = code.number(1.0)
    return code.divide(one, code.add(one, exponential(code, code.at.fneg(x))))


def hyperbolic_tangent(code: Code, x: Value) -> Value:
    """tanh(x) = 1 - 2 / (exp(2x) + 1); near 0 a polynomial."""
    if code.precision == "float64":
        return code.intrinsic("tanh", x)
    one = code.number(1.0)
    far = code.sub(one, code.divide(code.number(2.0), code.add(exponential(code, code.add(x, x)), one)))
    near = code.mul(x, _polynomial(code, code.mul(x, x), _fitted("tanh", 0.0, TANH_SMALL**2, 6)))
    return code.choose(code.at.fcmp_ordered("<", code.intrinsic("fabs", x), code.number(TANH_SMALL)), near, far)


def _polynomial(code: Code, x: Value, coefficients: tuple[float, ...]) -> Value:
    """Horner's scheme, the constant coefficient first."""
    *lower, highest = coefficients
    result = code.number(highest)
    for coefficient in reversed(lower):
        result = code.fma(result, x, code.number(coefficient))
    return result


_FITTED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "tanh": lambda z: np.tanh(np.sqrt(z + 1e-30)) / np.sqrt(z + 1e-30),  # of the square: tanh(x) / x is even
}


@lru_cache(maxsize=8)
def _fitted(name: str, low: float, high: float, degree: int) -> tuple[float, ...]:
    """The coefficients of the polynomial through the Chebyshev points, which is nearly the best one."""
    fit = np.polynomial.Chebyshev.interpolate(_FITTED[name], degree, domain=[low, high])
    coefficients = fit.convert(kind=np.polynomial.Polynomial).coef
    return tuple(float(np.float32(c)) for c in coefficients)
