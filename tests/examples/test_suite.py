"""The suite of problems to judge search and training by: every task asks what it says, and no lazy answer is right."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, combinations, takewhile
from pathlib import Path
from random import Random

import pytest

import nram
from nram.extensions.task_checks import symbolic_problems
from nram.programs.files import read_program
from nram.tasks import Task
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


def partition(memory: Memory) -> dict[int, int]:
    limit, first, last = memory[:3]
    below = [value for value in array(memory, 3) if value < limit]
    others = [value for value in array(memory, 3) if value >= limit]
    return cells_from(first, below) | {last - i: value for i, value in enumerate(others)}


def is_subsequence(part: Sequence[int], whole: Sequence[int]) -> bool:
    if not part or not whole:
        return not part
    return is_subsequence(part[part[0] == whole[0] :], whole[1:])


def find_pair(memory: Memory) -> dict[int, int]:
    return {0: next((a for a, b in combinations(array(memory, 2), 2) if a + b == memory[0]), 0)}


def basement(memory: Memory) -> dict[int, int]:
    values = array(memory, 1)
    lengths = range(1, len(values) + 1)
    return {0: next((i for i in lengths if values[:i].count(2) > values[:i].count(1)), 0)}


def bubble_pass(memory: Memory) -> dict[int, int]:
    """The largest so far waits until a larger one comes or the array ends."""
    first, *others = array(memory, 0)
    moved = []
    for value in others:
        moved.append(min(first, value))
        first = max(first, value)
    return cells_from(0, [*moved, first])


def partition_in_place(memory: Memory) -> dict[int, int]:
    """As a queue: the elements that are not below the limit wait behind those that are."""
    done: list[int] = []
    waiting: list[int] = []
    for value in array(memory, 1):
        if value < memory[0]:
            done.append(value)
            waiting = waiting[1:] + waiting[:1]
        else:
            waiting.append(value)
    return cells_from(1, done + waiting)


def greatest_divisor(a: int, b: int) -> int:
    return max(d for d in range(1, a + 1) if a % d == 0 and b % d == 0)


def quotient_and_remainder(a: int, b: int) -> list[int]:
    quotient = len(range(b, a + 1, b))
    return [quotient, a - quotient * b]


def list_insert(memory: Memory) -> dict[int, int]:
    new = memory[1]
    nodes = chain_of(memory, memory[0])
    place = sum(memory[node + 1] < memory[new + 1] for node in nodes)
    nodes.insert(place, new)
    return dict(zip([0, *nodes], [*nodes, 0], strict=True))


def list_reverse(memory: Memory) -> dict[int, int]:
    nodes = chain_of(memory, memory[0])[::-1]
    return dict(zip([0, *nodes], [*nodes, 0], strict=True))


def tree_nodes(memory: Memory, node: int) -> list[int]:
    """In the order of their values."""
    left, right = memory[node + 1 : node + 3]
    return [*(tree_nodes(memory, left) if left else []), node, *(tree_nodes(memory, right) if right else [])]


def tree_insert(memory: Memory) -> dict[int, int]:
    """Between its neighbours: the node before has no right child, or the node after has no left child."""
    nodes, new = tree_nodes(memory, memory[0]), memory[1]
    assert [memory[node] for node in nodes] == sorted(memory[node] for node in nodes)
    smaller = [node for node in nodes if memory[node] < memory[new]]
    larger = nodes[len(smaller) :]
    asked = {cell: memory[cell] for node in nodes for cell in (node + 1, node + 2)}
    right_of_smaller = smaller and not memory[smaller[-1] + 2]
    return asked | ({smaller[-1] + 2: new} if right_of_smaller else {larger[0] + 1: new})


def maximum_subarray(memory: Memory) -> dict[int, int]:
    gains = [value - memory[0] for value in array(memory, 1)]
    places = range(len(gains) + 1)
    return {0: max(sum(gains[start:end]) for start in places for end in places)}


def runs_of(values: Sequence[int]) -> list[tuple[int, int]]:
    if not values:
        return []
    length = len(list(takewhile(lambda value: value == values[0], values)))
    return [(values[0], length), *runs_of(values[length:])]


def find_pattern(memory: Memory) -> dict[int, int]:
    pattern, text = ("".join(map(str, array(memory, start))) for start in (1, memory[0]))
    return {0: text.find(pattern) + memory[0] if pattern in text else 0}


def activity_selection(memory: Memory) -> dict[int, int]:
    """The longest chain of activities that follow each other, for every activity as the last."""
    times = array(memory, 1)
    activities = list(zip(times[::2], times[1::2], strict=True))
    chains: list[int] = []
    for i, (start, _) in enumerate(activities):
        chains.append(1 + max((chains[j] for j in range(i) if activities[j][1] <= start), default=0))
    return {0: max(chains)}


def distances_of(memory: Memory) -> dict[int, int]:
    """The number of nodes on the shortest way to each node; 0 if there is none. As Bellman and Ford do it."""
    nodes = range(2, 4 * memory[1] + 2, 4)
    known = {memory[0]: 1}
    for _ in nodes:
        for node in nodes:
            for other in memory[node + 2 : node + 4]:
                if node in known and other:
                    known[other] = min(known.get(other, known[node] + 1), known[node] + 1)
    return {node: known.get(node, 0) for node in nodes}


def depth_first(memory: Memory, node: int) -> list[int]:
    value, left, right = memory[node : node + 3]
    return [value, *depth_first(memory, left), *depth_first(memory, right)] if node else []


def matches(brackets: str, *pairs: str) -> int:
    """Take pairs away as long as there are any."""
    shorter = brackets
    for pair in pairs:
        shorter = shorter.replace(pair, "")
    return int(not shorter) if shorter == brackets else matches(shorter, *pairs)


def text_of(values: Sequence[int]) -> str:
    return "".join(map(str, values))


def next_greater(memory: Memory) -> dict[int, int]:
    values = array(memory, 2)
    return cells_from(2, (next((later for later in values[i:] if later > value), 0) for i, value in enumerate(values)))


def has_cycle(memory: Memory) -> dict[int, int]:
    """After as many hops as there are cells, only a circle goes on."""
    cell = 0
    for _ in memory:
        cell = memory[cell]
        if not cell:
            return {1: 0}
    return {1: 1}


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
    "palindrome": lambda memory: {
        0: int(all(a == b for a, b in zip(array(memory, 1), reversed(array(memory, 1)), strict=True)))
    },
    "reverse_in_place": lambda memory: {memory[0] + 1 - i: memory[i] for i in range(1, memory[0] + 1)},
    "partition": partition,
    "remove_value": lambda memory: cells_from(1, [*filter(lambda value: value != memory[0], array(memory, 1)), 0]),
    "unique": lambda memory: cells_from(0, [*(value for value, _ in runs_of(array(memory, 0))), 0]),
    "subsequence": lambda memory: {0: int(is_subsequence(array(memory, 1), array(memory, memory[0])))},
    "find_pair": find_pair,
    "basement": basement,
    "list_middle": lambda memory: {1: (lambda values: values[len(values) // 2])(linked_values(memory, memory[0]))},
    "bubble_pass": bubble_pass,
    "sort_two_values": lambda memory: cells_from(0, [1] * memory.count(1) + [2] * memory.count(2)),
    "insertion_sort": lambda memory: cells_from(1, sorted(array(memory, 1))),
    "sort_into": lambda memory: cells_from(memory[0], sorted(array(memory, 1))),
    "dutch_flag": lambda memory: cells_from(1, sorted(array(memory, 1))),
    "partition_in_place": partition_in_place,
    "binary_search": lambda memory: {1: sum(value < memory[0] for value in memory[4 : memory[3]])},
    "gcd": lambda memory: {0: greatest_divisor(*memory[:2])},
    "divide": lambda memory: cells_from(2, quotient_and_remainder(*memory[:2])),
    "list_insert": list_insert,
    "list_reverse": list_reverse,
    "tree_insert": tree_insert,
    "maximum_subarray": maximum_subarray,
    "longest_run": lambda memory: {0: max(length for _, length in runs_of(array(memory, 1)))},
    "run_lengths": lambda memory: cells_from(memory[0], [*chain(*runs_of(array(memory, 1))), 0]),
    "find_pattern": find_pattern,
    "activity_selection": activity_selection,
    "reachable": lambda memory: {node: min(distance, 1) for node, distance in distances_of(memory).items()},
    "distances": distances_of,
    "preorder": lambda memory: cells_from(2, depth_first(memory, memory[0])),
    "brackets": lambda memory: {0: matches(text_of(array(memory, 1)), "12")},
    "brackets_two_kinds": lambda memory: {0: matches(text_of(array(memory, 1)), "13", "24")},
    "next_greater": next_greater,
    "has_cycle": has_cycle,
}
TIERS = ("one pass", "two pointers and conditions", "data-dependent and nested loops", "graphs and stacks")
UNLISTED = {"list_to_array", "list_before_last", "list_middle", "list_insert", "list_reverse", "tree_insert"} | {
    "reachable",
    "distances",
    "preorder",
}
"""Those without legal_inputs: they have too many."""


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


def tables() -> dict[str, list[re.Match[str]]]:
    """The rows of the README's tables, by the headings above them."""
    row = r"^\| \[(?P<name>\w+)\]\((?P<file>\w+)\.py\) \| [^|]+ \| [^|]+ \| (?P<limit>[^|]+) \| (?P<program>[^|]+) \|$"
    parts = re.split(r"^## Tier \d: (.+)$", (SUITE / "README.md").read_text(), flags=re.MULTILINE)[1:]
    return {
        tier: list(re.finditer(row, part.partition("\n## ")[0], re.MULTILINE))
        for tier, part in zip(parts[::2], parts[1::2], strict=True)
    }


