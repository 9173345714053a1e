"""Selection between stages: the discretised members are validated, and the best are cloned."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from nram.extensions import known_task
from nram.runtime import Device
from nram.training.cloning import jittered
from nram.training.config import StageConfig, TrainConfig
from nram.training.discrete import Score, compile_discrete
from nram.training.evaluation import Trial, draw_trial
from nram.training.footprint import members_at_once
from nram.training.kernels import kernel_of
from nram.training.mapping import mapped
from nram.training.member import batch_outcomes
from nram.training.population import Population

CRISP = 20.0  # factor for the logits of a straight-through stage: 0.5 against 0.3 becomes certain


def validation_of(config: TrainConfig, stage: StageConfig) -> Trial:
    return Trial(config.task, 2 * stage.max_complexity, config.validation, config.seed, "validation")


def compile_validation(config: TrainConfig, stage: StageConfig, devices: list[Device]):
    """A function from a population to every discretised member's score on the validation set.

    The set goes up to twice the stage's complexity, because a member that does not generalise is not worth cloning.
    Half of it has twice the step limit, because neither is a member that must be stopped in time.
    """
    if config.ranked_by == "training":
        return _compile_soft_validation(config, stage, devices)
    task = known_task(config.task)
    instances, complexity = draw_trial(validation_of(config, stage))
    single, double = (task.step_limit.named(complexity, name) for name in ("T", "2T"))
    limits = np.where(np.arange(config.validation) % 4 < 2, single, double)
    run = compile_discrete(config.machine, devices, stage.population)

    def validate(population: Population) -> Score:
        return run(population.members.controller, instances, limits).score

    return validate


def _compile_soft_validation(config: TrainConfig, stage: StageConfig, devices: list[Device]):
    """A function from a population to every member's errors, soft and discrete, on the same instances.

    As in the paper, these have the sizes of training, each as likely as the others, and the step limit T(n).
    """
    count = -(-config.validation // config.batch) * config.batch
    of_file = known_task(config.task).examples is not None
    trial = Trial(config.task, stage.max_complexity, count, config.seed, "validation", uniform=True, one_size=of_file)
    instances, complexity = draw_trial(trial)
    limits = np.asarray(config.step_limit(complexity), np.int32)
    batches = jax.tree.map(lambda leaf: leaf.reshape(-1, config.batch, *leaf.shape[1:]), (instances, limits))
    kernel = kernel_of(config, stage, devices)

    def one(batches, hyper, controller):
        run = partial(batch_outcomes, config, stage, hyper, controller, kernel=kernel.shape)
        return jnp.mean(jax.lax.map(lambda batch: run(batch).error, batches))

    soft_errors = mapped(one, devices, stage.population, members_at_once(config, stage, devices, kernel), shared=1)
    run = compile_discrete(config.machine, devices, stage.population)

    def validate(population: Population) -> Score:
        controllers = population.members.controller
        soft = np.asarray(soft_errors(batches, population.hyper, controllers))
        return run(controllers, instances, limits).score._replace(soft=np.where(np.isfinite(soft), soft, 1.0))

    return validate


def ranking(population: Population, score: Score) -> np.ndarray:
    """Member indices from the best to the worst.

    Discrete exact match counts first, then how often a member halts by itself (a soft machine that idles may drift),
    then its curriculum level, then its soft error. Where members are ranked by training, only soft errors count.
    """
    progress = jax.tree.map(np.asarray, population.members.progress)
    if score.soft is not None:
        return np.lexsort((progress.error, score.soft))
    return np.lexsort((progress.error, -progress.level, -score.halted, -score.exact))


def clone_best(config: TrainConfig, stage_index: int, population: Population, score: Score) -> Population:
    """The population of a stage: clones of the best members of the stage before, in turn.

    The first clone of a member is an exact copy, the others have jittered hyperparameters. Curriculum levels are kept;
    the average of the error starts again. Clones for the last stage are crisp in different degrees, because a machine
    that is right as a program may be too blurred for long runs. A straight-through stage leaves wires undecided, which
    costs nothing there; for a soft stage they are all made crisp.
    """
    stage, former = config.stages[stage_index], config.stages[stage_index - 1]
    best = ranking(population, score)[: stage.kept]
    parents = best[np.arange(stage.population) % len(best)]
    chosen = jax.tree.map(lambda leaf: np.asarray(leaf)[parents], population)
    original = np.arange(stage.population) < len(best)
    # Drawn for all of them, so that how a clone moves does not depend on how many stay as they are.
    every, seed = np.ones(stage.population, bool), f"clones {config.seed} {stage_index}"
    moved = jittered(config.hyper, chosen.hyper, every, config.jitter, seed)
    hyper = jax.tree.map(partial(np.where, original), chosen.hyper, moved)
    progress = chosen.members.progress._replace(error=np.ones(stage.population, np.float32), raised=chosen.members.step)
    island = chosen.members.island._replace(
        record=np.full(stage.population, np.inf, np.float32), stalled=np.zeros(stage.population, np.int32)
    )
    factors = np.ones(stage.population, np.float32)
    if former.straight_through and not stage.straight_through:
        factors[:] = CRISP
    elif stage_index == len(config.stages) - 1:
        copies = np.arange(stage.population) // len(best)
        factors = (CRISP ** (copies / max(1, copies[-1]))).astype(np.float32)
    controller = chosen.members.controller
    if np.any(factors != 1):
        controller = eqx.tree_at(lambda network: network.output, controller, replace_fn=partial(_crisp, factors))
    return Population(chosen.members._replace(controller=controller, progress=progress, island=island), hyper)


def _crisp(factors: np.ndarray, layer: Any) -> Any:
    """The layer with its logits multiplied by each member's factor."""
    return jax.tree.map(lambda leaf: leaf * factors.reshape(-1, *(1,) * (np.ndim(leaf) - 1)), layer)
