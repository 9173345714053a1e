"""The text form of a program: people read and edit it, and it parses back to the same program.

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
    else:
        r2 := 1

Rows are tried from the top; the first whose conditions hold is carried out. So every row after the first begins with
'else'. Files of nram 0.2 leave this word out, and say 'otherwise:' for 'else:'; they mean the same. Operations see
the registers as they were when the step began. `:=` then sets all registers at once; those that it does not name keep
their values.
`next 2` goes on in state 2; without it the program stays in its state. Outputs may have any names; they are printed
as o1, o2, ... in order. Below the header a '#' begins a comment. A program with holes, '?', is a sketch: see
`sketch_text`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from nram.extensions import find_module
from nram.limits import StepLimit
from nram.modules import MODULE_NAMES, MODULES
from nram.programs import ir
from nram.programs.check import MAKE_KNOWN, Enough, Reader
from nram.programs.ir import Conditions, Constant, Evidence, Operation, Output, Program, Register, Row, Value

VERSION = 1
FIRST_LINE = re.compile(r"nram program (\S+)")
SKETCH_LINE = re.compile(r"nram sketch (\S+)")
MAX_CHARACTERS = 1 << 26


# ---- printing


def to_text(program: Program) -> str:
    lines = [f"nram program {VERSION}", f"name: {program.name}"]
    if program.task is not None:
        lines.append(f"task: {program.task}")
    lines.append(f"origin: {program.origin}")
    if program.limit is not None:
        lines.append(f"limit: {program.limit}" + (", needed" if program.needs_limit else ""))
    if program.layout is not None:
        lines.append(f"layout: {program.layout}")
    lines += [f"made {key}: {value}" for key, value in program.made]
    lines += [f"verified: {_evidence_to_text(evidence)}" for evidence in program.verified]
    lines.append(f"registers: {' '.join(program.registers)}")
    return "\n".join(lines) + "\n\n" + table_to_text(program)


def table_to_text(program: Program) -> str:
    """The table without the header."""
    lines = []
    for state, rows in enumerate(program.states):
        if len(program.states) > 1:
            lines += [""] * (state > 0) + [f"state {state}:"]
        for index in range(len(rows)):
            lines += row_to_text(program, state, index)
    return "\n".join(lines) + "\n"


def row_to_text(program: Program, state: int, index: int) -> list[str]:
    """The lines of one row: when it applies, and what it does."""
    rows = program.states[state]
    return [f"{ir.condition_in_words(program.registers, rows, index)}:", *row_body(program, rows[index], state)]


def row_body(program: Program, row: Row, state: int) -> list[str]:
    """What a row of this state does."""
    lines = []
    used = {argument for operation in row.operations for argument in operation.arguments} | set(row.registers)
    for index, operation in enumerate(row.operations):
        named = Output(index) in used or MODULES[operation.module].memory != "writes"
        lines.append("    " + (f"o{index + 1} = " if named else "") + operation_to_text(program, operation))
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


def operation_to_text(program: Program, operation: Operation) -> str:
    arguments = ", ".join(value_to_text(program, argument) for argument in operation.arguments)
    return f"{operation.module}({arguments})"


def value_to_text(program: Program, value: Value) -> str:
    return value.resolve(program.registers.__getitem__, lambda index: f"o{index + 1}", str)


def _evidence_to_text(evidence: Evidence) -> str:
    low, high = evidence.complexity
    memory = "every" if evidence.extra_memory is None else "+{}..+{}".format(*evidence.extra_memory)
    parts = [evidence.method, f"task={evidence.task}", f"n={low}..{'' if high is None else high}", f"M={memory}"]
    if evidence.instances is not None:
        parts.append(f"instances={evidence.instances}")
    parts += [f"limits={','.join(evidence.limits)}", f"halts={'yes' if evidence.halts else 'no'}"]
    return " ".join([*parts, f"program={evidence.fingerprint}"])


_EVIDENCE = re.compile(
    r"(inductive|exhaustive|symbolic|random) task=(\S+) n=([0-9]{1,9})\.\.([0-9]{1,9})? "
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
        complexity=(int(low), None if high is None else int(high)),
        extra_memory=None if extra_low is None else (int(extra_low), int(extra_high)),
        instances=None if instances is None else int(instances),
        limits=tuple(limits.split(",")),
        halts=halts == "yes",
        fingerprint=fingerprint,
    )


# ---- parsing


def is_text_form(text: str) -> bool:
    return FIRST_LINE.match(text.lstrip()) is not None


def is_sketch(text: str) -> bool:
    """Whether a text is a sketch, by its first line: a program with holes, which `sketch_text` reads."""
    return SKETCH_LINE.match(text.lstrip()) is not None


def from_text(text: str, where: str = "the text") -> Program:
    """Parse the text form. Otherwise raise a ProgramError that lists every problem with its line."""
    if len(text) > MAX_CHARACTERS:
        raise ir.ProgramError([f"it has {len(text)} characters: the most is {MAX_CHARACTERS}"], where)
    parser = TextReader()
    return parser.result(lambda: parser.program(text), where)


@dataclass
class OpenRow:
    """A row while it is being read."""

    state: int
    when: Conditions
    operations: list[Operation] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    """Of outputs, with the indices of their operations."""
    new: dict[int, Value] = field(default_factory=dict)
    halt: bool = False
    next_state: int | None = None
    next_line: int = 0

    def closed(self) -> Row:
        new = tuple(self.new.get(i, Register(i)) for i in range(len(self.when)))
        next_state = self.state if self.next_state is None else self.next_state
        return Row(self.when, tuple(self.operations), new, self.halt, next_state)


class TextReader(Reader):
    """Reads all lines, and reports problems with their lines."""

    first_line = FIRST_LINE
    header_keys = ("name", "task", "origin", "limit", "layout", "made", "verified", "registers")

    def __init__(self) -> None:
        super().__init__()
        self.line = 0
        self.header: dict[str, str] = {}
        self.made: list[tuple[str, str]] = []
        self.verified: list[Evidence] = []
        self.registers: tuple[str, ...] = ()
        self.states: list[list[OpenRow]] = []
        self.row: OpenRow | None = None
        self.rows = 0
        self.operations = 0

    def program(self, text: str) -> Program:
        self.read_lines(text)
        return self._program()

    def read_lines(self, text: str) -> None:
        """Read the header, and the rows into `states`."""
        lines = text.splitlines()
        while self.line < len(lines) and not lines[self.line].strip():
            self.line += 1
        found = self.first_line.fullmatch(lines[self.line].strip()) if self.line < len(lines) else None
        if found is None:
            self.give_up(f"the first line must be '{self.first_line.pattern.partition('(')[0]}{VERSION}'")
        elif found[1] != str(VERSION):
            self.give_up(f"it has version {found[1]:.40}, and this nram reads version {VERSION}")
        for index in range(self.line + 1, len(lines)):
            self.line = index
            line = lines[index].strip()
            if line and not line.startswith("#"):
                if self.registers:
                    self._body(line.partition("#")[0].strip())
                else:
                    self._header(line)
        if not self.registers:
            self.wrong("there is no line 'registers: r1 r2 ...'")
        elif not self.states:
            self.wrong("there are no rows")

    def wrong_line(self, problem: str) -> None:
        self.wrong(f"line {self.line + 1}: {problem}")

    def give_up(self, problem: str) -> NoReturn:
        self.wrong(problem)
        raise Enough

    def _header(self, line: str) -> None:
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            self.wrong_line(f"'{line:.60}' should be 'key: value', and the line 'registers: ...' is still missing")
        elif key not in self.header_keys and not ("made" in self.header_keys and key.startswith("made ")):
            self.wrong_line(f"'{key:.40}' is unknown: the header has {', '.join(self.header_keys)}")
        elif key == "registers":
            self.registers = tuple(value.replace(",", " ").split())
            if not 1 <= len(self.registers) <= ir.MAX_REGISTERS:
                self.give_up(f"it has {len(self.registers)} registers: name 1 to {ir.MAX_REGISTERS}")
        elif key.startswith("made "):
            self.made.append((key[5:].strip(), value))
        elif key == "verified":
            evidence = _evidence_from_text(value)
            if evidence is None:
                self.wrong_line("this is not in the form in which 'nram verify' records evidence: remove the line")
            else:
                self.verified.append(evidence)
        elif key == "made":
            self.wrong_line("'made' needs a word after it, as in 'made seed: 1'")
        elif key in self.header:
            self.wrong_line(f"'{key}' is given twice")
        else:
            self.header[key] = value

    def _body(self, line: str) -> None:
        if "?" in line:
            self.give_up(
                f"line {self.line + 1}: '?' is a hole, and a program has none; if this is a sketch for 'nram search "
                f"TASK --from FILE', its first line must be 'nram sketch {VERSION}'"
            )
        self._row_line(line)

    def _row_line(self, line: str) -> None:
        if found := re.fullmatch(r"state ([0-9]{1,9}):", line):
            self._state(int(found[1]))
        elif line in ("always:", "otherwise:", "else:"):
            self._open_row((None,) * len(self.registers), line.startswith("else"))
        elif found := re.fullmatch(r"(else )?when (.*):", line):
            self._open_row(self._conditions(found[2]), found[1] is not None)
        elif self.row is None:
            beginnings = "'when ...:', 'else when ...:', 'else:' or 'always:'"
            self.wrong_line(f"'{line:.60}' stands outside of a row: rows begin with {beginnings}")
        elif line == "halt":
            if self.row.halt:
                self.wrong_line("this row halts already: remove the line")
            self.row.halt = True
        elif found := re.fullmatch(r"next ([0-9]{1,9})", line):
            if self.row.next_state is not None:
                self.wrong_line(f"this row goes on in state {self.row.next_state} already: remove one of the lines")
            self.row.next_state, self.row.next_line = int(found[1]), self.line
        elif ":=" in line:
            self._update(self.row, line)
        elif found := re.fullmatch(r"(?:(\w+)\s*=\s*)?([\w-]+)\s*\(([^()]*)\)", line):
            self._operation(self.row, found[1], found[2], found[3])
        else:
            self.wrong_line(
                f"'{line:.60}' is not one of: 'name = MODULE(a, b)', 'r1, r2 := a, b', 'halt', 'next 1', "
                "'when r1 = 0, r2 > 0:', 'else when r1 = 0:', 'else:', 'state 1:'"
            )

    def _state(self, state: int) -> None:
        self.row = None
        if state != len(self.states):
            self.wrong_line(f"state {state} stands where state {len(self.states)} should: number them from 0")
        self.states.append([])

    def _open_row(self, when: Conditions, follows: bool) -> None:
        if not self.states:
            self.states.append([])
        if follows and not self.states[-1]:
            self.wrong_line("the first row of a state has nothing to be 'else' to: begin with 'when ...:' or 'always:'")
        self.rows += 1
        if self.rows > ir.MAX_ROWS:
            self.give_up(f"it has more than {ir.MAX_ROWS} rows")
        self.row = self._new_row(when)
        self.states[-1].append(self.row)

    def _new_row(self, when: Conditions) -> OpenRow:
        return OpenRow(len(self.states) - 1, when)

    def _condition(self, text: str) -> tuple[str, Any] | None:
        """The register and the wish of a condition, or None if it is not a condition."""
        found = re.fullmatch(r"(\w+)\s*(=|>)\s*0", text)
        if found is not None:
            return found[1], found[2] == "="
        self.wrong_line(f"'{text:.40}' is not a condition: write 'r1 = 0' or 'r1 > 0'")

    def _conditions(self, text: str) -> Conditions:
        when: list[bool | None] = [None] * len(self.registers)
        for condition in text.split(","):
            found = self._condition(condition.strip())
            if found is None:
                continue
            name, wish = found
            if name not in self.registers:
                self.wrong_line(f"there is no register '{name:.40}'")
            else:
                register = self.registers.index(name)
                if when[register] is not None:
                    self.wrong_line(f"there are two conditions on {name}")
                when[register] = wish
        return tuple(when)

    def _operation(self, row: OpenRow, name: str | None, module: str, arguments: str) -> None:
        if row.new:
            self.wrong_line("operations stand before the registers' new values: move this line up")
        words = [word.strip() for word in arguments.split(",")] if arguments.strip() else []
        values = tuple(self._value(row, word) for word in words)
        found = find_module(module)
        if found is None:
            self.wrong_line(f"'{module:.40}' is not a module: they are {', '.join(MODULES)}; {MAKE_KNOWN}")
        elif len(values) != found.arity:
            self.wrong_line(f"{module} takes {found.arity} arguments, not {len(values)}")
        if found is None or len(values) != found.arity:
            module, values = "ZERO", ()
        self.operations += 1
        if self.operations > ir.MAX_TOTAL_OPERATIONS:
            self.give_up(f"it has more than {ir.MAX_TOTAL_OPERATIONS} operations")
        row.operations.append(Operation(module, values))
        if name is not None:
            self._output(row, name)

    def _output(self, row: OpenRow, name: str) -> None:
        """Name the output of the row's last operation."""
        if name in self.registers:
            self.wrong_line(f"'{name}' is a register: set it by '{name} := ...' at the end of the row")
        elif name in row.names:
            self.wrong_line(f"'{name:.40}' has a value already in this row: use another name")
        elif name in ir.KEYWORDS or name in MODULE_NAMES or name.isdigit():
            self.wrong_line(f"'{name:.40}' already means something else: use another name")
        row.names[name] = len(row.operations) - 1

    def _update(self, row: OpenRow, line: str) -> None:
        left, _, right = line.partition(":=")
        names, words = [[word.strip() for word in side.split(",")] for side in (left, right)]
        if len(names) != len(words):
            self.wrong_line(f"{len(names)} registers and {len(words)} values: give as many values as registers")
        for name, word in zip(names, words, strict=False):
            value = self._value(row, word)
            if name not in self.registers:
                self.wrong_line(f"there is no register '{name:.40}'")
            elif self.registers.index(name) in row.new:
                self.wrong_line(f"{name} is set twice in this row")
            else:
                row.new[self.registers.index(name)] = value

    def _value(self, row: OpenRow, word: str) -> Value:
        if word in self.registers:
            return Register(self.registers.index(word))
        if word in row.names:
            return Output(row.names[word])
        if word in ("0", "1", "2"):
            return Constant(int(word))
        if word in ir.CONSTANTS:
            self.wrong_line(f"write the value '{word}' as {ir.CONSTANTS[word]}")
        else:
            self.wrong_line(f"'{word:.40}' is not a register, not an output before this line, and not 0, 1 or 2")
        return Constant(0)

    def _program(self) -> Program:
        """The program, once all lines are read."""
        limit, needed = self._limit()
        for row in (row for rows in self.states for row in rows):
            if row.next_state is not None and row.next_state >= len(self.states):
                self.line = row.next_line
                self.wrong_line(f"there is no state {row.next_state}")
                row.next_state = None
        if not self.states:
            raise Enough
        return self.build(
            self.verified,
            registers=self.registers,
            states=tuple(tuple(row.closed() for row in rows) for rows in self.states),
            name=self.header.get("name", "program"),
            task=self.header.get("task"),
            origin=self.header.get("origin", "written"),
            limit=limit,
            needs_limit=needed,
            made=tuple(self.made),
            layout=self.layout(self.header.get("layout")),
        )

    def _limit(self) -> tuple[StepLimit | None, bool]:
        if "limit" not in self.header:
            return None, False
        words, comma, rest = (part.strip() for part in self.header["limit"].partition(","))
        limit, needed = StepLimit.from_text(words), rest == "needed"
        if limit is None or (comma and not needed):
            self.wrong(
                f"limit: '{self.header['limit']:.40}' should be like '6', 'n+4' or '2n+4', with ', needed' "
                "after it if the program must be stopped there"
            )
            return None, False
        return limit, needed
