"""The names that `nram` exports: the whole way of a program, as a notebook goes it."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from support.program_cases import IDLING_MERGE

import nram
from nram.limits import wrong_cells
from nram.programs.ir import Operation, Output, Program, Register, Row
from nram.programs.text import from_text
from nram.training.run_folder import RunFolder
from nram.training.settings import load_config

EXAMPLES = Path(__file__).parents[1] / "src/nram/examples"
SVG = "{http://www.w3.org/2000/svg}"


# Three modules are enough for access, and a machine of them compiles in seconds.
SMALL = {
    "groups": [],
    "batch": 4,
    "validation": 8,
    "check_every": 20,
    "registers": 1,
    "hidden": 4,
    "modules": ["READ", "INC", "WRITE"],
    "stages": [{"max_complexity": 2, "steps": 20, "population": 2}],
}


def a_task(name: str) -> nram.Task:
    """The number in cell 1, doubled, goes to cell 0."""
    return nram.Task(
        name=name,
        summary="Twice a number.",
        layout="0, x, 0; 2x goes to cell 0",
        step_limit=nram.StepLimit(1, 4),
        least_memory=lambda n: 2 * n + 3,
        sample_input=lambda rng, n, M: [0, rng.randrange(1, (M + 1) // 2), *[0] * (M - 2)],
        oracle=lambda memory: ([2 * memory[1], *memory[1:]], [0]),
    )


@pytest.fixture(scope="module")
def found() -> Program:
    outcome = nram.find_program("access", budget=120, workers=1)
    assert outcome.program is not None
    return outcome.program


# ---- the names


def test_importing_nram_imports_neither_jax_nor_numpy():
    code = "import sys, nram; sys.exit(any(name in sys.modules for name in ('jax', 'numpy', 'numba', 'nram.tasks')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_verifying_tracing_and_calling_a_program_leave_jax_alone():
    code = """
