"""Whether there is a kernel for a machine on a GPU, and if not, why."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from nram.errors import NramError
from nram.machine.kernels.cpu.choice import NoKernel, check_circuit
from nram.machine.kernels.cpu.shape import Precision
from nram.machine.kernels.gpu.arrangement import GROUP
from nram.machine.kernels.gpu.shape import LANES, MOST_GATHERED, MOST_WARPS, SHARED_BYTES, WarpShape
from nram.machine.wiring import Wiring

LARGEST_SIZE = 2 * LANES


def warp_shape(
    controller: Literal["mlp", "lstm", "automaton"],
    wiring: Wiring,
    *,
    hidden: int,
    states: int,
    size: int,
    steps: int,
    batch: int,
    renormalising: bool,
    loss: Literal["expected", "average"],
    hard: bool = False,
    precision: Precision = "float32",
    platform: Literal["cpu", "gpu"] = "gpu",
) -> WarpShape:
    """What the kernel for a batch of examples is made for; raises `NoKernel` where there is none."""
    check_circuit(wiring)
    if size > LARGEST_SIZE:
        raise NoKernel(f"the kernels for GPUs are for memories of up to {LARGEST_SIZE} cells")
    states = states if controller == "automaton" else 0
    if wiring.registers + states > LANES:
        raise NoKernel(f"the kernels for GPUs are for up to {LANES} registers and states together")
    shape = WarpShape(
        controller=controller,
        registers=wiring.registers,
        modules=tuple(module.name for module in wiring.modules),
        size=size,
        hidden=hidden,
        states=states,
        steps=steps,
        batch=batch,
        precision=precision,
        renormalising=renormalising,
        loss=loss,
        gradient=True,
        hard=hard,
        platform=platform,
    )
    fitting = [warps for warps in range(1, min(MOST_WARPS, batch) + 1) if _gathered(replace(shape, warps=warps))]
    if not fitting:
        raise NoKernel(f"the weights and one example do not fit into the {SHARED_BYTES // 1024} KiB of a block")
    # The same number of blocks, with the examples spread evenly.
    blocks = -(-batch // fitting[-1])
    shape = replace(shape, warps=-(-batch // blocks))
    return replace(shape, gathered=_gathered(shape))


def _gathered(shape: WarpShape) -> int:
    """How many wires can be gathered at most if the shape is to fit into a block; 0: it does not."""
    counts = (count for count in range(MOST_GATHERED, 0, -GROUP))
    return next((count for count in counts if replace(shape, gathered=count).shared_bytes <= SHARED_BYTES), 0)


def make(shape: WarpShape) -> None:
    """Make the code and load it; raises `NoKernel` where that fails."""
    try:
        from nram.machine.kernels.gpu.compiled import registered
    except (ImportError, OSError) as error:  # what llvmlite says where LLVM is missing
        raise NoKernel(f"llvmlite does not work here: {error}") from error
    try:
        registered(shape)
    except (NramError, RuntimeError, OSError) as error:
        raise NoKernel(f"the kernel cannot be made: {error}") from error
