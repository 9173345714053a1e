"""Programs as readable Python functions that need nothing but Python.

The function follows the table of the simplified program: a `while` loop of steps, and a branch for every row. In a row,
operations become expressions. A value gets its own name only if it is used twice, or if a write comes before its use.
On every memory and under every step limit the function gives what the interpreter gives.
"""

from __future__ import annotations

import builtins
import keyword
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from nram.errors import UsageError
from nram.extensions import known_task, task_names
from nram.modules import MODULES, Module
from nram.programs.evidence import evidence_in_words
from nram.programs.ir import Constant, Output, Program, Register, Row, Value
from nram.programs.memory import LEAST_SIZE
from nram.programs.simplify import simplify
from nram.tasks.layout import Layout, Part

OUTPUT = re.compile("o[0-9]+")  # the name of an output; registers have other names
LONGEST = 60  # characters of an expression that has no name
MOST_ROWS = 300  # Python does not read much longer chains of branches, and people do not either
WIDTH = 92  # of the docstring, without its indentation and quotes
INDENT = "    "
ATOM, PRODUCT, SUM, COMPARISON, CHOICE = 5, 4, 3, 2, 1  # how tightly an operator binds
LOCAL = ("memory", "size", "steps", "max_steps", "state", "n", "itertools")
"""The variables of a function besides registers, outputs and inputs."""


# ---- expressions


@dataclass(frozen=True)
class Expression:
    """A Python expression for a value from 0 to M-1, or for a condition."""

    text: str
    level: int = ATOM
    reads: frozenset[str] = frozenset()
    """The variables in it; 'memory' too."""
    truth: bool = False
    """It is a condition: 1 if it holds, otherwise 0."""
    terms: tuple[tuple[int, Expression], ...] = ()
    """It is the sum of these terms, each with its sign, and of `constant`, modulo M. Only for sums and numbers."""
    constant: int | None = None

    def operand(self, level: int) -> str:
        """The text inside of an operator of this level."""
        return self.text if self.level > level else f"({self.text})"

    @property
    def number(self) -> Expression:
        """The same as a number, which a condition is not."""
        return replace(self, text=f"int({self.text})", level=ATOM, truth=False) if self.truth else self


def variable(name: str) -> Expression:
    return Expression(name, reads=frozenset((name,)))


def literal(value: int) -> Expression:
    """A constant: 0, 1 or 2 in every memory, because M is at least 3."""
    return Expression(str(value), constant=value)


def compared(sign: str, a: Expression, b: Expression) -> Expression:
    text = f"{a.number.operand(COMPARISON)} {sign} {b.number.operand(COMPARISON)}"
    return Expression(text, COMPARISON, a.reads | b.reads, truth=True)


def total(*parts: tuple[int, Expression]) -> Expression:
    """The sum of values with their signs, modulo M."""
    terms: list[tuple[int, Expression]] = []
    constant = 0
    for sign, part in parts:
        constant += sign * (part.constant or 0)
        inner = part.terms if part.constant is not None else ((1, part.number),)
        for inner_sign, term in inner:
            opposite = (-sign * inner_sign, term)
            if opposite in terms:
                terms.remove(opposite)
            else:
                terms.append((sign * inner_sign, term))
    if not terms and 0 <= constant < LEAST_SIZE:
        return literal(constant)
    if not terms and -LEAST_SIZE <= constant < 0:
        return Expression(f"size - {-constant}", SUM, frozenset(("size",)), constant=constant)
    if constant == 0 and len(terms) == 1 and terms[0][0] == 1:
        return terms[0][1]
    signed = [(sign, term.operand(SUM)) for sign, term in terms]
    signed += [(1 if constant > 0 else -1, str(abs(constant)))] if constant else []
    signed.sort(key=lambda term: -term[0])  # 2 - r1, not -r1 + 2
    text = ("-" if signed[0][0] < 0 else "") + signed[0][1]
    text += "".join(f" {'+' if sign > 0 else '-'} {term}" for sign, term in signed[1:])
    if len(signed) > 1:
        text = f"({text})"
    reads = frozenset(("size",)).union(*(term.reads for _, term in terms))
    return Expression(f"{text} % size", PRODUCT, reads, terms=tuple(terms), constant=constant)


