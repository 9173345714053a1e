"""Traces of the continuous machine: distributions instead of numbers, and the probability of halting at every step.

Recording them needs JAX. The record itself is NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nram.errors import UsageError
from nram.machine import Controller, Wiring, record_soft
from nram.machine.soft import Options
from nram.pictures.figures import new_figure, save_figure, themed
from nram.pictures.shapes import Theme, colour
from nram.pictures.trace_records import instance_to_json, verdict
from nram.pictures.trace_table import (
    GAP,
    Column,
    Room,
    cells_that_fit,
    columns_with_gaps,
    gaps_after,
    note_of,
    shown_steps,
    table_lines,
)
from nram.tasks.base import Instance

MAX_NUMBERS = 200_000_000
CERTAIN = 0.995  # from this probability on, a value is shown without it
MOST_PANELS = 18


@dataclass(frozen=True)
class SoftTrace:
    """A run of T steps with R registers on M cells. Index t is the start of step t + 1, and T the end."""

    memory: np.ndarray  # [T + 1, M cells, M values]
    registers: np.ndarray  # [T + 1, R, M values]
    willing: np.ndarray  # [T] f_t, the willingness to stop after the step
    finish: np.ndarray  # [T] p_t, the probability that it stops there; the last step takes what is left
    output: np.ndarray  # [M cells, M values], the memory averaged with p_t
    instance: Instance | None = None

    @property
    def steps(self) -> int:
        return len(self.willing)

    def outcome(self) -> list[str]:
        """How it ended, in words."""
        likely = int(np.argmax(self.finish)) + 1
        lines = [f"stops after step {likely} with probability {self.finish[likely - 1]:.2f}, of {self.steps} steps"]
        if self.instance is not None:
            lines.append(verdict(self.instance, np.argmax(self.output, -1).tolist()))
        return lines


def record_soft_trace(
    controller: Controller,
    wiring: Wiring,
    memory: Sequence[int],
    limit: int,
    options: Options = Options(),
    instance: Instance | None = None,
) -> SoftTrace:
    """Run the continuous machine on one memory of integers for `limit` steps."""
    size = len(memory)
    if limit < 1:
        raise UsageError(f"the continuous machine runs at least 1 step, not {limit}: raise --max-steps")
    if (limit + 1) * size * (size + wiring.registers) > MAX_NUMBERS:
        raise UsageError(
            f"{limit} steps on {size} cells are too many distributions to keep: "
            "give fewer with --max-steps, or a smaller memory"
        )
    recording = _record(controller, wiring, jnp.asarray(memory, jnp.int32), limit, limit, options)
    kept = (recording.memory, recording.registers, recording.willing, recording.finish, recording.output)
    return SoftTrace(*map(np.asarray, kept), instance=instance)


_record = eqx.filter_jit(record_soft)


# ---- as text


def value_in_words(distribution: np.ndarray) -> str:
    """The likeliest value, with its probability where it is not certain: '6', '6~.83'."""
    value = int(np.argmax(distribution))
    probability = float(distribution[value])
    return str(value) if probability >= CERTAIN else f"{value}~{probability:.2f}".replace("~0.", "~.")


def soft_trace_to_text(trace: SoftTrace, *, width: int | None = 120, most_steps: int | None = 40) -> str:
    """The table for a terminal of this width. None shows all cells, or all steps."""
    count, size = trace.steps, trace.memory.shape[-1]
    shown = shown_steps(count, most_steps)
    lines = [*shown, count]  # the start of each shown step, and the end; below them stands the output
    registers = [
        Column("register", name, (*(value_in_words(trace.registers[t, i]) for t in lines), ""))
        for i, name in enumerate(_register_names(trace))
    ]
    cells = tuple(range(size))
    if width is not None:
        taken = sum(column.width + 1 for column in registers) - 1
        room = Room(width - taken - max(4, len(str(count))) - 4 * 3 - 2 * 5, len(str(size - 1)) + 5, len(GAP) + 1)
        cells = cells_that_fit(size, _most_telling(trace), room)
    memories = [*(trace.memory[t] for t in lines), trace.output]

    def cell_column(position: int | None) -> Column:
        if position is None:
            return Column("gap", GAP, (GAP,) * len(memories))
        cell = cells[position]
        return Column("cell", str(cell), tuple(value_in_words(memory[cell]) for memory in memories))

    groups = [
        [Column("step", "step", (*(str(t + 1) for t in shown), "end", "out"))],
        [*map(cell_column, columns_with_gaps(cells, size))],
        registers,
        [
            Column("row", name, (*(f"{chances[t]:.3f}" for t in shown), "", ""))
            for name, chances in (("f_t", trace.willing), ("p_t", trace.finish))
        ],
    ]
    text = [
        *table_lines(groups, gaps_after(shown, count)),
        "",
        f"6 is certain (probability {CERTAIN} or more), 6~.83 the likeliest value with its probability",
        "f_t the willingness to stop after the step, p_t the probability of stopping there, out the output:",
        "the memory averaged with p_t",
        "",
        *trace.outcome(),
    ]
    if note := note_of(size - len(cells), size, count - len(shown), count):
        text.append(note)
    return "\n".join(text) + "\n"


def _register_names(trace: SoftTrace) -> list[str]:
    return [f"r{i + 1}" for i in range(trace.registers.shape[1])]


def _spread(count: int, most: int) -> list[int]:
    """At most `most` of 0..count-1, evenly spread, with the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def _most_telling(trace: SoftTrace) -> list[int]:
    """Cells by how much their distributions change, output cells first among equals."""
    change = np.abs(np.diff(trace.memory, axis=0)).sum(axis=(0, 2))
    if trace.instance is not None:
        change[trace.instance.cells] += 1e-3
    return np.argsort(-change, kind="stable").tolist()


