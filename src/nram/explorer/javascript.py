"""Modules as JavaScript, for a page that runs a program by itself: one more builder of their emitted form."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nram.errors import NramError
from nram.modules import Module


class Script:
    """The primitives of the modules as JavaScript expressions. A function gets M, the memory and the arguments."""

    size = "size"

    def __init__(self) -> None:
        self.statements: list[str] = []

    def number(self, literal: int) -> str:
        return str(literal)

    def add(self, a: str, b: str) -> str:
        return f"({a} + {b})"

    def sub(self, a: str, b: str) -> str:
        return f"({a} - {b})"

    def multiply(self, a: str, b: str) -> str:  # below 2**24: M is small enough on a page
        return f"({a} * {b} % size)"

    def divide(self, a: str, b: str) -> str:
        return f"({b} === 0 ? 0 : Math.floor({a} / {b}))"

    def less(self, a: str, b: str) -> str:
        return f"({a} < {b})"

    def equal(self, a: str, b: str) -> str:
        return f"({a} === {b})"

    def choose(self, condition: str, yes: str, no: str) -> str:
        return f"({condition} ? {yes} : {no})"

    def within(self, value: str) -> str:
        return f"(0 <= {value} && {value} < size ? {value} : 0)"

    def read(self, pointer: str) -> str:
        return f"memory[{pointer}]"

    def write(self, pointer: str, value: str) -> None:
        self.statements.append(f"memory[{pointer}] = {value};")


def modules_script(modules: Sequence[Module]) -> str:
    """A constant MODULES: for each module how many arguments it takes, what it does to the memory, and a function."""
    missing = [module.name for module in modules if not module.emits]
    if missing:
        raise NramError(
            f"a page cannot run {', '.join(missing)}: the module has no emitted form; add emit=... to its Module"
        )
    return "const MODULES = {\n" + "".join(f"  {_entry(module)},\n" for module in modules) + "};\n"


def _entry(module: Module) -> str:
    to = Script()
    names = [f"a{index}" for index in range(module.arity)]
    output = module.emit(to, *names)
    if module.memory == "writes":
        output = "0"
    body = " ".join([*to.statements, f"return {output};"])
    return (
        f"{json.dumps(module.name)}: {{ memory: {json.dumps(module.memory)}, "
        f"compute(size, memory, [{', '.join(names)}]) {{ {body} }} }}"
    )
