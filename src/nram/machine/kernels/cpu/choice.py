"""Whether there is a kernel for a machine, and if not, why."""

from __future__ import annotations

import os
from typing import Any, Literal

from nram.machine.kernels.cpu.shape import COVERED, KernelShape, Precision, Vectors
from nram.machine.wiring import Wiring
from nram.modules import PAPER_MODULES

SWITCH = "NRAM_PLAIN"  # set in the environment, it switches the kernels off
LARGEST_WIRING = 10_000
"""Logits of a circuit; beyond, compiling the kernel takes minutes."""


class NoKernel(Exception):
    """Why the plain path is taken."""


def check_wanted() -> None:
    """Raises `NoKernel` if kernels are switched off."""
    if os.environ.get(SWITCH, "0") not in ("", "0"):
        raise NoKernel(f"{SWITCH} is set")


def kernel_shape(
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
) -> KernelShape:
    """What the kernel for a batch of examples is made for; raises `NoKernel` where there is none."""
    check_circuit(wiring)
    return KernelShape(
        controller=controller,
        registers=wiring.registers,
        modules=tuple(module.name for module in wiring.modules),
        size=size,
        hidden=hidden,
        states=states if controller == "automaton" else 0,
        steps=steps,
        batch=batch,
        precision=precision,
        renormalising=renormalising,
        loss=loss,
        gradient=True,
        hard=hard,
        vectors=_vectors(precision),
    )


def check_circuit(wiring: Wiring) -> None:
    """Raises `NoKernel` if no kernel, of a CPU or a GPU, is written for such circuits."""
    strange = sorted({module.name for module in wiring.modules if module not in PAPER_MODULES})
    strange += sorted({module.name for module in wiring.modules} - COVERED - set(strange))
    if strange:
        raise NoKernel(f"there is no kernel for the module {strange[0]}")
    if wiring.logits > LARGEST_WIRING:
        raise NoKernel(f"circuits of {wiring.logits} logits are too large for a kernel")


def make(shape: KernelShape) -> None:
    """Make the machine code; raises `NoKernel` where that fails."""
    from nram.machine.kernels.cpu.compiled import registered

    try:
        registered(shape)
    except (RuntimeError, OSError) as error:
        raise NoKernel(f"kernels cannot be used here: {error}") from error


def _vectors(precision: Precision) -> Vectors:
    try:
        from nram.machine.kernels.cpu.compiled import host_vectors
    except (ImportError, OSError) as error:  # what llvmlite says where LLVM is missing
        raise NoKernel(f"llvmlite does not work here: {error}") from error
    vectors: Any = host_vectors()
    if vectors is None:
        raise NoKernel("this processor has no fused multiply-add on vectors")
    return vectors if precision == "float32" else Vectors(vectors.lanes // 2, vectors.accumulators)
