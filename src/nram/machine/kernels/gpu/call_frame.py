"""The entry point of a kernel as XLA's foreign-function interface calls it (xla/ffi/api/c_api.h)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir

from nram.machine.kernels.cpu.kernel import (
    BUFFER_DATA,
    FRAME_API,
    FRAME_ARGUMENTS,
    FRAME_RESULTS,
    answer_metadata,
)
from nram.machine.kernels.cpu.lanes import I32, I64, POINTER, Lanes, Value
from nram.machine.kernels.gpu.frame import buffer_shapes, given
from nram.machine.kernels.gpu.shape import WarpShape

# Offsets in bytes
FRAME_CONTEXT = 24
BUFFER_RANK, BUFFER_DIMS = 32, 40
API_CREATE_ERROR, API_STREAM = 48, 80
STREAM_SIZE, STREAM_CONTEXT, STREAM_FOUND = 32, 16, 24
ERROR_SIZE, ERROR_MESSAGE, ERROR_CODE = 28, 16, 24
INTERNAL = 13  # XLA_FFI_Error_Code_INTERNAL


class CallFrame:
    """A function `ptr name(ptr frame)` that has answered XLA's question for the interface's version."""

    def __init__(self, module: ir.Module, name: str):
        function = ir.Function(module, ir.FunctionType(POINTER, [POINTER]), name)
        self.frame = function.args[0]
        self.to = Lanes(function, "float32", 4, 4)
        answer_metadata(self.to, self.frame)

    def at(self, pointer: Value, offset: int) -> Value:
        return self.to.at.gep(pointer, [I64(offset)], inbounds=True, source_etype=ir.IntType(8))

    def pointer(self, pointer: Value, offset: int) -> Value:
        return self.to.at.load(self.at(pointer, offset), typ=POINTER)

    def _buffer(self, number: int, arguments: int) -> Value:
        table, index = (FRAME_ARGUMENTS, number) if number < arguments else (FRAME_RESULTS, number - arguments)
        return self.pointer(self.pointer(self.frame, table), 8 * index)

    def buffers(self, shape: WarpShape) -> Iterator[Value]:
        """The addresses of all buffers."""
        for number in range(len(buffer_shapes(shape))):
            yield self.pointer(self._buffer(number, given(shape)), BUFFER_DATA)

    def members(self, shape: WarpShape) -> Value:
        """How many members there are: the leading axes of the limits, whatever `vmap` made of them."""
        to, arguments = self.to, given(shape)
        limits = self._buffer(list(buffer_shapes(shape)).index("limits"), arguments)
        rank = to.at.load(self.at(limits, BUFFER_RANK), typ=I64)
        dims = self.pointer(limits, BUFFER_DIMS)

        def times(axis: Value, held: list[Value]) -> list[Value]:
            length = to.at.load(to.at.gep(dims, [axis], inbounds=True, source_etype=I64), typ=I64)
            return [to.at.mul(held[0], length)]

        total = to.repeat(rank, times, [I64(1)])[0]
        return to.at.udiv(total, I64(shape.batch))

    # Of a GPU

    def stream(self) -> Value:
        """The stream on which XLA wants the work done; leaves the function with XLA's error if there is none."""
        to = self.to
        asked = self.room(STREAM_SIZE)
        to.at.store(I64(STREAM_SIZE), asked)
        to.at.store(ir.Constant(POINTER, None), self.at(asked, 8))
        to.at.store(self.pointer(self.frame, FRAME_CONTEXT), self.at(asked, STREAM_CONTEXT))
        error = self.call(self.pointer(self.frame, FRAME_API), API_STREAM, POINTER, [asked])
        with to.at.if_then(to.at.icmp_unsigned("!=", to.at.ptrtoint(error, I64), I64(0))):
            to.at.ret(error)
        return self.pointer(asked, STREAM_FOUND)

    def room(self, size: int) -> Value:
        """So many bytes on the stack."""
        return self.to.at.alloca(POINTER, -(-size // 8))

    def fail(self, words: str) -> None:
        """Leave the function with an error of our own."""
        to, module = self.to, self.to.function.module
        letters = bytearray(words.encode() + b"\0")
        text = ir.Constant(ir.ArrayType(ir.IntType(8), len(letters)), letters)
        message: Any = ir.GlobalVariable(module, text.type, "message")
        message.type = POINTER
        message.linkage, message.global_constant, message.initializer = "internal", True, text
        asked = self.room(ERROR_SIZE)
        to.at.store(I64(ERROR_SIZE), asked)
        to.at.store(ir.Constant(POINTER, None), self.at(asked, 8))
        to.at.store(message, self.at(asked, ERROR_MESSAGE))
        to.at.store(I32(INTERNAL), self.at(asked, ERROR_CODE))
        to.at.ret(self.call(self.pointer(self.frame, FRAME_API), API_CREATE_ERROR, POINTER, [asked]))

    def call(self, table: Value, offset: int, result: ir.Type, arguments: list[Value]) -> Value:
        """A function whose address stands in a table."""
        kind = FunctionPointer(ir.FunctionType(result, [argument.type for argument in arguments]))
        return self.to.at.call(self.to.at.load(self.at(table, offset), typ=kind), arguments)


class FunctionPointer(ir.PointerType):
    """The address of a function: LLVM's pointers do not say of what, but llvmlite's calls ask."""

    def __init__(self, pointee: ir.FunctionType):
        super().__init__()
        self.pointee = pointee
