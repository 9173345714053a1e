"""The normal form of one row's circuit: constants folded, copies followed, equal values shared, dead code removed.

It is computed by value numbering: values with the same number are certainly equal. The output of a READ depends on
the writes before it, so its number includes the last write that may have changed the cell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from nram.modules import MODULES
from nram.programs.ir import CONSTANTS, Constant, Operation, Output, Register, Row, Value
from nram.programs.simplify.facts import ANY, NOT_ZERO, Facts, constant_of, output_mask
from nram.programs.simplify.rules import COMMUTATIVE, RULES, Pattern, Rule

_RULES_OF: dict[str, list[Rule]] = {}
for _rule in RULES:
    _RULES_OF.setdefault(_rule.pattern[0], []).append(_rule)


@dataclass(frozen=True, slots=True)
class Body:
    """What a row does. The new value of a register is None where it does not matter."""

    operations: tuple[Operation, ...]
    registers: tuple[Value | None, ...]
    halt: bool
    next_state: int | None
    """None if it halts."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A numbered value: a register, a constant, or a module applied to earlier numbers."""

    module: str  # '' for a register or a constant
    arguments: tuple[int, ...]  # for a register or constant: its index or value
    writes_before: int = 0  # for READ: how many writes it must come after


class Circuit:
    """A row evaluated on numbered values, under what is known of the registers."""

    def __init__(self, facts: Facts):
        self.facts = facts
        self.nodes: list[_Node] = []
        self.masks: list[int] = []
        self.ranks: list[tuple[int, bytes]] = []  # an order of values that does not depend on their numbers
        self.numbers: dict[tuple[str, _Node], int] = {}
        self.settled: list[int] = []  # how many writes must come before each value can be computed
        self.writes: list[tuple[int, int]] = []  # pointer and value

    # ---- values

    def register(self, index: int) -> int:
        first = self.facts.same[index]
        known = constant_of(self.facts.masks[index])
        return (
            self._number("r", _Node("", (first,)), self.facts.masks[index]) if known is None else self.constant(known)
        )

    def constant(self, value: int) -> int:
        return self._number("c", _Node("", (value,)), 1 << value)

    def apply(self, module: str, arguments: tuple[int, ...]) -> int:
        """The number of a module's output, simplified by rules and facts."""
        while True:  # a rule's rewrite is simplified in turn
            if module in CONSTANTS:
                return self.constant(CONSTANTS[module])
            if MODULES[module].memory == "reads":
                return self._read(arguments[0])
            if MODULES[module].memory == "writes":
                self._write(*arguments)
                return self.constant(0)
            if module in COMMUTATIVE:
                arguments = tuple(sorted(arguments, key=self.ranks.__getitem__))
            mask = output_mask(module, tuple(self.masks[a] for a in arguments))
            known = constant_of(mask)
            if known is not None:
                return self.constant(known)
            rewrite, found = self._rewritten(module, arguments)
            if rewrite is None:
                return self._number(module, _Node(module, arguments), mask)
            if not isinstance(rewrite, tuple):
                return self._build(rewrite, found)
            module, arguments = rewrite[0], tuple(self._build(part, found) for part in rewrite[1:])

    def _rewritten(self, module: str, arguments: tuple[int, ...]) -> tuple[Pattern | None, dict[str, int]]:
        """The right side of the first rule that matches, with the numbers that its letters stand for."""
        orders = [arguments, arguments[::-1]] if module in COMMUTATIVE else [arguments]
        for rule in _RULES_OF.get(module, ()):
            for order in orders:
                found: dict[str, int] = {}
                if self._matches(rule.pattern[1:], order, found) and self._allowed(rule, found):
                    return rule.rewrite, found
        return None, {}

    def _number(self, kind: str, node: _Node, mask: int) -> int:
        key = (kind, node)
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append(node)
            self.masks.append(mask)
            self.ranks.append(self._rank(kind, node))
            below = (self.settled[a] for a in node.arguments) if node.module else ()
            self.settled.append(max(node.writes_before, *below, 0))
        return self.numbers[key]

    def _rank(self, kind: str, node: _Node) -> tuple[int, bytes]:
        """Registers first, then outputs, then constants."""
        if not node.module:
            return (0 if kind == "r" else 2), bytes(node.arguments)
        said = b"".join(self.ranks[a][1] + bytes([self.ranks[a][0]]) for a in node.arguments)
        return 1, hashlib.blake2s(f"{node.module} {node.writes_before} ".encode() + said, digest_size=16).digest()

    # ---- rules

    def _matches(self, patterns: Sequence[Pattern], numbers: Sequence[int], found: dict[str, int]) -> bool:
        return all(self._match(pattern, number, found) for pattern, number in zip(patterns, numbers, strict=True))

    def _match(self, pattern: Pattern, number: int, found: dict[str, int]) -> bool:
        if isinstance(pattern, str):
            return found.setdefault(pattern, number) == number
        if isinstance(pattern, int):
            return constant_of(self.masks[number]) == pattern
        node = self.nodes[number]
        if node.module != pattern[0]:
            return False
        if node.module in COMMUTATIVE:
            for order in (node.arguments, node.arguments[::-1]):
                attempt = dict(found)
                if self._matches(pattern[1:], order, attempt):
                    found.update(attempt)
                    return True
            return False
        return self._matches(pattern[1:], node.arguments, found)

    def _allowed(self, rule: Rule, found: dict[str, int]) -> bool:
        if rule.positive is not None and self.masks[found[rule.positive]] & ~NOT_ZERO:
            return False
        return rule.boolean is None or not self.masks[found[rule.boolean]] & ~0b0011

    def _build(self, pattern: Pattern, found: dict[str, int]) -> int:
        if isinstance(pattern, str):
            return found[pattern]
        if isinstance(pattern, int):
            return self.constant(pattern)
        return self.apply(pattern[0], tuple(self._build(part, found) for part in pattern[1:]))

    # ---- memory

    def _read(self, pointer: int) -> int:
        """The value of the last write to this cell, or a READ after the last write that may have changed it."""
        after = len(self.writes)
        while after > self.settled[pointer]:  # the pointer itself may come from a READ after some writes
            where, value = self.writes[after - 1]
            if where == pointer:
                return value
            if not self._apart(where, pointer):
                break
            after -= 1
        return self._number("READ", _Node("READ", (pointer,), after), ANY)

    def _write(self, pointer: int, value: int) -> None:
        if self._read(pointer) == value:
            return  # the cell already holds it
        self.writes.append((pointer, value))

    def _apart(self, one: int, other: int) -> bool:
        """Whether two pointers certainly differ."""
        return constant_of(self.masks[self.apply("EQUALITY-TEST", (one, other))]) == 0

    # ---- rows

    def evaluate(self, operations: Sequence[Operation], registers: Sequence[Value | None]) -> list[int | None]:
        """Carry out a row: the numbers of the registers' new values."""
        outputs: list[int] = []

        def number(value: Value) -> int:
            return value.resolve(self.register, outputs.__getitem__, self.constant)

        for operation in operations:
            outputs.append(self.apply(operation.module, tuple(map(number, operation.arguments))))
        return [None if value is None else number(value) for value in registers]

    def emit(self, registers: Sequence[int | None]) -> tuple[tuple[Operation, ...], tuple[Value | None, ...]]:
        """The operations that do the evaluated writes and compute these new values, in a canonical order."""
        writer = _Writer(self)
        wanted = [number for number in registers if number is not None]
        roots = [number for write in self.writes for number in write] + wanted
        reads = [n for n in writer.below(roots) if self.nodes[n].module == "READ"]
        for index, (pointer, value) in enumerate(self.writes):
            if self._overwritten(index, reads):
                continue
            # A READ must come before the first write that could change its output.
            for number in (pointer, value, *[n for n in reads if self.nodes[n].writes_before <= index]):
                writer.emit(number)
            writer.operations.append(Operation("WRITE", (writer.value(pointer), writer.value(value))))
        for number in wanted:
            writer.emit(number)
        new = tuple(None if number is None else writer.value(number) for number in registers)
        return tuple(writer.operations), new

    def _overwritten(self, index: int, reads: list[int]) -> bool:
        """Whether a later write replaces this one before any READ can see it."""
        pointer = self.writes[index][0]
        later = next((i for i in range(index + 1, len(self.writes)) if self.writes[i][0] == pointer), None)
        if later is None:
            return False
        between = [n for n in reads if index < self.nodes[n].writes_before <= later]
        return all(self._apart(self.nodes[n].arguments[0], pointer) for n in between)


