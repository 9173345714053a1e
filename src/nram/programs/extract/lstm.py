"""Extraction of an LSTM, where a finite program exists.

The state of an LSTM is a real vector, so its table is not finite. But a run reaches only some states, and many of
them do the same. The method:

1. Run the discretised machine on instances of the task and record its choices.
2. Merge the histories into a finite automaton (merging.py).
3. Let the automaton follow other recorded runs. Where it differs, learn again with these runs.
4. Execute the program and the compiled machine on fresh and larger instances under every step limit, and compare
   memory, steps and halting. Where they differ, learn again with these runs.

If this does not end, the error says why there is no program.

In a state, the program halts on flags that were never seen there, and changes nothing. So it never does anything that
the network was not seen to do. A wrong guess could go unnoticed; an early halt shows in the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import jit

from nram.errors import NramError, UsageError
from nram.limits import LIMIT_NAMES
from nram.machine.controllers import LSTM
from nram.machine.hard import run_hard
from nram.machine.wiring import Wiring
from nram.programs.execute import execute
from nram.programs.extract.lstm_runs import Recorder, Run
from nram.programs.extract.merging import Automaton, flag_facts, learn
from nram.programs.interpret import Step, trace
from nram.programs.ir import MAX_STATES, Program, describe
from nram.programs.simplify.circuit import normal_form
from nram.programs.text import row_body, row_to_text
from nram.tasks.base import Instance, Task

FAR = 50  # the largest complexity of the comparison
MOST_ROUNDS = 40
LEARNED_SIZES = 10  # complexities of the runs that are learned from
RUNS_A_SIZE = 12
LEARNED_AT_ONCE = 6  # how many of the differing runs a round learns
COMPARED = 200  # fresh instances of each size of memory


@dataclass(frozen=True)
class LstmExtraction:
    """A program that does what the LSTM's machine does, as far as they were compared."""

    program: Program
    tested: tuple[int, ...]
    """The registers whose flags its states test."""
    rounds: tuple[int, ...]
    """The number of states after each round of learning; the last is the program's."""
    instances_compared: int
    """The fresh instances on which machine and program were compared, each under every limit."""
    largest_complexity: int


