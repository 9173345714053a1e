"""What makes a program valid. `Program` checks itself when it is made; every problem is reported, with its location."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from nram.errors import UsageError, shown
from nram.extensions import find_module
from nram.programs import ir
from nram.programs.ir import Conditions, Constant, Evidence, Flags, Output, Program, Register, Row, T, Value
from nram.tasks.layout import Layout

MAX_ENTRIES = 1000  # of 'made' and of 'verified'
MAX_LIMITS = 20
MAKE_KNOWN = "if it is user-defined, name its file (--module path/to/module.py) or install its package"


def find_problems(program: Program) -> list[str]:
    """Everything that is wrong with a program, in words; empty if it is valid."""
    problems: list[str] = []
    _check_type(program, _shape(Program), (), problems)
    if problems:
        return problems
    problems = _header_problems(program)
    count = len(program.registers)
    if not 1 <= count <= ir.MAX_REGISTERS:
        return [*problems, f"it has {count} registers: there must be 1 to {ir.MAX_REGISTERS}"]
    problems += register_problems(program.registers)
    if not 1 <= len(program.states) <= ir.MAX_STATES:
        return [*problems, f"it has {len(program.states)} states: there must be 1 to {ir.MAX_STATES}"]
    if program.rows > ir.MAX_ROWS:
        return [*problems, f"it has {program.rows} rows: the most is {ir.MAX_ROWS}"]
    if program.operations > ir.MAX_TOTAL_OPERATIONS:
        return [*problems, f"it has {program.operations} operations: the most is {ir.MAX_TOTAL_OPERATIONS}"]
    for state, rows in enumerate(program.states):
        for index, row in enumerate(rows):
            problems += [f"state {state}, row {index + 1}: {problem}" for problem in _row_problems(program, row)]
        if all(len(row.when) == count for row in rows):
            missed = uncovered([row.when for row in rows], count)
            if missed is not None:
                problems.append(f"state {state}: no row applies when {ir.describe(program.registers, missed)}")
    return problems or _stale_evidence(program)


def register_problems(names: Sequence[str]) -> list[str]:
    problems = [
        f"{shown(name)} is not a valid register name: use a word of letters, digits and _ "
        "that is not a module, not a keyword and not o1, o2, ..."
        for name in names
        if not ir.is_name(name)
    ]
    return problems + [f"two registers have the name {shown(name)}" for name in sorted(_repeated(names))]


def _repeated(words: Sequence[str]) -> list[str]:
    return [word for word, times in Counter(words).items() if times > 1]


def _header_problems(program: Program) -> list[str]:
    problems = []
    for what, name in (("program", program.name), ("task", program.task)):
        if name is not None and not ir.is_plain(name):
            problems.append(f"{shown(name)} is not a valid {what} name: use visible characters on one line")
    for what, entries in (("made", program.made), ("verified", program.verified)):
        if len(entries) > MAX_ENTRIES:
            return [*problems, f"'{what}' has {len(entries)} entries: the most is {MAX_ENTRIES}"]
    for key, value in program.made:
        if not ir.is_plain(key) or ":" in key or not ir.is_plain(value):
            problems.append(
                f"'made' has the pair {shown(key)}, {shown(value)}: both must be visible characters on one line, "
                "the first without ':'"
            )
    repeated = _repeated([key for key, _ in program.made])
    problems += [f"'made' has {shown(key)} twice: give the second another name" for key in repeated]
    if program.origin not in ir.ORIGINS:
        problems.append(f"origin {shown(program.origin)} is unknown: use one of {', '.join(ir.ORIGINS)}")
    limit = program.limit
    if limit is not None and not all(0 <= part <= ir.MAX_SIZE for part in (limit.per_item, limit.constant)):
        problems.append(f"the limit T(n) has a part outside 0..{ir.MAX_SIZE}")
    if program.needs_limit and limit is None:
        problems.append("it needs its limit T(n), but has none: add the limit")
    for index, evidence in enumerate(program.verified):
        problems += [f"verified, entry {index + 1}: {problem}" for problem in _evidence_problems(evidence)]
    return problems


def _evidence_problems(evidence: Evidence) -> list[str]:
    problems = []
    if evidence.method not in ir.METHODS:
        problems.append(f"the method {shown(evidence.method)} is unknown: use one of {', '.join(ir.METHODS)}")
    if not ir.is_plain(evidence.task) or " " in evidence.task:
        problems.append(f"{shown(evidence.task)} is not a valid task name: use one word")
    if evidence.method == "inductive":
        everything = (evidence.complexity[1], evidence.extra_memory, evidence.instances, evidence.limits)
        if everything != (None, None, None, ("every",)) or not 0 <= evidence.complexity[0] <= ir.MAX_SIZE:
            problems.append("an inductive proof is one for every n, every M and every limit, without instances")
        return problems
    for what, pair in (("complexity", evidence.complexity), ("extra_memory", evidence.extra_memory)):
        if pair is None:
            continue
        low, high = pair
        if high is None or not 0 <= low <= high <= ir.MAX_SIZE:
            problems.append(f"{what} is {shown(pair)}: give the smallest and the largest")
    if evidence.instances is not None and not 0 <= evidence.instances <= ir.MAX_INSTANCES:
        problems.append(f"instances is {shown(evidence.instances)}, which is not a count of inputs")
    known = [limit for limit in evidence.limits if re.fullmatch(r"[A-Za-z0-9+]{1,40}", limit)]
    if not 1 <= len(known) == len(evidence.limits) <= MAX_LIMITS:
        problems.append(f"limits is {shown(evidence.limits)}: name them like T, 2T, 20n+200 or every")
    return problems


def _row_problems(program: Program, row: Row) -> list[str]:
    count = len(program.registers)
    problems = []
    if len(row.when) != count:
        problems.append(f"it has {len(row.when)} conditions for {count} registers")
    if len(row.registers) != count:
        problems.append(f"it gives {len(row.registers)} new values for {count} registers")
    if len(row.operations) > ir.MAX_OPERATIONS:
        problems.append(f"it has {len(row.operations)} operations: the most is {ir.MAX_OPERATIONS}")
    if not 0 <= row.next_state < len(program.states):
        problems.append(f"it goes on in state {shown(row.next_state)}, which does not exist")
    for index, operation in enumerate(row.operations):
        module = find_module(operation.module)
        if module is None:
            problems.append(f"operation {index + 1} is {shown(operation.module)}, which is not a module: {MAKE_KNOWN}")
        elif len(operation.arguments) != module.arity:
            wanted, given = module.arity, len(operation.arguments)
            problems.append(f"operation {index + 1}: {operation.module} takes {wanted} arguments, not {given}")
        for argument in operation.arguments:
            problem = _value_problem(argument, count, index)
            if problem:
                problems.append(f"operation {index + 1}: {problem}")
    for index, value in enumerate(row.registers[:count]):
        problem = _value_problem(value, count, len(row.operations))
        if problem:
            problems.append(f"new value of {program.registers[index]}: {problem}")
    return problems


def _value_problem(value: Value, registers: int, outputs: int) -> str | None:
    match value:
        case Register(index) if not 0 <= index < registers:
            return f"a wire from register {shown(index + 1)}, but there are {registers}"
        case Output(index) if not 0 <= index < outputs:
            return f"a wire from output {shown(index + 1)}, which no earlier operation gives"
        case Constant(literal) if literal not in (0, 1, 2):
            return f"the constant {shown(literal)}: only 0, 1 and 2 exist; compute others by INC and ADD"
    return None


def uncovered(patterns: list[Conditions], count: int) -> Flags | None:
    """Flags to which no pattern applies, or None if all flags are covered.

    A set of flags is an integer with a bit for each of the 2^count cases (bit i of a case: register i is not 0). So
    the work grows with the number of patterns alone, however a hostile file arranges them.
    """
    covered, every = 0, (1 << (1 << count)) - 1
    for pattern in patterns:
        matching = 1
        for register, zero in enumerate(pattern):
            if zero is None:
                matching |= matching << (1 << register)
            elif not zero:
                matching <<= 1 << register
        covered |= matching
        if covered == every:
            return None
    missed = (~covered & (covered + 1)).bit_length() - 1  # the lowest case that is not covered
    return tuple(not missed >> register & 1 for register in range(count))


def _stale_evidence(program: Program) -> list[str]:
    if not program.verified:
        return []
    stale = {evidence.fingerprint for evidence in program.verified} - {program.fingerprint}
    if not stale:
        return []
    return [
        f"its evidence belongs to another program ({shown(', '.join(sorted(stale)))}, this is {program.fingerprint}): "
        "remove those lines, then run 'nram verify' on this program"
    ]


# ---- types


class _Shape(NamedTuple):
    """What an annotation allows."""

    name: str
    classes: frozenset[type]
    entries: tuple[_Shape, ...] = ()
    """Of a tuple: those of its entries, or the one of all entries if the length is not fixed."""
    length: int | None = None
    """Of a tuple, where it is fixed."""


@cache
def _shape(annotation: Any) -> _Shape:
    arguments, origin = get_args(annotation), get_origin(annotation)
    if origin is tuple:
        length = None if arguments[-1] is Ellipsis else len(arguments)
        name = str(annotation) if length else "tuple"
        return _Shape(name, frozenset([tuple]), tuple(map(_shape, arguments[: length or 1])), length)
    if origin in (Union, UnionType):
        parts = [_shape(argument) for argument in arguments]
        classes = frozenset().union(*(part.classes for part in parts))
        return parts[0]._replace(name=" or ".join(part.name for part in parts), classes=classes)
    kind = str if origin is Literal else annotation
    return _Shape("None" if kind is type(None) else kind.__name__, frozenset([kind]))


@cache
def _parts(kind: type) -> tuple[tuple[str, _Shape], ...]:
    """The fields of a dataclass; other types have none."""
    return tuple((name, _shape(hint)) for name, hint in get_type_hints(kind).items()) if is_dataclass(kind) else ()


def _check_type(value: Any, shape: _Shape, path: tuple[Any, ...], problems: list[str]) -> None:
    """Note every part of a value that is not of its annotated type, with its path."""
    kind = value.__class__
    if kind not in shape.classes or (shape.length is not None and kind is tuple and len(value) != shape.length):
        problems.append(f"{_in_python(path)} is {shown(value)}, not of type {shape.name}")
    elif kind is tuple:
        for index, part in enumerate(value):
            _check_type(part, shape.entries[index if shape.length else 0], (path, index), problems)
    else:
        for name, part in _parts(kind):
            _check_type(getattr(value, name), part, (path, name), problems)


def _in_python(path: tuple[Any, ...]) -> str:
    """A path as Python code, without the program itself: states[1][0].halt."""
    words = ""
    while path:
        path, part = path
        words = (f"[{part}]" if isinstance(part, int) else f".{part}") + words
    return words.removeprefix(".")


# ---- for the readers of both forms


class Enough(Exception):
    """Reading stops: the rest cannot be read, or there are too many problems already."""


class Reader:
    """Collects problems while a program is read. Invalid parts are replaced by valid ones, to check the rest too."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def wrong(self, problem: str) -> None:
        self.problems.append(problem)
        if len(self.problems) >= ir.MAX_PROBLEMS:
            raise Enough

    def layout(self, text: str | None) -> Layout | None:
        """The layout of a program, if it has one."""
        try:
            return None if text is None else Layout.parse(text)
        except UsageError as error:
            self.wrong(str(error))

    def build(self, verified: Sequence[Evidence], **parts: Any) -> Program:
        """The program of these parts, if nothing was wrong."""
        try:
            # Evidence says nothing about a program whose parts were replaced.
            program = Program(verified=() if self.problems else tuple(verified), **parts)
        except ir.ProgramError as error:
            self.problems += error.problems
        else:
            if not self.problems:
                return program
        raise Enough

    def result(self, read: Callable[[], T], where: str) -> T:
        """What `read` gives, a program or a sketch; a ProgramError with all problems if it gives up."""
        with contextlib.suppress(Enough):
            return read()
        raise ir.ProgramError(self.problems, where)
