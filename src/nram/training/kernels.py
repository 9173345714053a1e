"""Which kernel trains a stage: the fast one where there is one, else the plain path, and why."""

from __future__ import annotations

from typing import NamedTuple

from nram.machine.fast.choice import NoKernel, kernel_shape, ready
from nram.machine.fast.shape import KernelShape
from nram.runtime import Device
from nram.training.config import StageConfig, TrainConfig
from nram.training.member import wiring_of


class Kernel(NamedTuple):
    """A kernel, or the reason why there is none."""

    shape: KernelShape | None
    reason: str = ""


PLAIN = Kernel(None, "the plain path was asked for")


def chosen_kernel(config: TrainConfig, stage: StageConfig, devices: list[Device]) -> Kernel:
    """The kernel of a stage, not compiled yet."""
    machine = config.machine
    try:
        shape = kernel_shape(
            machine.controller,
            wiring_of(machine),
            hidden=machine.hidden,
            states=machine.states,
            size=config.memory_size(stage),
            steps=config.loop_steps(stage),
            batch=config.batch,
            renormalising=machine.renormalise,
            loss=config.loss,
            platform=devices[0].platform,
        )
    except NoKernel as reason:
        return Kernel(None, str(reason))
    return Kernel(shape)


def kernel_of(config: TrainConfig, stage: StageConfig, devices: list[Device]) -> Kernel:
    """The kernel of a stage, ready to be called."""
    chosen = chosen_kernel(config, stage, devices)
    try:
        return Kernel(ready(chosen.shape)) if chosen.shape else chosen
    except NoKernel as reason:
        return Kernel(None, str(reason))