def extreme(name: str, a: Expression, b: Expression) -> Expression:
    return Expression(f"{name}({a.number.text}, {b.number.text})", reads=a.reads | b.reads)


def cell(pointer: Expression) -> Expression:
    return Expression(f"memory[{pointer.number.text}]", reads=pointer.reads | {"memory"})


_MEANINGS = {
    "READ": cell,
    "ZERO": lambda: literal(0),
    "ONE": lambda: literal(1),
    "TWO": lambda: literal(2),
    "INC": lambda a: total((1, a), (1, literal(1))),
    "DEC": lambda a: total((1, a), (-1, literal(1))),
    "ADD": lambda a, b: total((1, a), (1, b)),
    "SUB": lambda a, b: total((1, a), (-1, b)),
    "LESS-THAN": lambda x, y: compared(">", y, x) if x.text == "0" else compared("<", x, y),
    "LESS-OR-EQUAL-THAN": lambda x, y: compared("<=", x, y),
    "EQUALITY-TEST": lambda a, b: compared("==", b, a) if a.constant is not None else compared("==", a, b),
    "MIN": lambda a, b: extreme("min", a, b),
    "MAX": lambda a, b: extreme("max", a, b),
}
"""The paper's modules that have an output, as Python."""
_TRUTHS = ("LESS-THAN", "LESS-OR-EQUAL-THAN", "EQUALITY-TEST")


