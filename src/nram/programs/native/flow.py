"""The control flow of a program: which row can follow which, and which tests find the next row.

The analysis uses what is known about the flags when a row begins (its conditions, and that no earlier row applied) and
when it ends (constants, unchanged registers). This saves tests, and shows which rows can never be reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from nram.modules import Module
from nram.programs.ir import CONSTANTS, Conditions, Program, Row, carry_out

RowId = tuple[int, int]
"""A state, and the index of a row among its rows."""


@dataclass(frozen=True, eq=False, slots=True)
class Test:
    """Test one register and go on. Tests may share what follows them, so they are compared by identity."""

    register: int
    zero: Decision
    other: Decision


Decision = Test | int
"""A test, or the index of the row that applies."""


class Flow:
    """The rows that can be reached, and the decisions between them."""

    def __init__(self, program: Program):
        self.program = program
        self._decisions: dict[tuple[int, Conditions], Decision] = {}
        self._known: dict[tuple[RowId, frozenset[int]], Conditions] = {}

    def row(self, row_id: RowId) -> Row:
        return self.program.states[row_id[0]][row_id[1]]

    @cached_property
    def rows(self) -> tuple[RowId, ...]:
        """Every row that the flags do not rule out, beginning with the row of the first step."""
        start = (0, self.program.row_for(0, (True,) * len(self.program.registers)))
        found: dict[RowId, None] = {start: None}
        waiting: list[RowId] = [start]
        while waiting:
            for row_id in self.followers(waiting.pop()):
                if row_id not in found:
                    found[row_id] = None
                    waiting.append(row_id)
        return tuple(found)

    def followers(self, row_id: RowId, above_zero: frozenset[int] = frozenset()) -> list[RowId]:
        """The rows that can come after a row, if these outputs of it are not 0."""
        row = self.row(row_id)
        if row.halt:
            return []
        return [(row.next_state, index) for index in _row_indices(self.decision(row_id, above_zero))]

    def decision(self, row_id: RowId, above_zero: frozenset[int] = frozenset()) -> Decision:
        """The tests that find the row after this one, if these outputs of it are not 0."""
        row = self.row(row_id)
        key = row.next_state, self.known_after(row_id, above_zero)
        if key not in self._decisions:
            self._decisions[key] = decide([row.when for row in self.program.states[row.next_state]], key[1])
        return self._decisions[key]

    def known_before(self, row_id: RowId) -> Conditions:
        """What is known about the flags when a row applies."""
        return known_before([row.when for row in self.program.states[row_id[0]]], row_id[1])

    def known_after(self, row_id: RowId, above_zero: frozenset[int] = frozenset()) -> Conditions:
        """What is known about the flags after a row, if these outputs of it are not 0."""
        if (row_id, above_zero) not in self._known:
            row = self.row(row_id)
            before = self.known_before(row_id)

            flags: list[bool | None] = []

            def apply(module: Module, given: list[bool | None]) -> bool | None:
                flags.append(False if len(flags) in above_zero else output_is_zero(module, given))
                return flags[-1]

            after = carry_out(row, before.__getitem__, apply, lambda literal: literal == 0).registers
            self._known[row_id, above_zero] = tuple(after)
        return self._known[row_id, above_zero]


def output_is_zero(module: Module, given: Sequence[bool | None]) -> bool | None:
    """Whether the output of a module is 0, given what is known about its inputs being 0. M is at least 3."""
    if module.memory == "writes":
        return True
    if module.name in CONSTANTS:
        return CONSTANTS[module.name] == 0
    match module.name, given:
        case (("INC" | "DEC"), [True]):
            return False
        case "ADD", [True, other] | [other, True]:
            return other
        case "SUB", [True, other] | [other, True]:
            return other
        case "MIN", [x, y]:
            return True if x or y else False if x is False and y is False else None
        case "MAX", [x, y]:
            return False if x is False or y is False else True if x and y else None
        case ("LESS-THAN", [_, True]) | ("LESS-OR-EQUAL-THAN", [True, _]):
            return module.name == "LESS-THAN"
        case ("LESS-THAN", [True, other]) | ("EQUALITY-TEST", [True, other] | [other, True]):
            wanted = module.name == "LESS-THAN"
            return None if other is None else other is wanted
        case "LESS-OR-EQUAL-THAN", [x, True]:
            return None if x is None else not x
    return None


def known_before(patterns: Sequence[Conditions], index: int) -> Conditions:
    """What is known about the flags when this row applies: its conditions, and that no earlier row applied."""
    known = list(patterns[index])
    if None not in known:
        return tuple(known)
    # If all conditions of an earlier row hold but one, then that one does not hold. In long tables only the first
    # rows are used, since comparing all pairs would take too long.
    left = [pattern for pattern in patterns[: min(index, 64)] if not _excluded(pattern, known)]
    while True:
        narrow = [pattern for pattern in left if len(_open(pattern, known)) == 1]
        if not narrow:
            return tuple(known)
        for pattern in narrow:
            for register in _open(pattern, known):
                known[register] = not pattern[register]
        left = [pattern for pattern in left if not _excluded(pattern, known)]


def decide(patterns: Sequence[Conditions], known: Conditions) -> Decision:
    """Tests that find the first pattern that applies, without testing what is known."""
    rows = tuple(
        (index, tuple(None if flag is not None else wanted for wanted, flag in zip(pattern, known, strict=True)))
        for index, pattern in enumerate(patterns)
        if not _excluded(pattern, known)
    )
    try:
        return _tree(rows, {}, 4 * len(patterns) + 64)
    except _TooManyTestsError:
        return _chain(rows)


class _TooManyTestsError(Exception):
    pass


_Rows = tuple[tuple[int, Conditions], ...]
"""Row indices with the conditions that are still open."""


def _tree(rows: _Rows, known_trees: dict[_Rows, Decision], limit: int) -> Decision:
    """A decision diagram: every path tests a register at most once, and equal parts are shared."""
    index, conditions = rows[0]
    register = next((i for i, condition in enumerate(conditions) if condition is not None), None)
    if register is None:
        return index
    if rows not in known_trees:
        if len(known_trees) >= limit:
            raise _TooManyTestsError
        zero, other = (_tree(_given(rows, register, flag), known_trees, limit) for flag in (True, False))
        known_trees[rows] = zero if zero is other or zero == other else Test(register, zero, other)
    return known_trees[rows]


def _given(rows: _Rows, register: int, flag: bool) -> _Rows:
    kept = []
    for index, conditions in rows:
        if conditions[register] in (None, flag):
            conditions = (*conditions[:register], None, *conditions[register + 1 :])
            kept.append((index, conditions))
            if not any(condition is not None for condition in conditions):
                break  # this row applies, so later ones do not matter
    return tuple(kept)


def _chain(rows: _Rows) -> Decision:
    """Test one row after another. A path is longer, but has never more tests than there are conditions."""
    following: Decision = rows[-1][0]  # some row always applies, so the last one needs no test
    for index, conditions in reversed(rows[:-1]):
        decision: Decision = index
        for register, condition in enumerate(conditions):
            if condition is not None:
                pair = (decision, following) if condition else (following, decision)
                decision = Test(register, *pair)
        following = decision
    return following


def tests_of(decision: Decision) -> Iterator[Test]:
    """Every test of a decision, each once, beginning with the first."""
    seen: set[int] = set()
    waiting = [decision]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, int) and id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting += [node.other, node.zero]


def _row_indices(decision: Decision) -> list[int]:
    """The rows at the ends of a decision, each once."""
    if isinstance(decision, int):
        return [decision]
    ends = (end for test in tests_of(decision) for end in (test.zero, test.other))
    return list(dict.fromkeys(end for end in ends if isinstance(end, int)))


def _open(pattern: Conditions, known: Sequence[bool | None]) -> list[int]:
    """The registers whose flags this pattern needs and that are not known."""
    return [i for i, wanted in enumerate(pattern) if wanted is not None and known[i] is None]


def _excluded(pattern: Conditions, known: Sequence[bool | None]) -> bool:
    return any(
        wanted is not None and flag is not None and wanted != flag for wanted, flag in zip(pattern, known, strict=True)
    )
