"""Certificates: an invariant in readable form, with every obligation that it leads to, in one JSON file.

A certificate has to be checked, not trusted. The checker makes the obligations again, from the program, the claim of
the task and the invariant. They must be those of the file, and the solvers must prove each of them.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from nram.errors import NramError, UsageError
from nram.files import read_json, write_result
from nram.limits import StepLimit
from nram.programs.files import program_from
from nram.programs.ir import MAX_ROWS, MAX_STATES, Program
from nram.programs.prove.invariant import (
    INDEX,
    Array,
    Cell,
    History,
    Invariant,
    Place,
    Range,
    RowId,
    first_place,
    register_variables,
)
from nram.programs.prove.obligations import Problem
from nram.programs.prove.reading import term_from_text
from nram.programs.text import to_text
from nram.records import Span, read_record
from nram.tasks.base import Task
from nram.terms import Term, calls, is_condition, is_sound, shown, variables

VERSION = 1
MOST_BYTES = 1 << 26
MOST_PLACES = 2000
MOST_CELLS = 40  # that are followed by name, and arrays: terms are nested that deep
MEANINGS = {
    "the end": "the output cells are right when it halts",
    "steps": "fewer than T(n) steps were carried out",
    "from T on": "the output cells are right when it is stopped after T(n)",
    "memory": "the memory keeps its form",
    "changes": "it changes only the cells that are listed",
    "to place": "the facts of the next place hold there",
    "never": "this row is never next",
}
"""What the obligations of a place say, by the beginning of their names."""

_Index = Annotated[int, Span(0, MAX_ROWS)]
_RowPair = tuple[Annotated[int, Span(0, MAX_STATES)], _Index]


@dataclass(frozen=True)
class _Place:
    row: _RowPair
    seen: tuple[_RowPair, ...]
    last: tuple[_RowPair, ...]
    odd: bool
    facts: tuple[str, ...]


@dataclass(frozen=True)
class _Array:
    start: str
    slope: Literal[1, -1]
    writers: tuple[tuple[_Index, _Index], ...]
    value: str


@dataclass(frozen=True)
class _History:
    last: Annotated[int, Span(0, 8)]
    seen: bool
    toggle: _RowPair | None


@dataclass(frozen=True)
class _Obligation:
    name: str
    smt2: str


@dataclass(frozen=True)
class _Form:
    """The file. `claim` is for people."""

    certificate: Literal[1]
    task: str
    limit: str
    claim: str
    program: str
    fingerprint: str
    halts: bool
    history: _History
    places: Annotated[tuple[_Place, ...], Span(1, MOST_PLACES)]
    cells: Annotated[tuple[str, ...], Span(0, MOST_CELLS)]
    arrays: Annotated[tuple[_Array, ...], Span(0, MOST_CELLS)]
    changes: Annotated[tuple[tuple[str, str], ...], Span(0, MOST_PLACES)]
    obligations: tuple[_Obligation, ...]


@dataclass(frozen=True)
class Certificate:
    """A proof that anyone can check."""

    program: Program
    task: str
    limit: StepLimit
    invariant: Invariant
    obligations: tuple[tuple[str, str], ...]
    """The name of each, and its text in SMT-LIB 2."""
    claim: str

    def save(self, path: str | Path) -> None:
        """Write the certificate to a file."""
        write_result(Path(path), (json.dumps(self.to_json(), indent=1) + "\n").encode())

    def to_json(self) -> dict[str, Any]:
        invariant = self.invariant
        return {
            "certificate": VERSION,
            "task": self.task,
            "limit": str(self.limit),
            "claim": self.claim,
            "program": to_text(self.program),
            "fingerprint": self.program.fingerprint,
            "halts": invariant.halts,
            "history": vars(invariant.history),
            "places": [
                {
                    "row": place.row,
                    "seen": sorted(place.seen),
                    "last": place.last,
                    "odd": place.odd,
                    "facts": [shown(fact) for fact in facts],
                }
                for place, facts in zip(invariant.places, invariant.facts, strict=True)
            ],
            "cells": [shown(cell.address) for cell in invariant.cells],
            "arrays": [
                {
                    "start": shown(array.start),
                    "slope": array.slope,
                    "writers": array.writers,
                    "value": shown(array.value),
                }
                for array in invariant.arrays
            ],
            "changes": [[shown(change.first), shown(change.last)] for change in invariant.changes],
            "obligations": [{"name": name, "smt2": text} for name, text in self.obligations],
        }


def made_certificate(problem: Problem, invariant: Invariant) -> Certificate:
    obligations = tuple((one.name, one.to_smt()) for one in problem.obligations(invariant))
    claim = claim_in_words(problem, invariant)
    return Certificate(problem.program, problem.task.name, problem.limit, invariant, obligations, claim)


def claim_in_words(problem: Problem, invariant: Invariant) -> str:
    """What is proven."""
    least = problem.task.min_complexity
    inputs = f"every n from {least} up, every memory size M from the least up, and every input of {problem.task.name}"
    right = f"it halts within T(n) = {problem.limit} steps, and then its output cells are right"
    if not invariant.halts:
        right = f"its output cells are right whenever it is stopped after T(n) = {problem.limit} steps or later"
    cells = dict.fromkeys(_range_in_words(one) for one in invariant.changes)
    changes = f"no cells but {', '.join(cells)}" if cells else "no cell"
    return f"For {inputs}: {right}. It changes {changes}."


def _range_in_words(change: Range) -> str:
    first, last = shown(change.first), shown(change.last)
    return first if first == last else f"{first} to {last}"


def invariant_in_words(invariant: Invariant) -> list[str]:
    """The invariant as people read it."""
    lines = ["The memory at any moment (the first line that fits a cell counts):"]
    for cell in invariant.cells:
        lines.append(f"  cell {shown(cell.address)} holds {shown(cell.value)}, as the facts below say")
    for array in reversed(invariant.arrays):  # where two overlap, the later one holds
        count = shown(array.written(invariant.visits))
        sign = "+" if array.slope > 0 else "-"
        lines.append(f"  cell {shown(array.start)} {sign} k holds {shown(array.value)}, for 0 <= k < {count}")
    lines.append("  any other cell x holds memory(x), as at the start")
    several = any(place.row[0] for place in invariant.places)
    for index, (place, facts) in enumerate(zip(invariant.places, invariant.facts, strict=True)):
        lines.append(f"Place {index + 1}: before {_place_in_words(place, several, invariant.history)}")
        lines += [f"  {shown(fact)}" for fact in facts]
    return lines


def obligation_in_words(name: str, invariant: Invariant) -> str:
    """The name of an obligation, with what it says and the place that it is about."""
    where, _, what = name.partition(": ")
    meaning = next((words for begin, words in MEANINGS.items() if what.startswith(begin)), None)
    if meaning is None:
        return name
    several = any(place.row[0] for place in invariant.places)
    place = invariant.places[int(where.split()[-1]) - 1]
    return f"{name} ({meaning}); {where} is before {_place_in_words(place, several, invariant.history)}"


def _place_in_words(place: Place, several: bool, history: History) -> str:
    return _row_in_words(place.row, several) + _history_in_words(place, several, history)


def _row_in_words(row: RowId, several: bool) -> str:
    return f"row {row[1] + 1}" + (f" of state {row[0]}" if several else "")


def _history_in_words(place: Place, several: bool, history: History) -> str:
    words = []
    if place.last:
        words.append("after " + ", then ".join(_row_in_words(row, several) for row in place.last))
    if place.seen:
        words.append(
            "when " + ", ".join(_row_in_words(row, several) for row in sorted(place.seen)) + " were carried out"
        )
    if place == first_place(place.row) and (history.last or history.seen):
        words.append("at the start")
    if history.toggle is not None:
        words.append(f"{_row_in_words(history.toggle, several)} an {'odd' if place.odd else 'even'} number of times")
    return "".join(f", {one}" for one in words)


def read_certificate(path: str | Path) -> Certificate:
    """The certificate in a file. Nothing in it is checked but its form."""
    where = f"the certificate {path}"
    form = read_record(_Form, read_json(Path(path), MOST_BYTES, "certificate"), where)
    try:
        program = program_from(form.program, f"the program in {path}")
        limit = StepLimit.from_text(form.limit)
        if limit is None:
            raise UsageError(f"'{form.limit[:40]}' is not a step limit")
        invariant = Invariant(
            History(form.history.last, form.history.seen, form.history.toggle),
            form.halts,
            tuple(Place(frozenset(place.seen), place.last, place.odd, place.row) for place in form.places),
            tuple(tuple(map(_condition, place.facts)) for place in form.places),
            tuple(Cell(_number(text)) for text in form.cells),
            tuple(Array(_number(one.start), one.slope, one.writers, _number(one.value)) for one in form.arrays),
            tuple(Range(_number(first), _number(last)) for first, last in form.changes),
        )
    except UsageError as error:
        raise NramError(f"{where} cannot be used: {error}") from None
    if program.fingerprint != form.fingerprint:
        raise NramError(f"{where} is not of the program that it contains: the fingerprints differ")
    obligations = tuple((one.name, one.smt2) for one in form.obligations)
    return Certificate(program, form.task, limit, invariant, obligations, form.claim)


def _condition(text: str) -> Term:
    term = term_from_text(text)
    if not is_condition(term) or not is_sound(term):
        raise UsageError(f"{text[:80]!r} is not a condition")
    return term


def _number(text: str) -> Term:
    term = term_from_text(text)
    if is_condition(term) or not is_sound(term):
        raise UsageError(f"{text[:80]!r} is not a number")
    return term


def altered(certificate: Certificate, task: Task) -> str | None:
    """What is wrong with the certificate before any solver is asked, or None."""
    problem = Problem(certificate.program, task, certificate.limit)
    wrong = _unknown_names(certificate, problem) or _wrong_rows(certificate)
    if wrong is not None:
        return wrong
    expected = {one.name: one.to_smt() for one in problem.obligations(certificate.invariant)}
    given = dict(certificate.obligations)
    for name, text in expected.items():
        if name not in given:
            return f"the obligation '{name}' is missing"
        if given[name] != text:
            return f"the obligation '{name}' is not the one that the program, the task and the invariant lead to"
    more = list((Counter(name for name, _ in certificate.obligations) - Counter(expected.keys())).elements())
    if more:
        return f"there is an obligation too many: '{more[0][:80]}'"
    if claim_in_words(problem, certificate.invariant) != certificate.claim:
        return "the claim in words is not the one that is proven"
    return None


def _wrong_rows(certificate: Certificate) -> str | None:
    invariant, program = certificate.invariant, certificate.program
    rows: list[RowId] = [place.row for place in invariant.places]
    rows += [row for place in invariant.places for row in (*place.seen, *place.last)]
    for state, row in rows:
        if state >= len(program.states) or row >= len(program.states[state]):
            return f"the program has no row {row} in state {state}"
    if len(set(invariant.places)) < len(invariant.places):
        return "a place is listed twice"
    for array in invariant.arrays:
        if any(place >= len(invariant.places) for place, _ in array.writers):
            return "an array names a place that is not listed"
        if len({place for place, _ in array.writers}) < len(array.writers):
            return "an array has two writes of one place"
    return None


def _unknown_names(certificate: Certificate, problem: Problem) -> str | None:
    """Names that would mean something else, or nothing, in an obligation."""
    invariant = certificate.invariant
    inputs = {"n", "M", *problem.claim.numbers}
    functions = {"memory", *problem.claim.functions}
    now = inputs | {one.parts[0] for one in [*register_variables(problem.program), *invariant.visits]}
    now |= {cell.value.parts[0] for cell in invariant.cells}
    tails = {f"written{index + 1}" for index in range(len(invariant.arrays))}
    of_input = [cell.address for cell in invariant.cells] + [array.start for array in invariant.arrays]
    of_input += [term for change in invariant.changes for term in (change.first, change.last)]
    facts = [fact for facts in invariant.facts for fact in facts]
    parts: list[tuple[list[Term], set[str], set[str]]] = [
        (of_input, inputs, functions),
        (facts, now | {INDEX.parts[0]}, functions | tails),
    ]
    for index, array in enumerate(invariant.arrays):
        parts.append(([array.value], inputs | {INDEX.parts[0]}, functions | {f"written{index + 1}"}))
    for terms, known, callable_ones in parts:
        for name in variables(terms):
            if name not in known:
                return f"the name {name!r} means nothing there"
        for name in {call.parts[0] for call in calls(terms)} - callable_ones:
            return f"the function {name!r} means nothing there"
    return None
