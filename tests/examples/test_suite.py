"""The suite of problems to judge training by: every task asks what it says, and no lazy answer is right."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, takewhile
from pathlib import Path
from random import Random

import pytest

import nram
from nram.extensions.task_checks import symbolic_problems
from nram.tasks import StepLimit, Task
from nram.tasks._symbolic import describes
from nram.tasks.example_files import read_examples

EXAMPLES = Path(nram.__file__).parent / "examples"
SUITE = EXAMPLES / "suite"
MAKER = EXAMPLES / "files" / "make_examples.py"
SOLVED = 30  # inputs compared with the symbolic form: a solver takes milliseconds for each

Memory = Sequence[int]


# ---- what each problem asks, written independently of its oracle: memory -> the value of each output cell


def array(memory: Memory, start: int) -> list[int]:
    """The values from this address up to the next 0."""
    return list(takewhile(bool, memory[start:]))


def cells_from(start: int, values: Iterable[int]) -> dict[int, int]:
    return dict(enumerate(values, start))


def linked_values(memory: Memory, node: int) -> list[int]:
    return [memory[node + 1], *linked_values(memory, memory[node])] if node else []


def chain_of(memory: Memory, cell: int) -> list[int]:
    return [cell, *chain_of(memory, memory[cell])] if cell else []


def first_position(memory: Memory) -> dict[int, int]:
    wanted, values = memory[0], array(memory, 1)
    return {0: next((i for i, value in enumerate(values, 1) if value == wanted), 0)}


def rotate(memory: Memory) -> dict[int, int]:
    values = array(memory, 0)
    return {i: values[(i + 1) % len(values)] for i in range(len(values))}


def differences(memory: Memory) -> dict[int, int]:
    values = array(memory, 0)
    return {i: value - values[i - 1] if i else value for i, value in enumerate(values)}


def exchange(memory: Memory) -> dict[int, int]:
    return cells_from(1, array(memory, memory[0])) | cells_from(memory[0], array(memory, 1))


def alternate(memory: Memory) -> dict[int, int]:
    start, out = memory[:2]
    return cells_from(out, chain.from_iterable(zip(array(memory, 2), array(memory, start), strict=True)))


def add_arrays(memory: Memory) -> dict[int, int]:
    return cells_from(1, map(sum, zip(array(memory, 1), array(memory, memory[0]), strict=True)))


def replace(memory: Memory) -> dict[int, int]:
    old, new = memory[:2]
    return cells_from(2, ({old: new}.get(value, value) for value in array(memory, 2)))


ASKED: dict[str, Callable[[Memory], dict[int, int]]] = {
    "minimum": lambda memory: {0: sorted(array(memory, 1))[0]},
    "first_position": first_position,
    "count_above": lambda memory: {0: len([value for value in array(memory, 1) if value > memory[0]])},
    "is_sorted": lambda memory: {0: int(array(memory, 1) == sorted(array(memory, 1)))},
    "clamp": lambda memory: cells_from(1, (sorted((value, memory[0]))[0] for value in array(memory, 1))),
    "replace": replace,
    "rotate": rotate,
    "differences": differences,
    "fill": lambda memory: cells_from(1, [*range(1, memory[0] + 1), 0]),
    "add_arrays": add_arrays,
    "exchange": exchange,
    "alternate": alternate,
    "chain_end": lambda memory: {1: chain_of(memory, memory[0])[-1]},
    "list_to_array": lambda memory: cells_from(1, linked_values(memory, memory[0])),
    "list_before_last": lambda memory: {1: linked_values(memory, memory[0])[-2]},
}


@pytest.fixture(params=ASKED)
def task(request: pytest.FixtureRequest) -> Task:
    return nram.get_task(SUITE / f"{request.param}.py")  # runs the checks of the fields and functions


def drawn(task: Task, count: int) -> list[nram.Instance]:
    """Instances of the five smallest sizes and the largest of training, with and without spare memory."""
    sizes = range(task.min_complexity, task.min_complexity + 5)
    return [
        instance
        for n in (*sizes, task.trained_up_to)
        for room in (0, 1, n)
        for instance in task.sample(n, count, seed=room, memory_size=task.least_memory(n) + room)
    ]


def agrees(task: Task, memory: list[int]) -> None:
    output, cells = task.oracle(memory)
    asked = ASKED[task.name](memory)
    assert {cell: output[cell] for cell in cells} == asked, memory
    assert output == [asked.get(cell, value) for cell, value in enumerate(memory)]


def test_the_tables_list_the_suite():
    files = {path.stem for path in SUITE.glob("*.py")}
    assert files == set(ASKED)
    row = r"^\| \[(\w+)\]\((\w+)\.py\) \| one pass[^|]* \| [^|]+ \| [^|]+ \|$"
    rows = re.findall(row, (SUITE / "README.md").read_text(), re.MULTILINE)
    assert [name for name, _ in rows] == [file for _, file in rows] == list(ASKED)


def test_no_problem_of_the_suite_is_another_example_or_a_built_in_task():
    others = {path.stem for folder in ("files", "tasks", "modules") for path in (EXAMPLES / folder).iterdir()}
    assert not set(ASKED) & (others | set(nram.task_names()))


def test_a_task_is_plain_python_with_the_limits_of_the_suite(task: Task):
    assert task.sample_traced is None
    assert 6 <= task.trained_up_to <= 10
    two_writes = task.name in ("exchange", "alternate")
    assert task.step_limit == StepLimit(4 if two_writes else 3, 8)


def test_the_oracle_gives_what_the_problem_asks(task: Task):
    for instance in drawn(task, 20):
        agrees(task, instance.input)


@pytest.mark.parametrize("name", [name for name in ASKED if not name.startswith("list_")])
def test_the_sampler_draws_every_legal_input_and_the_oracle_solves_all(name):
    task = nram.get_task(SUITE / f"{name}.py")
    n = task.min_complexity
    size = task.least_memory(n)
    rng = Random(0)
    assert task.legal_inputs is not None
    legal = {tuple(memory) for memory in task.legal_inputs(n, size)}
    assert {tuple(task.sample_input(rng, n, size)) for _ in range(2_000)} == legal
    for memory in chain(legal, task.legal_inputs(n + 1, task.least_memory(n + 1))):
        agrees(task, list(memory))


def test_the_symbolic_form_has_each_input_with_its_answer_and_no_other(task: Task):
    assert task.symbolic is not None
    assert not list(symbolic_problems(task, task.symbolic))
    n = task.min_complexity + 1
    size = task.least_memory(n) + 1
    (case,) = task.symbolic(n, size)
    for instance in task.sample(n, SOLVED, seed=1, memory_size=size):
        cell = instance.cells[-1]
        wrong = [*instance.output]
        wrong[cell] = (wrong[cell] + 1) % size
        assert describes(case, instance.input, instance.output, instance.cells)
        assert not describes(case, instance.input, wrong, instance.cells)


def test_lazy_answers_are_wrong(task: Task):
    """Neither the memory as it is nor one constant answer is right for most inputs of the same size."""
    n = task.trained_up_to
    instances = task.sample(n, 300, seed=2, memory_size=task.least_memory(n) + 3)
    unchanged = sum(instance.input == instance.output for instance in instances)
    answers = Counter(tuple(instance.output[cell] for cell in instance.cells) for instance in instances)
    assert unchanged < 200
    assert task.name == "fill" or answers.most_common(1)[0][1] < 200


def test_a_file_of_examples_can_be_made_of_every_task(tmp_path: Path, monkeypatch):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        files = [str(SUITE / f"{name}.py") for name in ASKED]
        monkeypatch.setattr(sys, "argv", [str(MAKER), str(tmp_path / folder), *files])
        runpy.run_path(str(MAKER), run_name="__main__")
    assert {path.name for path in (tmp_path / "first").iterdir()} == {f"{name}.jsonl" for name in ASKED}
    for name, asked in ASKED.items():
        path = tmp_path / "first" / f"{name}.jsonl"
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes(), "the same every time"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert 370 <= len(lines) <= 380
        assert all({cell: line["output"][cell] for cell in line["cells"]} == asked(line["input"]) for line in lines)
        examples = read_examples(path).examples
        assert len({len(example.instance.input) for example in examples}) >= 8
        assert len(examples) > 300 or name == "fill", "few lines occur twice"
