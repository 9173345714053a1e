"""The search's peers: each finds what is easy, and what they are told is true."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import nram
from nram import get_task
from nram.learning.kept import Question
from nram.programs.execute import execute
from nram.search.instances import exact, task_pool

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks" / "search"
EXAMPLES = Path(nram.__file__).parent / "examples"
CELL = {
    "clamp": lambda m, c: min(m[0], m[c]),
    "replace": lambda m, c: m[1] if m[c] == m[0] else m[c],
    "rotate": lambda m, c: m[c + 1] or m[0],
    "differences": lambda m, c: m[c] - m[c - 1] if c else m[c],
    "fill": lambda m, c: c if c <= m[0] else 0,
    "add_arrays": lambda m, c: m[c] + m[m[0] + c - 1],
    "exchange": lambda m, c: m[c + m[0] - 1] if c < m[0] else m[c + 1 - m[0]],
    "reverse_in_place": lambda m, c: m[m[0] - (c - 1)],
}
"""The output cells of the problems that need no loop, each from the memory before and its address."""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))


def test_the_loop_free_problems_have_an_expression_for_every_cell(scripts):
    sygus = import_module("sygus")
    assert set(sygus.LOOP_FREE) == CELL.keys()
    for name, cell in CELL.items():
        task = get_task(EXAMPLES / "suite" / f"{name}.py")
        for n in range(task.min_complexity, 12):
            for one in task.sample(n, 5, n, task.least_memory(n) + 1):
                assert [cell(one.input, c) for c in one.cells] == [one.output[c] for c in one.cells], name


def test_an_expression_of_cvc5_holds_in_memories_of_any_size(scripts):
    sygus = import_module("sygus")
    done = sygus.express(get_task("access"), 0, 60.0)
    assert done.expression is not None
    for n, size in ((1, 3), (5, 9), (40, 50)):
        for one in get_task("access").sample(n, 20, 0, size):
            assert done.expression(one.input, 0) == one.output[0]


@pytest.mark.slow  # compiling takes half a minute
def test_genetic_programming_runs_what_the_interpreter_runs(scripts):
    """The stack is only notation: the program of a genome does what the compiled table does."""
    genetic = import_module("genetic")
    pool = task_pool(get_task("access"), 0)
    machine = genetic.Machine(2)
    genomes = machine.new_genomes()
    genetic.start_random_numbers(3)
    genetic.fill(*genomes, machine.kinds, genetic.LONGEST)
    costs = np.zeros((genetic.POPULATION, 48))
    machine.run(genomes, pool, list(range(48)), costs, float("inf"))
    order = sorted(range(48), key=lambda i: pool.instances[i].steps)
    right = np.argsort(costs.sum(axis=1))[:20]  # the best are those that do something
    for index in right.tolist():
        program = machine.program(genomes, index)
        for place, i in enumerate(order):
            one = pool.instances[i]
            result = execute(program, [one.input], one.steps)
            wrong = not exact([one], result.memory)[0]
            assert costs[index, place] == wrong + 0.25 * (not result.halted[0])


@pytest.mark.slow
def test_every_method_finds_access_and_a_second_call_continues(tmp_path: Path):
    out = tmp_path / "peers.jsonl"
    words = ["--problems", "access", "--budget", "60", "--out", str(out)]
    command = [sys.executable, str(SCRIPTS / "peers.py"), *words]
    subprocess.run([*command, "--methods", "search,genetic,cvc5,random"], check=True)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["exact"] for line in lines] == [True] * 4
    subprocess.run([*command, "--methods", "search,cvc5"], check=True)
    assert len(out.read_text().splitlines()) == 4


def test_more_examples_include_those_of_fewer_and_the_oracle_answers_questions(scripts):
    """It skips an input that cannot occur: here the second element would be below the first."""
    examples = import_module("examples")
    task = get_task(EXAMPLES / "suite" / "differences.py")
    few, more = (examples.some_examples(task, number, 1) for number in (5, 40))
    assert few == more[:5] and len(more) == 40
    oracle = examples.Oracle(task)

    def ask(*memory: int):
        return oracle(Question(list(memory), 10, (), None, ()))

    assert ask(1, 3, 0, 0) == [1, 2, 0, 0]
    assert ask(3, 1, 0, 0) == "skip"
    assert (oracle.answered, oracle.skipped) == (1, 1)
