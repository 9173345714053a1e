"""The control flow of a program: which row can follow which, and by which tests it is found.

A row is named by its state and its place there. What is known of the register flags when a row begins (its
conditions, and that no earlier row applied) and when it ends (constants, unchanged registers) spares tests and
shows which rows can never be reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from nram.programs.ir import CONSTANTS, MODULES, Constant, Output, Program, Register, Row, Value

RowName = tuple[int, int]
"""State, and place among its rows."""

Flags = tuple[bool | None, ...]
"""Of each register: True if it is 0, False if it is not, None if it is not known."""


@dataclass(frozen=True, eq=False, slots=True)
class Test:
    """Look at one register and go on. Tests may share what follows them; identity tells them apart."""

    register: int
    zero: Decision
    other: Decision


Decision = Test | int
"""A test, or the place of the row that applies."""


class Flow:
    """The rows that can be reached, and the decisions between them."""

    def __init__(self, program: Program):
        self.program = program
        self._decisions: dict[tuple[int, Flags], Decision] = {}
        self._known: dict[RowName, Flags] = {}

    def row(self, name: RowName) -> Row:
        return self.program.states[name[0]][name[1]]

    @cached_property
    def rows(self) -> tuple[RowName, ...]:
        """Every row that the flags do not rule out; the one that comes first is the first."""
        start = (0, self.program.row_for(0, (True,) * len(self.program.registers)))
        found: dict[RowName, None] = {start: None}
        waiting: list[RowName] = [start]
        while waiting:
            for name in self.followers(waiting.pop()):
                if name not in found:
                    found[name] = None
                    waiting.append(name)
        return tuple(found)

    def followers(self, name: RowName) -> list[RowName]:
        """The rows that can come after a row."""
        row = self.row(name)
        return [] if row.halt else [(row.next_state, place) for place in _places(self.decision(name))]

    def decision(self, name: RowName) -> Decision:
        """How the row after this one is found."""
        row = self.row(name)
        key = row.next_state, self.known_after(name)
        if key not in self._decisions:
            self._decisions[key] = decide([row.when for row in self.program.states[row.next_state]], key[1])
        return self._decisions[key]

    def known_after(self, name: RowName) -> Flags:
        """What is certain of the flags when the row has been carried out."""
        if name not in self._known:
            row = self.row(name)
            before = known_before([row.when for row in self.program.states[name[0]]], name[1])
            self._known[name] = tuple(_flag(value, row, before) for value in row.registers)
        return self._known[name]


def known_before(patterns: Sequence[Flags], place: int) -> Flags:
    """What is certain of the flags when this row applies: its conditions, and that no earlier row did."""
    known = list(patterns[place])
    if None not in known:
        return tuple(known)
    # An earlier row all of whose conditions hold but one shows that this one does not. In long tables, where every
    # row would be compared with every other, only the first are asked.
    left = [pattern for pattern in patterns[: min(place, 64)] if not _excluded(pattern, known)]
    while True:
        narrow = [pattern for pattern in left if len(_open(pattern, known)) == 1]
        if not narrow:
            return tuple(known)
        for pattern in narrow:
            for register in _open(pattern, known):
                known[register] = not pattern[register]
        left = [pattern for pattern in left if not _excluded(pattern, known)]


def decide(patterns: Sequence[Flags], known: Flags) -> Decision:
    """Tests that find the first pattern that applies, without asking for what is known."""
    possible = [(place, pattern) for place, pattern in enumerate(patterns) if not _excluded(pattern, known)]
    rows = tuple((place, _unknown_part(pattern, known)) for place, pattern in possible)
    try:
        return _tree(rows, {}, 4 * len(patterns) + 64)
    except _TooManyTestsError:
        return _chain(rows)


class _TooManyTestsError(Exception):
    pass


_Rows = tuple[tuple[int, Flags], ...]
"""Places with the conditions that are still open."""


def _tree(rows: _Rows, known_trees: dict[_Rows, Decision], limit: int) -> Decision:
    """Every path asks for a register at most once. Equal parts are shared."""
    place, conditions = rows[0]
    register = next((i for i, condition in enumerate(conditions) if condition is not None), None)
    if register is None:
        return place
    if rows not in known_trees:
        if len(known_trees) >= limit:
            raise _TooManyTestsError
        zero, other = (_tree(_given(rows, register, flag), known_trees, limit) for flag in (True, False))
        known_trees[rows] = zero if zero is other or zero == other else Test(register, zero, other)
    return known_trees[rows]


def _given(rows: _Rows, register: int, flag: bool) -> _Rows:
    kept = []
    for place, conditions in rows:
        if conditions[register] in (None, flag):
            conditions = (*conditions[:register], None, *conditions[register + 1 :])
            kept.append((place, conditions))
            if not any(condition is not None for condition in conditions):
                break  # it applies, and so none after it is looked at
    return tuple(kept)


def _chain(rows: _Rows) -> Decision:
    """One row after another: more tests on a path, but never more than there are conditions."""
    following: Decision = rows[-1][0]  # some row always applies, so the last one needs no test
    for place, conditions in reversed(rows[:-1]):
        decision: Decision = place
        for register, condition in enumerate(conditions):
            if condition is not None:
                pair = (decision, following) if condition else (following, decision)
                decision = Test(register, *pair)
        following = decision
    return following


def tests_of(decision: Decision) -> Iterator[Test]:
    """Every test of a decision, each once; the first comes first."""
    seen: set[int] = set()
    waiting = [decision]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, int) and id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting += [node.other, node.zero]


def _places(decision: Decision) -> list[int]:
    """The rows at the ends of a decision, each once."""
    if isinstance(decision, int):
        return [decision]
    ends = (end for test in tests_of(decision) for end in (test.zero, test.other))
    return list(dict.fromkeys(end for end in ends if isinstance(end, int)))


def _open(pattern: Flags, known: Sequence[bool | None]) -> list[int]:
    """The registers whose flags this pattern needs and nobody knows."""
    return [i for i, wanted in enumerate(pattern) if wanted is not None and known[i] is None]


def _excluded(pattern: Flags, known: Sequence[bool | None]) -> bool:
    return any(
        wanted is not None and flag is not None and wanted != flag for wanted, flag in zip(pattern, known, strict=True)
    )


def _unknown_part(pattern: Flags, known: Flags) -> Flags:
    return tuple(None if flag is not None else wanted for wanted, flag in zip(pattern, known, strict=True))


def _flag(value: Value, row: Row, before: Flags) -> bool | None:
    """Whether a value of a row is certainly 0 or certainly not."""
    match value:
        case Constant(number):
            return number == 0
        case Register(index):
            return before[index]
        case Output(index):
            module = row.operations[index].module
            if MODULES[module].memory == "writes":
                return True
            return CONSTANTS[module] == 0 if module in CONSTANTS else None
