"""Pictures made of texts, rectangles, circles and paths, and how they become SVG.

Every shape has a kind, and the kind decides how it looks. Colours come in pairs: one for a light page, one for a dark
page. An SVG carries both and follows the reader's setting. `figures` draws the same shapes for PNG and PDF.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby
from typing import Literal, get_args

Theme = Literal["auto", "light", "dark"]
THEMES: tuple[Theme, ...] = get_args(Theme)

COLOURS: dict[str, tuple[str, str]] = {  # on a light page, on a dark page
    "ground": ("#ffffff", "#161b21"),
    "ink": ("#1c2733", "#e4e9ee"),
    "pale": ("#5d6b79", "#9aa7b4"),
    "line": ("#d5dce3", "#36414c"),
    "band": ("#f3f6f9", "#1f262e"),
    "wire": ("#3b4a59", "#b4c0cc"),
    "kept": ("#828f9c", "#6f7c89"),
    "module": ("#eef3f9", "#22303f"),
    "reads": ("#e6f4ea", "#1d3a28"),
    "writes": ("#fdeae8", "#4a2529"),
    "register": ("#fbf6e3", "#3b3520"),
    "tag": ("#dfe6ee", "#313d49"),
    "stop": ("#c22b41", "#c22b41"),
    "on_stop": ("#ffffff", "#ffffff"),
    "changed": ("#ffe9a8", "#5c4a12"),
    "asked": ("#cfe8d6", "#24543a"),
    "output": ("#2b7a4b", "#5fcf91"),
    "read": ("#2f6fab", "#6fb1ee"),
    "written": ("#c62f45", "#ff7a8c"),
}


def colour(name: str, theme: Theme) -> str:
    """A colour of the table. A picture that cannot follow its reader is for a light page unless told otherwise."""
    return COLOURS[name][theme == "dark"]


@dataclass(frozen=True)
class Style:
    """How shapes of one kind look. Fill and stroke are names of COLOURS; a size is for letters."""

    fill: str | None = None
    stroke: str | None = None
    width: float = 0.0
    size: int = 0
    bold: bool = False
    italic: bool = False
    mono: bool = False


STYLES: dict[str, Style] = {
    "ground": Style("ground"),
    "name": Style("ink", size=17, bold=True),
    "title": Style("ink", size=14, bold=True),
    "small": Style("pale", size=11),
    "label": Style("ink", size=13, mono=True),
    "argument": Style("pale", size=11, mono=True, italic=True),
    "turn": Style("pale", size=9, mono=True),
    "digit": Style("ink", size=11, mono=True),
    "box": Style("module", "wire", 1.2),
    "box reads": Style("reads", "wire", 1.2),
    "box writes": Style("writes", "wire", 1.2),
    "box register": Style("register", "wire", 1.2),
    "constant": Style("ground", "kept", 1),
    "wire": Style(None, "wire", 1.4),
    "wire kept": Style(None, "kept", 1.4),
    "arrow": Style("wire"),
    "arrow kept": Style("kept"),
    "branch": Style("wire"),
    "tag": Style("tag"),
    "tag stop": Style("stop"),
    "ending": Style("ink", size=11, bold=True),
    "ending stop": Style("on_stop", size=11, bold=True),
    # of traces
    "value": Style("ink", size=13, mono=True),
    "address": Style("pale", size=12, mono=True, italic=True),
    "address asked": Style("ink", size=12, mono=True, italic=True),
    "pale": Style("pale", size=13, mono=True),
    "wrong": Style("written", size=13, mono=True, bold=True),
    "changed": Style("changed"),
    "asked": Style("asked"),
    "read": Style(None, "read", 1.2),
    "written": Style(None, "written", 2),
    "line": Style(None, "line", 1),
}
FONTS = {
    True: '"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace',
    False: '"DejaVu Sans",Helvetica,Arial,sans-serif',
}


# ---- shapes


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    words: str
    kind: str
    anchor: Literal["start", "middle", "end"] = "start"

    def moved(self, x: float, y: float) -> Text:
        return replace(self, x=self.x + x, y=self.y + y)

    def to_svg(self) -> str:
        anchor = "" if self.anchor == "start" else f' text-anchor="{self.anchor}"'
        return f'<text class="{self.kind}" x="{_n(self.x)}" y="{_n(self.y)}"{anchor}>{escape(self.words)}</text>'


@dataclass(frozen=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float
    kind: str
    radius: float = 0.0
    part: int | None = None
    """The part of a circuit that it stands for."""

    def moved(self, x: float, y: float) -> Rectangle:
        return replace(self, x=self.x + x, y=self.y + y)

    def to_svg(self) -> str:
        size = f'width="{_n(self.width)}" height="{_n(self.height)}"'
        radius = f' rx="{_n(self.radius)}"' if self.radius else ""
        return f'<rect class="{self.kind}" x="{_n(self.x)}" y="{_n(self.y)}" {size}{radius}/>'


@dataclass(frozen=True)
class Circle:
    x: float
    y: float
    radius: float
    kind: str

    def moved(self, x: float, y: float) -> Circle:
        return replace(self, x=self.x + x, y=self.y + y)

    def to_svg(self) -> str:
        return f'<circle class="{self.kind}" cx="{_n(self.x)}" cy="{_n(self.y)}" r="{_n(self.radius)}"/>'


@dataclass(frozen=True)
class Path:
    """Lines between points. Where three points are given at once, they are a Bézier curve's."""

    points: tuple[tuple[float, ...], ...]
    """x, y of a point, or x1, y1, x2, y2, x, y of a curve to x, y. The first is where the path begins."""
    kind: str
    closed: bool = False
    group: int | None = None
    """Paths of one group are highlighted together under the mouse."""

    def moved(self, x: float, y: float) -> Path:
        shift = (x, y) * 3
        moved = (tuple(a + b for a, b in zip(point, shift, strict=False)) for point in self.points)
        return replace(self, points=tuple(moved))

    def to_svg(self) -> str:
        words = ["M" + " ".join(map(_n, self.points[0]))]
        for before, point in zip(self.points, self.points[1:], strict=False):
            if len(point) == 2 and point[1] == before[-1]:
                words.append(f"H{_n(point[0])}")
            else:
                words.append(("L" if len(point) == 2 else "C") + " ".join(map(_n, point)))
        return f'<path class="{self.kind}" d="{"".join(words)}{"Z" * self.closed}"/>'


