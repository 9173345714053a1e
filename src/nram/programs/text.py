"""The text form of a program: to read, to edit, and to parse back to the same program.

    nram program 1
    name: double increment
    origin: written
    registers: r1 r2

    when r1 = 0, r2 > 0:
        o1 = READ(r1)
        o2 = INC(o1)
        WRITE(r1, o2)
        r1, r2 := o2, r1
        halt
    otherwise:
        r2 := 1

Rows are tried from the top; the first whose conditions hold is carried out. Operations see the registers as they
were when the step began; `:=` then sets all at once, and what it does not name stays. `next 2` goes on in state 2;
without it the program stays in its state. Outputs may have any names; printed again they are o1, o2, ... in order.
A '#' begins a comment below the header.
"""

from __future__ import annotations

import contextlib
import re
from typing import NoReturn

from nram.extensions.modules import find_module
from nram.limits import StepLimit
from nram.modules import MODULE_NAMES
from nram.programs.check import MAKE_KNOWN
from nram.programs.ir import (
    CONSTANTS,
    KEYWORDS,
    MAX_PROBLEMS,
    MAX_REGISTERS,
    MAX_ROWS,
    MAX_TOTAL_OPERATIONS,
    MODULES,
    Constant,
    Evidence,
    Operation,
    Output,
    Program,
    ProgramError,
    Register,
    Row,
    Value,
    describe,
)

VERSION = 1
FIRST_LINE = re.compile(r"nram program (\S+)")
MAX_CHARACTERS = 1 << 26


# ---- printing


def to_text(program: Program) -> str:
    lines = [f"nram program {VERSION}", f"name: {program.name}"]
    if program.task is not None:
        lines.append(f"task: {program.task}")
    lines.append(f"origin: {program.origin}")
    if program.limit is not None:
        lines.append(f"limit: {limit_to_text(program.limit)}" + (", needed" if program.needs_limit else ""))
    lines += [f"made {key}: {value}" for key, value in program.made]
    lines += [f"verified: {_evidence_to_text(evidence)}" for evidence in program.verified]
    lines.append(f"registers: {' '.join(program.registers)}")
    return "\n".join(lines) + "\n\n" + table_to_text(program)


def table_to_text(program: Program) -> str:
    """The table alone, without the header."""
    lines = []
    for number, rows in enumerate(program.states):
        if len(program.states) > 1:
            lines += [""] * (number > 0) + [f"state {number}:"]
        for row in rows:
            lines += row_to_text(program, row, number, len(rows) == 1)
    return "\n".join(lines) + "\n"


def row_to_text(program: Program, row: Row, state: int, alone: bool = False) -> list[str]:
    """The lines of one row. `alone`: the state has no other."""
    conditions = describe(program.registers, row.when)
    lines = [f"when {conditions}:" if conditions else "always:" if alone else "otherwise:"]
    used = {argument for operation in row.operations for argument in operation.arguments} | set(row.registers)
    for place, operation in enumerate(row.operations):
        arguments = ", ".join(value_to_text(program, argument) for argument in operation.arguments)
        named = Output(place) in used or MODULES[operation.module].memory != "writes"
        lines.append("    " + (f"o{place + 1} = " if named else "") + f"{operation.module}({arguments})")
    changed = [(i, value) for i, value in enumerate(row.registers) if value != Register(i)]
    if changed:
        names = ", ".join(program.registers[i] for i, _ in changed)
        values = ", ".join(value_to_text(program, value) for _, value in changed)
        lines.append(f"    {names} := {values}")
    if row.halt:
        lines.append("    halt")
    if row.next_state != state:
        lines.append(f"    next {row.next_state}")
    return lines


def value_to_text(program: Program, value: Value) -> str:
    match value:
        case Register(index):
            return program.registers[index]
        case Output(index):
            return f"o{index + 1}"
        case Constant(number):
            return str(number)


def limit_to_text(limit: StepLimit) -> str:
    """T(n) in the way one writes it: 6, n+4, 2n+4."""
    if limit.per_item == 0:
        return str(limit.constant)
    return f"{limit.per_item if limit.per_item > 1 else ''}n" + (f"+{limit.constant}" if limit.constant else "")


