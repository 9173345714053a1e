"""Layered drawings of circuits: where boxes stand and how wires run between them, from left to right.

The classical way. Boxes get layers by the longest path to them; a wire that passes layers gets a lane through
each, shared by all wires from the same source; the order within layers is improved by barycentres and exchanges
until few wires cross; then heights are chosen so that wires are short and, where possible, straight. Wires bend
only between layers, where no box stands, so they never run through one.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

SWEEPS = 24
BOX_GAP, LANE_GAP, MIXED_GAP = 20.0, 11.0, 14.0  # between neighbours in a layer: two boxes, two lanes, one of each
CHANNEL, STEEPNESS, WIDEST_CHANNEL = 38.0, 0.28, 150.0  # between layers: the least, per unit of height, the most


@dataclass(frozen=True)
class Box:
    """Something to be placed, its height and inputs in whole units. Wires leave it at the middle of its right side."""

    width: float
    height: float
    inputs: tuple[float, ...]
    """How far below the top each wire enters at the left side."""
    layer: int
    rank: int | None = None
    """Its place among the boxes of its layer where that is prescribed."""


@dataclass(frozen=True)
class Wire:
    """From a box to an input of a box of a later layer."""

    source: int
    target: int
    port: int


@dataclass(frozen=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True)
class Drawing:
    """All places. A wire goes through its points: level, or in one bend from the height of one to that of the next."""

    corners: tuple[Point, ...]
    """The upper left corner of every box."""
    paths: tuple[tuple[Point, ...], ...]
    """Of every wire, from the source's right side to the input."""
    fresh: tuple[int, ...]
    """From which of its points on a wire runs alone; before, it shares its path with wires before it."""
    branches: tuple[Point, ...]
    """Where wires of the same source part."""
    width: float
    height: float


# ---- layers


def assign_layers(
    count: int, first: int, arcs: Sequence[tuple[int, int, int]], wires: Iterable[tuple[int, int]]
) -> list[int]:
    """The layer of every box: along an arc (a, b, least) it grows by at least `least`.

    The first so many boxes stand in layer 0, alone. Boxes are numbered so that arcs go upwards. Each starts in the
    earliest layer it can have and then moves on as long as that makes the wires (pairs of boxes) shorter in all;
    wires from one source count as long as the longest.
    """
    layers = [0 if number < first or not first else 1 for number in range(count)]
    later: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for a, b, least in sorted(arcs, key=lambda arc: arc[1]):
        layers[b] = max(layers[b], layers[a] + least)
        later[a].append((b, least))
    targets: list[set[int]] = [set() for _ in range(count)]
    sources: list[set[int]] = [set() for _ in range(count)]
    for a, b in wires:
        targets[a].add(b)
        sources[b].add(a)

    def length(box: int, layer: int) -> int:
        reach = [max(layer if b == box else layers[b] for b in targets[a]) - layers[a] for a in sources[box]]
        onwards = max((layers[b] - layer for b in targets[box]), default=0)
        return sum(reach) + onwards

    for box in reversed(range(first, count)):
        last = min((layers[b] - least for b, least in later[box]), default=layers[box])
        choices = range(layers[box], last + 1)
        layers[box] = min(choices, key=lambda layer: (length(box, layer), layer), default=layers[box])
    return layers


# ---- the graph with lanes


@dataclass
class _Item:
    """A box, or a lane of a wire through a layer."""

    height: float
    box: int | None = None
    rank: int | None = None
    lefts: list[tuple[int, float]] = field(default_factory=list)
    """Items before it, and where (from the middle) the wire from there enters."""
    rights: list[tuple[int, float]] = field(default_factory=list)
    """Items after it, and where the wire enters those."""
    y: float = 0.0  # of the middle


class _Graph:
    def __init__(self, boxes: Sequence[Box], wires: Sequence[Wire]):
        self.items = [_Item(box.height, number, box.rank) for number, box in enumerate(boxes)]
        self.columns: list[list[int]] = [[] for _ in range(max((box.layer for box in boxes), default=-1) + 1)]
        for number, box in enumerate(boxes):
            self.columns[box.layer].append(number)
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
            self.items.append(_Item(0.0))
        return self.lanes[source, layer]

    def _join(self, left: int, right: int, offset: float) -> None:
        self.items[left].rights.append((right, offset))
        self.items[right].lefts.append((left, offset))

    def distance(self, upper: int, lower: int) -> float:
        """How far apart the middles of neighbours must be."""
        one, other = self.items[upper], self.items[lower]
        boxes = (one.box is not None) + (other.box is not None)
        return (one.height + other.height) / 2 + (LANE_GAP, MIXED_GAP, BOX_GAP)[boxes]