def extract_lstm(
    controller: LSTM,
    wiring: Wiring,
    task: Task,
    *,
    limits: Sequence[str] = LIMIT_NAMES,
    max_states: int = 64,
    seed: int = 0,
) -> LstmExtraction:
    """A program with the same memory, steps and halting as the machine on the task's instances; registers may differ.

    `limits` are the step limits under which they must agree: with 'T' alone the program needs its limit.
    """
    if not isinstance(controller, LSTM):
        raise UsageError("extract_lstm needs an LSTM: use extract_table, which is exact on every memory")
    wrong = [limit for limit in limits if limit not in LIMIT_NAMES]
    if wrong or not limits:
        given = ", ".join(map(str, limits)) or "none"
        raise UsageError(f"the limits are {given}: choose from {', '.join(LIMIT_NAMES)}")
    if not 1 <= max_states <= MAX_STATES:
        raise UsageError(f"max_states is {max_states}: a program can have 1 to {MAX_STATES} states")
    work = _Work(controller, wiring, task, tuple(limits), seed)
    header: dict[str, Any] = {"origin": "trained", "task": task.name, "limit": task.step_limit}
    header["needs_limit"] = tuple(limits) == ("T",)
    runs = work.runs_to_learn_from()
    learned = [work.beginning(run) for run in runs[: LEARNED_SIZES * RUNS_A_SIZE // 2 : RUNS_A_SIZE]]
    rounds: list[int] = []
    program, difference = None, None
    while len(rounds) < MOST_ROUNDS:
        automaton = learn(learned, wiring.registers, max_states)
        if automaton is None:
            raise work.did_not_close(rounds, len(learned), program, difference, f"more than {max_states} states")
        rounds.append(len(automaton.states))
        program = Program(wiring.register_names, automaton.rows(), **header)
        differing = _differing(automaton, runs)
        if not differing:
            compared, failed = work.compare(program)
            if not failed:
                return LstmExtraction(program, automaton.tested, tuple(rounds), compared, FAR)
            runs += failed
            differing = _differing(automaton, failed)
            if not differing:
                raise work.rounding_decides(failed[0])
        difference = min(differing, key=lambda found: (found.run.complexity, found.step))
        early = sorted(differing, key=lambda found: found.step)[:LEARNED_AT_ONCE]
        learned += [work.beginning(run, step + 1) for run, step in early]
    raise work.did_not_close(rounds, len(learned), program, difference, f"no end after {MOST_ROUNDS} rounds")


class _Difference(NamedTuple):
    run: Run
    step: int
    """The first step, from 0, at which the automaton does something else."""


def _differing(automaton: Automaton, runs: Sequence[Run]) -> list[_Difference]:
    steps = [(run, automaton.first_difference(run)) for run in runs]
    return [_Difference(run, step) for run, step in steps if step is not None]


@dataclass
class _Work:
    """The state of one extraction."""

    controller: LSTM
    wiring: Wiring
    task: Task
    limits: tuple[str, ...]
    seed: int

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.controller, self.wiring)
        self.comparisons = 0
        self.machine = jit(jax.vmap(partial(run_hard, self.controller, self.wiring)))

    def longest(self, complexity: int) -> int:
        return max(self.task.step_limit.named(complexity, name) for name in self.limits)

    def runs_to_learn_from(self) -> list[Run]:
        """Some runs of every small complexity, on memories with and without spare cells."""
        memories, complexities = [], []
        first = self.task.min_complexity
        for n in range(first, first + LEARNED_SIZES):
            for index in range(RUNS_A_SIZE):
                size = self.task.least_memory(n) + (0, 1, 4)[index % 3]
                instance = self.task.sample(n, 1, self.seed * 1_000_003 + n * RUNS_A_SIZE + index, size)[0]
                memories.append(instance.input)
                complexities.append(n)
        return self._record(memories, complexities)

    def _record(self, memories: list[list[int]], complexities: list[int]) -> list[Run]:
        return self.recorder.record(memories, complexities, [self.longest(n) for n in complexities])

    def beginning(self, run: Run, steps: int = 0) -> Run:
        """This many steps of the run and 2T(n) more: enough to tell it from others, and not too much to merge."""
        return replace(run, choices=run.choices[: steps + 2 * self.task.step_limit(run.complexity)])

    def compare(self, program: Program) -> tuple[int, list[Run]]:
        """Compare compiled machine and program on fresh instances: how many, and the runs that differ."""
        self.comparisons += 1
        first = self.task.min_complexity
        learned = first + LEARNED_SIZES - 1
        count, differing = 0, []
        for group, largest in enumerate((first + 3, learned, 2 * learned, FAR)):
            instances, complexities = self._fresh(largest, group)
            count += len(instances)
            differing += self._compare(program, instances, complexities)
            if differing:
                break
        return count, differing

    def _fresh(self, largest: int, group: int) -> tuple[list[Instance], list[int]]:
        """Instances in memories of one size, half of them of this complexity, half of any up to it."""
        first, size = self.task.min_complexity, self.task.least_memory(largest)
        rng = np.random.default_rng([self.seed, self.comparisons, group])
        instances, complexities = [], []
        for index in range(COMPARED):
            n = largest if index % 2 else int(rng.integers(first, largest + 1))
            instances += self.task.sample(n, 1, int(rng.integers(2**40, 2**41)), size)
            complexities.append(n)
        return instances, complexities

    def _compare(self, program: Program, instances: list[Instance], complexities: list[int]) -> list[Run]:
        """The runs on which machine and program end differently."""
        memories = np.array([instance.input for instance in instances], np.int32)
        for name in self.limits:
            limits = [self.task.step_limit.named(n, name) for n in complexities]
            ended = jax.tree.map(np.asarray, self.machine(memories, jnp.asarray(limits, jnp.int32)))
            differing = []
            for i, limit in enumerate(limits):
                result = execute(program, memories[i], limit)
                same = np.array_equal(result.memory, ended.memory[i])
                if not same or (result.steps, result.halted) != (ended.steps[i], ended.halted[i]):
                    differing.append(i)
            if differing:
                chosen = sorted(differing, key=lambda i: complexities[i])[:LEARNED_AT_ONCE]
                return self._record([instances[i].input for i in chosen], [complexities[i] for i in chosen])
        return []

    # ---- errors: there is no program

    def did_not_close(
        self, rounds: list[int], learned: int, program: Program | None, difference: _Difference | None, why: str
    ) -> NramError:
        lines = [
            f"no finite program was found that does what this LSTM does on {self.task.name} under the limits "
            f"{', '.join(self.limits)}: {why}, for {learned} runs",
            f"  states after each round: {', '.join(map(str, rounds)) or 'none'}",
        ]
        if program is not None and difference is not None:
            lines += self._describe(program, difference)
        if self.limits != ("T",):
            lines.append("  Its first T(n) steps alone may have a program: extract_lstm(..., limits=('T',))")
        lines.append("  An automaton always has a program: train with --set machine.controller=automaton")
        return NramError("\n".join(lines))

    def _describe(self, program: Program, difference: _Difference) -> list[str]:
        """What machine and program did where they first differed."""
        run, step = difference
        zero, row = run.choices[step]
        chosen = normal_form(row, flag_facts((zero,)), (True,) * len(zero))
        machine = replace(row, operations=chosen.operations, registers=tuple(filter(None, chosen.registers)))
        lines = [
            f"  the smallest instance on which the last program differed: n = {run.complexity}, "
            f"memory {' '.join(map(str, run.start))}",
            f"  at step {step + 1} the LSTM saw {describe(program.registers, zero)} and chose:",
            *[f"    {line}" for line in row_body(program, machine, 0)],
        ]
        for event in trace(program, run.start, step + 1):
            if isinstance(event, Step) and event.number == step + 1:
                state = event.state
                words = row_to_text(program, state, event.row)
                return [*lines, f"  and the program, in state {state}:", *[f"    {line}" for line in words]]
        return [*lines, "  and the program had halted"]

    def rounding_decides(self, run: Run) -> NramError:
        return NramError(
            f"the compiled machine and its twin in NumPy do not choose the same circuit on {self.task.name}, "
            f"n = {run.complexity}, memory {' '.join(map(str, run.start))}: two wires are so nearly equal that "
            "rounding decides; train on with a higher wire penalty"
        )
