"""The results of the three methods: what was found, what was left out, and where the program failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from nram.programs.files import record_to_json
from nram.programs.ir import Method, Program


@dataclass(frozen=True)
class Finding:
    """On these sizes, the program was right on everything that was checked."""

    method: Method
    complexity: tuple[int, int | None]
    """The smallest and the largest n; None: every n from the smallest up."""
    extra_memory: tuple[int, int] | None
    """M ranged from the least that n needs plus the first number to the least plus the second. None: every M."""
    instances: int | None
    """How many inputs were run; None for a proof, which covers all of them."""
    proven: bool
    """It holds for every legal input of these sizes. Otherwise it was only tested."""
    limits: tuple[str, ...]
    """The limits under which it was right: T, 2T, 20n+200, or 'every' for any from T up."""
    halts: bool
    """Every run halted by itself."""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {**record_to_json(self), "seconds": round(self.seconds, 3)}


@dataclass(frozen=True)
class Skipped:
    """Something that was not checked, or not decided, and why."""

    method: Method
    complexity: tuple[int, int | None]
    """The smallest and the largest n; None: all from the smallest up."""
    what: str
    """Which part of these complexities; empty: all."""
    why: str


def emitted_forms(program: Program, complexity: tuple[int, int | None], method: Method) -> list[Skipped]:
    """What a proof takes for granted about the user-defined modules of a program."""
    why = "only tested, when it was loaded"
    whats = [
        f"that the emitted form of {module.name}, which proofs use, equals its integer meaning"
        for module in program.modules
        if not module.built_in
    ]
    return [Skipped(method, complexity, what, why) for what in whats]


@dataclass(frozen=True)
class Failure:
    """An input on which the program was wrong."""

    complexity: int
    memory: tuple[int, ...]
    limit: int
    """The most steps that the program could take."""
    at_first: bool
    """That is T(n). Otherwise the program is right at T(n), and wrong under this larger limit."""
    method: Method
    """How it was found."""

    @property
    def size(self) -> tuple[int, int, tuple[int, ...], int]:
        """The order by which failures are smaller or larger: n, then M, then the memory."""
        return self.complexity, len(self.memory), self.memory, self.limit


@dataclass
class Part:
    """The results of one method."""

    findings: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def fails(self, at_first: bool) -> bool:
        return any(failure.at_first == at_first for failure in self.failures)


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """The same results in fewer lines: join neighbouring memory sizes, then neighbouring complexities."""

    def extra(finding: Finding) -> tuple[int, int]:
        return finding.extra_memory or (-1, -1)

    def by_memory(last: Finding, finding: Finding) -> Finding | None:
        if last.extra_memory is None or last.complexity != finding.complexity:
            return None
        if extra(finding)[0] != last.extra_memory[1] + 1:
            return None
        return _joined(last, finding, extra_memory=(last.extra_memory[0], extra(finding)[1]))

    def by_complexity(last: Finding, finding: Finding) -> Finding | None:
        largest = last.complexity[1]
        if last.extra_memory != finding.extra_memory or largest is None or finding.complexity[0] != largest + 1:
            return None
        if last.method == "random":  # its results stay apart, one line for each size
            return None
        return _joined(last, finding, complexity=(last.complexity[0], finding.complexity[1]))

    lines = _join_neighbours(sorted(findings, key=lambda one: (one.complexity, extra(one))), by_memory)
    lines.sort(key=lambda one: (not one.proven, extra(one), one.limits, one.complexity))
    lines = _join_neighbours(lines, by_complexity)
    return sorted(lines, key=lambda one: (not one.proven, one.complexity, extra(one)))


def merged_skips(skipped: Iterable[Skipped]) -> list[Skipped]:
    """The same in fewer lines: join neighbouring complexities."""

    def join(last: Skipped, skip: Skipped) -> Skipped | None:
        (low, high), (following, highest) = last.complexity, skip.complexity
        same = (last.method, last.what, last.why) == (skip.method, skip.what, skip.why)
        return replace(last, complexity=(low, highest)) if same and high is not None and following == high + 1 else None

    ordered = sorted(skipped, key=lambda skip: (skip.method, skip.what, skip.why, skip.complexity[0]))
    return sorted(_join_neighbours(ordered, join), key=lambda skip: (skip.method, skip.complexity[0]))


T = TypeVar("T")


def _join_neighbours(items: Iterable[T], join: Callable[[T, T], T | None]) -> list[T]:
    """The items, each joined with the one before it where `join` gives something."""
    lines: list[T] = []
    for item in items:
        both = join(lines[-1], item) if lines else None
        if both is None:
            lines.append(item)
        else:
            lines[-1] = both
    return lines


def _joined(one: Finding, other: Finding, **sizes: tuple[int, int | None]) -> Finding | None:
    """Both findings as one with these sizes, if they say the same."""
    if any(getattr(one, name) != getattr(other, name) for name in ("method", "proven", "limits", "halts")):
        return None
    instances = None if one.instances is None or other.instances is None else one.instances + other.instances
    return replace(one, instances=instances, seconds=one.seconds + other.seconds, **sizes)
