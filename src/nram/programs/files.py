"""Programs on disk: JSON for programs, the text form for people. Both carry a version and are read strictly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nram.errors import NramError, UsageError
from nram.files import write_atomically
from nram.programs.ir import (
    Constant,
    Evidence,
    Operation,
    Output,
    Program,
    ProgramError,
    Register,
    Row,
    Value,
)
from nram.programs.text import from_text, is_text_form, limit_from_text, limit_to_text, to_text, value_to_text

VERSION = 1
MAX_BYTES = 1 << 26
TEXT_ENDINGS = (".nram", ".txt")


def save_program(program: Program, path: str | Path) -> None:
    """Write the program: JSON, or the text form if the name ends in .nram or .txt."""
    path = Path(path)
    text = to_text(program) if path.suffix in TEXT_ENDINGS else json.dumps(to_json(program), indent=1) + "\n"
    write_atomically(path, text.encode())


def read_program(path: str | Path) -> Program:
    """The program in a file, in whichever of the two forms; every problem is named."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than any program: {MAX_BYTES >> 20} MiB are allowed")
        text = path.read_bytes().decode()
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder: name a program file; 'nram extract' makes one from a run") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a program: it is not text") from None
    except OSError as error:
        raise NramError(f"{path} cannot be read: {error.strerror}") from None
    if is_text_form(text):
        return from_text(text, str(path))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = f"{path} is not a program: neither JSON ({error}) nor a text that begins with 'nram program'"
        raise UsageError(problem) from None
    return from_json(value, str(path))


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
    if version != VERSION or isinstance(version, bool):
        raise ProgramError([f"it is of version {version!r:.40}, and this nram reads version {VERSION}"], where)
    reader = _Reader()
    program = reader.program(value)
    if reader.problems:
        raise ProgramError(reader.problems, where)
    try:
        return Program(**program)
    except ProgramError as error:
        raise ProgramError(error.problems, where) from None


