"""How the time of a training step grows with each of its sizes, plain and by a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from nram.bench.step import StepShape, configured, training_seconds
from nram.errors import UsageError
from nram.runtime import Device
from nram.training.kernels import PLAIN, kernel_of

BASE = StepShape("copy", 12, 4, 11, 1, "mlp", 65, 4, 50, 1)

AXES: dict[str, tuple[int, ...]] = {
    "memory_size": (6, 12, 24, 48),
    "steps": (6, 11, 22, 44),
    "registers": (2, 4, 6, 8),
    "batch": (16, 32, 64, 128, 256),
    "population": (1, 2, 4, 8),
    "repeats": (1, 2, 3),
}
LABELS = {
    "memory_size": "M",
    "steps": "T",
    "registers": "R",
    "batch": "batch",
    "population": "population",
    "repeats": "repetitions of the modules",
}


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
    base: StepShape = BASE,
    watch: Callable[[str], None] = lambda what: None,
) -> list[Point]:
    """Along each axis, with everything else as in the base."""
    points = []
    for axis in axes:
        for value in AXES[axis]:
            watch(f"{LABELS[axis]} = {value}")
            shape = base._replace(**{axis: value})
            kernel = kernel_of(*configured(shape), devices)
            plain = training_seconds(shape, devices, seconds, PLAIN)
            fast = training_seconds(shape, devices, seconds, kernel) if kernel.shape else None
            points.append(Point(axis, value, plain, fast))
    return points


def check_axes(names: Iterable[str]) -> list[str]:
    chosen = list(names) or list(AXES)
    for name in chosen:
        if name not in AXES:
            raise UsageError(f"there is no axis '{name}': the axes are {', '.join(AXES)}")
    return chosen


def check_plot(path: str | None) -> None:
    if path is not None and Path(path).suffix.lower() not in (".png", ".svg"):
        raise UsageError(f"cannot tell the kind of picture from '{path}': end its name in .png or .svg")


def plot_scaling(points: list[Point], path: Path) -> None:
    """A panel per axis, time against size, both logarithmic."""
    import io

    from matplotlib.figure import Figure

    from nram.files import write_atomically

    axes = list(dict.fromkeys(point.axis for point in points))
    columns = min(3, len(axes))
    rows = -(-len(axes) // columns)
    figure = Figure(figsize=(4 * columns, 3.2 * rows), layout="constrained")
    for number, axis in enumerate(axes):
        panel = figure.add_subplot(rows, columns, number + 1)
        own = [point for point in points if point.axis == axis]
        for name in ("plain", "fast"):
            known = [(point.value, 1e3 * getattr(point, name)) for point in own if getattr(point, name) is not None]
            if known:
                panel.plot(*zip(*known, strict=True), marker="o", label=name)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks([point.value for point in own], [str(point.value) for point in own])
        panel.set_xlabel(LABELS[axis])
        panel.grid(alpha=0.3)
        if number % columns == 0:
            panel.set_ylabel("ms a training step")
        if number == 0:
            panel.legend()
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=150)
    write_atomically(path, content.getvalue())
