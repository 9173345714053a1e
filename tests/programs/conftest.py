"""Fixtures of random programs, memories and controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.random_programs import random_memory, random_program

from nram.programs.ir import Program


@pytest.fixture(name="random_program", scope="session")
def _random_program() -> Callable[..., Program]:
    return random_program


@pytest.fixture(name="random_memory")
def _random_memory() -> Callable[..., list[int]]:
    return random_memory


def random_controller(kind: Any, wiring: Any, seed: int, shape: tuple[int, ...] = (), *, halt_bias: float = 0.0) -> Any:
    """A controller with random weights and biases, or `shape` of them stacked. JAX is imported only here."""
    import jax

    from nram.machine import init_controller

    def make(key: Any) -> Any:
        return init_controller(kind, wiring, hidden=8, states=3, key=key)

    rng = np.random.default_rng(seed)
    template = jax.eval_shape(make, jax.random.key(0))
    controller = jax.tree.map(lambda leaf: rng.normal(size=(*shape, *leaf.shape)).astype(np.float32), template)
    controller.output.bias[..., wiring.logits] += halt_bias
    return jax.tree.map(jax.numpy.asarray, controller)


@pytest.fixture(name="random_controller")
def _random_controller() -> Callable[..., Any]:
    return random_controller
