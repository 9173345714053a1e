"""The search: rounds of annealing chains on a pool of instances, until a program fits and nothing speaks against it.

A round's chains depend on the seed, the round and the pool alone, and are looked at in their order. So the result
does not depend on the number of workers, and a search that goes on from a saved state ends as if it had never stopped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from nram.errors import NramError
from nram.programs.execute import execute
from nram.programs.interpret import interpret
from nram.programs.ir import Program
from nram.programs.simplify import simplify
from nram.programs.simplify.specialise import visited_situations
from nram.search.callbacks import SILENT, Best, Report, SearchCallbacks
from nram.search.chains import anneal, blocks_of, new_monitor, random_table, shape_of, table_costs
from nram.search.counterexamples import Counterexamples
from nram.search.instances import Pool, exact
from nram.search.kernel import CANDIDATES, COST, STOP, Annealing
from nram.search.look_up import have_tables
from nram.search.schedule import REPAIR, STRUCTURES, Chain, begins_anew, round_of_chains
from nram.search.structure import Structure
from nram.tasks.base import Instance

SHORTENING_CHAINS = 6
SHORTENING_BUDGET = 150_000
SHORTENING_RUNS = 45_000_000  # at most, of instances by a chain
SHORTENING = (0.03, 0.005, 0.02)  # hot, cold, and the cost of an operation
SILENT_SECONDS = 1.0  # of compiling; longer, and whoever watches is told


@dataclass(frozen=True)
class Left:
    """The best table that chains of one structure have left lately."""

    structure: Structure
    cost: float
    genes: np.ndarray = field(compare=False)


@dataclass(frozen=True)
class SearchState:
    """All that a search has found out by the end of a round."""

    round: int = 0
    candidates: int = 0
    chains: int = 0
    counterexamples: tuple[Instance, ...] = ()
    best_cost: float = float("inf")
    """Of a program on the whole pool, in wholly wrong instances."""
    best_genes: np.ndarray | None = field(default=None, compare=False)
    best_structure: Structure | None = None
    left: tuple[Left, ...] = ()
    """For chains that go on from there."""


@dataclass(frozen=True)
class Outcome:
    """How a search ended. `program` is the one found, or None; `best` the nearest to it in any case."""

    program: Program | None
    best: Program | None
    structure: Structure | None
    state: SearchState
    seconds: float
    stopped: bool
    """Asked to stop, or out of time or candidates, before a program was found."""
    resumable: SearchState
    """The state by the end of the last whole round: where to go on, so that the end is the same."""


class Search:
    """A search over a pool. `counterexamples` is asked of every program that fits: instances it gets wrong. None
    refuses a program without giving anything away: the pool stays as it is, and other chains are looked at."""

    def __init__(
        self,
        pool: Pool,
        counterexamples: Counterexamples,
        *,
        seed: int = 0,
        structures: Sequence[Structure] = STRUCTURES,
        start: tuple[Structure, np.ndarray] | None = None,
        workers: int = 1,
        seconds: float = float("inf"),
        most_candidates: int | None = None,
        state: SearchState | None = None,
    ):
        self.original = pool
        self.counterexamples = counterexamples
        self.seed = seed
        self.structures = tuple(structures)
        self._modules = {module for structure in self.structures for module in structure.kinds}
        self.start = start
        self.workers = workers
        self.seconds = seconds
        self.most_candidates = most_candidates
        self.state = SearchState() if state is None else state
        self.pool = pool.joined(self.state.counterexamples)
        self.watches: dict[int, np.ndarray] = {}

    def run(
        self,
        callbacks: SearchCallbacks = SILENT,
        on_round: Callable[[SearchState], None] = lambda state: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        """Search until a program is found or time, candidates or patience are spent. Compiling is not counted."""
        self._compile(callbacks.note)
        self.began = time.monotonic()
        self.before = self.state.candidates
        self.callbacks, self.stopping = callbacks, stopping
        resumable = self.state
        with ThreadPoolExecutor(self.workers) as executor, ThreadPoolExecutor(1) as self.aside:
            while not self._spent():
                found, whole = self._round(executor)
                if found is not None:
                    program, structure = found
                    return Outcome(program, program, structure, self.state, self._elapsed(), False, resumable)
                if not whole:
                    break
                number = self.state.round + 1
                left = () if begins_anew(number) else self.state.left
                resumable = self.state = replace(self.state, round=number, left=left)
                on_round(self.state)
        best = self._program(self.state.best_structure, self.state.best_genes)
        return Outcome(None, best, self.state.best_structure, self.state, self._elapsed(), True, resumable)

    def _compile(self, on_note: Callable[[str], None]) -> None:
        """Have all machine code, before the clock starts and the threads need it: most is kept from run to run."""
        telling = threading.Timer(SILENT_SECONDS, on_note, ("compiling the search (once)",))
        telling.start()
        try:
            have_tables(self._modules, map(len, (instance.input for instance in self.pool.instances)))
            for structure in self.structures:
                shape_of(structure)
            chain = round_of_chains(0, self.seed, self.structures)[0]._replace(budget=1)
            genes, _, _ = self._chain(chain, random_table(chain.structure, chain.seed), self.pool, new_monitor())
            table_costs(chain.structure, genes, blocks_of(self.pool), len(self.pool))
        finally:
            telling.cancel()

    def _round(self, executor: ThreadPoolExecutor) -> tuple[tuple[Program, Structure] | None, bool]:
        """What was found, and whether the round came to its end."""
        manners = None if self.start is None else (REPAIR,)
        chains = round_of_chains(self.state.round, self.seed, self.structures, manners)
        pool = self.pool
        have_tables(self._modules, map(len, (instance.input for instance in pool.instances)))
        self.watches = {number: new_monitor() for number in range(len(chains))}
        starts = [self._start(chain) for chain in chains]
        futures = [
            executor.submit(self._chain, chain, genes, pool, self.watches[i])
            for i, (chain, genes) in enumerate(zip(chains, starts, strict=True))
        ]
        learned: list[Instance] = []
        refused = False
        try:
            for number, (chain, future) in enumerate(zip(chains, futures, strict=True)):
                self._wait(future)
                genes, fits, candidates = future.result()
                if self._stop_asked() and not fits:
                    return None, False
                del self.watches[number]
                self._count(chain, genes, candidates, pool)
                if fits:
                    shortening = self.aside.submit(self._shortened, chain, genes, pool, self._watch_of_shortening())
                    self._wait(shortening)
                    program = shortening.result()
                    against = self.counterexamples(program)
                    if against is None:
                        refused = True
                    elif not against:
                        return (program, chain.structure), False
                    else:
                        learned += against
        finally:
            for watch in self.watches.values():
                watch[STOP] = 1
            for future in futures:
                future.cancel()
        if learned:
            self.state = replace(
                self.state, counterexamples=(*self.state.counterexamples, *learned), best_cost=float("inf"), left=()
            )
            self.pool = self.original.joined(self.state.counterexamples)
        elif refused:  # what was left fits the pool, and would only lead back to it
            self.state = replace(self.state, left=())
        return None, True

    def _watch_of_shortening(self) -> np.ndarray:
        self.watches[-1] = new_monitor()
        return self.watches[-1]

    def _start(self, chain: Chain) -> np.ndarray:
        structure = chain.structure
        if self.start is not None and self.start[0] == structure:
            return self.start[1].copy()
        if chain.manner.goes_on:
            for left in self.state.left:
                if left.structure == structure:
                    return left.genes.copy()
        return random_table(chain.structure, chain.seed)

    def _chain(self, chain: Chain, genes: np.ndarray, pool: Pool, watch: np.ndarray) -> tuple[np.ndarray, bool, int]:
        structure = chain.structure
        rng = Random(chain.seed)
        order = rng.sample(range(len(pool)), len(pool))
        if chain.manner.small_first:
            order = pool.shortest_first(rng)
        # A block runs until its longest is done, so the long ones that are in play share one.
        in_play = chain.manner.at_first
        order[:in_play] = sorted(order[:in_play], key=lambda i: pool.instances[i].steps)
        manner = chain.manner
        settings = Annealing(chain.seed, chain.budget, manner.hot, manner.cold, manner.length_cost, manner.at_first)
        end = anneal(structure, genes, blocks_of(pool, order), len(pool), settings, watch)
        return genes, end.fits, end.candidates

    # ---- what is found

    def _count(self, chain: Chain, genes: np.ndarray, candidates: int, pool: Pool) -> None:
        """Note a chain that has ended, and its program if there was none better."""
        structure = chain.structure
        costs = table_costs(structure, genes, blocks_of(pool), len(pool))
        cost = float(costs.sum())
        better = cost < self.state.best_cost
        left = {one.structure: one for one in self.state.left}
        if chain.manner.length_cost > 0 and (structure not in left or cost < left[structure].cost):
            left[structure] = Left(structure, cost, genes)
        self.state = replace(
            self.state,
            candidates=self.state.candidates + candidates,
            chains=self.state.chains + 1,
            best_cost=cost if better else self.state.best_cost,
            best_genes=genes if better else self.state.best_genes,
            best_structure=structure if better else self.state.best_structure,
            left=tuple(left.values()),
        )
        if better and cost > 0:
            self._tell_best(structure, genes, costs, pool)

    def _tell_best(self, structure: Structure, genes: np.ndarray, costs: np.ndarray, pool: Pool) -> None:
        wrong = [pool.instances[i] for i in np.flatnonzero(costs)]
        smallest = min(wrong, key=lambda instance: len(instance.input))
        ending = interpret(structure.program(genes), smallest.input, smallest.steps)
        self.callbacks.best(
            Best(
                structure,
                float(costs.sum()),
                len(wrong),
                len(pool),
                self._elapsed(),
                smallest,
                list(ending.memory),
                ending.halted,
            )
        )

    def _shortened(self, chain: Chain, genes: np.ndarray, pool: Pool, watch: np.ndarray) -> Program:
        """The shortest of several programs that fit, reached from this one by changes that keep the fit."""
        structure = chain.structure
        programs = [self._simplified(structure, genes, pool)]
        hot, cold, length_cost = SHORTENING
        budget = min(SHORTENING_BUDGET, SHORTENING_RUNS // len(pool))
        for number in range(SHORTENING_CHAINS):
            other = genes.copy()
            settings = Annealing(
                chain.seed + 7919 * (number + 1), budget, hot, cold, length_cost, len(pool), must_fit=True
            )
            anneal(structure, other, blocks_of(pool), len(pool), settings, watch)
            if watch[STOP]:  # out of time: what is there must do
                break
            programs.append(self._simplified(structure, other, pool))
        by_steps = [(_steps_if_it_fits(program, pool), program) for program in programs]
        fitting = [
            (program.operations + program.rows, steps, program) for steps, program in by_steps if steps is not None
        ]
        if not fitting:
            raise NramError("simplifying changed what a program does: please report the command that led here")
        return min(fitting, key=lambda one: (one[0], one[1], str(one[2])))[2]

    def _simplified(self, structure: Structure, genes: np.ndarray, pool: Pool) -> Program:
        """For the inputs of the pool: rows that none of them leads to are left out."""
        program = structure.program(genes, origin="searched")
        places = set().union(*(visited_situations(program, one, one.steps) for one in pool.instances))
        return simplify(program, visited=places)

    def _program(self, structure: Structure | None, genes: np.ndarray | None) -> Program | None:
        if structure is None or genes is None:
            return None
        return self._simplified(structure, genes, self.pool)

    # ---- time

    def _elapsed(self) -> float:
        return time.monotonic() - self.began

    def _stop_asked(self) -> bool:
        return self.stopping() or self._elapsed() > self.seconds

    def _spent(self) -> bool:
        counted = self.most_candidates is not None and self.state.candidates >= self.most_candidates
        return counted or self._stop_asked()

    def _wait(self, future: Future) -> None:
        """Until a chain has ended; all are told to stop when time or patience is spent."""
        while not future.done():
            time.sleep(0.02 if self._elapsed() < 2 else 0.1)
            if self._stop_asked():
                for watch in self.watches.values():
                    watch[STOP] = 1
            self._tell()

    def _tell(self) -> None:
        at_work = [watch for number, watch in self.watches.items() if number >= 0 and watch[CANDIDATES] > 0]
        candidates = self.state.candidates + int(sum(watch[CANDIDATES] for watch in at_work))
        self.callbacks.report(
            Report(
                round=self.state.round,
                structures=tuple(dict.fromkeys(self.structures)),
                candidates=candidates,
                chains=self.state.chains,
                seconds=self._elapsed(),
                per_second=(candidates - self.before) / max(self._elapsed(), 1e-9),
                pool=len(self.pool),
                counterexamples=len(self.state.counterexamples),
                best_cost=self.state.best_cost,
                running_cost=min((float(watch[COST]) for watch in at_work), default=float("inf")),
            )
        )


def _steps_if_it_fits(program: Program, pool: Pool) -> int | None:
    """All its steps on the pool, or None if it gets an instance wrong or does not halt."""
    groups: dict[tuple[int, int], list[Instance]] = {}
    for instance in pool.instances:
        groups.setdefault((len(instance.input), instance.steps), []).append(instance)
    total = 0
    for (_, limit), instances in groups.items():
        result = execute(program, [instance.input for instance in instances], limit)
        if not (all(result.halted) and all(exact(instances, result.memory))):
            return None
        total += int(np.sum(result.steps))
    return total