import sys, nram
program = nram.load_program("access@searched")
report = nram.verify(program, budget=1, largest=50)
assert report.right and nram.trace(program, [1, 2, 2])._repr_svg_() and program.run([0, 2, 2]).halted
sys.exit('jax' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_name_is_there_listed_and_explained():
    assert dir(nram) == sorted(nram.__all__)
    tree = ast.parse(Path(nram.__file__).read_text())
    (typed,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = {
        (node.module, name.name) for node in typed.body if isinstance(node, ast.ImportFrom) for name in node.names
    }
    assert imports == {(home, name) for name, home in nram._home_of.items()}  # what type checkers see
    for name in nram.__all__:
        value = getattr(nram, name)
        assert name == "__version__" or inspect.getdoc(value)
    with pytest.raises(AttributeError, match="no attribute 'find_programme'"):
        nram.find_programme  # noqa: B018


# ---- search


def test_a_searched_program_has_its_card_and_is_right(found):
    assert (found.name, found.task, found.origin) == ("access", "access", "searched")
    assert found.limit == nram.get_task("access").step_limit
    assert dict(found.made)["seed"] == "0"
    report = nram.verify(found, budget=2, largest=200)
    assert report.verdict == "right under every limit"


def test_a_task_made_in_a_notebook_and_a_module_made_there_are_searched_with():
    module = nram.register_module(
        nram.Module(
            name="TWICE-API",
            arguments=("x",),
            integer=lambda M, x: 2 * x % M,
            emit=lambda b, x: b.multiply(x, b.number(2)),
        )
    )
    outcome = nram.find_program(a_task("twice"), registers=1, modules=["READ", module, "WRITE"], workers=1)
    assert outcome.program is not None and outcome.structure is not None and outcome.structure.registers == 1
    assert [module.name for module in outcome.program.modules] == ["READ", "TWICE-API", "WRITE"]
    assert outcome.program.run([0, 3, 0, 0, 0, 0, 0]).memory[0] == 6


def test_a_module_is_not_replaced_by_another_of_its_name():
    stranger = nram.Module(name="INC", arguments=("x",), integer=lambda M, x: (x + 2) % M)
    for unknown in (stranger, replace(stranger, name="UNHEARD-OF")):
        with pytest.raises(nram.UsageError, match=r"nram\.register_module"):
            nram.find_program("access", modules=["READ", unknown, "WRITE"])


@pytest.mark.parametrize("name", ["registers", "repeats", "states", "workers"])
def test_none_of_something_is_refused_in_a_search(name):
    nothing: dict[str, Any] = {name: 0}
    with pytest.raises(nram.UsageError, match=f"{name} is 0"):
        nram.find_program("access", budget=1, **nothing)


def test_a_search_without_time_is_refused():
    with pytest.raises(nram.UsageError, match="budget is -3, which leaves no time"):
        nram.find_program("access", budget=-3)


def test_modules_that_are_constants_alone_are_refused():
    with pytest.raises(nram.UsageError, match="constants alone"):
        nram.find_program("access", modules=["ZERO", "ONE"])


# ---- examples


def test_pairs_become_a_program_a_report_and_a_file(tmp_path: Path):
    pairs = DOUBLED
    learned = nram.learn(pairs, tmp_path / "out", budget=60, workers=1)
    assert learned.found and learned.program is not None
    assert learned.program.run([30, *[0] * 70]).memory[0] == 60
    assert "FOUND, searched" in str(learned) and "Nothing beyond these examples is proven" in str(learned)
    lines = (tmp_path / "out" / "examples.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"input": [1, 0, 0, 0, 0], "output": [2, 0, 0, 0, 0]}
    with pytest.raises(nram.UsageError, match="holds other examples, from which program.json was made: choose another"):
        nram.learn(pairs[1:], tmp_path / "out")
    again = nram.learn(pairs, tmp_path / "out", resume=True)  # finished: nothing is searched again
    assert again.found and again.search is None


api: Any = nram  # for calls that a type checker refuses


def test_examples_that_are_corrected_can_be_learned_in_the_same_folder(tmp_path: Path):
    with pytest.raises(nram.UsageError, match="what is given cannot be used:\n  - example 2: 'output' is"):
        api.learn([DOUBLED[0], ([1, 0, 0], ["x"])], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(nram.UsageError, match="too few"):
        nram.learn(DOUBLED[:2], tmp_path / "out")
    assert nram.learn(DOUBLED, tmp_path / "out", budget=60, workers=1, alternatives=0).found
    with pytest.raises(nram.UsageError, match="what is given cannot be used:\n  - example 1: 'output' is"):
        api.test("copy", [([1, 0, 0], ["x"])])


WRONG_ARGUMENTS: dict[str, tuple[Any, str]] = {
    "method": (lambda: api.learn("no-file", method="x"), "method is 'x': give search, train or both"),
    "alternatives": (lambda: api.learn("no-file", alternatives=-1), "alternatives is -1: give a whole number, 0 or"),
    "learn's budget": (lambda: api.learn("no-file", budget="x"), "budget is 'x', which leaves no time"),
    "count": (lambda: api.test("copy", "copy", count=0), "count is 0: give a whole number, 1 or more"),
    "seed": (lambda: api.find_program("swap", seed="x"), "seed is 'x': give a whole number, 0 or more"),
    "workers": (lambda: api.find_program("swap", workers=1.5), "workers is 1.5: give a whole number, 1 or more"),
    "a program": (lambda: api.trace(3, [1, 2, 3]), "3 is no program: give a Program, a name or a file"),
    "verify's budget": (lambda: api.verify("swap", budget=0), "budget is 0, which leaves no time"),
}


@pytest.mark.parametrize("case", WRONG_ARGUMENTS)
def test_arguments_are_checked_at_once(case):
    call, said = WRONG_ARGUMENTS[case]
    with pytest.raises(nram.UsageError, match=said):
        call()


def test_programs_are_given_by_name_too(tmp_path: Path):
    instance = nram.get_task("copy").sample(5, 1, seed=0)[0]
    copy = nram.load_program("copy")
    assert str(nram.trace("copy", instance)) == str(nram.trace(copy, instance))
    copy.save(tmp_path / "copy.nram")
    assert nram.trace(tmp_path / "copy.nram", instance).program.states == copy.states
    assert nram.verify("copy", symbolic_up_to=0, largest=0, exhaustive_up_to=2).findings
    assert nram.compile_program("copy", tmp_path / "copy.c").out.exists()


def test_a_report_of_failure_names_arguments(tmp_path: Path):
    odd = [([x, 1, *[0] * room], [x * x * 7 % room, 1, *[0] * room]) for room in range(5, 9) for x in range(2, 5)]
    learned = nram.learn(odd, tmp_path, budget=1, workers=1, method="search", steps="2n+20")
    assert not learned.found and str(learned.job.steps) == "2n+20"
    advice = str(learned)
    assert f"nram.learn('{tmp_path}/examples.jsonl', out='{tmp_path}', seed=0, budget=2, " in advice
    assert "method='search', steps='2n+20', resume=True)" in advice
    assert not re.search(r" --\w", advice)
    with pytest.raises(nram.UsageError, match="steps is 'many': write it like '3n"):
        nram.learn(odd, tmp_path / "other", steps="many")


def test_instances_and_objects_are_examples_too(tmp_path: Path):
    task = nram.get_task("access")
    instances = [one for n in (1, 2, 3) for one in task.sample(n, 3, seed=n)]
    broken = {"input": [1, 2, 3, 4], "output": [9, 2, 3, 4]}
    with pytest.raises(nram.UsageError, match="example 10") as refusal:
        nram.learn([*instances, broken], tmp_path)
    assert "output" in str(refusal.value)
    with pytest.raises(nram.UsageError, match="leaves no time"):
        nram.learn(instances, tmp_path, budget=0)


def test_arrays_are_examples_too(tmp_path: Path):
    before, after = np.array([1, 2, 0]), np.array([2, 2, 0])
    same = {"input": before, "output": list(after), "steps": np.int64(9), "cells": range(1)}
    wrong = (np.array([1, 2, 3]), np.array([1, 2, 0]))
    with pytest.raises(nram.UsageError, match="example 3: input has values outside"):
        nram.learn([(before, after), same, wrong], tmp_path)
    with pytest.raises(nram.UsageError, match="too few"):  # by then they are written
        nram.learn([(before, after), same], tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "examples.jsonl").read_text().splitlines()]
    plain = {"input": [1, 2, 0], "output": [2, 2, 0]}
    assert lines[:2] == [plain, {**plain, "steps": 9, "cells": [0]}]


@pytest.mark.parametrize("broken", [([1, 2, 0],), 5, ([1, 2, 0], [object(), 2, 0])])
def test_what_is_no_example_is_refused_by_its_number(broken, tmp_path: Path):
    with pytest.raises(nram.UsageError, match="example 2 cannot be used"):
        nram.learn([([1, 2, 0], [2, 2, 0]), broken], tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---- training


def test_a_run_is_trained_extracted_and_found_finished(tmp_path: Path):
    reports = []
    run = nram.train("access", tmp_path / "run", seed=3, settings=SMALL, device="cpu", on_report=reports.append)
    assert reports[-1].step == 20 and run.result["seed"] == 3 and run.perfect <= run.result["examined_members"]
    program = nram.extract(run)
    loaded = nram.load_run(tmp_path / "run")
    assert loaded == run and loaded.finished and loaded.program() == program and loaded.members == [0, 1]
    assert loaded.settings["machine.registers"] == 1 and loaded.settings["seed"] == 3
    assert (program.task, program.origin) == ("access", "trained")
    assert dict(program.made)["command"].startswith("nram train access --seed 3 --set 'groups=[]' --set batch=4")
    assert nram.extract(tmp_path / "run", form="raw").rows >= program.rows
    ways: list[dict[str, Any]] = [{"seed": 3, "settings": SMALL}, {"seed": 3}, {}]
    for same in ways:
        assert nram.train("access", tmp_path / "run", resume=True, **same).result == run.result
    with pytest.raises(nram.UsageError, match="another configuration"):
        nram.train("access", tmp_path / "run", seed=4, settings=SMALL, resume=True)
    with pytest.raises(nram.UsageError, match="seed: 3 in the run, 4 asked for"):
        nram.train("access", tmp_path / "run", seed=4, resume=True)
    with pytest.raises(nram.UsageError, match="a run of the task 'access'"):
        nram.train("copy", tmp_path / "run", resume=True)
    with pytest.raises(nram.UsageError, match="holds a run already"):
        nram.train("access", tmp_path / "run", seed=3, settings=SMALL)


def test_metrics_are_columns_of_equal_length(tmp_path: Path):
    folder = RunFolder.create(tmp_path / "run", load_config("access", seed=0), [], "a device")
    row = {"stage": 0, "step": 20, "max_complexity": 2, "seconds": 1.5, "median_error": 0.5, "best_error": 0.25}
    folder.append_metrics({**row, "levels": {"1": 4}, "loss": None})
    folder.append_metrics({**row, "levels": {"1": 3, "2": 1}, "loss": 0.125, "step": 40})
    run = nram.load_run(folder.path)
    assert not run.finished and run.perfect == 0 and "not finished" in repr(run)
    metrics = run.metrics()
    assert {name: column.tolist() for name, column in metrics.items() if name not in row} == {
        "loss": [pytest.approx(float("nan"), nan_ok=True), 0.125],
        "levels.1": [4, 3],
        "levels.2": [0, 1],
    }
    assert metrics["step"].tolist() == [20, 40] and metrics["step"].dtype == np.int64
    assert RunFolder.create(tmp_path / "new", load_config("access", seed=0), [], "a device").path.is_dir()
    assert nram.load_run(tmp_path / "new").metrics() == {}


def test_a_run_of_another_folder_is_refused(tmp_path: Path):
    with pytest.raises(nram.UsageError, match=r"is not a run: it has no run.json; nram.train\('TASK', out="):
        nram.load_run(tmp_path)
    with pytest.raises(nram.UsageError, match="count is 0"):
        nram.evaluate(tmp_path, count=0)


def test_going_on_elsewhere_warns_and_nothing_changes_the_default_device_of_jax(tmp_path: Path):
    own = jax.devices("cpu")[1]
    small = {**SMALL, "hidden": np.int64(4)}
    with jax.default_device(own):
        run = nram.train("access", tmp_path / "run", settings=small, device="cpu")
        assert jax.numpy.zeros(1).devices() == {own}
    assert jax.config.values["jax_default_device"] is None
    record = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps({**record, "device": "an abacus"}))
    (run.path / "result.json").unlink()
    with pytest.warns(UserWarning, match="device was an abacus, is .*may differ"):
        again = nram.train("access", run.path, seed=0, device="cpu", resume=True)
    assert again.perfect == run.perfect
    with jax.default_device(own):
        nram.extract(run)
        assert jax.numpy.zeros(1).devices() == {own}


@pytest.mark.parametrize("progress", [True, False, "auto"])
def test_progress_is_shown_if_asked_for_and_not_in_a_pipe(tmp_path: Path, capsys, progress):
    folder = RunFolder.create(tmp_path / "run", load_config("access", seed=0), [], "a device")
    scores = {"perfect_members": 1, "examined_members": 1, "best_validation_exact_hard": 1.0, "seconds": 1.0}
    folder.write_result(scores)
    nram.train("access", tmp_path / "run", seed=0, resume=True, progress=progress)
    assert ("is finished already" in capsys.readouterr().err) == (progress is True)


def test_a_setting_that_is_no_setting_is_refused_by_its_key(tmp_path: Path):
    with pytest.raises(nram.UsageError, match="the setting 'hidden' is <object"):
        nram.train("access", tmp_path / "run", settings={"hidden": object()})


def test_a_task_that_a_run_would_not_find_again_is_refused(tmp_path: Path):
    with pytest.raises(nram.UsageError, match="nram.register_task"):
        nram.train(a_task("unheard-of"), tmp_path / "run")
    impostor = replace(nram.get_task("copy"), summary="Something else.")
    with pytest.raises(nram.UsageError, match="nram.register_task"):
        nram.train(impostor, tmp_path / "run")
    assert not (tmp_path / "run").exists()


# ---- pictures


def words_of(picture: str | None) -> list[str]:
    assert picture is not None
    return [element.text or "" for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_a_program_shows_its_circuits(found):
    words = words_of(found._repr_svg_())
    assert "READ" in words and "WRITE" in words and "access" in words


def test_a_program_is_drawn_for_a_notebook_and_into_files(found, tmp_path: Path):
    drawing = found.draw(tmp_path / "access.svg")
    assert (tmp_path / "access.svg").read_text() == str(drawing) == drawing._repr_svg_() == found._repr_svg_()
    assert "READ" in words_of(str(found.draw(row=(0, 0)))) and len(str(found.draw(row=(0, 0)))) < len(str(drawing))
    with pytest.raises(nram.UsageError, match="unknown suffix"):
        found.draw(tmp_path / "access.xyz")


def test_a_program_is_simplified_as_the_command_does():
    wasteful = from_text(
        "nram program 1\nregisters: r\n\nalways:\n    a = INC(r)\n    b = INC(r)\n    WRITE(a, b)\n    halt"
    )
    shorter = wasteful.simplify()
    assert shorter.operations < wasteful.operations and dict(shorter.made)["simplified"].endswith("on every memory")
    copy = nram.load_program("copy@trained")
    assert copy.simplify("copy").rows <= copy.rows
    with pytest.raises(nram.UsageError, match="'keep_registers' and 'task' exclude each other"):
        copy.simplify("copy", keep_registers=True)


def test_a_program_too_large_for_a_picture_shows_none():
    operations = [Operation("INC", (Output(i - 1) if i else Register(0),)) for i in range(200)]
    program = Program(("r1",), ((Row((None,), tuple(operations), (Output(199),), halt=True),),))
    assert program._repr_svg_() is None and "INC" in str(program)


def test_a_trace_shows_every_step_and_the_verdict(found):
    (instance,) = nram.get_task("access").sample(4, 1, seed=1, memory_size=9)
    trace = nram.trace(found, instance)
    words = words_of(trace._repr_svg_())
    for step in trace.steps:
        assert step.reads_in_words in words and step.writes_in_words in ("", *words)
    assert "right: the output cell is as expected" in words and "end" in words
    for value in instance.input:
        assert words.count(str(value)) >= 1
    assert "right: the output cell is as expected" in str(trace)


def test_a_trace_tells_what_is_wrong_and_what_is_left_out():
    program = nram.load_program("copy")
    (instance,) = nram.get_task("copy").sample(60, 1, seed=0, memory_size=200)
    words = words_of(nram.trace(program, instance)._repr_svg_())
    assert any(word.startswith("left out: ") and "cells" in word and "steps" in word for word in words)
    wrong = replace(instance, output=[0] * 200)
    assert any(word.startswith("WRONG in 60 of 60") for word in words_of(nram.trace(program, wrong)._repr_svg_()))
    with pytest.raises(nram.UsageError, match="an instance has its memory"):
        nram.trace(program, instance, memory_size=300)


def test_a_trace_of_an_instance_ends_at_the_limit_of_the_instance(found):
    (instance,) = nram.get_task("access").sample(4, 1, seed=1, memory_size=9)
    idle = nram.trace(ENDLESS, instance)
    assert len(idle.steps) == instance.steps and not idle.ending.halted
    assert len(nram.trace(found, instance).steps) < instance.steps  # it halts before
    assert "right: " in str(nram.trace(found, instance))
    assert "WRONG in 1 of 1" in str(nram.trace(found, replace(instance, steps=1)))
    assert len(nram.trace(ENDLESS, instance, max_steps=20).steps) == 20


def test_no_name_breaks_a_picture(found):
    hostile = replace(found, name="</title><script>alert(1)</script> & more")
    for picture in (hostile._repr_svg_(), nram.trace(hostile, [1, 2, 2])._repr_svg_()):
        assert picture is not None and "<script>" not in picture
        ElementTree.fromstring(picture)


# ---- machine code


def test_a_program_is_written_for_c(found, tmp_path: Path):
    files = nram.compile_program(found, tmp_path / "access.c", name="read_at")
    assert (
        files.form == "c"
        and "read_at(" in files.out.read_text()
        and files.header is not None
        and files.header.is_file()
    )


def test_an_instance_is_run_to_its_limit():
    program = nram.load_program(IDLING_MERGE)
    for instance in nram.get_task("merge").sample(6, 3, seed=0):
        result = program.run(instance)
        assert (result.steps, result.halted) == (instance.steps, False) and not wrong_cells(result.memory, instance)
        assert program.run(instance, max_steps=40).steps == 40
        assert program.run(instance.input).steps == 64 * len(instance.input) + 1024


def test_the_native_call_agrees_with_the_oracle(found):
    task, rng = nram.get_task("access"), Random(2)
    for n in (1, 7, 1000):
        (instance,) = task.sample(n, 1, seed=rng.randrange(1000))
        assert found.run(instance.input).memory[0] == instance.output[0]


# ---- messages

PROGRAM = nram.load_program("copy@searched")
ENDLESS = Program(("r1",), ((Row((None,), (), (Register(0),)),),))
DOUBLED = [([x, *[0] * room], [2 * x, *[0] * room]) for room in range(4, 10) for x in range(1, room // 2 + 1)]
MISTAKES: dict[str, Callable[[Path], Any]] = {
    "a run that exists": lambda folder: nram.train("access", folder, seed=1),
    "a folder below a file": lambda folder: nram.train("access", folder / "run.json" / "new"),
    "a run without members": lambda folder: nram.extract(folder),
    "a run as a program": lambda folder: nram.load_program(folder),
    "a setting that does not exist": lambda folder: nram.train("access", settings={"heads": 3}),
    "results that exist": lambda folder: nram.learn(DOUBLED, folder / "learned"),
    "a memory too small": lambda folder: PROGRAM.run([1]),
    "values too large": lambda folder: PROGRAM.run([1, 2, 9]),
    "a trace without end": lambda folder: nram.trace(ENDLESS, [0, 0, 0], 10**9),
    "a program without a task": lambda folder: nram.verify(replace(PROGRAM, task=None)),
    "a program of an unknown task": lambda folder: nram.verify(replace(PROGRAM, task="unheard-of")),
    "an unknown suffix": lambda folder: nram.compile_program(PROGRAM, folder / "copy.xyz"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    """A folder with a run that has only begun, and with a report of something learned."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "learned").mkdir()
    (folder / "learned" / "report.json").write_text("{}")
    RunFolder.create(folder / "run", load_config("access", seed=0), [], "a device")
    for file in (folder / "run").iterdir():
        file.rename(folder / file.name)
    return folder


@pytest.mark.parametrize("mistake", MISTAKES)
def test_messages_in_python_name_arguments_and_not_options(mistake, begun):
    with pytest.raises(nram.NramError) as refusal:
        MISTAKES[mistake](begun)
    outside_commands = re.sub(r"'nram [^']*'", "", str(refusal.value))
    assert not re.search(r"--\w", outside_commands), str(refusal.value)


def test_a_search_and_learning_show_progress_where_it_is_asked_for(tmp_path: Path, capsys):
    nram.find_program("access", budget=60, workers=1)
    nram.learn(DOUBLED, tmp_path / "quiet", budget=60, workers=1)
    assert capsys.readouterr() == ("", "")  # standard error is no terminal here
    nram.learn(DOUBLED, tmp_path / "shown", budget=60, workers=1, progress=True)
    assert "looking for others, to compare them" in capsys.readouterr().err
