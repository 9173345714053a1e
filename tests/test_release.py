"""The sdist is built, and the wheel from it. The wheel is installed into an empty environment and used there.

Nothing is downloaded. The environment sees the libraries of the core that this one has: no others, and not this one's
nram.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.imports import reached_libraries, read_imports

import nram
from nram.extras import LIBRARIES

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_SHIPPED = (
    ".git",
    ".venv",
    "build",
    "dist",
    "site",
    "runs",
    "learned",
    "htmlcov",
    ".coverage*",
    "*.egg-info",
    "__pycache__",
)
CORE = ["nram.search.engine", "nram.programs.native.aot", "nram.programs.native.jit"]
CORE += [f"nram.cli.{file.stem}" for file in (ROOT / "src/nram/cli").glob("*.py")]
"""The modules that the core's verbs start with, and those that they import late."""


def run(*words: str | Path, cwd: Path, status: int = 0) -> str:
    """Run a command that sees neither this repository nor this process's settings; its standard output."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV"))}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that was built from the sdist alone."""
    folder = tmp_path_factory.mktemp("release")
    shutil.copytree(ROOT, folder / "tree", ignore=shutil.ignore_patterns(*NOT_SHIPPED))
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "tree", cwd=folder)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the commands of an environment in which the wheel is installed without any extra."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    commands = folder / "bin"
    places = run(commands / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    for entry in core_libraries():
        Path(places.strip(), entry.name).symlink_to(entry)
    names = ["nram", *(module for modules in LIBRARIES.values() for module in modules)]
    code = f"import numba, rich; from importlib.util import find_spec as f; print([n for n in {names} if f(n)])"
    assert run(commands / "python", "-c", code, cwd=folder) == "[]\n", "the environment has only the core's libraries"
    options = ("--no-deps", "--no-index", "--quiet", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", commands / "python", "install", *options, distributions[1], cwd=folder)
    return commands


def core_libraries() -> set[Path]:
    """What the core's dependencies, and theirs, have put into the folder of this environment's libraries."""
    waiting = list(PROJECT["dependencies"])
    seen: set[str] = set()
    entries: set[Path] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.name in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(requirement.name)
        library = distribution(requirement.name)
        waiting += library.requires or ()
        tops = {file.parts[0] for file in library.files or ()} - {"..", "__pycache__"}
        entries |= {Path(str(library.locate_file(top))) for top in tops}
    return entries


def source_files(*folders: str) -> set[str]:
    found = {path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()}
    return {str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts}


def test_the_sdist_holds_all_that_the_tests_need(distributions: tuple[Path, Path]):
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert source_files("src/nram", "tests", "docs", "benchmarks", ".github") <= names
    assert {"Makefile", "pyproject.toml", "mkdocs.yml", ".ci/run", "CONTRIBUTING.md", "CHANGELOG.md"} <= names


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(distributions: tuple[Path, Path]):
    with zipfile.ZipFile(distributions[1]) as archive:
        names = set(archive.namelist())
    information = f"nram-{nram.__version__}.dist-info"
    assert {name for name in names if not name.startswith(information)} == {
        name.removeprefix("src/") for name in source_files("src/nram")
    }
    assert {f"{information}/licenses/LICENSE", f"{information}/licenses/NOTICE"} <= names


def test_what_is_installed_is_the_wheel(installed: Path, tmp_path: Path):
    code = "import nram; print(nram.__file__, nram.__version__)"
    file, version = run(installed / "python", "-c", code, cwd=tmp_path).split()
    assert Path(file).is_relative_to(installed.parent)
    assert version == nram.__version__
    assert run(installed / "nram", "--version", cwd=tmp_path) == f"nram {version}\n"


def test_the_installed_command_line_works(installed: Path, tmp_path: Path):
    command = installed / "nram"
    assert "search" in run(command, "--help", cwd=tmp_path)
    assert len(json.loads(run(command, "tasks", "--json", cwd=tmp_path))) >= 10
    zoo = json.loads(run(command, "zoo", "--json", cwd=tmp_path))
    assert len(zoo) == len(list((ROOT / "src/nram/zoo").glob("*@*")))
    ran = json.loads(run(command, "run", "copy", "--memory", "4 7 5 2 0 0 0 0", "--json", cwd=tmp_path))
    assert ran["memory"][4:7] == [7, 5, 2]
    assert "stages.0.population" in run(command, "train", "merge", "--set", "help", cwd=tmp_path)  # from the recipe
    run(command, "run", "copy", "--memory", "no numbers", cwd=tmp_path, status=2)
    run(command, "examples", "copy", cwd=tmp_path)
    assert json.loads(run(command, "tasks", "examples/tasks/sum.py", "--json", cwd=tmp_path))[0]["name"] == "sum"
    run(command, "new", "task", cwd=tmp_path)
    assert json.loads(run(command, "tasks", "my_task.py", "--json", cwd=tmp_path))[0]["name"] == "my_task"


@pytest.mark.slow
def test_the_installed_search_finds_a_program(installed: Path, tmp_path: Path):
    words = ("search", "access", "--registers", "2", "--budget", "60", "--out", "access.nram", "--json")
    found = json.loads(run(installed / "nram", *words, cwd=tmp_path))
    assert found["found"] is True
    assert (tmp_path / "access.nram").is_file()


def test_every_package_that_is_imported_is_a_declared_dependency():
    """Of the core: what its verbs reach at once, and machine code. Of the extras: the rest."""
    core = {Requirement(words).name for words in PROJECT["dependencies"]}
    optional = {module for modules in LIBRARIES.values() for module in modules}
    imports = read_imports(ROOT / "src/nram")
    imported = {one.imported for one in imports} - set(sys.stdlib_module_names)
    assert {name for name in imported if not name.startswith("nram")} == core | optional
    reached = set().union(*(reached_libraries(imports, module) for module in CORE)) - set(sys.stdlib_module_names)
    assert reached == core
