"""Loops of native code that take many steps at once, without the tests of every single step.

Most steps of most programs repeat the same row (or the same few), while pointers and counters go up or down by a
constant. Then every value that depends only on these registers is a line: base + stride k in round k. The difference
of the two sides of a comparison (wrapping around at M, reaching 0, the step limit) is a line too. Code before the loop
computes for how many rounds K no comparison changes its result. Within these rounds the lines are exact, by induction:
the comparisons have the results of round 0, so the formulas are the same. What depends on the memory is computed and
tested in every round as usual. A loop that ends by what it reads has no known K; `regions` are for these.

Which registers have strides is guessed, by running the rows on random values. Correctness does not rest on the guess:
the emitted rows show whether a stride follows from the others, and the code before the loop tests whether the
registers are on their lines (if not, it takes an ordinary step).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from llvmlite import ir

from nram.llvm import I1, I32, I64, Instructions, i32, i64
from nram.programs.interpret import Machine
from nram.programs.ir import Program, Row, carry_out
from nram.programs.native.flow import Decision, Flow, RowId
from nram.programs.native.instructions import emit_row

if TYPE_CHECKING:
    from nram.programs.native.llvm import Advance

LARGEST_STRIDE = 8
WARM_UP, OBSERVED = 3, 12  # rounds; registers that alternate should do so with a period that divides the second
LEAST_ROUNDS = 2  # fewer rounds are not worth the loop
LONGEST_CYCLE = 2  # rows
MOST_LOOPS = 16
FOREVER = (1 << 63) - 1


class Line(NamedTuple):
    """base + stride k in round k. The base is computed before the loop, in 64 bits, without wrapping."""

    base: Any
    stride: int


class Comparison(NamedTuple):
    """A comparison of two lines, a < b or a = b, with the line of a - b."""

    kind: Literal["less", "equal"]
    difference: Line
    holds: Any
    """In round 0."""


class _NoLoopError(Exception):
    """These rows are no loop with these strides. Without the stride of the register, if one is given, they may be."""

    def __init__(self, register: int | None):
        self.register = register


class StridedInstructions:
    """The primitives of the modules on lines, which are computed before the loop, and on ordinary values inside."""

    def __init__(self, before: ir.IRBuilder, inside: Instructions, round_index: Any, rounds: Any):
        self.before = before
        self.inside = inside
        self.round = round_index
        self.rounds = rounds
        """K: for this many rounds all comparisons that the loop relies on keep their results."""
        self.valid: Any = ir.Constant(I1, 1)
        self.size = Line(before.zext(inside.size, I64), 0)

    # ---- values

    def number(self, literal: int) -> Line:
        return Line(i64(literal), 0)

    def add(self, a: Any, b: Any) -> Any:
        if isinstance(a, Line) and isinstance(b, Line):
            return Line(self.before.add(a.base, b.base), a.stride + b.stride)
        return self.inside.add(self.here(a), self.here(b))

    def sub(self, a: Any, b: Any) -> Any:
        if isinstance(a, Line) and isinstance(b, Line):
            return Line(self.before.sub(a.base, b.base), a.stride - b.stride)
        return self.inside.sub(self.here(a), self.here(b))

    def multiply(self, a: Any, b: Any) -> Any:
        return self.inside.multiply(self.here(a), self.here(b))

    def divide(self, a: Any, b: Any) -> Any:
        return self.inside.divide(self.here(a), self.here(b))

    def within(self, value: Any) -> Any:
        return self.inside.within(self.here(value))

    def less(self, a: Any, b: Any) -> Any:
        if isinstance(a, Line) and isinstance(b, Line):
            return Comparison("less", self.sub(a, b), self.before.icmp_signed("<", a.base, b.base))
        return self.inside.less(self.here(a), self.here(b))

    def equal(self, a: Any, b: Any) -> Any:
        if isinstance(a, Line) and isinstance(b, Line):
            return Comparison("equal", self.sub(a, b), self.before.icmp_signed("==", a.base, b.base))
        return self.inside.equal(self.here(a), self.here(b))

    def choose(self, condition: Any, yes: Any, no: Any) -> Any:
        if isinstance(condition, Comparison) and isinstance(yes, Line) and isinstance(no, Line):
            if yes.stride == no.stride:
                self._rely_on(condition)
                return Line(self.before.select(condition.holds, yes.base, no.base), yes.stride)
            if condition.kind == "equal" and condition.difference.stride != 0:
                self.exclude(condition)  # a pointer that wraps around: rare, so the loop ends before it
                return no
        return self.inside.choose(self._truth_here(condition), self.here(yes), self.here(no))

    def read(self, pointer: Any) -> Any:
        return self.inside.read_at(self._index(pointer))

    def write(self, pointer: Any, value: Any) -> None:
        self.inside.write_at(self._index(pointer), self.here(value))

    def here(self, value: Any, at: ir.IRBuilder | None = None) -> Any:
        """The 32-bit value of this round."""
        if not isinstance(value, Line):
            return value
        return (at or self.inside.at).trunc(self._wide(value, at), I32)

    def _index(self, pointer: Any) -> Any:
        return self._wide(pointer) if isinstance(pointer, Line) else self.inside.at.zext(pointer, I64)

    def _wide(self, line: Line, at: ir.IRBuilder | None = None) -> Any:
        if line.stride == 0:
            return line.base
        builder: Any = at or self.inside.at
        distance = builder.mul(self.round, i64(line.stride), flags=["nsw"])
        return builder.add(line.base, distance, flags=["nsw"])

    def _truth_here(self, condition: Any) -> Any:
        if not isinstance(condition, Comparison):
            return condition
        sign = "<" if condition.kind == "less" else "=="
        return self.inside.at.icmp_signed(sign, self._wide(condition.difference), i64(0))

    # ---- how long comparisons keep their results

    def _rely_on(self, comparison: Comparison) -> None:
        """End the loop before this comparison changes its result."""
        stride = comparison.difference.stride
        if stride == 0:
            return
        distance, positive = self._distance(comparison.difference)
        if comparison.kind == "equal":
            rounds = self.before.select(comparison.holds, i64(1), self._ceiling(distance, abs(stride)))
            self._at_most(rounds, self.before.or_(positive, comparison.holds))
        elif stride > 0:  # true until a - b has come up to 0
            self._at_most(self._ceiling(distance, stride), comparison.holds)
        else:  # false until a - b has gone below 0
            beyond = self.before.add(distance, i64(1))
            self._at_most(self._ceiling(beyond, -stride), self.before.not_(comparison.holds))

    def exclude(self, comparison: Comparison) -> None:
        """End the loop before this equality becomes true."""
        stride = comparison.difference.stride
        if stride == 0:
            self.demand(self.before.not_(comparison.holds))
            return
        distance, _ = self._distance(comparison.difference)
        coming = self.before.icmp_signed(">=", distance, i64(0))
        self._at_most(self._ceiling(distance, abs(stride)), coming)

    def demand(self, condition: Any) -> None:
        """Enter the loop only if this condition holds."""
        self.valid = self.before.and_(self.valid, condition)

    def _distance(self, difference: Line) -> tuple[Any, Any]:
        """How far a difference is from 0, negative if it moves away from it; and whether that is positive."""
        zero = i64(0)
        distance = self.before.sub(zero, difference.base) if difference.stride > 0 else difference.base
        return distance, self.before.icmp_signed(">", distance, zero)

    def _ceiling(self, distance: Any, by: int) -> Any:
        if by == 1:
            return distance
        rounded = self.before.add(distance, i64(by - 1))
        return self.before.sdiv(rounded, i64(by))

    def _at_most(self, rounds: Any, when: Any) -> None:
        limit = self.before.select(when, rounds, i64(FOREVER))
        smaller = self.before.icmp_signed("<", limit, self.rounds)
        self.rounds = self.before.select(smaller, limit, self.rounds)


def add_loops(advance: Advance) -> dict[tuple[RowId, RowId], ir.Block]:
    """Add loops for the cycles of a program: the blocks to enter between the last row of a cycle and its first."""
    flow = advance.flow
    entries: dict[tuple[RowId, RowId], ir.Block] = {}
    for cycle in find_cycles(flow):
        edge = cycle[-1], cycle[0]
        if edge in entries:
            continue
        strides = observed_strides(advance.program, [flow.row(row_id) for row_id in cycle])
        entry = _try_loop(advance, cycle, strides)
        if entry is not None:
            entries[edge] = entry
        if len(entries) == MOST_LOOPS:
            break
    return entries


def find_cycles(flow: Flow) -> list[tuple[RowId, ...]]:
    """Rows that can follow each other in a cycle; short cycles first, each once."""
    order = {row_id: index for index, row_id in enumerate(flow.rows)}
    paths = [(row_id,) for row_id in flow.rows]
    cycles: list[tuple[RowId, ...]] = []
    for _ in range(LONGEST_CYCLE):
        cycles += [path for path in paths if path[0] in flow.followers(path[-1])]
        if len(cycles) >= MOST_LOOPS:
            break
        paths = [
            (*path, row_id)
            for path in paths
            for row_id in flow.followers(path[-1])
            if row_id not in path and order[row_id] > order[path[0]]
        ]
    return cycles


def observed_strides(program: Program, rows: Sequence[Row]) -> list[int | None]:
    """The average change of each register in a round of these rows, or None where it is not always the same."""
    rng = Random(0)
    size = 1009
    memory = rng.choices(range(size), k=size)
    seen: list[set[int]] = [set() for _ in program.registers]
    for _ in range(3):
        machine = Machine(program, memory)
        before = machine.registers = [rng.randrange(size) for _ in program.registers]
        for round_index in range(WARM_UP + OBSERVED):
            if round_index == WARM_UP:  # by now, registers that follow others with a delay are on their lines
                before = machine.registers
            for row in rows:
                machine.compute(row)
        for changes, old, new in zip(seen, before, machine.registers, strict=True):
            changes.add((new - old + size // 2) % size - size // 2)
    return [_stride(changes) for changes in seen]


def registers_from_memory(rows: Sequence[Row]) -> set[int]:
    """The registers whose values depend on what these rows read."""
    found: set[int] = set()
    while True:
        before = len(found)
        for row in rows:
            new = carry_out(row, found.__contains__, lambda module, given: module.memory == "reads" or any(given), _no)
            found |= {register for register, depends in enumerate(new.registers) if depends}
        if len(found) == before:
            return found


def _no(_: int) -> bool:
    return False


def _stride(changes: set[int]) -> int | None:
    change = changes.pop()
    whole = not changes and change % OBSERVED == 0 and abs(change) <= OBSERVED * LARGEST_STRIDE
    return change // OBSERVED if whole else None


def _try_loop(advance: Advance, cycle: Sequence[RowId], strides: list[int | None]) -> ir.Block | None:
    """The block before a loop, or None if the rows are not a loop. Strides that prove wrong are dropped."""
    while any(strides):
        blocks = len(advance.function.blocks)
        try:
            return _Loop(advance, cycle, strides).entry
        except _NoLoopError as problem:
            del advance.function.blocks[blocks:]
            if problem.register is None or strides[problem.register] is None:
                return None
            strides = [None if i == problem.register else stride for i, stride in enumerate(strides)]
    return None


class _Loop:
    """One loop while it is being built:

    entry   computes K, then enters the loop, or goes to the first row for an ordinary step
    round   carries out the rows; after each, the tests must lead to the next row of the cycle, or the loop ends
    """

    def __init__(self, advance: Advance, cycle: Sequence[RowId], strides: Sequence[int | None]):
        self.advance = advance
        self.cycle = cycle
        self.from_memory = registers_from_memory([advance.flow.row(row_id) for row_id in cycle])
        self.name = f"loop.{'.'.join(advance.blocks[row_id].name for row_id in cycle)}"
        self.entry, self.body = self._block("entry"), self._block("round")
        before = ir.IRBuilder(self.entry)
        at: Any = ir.IRBuilder(self.body)
        left = before.load(advance.left, typ=I64)
        round_index = at.phi(I64)
        steps = i64(len(cycle))
        inside = Instructions(at, advance.memory, advance.size)
        self.b = StridedInstructions(before, inside, round_index, before.udiv(left, steps))

        start: list[Any] = [
            at.load(register, typ=I32)
            if stride is None
            else Line(before.zext(before.load(register, typ=I32), I64), stride)
            for register, stride in zip(advance.registers, strides, strict=True)
        ]
        values = start
        for index, row_id in enumerate(cycle):
            self._rely_on_lines(values, self._path(index))
            if index > 0:
                self._leave_unless(values, index, relied_on=values)
            values = emit_row(advance.flow.row(row_id), values, self.b)
        self._close(start, values)
        for register, stride, value in zip(advance.registers, strides, values, strict=True):
            if stride is None:
                at.store(self.b.here(value), register)
        self._leave_unless(values, len(cycle), relied_on=start)
        following = at.add(round_index, i64(1), flags=["nuw", "nsw"])
        again = at.icmp_signed("<", following, self.b.rounds)
        round_index.add_incoming(i64(0), self.entry)
        round_index.add_incoming(following, at.block)
        at.cbranch(again, self.body, self._exit(values, len(cycle)))
        enough = before.icmp_signed(">=", self.b.rounds, i64(LEAST_ROUNDS))
        before.cbranch(before.and_(self.b.valid, enough), self.body, advance.blocks[cycle[0]])

    def _path(self, index: int) -> list[tuple[int, bool]]:
        """The flags that lead from the row before it to the row at this index of the cycle (at the end: its first)."""
        before, row = self.cycle[index - 1], self.cycle[index % len(self.cycle)]
        return shortest_path(self.advance.flow.decision(before), row[1])

    def _rely_on_lines(self, values: Sequence[Any], path: Sequence[tuple[int, bool]]) -> None:
        """Rely on the row being chosen in every round, as far as the tested registers are lines."""
        for register, zero in path:
            value = values[register]
            if isinstance(value, Line):
                comparison = self.b.equal(value, self.b.number(0))
                if not zero:
                    self.b.exclude(comparison)
                elif value.stride == 0:
                    self.b.demand(comparison.holds)
                else:
                    raise _NoLoopError(register)

    def _leave_unless(self, values: Sequence[Any], index: int, relied_on: Sequence[Any]) -> None:
        """Leave the loop unless the row at this index is chosen now; test the registers that are not lines."""
        at = self.b.inside.at
        for register, zero in self._path(index):
            if not isinstance(relied_on[register], Line):
                if register in self.from_memory:
                    raise _NoLoopError(None)
                value = self.b.here(values[register])
                right = at.icmp_unsigned("==" if zero else "!=", value, i32(0))
                following = self._block("on")
                at.cbranch(right, following, self._exit(values, index))
                at.position_at_end(following)

    def _close(self, start: Sequence[Any], values: Sequence[Any]) -> None:
        """After a round, the registers must be on their lines for the next."""
        for register, (old, new) in enumerate(zip(start, values, strict=True)):
            if isinstance(old, Line):
                if not isinstance(new, Line) or new.stride != old.stride:
                    raise _NoLoopError(register)
                expected = self.b.before.add(old.base, i64(old.stride))
                self.b.demand(self.b.before.icmp_signed("==", new.base, expected))

    def _exit(self, values: Sequence[Any], done: int) -> ir.Block:
        """A block that goes on with ordinary steps after this many rows of the round."""
        block = self._block("exit")
        at = ir.IRBuilder(block)
        advance, whole = self.advance, i64(len(self.cycle))
        advance.store_registers(at, [self.b.here(value, at) for value in values])
        steps = at.add(at.mul(self.b.round, whole), i64(done))
        at.store(at.sub(at.load(advance.left, typ=I64), steps), advance.left)
        at.branch(advance.following[self.cycle[done - 1]])
        return block

    def _block(self, name: str) -> ir.Block:
        return self.advance.function.append_basic_block(f"{self.name}.{name}")


def shortest_path(decision: Decision, row: int) -> list[tuple[int, bool]]:
    """The fewest flags that make a decision end at a row."""
    paths: list[tuple[Decision, list[tuple[int, bool]]]] = [(decision, [])]
    seen: set[int] = set()
    for node, path in paths:  # the list grows during the loop
        if isinstance(node, int):
            if node == row:
                return path
        elif id(node) not in seen:
            seen.add(id(node))
            paths += [(node.zero, [*path, (node.register, True)]), (node.other, [*path, (node.register, False)])]
    raise ValueError(f"the decision never ends at row {row}")
