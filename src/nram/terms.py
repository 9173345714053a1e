"""Whole numbers and conditions as terms: written to SMT-LIB, shown to people, and evaluated on recorded runs.

A sum is kept in one form, a constant and its parts with their factors, so that equal sums are equal terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nram.lazy import np

INVALID = -(10**15)  # of an evaluation: an address outside the memory, or an index outside a function


class Term:
    """A whole number, or a condition. `op` says what `parts` are.

    int: (value,); var: (name,); sum: (constant, ((part, factor), ...)); call: (function, argument);
    if: (condition, yes, no); times, mod, div: (a, b);
    conditions: le: (a, b); eq: (a, b); and, or: conditions; not: (condition,); true, false: ()
    """

    __slots__ = ("_hash", "_text", "op", "parts")

    def __init__(self, op: str, parts: tuple[Any, ...]):
        self.op = op
        self.parts = parts
        self._hash = hash((op, parts))
        self._text: str | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Term) or self._hash != other._hash:
            return False
        return self.op == other.op and self.parts == other.parts

    def __add__(self, other: Term | int) -> Term:
        return total((self, 1), (number(other), 1))

    __radd__ = __add__

    def __sub__(self, other: Term | int) -> Term:
        return total((self, 1), (number(other), -1))

    def __rsub__(self, other: int) -> Term:
        return total((number(other), 1), (self, -1))

    def __mul__(self, factor: int) -> Term:
        return total((self, factor))

    __rmul__ = __mul__

    def __neg__(self) -> Term:
        return total((self, -1))

    def __le__(self, other: Term | int) -> Term:
        return compare("le", self, number(other))

    def __ge__(self, other: Term | int) -> Term:
        return compare("le", number(other), self)

    def __lt__(self, other: Term | int) -> Term:
        return compare("le", self + 1, number(other))

    def __gt__(self, other: Term | int) -> Term:
        return compare("le", number(other) + 1, self)

    def __and__(self, other: Term) -> Term:
        return both(self, other)

    def __or__(self, other: Term) -> Term:
        return either(self, other)

    def __invert__(self) -> Term:
        return negated(self)

    def __repr__(self) -> str:
        return shown(self)

    def __bool__(self) -> bool:
        """`a and b`, `0 <= i <= n` and `if a:` would silently lose a part of a condition."""
        raise TypeError(
            f"{shown(self)[:80]!r} has no truth value: join conditions by & | ~ and between(), choose by choose()"
        )


TRUE, FALSE = Term("true", ()), Term("false", ())


def number(value: Term | int) -> Term:
    return value if isinstance(value, Term) else Term("int", (int(value),))


def variable(name: str) -> Term:
    return Term("var", (name,))


def call(function: str, argument: Term | int) -> Term:
    return Term("call", (function, number(argument)))


def total(*parts: tuple[Term, int]) -> Term:
    """The sum of terms times factors."""
    constant, factors = 0, {}
    for part, factor in parts:
        if part.op == "int":
            constant += factor * part.parts[0]
        elif part.op == "sum":
            constant += factor * part.parts[0]
            for inner, inner_factor in part.parts[1]:
                factors[inner] = factors.get(inner, 0) + factor * inner_factor
        else:
            factors[part] = factors.get(part, 0) + factor
    left = sorted(((part, factor) for part, factor in factors.items() if factor), key=lambda item: shown(item[0]))
    if not left:
        return number(constant)
    if constant == 0 and len(left) == 1 and left[0][1] == 1:
        return left[0][0]
    return Term("sum", (constant, tuple(left)))


def compare(op: str, a: Term, b: Term) -> Term:
    difference = b - a
    if difference.op == "int":
        value = difference.parts[0]
        return TRUE if (value >= 0 if op == "le" else value == 0) else FALSE
    return Term(op, (a, b))


def equal(a: Term | int, b: Term | int) -> Term:
    return compare("eq", number(a), number(b))


def both(*conditions: Term) -> Term:
    return _joined("and", TRUE, FALSE, conditions)


def either(*conditions: Term) -> Term:
    return _joined("or", FALSE, TRUE, conditions)


def _joined(op: str, nothing: Term, everything: Term, conditions: Iterable[Term]) -> Term:
    flat: dict[Term, None] = {}
    for condition in conditions:
        if condition == everything:
            return everything
        for one in condition.parts if condition.op == op else (condition,):
            flat[one] = None
    flat.pop(nothing, None)
    if not flat:
        return nothing
    return next(iter(flat)) if len(flat) == 1 else Term(op, tuple(flat))


def negated(condition: Term) -> Term:
    if condition.op == "not":
        return condition.parts[0]
    if condition in (TRUE, FALSE):
        return FALSE if condition == TRUE else TRUE
    return Term("not", (condition,))


def implies(condition: Term, consequence: Term) -> Term:
    return either(negated(condition), consequence)


def choose(condition: Term, yes: Term | int, no: Term | int) -> Term:
    yes, no = number(yes), number(no)
    if condition == TRUE or yes == no:
        return yes
    return no if condition == FALSE else Term("if", (condition, yes, no))


def between(least: Term | int, value: Term, most: Term | int) -> Term:
    """least <= value <= most."""
    return both(value >= least, value <= most)


# ---- looking at terms


def children(term: Term) -> tuple[Term, ...]:
    if term.op == "sum":
        return tuple(part for part, _ in term.parts[1])
    if term.op == "call":
        return (term.parts[1],)
    return () if term.op in ("int", "var", "true", "false") else term.parts


def rebuilt(term: Term, parts: Sequence[Term]) -> Term:
    """The term with other children."""
    match term.op:
        case "sum":
            factors = (factor for _, factor in term.parts[1])
            return total((number(term.parts[0]), 1), *zip(parts, factors, strict=True))
        case "call":
            return call(term.parts[0], parts[0])
        case "if":
            return choose(*parts)
        case "le" | "eq":
            return compare(term.op, parts[0], parts[1])
        case "and":
            return both(*parts)
        case "or":
            return either(*parts)
        case "not":
            return negated(parts[0])
        case "times" | "mod" | "div":
            return Term(term.op, tuple(parts))
        case _:
            return term


def substituted(term: Term, values: Mapping[Term, Term], known: dict[Term, Term] | None = None) -> Term:
    """The term with variables, or other parts, replaced. `known` keeps what was replaced already."""
    known = {} if known is None else known
    if term in values:
        return values[term]
    if term in known:
        return known[term]
    inner = children(term)
    new = tuple(substituted(part, values, known) for part in inner)
    found = term if new == inner else rebuilt(term, new)
    known[term] = found
    return found


def is_condition(term: Term) -> bool:
    """Whether it is a condition and not a number."""
    return term.op in ("le", "eq", "and", "or", "not", "true", "false")


def is_sound(term: Term) -> bool:
    """Whether numbers and conditions stand where they should. Terms that a file describes may be anything."""
    match term.op:
        case "and" | "or" | "not":
            wanted = [True] * len(children(term))
        case "if":
            wanted = [True, False, False]
        case _:
            wanted = [False] * len(children(term))
    return all(is_condition(part) == one and is_sound(part) for part, one in zip(children(term), wanted, strict=True))


def calls(terms: Iterable[Term]) -> dict[Term, None]:
    """All calls of functions inside the terms, inner ones first."""
    found: dict[Term, None] = {}
    seen: set[Term] = set()

    def visit(term: Term) -> None:
        if term in seen:
            return
        seen.add(term)
        for part in children(term):
            visit(part)
        if term.op == "call":
            found[term] = None

    for term in terms:
        visit(term)
    return found


def variables(terms: Iterable[Term]) -> dict[str, None]:
    """The names of all variables inside the terms."""
    return dict.fromkeys(sorted(term.parts[0] for term in _inside(terms) if term.op == "var"))


def operators(terms: Iterable[Term]) -> set[str]:
    """The `op` of everything inside the terms."""
    return {term.op for term in _inside(terms)}


def _inside(terms: Iterable[Term]) -> set[Term]:
    """The terms and all their parts."""
    seen: set[Term] = set()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        if term not in seen:
            seen.add(term)
            waiting += children(term)
    return seen


# ---- other forms


def shown(term: Term) -> str:
    """The term as people write it."""
    if term._text is None:
        term._text = _shown(term)
    return term._text


def _shown(term: Term) -> str:
    parts = term.parts
    match term.op:
        case "int" | "var":
            return str(parts[0])
        case "sum":
            words = ""
            for part, factor in sorted(parts[1], key=lambda item: item[1] < 0):
                size = "" if abs(factor) == 1 else f"{abs(factor)}*"
                sign = ("-" if factor < 0 else "") if not words else (" - " if factor < 0 else " + ")
                words += f"{sign}{size}{shown(part)}"
            return words + (f" {'-' if parts[0] < 0 else '+'} {abs(parts[0])}" if parts[0] else "")
        case "call":
            return f"{parts[0]}({shown(parts[1])})"
        case "if":
            return f"(if {shown(parts[0])} then {shown(parts[1])} else {shown(parts[2])})"
        case "times" | "mod" | "div":
            return f"({shown(parts[0])} {term.op} {shown(parts[1])})"
        case "le":
            return f"{shown(parts[0])} <= {shown(parts[1])}"
        case "eq":
            return f"{shown(parts[0])} = {shown(parts[1])}"
        case "and" | "or":
            return "(" + f" {term.op} ".join(map(shown, parts)) + ")"
        case "not":
            return f"not ({shown(parts[0])})"
        case _:
            return term.op


def symbol(name: str) -> str:
    """A name in SMT-LIB 2."""
    return name if name.isalnum() else f"|{name}|"


def smt(term: Term) -> str:
    """The term in SMT-LIB 2."""
    parts = term.parts
    match term.op:
        case "int":
            return str(parts[0]) if parts[0] >= 0 else f"(- {-parts[0]})"
        case "sum":
            words = [smt(number(parts[0]))] if parts[0] else []
            words += [smt(p) if f == 1 else f"(* {smt(number(f))} {smt(p)})" for p, f in parts[1]]
            return words[0] if len(words) == 1 else f"(+ {' '.join(words)})"
        case "var":
            return symbol(parts[0])
        case "call":
            return f"({parts[0]} {smt(parts[1])})"
        case "true" | "false":
            return term.op
        case _:
            names = {"if": "ite", "times": "*", "le": "<=", "eq": "="}
            return f"({names.get(term.op, term.op)} {' '.join(map(smt, parts))})"


Functions = Mapping[str, Callable[[Any], Any]]


def evaluated(term: Term, values: Mapping[str, Any], functions: Functions, known: dict[Term, Any]) -> Any:
    """The value of the term at many points at once. Each variable is an array of them; conditions are of bool.

    A function gives INVALID outside its domain, and what is made of that is INVALID or meaningless.
    """
    if term in known:
        return known[term]
    parts = [evaluated(part, values, functions, known) for part in children(term)]
    match term.op:
        case "int":
            found = np.int64(term.parts[0])
        case "var":
            found = values[term.parts[0]]
        case "sum":
            found = np.int64(term.parts[0])
            for (_, factor), part in zip(term.parts[1], parts, strict=True):
                found = found + factor * part
        case "call":
            found = functions[term.parts[0]](parts[0])
        case "if":
            found = np.where(*parts)
        case "times":
            found = parts[0] * parts[1]
        case "mod":
            found = np.where(parts[1] == 0, 0, parts[0] % np.where(parts[1] == 0, 1, parts[1]))
        case "div":
            found = np.where(parts[1] == 0, 0, parts[0] // np.where(parts[1] == 0, 1, parts[1]))
        case "le":
            found = parts[0] <= parts[1]
        case "eq":
            found = parts[0] == parts[1]
        case "and":
            found = np.logical_and.reduce(np.broadcast_arrays(*parts))
        case "or":
            found = np.logical_or.reduce(np.broadcast_arrays(*parts))
        case "not":
            found = ~parts[0]
        case _:
            found = np.bool_(term.op == "true")
    known[term] = found
    return found
