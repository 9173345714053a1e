"""What makes a program well-formed. `Program` asks when it is made; every problem is named, with its place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

from nram.extensions.modules import find_module
from nram.limits import StepLimit
from nram.programs.ir import (
    MAX_INSTANCES,
    MAX_OPERATIONS,
    MAX_REGISTERS,
    MAX_ROWS,
    MAX_SIZE,
    MAX_STATES,
    MAX_TOTAL_OPERATIONS,
    METHODS,
    ORIGINS,
    Constant,
    Evidence,
    Operation,
    Output,
    Program,
    Register,
    Row,
    Value,
    describe,
    is_name,
    is_plain,
    shown,
)

VALUES = get_args(Value)
MAX_ENTRIES = 1000  # of 'made' and of 'verified'
MAX_LIMITS = 20
MAKE_KNOWN = "if it is one of one's own, name its file (--module path/to/module.py) or install its package"


def find_problems(program: Program) -> list[str]:
    """Everything that is wrong with a program, in words; empty if nothing is."""
    problems = _wrong_types(program)
    if problems:
        return problems
    problems = _header_problems(program)
    count = len(program.registers)
    if not 1 <= count <= MAX_REGISTERS:
        return [*problems, f"it has {count} registers: there must be 1 to {MAX_REGISTERS}"]
    problems += _register_problems(program.registers)
    if not 1 <= len(program.states) <= MAX_STATES:
        return [*problems, f"it has {len(program.states)} states: there must be 1 to {MAX_STATES}"]
    if program.rows > MAX_ROWS:
        return [*problems, f"it has {program.rows} rows: there may be {MAX_ROWS}"]
    if program.operations > MAX_TOTAL_OPERATIONS:
        return [*problems, f"it has {program.operations} operations: there may be {MAX_TOTAL_OPERATIONS}"]
    for number, rows in enumerate(program.states):
        for place, row in enumerate(rows):
            problems += [f"{_place(number, place)}: {problem}" for problem in _row_problems(program, row)]
        if all(len(row.when) == count for row in rows):
            missed = _uncovered([row.when for row in rows], count)
            if missed is not None:
                problems.append(f"state {number}: no row applies when {describe(program.registers, missed)}")
    if not problems and program.verified:
        problems = _stale_evidence(program)
    return problems


def _register_problems(names: Sequence[str]) -> list[str]:
    """What is wrong with the names of registers."""
    problems = [
        f"{shown(name)} is no name for a register: use a word of letters, digits and _ "
        "that is no module, no keyword and not o1, o2, ..."
        for name in names
        if not is_name(name)
    ]
    doubled = sorted({name for name in names if names.count(name) > 1})
    return problems + [f"two registers have the name {shown(name)}" for name in doubled]


def _header_problems(program: Program) -> list[str]:
    problems = []
    if not is_plain(program.name):
        problems.append(f"{shown(program.name)} is no name for a program: use visible characters in one line")
    if program.task is not None and not is_plain(program.task):
        problems.append(f"{shown(program.task)} is no name for a task: use visible characters in one line")
    for what, entries in (("made", program.made), ("verified", program.verified)):
        if len(entries) > MAX_ENTRIES:
            return [*problems, f"'{what}' has {len(entries)} entries: there may be {MAX_ENTRIES}"]
    for key, value in program.made:
        if not is_plain(key) or ":" in key or not is_plain(value):
            problems.append(
                f"'made' has the pair {shown(key)}, {shown(value)}: both must be visible characters in one line, "
                "the first without ':'"
            )
    doubled = [key for key, times in Counter(key for key, _ in program.made).items() if times > 1]
    problems += [f"'made' has {shown(key)} twice: the second needs another name" for key in doubled]
    if program.origin not in ORIGINS:
        problems.append(f"origin {shown(program.origin)} is unknown: it is one of {', '.join(ORIGINS)}")
    if program.limit is not None and not all(
        0 <= part <= MAX_SIZE for part in (program.limit.per_item, program.limit.constant)
    ):
        problems.append(f"the limit T(n) has a part that does not lie in 0..{MAX_SIZE}")
    if program.needs_limit and program.limit is None:
        problems.append("it is said to need its limit T(n), and none is given: add the limit")
    for number, evidence in enumerate(program.verified):
        problems += [f"verified, entry {number + 1}: {problem}" for problem in _evidence_problems(evidence)]
    return problems


def _evidence_problems(evidence: Evidence) -> list[str]:
    problems = []
    if evidence.method not in METHODS:
        problems.append(f"the method {shown(evidence.method)} is none of {', '.join(METHODS)}")
    if not is_plain(evidence.task) or " " in evidence.task:
        problems.append(f"{shown(evidence.task)} is no name of a task: use one word")
    for what, pair in (("complexity", evidence.complexity), ("extra_memory", evidence.extra_memory)):
        if pair is not None and not (len(pair) == 2 and 0 <= pair[0] <= pair[1] <= MAX_SIZE):
            problems.append(f"{what} is {shown(pair)}, not the smallest and the largest")
    if evidence.instances is not None and not 0 <= evidence.instances <= MAX_INSTANCES:
        problems.append(f"instances is {shown(evidence.instances)}, not a number of inputs")
    known = [limit for limit in evidence.limits if re.fullmatch(r"[A-Za-z0-9+]{1,40}", limit)]
    if not 1 <= len(known) == len(evidence.limits) <= MAX_LIMITS:
        problems.append(f"limits is {shown(evidence.limits)}: name them like T, 2T, 20n+200 or every")
    return problems


def _place(state: int, row: int) -> str:
    return f"state {state}, row {row + 1}"


def _row_problems(program: Program, row: Row) -> list[str]:
    count = len(program.registers)
    problems = []
    if len(row.when) != count:
        problems.append(f"it has {len(row.when)} conditions for {count} registers")
    if len(row.registers) != count:
        problems.append(f"it gives {len(row.registers)} new values for {count} registers")
    if len(row.operations) > MAX_OPERATIONS:
        problems.append(f"it has {len(row.operations)} operations: there may be {MAX_OPERATIONS}")
    if not 0 <= row.next_state < len(program.states):
        problems.append(f"it goes on in state {shown(row.next_state)}, which does not exist")
    for number, operation in enumerate(row.operations):
        module = find_module(operation.module)
        if module is None:
            problems.append(f"operation {number + 1} is {shown(operation.module)}, which is no module: {MAKE_KNOWN}")
        elif len(operation.arguments) != module.arity:
            problems.append(
                f"operation {number + 1}: {operation.module} takes {module.arity} arguments, "
                f"not {len(operation.arguments)}"
            )
        for argument in operation.arguments:
            problem = _value_problem(argument, count, number)
            if problem:
                problems.append(f"operation {number + 1}: {problem}")
    for place, value in enumerate(row.registers[:count]):
        problem = _value_problem(value, count, len(row.operations))
        if problem:
            problems.append(f"new value of {program.registers[place]}: {problem}")
    return problems


def _value_problem(value: Value, registers: int, outputs: int) -> str | None:
    match value:
        case Register(index) if not 0 <= index < registers:
            return f"a wire from register {shown(index + 1)}, and there are {registers}"
        case Output(index) if not 0 <= index < outputs:
            return f"a wire from output {shown(index + 1)}, and no operation before has that number"
        case Constant(number) if number not in (0, 1, 2):
            return f"the constant {shown(number)}: only 0, 1 and 2 exist, larger ones are made by INC and ADD"
    return None


def _uncovered(patterns: list[tuple[bool | None, ...]], count: int) -> tuple[bool, ...] | None:
    """Flags to which no pattern applies, or None if there are none.

    A set of flags is an integer with a bit for each of the 2^count cases (bit i of a case: register i is not 0), so
    that the work grows with the number of patterns alone, however a hostile file arranges them.
    """
    covered, every = 0, (1 << (1 << count)) - 1
    for pattern in patterns:
        matching = 1
        for place, zero in enumerate(pattern):
            if zero is None:
                matching |= matching << (1 << place)
            elif not zero:
                matching <<= 1 << place
        covered |= matching
        if covered == every:
            return None
    missed = (~covered & (covered + 1)).bit_length() - 1  # the lowest case that is not covered
    return tuple(not missed >> place & 1 for place in range(count))


def _stale_evidence(program: Program) -> list[str]:
    stale = {evidence.fingerprint for evidence in program.verified} - {program.fingerprint}
    if not stale:
        return []
    return [
        f"what is said to be verified was shown of another program ({shown(', '.join(sorted(stale)))}, this is "
        f"{program.fingerprint}): remove those lines, then 'nram verify' shows it of this one"
    ]


class _Types:
    """Collects parts that are not of the type they must have."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def check(self, value: Any, kind: type | tuple[type, ...], what: str, where: str = "") -> bool:
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return True
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join("None" if one is type(None) else one.__name__ for one in kinds)
        self.problems.append(f"{where}{what} is {shown(value)}, not of type {wanted}")
        return False

    def check_all(self, values: Any, kind: type | tuple[type, ...], what: str, one: str, where: str = "") -> bool:
        """A tuple of values of one kind."""
        if not self.check(values, tuple, what, where):
            return False
        return not [value for value in values if not self.check(value, kind, one, where)]


