"""Tasks from outside the package: files by their path, entry points, and what is said of those that are wrong."""

from __future__ import annotations

import dataclasses
import json
import py_compile
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from nram.cli import main
from nram.errors import UsageError
from nram.extensions import get_task, register_task, task_names
from nram.extensions import task_checks as checks
from nram.extensions.loading import find_entry_points
from nram.extensions.tasks import REGISTRY
from nram.programs.library import load_program
from nram.tasks import BUILT_IN, Task

EXAMPLE = Path(__file__).parents[2] / "src/nram/examples" / "tasks" / "maximum.py"
TEXT = EXAMPLE.read_text()

SAMPLER = "    return [0, *values] + [0] * (memory_size - n - 1)\n\n\ndef oracle"
ORACLE = "    return [max(memory), *memory[1:]], [0]\n"
ORACLE_LINE = TEXT[: TEXT.index(ORACLE)].count("\n") + 1

# A solution of the task, and one that looks at the first value alone.
RIGHT = """\
nram program 1
name: maximum
task: maximum
origin: written
registers: r1 r2 r3

when r2 = 0:
    r1, r2, r3 := 1, 1, 1
when r3 > 0:
    o1 = MAX(r2, r3)
    o2 = READ(r1)
    WRITE(0, o1)
    o4 = INC(r1)
    r1, r2, r3 := o4, o1, o2
otherwise:
    halt
"""
WRONG = """\
nram program 1
name: first
task: maximum
origin: written
registers: r1

otherwise:
    o1 = READ(1)
    WRITE(0, o1)
    halt
"""


@pytest.fixture
def file(tmp_path):
    """A file with this text, at a path of its own."""

    def write(text: str, name: str = "my_task.py") -> Path:
        path = tmp_path / name
        path.write_text(dedent(text))
        return path

    return write


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as error:
        get_task(path)
    return str(error.value)


# ---- a file as a task


def test_a_file_is_a_task_by_its_path(file):
    path = file(TEXT)
    task = get_task(str(path))
    (instance,) = task.sample(4, 1, seed=3, memory_size=9)
    assert len(instance.input) == 9
    assert instance.output == [max(instance.input), *instance.input[1:]]
    assert (instance.cells, instance.scored, instance.steps) == ([0], [0], 14)
    assert get_task(path) is task
    assert "maximum" not in task_names()


def test_a_file_may_import_what_lies_beside_it_and_prints_nowhere_else(file, capsys):
    file("LARGEST = max\n", "helper_of_a_task.py")
    text = TEXT.replace("max(memory)", "helper_of_a_task.LARGEST(memory)")
    path = file(f"import helper_of_a_task\nprint('loading')\n{text}")
    (instance,) = get_task(path).sample(4, 1, seed=3)
    assert instance.output[0] == max(instance.input)
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == "loading\n"


def test_what_lies_beside_a_file_is_found_late_and_by_its_helpers_too(file, tmp_path):
    file("from second_helper import LARGEST\n", "first_helper.py")
    file("import helping_package.part\nLARGEST = helping_package.part.LARGEST\n", "second_helper.py")
    (tmp_path / "helping_package").mkdir()
    file("from third_helper import LARGEST\n", "helping_package/part.py")
    file("LARGEST = max\n", "third_helper.py")
    find = "__import__('importlib').import_module('first_helper')"
    (instance,) = get_task(file(TEXT.replace("max(memory)", f"{find}.LARGEST(memory)"))).sample(4, 1, seed=3)
    assert instance.output[0] == max(instance.input)


def test_what_lies_beside_a_file_is_hidden_from_all_that_is_not_there(file, tmp_path):
    before = list(sys.path)
    file("", "optional_part_of_a_library.py")
    (tmp_path / "planted-1.0.dist-info").mkdir()
    (tmp_path / "planted-1.0.dist-info" / "entry_points.txt").write_text("[nram.tasks]\nplanted = planted:TASK\n")
    get_task(file(TEXT))
    assert sys.path == before and "planted" not in find_entry_points("nram.tasks")
    with pytest.raises(ModuleNotFoundError):
        import_module("optional_part_of_a_library")


