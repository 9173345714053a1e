"""Traces of the continuous machine: distributions instead of numbers, and the probability of halting at every step.

Recording them needs JAX. The record itself is NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from nram.errors import UsageError
from nram.machine import Controller, Wiring, record_soft
from nram.machine.soft import Options
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

    @property
    def stopped_after(self) -> int:
        """The first step after which it has stopped almost surely."""
        return int(np.argmax(np.cumsum(self.finish) >= CERTAIN)) + 1

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
        for i, name in enumerate(register_names(trace))
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


def register_names(trace: SoftTrace) -> list[str]:
    return [f"r{i + 1}" for i in range(trace.registers.shape[1])]


def spread(count: int, most: int) -> list[int]:
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
