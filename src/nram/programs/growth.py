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
    letter: str = "n"
    """The name of the size in words."""

    def __call__(self, size: int) -> float:
        """The steps to be expected at this size."""
        value = sum(factor * size**power for power, factor in enumerate(self.coefficients))
        return exp(min(value, 700)) if self.kind == FASTER else value

    def __str__(self) -> str:
        """The growth in words, as 'about 2n + 3 steps'."""
        if self.kind == FASTER:
            return f"faster than {self.letter}^3 steps"
        if self.kind == UNCLEAR:
            return f"up to {self.most} steps"
        if self.kind == "constant":
            return f"{_number(self.coefficients[0])} step{'' if _number(self.coefficients[0]) == '1' else 's'}"
        said = ""
        for power, factor in reversed(list(enumerate(self.coefficients))):
            number = _number(abs(factor))
            if number == "0":
                continue
            name = self.letter if power == 1 else f"{self.letter}^{power}"
            term = number if power == 0 else name if number == "1" else f"{number}{name}"
            said += f" {'-' if factor < 0 else '+'} {term}" if said else f"{'-' if factor < 0 else ''}{term}"
        return f"about {said} steps"

    def breaks(self, limit: Callable[[int], float]) -> int | None:
        """The first size beyond those measured at which the steps exceed this limit; None if there is none."""

        def broken(size: int) -> bool:
            return self(size) > limit(size) + LEAST_TOLERANCE

        size = self.largest + 1
        while size <= FARTHEST and not broken(size):
            size += max(1, size // 64)  # longer and longer strides: a limit that is broken stays broken
        if size > FARTHEST:
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
    most: dict[int, int] = {}
    for size, steps in points:
        most[size] = max(steps, most.get(size, 0))
    if len(most) < LEAST_POINTS:
        return None
    sizes, steps = (np.array(column, float) for column in zip(*sorted(most.items()), strict=True))
    allowed = np.maximum(LEAST_TOLERANCE, TOLERANCE * steps)
    fitted: list[Growth] = []
    for degree, kind in enumerate(DEGREES):
        if len(most) < degree + LEAST_POINTS:
            break
        scale = sizes.max() or 1.0  # powers of numbers up to 1: large sizes lose no digits
        powers = np.vander(sizes / scale, degree + 1, increasing=True)
        factors = np.linalg.lstsq(powers, steps, rcond=None)[0]
        error = float(np.sqrt(np.mean(((powers @ factors - steps) / allowed) ** 2)))
        coefficients = tuple(float(factor / scale**power) for power, factor in enumerate(factors))
        one = Growth(kind, coefficients, int(sizes.max()), error, max(most.values()), letter)
        if error <= 1:
            return one
        fitted.append(one)
    rate, start = np.polyfit(sizes, np.log(np.maximum(steps, 1)), 1)
    exponential = np.sqrt(np.mean(((np.exp(rate * sizes + start) - steps) / allowed) ** 2))
    if exponential < min(one.error for one in fitted) and rate > FAST_RATE:
        start_and_rate = float(start), float(rate)
        return replace(fitted[-1], kind=FASTER, coefficients=start_and_rate, error=float(exponential))
    # Noise: a higher degree must halve the distance, or the lower one is kept.
    best = fitted[0]
    for one in fitted[1:]:
        if one.error < best.error / 2 and one.coefficients[-1] > 0:
            best = one
    return replace(best, kind=UNCLEAR) if best.kind == DEGREES[0] else best


def growth_of_runs(runs: Iterable[tuple[int, int, int]]) -> Growth | None:
    """The growth of runs (size, memory size, steps): with n, or with M where that explains the steps more simply."""
    every = list(runs)
    growth = growth_of((size, steps) for size, _, steps in every)
    by_cells = growth_of(((cells, steps) for _, cells, steps in every), "M")
    if growth is None or by_cells is None:
        return growth or by_cells
    if growth.error > 1:
        return by_cells if by_cells.error < growth.error else growth
    # A program that walks through its memory takes about M steps; by n, these can look like any curve.
    kinds = (*DEGREES, FASTER, UNCLEAR)
    simpler = by_cells.error <= 1 and kinds.index(by_cells.kind) < kinds.index(growth.kind)
    return by_cells if simpler else growth


def _number(value: float) -> str:
    """A factor, rounded as far as a reader needs it."""
    near = round(value)
    if abs(value - near) < 0.05 or value >= 20:
        return str(near)
    return f"{value:.1f}"
