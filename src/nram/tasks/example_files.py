"""Examples from a file, JSONL or CSV: read and checked. Every problem is reported with its line and what to change."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

from nram.errors import NramError, UsageError, shown
from nram.files import parse_json, read_bounded
from nram.limits import StepLimit
from nram.records import MOST_TOLD, listed
from nram.tasks.base import Instance

LEAST_CELLS = 3  # so that 0, 1 and 2 exist
MOST_CELLS = 4096  # larger memories make the search too slow
MOST_EXAMPLES = 100_000
MOST_LINES = 10 * MOST_EXAMPLES  # empty ones included
MOST_STEPS = 2**31 - 1
MOST_BYTES = 1 << 28
MOST_PROBLEMS = 1000  # after so many, the rest of a file is not read
STEPS_IN_WORDS = "2 (size + M) + 8"
KEYS = ("input", "output", "cells", "steps")


@dataclass(frozen=True)
class Example:
    """One line of the file."""

    line: int
    instance: Instance
    claimed: frozenset[int]
    """The cells that its output specifies: those named in `cells`, or all if none are named."""
    own_steps: bool
    """Whether the file says how many steps it may take."""

    @property
    def size(self) -> int:
        return size_of(self.instance.input)

    @property
    def cells(self) -> int:
        """M."""
        return len(self.instance.input)


@dataclass(frozen=True)
class ExampleFile:
    """A file whose examples can be used."""

    path: Path
    digest: str
    """SHA-256 of its bytes."""
    examples: tuple[Example, ...]
    repeated: int
    """Lines that repeat an earlier one; they are left out."""

    def with_steps(self, limit: StepLimit) -> ExampleFile:
        """The same, with the step limit T(size) where the file names none."""
        limited = tuple(_limited(example, limit) for example in self.examples)
        without = next((example.line for example in limited if not 0 < example.instance.steps <= MOST_STEPS), None)
        if without is not None:
            raise UsageError(f"--steps gives the example of line {without} no number of steps: write it as 3n+10")
        return replace(self, examples=limited)


def size_of(memory: Sequence[int]) -> int:
    """How large a problem is: the cells of the input that are not 0."""
    return len(memory) - list(memory).count(0)


def default_steps(memory: Sequence[int]) -> int:
    """A step limit that grows with the problem and the memory. It does not depend on the answer."""
    return 2 * (size_of(memory) + len(memory)) + 8


def _limited(example: Example, limit: StepLimit) -> Example:
    if example.own_steps:
        return example
    return replace(example, instance=replace(example.instance, steps=limit(example.size)))


# ---- reading


def read_examples(path: Path) -> ExampleFile:
    """The examples of a file. A file with problems is refused with a list of them."""
    try:
        content = read_bounded(path, MOST_BYTES, "file of examples")
    except NramError as error:
        raise UsageError(str(error)) from None
    problems: list[str] = []
    examples: list[Example] = []
    records = _csv_records if path.suffix.lower() == ".csv" else _json_records
    try:
        for count, (line, record) in enumerate(records(_lines(content, problems), problems)):
            if count == MOST_EXAMPLES:
                problems.append(f"there are more than {MOST_EXAMPLES} examples, which are too many: leave some out")
                break
            example = _example(record, line, problems)
            if example is not None:
                examples.append(example)
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text: give JSON objects, one a line, or a CSV file") from None
    kept = _without_repetitions(examples, problems)
    if not examples and not problems:
        problems.append('there are no examples: write lines like {"input": [2, 1, 0], "output": [3, 1, 0]}')
    if problems:
        raise UsageError(f"{path} cannot be used{listed(problems)}")
    return ExampleFile(path, hashlib.sha256(content).hexdigest(), tuple(kept), len(examples) - len(kept))


def _lines(content: bytes, problems: list[str]) -> Iterator[str]:
    """One line after another: a list of millions of lines would take much more memory than the file."""
    for count, line in enumerate(io.BytesIO(content)):
        if count == MOST_LINES:
            problems.append(f"there are more than {MOST_LINES} lines, which are too many: leave out empty ones")
        if len(problems) >= MOST_PROBLEMS or count == MOST_LINES:
            return
        yield line.decode("utf-8" if count else "utf-8-sig").rstrip("\n")


def _json_records(lines: Iterable[str], problems: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, words in enumerate(lines, 1):
        if not words.strip():
            continue
        try:
            record = parse_json(words)
        except ValueError as error:
            problems.append(f"line {line} cannot be read ({error}): write one JSON object a line, each field once")
            continue
        if isinstance(record, dict):
            yield line, record
        else:
            cure = "one object a line, not a list of them" if isinstance(record, list) else "write"
            problems.append(f'line {line} is not an object: {cure} {{"input": [...], "output": [...]}}')


def _csv_records(lines: Iterable[str], problems: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows under a header with input, output and perhaps cells and steps; numbers stand apart by spaces."""
    rows = csv.reader(lines, strict=True)
    header: list[str] | None = None
    try:
        for row in rows:
            if not any(field.strip() for field in row):
                continue
            line = rows.line_num
            if header is None:
                header = [field.strip() for field in row]
                if not {"input", "output"} <= set(header) <= set(KEYS) or len(set(header)) < len(header):
                    problems.append(f"line {line} is no header: begin with 'input,output', then 'cells' and 'steps'")
                    return
            elif len(row) != len(header):
                problems.append(
                    f"line {line} has {len(row)} columns and the header {len(header)}: put spaces, not commas, between "
                    "the numbers of a memory"
                )
            else:
                yield line, _csv_record(dict(zip(header, row, strict=True)))
    except csv.Error as error:
        problems.append(f"line {rows.line_num} is not CSV ({error}): write it as 2 1 0,3 1 0")


