"""Recorded runs, from which invariants are guessed: they are the runs of the interpreter."""

from __future__ import annotations

from random import Random

import pytest

from nram.extensions import get_task
from nram.programs.interpret import Machine
from nram.programs.library import limit_for, load_program
from nram.programs.prove.runs import _moments, _Rows


@pytest.mark.parametrize("title", ["merge@trained", "permutation@trained", "walkbst@searched", "access@searched"])
def test_recorded_runs_are_those_of_the_interpreter(title):
    program = load_program(title)
    task, rng = get_task(program.task or ""), Random(0)
    rows, limit = _Rows(program), limit_for(program, task)
    for _ in range(40):
        n = task.min_complexity + rng.randrange(5)
        start = task.sample_input(rng, n, task.least_memory(n) + rng.randrange(4))
        machine = Machine(program, start)
        moments, halted = _moments(program, start, 0, limit(n))
        for moment in moments:
            assert (moment.registers, moment.memory) == (machine.registers, machine.memory)
            state = machine.state
            machine.compute(machine.choose())
            assert moment.row == (state, machine.row)
        assert halted == machine.halted and len(moments) == machine.steps
        assert rows.carried_out(start, limit(n)) == [moment.row for moment in moments]
