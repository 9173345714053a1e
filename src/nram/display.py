"""How public objects show themselves: one line as `repr`, their text in a terminal, tables in a notebook.

The HTML has no colours of its own, so it fits light and dark notebooks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Self

from nram.messages import visible

MOST_CHARACTERS = 118  # of a `repr`, without its brackets
MOST_COLUMNS = 40  # cells of a memory in a table


class Displayed:
    """Base class of public objects. They say what they are in `_brief`; `repr` never shows their contents."""

    __slots__ = ()

    def _brief(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{shortened(f'{type(self).__name__} {self._brief()}')}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows in a terminal."""
        printer.text(repr(self) if cycle else str(self))


class Fixed(Displayed):
    """Base class of public objects that never change: a copy is the object itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text on one line of at most so many characters."""
    line = visible(text).replace("\n", " ")
    return line if len(line) <= most else f"{line[: most - 3]}..."


def counted(number: int, what: str) -> str:
    """A number with its noun: '1 row', '3 rows'."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def span(what: str, numbers: Sequence[int]) -> str:
    """From the least to the largest number: 'size 3', 'sizes 1 to 5'."""
    low, high = min(numbers), max(numbers)
    plural = f"{what}{'es' if what.endswith('s') else 's'}"
    return f"{what} {low}" if low == high else f"{plural} {low} to {high}"


def cells_in_words(memory: Sequence[int], most: int = 12) -> str:
    """The first cells of a memory."""
    words = " ".join(map(str, memory[:most]))
    return words if len(memory) <= most else f"{words} ..."


def text_table(rows: list[list[str]]) -> str:
    """Rows of words in columns. The first row is the heading; columns of numbers are aligned to the right."""
    columns = [*zip(*rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    numeric = [all(map(_is_number, column[1:])) for column in columns]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _is_number(text: str) -> bool:
    return text.replace(".", "").replace("%", "").replace("-", "").strip().isdigit()


# ---- notebooks


def heading(text: str) -> str:
    return f"<p><b>{escape(visible(text))}</b></p>"


def table(rows: Iterable[Sequence[object]], head: Sequence[object] = ()) -> str:
    """A table of words; `head` are the titles of its columns."""
    return f"<table>{_row(head, 'th') if head else ''}{''.join(_row(row, 'td') for row in rows)}</table>"


def _row(cells: Sequence[object], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag} style='text-align:left'>{_cell(cell)}</{tag}>" for cell in cells) + "</tr>"


def _cell(value: object) -> str:
    return value if isinstance(value, Markup) else escape(visible(str(value)))


def memory_table(memories: Mapping[str, Sequence[int]], marked: Collection[int] = ()) -> str:
    """Memories of one size below their addresses. The cells at `marked` are bold."""
    size = len(next(iter(memories.values())))
    addresses = range(min(size, MOST_COLUMNS))
    bold = frozenset(marked)
    more = [f"... {size - MOST_COLUMNS} more"] if size > MOST_COLUMNS else []
    rows = [
        [name, *(strong(memory[i]) if i in bold else memory[i] for i in addresses), *more]
        for name, memory in memories.items()
    ]
    return table(rows, ["address", *addresses, *more])


@dataclass(frozen=True, repr=False)
class Drawing(Displayed):
    """A picture. It is shown in a notebook; its text is SVG."""

    name: str
    svg: str

    def _brief(self) -> str:
        return f"of {self.name}: SVG, {len(self.svg):,} characters"

    def __str__(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


class Markup(str):
    """A text that is HTML already."""


def strong(value: object) -> Markup:
    return Markup(f"<b>{escape(visible(str(value)))}</b>")


def text_block(text: str) -> str:
    """A text as it is, with its line breaks and columns."""
    return f"<pre>{escape(visible(text))}</pre>"
