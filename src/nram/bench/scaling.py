"""How the time of a training step grows with each of its sizes, plain and by a kernel."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from nram.bench.shape import AXES, StepShape
from nram.bench.step import configured, training_seconds
from nram.files import write_result
from nram.machine.kernels.common.choice import PLAIN
from nram.runtime import Device
from nram.training.kernels import kernel_of


class Point(NamedTuple):
    """One size, and the seconds of a training step there."""

    axis: str
    value: int
    plain: float
    fast: float | None  # None where there is no kernel


def measure_scaling(
    axes: Iterable[str],
    devices: list[Device],
    seconds: float,
    on_note: Callable[[str], None] = lambda text: None,
) -> list[Point]:
    """Along each axis, with everything else as in `nram bench step`."""
    points = []
    for axis in axes:
        label, values = AXES[axis]
        for value in values:
            on_note(f"measuring {label} = {value}")
            shape = StepShape()._replace(**{axis: value})
            kernel = kernel_of(*configured(shape), devices)
            plain = training_seconds(shape, devices, seconds, PLAIN)
            fast = training_seconds(shape, devices, seconds, kernel) if kernel.shape else None
            points.append(Point(axis, value, plain, fast))
    return points


def plot_scaling(points: list[Point], path: Path) -> None:
    """A panel per axis, time against size, both logarithmic."""
    from matplotlib.figure import Figure

    axes = list(dict.fromkeys(point.axis for point in points))
    columns = min(3, len(axes))
    rows = -(-len(axes) // columns)
    figure = Figure(figsize=(4 * columns, 3.2 * rows), layout="constrained")
    for number, axis in enumerate(axes):
        panel = figure.add_subplot(rows, columns, number + 1)
        on_axis = [point for point in points if point.axis == axis]
        for name in ("plain", "fast"):
            known = [(point.value, 1e3 * getattr(point, name)) for point in on_axis if getattr(point, name) is not None]
            if known:
                panel.plot(*zip(*known, strict=True), marker="o", label=name)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks([point.value for point in on_axis], [str(point.value) for point in on_axis])
        panel.set_xlabel(AXES[axis][0])
        panel.grid(alpha=0.3)
        if number % columns == 0:
            panel.set_ylabel("ms a training step")
        if number == 0:
            panel.legend()
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=150)
    write_result(path, content.getvalue())
