"""Which kernel trains a stage."""

from __future__ import annotations

from nram.machine.kernels.common.choice import Kernel, choose_kernel, compiled_kernel
from nram.runtime import Device
from nram.training.config import StageConfig, TrainConfig
from nram.training.member import wiring_of


def chosen_kernel(config: TrainConfig, stage: StageConfig, devices: list[Device]) -> Kernel:
    """The kernel of a stage, not compiled yet."""
    machine = config.machine
    if config.penalises_state(stage):
        return Kernel(None, "the kernels do not compute state_penalty")
    return choose_kernel(
        devices,
        wiring_of(machine),
        controller=machine.controller,
        hidden=machine.hidden,
        states=machine.states,
        size=config.memory_size(stage),
        steps=config.loop_steps(stage),
        batch=config.batch,
        renormalising=machine.renormalise,
        loss=config.loss,
        straight_through=stage.straight_through,
    )


def kernel_of(config: TrainConfig, stage: StageConfig, devices: list[Device]) -> Kernel:
    """The kernel of a stage, ready to be called."""
    return compiled_kernel(chosen_kernel(config, stage, devices))