class _Primitives:
    """The primitives of user-defined modules as Python expressions: a builder of `nram.modules`."""

    size = variable("size")

    def number(self, value: int) -> Expression:
        return Expression(str(value), ATOM if value >= 0 else SUM)

    def add(self, a: Expression, b: Expression) -> Expression:
        return Expression(f"{a.operand(SUM - 1)} + {b.operand(SUM - 1)}", SUM)

    def sub(self, a: Expression, b: Expression) -> Expression:
        return Expression(f"{a.operand(SUM - 1)} - {b.operand(SUM)}", SUM)

    def multiply(self, a: Expression, b: Expression) -> Expression:
        return Expression(f"{a.operand(PRODUCT)} * {b.operand(PRODUCT)} % size", PRODUCT)

    def divide(self, a: Expression, b: Expression) -> Expression:
        quotient = Expression(f"{a.operand(PRODUCT)} // {b.operand(PRODUCT)}", PRODUCT)
        if b.text.isdecimal():
            return quotient if int(b.text) else literal(0)
        return self.choose(compared("!=", b, literal(0)), quotient, literal(0))

    def less(self, a: Expression, b: Expression) -> Expression:
        return compared("<", a, b)

    def equal(self, a: Expression, b: Expression) -> Expression:
        return compared("==", a, b)

    def choose(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        return Expression(f"{yes.operand(CHOICE)} if {condition.text} else {no.operand(CHOICE)}", CHOICE)

    def within(self, value: Expression) -> Expression:
        return value  # the function of the module keeps its result in 0..M-1

    def _memory(self, *arguments: Expression) -> NoReturn:
        raise UsageError("a user-defined module that touches the memory cannot become Python")

    read = write = _memory


def _function_of(module: Module, name: str) -> str:
    """A user-defined module as a Python function."""
    names = [re.sub(r"\W", "_", argument) for argument in module.arguments]
    value = module.emit(_Primitives(), *map(variable, names))
    comment = f"{INDENT}# {module.meaning}\n" if module.meaning else ""
    return (
        f"def {name}({', '.join(('size', *names))}):\n{comment}"
        f"{INDENT}value = {value.text}\n{INDENT}return value if 0 <= value < size else 0\n"
    )


# ---- rows


@dataclass(frozen=True)
class Statement:
    """An assignment. Registers in it have their values from the start of the step, unless `after` names them."""

    targets: tuple[str, ...]
    values: tuple[Expression, ...]
    writes: bool = False
    """It is a write into a cell; then the target is the cell."""
    after: frozenset[str] = frozenset()
    """The registers whose new values it uses."""

    @property
    def reads(self) -> frozenset[str]:
        return frozenset().union(*(value.reads for value in self.values))

    @property
    def line(self) -> str:
        return f"{', '.join(self.targets)} = {', '.join(value.text for value in self.values)}"


@dataclass
class _RowWriter:
    """Turns a row into assignments."""

    row: Row
    registers: Sequence[str]
    flags: frozenset[str]
    """The registers that are only tested for 0."""
    functions: dict[str, str]
    """The functions of user-defined modules."""
    inline: dict[int, Expression] = field(default_factory=dict)
    """The operations so far, as expressions."""

    def statements(self) -> list[Statement]:
        kept = self._live()
        named = self._named(kept)
        found: list[Statement] = []
        for index in sorted(kept):
            operation = self.row.operations[index]
            given = [self._value(argument) for argument in operation.arguments]
            if MODULES[operation.module].memory == "writes":
                value = given[1].number
                reads = value.reads | given[0].reads | {"memory"}
                found.append(Statement((cell(given[0]).text,), (replace(value, reads=reads),), writes=True))
                self.inline[index] = literal(0)
                continue
            value = self._applied(operation.module, given)
            if value.text.isalnum():
                named.discard(index)  # a number or a register needs no other name
            elif len(value.text) > LONGEST:
                named.add(index)
            self.inline[index] = value
            if index in named:
                name = f"o{index + 1}"
                found.append(Statement((name,), (value.number,)))
                self.inline[index] = variable(name)
        return _ordered(found + self._updates())

    def _applied(self, name: str, given: list[Expression]) -> Expression:
        if name in _MEANINGS:
            return _MEANINGS[name](*given)
        words = ", ".join(["size", *(value.number.text for value in given)])
        reads = frozenset(("size",)).union(*(value.reads for value in given))
        return Expression(f"{self.functions[name]}({words})", reads=reads)

    def _value(self, value: Value) -> Expression:
        return value.resolve(lambda i: variable(self.registers[i]), self.inline.__getitem__, literal)

    def _updates(self) -> list[Statement]:
        if self.row.halt:
            return []
        changed = [(i, value) for i, value in enumerate(self.row.registers) if value != Register(i)]
        found = []
        for i, value in changed:
            expression = self._value(value)
            if self.registers[i] in self.flags:
                text = {"0": "False", "1": "True"}.get(expression.text, expression.text)
                found.append(Statement((self.registers[i],), (replace(expression, text=text),)))
            else:
                found.append(Statement((self.registers[i],), (expression.number,)))
        return found

    def _consumers(self) -> dict[int, list[int]]:
        """For every operation the operations that use its output; the number of operations means a register."""
        count = len(self.row.operations)
        found: dict[int, list[int]] = {index: [] for index in range(count)}
        updates = () if self.row.halt else self.row.registers
        users = [(index, operation.arguments) for index, operation in enumerate(self.row.operations)]
        for user, values in [*users, (count, updates)]:
            for value in values:
                if isinstance(value, Output):
                    found[value.index].append(user)
        return found

    def _live(self) -> set[int]:
        """The operations that write, or whose outputs reach a write or a register."""
        consumers, count = self._consumers(), len(self.row.operations)
        live: set[int] = set()
        for index in reversed(range(count)):
            writes = MODULES[self.row.operations[index].module].memory == "writes"
            if writes or any(user == count or user in live for user in consumers[index]):
                live.add(index)
        return live

    def _named(self, live: set[int]) -> set[int]:
        """The operations whose outputs need names: they are used twice, or a write comes between output and use."""
        consumers, named = self._consumers(), set[int]()
        writes = {index for index in live if MODULES[self.row.operations[index].module].memory == "writes"}
        point: dict[int, int] = {len(self.row.operations): len(self.row.operations)}
        for index in sorted(live - writes, reverse=True):
            users = [user for user in consumers[index] if user in live or user == len(self.row.operations)]
            point.update({user: user for user in users if user in writes})
            evaluated = point[users[0]]
            reads = MODULES[self.row.operations[index].module].memory == "reads"
            if len(users) > 1 or (reads and any(index < write < evaluated for write in writes)):
                named.add(index)
                evaluated = index
            point[index] = evaluated
        return named


def _ordered(statements: list[Statement]) -> list[Statement]:
    """An order of the assignments in which each value is there when it is used, with as few names as possible."""
    while _sorted(statements) is None:  # registers that exchange their values are set together
        circle = _circle(statements)
        together = Statement(
            tuple(target for one in circle for target in one.targets),
            tuple(value for one in circle for value in one.values),
        )
        statements = [one for one in statements if one not in circle] + [together]
    for target in [one.targets for one in statements if not one.writes]:
        update = next((one for one in statements if one.targets == target), None)
        if update is not None and OUTPUT.fullmatch(update.values[0].text) and len(target) == 1:
            rest = [one for one in statements if one is not update]
            merged = _renamed(rest, update.values[0].text, target[0])
            if _sorted(merged) is not None:  # the register can take the value at once
                statements = merged
    found = _sorted(statements)
    assert found is not None
    return found


def _renamed(statements: list[Statement], name: str, register: str) -> list[Statement]:
    """The statements with a register's new value instead of an output with a name."""

    def changed(one: Statement) -> Statement:
        if name not in one.reads and name not in one.targets:
            return one
        targets = tuple(re.sub(rf"\b{name}\b", register, target) for target in one.targets)
        values = tuple(
            replace(value, text=re.sub(rf"\b{name}\b", register, value.text), reads=value.reads - {name})
            for value in one.values
        )
        after = one.after | {register} if name in one.reads else one.after
        return replace(one, targets=targets, values=values, after=after)

    return [changed(one) for one in statements]


def _before(one: Statement, other: Statement, in_order: bool) -> bool:
    """Whether one statement must come before another. `in_order`: it comes before it in the row."""
    if other.after.intersection(one.targets):
        return True
    if any(OUTPUT.fullmatch(name) for name in other.reads.intersection(one.targets)):
        return True
    # A register keeps its old value until all its uses are done.
    if any(not OUTPUT.fullmatch(name) for name in one.reads.intersection(other.targets)):
        return True
    return in_order and (one.writes or other.writes) and "memory" in one.reads and "memory" in other.reads


def _graph(statements: list[Statement]) -> dict[int, set[int]]:
    """For every statement those that must come before it."""
    numbers = range(len(statements))
    return {i: {j for j in numbers if j != i and _before(statements[j], statements[i], j < i)} for i in numbers}


def _sorted(statements: list[Statement]) -> list[Statement] | None:
    """The statements in a possible order, as near to the given one as possible; None if it does not exist."""
    waiting, found = _graph(statements), list[Statement]()
    while waiting:
        ready = next((i for i, before in waiting.items() if not before & waiting.keys()), None)
        if ready is None:
            return None
        del waiting[ready]
        found.append(statements[ready])
    return found


def _circle(statements: list[Statement]) -> list[Statement]:
    """Assignments to registers that wait for each other."""
    waiting = _graph(statements)
    while True:
        used = set().union(*waiting.values())
        done = [i for i, before in waiting.items() if not before & waiting.keys() or i not in used]
        if not done:
            return [statements[i] for i in waiting]
        for i in done:
            del waiting[i]


# ---- functions


def function_name(program: Program, name: str | None = None) -> str:
    """The name of the function: the one given, or that of the program."""
    if name is None:
        words = re.sub(r"[^A-Za-z0-9]+", "_", program.name).strip("_")[:60].lower() or "program"
        words = words if words[0].isalpha() else f"program_{words}"
        return words if _is_free(words, ()) else f"{words}_"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name) or not _is_free(name, ()):
        raise UsageError(f"'{name:.60}' is not a free name for a Python function: choose another")
    return name


