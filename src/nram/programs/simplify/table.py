"""The whole table: which flags can occur where, what is known there, what matters there, and which rows are alike.

A *place* is a state with one combination of flags. The analyses start from the least they can: no place is
reachable but the first, no register matters; and they grow until they agree with every row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

from nram.errors import UsageError
from nram.programs.ir import Program, Register, Row
from nram.programs.simplify.circuit import Body, Circuit, normal_form, registers_used
from nram.programs.simplify.conditions import Flags
from nram.programs.simplify.facts import NOT_ZERO, ZERO, Facts, at_start, join

MOST_PLACES = 1024  # the work grows with their square
Place = tuple[int, Flags]  # of each register, whether it is 0


class Cluster(NamedTuple):
    """Places of one state that one body serves, and the flags of the tested registers there."""

    body: Body
    places: list[Place]
    flags: list[Flags]


class Table:
    """A program spread out over the places that it can reach."""

    def __init__(self, program: Program, keep_registers: bool, visited: Collection[Place] | None):
        self.program = program
        self.keep_registers = keep_registers
        self.count = len(program.registers)
        self.rows: dict[Place, Row] = {}
        self.facts: dict[Place, Facts] = {}
        self.following: dict[Place, set[Place]] = {}
        self.form = cache(normal_form)
        self._reach(visited)
        # `live[place]`: the registers whose values matter when a step begins there, and `tested[state]`: those
        # whose flags tell its rows apart.
        self.live: dict[Place, set[int]] = {place: set() for place in self.rows}
        self.tested: dict[int, set[int]] = {place[0]: set() for place in self.rows}
        self._grow()

    # ---- what can be reached, and what is known there

    def _reach(self, visited: Collection[Place] | None) -> None:
        start: Place = (0, (True,) * self.count)
        self.facts[start] = at_start(self.count)
        waiting: list[Place] = [start]
        while waiting:
            place = waiting.pop()
            state, flags = place
            if place not in self.rows:
                self.rows[place] = self.program.states[state][self.program.row_for(state, flags)]
                self.following[place] = set()
            row = self.rows[place]
            if row.halt:
                continue
            for flags_after, facts in _after(row, self.facts[place]):
                target = (row.next_state, flags_after)
                if visited is not None and target not in visited:
                    continue
                if target not in self.facts and len(self.facts) == MOST_PLACES:
                    flags = f"{self.count} registers may have more than {MOST_PLACES} combinations of flags"
                    raise UsageError(f"{self.program.name} cannot be simplified: its {flags}")
                self.following[place].add(target)
                joined = self.facts[target].joined(facts) if target in self.facts else facts
                if joined != self.facts.get(target):
                    self.facts[target] = joined
                    if target not in waiting:
                        waiting.append(target)

    def places(self, state: int) -> list[Place]:
        return [place for place in self.rows if place[0] == state]

    # ---- what matters

    def live_after(self, place: Place) -> tuple[bool, ...]:
        if self.rows[place].halt:
            return (self.keep_registers,) * self.count
        live = set().union(*(self.live[target] for target in self.following[place]))
        return tuple(i in live for i in range(self.count))

    def body(self, place: Place) -> Body:
        return self.form(self.rows[place], self.facts[place], self.live_after(place))

    def _grow(self) -> None:
        changed = True
        while changed:
            changed = False
            for place in self.rows:
                changed |= self._matters(place, registers_used(self.body(place)) | self.tested[place[0]])
            if changed:
                continue
            for state in self.tested:
                tested = self._flags_needed(state)
                changed |= not tested <= self.tested[state]
                self.tested[state] |= tested
            if changed:
                continue
            # A body that serves several places may use a register that one of them could do without.
            for state in self.tested:
                for cluster in self.clusters(state):
                    for place in cluster.places:
                        changed |= self._matters(place, registers_used(cluster.body))
                if changed:
                    break  # what matters has changed, and with it what tells the rows of other states apart

    def _matters(self, place: Place, registers: set[int]) -> bool:
        """Note that these registers matter at a place; whether that is news."""
        news = not registers <= self.live[place]
        self.live[place] |= registers
        return news

    def _flags_needed(self, state: int) -> set[int]:
        """Registers whose flags suffice to choose a row; none of them could be left out alone."""
        places = self.places(state)
        needed = {i for i in range(self.count) if len({flags[i] for _, flags in places}) > 1}
        kept = set(self.tested[state])
        for register in sorted(needed - kept, reverse=True):
            fewer = needed - {register}
            if all(self.common_body(group) is not None for group in self.groups(state, fewer).values()):
                needed = fewer
        return needed | kept

    def groups(self, state: int, registers: set[int]) -> dict[Flags, list[Place]]:
        """The places of a state by the flags of these registers alone."""
        found: dict[Flags, list[Place]] = {}
        for place in self.places(state):
            found.setdefault(tuple(place[1][i] for i in sorted(registers)), []).append(place)
        return found

    # ---- rows that are alike

    def common_body(self, places: Sequence[Place]) -> Body | None:
        """One body that does in all these places what is done there, or None."""
        if len(places) == 1:
            return self.body(places[0])
        if len({self.rows[place].halt for place in places}) > 1:
            return None
        facts = join([self.facts[place] for place in places])
        live = tuple(any(parts) for parts in zip(*(self.live_after(place) for place in places), strict=True))
        best = None
        for row in dict.fromkeys(self.rows[place] for place in places):
            body = self.form(row, facts, live)
            if all(self._serves(body, place) for place in places) and (
                best is None or len(body.operations) < len(best.operations)
            ):
                best = body
        return best

    def _serves(self, body: Body, place: Place) -> bool:
        return self.form(body, self.facts[place], self.live_after(place)) == self.body(place)

    def clusters(self, state: int) -> list[Cluster]:
        """The bodies of a state, each with the places it serves."""
        clusters: list[Cluster] = []
        groups = self.groups(state, self.tested[state])
        for flags, places in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            for number, cluster in enumerate(clusters):
                together = [*cluster.places, *places]
                body = self.common_body(together)
                if body is not None:
                    clusters[number] = Cluster(body, together, [*cluster.flags, flags])
                    break
            else:
                body = self.common_body(places)
                assert body is not None, "flags that are tested tell different rows apart"
                clusters.append(Cluster(body, places, [flags]))
        return clusters

    def with_registers_kept(self, cluster: Cluster) -> Body:
        """The cluster's body, where a register that is set to what it holds anyway is left alone."""
        circuit = Circuit(join([self.facts[place] for place in cluster.places]))
        body = cluster.body
        numbers = circuit.evaluate(body.operations, body.registers)
        new = tuple(
            Register(i) if number == circuit.register(i) and self._matters_throughout(i, cluster) else body.registers[i]
            for i, number in enumerate(numbers)
        )
        return replace(body, registers=new)

    def _matters_throughout(self, register: int, cluster: Cluster) -> bool:
        """Only then does it hold there what it held in the program from before."""
        return all(register in self.live[place] for place in cluster.places)


def _after(row: Row, facts: Facts) -> Iterator[tuple[Flags, Facts]]:
    """The flags that may follow a row, with what is then known."""
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
