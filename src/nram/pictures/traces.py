"""Traces in the form of the paper's tables: memory and registers at the start of every step, and what READ and WRITE
were given, p the pointer and a the value written. A last line shows how the run left everything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from nram.pictures.trace_records import Excerpt, Room, Trace, excerpt, record_trace, shown_steps

GAP = "..."

__all__ = ["Trace", "record_trace", "trace_to_json", "trace_to_latex", "trace_to_text"]


# ---- as text


def trace_to_text(trace: Trace, *, width: int | None = 120, most_steps: int | None = 40) -> str:
    """The table for a terminal of this width. None shows all cells, or all steps."""
    room = None if width is None else _room(trace, width, most_steps)
    part = excerpt(trace, room, most_steps)
    columns = part.columns()
    lines = part.lines
    groups = [
        aligned(["step"], [[line.label] for line in lines]),
        aligned(
            [GAP if place is None else str(part.cells[place]) for place in columns],
            [[GAP if place is None else str(line.memory[place]) for place in columns] for line in lines],
        ),
        aligned(trace.program.registers, [list(map(str, line.registers)) for line in lines]),
        aligned(["READ"], [[line.step.reads_in_words if line.step else ""] for line in lines], left=True),
        aligned(["WRITE"], [[line.step.writes_in_words if line.step else ""] for line in lines], left=True),
        aligned([_row_heading(trace)], [[trace.place(line.step) if line.step else ""] for line in lines]),
    ]
    heading, *table = [" | ".join(cells).rstrip() for cells in zip(*groups, strict=True)]
    rule = "-+-".join("-" * len(group[0]) for group in groups)
    written = [heading, rule]
    for words, line in zip(table, lines, strict=True):
        written += [words] if line.step else [rule, words]
        if line.left_out:
            written.append(gap_line(len(groups[0][0]), line.left_out))
    written += _marks(trace, part, groups[0][0], groups[1][0])
    written += ["", *trace.outcome()]
    if note := part.note():
        written.append(note)
    return "\n".join(written) + "\n"


def gap_line(width: int, count: int) -> str:
    """What stands between two steps in place of those left out."""
    return f"{GAP:>{width}} | {count} step{'' if count == 1 else 's'}"


def _row_heading(trace: Trace) -> str:
    return "row" if len(trace.program.states) == 1 else "state:row"


def aligned(head: Sequence[str], rows: list[list[str]], left: bool = False) -> list[str]:
    """Columns that stand together, the heading first: lines of the same length."""
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    align = "<" if left else ">"
    return [" ".join(f"{cell:{align}{w}}" for cell, w in zip(row, widths, strict=True)) for row in (head, *rows)]


def _room(trace: Trace, width: int, most_steps: int | None) -> Room:
    """What the other columns leave to the memory."""
    digits = len(str(len(trace.start) - 1))
    steps = [trace.steps[place] for place in shown_steps(len(trace.steps), most_steps, trace.idle_from)]
    taken = max(4, len(str(len(trace.steps)))) + len(_row_heading(trace)) + 5 * len(" | ")
    taken += sum(max(len(name), digits) + 1 for name in trace.program.registers) - 1
    taken += max([len("READ"), *(len(step.reads_in_words) for step in steps)])
    taken += max([len("WRITE"), *(len(step.writes_in_words) for step in steps)])
    return Room(width - taken + 1, digits + 1, len(GAP) + 1)


def _marks(trace: Trace, part: Excerpt, labels: str, head: str) -> list[str]:
    """A line that points to the output cells, where they are known."""
    if trace.instance is None:
        return []
    asked = {str(cell) for cell in trace.output_cells & set(part.cells)}
    if not asked:
        return [f"{'':{len(labels)}} | (no output cell is shown)"]
    marks = [" "] * len(head)
    for word in re.finditer(r"\d+", head):
        if word[0] in asked:
            marks[word.end() - 1] = "^"
    return [f"{'':{len(labels)}} | {''.join(marks).rstrip()}  output cell{'' if len(trace.output_cells) == 1 else 's'}"]


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
            "reads": [{"pointer": access.pointer, "value": access.value} for access in step.reads],
            "writes": [{"pointer": access.pointer, "value": access.value} for access in step.writes],
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
        expected, cells = trace.instance.output, trace.instance.cells
        right = all(ending.memory[cell] == expected[cell] for cell in cells)
        value["instance"] = {"expected": expected, "cells": cells, "right": right}
    return value


# ---- as LaTeX


def trace_to_latex(trace: Trace, *, most_cells: int | None = 24, most_steps: int | None = 40) -> str:
    """A tabular as in the paper. Output cells, where known, have gray columns, for which colortbl is needed."""
    part = excerpt(trace, None if most_cells is None else Room(most_cells), most_steps)
    columns = part.columns()
    gray = [place is not None and part.cells[place] in trace.output_cells for place in columns]
    names = [_latex_name(name) for name in trace.program.registers]
    memory = "".join(r">{\columncolor[gray]{0.8}}c" if shade else "c" for shade in gray)
    head = [r"\textbf{Step}", *(r"$\cdots$" if place is None else str(part.cells[place]) for place in columns)]
    head += [*names, r"\texttt{READ}", r"\texttt{WRITE}", r"\textbf{Row}"]
    written = [f"% {trace.program.name}: {'; '.join(trace.outcome())}"]
    if any(gray):
        written.append(r"% needs \usepackage{colortbl}: the output cells have gray columns")
    written += [rf"\begin{{tabular}}{{|c|{memory}|{'c' * len(names)}|c|c|c|}}", r"\hline"]
    written += [" & ".join(head) + r" \\", r"\hline"]
    for line in part.lines:
        words = [line.label, *(r"$\cdots$" if place is None else str(line.memory[place]) for place in columns)]
        words += map(str, line.registers)
        if line.step:
            words += [line.step.reads_in_words, line.step.writes_in_words, trace.place(line.step)]
        else:
            written.append(r"\hline")
            words += ["", "", ""]
        written.append(" & ".join(words) + r" \\")
        if line.left_out:
            written.append(" & ".join([r"$\vdots$"] * len(head)) + r" \\")
    written += [r"\hline", r"\end{tabular}"]
    if note := part.note():
        written.append(f"% {note}")
    return "\n".join(written) + "\n"


def _latex_name(name: str) -> str:
    """A register as in the paper, r_1, or as it is written."""
    if found := re.fullmatch(r"([A-Za-z])([0-9]+)", name):
        return f"${found[1]}_{{{found[2]}}}$"
    return r"\texttt{" + name.replace("_", r"\_") + "}"
