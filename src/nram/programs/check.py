"""What makes a program well-formed. `Program` asks when it is made; every problem is named, with its place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

from nram.programs.ir import (
    MAX_INSTANCES,
    MAX_OPERATIONS,
    MAX_REGISTERS,
    MAX_ROWS,
    MAX_SIZE,
    MAX_STATES,
    METHODS,
    MODULES,
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
from nram.tasks.base import StepLimit


def find_problems(program: Program) -> list[str]:
    """Everything that is wrong with a program, in words; empty if nothing is."""
    problems = _wrong_types(program)
    if problems:
        return problems
    problems = _header_problems(program)
    count = len(program.registers)
    if not 1 <= count <= MAX_REGISTERS:
        return [*problems, f"it has {count} registers: there must be 1 to {MAX_REGISTERS}"]
    problems += register_problems(program.registers)
    if not 1 <= len(program.states) <= MAX_STATES:
        return [*problems, f"it has {len(program.states)} states: there must be 1 to {MAX_STATES}"]
    if program.rows > MAX_ROWS:
        return [*problems, f"it has {program.rows} rows: there may be {MAX_ROWS}"]
    for number, rows in enumerate(program.states):
        before = len(problems)
        for place, row in enumerate(rows):
            problems += [f"{_place(number, place)}: {problem}" for problem in _row_problems(program, row)]
        if len(problems) == before:
            missed = _uncovered([row.when for row in rows], count)
            if missed is not None:
                problems.append(f"state {number}: no row applies when {describe(program.registers, missed)}")
    if not problems:
        problems = _stale_evidence(program)
    return problems


def register_problems(names: Sequence[str]) -> list[str]:
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
    if not evidence.limits or not all(re.fullmatch(r"[A-Za-z0-9+]{1,40}", limit) for limit in evidence.limits):
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
        problems.append(f"it goes on in state {row.next_state}, which does not exist")
    for number, operation in enumerate(row.operations):
        module = MODULES.get(operation.module)
        if module is None:
            problems.append(f"operation {number + 1} is {shown(operation.module)}, which is no module")
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
            return f"a wire from o{shown(index + 1)}, which is no output before it"
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


def _wrong_types(program: Program) -> list[str]:
    """Parts that are not of the type they must have: later checks rely on it."""
    problems: list[str] = []

    def check(value: Any, kind: type | tuple[type, ...], what: str) -> bool:
        right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        if not right:
            kinds = kind if isinstance(kind, tuple) else (kind,)
            wanted = " or ".join("None" if one is type(None) else one.__name__ for one in kinds)
            problems.append(f"{what} is {shown(value)}, not of type {wanted}")
        return right

    def check_all(values: Any, kind: type | tuple[type, ...], what: str, one: str) -> bool:
        return check(values, tuple, what) and not [value for value in values if not check(value, kind, one)]

    check_all(program.registers, str, "the registers", "the name of a register")
    check(program.name, str, "the name")
    check(program.task, (str, type(None)), "the task")
    check(program.origin, str, "the origin")
    check(program.needs_limit, bool, "needs_limit")
    if check(program.limit, (StepLimit, type(None)), "the limit") and program.limit is not None:
        check(program.limit.per_item, int, "the limit's share of n")
        check(program.limit.constant, int, "the limit's constant")
    if check(program.made, tuple, "made"):
        for pair in program.made:
            if check_all(pair, str, "a pair of 'made'", "a part of 'made'") and len(pair) != 2:
                problems.append(f"'made' has {shown(pair)}, which is no pair")
    if check_all(program.verified, Evidence, "verified", "an entry of verified"):
        for number, evidence in enumerate(program.verified):
            where = f"verified, entry {number + 1}: "
            check(evidence.method, str, where + "the method")
            check(evidence.task, str, where + "the task")
            check_all(evidence.complexity, int, where + "complexity", where + "a part of complexity")
            if evidence.extra_memory is not None:
                check_all(evidence.extra_memory, int, where + "extra_memory", where + "a part of extra_memory")
            if evidence.instances is not None:
                check(evidence.instances, int, where + "instances")
            check_all(evidence.limits, str, where + "limits", where + "a limit")
            check(evidence.halts, bool, where + "halts")
            check(evidence.fingerprint, str, where + "the fingerprint")
    if not check(program.states, tuple, "the states"):
        return problems
    for number, rows in enumerate(program.states):
        if not check(rows, tuple, f"state {number}"):
            continue
        for place, row in enumerate(rows):
            where = _place(number, place)
            if not check(row, Row, where):
                continue
            check_all(row.when, (bool, type(None)), f"{where}: when", f"{where}: a condition")
            check(row.halt, bool, f"{where}: halt")
            check(row.next_state, int, f"{where}: the next state")
            new = check_all(row.registers, get_args(Value), f"{where}: registers", f"{where}: a new value")
            values = list(row.registers) if new else []
            if check_all(row.operations, Operation, f"{where}: operations", f"{where}: an operation"):
                for operation in row.operations:
                    check(operation.module, str, f"{where}: a module")
                    what = f"{where}: the arguments of {shown(operation.module)}"
                    if check_all(operation.arguments, get_args(Value), what, f"{where}: an argument"):
                        values += operation.arguments
            for value in values:
                check(value.value if isinstance(value, Constant) else value.index, int, f"{where}: a wire's number")
    return problems