def limit_from_text(text: str) -> StepLimit | None:
    """The limit so written, or None if it is none."""
    found = re.fullmatch(r"(?:([0-9]{0,9})n)?(?:(?(1)\+|)([0-9]{1,9}))?", text)
    if not text or found is None:
        return None
    per_item = 0 if found[1] is None else int(found[1] or 1)
    return StepLimit(per_item, int(found[2] or 0))


def _evidence_to_text(evidence: Evidence) -> str:
    low, high = evidence.complexity
    memory = "every" if evidence.extra_memory is None else "+{}..+{}".format(*evidence.extra_memory)
    parts = [evidence.method, f"task={evidence.task}", f"n={low}..{high}", f"M={memory}"]
    if evidence.instances is not None:
        parts.append(f"instances={evidence.instances}")
    parts += [f"limits={','.join(evidence.limits)}", f"halts={'yes' if evidence.halts else 'no'}"]
    return " ".join([*parts, f"program={evidence.fingerprint}"])


_EVIDENCE = re.compile(
    r"(exhaustive|symbolic|random) task=(\S+) n=([0-9]{1,9})\.\.([0-9]{1,9}) "
    r"M=(?:every|\+([0-9]{1,9})\.\.\+([0-9]{1,9}))(?: instances=([0-9]{1,12}))? "
    r"limits=(\S+) halts=(yes|no) program=([0-9a-f]+)"
)


def _evidence_from_text(text: str) -> Evidence | None:
    found = _EVIDENCE.fullmatch(text)
    if found is None:
        return None
    method, task, low, high, extra_low, extra_high, instances, limits, halts, fingerprint = found.groups()
    return Evidence(
        method=method,  # pyright: ignore[reportArgumentType]  (the pattern admits nothing else)
        task=task,
        complexity=(int(low), int(high)),
        extra_memory=None if extra_low is None else (int(extra_low), int(extra_high)),
        instances=None if instances is None else int(instances),
        limits=tuple(limits.split(",")),
        halts=halts == "yes",
        fingerprint=fingerprint,
    )


# ---- parsing


def is_text_form(text: str) -> bool:
    return FIRST_LINE.match(text.lstrip()) is not None


def from_text(text: str, where: str = "the text") -> Program:
    """The program of a text form; a ProgramError that names every problem with its line otherwise."""
    if len(text) > MAX_CHARACTERS:
        raise ProgramError([f"it has {len(text)} characters: there may be {MAX_CHARACTERS}"], where)
    parser = _Parser()
    with contextlib.suppress(_Enough):
        parser.parse(text)
        return parser.program()
    raise ProgramError(parser.problems, where)


class _Enough(Exception):
    """Nothing more can be read, or too much is wrong for it to be of use."""


class _OpenRow:
    """A row while it is being read."""

    def __init__(self, state: int, when: tuple[bool | None, ...], registers: int):
        self.when = when
        self.operations: list[Operation] = []
        self.names: dict[str, int] = {}
        self.new: dict[int, Value] = {}
        self.count = registers
        self.halt = False
        self.state = state
        self.next_state: int | None = None
        self.next_line = 0

    def closed(self) -> Row:
        new = tuple(self.new.get(i, Register(i)) for i in range(self.count))
        onwards = self.state if self.next_state is None else self.next_state
        return Row(self.when, tuple(self.operations), new, self.halt, onwards)


