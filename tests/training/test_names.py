"""Nothing depends on the name of a task: a renamed copy of it trains to the same bits."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from nram.extensions import get_task, register_task, task_names
from nram.training.population import compile_training, init_population, stage_keys
from nram.training.selection import compile_validation
from nram.training.settings import config_to_dict, load_config

SMALL = ("hidden=4", "modules=READ,INC,WRITE", "batch=2", "validation=8", "max_complexity=3")
STEPS = 3
QUICK = ("copy",)  # each takes six compilations


def weights(task: str) -> list[np.ndarray]:
    """All weights of all groups of the recipe after a few steps, and what a check says of them."""
    overrides = [*SMALL, "population=2", "islands=1", "patience=0", "cull.share=0.5", "registers=2", "repeats=1"]
    found, devices = [], jax.devices()[:1]
    for config in load_config(task, overrides=overrides, seed=3).group_configs:
        stage = config.stages[0]
        advance = compile_training(config, stage, devices)
        population = init_population(config, stage.population)
        population, report = advance(population, stage_keys(config, 0), 0, STEPS)
        found += [*jax.tree.leaves(population), *report, *compile_validation(config, stage, devices)(population)]
    return [np.asarray(leaf) for leaf in found]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in task_names()]
)
def test_a_renamed_copy_trains_to_the_same_bits(name):
    renamed = register_task(replace(get_task(name), name=f"renamed-{name}"))
    for one, other in zip(weights(name), weights(renamed.name), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", task_names())
def test_a_renamed_copy_has_the_same_recipe(name):
    renamed = register_task(replace(get_task(name), name=f"renamed-{name}"))
    one, other = (config_to_dict(load_config(task, seed=7)) for task in (name, renamed.name))
    assert one.pop("task") == name and other.pop("task") == renamed.name
    assert one == other
