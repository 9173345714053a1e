"""All that there is to show of a program: its text, its rows with their circuits, its card and its evidence."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nram.explorer.scenes import scene_of
from nram.pictures.circuits import MAX_ROWS, program_rows
from nram.programs.evidence import evidence_in_parts, evidence_table
from nram.programs.ir import Program
from nram.programs.simplify import size_of
from nram.programs.text import operation_to_text, row_to_text, to_text

MOST_DRAWN = 25_000  # squares of the operations of rows, one after the other, that are drawn: about two seconds


@lru_cache(maxsize=64)
def program_info(program: Program) -> dict[str, Any]:
    """What there is to show of a program, wherever it comes from."""
    text = to_text(program)
    columns, *rows = evidence_table(program.verified)
    return {
        "name": program.name,
        "task": program.task,
        "origin": program.origin,
        "limit": None if program.limit is None else str(program.limit),
        "needs_limit": program.needs_limit,
        "registers": list(program.registers),
        "text": text,
        "fingerprint": program.fingerprint,
        "size": str(size_of(program)),
        "rows": _rows(program, text),
        "made": [list(pair) for pair in program.made],
        "evidence": {
            "columns": columns,
            "rows": rows,
            "proven_for_every_length": program.proven_for_every_length,
            **evidence_in_parts(program),
        },
    }


def _rows(program: Program, text: str) -> list[dict[str, Any]]:
    """Every row with its lines in the text, and its circuit where it is not too large."""
    drawn = 0 if program.rows <= MAX_ROWS else MOST_DRAWN
    at = 1 + text[: text.index("\n\n") + 2].count("\n")  # the table begins after the header and an empty line
    found = []
    for state, row in program_rows(program):
        if row == 0 and len(program.states) > 1:
            at += 1 + (state > 0)
        lines = row_to_text(program, state, row)
        operations = program.states[state][row].operations
        drawn += 1 + len(operations) ** 2
        found.append(
            {
                "state": state,
                "row": row,
                "label": f"row {row + 1}" if len(program.states) == 1 else f"state {state}, row {row + 1}",
                "condition": lines[0].removesuffix(":"),
                "lines": lines,
                "first_line": at,
                "operations": [
                    {"module": one.module, "words": operation_to_text(program, one), "line": 1 + index}
                    for index, one in enumerate(operations)
                ],
                "circuit": scene_of(program, state, row) if drawn <= MOST_DRAWN else None,
            }
        )
        at += len(lines)
    return found
