"""The entry point of a kernel, as XLA's foreign-function interface calls it, and its registration with XLA.

XLA passes one pointer to a call frame of plain C structs (xla/ffi/api/c_api.h). The entry point reads the addresses of
the buffers from it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from llvmlite import ir

from nram.llvm import I8, I32, I64, POINTER, Value
from nram.machine.kernels.common.code import Code
from nram.machine.kernels.common.specification import Shape

UNDERSTOOD = "understood"
"""A number in the machine code: 1 once XLA has asked for the interface's version and uses one that we support."""
INTERFACE_MAJOR = 0
"""The version of XLA's interface that we support. Its minor versions only add fields at the ends of structs."""

# Offsets in bytes: of the call frame, of a buffer, of the request for metadata, of the table of functions.
FRAME_EXTENSION, FRAME_API, FRAME_CONTEXT, FRAME_ARGUMENT_COUNT, FRAME_ARGUMENTS, FRAME_RESULTS = 8, 16, 24, 56, 72, 112
BUFFER_DATA, BUFFER_RANK, BUFFER_DIMS = 24, 32, 40
EXTENSION_TYPE, EXTENSION_METADATA, METADATA_MAJOR, METADATA_MINOR, METADATA_TRAITS = 8, 24, 24, 28, 32
API_MAJOR, API_MINOR, API_CREATE_ERROR, API_STREAM = 32, 36, 48, 80
STREAM_SIZE, STREAM_CONTEXT, STREAM_FOUND = 32, 16, 24
ERROR_SIZE, ERROR_MESSAGE, ERROR_CODE = 28, 16, 24
# Every struct begins with its size, which is at least this.
FRAME_SIZE, EXTENSION_SIZE, METADATA_SIZE, API_SIZE = 168, 32, 36, 40
METADATA_TYPE = 1  # XLA_FFI_Extension_Metadata
INTERNAL = 13  # XLA_FFI_Error_Code_INTERNAL

NULL = ir.Constant(POINTER, None)


