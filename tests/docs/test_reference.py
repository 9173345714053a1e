"""The reference is what the code says."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import nram
from nram.cli import VERBS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_up_to_date_and_a_page_that_was_changed_by_hand_is_written_again(tmp_path):
    for name in ("make_reference.py", "reference_api.py"):
        (tmp_path / name).write_text((DOCS / name).read_text())
    (tmp_path / "reference").mkdir()
    pages = {page.name: page.read_text() for page in (DOCS / "reference").glob("*.md")}
    for name, text in pages.items():
        (tmp_path / "reference" / name).write_text(text + "\nmore\n" * (name == "cli.md"))
    found = subprocess.run([sys.executable, str(tmp_path / "make_reference.py")], capture_output=True, text=True)
    assert found.stdout == f"{tmp_path.name}/reference/cli.md\n", found.stderr
    assert {page.name: page.read_text() for page in (tmp_path / "reference").glob("*.md")} == pages


def test_a_check_names_what_is_out_of_date_and_writes_nothing(monkeypatch, capsys):
    monkeypatch.syspath_prepend(DOCS)
    script: Any = importlib.import_module("make_reference")
    cli, api = DOCS / "reference" / "cli.md", DOCS / "reference" / "api.md"
    monkeypatch.setattr(script, "pages", lambda: {cli: "other", api: api.read_text()})
    assert script.main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/reference/cli.md is out of date: run python docs/make_reference.py\n"
    assert cli.read_text() != "other"
    monkeypatch.setattr(script, "pages", lambda: {api: api.read_text()})
    assert script.main(["--check"]) == 0


def test_every_verb_has_a_section():
    text = (DOCS / "reference" / "cli.md").read_text()
    for verb in VERBS:
        assert f"\n## nram {verb}\n" in text


def test_every_public_name_is_described():
    text = (DOCS / "reference" / "api.md").read_text()
    for name in nram.__all__:
        if name != "__version__":
            assert f"\n### nram.{name}\n" in text
            assert getattr(nram, name).__doc__