def test_compiled_code_beside_a_file_does_not_replace_its_source(file):
    other = file("LARGEST = min\n", "planted_helper.py")
    py_compile.compile(str(other), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    file("LARGEST = max\n", "planted_helper.py")
    text = TEXT.replace("max(memory)", "planted_helper.LARGEST(memory)")
    (instance,) = get_task(file(f"import planted_helper\n{text}")).sample(4, 1, seed=3)
    assert instance.output[0] == max(instance.input)


def test_loading_and_sampling_leave_jax_alone():
    code = f"import sys, nram; nram.get_task({str(EXAMPLE)!r}).sample(3, 2, seed=0); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- what is wrong with a file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_module\n", ", line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1\ny = x +\n", ", line 2: SyntaxError: invalid syntax"),
        ("def f():\n    return 1 / 0\n\nf()\n", ", line 2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit('stop')\n", ", line 2: SystemExit: stop"),
        ("x = 1\n", " defines no TASK: end it with TASK = Task("),
        ("TASK = 'maximum'\n", " is a str: make it a nram.tasks.Task"),
        ("from nram.tasks import Task\nTASK = Task(name='a')\n", ", line 2: TypeError: "),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told_in_one_line_with_its_place(file, text, said):
    path = file(text)
    message = refusal(path)
    assert str(path) in message and said in message
    assert "\n" not in message


@pytest.mark.parametrize(("name", "said"), [("missing.py", "there is no file"), ("x.txt", "ends with .py")])
def test_a_path_without_a_python_file_is_refused(file, name, said):
    if name != "missing.py":
        file(TEXT, name)
    assert said in refusal(file(TEXT).with_name(name))
    assert "is a folder" in refusal(file(TEXT).parent)


def test_the_name_of_a_built_in_task_is_refused(file):
    message = refusal(file(TEXT.replace('name="maximum"', 'name="copy"')))
    assert "there is already a task 'copy'" in message and "another name" in message


def test_a_name_without_its_ending_is_answered_with_the_file(file, monkeypatch):
    monkeypatch.chdir(file(TEXT).parent)
    with pytest.raises(UsageError, match="did you mean my_task.py"):
        get_task("my_task")


FIELDS = [
    ('name="maximum"', 'name="my maximum"', "name is 'my maximum': use one word"),
    ('summary="Given an array, return its largest value."', 'summary=""', "summary is ''"),
    ("step_limit=StepLimit(2, 6)", "step_limit=lambda n: 2 * n", "write StepLimit(2, 6)"),
    ("step_limit=StepLimit(2, 6)", "step_limit=StepLimit(-1, 6)", "whole numbers from 0 up"),
    ("step_limit=StepLimit(2, 6)", "step_limit=StepLimit(2, 6), min_complexity=0", "min_complexity is 0"),
    ("step_limit=StepLimit(2, 6)", "step_limit=StepLimit(2, 6), trained_up_to=0", "trained_up_to is 0"),
    ("oracle=oracle", "oracle=3", "oracle is 3: make it a function"),
    ("step_limit=StepLimit(2, 6)", "step_limit=StepLimit(None, 6)", "whole numbers from 0 up"),
    ("step_limit=StepLimit(2, 6)", "step_limit=StepLimit(2, 10**5000)", "whole numbers from 0 up"),
    ("step_limit=StepLimit(2, 6)", "step_limit=StepLimit(2, 6), min_complexity=10**5000", "type int that cannot"),
    (
        "step_limit=StepLimit(2, 6)",
        "step_limit=StepLimit(2, 6), trained_up_to=10**12",
        "trained_up_to is 1000000000000",
    ),
]


@pytest.mark.parametrize(("before", "after", "said"), FIELDS)
def test_a_part_that_cannot_be_meant_is_named_with_its_cure(file, before, after, said):
    assert TEXT.count(before) == 1
    assert said in refusal(file(TEXT.replace(before, after)))


def test_all_wrong_parts_are_named_at_once(file):
    chosen = [FIELDS[0], FIELDS[2], FIELDS[6]]
    text = TEXT
    for before, after, _ in chosen:
        text = text.replace(before, after)
    message = refusal(file(text))
    assert all(said in message for _, _, said in chosen)
    assert message.count("\n  - ") == 3


