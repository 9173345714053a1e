"""A kernel as machine code, in the form in which XLA calls it.

XLA's foreign-function interface hands over one pointer to a call frame of plain C structs (xla/ffi/api/c_api.h). The
entry point reads the buffers' addresses from it, runs block after block, and adds up the gradients of the weights.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from nram.machine.kernels.cpu.block import PARAMETERS, context_names
from nram.machine.kernels.cpu.episode import build_block
from nram.machine.kernels.cpu.lanes import I32, I64, POINTER, Lanes, Value
from nram.machine.kernels.cpu.products import add_weight_gradient
from nram.machine.kernels.cpu.shape import ALIGNMENT, KernelShape

ENTRY = "episodes"
UNDERSTOOD = "understood"
"""A number in the machine code: 1 once XLA has asked for the version and speaks one that is known here."""
INTERFACE_MAJOR = 0
"""The version of XLA's interface that is known here. Its minor versions only add fields at the ends of structs."""

# Offsets in bytes: of the call frame, of a buffer, of the question for metadata, of the table of functions.
FRAME_EXTENSION, FRAME_API, FRAME_ARGUMENT_COUNT, FRAME_ARGUMENTS, FRAME_RESULTS = 8, 16, 56, 72, 112
BUFFER_DATA = 24
EXTENSION_TYPE, EXTENSION_METADATA, METADATA_MAJOR, METADATA_MINOR, METADATA_TRAITS = 8, 24, 24, 28, 32
API_MAJOR, API_MINOR = 32, 36
# Every struct begins with its size, which is at least this.
FRAME_SIZE, EXTENSION_SIZE, METADATA_SIZE, API_SIZE = 168, 32, 36, 40
METADATA_TYPE = 1  # XLA_FFI_Extension_Metadata

FLUSH_DENORMALS = 0x8040  # as XLA's own code has it: denormal numbers are taken for 0


def build_kernel(shape: KernelShape, x86: bool) -> ir.Module:
    module = ir.Module("episodes")
    blocks = {width: build_block(module, shape, width) for width in {shape.vectors.lanes, shape.tail} if width}
    sums = _build_sums(module, shape) if shape.gradient else None
    entry = ir.Function(module, ir.FunctionType(POINTER, [POINTER]), ENTRY)
    to = Lanes(entry, shape.precision, shape.vectors.lanes, shape.vectors.accumulators)
    answer_metadata(to, entry.args[0])
    names = context_names(shape)
    context = to.at.alloca(POINTER, len(names))
    given = names.index("outcomes")
    for number, name in enumerate(names):
        table, index = (FRAME_ARGUMENTS, number) if number < given else (FRAME_RESULTS, number - given)
        address = _buffer(to, entry.args[0], table, index)
        if name == "workspace":
            address = _aligned(to, address)
        to.at.store(address, _slot(to, context, number))
    status = _flush_denormals(to) if x86 else None
    _run_blocks(to, shape, context, blocks, sums)
    if status is not None:
        _set_status(to, status)
    to.at.ret(ir.Constant(POINTER, None))
    return module


def _bytes_on(to: Lanes, pointer: Value, offset: int) -> Value:
    return to.at.gep(pointer, [to.index(offset)], inbounds=True, source_etype=ir.IntType(8))


def _slot(to: Lanes, context: Value, number: int) -> Value:
    return to.at.gep(context, [to.index(number)], inbounds=True, source_etype=POINTER)


def answer_metadata(to: Lanes, frame: Value) -> None:
    """Before the first call XLA asks, by a call without arguments, for the version of the interface.

    We speak the minor version that is asking. Of structs that are not as we know them nothing is read or written, and
    the kernel is not used (`compiled.register`).
    """
    understood: Any = ir.GlobalVariable(to.function.module, I32, UNDERSTOOD)
    understood.initializer = ir.Constant(I32, 0)

    def number(pointer: Value, offset: int, kind: ir.IntType = I32) -> Value:
        return to.at.load(_bytes_on(to, pointer, offset), typ=kind)

    def has_size(pointer: Value, least: int) -> Value:
        return to.at.icmp_unsigned(">=", number(pointer, 0, I64), to.index(least))

    def is_number(pointer: Value, offset: int, wanted: int) -> Value:
        return to.at.icmp_signed("==", number(pointer, offset), ir.Constant(I32, wanted))

    asked = to.at.icmp_signed("==", number(frame, FRAME_ARGUMENT_COUNT, I64), to.index(0))
    with to.at.if_then(asked):
        question = to.at.load(_bytes_on(to, frame, FRAME_EXTENSION), typ=POINTER)
        there = to.at.icmp_unsigned("!=", to.at.ptrtoint(question, I64), to.index(0))
        with to.at.if_then(to.at.and_(has_size(frame, FRAME_SIZE), there)):
            known = to.at.and_(has_size(question, EXTENSION_SIZE), is_number(question, EXTENSION_TYPE, METADATA_TYPE))
            with to.at.if_then(known):
                metadata = to.at.load(_bytes_on(to, question, EXTENSION_METADATA), typ=POINTER)
                api = to.at.load(_bytes_on(to, frame, FRAME_API), typ=POINTER)
                known = to.at.and_(has_size(metadata, METADATA_SIZE), has_size(api, API_SIZE))
                with to.at.if_then(to.at.and_(known, is_number(api, API_MAJOR, INTERFACE_MAJOR))):
                    for source, target in ((API_MAJOR, METADATA_MAJOR), (API_MINOR, METADATA_MINOR)):
                        to.at.store(number(api, source), _bytes_on(to, metadata, target))
                    to.at.store(ir.Constant(I32, 0), _bytes_on(to, metadata, METADATA_TRAITS))
                    to.at.store(ir.Constant(I32, 1), understood)
        to.at.ret(ir.Constant(POINTER, None))


