"""What a program is: a finite table from (state, register flags) to a circuit. No floats, no network.

At every step the machine is in one of a few states, and of each register it sees only whether it is 0. It carries
out the first row of the state whose conditions hold: the operations in order, then all register updates at once.
Then it halts or goes on in the next state. A run starts in state 0 with all registers 0.

Programs are values: frozen, comparable, hashable. A program is checked when it is made, so code that executes,
draws or compiles one does not check it again.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args, overload

from nram.display import Drawing, Fixed, counted, shortened
from nram.errors import NramError, UsageError
from nram.extensions import digest_of
from nram.limits import StepLimit
from nram.messages import visible
from nram.modules import MODULE_NAMES, MODULES, Builder, Module
from nram.tasks.base import Instance, Task
from nram.tasks.layout import Layout

if TYPE_CHECKING:
    import numpy as np

    from nram.pictures.shapes import Theme
    from nram.programs.execute import Result

CONSTANTS: dict[str, int] = {"ZERO": 0, "ONE": 1, "TWO": 2}
"""The paper's modules without arguments. Programs also use 0, 1 and 2 directly as values, since M is at least 3."""

KEYWORDS = ("state", "when", "always", "otherwise", "halt", "next")  # of the text form

MAX_REGISTERS = 16
MAX_STATES = 1024
MAX_ROWS = 1 << 16
MAX_OPERATIONS = 1024  # in one row
MAX_TOTAL_OPERATIONS = 1 << 21
MAX_SIZE = 10**9 - 1  # for step limits, complexities and memory sizes: the text form reads nine digits
MAX_INSTANCES = 10**12 - 1
MAX_PROBLEMS = 1000  # a reader of a program file gives up after this many