def _wrong_types(program: Program) -> list[str]:
    """Parts that are not of the type they must have: later checks rely on it."""
    types = _Types()
    types.check_all(program.registers, str, "registers", "the name of a register")
    types.check(program.name, str, "the name")
    types.check(program.task, (str, type(None)), "the task")
    types.check(program.origin, str, "the origin")
    types.check(program.needs_limit, bool, "needs_limit")
    if types.check(program.limit, (StepLimit, type(None)), "the limit") and program.limit is not None:
        types.check(program.limit.per_item, int, "the limit's share of n")
        types.check(program.limit.constant, int, "the limit's constant")
    if types.check(program.made, tuple, "made"):
        for pair in program.made:
            if types.check_all(pair, str, "a pair of 'made'", "a part of 'made'") and len(pair) != 2:
                types.problems.append(f"'made' has {shown(pair)}, which is no pair")
    if types.check_all(program.verified, Evidence, "verified", "an entry of verified"):
        for number, evidence in enumerate(program.verified):
            _check_evidence(types, evidence, f"verified, entry {number + 1}: ")
    if types.check(program.states, tuple, "states"):
        for number, rows in enumerate(program.states):
            if types.check(rows, tuple, f"state {number}"):
                for place, row in enumerate(rows):
                    if types.check(row, Row, _place(number, place)):
                        _check_row(types, row, f"{_place(number, place)}: ")
    return types.problems


