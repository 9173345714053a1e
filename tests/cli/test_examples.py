"""`nram examples`: every example is listed, and copies never replace a user's file."""

from __future__ import annotations

import json
from pathlib import Path

import nram
from nram.cli import main

FOLDER = Path(nram.__file__).parent / "examples"


def test_every_example_is_listed_with_one_line(capsys):
    assert main(["examples", "--json"]) == 0
    listed = {example["name"] for example in json.loads(capsys.readouterr().out)}
    files = (path for path in FOLDER.glob("*/**/*") if path.is_file() and "__pycache__" not in path.parts)
    assert listed == {str(path.relative_to(FOLDER)) for path in files}
    assert main(["examples"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 96, "the longest name takes 38"


def test_all_are_copied_to_where_the_docs_expect_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["examples", "copy", "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert "examples/files/sum.jsonl" in files
    for file in files:
        assert Path(file).read_bytes() == FOLDER.parent.joinpath(file).read_bytes()
    assert main(["examples", "copy"]) == 0, "equal files are left as they are"


def test_single_files_and_folders_are_copied(tmp_path, capsys):
    assert main(["examples", "copy", "sum.jsonl", "modules/", "--out", str(tmp_path / "new")]) == 0
    copied = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*/*")}
    assert copied == {"new/files/sum.jsonl", "new/modules/halve.py", "new/modules/middle.py"}


def test_a_file_with_other_content_is_not_replaced(tmp_path, capsys):
    own = tmp_path / "tasks" / "sum.py"
    own.parent.mkdir()
    own.write_text("# mine\n")
    assert main(["examples", "copy", "--out", str(tmp_path)]) == 2
    assert f"{own} exists and differs" in capsys.readouterr().err
    assert own.read_text() == "# mine\n"
    assert not (tmp_path / "files").exists(), "either all are copied or none"


def test_what_cannot_be_copied_is_refused(tmp_path, capsys):
    assert main(["examples", "copy", "nothing"]) == 2
    assert "there is no example 'nothing': 'nram examples' lists them" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["examples", "copy", "--out", str(tmp_path / "file")]) == 2
    assert "is a file or lies below one" in capsys.readouterr().err