def _is_free(name: str, taken: Sequence[str]) -> bool:
    reserved = (*LOCAL, *taken)
    return not (keyword.iskeyword(name) or hasattr(builtins, name) or name in reserved or OUTPUT.fullmatch(name))


def _free(names: Sequence[str], taken: list[str]) -> list[str]:
    """Python names for these, each different from all that are taken. They are added to those."""
    found = []
    for name in names:
        name = name if name.isidentifier() else re.sub(r"\W", "_", name)
        while not _is_free(name, taken):
            name += "_"
        found.append(name)
        taken.append(name)
    return found


def to_python(program: Program, name: str) -> str:
    """The source file: a function of this name, after those of user-defined modules."""
    short = simplify(program)
    if short.rows > MOST_ROWS:
        raise UsageError(
            f"{program.name} has {short.rows} rows, and Python source can have at most {MOST_ROWS}: compile it as C"
        )
    return _Function(program, short, name).source()


class _Function:
    def __init__(self, program: Program, short: Program, name: str):
        self.program, self.short, self.name = program, short, name
        taken = [name]
        layout = program.layout
        self.inputs = {} if layout is None else dict(zip(layout.inputs, _free(list(layout.inputs), taken), strict=True))
        self.registers = _free(short.registers, taken)
        self.flags = self._flags()
        user_defined = [module for module in short.modules if not module.built_in]
        names = _free([module.name.lower().replace("-", "_") for module in user_defined], taken)
        self.functions = dict(zip([module.name for module in user_defined], names, strict=True))

    def source(self) -> str:
        helpers = [_function_of(MODULES[module], name) + "\n" for module, name in self.functions.items()]
        lines = [self._signature(), *self._docstring()]
        layout = self.program.layout
        lines += self._checks() if layout is None else _LayoutWriter(layout, self.inputs).start()
        if not self.program.needs_limit:
            lines += [f"{INDENT}if max_steps is None:", f"{INDENT * 2}max_steps = 64 * size + 1024"]
        lines += ["", *(f"{INDENT}{' = '.join(names)} = {value}" for value, names in self._start().items() if names)]
        lines += [f"{INDENT}steps = 0", f"{INDENT}while steps < max_steps:", f"{INDENT * 2}steps += 1"]
        lines += [f"{INDENT * 2}{line}" for line in self._states()]
        if layout is None:
            lines.append(f"{INDENT}return memory, False")
        else:
            lines += [f"{INDENT}else:", f'{INDENT * 2}raise RuntimeError(f"no result within {{max_steps}} steps")']
            lines += _LayoutWriter(layout, self.inputs).end()
        imports = ["import itertools\n\n"] if any("itertools." in line for line in lines) else []
        return "\n".join([*imports, *helpers, "\n".join(lines) + "\n"])

    def _start(self) -> dict[str, list[str]]:
        numbers = [name for name in self.registers if name not in self.flags]
        state = ["state"] if len(self.short.states) > 1 else []
        return {"0": numbers + state, "False": [name for name in self.registers if name in self.flags]}

    def _signature(self) -> str:
        limit = "max_steps" if self.program.needs_limit else "max_steps=None"
        return f"def {self.name}({', '.join([*(self.inputs.values() or ['memory']), limit])}):"

    def _checks(self) -> list[str]:
        return [
            f"{INDENT}memory = list(memory)",
            f"{INDENT}size = len(memory)",
            f"{INDENT}if size < {LEAST_SIZE} or min(memory) < 0 or max(memory) >= size:",
            f'{INDENT * 2}raise ValueError("give at least {LEAST_SIZE} cells, with numbers from 0 to len(memory) - 1")',
        ]

    def _flags(self) -> frozenset[str]:
        """The registers that are only ever compared with 0, and that only take truth values."""
        flags = set(range(len(self.registers)))
        for row in (row for rows in self.short.states for row in rows):
            used = {argument for operation in row.operations for argument in operation.arguments}
            for index, value in enumerate(row.registers):
                if row.halt or value == Register(index):
                    continue
                used.add(value)
                truth = isinstance(value, Output) and row.operations[value.index].module in _TRUTHS
                if not truth and value not in (Constant(0), Constant(1)):
                    flags.discard(index)
            flags -= {value.index for value in used if isinstance(value, Register)}
        return frozenset(self.registers[index] for index in flags)

    def _states(self) -> list[str]:
        states = self.short.states
        if len(states) == 1:
            return self._rows(0)
        lines = []
        for state in range(len(states)):
            last = state == len(states) - 1
            lines.append(f"{'if' if state == 0 else 'elif'} state == {state}:" if not last else "else:")
            lines += [f"{INDENT}{line}" for line in self._rows(state)]
        return lines

    def _rows(self, state: int) -> list[str]:
        rows = self.short.states[state]
        if len(rows) == 1:
            return self._row(rows[0], state)
        lines = []
        for index, row in enumerate(rows):
            last = index == len(rows) - 1  # some row always applies
            lines.append("else:" if last else f"{'elif' if index else 'if'} {self._condition(row)}:")
            lines += [f"{INDENT}{line}" for line in self._row(row, state)]
        return lines

    def _condition(self, row: Row) -> str:
        tests = []
        for name, zero in zip(self.registers, row.when, strict=True):
            if zero is not None and name in self.flags:
                tests.append(f"not {name}" if zero else name)
            elif zero is not None:
                tests.append(f"{name} == 0" if zero else f"{name} > 0")
        return " and ".join(tests)

    def _row(self, row: Row, state: int) -> list[str]:
        writer = _RowWriter(row, self.registers, self.flags, self.functions)
        lines = [statement.line for statement in writer.statements()]
        if row.halt:
            return [*lines, "return memory, True" if self.program.layout is None else "break"]
        if row.next_state != state:
            lines.append(f"state = {row.next_state}")
        if not lines:  # the same row applies at every further step
            return ["return memory, False  # nothing changes any more" if self.program.layout is None else "pass"]
        return lines

    # ---- the docstring

    def _docstring(self) -> list[str]:
        program = self.program
        task = known_task(program.task) if program.task in task_names() else None
        summary = task.summary if task is not None else f"The program '{program.name}'."
        made = dict(program.made).get("command")
        about = f"A program of nram, {program.origin}" + (f" by '{made}'." if made else ".")
        paragraphs = [summary, f"{about} {evidence_in_words(program)}"]
        if program.layout is None:
            start = f" ({task.layout})" if task is not None else ""
            stop = f"after T(n) = {program.limit} steps" if program.needs_limit else "at any later step"
            stop = f"The result is right when it is stopped {stop}." if program.verified and not program.halts else ""
            paragraphs.append(
                f"`memory` is a list of numbers{start}, each below its length. It is not changed. "
                "Returns the memory at the end, and whether the program halted by itself within `max_steps` steps. "
                + stop
            )
        else:
            results = " and ".join(program.layout.outputs)
            paragraphs.append(f"Returns {results}. In memory: {'; '.join(program.layout.describe())}.")
        kept = [_quoted(text).replace(" = ", "\0=\0") for text in paragraphs]  # "n = 5" stays on one line
        lines = [line.replace("\0", " ") for text in kept for line in (*textwrap.wrap(text, WIDTH), "")]
        lines[0] = f'"""{lines[0]}'
        lines[-1] = '"""'
        return [f"{INDENT}{line}".rstrip() for line in lines]


