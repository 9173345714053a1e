"""Layouts: columns with names, such as `values`, `x` and `result`, and where their numbers lie in memory.

A layout is one line of words, in the order of the memory:

    x ->result values[] 0

| word | what lies there |
| --- | --- |
| `x` | a number |
| `values[]` | a list, one number after the other |
| `->result`, `->kept[]` | 0 at the start, a result at the end |
| `values->sorted[]` | a list at the start, and in its place a result of the same length at the end |
| `->pair[2]`, `->moved[values]`, `->kept[2n]` | a result of 2 numbers, as many as in `values`, or at most 2 (n + 1) |
| `0` | the number 0, which ends the list before it |
| `start:values`, `end:values`, `length:values` | the address of its first number, the one after its last, how many |
| `M>sum`, `M>2sum`, `M=64` | the memory is larger than (twice) the sum of all inputs, or has 64 cells |

n is how many numbers all input lists have; without an input list it is the largest input.
"""

from __future__ import annotations

import operator
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from nram.errors import UsageError, shown

Values = Mapping[str, Any]
"""By the name of each column, a number or a list of numbers."""

LEAST_CELLS = 3  # of a memory, so that 0, 1 and 2 exist
MOST_MEMORY = 10_000_000  # cells: a list of Python's integers takes much room
MOST_COLUMNS = 16
MOST_SHOWN = 40  # numbers of a list in words
MOST_LENGTH = 40  # of a name
MOST_SUMS = 3  # with a larger multiple of the sum, one memory size for all examples is smaller

_NAME = r"[^\W\d]\w{0,39}"
_COLUMN = re.compile(rf"({_NAME})?(?:->({_NAME}))?(?:\[({_NAME}|[1-9][0-9]{{0,2}}|[1-9]?n|)\])?")
_POINTER = re.compile(rf"(start|end|length):({_NAME})")
_MEMORY = re.compile(r"M(?:>([1-9]?)sum|=([1-9][0-9]{0,6}))")


@dataclass(frozen=True)
class Part:
    """One word of a layout: a cell, or a region for a list."""

    kind: Literal["column", "start", "end", "length", "zero"]
    name: str = ""
    """The input that lies there at the start, or the list that a pointer is about."""
    result: str = ""
    """The result that lies there at the end."""
    length: str | None = None
    """Of a list, as in brackets: '' as many as there are, '2', 'values', 'n' or '2n'. None: a number."""

    def __str__(self) -> str:
        if self.kind != "column":
            return "0" if self.kind == "zero" else f"{self.kind}:{self.name}"
        brackets = "" if self.length is None else "[]" if self.length == "n" else f"[{self.length}]"
        return self.name + (f"->{self.result}" if self.result else "") + brackets

    @property
    def open(self) -> bool:
        """Whether it is a list in cells of its own whose length is not known beforehand."""
        return self.kind == "column" and self.length is not None and re.fullmatch(r"|[1-9]?n", self.length) is not None


