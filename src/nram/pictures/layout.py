"""Layered drawings of circuits: where boxes stand and how wires run between them, from left to right.

The classical method. Boxes get layers by the longest path to them (here), an order within their layers with few
crossings (`layout_graph`), and heights at which wires are short and straight (`layout_heights`). Wires bend only
between layers, where there are no boxes, so they never run through one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nram.pictures.layout_graph import Box, Graph, Wire, improve_order
from nram.pictures.layout_heights import choose_heights

CHANNEL, STEEPNESS, WIDEST_CHANNEL = 38.0, 0.4, 150.0  # between layers: the least, per unit of height, the most

__all__ = ["Box", "Drawing", "Point", "Wire", "assign_layers", "draw"]


@dataclass(frozen=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True)
class Drawing:
    """All positions. Between two points a wire is horizontal, or makes one bend from one height to the other."""

    corners: tuple[Point, ...]
    """The upper left corner of every box."""
    paths: tuple[tuple[Point, ...], ...]
    """The points of every wire, from the source's right side to the input."""
    fresh: tuple[int, ...]
    """For every wire, the index of the point from which it runs alone. Before, it shares the path of earlier wires."""
    branches: tuple[Point, ...]
    """The points where wires of the same source separate."""
    width: float
    height: float


# ---- layers


def assign_layers(
    count: int, first: int, arcs: Sequence[tuple[int, int, int]], wires: Iterable[tuple[int, int]]
) -> list[int]:
    """The layer of every box: along an arc (a, b, least) it grows by at least `least`.

    The first `first` boxes are alone in layer 0. Arcs lead from lower to higher indices. Each box starts in its
    earliest possible layer and then moves on as long as the total length of the wires (pairs of boxes) decreases. Wires
    from one source count as one, of the length of the longest.
    """
    layers = [0 if box < first or not first else 1 for box in range(count)]
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


# ---- all together


def draw(boxes: Sequence[Box], wires: Sequence[Wire]) -> Drawing:
    """Positions for all boxes and wires."""
    graph = Graph(boxes, wires)
    improve_order(graph)
    choose_heights(graph)
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
    leaving: dict[tuple[int, Point], set[Point]] = {}
    for wire in wires:
        path = _path(graph, boxes, corners, lefts, widths, wire, top)
        drawn = [b in leaving.get((wire.source, a), ()) for a, b in zip(path, path[1:], strict=False)]
        for a, b in zip(path, path[1:], strict=False):
            leaving.setdefault((wire.source, a), set()).add(b)
        paths.append(tuple(path))
        fresh.append(drawn.index(False) if False in drawn else len(drawn))
    starts = {path[0] for path in paths}
    branches = tuple(point for (_, point), to in leaving.items() if len(to) > 1 and point not in starts)
    width = lefts[-1] + widths[-1] if lefts else 0.0
    return Drawing(corners, tuple(paths), tuple(fresh), branches, width, bottom - top)


def _path(
    graph: Graph,
    boxes: Sequence[Box],
    corners: Sequence[Point],
    lefts: Sequence[float],
    widths: Sequence[float],
    wire: Wire,
    top: float,
) -> list[Point]:
    """Horizontal through the source's layer, lanes and the target's layer, with bends between layers."""
    source, target = boxes[wire.source], boxes[wire.target]
    y = corners[wire.source].y + source.height / 2
    points = [Point(corners[wire.source].x + source.width, y), Point(lefts[source.layer] + widths[source.layer], y)]
    for layer in range(source.layer + 1, target.layer):
        lane = graph.items[graph.lanes[wire.source, layer]].y - top
        points += [Point(lefts[layer], lane), Point(lefts[layer] + widths[layer], lane)]
    end = corners[wire.target].y + target.inputs[wire.port]
    points += [Point(lefts[target.layer], end), Point(corners[wire.target].x, end)]
    return [point for i, point in enumerate(points) if i == 0 or point != points[i - 1]]