def _buffer(to: Lanes, frame: Value, table: int, number: int) -> Value:
    """The address of the data of one argument or result."""
    buffers = to.at.load(_bytes_on(to, frame, table), typ=POINTER)
    buffer = to.at.load(_slot(to, buffers, number), typ=POINTER)
    return to.at.load(_bytes_on(to, buffer, BUFFER_DATA), typ=POINTER)


def _aligned(to: Lanes, address: Value) -> Value:
    number = to.at.add(to.at.ptrtoint(address, I64), to.index(ALIGNMENT - 1))
    return to.at.inttoptr(to.at.and_(number, to.index(-ALIGNMENT)), POINTER)


def _flush_denormals(to: Lanes) -> Value:
    """Sets the processor's status for arithmetic and returns the former one."""
    place = to.at.alloca(I32)
    kind = [POINTER]
    to.at.call(to.declared("llvm.x86.sse.stmxcsr", ir.VoidType(), kind), [place])
    former = to.at.load(place, typ=I32)
    _set_status(to, to.at.or_(former, ir.Constant(I32, FLUSH_DENORMALS)))
    return former


def _set_status(to: Lanes, status: Value) -> None:
    place = to.at.alloca(I32)
    to.at.store(status, place)
    to.at.call(to.declared("llvm.x86.sse.ldmxcsr", ir.VoidType(), [POINTER]), [place])


def _run_blocks(
    to: Lanes, shape: KernelShape, context: Value, blocks: dict[int, ir.Function], sums: ir.Function | None
) -> None:
    lanes, nothing = shape.vectors.lanes, to.index(0)
    full = shape.batch // lanes
    if sums is not None:
        _clear_gradients(to, shape, context)

    def run(width: int, first: Value, filled: Value) -> Value:
        """One block; returns how many slots are filled after it."""
        if sums is None:
            to.at.call(blocks[width], [context, first, nothing])
            return nothing
        packed = lanes // width
        room = to.at.sub(to.index(shape.slots), to.index(-(-shape.steps // packed)))
        over = to.at.icmp_signed(">", filled, room)
        before = to.at.block
        with to.at.if_then(over):
            to.at.call(sums, [context, filled])
            emptied = to.at.block
        merged = to.at.phi(I64)
        merged.add_incoming(filled, before)
        merged.add_incoming(nothing, emptied)
        steps = to.at.call(blocks[width], [context, first, merged])
        used = to.at.udiv(to.at.add(steps, to.index(packed - 1)), to.index(packed))
        return to.at.add(merged, used)

    filled: Value = nothing
    if full:
        filled = to.repeat(full * lanes, lambda first, held: [run(lanes, first, held[0])], [filled], step=lanes)[0]
    if shape.tail:
        filled = run(shape.tail, to.index(full * lanes), filled)
    if sums is not None:
        to.at.call(sums, [context, filled])


def _clear_gradients(to: Lanes, shape: KernelShape, context: Value) -> None:
    first = context_names(shape).index("gradient0")
    for number in range(PARAMETERS):
        place = to.at.load(_slot(to, context, first + number), typ=POINTER)
        layer = shape.layers[number // 2]
        count = layer.outputs * (layer.inputs if number % 2 == 0 else 1)

        def clear(i: Value, _: list[Value], place=place) -> list[Value]:
            to.store_scalar(ir.Constant(to.scalar, 0.0), place, i)
            return []

        to.repeat(count, clear)


def _build_sums(module: ir.Module, shape: KernelShape) -> ir.Function:
    """void sums(ptr* context, i64 filled): add what the filled slots say to the gradients of the weights."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64]), "sums")
    function.linkage = "internal"
    function.attributes.add("noinline")
    to = Lanes(function, shape.precision, shape.vectors.lanes, shape.vectors.accumulators)
    context, filled = function.args
    names = context_names(shape)

    def buffer(name: str) -> Value:
        return to.at.load(_slot(to, context, names.index(name)), typ=POINTER)

    slots = to.place(buffer("workspace"), shape.workspace["slots"] * shape.vectors.lanes)
    for number, layer in enumerate(shape.layers):
        weight, bias = buffer(f"gradient{2 * number}"), buffer(f"gradient{2 * number + 1}")
        add_weight_gradient(
            to, slots, filled, shape.slot, layer.x, layer.inputs, layer.gradient, layer.outputs, weight, bias
        )
    to.at.ret_void()
    return function