# ---- order


def _improve_order(graph: _Graph) -> None:
    """Few crossings: barycentre sweeps in both directions, then exchanges of neighbours."""
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


def _rank(graph: _Graph, item: int) -> int:
    rank = graph.items[item].rank
    return len(graph.items) if rank is None else rank


def _free(graph: _Graph, layer: int) -> bool:
    return all(graph.items[item].rank is None for item in graph.columns[layer])


def _sort_by_barycentre(graph: _Graph, layer: int, rightwards: bool) -> None:
    if not _free(graph, layer):
        return
    beside = layer - 1 if rightwards else layer + 1
    if not 0 <= beside < len(graph.columns):
        return
    place = {item: i for i, item in enumerate(graph.columns[beside])}

    def centre(pair: tuple[int, int]) -> float:
        now, item = pair
        of = graph.items[item]
        # The offset of the port, as a part of one place, tells wires into the same box apart.
        near = [place[other] for other, _ in of.lefts] if rightwards else [place[o] + s / 200 for o, s in of.rights]
        return sum(near) / len(near) if near else float(now)

    graph.columns[layer] = [item for _, item in sorted(enumerate(graph.columns[layer]), key=centre)]


def _exchange_neighbours(graph: _Graph) -> None:
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
    """How often a wire of the upper item ends below one of the lower; both lists are sorted."""
    return sum(bisect_left(lower, end) for end in upper)


def _crossings(graph: _Graph) -> int:
    total = 0
    for column, following in zip(graph.columns, graph.columns[1:], strict=False):
        place = {item: i for i, item in enumerate(following)}
        seen: list[float] = []
        for item in column:
            ends = [place[other] + offset / 200 for other, offset in graph.items[item].rights]
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


# ---- heights


def _choose_heights(graph: _Graph) -> None:
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
    blocks = _blocks(graph)
    for _ in range(SWEEPS):
        for block in blocks:
            _straighten(graph, block)


def _rounded(y: float) -> float:
    """To halves, up: distances are whole and halves, so they are kept, and sums of heights are exact from here on."""
    return math.floor(2 * y + 0.5) / 2


def _pulls(graph: _Graph, item: int) -> list[tuple[float, float]]:
    """The heights at which a wire of the item would be straight, and how much that matters."""
    of = graph.items[item]
    pulls = []
    for wires, sign in ((of.lefts, -1.0), (of.rights, 1.0)):
        for other, offset in wires:
            lanes = (of.box is None) + (graph.items[other].box is None)
            pulls.append((graph.items[other].y + sign * offset, (1.0, 2.0, 8.0)[lanes]))
    return pulls


def _settle(graph: _Graph, column: list[int]) -> None:
    """The heights of least squared bends that keep the order and the distances: a regression by pooling neighbours."""
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
    place = 0
    for total, weight, members in pools:
        for _ in range(int(members)):
            graph.items[column[place]].y = total / weight + starts[place]
            place += 1


def _blocks(graph: _Graph) -> list[list[int]]:
    """Boxes one by one, and the lanes of each source in pieces as long as can be level."""
    room = _rooms(graph)
    blocks = [[number] for number, item in enumerate(graph.items) if item.box is not None]
    chains: dict[int, list[int]] = {}
    for (source, _), lane in sorted(graph.lanes.items()):
        chains.setdefault(source, []).append(lane)
    for chain in chains.values():
        piece: list[int] = []
        low, high = float("-inf"), float("inf")
        for lane in chain:
            least, most = room[lane]
            if piece and max(low, least) > min(high, most):
                blocks.append(_level(graph, piece, low, high))
                piece, low, high = [], float("-inf"), float("inf")
            piece.append(lane)
            low, high = max(low, least), min(high, most)
        blocks.append(_level(graph, piece, low, high))
        room = _rooms(graph)
    return blocks


def _level(graph: _Graph, piece: list[int], low: float, high: float) -> list[int]:
    mean = _rounded(sum(graph.items[lane].y for lane in piece) / len(piece))
    for lane in piece:
        graph.items[lane].y = min(max(mean, low), high)
    return piece