def _csv_record(fields: dict[str, str]) -> dict[str, Any]:
    """The same as an object of JSON. An empty field says nothing; one that holds no numbers is told of later."""
    record: dict[str, Any] = {}
    for key, text in fields.items():
        words = text.split()
        if not words and key in ("cells", "steps"):
            continue
        whole = all(re.fullmatch(r"-?[0-9]{1,18}", word) for word in words)
        numbers = [int(word) for word in words] if whole else text
        record[key] = numbers[0] if key == "steps" and whole and len(words) == 1 else numbers
    return record


# ---- one example


def _example(record: dict[str, Any], line: int, problems: list[str]) -> Example | None:
    where, before = f"line {line}", len(problems)
    unknown = [key for key in record if key not in KEYS]
    for key in unknown[:MOST_TOLD]:
        problems.append(f"{where}: {shown(key)} is unknown: an example has {', '.join(KEYS)}")
    start, end = (_numbers(record, key, where, problems) for key in ("input", "output"))
    if start is None or end is None:
        return None
    size = len(start)
    if len(end) != size or size < LEAST_CELLS:
        problems.append(
            f"{where}: input has {size} cells and output {len(end)}: they must be as many, {LEAST_CELLS} at least; "
            "fill up with zeros"
        )
        return None
    if size > MOST_CELLS:
        problems.append(f"{where}: it has {size} cells, which is too long: give examples of at most {MOST_CELLS}")
        return None
    for key, cells in (("input", start), ("output", end)):
        outside = [i for i, value in enumerate(cells) if not 0 <= value < size]
        if outside:
            problems.append(
                f"{where}: {key} has values outside 0..{size - 1} ({shown(cells[outside[0]])} in cell {outside[0]}): a "
                "memory of M cells holds 0 to M-1, so add zeros at the end of both, or use smaller values"
            )
    asked = [i for i in range(size) if start[i] != end[i]]
    if "cells" in record:
        asked = _numbers(record, "cells", where, problems) or []
        if any(not 0 <= cell < size for cell in asked):
            problems.append(f"{where}: cells has addresses outside 0..{size - 1}: name cells of the memory")
        if len(asked) > size or len(set(asked)) < len(asked):
            problems.append(f"{where}: cells names one twice: name each once")
    if not asked and len(problems) == before:
        problems.append(
            f"{where}: no cell counts: input and output are equal, or cells is empty; name in 'cells' those that "
            "must be right"
        )
    steps = record.get("steps", default_steps(start))
    if type(steps) is not int or not 0 < steps <= MOST_STEPS:
        problems.append(f"{where}: steps is {shown(steps)}: give a whole number from 1 to {MOST_STEPS}")
    if len(problems) > before:
        return None
    claimed = frozenset(asked if "cells" in record else range(size))
    return Example(line, Instance(start, end, asked, asked, steps), claimed, "steps" in record)


def _numbers(record: dict[str, Any], key: str, where: str, problems: list[str]) -> list[int] | None:
    value = record.get(key)
    if isinstance(value, list) and all(type(cell) is int for cell in value):
        return value
    if key not in record:
        problems.append(f"{where} has no '{key}': an example has input and output")
    else:
        problems.append(f"{where}: '{key}' is {shown(value)}, not a list of whole numbers")
    return None


# ---- what shows only beside the others


@dataclass
class _SameInput:
    """What the examples with one input say together. No example is compared with all the others."""

    claimed: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The line that first specifies a cell, and its value."""
    asked: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    """For each cell, the kept examples that ask for it, as the bits of a number."""
    kept: int = 0

    def contradiction(self, example: Example) -> str | None:
        """Why the example contradicts an earlier one. What does not contradict is noted."""
        output, differing = example.instance.output, []
        for cell in example.claimed:
            line, value = self.claimed.setdefault(cell, (example.line, output[cell]))
            if value != output[cell]:
                differing.append((line, cell, value))
        if not differing:
            return None
        line, cell, value = min(differing)
        return (
            f"lines {line} and {example.line} have the same input and different outputs (cell {cell}: {value} and "
            f"{output[cell]}): remove one of them, or give what they depend on a cell of the input"
        )

    def repeats(self, example: Example) -> bool:
        """Whether an example that was kept asks for all its cells. Otherwise it is kept."""
        if reduce(and_, (self.asked[cell] for cell in example.instance.cells)):
            return True
        for cell in example.instance.cells:
            self.asked[cell] |= 1 << self.kept
        self.kept += 1
        return False


def _without_repetitions(examples: Sequence[Example], problems: list[str]) -> list[Example]:
    """Each example once. Two with one input must not differ in a cell of which both say something."""
    kept: list[Example] = []
    by_input: defaultdict[tuple[int, ...], _SameInput] = defaultdict(_SameInput)
    for example in examples:
        same = by_input[tuple(example.instance.input)]
        contradiction = same.contradiction(example)
        if contradiction is not None:
            problems.append(contradiction)
        elif not same.repeats(example):
            kept.append(example)
    return kept
