"""Which kernel trains a stage: the fast one where there is one, else the plain path, and why."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from nram.machine.kernels.cpu import choice as on_cpu
from nram.machine.kernels.cpu.choice import NoKernel, check_wanted
from nram.machine.kernels.cpu.shape import KernelShape
from nram.machine.kernels.gpu import choice as on_gpu
from nram.machine.kernels.gpu.shape import WarpShape
from nram.runtime import Device
from nram.training.config import StageConfig, TrainConfig
from nram.training.member import wiring_of

Shape: TypeAlias = KernelShape | WarpShape


class Kernel(NamedTuple):
    """A kernel, or the reason why there is none."""

    shape: Shape | None
    reason: str = ""


PLAIN = Kernel(None, "the plain path was asked for")


def chosen_kernel(config: TrainConfig, stage: StageConfig, devices: list[Device]) -> Kernel:
    """The kernel of a stage, not compiled yet."""
    machine, platform = config.machine, devices[0].platform
    try:
        check_wanted()
        if platform not in ("cpu", "gpu"):
            raise NoKernel("the kernels are for CPUs and NVIDIA's GPUs")
        if platform == "gpu" and len(devices) > 1:
            raise NoKernel(
                "the kernel is for one GPU at a time: name it, e.g. CUDA_VISIBLE_DEVICES=0, for the fast path"
            )
        shape_of = on_cpu.kernel_shape if platform == "cpu" else on_gpu.warp_shape
        shape = shape_of(
            machine.controller,
            wiring_of(machine),
            hidden=machine.hidden,
            states=machine.states,
            size=config.memory_size(stage),
            steps=config.loop_steps(stage),
            batch=config.batch,
            renormalising=machine.renormalise,
            loss=config.loss,
            hard=stage.straight_through,
        )
        return Kernel(shape)
    except NoKernel as reason:
        return Kernel(None, str(reason))


def kernel_of(config: TrainConfig, stage: StageConfig, devices: list[Device]) -> Kernel:
    """The kernel of a stage, ready to be called."""
    chosen = chosen_kernel(config, stage, devices)
    try:
        match chosen.shape:
            case KernelShape():
                on_cpu.make(chosen.shape)
            case WarpShape():
                on_gpu.make(chosen.shape)
        return chosen
    except NoKernel as reason:
        return Kernel(None, str(reason))
