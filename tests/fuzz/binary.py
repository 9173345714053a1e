"""Broken .npy and safetensors files: headers that lie, arrays of other types and shapes, hostile descriptions."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from fuzz.mutations import HOSTILE, Members, mutated_bytes, mutated_text, mutated_value, parse, to_json

DTYPES = ("|b1", "|i1", "|u1", "<i2", ">i4", "<i4", "<u4", "<i8", ">i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16")
LYING_DTYPES = (*DTYPES, "|O", "<U5", "|S3", "<M8[ns]", "|V8", "V0", "<i3", "", "x", "i" * 5000)
LYING_SHAPES = ("()", "(0,)", "(-1,)", "(3, -1)", "(2**62,)", "(4611686018427387904, 4)", "(99999999999,)", "(1.5,)")
LYING_SHAPES += ("(True,)", "5", "[5]", "None", "(" * 300 + ")" * 300, "(1,) * 99999999", "(2,)" + " " * 70_000)


# ---- .npy


def mutated_npy(rng: Random, content: bytes, donors: Sequence[bytes] = ()) -> bytes:
    """A .npy file with a header that lies, values of another type, or damaged bytes."""
    if rng.random() < 0.3:
        return mutated_bytes(rng, content, donors)
    kind = np.dtype(rng.choice(DTYPES))
    shape = rng.choice(((), (0,), (3,), (4,), (9,), (2, 3), (3, 5), (0, 3), (3, 0), (2, 2, 2), (1,) * 8, (1, 3)))
    values = [rng.choice((0, 1, 2, 3, 4, 5, 7, 100)) for _ in range(int(np.prod(shape)))]
    body = np.array(values).astype(kind).tobytes()
    described = repr(kind.str) if rng.random() < 0.6 else repr(rng.choice(LYING_DTYPES))
    if rng.random() < 0.05:
        described = rng.choice(("[('a', '<i4'), ('b', '|O')]", "('<i4', (2, 2))", "[('', '<i4')]", "{}", "None", "7"))
    shown = repr(shape) if rng.random() < 0.6 else rng.choice(LYING_SHAPES)
    order = rng.choice(("False", "False", "True", "0", "None"))
    header = f"{{'descr': {described}, 'fortran_order': {order}, 'shape': {shown}, }}"
    if rng.random() < 0.15:
        header = mutated_text(rng, header)
    text = header.encode("utf-8", "replace")[: 2**17]
    major = rng.choice((1, 1, 1, 2, 3, 0, 9))
    length = len(text) + rng.choice((0, 0, 0, 0, 0, -1, 1, 1000))
    size = struct.pack("<H", max(length, 0) % 2**16) if major < 2 else struct.pack("<I", max(length, 0))
    body = rng.choice((body, body, body, body, body[:-1], body + b"\0", b"", body * 1000))
    return b"\x93NUMPY" + bytes((major, rng.choice((0, 0, 0, 1)))) + size + text + body


# ---- safetensors


Sign = Callable[[dict[str, np.ndarray], str], dict[str, str]]
"""(arrays, description) -> the metadata that nram writes for them, with a digest that is right."""


def mutated_safetensors(rng: Random, content: bytes, donors: Sequence[bytes], sign: Sign) -> bytes:
    """A safetensors file with another description, other arrays, a header that lies, or damaged bytes.

    The digest of a file with another description or other arrays is right: anyone can compute it.
    """
    how = rng.random()
    if how < 0.1:
        return mutated_bytes(rng, content, donors)
    header, body = split(content)
    if how < 0.25:
        return joined(mutated_value(rng, header, [split(donor)[0] for donor in donors]), body)
    arrays, metadata = unpack(header, body)
    description = parse(metadata["description"])
    if how < 0.75:
        others = [parse(unpack(*split(donor))[1]["description"]) for donor in donors]
        description = mutated_value(rng, description, others)
    if how > 0.65:
        _change_arrays(rng, arrays)
    text = to_json(description)
    signed = sign(arrays, text)
    if rng.random() < 0.1:
        signed = {key: value for key, value in signed.items() if rng.random() < 0.7}
    return pack(arrays, signed)


def split(content: bytes) -> tuple[Members, bytes]:
    size = int.from_bytes(content[:8], "little")
    return parse(content[8 : 8 + size].decode()), content[8 + size :]


def joined(header: object, body: bytes) -> bytes:
    text = to_json(header).encode("utf-8", "backslashreplace")
    return len(text).to_bytes(8, "little") + text + body


NAMES = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "I32": "<i4", "I64": "<i8", "U32": "<u4", "U8": "|u1", "BOOL": "|b1"}


def unpack(header: Members, body: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the metadata of a valid file."""
    entries = {name: dict(entry) for name, entry in header}
    metadata = entries.pop("__metadata__")
    arrays = {}
    for name, entry in entries.items():
        start, end = entry["data_offsets"]
        arrays[name] = np.frombuffer(body[start:end], NAMES[entry["dtype"]]).reshape(entry["shape"])
    return arrays, metadata


def pack(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    codes = {kind: name for name, kind in NAMES.items()}
    header: dict[str, Any] = {"__metadata__": metadata}
    body = b""
    for name, array in arrays.items():
        end = len(body) + array.nbytes
        header[name] = {"dtype": codes[array.dtype.str], "shape": list(array.shape), "data_offsets": [len(body), end]}
        body += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def _change_arrays(rng: Random, arrays: dict[str, np.ndarray]) -> None:
    name = rng.choice(list(arrays))
    array = arrays[name]
    change = rng.randrange(7)
    if change == 0:
        del arrays[name]
    elif change == 1:
        arrays[rng.choice(("", "x", name + "x", "output.weight", "é", name.upper()))] = array
    elif change == 2:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(rng.choice(list(NAMES.values())))
    elif change == 3:
        arrays[name] = array.reshape(rng.choice(((-1,), (1, -1), (-1, 1))))
    elif change == 4:
        arrays[name] = np.resize(array, rng.choice(((), (0,), (3,), (100, 100), (1,) * 10)))
    elif change == 5:
        values = [value for value in HOSTILE if isinstance(value, int) and abs(value) < 2**31]
        value = rng.choice((np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-40, *values))
        with np.errstate(all="ignore"):
            arrays[name] = np.full_like(array, np.float64(value).astype(array.dtype))
    else:
        arrays[name] = np.frombuffer(rng.randbytes(array.nbytes), array.dtype).reshape(array.shape)
        if array.dtype.str == "|b1":
            arrays[name] = array
