"""Which kernel runs on which devices, and if none does, why. The only file that knows both back ends."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from nram.errors import NramError
from nram.machine.kernels.common.specification import NoKernel, Shape, specify
from nram.machine.kernels.cpu.shape import lane_shape
from nram.machine.kernels.gpu.shape import warp_shape
from nram.machine.wiring import Wiring
from nram.runtime import Device

SWITCH = "NRAM_PLAIN"  # set in the environment, it switches the kernels off


class Kernel(NamedTuple):
    """A kernel, or the reason why the plain path is used."""

    shape: Shape | None
    reason: str = ""


PLAIN = Kernel(None, "the plain path was asked for")


def choose_kernel(devices: list[Device], wiring: Wiring, **settings: Any) -> Kernel:
    """The kernel for these devices, not compiled yet. `settings` are those of `specify`."""
    try:
        if os.environ.get(SWITCH, "0") not in ("", "0"):
            raise NoKernel(f"{SWITCH} is set")
        match devices[0].platform:
            case "cpu":
                return Kernel(lane_shape(specify(wiring, **settings)))
            case "gpu":
                return Kernel(warp_shape(specify(wiring, **settings)))
        raise NoKernel("the kernels are for CPUs and NVIDIA's GPUs")
    except NoKernel as reason:
        return Kernel(None, str(reason))


def compiled_kernel(kernel: Kernel) -> Kernel:
    """The same kernel, ready to be called; without one, if it cannot be compiled."""
    try:
        if kernel.shape is not None:
            kernel.shape.registered()
        return kernel
    except ImportError as error:
        return Kernel(None, f"llvmlite does not work here: {error}")
    except (NramError, RuntimeError, OSError) as error:
        return Kernel(None, f"the kernel cannot be made: {error}")
