"""One member of a population: its state, and one training step as a pure function.

A step depends only on (configuration, stage, hyperparameters, key, state), so seeds and settings are
batch axes and a run resumes to the same bits.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from nram.extensions import known_task, select_modules
from nram.machine import Controller, Options, Wiring, init_controller
from nram.machine.kernels.common.outcomes import Batch, Raw, outcomes, outcomes_and_gradient
from nram.machine.kernels.common.specification import Shape
from nram.tasks._traced import TracedPool
from nram.tasks.base import TracedInstance
from nram.training.config import MachineConfig, StageConfig, TrainConfig
from nram.training.curriculum import Progress, advance, draw_complexity, first_level
from nram.training.loss import Outcome, cell_shares, compare, soft_outcome


class Hyper(NamedTuple):
    """One member's own hyperparameters: a value for each range of `HyperConfig`, and its T(n)."""

    learning_rate: Array
    beta1: Array
    beta2: Array
    clip_activations: Array
    clip_gradient: Array
    noise: Array
    entropy_bonus: Array
    entropy_half_life: Array
    wire_penalty: Array
    time_penalty: Array
    penalty_start: Array
    output_scale: Array
    steps_per_item: Array  # of T(n) in training; all members of an island have the same
    steps_constant: Array
    state_penalty: Array  # the last, so that clones draw the changes of the others as before there was one


def is_frozen(hyper: Hyper) -> np.ndarray:
    """Which members are kept as they are: their learning rates are negative. Their clones train."""
    return np.asarray(hyper.learning_rate) < 0


class Island(NamedTuple):
    """What a member knows of its island, the group of members that are culled together."""

    record: Array  # the least error so far
    stalled: Array  # checks since


class Member(NamedTuple):
    """All that changes while a member trains."""

    controller: Controller
    moments: optax.OptState  # of Adam
    step: Array  # steps of training behind it, through all stages
    progress: Progress
    skipped: Array  # updates left out because they were not finite
    island: Island


class StepReport(NamedTuple):
    """The metrics of one training step."""

    loss: Array
    error: Array
    exact: Array


def wiring_of(machine: MachineConfig) -> Wiring:
    return Wiring(machine.registers, select_modules(machine.modules, machine.repeats))


def fresh_controller(machine: MachineConfig, output_scale: Array, key: Array) -> Controller:
    """A controller with random weights."""
    return init_controller(
        machine.controller,
        wiring_of(machine),
        hidden=machine.hidden,
        states=machine.states,
        output_scale=output_scale,
        key=key,
    )


def abstract_controller(machine: MachineConfig) -> Controller:
    """The shapes of a controller's arrays, without making one."""
    return jax.eval_shape(lambda: fresh_controller(machine, jnp.float32(1), jax.random.key(0)))


def init_member(config: TrainConfig, hyper: Hyper, key: Array) -> Member:
    task = known_task(config.task)
    controller = fresh_controller(config.machine, hyper.output_scale, key)
    moments = optax.scale_by_adam().init(controller)  # pyright: ignore[reportArgumentType]
    level = max(config.curriculum.start, task.min_complexity)
    island = Island(jnp.float32(jnp.inf), jnp.int32(0))
    return Member(controller, moments, jnp.int32(0), first_level(level), jnp.int32(0), island)


def entropy_weight(hyper: Hyper, step: Array, straight_through: bool = False) -> Array:
    """The weight of the mean wire entropy in the cost: a bonus (negative) that decays exponentially, later a penalty.

    In a straight-through stage the bonus stays: an undecided wire costs nothing where the most probable value is taken,
    and it keeps the others in reach.
    """
    if straight_through:
        return -hyper.entropy_bonus
    bonus = hyper.entropy_bonus * 0.5 ** (step / hyper.entropy_half_life)
    return jnp.where(step >= hyper.penalty_start, hyper.wire_penalty, 0.0) - bonus


def state_weight(hyper: Hyper, step: Array) -> Array:
    """The weight of the mean entropy of registers and memory: 0 at first, later a penalty."""
    return jnp.where(step >= hyper.penalty_start, hyper.state_penalty, 0.0)


