"""Learning by search. What is held out judges the programs that fit, and gives the search nothing of itself away."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from nram.learning.candidate import FOR_THE_INPUTS, Candidate, better
from nram.learning.examples import Example
from nram.learning.judgement import Judgement, judge, score_of
from nram.learning.parts import Parts, by_size
from nram.learning.watch import Watch
from nram.programs.ir import Program
from nram.search.engine import Search, SearchState
from nram.search.instances import Pool
from nram.search.schedule import STRUCTURES
from nram.search.state import Question, load_state, save_state
from nram.tasks.base import Instance

MOST_IN_POOL = 600  # as in the pool of a task, twice over; more only cost time, and join when they are wrong
MOST_COUNTEREXAMPLES = 6


@dataclass(frozen=True)
class SearchEnd:
    best: Candidate | None
    refused: int
    """Programs that were right on all training examples and wrong on held-out ones."""
    candidates: int
    seconds: float


def learn_by_search(
    parts: Parts,
    digest: str,
    saved: Path,
    watch: Watch,
    *,
    seed: int,
    seconds: float,
    workers: int,
) -> SearchEnd:
    """Search until a program is exact on everything, or time is over. Goes on from `saved` if it exists."""
    best: Candidate | None = None
    refused = 0
    question = Question(digest, seed, STRUCTURES)

    def against(program: Program) -> list[Instance] | None:
        nonlocal best, refused
        training = score_of(program, parts.training)
        if not training.exact:
            return [wrong.example.instance for wrong in training.wrong[:MOST_COUNTEREXAMPLES]]
        judgement = Judgement(training, score_of(program, parts.held_out))
        best = better(best, Candidate(program, judgement, ()))
        if judgement.exact:
            return []
        refused += 1
        watch.refused(judgement)
        return None

    search = Search(
        pool_of(parts.training, seed),
        against,
        seed=seed,
        workers=workers,
        seconds=seconds,
        state=load_state(saved, question) if saved.exists() else None,
    )

    def save(state: SearchState) -> None:
        save_state(saved, question, state)

    outcome = search.run(watch.search_report, watch.search_best, save, watch.stopping, watch.note)
    if outcome.program is None:
        save(outcome.state)
        if best is None and outcome.best is not None:
            best = Candidate(outcome.best, judge(outcome.best, parts), ())
    else:
        saved.unlink(missing_ok=True)
    if best is not None:
        how = ("candidates", str(outcome.state.candidates)), ("simplified", FOR_THE_INPUTS)
        best = replace(best, how=how)
    return SearchEnd(best, refused, outcome.state.candidates, outcome.seconds)


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
