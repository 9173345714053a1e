"""Kernels on NVIDIA GPUs: the driver compiles the PTX, and a handler in machine code launches it on XLA's stream.

XLA knows a kernel by one name on all GPUs of the process. The driver compiles it for each of them, in that GPU's own
context, and the handler takes the functions of the GPU to which the stream belongs.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir

from nram.errors import NramError
from nram.llvm import I32, I64, POINTER, Value, cached, fingerprint, loaded, object_code
from nram.machine.kernels.common.call_frame import NULL, CallFrame, FunctionPointer, register
from nram.machine.kernels.common.specification import SOURCES
from nram.machine.kernels.gpu.kernel import Launch, launches, ptx
from nram.machine.kernels.gpu.shape import LANES, WarpShape

HANDLER = "launch"
MOST_REGISTERS, LOCAL_BYTES, DYNAMIC_SHARED = 4, 3, 8  # CUfunction_attribute
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CUjit_option
LOG_BYTES = 8192


@dataclass(frozen=True)
class DeviceFunction:
    """A kernel that the driver has compiled."""

    address: int  # the driver's handle
    registers: int  # of a thread
    local_bytes: int  # of a thread: for values that did not fit into its registers


@dataclass(frozen=True)
class GpuFunctions:
    """The functions of all launches on one GPU."""

    context: int  # the driver's handle of the context that JAX uses on this GPU
    functions: list[DeviceFunction]


@cache
def driver() -> Any:
    """NVIDIA's driver, initialised."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NramError(f"there is no NVIDIA driver: {error}") from error
    _check(library, library.cuInit(0), "start")
    return library


def _check(library: Any, status: int, what: str) -> None:
    if status:
        words = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(words))
        said = words.value.decode() if words.value else f"error {status}"
        raise NramError(f"NVIDIA's driver fails to {what}: {said}")


def compiled_on_gpu(shape: WarpShape, ordinal: int) -> GpuFunctions:
    """The functions of all launches on the GPU with this number."""
    cuda = driver()
    device, context, former = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    _check(cuda, cuda.cuDeviceGet(ctypes.byref(device), ordinal), "find a GPU")
    _check(cuda, cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "open the GPU")
    _check(cuda, cuda.cuCtxPushCurrent_v2(context), "use the GPU")
    try:
        functions = _functions(cuda, shape)
    finally:
        cuda.cuCtxPopCurrent_v2(ctypes.byref(former))
    assert context.value is not None
    return GpuFunctions(context.value, functions)


def _functions(cuda: Any, shape: WarpShape) -> list[DeviceFunction]:
    module = ctypes.c_void_p()
    log = ctypes.create_string_buffer(LOG_BYTES)
    options = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
    text = ctypes.create_string_buffer(cached(f"{fingerprint(shape, SOURCES)}.ptx", lambda: ptx(shape).encode()))
    status = cuda.cuModuleLoadDataEx(ctypes.byref(module), text, len(options), options, values)
    _check(cuda, status, f"compile the kernel ({log.value.decode(errors='replace').strip()})")
    return [_function(cuda, module, launch) for launch in launches(shape)]


def _function(cuda: Any, module: ctypes.c_void_p, launch: Launch) -> DeviceFunction:
    function, number = ctypes.c_void_p(), ctypes.c_int()
    _check(cuda, cuda.cuModuleGetFunction(ctypes.byref(function), module, launch.entry.encode()), "find the kernel")
    wanted = launch.shared_bytes
    _check(cuda, cuda.cuFuncSetAttribute(function, DYNAMIC_SHARED, wanted), f"give a block {wanted} bytes")
    found = []
    for attribute in (MOST_REGISTERS, LOCAL_BYTES):
        _check(cuda, cuda.cuFuncGetAttribute(ctypes.byref(number), attribute, function), "describe the kernel")
        found.append(number.value)
    assert function.value is not None
    return DeviceFunction(function.value, *found)


@cache
def registered(shape: WarpShape) -> str:
    """The name under which XLA finds the kernel of this shape, which is compiled if need be, for every GPU of JAX."""
    import jax

    gpus = [compiled_on_gpu(shape, device.local_hardware_id) for device in jax.local_devices(backend="gpu")]
    launch, context_of = (_address(name) for name in ("cuLaunchKernel", "cuStreamGetCtx"))
    name = f"nram_{fingerprint(shape, SOURCES)}"
    register(name, loaded(object_code(build_handler(shape, gpus, launch, context_of))), HANDLER, "CUDA")
    return name


def _address(name: str) -> int:
    """Where a function of the driver begins."""
    found = ctypes.cast(getattr(driver(), name), ctypes.c_void_p).value
    assert found is not None
    return found


def build_handler(shape: WarpShape, gpus: list[GpuFunctions], launch: int, context_of: int) -> ir.Module:
    """The machine code that XLA calls: it launches the kernel's functions for all members.

    `launch` and `context_of` are the addresses of the driver's `cuLaunchKernel` and `cuStreamGetCtx`.
    """
    module = ir.Module("handler")
    code = CallFrame(module, HANDLER, shape)
    addresses, parameters = (code.at.alloca(POINTER, len(shape.buffers)) for _ in range(2))
    for index, address in enumerate(code.buffers()):
        place = code.place(addresses, index, POINTER)
        code.at.store(address, place)
        code.at.store(place, code.place(parameters, index, POINTER))
    members, stream = code.members(), code.stream()
    one, status = I32(1), I32(0)
    for part, function in zip(launches(shape), _functions_for(code, stream, gpus, context_of), strict=True):
        blocks = code.at.trunc(code.at.mul(members, I64(part.blocks)), I32)
        grid, block = [blocks, one, one], [I32(part.warps * LANES), one, one]
        arguments = [code.at.inttoptr(function, POINTER), *grid, *block, I32(part.shared_bytes)]
        arguments += [stream, parameters, NULL]
        status = code.at.or_(status, _call_driver(code, launch, arguments))
    with code.at.if_then(code.at.icmp_unsigned("!=", status, I32(0))):
        code.fail("the GPU does not take the kernel of nram.machine.kernels.gpu")
    code.return_null()
    return module


def _functions_for(code: CallFrame, stream: Value, gpus: list[GpuFunctions], context_of: int) -> list[Value]:
    """The functions of the stream's GPU. Where there are several GPUs and it is none of them, these are 0, which the
    driver does not launch."""
    addresses = [[I64(function.address) for function in gpu.functions] for gpu in gpus]
    if len(gpus) == 1:
        return addresses[0]
    room = code.at.alloca(I64)
    code.at.store(I64(0), room)
    _call_driver(code, context_of, [stream, room])
    context = code.at.load(room, typ=I64)
    chosen: list[Value] = [I64(0)] * len(addresses[0])
    for gpu, own in zip(gpus, addresses, strict=True):
        here = code.at.icmp_unsigned("==", context, I64(gpu.context))
        chosen = [code.at.select(here, function, former) for function, former in zip(own, chosen, strict=True)]
    return chosen


def _call_driver(code: CallFrame, address: int, arguments: list[Value]) -> Value:
    """Call a function of the driver; returns its status."""
    kind = FunctionPointer(ir.FunctionType(I32, [argument.type for argument in arguments]))
    return code.at.call(code.at.inttoptr(I64(address), kind), arguments)
