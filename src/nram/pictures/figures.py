"""Figures drawn with matplotlib: themes, files, and the shapes of a picture as a figure."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

import matplotlib
from matplotlib import patches
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.path import Path as Line

from nram.files import write_result
from nram.pictures.shapes import COLOURS, STYLES, Circle, Path, Picture, Rectangle, Shape, Text, Theme, colour
from nram.pictures.trace_records import require_picture

DOTS_PER_INCH = 144
POINTS = 0.75  # of a pixel: an inch has 72 points and 96 pixels


# ---- files


def save_figure(figure: Figure, path: FilePath, theme: Theme = "auto") -> None:
    """Write a figure in the format that the file's suffix names. An SVG follows its reader if the theme is 'auto'."""
    require_picture(path)
    write_result(path, bytes_of(figure, path.suffix.lower(), theme))


def bytes_of(figure: Figure, suffix: str, theme: Theme = "light") -> bytes:
    """The file of a figure: the same bytes for the same figure."""
    content = io.BytesIO()
    settings: dict[Any, Any] = {"svg.hashsalt": "nram", "svg.fonttype": "none"}
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    with warnings.catch_warnings(), matplotlib.rc_context(settings):
        warnings.filterwarnings("ignore", message="Glyph")  # a name in a script that the font lacks shows as boxes
        figure.savefig(content, format=suffix[1:], dpi=DOTS_PER_INCH, metadata=metadata)
    if suffix == ".svg" and theme == "auto":
        return following_its_reader(content.getvalue().decode()).encode()
    return content.getvalue()


def following_its_reader(svg: str) -> str:
    """matplotlib's SVG with rules for a dark page: they replace every colour of the table that the picture uses."""
    table = dict(reversed(COLOURS.values()))  # of two with the same light colour, the first
    rules = [
        f'[style*="{property}: {light}"]{{{property}:{dark}!important}}'
        for light, dark in table.items()
        for property in ("fill", "stroke")
        if f"{property}: {light}" in svg
    ]
    style = "<style>@media (prefers-color-scheme:dark){" + "".join(rules) + "}</style>"
    return re.sub(r"(<svg [^>]*>)", lambda found: found[0] + "\n" + style, svg, count=1)


@contextmanager
def themed(theme: Theme) -> Iterator[None]:
    """Figures made in this context have the colours of a theme."""
    ink, ground = colour("ink", theme), colour("ground", theme)
    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "patch.edgecolor")
    grounds = ("figure.facecolor", "axes.facecolor", "legend.facecolor", "savefig.facecolor")
    with matplotlib.rc_context({**dict.fromkeys(inks, ink), **dict.fromkeys(grounds, ground)}):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def luminance(rgb: Iterable[float]) -> float:
    """How bright a colour is to the eye, from 0 to 1, as the guidelines for accessible pages define it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# ---- shapes


def picture_figure(picture: Picture, theme: Theme) -> Figure:
    """The shapes of a picture at their places, a pixel for each unit."""
    figure = Figure(figsize=(picture.width / 96, picture.height / 96))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.axis("off")
    for shape in picture.shapes:
        _draw(axes, shape, theme)
    return figure


def _draw(axes: Axes, shape: Shape, theme: Theme) -> None:
    style = STYLES[shape.kind]
    fill = colour(style.fill, theme) if style.fill else "none"
    if isinstance(shape, Text):
        font: dict[str, Any] = {
            "ha": {"start": "left", "middle": "center", "end": "right"}[shape.anchor],
            "family": "DejaVu Sans Mono" if style.mono else "DejaVu Sans",
            "weight": "bold" if style.bold else "normal",
            "style": "italic" if style.italic else "normal",
            "size": style.size * POINTS,
        }
        axes.text(shape.x, shape.y, shape.words, color=fill, parse_math=False, **font)
        return
    look: dict[str, Any] = {
        "facecolor": fill,
        "edgecolor": colour(style.stroke, theme) if style.stroke else "none",
        "linewidth": style.width * POINTS,
    }
    match shape:
        case Rectangle(x, y, width, height, _, radius):
            rounded = f"round,pad=0,rounding_size={min(radius, height / 2)}" if radius else "square,pad=0"
            axes.add_patch(patches.FancyBboxPatch((x, y), width, height, rounded, **look))
        case Circle(x, y, radius):
            axes.add_patch(patches.Circle((x, y), radius, **look))
        case Path():
            axes.add_patch(patches.PathPatch(_line(shape), capstyle="butt", **look))


def _line(path: Path) -> Line:
    points, codes = [path.points[0]], [Line.MOVETO]
    for point in path.points[1:]:
        points += zip(point[::2], point[1::2], strict=True)
        codes += [Line.LINETO] if len(point) == 2 else [Line.CURVE4] * 3
    if path.closed:
        points.append(path.points[0])
        codes.append(Line.CLOSEPOLY)
    return Line(points, codes)
