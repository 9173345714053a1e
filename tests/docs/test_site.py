"""The documentation site is built strictly, has a search index, and loads nothing from the network."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nram.programs.library import zoo_entries

ROOT = Path(__file__).parents[2]
PAGES = sorted(page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md"))


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    # Not with --quiet: mkdocs then drops warnings before --strict counts them.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_every_page_is_in_the_site_and_in_its_search_index(site: Path):
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    for page in PAGES:
        address = f"{page.with_suffix('')}/".removesuffix("README/")
        assert (site / address / "index.html").is_file(), page
        assert address in found, page
    assert {"repository/CONTRIBUTING/", "repository/CHANGELOG/"} <= found
    texts = [entry["text"] for entry in index["docs"] if entry["location"].startswith("training/")]
    assert any("population" in text for text in texts)


def test_the_site_loads_nothing_from_the_network(site: Path):
    outside = re.compile(r"""(?:\bsrc=|<link[^>]*\bhref=|url\(|@import )["']?(?:https?:)?//""")
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > len(PAGES)
    assert not [str(file.relative_to(site)) for file in files if outside.search(file.read_text())]


def test_lists_and_tables_are_shown_as_such(site: Path):
    """A list needs an empty line before it, or it becomes part of the paragraph above; so does a table."""
    swallowed = re.compile(r"<p>(?:(?!</p>).)*\n(?:[-*] |\d\. |\|)(?:(?!</p>).)*</p>", re.DOTALL)
    problems = {
        str(file.relative_to(site)): found[0][:200]
        for file in site.rglob("index.html")
        if (found := swallowed.search(file.read_text()))
    }
    assert not problems


def test_links_to_files_outside_the_documentation_lead_to_their_pages(site: Path):
    assert "../repository/src/nram/examples/modules/halve.py/" in (site / "user-defined" / "index.html").read_text()
    assert "HALVE" in (site / "repository" / "src/nram/examples" / "modules" / "halve.py" / "index.html").read_text()
    assert (site / "repository" / "src/nram/examples" / "notebook" / "whole_way.ipynb").is_file()
    assert '"../../guide/"' in (site / "repository" / "CONTRIBUTING" / "index.html").read_text()


def test_the_program_of_every_task_runs_in_the_site(site: Path):
    """A frame for each; tests/explorer opens such pages in a browser."""
    frames = re.findall(r'<iframe src="([^"]+)"', (site / "at-work" / "index.html").read_text())
    assert sorted(frames) == sorted(f"{entry.name}.html" for entry in zoo_entries() if entry.origin == "trained")
    assert len(frames) == 10
    for frame in frames:
        assert 'type="application/json" id="data"' in (site / "at-work" / frame).read_text()


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path):
    root = tmp_path / "root"
    shutil.copytree(ROOT / "docs", root / "docs", ignore=shutil.ignore_patterns("__pycache__", "examples"))
    shutil.copy(ROOT / "mkdocs.yml", root)
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        (root / name).write_text("# Nothing\n")
    (root / "docs" / "search.md").write_text(
        "[1](no-page.md) [2](../src/nram/examples/no-file.py) [3](guide.md#no-heading)\n"
    )
    built = build(root, tmp_path / "site")
    assert built.returncode != 0
    for gone in ("no-page.md", "no-file.py", "no-heading"):
        assert gone in built.stderr
