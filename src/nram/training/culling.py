"""Selection within a stage: at every check the worst members are replaced by mutated clones of the best.

Gradient descent improves a circuit that is nearly right, but it cannot leave one that is stuck. A clone that draws one
wire again and keeps the rest is a neighbour of a good circuit, and is then trained like any other member. Islands keep
the population diverse: a member is replaced only by clones from its own island.

    measure   how every member does (`compile_fit`)
    score     one number for each member
    choose    which members are replaced, and by clones of which parents: by score or by lexicase selection
    clone     copies with mutated wires and hyperparameters (cloning.py)
    restart   new members for an island that is stuck
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nram.machine.kernels.common.choice import Kernel
from nram.runtime import Device, quick_options
from nram.tasks._traced import TracedPool
from nram.training.cloning import clone
from nram.training.config import StageConfig, TrainConfig
from nram.training.discrete import Score, compile_discrete
from nram.training.evaluation import draw_trial
from nram.training.footprint import members_at_once
from nram.training.kernels import kernel_of
from nram.training.mapping import mapped
from nram.training.member import Island, batch_outcomes, draw_examples, is_frozen, member_limit
from nram.training.population import Population, init_population
from nram.training.selection import validation_of

PROGRESS = 0.01  # smaller gains do not count as progress
IDLE = 0.05  # the error of a right answer without halting, where a straight-through stage waits for members that halt
PROMISING = 0.1  # a soft error below this may become a program, which takes a while
LONGER = 4  # times the patience of others for the best island and for promising ones: even they may be dead ends
EXAMPLES = 64  # fresh examples at least, the same for all members
_STREAM = 8_000_000  # keys reserved for culling: no training step and no trial uses them


class Fit(NamedTuple):
    """How the members do under the step limits of training.

    The soft errors are on fresh examples of the stage, uniform over its complexities. The discrete errors are those of
    the discretised machine on the validation set, which goes up to twice the stage's size.
    """

    soft_errors: np.ndarray  # [members, examples]
    loss: np.ndarray  # [members]
    discrete_errors: np.ndarray  # [members, instances]
    exact: np.ndarray  # [members] share of instances

    @property
    def least_error(self) -> float:
        """The best member's error, soft and discrete in equal parts."""
        errors = (np.mean(self.soft_errors, axis=1) + np.mean(self.discrete_errors, axis=1)) / 2
        return float(np.min(np.where(np.isfinite(errors), errors, 1.0)))

    @property
    def score(self) -> Score:
        """The discretised machine's score under the step limits of training, without halting."""
        return Score(np.mean(self.discrete_errors, axis=1), self.exact, np.zeros_like(self.exact))


def compile_fit(config: TrainConfig, stage: StageConfig, devices: list[Device], kernel: Kernel | None = None):
    """A function (population, stage index, step, pool) -> Fit."""
    kernel = kernel or kernel_of(config, stage, devices)
    batches = -(-EXAMPLES // config.batch)
    uniform = replace(config, curriculum=replace(config.curriculum, enabled=False))

    @partial(jax.jit, compiler_options=quick_options() if devices[0].platform == "cpu" else None)
    def draw(keys, pool):
        return jax.lax.map(lambda key: draw_examples(uniform, stage, None, key, pool), keys)

    def one(examples, hyper, controller):
        def on_batch(batch):
            instances, complexity, slack = batch
            limits = member_limit(config, hyper, complexity) + slack
            return batch_outcomes(uniform, stage, hyper, controller, (instances, limits), kernel.shape)

        outcomes = jax.lax.map(on_batch, examples)
        return jnp.ravel(outcomes.error), jnp.mean(outcomes.loss)

    measure = mapped(one, devices, stage.population, members_at_once(config, stage, devices, kernel), shared=1)
    instances, complexity = draw_trial(validation_of(config, stage))
    slack = np.arange(len(complexity)) % (stage.step_slack + 1)
    run = compile_discrete(config.machine, devices, stage.population)

    def fit(population: Population, stage_index: int, step: int, pool: TracedPool | None = None) -> Fit:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), _STREAM + stage_index), step)
        examples = draw(jax.random.split(key, batches), pool)
        controllers = population.members.controller
        errors, loss = measure(examples, population.hyper, controllers)
        columns = jax.tree.map(lambda column: np.asarray(column)[:, None], population.hyper)
        limits = member_limit(config, columns, complexity) + slack
        discrete = run(controllers, instances, limits)
        wrong = discrete.error
        if stage.straight_through and stage.halt_within:
            wrong = np.where(discrete.exact & ~discrete.halted, IDLE, wrong)
        return Fit(np.asarray(errors), np.asarray(loss), wrong, np.mean(discrete.exact, axis=1))

    return fit


