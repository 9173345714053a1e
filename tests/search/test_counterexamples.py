"""The check of a program that fits: fresh instances of many sizes, in memories of many sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nram.extensions import get_task
from nram.programs.library import load_program
from nram.programs.text import from_text
from nram.search import counterexamples
from nram.search.counterexamples import find_counterexamples

EXCHANGE = Path(__file__).parents[2] / "src" / "nram" / "examples" / "suite" / "exchange.py"
# Its last step exchanges cell M - 2 with another one. The search has found it.
WRONG_AT_ONE_SIZE = """nram program 1
registers: r1 r2 r3

when r1 > 0, r2 > 0:
    o1 = SUB(r1, 2)
    o2 = READ(o1)
    o3 = READ(r3)
    WRITE(r3, o2)
    WRITE(o1, o3)
    o6 = INC(r1)
    o7 = INC(r3)
    r1, r2, r3 := o6, o2, o7
else when r2 > 0:
    o1 = SUB(0, 2)
    o2 = READ(o1)
    o3 = READ(r3)
    WRITE(r3, o2)
    WRITE(o1, o3)
    halt
else when r1 = 0:
    o1 = READ(0)
    o2 = ADD(o1, 2)
    r1, r2, r3 := o2, o1, 1
else:
    halt
"""


def test_a_program_that_is_wrong_in_memories_of_one_size_is_noticed(monkeypatch: pytest.MonkeyPatch):
    program, task = from_text(WRONG_AT_ONE_SIZE), get_task(str(EXCHANGE))
    found = find_counterexamples(program, task, 1)
    beyond = {len(one.input) - task.least_memory(one.input[0] - 2) for one in found}
    assert len(beyond) == 1 and beyond <= set(counterexamples.OTHER_SIZES[0])
    monkeypatch.setattr(counterexamples, "OTHER_SIZES", (range(0), 5))
    assert find_counterexamples(program, task, 1) == []


@pytest.mark.parametrize("name", ["access", "merge", "walkbst"])
def test_a_right_program_has_no_counterexample(name: str):
    assert find_counterexamples(load_program(f"{name}@searched"), get_task(name), 1) == []
