"""Rewrite rules: equal circuits, the shorter one on the right. The tests prove every rule for every M.

Letters stand for any values. A rule with a condition, `a > 0` or `a < 2`, applies only where it is known to hold.
Outputs that are always 0, 1 or 2 need no rule: facts.py finds them. ADD, EQUALITY-TEST, MIN and MAX match in both
orders of their arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

COMMUTATIVE = frozenset({"ADD", "EQUALITY-TEST", "MIN", "MAX"})

RULES_TEXT = """
INC(DEC(a)) = a
DEC(INC(a)) = a
ADD(a, 0) = a
ADD(a, 1) = INC(a)
ADD(a, DEC(0)) = DEC(a)
ADD(DEC(a), 2) = INC(a)
ADD(INC(a), DEC(b)) = ADD(a, b)
ADD(SUB(a, b), b) = a
ADD(INC(SUB(a, b)), b) = INC(a)
ADD(DEC(SUB(a, b)), b) = DEC(a)
SUB(a, 0) = a
SUB(a, 1) = DEC(a)
SUB(a, a) = 0
SUB(a, DEC(0)) = INC(a)
SUB(INC(a), 2) = DEC(a)
SUB(INC(a), a) = 1
SUB(a, DEC(a)) = 1
SUB(DEC(a), a) = DEC(0)
SUB(a, INC(a)) = DEC(0)
SUB(INC(a), DEC(a)) = 2
SUB(INC(a), INC(b)) = SUB(a, b)
SUB(DEC(a), DEC(b)) = SUB(a, b)
SUB(ADD(a, b), b) = a
SUB(INC(ADD(a, b)), b) = INC(a)
SUB(DEC(ADD(a, b)), b) = DEC(a)
SUB(a, SUB(a, b)) = b
LESS-THAN(a, a) = 0
LESS-OR-EQUAL-THAN(a, a) = 1
EQUALITY-TEST(a, a) = 1
EQUALITY-TEST(a, INC(a)) = 0
EQUALITY-TEST(a, DEC(a)) = 0
EQUALITY-TEST(INC(a), INC(b)) = EQUALITY-TEST(a, b)
EQUALITY-TEST(DEC(a), DEC(b)) = EQUALITY-TEST(a, b)
EQUALITY-TEST(DEC(a), 0) = EQUALITY-TEST(a, 1)
EQUALITY-TEST(SUB(a, b), 0) = EQUALITY-TEST(a, b)
EQUALITY-TEST(SUB(a, b), a) = EQUALITY-TEST(b, 0)
EQUALITY-TEST(ADD(a, b), a) = EQUALITY-TEST(b, 0)
EQUALITY-TEST(LESS-THAN(a, b), 0) = LESS-OR-EQUAL-THAN(b, a)
EQUALITY-TEST(LESS-OR-EQUAL-THAN(a, b), 0) = LESS-THAN(b, a)
EQUALITY-TEST(a, 1) = a  if a < 2
LESS-THAN(0, a) = a  if a < 2
LESS-OR-EQUAL-THAN(1, a) = LESS-THAN(0, a)
LESS-THAN(a, 1) = EQUALITY-TEST(a, 0)
LESS-OR-EQUAL-THAN(a, 0) = EQUALITY-TEST(a, 0)
LESS-THAN(1, a) = LESS-OR-EQUAL-THAN(2, a)
LESS-THAN(a, 2) = LESS-OR-EQUAL-THAN(a, 1)
LESS-THAN(DEC(0), a) = 0
LESS-OR-EQUAL-THAN(a, DEC(0)) = 1
LESS-OR-EQUAL-THAN(DEC(0), a) = EQUALITY-TEST(a, DEC(0))
LESS-THAN(a, INC(a)) = LESS-THAN(a, DEC(0))
LESS-THAN(DEC(a), a) = 1  if a > 0
LESS-OR-EQUAL-THAN(DEC(a), a) = LESS-THAN(0, a)
LESS-THAN(a, MIN(a, b)) = 0
LESS-THAN(MAX(a, b), a) = 0
LESS-OR-EQUAL-THAN(MIN(a, b), a) = 1
LESS-OR-EQUAL-THAN(a, MAX(a, b)) = 1
MIN(a, a) = a
MAX(a, a) = a
MIN(a, 1) = 1  if a > 0
MAX(a, 1) = a  if a > 0
MIN(a, 1) = a  if a < 2
MIN(a, 1) = LESS-THAN(0, a)
MAX(a, 0) = a
MIN(a, DEC(0)) = a
MAX(a, DEC(0)) = DEC(0)
MIN(a, DEC(a)) = DEC(a)  if a > 0
MAX(a, DEC(a)) = a  if a > 0
MIN(a, MIN(a, b)) = MIN(a, b)
MAX(a, MAX(a, b)) = MAX(a, b)
MIN(a, MAX(a, b)) = a
MAX(a, MIN(a, b)) = a
"""

Pattern = str | int | tuple  # a letter, a constant, or (module, pattern, ...)


@dataclass(frozen=True)
class Rule:
    text: str
    pattern: tuple
    rewrite: Pattern
    positive: str | None = None  # a letter that must not be 0
    boolean: str | None = None  # a letter that must be 0 or 1


def _parse_side(text: str) -> Pattern:
    tokens = re.findall(r"[A-Z][A-Z-]*|[a-z]|[0-9]|[(),]", text)

    def parse(at: int) -> tuple[Pattern, int]:
        token = tokens[at]
        if token.isdigit():
            return int(token), at + 1
        if token.islower():
            return token, at + 1
        parts: list[Pattern] = [token]
        at += 1
        while tokens[at] != ")":
            part, at = parse(at + 1)
            parts.append(part)
        return tuple(parts), at + 1

    return parse(0)[0]


def _parse_rule(line: str) -> Rule:
    found = re.fullmatch(r"(.*\)) = (.*?)(?:  if ([a-z]) (> 0|< 2))?", line)
    assert found is not None, line
    left, right, letter, condition = found.groups()
    pattern = _parse_side(left)
    assert isinstance(pattern, tuple)
    return Rule(
        line,
        pattern,
        _parse_side(right),
        positive=letter if condition == "> 0" else None,
        boolean=letter if condition == "< 2" else None,
    )


RULES: tuple[Rule, ...] = tuple(map(_parse_rule, RULES_TEXT.strip().splitlines()))
