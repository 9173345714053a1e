"""Programs by name and by file, and what the zoo promises."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import nram
from nram.extensions import get_task, task_names
from nram.programs.execute import execute
from nram.programs.ir import ORIGINS, Method, Program, largest_n
from nram.programs.library import ZooEntry, find_entry, load_program, zoo_entries, zoo_weights

ENTRIES = zoo_entries()
EASY = ("access", "increment", "copy", "reverse", "swap")
WITH_WEIGHTS = [entry for entry in ENTRIES if entry.has_weights]
every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.title)


def test_the_easy_tasks_have_trained_programs_with_their_weights():
    for name in EASY:
        entry = find_entry(f"{name}@trained")
        assert entry is not None and entry.has_weights
        assert entry.program.task == name and entry.program.origin == "trained"


def test_every_task_has_a_searched_program_without_weights():
    searched = [entry for entry in ENTRIES if entry.origin == "searched"]
    assert {entry.name for entry in searched} == set(task_names())
    assert not any(entry.has_weights for entry in searched)
    assert all(entry.program.task == entry.name and entry.program.origin == "searched" for entry in searched)


@every_entry
def test_a_card_says_how_the_program_was_made_and_what_was_shown(entry: ZooEntry):
    program = entry.program
    assert {"command", "seed", "versions", "date"} <= {key for key, _ in program.made}
    assert not program.needs_limit and program.limit is not None
    for evidence in program.verified:
        assert evidence.task == program.task and evidence.fingerprint == program.fingerprint
    least: dict[Method, int] = {"symbolic": 6, "exhaustive": 3, "random": 100_000}
    assert all((largest_n(program, method) or 0) >= n for method, n in least.items())
    assert entry.has_certificate == program.proven_for_every_length


@every_entry
def test_a_program_is_right_under_every_limit(entry: ZooEntry):
    task = get_task(entry.program.task or "")
    for n, count in ((50, 1000), (100_000, 2)):
        instances = task.sample(n, count, seed=20_260_000 + n)
        assert entry.program.limit is not None
        limit = entry.program.limit(n)
        for steps in (limit, 2 * limit, 20 * n + 200):
            result = execute(entry.program, [instance.input for instance in instances], steps)
            for instance, memory in zip(instances, result.memory, strict=True):
                assert all(memory[cell] == instance.output[cell] for cell in instance.cells)


@pytest.mark.parametrize("entry", WITH_WEIGHTS, ids=lambda entry: entry.title)
def test_the_shipped_weights_give_the_shipped_program(entry: ZooEntry):
    from nram.programs.extract.table import extract_table
    from nram.programs.simplify.specialise import specialise
    from nram.training.member import wiring_of
    from nram.training.run_folder import load_weights

    with zoo_weights(entry) as path:
        config, controller, _ = load_weights(path)
    raw = extract_table(controller, wiring_of(config.machine))
    assert specialise(raw, get_task(config.task)).states == entry.program.states


def test_a_bare_name_takes_the_first_origin_that_exists():
    for name in EASY:
        entries = [entry for entry in ENTRIES if entry.name == name]
        places = [ORIGINS.index(entry.origin) for entry in entries]
        assert places == sorted(places)
        first = entries[0]
        assert nram.load_program(name) == first.program == nram.load_program(first.title)


def test_a_file_is_loaded_by_its_path(tmp_path: Path):
    program = load_program("access")
    for name in ("mine.json", "mine.nram"):
        program.save(tmp_path / name)
        assert load_program(tmp_path / name) == load_program(str(tmp_path / name)) == program


def test_a_name_of_the_zoo_wins_over_a_file_of_that_name(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other: Program = load_program("swap")
    other.save("copy")
    assert load_program("copy") != other
    assert load_program("./copy") == load_program(Path("copy")) == other


REFUSED = {
    "coppy": "did you mean copy?",
    "copy@repaired": "the zoo has no copy@repaired: it has copy@trained, copy@searched",
    "nowhere/file.json": "no such file",
    ".": "is a folder",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_program_is_refused_with_a_hint(name):
    with pytest.raises(nram.UsageError) as error:
        load_program(name)
    assert REFUSED[name] in str(error.value)


def test_a_run_folder_leads_to_extract(tmp_path: Path):
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(nram.UsageError, match="nram.extract"):
        load_program(str(tmp_path))
    shutil.rmtree(tmp_path)
