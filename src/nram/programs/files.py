"""Programs on disk: JSON for programs, the text form for people. Both carry a version and are read strictly."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

from nram.errors import NramError, UsageError
from nram.files import write_atomically
from nram.programs.ir import (
    MAX_PROBLEMS,
    MAX_REGISTERS,
    MAX_ROWS,
    MAX_STATES,
    Constant,
    Evidence,
    Operation,
    Output,
    Program,
    ProgramError,
    Register,
    Row,
    Value,
    shown,
    whole_row,
)
from nram.programs.text import from_text, is_text_form, limit_from_text, limit_to_text, to_text, value_to_text

VERSION = 1
MAX_BYTES = 1 << 26
TEXT_ENDINGS = (".nram", ".txt")


def save_program(program: Program, path: str | Path) -> None:
    """Write the program: JSON, or the text form if the name ends in .nram or .txt."""
    path = Path(path)
    content = (to_text(program) if path.suffix in TEXT_ENDINGS else to_json_text(program)).encode()
    if len(content) > MAX_BYTES:
        raise NramError(f"{path} would have {len(content) >> 20} MiB, and only {MAX_BYTES >> 20} can be read again")
    write_atomically(path, content)


def read_program(path: str | Path) -> Program:
    """The program in a file, in whichever of the two forms; every problem is named."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UsageError(f"{path} is larger than any program: {MAX_BYTES >> 20} MiB are allowed")
        text = content.decode("utf-8-sig")
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder: name a program file; 'nram extract' makes one from a run") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a program: it is not text") from None
    except OSError as error:
        raise NramError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:  # a path that no file can have
        raise UsageError(f"{shown(str(path))} cannot be the name of a file") from None
    return program_from(text, str(path))