@dataclass(frozen=True)
class Layout:
    """Where the columns of a file lie in memory."""

    parts: tuple[Part, ...]
    sums: int = 0
    """The memory is larger than so many times the sum of all inputs."""
    cells: int | None = None
    """The size of every memory; None: each is as small as its inputs allow."""

    def __post_init__(self) -> None:
        problem = _problem(self.parts)
        if problem is None and _words(str(self)) != (list(self.parts), self.sums, self.cells):
            problem = "it cannot be written as words"
        if problem is not None:
            raise UsageError(f"the layout '{self}' cannot be used: {problem}")

    @classmethod
    def parse(cls, text: str) -> Layout:
        """The layout that a line means."""
        parts, sums, cells = _words(text)
        return cls(tuple(parts), sums, cells)

    def __str__(self) -> str:
        words = list(map(str, self.parts))
        if self.sums:
            words.append(f"M>{self.sums if self.sums > 1 else ''}sum")
        if self.cells is not None:
            words.append(f"M={self.cells}")
        return " ".join(words)

    @cached_property
    def inputs(self) -> dict[str, Part]:
        """The input columns."""
        return {part.name: part for part in self.parts if part.kind == "column" and part.name}

    @cached_property
    def outputs(self) -> dict[str, Part]:
        """The result columns."""
        return {part.result: part for part in self.parts if part.result}

    def describe(self) -> list[str]:
        """The layout in words, a line for each part."""
        lines, address = list[str](), 0
        for index, part in enumerate(self.parts):
            if part.kind == "zero" and self.parts[index - 1].open:
                lines[-1] += ", ended by a 0"
                continue
            fixed = part.length is None or part.length.isdecimal()
            cells = int(part.length or 1) if fixed else 0
            where = f"cell {address}" if cells == 1 else f"cells {address} to {address + cells - 1}"
            if lines and lines[-1].startswith(("from", "then")):
                where = "then"
            elif not fixed:
                where = f"from cell {address} on"
            lines.append(f"{where}: {self._in_words(part)}")
            address += cells
        if self.sums or self.cells is not None:
            larger = f"larger than {f'{self.sums} times ' if self.sums > 1 else ''}the sum of all inputs"
            lines.append(f"memory: {f'{self.cells} cells' if self.cells is not None else larger}")
        return lines

    def _in_words(self, part: Part) -> str:
        pointers = {
            "start": f"the address where {part.name} begins",
            "end": f"the address after the last number of {part.name}",
            "length": f"how many numbers {part.name} has",
            "zero": "0",
        }
        if part.kind != "column":
            result = part.kind == "length" and part.name in self.outputs
            return pointers[part.kind] + (" at the end" if result else "")
        if part.name and part.result:
            return f"{part.name}, and in its place {part.result} at the end"
        return part.name or f"{part.result} at the end (0 at the start)"

    # ---- to memory

    def memory(self, values: Values, memory_size: int | None = None) -> list[int]:
        """The memory at the start. Without `memory_size` it is the smallest that all inputs and results fit into."""
        check_values(values, self.inputs, "inputs")
        least = self.least_memory(values)
        size = least if memory_size is None else memory_size
        if size < least:
            raise UsageError(f"these inputs need a memory of {least} cells, and it has {size}: give a larger one")
        memory = [0] * size
        lengths = self._lengths(values)
        places = self._places(lengths, self.size_of(values) + 1)
        for part, place in zip(self.parts, places, strict=False):
            if part.kind == "column" and part.name:
                numbers = values[part.name] if part.length is not None else [values[part.name]]
                memory[place : place + len(numbers)] = map(int, numbers)
                self._check_ending(part, numbers)
            elif part.kind in ("start", "end"):
                memory[place] = self._pointer(part, places)
            elif part.kind == "length" and part.name in self.inputs:
                memory[place] = lengths[part.name]
        return memory

    def least_memory(self, values: Values) -> int:
        """The size of the smallest memory for these inputs. It does not depend on the results."""
        every = [number for name, part in self.inputs.items() for number in _flat(values[name], part)]
        used = self._places(self._lengths(values), self.size_of(values) + 1)[-1]
        least = max(LEAST_CELLS, used + 1, max(every, default=0) + 2, self.sums * sum(every) + 1)
        if least > (self.cells or MOST_MEMORY):
            most = "nram can make" if self.cells is None else f"the layout has, M={self.cells}"
            raise UsageError(f"these inputs need a memory of {least} cells, more than {most}: use smaller numbers")
        return self.cells or least

    def answer(self, memory: Sequence[int], values: Values) -> tuple[list[int], list[int]]:
        """From the memory at the start and the results: the memory at the end, and the addresses of the results."""
        end, cells = list(memory), list[int]()
        given = self.given(memory)
        places = self._places(self._lengths(given), self.size_of(given) + 1)
        for index, (part, place) in enumerate(zip(self.parts, places, strict=False)):
            if part.kind == "length" and part.name in self.outputs:
                numbers = [len(values[part.name])]
            elif not part.result:
                continue
            else:
                numbers = list(_flat(values[part.result], part))
                room = places[index + 1] - place
                if len(numbers) != room if not part.open or part.name else len(numbers) > room:
                    raise UsageError(f"{part.result} has {len(numbers)} numbers, and the layout has room for {room}")
                if part.open and not part.name and self._ends_with_zero(index):
                    numbers.append(0)
            end[place : place + len(numbers)] = numbers
            cells += range(place, place + len(numbers))
        # An empty result asks that the cell where it would begin stays as it is: an example must ask for something.
        first = next(i for i, part in enumerate(self.parts) if part.result)
        return end, sorted(cells) or [places[first]]

    # ---- from memory

    def given(self, memory: Sequence[int]) -> dict[str, int | list[int]]:
        """The inputs in a memory at the start."""
        lengths: dict[str, int] = {}
        found: dict[str, int | list[int]] = {}
        pointers: dict[tuple[str, str], int] = {}
        place = 0
        for index, part in enumerate(self.parts):
            if part.kind in ("start", "end", "length"):
                pointers[part.kind, part.name] = memory[place]
            if part.kind == "column" and part.name and part.length is not None:
                lengths[part.name] = self._length_in(memory, index, place, pointers)
                found[part.name] = list(memory[place : place + lengths[part.name]])
            elif part.kind == "column" and part.name:
                found[part.name] = memory[place]
            elif part.result and part.open:
                break  # inputs stand before it
            place += _cells(part, lengths, 0)
        return found

    def results(self, start: Sequence[int], end: Sequence[int]) -> dict[str, int | list[int]]:
        """The results in a memory at the end, by name."""
        given = self.given(start)
        places = self._places(self._lengths(given), self.size_of(given) + 1)
        counts = {
            part.name: end[place]
            for part, place in zip(self.parts, places, strict=False)
            if part.kind == "length" and part.name in self.outputs
        }
        found: dict[str, int | list[int]] = {}
        for index, (part, place) in enumerate(zip(self.parts, places, strict=False)):
            if part.result and part.length is None:
                found[part.result] = int(end[place])
            elif part.result:
                numbers = [int(number) for number in end[place : places[index + 1]]]
                if part.open and not part.name:
                    ending = numbers.index(0) if 0 in numbers else len(numbers)
                    numbers = numbers[: counts.get(part.result, ending)]
                found[part.result] = numbers
        return found

    def size_of(self, values: Values) -> int:
        """n: how many numbers the input lists have, or else the largest input."""
        lists = [len(values[name]) for name, part in self.inputs.items() if part.length is not None]
        return sum(lists) if lists else max(values[name] for name in self.inputs)

    def name_of(self, start: Sequence[int], cell: int) -> str:
        """What lies in a cell, by name: 'result', or 'sorted[2]' for the third number of a list."""
        given = self.given(start)
        places = self._places(self._lengths(given), self.size_of(given) + 1)
        index = bisect_right(places, cell) - 1
        if index >= len(self.parts) or self.parts[index].kind == "zero":
            return f"cell {cell}"
        part = self.parts[index]
        if part.kind != "column":
            return str(part)
        return (part.result or part.name) + ("" if part.length is None else f"[{cell - places[index]}]")

    # ---- addresses

    def _lengths(self, values: Values) -> dict[str, int]:
        return {name: len(values[name]) for name, part in self.inputs.items() if part.length is not None}

    def _places(self, lengths: Mapping[str, int], room: int) -> list[int]:
        """The address of every part, and at last the address after all."""
        places = [0]
        for part in self.parts:
            places.append(places[-1] + _cells(part, lengths, room))
        return places

    def _pointer(self, part: Part, places: Sequence[int]) -> int:
        regions = [one if one.length is not None else None for one in self.parts]
        index = next(i for i, one in enumerate(regions) if one and part.name in (one.name, one.result))
        return places[index + (part.kind == "end")]

    def _ends_with_zero(self, index: int) -> bool:
        return index + 1 < len(self.parts) and self.parts[index + 1].kind == "zero"

    def _check_ending(self, part: Part, numbers: Sequence[int]) -> None:
        index = self.parts.index(part)
        if part.open and self._ends_with_zero(index) and not _marked(self.parts, part.name) and 0 in numbers:
            raise UsageError(
                f"{part.name} holds a 0, which ends the list in the layout '{self}': "
                f"use numbers from 1 up, or learn with a layout that has end:{part.name}"
            )

    def _length_in(self, memory: Sequence[int], index: int, place: int, pointers: Mapping[tuple[str, str], int]) -> int:
        part = self.parts[index]
        assert part.length is not None
        if part.length.isdecimal():
            return int(part.length)
        if ("length", part.name) in pointers:
            return pointers["length", part.name]
        if ("end", part.name) in pointers:
            return max(0, pointers["end", part.name] - place)
        return next((i for i, number in enumerate(memory[place:]) if number == 0), len(memory) - place)


