"""Learning by search. Held-out examples test the programs that fit; the search never learns which one failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from nram.learning.callbacks import LearningCallbacks
from nram.learning.candidate import FOR_THE_INPUTS, Candidate, better
from nram.learning.judgement import Judgement, judgement_of, score_of
from nram.learning.kept import Comparison, Kept
from nram.learning.parts import Parts, by_size
from nram.programs.ir import Program
from nram.search.instances import Pool
from nram.search.job import ZOO, Library, SearchJob
from nram.search.schedule import FOR_LISTS, STRUCTURES
from nram.search.state import Found, SearchState
from nram.tasks.base import Instance
from nram.tasks.example_files import Example

if TYPE_CHECKING:
    from nram.learning.job import LearningJob

MOST_IN_POOL = 600  # twice the pool of a task; more only cost time, and join when a program gets them wrong
MOST_COUNTEREXAMPLES = 6
# After the first program that fits, the search goes on for as many candidates again, and at least for so many. These
# are candidates and not seconds, so that the same seed gives the same programs.
LEAST_FURTHER = 1_000_000
FURTHER_SEED = 1_000_003  # after every answer the search begins again, elsewhere
ENOUGH_REPEATED = 6  # programs found again: others are then not to be expected soon
WHILE_TOO_SLOW = 8  # times as many, as long as every program takes too many steps at larger sizes


@dataclass(frozen=True)
class SearchEnd:
    best: Candidate | None
    fitting: tuple[Kept, ...]
    """The programs that are exact on everything."""
    near: tuple[Candidate, ...]
    """Programs that nearly fit."""
    refused: int
    """Programs that were right on all training examples and wrong on held-out ones, since the search began."""
    candidates: int
    further: int
    """Of these, the candidates after the first program that fits."""
    seconds: float


def learn_by_search(
    job: LearningJob,
    parts: Parts,
    comparison: Comparison,
    seconds: float,
    callbacks: LearningCallbacks,
    stopping: Callable[[], bool],
) -> SearchEnd:
    """Search until programs are exact on everything, or time is over. Goes on from the saved state if there is one.

    After the first program it looks for others that fit, so that they can be compared.
    """
    best: Candidate | None = None
    measured: dict[str, Kept] = {}

    def counterexamples(program: Program) -> list[Instance] | None:
        nonlocal best
        training = score_of(program, parts.learned_from)
        if not training.exact:
            return [wrong.example.instance for wrong in training.wrong[:MOST_COUNTEREXAMPLES]]
        judgement = Judgement(training, score_of(program, parts.held_out))
        best = better(best, Candidate(program, judgement, ()))
        if judgement.exact:
            if job.alternatives and not measured:
                callbacks.note("a program is exact on every example: looking for others, to compare them")
            return []
        callbacks.refused(judgement)
        return None

    def kept(found: Found) -> Kept:
        key = found.program.fingerprint
        if key not in measured:
            how = ("candidates", str(found.candidates)), ("simplified", FOR_THE_INPUTS)
            candidate = Candidate(found.program, judgement_of(found.program, parts), how)
            measured[key] = comparison.measured(candidate)
        return measured[key]

    def done(state: SearchState) -> bool:
        if not state.found or job.alternatives == 0:
            return bool(state.found)
        in_time = any(kept(one).speed.broken_from is None for one in state.found)
        first = state.found[0].candidates
        patience = 1 if in_time else WHILE_TOO_SLOW
        spent = state.candidates >= first + patience * max(first, LEAST_FURTHER)
        repeated = state.repeated >= patience * ENOUGH_REPEATED
        return spent or repeated or (in_time and len(state.found) > job.alternatives)

    search = SearchJob(
        name=job.name,
        source=" ".join(["examples", *([] if job.steps is None else [job.steps_in_words]), *job.file.reading.words]),
        pool=pool_of(parts.learned_from, job.seed),
        counterexamples=counterexamples,
        structures=STRUCTURES if job.file.layout is None else FOR_LISTS,
        seed=(job.seed + FURTHER_SEED * len(parts.answers)) % 2**32,
        digest=job.file.digest,
        saved=job.folder / "search.json",
        library=Library.named(ZOO),
    )
    outcome = search.run(seconds, workers=job.workers, callbacks=callbacks, stopping=stopping, done=done)
    if best is None and outcome.best is not None:
        best = Candidate(outcome.best, judgement_of(outcome.best, parts), ())
    library = ("library", str(search.library))
    how = library, ("candidates", str(outcome.state.candidates)), ("simplified", FOR_THE_INPUTS)
    if best is not None:
        best = replace(best, how=how)
    near = tuple(Candidate(program, judgement_of(program, parts), how) for program in search.near(outcome))
    fitting = tuple(kept(one) for one in outcome.state.found)
    state = outcome.state
    further = state.candidates - state.found[0].candidates if state.found else 0
    return SearchEnd(best, fitting, near, state.refused, state.candidates, further, outcome.seconds)


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
