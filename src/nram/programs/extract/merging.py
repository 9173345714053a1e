"""State merging: from recorded runs to a finite automaton.

The runs form a tree: a node for every history of flags, an edge for every action. Nodes are then merged, the pair with
the most evidence first (blue-fringe, evidence-driven state merging), if everything seen after one agrees with
everything seen after the other. Actions *agree* if one circuit does in every case what the machine did: the same
writes, the same halting, the same new values of the registers that matter. A register matters if its flag is tested
or if a circuit that matters reads it. A run that no longer changes the memory and does not halt idles: it ends in a
state that does nothing for ever, whatever the network still computes.

By construction the automaton repeats every run that it was made from. `extract_lstm` tests it on others.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from nram.programs.extract.lstm_runs import Choice, Run
from nram.programs.ir import Flags, Register, Row
from nram.programs.simplify.circuit import Body, kept_registers, normal_form, registers_used
from nram.programs.simplify.facts import NOT_ZERO, ZERO, Facts

MOST_SUBSETS = 512  # of registers whose flags might be tested


class Action(NamedTuple):
    """What is done at an edge."""

    row: Row
    """A circuit that the machine chose, unchanged."""
    body: Body
    """The part of it that matters, simplified by the facts that hold at this edge."""
    known: Facts

    @property
    def halt(self) -> bool:
        return self.body.halt


@dataclass(frozen=True)
class Automaton:
    """A finite automaton over the flags of some registers, with an action at every edge."""

    tested: tuple[int, ...]
    """The registers whose flags it tests."""
    states: tuple[dict[Flags, tuple[Action, int | None]] | None, ...]
    """For each state and the flags seen there: the action, and the next state (None if it halts). None: it idles."""
    circuits: Circuits

    @property
    def edges(self) -> int:
        return sum(1 if state is None else len(state) for state in self.states)

    def first_difference(self, run: Run) -> int | None:
        """The first step, from 0, at which it does not certainly do what the machine did."""
        state: int | None = 0
        for step, choice in enumerate(run.choices):
            assert state is not None, "after a halt there is no step"
            edges = self.states[state]
            if edges is None:
                return step if step < run.busy else None
            found = edges.get(_seen(choice.zero, self.tested))
            if found is None or not self.circuits.repeats(found[0], choice):
                return step
            state = found[1]
        return None

    def rows(self) -> tuple[tuple[Row, ...], ...]:
        """The table of a program. With flags that were never seen in a state it halts there and does nothing."""
        count = self.circuits.registers
        kept = tuple(map(Register, range(count)))
        table = []
        for state, edges in enumerate(self.states):
            if edges is None:
                table.append((Row((None,) * count, (), kept, False, state),))
                continue
            rows = []
            for flags, ((_, body, _), following) in sorted(edges.items(), key=lambda item: item[0], reverse=True):
                when: list[bool | None] = [None] * count
                for register, flag in zip(self.tested, flags, strict=True):
                    when[register] = flag
                after = state if following is None else following
                rows.append(Row(tuple(when), body.operations, kept_registers(body), body.halt, after))
            if len(edges) < 2 ** len(self.tested):
                rows.append(Row((None,) * count, (), kept, True, state))
            table.append(tuple(rows))
        return tuple(table)


def learn(runs: Sequence[Run], registers: int, max_states: int) -> Automaton | None:
    """The automaton with the fewest edges, over all sets of registers to test; None if all need too many states.

    Each set is tried with and without idle states: a step that happens to change nothing, because it writes a value
    that is already there, may be part of a loop.
    """
    choices: dict[Choice, int] = {}
    coded = [[choices.setdefault(choice, len(choices)) for choice in run.choices] for run in runs]
    idling = [_History(indices, run.busy) for indices, run in zip(coded, runs, strict=True)]
    never_idling = [_History(indices, len(indices)) for indices in coded]
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


# ---- equal circuits


_normal_form = lru_cache(maxsize=1 << 16)(normal_form)


class Circuits:
    """The chosen circuits, reduced to what matters when the flags of certain registers are tested."""

    def __init__(self, choices: Sequence[Choice], used: Collection[int], registers: int, tested: tuple[int, ...]):
        self.registers = registers
        self.choices = choices
        self.common: dict[frozenset[int], Action | None] = {}
        self.live = self._live([choices[index] for index in used], tested)

    def _live(self, used: Sequence[Choice], tested: tuple[int, ...]) -> tuple[bool, ...]:
        """The registers that matter: tested, or read for a write or for a register that matters."""
        live = set(tested)
        while True:
            flags = tuple(i in live for i in range(self.registers))
            bodies = (_normal_form(row, flag_facts((zero,)), flags) for zero, row in used)
            grown = live.union(*map(registers_used, bodies))
            if grown == live:
                return flags
            live = grown

    def shared(self, seen: frozenset[int]) -> Action | None:
        """The shortest circuit that does what was done in every case, or None. `seen` are indices of choices."""
        if seen not in self.common:
            self.common[seen] = self._shared([self.choices[index] for index in sorted(seen)])
        return self.common[seen]

    def _shared(self, cases: Sequence[Choice]) -> Action | None:
        facts = flag_facts(tuple(sorted({case.zero for case in cases})))
        found = []
        for row in dict.fromkeys(case.row for case in cases):
            action = Action(row, _normal_form(row, facts, self.live), facts)
            # It must not rely on a register that only happened to hold the right value.
            reliable = all(self.live[register] for register in registers_used(action.body))
            if reliable and all(self.repeats(action, case) for case in cases):
                found.append(action)
        return min(found, key=lambda action: len(action.body.operations), default=None)

    def repeats(self, action: Action, choice: Choice) -> bool:
        """Whether the action certainly does what the machine did, under the flags of that step."""
        facts = flag_facts((choice.zero,))
        within = all(not mask & ~known for mask, known in zip(facts.masks, action.known.masks, strict=True))
        return within and _normal_form(action.row, facts, self.live) == _normal_form(choice.row, facts, self.live)


@lru_cache(maxsize=1 << 16)
def flag_facts(cases: tuple[Flags, ...]) -> Facts:
    """What is known about the registers when one of these combinations of flags was seen."""
    masks = [0] * len(cases[0])
    for zero in cases:
        masks = [mask | (ZERO if flag else NOT_ZERO) for mask, flag in zip(masks, zero, strict=True)]
    return Facts(tuple(masks), tuple(range(len(masks))))


# ---- merging


class _History(NamedTuple):
    choices: list[int]  # their indices
    busy: int  # the number of steps after which nothing happens


@dataclass(eq=False, slots=True)
class _Node:
    edges: dict[Flags | None, _Edge] = field(default_factory=dict)
    """By the tested flags. An edge without flags (then the only one) means that the machine idles here."""
    busy: bool = False
    """Some run that came here still had something to do."""


class _Edge(NamedTuple):
    seen: frozenset[int]  # the indices of all choices made here
    target: _Node


_Edges = dict[Flags | None, _Edge]
_Changes = dict[_Node, _Edges]  # the new edges of the nodes that a merge changes


def _tree(histories: Sequence[_History], flags: Sequence[Flags]) -> _Node:
    """The tree of the histories. A branch ends where no run that came there had anything left to do."""
    root = _Node()
    reached = []
    for choices, busy in histories:
        node = root
        for choice in choices[:busy]:
            node.busy = True
            node = _follow(node, flags[choice], choice)
        # A run that was cut here, or by its limit, may have had more to do.
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
    """The edges of a tree, without those of idling."""
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
    """The automaton that tests these registers; None if they do not suffice, or if it needs too many states."""
    root = _tree(histories, [_seen(choice.zero, tested) for choice in choices])
    seen_sets = [edge.seen for edge in _all_edges(root)]
    circuits = Circuits(choices, frozenset().union(*seen_sets), registers, tested)
    if max_states < 1 or any(circuits.shared(seen) is None for seen in seen_sets):
        return None
    red = [root]  # the states of the automaton so far; a blue node is a child of a red one that is not red itself
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
    """Merge the node at this edge (the root of a tree) into a state: how many edges agree, and what changes.

    None if an edge does not agree. The caller applies the changes.
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
                if circuits.shared(seen) is None:
                    return None
                edges[key] = _Edge(seen, known.target)
            agreeing += 1
            pairs.append((known.target, edge.target))
        if None in edges and len(edges) > 1:  # the state would both idle and do something
            return None
    return agreeing, changes


def _finished(red: list[_Node], circuits: Circuits, tested: tuple[int, ...]) -> Automaton:
    indices = {node: index for index, node in enumerate(red)}
    states = []
    for node in red:
        edges: dict[Flags, tuple[Action, int | None]] = {}
        for flags, (seen, target) in node.edges.items():
            if flags is None:
                continue
            action = circuits.shared(seen)
            assert action is not None, "every edge agreed when it was made"
            # Nothing was seen after an edge to an empty node, so any next state will do: it stays.
            edges[flags] = action, None if action.halt else indices.get(target, indices[node])
        states.append(edges or None)
    return Automaton(tested, tuple(states), circuits)