def _check_evidence(types: _Types, evidence: Evidence, where: str) -> None:
    types.check(evidence.method, str, "the method", where)
    types.check(evidence.task, str, "the task", where)
    types.check_all(evidence.complexity, int, "complexity", "a part of complexity", where)
    if evidence.extra_memory is not None:
        types.check_all(evidence.extra_memory, int, "extra_memory", "a part of extra_memory", where)
    if evidence.instances is not None:
        types.check(evidence.instances, int, "instances", where)
    types.check_all(evidence.limits, str, "limits", "a limit", where)
    types.check(evidence.halts, bool, "halts", where)
    types.check(evidence.fingerprint, str, "the fingerprint", where)


def _check_row(types: _Types, row: Row, where: str) -> None:
    types.check_all(row.when, (bool, type(None)), "when", "a condition", where)
    types.check(row.halt, bool, "halt", where)
    types.check(row.next_state, int, "the next state", where)
    values: list[Value] = []
    if types.check_all(row.registers, VALUES, "registers", "a new value", where):
        values += row.registers
    if types.check_all(row.operations, Operation, "operations", "an operation", where):
        for operation in row.operations:
            types.check(operation.module, str, "a module", where)
            if types.check_all(operation.arguments, VALUES, "the arguments", "an argument", where):
                values += operation.arguments
    for value in values:
        types.check(value.value if isinstance(value, Constant) else value.index, int, "a wire's number", where)
