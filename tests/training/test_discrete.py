"""Discretised members on many instances: by tables where there are any, otherwise step by step."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from support.random_controllers import random_controllers

from nram.tasks.base import GivenInstance, TracedInstance
from nram.training import discrete
from nram.training.config import MachineConfig
from nram.training.discrete import compile_discrete
from nram.training.member import wiring_of

MEMBERS, COUNT, SIZE = 6, 11, 5
MACHINE = MachineConfig(registers=3, states=3, modules=("READ", "INC", "LESS-THAN", "WRITE"))


def instances(sizes: Any = None) -> Any:
    rng = np.random.default_rng(2)
    memories = rng.integers(3, size=(COUNT, SIZE)).astype(np.int32)
    outputs = np.where(rng.random((COUNT, SIZE)) < 0.2, 0, memories)
    scored = rng.random((COUNT, SIZE)) < 0.5
    scored[:, 0] = True
    cells = scored | (rng.random((COUNT, SIZE)) < 0.5)
    parts: list[Any] = [memories, outputs, cells, scored]
    return TracedInstance(*parts) if sizes is None else GivenInstance(*[*parts, sizes])


def outcomes_of(machine: MachineConfig, controllers: Any, given: Any, limits: np.ndarray):
    return compile_discrete(machine, jax.devices(), MEMBERS)(controllers, given, limits)


@pytest.mark.parametrize(("kind", "several_sizes"), [("mlp", True), ("automaton", False)])
def test_tables_give_what_the_controllers_give_step_by_step(kind, several_sizes, monkeypatch):
    machine = replace(MACHINE, controller=kind)
    controllers = random_controllers(kind, wiring_of(machine), 3, (MEMBERS,), halt_scale=2.0)
    given = instances(np.arange(COUNT) % 3 + 3 if several_sizes else None)
    limits = np.random.default_rng(0).integers(0, 9, (MEMBERS, COUNT))
    monkeypatch.setattr(discrete, "CELLS_AT_ONCE", 2 * COUNT * SIZE)  # more parts than threads
    found = outcomes_of(machine, controllers, given, limits)
    monkeypatch.setattr(discrete, "MOST_ROWS", 1)
    expected = outcomes_of(machine, controllers, given, limits)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert 0 < np.mean(found.halted) < 1 and 0 < np.mean(found.exact) < 1 and len(np.unique(found.error)) > 3


def test_members_may_share_their_step_limits():
    controllers = random_controllers("mlp", wiring_of(MACHINE), 3, (MEMBERS,))
    limits = np.arange(COUNT)
    shared, own = (
        outcomes_of(MACHINE, controllers, instances(), given)
        for given in (limits, np.broadcast_to(limits, (MEMBERS, COUNT)))
    )
    for one, other in zip(shared, own, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_lstm_is_asked_at_every_step():
    machine = replace(MACHINE, controller="lstm")
    controllers = random_controllers("lstm", wiring_of(machine), 3, (MEMBERS,))
    assert outcomes_of(machine, controllers, instances(), np.arange(COUNT)).error.shape == (MEMBERS, COUNT)
