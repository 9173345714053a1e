"""Runs the cells of a notebook one after another in one process, without Jupyter.

python examples/notebook/run.py examples/notebook/whole_way.ipynb [--quick] [--out FILE.ipynb]

--quick skips the cells that are tagged 'slow'. --out writes the notebook with the outputs of its cells.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any


class PlainPrinter:
    """The part of IPython's printer that our objects use."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def text(self, words: str) -> None:
        self.words.append(words)


def in_words(value: Any) -> str:
    if not hasattr(value, "_repr_pretty_"):
        return repr(value)
    printer = PlainPrinter()
    value._repr_pretty_(printer, False)
    return "".join(printer.words)


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Execute a cell and return its outputs in notebook form: the printed text and the last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None:
        data = {"text/plain": in_words(value)}
        picture = value._repr_svg_() if hasattr(value, "_repr_svg_") else None
        if picture is not None:
            data["image/svg+xml"] = picture
        outputs.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    return outputs


def run_notebook(path: Path, *, quick: bool = False) -> dict[str, Any]:
    """The notebook with the outputs of its cells. A failing cell raises. Skipped cells have no outputs."""
    notebook = json.loads(path.read_text())
    names: dict[str, Any] = {"__name__": "__main__"}
    executed = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        cell["outputs"], cell["execution_count"] = [], None
        if quick and "slow" in cell["metadata"].get("tags", ()):
            continue
        executed += 1
        cell["outputs"] = run_cell("".join(cell["source"]), names)
        cell["execution_count"] = executed
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = executed
    return notebook


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    ran = run_notebook(arguments.notebook, quick=arguments.quick)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(ran, indent=1) + "\n")
