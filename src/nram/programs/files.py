"""Programs on disk: JSON for programs, the text form for people. Both carry a version and are read strictly."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nram.errors import NramError, UsageError, shown
from nram.files import parse_json, read_text, write_atomically, write_result
from nram.limits import StepLimit
from nram.programs import ir
from nram.programs.check import Enough, Reader
from nram.programs.ir import Constant, Evidence, Operation, Output, Program, ProgramError, Register, Row, Value
from nram.programs.text import from_text, is_sketch, is_text_form, to_text, value_to_text
from nram.records import INVALID, members

VERSION = 1
MAX_BYTES = 1 << 26
TEXT_ENDINGS = (".nram", ".txt")


def save_program(program: Program, path: str | Path) -> None:
    """Write the program: JSON, or the text form if the name ends in .nram or .txt."""
    write_atomically(Path(path), _content(program, Path(path)))


def save_found(program: Program, path: Path) -> None:
    """Save a program that took long to make. If that fails, it is saved elsewhere and shown, by `write_result`."""
    write_result(path, _content(program, path))


def _content(program: Program, path: Path) -> bytes:
    content = (to_text(program) if path.suffix in TEXT_ENDINGS else to_json_text(program)).encode()
    if len(content) > MAX_BYTES:
        raise NramError(f"{path} would have {len(content) >> 20} MiB, and only {MAX_BYTES >> 20} can be read again")
    return content


def read_program(path: str | Path) -> Program:
    """Read a program file in either form; a ProgramError lists every problem."""
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a program file; 'nram extract' makes one from a run")
    return program_from(read_text(path, MAX_BYTES, "program"), str(path))


def program_from(text: str, where: str = "the text") -> Program:
    """Read a program from a text in either form."""
    if is_text_form(text):
        return from_text(text, where)
    if is_sketch(text):
        raise UsageError(f"{where} is a sketch, a program with holes: 'nram search TASK --from FILE' fills them")
    try:
        value = parse_json(text)
    except ValueError as error:
        problem = f"it is neither JSON ({error}) nor a text that begins with 'nram program'"
        raise ProgramError([problem], f"{where} is not a program") from None
    return from_json(value, where)


# ---- to JSON


def to_json(program: Program) -> dict[str, Any]:
    return {
        "nram_program": VERSION,
        "name": program.name,
        "task": program.task,
        "origin": program.origin,
        "limit": None if program.limit is None else str(program.limit),
        "needs_limit": program.needs_limit,
        "made": dict(program.made),
        **({} if program.layout is None else {"layout": str(program.layout)}),
        "verified": [record_to_json(evidence) for evidence in program.verified],
        "registers": list(program.registers),
        "states": [[_row_to_json(program, row) for row in rows] for rows in program.states],
    }


def to_json_text(program: Program) -> str:
    """The content of a JSON file: one line for each row, for readers."""
    head = to_json(program)
    states = [",\n".join(f"   {json.dumps(row)}" for row in rows) for rows in head.pop("states")]
    body = ",\n".join(f"  [\n{rows}\n  ]" for rows in states)
    return json.dumps(head, indent=1)[:-2] + f',\n "states": [\n{body}\n ]\n}}\n'


def _row_to_json(program: Program, row: Row) -> dict[str, Any]:
    def words(values):
        return [value_to_text(program, value) for value in values]

    conditions = zip(program.registers, row.when, strict=True)
    return {
        "when": {name: "=0" if zero else ">0" for name, zero in conditions if zero is not None},
        "operations": [[operation.module, *words(operation.arguments)] for operation in row.operations],
        "registers": words(row.registers),
        "halt": row.halt,
        "next": row.next_state,
    }


def record_to_json(record: Any) -> dict[str, Any]:
    """The fields of a dataclass as a JSON object, where each is a plain value or a tuple of them."""
    return {name: list(part) if isinstance(part, tuple) else part for name, part in asdict(record).items()}


# ---- from JSON


@dataclass(frozen=True)
class _Form:
    """The members of a program."""

    nram_program: int
    registers: list[str]
    states: list[Any]
    name: str = "program"
    task: str | None = None
    origin: str = "written"
    limit: str | None = None
    layout: str | None = None
    needs_limit: bool = False
    made: dict[str, str] = field(default_factory=dict)
    verified: list[Any] = field(default_factory=list)


HEADER = {"name": "program", "task": None, "origin": "written", "limit": None, "layout": None, "needs_limit": False}
HEADER |= {"made": {}, "verified": []}
"""What replaces members with a problem, so that the rest can be checked too."""


@dataclass(frozen=True)
class _RowForm:
    """The members of a row."""

    operations: list[Any]
    registers: list[Any]
    when: dict[str, Any] = field(default_factory=dict)
    halt: bool = False
    next: int = 0


def from_json(value: Any, where: str = "the value") -> Program:
    """Read a program from a JSON value. Otherwise raise a ProgramError that lists every problem."""
    if not isinstance(value, dict) or "nram_program" not in value:
        raise ProgramError(["it has no 'nram_program' with the version of its form"], where)
    version = value["nram_program"]
    if version != VERSION or type(version) is not int:
        raise ProgramError([f"it has version {shown(version)}, and this nram reads version {VERSION}"], where)
    reader = _Reader()
    return reader.result(lambda: reader.program(value), where)


class _Reader(Reader):
    """Turns JSON into the parts of a program."""

    registers: list[str]

    def members(self, kind: type, value: dict, where: str, **instead: Any) -> dict[str, Any]:
        """The members of an object. Those with a problem have the value of `instead`, if it names one."""
        found = members(kind, value, lambda key: f"{where}{shown(key)}", self.wrong)
        return {key: instead.get(key, INVALID) if part is INVALID else part for key, part in found.items()}

    def program(self, value: dict) -> Program:
        found = self.members(_Form, value, "", **HEADER)
        parts = {key: found[key] for key in ("name", "task", "origin", "needs_limit")}
        if found["limit"] is not None:
            parts["limit"] = StepLimit.from_text(found["limit"])
            if parts["limit"] is None:
                self.wrong(f"'limit' is {shown(found['limit'])}: it should be like '6', 'n+4' or '2n+4'")
                parts["needs_limit"] = False
        parts["made"] = tuple(found["made"].items())
        parts["layout"] = self.layout(found["layout"])
        entries = enumerate(found["verified"])
        verified = [self.evidence(entry, f"verified, entry {index + 1}: ") for index, entry in entries]
        names, states = found["registers"], found["states"]
        if names is INVALID or states is INVALID:
            raise Enough
        if not 1 <= len(names) <= ir.MAX_REGISTERS:
            self.wrong(f"it has {len(names)} registers: there must be 1 to {ir.MAX_REGISTERS}")
            raise Enough
        self.registers = names
        count = sum(len(rows) for rows in states if isinstance(rows, list))
        if len(states) > ir.MAX_STATES or count > ir.MAX_ROWS:
            most = f"{ir.MAX_STATES} states with {ir.MAX_ROWS} rows"
            self.wrong(f"it has {len(states)} states with {count} rows: the most is {most}")
            raise Enough
        parts["states"] = tuple(self.state(rows, state) for state, rows in enumerate(states))
        return self.build([one for one in verified if one is not None], registers=tuple(names), **parts)

    def state(self, rows: Any, state: int) -> tuple[Row, ...]:
        if not isinstance(rows, list):
            self.wrong(f"state {state} is {shown(rows)}, not a list of rows")
            rows = [{"operations": [], "registers": self.registers}]
        return tuple(self.row(row, f"state {state}, row {index + 1}: ") for index, row in enumerate(rows))

    def row(self, value: Any, where: str) -> Row:
        if not isinstance(value, dict):
            self.wrong(f"{where}{shown(value)} is not an object")
            value = {"operations": [], "registers": self.registers}
        found = self.members(
            _RowForm, value, where, operations=[], registers=self.registers, when={}, halt=False, next=0
        )
        for name, condition in found["when"].items():
            if name not in self.registers:
                self.wrong(f"{where}a condition on {shown(name)}, which is not a register")
            if condition not in ("=0", ">0"):
                self.wrong(f"{where}the condition on {shown(name)} is {shown(condition)}: use '=0' or '>0'")
        conditions = {name: condition == "=0" for name, condition in found["when"].items()}
        return Row(
            when=tuple(conditions.get(name) for name in self.registers),
            operations=tuple(
                self.operation(words, f"{where}operation {index}") for index, words in enumerate(found["operations"], 1)
            ),
            registers=tuple(
                self.value(word, f"{where}new value {index + 1}: ") for index, word in enumerate(found["registers"])
            ),
            halt=found["halt"],
            next_state=found["next"],
        )

    def operation(self, words: Any, where: str) -> Operation:
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return Operation(words[0], tuple(self.value(word, f"{where}: ") for word in words[1:]))
        self.wrong(f'{where} is {shown(words)}, not like ["ADD", "r1", "o1"]')
        return Operation("ZERO")

    def value(self, word: Any, where: str) -> Value:
        if word in self.registers:
            return Register(self.registers.index(word))
        if word in ("0", "1", "2"):
            return Constant(int(word))
        if isinstance(word, str) and re.fullmatch(r"o[1-9][0-9]{0,8}", word):
            return Output(int(word[1:]) - 1)
        self.wrong(f"{where}a wire from {shown(word)}, which is not a register, an output o1, o2, ... or 0, 1, 2")
        return Constant(0)

    def evidence(self, value: Any, where: str) -> Evidence | None:
        if not isinstance(value, dict):
            self.wrong(f"{where}{shown(value)} is not an object")
            return None
        found = self.members(Evidence, value, where)
        return None if any(part is INVALID for part in found.values()) else Evidence(**found)
