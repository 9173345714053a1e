"""`nram new`: every starting file works as it is."""

from __future__ import annotations

import json

import pytest

import nram
from nram.cli import main


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_task_is_searched(capsys):
    assert main(["new", "task", "length", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written == {"kind": "task", "name": "length", "file": "length.py", "next": "nram search length.py"}
    assert main(["tasks", "length.py"]) == 0
    assert main(["sample", "length.py"]) == 0
    assert main(["search", "length.py", "--registers", "3", "--verify-budget", "0.2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["right"]


def test_a_new_module_is_used(capsys):
    assert main(["new", "module", "distance"]) == 0
    assert main(["modules", "distance.py"]) == 0
    assert "DISTANCE" in capsys.readouterr().out
    assert nram.get_module("distance.py").integer(10, 3, 7) == 4
    main(["examples", "copy", "distance.jsonl"])
    words = ["--modules", "READ,READ,distance.py,WRITE", "--registers", "1", "--out", "found.nram", "--json"]
    assert main(["search", "examples/files/distance.jsonl", *words]) == 0


def test_new_examples_are_learned(capsys):
    assert main(["new", "examples", "largest"]) == 0
    assert capsys.readouterr().out == "largest.csv\nNext: nram learn largest.csv\n"
    assert main(["learn", "largest.csv", "--method", "search", "--alternatives", "0"]) == 0
    program = nram.load_program("learned/largest/program.nram")
    assert program.call(values=[3, 9, 2]) == 9


@pytest.mark.parametrize("kind", ["task", "module"])
def test_a_starting_file_has_a_name_without_asking(kind, capsys):
    assert main(["new", kind]) == 0
    assert main([f"{kind}s", f"my_{kind}.py"]) == 0


def test_a_file_that_exists_is_not_replaced(empty_folder, capsys):
    (empty_folder / "mine.py").write_text("# mine\n")
    assert main(["new", "task", "mine"]) == 2
    assert "mine.py exists" in capsys.readouterr().err
    assert (empty_folder / "mine.py").read_text() == "# mine\n"


@pytest.mark.parametrize(
    "words, problem",
    [
        (["task", "copy"], "there is a task 'copy' already"),
        (["module", "inc"], "there is a module 'inc' already"),
        (["task", "my task"], "not a name"),
        (["task", "--out", "here.csv"], "let it end in .py"),
        (["task", "--out", 'a".py'], "not a name"),
        (["task", "good", "--out", 'a".py'], "use letters, digits"),
        (["task", "--out", "no/folder.py"], "there is no folder no"),
        (["programs"], "invalid choice"),
    ],
)
def test_what_cannot_be_written_is_refused(words, problem, empty_folder, capsys):
    assert main(["new", *words]) == 2
    assert problem in capsys.readouterr().err
    assert list(empty_folder.iterdir()) == []