class _Writer:
    """Turns numbered values into operations, each once."""

    def __init__(self, circuit: Circuit):
        self.circuit = circuit
        self.operations: list[Operation] = []
        self.outputs: dict[int, int] = {}  # the operation that computes each number

    def below(self, roots: Sequence[int]) -> list[int]:
        """The roots and all values they depend on, in topological order."""
        order: dict[int, None] = {}
        stack = [(root, False) for root in reversed(roots)]
        while stack:
            number, ready = stack.pop()
            node = self.circuit.nodes[number]
            if number in order:
                continue
            if ready or not node.module:
                order[number] = None
            else:
                stack.append((number, True))
                stack += [(argument, False) for argument in reversed(node.arguments)]
        return list(order)

    def emit(self, root: int) -> None:
        for number in self.below([root]):
            node = self.circuit.nodes[number]
            if node.module and number not in self.outputs:
                self.outputs[number] = len(self.operations)
                self.operations.append(Operation(node.module, tuple(map(self.value, node.arguments))))

    def value(self, number: int) -> Value:
        node = self.circuit.nodes[number]
        if node.module:
            return Output(self.outputs[number])
        known = constant_of(self.circuit.masks[number])
        return Register(node.arguments[0]) if known is None else Constant(known)


def normal_form(row: Row | Body, facts: Facts, live: Sequence[bool]) -> Body:
    """The normal form of a row, where only the registers that are `live` afterwards matter."""
    circuit = Circuit(facts)
    wanted = [value if needed else None for value, needed in zip(row.registers, live, strict=True)]
    operations, registers = circuit.emit(circuit.evaluate(row.operations, wanted))
    return Body(operations, registers, row.halt, None if row.halt else row.next_state)


def registers_used(body: Body) -> set[int]:
    values = [argument for operation in body.operations for argument in operation.arguments]
    return {value.index for value in [*values, *body.registers] if isinstance(value, Register)}


def kept_registers(body: Body) -> tuple[Value, ...]:
    """The new values of a body's registers; those that do not matter keep their values."""
    return tuple(Register(i) if value is None else value for i, value in enumerate(body.registers))