# ---- words


def _words(text: str) -> tuple[list[Part], int, int | None]:
    """The parts that the words of a layout mean, and its rules for the size of the memory."""
    parts, sums, cells = list[Part](), 0, None
    for word in text.split():
        if word == "0":
            parts.append(Part("zero"))
        elif found := _POINTER.fullmatch(word):
            parts.append(Part(found[1], found[2]))  # pyright: ignore[reportArgumentType]  (the pattern admits no other)
        elif found := _MEMORY.fullmatch(word):
            sums, cells = (0, int(found[2])) if found[2] else (int(found[1] or 1), None)
        elif (found := _COLUMN.fullmatch(word)) and (found[1] or found[2]):
            # A result list in cells of its own may be as long as all input lists together.
            length = "n" if found[3] == "" and not found[1] else found[3]
            parts.append(Part("column", found[1] or "", found[2] or "", length))
        else:
            raise UsageError(
                f"the layout '{text}' has the word '{word}', which means nothing: write it as 'x ->result values[] 0'"
            )
    return parts, sums, cells


def _problem(parts: Sequence[Part]) -> str | None:
    """Why the parts are no layout, or None."""
    columns = [part for part in parts if part.kind == "column"]
    names = [name for part in columns for name in (part.name, part.result) if name]
    lists = {name: part for part in columns if part.length is not None for name in (part.name, part.result) if name}
    first_open = next((i for i, part in enumerate(parts) if part.open), len(parts))
    for name in names:
        if names.count(name) > 1:
            return f"'{name}' stands in it twice"
    if not any(part.result for part in columns) or not any(part.name for part in columns):
        return "it needs an input and a result: write the result as ->NAME"
    if len(names) > MOST_COLUMNS:
        return f"it has {len(names)} columns, and {MOST_COLUMNS} are the most"
    for index, part in enumerate(parts):
        if part.kind in ("start", "end", "length"):
            if part.name not in lists:
                return f"there is no list '{part.name}' for {part}"
            if index > first_open:
                return f"{part} stands after a list: put it before the lists, where its cell is known"
            if part.kind == "end" and lists[part.name].open and not lists[part.name].name:
                return f"nobody knows {part} beforehand: use length:{part.name}"
        elif part.kind == "column":
            problem = _column_problem(parts, index, lists)
            if problem is not None:
                return problem
    return None


