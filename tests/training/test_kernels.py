"""Which kernel trains a stage on which devices."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from nram.machine.kernels.gpu.shape import WarpShape
from nram.training.config import HyperConfig, MachineConfig, StageConfig, TrainConfig
from nram.training.kernels import chosen_kernel
from nram.training.ranges import Range

STAGE = StageConfig(3, 10, 12, step_slack=1)
CONFIG = TrainConfig("access", batch=8, machine=MachineConfig(registers=2, hidden=8), stages=(STAGE,))


def test_the_kernel_is_the_same_on_several_devices():
    gpu: Any = SimpleNamespace(platform="gpu")
    cpu: Any = SimpleNamespace(platform="cpu")
    assert isinstance(chosen_kernel(CONFIG, STAGE, [gpu]).shape, WarpShape)
    for device in (gpu, cpu):
        assert chosen_kernel(CONFIG, STAGE, [device, device]) == chosen_kernel(CONFIG, STAGE, [device])


def test_a_soft_stage_with_a_penalty_on_registers_and_memory_has_no_kernel():
    penalised = replace(CONFIG, hyper=HyperConfig(state_penalty=Range((0.0, 0.1))))
    for device in (SimpleNamespace(platform="cpu"), SimpleNamespace(platform="gpu")):
        devices: Any = [device]
        soft = chosen_kernel(penalised, STAGE, devices)
        assert soft.shape is None and soft.reason == "the kernels do not compute state_penalty"
        discrete = replace(STAGE, straight_through=True)  # its values have no entropy
        assert chosen_kernel(penalised, discrete, devices) == chosen_kernel(CONFIG, discrete, devices)
        assert chosen_kernel(penalised, discrete, devices).shape is not None