class _Reader:
    """Turns JSON into parts of a program and collects what is wrong. What it returns after a problem is of no use."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.registers: list[str] = []

    def wrong(self, problem: str) -> None:
        self.problems.append(problem)

    def member(self, value: dict, key: str, kind: type | tuple[type, ...], where: str, default: Any = ...) -> Any:
        """One member of an object, of the right kind."""
        if key not in value:
            if default is ...:
                self.wrong(f"{where}'{key}' is missing")
            return None if default is ... else default
        found = value[key]
        if not isinstance(found, kind) or (isinstance(found, bool) and bool not in _kinds(kind)):
            self.wrong(f"{where}'{key}' is {found!r:.60}, not {_in_words(kind)}")
            return None
        return found

    def strange(self, value: dict, known: set[str], where: str) -> None:
        for key in value.keys() - known:
            self.wrong(f"{where}'{key:.40}' is unknown: remove it, or correct its spelling")

    def program(self, value: dict) -> dict[str, Any]:
        nothing = type(None)
        known = {"nram_program", "name", "task", "origin", "limit", "needs_limit", "made", "verified"}
        self.strange(value, known | {"registers", "states"}, "")
        self.registers = self.member(value, "registers", list, "") or []
        if not all(isinstance(name, str) for name in self.registers):
            self.wrong("'registers' is not a list of names")
            self.registers = []
        limit, text = None, self.member(value, "limit", (str, nothing), "", None)
        if text is not None:
            limit = limit_from_text(text)
            if limit is None:
                self.wrong(f"'limit' is '{text:.40}': it should be like '6', 'n+4' or '2n+4'")
        made = self.member(value, "made", dict, "", {}) or {}
        for key, words in made.items():
            if not isinstance(words, str):
                self.wrong(f"made, '{key:.40}': {words!r:.60} is not a text")
        states = self.member(value, "states", list, "") or []
        return {
            "name": self.member(value, "name", str, "", "program"),
            "task": self.member(value, "task", (str, nothing), "", None),
            "origin": self.member(value, "origin", str, "", "written"),
            "limit": limit,
            "needs_limit": self.member(value, "needs_limit", bool, "", False),
            "made": tuple(made.items()),
            "verified": tuple(self.evidence(one) for one in self.member(value, "verified", list, "", []) or []),
            "registers": tuple(self.registers),
            "states": tuple(self.state(rows, number) for number, rows in enumerate(states)),
        }

    def state(self, rows: Any, number: int) -> tuple[Row, ...]:
        if not isinstance(rows, list):
            self.wrong(f"state {number} is {rows!r:.60}, not a list of rows")
            return ()
        return tuple(self.row(row, f"state {number}, row {place + 1}: ") for place, row in enumerate(rows))

    def row(self, value: Any, where: str) -> Row:
        if not isinstance(value, dict):
            self.wrong(f"{where}{value!r:.60} is not an object")
            return Row((), (), ())
        self.strange(value, {"when", "operations", "registers", "halt", "next"}, where)
        conditions = self.member(value, "when", dict, where, {}) or {}
        for name, condition in conditions.items():
            if name not in self.registers:
                self.wrong(f"{where}a condition on '{name:.40}', which is no register")
            if condition not in ("=0", ">0"):
                self.wrong(f"{where}the condition on '{name:.40}' is {condition!r:.40}: it is '=0' or '>0'")
        operations = []
        for number, words in enumerate(self.member(value, "operations", list, where) or []):
            if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
                self.wrong(f'{where}operation {number + 1} is {words!r:.60}, not like ["ADD", "r1", "o1"]')
                words = ["ZERO"]
            arguments = tuple(self.value(word, f"{where}operation {number + 1}: ") for word in words[1:])
            operations.append(Operation(words[0], arguments))
        new = self.member(value, "registers", list, where) or []
        return Row(
            when=tuple(conditions[name] == "=0" if name in conditions else None for name in self.registers),
            operations=tuple(operations),
            registers=tuple(self.value(word, f"{where}new value {i + 1}: ") for i, word in enumerate(new)),
            halt=self.member(value, "halt", bool, where, False),
            next_state=self.member(value, "next", int, where, 0),
        )

    def value(self, word: Any, where: str) -> Value:
        if word in self.registers:
            return Register(self.registers.index(word))
        if word in ("0", "1", "2"):
            return Constant(int(word))
        if isinstance(word, str) and word[:1] == "o" and word[1:].isascii() and word[1:].isdigit() and len(word) < 10:
            return Output(int(word[1:]) - 1)
        self.wrong(f"{where}a wire from {word!r:.40}, which is not a register, an output o1, o2, ... or 0, 1, 2")
        return Constant(0)

    def evidence(self, value: Any) -> Evidence | None:
        where = "verified: "
        if not isinstance(value, dict):
            self.wrong(f"{where}{value!r:.60} is not an object")
            return None
        names = {"method", "task", "complexity", "extra_memory", "instances", "limits", "halts", "fingerprint"}
        self.strange(value, names, where)
        method = self.member(value, "method", str, where)
        if method not in ("exhaustive", "symbolic", "random"):
            self.wrong(f"{where}the method {method!r:.40} is none of exhaustive, symbolic, random")
        limits = self.member(value, "limits", list, where) or []
        if not limits or not all(isinstance(limit, str) and limit and " " not in limit for limit in limits):
            self.wrong(f"{where}'limits' is {limits!r:.60}, not a list of limits")
        return Evidence(
            method=method,
            task=self.member(value, "task", str, where),
            complexity=self.pair(value, "complexity", where) or (0, 0),
            extra_memory=None if value.get("extra_memory") is None else self.pair(value, "extra_memory", where),
            instances=self.member(value, "instances", (int, type(None)), where),
            limits=tuple(limits),
            halts=self.member(value, "halts", bool, where),
            fingerprint=self.member(value, "fingerprint", str, where),
        )

    def pair(self, value: dict, key: str, where: str) -> tuple[int, int] | None:
        found = value.get(key)
        if isinstance(found, list) and len(found) == 2 and all(type(number) is int for number in found):
            return found[0], found[1]
        self.wrong(f"{where}'{key}' is {found!r:.60}, not two whole numbers")
        return None


def _kinds(kind: type | tuple[type, ...]) -> tuple[type, ...]:
    return kind if isinstance(kind, tuple) else (kind,)


def _in_words(kind: type | tuple[type, ...]) -> str:
    words = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}
    return " or ".join(words.get(one, "null") for one in _kinds(kind))
