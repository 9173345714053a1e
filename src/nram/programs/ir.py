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
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from nram.errors import UsageError
from nram.limits import StepLimit
from nram.modules import MODULE_NAMES, MODULES, Module

if TYPE_CHECKING:
    from pathlib import Path

    from nram.programs.execute import Result

CONSTANTS: dict[str, int] = {"ZERO": 0, "ONE": 1, "TWO": 2}
"""The paper's modules without arguments. The numbers themselves can stand wherever a value can: M is at least 3."""

KEYWORDS = ("state", "when", "always", "otherwise", "halt", "next")  # of the text form

MAX_REGISTERS = 16
MAX_STATES = 1024
MAX_ROWS = 1 << 16
MAX_OPERATIONS = 1024  # in one row
MAX_TOTAL_OPERATIONS = 1 << 21
MAX_SIZE = 10**9 - 1  # of a limit's parts, a complexity, a memory size: nine digits, as the text form reads them
MAX_INSTANCES = 10**12 - 1
MAX_PROBLEMS = 1000  # whoever reads a file stops after so many

Origin = Literal["trained", "repaired", "searched", "written"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
Method = Literal["exhaustive", "symbolic", "random"]
METHODS: tuple[Method, ...] = get_args(Method)


class ProgramError(UsageError):
    """A program that is none. `problems` names everything that is wrong with it."""

    def __init__(self, problems: Sequence[str], where: str = "this is not a program"):
        self.problems = tuple(map(_visible, problems))
        first = self.problems[:20]
        if len(self.problems) > len(first):
            first = (*first, f"and {len(self.problems) - len(first)} more")
        super().__init__(f"{_visible(where)}:\n" + "\n".join(f"  - {problem}" for problem in first))


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

    method: Method
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
        from nram.programs.check import find_problems

        problems = find_problems(self)
        if problems:
            raise ProgramError(problems)

    # ---- what it is

    @cached_property
    def fingerprint(self) -> str:
        """A digest of what the program does, not of what is said about it."""
        said = repr((self.registers, self.states))
        own = [module for module in self.modules if not module.built_in]
        if own:  # a name alone does not tell what they do
            from nram.extensions.module_checks import digest_of

            said += repr(sorted(map(digest_of, own)))
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
    def modules(self) -> tuple[Module, ...]:
        """The modules it uses, each once."""
        names = (operation.module for state in self.states for row in state for operation in row.operations)
        return tuple(MODULES[name] for name in dict.fromkeys(names))

    @property
    def writes(self) -> bool:
        """Whether any row can change the memory."""
        return any(module.memory == "writes" for module in self.modules)

    # ---- what one does with it

    def run(self, memory: Any, max_steps: int | None = None, memory_size: int | None = None) -> Result:
        """Run on one memory, or on a batch of them (a list of lists, or an array of two axes).

        Runs until it halts, at most `max_steps` steps, or 64 M + 1024 if none are given: a program that needs its
        limit (`needs_limit`) must be given `max_steps`, T(n), or it may undo its work. `memory_size` pads with
        zeros. The memory given is not changed. The result's memory is an array where an array was given.
        """
        from nram.programs.execute import execute

        return execute(self, memory, max_steps, memory_size)

    def __str__(self) -> str:
        from nram.programs.text import to_text

        return to_text(self)

    def _repr_svg_(self) -> str | None:
        """What a notebook shows: the circuits, where they fit into a picture, and else the text form."""
        from nram.pictures.circuits import program_svg

        try:
            return program_svg(self)
        except UsageError:
            return None

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows where there are no pictures."""
        printer.text(str(self))

    def save(self, path: str | Path) -> None:
        """Write the program to a file: JSON, or the text form if the name ends in .nram or .txt."""
        from nram.programs.files import save_program

        save_program(self, path)


def whole_row(registers: int, operations: Iterable[Operation] = (), **rest: Any) -> Row:
    """A row without conditions that leaves the registers as they are unless told otherwise."""
    fields_ = {"when": (None,) * registers, "registers": tuple(map(Register, range(registers))), **rest}
    return Row(operations=tuple(operations), **fields_)


def describe(registers: Sequence[str], when: Sequence[bool | None]) -> str:
    """Conditions in words: 'r1 = 0, r2 > 0'."""
    parts = [f"{name} {'=' if zero else '>'} 0" for name, zero in zip(registers, when, strict=True) if zero is not None]
    return ", ".join(parts)


def is_name(text: str) -> bool:
    """Whether it can name a register: a word that means nothing else in the text form, whatever modules are known."""
    word = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,39}", text) is not None
    return word and text.upper() not in MODULE_NAMES and text not in KEYWORDS and not re.fullmatch(r"o[0-9]+", text)


def is_plain(text: str) -> bool:
    """One line of visible characters without spaces around, so that it survives the text form."""
    return 0 < len(text) <= 1000 and text.isprintable() and text == text.strip()


def shown(value: Any) -> str:
    """A value that someone handed in, short enough for a message whatever it is."""
    try:
        return _SHORT.repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits: Python refuses to print it
        return f"a huge {type(value).__name__}"


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 2, 40, 60, 40
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 4


def _visible(text: str) -> str:
    """The text with everything escaped that a terminal would obey or could not print; the lines stay."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
