"""Circuits as data: the shapes of the project's own layout, which the page draws and puts values on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nram.errors import UsageError
from nram.pictures.circuit_graph import circuit_of
from nram.pictures.circuits import picture_of
from nram.pictures.shapes import Circle, Path, Rectangle, Shape, Text
from nram.programs.ir import Program

NAMES: dict[type[Shape], str] = {Text: "text", Rectangle: "rect", Circle: "circle", Path: "path"}


def scene_of(program: Program, state: int, row: int) -> dict[str, Any] | None:
    """The circuit of a row; None if it is too large for a picture."""
    circuit = circuit_of(program, state, row)
    try:
        picture = picture_of(circuit, program.name)
    except UsageError:
        return None
    boxes = {shape.part: shape for shape in picture.shapes if isinstance(shape, Rectangle) and shape.part is not None}
    parts = [
        {"kind": part.kind, "index": part.index, "name": part.name}
        | {name: round(getattr(boxes[number], name), 2) for name in ("x", "y", "width", "height")}
        for number, part in enumerate(circuit.parts)
    ]
    shapes = [{"shape": NAMES[type(shape)], **_rounded(asdict(shape))} for shape in picture.shapes[1:]]  # no ground
    return {"width": picture.width, "height": picture.height, "shapes": shapes, "parts": parts}


def _rounded(value: Any) -> Any:
    """The same with at most two decimals: twice as short."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return round(value, 2) if isinstance(value, float) else value
