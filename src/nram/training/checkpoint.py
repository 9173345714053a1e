"""Arrays and their description in one safetensors file, written atomically and checked when read.

JAX and safetensors are imported late, so that the command line can refuse a run folder without them.
"""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np

from nram.errors import NramError, shown
from nram.files import parse_json, read_bounded, require_plain, write_atomically
from nram.records import Span, Tolerant, read_record
from nram.runtime import free_memory

Tree = TypeVar("Tree")

FORMAT = 1
MOST_BYTES = 1 << 36
MOST_HEADER = 1 << 24


def save_arrays(path: Path, tree: Any, description: dict[str, Any]) -> None:
    """Write the leaves of a tree of arrays under their path names, with a description as JSON."""
    from safetensors.numpy import save

    arrays = {name: np.asarray(leaf, order="C") for name, leaf in _named_leaves(tree)}
    text = json.dumps({"format": FORMAT, **description}, sort_keys=True)
    metadata = {"description": text, "digest": _digest(arrays, text)}
    write_atomically(path, _ordered(save(arrays, metadata)))


def _ordered(content: bytes) -> bytes:
    """A safetensors file with its metadata in order: the library's order is random, and equal runs should
    give equal files."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def read_description(path: Path) -> dict[str, Any]:
    return _read(path)[1]


def load_arrays(
    path: Path,
    like: Callable[[dict[str, Any]], Tree],
    converted: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] = dict,
) -> tuple[Tree, dict[str, Any]]:
    """Read a tree of arrays and its description. From the description, `like` gives the tree that it should be: a tree
    with arrays or shapes of the same structure, shapes and types. `converted` turns the arrays of earlier versions, by
    name, into those of today."""
    import jax

    arrays, description = _read(path)
    wanted = like(description)
    arrays = converted(arrays)
    expected = {name: (tuple(leaf.shape), np.dtype(leaf.dtype)) for name, leaf in _named_leaves(wanted)}
    found = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    if expected != found:
        names = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        raise NramError(f"{path} does not fit its configuration: {', '.join(map(shown, names[:4]))} differ")
    structure = jax.tree.structure(wanted)
    return jax.tree.unflatten(structure, [arrays[name] for name, _ in _named_leaves(wanted)]), description


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    import jax

    return [(jax.tree_util.keystr(path).lstrip("."), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


@dataclass(frozen=True)
class _Entry:
    """An array in the header of a file."""

    dtype: Literal["F32", "F64", "I32", "I64", "U8", "U32", "BOOL"]
    shape: Annotated[tuple[Annotated[int, Span(0, MOST_BYTES)], ...], Span(0, 8)]
    data_offsets: tuple[int, int]

    @property
    def kind(self) -> np.dtype:
        letter, bits = self.dtype[0], self.dtype[1:]
        return np.dtype(bool if self.dtype == "BOOL" else f"<{letter.lower()}{int(bits) // 8}")


@dataclass(frozen=True)
class _Metadata(Tolerant):
    description: str
    digest: str


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays, which cannot be written to, and the description. Nothing is made before the header is checked."""
    require_plain(path)
    most = min(MOST_BYTES, (free_memory() or MOST_BYTES) // 2)
    content = read_bounded(path, most, "file of weights")
    try:
        arrays, metadata = _arrays(content)
    except (ValueError, NramError) as error:
        raise NramError(f"{path} is damaged ({error}): restore it from a copy, or start the run again") from None
    if metadata.digest != _digest(arrays, metadata.description):
        raise NramError(f"{path} was altered after it was written: restore it from a copy, or start the run again")
    try:
        description = parse_json(metadata.description, infinite=True)
        if not isinstance(description, dict):
            raise ValueError(f"it is {shown(description)}, not an object")
    except ValueError as error:
        raise NramError(f"{path} has no valid description: {error}") from None
    version = description.get("format", 1)  # up to 0.2 it was not written
    if type(version) is not int or version != FORMAT:
        raise NramError(
            f"{path} is in format {shown(version)} of weights, and this nram reads format {FORMAT}: "
            "use the version that wrote it"
        )
    return arrays, description


def _arrays(content: bytes) -> tuple[dict[str, np.ndarray], _Metadata]:
    """The arrays of a safetensors file and its metadata. They fill the file without gaps, as the format demands."""
    start = 8 + int.from_bytes(content[:8], "little")
    if not 8 < start <= min(len(content), MOST_HEADER):
        raise ValueError("its header has no valid length")
    header = parse_json(content[8:start].decode())
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    metadata = read_record(_Metadata, header.pop("__metadata__", None), "its metadata")
    entries = {name: read_record(_Entry, entry, shown(name)) for name, entry in header.items()}
    arrays = {}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        count = math.prod(entry.shape)
        first, end = end, end + count * entry.kind.itemsize
        if entry.data_offsets != (first, end) or start + end > len(content):
            raise ValueError(f"{shown(name)} does not have the place and size that its shape demands")
        arrays[name] = np.frombuffer(content, entry.kind, count, start + first).reshape(entry.shape)
    if start + end != len(content):
        raise ValueError(f"it has {len(content)} bytes instead of {start + end}")
    return arrays, metadata


def _digest(arrays: dict[str, np.ndarray], description: str) -> str:
    digest = hashlib.sha256(description.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
