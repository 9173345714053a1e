"""The graph of a layered drawing: boxes and lanes in columns, and an order with few crossings.

A wire that passes through layers gets a lane in each. All wires from the same source share it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

SWEEPS = 24
BOX_GAP, LANE_GAP, MIXED_GAP = 20.0, 11.0, 14.0  # between neighbours in a layer: two boxes, two lanes, one of each


@dataclass(frozen=True)
class Box:
    """A box to place. Height and inputs are whole numbers. Wires leave it at the middle of its right side."""

    width: float
    height: float
    inputs: tuple[float, ...]
    """Where each wire enters at the left side, measured from the top."""
    layer: int
    rank: int | None = None
    """Its position among the boxes of its layer, if prescribed."""


@dataclass(frozen=True)
class Wire:
    """From a box to an input of a box of a later layer."""

    source: int
    target: int
    port: int


@dataclass
class Item:
    """A box, or a lane of a wire through a layer."""

    height: float
    box: int | None = None
    rank: int | None = None
    lefts: list[tuple[int, float]] = field(default_factory=list)
    """Items before it, and where (from the middle) the wire from there enters."""
    rights: list[tuple[int, float]] = field(default_factory=list)
    """Items after it, and where the wire enters those."""
    y: float = 0.0  # of the middle


class Graph:
    def __init__(self, boxes: Sequence[Box], wires: Sequence[Wire]):
        self.items = [Item(box.height, index, box.rank) for index, box in enumerate(boxes)]
        self.columns: list[list[int]] = [[] for _ in range(max((box.layer for box in boxes), default=-1) + 1)]
        for index, box in enumerate(boxes):
            self.columns[box.layer].append(index)
        self.lanes: dict[tuple[int, int], int] = {}  # (source, layer) -> item
        joined: set[tuple[int, int]] = set()
        for wire in wires:
            before = wire.source
            for layer in range(boxes[wire.source].layer + 1, boxes[wire.target].layer):
                lane = self._lane(wire.source, layer)
                if (before, lane) not in joined:
                    joined.add((before, lane))
                    self._join(before, lane, 0.0)
                before = lane
            box = boxes[wire.target]
            self._join(before, wire.target, box.inputs[wire.port] - box.height / 2)

    def _lane(self, source: int, layer: int) -> int:
        if (source, layer) not in self.lanes:
            self.lanes[source, layer] = len(self.items)
            self.columns[layer].append(len(self.items))
            self.items.append(Item(0.0))
        return self.lanes[source, layer]

    def _join(self, left: int, right: int, offset: float) -> None:
        self.items[left].rights.append((right, offset))
        self.items[right].lefts.append((left, offset))

    def distance(self, upper: int, lower: int) -> float:
        """The least distance between the middles of two neighbours."""
        one, other = self.items[upper], self.items[lower]
        boxes = (one.box is not None) + (other.box is not None)
        return (one.height + other.height) / 2 + (LANE_GAP, MIXED_GAP, BOX_GAP)[boxes]


# ---- order


def improve_order(graph: Graph) -> None:
    """Reduce crossings: barycentre sweeps in both directions, each followed by exchanges of neighbours."""
    for column in graph.columns:
        column.sort(key=lambda item: _rank(graph, item))
    best, fewest = [list(column) for column in graph.columns], _crossings(graph)
    for sweep in range(SWEEPS):
        rightwards = sweep % 2 == 0
        order = range(len(graph.columns)) if rightwards else reversed(range(len(graph.columns)))
        for layer in order:
            _sort_by_barycentre(graph, layer, rightwards)
        _exchange_neighbours(graph)
        crossings = _crossings(graph)
        if crossings < fewest:
            best, fewest = [list(column) for column in graph.columns], crossings
        if fewest == 0:
            break
    graph.columns = best


def _rank(graph: Graph, item: int) -> int:
    rank = graph.items[item].rank
    return len(graph.items) if rank is None else rank


def _free(graph: Graph, layer: int) -> bool:
    return all(graph.items[item].rank is None for item in graph.columns[layer])


def _sort_by_barycentre(graph: Graph, layer: int, rightwards: bool) -> None:
    if not _free(graph, layer):
        return
    beside = layer - 1 if rightwards else layer + 1
    if not 0 <= beside < len(graph.columns):
        return
    position = {item: i for i, item in enumerate(graph.columns[beside])}

    def centre(pair: tuple[int, int]) -> float:
        now, item = pair
        of = graph.items[item]
        # The offset of the port, a fraction of a position, separates wires into the same box.
        near = [position[o] for o, _ in of.lefts] if rightwards else [position[o] + s / 200 for o, s in of.rights]
        return sum(near) / len(near) if near else float(now)

    graph.columns[layer] = [item for _, item in sorted(enumerate(graph.columns[layer]), key=centre)]


def _exchange_neighbours(graph: Graph) -> None:
    for layer, column in enumerate(graph.columns):
        if not _free(graph, layer) or len(column) > 60:
            continue
        left = {item: i for i, item in enumerate(graph.columns[layer - 1])} if layer else {}
        right = {item: i for i, item in enumerate(graph.columns[layer + 1])} if layer + 1 < len(graph.columns) else {}

        def ends(item: int, left=left, right=right) -> tuple[list[float], list[float]]:
            of = graph.items[item]
            return sorted(float(left[o]) for o, _ in of.lefts), sorted(right[o] + s / 200 for o, s in of.rights)

        for i in range(len(column) - 1):
            upper, lower = ends(column[i]), ends(column[i + 1])
            now = sum(_inversions(a, b) for a, b in zip(upper, lower, strict=True))
            then = sum(_inversions(b, a) for a, b in zip(upper, lower, strict=True))
            if then < now:
                column[i], column[i + 1] = column[i + 1], column[i]


def _inversions(upper: list[float], lower: list[float]) -> int:
    """The number of pairs in which a wire of the upper item ends below one of the lower. Both lists are sorted."""
    return sum(bisect_left(lower, end) for end in upper)


def _crossings(graph: Graph) -> int:
    total = 0
    for column, following in zip(graph.columns, graph.columns[1:], strict=False):
        position = {item: i for i, item in enumerate(following)}
        seen: list[float] = []
        for item in column:
            ends = [position[other] + offset / 200 for other, offset in graph.items[item].rights]
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total
