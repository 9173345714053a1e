"""Task and module files whose functions and fields are hostile: wrong types, huge numbers, exceptions, sooner or later.

nram executes such a file because the user names it. It still must check all that comes out of it.
"""

from __future__ import annotations

from random import Random

from fuzz.mutations import mutated_bytes, mutated_text

PRELUDE = """\
import decimal, fractions, itertools
import numpy as np
from nram.modules import Module
from nram.tasks import StepLimit, Task

class Bad:
    def _fail(self, *arguments):
        raise ValueError("bad")
    FAILING

class Whole(int): pass
class Row(list): pass

def fail(error):
    raise error

def deep():
    return deep()

calls = 0

def spoiled(name, value):
    global calls
    if name != SPOILED:
        return value
    calls += 1
    return SPOIL(value) if calls > AFTER else value

def with_item(value, item):
    value = list(value) or [0]
    value[len(value) // 2] = item
    return value
"""
TASK_FIELDS = {
    "name": "'doubled'",
    "summary": "'Add the first two cells.'",
    "layout": "'0, A[0..n-1], 0'",
    "min_complexity": "1",
    "trained_up_to": "10",
    "step_limit": "StepLimit(2, 6)",
    "least_memory": "lambda n: spoiled('least_memory', n + 3)",
    "sample_input": "lambda rng, n, M: spoiled('sample_input', "
    "[0, *(rng.randrange(1, M) for _ in range(n))] + [0] * (M - n - 1))",
    "oracle": "lambda memory: spoiled('oracle', ([spoiled('answer', memory[1]), *memory[1:]], [spoiled('cell', 0)]))",
    "scored_cells": "lambda memory, cells: spoiled('scored_cells', list(cells))",
    "legal_inputs": "lambda n, M: (spoiled('legal_inputs', [0, *values, *[0] * (M - n - 1)]) "
    "for values in itertools.product(range(1, M), repeat=n))",
}
MODULE_FIELDS = {
    "name": "'BLEND'",
    "arguments": "('x', 'y')",
    "integer": "lambda M, x, y: spoiled('integer', x * y % M)",
    "emit": "lambda b, x, y: spoiled('emit', b.multiply(x, y))",
    "meaning": "'x y'",
}
EXPRESSIONS = (
    *("None", "True", "-1", "0", "1", "2", "10**400", "10**5000", "-10**5000", "2**31", "2**63", "1.5", "float('nan')"),
    *("float('inf')", "1j", "''", "'x' * 10**6", "'\\x1b[31m'", "'\\ud800'", "b''", "[]", "()", "{}", "set()", "[[]]"),
    *("[0] * 10**6", "range(5)", "object()", "int", "Bad", "Bad()", "[Bad()]", "(Bad(), Bad())", "Whole(3)"),
    *("np.int64(3)", "np.float32(1)", "np.zeros(3)", "np.zeros((2, 2))", "np.array(3)", "np.array([None])"),
    *("decimal.Decimal(1)", "fractions.Fraction(1, 2)", "itertools.count()", "iter([])", "lambda *a: 0", "print"),
    *("1 / 0", "[][0]", "{}[0]", "deep()", "fail(SystemExit(3))", "fail(StopIteration())", "fail(MemoryError())"),
    *("fail(AssertionError())", "fail(UnicodeDecodeError('a', b'', 0, 1, 'x'))"),
    *(
        "fail(Exception('x' * 10**6))",
        "fail(Exception(Bad()))",
        "fail(OSError())",
        "fail(type('Own', (Exception,), {})())",
    ),
    *("Row([0, 1, 2])", "StepLimit(0, 10**5000)", "StepLimit(10**9, 10**9)", "StepLimit(None, 'x')"),
)
SPOILS = (
    *(f"lambda value: {expression}" for expression in EXPRESSIONS),
    *(f"lambda value: with_item(value, {expression})" for expression in EXPRESSIONS),
    *("lambda value: value[:-1]", "lambda value: value + value", "lambda value: [value]", "lambda value: str(value)"),
    *("lambda value: -value", "lambda value: value + 1", "lambda value: value * 1000", "lambda value: float(value)"),
    *("lambda value: np.array(value)", "lambda value: tuple(value)", "lambda value: iter(value)", "lambda value: None"),
)
FAILING = ["repr", "eq", "hash", "len", "bool", "iter", "int", "index", "str", "call", "getattr", "lt", "array"]


def task_source(rng: Random | None = None) -> str:
    return _source(rng, "TASK = Task", TASK_FIELDS, ("least_memory", "sample_input", "oracle", "answer", "cell"))


def module_source(rng: Random | None = None) -> str:
    return _source(rng, "MODULE = Module", MODULE_FIELDS, ("integer", "emit"))


def _source(rng: Random | None, start: str, fields: dict[str, str], functions: tuple[str, ...]) -> str:
    """A file that defines a task or a module; without a random generator a valid one."""
    fields = dict(fields)
    parts = {"FAILING": "pass", "SPOILED": "None", "SPOIL": "(lambda value: value)", "AFTER": "0"}
    if rng is not None:
        failing = rng.sample(FAILING, rng.choice((1, 2, 5, len(FAILING))))
        parts["FAILING"] = "; ".join(f"__{name}__ = _fail" for name in failing)
        if rng.random() < 0.4:
            for name in rng.sample(list(fields), rng.choice((1, 1, 2))):
                fields[name] = rng.choice(EXPRESSIONS)
        else:
            parts["SPOILED"] = repr(rng.choice((*functions, *functions, *fields)))
            parts["SPOIL"] = f"({rng.choice(SPOILS)})"
            parts["AFTER"] = str(rng.choice((0, 0, 1, 5, 100, 1000, 10_000)))
        if rng.random() < 0.1:
            del fields[rng.choice(list(fields))]
    text = PRELUDE
    for name, value in parts.items():
        text = text.replace(name, value)
    return text + f"\n{start}(\n" + "".join(f"    {name}={value},\n" for name, value in fields.items()) + ")\n"


def mutated_source(rng: Random, source: str) -> bytes:
    """A source with damaged text or bytes. Only the lines after the helpers are changed, and words of this file alone
    come in: other words could make a loop that never ends, which would be no mistake of nram."""
    helpers, middle, definition = source.rpartition("\n\n")
    if rng.random() < 0.5:
        return (helpers + middle).encode() + mutated_bytes(rng, definition.encode())
    return (helpers + middle + mutated_text(rng, definition)).encode("utf-8", "surrogatepass")
