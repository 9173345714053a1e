"""`nram extract`, `nram simplify` and `nram zoo`: from a run to a program, and the programs that ship."""

from __future__ import annotations

import json
import shutil

import pytest

from nram.extensions import get_task
from nram.programs.files import read_program
from nram.programs.library import zoo_entries

RUN_NOTHING = "nram program 1\nregisters: r1 r2\n\nalways:\n    o1 = READ(0)\n    r1 := o1\n    halt\n"


@pytest.fixture(scope="module")
def extracted(nram, trained, tmp_path_factory):
    """The program of a trained run, in the text form, and what the command said."""
    out = tmp_path_factory.mktemp("extracted") / "program.nram"
    outcome = nram.run("extract", trained.path, "--out", out, "--json")
    assert outcome.status == 0, outcome.err
    return read_program(out), json.loads(outcome.out)


def test_the_program_of_a_run_solves_its_task(extracted):
    program, _ = extracted
    assert (program.task, program.origin) == ("access", "trained")
    for instance in get_task("access").sample(8, 50, seed=5):
        assert program.run(instance.input, max_steps=instance.steps).memory[0] == instance.output[0]


def test_its_card_names_the_command_and_its_size_before_and_after(extracted, trained):
    program, said = extracted
    made = dict(program.made)
    assert made["command"].startswith("nram train access --seed 1") and str(trained.path) not in made["command"]
    assert made["seed"] == "1" and "jax" in made["versions"]
    before, after = said["size"]["before"], said["size"]["after"]
    assert before["rows"] == 2 ** before["registers"] and before["operations"] % before["rows"] == 0
    assert after == {
        "registers": len(program.registers),
        "states": 1,
        "rows": program.rows,
        "operations": program.operations,
    }
    assert after["operations"] < before["operations"]


def test_without_out_it_lies_in_the_run_and_raw_is_the_whole_table(nram, trained, tmp_path):
    run = shutil.copytree(trained.path, tmp_path / "run")
    outcome = nram.run("extract", run, "--raw")
    assert outcome.status == 0, outcome.err
    program = read_program(run / "program.json")
    assert program.rows == 2 ** len(program.registers)
    assert "nram verify" in outcome.out


def test_bad_requests_of_extract_are_refused(call, trained, tmp_path):
    outcome = call("extract", tmp_path / "nothing")
    assert outcome.status == 2 and "is not a run" in outcome.err
    outcome = call("extract", trained.path, "--member", "99")
    assert outcome.status == 2 and "no member 99" in outcome.err


def test_simplify_prints_and_writes_the_shorter_program(call, tmp_path):
    file, out = tmp_path / "long.nram", tmp_path / "short.json"
    file.write_text(RUN_NOTHING)
    outcome = call("simplify", file, "--out", out)
    assert outcome.status == 0 and outcome.out == "always:\n    halt\n"
    assert "2 registers, 1 state, 1 row, 1 operation -> 1 register, 1 state, 1 row, 0 operations" in outcome.err
    assert read_program(out).operations == 0
    said = json.loads(call("simplify", file, "--keep-registers", "--json").out)
    assert said["size"]["after"]["operations"] == 1


def test_simplify_for_a_task_does_not_go_with_kept_registers(call):
    outcome = call("simplify", "access", "--task", "access", "--keep-registers")
    assert outcome.status == 2 and "leave one of them out" in outcome.err


def test_the_zoo_lists_its_programs_and_shows_their_cards(call):
    outcome = call("zoo")
    listed = json.loads(call("zoo", "--json").out)
    assert outcome.status == 0 and [f"{one['name']}@{one['origin']}" for one in listed] == [
        entry.title for entry in zoo_entries()
    ]
    for entry in zoo_entries():
        line = next(line for line in outcome.out.splitlines() if line.startswith(f"{entry.title} "))
        assert len(line) < 80 and ("halts" if entry.program.halts else "idles") in line.split()
        card = call("zoo", entry.title)
        assert card.status == 0 and f"made command: {dict(entry.program.made)['command']}" in card.out
    assert [entry.title for entry in zoo_entries() if not entry.program.halts] == []
    outcome = call("zoo", "nobody")
    assert outcome.status == 2 and "copy@trained" in outcome.err
