"""Old public names work for one release, and warn with the name to use."""

import subprocess
import sys
from importlib import import_module

import pytest

import nram


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nram.register", "nram.register_task"),
        ("nram.tasks.register", "nram.register_task"),
        ("nram.tasks.get_task", "nram.get_task"),
        ("nram.own_modules.register_module", "nram.register_module"),
        ("nram.own_modules.get_module", "nram.get_module"),
        ("nram.learning.learn_file", "nram.learn"),
    ],
)
def test_an_old_name_is_the_new_one_with_a_warning_that_points_to_its_user(old: str, new: str):
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}: the old name goes in nram 0.3") as warnings:
        found = _value(old)
    assert found is _value(new)
    assert warnings[0].filename == __file__


def _value(path: str) -> object:
    home, _, name = path.rpartition(".")
    return getattr(import_module(home), name)


def test_it_still_can_be_imported_by_name():
    code = "from nram import register; from nram.tasks import register; from nram.own_modules import register_module"
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "DeprecationWarning: nram.register is now nram.register_task" in done.stderr


def test_the_old_name_of_an_argument_works_with_a_warning():
    with (
        pytest.warns(
            DeprecationWarning, match="seconds=...* is now budget=...: the old name goes in nram 0.3"
        ) as warnings,
        pytest.raises(nram.UsageError, match="budget is -3"),
    ):
        nram.find_program("access", seconds=-3)
    assert warnings[0].filename == __file__


def test_old_names_are_not_offered():
    assert "register" not in nram.__all__
    assert "register" not in dir(nram)


@pytest.mark.parametrize("home", ["nram", "nram.tasks", "nram.learning", "nram.own_modules"])
def test_a_name_that_never_was_is_an_ordinary_error(home: str):
    with pytest.raises(AttributeError, match=f"module '{home}' has no attribute 'registre'"):
        _value(f"{home}.registre")


def test_tasks_and_modules_have_the_same_functions():
    for kind in ("task", "module"):
        assert {f"get_{kind}", f"register_{kind}", f"{kind}_names"} <= set(nram.__all__)
    assert nram.module_names()[:2] == ("READ", "ZERO")


def test_a_trace_has_the_old_name_of_its_method():
    trace = nram.trace(nram.load_program("access@searched"), [1, 4, 2, 3, 0])
    step = trace.steps[0]
    with pytest.warns(DeprecationWarning, match="Trace.place is now Trace.row_in_words") as warnings:
        found = trace.place(step)
    assert found == trace.row_in_words(step) and warnings[0].filename == __file__
