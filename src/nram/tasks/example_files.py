"""Examples from a file, JSON or CSV: read and checked. Every problem is reported with its line and what to change."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from operator import and_
from pathlib import Path
from typing import Any

from nram.display import counted
from nram.errors import NramError, UsageError, shown
from nram.files import parse_json, read_bounded
from nram.limits import StepLimit
from nram.records import MOST_TOLD
from nram.tasks.base import Instance
from nram.tasks.layout import LEAST_CELLS, Layout, column_names, layout_of, name_problem
from nram.tasks.named_columns import Record, columns_of, numbers_in, read_rows, results_of
from nram.tasks.problems import Problems

MOST_CELLS = 4096  # larger memories make the search too slow
MOST_EXAMPLES = 100_000
MOST_LINES = 10 * MOST_EXAMPLES  # empty ones included
MOST_STEPS = 2**31 - 1
MOST_BYTES = 1 << 28
MOST_PROBLEMS = 1000  # after so many, the rest of a file is not read
STEPS_IN_WORDS = "2 (size + M) + 8"
KEYS = ("input", "output", "cells", "steps")
SPARE_CELLS = (0, 1, 3, 8)  # of memories that are laid out here: programs must not rely on the smallest one

_ADDRESS = r"([0-9]{1,9}|[nM])([+-][0-9]{1,9})?"
_ADDRESSES = re.compile(rf"{_ADDRESS}(?:\.\.{_ADDRESS})?")


@dataclass(frozen=True)
class Reading:
    """How a file is read, where the file does not say it itself."""

    cells: str | None = None
    """The cells that count: 'all', 'changed' (by the example itself), or addresses as in '0 3..5 1..n'. None: those
    that change in any example of the same memory size."""
    results: tuple[str, ...] = ()
    """The columns that are results. Empty: by their names, or the last one."""
    layout: str | None = None
    """Where the columns lie in memory. None: nram chooses."""

    def __post_init__(self) -> None:
        wrong = [word for word in (self.cells or "0").replace(",", " ").split() if not _ADDRESSES.fullmatch(word)]
        if wrong and self.cells not in ("all", "changed"):
            raise UsageError(f"--cells is '{self.cells}': give all, changed, or addresses as in 0 or 0,3..5 or 1..n")
        for first, last in re.findall(r"(\d+)\.\.(\d+)(?![+-])", self.cells or ""):
            if int(first) > int(last):
                raise UsageError(f"--cells: {first}..{last} runs backwards: write {last}..{first}")

    @property
    def options(self) -> dict[str, str]:
        """What is not the default, by the names of the arguments."""
        given = {"cells": self.cells, "result": ",".join(self.results), "layout": self.layout}
        return {name: value for name, value in given.items() if value}

    @property
    def words(self) -> list[str]:
        """The options of the command line that mean this."""
        return [word for name, value in self.options.items() for word in (f"--{name}", value)]

    @property
    def named(self) -> bool:
        """Whether the columns have names for sure."""
        return self.layout is not None or bool(self.results)


@dataclass(frozen=True)
class Example:
    """One line of the file."""

    line: int
    instance: Instance
    claimed: frozenset[int]
    """The cells that its output specifies: those that count, or all where each example decides that for itself."""
    own_steps: bool
    """Whether the file says how many steps it may take."""
    named_size: int | None = None
    """Its size by its layout, where columns have names."""
    layout: Layout | None = None
    unit: str = "line"
    """What `line` counts: lines, or the entries of a JSON list."""

    @property
    def size(self) -> int:
        return size_of(self.instance.input) if self.named_size is None else self.named_size

    @property
    def where(self) -> str:
        return f"{self.unit} {self.line}"

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
    counted: str = ""
    """What must be right, in words."""
    layout: Layout | None = None
    """Where the columns lie in memory, if they have names."""
    reading: Reading = Reading()

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


def default_steps(size: int, cells: int) -> int:
    """A step limit that grows with the problem and the memory. It does not depend on the answer."""
    return 2 * (size + cells) + 8


def _limited(example: Example, limit: StepLimit) -> Example:
    if example.own_steps:
        return example
    return replace(example, instance=replace(example.instance, steps=limit(example.size)))


# ---- reading


def read_examples(path: Path, reading: Reading | None = None, given: bytes | None = None) -> ExampleFile:
    """The examples of a file. A file with problems is refused with a list of them.

    `given` are examples from Python, one a line, which are not in the file yet.
    """
    reading = reading or Reading()
    try:
        content = read_bounded(path, MOST_BYTES, "file of examples") if given is None else given
    except NramError as error:
        raise UsageError(str(error)) from None
    called = str(path) if given is None else "what is given"
    problems = Problems("line" if given is None else "example")
    try:
        examples, counting, layout = _examples(path, content, reading, problems)
    except UnicodeDecodeError:
        raise UsageError(f"{called} is not text: give JSON objects, one a line, or a CSV file") from None
    kept = _without_repetitions(examples, layout, problems)
    if not examples and not problems.count:
        problems.add("none", None, 'there are no examples: write lines like {"values": [2, 1], "x": 1, "result": 1}')
    if problems.count:
        raise UsageError(f"{called} cannot be used{problems}")
    digest = hashlib.sha256(content).hexdigest()
    return ExampleFile(path, digest, tuple(kept), len(examples) - len(kept), counting, layout, reading)


def _examples(
    path: Path, content: bytes, reading: Reading, problems: Problems
) -> tuple[list[Example], str, Layout | None]:
    """The examples, what counts in them, and their layout."""
    records = _limited_records(_records(path, content, reading, problems), problems)
    first = next(records, None)
    if first is None:
        return [], "", None
    records = chain([first], records)
    if not _has_memories(first[1], reading):
        return _named_examples(path, list(records), reading, problems)
    # The explicit cells are noted beside the examples; the others follow when all examples are known.
    found = [one for line, record in records if (one := _example(record, line, problems)) is not None]
    examples, counting = _with_cells(found, reading.cells, problems)
    return examples, counting, None


def _has_memories(fields: Mapping[str, Any], reading: Reading) -> bool:
    """Whether the fields of a line are memories before and after, and not columns with names."""
    numbers = any(type(fields.get(key)) is int for key in ("input", "output"))
    return not reading.named and not numbers and (set(fields) <= set(KEYS) or {"input", "output"} <= set(fields))


def _records(path: Path, content: bytes, reading: Reading, problems: Problems) -> Iterator[Record]:
    if path.suffix.lower() == ".csv":
        return _csv_records(_lines(content, problems), reading, problems)
    if content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        return _list_records(content.decode("utf-8-sig"), problems)
    return _json_records(_lines(content, problems), problems)


def _limited_records(records: Iterator[Record], problems: Problems) -> Iterator[Record]:
    for count, record in enumerate(records):
        if count == MOST_EXAMPLES:
            text = f"there are more than {MOST_EXAMPLES} examples, which are too many: leave some out"
            problems.add("many", None, text)
            return
        yield record


def _lines(content: bytes, problems: Problems) -> Iterator[str]:
    """One line after another: a list of millions of lines would take much more memory than the file."""
    for count, line in enumerate(io.BytesIO(content)):
        if count == MOST_LINES:
            text = f"there are more than {MOST_LINES} lines, which are too many: leave out empty ones"
            problems.add("lines", None, text)
        if problems.count >= MOST_PROBLEMS or count == MOST_LINES:
            return
        yield line.decode("utf-8" if count else "utf-8-sig").rstrip("\n")


def _json_records(lines: Iterable[str], problems: Problems) -> Iterator[Record]:
    for line, words in enumerate(lines, 1):
        if not words.strip():
            continue
        try:
            record = parse_json(words)
        except ValueError as error:
            text = f"it cannot be read ({error}): write one JSON object a line, each field once, or one JSON list"
            problems.add("JSON", line, text)
            continue
        yield from _objects([(line, record)], problems)


def _list_records(text: str, problems: Problems) -> Iterator[Record]:
    """The objects of one JSON list."""
    problems.unit = "entry"
    try:
        entries = parse_json(text)
    except ValueError as error:
        problems.add("JSON", None, f"it begins with '[' and is not a JSON list ({error}): correct it")
        return
    yield from _objects(enumerate(entries, 1), problems)


def _objects(values: Iterable[tuple[int, Any]], problems: Problems) -> Iterator[Record]:
    for place, value in values:
        if isinstance(value, dict):
            yield place, value
        else:
            problems.add("object", place, 'it is not an object: write {"values": [2, 1], "x": 1, "result": 1}')


def _csv_records(lines: Iterable[str], reading: Reading, problems: Problems) -> Iterator[Record]:
    """Rows under a header. The numbers of a list stand apart by spaces, or it is a JSON list in double quotes."""
    lines = iter(lines)
    above, first = next(((count, line) for count, line in enumerate(lines) if line.strip()), (0, ""))
    separator = next((mark for mark in ",;\t" if mark in first), ",")
    rows = csv.reader(chain([first], lines), delimiter=separator, strict=True)
    header: list[str] | None = None
    memories = False
    try:
        for row in rows:
            if not any(field.strip() for field in row):
                continue
            line = above + rows.line_num
            if header is None:
                header = [field.strip() for field in row]
                memories = _has_memories(dict.fromkeys(header), reading)
                problem = _header_problem(header, memories)
                if problem is not None:
                    problems.add("header", line, problem)
                    return
            elif len(row) != len(header):
                text = "put spaces, not commas, between the numbers of a list, or double quotes around it"
                problems.add("columns", line, f"it has {len(row)} columns and the header {len(header)}: {text}")
            else:
                fields = dict(zip(header, row, strict=True))
                yield line, _csv_record(fields) if memories else fields
    except csv.Error as error:
        problems.add("CSV", above + rows.line_num, f"it is not CSV ({error}): write it as 2 1 0,3 1 0")


def _header_problem(header: Sequence[str], memories: bool) -> str | None:
    example = "begin with the names of the columns, as in values,x,result"
    if len(set(header)) < len(header):
        return f"a name stands twice in the header: {example}"
    if memories:
        unknown = next((name for name in header if name not in KEYS), None)
        text = f"{shown(unknown)} is no header beside input and output: the others are cells and steps"
        return text if unknown is not None or not {"input", "output"} <= set(header) else None
    problem = next((problem for name in header if (problem := name_problem(name)) is not None), None)
    return None if problem is None else f"this is no header: {problem}; {example}"


def _csv_record(fields: dict[str, str]) -> dict[str, Any]:
    """The same as an object of JSON. An empty field says nothing; one that holds no numbers is told of later."""
    record: dict[str, Any] = {}
    for key, text in fields.items():
        if not text.strip() and key in ("cells", "steps"):
            continue
        numbers = numbers_in(text, key != "steps")
        record[key] = numbers if key == "steps" or all(type(one) is int for one in numbers) else text
    return record


# ---- one example with memories


def _example(record: dict[str, Any], line: int, problems: Problems) -> Example | None:
    before = problems.count
    for key in [key for key in record if key not in KEYS][:MOST_TOLD]:
        problems.add(f"unknown {key}", line, f"{shown(key)} is unknown: an example has {', '.join(KEYS)}")
    start, end = (_numbers(record, key, line, problems) for key in ("input", "output"))
    if start is None or end is None:
        return None
    size = len(start)
    named = "; if these are no memories, call the columns otherwise, as values and result, and nram lays them out"
    if len(end) != size:
        text = f"they must be as many; fill up with zeros{named}"
        problems.add("lengths", line, f"input has {size} cells and output {len(end)}: {text}")
        return None
    if size < LEAST_CELLS:
        text = f"a memory has {LEAST_CELLS} at least; fill up both with zeros{named}"
        problems.add("short", line, f"input and output have {counted(size, 'cell')}: {text}")
        return None
    if size > MOST_CELLS:
        text = f"it has {size} cells, which is too long: give examples of at most {MOST_CELLS}"
        problems.add("long", line, text)
        return None
    for key, cells in (("input", start), ("output", end)):
        outside = next((i for i, value in enumerate(cells) if not 0 <= value < size), None)
        if outside is not None:
            text = (
                f"{key} has values outside 0..{size - 1} ({shown(cells[outside])} in cell {outside}): a "
                f"memory of M cells holds 0 to M-1, so add zeros at the end of both, or use smaller values{named}"
            )
            problems.add(f"{key} outside", line, text)
    asked = [i for i in range(size) if start[i] != end[i]]
    if "cells" in record:
        asked = _asked(record, size, line, problems)
    steps = record.get("steps", default_steps(size_of(start), size))
    if type(steps) is not int or not 0 < steps <= MOST_STEPS:
        text = f"steps is {shown(steps)}: give a whole number from 1 to {MOST_STEPS}"
        problems.add("steps", line, text)
    if problems.count > before:
        return None
    # Where the line names no cells, `claimed` is empty until all examples are known.
    claimed = frozenset(asked if "cells" in record else ())
    return Example(line, Instance(start, end, asked, asked, steps), claimed, "steps" in record, unit=problems.unit)


def _asked(record: dict[str, Any], size: int, line: int, problems: Problems) -> list[int]:
    """The cells that a line names."""
    asked = _numbers(record, "cells", line, problems)
    if asked is None:
        return []
    if any(not 0 <= cell < size for cell in asked):
        problems.add("addresses", line, f"cells has addresses outside 0..{size - 1}: name cells of the memory")
    if len(asked) > size or len(set(asked)) < len(asked):
        problems.add("twice", line, "cells names one twice: name each once")
    if not asked:
        problems.add("nothing", line, "no cell counts: cells is empty; name those that must be right, or leave it out")
    return asked


def _numbers(record: dict[str, Any], key: str, line: int, problems: Problems) -> list[int] | None:
    value = record.get(key)
    if isinstance(value, list) and all(type(cell) is int for cell in value):
        return value
    if key not in record:
        problems.add(f"no {key}", line, f"it has no '{key}': an example has input and output")
    else:
        problems.add(f"{key} is", line, f"'{key}' is {shown(value)}, not a list of whole numbers")
    return None


# ---- the cells that count


def _with_cells(examples: Sequence[Example], rule: str | None, problems: Problems) -> tuple[list[Example], str]:
    """The examples with the cells that count where a line names none, and which these are in words."""
    changed: defaultdict[int, set[int]] = defaultdict(set)
    for example in examples:
        if not example.claimed:
            changed[example.cells].update(example.instance.cells)
    anywhere = set[int]().union(*changed.values())
    # One list for all examples of a memory size: lists of their own would take much room.
    by_size = {size: sorted(cells or {cell for cell in anywhere if cell < size}) for size, cells in changed.items()}
    whole = {size: list(range(size)) for size in changed}
    found: list[Example] = []
    for example in examples:
        size = example.cells
        if example.claimed:
            found.append(example)
            continue
        if rule in (None, "all"):
            cells = by_size[size] if rule is None else whole[size]
            claimed = frozenset(cells)
        elif rule == "changed":
            cells, claimed = example.instance.cells, frozenset(whole[size])
        else:
            cells = _addresses(rule, example)
            claimed = frozenset(cells)
            inside = [cell for cell in cells if 0 <= cell < size]
            if not inside:
                text = f"--cells {rule} names no cell of a memory of {size} cells, where n is {example.size}"
                problems.add("cells", example.line, text if "n" in rule else text.partition(",")[0])
                continue
            if len(inside) < len(cells):
                problems.add("cells", example.line, f"it has {size} cells, and --cells ({rule}) names others")
                continue
        if not cells:
            problems.add("nothing", example.line, _NOTHING_COUNTS[rule == "changed"])
            continue
        found.append(replace(example, instance=replace(example.instance, cells=cells, scored=cells), claimed=claimed))
    return found, _counted(examples, rule, list(by_size.values()))


_NOTHING_COUNTS = (
    "no cell counts: no example changes any cell; name in 'cells' those that must be right",
    "no cell counts: input and output are equal; name in 'cells' those that must be right",
)


def _addresses(rule: str, example: Example) -> list[int]:
    """The addresses that words like '0 3..5 1..n' mean for an example, where n is its size."""
    known = {"n": example.size, "M": example.cells}
    found: set[int] = set()
    for word in rule.replace(",", " ").split():
        match = _ADDRESSES.fullmatch(word)
        assert match is not None
        ends = [int(known.get(match[i], match[i])) + int(match[i + 1] or 0) for i in (1, 3) if match[i]]
        found.update(range(ends[0], min(ends[-1], max(ends[0], example.cells)) + 1))  # one outside is enough
    return sorted(found)


def _counted(examples: Sequence[Example], rule: str | None, by_size: list[list[int]]) -> str:
    """What counts, in words."""
    own = any(example.claimed for example in examples)
    if own and all(example.claimed for example in examples):
        return "the cells that each example names"
    texts = {"all": "every cell", "changed": "in each example the cells that it changes"}
    if rule is None and any(by_size) and all(cells == by_size[0] for cells in by_size):
        first, last = by_size[0][0], by_size[0][-1]
        dense = len(by_size[0]) == last - first + 1 and first < last
        cells = f"{first} to {last}" if dense else ", ".join(map(str, by_size[0]))
        text = f"cell{'s' if first < last else ''} {cells}; no example changes another"
    elif rule is None:
        text = "every cell that changes in an example of the same memory size"
    else:
        text = texts.get(rule, f"the cells {rule}")
    return text + ("; where an example names cells, those alone" if own else "")


# ---- columns with names


def _named_examples(
    path: Path, records: Sequence[Record], reading: Reading, problems: Problems
) -> tuple[list[Example], str, Layout | None]:
    if reading.layout is not None:  # columns that it does not name may hold anything
        wanted, there = column_names(reading.layout), records[0][1]
        if missing := [name for name in wanted if name not in there]:
            raise UsageError(f"the layout has '{missing[0]}', and the columns are {', '.join(there)}")
        records = [(line, {name: row[name] for name in row if name in wanted}) for line, row in records]
    columns = columns_of(records[0][1], problems)
    if problems.count:
        return [], "", None
    if reading.cells is not None:
        raise UsageError(f"{path} has columns with names: choose what counts by --result, and leave out --cells")
    results = results_of(columns, reading.results, reading.layout)
    rows = read_rows(records, columns, problems)
    if problems.count or not rows:
        return [], "", None
    if len(results) == len(columns):
        raise UsageError(f"{path}: every column is a result: leave one as an input")
    layout = layout_of([row for _, row in rows], results, reading.layout)
    found = [_laid_out(row, line, layout, problems) for line, row in rows]
    examples = [one for one in found if one is not None]
    return examples, " and ".join(layout.outputs), layout


def _laid_out(row: Mapping[str, Any], line: int, layout: Layout, problems: Problems) -> Example | None:
    inputs = {name: row[name] for name in layout.inputs}
    try:
        # Equal inputs get equal memories, so that contradictions show.
        spare = 0 if layout.cells is not None else SPARE_CELLS[zlib.crc32(repr(inputs).encode()) % len(SPARE_CELLS)]
        size = layout.least_memory(inputs) + spare
        if size > MOST_CELLS:
            raise UsageError(
                f"it needs a memory of {size} cells, because every number must be smaller than the number of cells, "
                f"and {MOST_CELLS} are the most: divide all numbers, or replace them by their ranks 1, 2, 3, ..."
            )
        start = layout.memory(inputs, size)
        end, cells = layout.answer(start, row)
        outside = next((end[cell] for cell in cells if end[cell] >= size), None)
        if outside is not None:
            raise UsageError(f"the result {outside} does not fit into a memory of {size} cells: add M>sum to --layout")
    except UsageError as error:
        problems.add(str(error).partition(":")[2] or str(error), line, str(error))
        return None
    n = layout.size_of(inputs)
    instance = Instance(start, end, cells, cells, default_steps(n, size))
    return Example(line, instance, frozenset(cells), False, n, layout, problems.unit)


# ---- what shows only beside the others


@dataclass
class _SameInput:
    """What the examples with one input say together. No example is compared with all the others."""

    claimed: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The line that first specifies a cell, and its value."""
    asked: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    """For each cell, the kept examples that ask for it, as the bits of a number."""
    kept: int = 0

    def contradiction(self, example: Example, layout: Layout | None) -> str | None:
        """Why the example contradicts an earlier one. What does not contradict is noted."""
        output, differing = example.instance.output, []
        for cell in example.claimed:
            line, value = self.claimed.setdefault(cell, (example.line, output[cell]))
            if value != output[cell]:
                differing.append((line, cell, value))
        if not differing:
            return None
        line, cell, value = min(differing)
        name = f"cell {cell}" if layout is None else layout.name_of(example.instance.input, cell)
        what = "give what they depend on a cell of the input" if layout is None else "add a column they depend on"
        return (
            f"{example.unit}s {line} and {example.line} have the same input and different outputs ({name}: {value} and "
            f"{output[cell]}): remove one of them, or {what}"
        )

    def repeats(self, example: Example) -> bool:
        """Whether an example that was kept asks for all its cells. Otherwise it is kept."""
        if reduce(and_, (self.asked[cell] for cell in example.instance.cells)):
            return True
        for cell in example.instance.cells:
            self.asked[cell] |= 1 << self.kept
        self.kept += 1
        return False


def _without_repetitions(examples: Sequence[Example], layout: Layout | None, problems: Problems) -> list[Example]:
    """Each example once. Two with one input must not differ in a cell of which both say something."""
    kept: list[Example] = []
    by_input: defaultdict[tuple[int, ...], _SameInput] = defaultdict(_SameInput)
    for example in examples:
        same = by_input[tuple(example.instance.input)]
        contradiction = same.contradiction(example, layout)
        if contradiction is not None:
            problems.add(f"contradiction {problems.count}", None, contradiction)
        elif not same.repeats(example):
            kept.append(example)
    return kept
