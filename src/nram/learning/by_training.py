"""Learning by training: one training run after another on the training examples, until one gives a program.

Every run is trained by the one recipe. Held-out examples are never used to train or to select members;
the extracted programs are scored on them. This module imports JAX.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from nram.learning.candidate import FOR_THE_INPUTS, Candidate, better
from nram.learning.judgement import judgement_of
from nram.learning.parts import Parts
from nram.learning.task import training_tasks
from nram.limits import example_limits
from nram.programs.extract.from_run import training_details
from nram.programs.extract.table import extract_table
from nram.programs.ir import Program
from nram.programs.simplify import simplify
from nram.programs.simplify.specialise import visited_situations
from nram.runtime import device_name, find_devices, on_devices
from nram.training.callbacks import Interrupted, TrainingCallbacks
from nram.training.config import TrainConfig
from nram.training.job import TrainingJob
from nram.training.member import wiring_of
from nram.training.settings import load_config
from nram.training.trainer import MemberDetails, best_members

if TYPE_CHECKING:
    from nram.learning.job import LearningJob

LEAST_SECONDS = 20.0  # compiling a stage takes about this long
EXTRACTED = 8  # best members of a run whose programs are tried
EARLY = 2  # of a check's members; trying one takes about a second


@dataclass(frozen=True)
class TrainingEnd:
    best: Candidate | None
    fitting: tuple[Candidate, ...]
    """The programs that are exact on everything."""
    refused: int
    """Programs that were right on all training examples and wrong on held-out ones."""
    runs: int
    scored: int
    """Finished runs whose programs were scored. The first so many runs are not looked at again."""
    seconds: float


def learn_by_training(
    job: LearningJob,
    parts: Parts,
    seconds: float,
    scored: int,
    callbacks: TrainingCallbacks,
    stopping: Callable[[], bool],
) -> Iterator[TrainingEnd]:
    """Train one run after another until a program is exact on everything. An unfinished run continues.

    Yields the result so far after every run, so that it can be saved.
    """
    began = time.monotonic()
    tried = _Tried(parts)
    trained = False

    def spent(share: float = 1.0) -> bool:
        return bool(tried.fitting) or stopping() or time.monotonic() - began > share * seconds

    kinds = len(training_tasks(parts.training, job.name))
    for index, config in enumerate(configurations(job, parts)):
        run = TrainingJob.open(job.folder / "training" / str(index), config, job.words, resume=True)
        if index < scored and run.result is not None:
            continue
        if trained and (spent() or time.monotonic() - began > seconds - LEAST_SECONDS):
            break
        trained = True
        tried.where = ("run", f"{index}, seed {config.seed}"), ("device", device_name(find_devices(job.device)))
        with contextlib.suppress(Interrupted):  # time is over: the members so far are used
            run.run(job.device, callbacks, partial(spent, min(1.0, (index + 1) / kinds)), tried.early)
        with on_devices(job.device) as devices:
            for member in best_members(run.folder, config, devices, EXTRACTED):
                tried.add(member)
                if stopping() and run.result is None:  # it can go on, and its members are then tried again
                    break
        scored = index if run.result is None else index + 1
        yield TrainingEnd(tried.best, tuple(tried.fitting), tried.refused, index + 1, scored, time.monotonic() - began)
        if tried.fitting:
            break


@dataclass
class _Tried:
    """The programs of members, each tried once."""

    parts: Parts
    best: Candidate | None = None
    fitting: list[Candidate] = field(default_factory=list)
    refused: int = 0
    programs: set[Program] = field(default_factory=set)
    where: tuple[tuple[str, str], ...] = ()
    """The run, for the card."""

    def early(self, members: list[MemberDetails]) -> None:
        """Try members that are right on the validation set while their run goes on: one may be all that is needed."""
        for member in members[:EARLY]:
            self.add(member)

    def add(self, member: MemberDetails) -> None:
        config, controller, description = member
        raw = extract_table(controller, wiring_of(config.machine), origin="trained")
        if raw in self.programs:
            return
        self.programs.add(raw)
        candidate = _simplified(raw, self.parts, (*training_details(config, description), *self.where))
        self.best = better(self.best, candidate)
        self.fitting += [candidate] if candidate.judgement.exact else []
        self.refused += candidate.judgement.training.exact and not candidate.judgement.exact


def configurations(job: LearningJob, parts: Parts) -> Iterator[TrainConfig]:
    """One run after another, without end: the one recipe, with other seeds."""
    tasks = training_tasks(parts.training, job.name)
    for index in count():
        yield load_config(tasks[index % len(tasks)].name, seed=(job.seed + 1000 * index) % 2**32)


def _simplified(raw: Program, parts: Parts, how: tuple[tuple[str, str], ...]) -> Candidate:
    """Simplified for the training inputs, if that costs nothing on other examples; otherwise for every memory."""
    simple = simplify(raw)
    limits = ((one.instance, max(example_limits(one.instance.steps, one.cells))) for one in parts.training)
    visited: set[Any] = set().union(*(visited_situations(simple, instance, limit) for instance, limit in limits))
    shorter = simplify(simple, visited=visited)
    whole, short = (Candidate(program, judgement_of(program, parts), how) for program in (simple, shorter))
    if short.merit >= whole.merit:
        return Candidate(short.program, short.judgement, (*how, ("simplified", FOR_THE_INPUTS)))
    return Candidate(whole.program, whole.judgement, (*how, ("simplified", "with the same meaning on every memory")))
