"""Memories as arguments of verbs: words, JSON, a file or standard input."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nram.errors import NramError, UsageError, shown
from nram.files import parse_json, read_bounded
from nram.programs.ir import Program
from nram.programs.memory import check_lists
from nram.tasks.example_files import Example
from nram.tasks.named_columns import numbers_in

HELP = (
    "numbers separated by spaces or commas, a JSON list of them, @FILE (text, JSON or .npy) or - for standard input; "
    "a list of lists, or what 'nram sample --json' prints, is a batch"
)
NPY_MAGIC = b"\x93NUMPY"
MOST_TEXT = 1 << 26  # bytes: Python's integers take much more room than their text
MOST_ARRAY = 1 << 31


def read_memory(text: str) -> list | np.ndarray:
    """The memory, or the batch of memories, that an argument names. Sizes and values are not checked here."""
    if text == "-":
        return _from_standard_input()
    if text.startswith("@"):
        return _from_file(text[1:])
    return _from_text(text, "--memory")


def add_input(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--input",
        action="append",
        metavar="NAME=VALUE",
        help='an input by name, as x=1 or values="3 1 2", for a program that was learned from named columns',
    )


def options_for(example: Example, program: Program | None) -> dict[str, Any]:
    """The options of `nram run` and `nram trace` that give a program the input of an example, by name if it has any."""
    memory = example.instance.input
    layout = None if program is None else program.layout
    if layout is None or layout != example.layout:
        return {"memory": " ".join(map(str, memory))}
    given = layout.given(memory)
    words = [f"{name}={' '.join(map(str, v)) if isinstance(v, list) else v}" for name, v in given.items()]
    size = len(memory)
    return {"input": words, "memory_size": None if size == layout.least_memory(given) else size}


def named_memory(program: Program, given: Sequence[str]) -> list[int]:
    """The memory of a program with a layout, from inputs as NAME=VALUE."""
    layout = program.layout
    if layout is None:
        raise UsageError(f"the program {program.name} has no names for its inputs: give --memory instead of --input")
    values = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name in values:
            wrong = "is given twice" if equals else "has no '='"
            raise UsageError(f'--input {shown(text)} {wrong}: write each input as x=1 or values="3 1 2"')
        part = layout.inputs.get(name)
        values[name] = numbers_in(value, part is not None and part.length is not None)
    return layout.memory(values)


def _from_file(name: str) -> list | np.ndarray:
    if not name:
        raise UsageError("--memory @ names no file: write @FILE")
    npy = name.endswith(".npy")
    try:
        content = read_bounded(Path(name), MOST_ARRAY if npy else MOST_TEXT, "memory" if npy else "memory as text")
    except NramError as error:
        raise UsageError(f"--memory: {error}") from None
    return _from_bytes(content, name, npy)


def _from_standard_input() -> list | np.ndarray:
    content = b"" if sys.stdin is None else sys.stdin.buffer.read(MOST_TEXT + 1)
    if len(content) > MOST_TEXT:
        raise UsageError(f"standard input has more than {MOST_TEXT >> 20} MiB: give a large memory as @FILE.npy")
    return _from_bytes(content, "standard input")


def _from_bytes(content: bytes, where: str, npy: bool = False) -> list | np.ndarray:
    if npy or content.startswith(NPY_MAGIC):
        return _from_npy(content, where)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{where}: this is neither text nor a .npy array") from None
    return _from_text(text, where)


def _from_npy(content: bytes, where: str) -> np.ndarray:
    try:
        # Not np.load: that would also open archives, and pickles run code.
        return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # a damaged head makes its parser raise almost anything
        raise UsageError(f"{where}: this is no .npy array of whole numbers: {str(error) or 'too large'}") from None


def _from_text(text: str, where: str) -> list:
    stripped = text.strip()
    if not stripped:
        raise UsageError(f"{where}: the memory is empty: give its cells")
    if stripped[0] in "[{":
        return _from_json(stripped, where)
    missing = re.search(r"^,|,\s*,|,$", stripped)
    if missing is not None:
        before = len(stripped[: missing.start()].replace(",", " ").split())
        raise UsageError(f"{where}: there is a comma but no number for cell {before}")
    words = stripped.replace(",", " ").split()
    wrong = next((cell for cell, word in enumerate(words) if not re.fullmatch(r"-?[0-9]{1,4000}", word)), None)
    if wrong is not None:
        raise UsageError(f"{where}: {shown(words[wrong])}, for cell {wrong}, is not a whole number")
    return [int(word) for word in words]


def _from_json(text: str, where: str) -> list:
    try:
        value = parse_json(text)
    except ValueError as error:
        raise UsageError(f"{where}: this is no JSON list: {error}") from None
    if isinstance(value, dict):
        value = [value]
    if all(isinstance(one, dict) and "input" in one for one in value):  # instances
        value = [one["input"] for one in value]
    try:
        return check_lists(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