def _rooms(graph: _Graph) -> dict[int, tuple[float, float]]:
    """How far up and down each item could go without its neighbours moving."""
    rooms = {}
    for column in graph.columns:
        for i, item in enumerate(column):
            rooms[item] = _room(graph, column, i)
    return rooms


def _room(graph: _Graph, column: list[int], i: int) -> tuple[float, float]:
    low, high = float("-inf"), float("inf")
    if i > 0:
        low = graph.items[column[i - 1]].y + graph.distance(column[i - 1], column[i])
    if i + 1 < len(column):
        high = graph.items[column[i + 1]].y - graph.distance(column[i], column[i + 1])
    return low, high


def _straighten(graph: _Graph, block: list[int]) -> None:
    """Move a block to the height at which its wires deviate least: there at least one of them is straight."""
    inside = set(block)
    low, high = float("-inf"), float("inf")
    pulls = []
    for item in block:
        column = next(column for column in graph.columns if item in column)
        least, most = _room(graph, column, column.index(item))
        low, high = max(low, least), min(high, most)
        of = graph.items[item]
        for wires, sign in ((of.lefts, -1.0), (of.rights, 1.0)):
            pulls += [graph.items[other].y + sign * offset for other, offset in wires if other not in inside]
    now = graph.items[block[0]].y
    if not pulls or low > high:
        return
    choices = sorted({min(max(y, low), high) for y in (*pulls, now)})
    best = min(choices, key=lambda y: (sum(abs(y - pull) for pull in pulls), abs(y - now)))
    for item in block:
        graph.items[item].y = best


# ---- all together


def draw(boxes: Sequence[Box], wires: Sequence[Wire]) -> Drawing:
    """Places for all boxes and wires."""
    graph = _Graph(boxes, wires)
    _improve_order(graph)
    _choose_heights(graph)
    items = graph.items
    top = min((item.y - item.height / 2 for item in items), default=0.0)
    bottom = max((item.y + item.height / 2 for item in items), default=0.0)

    widths = [max((boxes[i].width for i in column if i < len(boxes)), default=0.0) for column in graph.columns]
    lefts: list[float] = []
    x = 0.0
    for layer, width in enumerate(widths):
        lefts.append(x)
        bends = [
            abs(items[item].y - items[other].y - offset)
            for item in graph.columns[layer]
            for other, offset in items[item].rights
        ]
        x += width + round(min(max(CHANNEL, STEEPNESS * max(bends, default=0.0)), WIDEST_CHANNEL))

    corners = tuple(
        Point(lefts[box.layer] + (widths[box.layer] - box.width) / 2, item.y - box.height / 2 - top)
        for box, item in zip(boxes, items, strict=False)
    )
    paths, fresh = [], []
    seen: dict[tuple[int, tuple[Point, ...]], int] = {}
    leaving: dict[tuple[int, Point], set[Point]] = {}
    for wire in wires:
        path = _path(graph, boxes, corners, lefts, widths, wire, top)
        shared = 0
        while shared + 1 < len(path) and (wire.source, tuple(path[: shared + 2])) in seen:
            shared += 1
        for i in range(1, len(path)):
            seen[wire.source, tuple(path[: i + 1])] = i
            leaving.setdefault((wire.source, path[i - 1]), set()).add(path[i])
        paths.append(tuple(path))
        fresh.append(shared)
    branches = tuple(point for (_, point), following in leaving.items() if len(following) > 1)
    width = lefts[-1] + widths[-1] if lefts else 0.0
    return Drawing(corners, tuple(paths), tuple(fresh), branches, width, bottom - top)


def _path(
    graph: _Graph,
    boxes: Sequence[Box],
    corners: Sequence[Point],
    lefts: Sequence[float],
    widths: Sequence[float],
    wire: Wire,
    top: float,
) -> list[Point]:
    """Level out of the source to the end of its layer, level through lanes, level into the input."""
    source, target = boxes[wire.source], boxes[wire.target]
    y = corners[wire.source].y + source.height / 2
    points = [Point(corners[wire.source].x + source.width, y), Point(lefts[source.layer] + widths[source.layer], y)]
    for layer in range(source.layer + 1, target.layer):
        lane = graph.items[graph.lanes[wire.source, layer]].y - top
        points += [Point(lefts[layer], lane), Point(lefts[layer] + widths[layer], lane)]
    end = corners[wire.target].y + target.inputs[wire.port]
    points += [Point(lefts[target.layer], end), Point(corners[wire.target].x, end)]
    return [point for i, point in enumerate(points) if i == 0 or point != points[i - 1]]
