"""The discretised members of a population on many instances.

An MLP and an automaton are finite tables. One compiled call computes the tables of all members where their weights are.
Machine code on the CPU runs the tables. So a GPU is spared a long loop of tiny kernels, weights stay where they are,
and a run costs the steps that it executes. An LSTM has no table: it is asked at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from nram.machine import Controller, run_hard
from nram.machine.kernels.discrete import run_tables
from nram.machine.tables import discrete_table
from nram.machine.wiring import Wiring
from nram.runtime import Device, cpu_cores
from nram.tasks.base import GivenInstance, TracedInstance
from nram.training.config import MachineConfig
from nram.training.loss import compare
from nram.training.mapping import mapped
from nram.training.member import wiring_of

MOST_ROWS = 1024  # of a table; with more it is cheaper to ask the controller at every step
LOGITS_AT_ONCE = 2**26  # on a GPU, while it computes tables
CELLS_AT_ONCE = 2**20  # of memories in a thread

Instances = TracedInstance | GivenInstance


class Score(NamedTuple):
    error: Any  # mean share of wrong cells among those that should be modified
    exact: Any  # share of instances with every output cell right
    halted: Any = None  # hard only: share of instances on which it stopped by itself
    soft: Any = None  # the soft machine's error at the size of training, where members are ranked by it


class Outcomes(NamedTuple):
    """How the runs ended: arrays [members, instances]."""

    error: np.ndarray  # share of wrong cells among those that should be modified
    exact: np.ndarray  # whether every output cell is right
    halted: np.ndarray  # whether the machine stopped by itself

    @property
    def score(self) -> Score:
        """Every member's means over the instances."""
        return Score(*(np.mean(part, axis=1) for part in self))


def compile_discrete(
    machine: MachineConfig, devices: list[Device], members: int
) -> Callable[[Controller, Instances, np.ndarray], Outcomes]:
    """A function (controllers, instances, step limits) -> Outcomes.

    The limits are [instances], or [members, instances] where members have their own.
    """
    if machine.controller == "lstm" or table_rows(machine) > MOST_ROWS:
        return _step_by_step(wiring_of(machine), devices, members)
    return _by_tables(machine, tuple(devices), members)


@lru_cache(maxsize=16)
def _by_tables(machine: MachineConfig, devices: tuple[Device, ...], members: int) -> Callable[..., Outcomes]:
    """One function for all who ask, which remembers the last tables: a check runs the same members several times."""
    wiring = wiring_of(machine)
    at_once = max(1, LOGITS_AT_ONCE // (table_rows(machine) * wiring.wires * wiring.values))
    tables_of = mapped(partial(discrete_table, wiring=wiring), list(devices), members, at_once, quick=True)
    last: tuple[Controller, np.ndarray] | None = None

    def run(controllers: Controller, instances: Instances, limits: np.ndarray) -> Outcomes:
        nonlocal last
        if last is None or last[0] is not controllers:
            last = controllers, np.asarray(tables_of(controllers))
        return _run_all(wiring, last[1], instances, limits)

    return run


def table_rows(machine: MachineConfig) -> int:
    return (machine.states if machine.controller == "automaton" else 1) << machine.registers


def _run_all(wiring: Wiring, tables: np.ndarray, instances: Instances, limits: np.ndarray) -> Outcomes:
    """The members in threads: the machine code does not hold the interpreter's lock."""
    memories = np.asarray(instances.input)
    count, cells = memories.shape
    limits = np.broadcast_to(limits, (len(tables), count))
    sizes = np.asarray(instances.size) if isinstance(instances, GivenInstance) else np.full(count, cells)
    share = max(1, min(-(-len(tables) // cpu_cores()), CELLS_AT_ONCE // (count * cells)))

    def run(first: int) -> Outcomes:
        some = slice(first, first + share)
        ended = run_tables(wiring, tables[some], memories, limits[some], sizes)
        return Outcomes(*compare(ended.memory, instances), ended.halted)

    with ThreadPoolExecutor(cpu_cores()) as threads:
        parts = list(threads.map(run, range(0, len(tables), share)))
    return Outcomes(*map(np.concatenate, zip(*parts, strict=True)))


def _step_by_step(wiring: Wiring, devices: list[Device], members: int) -> Callable[..., Outcomes]:
    def one(instances: Instances, controller: Controller, limits: Any) -> tuple[Any, ...]:
        sizes = instances.size if isinstance(instances, GivenInstance) else None
        ended = jax.vmap(partial(run_hard, controller, wiring))(instances.input, limits, sizes)
        return *jax.vmap(compare)(ended.memory, instances), ended.halted

    compiled = mapped(one, devices, members, quick=True, shared=1)

    def run(controllers: Controller, instances: Instances, limits: np.ndarray) -> Outcomes:
        every = np.broadcast_to(np.asarray(limits, np.int32), (members, len(instances.input)))
        return Outcomes(*map(np.asarray, compiled(instances, controllers, every)))

    return run