def time_weight(hyper: Hyper, step: Array, straight_through: bool = False, at_once: bool = False) -> Array:
    """The weight of the share of steps used: 0 at first and in most straight-through stages, later a penalty.

    It makes a member that has done its work halt instead of idling. With `at_once` it counts from the first step on, in
    every stage, before wires are decided: a circuit that has learned its loop seldom learns to halt later.
    """
    if straight_through and not at_once:
        return jnp.zeros_like(hyper.time_penalty)
    return jnp.where(at_once | (step >= hyper.penalty_start), hyper.time_penalty, 0.0)


def draw_batch(
    config: TrainConfig, stage: StageConfig, hyper: Hyper, level: Array, key: Array, pool: TracedPool | None = None
) -> tuple[TracedInstance, Array]:
    """Examples at this curriculum level, and the member's step limits for them."""
    instances, complexity, slack = draw_examples(config, stage, level, key, pool)
    return instances, member_limit(config, hyper, complexity) + slack


Examples = tuple[TracedInstance, Array, Array]
"""A batch, the complexities of its examples, and the steps to be added to their limits."""


def draw_for_step(config: TrainConfig, stage: StageConfig, level: Any, key: Array, pool: TracedPool | None) -> Examples:
    """The examples of the training step with this key. Without a curriculum the level does not matter."""
    batch_key, _ = jax.random.split(key)
    return draw_examples(config, stage, level, batch_key, pool)


def draw_examples(
    config: TrainConfig, stage: StageConfig, level: Any, key: Array, pool: TracedPool | None = None
) -> Examples:
    """A batch of examples at this curriculum level, their complexities, and steps to be added to their limits. The
    examples are from the pool if there is one."""
    task = known_task(config.task)
    complexity_key, instance_key, slack_key = jax.random.split(key, 3)
    low, high = task.min_complexity, stage.max_complexity
    size = config.memory_size(stage)
    if config.curriculum.enabled:
        complexity = draw_complexity(complexity_key, level, low, high, config.batch)
    elif task.examples:
        complexity = task.examples.draw_complexities(complexity_key, high, size, config.batch)
    else:
        complexity = jax.random.randint(complexity_key, (config.batch,), low, high + 1, jnp.int32)
    slack = jax.random.randint(slack_key, (config.batch,), 0, stage.step_slack + 1)
    draw = pool.draw if pool else partial(task.draw_traced, memory_size=size)
    instances = jax.vmap(draw)(jax.random.split(instance_key, config.batch), complexity)
    if task.examples:
        complexity = task.examples.nearest(complexity, size)
    return instances, complexity, slack


def member_limit(config: TrainConfig, hyper: Hyper, complexity: Any) -> Any:
    """The step limits of a member in training, without slack. Arrays of NumPy or JAX."""
    numbers = (number.astype(jnp.int32) for number in (hyper.steps_per_item, hyper.steps_constant))
    return config.step_limit(complexity, *numbers)


def batch_outcomes(
    config: TrainConfig,
    stage: StageConfig,
    hyper: Hyper,
    controller: Controller,
    batch: tuple[TracedInstance, Array],
    kernel: Shape | None = None,
) -> Outcome:
    """Run the soft machine on a batch, by a kernel if there is one."""
    instances, limits = batch
    if kernel is not None:
        return _compared(outcomes(kernel, controller, _kernel_batch(config, hyper, *batch)), instances)
    wiring, options = wiring_of(config.machine), machine_options(config, hyper.clip_activations, stage.straight_through)

    def one(instance, limit):
        return soft_outcome(
            controller,
            wiring,
            instance,
            limit,
            config.loop_steps(stage),
            options,
            kind=config.loss,
            scored_weight=config.scored_weight,
            with_state=config.penalises_state(stage),
        )

    return jax.vmap(one)(instances, limits)


def _kernel_batch(config: TrainConfig, hyper: Hyper, instances: TracedInstance, limits: Array) -> Batch:
    shares = jax.vmap(lambda instance: cell_shares(instance, config.scored_weight))(instances)
    epsilon = jnp.float32(config.epsilon)
    return Batch(instances.input, instances.output, shares, limits, hyper.clip_activations, epsilon)


def _compared(raw: Raw, instances: TracedInstance) -> Outcome:
    """A kernel's outcomes, its predictions compared with the answers."""
    return Outcome(raw.loss, raw.entropy, raw.time, *jax.vmap(compare)(raw.predicted, instances))


