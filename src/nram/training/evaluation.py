"""Evaluation of trained controllers: error and exact match, soft and hard, on instances that were not trained on.

In a trial at N, half of the instances have a complexity uniform up to N, half have N itself (docs/machine.md: 'perfect
at N'). Validation, examination, the choice of members for the zoo, and test draw from separate streams of seeds, so no
test instance helps to choose a member.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.extensions import known_task
from nram.limits import LIMIT_NAMES
from nram.machine import Controller, run_soft
from nram.runtime import quick_options
from nram.tasks._plain_arrays import sample_by_keys
from nram.tasks.base import GivenInstance, TracedInstance
from nram.training.config import MachineConfig, TrainConfig
from nram.training.discrete import Instances, Score, compile_discrete
from nram.training.loss import compare
from nram.training.member import machine_options, wiring_of
from nram.training.predictions import cpu_devices, kernel_predictions

Purpose = Literal["validation", "examination", "test", "choice"]
Mode = Literal["soft", "hard"]

SOFT_BATCH_BYTES = 2**28  # of memory tapes at once in a soft evaluation


@dataclass(frozen=True)
class Trial:
    """A set of instances, drawn from its description alone."""

    task: str
    max_complexity: int
    count: int
    seed: int
    purpose: Purpose
    uniform: bool = False  # all complexities uniform up to the maximum, as in the paper's figure
    one_size: bool = False  # examples from a file too have memories of one size, as in training

    @property
    def memory_size(self) -> int:
        return known_task(self.task).least_memory(self.max_complexity)


@lru_cache(maxsize=16)
def draw_trial(trial: Trial) -> tuple[Instances, np.ndarray]:
    """The instances and their complexities."""
    with _on_cpu():
        return _drawn(trial)


def _drawn(trial: Trial) -> tuple[Instances, np.ndarray]:
    task = known_task(trial.task)
    stream = {"validation": 1, "examination": 2, "test": 3, "choice": 4}[trial.purpose]
    examples = task.examples
    if examples and not trial.one_size:
        return _chosen(*examples.given(), trial, np.random.default_rng([trial.seed, stream]))

    def choose(key: Array) -> tuple[Array, Array]:
        key = jax.random.fold_in(jax.random.fold_in(key, 7_000_000 + stream), trial.max_complexity)
        complexity_key, instance_key = jax.random.split(key)
        low, high = task.min_complexity, trial.max_complexity
        complexity = jax.random.randint(complexity_key, (trial.count,), low, high + 1, jnp.int32)
        if not trial.uniform:
            complexity = jnp.where(jnp.arange(trial.count) % 2 == 1, high, complexity)
        if examples:
            complexity = examples.nearest(complexity, trial.memory_size)
        return jax.random.split(instance_key, trial.count), complexity

    def draw(key: Array) -> tuple[TracedInstance, Array]:
        keys, complexity = choose(key)
        return jax.vmap(partial(task.draw_traced, memory_size=trial.memory_size))(keys, complexity), complexity

    plain = task.sample_traced is None
    # Called once: not worth optimising.
    drawn = jax.jit(choose if plain else draw, compiler_options=quick_options(0))(jax.random.key(trial.seed))
    if plain:
        keys, complexity = drawn
        instances = sample_by_keys(task, jax.random.key_data(keys), complexity, trial.memory_size)
        return TracedInstance(*instances), np.asarray(complexity)
    return jax.tree.map(np.asarray, drawn)


def _chosen(
    instances: GivenInstance, complexity: np.ndarray, trial: Trial, rng: np.random.Generator
) -> tuple[GivenInstance, np.ndarray]:
    """As many of the given instances as the trial has, in random order; where there are fewer, they are repeated."""
    fitting = np.flatnonzero(complexity <= trial.max_complexity)
    chosen = np.resize(rng.permutation(fitting), trial.count)
    return jax.tree.map(lambda leaf: leaf[chosen], instances), complexity[chosen]


def soft_memories(config: TrainConfig, controller: Controller, memories: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The continuous machine's output memories [N, M] for these inputs and step limits: the argmax of the averaged
    memory. The CPU's kernel computes them, or the plain path on JAX's device where there is no kernel."""
    controller = jax.tree.map(np.asarray, controller)
    predicted = kernel_predictions(config, controller, memories, limits)
    if predicted is None:
        predicted = _plain_soft(config, int(limits.max()))(controller, memories, limits)
    return np.asarray(predicted)


