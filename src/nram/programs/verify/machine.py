"""A program on terms instead of numbers: one step of many runs at once.

A value is a Python integer where it is known and a term of z3 otherwise; so is the memory's size. The modules mean
what the table says, through its builder protocol. What the conditions of a step come to is asked of a solver that
knows the assumptions. Where both answers are possible, the two values are merged into one term; but for registers'
flags, for questions about the memory's size alone, and wherever `split` is set, the step is given up with
`Undecided`, so that the caller can do it again under either answer. A memory is a list of what was written, as the
theory of arrays has it: a pointer meets a cell surely, surely not, or perhaps.

This module imports z3: import it late.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import z3

from nram.programs.ir import MODULES, Constant, Output, Program, Register, Row, Value
from nram.tasks.base import SymbolicCase, Term

MOST_SECONDS_A_QUESTION = 10.0


class OutOfTime(Exception):
    """The time for a proof has passed."""


class Undecided(Exception):
    """A step depends on a condition that may hold or not."""

    def __init__(self, condition: Any):
        super().__init__(str(condition))
        self.condition = condition


class Facts:
    """What is known on the way: a solver with the assumptions, deeper and deeper into the cases."""

    def __init__(self, assumptions: tuple[Any, ...], deadline: float):
        self.deadline = deadline
        self.solver = z3.Solver()
        self.solver.add(*assumptions)
        self._decided: list[dict[int, bool]] = [{}]
        self._alive: list[Any] = []  # z3 gives the number of a term that nobody holds to another one
        self._witness: Any = None
        """A model of all that is known, if one is at hand: it settles half of each question."""

    def ask(self, *conditions: Any) -> z3.CheckSatResult:
        """Whether the conditions can hold together with all that is known. 'unknown' counts as neither."""
        self.solver.set("timeout", max(1, int(1000 * min(self.time_left(), MOST_SECONDS_A_QUESTION))))
        answer = self.solver.check(*conditions)
        if answer == z3.unknown and "keyboard" in self.solver.reason_unknown():  # z3 keeps Ctrl-C to itself
            raise KeyboardInterrupt
        return answer

    def time_left(self) -> float:
        """Seconds; OutOfTime if there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        return left

    def find_witness(self) -> z3.CheckSatResult:
        """Whether all that is known can hold."""
        answer = self.ask()
        self._witness = self.solver.model() if answer == z3.sat else None
        return answer

    def decide(self, condition: Any) -> bool | None:
        """True or False if what is known settles it, otherwise None."""
        if isinstance(condition, bool):
            return condition
        plain = z3.simplify(condition)
        if z3.is_true(plain) or z3.is_false(plain):
            return z3.is_true(plain)
        number = plain.get_id()
        for level in self._decided:
            if number in level:
                return level[number]
        answer = None
        seen = self._seen(plain)
        if seen is not False and self.ask(z3.Not(plain)) == z3.unsat:
            answer = True
        elif seen is not True and self.ask(plain) == z3.unsat:
            answer = False
        if answer is not None:
            self._decided[-1][number] = answer
            self._alive.append(plain)
        return answer

    def learn(self, *conditions: Any) -> None:
        """Take for granted what holds anyway. It is forgotten where the present assumption ends."""
        self.solver.add(*conditions)
        if not all(map(self._seen, conditions)):
            self._witness = None

    def _seen(self, condition: Any) -> bool | None:
        """Whether the condition holds in the witness; None if there is no telling."""
        found = None if self._witness is None else self._witness.eval(condition, model_completion=True)
        return z3.is_true(found) if z3.is_true(found) or z3.is_false(found) else None

    @property
    def depth(self) -> int:
        """How many assumptions were made on the way here."""
        return len(self._decided) - 1

    def assume(self, condition: Any) -> bool:
        """Go into a case. False: it is impossible. What the solver cannot tell counts as possible."""
        self.solver.push()
        self._decided.append({})
        self.solver.add(condition)
        return True if self._seen(condition) else self.find_witness() != z3.unsat

    def back_to(self, depth: int) -> None:
        """Drop the latest assumptions, with all that was learned under them."""
        self.solver.pop(self.depth - depth)
        del self._decided[depth + 1 :]


def key_of(term: Term) -> Any:
    """Equal for terms that read the same; only while the terms are held."""
    return term if isinstance(term, int) else ("term", term.get_id())


def lifted(term: Term) -> Any:
    """The term as z3 has it, also if it is a number."""
    return z3.IntVal(term) if isinstance(term, int) else term


def plain(term: Term) -> Term:
    """The term in z3's normal form, or the number it comes to."""
    if isinstance(term, int):
        return term
    term = z3.simplify(term)
    return term.as_long() if z3.is_int_value(term) else term


Cells = dict[Any, tuple[Term, Term]]
"""Addresses and values by the key of the address, the newest last."""


@dataclass(frozen=True)
class Memory:
    """What was written, and below it what was there: the cells that the layout names, then trash or 0."""

    written: Cells
    named: Cells
    """Their addresses surely differ from each other."""
    trash: Callable[[Term], Term] | None

    @staticmethod
    def of(case: SymbolicCase) -> Memory:
        return Memory({}, {key_of(plain(a)): (plain(a), plain(v)) for a, v in case.cells}, case.trash)

    def with_cell(self, address: Term, value: Term) -> Memory:
        key = key_of(address)
        # The new cell hides an older one of the same address, wherever that stands.
        older = {k: cell for k, cell in self.written.items() if k != key}
        return Memory({**older, key: (address, value)}, self.named, self.trash)

    def candidates(self, pointer: Term) -> Iterator[tuple[Term, Term]]:
        """The cells that a pointer may mean, the newest first. One of the layout with its very address is the last."""
        yield from reversed(self.written.values())
        at_once = self.named.get(key_of(pointer))
        yield from self.named.values() if at_once is None else [at_once]

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple((key, key_of(value)) for key, (_, value) in self.written.items())


