"""Learning by training: runs of the usual trainer on the training examples, until one gives a program or time is over.

Structure and stages are chosen here, small ones first. Nothing held out is ever trained or selected on; it judges the
programs that are extracted. This module imports JAX.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nram.learning.candidate import FOR_THE_INPUTS, Candidate, better
from nram.learning.judgement import judgement_of
from nram.learning.parts import Parts, by_size
from nram.learning.task import training_task
from nram.limits import example_limits
from nram.programs.extract.from_run import training_details
from nram.programs.extract.table import extract_table
from nram.programs.ir import Program
from nram.programs.simplify import simplify
from nram.programs.simplify.specialise import visited_situations
from nram.runtime import device_name, prepare_devices
from nram.tasks.base import Task
from nram.training.callbacks import Interrupted, TrainingCallbacks
from nram.training.config import MachineConfig, StageConfig, TrainConfig
from nram.training.job import TrainingJob
from nram.training.member import wiring_of
from nram.training.trainer import best_members

if TYPE_CHECKING:
    from nram.learning.job import LearningJob

# Registers, repeats, and the steps a size: tried in turn, run after run.
STRUCTURES = ((4, 1, 1), (6, 1, 1), (4, 2, 1), (6, 1, 2), (6, 2, 1))
SPARE_STEPS = 4  # of T(n) while the loop is learned
FIRST_SIZES = 6  # a loop is learned on arrays of about this length
LEAST_SECONDS = 20.0  # less than this hardly compiles a stage
EXTRACTED = 8  # of the best members of a run


@dataclass(frozen=True)
class TrainingEnd:
    best: Candidate | None
    refused: int
    """Programs that were right on all training examples and wrong on held-out ones."""
    runs: int
    seconds: float


def learn_by_training(
    job: LearningJob, parts: Parts, seconds: float, callbacks: TrainingCallbacks, stopping: Callable[[], bool]
) -> TrainingEnd:
    """Train one run after another until a program is exact on everything. An unfinished run goes on."""
    began = time.monotonic()
    task = training_task(parts.training, job.name)
    fixed_steps = job.steps is not None or all(example.own_steps for example in parts.training)
    best: Candidate | None = None
    runs = refused = 0

    def spent() -> bool:
        return stopping() or time.monotonic() - began > seconds

    for index, config in enumerate(configurations(task, parts, job.seed, fixed_steps)):
        run = TrainingJob.open(job.folder / "training" / str(index), config, job.words, resume=True)
        if run.result is not None:  # its programs were scored before
            continue
        if runs and (spent() or time.monotonic() - began > seconds - LEAST_SECONDS):
            break
        runs += 1
        with contextlib.suppress(Interrupted):  # time is over: the members so far are used
            run.run(job.device, callbacks, spent)
        for candidate in _candidates(run, job.device, parts, index):
            best = better(best, candidate)
            refused += candidate.judgement.training.exact and not candidate.judgement.exact
        if best is not None and best.judgement.exact:
            break
    return TrainingEnd(best, refused, runs, time.monotonic() - began)


def configurations(task: Task, parts: Parts, seed: int, fixed_steps: bool) -> Iterator[TrainConfig]:
    """One run after another, without end. The loop comes first, then halting, then the full size."""
    sizes = [max(1, size) for size in by_size(parts.training)]
    largest = sizes[-1]
    first = max((size for size in sizes if size <= sizes[0] + FIRST_SIZES - 1), default=largest)
    number = 0
    while True:
        registers, repeats, per_item = STRUCTURES[number % len(STRUCTURES)]
        stages = (
            StageConfig(first, steps=400, population=48, step_slack=2),
            StageConfig(first, steps=800, population=16, step_slack=14, keep=8, stop_at=3),
            StageConfig(largest, steps=400, population=4, step_slack=20, keep=4, stop_at=1),
        )
        yield TrainConfig(
            task=task.name,
            seed=(seed + 1000 * number) % 2**32,
            check_every=50,
            validation=96,
            steps_per_item=None if fixed_steps else per_item,
            steps_constant=None if fixed_steps else SPARE_STEPS * per_item,
            machine=MachineConfig(registers=registers, repeats=repeats),
            stages=stages,
        )
        number += 1


def _candidates(job: TrainingJob, device: str, parts: Parts, index: int) -> Iterator[Candidate]:
    """The programs of the best members, whether the run is finished or was stopped."""
    config, devices = job.config, prepare_devices(device)
    how = (
        *training_details(config),
        ("run", f"{index}, seed {config.seed}"),
        ("device", device_name(devices)),
    )
    for controller in best_members(job.folder, config, devices, EXTRACTED):
        raw = extract_table(controller, wiring_of(config.machine), origin="trained")
        yield _simplified(raw, parts, how)


def _simplified(raw: Program, parts: Parts, how: tuple[tuple[str, str], ...]) -> Candidate:
    """For the inputs learned from, if that costs nothing on the others; otherwise the same on every memory."""
    simple = simplify(raw)
    limits = ((one.instance, max(example_limits(one.instance.steps, one.cells))) for one in parts.training)
    places: set[Any] = set().union(*(visited_situations(simple, instance, limit) for instance, limit in limits))
    shorter = simplify(simple, visited=places)
    whole, short = (Candidate(program, judgement_of(program, parts), how) for program in (simple, shorter))
    if short.merit >= whole.merit:
        return Candidate(short.program, short.judgement, (*how, ("simplified", FOR_THE_INPUTS)))
    return Candidate(whole.program, whole.judgement, (*how, ("simplified", "with the same meaning on every memory")))
