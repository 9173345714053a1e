"""Simplification: a shorter program that does the same.

The passes, with what each removes:

    Table          unreachable rows; in every row constants, copies, common values and dead modules (circuit.py with
                   the rules of rules.py and the facts of facts.py); registers that do not matter
    decision_list  equal rows, and conditions that do not matter
    states         states that do the same
    registers      registers that are never used

For every memory and step limit the result has the same memory, number of steps and halting. With `keep_registers`,
the registers that remain also have the same final values when the program halts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from nram.programs.ir import Operation, Program, Register, Row, Value
from nram.programs.simplify.circuit import kept_registers
from nram.programs.simplify.conditions import decision_list
from nram.programs.simplify.table import Situation, Table

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


def simplify(
    program: Program, *, keep_registers: bool = False, visited: Collection[Situation] | None = None
) -> Program:
    """A shorter program that does the same.

    `visited` are the situations (state and flags) that the inputs of interest lead to. All others then count as
    unreachable, and the result does the same only on inputs that stay within these situations.
    """
    result = program
    for round_ in range(MOST_ROUNDS):
        shorter = _once(result, keep_registers, visited if round_ == 0 else None)
        if shorter == result:
            break
        result = shorter
    return replace(result, verified=program.verified) if result.states == program.states else result


def _once(program: Program, keep_registers: bool, visited: Collection[Situation] | None) -> Program:
    table = Table(program, keep_registers, visited)
    states = sorted(table.tested)
    new_states = {state: index for index, state in enumerate(states)}
    rows = []
    for state in states:
        clusters = table.clusters(state)
        tested = sorted(table.tested[state])
        written = []
        for conditions, index in decision_list([cluster.flags for cluster in clusters]):
            when: list[bool | None] = [None] * table.count
            for register, condition in zip(tested, conditions, strict=True):
                when[register] = condition
            body = table.with_registers_kept(clusters[index])
            after = new_states[state if body.next_state is None else body.next_state]
            written.append(Row(tuple(when), body.operations, kept_registers(body), body.halt, after))
        rows.append(tuple(written))
    used = set().union(*table.live.values())
    return _without_registers(replace(program, states=_merged_states(tuple(rows)), verified=()), used)


def _merged_states(states: tuple[tuple[Row, ...], ...]) -> tuple[tuple[Row, ...], ...]:
    """Merge states that do the same, by partition refinement."""
    classes = [0] * len(states)
    while True:
        kinds: dict[tuple, int] = {}
        refined = []
        for old, rows in zip(classes, states, strict=True):
            seen = tuple(replace(row, next_state=0 if row.halt else classes[row.next_state]) for row in rows)
            refined.append(kinds.setdefault((old, seen), len(kinds)))
        if len(kinds) == len(set(classes)):
            break
        classes = refined
    firsts = [classes.index(kind) for kind in range(len(set(classes)))]
    return tuple(
        tuple(replace(row, next_state=state if row.halt else classes[row.next_state]) for row in states[first])
        for state, first in enumerate(firsts)
    )


def _without_registers(program: Program, used: set[int]) -> Program:
    """Drop the registers that are not used; a program keeps at least one."""
    kept = sorted(used) or [0]
    new_index = {old: new for new, old in enumerate(kept)}

    def renamed(value: Value) -> Value:
        return Register(new_index[value.index]) if isinstance(value, Register) else value

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