def test_the_tables_list_the_suite():
    files = {path.stem for path in SUITE.glob("*.py")}
    assert files == {path.stem for path in (SUITE / "programs").iterdir()} == set(ASKED)
    assert tuple(tables()) == TIERS
    rows = list(chain.from_iterable(tables().values()))
    assert [row["name"] for row in rows] == [row["file"] for row in rows] == list(ASKED)
    assert [len(of_tier) for of_tier in tables().values()] == [15, 11, 15, 7]


def test_a_written_program_solves_the_problem_within_the_limit(task: Task):
    name = task.name
    program = read_program(SUITE / "programs" / f"{name}.nram")
    assert (program.name, program.task, program.origin) == (name, name, "written")
    assert program.limit == task.step_limit
    tested = nram.test(program, task, count=100, complexity=30)
    assert tested.score.exact
    assert tested.score.halted == 100
    (row,) = (row for rows in tables().values() for row in rows if row["name"] == name)
    assert row["program"] == f"[{program.operations} + {program.rows}](programs/{name}.nram)"


def test_no_problem_of_the_suite_is_another_example_or_a_built_in_task():
    others = {path.stem for folder in ("files", "tasks", "modules") for path in (EXAMPLES / folder).iterdir()}
    assert not set(ASKED) & (others | set(nram.task_names()))


