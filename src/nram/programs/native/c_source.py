"""Programs as portable, readable C99, and the C header that all compiled forms share.

The C code follows the table: a label for every state, an `if` for every row, a line for every operation. As in `llvm`,
the loop checks nothing, because no value can leave the range 0..M-1 once the memory has been checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nram.errors import UsageError
from nram.modules import MODULES
from nram.programs.ir import Program, Register, Row, Value, condition_in_words
from nram.programs.memory import LARGEST_SIZE, LEAST_SIZE
from nram.programs.text import operation_to_text

C_TITLE = "/* The program '"  # every file begins with it
RESERVED = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
alignas alignof and and_eq asm bitand bitor bool catch class compl concept const_cast consteval constexpr
constinit decltype delete dynamic_cast explicit export false friend main mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public reinterpret_cast requires static_assert static_cast template
this thread_local throw true try typeid typename using virtual wchar_t xor xor_eq
NULL memcpy memmove memset int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t
intmax_t uintmax_t size_t ssize_t ptrdiff_t max_align_t offsetof
"""


@dataclass(frozen=True)
class Refusal:
    """An input that the checked function refuses."""

    code: int
    name: str
    when: str
    condition: str
    """In C."""


_SIZES = LEAST_SIZE, LARGEST_SIZE
REFUSALS = (
    Refusal(-1, "NO_MEMORY", "memory is NULL", "memory == NULL"),
    Refusal(-2, "BAD_SIZE", "size is below {} or above {}".format(*_SIZES), "size < {} || size > {}".format(*_SIZES)),
    Refusal(-3, "BAD_LIMIT", "max_steps is negative", "max_steps < 0"),
    Refusal(-4, "BAD_CELL", "a cell lies outside 0..size-1", "memory[i] < 0 || memory[i] >= size"),
)
BAD_CELL = REFUSALS[-1]


def symbol_for(program: Program, name: str | None = None) -> str:
    """The name of the C function: the one given, or nram_ and the program's name."""
    if name is None:
        words = re.sub(r"[^A-Za-z0-9]+", "_", program.name).strip("_")[:60].lower()
        return f"nram_{words or 'program'}"
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,99}", name) is None:
        raise UsageError(f"'{name:.60}' is not a valid C function name: use letters, digits and _, a letter first")
    if name in RESERVED.split():
        raise UsageError(f"'{name}' is a reserved word of C or C++: choose another name")
    return name


# ---- the header


def to_header(program: Program, symbol: str) -> str:
    guard = f"{symbol.upper()}_H"
    parts = [
        f"{_title(program)}\n#ifndef {guard}\n#define {guard}",
        "#include <stdint.h>",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        declarations(program, symbol),
        "#ifdef __cplusplus\n}\n#endif",
        "#endif\n",
    ]
    return "\n\n".join(parts)


def declarations(program: Program, symbol: str) -> str:
    """The declarations of the two functions and their constants, with comments for callers."""
    prefix = symbol.upper()
    names = ", ".join(program.registers)
    codes = [("HALTED", 1, "it halted by itself"), ("STOPPED", 0, "it was stopped after max_steps steps")]
    codes += [(refusal.name, refusal.code, refusal.when) for refusal in REFUSALS]
    width = max(len(name) for name, _, _ in codes)
    listed = [f"#define {prefix}_{name:{width}} {f'({code})':>4}  /* {words} */" for name, code, words in codes]
    return "\n".join(
        [
            f"#define {prefix}_REGISTERS {len(program.registers)}  /* {_in_comment(names)} */",
            "",
            *listed,
            "",
            "/* Runs the program on a memory of `size` cells, in place, until it halts, for at most max_steps steps.",
            " * Cells hold whole numbers from 0 to size-1. If the memory, its size or the limit is invalid, nothing is",
            " * changed and a negative number is returned. Otherwise *steps is set to the number of steps and",
            f" * registers[0..{len(program.registers) - 1}] to the final registers. Both pointers may be NULL. */",
            _signature(symbol) + ";",
            "",
            "/* The same without checks. The behaviour is undefined if the memory, size or limit is invalid. */",
            _signature(f"{symbol}_unchecked") + ";",
        ]
    )


def _signature(name: str) -> str:
    return f"int32_t {name}(int32_t *memory, int64_t size, int64_t max_steps, int64_t *steps, int32_t *registers)"


