"""What the three methods hand back: what they found, what they left out, and where the program failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Method = Literal["exhaustive", "symbolic", "random"]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Finding:
    """On these sizes, everything that was looked at came out right."""

    method: Method
    complexity: tuple[int, int]
    """The smallest and the largest n."""
    extra_memory: tuple[int, int] | None
    """M ran from the least that n needs plus the first to that plus the second. None: every M from the least up."""
    instances: int | None
    """How many inputs were run; None for a proof, which is about all of them."""
    proven: bool
    """It holds for every legal input of these sizes. Otherwise it was only tested."""
    limits: tuple[str, ...]
    """The limits under which it was right: T, 2T, 20n+200, or 'every' for any from T up."""
    halts: bool
    """Every run ended by itself."""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "complexity": list(self.complexity),
            "extra_memory": None if self.extra_memory is None else list(self.extra_memory),
            "instances": self.instances,
            "proven": self.proven,
            "limits": list(self.limits),
            "halts": self.halts,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class Skipped:
    """Something that was not looked at, or not settled, and why."""

    method: Method
    complexity: tuple[int, int | None]
    """The smallest and the largest n; None: all from the smallest up."""
    what: str
    """What of these complexities; empty: all."""
    why: str

    def to_json(self) -> dict[str, Any]:
        return {"method": self.method, "complexity": list(self.complexity), "what": self.what, "why": self.why}


@dataclass(frozen=True)
class Failure:
    """An input on which the program was seen to be wrong."""

    complexity: int
    memory: tuple[int, ...]
    limit: int
    """In steps."""
    at_first: bool
    """It is wrong at T(n) itself, not only under a larger limit."""
    method: Method

    @property
    def size(self) -> tuple[int, int, tuple[int, ...], int]:
        """What 'smallest' goes by: n, then M, then the memory."""
        return self.complexity, len(self.memory), self.memory, self.limit


@dataclass
class Part:
    """The yield of one method."""

    findings: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def fails(self, at_first: bool) -> bool:
        return any(failure.at_first == at_first for failure in self.failures)


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """The same in fewer lines: neighbouring memory sizes, then neighbouring complexities put together."""

    def extra(finding: Finding) -> tuple[int, int]:
        return finding.extra_memory or (-1, -1)

    by_memory: list[Finding] = []
    for finding in sorted(findings, key=lambda one: (one.complexity, extra(one))):
        last = by_memory[-1] if by_memory else None
        if (
            last is not None
            and _alike(last, finding)
            and last.complexity == finding.complexity
            and last.extra_memory is not None
            and extra(finding)[0] == last.extra_memory[1] + 1
        ):
            by_memory[-1] = _joined(last, finding, last.complexity, (last.extra_memory[0], extra(finding)[1]))
        else:
            by_memory.append(finding)
    lines: list[Finding] = []
    for finding in sorted(by_memory, key=lambda one: (not one.proven, extra(one), one.limits, one.complexity)):
        last = lines[-1] if lines else None
        if (
            last is not None
            and _alike(last, finding)
            and last.extra_memory == finding.extra_memory
            and last.method != "random"  # there a line is a size
            and finding.complexity[0] == last.complexity[1] + 1
        ):
            lines[-1] = _joined(last, finding, (last.complexity[0], finding.complexity[1]), last.extra_memory)
        else:
            lines.append(finding)
    return sorted(lines, key=lambda one: (not one.proven, one.complexity, extra(one)))


def merged_skips(skipped: Iterable[Skipped]) -> list[Skipped]:
    """The same in fewer lines: neighbouring complexities put together."""
    lines: list[Skipped] = []
    for one in sorted(skipped, key=lambda skip: (skip.method, skip.what, skip.why, skip.complexity[0])):
        last = lines[-1] if lines else None
        if (
            last is not None
            and (last.method, last.what, last.why) == (one.method, one.what, one.why)
            and last.complexity[1] is not None
            and one.complexity[0] == last.complexity[1] + 1
        ):
            lines[-1] = replace(last, complexity=(last.complexity[0], one.complexity[1]))
        else:
            lines.append(one)
    return sorted(lines, key=lambda skip: (skip.method, skip.complexity[0]))


def _alike(one: Finding, other: Finding) -> bool:
    what = (one.method, one.proven, one.limits, one.halts)
    return what == (other.method, other.proven, other.limits, other.halts)


def _joined(one: Finding, other: Finding, complexity: tuple[int, int], extra_memory: tuple[int, int] | None) -> Finding:
    instances = None if one.instances is None or other.instances is None else one.instances + other.instances
    return replace(
        one,
        complexity=complexity,
        extra_memory=extra_memory,
        instances=instances,
        seconds=one.seconds + other.seconds,
    )
