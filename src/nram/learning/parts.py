"""Training and held-out examples. The largest are held out: they test programs, and nothing is learned from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from nram.display import counted, span
from nram.errors import UsageError
from nram.tasks.example_files import Example

LEAST_EXAMPLES = 5
HELD_OUT = 0.2  # of all examples, at least
MOST_HELD_OUT = 0.5  # of all examples
FEW = 24  # training examples; a trick often fits fewer
FEW_OF_A_SIZE = 4


@dataclass(frozen=True)
class Parts:
    """Training and held-out examples, each from the smallest to the largest."""

    training: tuple[Example, ...]
    held_out: tuple[Example, ...]
    answers: tuple[Example, ...] = ()
    """Answers to questions, which are learned from too."""

    @property
    def learned_from(self) -> tuple[Example, ...]:
        return self.training + self.answers

    @property
    def longer(self) -> bool:
        """Whether everything held out is larger than everything learned from."""
        return self.held_out[0].size > self.training[-1].size

    @property
    def all(self) -> tuple[Example, ...]:
        return self.training + self.held_out


def split(examples: Sequence[Example], seed: int, shown: str) -> Parts:
    """Hold out the largest examples: whole sizes, or a share of the largest one where that would leave too little."""
    if len(examples) < LEAST_EXAMPLES:
        is_are = "is" if len(examples) == 1 else "are"
        raise UsageError(
            f"{shown} has {counted(len(examples), 'different example')}, which {is_are} too few: give at least "
            f"{LEAST_EXAMPLES}, better {FEW} or more, of several sizes; the largest are held out"
        )
    groups = by_size(examples)
    wanted = HELD_OUT * len(examples)
    kept, held_out = list(groups.values()), list[Example]()
    while len(held_out) < wanted:
        if len(held_out) + len(kept[-1]) <= MOST_HELD_OUT * len(examples):
            held_out = kept.pop() + held_out
        else:
            if not held_out:
                drawn = set(Random(seed).sample(range(len(kept[-1])), min(-int(-wanted // 1), len(kept[-1]) - 1)))
                held_out = [example for i, example in enumerate(kept[-1]) if i in drawn]
                kept[-1] = [example for i, example in enumerate(kept[-1]) if i not in drawn]
            break
    return Parts(tuple(example for group in kept for example in group), tuple(held_out))


def by_size(examples: Sequence[Example]) -> dict[int, list[Example]]:
    """The examples of each size, the smallest first."""
    groups: defaultdict[int, list[Example]] = defaultdict(list)
    for example in examples:
        groups[example.size].append(example)
    return {size: groups[size] for size in sorted(groups)}


def cautions(parts: Parts) -> list[str]:
    """What the examples cannot show, however the learning ends; each with what to add."""
    told = []
    if not parts.longer:
        told.append(
            "nothing held out is larger than what is learned from, so whether a program generalises to larger sizes "
            "cannot be shown: give examples of more sizes"
        )
    if len(parts.training) < FEW:
        told.append(
            f"{len(parts.training)} examples to learn from are few: a trick may fit them; {FEW} or more are better"
        )
    return told


def sizes_in_words(examples: Sequence[Example]) -> str:
    return span("size", [example.size for example in examples])


def memories_in_words(examples: Sequence[Example]) -> str:
    """Of how many cells the memories are."""
    low, high = min(example.cells for example in examples), max(example.cells for example in examples)
    return f"{low} cells" if low == high else f"{low} to {high} cells"
