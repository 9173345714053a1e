"""A population: many members, trained by one compiled program."""

import random
from dataclasses import fields
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.extensions import known_task
from nram.limits import StepLimit
from nram.machine.kernels.common.choice import Kernel
from nram.runtime import Device, quick_options
from nram.tasks._traced import TracedPool
from nram.training.config import HyperConfig, StageConfig, TrainConfig
from nram.training.footprint import CELL, members_at_once
from nram.training.kernels import kernel_of
from nram.training.mapping import mapped
from nram.training.member import Examples, Hyper, Member, StepReport, draw_for_step, init_member, train_step
from nram.training.pools import CHUNK
from nram.training.ranges import Range


class Population(NamedTuple):
    """Members and their hyperparameters: the first axis of every leaf counts the members."""

    members: Member
    hyper: Hyper


AHEAD_BYTES = 2**28  # of examples that are drawn before the steps that use them
KEEP_FIRST = 2 / 3  # of the islands that restart, as many keep the first T(n)
RESCALED = 1 / 2  # of the islands that restart, as many have `restart_scale`
RANGES = tuple(field.name for field in fields(HyperConfig))  # the hyperparameters that members draw for themselves


def draw_hyper(config: TrainConfig, count: int, again: tuple[int, ...] = ()) -> Hyper:
    """Hyperparameters for `count` members: those of a population, or, with `again`, of an island that restarts.

    `again` begins with the number of the stage.
    """
    rng = random.Random(" ".join(map(str, ("hyperparameters", config.seed, *again))))
    names = [name for name in RANGES if name != "state_penalty"]
    drawn = [[getattr(config.hyper, name).draw(rng) for name in names] for _ in range(count)]
    columns = dict(zip(names, zip(*drawn, strict=True), strict=True))
    limit = _drawn_limit(config, rng) if again else config.first_limit
    # They came after the others. A draw among them would change theirs.
    columns["state_penalty"] = tuple(config.hyper.state_penalty.draw(rng) for _ in range(count))
    scale = config.stages[again[0]].cull.restart_scale if again else Range((0.0,))
    if scale.values != (0.0,) and rng.random() < RESCALED:
        columns["output_scale"] = tuple(scale.draw(rng) for _ in range(count))
    columns |= {"steps_per_item": count * (limit.per_item,), "steps_constant": count * (limit.constant,)}
    arrays: dict[str, Any] = {name: np.array(column, np.float32) for name, column in columns.items()}
    return Hyper(**arrays)


def _drawn_limit(config: TrainConfig, rng: random.Random) -> StepLimit:
    """A T(n) between the first one of training and the task's own: some tasks need several steps per item.

    Most islands keep the first one, because a loop of one step per item is the easiest to learn.
    """
    first, own = config.first_limit, known_task(config.task).step_limit
    if not config.draw_steps or rng.random() < KEEP_FIRST:
        return first
    pairs = (first.per_item, own.per_item), (first.constant, own.constant)
    return StepLimit(*(rng.randint(least, max(least, most)) for least, most in pairs))


def init_population(config: TrainConfig, count: int, again: tuple[int, ...] = ()) -> Population:
    """Fresh members, each from its own seed, with hyperparameters of its own; `again` names a later draw."""
    hyper = draw_hyper(config, count, again)
    return Population(_compiled_init(config)(hyper, np.array(again, np.int32)), hyper)


@lru_cache(maxsize=16)  # as many groups as a run may have
def _compiled_init(config: TrainConfig):
    def init(hyper: Hyper, again: Array) -> Member:
        key = jax.random.fold_in(jax.random.key(config.seed), 0)
        for number in again:
            key = jax.random.fold_in(key, number)
        return jax.vmap(partial(init_member, config))(hyper, jax.random.split(key, len(hyper.noise)))

    # Level 0 would give other bits.
    return jax.jit(init, compiler_options=quick_options(1))


def member_at(tree, index: int):
    """One member's part of a tree whose leaves have a leading member axis."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], tree)


def abstract_population(config: TrainConfig, count: int) -> Population:
    """The shapes of a population, without making one."""

    def fresh() -> Population:
        hyper = draw_hyper(config, count)
        keys = jax.random.split(jax.random.key(0), count)
        return Population(jax.vmap(partial(init_member, config))(hyper, keys), hyper)

    return jax.eval_shape(fresh)


def compile_training(config: TrainConfig, stage: StageConfig, devices: list[Device], kernel: Kernel | None = None):
    """A function (population, keys, first, steps, pool) that trains every member for some steps, at most `CHUNK`.

    `keys` has a key per member; step number `first + i` of the stage uses the key folded with it, so
    a stage can be cut into any number of calls. Unless a kernel is given, it is the fastest there is.
    A stage that trains at several memory sizes takes the next one every `CHUNK` steps; a call has one.
    """

    def compiled_at(turn: StageConfig):
        chosen = kernel if kernel and turn == stage else kernel_of(config, turn, devices)

        at_once = members_at_once(config, turn, devices, chosen)
        ahead = _draws_ahead(config, turn, at_once)

        def train(pool: TracedPool | None, first: Array, steps: Array, member: Member, hyper: Hyper, key: Array):
            def key_of(index: Array) -> Array:
                return jax.random.fold_in(key, first + index)

            def drawn(index: Array) -> Examples:
                return draw_for_step(config, turn, None, key_of(index), pool)

            batches = jax.vmap(drawn)(jnp.arange(CHUNK)) if ahead else None

            def one(index, carry):
                member, total = carry
                batch = jax.tree.map(lambda leaf: leaf[index], batches)
                member, report = train_step(config, turn, hyper, key_of(index), member, chosen.shape, pool, batch)
                return member, jax.tree.map(jnp.add, total, report)

            nothing = StepReport(jnp.float32(0), jnp.float32(0), jnp.float32(0))
            member, total = jax.lax.fori_loop(0, steps, one, (member, nothing))
            return member, jax.tree.map(lambda sums: sums / jnp.maximum(steps, 1), total)

        return mapped(train, devices, turn.population, at_once, shared=3)

    compiled = [compiled_at(one) for one in config.by_memory_size(stage)]

    def run(
        population: Population, keys: Array, first: int, steps: int, pool: TracedPool | None = None
    ) -> tuple[Population, StepReport]:
        if steps > CHUNK:
            raise ValueError(f"{steps} steps in one call: examples are drawn for {CHUNK}")
        turn = first // CHUNK % len(compiled)
        numbers = np.int32(first), np.int32(steps)
        members, report = compiled[turn](pool, *numbers, population.members, population.hyper, keys)
        return Population(members, population.hyper), report

    return run


def _draws_ahead(config: TrainConfig, stage: StageConfig, at_once: int) -> bool:
    """Whether the examples of a whole call are drawn before its first step, so that a GPU has less to do in each.

    With a curriculum the examples of a step depend on the step before.
    """
    examples = CHUNK * at_once * config.batch
    return not config.curriculum.enabled and examples * config.memory_size(stage) * CELL <= AHEAD_BYTES


def stage_keys(config: TrainConfig, stage_index: int, attempt: int = 0) -> Array:
    """A key per member for the examples and noise of a stage (0 is taken by the first weights)."""
    key = jax.random.fold_in(jax.random.key(config.seed), stage_index + 1)
    key = jax.random.fold_in(key, attempt) if attempt else key
    return jax.random.split(key, config.stages[stage_index].population)
