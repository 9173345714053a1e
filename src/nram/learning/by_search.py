"""Learning by search. Held-out examples test the programs that fit; the search never learns which one failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from nram.learning.callbacks import LearningCallbacks
from nram.learning.candidate import FOR_THE_INPUTS, Candidate, better
from nram.learning.judgement import Judgement, judgement_of, score_of
from nram.learning.parts import Parts, by_size
from nram.programs.ir import Program
from nram.search.instances import Pool
from nram.search.job import SearchJob
from nram.search.schedule import FOR_LISTS, STRUCTURES
from nram.tasks.base import Instance
from nram.tasks.example_files import Example

if TYPE_CHECKING:
    from nram.learning.job import LearningJob

MOST_IN_POOL = 600  # twice the pool of a task; more only cost time, and join when a program gets them wrong
MOST_COUNTEREXAMPLES = 6


@dataclass(frozen=True)
class SearchEnd:
    best: Candidate | None
    refused: int
    """Programs that were right on all training examples and wrong on held-out ones, since the search began."""
    candidates: int
    seconds: float


def learn_by_search(
    job: LearningJob, parts: Parts, seconds: float, callbacks: LearningCallbacks, stopping: Callable[[], bool]
) -> SearchEnd:
    """Search until a program is exact on everything, or time is over. Goes on from the saved state if there is one."""
    best: Candidate | None = None

    def counterexamples(program: Program) -> list[Instance] | None:
        nonlocal best
        training = score_of(program, parts.training)
        if not training.exact:
            return [wrong.example.instance for wrong in training.wrong[:MOST_COUNTEREXAMPLES]]
        judgement = Judgement(training, score_of(program, parts.held_out))
        best = better(best, Candidate(program, judgement, ()))
        if judgement.exact:
            return []
        callbacks.refused(judgement)
        return None

    search = SearchJob(
        name=job.name,
        source=" ".join(["examples", *([] if job.steps is None else [job.steps_in_words]), *job.file.reading.words]),
        pool=pool_of(parts.training, job.seed),
        counterexamples=counterexamples,
        structures=STRUCTURES if job.file.layout is None else FOR_LISTS,
        seed=job.seed,
        digest=job.file.digest,
        saved=job.folder / "search.json",
    )
    outcome = search.run(seconds, workers=job.workers, callbacks=callbacks, stopping=stopping)
    if best is None and outcome.best is not None:
        best = Candidate(outcome.best, judgement_of(outcome.best, parts), ())
    if best is not None:
        how = ("candidates", str(outcome.state.candidates)), ("simplified", FOR_THE_INPUTS)
        best = replace(best, how=how)
    return SearchEnd(best, outcome.state.refused, outcome.state.candidates, outcome.seconds)


def pool_of(training: tuple[Example, ...], seed: int) -> Pool:
    """The examples to begin with: all, or as many of each size as of any other."""
    if len(training) <= MOST_IN_POOL:
        return Pool(tuple(example.instance for example in training))
    rng = Random(seed)
    groups = [rng.sample(group, len(group)) for group in by_size(training).values()]
    chosen: list[Instance] = []
    turn = 0
    while len(chosen) < MOST_IN_POOL:
        chosen += [group[turn].instance for group in groups if turn < len(group)]
        turn += 1
    return Pool(tuple(chosen[:MOST_IN_POOL]))
