"""Examples whose columns have names: `{"values": [3, 1, 2], "x": 1, "result": 1}`, or CSV with such a header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from nram.display import counted
from nram.errors import UsageError, shown
from nram.files import parse_json
from nram.tasks.layout import MOST_COLUMNS, name_problem, result_names, value_problem
from nram.tasks.problems import Problems

Record = tuple[int, dict[str, Any]]
"""A line and its fields. In a CSV file these are texts."""

RESULT_NAMES = ("result", "results", "output", "answer", "expected")


def columns_of(first: dict[str, Any], problems: Problems) -> list[str]:
    """The names of the columns. A name that cannot be used is a problem."""
    for name in first:
        problem = name_problem(name)
        if problem is not None:
            problems.add(f"name {name}", None, problem)
    if not 2 <= len(first) <= MOST_COLUMNS:
        text = f"give 2 to {MOST_COLUMNS}, inputs first and the result last"
        problems.add("columns", None, f"it has {counted(len(first), 'column')}: {text}")
    return list(first)


def results_of(columns: Sequence[str], chosen: Sequence[str], layout: str | None) -> list[str]:
    """The columns that are results: those chosen, those with such a name, or the last."""
    given = list(chosen) or (result_names(layout) if layout is not None else [])
    for name in given:
        if name not in columns:
            raise UsageError(f"there is no column '{name}' for the result: the columns are {', '.join(columns)}")
    if given:
        return given
    return [name for name in columns if name.lower() in RESULT_NAMES] or list(columns[-1:])


def read_rows(records: Sequence[Record], columns: Sequence[str], problems: Problems) -> list[Record]:
    """The rows as numbers and lists of numbers. A row with a problem is left out."""
    complete = [record for record in records if _has_columns(record, columns, problems)]
    many = {name: any(_is_list(row[name]) for _, row in complete) for name in columns}
    texts = {name for name in columns if all(isinstance(row[name], str) for _, row in complete)}
    rows: list[Record] = []
    for line, row in complete:
        before = problems.count
        values = {name: numbers_in(row[name], many[name]) if name in texts else row[name] for name in columns}
        for name, value in values.items():
            problem = value_problem(name, value, many[name])
            if problem is not None:
                problems.add(f"{name} {problem.partition(':')[2]}", line, problem)
        if problems.count == before:
            rows.append((line, values))
    return rows


def _has_columns(record: Record, columns: Sequence[str], problems: Problems) -> bool:
    line, row = record
    missing, unknown = [name for name in columns if name not in row], [name for name in row if name not in columns]
    if missing:
        problems.add(f"missing {missing[0]}", line, f"it has no '{missing[0]}': give every column on every line")
    if unknown:
        others = ", ".join(columns)
        problems.add("unknown", line, f"{shown(unknown[0])} is not on the first line, which has {others}")
    return not missing and not unknown


def _is_list(value: Any) -> bool:
    """Whether a field is a list: one of JSON, or a text with brackets or with several numbers."""
    return isinstance(value, list) or (
        isinstance(value, str) and (value.strip().startswith("[") or len(_split(value)) > 1)
    )


def numbers_in(text: str, many: bool) -> Any:
    """The number or the list that a text means: `3`, `3 1 2`, `3, 1, 2` or `[3, 1, 2]`. Otherwise the text itself."""
    if text.strip().startswith("["):
        try:
            return parse_json(text)
        except ValueError:
            return [text]
    words = [int(word) if re.fullmatch(r"[+-]?[0-9]{1,18}", word) else _said(word) for word in _split(text)]
    return words if many else words[0] if len(words) == 1 else text


def _split(text: str) -> list[str]:
    return text.replace(",", " ").replace(";", " ").split()


def _said(word: str) -> str | bool:
    """A word, or the truth value that it means: the message about these says more."""
    return {"true": True, "false": False}.get(word.lower(), word)
