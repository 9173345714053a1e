"""Questions about an input on which programs disagree, and their answers, which become examples."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nram.errors import UsageError, shown
from nram.files import write_atomically
from nram.learning.columns import Columns, LayoutColumns, Record
from nram.learning.kept import Question
from nram.tasks.example_files import ExampleFile, read_examples
from nram.tasks.layout import values_in_words

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
        found = dict(re.findall(r"(\w+)\s*=\s*([0-9\s,]*)", text))
        results = question.answers[0].results
        numbers = {name: [int(word) for word in found[name].replace(",", " ").split()] for name in found}
        return {name: value if isinstance(results.get(name), list) else sum(value) for name, value in numbers.items()}
    if words and all(word.isdecimal() and len(word) < 10 for word in words):
        return int(words[0]) if len(words) == 1 else [int(word) for word in words]
    raise UsageError(f"{shown(text.strip())} is no answer")


def expected_from(reply: Any, question: Question, columns: Columns) -> tuple[list[int], list[int]]:
    """The expected memory that a reply means, and the addresses that count."""
    if isinstance(reply, Mapping) and isinstance(columns, LayoutColumns):
        missing = [name for name in columns.layout.outputs if name not in reply]
        if missing or len(reply) > len(columns.layout.outputs):
            raise UsageError(f"an answer by name has {', '.join(columns.layout.outputs)}")
        given: Record = {name: reply[name] for name in columns.layout.outputs}
        return columns.layout.answer(question.input, given)
    if isinstance(reply, int) and not isinstance(reply, bool):
        if not 1 <= reply <= len(question.answers):
            raise UsageError(f"there is no answer {reply}: give 1 to {len(question.answers)}")
        answer = question.answers[reply - 1]
        return answer.output, answer.cells
    size = len(question.input)
    if isinstance(reply, Sequence) and not isinstance(reply, str) and len(reply) == size:
        memory = [int(value) for value in reply]
        if all(0 <= value < size for value in memory):
            return columns.answer(question.input, memory)
    raise UsageError(
        f"{shown(reply)} is no answer: give the number of an answer, or a memory of {size} cells with values in "
        f"0..{size - 1}"
    )


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