@dataclass(frozen=True)
class Configuration:
    """A machine between two steps."""

    memory: Memory
    registers: tuple[Term, ...]
    state: int = 0
    steps: int = 0
    halted: bool = False

    @property
    def key(self) -> Any:
        """Equal for configurations from which the same happens."""
        return self.state, tuple(map(key_of, self.registers)), self.memory.key


class SymbolicMachine:
    """The builder of `nram.modules` for terms, and the steps of a program by it."""

    def __init__(self, program: Program, size: Term, facts: Facts, split: bool):
        self.program = program
        self.size = size
        self.facts = facts
        self.split = split
        self.memory = Memory({}, {}, None)  # while a row is carried out

    def start(self, case: SymbolicCase) -> Configuration:
        return Configuration(Memory.of(case), (0,) * len(self.program.registers))

    def step(self, configuration: Configuration) -> Configuration:
        """The configuration after one step; Undecided if a flag, or with `split` anything else, can be either."""
        self.facts.time_left()
        row = self._choose(configuration)
        self.memory = configuration.memory
        outputs: list[Term] = []
        for operation in row.operations:
            module = MODULES[operation.module]
            given = [self._value(argument, configuration, outputs) for argument in operation.arguments]
            output = module.emit(self, *given)
            outputs.append(0 if module.memory == "writes" else output)
        registers = tuple(self._value(value, configuration, outputs) for value in row.registers)
        return Configuration(self.memory, registers, row.next_state, configuration.steps + 1, row.halt)

    def look(self, memory: Memory, address: Term) -> Term:
        """What a cell holds, merged into one term."""
        return self._read(memory, address, split=False)

    # ---- the builder

    def number(self, literal: int) -> Term:
        return literal

    def add(self, a: Term, b: Term) -> Term:
        return plain(a + b)

    def sub(self, a: Term, b: Term) -> Term:
        return plain(a - b)

    def multiply(self, a: Term, b: Term) -> Term:
        return plain(a * b % self.size)

    def divide(self, a: Term, b: Term) -> Term:
        if isinstance(b, int):
            return 0 if b == 0 else a // b if isinstance(a, int) else plain(a / b)
        return self.choose(self.equal(b, 0), 0, plain(lifted(a) / b))

    def within(self, value: Term) -> Term:
        return value

    def less(self, a: Term, b: Term) -> Any:
        return a < b

    def equal(self, a: Term, b: Term) -> Any:
        return a == b

    def choose(self, condition: Any, yes: Term, no: Term) -> Term:
        if key_of(yes) == key_of(no):
            return yes
        answer = self.facts.decide(condition)
        if answer is not None:
            return yes if answer else no
        if self.split or self._is_about_size(condition):
            raise Undecided(condition)
        return plain(z3.If(condition, yes, no))

    def read(self, pointer: Term) -> Term:
        return self._read(self.memory, pointer, self.split)

    def write(self, pointer: Term, value: Term) -> None:
        self.memory = self.memory.with_cell(pointer, value)

    # ----

    def _choose(self, configuration: Configuration) -> Row:
        for row in self.program.states[configuration.state]:
            if all(
                wanted is None or wanted == self._is_zero(register)
                for wanted, register in zip(row.when, configuration.registers, strict=True)
            ):
                return row
        raise AssertionError("a program has a row for all flags")

    def _is_zero(self, register: Term) -> bool:
        condition = register == 0
        answer = self.facts.decide(condition)
        if answer is None:
            raise Undecided(condition)
        return answer

    def _value(self, value: Value, configuration: Configuration, outputs: list[Term]) -> Term:
        match value:
            case Register(index):
                return configuration.registers[index]
            case Output(index):
                return outputs[index]
            case Constant(number):
                return number

    def _read(self, memory: Memory, pointer: Term, split: bool) -> Term:
        perhaps: list[tuple[Any, Term]] = []
        found: Term | None = None
        for address, value in memory.candidates(pointer):
            condition = pointer == address
            same = self.facts.decide(condition)
            if same:
                found = value
                break
            if same is None:
                if split:
                    raise Undecided(condition)
                perhaps.append((condition, value))
        if found is None:
            found = self._untouched(memory, pointer)
        for condition, value in reversed(perhaps):
            found = z3.If(condition, value, found)
        return plain(found)

    def _is_about_size(self, condition: Any) -> bool:
        """Whether it is about the memory's size alone, as when a pointer may be at the end.

        There are few such conditions, and a pointer that stays a number is worth much more than one way less.
        """
        if isinstance(self.size, int):
            return False
        waiting = [condition]
        while waiting:
            term = waiting.pop()
            if z3.is_const(term) and not z3.is_int_value(term) and not term.eq(self.size):
                return False
            waiting += term.children()
        return True

    def _untouched(self, memory: Memory, pointer: Term) -> Term:
        if memory.trash is None:
            return 0
        value = memory.trash(lifted(pointer))
        self.facts.learn(value >= 1, value <= self.size - 1)
        return value