def _column_problem(parts: Sequence[Part], index: int, lists: Mapping[str, Part]) -> str | None:
    part = parts[index]
    word = part.name or part.result
    if part.length is not None and part.name and not (part.length == "" or part.length.isdecimal()):
        return f"'{part}': an input list is written {part.name}[], or {part.name}[2] if it always has 2 numbers"
    if part.length and not part.open and not part.length.isdecimal() and not _is_input(lists.get(part.length)):
        return f"'{part}' is as long as {part.length}, which is no input list"
    if not part.open:
        return None
    ended = index + 1 < len(parts) and parts[index + 1].kind == "zero"
    if not ended and not _marked(parts, word):
        return f"nobody knows where {word} ends: write '{part} 0' if it never holds a 0, or length:{word} before it"
    if not part.name and any(other.kind == "column" and other.name for other in parts[index + 1 :]):
        return f"an input stands after the result {part}: put {part} behind all inputs"
    return None


def _is_input(part: Part | None) -> bool:
    return part is not None and bool(part.name)


def _marked(parts: Sequence[Part], name: str) -> bool:
    """Whether a cell says where the list ends."""
    return any(part.kind in ("end", "length") and part.name == name for part in parts)


def _cells(part: Part, lengths: Mapping[str, int], room: int) -> int:
    """How many cells a part takes."""
    if part.length is None or part.kind != "column":
        return 1
    if part.length.isdecimal():
        return int(part.length)
    if part.name:
        return lengths[part.name]
    return lengths[part.length] if not part.open else int(part.length[:-1] or 1) * room


