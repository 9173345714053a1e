"""Hyperparameters as ranges: every member of a population draws its own value.

In a configuration a range is a number or a string: `0.01` is fixed, `"2e-3..2e-2"` is log-uniform
between two positive bounds (uniform where the lower one is 0), `"1|10|inf"` is a choice.
"""

import math
import random
from dataclasses import dataclass

from nram.errors import shown

MOST_TEXT = 1000  # characters
LARGEST = 1e38  # training works in 32-bit floats


@dataclass(frozen=True)
class Range:
    """The values that members draw a hyperparameter from."""

    values: tuple[float, ...]
    continuous: bool = False  # between the two values, instead of one of them

    @classmethod
    def parse(cls, text: "str | float | Range") -> "Range":
        if isinstance(text, Range):
            return text
        if not isinstance(text, str):
            return cls((_number(text),))
        if len(text) > MOST_TEXT:
            raise ValueError(f"{shown(text)} is longer than {MOST_TEXT} characters")
        if ".." in text:
            low, high = (_number(part) for part in text.split("..", 1))
            if not 0 <= low < high < math.inf:
                raise ValueError(f"the range '{text}' needs 0 <= low < high")
            return cls((low, high), continuous=True)
        return cls(tuple(_number(part) for part in text.split("|")))

    def as_config(self) -> float | str:
        if len(self.values) == 1 and math.isfinite(self.values[0]):
            return self.values[0]
        return str(self)

    def __str__(self) -> str:
        return (".." if self.continuous else "|").join(map(_words, self.values))

    def draw(self, rng: random.Random) -> float:
        if not self.continuous:
            return rng.choice(self.values)
        low, high = self.values
        if low == 0:
            return rng.uniform(low, high)
        drawn = math.exp(rng.uniform(math.log(low), math.log(high)))
        return min(max(drawn, low), high)  # the exponential rounds

    def jitter(self, value: float, rng: random.Random, factor: float) -> float:
        """A value near this one and inside the range; choices change now and then."""
        if not self.continuous:
            return rng.choice(self.values) if rng.random() < 0.1 else value
        low, high = self.values
        moved = value * math.exp(rng.uniform(-1, 1) * math.log(factor))
        return min(max(moved, low), high)


def _words(value: float) -> str:
    """The value to the last digit: a run that is resumed reads it back."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _number(text: str | float) -> float:
    try:
        value = math.nan if isinstance(text, bool) else float(text)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{shown(text)} is not a number, a range like 2e-3..2e-2 or a choice like 1|10|inf") from None
    if math.isnan(value) or value < 0:
        raise ValueError(f"{shown(text)} is negative or not a number")
    if LARGEST < value < math.inf:
        raise ValueError(f"{shown(text)} is too large: the most is {LARGEST:g}")
    return value