BEHAVIOUR = [
    ("lambda n: n + 2", "lambda n: n + 2.0", "least_memory(1) is 3.0: make it a whole number"),
    ("lambda n: n + 2", "lambda n: n + 1", "at least 3 cells"),
    ("lambda n: n + 2", "lambda n: 60 - n if n < 50 else n", "it must not fall as n grows"),
    ("lambda n: n + 2", "lambda n: 60", "it must grow with n"),
    ("lambda n: n + 2", "lambda n: 10**6 * n", "least_memory(41) is 41000000: a memory of this complexity has at most"),
    ("lambda n: n + 2", "lambda n: __import__('sys').exit(3)", "least_memory(1) fails: SystemExit: 3"),
    (SAMPLER, SAMPLER.replace("[0, *", "[10**5000, *"), "type int that cannot be printed in cell 0"),
    (ORACLE, ORACLE.replace("return", "raise SystemExit(4)\n    return"), "fails: SystemExit: 4"),
    ("lambda n: n + 2", "lambda n: n + 2 + 0 // (n - 3)", "least_memory(3) fails: ZeroDivisionError"),
    (SAMPLER, "    return tuple(values)\n\n\ndef oracle", "sample_input(rng, 1, 3) gives a tuple"),
    (SAMPLER, "    return [0, *values]\n\n\ndef oracle", "gives 2 cells instead of 3: fill it up with zeros"),
    (SAMPLER, SAMPLER.replace("[0, *", "[memory_size, *"), "gives 3 in cell 0: a memory of 3 cells holds values"),
    (SAMPLER, SAMPLER.replace("[0, *", "[0.0, *"), "gives 0.0 in cell 0: make it a plain integer"),
    (SAMPLER, SAMPLER.replace("[0, *", "[-1, *"), "gives -1 in cell 0"),
    ("rng.randrange(1, m", "__import__('random').randrange(1, m", "two memories from the same seed"),
    (
        "rng.randrange(1, m",
        "rng.randrange(9, m",
        f"my_task.py, line {ORACLE_LINE - 5}: sample_input(rng, 1, 3) fails: ValueError",
    ),
    (ORACLE, "    return [max(memory), *memory[1:]]\n", "give a pair"),
    (ORACLE, "    return [max(memory)], [0]\n", "gives 1 cells instead of 3"),
    (ORACLE, "    return [max(memory), *memory[1:]], []\n", "names no output cell"),
    (ORACLE, "    return [max(memory), *memory[1:]], 0\n", "by 0: give a list of addresses"),
    (ORACLE, "    return [max(memory), *memory[1:]], [len(memory)]\n", "output cell 3: addresses go from 0 to 2"),
    (ORACLE, "    return [max(memory), *memory[1:]], [0, 0]\n", "names an output cell twice"),
    (ORACLE, "    return [max(memory), *memory[1:]], [1]\n", "changes cell 0, which is not among its output cells [1]"),
    (ORACLE, "    memory[0] = max(memory)\n    return memory, [0]\n", "begin with memory = list(memory)"),
    (
        ORACLE,
        "    return [memory[99], *memory[1:]], [0]\n",
        f"my_task.py, line {ORACLE_LINE}: oracle([0, 2, 0]) fails: IndexError",
    ),
    (
        "    oracle=oracle,",
        "    oracle=oracle,\n    scored_cells=lambda memory, cells: [1],",
        "gives [1]: give a list of some",
    ),
    (
        "    oracle=oracle,",
        "    oracle=oracle,\n    scored_cells=lambda memory, cells: [[]],",
        "gives [[]]: give a list of some",
    ),
    (
        "    oracle=oracle,",
        "    oracle=oracle,\n    scored_cells=lambda memory, cells: cells * 10**6,",
        "give a list of some of the output cells, each once",
    ),
    ("product(range(1, memory_size)", "product(range(1, memory_size - 1)", "which sample_input draws: they must agree"),
    ("product(range(1, memory_size)", "product([1, 1, 2]", "lists a memory twice"),
    ("product(range(1, memory_size)", "product([]", "lists nothing"),
    ("        yield [0, *values]", "        yield [*values]", "gives 2 cells instead of 3"),
]


@pytest.mark.parametrize(("before", "after", "said"), BEHAVIOUR)
def test_a_function_that_does_not_do_its_part_is_told_with_the_cure(file, before, after, said):
    assert TEXT.count(before) == 1
    message = refusal(file(TEXT.replace(before, after)))
    assert said in message and "my_task.py" in message


