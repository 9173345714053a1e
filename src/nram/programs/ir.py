"""What a program is: a finite table from (state, register flags) to a circuit. No floats, no network.

At every step the machine is in one of a few states and sees of each register only whether it is 0. The first row
of the state whose conditions hold is carried out: its operations one after another, then all register updates at
once, then it halts or goes on in the next state. Registers start at 0, in state 0.

Programs are values: frozen, comparable, hashable, and checked when they are made, so that whoever executes,
draws or compiles one need not check it again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from nram.errors import UsageError
from nram.modules import PAPER_MODULES, Module
from nram.tasks.base import StepLimit

if TYPE_CHECKING:
    from pathlib import Path

    from nram.programs.execute import Result

MODULES: dict[str, Module] = {module.name: module for module in PAPER_MODULES}
CONSTANTS: dict[str, int] = {"ZERO": 0, "ONE": 1, "TWO": 2}
"""The modules without arguments. The numbers themselves can stand wherever a value can: M is at least 3."""

KEYWORDS = ("state", "when", "always", "otherwise", "halt", "next")  # of the text form

MAX_REGISTERS = 16
MAX_STATES = 1024
MAX_ROWS = 1 << 16
MAX_OPERATIONS = 1024  # in one row

Origin = Literal["trained", "repaired", "searched", "written"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)


class ProgramError(UsageError):
    """A program that is none. `problems` names everything that is wrong with it."""

    def __init__(self, problems: Sequence[str], where: str = "this is not a program"):
        self.problems = tuple(problems)
        shown = self.problems[:20]
        if len(self.problems) > len(shown):
            shown = (*shown, f"and {len(self.problems) - len(shown)} more")
        super().__init__(f"{where}:\n" + "\n".join(f"  - {problem}" for problem in shown))


@dataclass(frozen=True, slots=True)
class Register:
    """The value that a register holds at the start of the step."""

    index: int


@dataclass(frozen=True, slots=True)
class Output:
    """What an earlier operation of the same row gave."""

    index: int


@dataclass(frozen=True, slots=True)
class Constant:
    """0, 1 or 2."""

    value: int


Value = Register | Output | Constant


@dataclass(frozen=True, slots=True)
class Operation:
    """One module at work. WRITE changes the memory and gives 0."""

    module: str
    arguments: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: when it applies and what is done."""

    when: tuple[bool | None, ...]
    """For each register: True if it must be 0, False if it must not be, None if it does not matter."""
    operations: tuple[Operation, ...]
    registers: tuple[Value, ...]
    """The new value of each register; `Register(i)` at place i leaves it as it is."""
    halt: bool = False
    next_state: int = 0

    def applies(self, zero: Sequence[bool]) -> bool:
        """Whether the conditions hold, given which registers are 0."""
        return all(wanted is None or wanted == found for wanted, found in zip(self.when, zero, strict=True))


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was shown of a program: on these sizes every instance looked at came out right.

    exhaustive: every legal input; symbolic: a proof for all values at once; random: so many drawn at random.
    """

    method: Literal["exhaustive", "symbolic", "random"]
    task: str
    complexity: tuple[int, int]
    """The smallest and the largest n."""
    extra_memory: tuple[int, int] | None
    """M ran from the least that n needs plus the first to that plus the second. None: every M from the least up."""
    instances: int | None
    """How many inputs were run; None for a proof."""
    limits: tuple[str, ...]
    """The step limits under which it was right: T, 2T, 20n+200, or 'every' for any from T up."""
    halts: bool
    """Every run ended by itself."""
    fingerprint: str
    """Of the program it was shown of."""


@dataclass(frozen=True)
class Program:
    """A whole program with what is known of it."""

    registers: tuple[str, ...]
    states: tuple[tuple[Row, ...], ...]
    """The rows of each state; the first that applies is carried out, and for all flags one does."""
    name: str = "program"
    task: str | None = None
    origin: Origin = "written"
    limit: StepLimit | None = None
    """T(n), the limit under which it was learned or is right."""
    needs_limit: bool = False
    """It is right only when stopped at T(n): whoever runs it must say when."""
    verified: tuple[Evidence, ...] = ()
    made: tuple[tuple[str, str], ...] = ()
    """How it came about: pairs such as ('command', 'nram train copy --seed 1')."""

    def __post_init__(self) -> None:
        problems = find_problems(self)
        if problems:
            raise ProgramError(problems)

    # ---- what it is

    @cached_property
    def fingerprint(self) -> str:
        """A digest of what the program does, not of what is said about it."""
        said = repr((self.registers, self.states))
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    @property
    def rows(self) -> int:
        return sum(len(state) for state in self.states)

    @property
    def operations(self) -> int:
        return sum(len(row.operations) for state in self.states for row in state)

    def row_for(self, state: int, zero: Sequence[bool]) -> int:
        """The number of the row that applies."""
        return next(i for i, row in enumerate(self.states[state]) if row.applies(zero))

    @cached_property
    def writes(self) -> bool:
        """Whether any row can change the memory."""
        return any(
            MODULES[operation.module].memory == "writes"
            for state in self.states
            for row in state
            for operation in row.operations
        )

    # ---- what one does with it

    def run(self, memory: Any, max_steps: int | None = None, memory_size: int | None = None) -> Result:
        """Run on one memory, or on a batch of them (a list of lists, or an array of two axes).

        Runs until it halts, at most `max_steps` steps, or 64 M + 1024 if none are given. `memory_size` pads with
        zeros. The memory given is not changed. The result's memory is an array where an array was given.
        """
        from nram.programs.execute import execute

        return execute(self, memory, max_steps, memory_size)

    def __str__(self) -> str:
        from nram.programs.text import to_text

        return to_text(self)

    def save(self, path: str | Path) -> None:
        """Write the program to a file: JSON, or the text form if the name ends in .nram or .txt."""
        from nram.programs.files import save_program

        save_program(self, path)


def whole_row(registers: int, operations: Iterable[Operation] = (), **rest: Any) -> Row:
    """A row without conditions that leaves the registers as they are unless told otherwise."""
    fields_ = {"when": (None,) * registers, "registers": tuple(map(Register, range(registers))), **rest}
    return Row(operations=tuple(operations), **fields_)


# ---- checking


def find_problems(program: Program) -> list[str]:
    """Everything that is wrong with a program, in words; empty if nothing is."""
    problems = _wrong_types(program)
    if problems:
        return problems
    count = len(program.registers)
    if not 1 <= count <= MAX_REGISTERS:
        return [f"it has {count} registers: there must be 1 to {MAX_REGISTERS}"]
    for name in program.registers:
        if not is_name(name):
            problems.append(
                f"'{name}' is no name for a register: use a word of letters, digits and _ "
                "that is no module, no keyword and not o1, o2, ..."
            )
    for name in sorted({name for name in program.registers if program.registers.count(name) > 1}):
        problems.append(f"two registers have the name '{name}'")
    if not is_plain(program.name):
        problems.append(f"{program.name!r} is no name for a program: use visible characters in one line")
    for key, value in program.made:
        if not is_plain(key) or ":" in key or not is_plain(value):
            problems.append(f"'made' has the pair {key!r}, {value!r}: both must be visible characters in one line")
    if program.origin not in ORIGINS:
        problems.append(f"origin '{program.origin}' is unknown: it is one of {', '.join(ORIGINS)}")
    if program.limit is not None and (program.limit.per_item < 0 or program.limit.constant < 0):
        problems.append("the limit T(n) must not have a negative part")
    if program.needs_limit and program.limit is None:
        problems.append("it is said to need its limit T(n), and none is given: add the limit")
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


def describe(registers: Sequence[str], when: Sequence[bool | None]) -> str:
    """Conditions in words: 'r1 = 0, r2 > 0'."""
    parts = [f"{name} {'=' if zero else '>'} 0" for name, zero in zip(registers, when, strict=True) if zero is not None]
    return ", ".join(parts)


def is_name(text: str) -> bool:
    """Whether it can name a register: a word that means nothing else in the text form."""
    word = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,39}", text) is not None
    return word and text.upper() not in MODULES and text not in KEYWORDS and not re.fullmatch(r"o[0-9]+", text)


def is_plain(text: str) -> bool:
    """One line of visible characters without spaces around, so that it survives the text form."""
    return 0 < len(text) <= 1000 and text.isprintable() and text == text.strip()


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
            problems.append(f"operation {number + 1} is '{operation.module}', which is no module")
        elif len(operation.arguments) != module.arity:
            problems.append(
                f"operation {number + 1}: {operation.module} takes {module.arity} arguments, "
                f"not {len(operation.arguments)}"
            )
        for argument in operation.arguments:
            problem = _value_problem(argument, count, number)
            if problem:
                problems.append(f"operation {number + 1}, {operation.module}: {problem}")
    for place, value in enumerate(row.registers[:count]):
        problem = _value_problem(value, count, len(row.operations))
        if problem:
            problems.append(f"new value of {program.registers[place]}: {problem}")
    return problems


def _value_problem(value: Value, registers: int, outputs: int) -> str | None:
    match value:
        case Register(index) if not 0 <= index < registers:
            return f"a wire from register {index + 1}, and there are {registers}"
        case Output(index) if not 0 <= index < outputs:
            return f"a wire from the output of operation {index + 1}, which is not before it"
        case Constant(number) if number not in (0, 1, 2):
            return f"the constant {number}: only 0, 1 and 2 exist, larger ones are made by INC and ADD"
    return None


def _uncovered(patterns: list[tuple[bool | None, ...]], count: int) -> tuple[bool, ...] | None:
    """Flags to which no pattern applies, or None if there are none."""

    def search(left: list[tuple[bool | None, ...]], prefix: tuple[bool, ...]) -> tuple[bool, ...] | None:
        place = len(prefix)
        if not left:
            return prefix + (True,) * (count - place)
        if all(condition is None for condition in left[0][place:]):
            return None
        for flag in (True, False):
            found = search([p for p in left if p[place] is None or p[place] == flag], (*prefix, flag))
            if found is not None:
                return found
        return None

    return search(patterns, ())


def _stale_evidence(program: Program) -> list[str]:
    stale = {evidence.fingerprint for evidence in program.verified} - {program.fingerprint}
    if not stale:
        return []
    return [
        f"what is said to be verified was shown of another program ({', '.join(sorted(stale))}, this is "
        f"{program.fingerprint}): remove those lines, then 'nram verify' shows it of this one"
    ]


def _wrong_types(program: Program) -> list[str]:
    """Parts that are not of the type they must have: later checks rely on it."""
    problems: list[str] = []

    def check(value: Any, kind: type | tuple[type, ...], what: str) -> bool:
        right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        if not right:
            problems.append(f"{what} is {value!r:.60}")
        return right

    def check_all(values: Any, kind: type | tuple[type, ...], what: str) -> bool:
        return check(values, tuple, what) and not [value for value in values if not check(value, kind, what)]

    check_all(program.registers, str, "the list of registers")
    check(program.name, str, "the name")
    check(program.task, (str, type(None)), "the task")
    check(program.origin, str, "the origin")
    check(program.needs_limit, bool, "needs_limit")
    if check(program.limit, (StepLimit, type(None)), "the limit") and program.limit is not None:
        check(program.limit.per_item, int, "the limit's share of n")
        check(program.limit.constant, int, "the limit's constant")
    check_all(program.verified, Evidence, "the list of what was verified")
    if check(program.made, tuple, "made"):
        for pair in program.made:
            if check_all(pair, str, "a pair of 'made'") and len(pair) != 2:
                problems.append(f"'made' has {pair!r}, which is no pair")
    if not check_all(program.states, tuple, "the list of states"):
        return problems
    for number, rows in enumerate(program.states):
        for place, row in enumerate(rows):
            where = _place(number, place)
            if not check(row, Row, where):
                continue
            check_all(row.when, (bool, type(None)), f"{where}: the conditions")
            check(row.halt, bool, f"{where}: halt")
            check(row.next_state, int, f"{where}: the next state")
            values = list(row.registers) if check_all(row.registers, get_args(Value), f"{where}: a new value") else []
            if check_all(row.operations, Operation, f"{where}: an operation"):
                for operation in row.operations:
                    check(operation.module, str, f"{where}: a module")
                    if check_all(operation.arguments, get_args(Value), f"{where}: an argument"):
                        values += operation.arguments
            for value in values:
                check(getattr(value, fields(value)[0].name), int, f"{where}: the number of a wire")
    return problems