def program_from(text: str, where: str = "the text") -> Program:
    """The program of a text in whichever of the two forms."""
    if is_text_form(text):
        return from_text(text, where)
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        problem = f"neither JSON ({error}) nor a text that begins with 'nram program'"
        raise ProgramError([problem], f"{where} is not a program") from None
    return from_json(value, where)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; of two members of one name Python would silently take the last."""
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
        "limit": None if program.limit is None else limit_to_text(program.limit),
        "needs_limit": program.needs_limit,
        "made": dict(program.made),
        "verified": [_evidence_to_json(evidence) for evidence in program.verified],
        "registers": list(program.registers),
        "states": [[_row_to_json(program, row) for row in rows] for rows in program.states],
    }


def to_json_text(program: Program) -> str:
    """The file's content: a line for each row, so that one can find one's way."""
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


def _evidence_to_json(evidence: Evidence) -> dict[str, Any]:
    return {
        "method": evidence.method,
        "task": evidence.task,
        "complexity": list(evidence.complexity),
        "extra_memory": None if evidence.extra_memory is None else list(evidence.extra_memory),
        "instances": evidence.instances,
        "limits": list(evidence.limits),
        "halts": evidence.halts,
        "fingerprint": evidence.fingerprint,
    }


# ---- from JSON


def from_json(value: Any, where: str = "the value") -> Program:
    """The program of a JSON value; a ProgramError that names every problem otherwise."""
    if not isinstance(value, dict) or "nram_program" not in value:
        raise ProgramError(["it has no 'nram_program' with the version of its form"], where)
    version = value["nram_program"]
    if version != VERSION or type(version) is not int:
        raise ProgramError([f"it is of version {shown(version)}, and this nram reads version {VERSION}"], where)
    reader = _Reader()
    with contextlib.suppress(_Enough):
        return reader.program(value)
    raise ProgramError(reader.problems, where)


class _Enough(Exception):
    """Nothing more can be read, or too much is wrong for it to be of use."""


class _Reader:
    """Turns JSON into parts of a program and collects what is wrong. What is wrong is replaced by something harmless,
    so that the rest can be judged too."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.registers: list[str] = []

    def wrong(self, problem: str) -> None:
        self.problems.append(problem)
        if len(self.problems) >= MAX_PROBLEMS:
            raise _Enough

    def member(self, value: dict, key: str, kind: type | tuple[type, ...], where: str, default: Any) -> Any:
        """One member of an object; the default if it is not there, or not what it should be."""
        found = value.get(key, default)
        if key in value and (not isinstance(found, kind) or (isinstance(found, bool) and bool not in _kinds(kind))):
            self.wrong(f"{where}'{key}' is {shown(found)}, not {_in_words(kind)}")
            return default
        return found

    def required(self, value: dict, key: str, kind: type | tuple[type, ...], where: str, instead: Any) -> Any:
        """The same for a member that must be there."""
        if key not in value:
            self.wrong(f"{where}'{key}' is missing")
        return self.member(value, key, kind, where, instead)

    def strange(self, value: dict, known: set[str], where: str) -> None:
        for key in value:
            if key not in known:
                self.wrong(f"{where}{shown(key)} is unknown: remove it, or correct its spelling")

    def program(self, value: dict) -> Program:
        nothing = type(None)
        known = {"nram_program", "name", "task", "origin", "limit", "needs_limit", "made", "verified"}
        self.strange(value, known | {"registers", "states"}, "")
        parts: dict[str, Any] = {
            "name": self.member(value, "name", str, "", "program"),
            "task": self.member(value, "task", (str, nothing), "", None),
            "origin": self.member(value, "origin", str, "", "written"),
            "needs_limit": self.member(value, "needs_limit", bool, "", False),
        }
        text = self.member(value, "limit", (str, nothing), "", None)
        if text is not None:
            parts["limit"] = limit_from_text(text)
            if parts["limit"] is None:
                self.wrong(f"'limit' is {shown(text)}: it should be like '6', 'n+4' or '2n+4'")
                parts["needs_limit"] = False
        made = self.member(value, "made", dict, "", {})
        for key, words in made.items():
            if not isinstance(words, str):
                self.wrong(f"made, {shown(key)}: {shown(words)} is not a text")
        parts["made"] = tuple(pair for pair in made.items() if isinstance(pair[1], str))
        entries = enumerate(self.member(value, "verified", list, "", []))
        verified = [self.evidence(entry, f"verified, entry {number + 1}: ") for number, entry in entries]

        names = self.required(value, "registers", list, "", None)
        states = self.required(value, "states", list, "", None)
        if names is None or states is None:
            raise _Enough
        if not all(isinstance(name, str) for name in names):
            self.wrong("'registers' is not a list of names")
            raise _Enough
        if not 1 <= len(names) <= MAX_REGISTERS:
            self.wrong(f"it has {len(names)} registers: there must be 1 to {MAX_REGISTERS}")
            raise _Enough
        self.registers = names
        count = sum(len(rows) for rows in states if isinstance(rows, list))
        if len(states) > MAX_STATES or count > MAX_ROWS:
            self.wrong(f"it has {len(states)} states with {count} rows: there may be {MAX_STATES} with {MAX_ROWS}")
            raise _Enough
        parts["states"] = tuple(self.state(rows, number) for number, rows in enumerate(states))
        if not self.problems:  # of a repaired program they say nothing
            parts["verified"] = tuple(verified)
        try:
            program = Program(registers=tuple(self.registers), **parts)
        except ProgramError as error:
            self.problems += error.problems
        else:
            if not self.problems:
                return program
        raise _Enough

    def state(self, rows: Any, number: int) -> tuple[Row, ...]:
        if not isinstance(rows, list):
            self.wrong(f"state {number} is {shown(rows)}, not a list of rows")
            return (whole_row(len(self.registers)),)
        return tuple(self.row(row, f"state {number}, row {place + 1}: ") for place, row in enumerate(rows))

    def row(self, value: Any, where: str) -> Row:
        if not isinstance(value, dict):
            self.wrong(f"{where}{shown(value)} is not an object")
            return whole_row(len(self.registers))
        self.strange(value, {"when", "operations", "registers", "halt", "next"}, where)
        conditions = self.member(value, "when", dict, where, {})
        for name, condition in conditions.items():
            if name not in self.registers:
                self.wrong(f"{where}a condition on {shown(name)}, which is no register")
            if condition not in ("=0", ">0"):
                self.wrong(f"{where}the condition on {shown(name)} is {shown(condition)}: it is '=0' or '>0'")
        operations = self.required(value, "operations", list, where, [])
        new = [
            self.value(word, f"{where}new value {place + 1}: ")
            for place, word in enumerate(self.required(value, "registers", list, where, self.registers))
        ]
        return Row(
            when=tuple(conditions[name] == "=0" if name in conditions else None for name in self.registers),
            operations=tuple(
                self.operation(words, f"{where}operation {number + 1}") for number, words in enumerate(operations)
            ),
            registers=tuple(new),
            halt=self.member(value, "halt", bool, where, False),
            next_state=self.member(value, "next", int, where, 0),
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
        names = {"method", "task", "complexity", "extra_memory", "instances", "limits", "halts", "fingerprint"}
        self.strange(value, names, where)
        limits = self.required(value, "limits", list, where, [])
        if not all(isinstance(limit, str) for limit in limits):
            self.wrong(f"{where}'limits' is {shown(limits)}, not a list of limits")
        return Evidence(
            method=self.required(value, "method", str, where, ""),
            task=self.required(value, "task", str, where, ""),
            complexity=self.pair(value, "complexity", where),
            extra_memory=None if value.get("extra_memory") is None else self.pair(value, "extra_memory", where),
            instances=self.required(value, "instances", (int, type(None)), where, None),
            limits=tuple(limits),
            halts=self.required(value, "halts", bool, where, False),
            fingerprint=self.required(value, "fingerprint", str, where, ""),
        )

    def pair(self, value: dict, key: str, where: str) -> tuple[int, int]:
        found = value.get(key)
        if isinstance(found, list) and len(found) == 2 and all(type(number) is int for number in found):
            return found[0], found[1]
        self.wrong(f"{where}'{key}' is {shown(found)}, not two whole numbers")
        return 0, 0


def _kinds(kind: type | tuple[type, ...]) -> tuple[type, ...]:
    return kind if isinstance(kind, tuple) else (kind,)


def _in_words(kind: type | tuple[type, ...]) -> str:
    words = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}
    return " or ".join(words.get(one, "null") for one in _kinds(kind))