# ---- as JSON


def soft_trace_to_json(trace: SoftTrace, distributions: bool = False) -> dict[str, Any]:
    """Likeliest values and their probabilities; the whole distributions if asked for."""

    def listed(values: np.ndarray) -> dict[str, Any]:
        return {"values": np.argmax(values, -1).tolist(), "probabilities": np.max(values, -1).tolist()} | (
            {"distributions": values.tolist()} if distributions else {}
        )

    steps = [
        {
            "step": t + 1,
            "memory": listed(trace.memory[t]),
            "registers": listed(trace.registers[t]),
            "willing": float(trace.willing[t]),
            "finish": float(trace.finish[t]),
        }
        for t in range(trace.steps)
    ]
    value: dict[str, Any] = {
        "memory_size": trace.memory.shape[-1],
        "steps": steps,
        "ending": {"memory": listed(trace.memory[-1]), "registers": listed(trace.registers[-1])},
        "output": listed(trace.output),
    }
    if trace.instance is not None:
        value["instance"] = instance_to_json(trace.instance, np.argmax(trace.output, -1).tolist())
    return value


# ---- as a picture


def draw_soft_trace(trace: SoftTrace, path: Path, title: str = "", theme: Theme = "auto") -> None:
    """Draw a panel for each step, or for a selection: registers and memory cells against values, dark if probable.

    Below them, f_t and p_t.
    """
    with themed(theme):
        save_figure(_soft_figure(trace, title, theme), path, theme)


def _soft_figure(trace: SoftTrace, title: str, theme: Theme) -> Figure:
    count, registers, size = trace.steps, trace.registers.shape[1], trace.memory.shape[-1]
    panels = _spread(count + 1, MOST_PANELS)
    down = -(-len(panels) // 6)
    across = -(-len(panels) // down)
    tall = min(max(1.6, 0.11 * (registers + 1 + size)), 4.0)
    figure = new_figure(1.9 * across + 0.8, (tall + 0.35) * down + 2.0)
    grid = figure.add_gridspec(down + 1, across, height_ratios=[*[tall] * down, 1.4])
    image = None
    for index, t in enumerate(panels):
        axes = figure.add_subplot(grid[divmod(index, across)])
        gap = np.full((1, size), np.nan)
        rows = np.concatenate([trace.registers[t], gap, trace.memory[t]])
        image = axes.imshow(rows, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axes.axhspan(registers - 0.5, registers + 0.5, color=colour("line", theme), linewidth=0)
        axes.set_title("end" if t == count else f"step {t + 1}", fontsize=8)
        labels = [*range(registers), *(registers + 1 + cell for cell in _ticks(size))]
        axes.set_yticks(labels, [*_register_names(trace), *map(str, _ticks(size))] if index % across == 0 else [])
        axes.set_xticks(_ticks(size))
        axes.tick_params(labelsize=6, length=2)
    below = figure.add_subplot(grid[down, :])
    steps = np.arange(1, count + 1)
    below.bar(steps, trace.finish, color=colour("kept", theme), label="p_t, stops here")
    below.plot(
        steps, trace.willing, color=colour("written", theme), marker="o", markersize=3, label="f_t, would stop here"
    )
    below.set(xlabel="step", ylim=(-0.03, 1.05), xlim=(0.4, count + 0.6))
    below.legend(fontsize=7, frameon=False)
    below.tick_params(labelsize=7)
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    assert image is not None  # the end is always among the panels
    bar = figure.colorbar(image, ax=below, fraction=0.02, pad=0.01)
    bar.set_label("probability", fontsize=7)
    bar.ax.tick_params(labelsize=6)
    left_out = f", {len(panels)} of {count + 1} states" if len(panels) <= count else ""
    words = f"{title + ': ' if title else ''}registers and memory cells (down) against values (across){left_out}"
    figure.suptitle(words, fontsize=9, parse_math=False)
    return figure


def _ticks(size: int) -> list[int]:
    step = max(1, -(-size // 12))
    return list(range(0, size, step))
