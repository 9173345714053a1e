"""Random programs and memories."""

from __future__ import annotations

import itertools
from random import Random

from nram.modules import MODULE_NAMES, PAPER_MODULES
from nram.programs.ir import Constant, Operation, Output, Program, Register, Row, Value

ARITY = {module.name: module.arity for module in PAPER_MODULES}


def random_program(
    rng: Random,
    *,
    registers: int | None = None,
    states: int | None = None,
    operations: int | None = None,
    full: bool = False,
    halting: float = 0.1,
) -> Program:
    """Any program. `full`: as extraction gives it, that is a row for all flags and all modules once, in the paper's
    order, without constants as values; otherwise rows with conditions, and operations as they come."""
    count = rng.randint(1, 4) if registers is None else registers
    number = rng.choice([1, 1, 2, 3]) if states is None else states

    def value(outputs: int) -> Value:
        choices = [*map(Register, range(count)), *map(Output, range(outputs))]
        return rng.choice(choices if full else [*choices, *map(Constant, range(3))])

    def row(when: tuple[bool | None, ...]) -> Row:
        length = rng.randint(0, 6) if operations is None else operations
        names = MODULE_NAMES if full else rng.choices([*MODULE_NAMES, "READ", "WRITE", "INC"], k=length)
        done: list[Operation] = []
        for name in names:
            done.append(Operation(name, tuple(value(len(done)) for _ in range(ARITY[name]))))
        new = tuple(value(len(done)) for _ in range(count))
        return Row(when, tuple(done), new, rng.random() < halting, rng.randrange(number))

    def rows() -> tuple[Row, ...]:
        if full:
            return tuple(row(flags) for flags in itertools.product((False, True), repeat=count))
        conditions = [tuple(rng.choice((True, False, None)) for _ in range(count)) for _ in range(rng.randint(0, 4))]
        return tuple(row(when) for when in [*conditions, (None,) * count])

    names = tuple(f"r{i + 1}" for i in range(count))
    return Program(names, tuple(rows() for _ in range(number)))


def random_memory(rng: Random, size: int) -> list[int]:
    return [rng.randrange(size) for _ in range(size)]
