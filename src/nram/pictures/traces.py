"""Traces as text, JSON and LaTeX, in the form of the paper's tables.

A line shows memory and registers at the start of a step, and the arguments of READ and WRITE: p is the pointer, a the
value written. The last line shows the end of the run.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from nram.pictures.trace_records import Trace, instance_to_json, record_trace
from nram.pictures.trace_table import GAP, Column, Room, shown_steps, table_lines, tabulate

__all__ = ["Trace", "record_trace", "trace_to_json", "trace_to_latex", "trace_to_text"]


# ---- as text


def trace_to_text(trace: Trace, *, width: int | None = 120, most_steps: int | None = 40) -> str:
    """The table for a terminal of this width. None shows all cells, or all steps."""
    table = tabulate(trace, None if width is None else _room(trace, width, most_steps), most_steps)
    lines = table_lines(table.groups, table.left_out)
    if trace.instance is not None:
        (steps,), cells, *_ = table.groups
        lines.append(f"{'':{steps.width}} | {_output_marks(trace, cells)}")
    lines += ["", *trace.outcome(), *([table.note] if table.note else [])]
    return "\n".join(lines) + "\n"


def _room(trace: Trace, width: int, most_steps: int | None) -> Room:
    """The width that the other columns leave to the memory."""
    digits = len(str(len(trace.start) - 1))
    steps = [trace.steps[index] for index in shown_steps(len(trace.steps), most_steps, trace.idle_from)]
    taken = max(4, len(str(len(trace.steps)))) + len(trace.row_heading) + 5 * len(" | ")
    taken += sum(max(len(name), digits) + 1 for name in trace.program.registers) - 1
    taken += max([len("READ"), *(len(step.reads_in_words) for step in steps)])
    taken += max([len("WRITE"), *(len(step.writes_in_words) for step in steps)])
    return Room(width - taken + 1, digits + 1, len(GAP) + 1)


def _output_marks(trace: Trace, cells: tuple[Column, ...]) -> str:
    """Marks below the output cells."""
    if not any(column.asked for column in cells):
        return "(no output cell is shown)"
    marks = " ".join(("^" if column.asked else "").rjust(column.width) for column in cells)
    return f"{marks.rstrip()}  output cell{'' if len(trace.output_cells) == 1 else 's'}"


# ---- as JSON


def trace_to_json(trace: Trace) -> dict[str, Any]:
    """Every step with the memory at its start. Rows are counted from 1, states from 0."""
    trace.require_listable()
    steps = [
        {
            "step": step.number,
            "memory": list(memory),
            "registers": list(step.registers),
            "state": step.state,
            "row": step.row + 1,
            "reads": [*map(asdict, step.reads)],
            "writes": [*map(asdict, step.writes)],
        }
        for step, memory in zip(trace.steps, trace.memories(), strict=False)
    ]
    ending = trace.ending
    value: dict[str, Any] = {
        "program": trace.program.name,
        "registers": list(trace.program.registers),
        "memory_size": len(trace.start),
        "max_steps": trace.limit,
        "steps": steps,
        "ending": {
            "memory": list(ending.memory),
            "registers": list(ending.registers),
            "steps": ending.steps,
            "halted": ending.halted,
        },
    }
    if trace.instance is not None:
        value["instance"] = instance_to_json(trace.instance, ending.memory)
    return value


# ---- as LaTeX


def trace_to_latex(trace: Trace, *, most_cells: int | None = 24, most_steps: int | None = 40) -> str:
    """A tabular as in the paper. Output cells, where known, have gray columns, which need colortbl."""
    table = tabulate(trace, None if most_cells is None else Room(most_cells), most_steps)
    groups = ["".join(r">{\columncolor[gray]{0.8}}c" if one.asked else "c" for one in group) for group in table.groups]
    columns = table.columns
    rows = [" & ".join(words) + r" \\" for words in zip(*map(_latex_words, columns), strict=True)]
    text = [f"% {trace.program.name}: {'; '.join(trace.outcome())}"]
    if any(column.asked for column in columns):
        text.append(r"% needs \usepackage{colortbl}: the output cells have gray columns")
    text += [rf"\begin{{tabular}}{{|{'|'.join(groups)}|}}", r"\hline", rows[0], r"\hline"]
    for row, left_out in zip(rows[1:], table.left_out, strict=False):
        text.append(row)
        if left_out:
            text.append(" & ".join([r"$\vdots$"] * len(columns)) + r" \\")
    text += [r"\hline", rows[-1], r"\hline", r"\end{tabular}"]
    if table.note:
        text.append(f"% {table.note}")
    return "\n".join(text) + "\n"


def _latex_words(column: Column) -> list[str]:
    """The heading and the words of a column."""
    match column.kind:
        case "gap":
            return [r"$\cdots$"] * len(column.all_words)
        case "register":
            heading = _latex_name(column.heading)
        case "access":
            heading = rf"\texttt{{{column.heading}}}"
        case "step" | "row":
            heading = rf"\textbf{{{column.kind.capitalize()}}}"
        case _:
            heading = column.heading
    return [heading, *column.words]


def _latex_name(name: str) -> str:
    """A register as in the paper, r_1, or as it is written."""
    if found := re.fullmatch(r"([A-Za-z])([0-9]+)", name):
        return f"${found[1]}_{{{found[2]}}}$"
    return r"\texttt{" + name.replace("_", r"\_") + "}"