Shape = Text | Rectangle | Circle | Path


@dataclass
class Picture:
    """Shapes, with the width and the height that they need."""

    name: str = ""
    shapes: list[Shape] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def text(self, x: float, y: float, words: str, kind: str, letter: float) -> None:
        """Words on the line at y. The picture becomes wide enough for them, with letters of this width."""
        self.shapes.append(Text(x, y, words, kind))
        self.width = max(self.width, x + letter * len(words))

    def place(self, other: Picture, x: float, y: float) -> None:
        """Add the shapes of another picture, with its upper left corner at x, y."""
        self.shapes += [shape.moved(x, y) for shape in other.shapes]
        self.width = max(self.width, x + other.width)
        self.height = max(self.height, y + other.height)

    def arrow(self, points: Sequence[tuple[float, ...]], kind: str, group: int | None = None) -> None:
        """A wire with an arrow at its end, which points to the right. `kind` is '' or 'kept'."""
        x, y = points[-1][-2:]
        tip = ((x - 8, y - 3), (x, y), (x - 8, y + 3))
        self.shapes.append(Path(tuple(points), f"wire {kind}".strip(), group=group))
        self.shapes.append(Path(tip, f"arrow {kind}".strip(), closed=True, group=group))

    def on_ground(self, margin: float) -> Picture:
        """The same shapes on a page of their own."""
        page = Picture(self.name, width=self.width + 2 * margin, height=self.height + 2 * margin)
        page.shapes.append(Rectangle(0, 0, page.width, page.height, "ground"))
        page.place(self, margin, margin)
        return page

    def to_svg(self, theme: Theme = "auto") -> str:
        """The picture as a file, or as a part of a web page: its rules affect nothing else there."""
        body = []
        for group, shapes in groupby(self.shapes, lambda shape: getattr(shape, "group", None)):
            lines = [shape.to_svg() for shape in shapes]
            body += lines if group is None else ['<g class="source">', *lines, "</g>"]
        width, height = _n(self.width), _n(self.height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="nram-picture" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">\n<title>{escape(self.name)}</title>\n'
            f"<style>\n{_rules({shape.kind for shape in self.shapes}, theme)}</style>\n"
            + "\n".join(body)
            + "\n</svg>\n"
        )


# ---- rules of the SVG


def style_sheet() -> str:
    """The looks of all kinds, for a page that draws the shapes itself."""
    return _rules(STYLES, "auto")


def _rules(kinds: Iterable[str], theme: Theme) -> str:
    """The looks of these kinds, with the other colours for a dark page if the theme is 'auto'."""
    used = [kind for kind in STYLES if kind in kinds]
    lines = [_rule(kind, theme, _font(STYLES[kind])) for kind in used]
    if "wire" in used:
        lines.append(".nram-picture .source:hover .wire{stroke:#d9404f;stroke-width:2.2}")
    if theme == "auto":
        lines += ["@media (prefers-color-scheme:dark){", *(_rule(kind, "dark") for kind in used), "}"]
    return "\n".join(lines) + "\n"


def _rule(kind: str, theme: Theme, more: str = "") -> str:
    style = STYLES[kind]
    fill = colour(style.fill, theme) if style.fill else "none"
    stroke = f";stroke:{colour(style.stroke, theme)};stroke-width:{style.width:g}" if style.stroke else ""
    return f".nram-picture .{kind.replace(' ', '.')}{{fill:{fill}{stroke}{more}}}"


def _font(style: Style) -> str:
    weight = "bold " * style.bold + "italic " * style.italic
    return f";font:{weight}{style.size}px {FONTS[style.mono]}" if style.size else ""


def _n(number: float) -> str:
    """A number with at most two decimals, as short as possible."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
