"""What a sketch is: a program in which some parts are holes, for the search to fill. `sketch_text` reads its text form.

nram sketch 1
registers: r1 r2

when r1 = 0:
    ?
else when r2 ?:
    o1 = READ(?)
    o2 = ?(o1, r2)
    WRITE(r1, ?)
    r1, r2 := o2, ?
else:
    halt
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from nram.display import Fixed, counted, shortened, text_block
from nram.programs.ir import Output, Register, Value

VERSION = 1


@dataclass(frozen=True, slots=True)
class Hole:
    """A `?`: a part that the search fills."""

    def __str__(self) -> str:
        return "?"


HOLE = Hole()


@dataclass(frozen=True, slots=True)
class SketchOperation:
    """One operation, of which the module and the arguments may be holes."""

    module: str | None
    """None: any module that has an output and takes these arguments."""
    arguments: tuple[Value | Hole, ...] | None
    """None: any, of a module that is a hole."""


@dataclass(frozen=True, slots=True)
class SketchRow:
    """One row, with its holes. Outputs are numbered by the operations that are written."""

    when: tuple[bool | Hole | None, ...]
    """As of a program's row; a hole: the register must be 0, or must not be."""
    any_when: bool
    """Registers without a condition may get one."""
    operations: tuple[SketchOperation, ...]
    places: tuple[int, ...]
    """More operations may stand before these ones. A place after the last has their number."""
    registers: tuple[Value | Hole, ...]
    halt: bool | Hole
    next_state: int | Hole
    anything: bool = False
    """The body is a hole: the row may become several rows, with anything in them."""

    @property
    def open_conditions(self) -> bool:
        """Whether the search decides when the row applies."""
        return self.any_when or HOLE in self.when


@dataclass(frozen=True, repr=False)
class Sketch(Fixed):
    """A program with holes."""

    registers: tuple[str, ...]
    states: tuple[tuple[SketchRow, ...], ...]
    name: str = "sketch"

    @cached_property
    def digest(self) -> str:
        """Of what is written in it, without its name and comments."""
        return hashlib.sha256(self.body.encode()).hexdigest()[:16]

    @property
    def rows(self) -> tuple[SketchRow, ...]:
        """The rows of all states."""
        return tuple(row for rows in self.states for row in rows)

    @property
    def holes(self) -> int:
        """How many `?` it has."""
        return self.body.count("?")

    @property
    def is_open(self) -> bool:
        """Whether nothing at all is written: every body is a hole, so it is a search like any other."""
        return all(row.anything for row in self.rows)

    @cached_property
    def body(self) -> str:
        """The text form without the header's name."""
        lines = [f"registers: {' '.join(self.registers)}", ""]
        for state, rows in enumerate(self.states):
            if len(self.states) > 1:
                lines += [""] * (state > 0) + [f"state {state}:"]
            for index, row in enumerate(rows):
                lines += [f"{self._condition(row, index)}:", *self._row_body(row, state)]
        return "\n".join(lines) + "\n"

    def in_short(self) -> str:
        """The text form on one line."""
        rows = [line.strip() for line in self.body.splitlines()[2:] if line]
        words = ""
        for line, after in zip(rows, [*rows[1:], ""], strict=True):
            words += line + (" " if line.endswith(":") else " | " if after.endswith(":") else "; " if after else "")
        return words

    def _condition(self, row: SketchRow, index: int) -> str:
        parts = []
        for name, wish in zip(self.registers, row.when, strict=True):
            if wish is not None:
                parts.append(f"{name} ?" if isinstance(wish, Hole) else f"{name} {'=' if wish else '>'} 0")
        parts += ["?"] * row.any_when
        return " ".join(["else"] * (index > 0) + [f"when {', '.join(parts)}"] * bool(parts)) or "always"

    def _row_body(self, row: SketchRow, state: int) -> list[str]:
        if row.anything:
            return ["    ?"]
        lines = []
        used = {value for op in row.operations for value in op.arguments or ()} | set(row.registers)
        for index in range(len(row.operations) + 1):
            lines += ["    ?"] * (index in row.places)
            for op in row.operations[index : index + 1]:
                named = op.module != "WRITE" or Output(index) in used
                lines.append("    " + f"o{index + 1} = " * named + self._operation(op))
        changed = [(i, value) for i, value in enumerate(row.registers) if value != Register(i)]
        if changed:
            names = ", ".join(self.registers[i] for i, _ in changed)
            lines.append(f"    {names} := {self._values([value for _, value in changed])}")
        if row.halt:  # a hole too
            lines.append("    halt" + (" ?" if isinstance(row.halt, Hole) else ""))
        if row.next_state != state:
            lines.append(f"    next {row.next_state}")
        return lines

    def _operation(self, operation: SketchOperation) -> str:
        brackets = "" if operation.arguments is None else f"({self._values(operation.arguments)})"
        return f"{operation.module or '?'}{brackets}"

    def _values(self, values: Sequence[Value | Hole]) -> str:
        return ", ".join(
            "?" if isinstance(v, Hole) else v.resolve(self.registers.__getitem__, lambda index: f"o{index + 1}", str)
            for v in values
        )

    def __str__(self) -> str:
        return f"nram sketch {VERSION}\nname: {self.name}\n{self.body}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the text."""
        return text_block(str(self))

    def _brief(self) -> str:
        sizes = {"register": len(self.registers), "row": len(self.rows), "hole": self.holes}
        return f"{shortened(self.name, 40)}: a sketch, " + ", ".join(counted(n, what) for what, n in sizes.items())
