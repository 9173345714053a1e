"""Which group of a run trains next."""

from __future__ import annotations

from collections.abc import Sequence

from nram.training.config import TrainConfig
from nram.training.group import GroupState

LEAD, LAG = 3.0, 1 / 3
MARGIN = 0.05  # of the error: groups this close to the best are among the best
RECENT = 16  # rounds


def next_group(config: TrainConfig, states: Sequence[GroupState]) -> int | None:
    """The group that has the next round; None if all are done or one has a perfect member.

    A group at the end of its first stage or beyond goes before the others, because it has nearly solved the task. The
    others take turns, so that all do the same work. A group joins when the others have worked for a while: easy tasks
    never need it.
    """
    if any(state.done and state.perfect for state in states):
        return None
    active = [index for index, state in enumerate(states) if not state.done]
    if not active:
        return None
    later = [index for index in active if states[index].stage > 0 or states[index].enough_at is not None]
    if later:
        return max(later, key=lambda index: (states[index].stage, -index))
    rounds = sum(state.rounds for state in states)
    joined = [index for index in active if not config.groups or config.groups[index].joins <= rounds]
    return min(joined or active[:1], key=lambda index: states[index].turn)


def share_of(config: TrainConfig, states: Sequence[GroupState], index: int) -> float:
    """How many turns a group has for each turn of another: more while it is among the best and gets better, fewer while
    it is stuck and not the first of the best. With `turns = "equal"` all train as many steps.

    Nobody loses all turns, because what is best at first may be a dead end.
    """
    if config.turns == "equal":
        return 1.0
    state = states[index]
    near = min(one.least_error for one in states if not one.done) + MARGIN
    best = [number for number, one in enumerate(states) if not one.done and one.least_error <= near]
    if state.rounds - state.improved_at <= RECENT:
        return LEAD if index in best else 1.0
    # Of groups that are stuck at the same error, the first of the recipe solves the most tasks.
    return 1.0 if index == best[0] else LAG


def join(states: Sequence[GroupState], index: int) -> None:
    """Let a group begin. It takes turns with the others from now on, and does not catch up with their work."""
    turns = [state.turn for state in states if state.rounds and not state.done]
    states[index].turn = min(turns, default=0.0)
