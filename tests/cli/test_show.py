"""`nram show`: the card and the table, and a text form that can be read again."""

from dataclasses import replace

import pytest

from nram.programs.files import read_program, save_program
from nram.programs.ir import Evidence
from nram.programs.text import from_text

PROGRAM = """
nram program 1
name: add one
task: increment
origin: trained
limit: n+4, needed
made command: nram train increment --seed 3
registers: r1 r2

when r1 = 0:
    o1 = READ(r2)
    o2 = INC(o1)
    WRITE(r2, o2)
    r1 := 1
otherwise:
    halt
"""


@pytest.fixture
def program_file(tmp_path):
    program = from_text(PROGRAM)
    evidence = [
        Evidence("exhaustive", "increment", (1, 4), (0, 2), 123, ("T", "2T", "20n+200"), True, program.fingerprint),
        Evidence("symbolic", "increment", (6, 6), (0, 0), None, ("every",), True, program.fingerprint),
        Evidence("random", "increment", (1, 100000), None, 1000, ("T",), False, program.fingerprint),
    ]
    path = tmp_path / "one.json"
    save_program(replace(program, verified=tuple(evidence)), path)
    return path


def test_the_card_says_what_is_known(call, program_file):
    status, out, err = call("show", program_file)
    words = " ".join(out.split())
    assert status == 0 and err == ""
    assert out.startswith("add one\n")
    for fact in (
        "origin trained",
        "T(n) = n+4 steps, and it must be stopped there",
        "2 registers, 1 state, 2 rows, 3 operations",
        "made command nram train increment --seed 3",
        "task method n M inputs right under the limits halts",
        "increment exhaustive 1 to 4 least to least+2 123 T, 2T, 20n+200 always",
        "increment symbolic 6 least all values every from T up always",
        "increment random 1 to 100000 every 1,000 T not always",
    ):
        assert fact in words
    assert "when r1 = 0:\n    o1 = READ(r2)\n" in out


def test_without_evidence_it_says_so(call, tmp_path):
    path = tmp_path / "one.nram"
    path.write_text(PROGRAM.replace("task: increment\n", ""))
    _, out, _ = call("show", path)
    assert "nothing yet" in out
    assert "task none" in " ".join(out.split())


def test_raw_prints_the_text_form_that_reads_back(call, program_file, tmp_path):
    _, out, _ = call("show", program_file, "--raw")
    (tmp_path / "again.nram").write_text(out)
    assert read_program(tmp_path / "again.nram") == read_program(program_file)


def test_json_holds_the_program_its_size_and_its_text(call, program_file):
    outcome = call("show", program_file, "--json")
    value = outcome.value
    assert value["size"] == {"registers": 2, "states": 1, "rows": 2, "operations": 3}
    assert value["program"]["name"] == "add one"
    assert from_text(value["text"]) == read_program(program_file)
    assert value["verified"] == [
        "task: increment; method: exhaustive; n: 1 to 4; M: least to least+2; inputs: 123; "
        "right under the limits: T, 2T, 20n+200; halts: always",
        "task: increment; method: symbolic; n: 6; M: least; inputs: all values; "
        "right under the limits: every from T up; halts: always",
        "task: increment; method: random; n: 1 to 100000; M: every; inputs: 1,000; "
        "right under the limits: T; halts: not always",
    ]


def test_a_run_folder_is_refused_with_the_verb_that_helps(call, tmp_path):
    (tmp_path / "run.json").write_text("{}")
    for verb in ("show", "draw", "trace"):
        status, _, err = call(verb, tmp_path)
        assert status == 2
        assert "nram extract" in err


def test_a_program_that_does_not_exist_is_refused(call):
    status, out, err = call("show", "no-such-program")
    assert status == 2 and out == ""
    assert "no-such-program" in err
