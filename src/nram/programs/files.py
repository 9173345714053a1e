"""Programs on disk: JSON for programs, the text form for people. Both carry a version and are read strictly."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from nram.errors import NramError, UsageError, shown
from nram.files import write_atomically, write_result
from nram.limits import StepLimit
from nram.programs import ir
from nram.programs.check import Enough, Reader
from nram.programs.ir import Constant, Evidence, Operation, Output, Program, ProgramError, Register, Row, Value
from nram.programs.text import from_text, is_text_form, to_text, value_to_text

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
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UsageError(f"{path} is too large for a program: the most is {MAX_BYTES >> 20} MiB")
        text = content.decode("utf-8-sig")
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder: name a program file; 'nram extract' makes one from a run") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a program: it is not text") from None
    except OSError as error:
        raise NramError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:  # such as a path with a null character
        raise UsageError(f"{shown(str(path))} is not a valid file name") from None
    return program_from(text, str(path))


def program_from(text: str, where: str = "the text") -> Program:
    """Read a program from a text in either form."""
    if is_text_form(text):
        return from_text(text, where)
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        problem = f"it is neither JSON ({error}) nor a text that begins with 'nram program'"
        raise ProgramError([problem], f"{where} is not a program") from None
    return from_json(value, where)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Two members of one name are refused: Python would silently take the last."""
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        name = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"an object has {shown(name)} twice")
    return members


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


class Member(NamedTuple):
    """A member of a JSON object."""

    kind: type | tuple[type, ...]
    default: Any = None
    """What it is if it is missing, or of the wrong kind."""
    required: bool = False


TEXT, OPTIONAL_TEXT = Member(str, "", required=True), Member((str, NoneType))
LIST = Member(list, [], required=True)
PROGRAM = {
    "nram_program": Member(int),
    "name": Member(str, "program"),
    "task": OPTIONAL_TEXT,
    "origin": Member(str, "written"),
    "limit": OPTIONAL_TEXT,
    "needs_limit": Member(bool, False),
    "made": Member(dict, {}),
    "verified": Member(list, []),
    "registers": Member(list, None, required=True),
    "states": Member(list, None, required=True),
}
EVIDENCE = {
    "method": TEXT,
    "task": TEXT,
    "complexity": Member(object, [0, 0], required=True),
    "extra_memory": Member(object),
    "instances": Member((int, NoneType), required=True),
    "limits": LIST,
    "halts": Member(bool, False, required=True),
    "fingerprint": TEXT,
}
KINDS = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}


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

    def members(self, value: dict, known: dict[str, Member], where: str) -> dict[str, Any]:
        """The members of an object, all of the right kind."""
        for key in value:
            if key not in known:
                self.wrong(f"{where}{shown(key)} is unknown: remove it, or correct its spelling")
        found = {}
        for key, (kind, default, required) in known.items():
            kinds = kind if isinstance(kind, tuple) else (kind,)
            member = found[key] = value.get(key, default)
            if key not in value:
                if required:
                    self.wrong(f"{where}'{key}' is missing")
            elif not isinstance(member, kinds) or (isinstance(member, bool) and bool not in kinds):
                self.wrong(
                    f"{where}'{key}' is {shown(member)}, not {' or '.join(KINDS.get(one, 'null') for one in kinds)}"
                )
                found[key] = default
        return found

    def program(self, value: dict) -> Program:
        found = self.members(value, PROGRAM, "")
        parts = {key: found[key] for key in ("name", "task", "origin", "needs_limit")}
        if found["limit"] is not None:
            parts["limit"] = StepLimit.from_text(found["limit"])
            if parts["limit"] is None:
                self.wrong(f"'limit' is {shown(found['limit'])}: it should be like '6', 'n+4' or '2n+4'")
                parts["needs_limit"] = False
        for key, words in found["made"].items():
            if not isinstance(words, str):
                self.wrong(f"made, {shown(key)}: {shown(words)} is not a text")
        parts["made"] = tuple(pair for pair in found["made"].items() if isinstance(pair[1], str))
        entries = enumerate(found["verified"])
        verified = [self.evidence(entry, f"verified, entry {index + 1}: ") for index, entry in entries]
        names, states = found["registers"], found["states"]
        if names is None or states is None:
            raise Enough
        if not all(isinstance(name, str) for name in names):
            self.wrong("'registers' is not a list of names")
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
        members = {
            "when": Member(dict, {}),
            "operations": LIST,
            "registers": Member(list, self.registers, required=True),
            "halt": Member(bool, False),
            "next": Member(int, 0),
        }
        found = self.members(value, members, where)
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
        found = self.members(value, EVIDENCE, where)
        for key in ("complexity", "extra_memory"):
            found[key] = self.pair(found[key], key, where)
        if not all(isinstance(limit, str) for limit in found["limits"]):
            self.wrong(f"{where}'limits' is {shown(found['limits'])}, not a list of limits")
        return Evidence(**{**found, "limits": tuple(found["limits"])})

    def pair(self, found: Any, key: str, where: str) -> tuple[int, int] | None:
        if isinstance(found, list) and len(found) == 2 and all(type(part) is int for part in found):
            return found[0], found[1]
        if found is not None or key == "complexity":
            self.wrong(f"{where}'{key}' is {shown(found)}, not two whole numbers")
        return None
