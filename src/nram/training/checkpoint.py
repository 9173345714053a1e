"""Arrays and their description in one safetensors file, written atomically and checked when read.

JAX is imported late, so that the command line can refuse a run folder without it.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from nram.errors import NramError
from nram.files import write_atomically

Tree = TypeVar("Tree")


def save_arrays(path: Path, tree: Any, description: dict[str, Any]) -> None:
    """Write the leaves of a tree of arrays under their path names, with a description as JSON."""
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in _named_leaves(tree)}
    text = json.dumps(description, sort_keys=True)
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


def load_arrays(path: Path, like: Tree) -> tuple[Tree, dict[str, Any]]:
    """Read a tree of the same structure and shapes as `like` (arrays or shapes), and the description."""
    import jax

    arrays, description = _read(path)
    expected = {name: (tuple(leaf.shape), np.dtype(leaf.dtype)) for name, leaf in _named_leaves(like)}
    found = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    if expected != found:
        names = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        raise NramError(f"{path} does not fit its configuration: {', '.join(names[:4])} differ")
    structure = jax.tree.structure(like)
    return jax.tree.unflatten(structure, [arrays[name] for name, _ in _named_leaves(like)]), description


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    import jax

    return [(jax.tree_util.keystr(path).lstrip("."), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
    except FileNotFoundError:
        raise NramError(f"there is no {path}") from None
    except (SafetensorError, OSError) as error:
        raise NramError(f"{path} is damaged ({error}): restore it from a copy, or start the run again") from None
    text = metadata.get("description", "")
    if metadata.get("digest") != _digest(arrays, text):
        raise NramError(f"{path} was altered after it was written: restore it from a copy, or start the run again")
    return arrays, json.loads(text)


def _digest(arrays: dict[str, np.ndarray], description: str) -> str:
    digest = hashlib.sha256(description.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