def test_a_task_is_plain_python_with_the_limit_of_the_table(task: Task):
    assert task.sample_traced is None
    assert 6 <= task.trained_up_to <= 10
    (row,) = (row for rows in tables().values() for row in rows if row["name"] == task.name)
    assert row["limit"] == str(task.step_limit)


def test_the_oracle_gives_what_the_problem_asks(task: Task):
    for instance in drawn(task, 20):
        agrees(task, instance.input)


@pytest.mark.parametrize("name", [name for name in ASKED if name not in UNLISTED])
def test_the_sampler_draws_every_legal_input_and_the_oracle_solves_all(name):
    task = nram.get_task(SUITE / f"{name}.py")
    n = task.min_complexity
    size = task.least_memory(n)
    rng = Random(0)
    assert task.legal_inputs is not None
    legal = {tuple(memory) for memory in task.legal_inputs(n, size)}
    drawn: set[tuple[int, ...]] = set()
    for _ in range(10):
        drawn |= {tuple(task.sample_input(rng, n, size)) for _ in range(2_000)}
        if drawn >= legal:
            break
    assert drawn == legal
    for memory in chain(legal, task.legal_inputs(n + 1, task.least_memory(n + 1))):
        agrees(task, list(memory))


def test_the_symbolic_form_has_each_input_with_its_answer_and_no_other(task: Task):
    if task.symbolic is None:
        assert list(ASKED).index(task.name) >= 15, "tier 1 has them all"
        return
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
