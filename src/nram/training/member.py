"""One member of a population: its state, and one training step as a pure function.

A step depends only on (configuration, stage, hyperparameters, key, state), so seeds and settings are
batch axes and a run resumes to the same bits.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from nram.machine import Controller, Options, Wiring, init_controller
from nram.modules import select_modules
from nram.tasks import get_task
from nram.training.config import MachineConfig, StageConfig, TrainConfig
from nram.training.curriculum import Progress, advance, draw_complexity, first_level
from nram.training.loss import Outcome, soft_outcome


class Hyper(NamedTuple):
    """One member's own hyperparameters: a value for each range of `HyperConfig`."""

    learning_rate: Array
    beta1: Array
    beta2: Array
    clip_activations: Array
    clip_gradient: Array
    noise: Array
    entropy_bonus: Array
    entropy_half_life: Array
    entropy_penalty: Array
    time_penalty: Array
    penalty_start: Array
    output_scale: Array


class Member(NamedTuple):
    """All that changes while a member trains."""

    controller: Controller
    moments: optax.OptState  # of Adam
    step: Array  # steps of training behind it, through all stages
    progress: Progress
    skipped: Array  # updates left out because they were not finite


class StepReport(NamedTuple):
    """What one training step says of itself, for the metrics."""

    loss: Array
    error: Array
    exact: Array


def wiring_of(machine: MachineConfig) -> Wiring:
    return Wiring(machine.registers, select_modules(machine.modules, machine.repeats))


def init_member(config: TrainConfig, hyper: Hyper, key: Array) -> Member:
    machine, task = config.machine, get_task(config.task)
    controller = init_controller(
        machine.controller,
        wiring_of(machine),
        hidden=machine.hidden,
        states=machine.states,
        output_scale=hyper.output_scale,
        key=key,
    )
    moments = optax.scale_by_adam().init(controller)  # pyright: ignore[reportArgumentType]
    level = max(config.curriculum.start, task.min_complexity)
    return Member(controller, moments, jnp.int32(0), first_level(level), jnp.int32(0))


def entropy_weight(hyper: Hyper, step: Array) -> Array:
    """What the mean wire entropy is multiplied with in the cost: first a bonus (negative) that decays
    exponentially, later the penalty of the paper's footnote."""
    bonus = hyper.entropy_bonus * 0.5 ** (step / hyper.entropy_half_life)
    return jnp.where(step >= hyper.penalty_start, hyper.entropy_penalty, 0.0) - bonus


def time_weight(hyper: Hyper, step: Array) -> Array:
    """What the share of steps used is multiplied with: nothing at first, later a penalty, so that a member
    that has done its work halts instead of idling."""
    return jnp.where(step >= hyper.penalty_start, hyper.time_penalty, 0.0)


def batch_outcomes(
    config: TrainConfig, stage: StageConfig, hyper: Hyper, controller: Controller, level: Array, key: Array
) -> Outcome:
    """Draw a batch at this curriculum level and run the soft machine on it."""
    task = get_task(config.task)
    complexity_key, instance_key, slack_key = jax.random.split(key, 3)
    low, high = task.min_complexity, stage.max_complexity
    if config.curriculum.enabled:
        complexity = draw_complexity(complexity_key, level, low, high, config.batch)
    else:
        complexity = jax.random.randint(complexity_key, (config.batch,), low, high + 1, jnp.int32)
    slack = jax.random.randint(slack_key, (config.batch,), 0, stage.step_slack + 1)
    wiring, options = wiring_of(config.machine), machine_options(config, hyper.clip_activations)

    def one(key, n, slack):
        instance = task.sample_traced(key, n, config.memory_size(stage))
        return soft_outcome(
            controller,
            wiring,
            instance,
            config.step_limit(n) + slack,
            config.loop_steps(stage),
            options,
            kind=config.loss,
            scored_weight=config.scored_weight,
        )

    return jax.vmap(one)(jax.random.split(instance_key, config.batch), complexity, slack)


def machine_options(config: TrainConfig, clip: Array | float = jnp.inf) -> Options:
    return Options(clip=clip, epsilon=config.epsilon, renormalising=config.machine.renormalise)


def train_step(
    config: TrainConfig, stage: StageConfig, hyper: Hyper, key: Array, member: Member
) -> tuple[Member, StepReport]:
    """One update on a fresh batch."""
    batch_key, noise_key = jax.random.split(key)

    def cost(controller):
        outcomes = batch_outcomes(config, stage, hyper, controller, member.progress.level, batch_key)
        entropy = entropy_weight(hyper, member.step) * jnp.mean(outcomes.entropy)
        time = time_weight(hyper, member.step) * jnp.mean(outcomes.time)
        return jnp.mean(outcomes.loss) + entropy + time, outcomes

    (value, outcomes), gradient = jax.value_and_grad(cost, has_aux=True)(member.controller)
    finite = jnp.isfinite(value) & jnp.isfinite(optax.tree.norm(gradient))  # before the clip hides it
    gradient, _ = optax.clip_by_global_norm(hyper.clip_gradient).update(gradient, optax.EmptyState())
    if config.hyper.noise.values != (0.0,):
        gradient = _noisy(gradient, hyper.noise, member.step, noise_key)
    adam = optax.scale_by_adam(b1=hyper.beta1, b2=hyper.beta2)
    updates, moments = adam.update(gradient, member.moments)
    controller = jax.tree.map(lambda p, u: p - hyper.learning_rate * u, member.controller, updates)

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
    )
    return trained, StepReport(jnp.mean(outcomes.loss), jnp.mean(outcomes.error), 1 - wrong)


def _noisy(gradient, eta: Array, step: Array, key: Array):
    """Gaussian noise of variance eta / (1 + t)^0.55 (arXiv 1511.06807)."""
    deviation = jnp.sqrt(eta / (1.0 + step) ** 0.55)
    leaves, tree = jax.tree.flatten(gradient)
    keys = jax.random.split(key, len(leaves))
    noisy = [g + deviation * jax.random.normal(k, g.shape) for g, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(tree, noisy)
