"""The search: rounds of annealing chains on a pool of instances, until a program fits and has no counterexamples.

The chains of a round depend on the seed, the round and the pool alone, and their results are used in their order. So
the result does not depend on the number of workers, and a resumed search ends as if it had never stopped.

Every chain has a thread. By default the thread runs the chain itself; it may also call a function that has this done
elsewhere, on a cluster, and returns what came out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeAlias

import numpy as np

from nram.limits import wrong_cells
from nram.programs.interpret import interpret
from nram.programs.ir import Program
from nram.search.callbacks import SILENT, Best, Report, SearchCallbacks
from nram.search.chains import anneal, blocks_of, new_monitor, random_table, shape_of, table_costs
from nram.search.counterexamples import Counterexamples
from nram.search.instances import Pool
from nram.search.kernel import CANDIDATES, STOP, Annealing, ChainEnd
from nram.search.known import tables_of
from nram.search.look_up import have_tables
from nram.search.schedule import (
    REPAIR,
    STRUCTURES,
    Chain,
    Strategy,
    outdone,
    round_of_chains,
    still_promising,
    strategies_of,
)
from nram.search.shortening import shortened, shortest, simplified
from nram.search.state import Found, Left, Outcome, SearchState
from nram.search.structure import Structure
from nram.tasks.base import Instance

SILENT_SECONDS = 1.0  # of compiling, before the user is told

RunChain: TypeAlias = Callable[[Chain, np.ndarray, Pool, np.ndarray], ChainEnd]
"""Runs a chain from a table, which it changes, on a pool. It ends early when STOP is set in the monitor."""


@dataclass
class _Run:
    """A chain of the round, and what came out."""

    chain: Chain
    genes: np.ndarray
    """The table at which it starts, and in the end the one that it has reached."""
    monitor: np.ndarray
    end: Future[ChainEnd]
    judged: tuple[Program, Sequence[Instance] | None] | None = None
    """The short form of a program that fits, and what it gets wrong."""


@dataclass
class Search:
    """A search over a pool of instances."""

    pool: Pool
    counterexamples: Counterexamples
    """Called with every program that fits. What it returns joins the pool; if it returns None, the search goes on with
    the same pool."""
    seed: int = 0
    structures: Sequence[Structure] = STRUCTURES
    start: tuple[Structure, np.ndarray] | None = None
    """The table to be repaired."""
    library: Sequence[Program] = ()
    """Programs at which some chains start."""
    workers: int = 1
    seconds: float = float("inf")
    most_candidates: int | None = None
    state: SearchState = SearchState()
    done: Callable[[SearchState], bool] = lambda state: bool(state.found)
    """Asked after every chain: whether the programs found so far are enough. By default the first is."""
    take_any: bool = False
    """End with the first program that any chain finds, out of order: which one that is depends on timing."""
    run_chain: RunChain = field(default_factory=lambda: run_here)
    """`workers` threads call it at once."""

    def run(
        self,
        callbacks: SearchCallbacks = SILENT,
        on_round: Callable[[SearchState], None] = lambda state: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        """Search until it is done, or time or candidates are spent. The time of compiling is not counted."""
        self.callbacks, self.stopping = callbacks, stopping
        self._compile()
        self.began, self.candidates_before = time.monotonic(), self.state.candidates
        resumable, whole = self.state, True
        with ThreadPoolExecutor(self.workers) as executor, ThreadPoolExecutor(1) as self.shortener:
            while whole and not self.done(self.state) and not self._spent():
                whole = self._round(executor)
                if whole:
                    resumable = self.state = replace(self.state, round=self.state.round + 1)
                    on_round(self.state)
        if self.state.found:
            program, structure = self.state.found[0].program, self.state.found[0].structure
            return Outcome(program, program, structure, self.state, self._elapsed(), False, resumable)
        best, structure, genes = None, self.state.best_structure, self.state.best_genes
        if structure is not None and genes is not None:
            best = simplified(structure, genes, self._pool_now())
        return Outcome(None, best, structure, self.state, self._elapsed(), True, resumable)

    def _pool_now(self) -> Pool:
        """The pool with the counterexamples so far."""
        return self.pool.joined(self.state.counterexamples)

    def _compile(self) -> None:
        """Compile everything before the clock starts and the threads need it. Most is cached from run to run."""
        note = threading.Timer(SILENT_SECONDS, self.callbacks.note, ("compiling the search (once)",))
        note.start()
        try:
            pool = self._pool_now()
            self._have_tables(pool)
            blocks = blocks_of(pool)
            for structure in self.structures:
                if self.stopping():
                    return
                shape_of(structure, blocks)
            chain = self._chains(False, ())[0]._replace(budget=1)
            genes = random_table(chain.structure, chain.seed)
            run_here(chain, genes, pool, new_monitor())
            table_costs(chain.structure, genes, blocks, len(pool))
        finally:
            note.cancel()

    def _have_tables(self, pool: Pool) -> None:
        modules = {module for structure in self.structures for module in structure.kinds}
        have_tables(modules, (len(instance.input) for instance in pool.instances))

    # ---- a round

    def _round(self, executor: ThreadPoolExecutor) -> bool:
        """Run the chains of a round. Returns whether it came to its end: the search was neither done nor stopped."""
        pool = self._pool_now()
        self._have_tables(pool)
        left = {one.structure: one.cost for one in self.state.left}
        chains = self._chains(pool.has_single_answers, left)
        self.shortening = new_monitor()
        self.runs = [self._started(executor, chain, pool) for chain in chains]
        counterexamples: list[Instance] = []
        fitted = False
        try:
            for run in self.runs:
                if self.take_any and self._any_found_before(run, pool):
                    return False
                end = self._wait(run.end)
                if self._stop_asked() and not end.fits:
                    return False
                self._count(run, pool)
                if end.fits and not (counterexamples and self._is_refuted(run, counterexamples)):
                    failed = self._use(run, pool)
                    fitted |= not failed
                    counterexamples += failed or ()
                if self.done(self.state):
                    return False
        finally:
            self._stop_chains()
            for run in self.runs:
                run.end.cancel()
        if counterexamples:
            known = (*self.state.counterexamples, *counterexamples)
            self.state = replace(self.state, counterexamples=known, best_cost=float("inf"), left=(), near=())
        elif fitted:  # the tables left fit the pool, so chains from there would only lead to the same programs
            self.state = replace(self.state, left=())
        else:
            now = {one.structure: one.cost for one in self.state.left}
            kept = still_promising(self.state.round, left, now, {chain.structure for chain in chains})
            self.state = replace(self.state, left=tuple(one for one in self.state.left if one.structure in kept))
        return True

    def _chains(self, single_answers: bool, left: Collection[Structure]) -> list[Chain]:
        """The chains of the round. Those of structures in `left` may go on from a table."""
        number = self.state.round

        def strategies(structure: Structure) -> tuple[Strategy, ...]:
            return (REPAIR,) if self.start else strategies_of(number, single_answers, structure in left)

        passed_over = outdone({one.structure: one.cost for one in self.state.near})
        return round_of_chains(number, self.seed, self.structures, strategies, passed_over)

    def _started(self, executor: ThreadPoolExecutor, chain: Chain, pool: Pool) -> _Run:
        genes, monitor = self._first_table(chain), new_monitor()
        return _Run(chain, genes, monitor, executor.submit(self.run_chain, chain, genes, pool, monitor))

    def _any_found_before(self, turn: _Run, pool: Pool) -> bool:
        """Until this chain ends, judge what other chains find. Returns whether one of them has found a program.

        What is wrong is counted in its turn. So a round without a program ends the same as without `take_any`.
        """
        while not turn.end.done():
            for run in self.runs:
                if run.judged is None and run.end.done() and run.end.result().fits:
                    _, failed = self._judge(run, pool)
                    if failed is not None and not failed:
                        self._count(run, pool)
                        self._use(run, pool)
                        return True
            self._pause()
        return False

    def _judge(self, run: _Run, pool: Pool) -> tuple[Program, Sequence[Instance] | None]:
        """Shorten a program that fits, and look for counterexamples. The first that has none is shortened further."""
        if run.judged is None:
            parts = run.chain.structure, run.genes, pool, run.chain.seed, self.shortening
            program = self._wait(self.shortener.submit(shortened, *parts))
            failed = self.counterexamples(program)
            if failed is not None and not failed and not self.state.found:
                if self.done(replace(self.state, found=(Found(program, parts[0], self.state.candidates),))):
                    self._drop_others(run)
                shorter = self._wait(self.shortener.submit(shortest, program, *parts, self.workers))
                if shorter != program:
                    still_failed = self.counterexamples(shorter)
                    program = shorter if still_failed is not None and not still_failed else program
            run.judged = program, failed
        return run.judged

    def _drop_others(self, run: _Run) -> None:
        """Stop all other chains: with the program of this one the search is done, however it is shortened."""
        for other in self.runs:
            if other is not run:
                other.end.cancel()
                other.monitor[STOP] = 1

    def _is_refuted(self, run: _Run, counterexamples: Sequence[Instance]) -> bool:
        """Whether what speaks against programs of this round speaks against this one too."""
        pool = Pool(tuple(counterexamples))
        return bool(table_costs(run.chain.structure, run.genes, blocks_of(pool), len(pool)).sum() > 0)

    def _use(self, run: _Run, pool: Pool) -> Sequence[Instance] | None:
        """Add a program that fits to the state. Without any counterexamples it is found, or refused."""
        program, failed = self._judge(run, pool)
        if failed is None:
            self.state = replace(self.state, refused=self.state.refused + 1)
        elif not failed and any(program == one.program for one in self.state.found):
            self.state = replace(self.state, repeated=self.state.repeated + 1)
        elif not failed:
            found = Found(program, run.chain.structure, self.state.candidates)
            self.state = replace(self.state, found=(*self.state.found, found))
        return failed

    def _first_table(self, chain: Chain) -> np.ndarray:
        """The table at which a chain starts."""
        structure = chain.structure
        if self.start is not None and self.start[0] == structure:
            return self.start[1].copy()
        if chain.strategy.goes_on:
            for left in self.state.left:
                if left.structure == structure:
                    return left.genes.copy()
        if chain.strategy.known:
            tables = tables_of(self.library, structure, self.pool, chain.seed)
            if tables:
                return Random(chain.seed).choice(tables)
        return random_table(structure, chain.seed)

    def _count(self, run: _Run, pool: Pool) -> None:
        """Add a chain that has ended to the state, and its table if it is the best."""
        end, genes, structure = run.end.result(), run.genes, run.chain.structure
        run.monitor[CANDIDATES] = 0  # they are among those of the state from now on
        costs = table_costs(structure, genes, blocks_of(pool), len(pool))
        cost = float(costs.sum())
        state = replace(self.state, candidates=self.state.candidates + end.candidates, chains=self.state.chains + 1)
        left = {one.structure: one for one in state.left}
        if run.chain.strategy.length_cost > 0 and (structure not in left or cost < left[structure].cost):
            left[structure] = Left(structure, cost, genes)
            state = replace(state, left=tuple(left.values()))
        near = {one.structure: one for one in state.near}
        if cost > 0 and (structure not in near or cost < near[structure].cost):
            near[structure] = Left(structure, cost, genes)
            state = replace(state, near=tuple(near.values()))
        better = cost < state.best_cost
        if better:
            state = replace(state, best_cost=cost, best_genes=genes, best_structure=structure)
        self.state = state
        if better and cost > 0:
            wrong = sorted((pool.instances[i] for i in np.flatnonzero(costs)), key=lambda one: len(one.input))
            program = structure.program(genes)
            runs = ((one, list(interpret(program, one.input, one.steps).memory)) for one in wrong)
            # One with a wrong cell, if there is any: it says more than one on which the program does not halt.
            found = next(((one, memory) for one, memory in runs if wrong_cells(memory, one)), None)
            smallest, memory = found or (wrong[0], list(interpret(program, wrong[0].input, wrong[0].steps).memory))
            self.callbacks.best(Best(structure, len(wrong), len(pool), self._elapsed(), smallest, memory, program))

    # ---- time

    def _elapsed(self) -> float:
        return time.monotonic() - self.began

    def _stop_asked(self) -> bool:
        return self.stopping() or self._elapsed() > self.seconds

    def _spent(self) -> bool:
        counted = self.most_candidates is not None and self.state.candidates >= self.most_candidates
        return counted or self._stop_asked()

    def _stop_chains(self) -> None:
        for monitor in (*(run.monitor for run in self.runs), self.shortening):
            monitor[STOP] = 1

    def _wait(self, future: Future):
        """Wait for a chain, and return its result. All chains are stopped when the time is over."""
        while not future.done():
            self._pause()
        return future.result()

    def _pause(self) -> None:
        time.sleep(0.02 if self._elapsed() < 2 else 0.1)
        if self._stop_asked():
            self._stop_chains()
        self._report()

    def _report(self) -> None:
        running = int(sum(run.monitor[CANDIDATES] for run in self.runs))
        tried = self.state.candidates + running - self.candidates_before
        self.callbacks.report(
            Report(
                round=self.state.round,
                candidates=self.state.candidates,
                chains=self.state.chains,
                seconds=self._elapsed(),
                per_second=tried / max(self._elapsed(), 1e-9),
                counterexamples=len(self.state.counterexamples),
            )
        )


def run_here(chain: Chain, genes: np.ndarray, pool: Pool, monitor: np.ndarray) -> ChainEnd:
    """Run a chain from this table, which it changes, on instances in an order of its own."""
    strategy, rng = chain.strategy, Random(chain.seed)
    order = rng.sample(range(len(pool)), len(pool))
    if strategy.small_first:
        order = pool.shortest_first(rng)
    # A block runs until its longest instance is done, so the long ones in play share a block.
    order[: strategy.at_first] = sorted(order[: strategy.at_first], key=lambda i: pool.instances[i].steps)
    settings = Annealing(
        chain.seed,
        chain.budget,
        strategy.hot,
        strategy.cold,
        strategy.length_cost,
        strategy.at_first,
        weigh=not pool.has_single_answers,
    )
    return anneal(chain.structure, genes, blocks_of(pool, order), len(pool), settings, monitor)
