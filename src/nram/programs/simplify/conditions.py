"""Conditions for rows: as few as possible, and as short as possible, to tell clusters of flags apart.

Combinations of flags are bits of an integer, and a condition is a pair (care, value): it holds for the flags with
`flags & care == value`.
"""

from __future__ import annotations

from collections.abc import Sequence

Flags = tuple[bool, ...]
Condition = tuple[int, int]
MOST_ENDINGS = 6  # how many clusters are tried as the last row


def decision_list(clusters: Sequence[Sequence[Flags]]) -> list[tuple[tuple[bool | None, ...], int]]:
    """Conditions to be tried in order, each with the cluster it leads to. The last is empty.

    Flags that are in no cluster never occur. Where there is a choice, registers that are all 0 come first: so a
    program begins.
    """
    width = len(clusters[0][0])
    owners = {_bits(flags): number for number, cluster in enumerate(clusters) for flags in cluster}
    largest = sorted(range(len(clusters)), key=lambda number: -len(clusters[number]))[:MOST_ENDINGS]
    attempts = [_beginning_first(_exceptions_first(owners, width, last), owners, width) for last in largest]
    best = min(attempts, key=lambda rows: (len(rows), sum(care.bit_count() for (care, _), _ in rows)))
    return [(_spread(condition, width), number) for condition, number in best]


def _exceptions_first(owners: dict[int, int], width: int, last: int) -> list[tuple[Condition, int]]:
    """The condition that settles most of what is left, again and again, until only one cluster is left."""
    left = dict(owners)
    rows: list[tuple[Condition, int]] = []
    while any(number != last for number in left.values()):
        found = {_widened(flags, number, left, width): number for flags, number in left.items() if number != last}
        condition = max(found, key=lambda one: sum(_holds(one, flags) for flags in left))
        rows.append((condition, found[condition]))
        left = {flags: number for flags, number in left.items() if not _holds(condition, flags)}
    return [*rows, ((0, 0), last)]


def _beginning_first(rows: list[tuple[Condition, int]], owners: dict[int, int], width: int) -> list:
    """The same with the row for registers that are all 0 at the top, if that changes nothing."""
    beginning = next(row for row in rows if _holds(row[0], (1 << width) - 1))
    moved = [beginning, *(row for row in rows if row is not beginning)]
    settled = {flags: next(number for condition, number in moved if _holds(condition, flags)) for flags in owners}
    return moved if settled == owners else rows


def _widened(flags: int, number: int, left: dict[int, int], width: int) -> Condition:
    """The condition of one combination of flags, less the parts that are not needed."""
    care = (1 << width) - 1
    others = [other ^ flags for other, owner in left.items() if owner != number]
    for place in range(width):
        fewer = care & ~(1 << place)
        if all(difference & fewer for difference in others):
            care = fewer
    return care, flags & care


def _holds(condition: Condition, flags: int) -> bool:
    return flags & condition[0] == condition[1]


def _bits(flags: Flags) -> int:
    return sum(flag << place for place, flag in enumerate(flags))


def _spread(condition: Condition, width: int) -> tuple[bool | None, ...]:
    care, value = condition
    return tuple(bool(value >> place & 1) if care >> place & 1 else None for place in range(width))
