"""The analysis of a whole table: which situations occur, what is known and what matters there, which rows are alike.

A *situation* is a state with one combination of flags. The analyses compute least fixed points: at first only the start
is reachable and no register matters; then both sets grow until they agree with every row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

from nram.errors import UsageError
from nram.programs.ir import Flags, Program, Register, Row
from nram.programs.simplify.circuit import Body, Circuit, normal_form, registers_used
from nram.programs.simplify.facts import NOT_ZERO, ZERO, Facts, at_start, join

MOST_SITUATIONS = 1024  # the work grows with their square
Situation = tuple[int, Flags]  # a state and the flags


class Cluster(NamedTuple):
    """Situations of one state that share one body, and the flags of the tested registers there."""

    body: Body
    situations: list[Situation]
    flags: list[Flags]


class Table:
    """A program unfolded into the situations that it can reach."""

    def __init__(self, program: Program, keep_registers: bool, visited: Collection[Situation] | None):
        self.program = program
        self.keep_registers = keep_registers
        self.count = len(program.registers)
        self.rows: dict[Situation, Row] = {}
        self.facts: dict[Situation, Facts] = {}
        self.following: dict[Situation, set[Situation]] = {}
        self.form = cache(normal_form)
        self._reach(visited)
        # `live[situation]`: the registers whose values matter when a step begins there.
        # `tested[state]`: the registers whose flags tell the rows of the state apart.
        self.live: dict[Situation, set[int]] = {situation: set() for situation in self.rows}
        self.tested: dict[int, set[int]] = {situation[0]: set() for situation in self.rows}
        self._grow()

    # ---- reachability and facts

    def _reach(self, visited: Collection[Situation] | None) -> None:
        start: Situation = (0, (True,) * self.count)
        self.facts[start] = at_start(self.count)
        waiting: list[Situation] = [start]
        while waiting:
            situation = waiting.pop()
            state, flags = situation
            if situation not in self.rows:
                self.rows[situation] = self.program.states[state][self.program.row_for(state, flags)]
                self.following[situation] = set()
            row = self.rows[situation]
            if row.halt:
                continue
            for flags_after, facts in _after(row, self.facts[situation]):
                target = (row.next_state, flags_after)
                if visited is not None and target not in visited:
                    continue
                if target not in self.facts and len(self.facts) == MOST_SITUATIONS:
                    flags = f"{self.count} registers may have more than {MOST_SITUATIONS} combinations of flags"
                    raise UsageError(f"{self.program.name} cannot be simplified: its {flags}")
                self.following[situation].add(target)
                joined = self.facts[target].joined(facts) if target in self.facts else facts
                if joined != self.facts.get(target):
                    self.facts[target] = joined
                    if target not in waiting:
                        waiting.append(target)

    def situations(self, state: int) -> list[Situation]:
        return [situation for situation in self.rows if situation[0] == state]

    # ---- liveness

    def live_after(self, situation: Situation) -> tuple[bool, ...]:
        if self.rows[situation].halt:
            return (self.keep_registers,) * self.count
        live = set().union(*(self.live[target] for target in self.following[situation]))
        return tuple(i in live for i in range(self.count))

    def body(self, situation: Situation) -> Body:
        return self.form(self.rows[situation], self.facts[situation], self.live_after(situation))

    def _grow(self) -> None:
        changed = True
        while changed:
            changed = False
            for situation in self.rows:
                changed |= self._matters(situation, registers_used(self.body(situation)) | self.tested[situation[0]])
            if changed:
                continue
            for state in self.tested:
                tested = self._flags_needed(state)
                changed |= not tested <= self.tested[state]
                self.tested[state] |= tested
            if changed:
                continue
            # A body shared by several situations may use a register that does not matter in one of them alone.
            for state in self.tested:
                for cluster in self.clusters(state):
                    for situation in cluster.situations:
                        changed |= self._matters(situation, registers_used(cluster.body))
                if changed:
                    break  # liveness has changed, and so may the tested registers of other states

    def _matters(self, situation: Situation, registers: set[int]) -> bool:
        """Note that these registers matter in a situation; return whether that is new."""
        new = not registers <= self.live[situation]
        self.live[situation] |= registers
        return new

    def _flags_needed(self, state: int) -> set[int]:
        """Registers whose flags suffice to choose a row; no single one can be left out."""
        situations = self.situations(state)
        needed = {i for i in range(self.count) if len({flags[i] for _, flags in situations}) > 1}
        kept = set(self.tested[state])
        for register in sorted(needed - kept, reverse=True):
            fewer = needed - {register}
            if all(self.common_body(group) is not None for group in self.groups(state, fewer).values()):
                needed = fewer
        return needed | kept

    def groups(self, state: int, registers: set[int]) -> dict[Flags, list[Situation]]:
        """The situations of a state, grouped by the flags of these registers."""
        found: dict[Flags, list[Situation]] = {}
        for situation in self.situations(state):
            found.setdefault(tuple(situation[1][i] for i in sorted(registers)), []).append(situation)
        return found

    # ---- rows that are alike

    def common_body(self, situations: Sequence[Situation]) -> Body | None:
        """One body that does what the program does in all of these situations, or None."""
        if len(situations) == 1:
            return self.body(situations[0])
        if len({self.rows[situation].halt for situation in situations}) > 1:
            return None
        facts = join([self.facts[situation] for situation in situations])
        live = tuple(map(any, zip(*map(self.live_after, situations), strict=True)))
        best = None
        for row in dict.fromkeys(self.rows[situation] for situation in situations):
            body = self.form(row, facts, live)
            if all(self._serves(body, situation) for situation in situations) and (
                best is None or len(body.operations) < len(best.operations)
            ):
                best = body
        return best

    def _serves(self, body: Body, situation: Situation) -> bool:
        return self.form(body, self.facts[situation], self.live_after(situation)) == self.body(situation)

    def clusters(self, state: int) -> list[Cluster]:
        """The bodies of a state, each with its situations."""
        clusters: list[Cluster] = []
        groups = self.groups(state, self.tested[state])
        for flags, situations in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            for index, cluster in enumerate(clusters):
                together = [*cluster.situations, *situations]
                body = self.common_body(together)
                if body is not None:
                    clusters[index] = Cluster(body, together, [*cluster.flags, flags])
                    break
            else:
                body = self.common_body(situations)
                assert body is not None, "the tested flags tell different rows apart"
                clusters.append(Cluster(body, situations, [flags]))
        return clusters

    def with_registers_kept(self, cluster: Cluster) -> Body:
        """The cluster's body, without updates that set a register to its current value."""
        circuit = Circuit(join([self.facts[situation] for situation in cluster.situations]))
        body = cluster.body
        numbers = circuit.evaluate(body.operations, body.registers)
        new = tuple(
            Register(i) if number == circuit.register(i) and self._matters_throughout(i, cluster) else body.registers[i]
            for i, number in enumerate(numbers)
        )
        return replace(body, registers=new)

    def _matters_throughout(self, register: int, cluster: Cluster) -> bool:
        """Whether the register certainly holds the same value there as in the original program."""
        return all(register in self.live[situation] for situation in cluster.situations)


def _after(row: Row, facts: Facts) -> Iterator[tuple[Flags, Facts]]:
    """The flags that may follow a row, each with the facts that then hold."""
    circuit = Circuit(facts)
    numbers = [number for number in circuit.evaluate(row.operations, row.registers) if number is not None]
    same = tuple(numbers.index(number) for number in numbers)
    different = sorted(set(numbers))
    for zero in product((True, False), repeat=len(different)):
        masks = {
            number: circuit.masks[number] & (ZERO if is_zero else NOT_ZERO)
            for number, is_zero in zip(different, zero, strict=True)
        }
        if all(masks.values()):
            flags = dict(zip(different, zero, strict=True))
            known = Facts(tuple(masks[number] for number in numbers), same)
            yield tuple(flags[number] for number in numbers), known
