"""The reference is what the code says."""

import subprocess
import sys
from pathlib import Path

import nram
from nram.cli import VERBS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_up_to_date():
    command = [sys.executable, str(DOCS / "make_reference.py"), "--check"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_a_page_that_was_changed_by_hand_is_out_of_date(tmp_path):
    for name in ("make_reference.py", "reference_api.py"):
        (tmp_path / name).write_text((DOCS / name).read_text())
    (tmp_path / "reference").mkdir()
    for page in (DOCS / "reference").glob("*.md"):
        (tmp_path / "reference" / page.name).write_text(page.read_text())
    (tmp_path / "reference" / "cli.md").write_text((DOCS / "reference" / "cli.md").read_text() + "\nmore\n")
    command = [sys.executable, str(tmp_path / "make_reference.py"), "--check"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 1
    assert "cli.md is out of date" in found.stderr
    assert "api.md" not in found.stderr


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