def _flat(value: Any, part: Part) -> Sequence[int]:
    return value if part.length is not None else [value]


# ---- values


def name_problem(name: str) -> str | None:
    """Why a name cannot be that of a column, or None."""
    if re.fullmatch(_NAME, name):
        return None
    better = re.sub(r"\W+", "_", name).strip("_")[:MOST_LENGTH] or "values"
    better = better if not better[0].isdigit() else f"c{better}"[:MOST_LENGTH]
    return f"{shown(name)} is no name for a column: use letters, digits and _, as {better}"


def value_problem(name: str, value: Any, many: bool) -> str | None:
    """What to change in a value of a column, or None if it can be used."""
    if many and (isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__")):
        return f"{name} is {shown(value)}: write a list of numbers, as [3, 1, 2]"
    for number in value if many else [value]:
        if isinstance(number, bool):
            return f"{name} holds {str(number).lower()}: write 1 for true and 0 for false"
        try:
            whole = operator.index(number)
        except TypeError:
            cure = _cure_for(number, many)
            return f"{name} holds {shown(number)}, which is not a whole number from 0 up: {cure}"
        if whole < 0:
            return f"{name} holds {shown(whole)}: there are no negative numbers; add the same amount to all of them"
    return None


def _cure_for(value: Any, many: bool) -> str:
    """What to write instead of a value that is not a whole number."""
    if isinstance(value, float) or re.fullmatch(r"[0-9]*[.,][0-9]+", str(value)):
        return "multiply all by the same number, as in cents for euros"
    if isinstance(value, str) and value and not re.fullmatch(r"[0-9 ,;]+", value):
        return "replace each text by a number, or delete the column"
    nested = many and isinstance(value, Sequence | Mapping) and value != ""
    return "a list holds numbers alone, as [3, 1, 2]" if nested else "write one number"


def check_values(values: Values, columns: Mapping[str, Part], what: str) -> None:
    """Refuse values that are not those of the columns, which are `what`: inputs or results."""
    missing, unknown = (
        [name for name in columns if name not in values],
        [name for name in values if name not in columns],
    )
    if missing or unknown:  # a name that is unknown may be one that is missing, misspelt
        wrong = f"{shown(unknown[0])} is unknown" if unknown else f"{missing[0]} is missing"
        raise UsageError(f"{wrong}: the {what} are {', '.join(columns)}")
    for name, part in columns.items():
        problem = value_problem(name, values[name], part.length is not None)
        if problem is not None:
            raise UsageError(problem)


def values_in_words(values: Values) -> str:
    """Inputs or results by name: values = 3 1 2, x = 1."""
    words = []
    for name, value in values.items():
        numbers = [value] if isinstance(value, int) else value
        more = f" ... ({len(numbers)} numbers)" if len(numbers) > MOST_SHOWN else ""
        words.append(f"{name} = {' '.join(map(str, numbers[:MOST_SHOWN])) or '(empty)'}{more}")
    return ", ".join(words)


# ---- the layout of a table


def column_names(text: str) -> list[str]:
    """The columns that a text for a layout names."""
    return [name for part in _words(text)[0] if part.kind == "column" for name in (part.name, part.result) if name]


def result_names(text: str) -> list[str]:
    """The results that a text for a layout names by arrows."""
    return [part.result for part in _words(text)[0] if part.result]


def layout_of(rows: Sequence[Values], results: Sequence[str], text: str | None = None) -> Layout:
    """A layout for the columns of a table, or the one that a text means, completed from what the columns hold.

    Numbers come first, because programs reach cells 0, 1 and 2 directly. Then pointers, then lists.
    """
    if text is None:
        parts, sums, cells = _chosen(rows, results), 0, None
    else:
        parts, sums, cells = _words(text)
        parts = [_completed(part, rows, results) for part in parts]
    layout = Layout(tuple(parts), sums, cells)
    return layout if sums or cells is not None else _with_memory(layout, rows)


def _is_list(rows: Sequence[Values], name: str) -> bool:
    return not isinstance(rows[0][name], int)


def _chosen(rows: Sequence[Values], results: Sequence[str]) -> list[Part]:
    inputs = [name for name in rows[0] if name not in results]
    lists = [name for name in inputs if _is_list(rows, name)]
    numbers = [Part("column", name) for name in inputs if name not in lists]
    numbers += [Part("column", "", name) for name in results if not _is_list(rows, name)]
    replaced: dict[str, str] = {}
    own: list[Part] = []
    for name in (name for name in results if _is_list(rows, name)):
        same = [one for one in lists if one != "n" and all(len(row[one]) == len(row[name]) for row in rows)]
        lengths = {len(row[name]) for row in rows}
        if same and same[0] not in replaced and _goes_along(rows, same[0], name, [part.name for part in numbers]):
            replaced[same[0]] = name
        elif len(lengths) == 1 and max(lengths) > 0:
            numbers.append(Part("column", "", name, str(max(lengths))))
        else:
            own.append(Part("column", "", name, same[0] if same else _open_length(rows, inputs, name)))
    regions = [Part("column", name, replaced.get(name, ""), "") for name in lists] + own
    pointers, placed = list[Part](), list[Part]()
    for index, part in enumerate(regions):
        name = part.name or part.result
        if index:
            pointers.append(Part("start", name))
        placed.append(part)
        if part.open and any(0 in row[name] for row in rows):
            pointers.append(Part("end" if part.name else "length", name))
        elif part.open:
            placed.append(Part("zero"))
    return [*numbers, *pointers, *placed]


def _goes_along(rows: Sequence[Values], name: str, result: str, numbers: Sequence[str]) -> bool:
    """Whether the first number of the result follows from the first of the list and from the input numbers.

    Then a program can go along the list and replace each number. Otherwise, as in reversing, it would overwrite what
    it still needs, so the result gets cells of its own.
    """
    known: dict[tuple[int, ...], int] = {}
    for row in rows:
        if row[name]:
            given = (row[name][0], *(row[one] for one in numbers if one))
            if known.setdefault(given, row[result][0]) != row[result][0]:
                return False
    return True


def _open_length(rows: Sequence[Values], inputs: Sequence[str], name: str) -> str:
    """The room of a result list: the smallest multiple of n + 1 that is enough for every row."""
    lists = [one for one in inputs if _is_list(rows, one)]
    rooms = [1 + (sum(len(row[one]) for one in lists) if lists else max(row[one] for one in inputs)) for row in rows]
    times = max((-(-len(row[name]) // room) for row, room in zip(rows, rooms, strict=True)), default=1)
    if times > 9:
        raise UsageError(f"the result {name} is more than nine times as long as the inputs, which is too long")
    return f"{times if times > 1 else ''}n"


def _completed(part: Part, rows: Sequence[Values], results: Sequence[str]) -> Part:
    """A word of the user's layout, with the brackets and the arrow that follow from the table."""
    if part.kind != "column":
        return part
    if part.name in results and not part.result:
        part = replace(part, name="", result=part.name)
    inputs = [name for name in rows[0] if name not in results]
    many = [_is_list(rows, name) for name in (part.name, part.result) if name]
    if any(many) != all(many) or (part.length is not None and not any(many)):
        raise UsageError(f"'{part}' in the layout: a list and a number cannot share cells")
    if any(many) and part.length in (None, "", "n"):
        return replace(part, length="" if part.name else _open_length(rows, inputs, part.result))
    return part


def _with_memory(layout: Layout, rows: Sequence[Values]) -> Layout:
    """The layout with a rule for the size of the memory, so that all results fit. It must not give them away."""
    largest = [max([0, *(n for name, part in layout.outputs.items() for n in _flat(row[name], part))]) for row in rows]
    for sums in range(MOST_SUMS + 1):
        found = replace(layout, sums=sums)
        if all(most < found.least_memory(row) for most, row in zip(largest, rows, strict=True)):
            return found
    return replace(layout, cells=max(max(largest) + 1, *(layout.least_memory(row) for row in rows)))
