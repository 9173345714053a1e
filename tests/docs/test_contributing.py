"""CONTRIBUTING.md is true: its paths exist, and its recipes work when followed in a copy of the project."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nram

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
FILES = dict(re.findall(r"\*\*`([^`]+)`\*\*\n\n```python\n(.*?)```", GUIDE, re.DOTALL))
ENTRY_POINTS = re.search(r'```toml\n(\[project\.entry-points\."nram\.modules"\]\n.*?)```', GUIDE, re.DOTALL)
FOLDERS = (ROOT, ROOT / "src/nram", ROOT / "src/nram/tasks")  # from which paths are written
WRITTEN_BY_READERS = {"last.toml", "last.nram", "distance.py", "htmlcov", "site", "dist", "more_modules"}


def test_every_path_exists():
    words = re.findall(r"`([\w./@-]+)`", GUIDE)
    paths = {word for word in words if "/" in word or re.search(r"\.(py|md|toml|cff)$", word)} - set(FILES)
    assert "src/nram/tasks/access.py" in paths and "_traced.py" in paths
    paths = {path for path in paths if not path.startswith(".venv") and not WRITTEN_BY_READERS & set(Path(path).parts)}
    assert not {path for path in paths if not any((folder / path).exists() for folder in FOLDERS)}


class Copy:
    """A copy of the project in which the recipes are followed."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("src", "tests", "docs"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name in ("pyproject.toml", "CONTRIBUTING.md", "README.md", "CHANGELOG.md", "mkdocs.yml"):
            shutil.copy(ROOT / name, folder)

    def write(self, *names: str) -> None:
        for name in names:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(FILES[name])

    def insert(self, name: str, line: str, after: str) -> None:
        text = (self.folder / name).read_text()
        assert after in text
        (self.folder / name).write_text(text.replace(after, f"{after}\n    {line}", 1))

    def run(self, command: str) -> str:
        """Run a command line of the guide; its standard output."""
        # A folder with the metadata of an installation, which `make setup` would have written.
        installed = self.folder / f"nram-{nram.__version__}.dist-info"
        installed.mkdir(exist_ok=True)
        (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: nram\nVersion: {nram.__version__}\n")
        assert ENTRY_POINTS is not None
        names = ENTRY_POINTS[1].replace('[project.entry-points."nram.modules"]', "[nram.modules]").replace('"', "")
        (installed / "entry_points.txt").write_text(names)
        paths = (self.folder, self.folder / "src", self.folder / "tests")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "JAX_PLATFORMS": "cpu"}
        python = f"{sys.executable} -m "
        command = re.sub(r"^(nram|pytest)\b", python + r"\1", command.strip()).replace(
            "python docs", f"{sys.executable} docs"
        )
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, section: str, title: str) -> None:
        """Run all commands of a part of the guide."""
        part = GUIDE.split(f"\n## {section}\n")[1].split("\n## ")[0]
        part = part.split(f"\n### {title}\n")[1].split("\n### ")[0] if title else part
        for line in re.findall(r"^    ((?:nram|pytest|python|mkdir|cp) .*)$", part, re.MULTILINE):
            self.run(line.partition("  #")[0])

    def build_in(self) -> None:
        """Do what the recipes for the package say: a task, a module and a verb."""
        self.write(*(name for name in FILES if "/" in name))
        (self.folder / "src/nram/more_modules/__init__.py").write_text('"""Modules beyond the paper\'s."""\n')
        self.insert("src/nram/tasks/__init__.py", '"last",', after='    "walkbst",')
        (line,) = re.findall(r"the line `(.*)` below `modules` in the", GUIDE)
        layers = (self.folder / "tests/test_layers.py").read_text()
        (above,) = re.findall(r'^    "modules": ".*",$', layers, re.MULTILINE)
        self.insert("tests/test_layers.py", line, after=above)
        (line,) = re.findall(r"Add a line `(.*)` to `VERBS`", GUIDE)
        self.insert("src/nram/cli/__init__.py", line, after="VERBS = {")


def test_user_defined_tasks_and_modules_are_accepted(tmp_path: Path):
    copy = Copy(tmp_path)
    copy.write("last.py", "distance.py")
    assert "last" in copy.run("nram tasks last.py")
    assert len(json.loads(copy.run("nram sample last.py --complexity 4 --count 3 --json"))) == 3
    assert "DISTANCE" in copy.run("nram modules distance.py")


def test_built_in_tasks_modules_and_verbs_are_known(tmp_path: Path):
    copy = Copy(tmp_path)
    copy.write(*FILES)
    copy.build_in()
    assert json.loads(copy.run("nram tasks last --json"))[0]["trained_up_to"] == 20
    assert "DISTANCE" in copy.run("nram modules DISTANCE")
    assert json.loads(copy.run("nram size access@searched --json")) == {"rows": 2, "operations": 4}
    copy.run(
        "pytest tests/tasks/test_last.py tests/extensions/test_distance.py tests/cli/test_size.py tests/test_layers.py"
    )
    written = " ".join(FILES)
    copy.run(f"{sys.executable} -m ruff check {written}")
    copy.run(f"{sys.executable} -m ruff format --check {written}")


@pytest.mark.slow
def test_every_command_of_the_recipes_works(tmp_path: Path):
    copy = Copy(tmp_path)
    copy.write("last.py", "distance.py")
    copy.follow("Add a task", "In a file of your own")
    copy.follow("Add a module", "In a file of your own")
    copy.build_in()
    copy.follow("Add a task", "In the package")
    copy.follow("Add a module", "In the package")
    copy.follow("Add a verb of the command line", "")
