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


def test_the_kernel_of_a_gpu_is_for_one_gpu():
    gpu: Any = SimpleNamespace(platform="gpu")
    assert isinstance(chosen_kernel(CONFIG, STAGE, [gpu]).shape, WarpShape)
    several = chosen_kernel(CONFIG, STAGE, [gpu, gpu])
    assert several.shape is None
    assert several.reason.startswith("the kernel is for one GPU at a time: name it, e.g. CUDA_VISIBLE_DEVICES=0")


def test_the_kernel_of_a_cpu_is_for_all_of_its_devices():
    cpu: Any = SimpleNamespace(platform="cpu")
    assert chosen_kernel(CONFIG, STAGE, [cpu, cpu]) == chosen_kernel(CONFIG, STAGE, [cpu])


def test_a_soft_stage_with_a_penalty_on_registers_and_memory_has_no_kernel():
    penalised = replace(CONFIG, hyper=HyperConfig(state_penalty=Range((0.0, 0.1))))
    for device in (SimpleNamespace(platform="cpu"), SimpleNamespace(platform="gpu")):
        devices: Any = [device]
        soft = chosen_kernel(penalised, STAGE, devices)
        assert soft.shape is None and soft.reason == "the kernels do not compute state_penalty"
        discrete = replace(STAGE, straight_through=True)  # its values have no entropy
        assert chosen_kernel(penalised, discrete, devices) == chosen_kernel(CONFIG, discrete, devices)
        assert chosen_kernel(penalised, discrete, devices).shape is not None
