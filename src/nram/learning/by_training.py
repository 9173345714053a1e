"""Learning by training: one training run after another on the training examples, until one gives a program.

Every run is trained by the one recipe. Held-out examples are used as in the search: they accept or refuse programs that
fit the training examples, and training ends when one is accepted. They are not used to train, to select members, to
simplify programs or to rank them. This module imports JAX.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
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
from nram.tasks.example_files import Example
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
WEIGHT = 8  # of an output cell that changes in some example of a size, relative to one that does not
EARLY = 2  # of a check's members, or when time is over; trying one takes about a second


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
    before: float = 0.0,
) -> Iterator[TrainingEnd]:
    """Train one run after another until a program is exact on everything. An unfinished run continues.

    `seconds` are left, and earlier processes have trained for so many `before`. Yields the result so far after every
    run, so that it can be saved.
    """
    began, seconds = time.monotonic() - before, seconds + before
    tried = _Tried(parts)
    trained = False

    def ended() -> bool:
        return bool(tried.fitting) or stopping()

    kinds = len(training_tasks(parts.learned_from, job.name))
    for index, config in enumerate(configurations(job, parts)):
        # Further answers are further examples: the runs without them stay as they are.
        name = f"{index}-{config.task_name.rpartition('-')[2]}" if parts.answers else str(index)
        run = TrainingJob.open(job.folder / "training" / name, config, job.words, resume=True)
        if index < scored and run.result is not None:
            continue
        if trained and (ended() or time.monotonic() - began > seconds - LEAST_SECONDS):
            break
        trained = True
        tried.where = ("run", f"{index}, seed {config.seed}"), ("device", device_name(find_devices(job.device)))
        until = began + seconds * min(1.0, (index + 1) / kinds)
        with contextlib.suppress(Interrupted):  # time is over: the members so far are used
            run.run(job.device, callbacks, ended, tried.early, until)
        finished = run.result is not None
        with on_devices(job.device) as devices:
            for number, member in enumerate(best_members(run.folder, config, devices, EXTRACTED), 1):
                tried.add(member)
                late = number >= EARLY and time.monotonic() > until
                if not finished and (stopping() or late):  # it can go on, and its members are then tried again
                    break
        scored = index + 1 if finished else index
        yield TrainingEnd(tried.best, tuple(tried.fitting), tried.refused, index + 1, scored, time.monotonic() - began)
        if tried.fitting or (not finished and index + 1 >= kinds):  # it had all the time that was left
            break


@dataclass
class _Tried:
    """The programs of members, each tried once."""

    parts: Parts
    best: Candidate | None = None
    fitting: list[Candidate] = field(default_factory=list)
    refused: int = 0
    programs: set[Program] = field(default_factory=set)
    """As extracted."""
    forms: set[Program] = field(default_factory=set)
    """As simplified; different programs may have the same form."""
    where: tuple[tuple[str, str], ...] = ()
    """The run, for the card."""

    def early(self, members: list[MemberDetails]) -> None:
        """Try members that are right on the validation set while their run goes on: one may be all that is needed."""
        for member in members[:EARLY]:
            self.add(member)

    def add(self, member: MemberDetails) -> None:
        config, controller, description = member
        raw = extract_table(controller, wiring_of(config.machine), origin="trained")
        if raw not in self.programs:
            self.programs.add(raw)
            self.add_program(raw, (*training_details(config, description), *self.where))

    def add_program(self, raw: Program, how: tuple[tuple[str, str], ...]) -> None:
        """Try the short form of a program, and the whole one if held-out examples refuse the short one."""
        for program, simplified in _forms(raw, self.parts.learned_from):
            if program in self.forms:
                continue
            self.forms.add(program)
            candidate = Candidate(program, judgement_of(program, self.parts), (*how, ("simplified", simplified)))
            self.best = better(self.best, candidate)
            if candidate.judgement.exact:
                self.fitting.append(candidate)
            if candidate.judgement.exact or not candidate.judgement.training.exact:
                break  # the whole form does the same on the training inputs
            self.refused += 1


def configurations(job: LearningJob, parts: Parts) -> Iterator[TrainConfig]:
    """One run after another, without end: the one recipe, with other seeds.

    A file may name all cells as output. The few that change would then hardly count in the loss.
    """
    tasks = training_tasks(parts.learned_from, job.name)
    for index in count():
        seed = (job.seed + 1000 * index) % 2**32
        yield load_config(tasks[index % len(tasks)].name, overrides=[f"scored_weight={WEIGHT}"], seed=seed)


def _forms(raw: Program, examples: Sequence[Example]) -> Iterator[tuple[Program, str]]:
    """The program simplified for the inputs of these examples, then for every memory; each with words for its card."""
    whole = simplify(raw)
    limits = ((one.instance, max(example_limits(one.instance.steps, one.cells))) for one in examples)
    visited: set[Any] = set().union(*(visited_situations(whole, instance, limit) for instance, limit in limits))
    short = simplify(whole, visited=visited)
    yield short, FOR_THE_INPUTS
    yield whole, "with the same meaning on every memory"
