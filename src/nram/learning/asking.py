"""Questions about an input on which programs disagree, and their answers, which become examples."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nram.errors import UsageError, shown
from nram.files import write_atomically
from nram.learning.columns import Columns, LayoutColumns
from nram.learning.kept import Question
from nram.tasks.example_files import ExampleFile, read_examples
from nram.tasks.layout import check_values, values_in_words
from nram.tasks.named_columns import numbers_in

ANSWERS = "answers.jsonl"  # in the folder
SKIP, STOP = "skip", "stop"

Ask = Callable[[Question], Any]
"""Gives the number of an answer from 1, the right memory, the right results by name, 'skip', or 'stop' or None."""


def question_in_words(question: Question) -> list[str]:
    """The question with its possible answers, a line each."""
    why = f" (no example has {' or '.join(question.unlike[:2])})" if question.unlike else ""
    lines = [f"Which is right? The programs disagree on this input{why}:"]
    lines.append(f"  {values_in_words(question.record or {'memory': question.input})}")
    for number, answer in enumerate(question.answers, 1):
        many = "program" if len(answer.programs) == 1 else "programs"
        lines.append(f"  {number}: {values_in_words(answer.results)}   ({many} {', '.join(map(str, answer.programs))})")
    return lines


def how_to_answer(question: Question) -> str:
    """The replies that `reply_from` understands."""
    name, value = next(iter(question.answers[0].results.items()))
    typed = f"the right memory, {len(question.input)} numbers"
    if question.record is not None:
        typed = f"the right values, as {name}={'1 2' if isinstance(value, list) else '1'}"
    return f"Answer: 1 to {len(question.answers)}; {typed}; skip (it cannot occur, or does not matter); or stop: "


def reply_from(text: str, question: Question) -> Any:
    """The reply that a line of text means; a UsageError if it means nothing."""
    words = text.replace(",", " ").split()
    if len(words) == 1 and words[0].lower() in (SKIP, STOP):
        return words[0].lower()
    if "=" in text:
        before, *parts = re.split(r"(\w+)\s*=", text)
        names, values = parts[::2], parts[1::2]
        if before.strip() or not names or len(set(names)) < len(names):
            raise UsageError(f"{shown(text.strip())} is no answer: give each value once, as name=1")
        results = question.answers[0].results
        return {
            name: numbers_in(value.strip(" \n,"), isinstance(results.get(name), list))
            for name, value in zip(names, values, strict=True)
        }
    if words and all(word.isdecimal() and len(word) < 10 for word in words):
        return int(words[0]) if len(words) == 1 else [int(word) for word in words]
    raise UsageError(f"{shown(text.strip())} is no answer")


def expected_from(reply: Any, question: Question, columns: Columns) -> tuple[list[int], list[int]]:
    """The expected memory that a reply means, and the addresses that count; a UsageError if it cannot be right."""
    if isinstance(reply, int) and not isinstance(reply, bool):
        if not 1 <= reply <= len(question.answers):
            raise UsageError(f"there is no answer {reply}: give 1 to {len(question.answers)}")
        answer = question.answers[reply - 1]
        return answer.output, answer.cells
    size = len(question.input)
    values = f"values from 0 to {size - 1}"
    if isinstance(columns, LayoutColumns):
        names = columns.layout.outputs
        if isinstance(reply, Mapping):
            check_values(reply, names, "results")
            output, cells = columns.layout.answer(question.input, reply)
            if all(output[cell] < size for cell in cells):
                return output, cells
        wanted = f"{' and '.join(names)} by name, with {values}"
    else:
        wanted = f"a memory of {size} cells with {values}"
    numbers = reply if isinstance(reply, Sequence) and not isinstance(reply, str) else ()
    if len(numbers) == size and all(type(value) is int and 0 <= value < size for value in numbers):
        return columns.answer(question.input, numbers)
    raise UsageError(f"{shown(reply)} is no answer: give the number of an answer, or {wanted}")


def read_answers(folder: Path) -> ExampleFile | None:
    """The answers in a folder. People may add lines, in the form of a file of examples."""
    path = folder / ANSWERS
    return read_examples(path) if path.is_file() and path.stat().st_size else None


def save_answer(folder: Path, start: list[int], expected: tuple[list[int], list[int]]) -> None:
    """Add an answer to those in the folder."""
    path = folder / ANSWERS
    line = json.dumps({"input": start, "output": expected[0], "cells": expected[1]})
    before = path.read_text() if path.is_file() else ""
    write_atomically(path, f"{before}{'' if before.endswith(chr(10)) or not before else chr(10)}{line}\n".encode())