def _quoted(text: str) -> str:
    """The text inside of a docstring: it cannot end it."""
    return text.replace("\\", "\\\\").replace('"', "'")


# ---- inputs with names


class _LayoutWriter:
    """The lines that put named inputs into a memory, and take the results out of it: `Layout.memory` and `results`."""

    def __init__(self, layout: Layout, names: dict[str, str]):
        self.layout, self.names = layout, names
        lists = [f"len({names[name]})" for name, part in layout.inputs.items() if part.length is not None]
        self.n = " + ".join(lists) or _call("max", [names[name] for name in layout.inputs])
        starred = [names[name] if part.length is None else f"*{names[name]}" for name, part in layout.inputs.items()]
        self.every = starred[0].removeprefix("*") if len(starred) == 1 else f"[{', '.join(starred)}]"
        self.lists_only = all(part.length is not None for part in layout.inputs.values())

    def start(self) -> list[str]:
        layout, lines = self.layout, list[str]()
        marked = {part.name for part in layout.parts if part.kind in ("end", "length")}
        for part, following in zip(layout.parts, layout.parts[1:], strict=False):
            if part.open and part.name and following.kind == "zero" and part.name not in marked:
                name = self.names[part.name]
                lines += [f"if 0 in {name}:", f'{INDENT}raise ValueError("{name} must not hold 0, which ends it")']
        if any(part.open and not part.name for part in layout.parts):
            lines.append(f"n = {self.n}")
        lines.append(f"memory = [{', '.join(self._content(index) for index in range(len(layout.parts)))}]")
        lines += ["if min(memory) < 0:", f'{INDENT}raise ValueError("the inputs are whole numbers from 0 up")']
        single = self.every in self.names.values() and not self.lists_only
        largest = self.every if single else f"max({self.every}{', default=0' if self.lists_only else ''})"
        least = ["len(memory) + 1", f"{largest} + 2"]
        if layout.sums:
            factor = f"{layout.sums} * " if layout.sums > 1 else ""
            least.append(f"{factor}{self.every if single else f'sum({self.every})'} + 1")
        if sum(self._cells(part)[0] for part in layout.parts) < LEAST_SIZE - 1:
            least.append(str(LEAST_SIZE))
        lines.append(f"size = max({', '.join(least)})")
        if layout.cells is not None:
            lines += [f"if size > {layout.cells}:", f'{INDENT}raise ValueError("these inputs are too large")']
            lines.append(f"size = {layout.cells}")
        lines.append("memory += [0] * (size - len(memory))")
        return [f"{INDENT}{line}" for line in lines]

    def end(self) -> list[str]:
        results = {name: self._result(part) for name, part in self.layout.outputs.items()}
        if len(results) == 1:
            return [f"{INDENT}return {next(iter(results.values()))}"]
        return [f"{INDENT}return {{{', '.join(f'{name!r}: {text}' for name, text in results.items())}}}"]

    def _result(self, part: Part) -> str:
        parts = self.layout.parts
        index = parts.index(part)
        place = self._address(index)
        if part.length is None:
            return f"memory[{place}]"
        region = f"memory[{place} : {self._address(index + 1)}]"
        if not part.open or part.name:
            return region
        count = next((i for i, one in enumerate(parts) if one.kind == "length" and one.name == part.result), None)
        if count is not None:
            return f"{region}[: memory[{self._address(count)}]]"
        return f"list(itertools.takewhile(bool, {region}))"

    def _content(self, index: int) -> str:
        """What lies in the cells of a part at the start."""
        part = self.layout.parts[index]
        if part.kind == "column" and part.name:
            return self.names[part.name] if part.length is None else f"*{self.names[part.name]}"
        if part.kind in ("start", "end"):
            parts = enumerate(self.layout.parts)
            region = next(i for i, one in parts if one.length is not None and part.name in (one.name, one.result))
            return self._address(region + (part.kind == "end"))
        if part.kind == "length" and part.name in self.layout.inputs:
            return f"len({self.names[part.name]})"
        number, texts = self._cells(part)
        if not texts:
            return ", ".join("0" * number)
        return f"*[0] * {texts[0] if texts[0].startswith('len(') else f'({texts[0]})'}"

    def _address(self, index: int) -> str:
        """The address of a part as a sum."""
        sizes = [self._cells(part) for part in self.layout.parts[:index]]
        number = sum(fixed for fixed, _ in sizes)
        return " + ".join([*([str(number)] if number else []), *(text for _, texts in sizes for text in texts)]) or "0"

    def _cells(self, part: Part) -> tuple[int, list[str]]:
        """How many cells a part takes: a number, and a text for what depends on the inputs."""
        if part.length is None or part.kind != "column":
            return 1, []
        if part.length.isdecimal():
            return int(part.length), []
        if part.open and not part.name:
            return 0, [f"{part.length[:-1]} * (n + 1)" if part.length[:-1] else "n + 1"]
        return 0, [f"len({self.names[part.name or part.length]})"]


def _call(function: str, arguments: Sequence[str]) -> str:
    return arguments[0] if len(arguments) == 1 else f"{function}({', '.join(arguments)})"