def test_what_goes_wrong_only_far_out_is_told_when_it_does(file):
    path = file(TEXT.replace(ORACLE, "    assert len(memory) < 200, 'too long for me'\n" + ORACLE))
    task = get_task(path)
    task.sample(100, 1, seed=0)
    with pytest.raises(UsageError, match=rf"line {ORACLE_LINE}: oracle\(.*\) fails: AssertionError: too long for me"):
        task.sample(500, 1, seed=0)


def test_registering_checks_as_well():
    copy = get_task("copy")
    wrong: Any = lambda memory: (list(memory), [])  # noqa: E731
    with pytest.raises(UsageError, match="the task 'mine': oracle.* names no output cell"):
        register_task(dataclasses.replace(copy, name="mine", oracle=wrong))
    assert "mine" not in task_names()


SYMBOLIC = """

def symbolic(n, memory_size):
    import z3

    values = [z3.Int(f"A{i}") for i in range(n)]
    largest = values[0]
    for value in values[1:]:
        largest = z3.If(value > largest, value, largest)
    yield SymbolicCase(
        shape="",
        cells=((0, 0), *enumerate(values, start=1)),
        assumptions=tuple(z3.And(1 <= value, value < memory_size) for value in values),
        expected=((0, largest),),
    )


TASK = Task(
    symbolic=symbolic,
"""


def with_symbolic(text: str = SYMBOLIC) -> str:
    return TEXT.replace("StepLimit, Task", "StepLimit, SymbolicCase, Task").replace("\n\nTASK = Task(\n", text)


@pytest.mark.parametrize(
    ("before", "after"),
    [("value > largest", "value < largest"), ("1 <= value", "3 <= value"), ("(0, largest)", "(1, largest)")],
)
def test_a_wrong_description_for_the_solver_proves_nothing(file, before, after):
    assert SYMBOLIC.count(before) == 1
    symbolic = get_task(file(with_symbolic(SYMBOLIC.replace(before, after)))).symbolic
    assert symbolic is not None
    with pytest.raises(UsageError, match=r"symbolic\(\d, \d\) has no case with .* they must agree"):
        next(symbolic(1, 4))


@pytest.mark.parametrize("name", task_names())
def test_the_descriptions_of_the_built_in_tasks_pass_the_same_check(name):
    task = get_task(name)
    assert task.symbolic is not None
    assert list(checks.symbolic_problems(task, task.symbolic)) == []