def _title(program: Program) -> str:
    about = f"task {program.task}, " if program.task else ""
    lines = [
        f"{C_TITLE}{_in_comment(program.name)}' of a neural random-access machine "
        f"({_in_comment(about)}origin {program.origin}, {program.fingerprint})."
    ]
    if program.needs_limit and program.limit is not None:
        lines.append(f" * It is right only if it is stopped after T(n) = {program.limit} steps.")
    return "\n".join(lines) + " */"


def _in_comment(text: str) -> str:
    """The text, changed so that it neither ends a comment nor begins another one."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")


# ---- the source


def to_c(program: Program, symbol: str) -> str:
    """The whole source file."""
    parts = [
        f"{_title(program)}\n#include <stddef.h>\n#include <stdint.h>",
        declarations(program, symbol),
        "\n".join(_unchecked(program, symbol)),
        "\n".join(_checked(symbol)) + "\n",
    ]
    return "\n\n".join(parts)


def _checked(symbol: str) -> list[str]:
    lines = [_signature(symbol), "{"]
    for refusal in REFUSALS:
        code = f"return {symbol.upper()}_{refusal.name};"
        if refusal is BAD_CELL:
            lines.append("    for (int64_t i = 0; i < size; i++)")
            lines += [f"        if ({refusal.condition})", f"            {code}"]
        else:
            lines += [f"    if ({refusal.condition})", f"        {code}"]
    return [*lines, f"    return {symbol}_unchecked(memory, size, max_steps, steps, registers);", "}"]


def _unchecked(program: Program, symbol: str) -> list[str]:
    names = [_variable(name) for name in program.registers]
    writer = _Writer(program, names, symbol)
    body = [line for state in writer.reached for line in writer.state(state)]
    prologue = ["    const uint32_t M = (uint32_t)size;"] if writer.uses_size else ["    (void)size;"]
    if not writer.uses_memory:
        prologue.append("    (void)memory;")
    return [
        _signature(f"{symbol}_unchecked"),
        "{",
        *prologue,
        "    int64_t left = max_steps;",
        f"    int32_t ending = {symbol.upper()}_STOPPED;",
        *[f"    uint32_t {name} = 0;" for name in names],
        "",
        *body,
        "end:",
        "    if (steps != NULL)",
        "        *steps = max_steps - left;",
        "    if (registers != NULL) {",
        *[f"        registers[{i}] = (int32_t){name};" for i, name in enumerate(names)],
        "    }",
        "    return ending;",
        "}",
    ]


def _variable(register: str) -> str:
    """A C variable name for a register that nothing else in the function uses."""
    return register if re.fullmatch(r"r[0-9]+", register) else f"r_{register}"


class _Expressions:
    """The primitives of the modules as C expressions on uint32_t: sums stay below 2 M < 2**32.

    Comparisons with a known result are decided here, because compilers warn about them.
    """

    size = "M"

    def __init__(self) -> None:
        self.statements: list[str] = []

    def number(self, literal: int) -> str:
        return f"{literal}u"

    def add(self, a: str, b: str) -> str:
        return f"({_operand(a)} + {_operand(b)})"

    def sub(self, a: str, b: str) -> str:
        return f"({_operand(a)} - {_operand(b)})"

    def multiply(self, a: str, b: str) -> str:
        return f"(uint32_t)((uint64_t){_operand(a)} * {_operand(b)} % M)"

    def divide(self, a: str, b: str) -> str:
        quotient = f"({_operand(a)} / {_operand(b)})"
        return quotient if re.fullmatch("[1-9][0-9]*u", b) else self.choose(self.equal(b, "0u"), "0u", quotient)

    def less(self, a: str, b: str) -> str | bool:
        return False if a == b or b == "0u" else f"({_operand(a)} < {_operand(b)})"

    def equal(self, a: str, b: str) -> str | bool:
        return True if a == b else f"({_operand(a)} == {_operand(b)})"

    def choose(self, condition: str | bool, yes: str, no: str) -> str:
        if isinstance(condition, bool):
            return yes if condition else no
        return f"{condition} ? {_operand(yes)} : {_operand(no)}"

    def within(self, value: str) -> str:
        return self.choose(self.less(value, "M"), value, "0u")

    def read(self, pointer: str) -> str:
        return f"(uint32_t)memory[{pointer}]"

    def write(self, pointer: str, value: str) -> None:
        self.statements.append(f"memory[{pointer}] = (int32_t){value};")


def _operand(expression: str) -> str:
    """An expression as an operand: a conditional needs parentheses."""
    return f"({expression})" if " ? " in expression else expression


class _Writer:
    """The lines of the states that can be reached."""

    def __init__(self, program: Program, names: list[str], symbol: str):
        self.program = program
        self.names = names
        self.symbol = symbol
        self.uses_size = False
        self.uses_memory = False
        self.reached, self.entered = _reached_states(program)

    def state(self, state: int) -> list[str]:
        lines = [f"state_{state}:"] if state in self.entered else []
        lines += ["    if (left == 0)", "        goto end;", "    left--;"]
        rows = _rows_in_use(self.program.states[state])
        for index, row in enumerate(rows):
            last = index == len(rows) - 1  # some row always applies
            words = condition_in_words(self.program.registers, rows, index)
            comment = f"/* state {state}, row {index + 1}: {_in_comment(words)} */"
            lines += [f"    {'{' if last else f'if ({self._condition(row)}) {{'}  {comment}"]
            lines += [f"        {line}" for line in self._row(row)]
            lines += ["    }"]
        return [*lines, ""]

    def _condition(self, row: Row) -> str:
        tests = zip(self.names, row.when, strict=True)
        return " && ".join(f"{name} {'==' if zero else '!='} 0" for name, zero in tests if zero is not None)

    def _row(self, row: Row) -> list[str]:
        """The lines of a row. Operations whose output is never used are left out: compilers warn about them."""
        rest = [*self._update(row), *self._go_on(row)]
        for index in reversed(range(len(row.operations))):
            operation = row.operations[index]
            module = MODULES[operation.module]
            if module.memory != "writes" and not _occurs(f"o{index + 1}", [line.split("/*")[0] for line in rest]):
                continue
            b = _Expressions()
            value = module.emit(b, *[self._value(argument, row) for argument in operation.arguments])
            code = " ".join(b.statements) or f"const uint32_t o{index + 1} = {value};"
            rest.insert(0, f"{code}  /* {operation_to_text(self.program, operation)} */")
            self.uses_size = self.uses_size or _occurs("M", [code])
            self.uses_memory = self.uses_memory or module.memory != "nothing"
        return rest

    def _update(self, row: Row) -> list[str]:
        """Update all registers at once: a value that is overwritten before its use is saved first."""
        changed = {i: value for i, value in enumerate(row.registers) if value != Register(i)}
        saved = sorted({value.index for value in changed.values() if isinstance(value, Register)} & changed.keys())
        lines = [f"const uint32_t old_{self.names[i]} = {self.names[i]};" for i in saved]
        for i, value in changed.items():
            old = isinstance(value, Register) and value.index in saved
            lines.append(f"{self.names[i]} = {'old_' if old else ''}{self._value(value, row)};")
        return lines

    def _go_on(self, row: Row) -> list[str]:
        if row.halt:
            return [f"ending = {self.symbol.upper()}_HALTED;", "goto end;"]
        return [f"goto state_{row.next_state};"]

    def _value(self, value: Value, row: Row) -> str:
        def output(index: int) -> str:
            return "0u" if MODULES[row.operations[index].module].memory == "writes" else f"o{index + 1}"

        return value.resolve(self.names.__getitem__, output, lambda literal: f"{literal}u")


def _rows_in_use(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows up to the first that always applies."""
    count = next((i for i, row in enumerate(rows, 1) if all(zero is None for zero in row.when)), len(rows))
    return rows[:count]


def _reached_states(program: Program) -> tuple[list[int], set[int]]:
    """The states that can be reached from the first, and those among them that some row leads to."""
    reached, entered = [0], set()
    for state in reached:  # the list grows during the loop
        for row in _rows_in_use(program.states[state]):
            if not row.halt and row.next_state not in entered:
                entered.add(row.next_state)
                if row.next_state not in reached:
                    reached.append(row.next_state)
    return sorted(reached), entered


def _occurs(word: str, lines: list[str]) -> bool:
    return any(re.search(rf"\b{word}\b", line) for line in lines)
