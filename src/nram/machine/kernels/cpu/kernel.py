"""A kernel as machine code: its entry point runs block after block, and adds up the gradients of the weights."""

from __future__ import annotations

import platform
from functools import cache

from llvmlite import ir

from nram.llvm import I32, I64, POINTER, VOID, Value, cached, fingerprint, loaded, object_code
from nram.machine.kernels.common.call_frame import CallFrame, register
from nram.machine.kernels.common.code import Code, internal_function
from nram.machine.kernels.common.specification import PARAMETERS, SOURCES
from nram.machine.kernels.cpu.episode import build_block
from nram.machine.kernels.cpu.lanes import Lanes
from nram.machine.kernels.cpu.products import add_weight_gradient
from nram.machine.kernels.cpu.shape import ALIGNMENT, KernelShape

ENTRY = "episodes"
FLUSH_DENORMALS = 0x8040  # bits of the x86 status register: as in XLA's own code, denormal numbers count as 0


@cache
def registered(shape: KernelShape) -> str:
    """The name under which XLA finds the kernel of this shape, which is compiled if need be."""
    name = f"nram_{fingerprint(shape, SOURCES)}"
    register(name, loaded(compiled(shape)), ENTRY, "cpu")
    return name


def compiled(shape: KernelShape) -> bytes:
    """The kernel's machine code, from the cache if it is there."""
    x86 = platform.machine() in ("x86_64", "AMD64")
    return cached(f"{fingerprint(shape, SOURCES)}.o", lambda: object_code(build_kernel(shape, x86)))


def build_kernel(shape: KernelShape, x86: bool) -> ir.Module:
    module = ir.Module("episodes")
    blocks = {width: build_block(module, shape, width) for width in {shape.vectors.lanes, shape.tail} if width}
    sums = _build_sums(module, shape) if shape.gradient else None
    code = CallFrame(module, ENTRY, shape)
    context = code.at.alloca(POINTER, len(shape.buffers))
    for index, (name, address) in enumerate(zip(shape.buffers, code.buffers(), strict=True)):
        code.at.store(_aligned(code, address) if name == "workspace" else address, code.place(context, index, POINTER))
    status = _flush_denormals(code) if x86 else None
    _run_blocks(code, shape, context, blocks, sums)
    if status is not None:
        _set_status(code, status)
    code.return_null()
    return module


def _aligned(code: Code, address: Value) -> Value:
    rounded_up = code.at.add(code.at.ptrtoint(address, I64), I64(ALIGNMENT - 1))
    return code.at.inttoptr(code.at.and_(rounded_up, I64(-ALIGNMENT)), POINTER)


def _flush_denormals(code: Code) -> Value:
    """Set the processor's status register for arithmetic; returns what it held before."""
    room = code.at.alloca(I32)
    code.at.call(code.declared("llvm.x86.sse.stmxcsr", VOID, [POINTER]), [room])
    former = code.at.load(room, typ=I32)
    _set_status(code, code.at.or_(former, I32(FLUSH_DENORMALS)))
    return former


def _set_status(code: Code, status: Value) -> None:
    room = code.at.alloca(I32)
    code.at.store(status, room)
    code.at.call(code.declared("llvm.x86.sse.ldmxcsr", VOID, [POINTER]), [room])


def _run_blocks(
    code: Code, shape: KernelShape, context: Value, blocks: dict[int, ir.Function], sums: ir.Function | None
) -> None:
    lanes, nothing = shape.vectors.lanes, I64(0)
    full = shape.batch // lanes
    if sums is not None:
        _clear_gradients(code, shape, context)

    def run(width: int, first: Value, filled: Value) -> Value:
        """One block; returns how many slots are filled after it."""
        if sums is None:
            code.at.call(blocks[width], [context, first, nothing])
            return nothing
        # A narrow block packs several steps into one slot. Where not all of its steps would fit, the slots are summed
        # and reused.
        packed = lanes // width
        room = I64(shape.slots - -(-shape.steps // packed))
        before = code.at.block
        with code.at.if_then(code.at.icmp_signed(">", filled, room)):
            code.at.call(sums, [context, filled])
            emptied = code.at.block
        start = code.at.phi(I64)
        start.add_incoming(filled, before)
        start.add_incoming(nothing, emptied)
        steps = code.at.call(blocks[width], [context, first, start])
        used = code.at.udiv(code.at.add(steps, I64(packed - 1)), I64(packed))
        return code.at.add(start, used)

    filled: Value = nothing
    if full:
        filled = code.repeat(full * lanes, lambda first, held: [run(lanes, first, held[0])], [filled], step=lanes)[0]
    if shape.tail:
        filled = run(shape.tail, I64(full * lanes), filled)
    if sums is not None:
        code.at.call(sums, [context, filled])


def _clear_gradients(code: Code, shape: KernelShape, context: Value) -> None:
    zero = ir.Constant(code.scalar, 0.0)
    for index in range(PARAMETERS):
        gradient = _buffer(code, shape, context, f"gradient{index}")
        layer = shape.layers[index // 2]
        count = layer.outputs * (layer.inputs if index % 2 == 0 else 1)

        def clear(i: Value, _: list[Value], gradient=gradient) -> list[Value]:
            code.store_scalar(zero, gradient, i)
            return []

        code.repeat(count, clear)


def _buffer(code: Code, shape: KernelShape, context: Value, name: str) -> Value:
    """The address of a buffer, by the table of all of them."""
    return code.at.load(code.place(context, list(shape.buffers).index(name), POINTER), typ=POINTER)


def _build_sums(module: ir.Module, shape: KernelShape) -> ir.Function:
    """void sums(ptr* context, i64 filled): add what the filled slots say to the gradients of the weights."""
    function = internal_function(module, "sums", VOID, [POINTER, I64])
    code = Lanes(function, shape.precision, shape.vectors.lanes, shape.vectors.accumulators)
    context, filled = function.args
    workspace = _buffer(code, shape, context, "workspace")
    slots = code.place(workspace, shape.workspace["slots"] * shape.vectors.lanes)
    for index, layer in enumerate(shape.layers):
        weight, bias = (_buffer(code, shape, context, f"gradient{2 * index + k}") for k in range(2))
        add_weight_gradient(code, slots, filled, shape.slot, layer, weight, bias)
    code.at.ret_void()
    return function