class CallFrame(Code):
    """A function `ptr name(ptr frame)`, up to where it has answered XLA's request for the interface's version."""

    def __init__(self, module: ir.Module, name: str, shape: Shape):
        super().__init__(ir.Function(module, ir.FunctionType(POINTER, [POINTER]), name), shape.precision)
        self.shape = shape
        self.frame = self.function.args[0]
        self._answer_metadata()

    def address(self, pointer: Value, offset: int) -> Value:
        """The address `offset` bytes further on."""
        return self.place(pointer, offset, I8)

    def pointer(self, pointer: Value, offset: int) -> Value:
        return self.at.load(self.address(pointer, offset), typ=POINTER)

    def return_null(self) -> None:
        """Leave the function; XLA takes null for success."""
        self.at.ret(NULL)

    def _answer_metadata(self) -> None:
        """Before the first call XLA asks, by a call without arguments, for the version of the interface.

        The kernel answers with the minor version that XLA has. It neither reads nor writes structs that differ from
        those it knows, and is then not used (`register`).
        """
        understood: Any = ir.GlobalVariable(self.function.module, I32, UNDERSTOOD)
        understood.initializer = I32(0)

        def integer(pointer: Value, offset: int, kind: ir.IntType = I32) -> Value:
            return self.at.load(self.address(pointer, offset), typ=kind)

        def has_size(pointer: Value, least: int) -> Value:
            return self.at.icmp_unsigned(">=", integer(pointer, 0, I64), I64(least))

        def equals(pointer: Value, offset: int, expected: int) -> Value:
            return self.at.icmp_signed("==", integer(pointer, offset), I32(expected))

        frame, both = self.frame, self.at.and_
        with self.at.if_then(self.at.icmp_signed("==", integer(frame, FRAME_ARGUMENT_COUNT, I64), I64(0))):
            request = self.pointer(frame, FRAME_EXTENSION)
            exists = self.at.icmp_unsigned("!=", self.at.ptrtoint(request, I64), I64(0))
            with self.at.if_then(both(has_size(frame, FRAME_SIZE), exists)):
                known = both(has_size(request, EXTENSION_SIZE), equals(request, EXTENSION_TYPE, METADATA_TYPE))
                with self.at.if_then(known):
                    metadata, api = self.pointer(request, EXTENSION_METADATA), self.pointer(frame, FRAME_API)
                    known = both(has_size(metadata, METADATA_SIZE), has_size(api, API_SIZE))
                    with self.at.if_then(both(known, equals(api, API_MAJOR, INTERFACE_MAJOR))):
                        for source, target in ((API_MAJOR, METADATA_MAJOR), (API_MINOR, METADATA_MINOR)):
                            self.at.store(integer(api, source), self.address(metadata, target))
                        self.at.store(I32(0), self.address(metadata, METADATA_TRAITS))
                        self.at.store(I32(1), understood)
            self.return_null()

    # Buffers

    def _buffer(self, index: int) -> Value:
        given = self.shape.arguments
        table, index = (FRAME_ARGUMENTS, index) if index < given else (FRAME_RESULTS, index - given)
        return self.pointer(self.pointer(self.frame, table), 8 * index)

    def buffers(self) -> Iterator[Value]:
        """The addresses of all buffers in order."""
        for index in range(len(self.shape.buffers)):
            yield self.pointer(self._buffer(index), BUFFER_DATA)

    def members(self) -> Value:
        """The number of members: the product of the axes that `vmap` put before the axis of the limits."""
        limits = self._buffer(list(self.shape.buffers).index("limits"))
        rank = self.at.load(self.address(limits, BUFFER_RANK), typ=I64)
        dims = self.pointer(limits, BUFFER_DIMS)

        def multiply(axis: Value, product: list[Value]) -> list[Value]:
            return [self.at.mul(product[0], self.at.load(self.place(dims, axis, I64), typ=I64))]

        return self.at.udiv(self.repeat(rank, multiply, [I64(1)])[0], I64(self.shape.batch))

    # XLA's functions

    def stream(self) -> Value:
        """The GPU stream on which XLA wants the work done; returns XLA's error from the function if there is none."""
        request = self._request(STREAM_SIZE)
        self.at.store(self.pointer(self.frame, FRAME_CONTEXT), self.address(request, STREAM_CONTEXT))
        error = self._call_api(API_STREAM, request)
        with self.at.if_then(self.at.icmp_unsigned("!=", self.at.ptrtoint(error, I64), I64(0))):
            self.at.ret(error)
        return self.pointer(request, STREAM_FOUND)

    def fail(self, words: str) -> None:
        """Return an error with this message from the function."""
        letters = bytearray(words.encode() + b"\0")
        text = ir.Constant(ir.ArrayType(I8, len(letters)), letters)
        message: Any = ir.GlobalVariable(self.function.module, text.type, "message")
        message.type = POINTER
        message.linkage, message.global_constant, message.initializer = "internal", True, text
        request = self._request(ERROR_SIZE)
        self.at.store(message, self.address(request, ERROR_MESSAGE))
        self.at.store(I32(INTERNAL), self.address(request, ERROR_CODE))
        self.at.ret(self._call_api(API_CREATE_ERROR, request))

    def _request(self, size: int) -> Value:
        """A struct on the stack: its size, no extension, and room for the rest."""
        request = self.at.alloca(POINTER, -(-size // 8))
        self.at.store(I64(size), request)
        self.at.store(NULL, self.address(request, 8))
        return request

    def _call_api(self, offset: int, request: Value) -> Value:
        kind = FunctionPointer(ir.FunctionType(POINTER, [POINTER]))
        table = self.pointer(self.frame, FRAME_API)
        return self.at.call(self.at.load(self.address(table, offset), typ=kind), [request])


class FunctionPointer(ir.PointerType):
    """The address of a function. LLVM's pointers do not say what they point to, but llvmlite's calls ask."""

    def __init__(self, pointee: ir.FunctionType):
        super().__init__()
        self.pointee = pointee


def register(name: str, engine: Any, entry: str, platform: str) -> None:
    """Register machine code with XLA under this name.

    XLA keeps compiled programs on disk, with the names of the functions that they call. A name must therefore mean the
    same kernel in every process. Raises `RuntimeError` where XLA has another interface than the kernels.
    """
    import jax

    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address(entry))
    _KEPT.append((engine, function))
    # A JAX that has not started would ask for the version later, and fail to start if it does not like the answer.
    jax.devices()
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform=platform, api_version=1)
    # The plugin of a GPU may ask later, and refuse the kernel then.
    if platform == "cpu" and not understood(engine):
        raise RuntimeError(
            f"JAX {jax.__version__} has another version of XLA's foreign-function interface than the one that kernels "
            f"are written for, {INTERFACE_MAJOR}"
        )


def understood(engine: Any) -> bool:
    """Whether XLA has asked a kernel for the version of its interface, in a form that the kernel knows."""
    return ctypes.c_int32.from_address(engine.get_global_value_address(UNDERSTOOD)).value == 1


_KEPT: list[Any] = []  # engines own their code, so they live as long as the process
