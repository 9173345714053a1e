"""The assumptions of a claim at the addresses and indices that matter, so that no solver has to handle 'for all'."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product

from nram.tasks.claim import Assumption
from nram.terms import TRUE, Term, calls, substituted, variables

ROUNDS = 2  # an instance may mention further cells, for which there are instances too


def ground_instances(assumptions: Iterable[Assumption], terms: Iterable[Term]) -> list[Term]:
    """The assumptions without variables, and the others for all values that the calls in the terms suggest."""
    plain = [one.condition for one in assumptions if not one.variables]
    found: dict[Term, None] = dict.fromkeys(plain)
    seen = calls([*terms, *plain])
    first = dict(seen)
    for turn in range(ROUNDS):
        new: dict[Term, None] = {}
        for one in assumptions:
            if not one.variables or (len(one.variables) > 1 and turn):
                continue  # pairs: for what was given, or they would be too many
            ground = first if len(one.variables) > 1 else seen
            new |= dict.fromkeys(instance for instance in instances(one, ground) if instance not in found)
        found |= new
        seen |= calls(new)
    return list(found)


def instances(assumption: Assumption, ground: dict[Term, None]) -> list[Term]:
    """The assumption for all values at which calls in it become some of the given calls."""
    found: dict[Term, None] = {}
    for values in product(*(_values(assumption, name, ground) for name in assumption.variables)):
        found[_instance(assumption, values)] = None
    found.pop(TRUE, None)
    return list(found)


@lru_cache(1 << 15)  # the obligations of a place have most of them in common
def _instance(assumption: Assumption, values: tuple[Term, ...]) -> Term:
    return substituted(assumption.condition, dict(zip(assumption.variables, values, strict=True)))


def _values(assumption: Assumption, name: Term, ground: dict[Term, None]) -> list[Term]:
    """The values of a variable at which a call in the assumption becomes one of the given calls."""
    values: dict[Term, None] = {}
    for function, factor, rest in _patterns(assumption, name):
        for term in ground:
            if term.parts[0] == function:
                values[(term.parts[1] - rest) * factor] = None
    return list(values)


@lru_cache(1 << 10)
def _patterns(assumption: Assumption, name: Term) -> list[tuple[str, int, Term]]:
    """Function, factor of the variable in its argument (1 or -1), and the rest of the argument."""
    found = []
    own = {one.parts[0] for one in assumption.variables}
    for term in calls(assumption.triggers or [assumption.condition]):
        argument = term.parts[1]
        factor = 1 if argument == name else dict(argument.parts[1]).get(name, 0) if argument.op == "sum" else 0
        rest = argument - name * factor
        if factor in (1, -1) and not own & set(variables([rest])):
            found.append((term.parts[0], factor, rest))
    return found
