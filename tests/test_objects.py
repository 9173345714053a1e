"""Public objects in notebooks and in worker processes: short `repr`, HTML or SVG, pickles and copies."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import nram
from nram.display import Displayed
from nram.programs.ir import Operation, Output, Program, Register, Row
from nram.programs.text import from_text
from nram.training.evaluated import Evaluation

EXAMPLES = Path(nram.__file__).parent / "examples"
DOUBLED = [([x, *[0] * room], [2 * x, *[0] * room]) for room in range(4, 10) for x in range(1, room // 2 + 1)]
SCORE = {"error": 0.25, "exact": 0.5}
EVALUATED = {
    "run": "runs/access-0",
    "member": 0,
    "task": "access",
    "instances": 100,
    "far": 50,
    "perfect": {"soft": True, "hard": False, "far": False},
    "perfection": [{"mode": "hard", "max_complexity": 3, "limit": "T", **SCORE}],
    "curve": [{"max_complexity": 10, "soft": SCORE, "hard": SCORE}],
}
KINDS = ["Drawing", "Evaluation", "Files", "Instance", "Learned", "Module", "Outcome", "Program", "Report"]
KINDS += ["Result", "Run", "Sketch", "Task", "Tested", "Trace"]


@pytest.fixture(scope="module")
def objects(tmp_path_factory) -> dict[str, Displayed]:
    """One object of every public kind."""
    task, program = nram.get_task("access"), nram.load_program("access@searched")
    (instance,) = task.sample(5, 1, seed=1)
    learned = nram.learn(DOUBLED, tmp_path_factory.mktemp("learned") / "out", budget=60, workers=1)
    assert learned.found
    made = [
        task,
        program,
        nram.load_sketch("nram sketch 1\nregisters: r1\n\nalways:\n    ?\n"),
        instance,
        program.run(instance.input),
        nram.trace(program, instance),
        nram.verify(program, budget=1, largest=20, symbolic_up_to=0),
        nram.find_program("access", budget=120, workers=1),
        nram.get_module("ADD"),
        nram.test(program, task, count=5),
        learned,
        program.draw(),
        nram.compile_program(program, tmp_path_factory.mktemp("compiled") / "access.c"),
        Evaluation(EVALUATED),
        nram.Run(Path("runs/access-0"), {"task": "access", "seed": 0, "perfect_members": 2, "examined_members": 4}),
    ]
    return {type(one).__name__: one for one in made}


def test_every_class_that_shows_itself_is_among_the_objects(objects):
    def below(kind: type) -> set[str]:
        return {kind.__name__}.union(*map(below, kind.__subclasses__()))

    assert below(Displayed) - {"Displayed", "Fixed"} == set(objects) == set(KINDS)


def test_results_can_be_named_in_annotations(objects):
    for kind in {*KINDS} - {"Drawing", "Files"}:
        assert getattr(nram, kind) is type(objects[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_repr_is_one_short_line(objects, kind):
    shown = repr(objects[kind])
    assert shown.startswith(f"<{kind} ") and "\n" not in shown and len(shown) <= 120


def test_a_run_that_was_not_learned_says_how_good_its_best_member_is():
    result = {"perfect_members": 0, "examined_members": 0, "best_validation_exact_hard": 0.03125}
    assert repr(nram.Run(Path("runs/m"), result)) == "<Run runs/m: not learned, the best is right on 3.1%>"


def test_a_program_with_unusual_registers_names_them():
    program = from_text("nram program 1\nregisters: r2 r3\n\nalways:\n    halt\n")
    assert "2 registers, 1 row, 0 operations (registers r2, r3)" in repr(program)


def test_a_repr_is_short_whatever_an_object_holds():
    operations = [Operation("INC", (Output(i - 1) if i else Register(0),)) for i in range(200)]
    row = Row((None,), tuple(operations), (Output(199),), halt=True)
    long = Program(("r1",), ((row,),), name="x" * 500)
    large = replace(nram.get_task("copy").sample(50, 1, seed=0)[0], steps=10**9)
    batch = long.run(np.zeros((3, 500), int))
    for one in (long, large, long.run([0] * 10**4), batch, nram.trace(long, [0] * 500)):
        assert len(repr(one)) <= 120 and repr(one).isprintable()
        html = getattr(one, "_repr_html_", lambda: None)() or ""
        assert len(html) < 20_000 and "\x1b" not in html


class _Tags(HTMLParser):
    def __init__(self, html: str):
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"Module"}))
def test_a_notebook_shows_html_or_a_picture(objects, kind):
    one: Any = objects[kind]
    shown = one._repr_html_() if hasattr(one, "_repr_html_") else one._repr_svg_()
    tags = _Tags(shown)
    assert tags.open == [] and tags.text.strip()
    if "<svg" not in shown:
        assert "color" not in shown and "background" not in shown  # it takes those of the notebook, light or dark


def test_html_says_what_matters(objects):
    def words(kind: str) -> str:
        return _Tags(objects[kind]._repr_html_()).text

    assert "right under every limit" in words("Report") and "proven" in words("Report")
    assert "FOUND in" in words("Outcome") and "READ" in words("Outcome")
    assert "exact on every example" in words("Learned")
    assert "RIGHT on all 5" in words("Tested") and "access.h" in words("Files")
    assert "T(n) = 6" in words("Task") and "2 of 4" in words("Run")
    instance: Any = objects["Instance"]
    assert f"<b>{instance.output[0]}</b>" in instance._repr_html_()


def test_names_in_html_are_escaped(objects):
    task: Any = objects["Task"]
    hostile = replace(task, summary="<script>alert(1)</script> & more")
    assert "<script>" not in hostile._repr_html_() and "&lt;script&gt;" in hostile._repr_html_()


# ---- pickles and copies


def test_objects_come_back_the_same_from_a_worker_process(objects):
    task: Any = nram.get_task(EXAMPLES / "tasks" / "maximum.py")
    module: Any = nram.get_module(EXAMPLES / "modules" / "halve.py")
    operation = Operation(module.name, (Register(0),))
    uses = Program(("r1",), ((Row((None,), (operation,), (Output(0),), halt=True),),))
    assert uses.modules == (module,)
    sent = [*objects.values(), task, module, uses]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        back = pool.map(copy.copy, sent)
    assert [repr(one) for one in back] == [repr(one) for one in sent]
    assert back[-3] is task and back[-2] is module and back[-1] == uses
    for name in ("Program", "Instance", "Trace", "Report", "Result", "Run"):
        assert back[[*objects].index(name)] == objects[name]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickle_and_a_deep_copy_are_equal(objects, kind):
    one: Any = objects[kind]
    if kind in ("Task", "Module"):
        assert pickle.loads(pickle.dumps(one)) is one and copy.deepcopy(one) is one
    elif kind in ("Outcome", "Learned"):  # they hold arrays
        assert pickle.loads(pickle.dumps(one)).program == one.program == copy.deepcopy(one).program
    else:
        assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)


def test_a_program_is_pickled_without_its_machine_code():
    program = nram.load_program("merge@searched")
    before = pickle.dumps(program)
    program.run([4, 5, 6, 9, 9, 0, 0, 0, 0, 0])
    assert (program.fingerprint, pickle.dumps(program)) == (program.fingerprint, before)


def cells_for(n: int) -> int:
    return n + 3


def drawn(rng: Random, n: int, size: int) -> list[int]:
    return [rng.randrange(1, size) for _ in range(size)]


def second(memory: Sequence[int]) -> tuple[list[int], list[int]]:
    return [memory[1], *memory[1:]], [0]


def a_task(name: str) -> nram.Task:
    return replace(nram.get_task("copy"), name=name, oracle=lambda memory: (list(memory), [0]))


def test_a_registered_task_is_pickled_by_its_name_and_must_be_known_there(monkeypatch):
    from nram.tasks import TASKS

    task = nram.register_task(replace(a_task("kept"), legal_inputs=None, symbolic=None, sample_traced=None))
    content = pickle.dumps(task)
    assert pickle.loads(content) is task
    monkeypatch.delitem(TASKS, "kept")
    with pytest.raises(nram.UsageError, match="'kept' of a pickle is not known.*nram.register_task here"):
        pickle.loads(content)


def test_a_task_of_nowhere_is_pickled_if_its_functions_can_be():
    task = nram.Task(
        name="second",
        summary="The second number goes to the first cell.",
        layout="x, y, 0",
        step_limit=nram.StepLimit(0, 6),
        least_memory=cells_for,
        sample_input=drawn,
        oracle=second,
    )
    assert pickle.loads(pickle.dumps(task)) == task
    with pytest.raises(pickle.PicklingError, match="the task 'mine' cannot be pickled because of its least_memory"):
        pickle.dumps(a_task("mine"))
    mine = a_task("mine")
    assert copy.deepcopy(mine) is mine
