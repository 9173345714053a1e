"""Strict settings for the whole suite: it runs on two CPU devices, and silent broadcasting is an error.

Warnings are errors too, through pyproject.toml.
"""

import os
from functools import partial

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 2)  # must be said before JAX starts
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def float64():
    """Double precision for one test; the others stay as they are."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def quick_jit():
    """jax.jit for what runs for milliseconds: hardly optimised, it compiles faster."""
    return partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