def cost_and_gradient(
    config: TrainConfig,
    stage: StageConfig,
    hyper: Hyper,
    controller: Controller,
    step: Array,
    batch: tuple[TracedInstance, Array],
    kernel: Shape | None,
) -> tuple[Array, Outcome, Any]:
    """What training minimises on a batch, how the batch went, and the gradient of the former
    with respect to the controller."""
    entropy = entropy_weight(hyper, step, stage.straight_through)
    time = time_weight(hyper, step, stage.straight_through, at_once=stage.halt_within > 0)
    weights = jnp.stack([jnp.float32(1), entropy, time])

    def total(outcomes: Outcome) -> Array:
        terms = (outcomes.loss, outcomes.entropy, outcomes.time)
        value = weights @ jnp.stack([jnp.mean(term) for term in terms])
        if outcomes.state_entropy is None:
            return value
        return value + state_weight(hyper, step) * jnp.mean(outcomes.state_entropy)

    if kernel is None:

        def cost(controller):
            outcomes = batch_outcomes(config, stage, hyper, controller, batch)
            return total(outcomes), outcomes

        (value, outcomes), gradient = jax.value_and_grad(cost, has_aux=True)(controller)
        return value, outcomes, gradient

    # The cost is linear in the outcomes, so what the backward pass begins with is known before the forward pass.
    seeds = jnp.broadcast_to(weights[:, None] / config.batch, (3, config.batch))
    raw, gradient = outcomes_and_gradient(kernel, controller, _kernel_batch(config, hyper, *batch), seeds)
    outcomes = _compared(raw, batch[0])
    return total(outcomes), outcomes, gradient


def machine_options(config: TrainConfig, clip: Array | float = jnp.inf, straight_through: bool = False) -> Options:
    return Options(
        clip=clip, epsilon=config.epsilon, renormalising=config.machine.renormalise, straight_through=straight_through
    )


def train_step(
    config: TrainConfig,
    stage: StageConfig,
    hyper: Hyper,
    key: Array,
    member: Member,
    kernel: Shape | None = None,
    pool: TracedPool | None = None,
    drawn: Examples | None = None,
) -> tuple[Member, StepReport]:
    """One update on a fresh batch, by a kernel if one is given (`nram.training.kernels`).

    The examples may be drawn already, by `draw_for_step` with the same key.
    """
    _, noise_key = jax.random.split(key)
    instances, complexity, slack = drawn or draw_for_step(config, stage, member.progress.level, key, pool)
    batch = instances, member_limit(config, hyper, complexity) + slack
    value, outcomes, gradient = cost_and_gradient(config, stage, hyper, member.controller, member.step, batch, kernel)
    finite = jnp.isfinite(value) & jnp.isfinite(optax.tree.norm(gradient))  # before the clip hides it
    gradient, _ = optax.clip_by_global_norm(hyper.clip_gradient).update(gradient, optax.EmptyState())
    if config.hyper.noise.values != (0.0,):
        gradient = _noisy(gradient, hyper.noise, member.step, noise_key)
    adam = optax.scale_by_adam(b1=hyper.beta1, b2=hyper.beta2)
    updates, moments = adam.update(gradient, member.moments)
    rate = jnp.maximum(hyper.learning_rate, 0)  # of a frozen member it is negative
    controller = jax.tree.map(lambda p, u: p - rate * u, member.controller, updates)

    finite = finite & jnp.isfinite(optax.tree.norm(controller))

    def keep(new, old):  # a step that is not finite leaves no trace but its count
        return jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, old)

    wrong = 1 - jnp.mean(outcomes.exact)
    progress = advance(member.progress, wrong, member.step, stage.max_complexity, config.curriculum)
    trained = Member(
        keep(controller, member.controller),
        keep(moments, member.moments),
        member.step + 1,
        keep(progress, member.progress),
        member.skipped + ~finite,
        member.island,
    )
    return trained, StepReport(jnp.mean(outcomes.loss), jnp.mean(outcomes.error), 1 - wrong)


def _noisy(gradient, eta: Array, step: Array, key: Array):
    """Gaussian noise of variance eta / (1 + t)^0.55 (arXiv 1511.06807)."""
    deviation = jnp.sqrt(eta / (1.0 + step) ** 0.55)
    leaves, tree = jax.tree.flatten(gradient)
    keys = jax.random.split(key, len(leaves))
    noisy = [g + deviation * jax.random.normal(k, g.shape) for g, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(tree, noisy)
