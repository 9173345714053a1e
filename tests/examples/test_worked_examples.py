"""The worked examples, in short form: what ships is what the pages show, and it is right."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nram
from nram.cli import main
from nram.pictures.circuits import program_svg
from nram.programs.ir import largest_n
from nram.programs.text import table_to_text

ROOT = Path(__file__).parents[2]
EXAMPLES, PAGES = ROOT / "src/nram/examples", ROOT / "docs" / "examples"
TASKS = {
    "maximum": EXAMPLES / "tasks" / "maximum.py",
    "sum": EXAMPLES / "tasks" / "sum.py",
    "list_length": EXAMPLES / "tasks" / "list_length.py",
    "list_last": EXAMPLES / "tasks" / "list_last.py",
    "occurrences": EXAMPLES / "tasks" / "occurrences.py",
    "middle": EXAMPLES / "modules" / "middle.py",
}


def load(name: str) -> nram.Program:
    nram.get_module(EXAMPLES / "modules" / "halve.py")
    return nram.load_program(EXAMPLES / "programs" / f"{name}.nram")


def python_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_program_that_ships_is_explained():
    assert sorted(path.stem for path in (EXAMPLES / "programs").glob("*.nram")) == sorted(TASKS)
    index = (PAGES / "README.md").read_text()
    for name in TASKS:
        assert f"({name}.md)" in index and (PAGES / f"{name}.md").is_file()


@pytest.mark.parametrize("name", TASKS)
def test_a_program_that_ships_is_right_and_says_what_was_shown_of_it(name):
    program, task = load(name), nram.get_task(TASKS[name])
    report = nram.verify(program, task, budget=1, exhaustive_up_to=3, symbolic_up_to=2, largest=100)
    assert report.verdict == "right under every limit"
    assert any(finding.proven for finding in report.findings)
    assert program.origin == "searched" and dict(program.made)["command"].startswith("nram ")
    evidence = [one for one in program.verified if one.fingerprint == program.fingerprint]
    assert {one.task for one in evidence} == {name} and all(one.halts for one in evidence)
    assert largest_n(program, "random") == 100_000


@pytest.mark.parametrize("name", ["middle", "list_last"])
def test_the_command_of_a_program_s_card_finds_it_again(name, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["examples", "copy"]) == 0
    program = load(name)
    _, *words = shlex.split(dict(program.made)["command"])
    out = tmp_path / "found"
    file = out / "program.nram" if words[0] == "learn" else tmp_path / "found.nram"
    words += ["--out", str(out if words[0] == "learn" else file), "--workers", "1"]
    words += [] if words[0] == "learn" else ["--verify-budget", "0"]
    assert main(words) == 0
    assert nram.load_program(file).fingerprint == program.fingerprint


@pytest.mark.parametrize("name", TASKS)
def test_a_page_shows_the_program_that_ships(name):
    program, page = load(name), (PAGES / f"{name}.md").read_text()
    listing = "".join(f"    {line}\n" for line in table_to_text(program).rstrip().splitlines())
    assert listing in page
    assert (PAGES / "images" / f"{name}.svg").read_text() == program_svg(program)


@pytest.mark.parametrize("name", TASKS)
def test_a_trace_on_a_page_is_what_the_program_does(name):
    page = (PAGES / f"{name}.md").read_text()
    (memory,) = re.findall(r'nram trace \S+ --memory "([\d ]+)"', page)
    shown = str(nram.trace(load(name), [int(word) for word in memory.split()]))
    for line in shown.split("\n\n")[0].splitlines()[:-2]:
        assert f"    {line}\n" in page


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_what_a_page_links_to_exists(page):
    links: list[Any] = re.findall(r"\]\(([^)#]+)", page.read_text())
    assert links
    for link in links:
        assert (page.parent / link).exists(), link


def test_the_files_of_examples_are_what_their_maker_makes():
    maker = python_file(EXAMPLES / "files" / "make_examples.py")
    for problem in maker.PROBLEMS:
        made = "\n".join(maker.lines_of(problem)) + "\n"
        assert made == (EXAMPLES / "files" / f"{problem.__name__}.jsonl").read_text()