# ---- tasks of installed packages


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Packages on the path, each with entry points of the group of tasks and a module of its own."""

    def install(package: str, module: str, names: dict[str, str]) -> None:
        (tmp_path / f"{package}.py").write_text(module)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in names.items()]
        (info / "entry_points.txt").write_text("[nram.tasks]\n" + "\n".join(lines) + "\n")

    def forget() -> None:
        REGISTRY.__dict__.pop("entry_points", None)
        REGISTRY.from_packages.clear()

    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield install
    forget()


def test_a_task_of_an_installed_package_has_its_name_everywhere(installed, capsys):
    installed("maxima_one", TEXT, {"maximum": "maxima_one:TASK"})
    assert task_names()[-1] == "maximum"
    assert isinstance(get_task("maximum"), Task)
    assert main(["sample", "maximum", "--json"]) == 0
    assert main(["tasks"]) == 0
    assert "maximum" in capsys.readouterr().out


def test_packages_that_cannot_be_used_are_named_and_the_rest_is_listed(installed, capsys):
    installed("maxima_two", TEXT, {"maximum": "maxima_two:TASK", "copy": "maxima_two:TASK", "least": "maxima_two:TASK"})
    installed("broken_one", "raise RuntimeError('half done')\n", {"half": "broken_one:TASK"})
    found, problems = REGISTRY.load()
    assert [task.name for task in found][-1] == "maximum" and len(found) == len(BUILT_IN) + 1
    told = "\n".join(problems)
    assert "there is already a task 'copy': give that of the package maxima_two another name" in told
    assert "registers the task 'maximum' under the name 'least'" in told
    assert "cannot be imported: RuntimeError: half done; mend or uninstall the package broken_one" in told
    assert main(["tasks", "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)) == len(BUILT_IN) + 1
    assert main(["sample", "half"]) == 2


def test_two_packages_with_one_name_are_refused(installed):
    installed("maxima_three", TEXT, {"maximum": "maxima_three:TASK"})
    installed("maxima_four", TEXT, {"maximum": "maxima_four:TASK"})
    with pytest.raises(UsageError, match="maxima_.* and the package maxima_.*: uninstall all but one"):
        get_task("maximum")


# ---- programs of such a task


def test_verification_says_what_it_could_not_look_at(file, capsys):
    program = file(RIGHT, "maximum.nram")
    path = file(TEXT.replace("    legal_inputs=legal_inputs,\n", "").replace("    claim=claim,\n", ""))
    words = ["verify", str(program), "--task", str(path), "--largest", "50", "--json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert {skipped["method"] for skipped in report["skipped"]} == {"exhaustive", "inductive", "symbolic"}
    assert {finding["method"] for finding in report["findings"]} == {"random"}
    assert not any(finding["proven"] for finding in report["findings"])


def test_a_task_that_describes_its_inputs_has_its_programs_proven(file, capsys):
    words = ["--task", str(file(with_symbolic())), "--max-n", "0", "--symbolic", "2", "--largest", "0", "--json"]
    assert main(["verify", str(file(RIGHT, "maximum.nram")), *words]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(finding["method"], finding["proven"]) for finding in findings] == [("inductive", True), ("symbolic", True)]
    assert main(["verify", str(file(WRONG, "first.nram")), *words]) == 1


def test_all_inputs_are_run_where_the_task_lists_them(file, capsys):
    words = ["--task", str(file(TEXT)), "--max-n", "2", "--largest", "20", "--json"]
    assert main(["verify", str(file(RIGHT, "maximum.nram")), *words]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert any(finding["method"] == "exhaustive" and finding["proven"] for finding in findings)
    assert main(["verify", str(file(WRONG, "first.nram")), *words]) == 1


@pytest.mark.parametrize("words", [["verify"], ["run", "--complexity", "3"], ["trace"]])
def test_a_program_whose_task_is_not_known_asks_for_its_file(file, capsys, words):
    program = str(file(RIGHT, "maximum.nram"))
    assert main([words[0], program, *words[1:]]) == 2
    assert "'maximum', which is not known here: name its file (--task" in capsys.readouterr().err
    if words[0] != "verify":
        assert main([words[0], program, *words[1:], "--task", str(file(TEXT))]) == 0


def test_a_program_file_makes_nothing_be_executed(file, tmp_path, capsys):
    trap = file(f"open({str(tmp_path / 'sprung')!r}, 'w')\n", "trap.py")
    program = file(RIGHT.replace("task: maximum", f"task: {trap}"), "maximum.nram")
    assert load_program(str(program)).task == str(trap)
    for words in (["verify"], ["run", "--complexity", "3"], ["trace"], ["show"]):
        main([words[0], str(program), *words[1:]])
    assert "which is not known here" in capsys.readouterr().err
    assert not (tmp_path / "sprung").exists()


def test_the_search_takes_the_file_and_keeps_the_name(file, tmp_path, capsys):
    out = tmp_path / "found.nram"
    words = ["search", str(file(TEXT)), "--registers", "3", "--budget", "120", "--verify-budget", "0.5"]
    assert main([*words, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["right"]
    program = load_program(str(out))
    assert (program.task, program.name, program.origin) == ("maximum", "maximum", "searched")
    assert program.run([0, 3, 8, 2, 0, 0, 0, 0, 0]).memory[0] == 8


def test_the_search_names_the_command_that_verifies_a_user_defined_task(tmp_path, capsys):
    modules, out = EXAMPLE.parents[1] / "modules", tmp_path / "middle.nram"
    words = ["search", str(modules / "middle.py"), "--modules", f"READ,{modules / 'halve.py'},INC,READ,WRITE"]
    assert main([*words, "--registers", "1", "--verify-budget", "0", "--out", str(out)]) == 0
    following = f"Next: nram verify {out} --task {modules / 'middle.py'} --module {modules / 'halve.py'}\n"
    assert following in capsys.readouterr().out
