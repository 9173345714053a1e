"""Heights in a layered drawing: short wires, straight where the order and the distances allow it.

First come the heights with the least sum of squared bends, which balance everything. Then one block after another (a
box, the lanes of a wire, blocks that straight wires join) moves to where the sum of its bends is least, which makes
wires straight.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from nram.pictures.layout_graph import Graph

SWEEPS = 24
Positions = dict[int, tuple[list[int], int]]


def choose_heights(graph: Graph) -> None:
    for column in graph.columns:
        y = 0.0
        for above, item in zip([None, *column], column, strict=False):
            y += 0.0 if above is None else graph.distance(above, item)
            graph.items[item].y = y
        for item in column:
            graph.items[item].y -= y / 2
    for sweep in range(SWEEPS):
        order = graph.columns if sweep % 2 == 0 else reversed(graph.columns)
        for column in order:
            _settle(graph, column)
    for item in graph.items:
        item.y = _rounded(item.y)
    positions = _positions(graph)
    blocks = _blocks(graph, positions)
    for _ in range(SWEEPS):
        moved = [_straighten(graph, block, positions) for block in blocks]
        moved += [_straighten(graph, group, positions) for group in _straight_groups(graph, blocks)]
        if not any(moved):
            break


def _rounded(y: float) -> float:
    """Rounded to halves. Distances are whole numbers and halves, so they are kept, and sums of heights are exact."""
    return math.floor(2 * y + 0.5) / 2


def _pulls(graph: Graph, item: int) -> list[tuple[float, float]]:
    """The heights at which a wire of the item would be straight, with weights."""
    of = graph.items[item]
    pulls = []
    for wires, sign in ((of.lefts, -1.0), (of.rights, 1.0)):
        for other, offset in wires:
            lanes = (of.box is None) + (graph.items[other].box is None)
            pulls.append((graph.items[other].y + sign * offset, (1.0, 2.0, 8.0)[lanes]))
    return pulls


def _settle(graph: Graph, column: list[int]) -> None:
    """The heights of least squared bends that keep the order and the distances, by pooling neighbours."""
    pools: list[list[float]] = []  # [weighted sum, weight, members]
    below = 0.0
    starts = []
    for i, item in enumerate(column):
        below += graph.distance(column[i - 1], item) if i else 0.0
        starts.append(below)
        pulls = _pulls(graph, item) or [(graph.items[item].y, 0.01)]
        weight = sum(w for _, w in pulls)
        pools.append([sum((y - below) * w for y, w in pulls), weight, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] >= pools[-1][0] / pools[-1][1]:
            last = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], last, strict=True)]
    heights = [total / weight for total, weight, members in pools for _ in range(int(members))]
    for item, height, start in zip(column, heights, starts, strict=True):
        graph.items[item].y = height + start


def _blocks(graph: Graph, positions: Positions) -> list[list[int]]:
    """Single boxes, and the lanes of each source in the longest pieces that can be straight."""
    blocks = [[index] for index, item in enumerate(graph.items) if item.box is not None]
    chains: dict[int, list[int]] = {}
    for (source, _), lane in sorted(graph.lanes.items()):
        chains.setdefault(source, []).append(lane)
    for chain in chains.values():
        piece: list[int] = []
        low, high = float("-inf"), float("inf")
        for lane in chain:
            least, most = _room(graph, *positions[lane])
            if piece and max(low, least) > min(high, most):
                blocks.append(_level(graph, piece, low, high))
                piece, low, high = [], float("-inf"), float("inf")
            piece.append(lane)
            low, high = max(low, least), min(high, most)
        blocks.append(_level(graph, piece, low, high))
    return blocks


def _level(graph: Graph, piece: list[int], low: float, high: float) -> list[int]:
    mean = _rounded(sum(graph.items[lane].y for lane in piece) / len(piece))
    for lane in piece:
        graph.items[lane].y = min(max(mean, low), high)
    return piece


def _positions(graph: Graph) -> Positions:
    """The column of every item, and its position there."""
    return {item: (column, i) for column in graph.columns for i, item in enumerate(column)}


def _room(graph: Graph, column: list[int], i: int) -> tuple[float, float]:
    """The least and the greatest height of an item between its neighbours."""
    low, high = float("-inf"), float("inf")
    if i > 0:
        low = graph.items[column[i - 1]].y + graph.distance(column[i - 1], column[i])
    if i + 1 < len(column):
        high = graph.items[column[i + 1]].y - graph.distance(column[i], column[i + 1])
    return low, high


def _straighten(graph: Graph, block: Iterable[int], positions: Positions) -> bool:
    """Move a block to where the sum of its bends is least. Returns whether it moved."""
    inside = set(block)
    low, high = float("-inf"), float("inf")
    shifts = []
    for item in inside:
        of = graph.items[item]
        least, most = _room(graph, *positions[item])
        low, high = max(low, least - of.y), min(high, most - of.y)
        for wires, sign in ((of.lefts, -1.0), (of.rights, 1.0)):
            shifts += [graph.items[o].y + sign * offset - of.y for o, offset in wires if o not in inside]
    choices = {min(max(shift, low), high) for shift in shifts}

    def badness(shift: float) -> tuple[float, int, float]:
        return sum(abs(shift - wanted) for wanted in shifts), -shifts.count(shift), abs(shift)

    best = min(sorted(choices), key=badness, default=0.0)
    if best == 0 or low > high or badness(best) >= badness(0.0):
        return False
    for item in inside:
        graph.items[item].y += best
    return True


def _straight_groups(graph: Graph, blocks: list[list[int]]) -> list[list[int]]:
    """Groups of blocks that straight wires join. To keep the wires straight, they must move together."""
    group = {item: index for index, block in enumerate(blocks) for item in block}
    groups = {index: list(block) for index, block in enumerate(blocks)}
    for index, item in enumerate(graph.items):
        for other, offset in item.rights:
            one, two = group[index], group[other]
            if one != two and item.y == graph.items[other].y + offset:
                for moved in groups[two]:
                    group[moved] = one
                groups[one] += groups.pop(two)
    return list(groups.values())
