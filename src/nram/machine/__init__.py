"""The machine: fuzzy circuits, controllers, the soft and the hard execution of the same weights."""

from nram.machine.controllers import Controller, init_controller
from nram.machine.hard import HardResult, hard_step, run_hard
from nram.machine.recording import Recording, record_soft
from nram.machine.soft import Episode, Options, run_soft, soft_step
from nram.machine.wiring import Wiring

__all__ = [
    "Controller",
    "Episode",
    "HardResult",
    "Options",
    "Recording",
    "Wiring",
    "hard_step",
    "init_controller",
    "record_soft",
    "run_hard",
    "run_soft",
    "soft_step",
]