def cull(
    config: TrainConfig, stage_index: int, step: int, population: Population, fit: Fit, score: Score
) -> Population:
    """The population after a check. `score` is that of the validation set under the task's own step limits."""
    stage = config.stages[stage_index]
    errors = _scores(stage, fit, score)
    islands = np.arange(stage.population).reshape(stage.cull.islands, -1)
    records = jax.tree.map(np.array, population.members.island)  # copies
    promising = (np.mean(fit.soft_errors, axis=1) < PROMISING) | (errors == np.min(errors))
    stuck = []
    for i, members in enumerate(islands):
        patience = stage.cull.patience_of(i) * (LONGER if np.any(promising[members]) else 1)
        if _is_stuck(patience, members, records, errors, score):
            stuck.append(members)
    rng = np.random.default_rng([config.seed, stage_index, step])
    parents = np.arange(stage.population)
    kept = is_frozen(population.hyper)  # they are perfect, and nothing replaces them
    errors = np.where(kept, 0.0, errors)
    order = np.lexsort((np.where(np.isfinite(fit.loss), fit.loss, np.inf), errors, ~kept))
    for members in islands:
        if not any(members is island for island in stuck):
            _choose_parents(stage, order[np.isin(order, members)], errors, fit, rng, parents)
    parents = np.where(kept, np.arange(stage.population), parents)
    culled = clone(config, stage_index, step, population, parents, rng)
    culled = culled._replace(members=culled.members._replace(island=records))
    for members in stuck:
        index = int(members[0]) // len(members)
        culled = _put(culled, members, init_population(config, len(members), (stage_index, step, index)))
    return culled


def _scores(stage: StageConfig, fit: Fit, score: Score) -> np.ndarray:
    """One error for each member.

    The soft error at the size of training counts first. The smaller it is, the more the discrete error counts, at up to
    twice the size; the smaller that is, the more the discrete error under the task's own step limits and twice those. A
    member that memorised its examples, or that works only while it is soft, loses to one that generalises. Where a
    stage waits for members that halt, halting counts last.
    """
    discrete, exponent = np.mean(fit.discrete_errors, axis=1), stage.cull.exponent
    if not stage.straight_through:
        own_limits = _with_later(score.error, 1 - score.halted, exponent) if stage.halt_within else score.error
        discrete = _with_later(discrete, own_limits, exponent)
    errors = _with_later(np.mean(fit.soft_errors, axis=1), discrete, exponent)
    return np.where(np.isfinite(errors), errors, np.inf)


def _with_later(error: np.ndarray, later: np.ndarray, exponent: float) -> np.ndarray:
    """Both errors in one number that never rises when either falls: the later counts once the first is small."""
    return error + (1 - error) ** exponent / exponent * later


def _is_stuck(patience: int, members: np.ndarray, records: Island, errors: np.ndarray, score: Score) -> bool:
    """Update an island's record; whether it restarts. One with a perfect member never does."""
    best, former = np.min(errors[members]), records.record[members[0]]
    progress = best < former - PROGRESS
    records.record[members] = best if progress else former  # so that small gains add up
    stalled = 0 if progress or best == 0 else records.stalled[members[0]] + 1
    records.stalled[members] = stalled
    return bool(0 < patience <= stalled and np.all(score.exact[members] < 1))


def _choose_parents(
    stage: StageConfig,
    ranked: np.ndarray,
    errors: np.ndarray,
    fit: Fit,
    rng: np.random.Generator,
    parents: np.ndarray,
) -> None:
    """Set the parents of the members of an island, ranked by score, that are replaced.

    A member that is hardly worse than the best stays: where all are stuck at about the same error, rank does not tell
    which one will get on.
    """
    count = stage.clones // stage.cull.islands
    if stage.cull.lexicase:
        from nram.training.lexicase import choose_by_examples  # numba

        by_example = np.concatenate([fit.soft_errors, fit.discrete_errors], axis=1)[ranked]
        replaced, chosen = choose_by_examples(by_example, count, rng)
        parents[ranked[replaced]] = ranked[chosen]
    else:
        worst, best = ranked[len(ranked) - count :], ranked[:count]
        replaced = errors[worst] >= stage.cull.margin * errors[best]
        parents[worst[replaced]] = best[replaced]


@jax.jit
def _put(population: Population, members: np.ndarray, new: Population) -> Population:
    return jax.tree.map(lambda leaf, fresh: leaf.at[members].set(fresh), population, new)
