"""Growth: how the steps of a program grow with the size of its input, in words, and where they break a step limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import exp
from typing import Any

import numpy as np

DEGREES = ("constant", "linear", "quadratic", "cubic")
FASTER = "faster"  # than the cube: no polynomial here explains the points
UNCLEAR = "unclear"  # the steps vary without growing clearly
LEAST_POINTS = 2  # more than the degree: a curve through every point explains nothing
TOLERANCE = 0.05  # of the steps: a measured point may be so far from a curve that explains it
LEAST_TOLERANCE = 0.75  # steps
LEAST_FASTER = 4  # sizes, before steps are said to grow faster than the cube
MANY_SIZES = 8  # a curve through noise is believed if it has so many sizes
FAST_RATE = 0.2  # of an exponential, for each item: slower ones look like noise around a line
FARTHEST = 10**6  # the largest size at which a limit is looked at


@dataclass(frozen=True)
class Growth:
    """The steps of a program as a function of the size of its input, from measured points."""

    kind: str
    """One of DEGREES, FASTER or UNCLEAR."""
    coefficients: tuple[float, ...]
    """Of 1, n, n^2 ...: the curve nearest to the most steps at each size. FASTER: those of the logarithm."""
    largest: int
    """The largest size that was measured."""
    error: float
    """The root of the mean square distance between points and curve, where 1 is just explained."""
    most: int
    """The most steps that were measured."""
    sizes: int
    """How many different sizes were measured."""
    varies: bool
    """Whether runs of one size take different numbers of steps. The curve is about the longest."""
    spread: float
    """The distance as in `error` between the curve and every run, not only the longest of each size."""
    letter: str = "n"
    """The name of the size in words."""

    @property
    def clear(self) -> bool:
        """Whether the steps surely grow so, and can be expected at larger sizes."""
        return self.kind not in (DEGREES[0], UNCLEAR) and (self.error <= 1 or self.sizes >= MANY_SIZES)

    def __call__(self, size: float) -> float:
        """The steps to be expected at this size."""
        value = sum(factor * size**power for power, factor in enumerate(self.coefficients))
        return exp(min(value, 700)) if self.kind == FASTER else value

    def __str__(self) -> str:
        """The growth in words, as 'about 2n + 3 steps'."""
        if self.kind == FASTER:
            return f"faster than {self.letter}^3 steps"
        if self.kind == UNCLEAR or (self.kind == DEGREES[0] and (self.varies or self.spread > 0)):
            return f"up to {self.most} steps"
        if self.kind == DEGREES[0]:
            return f"{self.most} step{'' if self.most == 1 else 's'}"
        said = ""
        for power, factor in reversed(list(enumerate(self.coefficients))):
            number = _number(abs(factor))
            if number == "0" and power == len(self.coefficients) - 1:
                number = f"{abs(factor):.1g}"  # small, and still what grows
            if number == "0":
                continue
            name = self.letter if power == 1 else f"{self.letter}^{power}"
            term = number if power == 0 else name if number == "1" else f"{number}{name}"
            said += f" {'-' if factor < 0 else '+'} {term}" if said else f"{'-' if factor < 0 else ''}{term}"
        return f"about {said} steps"

    @property
    def sentence(self) -> str:
        """The growth as a sentence without its end, as 'It takes about 2n + 3 steps'."""
        if self.kind == FASTER:
            return f"Its steps grow {self}".removesuffix(" steps")
        return f"It takes {'at most ' if self.varies and str(self).startswith('about') else ''}{self}"

    def breaks(self, limit: Callable[[int], float]) -> int | None:
        """The first size beyond those measured at which the steps exceed this limit; None if it does not exist."""

        def broken(size: int) -> bool:
            return self(size) > limit(size) + LEAST_TOLERANCE

        size = self.largest + 1
        while size <= FARTHEST and not broken(size):
            size += max(1, size // 64)  # longer and longer strides: a limit that is broken stays broken
        # Later it must be broken clearly: two slopes that are nearly equal may be the same.
        if size > FARTHEST or self(4 * size) * (1 - TOLERANCE) < limit(4 * size):
            return None
        while size > self.largest + 1 and broken(size - 1):
            size -= 1
        return size

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "words": str(self),
            "coefficients": [round(factor, 4) for factor in self.coefficients],
            "of": self.letter,
            "measured_up_to": self.largest,
        }


def growth_of(points: Iterable[tuple[int, int]], letter: str = "n") -> Growth | None:
    """The simplest growth that explains measured points (size, steps); None if they have no two sizes.

    At each size only the most steps count: limits must hold for the longest run. Curves are fitted by least squares.
    """
    every = list(points)
    most: dict[int, int] = {}
    for size, steps in every:
        most[size] = max(steps, most.get(size, 0))
    if len(most) < LEAST_POINTS:
        return None
    varies = any(steps < most[size] for size, steps in every)
    sizes, steps = (np.array(column, float) for column in zip(*sorted(most.items()), strict=True))
    runs = tuple(np.array(column, float) for column in zip(*every, strict=True))

    def curve(kind: str, coefficients: tuple[float, ...]) -> Growth:
        one = Growth(kind, coefficients, int(sizes.max()), 0.0, max(most.values()), len(most), varies, 0.0, letter)
        return replace(one, error=_distance(one, sizes, steps), spread=_distance(one, *runs))

    fitted: list[Growth] = []
    scale = sizes.max() or 1.0  # powers of numbers up to 1: large sizes lose no digits
    for degree, kind in enumerate(DEGREES):
        if len(most) < degree + LEAST_POINTS:
            break
        powers = np.vander(sizes / scale, degree + 1, increasing=True)
        factors = np.linalg.lstsq(powers, steps, rcond=None)[0]
        fitted.append(curve(kind, tuple(float(factor / scale**power) for power, factor in enumerate(factors))))
    # Longest runs are noisy: a higher degree must halve the distance and bend upwards, or the lower one is kept.
    best = fitted[0]
    for one in fitted[1:]:
        if best.error > 1 and one.error < best.error / 2 and _grows(one, sizes):
            best = one
    if best.error > 1 and len(most) >= LEAST_FASTER:
        rate, start = np.polyfit(sizes, np.log(np.maximum(steps, 1)), 1)
        exponential = curve(FASTER, (float(start), float(rate)))
        if exponential.error < min(one.error for one in fitted) / 2 and rate > FAST_RATE:
            return exponential
    return replace(best, kind=UNCLEAR) if best.kind == DEGREES[0] and best.error > 1 else best


def _distance(growth: Growth, sizes: np.ndarray, steps: np.ndarray) -> float:
    """The root of the mean square distance between points and curve, where 1 is just explained."""
    off = np.array([growth(size) for size in sizes]) - steps
    return round(float(np.sqrt(np.mean((off / np.maximum(LEAST_TOLERANCE, TOLERANCE * steps)) ** 2))), 9)


def _grows(growth: Growth, sizes: np.ndarray) -> bool:
    """Whether a polynomial goes up and, after the first quarter of the sizes, neither falls nor bends down."""
    quarter = 0.75 * sizes.min() + 0.25 * sizes.max()
    curve = np.polynomial.Polynomial(growth.coefficients)
    return growth.coefficients[-1] > 0 and curve.deriv()(quarter) >= 0 and curve.deriv(2)(quarter) >= 0


def growth_of_runs(runs: Iterable[tuple[int, int, int]]) -> Growth | None:
    """The growth of runs (size, memory size, steps): with n, or with M where that alone explains every run."""
    every = list(runs)
    growth = growth_of((size, steps) for size, _, steps in every)
    by_cells = growth_of(((cells, steps) for _, cells, steps in every), "M")
    if growth is None or by_cells is None:
        return growth or by_cells
    # A program that walks through its memory takes about M steps; by n, these can look like any curve. The longest
    # runs of a few memory sizes can look like any curve too, so M must explain the single runs.
    kinds = (*DEGREES, FASTER, UNCLEAR)
    better = growth.spread > 1 or kinds.index(by_cells.kind) < kinds.index(growth.kind)
    return by_cells if by_cells.spread <= 1 and better else growth


def limit_of(points: Iterable[tuple[int, int]]) -> Growth | None:
    """The step limit that points (size, limit) follow, by the least limit of each size; None if they follow none."""
    least: dict[int, int] = {}
    for size, steps in points:
        least[size] = min(steps, least.get(size, steps))
    growth = growth_of(least.items())
    return None if growth is None or growth.kind == UNCLEAR else growth


def _number(value: float) -> str:
    """A factor, rounded as far as a reader needs it."""
    near = round(value)
    if abs(value - near) < 0.05 or value >= 20:
        return str(near)
    return f"{value:.1f}"
