"""The text form of a sketch: that of a program, with `?` for what the search shall find.

    a = READ(?)          a value: 0, 1, 2, a register, or an output above
    r1, r2 := a, ?       the same, of a register's new value
    a = ?(r1, 2)         a module with an output that takes these arguments
    a = ?                any operation with an output
    when r1 ?:           r1 = 0 or r1 > 0
    when r1 = 0, ?:      further conditions, or none; also 'when ?:'
    halt ?               whether it halts
    next ?               the state in which it goes on
    ?                    as a line: any operations at this place; as the only line of a row: anything

The header has a name, if one is wanted, and the registers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from nram.files import read_text
from nram.programs import ir
from nram.programs.check import Enough, register_problems, uncovered
from nram.programs.ir import Conditions, Operation
from nram.programs.sketch import HOLE, Sketch, SketchOperation, SketchRow
from nram.programs.text import MAX_CHARACTERS, SKETCH_LINE, OpenRow, TextReader, is_sketch

MAX_BYTES = 1 << 20
MOST_OPERATIONS = 200  # in one row: more cannot be searched


def sketch_from_text(text: str, where: str = "the text") -> Sketch:
    """Parse the text form of a sketch. Otherwise raise a ProgramError that lists every problem with its line."""
    if len(text) > MAX_CHARACTERS:
        raise ir.ProgramError([f"it has {len(text)} characters: the most is {MAX_CHARACTERS}"], where)
    reader = _SketchReader()
    return reader.result(lambda: reader.sketch(text), where)


def read_sketch(path: Path) -> Sketch:
    return sketch_from_text(read_text(path, MAX_BYTES, "sketch"), str(path))


def holds_sketch(path: Path) -> bool:
    """Whether this is a file with a sketch, by its first line."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return is_sketch(file.read(1000).decode(errors="replace"))
    except OSError:
        return False


@dataclass
class _OpenSketchRow(OpenRow):
    """A row of a sketch while it is being read. Its operations hold holes too."""

    any_when: bool = False
    places: list[int] = field(default_factory=list)
    halt_open: bool = False
    next_open: bool = False

    def sketched(self) -> SketchRow:
        row = self.closed()
        written = (row.operations, self.new, row.halt, self.halt_open, self.next_open, self.next_state is not None)
        anything = self.places == [0] and not any(written)
        return SketchRow(
            when=row.when,
            any_when=self.any_when,
            operations=cast(tuple[SketchOperation, ...], row.operations),
            places=tuple(self.places),
            registers=tuple(HOLE for _ in row.registers) if anything else row.registers,
            halt=HOLE if anything or self.halt_open else row.halt,
            next_state=HOLE if anything or self.next_open else row.next_state,
            anything=anything,
        )


