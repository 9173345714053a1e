"""`nram trace`: a given memory or a drawn instance, in every format; and the continuous machine of a run."""

import json

import pytest

PROGRAM = """
nram program 1
name: copy
task: copy
limit: 2n+1
registers: r1 r2 r3 r4

when r2 = 0:
    o1 = READ(r4)
    WRITE(r4, o1)
    o2 = DEC(o1)
    r2, r4 := o2, 1
otherwise:
    o1 = READ(r4)
    o2 = ADD(r2, r4)
    WRITE(o2, o1)
    o3 = INC(r3)
    o4 = MIN(o3, r2)
    r3, r4 := r4, o4
"""
MEMORY = "6 2 10 6 8 9 0 0 0 0 0 0"


@pytest.fixture
def program_file(tmp_path):
    path = tmp_path / "copy.nram"
    path.write_text(PROGRAM)
    return path


def test_a_given_memory_step_by_step(call, program_file):
    status, out, err = call("trace", program_file, "--memory", MEMORY, "--max-steps", "11")
    assert status == 0 and err == ""
    assert "   4 | 6 2 10 6 8 9 2  0 0 0  0  0 |  0  5  1  2 | p:2  | p:7 a:10 |   2" in out
    assert "stopped at the limit of 11 steps" in out


def test_an_instance_is_drawn_under_the_program_s_own_limit(call, program_file):
    _, out, _ = call("trace", program_file)
    assert "right: all 5 output cells are as expected" in out
    assert "stopped at the limit of 11 steps" in out
    _, other, _ = call("trace", program_file, "--complexity", "3", "--seed", "4", "--memory-size", "9")
    assert "right: all 3 output cells are as expected" in other
    assert other.splitlines()[0].split("|")[1].split() == [str(cell) for cell in range(9)]
    assert call("trace", program_file, "--seed", "0").out == out


def test_json_has_steps_and_the_ending(call, program_file):
    value = call("trace", program_file, "--memory", MEMORY.replace(" ", ","), "--max-steps", "3", "--json").value
    assert [step["memory"] for step in value["steps"]][0] == [int(word) for word in MEMORY.split()]
    assert value["steps"][1] == {
        "step": 2,
        "memory": [6, 2, 10, 6, 8, 9, 0, 0, 0, 0, 0, 0],
        "registers": [0, 5, 0, 1],
        "state": 0,
        "row": 2,
        "reads": [{"pointer": 1, "value": 2}],
        "writes": [{"pointer": 6, "value": 2}],
    }
    assert value["ending"]["steps"] == 3 and value["ending"]["halted"] is False


@pytest.mark.parametrize(
    ("ending", "begins"),
    [
        ("txt", b"step |"),
        ("tex", b"% copy: "),
        ("html", b"<!DOCTYPE html>"),
        ("json", b"{"),
        ("png", b"\x89PNG"),
        ("svg", b"<?xml"),
        ("pdf", b"%PDF"),
    ],
)
def test_a_file_takes_its_format_from_its_ending(call, program_file, tmp_path, ending, begins):
    out = tmp_path / f"trace.{ending}"
    status, words, _ = call("trace", program_file, "--out", out)
    assert status == 0
    assert out.read_bytes().startswith(begins)
    assert words.splitlines() == [
        "copy: stopped at the limit of 11 steps; nothing changes from step 11 on; "
        "right: all 5 output cells are as expected",
        str(out),
    ]


def test_a_format_can_be_named(call, program_file, tmp_path):
    assert call("trace", program_file, "--format", "latex").out.startswith("% copy")
    assert json.loads(call("trace", program_file, "--format", "json").out)["memory_size"] == 11
    out = tmp_path / "page"
    assert call("trace", program_file, "--format", "html", "--out", out).status == 0
    assert out.read_text().startswith("<!DOCTYPE html>")


def test_wide_and_long_runs_are_cut_unless_all_is_asked_for(call, program_file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    _, out, _ = call("trace", program_file, "--complexity", "60")
    assert "of 121 cells and 81 of 121 steps (--full shows everything)" in out
    assert max(map(len, out.splitlines())) <= 120
    _, full, _ = call("trace", program_file, "--complexity", "60", "--full")
    assert "..." not in full and "left out" not in full
    assert len(full.splitlines()) > 121


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--memory", "1 2 3", "--complexity", "3"), "--complexity"),
        (("--memory", "1 2 3", "--task", "copy"), "--task"),
        (("--memory", "1 2 9"), "0..2"),
        (("--memory", "[[1, 2, 0], [0, 1, 2]]"), "one memory"),
        (("--task", "cpoy"), "copy"),
        (("--complexity", "5", "--memory-size", "4"), "at least 11"),
        (("--out", "trace.gif"), ".png"),
        (("--out", "trace.png", "--format", "html"), "--format html"),
        (("--member", "1"), "--soft"),
    ],
)
def test_what_cannot_be_traced_is_refused(call, program_file, words, says):
    status, out, err = call("trace", program_file, *words)
    assert status == 2 and out == ""
    assert says in err


def test_a_program_without_a_task_needs_a_memory(call, program_file):
    program_file.write_text(PROGRAM.replace("task: copy\n", ""))
    status, _, err = call("trace", program_file)
    assert status == 2 and "--memory" in err
    assert call("trace", program_file, "--task", "copy").status == 0


def test_a_program_that_must_be_stopped_asks_when(call, program_file):
    program_file.write_text(PROGRAM.replace("limit: 2n+1", "limit: 2n+1, needed"))
    status, _, err = call("trace", program_file, "--memory", MEMORY)
    assert status == 2 and "T(n) = 2n+1" in err
    assert call("trace", program_file).status == 0


# ---- the continuous machine


def test_the_distributions_of_a_trained_member(nram, trained, tmp_path):
    picture = tmp_path / "soft.png"
    outcome = nram.run("trace", trained.path, "--soft", "--complexity", "3", "--out", picture, "--json")
    assert outcome.status == 0, outcome.err
    assert picture.read_bytes().startswith(b"\x89PNG")
    value = outcome.value
    assert value["instance"]["right"] is True
    first = value["steps"][0]
    assert first["registers"] == {"values": [0, 0], "probabilities": [1.0, 1.0]}
    assert sum(step["finish"] for step in value["steps"]) == pytest.approx(1, abs=1e-5)


def test_a_soft_trace_as_text(nram, trained):
    outcome = nram.run("trace", trained.path, "--soft", "--memory", "0 3 1 2 0", "--max-steps", "4")
    assert outcome.status == 0, outcome.err
    assert "f_t" in outcome.out and "p_t" in outcome.out
    assert [line.split("|")[0].strip() for line in outcome.out.splitlines() if "|" in line][1:] == [
        *("1", "2", "3", "4", "end", "out")
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--format", "html"), "html"),
        (("--task", "copy"), "--task"),
        (("--member", "99"), "no member 99"),
        (("--memory", "1 2 0"), "--max-steps"),
    ],
)
def test_soft_traces_that_cannot_be_are_refused(call, trained, words, says):
    status, out, err = call("trace", trained.path, "--soft", *words)
    assert status == 2 and out == ""
    assert says in err


def test_a_program_file_has_no_continuous_machine(call, program_file):
    status, _, err = call("trace", program_file, "--soft")
    assert status == 2 and "folder of a run" in err
