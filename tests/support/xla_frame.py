"""What XLA hands to a kernel, and the question it asks of one, laid out as in its C header."""

import ctypes
from typing import Any

import numpy as np

from nram.machine.kernels.common.specification import INTEGERS, Shape

GUARD = 4096  # bytes before and after every buffer that must stay as they are
PATTERN = 0x7F  # as a float 3.4e38, so that code which reads it computes infinities


class Buffer(ctypes.Structure):
    """XLA_FFI_Buffer"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
    ]


class Table(ctypes.Structure):
    """XLA_FFI_Args and XLA_FFI_Rets"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("buffers", ctypes.c_void_p),
    ]


class Frame(ctypes.Structure):
    """XLA_FFI_CallFrame"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("api", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", Table),
        ("results", Table),
    ]


class Version(ctypes.Structure):
    """XLA_FFI_Api_Version"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    ]


class Api(ctypes.Structure):
    """The beginning of XLA_FFI_Api"""

    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("version", Version)]


class Metadata(ctypes.Structure):
    """XLA_FFI_Metadata"""

    _fields_ = [("size", ctypes.c_size_t), ("version", Version), ("traits", ctypes.c_uint32)]


class Extension(ctypes.Structure):
    """XLA_FFI_Metadata_Extension"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.c_void_p),
    ]


def handler(engine: Any, entry: str) -> Any:
    """The function that XLA calls: it takes a frame's address, and None means that it went well."""
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address(entry))


def answer_of(
    entry: Any, frame_size=168, extension_size=32, extension_type=1, metadata_size=36, api_size=176, major=0, minor=7
) -> tuple[int, int, int]:
    """What a handler answers to such a question for the interface's version: major, minor, traits."""
    metadata = Metadata(size=metadata_size, version=Version(major=-1, minor=-1), traits=5)
    extension = Extension(size=extension_size, type=extension_type, metadata=ctypes.addressof(metadata))
    api = Api(size=api_size, version=Version(major=major, minor=minor))
    frame = Frame(size=frame_size, extension=ctypes.addressof(extension), api=ctypes.addressof(api))
    assert entry(ctypes.addressof(frame)) is None
    return metadata.version.major, metadata.version.minor, metadata.traits


OTHER_QUESTIONS = [
    {"frame_size": 160},
    {"extension_size": 24},
    {"extension_type": 2},
    {"metadata_size": 32},
    {"api_size": 32},
    {"major": 1},
    {"major": 1, "minor": 0},
]
"""How the question could come from another interface than the one that the kernels speak."""


def buffer_table(addresses: list[int], shapes: list[tuple[int, ...]]) -> tuple[Table, list]:
    """Buffers at these addresses; also everything that must stay alive."""
    dims = [(ctypes.c_int64 * len(shape))(*shape) for shape in shapes]
    buffers = [
        Buffer(data=address, rank=len(own), dims=ctypes.addressof(own))
        for address, own in zip(addresses, dims, strict=True)
    ]
    pointers = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))
    return Table(count=len(buffers), buffers=ctypes.addressof(pointers)), [dims, buffers, pointers]


def call_frame(shape: Shape, members: tuple[int, ...], addresses: list[int], **more) -> tuple[Frame, list]:
    """The frame of a call with these buffers; also everything that must stay alive."""
    shapes, given = [(*members, *own) for own in shape.buffers.values()], shape.arguments
    arguments, alive = buffer_table(addresses[:given], shapes[:given])
    results, alive_too = buffer_table(addresses[given:], shapes[given:])
    return Frame(stage=3, arguments=arguments, results=results, **more), [alive, alive_too]


def guarded_call(entry: Any, shape: Shape, members: tuple[int, ...], filling: int) -> dict[str, np.ndarray]:
    """The bytes of all results but the workspace, after a call on random inputs in which every result was filled so.

    Checks that nothing but the results was written.
    """
    rng = np.random.default_rng(0)
    rooms, given = {}, shape.arguments
    for index, (name, own) in enumerate(shape.buffers.items()):
        size = (*members, *own)
        content = rng.normal(size=size).astype(np.float32)
        if name in INTEGERS:
            content = rng.integers(0, shape.size, size).astype(np.int32)
        if name == "limits":
            content = rng.integers(1, shape.steps + 1, size).astype(np.int32)
        if name == "order":
            content = rng.permuted(np.broadcast_to(np.arange(shape.batch, dtype=np.int32), size), axis=-1)
        if name == "options":
            content = np.broadcast_to(np.array([1.0, 1e-6, np.log(1e-6)], np.float32), size).copy()
        room = np.full(content.nbytes + 2 * GUARD, PATTERN, np.uint8)
        room[GUARD:-GUARD] = content.reshape(-1).view(np.uint8) if index < given else filling
        rooms[name] = room
    before = {name: room.copy() for name, room in rooms.items()}
    frame, _alive = call_frame(shape, members, [room.ctypes.data + GUARD for room in rooms.values()])
    assert entry(ctypes.addressof(frame)) is None
    for index, (name, room) in enumerate(rooms.items()):
        np.testing.assert_array_equal(room[:GUARD], before[name][:GUARD])
        np.testing.assert_array_equal(room[-GUARD:], before[name][-GUARD:])
        if index < given:
            np.testing.assert_array_equal(room, before[name])
    return {name: rooms[name][GUARD:-GUARD] for name in list(rooms)[given:-1]}