class _SketchReader(TextReader):
    """Reads a sketch. What a hole stands for depends on its place in the line."""

    first_line = SKETCH_LINE
    header_keys = ("name", "registers")

    def __init__(self) -> None:
        super().__init__()
        self.holes = 0
        self.any_when = False

    def sketch(self, text: str) -> Sketch:
        self.read_lines(text)
        for problem in register_problems(self.registers):
            self.wrong(problem)
        for rows in cast(list[list[_OpenSketchRow]], self.states):
            for row in rows:
                if row.next_state is not None and row.next_state >= len(self.states):
                    self.wrong(f"line {row.next_line + 1}: there is no state {row.next_state}")
        if not self.holes and not self.problems:
            self.wrong(
                "it has no '?', so nothing is left to search for: it is a program; with 'nram program 1' as its first "
                "line 'nram verify' checks it, and 'nram search TASK --from FILE' repairs it"
            )
        if self.problems:
            raise Enough
        states = tuple(tuple(cast(_OpenSketchRow, row).sketched() for row in rows) for rows in self.states)
        for state, rows in enumerate(states):
            sure = [cast(Conditions, row.when) for row in rows if not row.open_conditions]
            missed = uncovered(sure, len(self.registers))
            if missed is not None:
                words = ir.describe(self.registers, missed)
                self.wrong(f"state {state}: no row is sure to apply when {words}: end with 'else:', and '?' in it")
        name = self.header.get("name", "sketch")
        if not ir.is_plain(name):
            self.wrong("the name must be visible characters on one line")
        if self.problems:
            raise Enough
        return Sketch(self.registers, states, name)

    def _new_row(self, when: Conditions) -> _OpenSketchRow:
        any_when, self.any_when = self.any_when, False
        return _OpenSketchRow(len(self.states) - 1, when, any_when=any_when)

    def _conditions(self, text: str) -> Conditions:
        parts = [part.strip() for part in text.split(",")]
        self.any_when = "?" in parts
        self.holes += parts.count("?")
        if parts.count("?") > 1:
            self.wrong_line("one '?' stands for all further conditions: remove the others")
        written = [part for part in parts if part != "?"]
        return super()._conditions(", ".join(written)) if written else (None,) * len(self.registers)

    def _condition(self, text: str) -> tuple[str, Any] | None:
        found = re.fullmatch(r"(\w+)\s*\?", text)
        if found is not None:
            self.holes += 1
            return found[1], HOLE
        if "?" in text:
            self.wrong_line(f"'{text:.40}' is not a condition: write 'r1 = 0', 'r1 > 0', 'r1 ?' or '?'")
            return None
        return super()._condition(text)

    def _body(self, line: str) -> None:
        row = cast(_OpenSketchRow | None, self.row)
        if "?" not in line or re.fullmatch(r"(else )?when .*:", line):
            self._row_line(line)
        elif row is None:
            self._row_line(line)  # which says that it stands outside of a row
        elif line == "?":
            self._place(row)
        elif line == "halt ?":
            if row.halt:
                self.wrong_line("this row halts already: remove the line")
            row.halt = row.halt_open = True
            self.holes += 1
        elif line == "next ?":
            if row.next_state is not None or row.next_open:
                self.wrong_line("this row has a 'next' already: remove one of the lines")
            row.next_open = True
            self.holes += 1
        elif ":=" in line:
            if "?" in line.partition(":=")[0]:
                self.wrong_line("a hole cannot name a register: write 'r1 := ?' for every register that may change")
            else:
                self._row_line(line)
        elif found := re.fullmatch(r"(?:([^=()]*?)\s*=\s*)?\?\s*(?:\(([^()]*)\))?", line):
            self._open_operation(row, found[1], found[2])
        elif re.fullmatch(r"(?:\w+\s*=\s*)?[\w-]+\s*\([^()]*\)", line):
            self._row_line(line)
        else:
            self.wrong_line(
                f"a hole cannot stand there in '{line:.60}': '?' is an argument, a new value ('r1 := ?'), a module "
                "('a = ?(r1, r2)', 'a = ?'), a condition ('when r1 ?:', 'when ?:'), 'halt ?', 'next ?' or a whole line"
            )

    def _place(self, row: _OpenSketchRow) -> None:
        """A line '?': any operations."""
        self.holes += 1
        if row.new:
            self.wrong_line("operations stand before the registers' new values: move this line up")
        elif len(row.operations) in row.places:
            self.wrong_line("two lines '?' one after another mean the same as one: remove one of them")
        else:
            row.places.append(len(row.operations))

    def _open_operation(self, row: _OpenSketchRow, name: str | None, arguments: str | None) -> None:
        """`a = ?` or `a = ?(r1, r2)`."""
        self.holes += 1
        if row.new:
            self.wrong_line("operations stand before the registers' new values: move this line up")
        if name is None or not re.fullmatch(r"\w+", name):
            self.wrong_line(
                "a module that is a hole has an output, so name it: 'a = ?(r1, r2)'; for a WRITE write WRITE(?, ?), "
                "and for any operations a line '?'"
            )
            name = None
        words = None if arguments is None else [word.strip() for word in arguments.split(",") if arguments.strip()]
        values = None if words is None else tuple(self._value(row, word) for word in words)
        if values is not None and not 1 <= len(values) <= 2:
            self.wrong_line(f"no module takes {len(values)} arguments: they take one or two, and 0, 1 and 2 are values")
        row.operations.append(cast(Operation, SketchOperation(None, values)))
        if name is not None:
            self._output(row, name)

    def _operation(self, row: OpenRow, name: str | None, module: str, arguments: str) -> None:
        super()._operation(row, name, module, arguments)
        operation = row.operations[-1]
        row.operations[-1] = cast(Operation, SketchOperation(operation.module, operation.arguments))
        if len(row.operations) > MOST_OPERATIONS:
            self.give_up(f"line {self.line + 1}: the row has more than {MOST_OPERATIONS} operations")

    def _value(self, row: OpenRow, word: str) -> Any:
        if word == "?":
            self.holes += 1
            return HOLE
        return super()._value(row, word)