class _Parser:
    """Reads all lines and collects what is wrong. What is wrong is replaced by something harmless, so that the rest
    can be judged too."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.line = 0
        self.header: dict[str, str] = {}
        self.made: list[tuple[str, str]] = []
        self.verified: list[Evidence] = []
        self.registers: tuple[str, ...] = ()
        self.states: list[list[_OpenRow]] = []
        self.row: _OpenRow | None = None
        self.rows = 0
        self.operations = 0

    def parse(self, text: str) -> None:
        lines = text.splitlines()
        while self.line < len(lines) and not lines[self.line].strip():
            self.line += 1
        found = FIRST_LINE.fullmatch(lines[self.line].strip()) if self.line < len(lines) else None
        if found is None:
            self._hopeless(f"the first line must be 'nram program {VERSION}'")
        elif found[1] != str(VERSION):
            self._hopeless(f"it is of version {found[1]:.40}, and this nram reads version {VERSION}")
        for number in range(self.line + 1, len(lines)):
            self.line = number
            line = lines[number].strip()
            if line and not line.startswith("#"):
                if self.registers:
                    self._body(line.partition("#")[0].strip())
                else:
                    self._header(line)
        if not self.registers:
            self._wrong("there is no line 'registers: r1 r2 ...'", everywhere=True)
        elif not self.states:
            self._wrong("there are no rows", everywhere=True)

    def _wrong(self, problem: str, everywhere: bool = False) -> None:
        self.problems.append(problem if everywhere else f"line {self.line + 1}: {problem}")
        if len(self.problems) >= MAX_PROBLEMS:
            raise _Enough

    def _hopeless(self, problem: str) -> NoReturn:
        self._wrong(problem, everywhere=True)
        raise _Enough

    def _header(self, line: str) -> None:
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            self._wrong(f"'{line:.60}' is not of the form 'key: value', and the line 'registers: ...' is not yet there")
        elif key == "registers":
            self.registers = tuple(value.split())
            if not 1 <= len(self.registers) <= MAX_REGISTERS:
                self._hopeless(f"it has {len(self.registers)} registers: name 1 to {MAX_REGISTERS}")
        elif key.startswith("made "):
            self.made.append((key[5:].strip(), value))
        elif key == "verified":
            evidence = _evidence_from_text(value)
            if evidence is None:
                self._wrong("this is not in the form in which 'nram verify' records what it showed: remove the line")
            else:
                self.verified.append(evidence)
        elif key not in ("name", "task", "origin", "limit"):
            self._wrong(
                f"'{key:.40}' is unknown here: the header has name, task, origin, limit, made, verified, registers"
            )
        elif key in self.header:
            self._wrong(f"'{key}' is given twice")
        else:
            self.header[key] = value

    def _body(self, line: str) -> None:
        if found := re.fullmatch(r"state ([0-9]{1,9}):", line):
            self._state(int(found[1]))
        elif line in ("always:", "otherwise:"):
            self._open_row((None,) * len(self.registers))
        elif found := re.fullmatch(r"when (.*):", line):
            self._open_row(self._conditions(found[1]))
        elif self.row is None:
            self._wrong(f"'{line:.60}' stands outside of a row: rows begin with 'when ...:', 'always:' or 'otherwise:'")
        elif line == "halt":
            if self.row.halt:
                self._wrong("this row halts already: remove the line")
            self.row.halt = True
        elif found := re.fullmatch(r"next ([0-9]{1,9})", line):
            if self.row.next_state is not None:
                self._wrong(f"this row goes on in state {self.row.next_state} already: remove one of the lines")
            self.row.next_state, self.row.next_line = int(found[1]), self.line
        elif ":=" in line:
            self._update(self.row, line)
        elif found := re.fullmatch(r"(?:(\w+)\s*=\s*)?([\w-]+)\s*\(([^()]*)\)", line):
            self._operation(self.row, found[1], found[2], found[3])
        else:
            self._wrong(
                f"'{line:.60}' is none of: 'name = MODULE(a, b)', 'r1, r2 := a, b', 'halt', 'next 1', "
                "'when r1 = 0, r2 > 0:', 'otherwise:', 'state 1:'"
            )

    def _state(self, number: int) -> None:
        self.row = None
        if number != len(self.states):
            self._wrong(f"state {number} stands where state {len(self.states)} should: number them in order from 0")
        self.states.append([])

    def _open_row(self, when: tuple[bool | None, ...]) -> None:
        if not self.states:
            self.states.append([])
        self.rows += 1
        if self.rows > MAX_ROWS:
            self._hopeless(f"it has more than {MAX_ROWS} rows")
        self.row = _OpenRow(len(self.states) - 1, when, len(self.registers))
        self.states[-1].append(self.row)

    def _conditions(self, text: str) -> tuple[bool | None, ...]:
        when: list[bool | None] = [None] * len(self.registers)
        for condition in text.split(","):
            found = re.fullmatch(r"(\w+)\s*(=|>)\s*0", condition.strip())
            if found is None:
                self._wrong(f"'{condition.strip():.40}' is no condition: write 'r1 = 0' or 'r1 > 0'")
            elif found[1] not in self.registers:
                self._wrong(f"there is no register '{found[1]:.40}'")
            else:
                place = self.registers.index(found[1])
                if when[place] is not None:
                    self._wrong(f"there are two conditions on {found[1]}")
                when[place] = found[2] == "="
        return tuple(when)

    def _operation(self, row: _OpenRow, name: str | None, module: str, arguments: str) -> None:
        if row.new:
            self._wrong("operations stand before the registers' new values: move this line up")
        words = [word.strip() for word in arguments.split(",")] if arguments.strip() else []
        values = tuple(self._value(row, word) for word in words)
        if find_module(module) is None:
            self._wrong(f"'{module:.40}' is no module: they are {', '.join(MODULES)}; {MAKE_KNOWN}")
            module, values = "ZERO", ()
        elif len(values) != MODULES[module].arity:
            self._wrong(f"{module} takes {MODULES[module].arity} arguments, not {len(values)}")
            module, values = "ZERO", ()
        self.operations += 1
        if self.operations > MAX_TOTAL_OPERATIONS:
            self._hopeless(f"it has more than {MAX_TOTAL_OPERATIONS} operations")
        row.operations.append(Operation(module, values))
        if name is None:
            return
        if name in self.registers:
            self._wrong(f"'{name}' is a register: set it by '{name} := ...' at the end of the row")
        elif name in row.names:
            self._wrong(f"'{name:.40}' has a value already in this row: use another name")
        elif name in KEYWORDS or name in MODULE_NAMES or name.isdigit():
            self._wrong(f"'{name:.40}' has a meaning of its own: use another name")
        row.names[name] = len(row.operations) - 1

    def _update(self, row: _OpenRow, line: str) -> None:
        left, _, right = line.partition(":=")
        names, words = [[word.strip() for word in side.split(",")] for side in (left, right)]
        if len(names) != len(words):
            self._wrong(f"{len(names)} registers and {len(words)} values: there must be as many")
        for name, word in zip(names, words, strict=False):
            value = self._value(row, word)
            if name not in self.registers:
                self._wrong(f"there is no register '{name:.40}'")
            elif self.registers.index(name) in row.new:
                self._wrong(f"{name} is set twice in this row")
            else:
                row.new[self.registers.index(name)] = value

    def _value(self, row: _OpenRow, word: str) -> Value:
        if word in self.registers:
            return Register(self.registers.index(word))
        if word in row.names:
            return Output(row.names[word])
        if word in ("0", "1", "2"):
            return Constant(int(word))
        if word in CONSTANTS:
            self._wrong(f"'{word}' as a value is written {CONSTANTS[word]}")
        else:
            self._wrong(f"'{word:.40}' is not a register, not an output before this line, and not 0, 1 or 2")
        return Constant(0)

    def program(self) -> Program:
        """The whole, once all lines are read."""
        limit, needed = self._limit()
        for row in (row for rows in self.states for row in rows):
            if row.next_state is not None and row.next_state >= len(self.states):
                self.line = row.next_line
                self._wrong(f"there is no state {row.next_state}")
                row.next_state = None
        if not self.states:
            raise _Enough
        try:
            program = Program(
                registers=self.registers,
                states=tuple(tuple(row.closed() for row in rows) for rows in self.states),
                name=self.header.get("name", "program"),
                task=self.header.get("task"),
                origin=self.header.get("origin", "written"),  # pyright: ignore[reportArgumentType]  (checked there)
                limit=limit,
                needs_limit=needed,
                verified=() if self.problems else tuple(self.verified),  # of a repaired program it says nothing
                made=tuple(self.made),
            )
        except ProgramError as error:
            self.problems += error.problems
        else:
            if not self.problems:
                return program
        raise _Enough

    def _limit(self) -> tuple[StepLimit | None, bool]:
        if "limit" not in self.header:
            return None, False
        words, comma, rest = (part.strip() for part in self.header["limit"].partition(","))
        limit, needed = limit_from_text(words), rest == "needed"
        if limit is None or (comma and not needed):
            self._wrong(
                f"limit: '{self.header['limit']:.40}' should be like '6', 'n+4' or '2n+4', with ', needed' "
                "after it if the program must be stopped there",
                everywhere=True,
            )
            return None, False
        return limit, needed
