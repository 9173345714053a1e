"""Checks of user-defined modules. Each problem is a sentence that ends with its cure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from itertools import islice, product
from operator import index
from random import Random
from types import FunctionType
from typing import Any

from nram.extensions.checking_builder import CheckingBuilder, MisuseError, Number
from nram.extensions.loading import calling, refuse, short
from nram.module_tables import EquationTwo
from nram.modules import Module, NotEmitted

SIZES = (*range(3, 17), 33, 70)  # for these M, all arguments are tried
FAR, FAR_TRIED = 3000, 60  # for this large M, so many random arguments are tried
FUZZY_SIZES = (3, 4, 7, 10)
TOLERANCE = 1e-9
MOST_ARGUMENTS = 2


def field_problems(module: Module) -> list[str]:
    """What is wrong with the fields of a module, without calling its functions."""
    letters = module.arguments
    count = len(letters) if isinstance(letters, tuple) else 0
    named = isinstance(letters, tuple) and all(isinstance(letter, str) for letter in letters)
    requirements = [
        (
            isinstance(module.name, str) and re.fullmatch(r"[A-Z][A-Z0-9_-]{0,39}", module.name),
            f"name is {short(module.name)}: use one word of capital letters, digits, - and _",
        ),
        (named, f'arguments is {short(letters)}: name them in a tuple, as ("x", "y"), ("x",) or ()'),
        (
            count <= MOST_ARGUMENTS,
            f"it has {count} arguments: a module has at most {MOST_ARGUMENTS}, so make two modules of it",
        ),
        (
            not named
            or (len(set(letters)) == count and all(re.fullmatch(r"[A-Za-z]\w{0,7}", one, re.A) for one in letters)),
            f"arguments is {short(letters)}: give each a different letter or short word",
        ),
        (
            module.memory == "nothing",
            f"memory is {short(module.memory)}: only READ and WRITE touch the memory, so leave it out",
        ),
        (callable(module.integer), f"integer is {short(module.integer)}: make it a function"),
        (callable(module.fuzzy), f"fuzzy is {short(module.fuzzy)}: make it a function, or leave it out"),
        (callable(module.emit), f"emit is {short(module.emit)}: make it a function, or leave it out"),
        (
            isinstance(module.meaning, str) and (module.meaning == "" or module.meaning.isprintable()),
            f"meaning is {short(module.meaning)}: say it in one line of words",
        ),
    ]
    return [problem for holds, problem in requirements if not holds]


# ---- checks of single calls


def checked_integer(module: Module, shown: str, file: str | None) -> Callable[..., int]:
    """The integer meaning with a check of every result."""
    where = _line_of(module.integer, shown, file)

    def integer(size: int, *arguments: int) -> int:
        try:
            value = module.integer(size, *arguments)
        except (Exception, SystemExit):
            what = call(module, size, arguments)
            with calling(what, shown, file, "give a number for all arguments from 0 to M-1"):
                raise
        try:
            number = index(value)  # accepts truth values and NumPy's integers
        except Exception:  # mostly a TypeError; a value of a class of its own can raise anything
            what = call(module, size, arguments)
            refuse([f"{what} gives {short(value)}: give a whole number, by // or int(...)"], where)
            raise
        if not 0 <= number < size:
            what = call(module, size, arguments)
            refuse([f"{what} gives {short(number)}, which leaves 0..M-1: take it modulo M, as (...) % M"], where)
        return number

    return integer


def kept_within(module: Module) -> Callable[..., Any]:
    """The emitted meaning with its output kept within 0..M-1.

    The checks try only some sizes, and machine code must not leave the memory on any.
    """
    if not module.emits:
        return NotEmitted(module.name, module.arguments)
    return lambda builder, *arguments: builder.within(module.emit(builder, *arguments))


def call(module: Module, size: int, arguments: tuple[int, ...]) -> str:
    """A call in words."""
    return f"{module.name}({', '.join(map(str, arguments))}) with M = {size}"


def _line_of(function: Any, shown: str, file: str | None) -> str:
    """The line on which a function begins, if it is in this file."""
    code = function.__code__ if isinstance(function, FunctionType) else None
    return f"{shown}, line {code.co_firstlineno}" if code is not None and code.co_filename == file else shown


# ---- checks over several calls


def check_behaviour(module: Module, integer: Callable[..., int], shown: str, file: str | None) -> None:
    """UsageError with the first problem of the functions of a module. `integer` is the checked integer meaning."""
    refuse([*islice(_integer_problems(module, integer), 1)], _line_of(module.integer, shown, file))
    if not isinstance(module.fuzzy, EquationTwo):
        with calling("fuzzy", shown, file, "use only functions of NumPy that JAX has too"):
            problems = [*islice(_fuzzy_problems(module, integer), 1)]
        refuse(problems, _line_of(module.fuzzy, shown, file))
    if module.emits:
        with calling("emit", shown, file, "use the primitives of its first argument, a nram.modules.Builder"):
            problems = [*islice(_emit_problems(module, integer), 1)]
        refuse(problems, _line_of(module.emit, shown, file))


def _all_arguments(module: Module, sizes: tuple[int, ...] = SIZES) -> Iterator[tuple[int, tuple[int, ...]]]:
    for size in sizes:
        for arguments in product(range(size), repeat=module.arity):
            yield size, arguments


def _tried(module: Module) -> Iterator[tuple[int, tuple[int, ...]]]:
    """An M and arguments: all of the small sizes, and some of a large one with its corners."""
    yield from _all_arguments(module)
    for arguments in product((0, 1, FAR - 1), repeat=module.arity):
        yield FAR, arguments
    rng = Random(0)
    for _ in range(FAR_TRIED):
        yield FAR, tuple(rng.randrange(FAR) for _ in module.arguments)


def _integer_problems(module: Module, integer: Callable[..., int]) -> Iterator[str]:
    first = {(size, arguments): integer(size, *arguments) for size, arguments in _tried(module)}
    for (size, arguments), before in reversed(first.items()):
        again = integer(size, *arguments)
        if again != before:
            yield (
                f"{call(module, size, arguments)} gives {before} and then {again}: let it depend only on M and the "
                "arguments"
            )


def _fuzzy_problems(module: Module, integer: Callable[..., int]) -> Iterator[str]:
    import numpy as np

    exact = EquationTwo(module.name, integer, module.arity)
    rng = np.random.default_rng(0)
    for size in FUZZY_SIZES:
        certain = np.eye(size)[rng.integers(size, size=(4, module.arity))]
        drawn = rng.dirichlet(np.ones(size), size=(8, module.arity))
        for distributions in (*certain, *drawn):
            found, expected = module.fuzzy(np, size, *distributions), exact(np, size, *distributions)
            if np.shape(found) != (size,):
                yield f"fuzzy for M = {size} gives an array of shape {np.shape(found)}: give a vector of M numbers"
                return
            wrong = np.flatnonzero(~(np.abs(np.asarray(found) - expected) <= TOLERANCE))
            if len(wrong):
                value = int(wrong[0])
                yield (
                    f"fuzzy for M = {size} gives the value {value} the probability {float(found[value]):.6g}, and "
                    f"equation 2 with the integer meaning {expected[value]:.6g}: mend one of them, or leave fuzzy out"
                )


def _emit_problems(module: Module, integer: Callable[..., int]) -> Iterator[str]:
    for size, arguments in _tried(module):
        what = f"emit for {call(module, size, arguments)}"
        try:
            found = module.emit(CheckingBuilder(size), *map(Number, arguments))
        except MisuseError as problem:
            yield f"{what}: {problem}"
            return
        if not isinstance(found, Number):
            yield f"{what} gives {short(found)}: give what a primitive of the builder gave"
            return
        expected = integer(size, *arguments)
        if found.value != expected:
            yield f"{what} gives {found.value}, and the integer meaning {expected}: mend one of them, or leave emit out"


# ---- digests


@cache
def digest_of(module: Module) -> str:
    """A digest of what a module computes, however it is written.

    Modules that agree on all arguments of many M have the same one.
    """
    outputs = [module.integer(size, *arguments) for size, arguments in _all_arguments(module)]
    return sha256(repr((module.name, module.arity, outputs)).encode()).hexdigest()[:16]
