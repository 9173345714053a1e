"""A Python file that only stored data names is not executed: the user must name it too, or trust the data."""

from __future__ import annotations

import ast
import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nram
from nram import modules
from nram.cli import main
from nram.errors import UntrustedFile
from nram.extensions import get_module, get_task, known_task, select_modules
from nram.extensions.modules import REGISTRY
from nram.search.job import Space
from nram.search.state import Left, Question, SearchState, save_state
from nram.training.checkpoint import read_description, save_arrays
from nram.training.run_folder import load_weights, read_config
from nram.training.settings import load_config

EXAMPLES = Path(__file__).parents[2] / "src/nram/examples" / "modules"
HALVE = EXAMPLES / "halve.py"
MIDDLE = EXAMPLES / "middle.py"
SETTINGS = {"groups": [], "registers": 1, "hidden": 4, "batch": 2, "validation": 8}
SETTINGS |= {"steps": 2, "population": 1, "max_complexity": 2}
MODULES = ["READ", "INC", "READ", "WRITE"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run of a user-defined task with a user-defined module. Tests change copies of it."""
    out = tmp_path_factory.mktemp("trained") / "run"
    nram.train(MIDDLE, out, settings={**SETTINGS, "modules": [str(HALVE), *MODULES]})
    # Forgotten here, because this fixture is older than the one that does it for each test.
    del modules.MODULES["HALVE"], REGISTRY.sources["HALVE"], REGISTRY.from_files[HALVE.resolve()]
    return out


class Received:
    """A run folder that somebody else has made, with Python files in it that leave a mark when they are executed."""

    def __init__(self, path: Path):
        self.path = path
        self.task, self.module, self.mark = path / "evil task.py", path / "evil_module.py", path / "executed"
        for file, example in ((self.task, MIDDLE), (self.module, HALVE)):
            leave_mark = f"with open({str(self.mark)!r}, 'a') as mark:\n    mark.write({file.name + ' '!r})\n"
            file.write_text(example.read_text() + leave_mark)
        self.name(task=self.task, module=self.module)

    def name(self, task: str | Path = MIDDLE, module: str | Path = HALVE) -> None:
        """Let run.json name these files."""
        record = json.loads((self.path / "run.json").read_text())
        record["config"]["task"] = str(task)
        record["config"]["machine"]["modules"] = [str(module), *MODULES]
        (self.path / "run.json").write_text(json.dumps(record))

    @property
    def executed(self) -> str:
        return self.mark.read_text() if self.mark.exists() else ""


@pytest.fixture
def received(trained, tmp_path) -> Received:
    get_task(MIDDLE)
    get_module(HALVE)  # tests name one file of the folder, or both
    shutil.copytree(trained, tmp_path / "their run")
    return Received(tmp_path / "their run")


VERBS = {
    "extract": ("extract",),
    "eval": ("eval", "--solve", "3"),
    "trace": ("trace", "--soft", "--complexity", "2", "--device", "cpu"),
}


def words_of(verb: str, received: Received, *more: str | Path) -> list[str]:
    return [VERBS[verb][0], str(received.path), *VERBS[verb][1:], *map(str, more)]


# ---- verbs


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("what", ["task", "module"])
def test_a_verb_executes_no_file_that_only_the_run_names(verb, what, received, capsys):
    file = getattr(received, what)
    received.name(**{what: file})
    words = words_of(verb, received)
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == "" and received.executed == ""
    first, again, last = told.err.splitlines()
    where = received.path / "run.json"
    assert first.startswith(f"nram {verb}: {where} names the Python file {str(file)!r}, and you have not: it was not")
    assert shlex.split(again) == ["nram", *words, f"--{what}", str(file)]
    assert last == "or add --trust, which trusts every file that is named there"


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_works_with_the_command_that_the_refusal_prints(verb, received, capsys):
    assert main(words_of(verb, received)) == 2
    again = shlex.split(capsys.readouterr().err.splitlines()[1])
    assert received.executed == ""
    assert main(again[1:]) in (0, 1)  # eval: such a member is wrong
    assert sorted(received.executed.split()) == ["evil", "evil_module.py", "task.py"]
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_works_with_trust(verb, received):
    assert main(words_of(verb, received, "--trust")) in (0, 1)
    assert sorted(received.executed.split()) == ["evil", "evil_module.py", "task.py"]


@pytest.mark.parametrize("stored", ["./evil task.py", "sub/../evil task.py", "../their run/evil task.py"])
def test_a_relative_path_is_one_of_the_current_folder_and_no_exception(stored, received, monkeypatch, capsys):
    (received.path / "sub").mkdir()
    monkeypatch.chdir(received.path)
    received.name(task=stored)
    assert main(words_of("extract", received)) == 2
    assert repr(str(received.task)) in capsys.readouterr().err and received.executed == ""
    monkeypatch.chdir("/")
    assert main(words_of("extract", received, "--trust")) == 1  # nram does not look beside run.json
    assert "there is no file" in capsys.readouterr().err and received.executed == ""


def test_a_link_is_followed_before_files_are_compared(received, tmp_path, capsys):
    link = tmp_path / "harmless.py"
    link.symlink_to(received.task)
    received.name(task=link)
    assert main(words_of("extract", received)) == 2
    assert repr(str(received.task)) in capsys.readouterr().err  # the file that would be executed, not the link
    other = tmp_path / "other.py"
    other.symlink_to(received.task)
    assert received.executed == ""
    assert main(words_of("extract", received, "--task", other)) == 0
    assert received.executed == "evil task.py "


def test_naming_another_file_does_not_trust_the_one_of_the_run(received, capsys):
    received.name(task=received.task)
    assert main(words_of("extract", received, "--task", MIDDLE)) == 2
    assert repr(str(received.task)) in capsys.readouterr().err
    received.name(task="access")
    assert main(words_of("extract", received, "--task", MIDDLE)) == 2
    assert "is a run of the task 'access'" in capsys.readouterr().err
    # A file that the user names as a module does not become the task.
    received.name(task=received.task)
    assert main(words_of("extract", received, "--module", HALVE)) == 2
    assert received.executed == ""


def test_a_path_that_a_terminal_would_not_show_is_refused(received, capsys):
    hidden = received.path / "evil\x1b[8m.py"
    hidden.write_text(received.task.read_text())
    received.name(task=hidden)
    for more in ((), ("--trust",)):
        assert main(words_of("extract", received, *more)) == 1
        told = capsys.readouterr().err
        assert "\\x1b[8m" in told and "\x1b" not in told and received.executed == ""


@pytest.mark.parametrize("what", ["task", "module"])
def test_a_resumed_run_executes_no_file_that_only_the_run_names(what, received, capsys):
    received.name(**{what: getattr(received, what)})
    words = ["train", str(MIDDLE), "--out", str(received.path), "--resume"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert str(getattr(received, what)) in told and received.executed == ""
    if what == "task":  # to trust it would not help
        assert "is a run of the task" in told and "--trust" not in told
    else:
        again = shlex.split(told.splitlines()[1])
        assert again == ["nram", *words, "--module", str(received.module)]
        assert main(again[1:]) == 1  # it is finished already, without a perfect member
        assert f"Next: nram eval '{received.path}' --task {MIDDLE} --module" in capsys.readouterr().out
        assert received.executed == "evil_module.py "


def test_a_resumed_run_works_with_trust(received):
    received.name(module=received.module)
    assert main(["train", str(MIDDLE), "--out", str(received.path), "--resume", "--trust"]) == 1  # not learned
    assert received.executed == "evil_module.py "


def test_a_run_without_members_names_its_modules_in_the_command_that_finishes_it(received, capsys):
    shutil.rmtree(received.path / "best")
    assert main(words_of("extract", received, "--task", received.task, "--module", received.module)) == 2
    command = capsys.readouterr().err.partition("finish it with ")[2]
    files = [str(received.task), "--out", str(received.path), "--resume", "--module", str(received.module)]
    assert shlex.split(command) == ["nram", "train", *files]


# ---- everything else that is read


def test_a_checkpoint_executes_nothing(received, capsys):
    received.name()
    (received.path / "result.json").unlink()
    description = read_description(received.path / "checkpoint.safetensors")
    description["config"]["machine"]["modules"] = [str(received.module), *MODULES]
    save_arrays(received.path / "checkpoint.safetensors", {"any": np.zeros(1)}, description)
    assert main(["train", str(MIDDLE), "--out", str(received.path), "--resume", "--trust", "--device", "cpu"]) == 1
    assert "was written under another configuration" in capsys.readouterr().err and received.executed == ""


@pytest.mark.parametrize("read", [read_config, load_weights])
def test_weights_execute_no_file_that_only_they_name(read, received):
    path = received.path / "best" / "0.safetensors"
    _, controller, description = load_weights(path)
    config = json.loads((received.path / "run.json").read_text())["config"]
    save_arrays(path, controller, {**description, "config": config})
    with pytest.raises(UntrustedFile, match="0.safetensors names the Python files .*evil task.py.*evil_module.py"):
        read(path)
    assert received.executed == ""
    read(path, trust=True)
    assert received.executed == "evil task.py evil_module.py "


def test_a_file_of_settings_executes_no_module_that_only_it_names(received, capsys):
    file = received.path / "settings.toml"
    file.write_text(f"[machine]\nmodules = ['{received.module}', 'WRITE']\n")
    words = ["train", "access", "--config", str(file), "--set", "help"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"nram train: {file} names the Python file {str(received.module)!r}")
    assert received.executed == ""
    assert main([*words, "--trust"]) == main(shlex.split(told.splitlines()[1])[1:]) == 0
    assert received.executed == "evil_module.py "


def test_modules_that_the_user_names_replace_those_of_a_file_of_settings(received):
    file = received.path / "settings.toml"
    file.write_text(f"[machine]\nmodules = ['{received.module}', 'WRITE']\n")
    config = load_config("access", file=file, overrides=[f"modules=READ,{HALVE}"])
    assert config.machine.modules == ("READ", str(HALVE)) and received.executed == ""


def test_learning_and_reproducing_execute_no_file_that_a_run_names(received, tmp_path, capsys):
    examples = tmp_path / "examples.jsonl"
    lines = [{"input": [0, n, k, 0, 0, 0], "output": [n, n, k, 0, 0, 0]} for n in range(1, 6) for k in range(3)]
    examples.write_text("".join(json.dumps(line) + "\n" for line in lines))
    learned = tmp_path / "learned"
    shutil.copytree(received.path, learned / "training" / "0")
    assert main(["learn", str(examples), "--out", str(learned), "--resume", "--method", "train", "--budget", "5"]) == 1
    told = capsys.readouterr()
    assert "nothing was trained" in told.out and "evil task.py" in told.out and received.executed == ""
    shutil.copytree(received.path, tmp_path / "table" / "runs" / "access-0")
    assert main(["reproduce", "--train", "access", "--out", str(tmp_path / "table")]) == 2
    assert "is a run of the task" in capsys.readouterr().err and received.executed == ""


@pytest.mark.parametrize("place", ["source", "modules", "best"])
def test_a_search_state_executes_no_file_that_it_names(place, received, tmp_path, capsys):
    structures = Space().structures
    theirs = replace(structures[0], modules=(str(received.module),))
    questions = {
        "source": Question(str(received.task), 0, structures),
        "modules": Question("access", 0, (theirs,)),
        "best": Question("access", 0, structures),
    }
    best = np.zeros((theirs.rows, theirs.width), np.int16)
    left = (Left(theirs, 0.5, best),)
    state = SearchState(1, 1, 1, best_cost=0.5, best_genes=best, best_structure=theirs, left=left)
    save_state(tmp_path / "a.nram.search", questions[place], state)
    words = ["search", "access", "--out", str(tmp_path / "a.nram"), "--resume", "--candidates", "1", "--workers", "1"]
    assert main(words) in (1, 2)
    assert "a.nram.search" in capsys.readouterr().err and received.executed == ""


def test_a_program_executes_no_file_that_it_names(received, tmp_path):
    path = tmp_path / "their.json"
    nram.load_program("copy").save(path)
    text = path.read_text()
    for mine, theirs in (('"copy"', str(received.task)), ('"READ"', str(received.module))):
        assert mine in text
        path.write_text(text.replace(mine, json.dumps(theirs)))
        for verb in ("verify", "show", "run"):
            main([verb, str(path), *(("--memory", "1 0 0 0") if verb == "run" else ())])
    assert received.executed == ""


# ---- Python


def test_extract_needs_trust_or_the_files_loaded(received):
    with pytest.raises(UntrustedFile) as refusal:
        nram.extract(received.path, form="raw")
    task, module = str(received.task), str(received.module)
    assert f"call nram.get_task({task!r}) and nram.get_module({module!r}) first, or" in str(refusal.value)
    assert refusal.value.files == (("task", task), ("module", module)) and received.executed == ""
    nram.get_task(task)
    nram.get_module(module)
    assert nram.extract(received.path, form="raw").task == "middle"
    assert received.executed == "evil task.py evil_module.py "


def test_extract_and_train_with_trust(received):
    received.name(module=received.module)
    with pytest.raises(UntrustedFile):
        nram.train(MIDDLE, received.path, resume=True)
    assert received.executed == ""
    assert nram.train(MIDDLE, received.path, resume=True, trust=True).path == received.path
    assert received.executed == "evil_module.py "
    received.name(task=received.task)
    assert nram.extract(received.path, form="raw", trust=True).task == "middle"


# ---- the one place


def test_names_out_of_stored_data_are_looked_up_without_executing_a_file(received):
    with pytest.raises(UntrustedFile):
        known_task(str(received.task))
    with pytest.raises(UntrustedFile):
        select_modules([str(received.module)])
    assert received.executed == ""


EXECUTES = {"get_task", "get_module", "import_file", "REGISTRY"}
MAY_EXECUTE = {
    "__init__.py": "exports",
    "bench/programs.py": "the problems of the suite, which ship with nram",
    "cli": "the user's arguments",
    "cluster/checks.py": "files that the user named or trusts, of all that a specification names",
    "cluster/trial.py": "the same files, which the specification's check has let through",
    "explorer/jobs.py": "the files that nram serve was given: it only looks their names up",
    "explorer/worker.py": "the same files, in the process of a job",
    "programs/library.py": "the user's --task",
    "programs/simplify/specialise.py": "the user's task",
    "programs/testing.py": "the user's TASK",
    "soft_machine.py": "the user's modules and task",
    "search/job.py": "the user's TASK and --modules",
    "training/settings.py": "the user's TASK and --set",
}
"""Who may import what executes a file, and whose names they pass to it."""


def test_only_code_that_gets_names_from_the_user_imports_what_executes_a_file():
    root = Path(nram.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & EXECUTES:
                found.add(path.relative_to(root))
    homes = {"cli" if path.parts[0] == "cli" else str(path) for path in found if path.parts[0] != "extensions"}
    assert homes == MAY_EXECUTE.keys()
