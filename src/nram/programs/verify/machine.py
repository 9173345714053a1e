"""The symbolic machine: it runs a program on terms instead of numbers, so that one step stands for many runs.

A value is a Python integer where it is known, and otherwise a z3 term; so is the memory size. The modules are applied
through the builder protocol of the module table. A solver that knows the assumptions decides the conditions of a step.
Where both answers are possible, the two values are merged into one term. But for register flags, for conditions on
the memory size alone, and always with `split`, the step raises `Undecided`, so that the caller repeats it under each
answer. A memory is a list of writes, as in the theory of arrays: a pointer certainly, certainly not, or possibly
refers to a cell.

This module imports z3: import it late.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import z3

from nram.programs.ir import Program, Row, carry_out, emitted
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
    """A solver with everything that is known on a path: the assumptions, and the conditions of its forks."""

    def __init__(self, assumptions: tuple[Any, ...], deadline: float):
        self.deadline = deadline
        self.solver = z3.Solver()
        self.solver.add(*assumptions)
        self._decided: list[dict[int, bool]] = [{}]
        self._alive: list[Any] = []  # z3 reuses the id of a term that is no longer referenced
        self._witness: Any = None
        """A model of everything that is known, if there is one at hand. It answers half of each query."""

    def ask(self, *conditions: Any) -> z3.CheckSatResult:
        """Whether the conditions can hold together with everything known. 'unknown' counts as neither answer."""
        self.solver.set("timeout", max(1, int(1000 * min(self.time_left(), MOST_SECONDS_A_QUESTION))))
        answer = self.solver.check(*conditions)
        if answer == z3.unknown and "keyboard" in self.solver.reason_unknown():  # z3 swallows Ctrl-C
            raise KeyboardInterrupt
        return answer

    def time_left(self) -> float:
        """The remaining seconds; raises OutOfTime if there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        return left

    def find_witness(self) -> z3.CheckSatResult:
        """Whether everything that is known can hold."""
        answer = self.ask()
        self._witness = self.solver.model() if answer == z3.sat else None
        return answer

    def decide(self, condition: Any) -> bool | None:
        """True or False if what is known implies it, otherwise None."""
        if isinstance(condition, bool):
            return condition
        plain = z3.simplify(condition)
        if z3.is_true(plain) or z3.is_false(plain):
            return z3.is_true(plain)
        term_id = plain.get_id()
        for level in self._decided:
            if term_id in level:
                return level[term_id]
        answer = None
        seen = self._seen(plain)
        if seen is not False and self.ask(z3.Not(plain)) == z3.unsat:
            answer = True
        elif seen is not True and self.ask(plain) == z3.unsat:
            answer = False
        if answer is not None:
            self._decided[-1][term_id] = answer
            self._alive.append(plain)
        return answer

    def learn(self, *conditions: Any) -> None:
        """Add conditions that are known to hold. They are dropped together with the latest assumption."""
        self.solver.add(*conditions)
        if not all(map(self._seen, conditions)):
            self._witness = None

    def _seen(self, condition: Any) -> bool | None:
        """Whether the condition holds in the witness; None if that is unknown."""
        found = None if self._witness is None else self._witness.eval(condition, model_completion=True)
        return z3.is_true(found) if z3.is_true(found) or z3.is_false(found) else None

    @property
    def depth(self) -> int:
        """How many assumptions were made on this path."""
        return len(self._decided) - 1

    def assume(self, condition: Any) -> bool:
        """Assume a condition. False: it is impossible. If the solver cannot decide, it counts as possible."""
        self.solver.push()
        self._decided.append({})
        self.solver.add(condition)
        return True if self._seen(condition) else self.find_witness() != z3.unsat

    def back_to(self, depth: int) -> None:
        """Drop the latest assumptions, and everything learned under them."""
        self.solver.pop(self.depth - depth)
        del self._decided[depth + 1 :]


def key_of(term: Term) -> Any:
    """A key that is equal for identical terms, as long as they are referenced."""
    return term if isinstance(term, int) else ("term", term.get_id())


def lifted(term: Term) -> Any:
    """The term as a z3 term, also if it is a Python integer."""
    return z3.IntVal(term) if isinstance(term, int) else term


def plain(term: Term) -> Term:
    """The term simplified by z3, as a Python integer if it is constant."""
    if isinstance(term, int):
        return term
    term = z3.simplify(term)
    return term.as_long() if z3.is_int_value(term) else term


Cells = dict[Any, tuple[Term, Term]]
"""Addresses and values by the key of the address, the newest last."""


@dataclass(frozen=True)
class Memory:
    """The cells that were written, over those that the layout names, over trash or 0."""

    written: Cells
    named: Cells
    """Their addresses are proven distinct."""
    trash: Callable[[Term], Term] | None

    @staticmethod
    def of(case: SymbolicCase) -> Memory:
        return Memory({}, {key_of(plain(a)): (plain(a), plain(v)) for a, v in case.cells}, case.trash)

    def with_cell(self, address: Term, value: Term) -> Memory:
        key = key_of(address)
        # The new cell replaces an older one of the same address.
        older = {k: cell for k, cell in self.written.items() if k != key}
        return Memory({**older, key: (address, value)}, self.named, self.trash)

    def candidates(self, pointer: Term) -> Iterator[tuple[Term, Term]]:
        """The cells that a pointer may refer to, the newest first."""
        yield from reversed(self.written.values())
        exact = self.named.get(key_of(pointer))  # no other cell of the layout can have this address
        yield from self.named.values() if exact is None else [exact]

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
        """A key that is equal for configurations with the same future."""
        return self.state, tuple(map(key_of, self.registers)), self.memory.key


class SymbolicMachine:
    """A builder of `nram.modules` for terms, and the steps of a program with it."""

    def __init__(self, program: Program, size: Term, facts: Facts, split: bool):
        self.program = program
        self.size = size
        self.facts = facts
        self.split = split
        self.memory = Memory({}, {}, None)  # of the step that is being carried out

    def start(self, case: SymbolicCase) -> Configuration:
        return Configuration(Memory.of(case), (0,) * len(self.program.registers))

    def step(self, configuration: Configuration) -> Configuration:
        """The configuration after one step. Raises Undecided if a flag, or with `split` any condition, is open."""
        self.facts.time_left()
        row = self._choose(configuration)
        self.memory = configuration.memory
        done = carry_out(row, configuration.registers.__getitem__, partial(emitted, self), self.number)
        return Configuration(self.memory, tuple(done.registers), row.next_state, configuration.steps + 1, row.halt)

    def look(self, memory: Memory, address: Term) -> Term:
        """The value of a cell, merged into one term."""
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
        inside = self.choose(self.less(value, self.size), value, 0)
        return self.choose(self.less(value, 0), 0, inside)

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

    def _read(self, memory: Memory, pointer: Term, split: bool) -> Term:
        possible: list[tuple[Any, Term]] = []
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
                possible.append((condition, value))
        if found is None:
            found = self._untouched(memory, pointer)
        for condition, value in reversed(possible):
            found = z3.If(condition, value, found)
        return plain(found)

    def _is_about_size(self, condition: Any) -> bool:
        """Whether a condition is about the memory size alone, as when a pointer may be at the end.

        There are few such conditions, and a pointer that stays an integer is worth more than one path less.
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