@lru_cache(maxsize=64)
def _plain_soft(config: TrainConfig, steps: int):
    wiring, options = wiring_of(config.machine), machine_options(config)

    def all_memories(controller: Controller, memories: Array, limits: Array) -> Array:
        def one(arguments):
            memory, limit = arguments
            return jnp.argmax(run_soft(controller, wiring, memory, limit, steps, options).output, axis=-1)

        count, size = memories.shape
        batch = max(1, SOFT_BATCH_BYTES // (12 * size * size))
        return jax.lax.map(one, (memories, limits), batch_size=min(batch, count))

    return jax.jit(all_memories)


@lru_cache(maxsize=64)
def _compiled_hard(machine: MachineConfig):
    return compile_discrete(machine, cpu_devices() or jax.devices(), 1)


def evaluate(config: TrainConfig, controller: Controller, trial: Trial, mode: Mode, limit: str = "T") -> Score:
    """One controller's score on one trial under one kind of step limit.

    The discretised machine runs on the CPU: a GPU is slow at a long loop of tiny kernels. The soft machine is compiled
    for each M, so all its memories have the size of training.
    """
    task = known_task(trial.task)
    instances, complexity = draw_trial(replace(trial, one_size=mode == "soft" and task.examples is not None))
    limits = task.step_limit.named(complexity, limit)
    if mode == "hard":
        population = jax.tree.map(lambda leaf: np.asarray(leaf)[None], controller)
        with _on_cpu():
            parts = _compiled_hard(config.machine)(population, instances, limits)
    else:
        parts = compare(soft_memories(config, controller, np.asarray(instances.input), limits), instances)
    return Score(*(float(np.mean(part)) for part in parts))


def _on_cpu() -> AbstractContextManager:
    """Use the CPU, even if JAX's default is a GPU."""
    return next((jax.default_device(device) for device in cpu_devices()), nullcontext())


class Examination(NamedTuple):
    """Whether a controller is perfect: exact on every instance, under every limit."""

    soft: bool  # the continuous machine at the trained complexity
    hard: bool  # the discretised machine there
    far: bool  # the discretised machine at FAR
    halts: bool = False  # the discretised machine halts by itself within T(n), at both
    limit: str | None = None  # under which of LIMIT_NAMES it failed first

    @property
    def passed(self) -> bool:
        return self.soft and self.hard and self.far

    @property
    def failed(self) -> str | None:
        """The part that it did not pass: of several the one that `examine` runs first."""
        return next((part for part in ("hard", "far", "soft") if not getattr(self, part)), None)


FAR = 50  # the paper tests generalisation up to here


def far_of(config: TrainConfig) -> int:
    """The complexity at which generalisation is examined."""
    return max(FAR, config.trained_up_to, known_task(config.task).min_complexity)


def goes_far(config: TrainConfig) -> bool:
    """Whether the task has instances of complexity FAR. Examples from a file are all there is."""
    return known_task(config.task).examples is None


def examine(
    config: TrainConfig,
    controller: Controller,
    seed: int,
    count: int,
    before_each: Callable[[], None] = lambda: None,
) -> Examination:
    """Test for perfection, the cheap and telling parts first; what follows a failure is not run.

    `before_each` is called before each evaluation. Some compile for seconds, and the caller may want to stop.
    """
    trained, halts = config.trained_up_to, True

    def failure(mode: Mode, complexity: int) -> str | None:
        nonlocal halts
        trial = Trial(config.task, complexity, count, seed, "examination")
        for limit in LIMIT_NAMES:
            before_each()
            score = evaluate(config, controller, trial, mode, limit)
            halts = halts and (mode == "soft" or limit != "T" or score.halted == 1.0)
            if score.exact < 1.0:
                return limit
        return None

    hard = failure("hard", trained)
    far = hard or (failure("hard", far_of(config)) if goes_far(config) else None)
    soft = far or failure("soft", trained)
    return Examination(soft is None, hard is None, far is None, halts, soft)
