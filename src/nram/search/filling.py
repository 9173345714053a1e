"""The program of a table of a sketch, as the user gets it: what is written as it stands, and the holes filled.

What the search has put in is made short. In a row whose body is a hole, every row is simplified, and equal ones become
one; conditions that the search added are left out where they tell nothing apart. What is written is not simplified:
'nram simplify' does that, if the user wants it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from nram.programs.ir import Conditions, Flags, Program, Register, Row
from nram.programs.simplify.circuit import kept_registers
from nram.programs.simplify.conditions import decision_list
from nram.programs.simplify.specialise import visited_situations
from nram.programs.simplify.table import Cluster, Situation, Table
from nram.search.instances import Pool
from nram.search.template import Template

Ordered = list[tuple[int, Conditions]]
"""The rows of a state of the sketch in their order, and when each applies."""


def filled(template: Template, genes: np.ndarray, pool: Pool) -> Program:
    """The sketch with its holes filled. In holes, rows that no instance of the pool leads to are left out."""
    program = template.program(genes, origin="searched")
    visited: set[Situation] = set()
    for instance in pool.instances:
        visited |= visited_situations(program, instance, instance.steps)
    table = _Exact(program, False, visited) if any(one.row.anything for one in template.rows) else None
    states = []
    for state in range(template.states):
        numbers = [index for index, one in enumerate(template.rows) if one.state == state]
        seen = [flags for number, flags in sorted(visited) if number == state]
        order = _needed(template, [(index, template.conditions(genes, index)) for index in numbers], seen)
        rows: list[Row] = []
        for index, when in order:
            if not template.rows[index].row.anything:
                rows.append(template.filled_row(genes, template.first_genes[index], when))
                continue
            here = [(state, flags) for flags in seen if _applying(order, flags) == index]
            if table is not None and here:
                rows += _rows(table, here, when)
            elif not template.rows[index].row.open_conditions:  # nothing leads there
                rows.append(Row(when, (), tuple(map(Register, range(template.registers))), True, state))
        states.append(tuple(rows))
    return Program(template.sketch.registers, tuple(states), origin="searched")


class _Exact(Table):
    """A table in which every register matters: rows that are written may use any, and conditions test any."""

    def _grow(self) -> None:
        self.live = {situation: set(range(self.count)) for situation in self.rows}


def _applying(order: Ordered, flags: Flags) -> int:
    """The row of the sketch that applies."""
    return next(index for index, when in order if _holds(when, flags))


def _holds(when: Conditions, flags: Flags) -> bool:
    return all(wish is None or wish == flag for wish, flag in zip(when, flags, strict=True))


def _needed(template: Template, order: Ordered, seen: Collection[Flags]) -> Ordered:
    """The same rows without the conditions that the search has added and that no flags seen need."""
    before = [_applying(order, flags) for flags in seen]
    for place, (index, _) in enumerate(order):
        row = template.rows[index].row
        for register, written in enumerate(row.when):
            if row.any_when and written is None:
                when = order[place][1]
                fewer = (*when[:register], None, *when[register + 1 :])
                shorter = [*order[:place], (index, fewer), *order[place + 1 :]]
                if [_applying(shorter, flags) for flags in seen] == before:
                    order = shorter
    return order


def _rows(table: Table, here: Sequence[Situation], when: Conditions) -> list[Row]:
    """The rows for these situations, all of one row of the sketch: as few as the simplifier can tell apart."""
    clusters: list[Cluster] = []
    for situation in here:
        for number, cluster in enumerate(clusters):
            together = [*cluster.situations, situation]
            body = table.common_body(together)
            if body is not None:
                clusters[number] = Cluster(body, together, [*cluster.flags, situation[1]])
                break
        else:
            clusters.append(Cluster(table.body(situation), [situation], [situation[1]]))
    rows = []
    for conditions, number in decision_list([cluster.flags for cluster in clusters]):
        body = table.with_registers_kept(clusters[number])
        both = tuple(mine if mine is not None else added for mine, added in zip(when, conditions, strict=True))
        after = here[0][0] if body.next_state is None else body.next_state
        rows.append(Row(both, body.operations, kept_registers(body), body.halt, after))
    return rows
