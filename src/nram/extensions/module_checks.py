"""What can be wrong with a module that somebody wrote: each problem in a sentence that ends with its cure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from itertools import islice, product
from operator import index
from random import Random
from typing import Any

from nram.extensions.builders import MisuseError, Number, Suspicious
from nram.extensions.loading import calling, refuse, short
from nram.extensions.tables import EquationTwo
from nram.modules import Module, NotEmitted

SIZES = (*range(3, 17), 33, 70)  # M whose arguments are all tried
FAR, FAR_TRIED = 3000, 60  # an M of which so many arguments are tried
FUZZY_SIZES = (3, 4, 7, 10)
TOLERANCE = 1e-9
MOST_ARGUMENTS = 2


def field_problems(module: Module) -> list[str]:
    """What is wrong with the words of a module and the kinds of its functions."""
    problems = []

    def need(condition: bool, message: str) -> None:
        if not condition:
            problems.append(message)

    need(
        isinstance(module.name, str) and re.fullmatch(r"[A-Z][A-Z0-9_-]{0,39}", module.name) is not None,
        f"name is {short(module.name)}: use one word of capital letters, digits, - and _",
    )
    letters = module.arguments
    if isinstance(letters, tuple) and all(isinstance(letter, str) for letter in letters):
        need(
            len(letters) <= MOST_ARGUMENTS,
            f"it has {len(letters)} arguments: a module has at most {MOST_ARGUMENTS}, so make two modules of it",
        )
        need(
            all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,7}", letter) for letter in letters)
            and len(set(letters)) == len(letters),
            f"arguments is {short(letters)}: name each by a letter or a short word of its own",
        )
    else:
        problems.append(f'arguments is {short(letters)}: name them in a tuple, as ("x", "y"), ("x",) or ()')
    need(
        module.memory == "nothing",
        f"memory is {short(module.memory)}: only READ and WRITE touch the memory, so leave it out",
    )
    for what in ("integer", "fuzzy", "emit"):
        optional = "" if what == "integer" else ", or leave it out"
        need(callable(getattr(module, what)), f"{what} is {short(getattr(module, what))}: make it a function{optional}")
    need(
        isinstance(module.meaning, str) and (module.meaning == "" or module.meaning.isprintable()),
        f"meaning is {short(module.meaning)}: say it in one line of words",
    )
    return problems


# ---- one answer of each function


def watched_integer(module: Module, shown: str, file: str | None) -> Callable[..., int]:
    """The integer meaning, which tells what is wrong with it at every call."""
    where = _line_of(module.integer, shown, file)

    def integer(size: int, *arguments: int) -> int:
        try:
            value = module.integer(size, *arguments)
        except Exception:
            what = call(module, size, arguments)
            with calling(what, shown, file, "give a number for all arguments from 0 to M-1"):
                raise
        try:
            number = index(value)  # truth values and NumPy's integers are welcome
        except TypeError:
            what = call(module, size, arguments)
            refuse([f"{what} gives {short(value)}: give a whole number, by // or int(...)"], where)
            raise
        if not 0 <= number < size:
            what = call(module, size, arguments)
            refuse([f"{what} gives {number}, which leaves 0..M-1: take it modulo M, as (...) % M"], where)
        return number

    return integer


def watched_emit(module: Module) -> Callable[..., Any]:
    """The emitted meaning, kept within 0..M-1: on sizes where nobody tried it, too, code must not leave the memory."""
    if not module.emits:
        return NotEmitted(module.name, module.arguments)
    return lambda to, *arguments: to.within(module.emit(to, *arguments))


def call(module: Module, size: int, arguments: tuple[int, ...]) -> str:
    """A call in words."""
    return f"{module.name}({', '.join(map(str, arguments))}) with M = {size}"


def _line_of(function: Any, shown: str, file: str | None) -> str:
    """Where a function begins, if that is in this file."""
    code = getattr(function, "__code__", None)
    return f"{shown}, line {code.co_firstlineno}" if code is not None and code.co_filename == file else shown


# ---- what shows only over several calls


def check_behaviour(module: Module, integer: Callable[..., int], shown: str, file: str | None) -> None:
    """UsageError with the first thing that is wrong with the functions of a module. `integer` is its watched one."""
    refuse([*islice(_integer_problems(module, integer), 1)], _line_of(module.integer, shown, file))
    if not isinstance(module.fuzzy, EquationTwo):
        with calling("fuzzy", shown, file, "it must do with the functions of NumPy that JAX has too"):
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
                f"{call(module, size, arguments)} gives {before} and then {again}: let it depend on M and the "
                "arguments alone"
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
            found = module.emit(Suspicious(size), *map(Number, arguments))
        except MisuseError as problem:
            yield f"{what}: {problem}"
            return
        if not isinstance(found, Number):
            yield f"{what} gives {short(found)}: give what a primitive of the builder gave"
            return
        expected = integer(size, *arguments)
        if found.value != expected:
            yield f"{what} gives {found.value}, and the integer meaning {expected}: mend one of them, or leave emit out"


# ---- what a module means, in short


@cache
def digest_of(module: Module) -> str:
    """Of what a module does, not of how it is written: equal for modules that agree on all arguments of many M."""
    said = [module.integer(size, *arguments) for size, arguments in _all_arguments(module)]
    return sha256(repr((module.name, module.arity, said)).encode()).hexdigest()[:16]