Origin = Literal["trained", "repaired", "searched", "written"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
Method = Literal["inductive", "exhaustive", "symbolic", "random"]
METHODS: tuple[Method, ...] = get_args(Method)


class ProgramError(UsageError):
    """An invalid program. `problems` lists everything that is wrong with it."""

    def __init__(self, problems: Sequence[str], where: str = "this is not a program"):
        self.problems = tuple(map(visible, problems))
        first = self.problems[:20]
        if len(self.problems) > len(first):
            first = (*first, f"and {len(self.problems) - len(first)} more")
        super().__init__(f"{where}:\n" + "\n".join(f"  - {problem}" for problem in first))


T = TypeVar("T")
Lookup = Callable[[int], T]
"""What an index, or a constant, stands for in some target."""


@dataclass(frozen=True, slots=True)
class Register:
    """The value of a register at the start of the step."""

    index: int

    def resolve(self, register: Lookup[T], output: Lookup[T], constant: Lookup[T]) -> T:
        """What the value stands for; every kind of value is looked up by its own function."""
        return register(self.index)


@dataclass(frozen=True, slots=True)
class Output:
    """The output of an earlier operation of the same row."""

    index: int

    def resolve(self, register: Lookup[T], output: Lookup[T], constant: Lookup[T]) -> T:
        return output(self.index)


@dataclass(frozen=True, slots=True)
class Constant:
    """0, 1 or 2."""

    value: int

    def resolve(self, register: Lookup[T], output: Lookup[T], constant: Lookup[T]) -> T:
        return constant(self.value)


Value = Register | Output | Constant

Flags = tuple[bool, ...]
"""For each register, whether it is 0."""
Conditions = tuple[bool | None, ...]
"""For each register: True if it is or must be 0, False if not, None if that is unknown or does not matter."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One module applied to arguments. WRITE changes the memory and outputs 0."""

    module: str
    arguments: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: when it applies and what it does."""

    when: Conditions
    operations: tuple[Operation, ...]
    registers: tuple[Value, ...]
    """The new value of each register; `Register(i)` at index i leaves it as it is."""
    halt: bool = False
    next_state: int = 0

    def applies(self, zero: Sequence[bool]) -> bool:
        """Whether the conditions hold, given which registers are 0."""
        return all(wanted is None or wanted == found for wanted, found in zip(self.when, zero, strict=True))


@dataclass(frozen=True, slots=True)
class Evidence:
    """One verification result: on these sizes the program was right on every instance that was checked.

    inductive: a proof for every n, by an invariant; exhaustive: every legal input; symbolic: a proof for all values at
    once; random: sampled inputs.
    """

    method: Method
    task: str
    complexity: tuple[int, int | None]
    """The smallest and the largest n; None: every n from the smallest up, which only an inductive proof covers."""
    extra_memory: tuple[int, int] | None
    """M ranged from the least that n needs plus the first number to the least plus the second. None: every M."""
    instances: int | None
    """How many inputs were run; None for a proof."""
    limits: tuple[str, ...]
    """The step limits under which it was right: T, 2T, 20n+200, or 'every' for any from T up."""
    halts: bool
    """Every run halted by itself."""
    fingerprint: str
    """The fingerprint of the program that was checked."""


@dataclass(frozen=True, repr=False)
class Program(Fixed):
    """A program, with what is known about it."""

    registers: tuple[str, ...]
    states: tuple[tuple[Row, ...], ...]
    """The rows of each state. The first row that applies is carried out; for all flags at least one applies."""
    name: str = "program"
    task: str | None = None
    origin: Origin = "written"
    limit: StepLimit | None = None
    """The step limit T(n) under which it was learned, or for which it was written."""
    needs_limit: bool = False
    """It is right only when stopped at T(n), so its user must give the limit."""
    verified: tuple[Evidence, ...] = ()
    made: tuple[tuple[str, str], ...] = ()
    """How it was made: pairs such as ('command', 'nram train copy --seed 1')."""
    layout: Layout | None = None
    """The names of its inputs and results, and where they lie in memory."""

    def __post_init__(self) -> None:
        from nram.programs.check import find_problems

        problems = find_problems(self)
        if problems:
            raise ProgramError(problems)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of what the program does, without its name, evidence and other descriptions."""
        content = repr((self.registers, self.states))
        user_defined = [module for module in self.modules if not module.built_in]
        if user_defined:  # their names alone do not say what they do
            content += repr(sorted(map(digest_of, user_defined)))
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def rows(self) -> int:
        return sum(len(state) for state in self.states)

    @property
    def operations(self) -> int:
        return sum(len(row.operations) for state in self.states for row in state)

    def row_for(self, state: int, zero: Sequence[bool]) -> int:
        """The index of the row that applies."""
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

    @property
    def proven_for_every_length(self) -> bool:
        """Whether its card says so, for its own task: right for every n, every memory size and every input."""
        return any(one.method == "inductive" and one.task == self.task for one in self.verified)

    @property
    def right_under_every_limit(self) -> bool:
        """Whether its card says so. Then it does not matter when it is stopped after T(n), or that it never halts."""
        return not self.needs_limit and any(evidence.limits != ("T",) for evidence in self.verified)

    @property
    def halts(self) -> bool | None:
        """Whether its card says that every run halts by itself. None: no runs were verified."""
        # A loop over the whole memory halts, but a proof for every M at once cannot say so: its limits depend on n.
        runs = [evidence.halts for evidence in self.verified if evidence.extra_memory is not None]
        return all(runs) if runs else None

    @overload
    def run(
        self,
        memory: np.ndarray,
        max_steps: int | None = None,
        memory_size: int | None = None,
        largest_value: int | None = None,
    ) -> Result[np.ndarray, Any, Any, Any]: ...

    @overload
    def run(
        self,
        memory: Instance | Sequence[int],
        max_steps: int | None = None,
        memory_size: int | None = None,
        largest_value: int | None = None,
    ) -> Result[list[int], list[int], int, bool]: ...

    @overload
    def run(
        self,
        memory: Sequence[Sequence[int]],
        max_steps: int | None = None,
        memory_size: int | None = None,
        largest_value: int | None = None,
    ) -> Result[list[list[int]], list[list[int]], list[int], list[bool]]: ...

    def run(
        self,
        memory: Any,
        max_steps: int | None = None,
        memory_size: int | None = None,
        largest_value: int | None = None,
    ) -> Result[Any, Any, Any, Any]:
        """Run on one memory, on a batch of them (a list of lists, or an array of two axes), or on an `Instance`.

        The program runs until it halts, at most `max_steps` steps. The default is T(n) on an instance of a task, and
        64 M + 1024 on a memory. A program that idles is stopped there with `halted` false; its result is right if
        `right_under_every_limit`. If the program needs its limit (`needs_limit`), give T(n) as `max_steps`; otherwise
        it may undo its work. `memory_size` pads the memory with zeros. The given memory is not changed. If it is an
        array, the result's memory is one too.

        `largest_value` is for large values in one small memory: the memory is padded to `largest_value + 1` cells, the
        most steps are those of the cells given, and only these cells come back.
        """
        from nram.programs.execute import execute

        return execute(self, memory, max_steps, memory_size, largest_value=largest_value)

    def call(self, /, **inputs: int | Sequence[int]) -> Any:
        """Run on inputs by name, as `program.call(values=[3, 1, 2], x=1)`, and return the result.

        Several results come as a dictionary. Only a program with a layout has names: one that was learned from a file
        whose columns have names.
        """
        if self.layout is None:
            raise UsageError(f"the program {self.name} has no names for its inputs: use run(memory)")
        memory = self.layout.memory(inputs)
        ending = self.run(memory)
        if not (ending.halted or self.right_under_every_limit):
            raise NramError(f"the program {self.name} did not halt within {ending.steps} steps")
        results = self.layout.results(memory, ending.memory)
        return results if len(results) > 1 else next(iter(results.values()))

    def simplify(self, task: Task | str | os.PathLike[str] | None = None, *, keep_registers: bool = False) -> Program:
        """A shorter program with the same meaning on every memory, as `nram simplify` makes it.

        With `task` (an object, a name or a file) it may also drop the rows that no input of this task leads to. The
        result is then the same for these inputs alone. `keep_registers` keeps the final values of the registers too.
        """
        from nram.programs.simplify.specialise import simplified

        return simplified(self, task, keep_registers)

    def draw(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        row: tuple[int, int] | None = None,
        columns: int | None = None,
        theme: Theme = "auto",
    ) -> Drawing:
        """Draw the circuits, or those of one row (its state and its number, both from 0), as `nram draw` does.

        The drawing is shown in a notebook. With `path` it is also written to a file, .svg, .png, .pdf or .dot. A long
        program is drawn in several columns. With the theme 'auto' an SVG follows the light or dark page around it.
        """
        from nram.pictures.circuits import draw_program, drawn_program

        if path is not None:
            draw_program(self, os.fspath(path), row=row, columns=columns, theme=theme)
        svg = drawn_program(self, Path("program.svg"), row, columns, theme).decode()
        return Drawing(self.name, svg)

    def __str__(self) -> str:
        from nram.programs.text import to_text

        return to_text(self)

    def _repr_svg_(self) -> str | None:
        """The picture of the circuits for notebooks, or None if they are too large; then the text form is shown."""
        from nram.pictures.circuits import program_svg

        try:
            return program_svg(self)
        except UsageError:
            return None

    def _brief(self) -> str:
        sizes = {"register": len(self.registers), "row": self.rows, "operation": self.operations}
        words = ", ".join(counted(number, what) for what, number in sizes.items())
        words += names_in_words(self.registers)
        return f"{shortened(self.name, 40)}: {self.origin}, {words}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles hold the fields and no compiled code. User-defined modules are loaded first, by file or by name."""
        user_defined = [module for module in self.modules if not module.built_in]
        return _restored, (user_defined, {field.name: getattr(self, field.name) for field in fields(self)})

    def save(self, path: str | Path) -> None:
        """Write the program to a file: JSON, or the text form if the name ends in .nram or .txt."""
        from nram.programs.files import save_program

        save_program(self, path)


def largest_n(program: Program, method: Method) -> int | None:
    """The largest n of the program's evidence by a method; None if there is none, or no largest."""
    largest = [one.complexity[1] for one in program.verified if one.method == method]
    return max((n for n in largest if n is not None), default=None)


def _restored(modules: Sequence[Module], content: dict[str, Any]) -> Program:
    """The program of a pickle. Its modules are arguments so that they are known before it is checked."""
    return Program(**content)


class Performed(NamedTuple):
    """The values in a row that was carried out."""

    arguments: list[list[Any]]
    """For each operation."""
    outputs: list[Any]
    registers: list[Any]
    """The new values."""


def carry_out(
    row: Row,
    register: Callable[[int], Any],
    apply: Callable[[Module, list[Any]], Any],
    constant: Callable[[int], Any],
) -> Performed:
    """Carry out a row on integers, LLVM values or terms: `apply` gives the output of a module."""
    arguments: list[list[Any]] = []
    outputs: list[Any] = []
    output = outputs.__getitem__
    for operation in row.operations:
        given = [argument.resolve(register, output, constant) for argument in operation.arguments]
        arguments.append(given)
        outputs.append(apply(MODULES[operation.module], given))
    new = [value.resolve(register, output, constant) for value in row.registers]
    return Performed(arguments, outputs, new)


def emitted(b: Builder, module: Module, arguments: Sequence[Any]) -> Any:
    """The output of a module in the terms of a builder."""
    output = module.emit(b, *arguments)
    return b.number(0) if module.memory == "writes" else output


def names_in_words(registers: Sequence[str]) -> str:
    """The names of registers in brackets where they are not r1, r2, ... because some were left out; otherwise ''."""
    usual = [f"r{number + 1}" for number in range(len(registers))]
    return "" if list(registers) == usual else f" (registers {', '.join(registers)})"


def describe(registers: Sequence[str], when: Sequence[bool | None]) -> str:
    """Conditions in words: 'r1 = 0, r2 > 0'."""
    parts = [f"{name} {'=' if zero else '>'} 0" for name, zero in zip(registers, when, strict=True) if zero is not None]
    return ", ".join(parts)


def condition_in_words(registers: Sequence[str], rows: Sequence[Row], index: int) -> str:
    """When the row with this index applies: 'when r1 = 0', 'else when r2 > 0', 'else' or 'always'.

    The rows are those of one state. They are tried in order, so every row after the first begins with 'else'.
    """
    conditions = describe(registers, rows[index].when)
    words = ["else"] * (index > 0) + [f"when {conditions}"] * bool(conditions)
    return " ".join(words) or "always"


def is_name(text: str) -> bool:
    """Whether a text can name a register: a word without another meaning in the text form."""
    word = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,39}", text) is not None
    return word and text.upper() not in MODULE_NAMES and text not in KEYWORDS and not re.fullmatch(r"o[0-9]+", text)


def is_plain(text: str) -> bool:
    """Whether a text is one line of visible characters without spaces around it, so that the text form keeps it."""
    return 0 < len(text) <= 1000 and text.isprintable() and text == text.strip()
