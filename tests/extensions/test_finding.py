"""Where own modules are found: files, settings, runs, programs that name them, and installed packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nram.cli import main
from nram.errors import UsageError
from nram.extensions import get_module, select_modules
from nram.extensions.modules import REGISTRY
from nram.modules import MODULES
from nram.programs.ir import ProgramError
from nram.programs.text import from_text
from nram.training.settings import config_from_dict, config_to_dict, load_config

EXAMPLES = Path(__file__).parents[2] / "src/nram/examples" / "modules"
HALVE = EXAMPLES / "halve.py"
MIDDLE = EXAMPLES / "middle.py"

HALF = """\
nram program 1
registers: r1

always:
    o1 = READ(0)
    o2 = HALVE(o1)
    WRITE(2, o2)
    halt
"""


# ---- files and packages


def test_a_file_is_listed_and_checked(capsys):
    assert main(["modules", str(HALVE), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told == {
        "name": "HALVE",
        "arguments": ["x"],
        "memory": "nothing",
        "meaning": "half of x, rounded down",
        "built_in": False,
        "source": str(HALVE),
        "fuzzy": False,
        "emit": True,
    }
    assert main(["modules"]) == 0
    listed = capsys.readouterr().out
    assert "LESS-OR-EQUAL-THAN" in listed and "x from 0 up: 0 0 1 1 2 2 3" in listed


def test_a_program_is_read_where_its_module_is_known_and_nowhere_else(tmp_path, capsys):
    path = tmp_path / "half.nram"
    path.write_text(HALF)
    words = ["run", str(path), "--memory", "5 0 0 0 0 0", "--json"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "'HALVE' is not a module: they are READ" in told and "name its file (--module path/to/module.py)" in told
    with pytest.raises(ProgramError, match="'HALVE', which is not a module: if it is user-defined, name its file"):
        from nram.programs.files import from_json

        from_json(
            {"nram_program": 1, "registers": ["r"], "states": [[{"operations": [["HALVE", "r"]], "registers": ["r"]}]]}
        )
    assert main([*words, "--module", str(HALVE)]) == 0
    assert json.loads(capsys.readouterr().out)["memory"] == [5, 0, 2, 0, 0, 0]


def test_names_of_registers_do_not_depend_on_the_modules_that_are_known():
    get_module(HALVE)
    assert from_text(HALF.replace("r1", "halve")).registers == ("halve",)


def test_what_was_shown_counts_no_more_when_the_module_means_something_else(file):
    get_module(HALVE)
    program = from_text(HALF)
    before = program.fingerprint
    del MODULES["HALVE"]
    get_module(file(HALVE.read_text().replace("x // 2,\n    emit=lambda b, x: b.divide(x, b.number(2))", "x // 3")))
    changed = from_text(HALF)
    assert changed.fingerprint != before and changed == program


def test_settings_take_names_and_files_and_keep_whole_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    wanted = ("READ", str(HALVE), "WRITE")
    for words in ("read, halve.py,WRITE", '["READ", "halve.py", "WRITE"]'):
        config = load_config("access", overrides=[f"machine.modules={words}"])
        assert {group.machine.modules for group in config.group_configs} == {wanted}
    with_all = load_config("access", overrides=["modules=halve.py,all"])
    assert {len(group.machine.modules) for group in with_all.group_configs} == {15}
    monkeypatch.chdir(tmp_path)
    assert config_from_dict(config_to_dict(config)) == config
    with pytest.raises(UsageError, match="machine: there is no file .*quarter.py"):
        load_config("access", overrides=["modules=READ,quarter.py"])


@pytest.mark.slow
def test_a_run_goes_all_the_way(tmp_path):
    def nram(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-m", "nram", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    settings = ("groups=[]", "registers=1", "hidden=4", "batch=2", "validation=8", "steps=2", "population=1")
    words = [word for setting in (*settings, "max_complexity=2") for word in ("--set", setting)]
    trained = nram("train", str(MIDDLE), "--modules", f"READ,{HALVE},INC,READ,WRITE", *words, "--out", "run")
    assert trained.returncode == 1, trained.stderr  # two steps are too few to learn it
    assert trained.stdout.endswith(f"Next: nram eval run --task {MIDDLE} --module {HALVE}\n")
    extracted = nram("extract", "run", "--raw", "--task", str(MIDDLE), "--module", str(HALVE))
    assert extracted.returncode == 0, extracted.stderr
    assert f"--module {HALVE}" in extracted.stdout and "HALVE(" in extracted.stdout


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Packages on the path, each with entry points of the group of modules."""

    def install(package: str, text: str, points: dict[str, str]) -> None:
        (tmp_path / f"{package}.py").write_text(text)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("[nram.modules]\n" + "\n".join(lines) + "\n")

    monkeypatch.syspath_prepend(tmp_path)
    REGISTRY.__dict__.pop("entry_points", None)
    yield install
    REGISTRY.__dict__.pop("entry_points", None)


def test_a_module_of_an_installed_package_is_known_by_its_name(installed):
    installed("halves_one", HALVE.read_text(), {"HALVE": "halves_one:MODULE"})
    assert from_text(HALF).run([5, 0, 0, 0, 0, 0]).memory == [5, 0, 2, 0, 0, 0]
    assert select_modules(["HALVE"])[0].emits


def test_packages_that_cannot_be_used_are_named_and_the_rest_is_listed(installed, capsys):
    points = {"HALVE": "halves_two:MODULE", "INC": "halves_two:MODULE", "THIRD": "halves_two:MODULE"}
    installed("halves_two", HALVE.read_text(), points)
    installed("broken_two", "raise RuntimeError('half done')\n", {"BROKEN": "broken_two:MODULE"})
    assert main(["modules", "--json"]) == 1
    told = capsys.readouterr()
    assert "HALVE" in [module["name"] for module in json.loads(told.out)]
    assert "there is already a module 'INC': give that of the package halves_two another name" in told.err
    assert "registers the module 'HALVE' under the name 'THIRD'" in told.err
    assert "cannot be imported: RuntimeError: half done; mend or uninstall the package broken_two" in told.err
