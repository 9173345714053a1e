"""From runs of a machine whose state nobody can name to a finite automaton: state merging.

The runs make a tree: a node for every history of flags, an edge for what was done there. Nodes are then merged, the
pair with the most evidence first (the blue-fringe order of evidence-driven merging), wherever all that was seen after
one agrees with all that was seen after the other. What was seen *agrees* if one circuit does in every case what the
machine did: the same writes, the same halting, the same new values of the registers that matter. A register matters if
its flag is tested or if a circuit that matters reads it. A run that no longer changes the memory and does not halt
idles: it ends in a state that does nothing for ever, whatever the network still computes.

So by construction the automaton repeats every run it was made from. Whether it repeats others is for others to test.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from nram.programs.extract.lstm_runs import Choice, Flags, Run
from nram.programs.ir import Register, Row
from nram.programs.simplify.circuit import Body, normal_form, registers_used
from nram.programs.simplify.facts import NOT_ZERO, ZERO, Facts

MOST_SUBSETS = 512  # of registers whose flags might be tested


class Deed(NamedTuple):
    """What is done at an edge."""

    row: Row
    """A circuit that the machine chose, as it chose it."""
    body: Body
    """What of it matters, simplified by what is known of the registers at this edge."""
    known: Facts

    @property
    def halt(self) -> bool:
        return self.body.halt


@dataclass(frozen=True)
class Automaton:
    """A finite automaton over the flags of some registers, with a deed at every edge."""

    tested: tuple[int, ...]
    """The registers whose flags it looks at."""
    states: tuple[dict[Flags, tuple[Deed, int | None]] | None, ...]
    """For each state and the flags seen there: what is done, and the next state, none if it halts. None idles."""
    circuits: Circuits

    @property
    def edges(self) -> int:
        return sum(1 if state is None else len(state) for state in self.states)

    def first_difference(self, run: Run) -> int | None:
        """The first step at which it would not, or not certainly, do what the machine did; counted from 0."""
        number: int | None = 0
        for step, choice in enumerate(run.choices):
            assert number is not None, "after a halt there is no step"
            state = self.states[number]
            if state is None:
                return step if step < run.busy else None
            found = state.get(_seen(choice.zero, self.tested))
            if found is None or not self.circuits.repeats(found[0], choice):
                return step
            number = found[1]
        return None

    def rows(self) -> tuple[tuple[Row, ...], ...]:
        """The table of a program. Flags that were never seen in a state halt there, without doing anything."""
        count = self.circuits.registers
        kept = tuple(map(Register, range(count)))
        table = []
        for number, edges in enumerate(self.states):
            if edges is None:
                table.append((Row((None,) * count, (), kept, False, number),))
                continue
            rows = []
            for flags, ((_, body, _), following) in sorted(edges.items(), key=lambda item: item[0], reverse=True):
                when: list[bool | None] = [None] * count
                for register, flag in zip(self.tested, flags, strict=True):
                    when[register] = flag
                new = tuple(kept[i] if value is None else value for i, value in enumerate(body.registers))
                after = number if following is None else following
                rows.append(Row(tuple(when), body.operations, new, body.halt, after))
            if len(edges) < 2 ** len(self.tested):
                rows.append(Row((None,) * count, (), kept, True, number))
            table.append(tuple(rows))
        return tuple(table)


def learn(runs: Sequence[Run], registers: int, max_states: int) -> Automaton | None:
    """The automaton with the fewest edges, over all choices of registers to test; None if all need too many states.

    Each is tried with idling and without: what idles by chance, because it writes what is there already, may be
    a part of the loop.
    """
    choices: dict[Choice, int] = {}
    coded = [[choices.setdefault(choice, len(choices)) for choice in run.choices] for run in runs]
    idling = [_History(numbers, run.busy) for numbers, run in zip(coded, runs, strict=True)]
    never_idling = [_History(numbers, len(numbers)) for numbers in coded]
    best: Automaton | None = None
    for tested, histories in itertools.product(_subsets(registers), (idling, never_idling)):
        # An automaton has at least as many edges as states.
        most = max_states if best is None else min(max_states, best.edges - 1)
        found = _merged(histories, list(choices), registers, tested, most)
        if found is not None and (best is None or found.edges < best.edges):
            best = found
    return best


def _subsets(registers: int) -> Iterator[tuple[int, ...]]:
    sizes = (itertools.combinations(range(registers), size) for size in range(registers + 1))
    return itertools.islice(itertools.chain.from_iterable(sizes), MOST_SUBSETS)


def _seen(zero: Flags, tested: tuple[int, ...]) -> Flags:
    return tuple(zero[register] for register in tested)


# ---- circuits that do the same


_normal_form = lru_cache(maxsize=1 << 16)(normal_form)


class Circuits:
    """What was chosen, as far as it matters when the flags of certain registers are tested."""

    def __init__(self, choices: Sequence[Choice], used: Collection[int], registers: int, tested: tuple[int, ...]):
        self.registers = registers
        self.choices = choices
        self.common: dict[frozenset[int], Deed | None] = {}
        self.live = self._live([choices[number] for number in used], tested)

    def _live(self, used: Sequence[Choice], tested: tuple[int, ...]) -> tuple[bool, ...]:
        """The registers that matter: tested, or read on the way to a write or to one that matters."""
        live = set(tested)
        while True:
            flags = tuple(i in live for i in range(self.registers))
            bodies = (_normal_form(row, flag_facts((zero,)), flags) for zero, row in used)
            grown = live.union(*map(registers_used, bodies))
            if grown == live:
                return flags
            live = grown

    def serving(self, seen: frozenset[int]) -> Deed | None:
        """The shortest circuit that does in every case what was done, or None. `seen` are numbers of choices."""
        if seen not in self.common:
            self.common[seen] = self._serving([self.choices[number] for number in sorted(seen)])
        return self.common[seen]

    def _serving(self, cases: Sequence[Choice]) -> Deed | None:
        facts = flag_facts(tuple(sorted({case.zero for case in cases})))
        found = []
        for row in dict.fromkeys(case.row for case in cases):
            deed = Deed(row, _normal_form(row, facts, self.live), facts)
            # It must not rely on a register that happened to hold the right value.
            reliable = all(self.live[register] for register in registers_used(deed.body))
            if reliable and all(self.repeats(deed, case) for case in cases):
                found.append(deed)
        return min(found, key=lambda deed: len(deed.body.operations), default=None)

    def repeats(self, deed: Deed, choice: Choice) -> bool:
        """Whether it certainly does what the machine did, under the flags of the moment."""
        facts = flag_facts((choice.zero,))
        within = all(not mask & ~known for mask, known in zip(facts.masks, deed.known.masks, strict=True))
        return within and _normal_form(deed.row, facts, self.live) == _normal_form(choice.row, facts, self.live)


@lru_cache(maxsize=1 << 16)
def flag_facts(cases: tuple[Flags, ...]) -> Facts:
    """What is known of the registers when one of these flags was seen."""
    masks = [0] * len(cases[0])
    for zero in cases:
        masks = [mask | (ZERO if flag else NOT_ZERO) for mask, flag in zip(masks, zero, strict=True)]
    return Facts(tuple(masks), tuple(range(len(masks))))


# ---- merging


class _History(NamedTuple):
    choices: list[int]  # by their numbers
    busy: int  # the number of steps after which nothing happens any more


@dataclass(eq=False, slots=True)
class _Node:
    edges: dict[Flags | None, _Edge] = field(default_factory=dict)
    """By the flags tested; an edge without flags, then the only one, means that here it idles."""
    busy: bool = False
    """Some run that came here was not done yet."""


class _Edge(NamedTuple):
    seen: frozenset[int]  # the numbers of all that was chosen here
    target: _Node


_Edges = dict[Flags | None, _Edge]
_Changes = dict[_Node, _Edges]  # the new edges of nodes that a merge changes


def _tree(histories: Sequence[_History], flags: Sequence[Flags]) -> _Node:
    """The histories, equal beginnings shared, as far as anything was still to come of one that came there."""
    root = _Node()
    reached = []
    for choices, busy in histories:
        node = root
        for choice in choices[:busy]:
            node.busy = True
            node = _follow(node, flags[choice], choice)
        # Of a run that was cut here, or by its limit, more may be to come.
        node.busy = node.busy or busy >= len(choices)
        reached.append(node)
    for (choices, busy), node in zip(histories, reached, strict=True):
        step = busy
        while node.busy and step < len(choices):
            node = _follow(node, flags[choices[step]], choices[step])
            step += 1
        if step < len(choices):
            node.edges[None] = _Edge(frozenset(), _Node())
    return root


def _follow(node: _Node, flags: Flags, choice: int) -> _Node:
    edge = node.edges.get(flags)
    if edge is None:
        edge = node.edges[flags] = _Edge(frozenset([choice]), _Node())
    elif choice not in edge.seen:
        edge = node.edges[flags] = _Edge(edge.seen | {choice}, edge.target)
    return edge.target


def _all_edges(root: _Node) -> list[_Edge]:
    """Of a tree; those of idling left out."""
    found: list[_Edge] = []
    waiting = [root]
    while waiting:
        edges = [edge for flags, edge in waiting.pop().edges.items() if flags is not None]
        found += edges
        waiting += [edge.target for edge in edges]
    return found


def _merged(
    histories: Sequence[_History], choices: Sequence[Choice], registers: int, tested: tuple[int, ...], max_states: int
) -> Automaton | None:
    """The automaton that tests these registers; None if they do not suffice or it needs too many states."""
    root = _tree(histories, [_seen(choice.zero, tested) for choice in choices])
    deeds = [edge.seen for edge in _all_edges(root)]
    circuits = Circuits(choices, frozenset().union(*deeds), registers, tested)
    if max_states < 1 or any(circuits.serving(seen) is None for seen in deeds):
        return None
    red = [root]  # the states of the automaton so far; a blue node is a target of theirs that is not one of them
    while True:
        best: tuple[int, _Changes] | None = None
        for node, flags in [(state, flags) for state in red for flags in state.edges]:
            blue = node.edges[flags].target
            if blue in red or not blue.edges:
                continue
            merges = [found for state in red if (found := _fold(circuits, node, flags, state)) is not None]
            if not merges:
                if len(red) == max_states:
                    return None
                red.append(blue)
                break
            most = max(merges, key=lambda merge: merge[0])
            if best is None or most[0] > best[0]:
                best = most
        else:
            if best is None:
                return _finished(red, circuits, tested)
            for node, edges in best[1].items():
                node.edges = edges


def _fold(circuits: Circuits, parent: _Node, flags: Flags | None, into: _Node) -> tuple[int, _Changes] | None:
    """Merge the node at this edge, the root of a tree, into a state: how many edges agree and what changes.

    None if an edge does not agree. Nothing is changed yet.
    """
    blue = parent.edges[flags].target
    changes: _Changes = {parent: {**parent.edges, flags: _Edge(parent.edges[flags].seen, into)}}
    agreeing = 0
    pairs = [(into, blue)]
    while pairs:
        state, node = pairs.pop()
        edges = changes.setdefault(state, dict(state.edges))
        for key, edge in node.edges.items():
            known = edges.get(key)
            if known is None:
                edges[key] = edge
                continue
            if not edge.seen <= known.seen:
                seen = known.seen | edge.seen
                if circuits.serving(seen) is None:
                    return None
                edges[key] = _Edge(seen, known.target)
            agreeing += 1
            pairs.append((known.target, edge.target))
        if None in edges and len(edges) > 1:  # it would both idle and do something
            return None
    return agreeing, changes


def _finished(red: list[_Node], circuits: Circuits, tested: tuple[int, ...]) -> Automaton:
    numbers = {node: number for number, node in enumerate(red)}
    states = []
    for node in red:
        edges: dict[Flags, tuple[Deed, int | None]] = {}
        for flags, (seen, target) in node.edges.items():
            if flags is None:
                continue
            deed = circuits.serving(seen)
            assert deed is not None, "every edge agreed when it was made"
            # Behind an edge to an empty node nothing was seen: staying is as good a guess as any.
            edges[flags] = deed, None if deed.halt else numbers.get(target, numbers[node])
        states.append(edges or None)
    return Automaton(tested, tuple(states), circuits)
