"""Short decision lists that tell clusters of flags apart.

A combination of flags is an integer with one bit for each register. A condition is a pair (care, value): it holds for
the flags with `flags & care == value`.
"""

from __future__ import annotations

from collections.abc import Sequence

from nram.programs.ir import Conditions, Flags

Condition = tuple[int, int]
MOST_ENDINGS = 6  # how many clusters are tried as the last row


def decision_list(clusters: Sequence[Sequence[Flags]]) -> list[tuple[Conditions, int]]:
    """Conditions to try in order, each with the index of its cluster. The last has no conditions.

    Flags that are in no cluster never occur. If possible, the row for registers that are all 0 comes first, since
    programs start there.
    """
    width = len(clusters[0][0])
    owners = {_bits(flags): index for index, cluster in enumerate(clusters) for flags in cluster}
    largest = sorted(range(len(clusters)), key=lambda index: -len(clusters[index]))[:MOST_ENDINGS]
    attempts = [_beginning_first(_exceptions_first(owners, width, last), owners, width) for last in largest]
    best = min(attempts, key=lambda rows: (len(rows), sum(care.bit_count() for (care, _), _ in rows)))
    return [(_spread(condition, width), cluster) for condition, cluster in best]


def _exceptions_first(owners: dict[int, int], width: int, last: int) -> list[tuple[Condition, int]]:
    """Take the condition that covers most of the remaining flags, until only the last cluster remains."""
    left = dict(owners)
    rows: list[tuple[Condition, int]] = []
    while any(cluster != last for cluster in left.values()):
        found = {_widened(flags, cluster, left, width): cluster for flags, cluster in left.items() if cluster != last}
        condition = max(found, key=lambda one: sum(_holds(one, flags) for flags in left))
        rows.append((condition, found[condition]))
        left = {flags: cluster for flags, cluster in left.items() if not _holds(condition, flags)}
    return [*rows, ((0, 0), last)]


def _beginning_first(rows: list[tuple[Condition, int]], owners: dict[int, int], width: int) -> list:
    """The same rows with the one for registers that are all 0 at the top, if that changes nothing."""
    beginning = next(row for row in rows if _holds(row[0], (1 << width) - 1))
    moved = [beginning, *(row for row in rows if row is not beginning)]
    found = {flags: next(cluster for condition, cluster in moved if _holds(condition, flags)) for flags in owners}
    return moved if found == owners else rows


def _widened(flags: int, cluster: int, left: dict[int, int], width: int) -> Condition:
    """The condition of one combination of flags, without the parts that are not needed."""
    care = (1 << width) - 1
    others = [other ^ flags for other, owner in left.items() if owner != cluster]
    for bit in range(width):
        fewer = care & ~(1 << bit)
        if all(difference & fewer for difference in others):
            care = fewer
    return care, flags & care


def _holds(condition: Condition, flags: int) -> bool:
    return flags & condition[0] == condition[1]


def _bits(flags: Flags) -> int:
    return sum(flag << bit for bit, flag in enumerate(flags))


def _spread(condition: Condition, width: int) -> Conditions:
    care, value = condition
    return tuple(bool(value >> bit & 1) if care >> bit & 1 else None for bit in range(width))
