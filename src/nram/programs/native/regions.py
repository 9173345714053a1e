"""Rows that can follow each other again and again, without the tests of every single step.

For such a group of rows, code before it computes for how many steps no sum can wrap around (see `bounds`) and the step
limit is not reached. For so many steps the rows run as a copy in which these sums are plain additions, whatever row
follows which. Then the room is computed again. When there is none, the ordinary rows take a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from nram.llvm import I32, I64, Instructions, i32, i64
from nram.modules import Module
from nram.programs.ir import Row, carry_out, emitted
from nram.programs.native.bounds import Need, Room, room_of
from nram.programs.native.flow import Flow, RowId

if TYPE_CHECKING:
    from nram.programs.native.llvm import Advance

Edge = tuple[RowId, RowId]


@dataclass(frozen=True)
class Group:
    """Rows that can follow each other again and again while no sum wraps around."""

    rows: tuple[RowId, ...]
    above: Room
    below: Room
    needs: dict[RowId, list[Need]]
    above_zero: dict[RowId, frozenset[int]]
    """The sums of each row that are not 0 if they do not wrap around."""


def groups_of(flow: Flow) -> Iterator[Group]:
    """The largest groups.

    If a pointer does not wrap around to 0, fewer rows can follow. In a smaller group of rows fewer sums wrap around. So
    this starts with all rows.
    """
    waiting = _cycles(flow.rows, flow.followers)
    while waiting:
        group = _group(flow, waiting.pop())
        smaller = _cycles(group.rows, lambda row_id, group=group: flow.followers(row_id, group.above_zero[row_id]))
        if smaller == [group.rows]:
            yield group
        else:
            waiting += smaller


def _group(flow: Flow, rows: tuple[RowId, ...]) -> Group:
    above, below, needs = room_of(
        [(flow.row(row_id), flow.known_before(row_id)) for row_id in rows], len(flow.program.registers)
    )
    of_rows = dict(zip(rows, needs, strict=True))
    above_zero = {row_id: frozenset(_above_zero(flow.row(row_id), of_rows[row_id])) for row_id in rows}
    return Group(rows, above, below, of_rows, above_zero)


def _above_zero(row: Row, needs: Sequence[Need]) -> Iterator[int]:
    for index, (operation, need) in enumerate(zip(row.operations, needs, strict=True)):
        by_constant = any(argument.resolve(_no, _no, bool) for argument in operation.arguments)
        if need is not None and need[0] == "above" and (operation.module == "INC" or by_constant):
            yield index


def _no(_: int) -> bool:
    return False


def _cycles(rows: Sequence[RowId], followers: Callable[[RowId], list[RowId]]) -> list[tuple[RowId, ...]]:
    """The largest groups of rows of which each can follow, at some time, after each (Kosaraju's algorithm)."""
    among = set(rows)
    after = {row_id: [other for other in followers(row_id) if other in among] for row_id in rows}
    before: dict[RowId, list[RowId]] = {row_id: [] for row_id in rows}
    for row_id, others in after.items():
        for other in others:
            before[other].append(row_id)
    seen: set[RowId] = set()
    left = [row_id for start in rows for row_id in _walked(start, after, seen)]
    seen = set()
    groups = [tuple(sorted(_walked(start, before, seen))) for start in reversed(left)]
    return [group for group in groups if len(group) > 1 or (group and group[0] in after[group[0]])]


def _walked(start: RowId, edges: dict[RowId, list[RowId]], seen: set[RowId]) -> list[RowId]:
    """The rows that can be reached and were not seen, in the order in which a depth-first walk leaves them."""
    if start in seen:
        return []
    seen.add(start)
    path, left = [(start, iter(edges[start]))], []
    while path:
        row_id, others = path[-1]
        other = next((other for other in others if other not in seen), None)
        if other is None:
            left.append(row_id)
            path.pop()
        else:
            seen.add(other)
            path.append((other, iter(edges[other])))
    return left


def add_regions(advance: Advance, loops: dict[Edge, ir.Block]) -> dict[Edge, ir.Block]:
    """Add a region for every group of rows: the blocks to enter between two rows instead of the second."""
    flow = advance.flow
    entries: dict[RowId, ir.Block] = {}
    for group in groups_of(flow):
        if group.above.registers or group.below.registers:
            entries |= _Region(advance, group, loops).entries
    edges = {(row_id, follower): follower for row_id in flow.rows for follower in flow.followers(row_id)}
    return {edge: entries[follower] for edge, follower in edges.items() if follower in entries}


class _Region:
    """One region while it is being built. `fuel` is for how many steps there is still room."""

    def __init__(self, advance: Advance, group: Group, loops: dict[Edge, ir.Block]):
        self.advance, self.group, self.loops = advance, group, loops
        self.fuel = advance.local(I64, "fuel")
        self.rows = {row_id: self._block(row_id, "quick") for row_id in group.rows}
        self.entries = {row_id: self._block(row_id, "enter") for row_id in group.rows}
        for row_id in group.rows:
            self._enter(row_id)
            self._row(row_id)

    def _block(self, row_id: RowId, name: str) -> ir.Block:
        return self.advance.function.append_basic_block(f"{self.advance.blocks[row_id].name}.{name}")

    def _enter(self, row_id: RowId) -> None:
        """Compute the fuel; without any, take an ordinary step."""
        advance, at = self.advance, ir.IRBuilder(self.entries[row_id])
        left = at.load(advance.left, typ=I64)
        fuel = left
        size = at.zext(advance.size, I64)
        for room, is_above in ((self.group.above, True), (self.group.below, False)):
            if room.registers:
                fuel = self._least(at, fuel, self._steps(at, room, is_above, size))
        at.store(fuel, self.fuel)
        work = self._block(row_id, "fuelled")
        at.cbranch(at.icmp_signed(">", fuel, i64(0)), work, advance.blocks[row_id])
        at.position_at_end(work)
        at.store(at.sub(left, fuel), advance.left)
        at.branch(self.rows[row_id])

    def _steps(self, at: ir.IRBuilder, room: Room, is_above: bool, size: Any) -> Any:
        """For how many steps there is room on one side; 0 or less if for none."""
        values = [at.zext(at.load(self.advance.registers[r], typ=I32), I64) for r in sorted(room.registers)]
        values += [i64(number) for number in sorted(room.numbers)]
        sign = ">" if is_above else "<"
        nearest = values[0]
        for value in values[1:]:
            nearest = at.select(at.icmp_signed(sign, value, nearest), value, nearest)
        room_left = at.sub(at.sub(size, i64(1)), nearest) if is_above else nearest
        after_first = at.sub(room_left, i64(room.margin))
        if room.per_step == 0:
            enough = at.icmp_signed(">=", after_first, i64(0))
            return at.select(enough, i64((1 << 63) - 1), i64(0))
        if room.per_step > 1:
            # Rounded down: below 0 it stays below 0.
            after_first = at.ashr(after_first, i64((room.per_step - 1).bit_length()))
        return at.add(after_first, i64(1))

    def _least(self, at: ir.IRBuilder, a: Any, b: Any) -> Any:
        return at.select(at.icmp_signed("<", a, b), a, b)

    def _row(self, row_id: RowId) -> None:
        advance, row, block = self.advance, self.advance.flow.row(row_id), self.rows[row_id]
        at = ir.IRBuilder(block)
        work = self._block(row_id, "work")
        fuel = at.load(self.fuel, typ=I64)
        at.cbranch(at.icmp_unsigned("==", fuel, i64(0)), self.entries[row_id], work).set_weights([1, 1 << 20])
        at.position_at_end(work)
        at.store(at.sub(fuel, i64(1)), self.fuel)
        before = [at.load(register, typ=I32) for register in advance.registers]
        advance.store_registers(at, self._new_registers(row_id, row, before, at))
        places: dict[RowId, ir.Block] = {}
        above_zero = self.group.above_zero[row_id]
        for follower in advance.flow.followers(row_id, above_zero):
            loop = self.loops.get((row_id, follower))
            if loop is None and follower in self.rows:
                places[follower] = self.rows[follower]
            else:
                places[follower] = self._leave(row_id, advance.blocks[follower] if loop is None else loop)
        instead = {(row_id, follower): place for follower, place in places.items()}
        at.branch(advance.tests(row_id, advance.flow.decision(row_id, above_zero), instead))

    def _leave(self, row_id: RowId, to: ir.Block) -> ir.Block:
        """Give back the fuel."""
        block = self._block(row_id, "leave")
        at = ir.IRBuilder(block)
        left = self.advance.left
        at.store(at.add(at.load(left, typ=I64), at.load(self.fuel, typ=I64)), left)
        at.branch(to)
        return block

    def _new_registers(self, row_id: RowId, row: Row, before: list[Any], at: Any) -> list[Any]:
        b = Instructions(at, self.advance.memory, self.advance.size)
        needs = iter(self.group.needs[row_id])

        def apply(module: Module, given: list[Any]) -> Any:
            if next(needs) is None:
                return emitted(b, module, given)
            x, by = given if len(given) == 2 else (given[0], i32(1))
            return at.add(x, by, flags=["nuw"]) if module.name in ("INC", "ADD") else at.sub(x, by, flags=["nuw"])

        return carry_out(row, before.__getitem__, apply, b.number).registers
