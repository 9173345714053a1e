"""Simplification: the same program, as short as a person would write it.

The pipeline, each pass with what it takes away:

    Table          rows that cannot be reached, and per row: constants, copies, common values, dead modules
                   (circuit.py with the rules of rules.py and the facts of facts.py); registers that do not matter
    decision_list  equal rows, and flags that do not matter
    states         states that do the same
    registers      those that are never used

The meaning that is kept: for every memory and every step limit the same memory, number of steps and halting; with
`keep_registers`, where the program halts, also the final values of the registers that are left.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from nram.programs.ir import Operation, Program, Register, Row, Value
from nram.programs.simplify.circuit import Body
from nram.programs.simplify.conditions import decision_list
from nram.programs.simplify.table import Place, Table

__all__ = ["Size", "simplify", "size_of"]

MOST_ROUNDS = 8


@dataclass(frozen=True)
class Size:
    registers: int
    states: int
    rows: int
    operations: int

    def __str__(self) -> str:
        parts = {
            "register": self.registers,
            "state": self.states,
            "row": self.rows,
            "operation": self.operations,
        }
        return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in parts.items())


def size_of(program: Program) -> Size:
    return Size(len(program.registers), len(program.states), program.rows, program.operations)


def simplify(program: Program, *, keep_registers: bool = False, visited: Collection[Place] | None = None) -> Program:
    """The same program, shorter.

    `visited` names the places (state and flags) that the inputs of interest lead to: the others then count as
    unreachable, and the result is the same only for inputs that stay within those places.
    """
    result = program
    for round_ in range(MOST_ROUNDS):
        shorter = _once(result, keep_registers, visited if round_ == 0 else None)
        if shorter == result:
            break
        result = shorter
    return replace(result, verified=program.verified) if result.states == program.states else result


def _once(program: Program, keep_registers: bool, visited: Collection[Place] | None) -> Program:
    table = Table(program, keep_registers, visited)
    states = sorted(table.tested)
    numbers = {state: number for number, state in enumerate(states)}
    rows = []
    for state in states:
        clusters = table.clusters(state)
        tested = sorted(table.tested[state])
        written = []
        for cube, number in decision_list([cluster.flags for cluster in clusters]):
            when: list[bool | None] = [None] * table.count
            for register, condition in zip(tested, cube, strict=True):
                when[register] = condition
            body = table.with_registers_kept(clusters[number])
            written.append(_row(tuple(when), body, numbers, numbers[state]))
        rows.append(tuple(written))
    used = set().union(*table.live.values())
    return _without_registers(replace(program, states=_merged_states(tuple(rows)), verified=()), used)


def _row(when: tuple[bool | None, ...], body: Body, numbers: dict[int, int], own: int) -> Row:
    new = tuple(Register(i) if value is None else value for i, value in enumerate(body.registers))
    return Row(when, body.operations, new, body.halt, own if body.next_state is None else numbers[body.next_state])


def _merged_states(states: tuple[tuple[Row, ...], ...]) -> tuple[tuple[Row, ...], ...]:
    """States that do the same become one: those whose rows are equal up to states of which this is assumed."""
    classes = [0] * len(states)
    while True:
        kinds: dict[tuple, int] = {}
        refined = []
        for number, rows in enumerate(states):
            seen = tuple(replace(row, next_state=0 if row.halt else classes[row.next_state]) for row in rows)
            refined.append(kinds.setdefault((classes[number], seen), len(kinds)))
        if len(kinds) == len(set(classes)):
            break
        classes = refined
    firsts = [classes.index(kind) for kind in range(len(set(classes)))]
    return tuple(
        tuple(replace(row, next_state=own if row.halt else classes[row.next_state]) for row in states[first])
        for own, first in enumerate(firsts)
    )


def _without_registers(program: Program, used: set[int]) -> Program:
    """Only the registers that are used; one at least, since a machine has one."""
    kept = sorted(used) or [0]
    places = {old: new for new, old in enumerate(kept)}

    def renamed(value: Value) -> Value:
        return Register(places[value.index]) if isinstance(value, Register) else value

    def shrunk(row: Row) -> Row:
        operations = tuple(Operation(op.module, tuple(map(renamed, op.arguments))) for op in row.operations)
        return replace(
            row,
            when=tuple(row.when[old] for old in kept),
            operations=operations,
            registers=tuple(renamed(row.registers[old]) for old in kept),
        )

    states = tuple(tuple(map(shrunk, rows)) for rows in program.states)
    return replace(program, registers=tuple(program.registers[old] for old in kept), states=states)
