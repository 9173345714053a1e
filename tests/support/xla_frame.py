"""What XLA hands to a kernel, and the question it asks of one, laid out as in its C header."""

import ctypes
from typing import Any

GUARD = 4096  # bytes before and after every buffer that must stay as they are
PATTERN = 0x7F  # as a float 3.4e38, so that whoever reads it makes infinities


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
