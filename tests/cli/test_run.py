"""`nram run`: what scripts rely on, every way to hand in a memory, and what is refused (spec, section 5)."""

import io
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.program_cases import IDLING_MERGE

from nram.cli.memory_argument import read_memory
from nram.errors import NramError, UsageError
from nram.programs.library import load_program

PAPER = Path(__file__).parents[2] / "src/nram/examples" / "paper"
COPY, INCREMENT, REVERSE = PAPER / "copy.nram", PAPER / "increment.nram", PAPER / "reverse.nram"
MEMORY = "6 2 10 6 8 9 0 0 0 0 0"
CELLS = [6, 2, 10, 6, 8, 9, 0, 0, 0, 0, 0]
COPIED = [6, 2, 10, 6, 8, 9, 2, 10, 6, 8, 9]
REVERSED = [6, 2, 10, 6, 8, 9, 9, 8, 6, 10, 2]
SHORT = [3, 1, 2, 0, 0]  # reversed: 3 1 2 2 1


@pytest.fixture
def on_stdin(monkeypatch):
    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give


@pytest.mark.parametrize("engine", ["native", "python"])
def test_the_papers_example_gives_the_papers_result(call, engine):
    words = ["run", COPY, "--memory", "6 2 10 6 8 9 0 0 0 0 0 0", "--max-steps", "11", "--engine", engine, "--json"]
    outcome = call(*words)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.value == {"memory": [*COPIED, 0], "registers": [0, 5, 5, 5], "steps": 11, "halted": False}
    assert list(outcome.value) == ["memory", "registers", "steps", "halted"]


def test_a_program_that_halts_needs_no_limit(call):
    outcome = call("run", REVERSE, "--memory", MEMORY, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.value == {"memory": REVERSED, "registers": [6, 1, 1, 1], "steps": 12, "halted": True}
    padded = call("run", REVERSE, "--memory", MEMORY, "--memory-size", "15", "--json").value
    assert padded["memory"][6:] == [*REVERSED[6:], 0, 0, 0, 0] and padded["steps"] == 16


def test_a_batch_gives_one_entry_for_each_memory(call):
    outcome = call("run", REVERSE, "--memory", json.dumps([SHORT, [3, 4, 4, 0, 0]]), "--json")
    assert outcome.value == {
        "memory": [[3, 1, 2, 2, 1], [3, 4, 4, 4, 4]],
        "registers": [[3, 1, 1, 1], [3, 1, 1, 1]],
        "steps": [6, 6],
        "halted": [True, True],
    }


def test_what_sample_prints_can_be_run(call, on_stdin):
    instances = call("sample", "reverse", "--complexity", "4", "--count", "3", "--json")
    on_stdin(instances.out.encode())
    outcome = call("run", REVERSE, "--memory", "-", "--json")
    for memory, instance in zip(outcome.value["memory"], instances.value, strict=True):
        assert [memory[cell] for cell in instance["cells"]] == [instance["output"][cell] for cell in instance["cells"]]


def test_the_default_limit_without_halting_is_a_failure_that_still_prints_the_result(call):
    outcome = call("run", COPY, "--memory", MEMORY, "--json")
    assert outcome.status == 1
    assert outcome.value == {"memory": COPIED, "registers": [0, 5, 5, 5], "steps": 1728, "halted": False}
    assert outcome.err.startswith("nram run: the paper's copy did not halt within 1728 steps, which is 64 M + 1024")
    assert "--max-steps" in outcome.err and "T(n) = 2n+1" in outcome.err
    batch = call("run", COPY, "--memory", json.dumps([CELLS, CELLS]), "--json")
    assert batch.status == 1 and batch.value["halted"] == [False, False] and "on 2 of 2 memories" in batch.err


LOOP = """nram program 1
name: loop
layout: x ->y
registers: r1

always:
    r1 := r1
"""


def test_a_program_that_may_loop_for_ever_has_no_result(call, tmp_path):
    program = tmp_path / "loop.nram"
    program.write_text(LOOP)
    outcome = call("run", program, "--input", "x=3")
    assert outcome.status == 1 and "y = " not in outcome.out
    assert "no result: it did not halt within" in outcome.out
    assert "it may loop for ever on this input" in outcome.err and "--max-steps" not in outcome.err
    assert call("run", program, "--input", "x=3", "--json").value["results"] is None
    with pytest.raises(NramError, match="did not halt"):
        load_program(program).call(x=3)


def test_a_program_that_must_be_stopped_asks_when(call):
    outcome = call("run", INCREMENT, "--memory", MEMORY, "--json")
    assert (outcome.status, outcome.out) == (2, "")
    assert "T(n) = n steps" in outcome.err and "--max-steps" in outcome.err
    outcome = call("run", INCREMENT, "--memory", MEMORY, "--memory-size", "12", "--max-steps", "6", "--json")
    assert (outcome.status, outcome.value["memory"][:7]) == (0, [7, 3, 11, 7, 9, 10, 0])


def test_no_steps_at_all_leave_everything_as_it_is(call):
    outcome = call("run", REVERSE, "--memory", MEMORY, "--max-steps", "0", "--json")
    assert outcome.value == {"memory": CELLS, "registers": [0] * 4, "steps": 0, "halted": False}


# ---- ways to hand in a memory


WORDS = [
    MEMORY,
    MEMORY.replace(" ", ","),
    MEMORY.replace(" ", " , "),
    f"  {MEMORY}\n",
    json.dumps(CELLS),
    "\t".join(MEMORY.split()),
]


@pytest.mark.parametrize("text", WORDS)
def test_words_lists_files_and_standard_input_mean_the_same(tmp_path, on_stdin, text):
    assert read_memory(text) == CELLS
    for content in (text.encode(), b"\xef\xbb\xbf" + text.encode()):
        (tmp_path / "memory").write_bytes(content)
        assert read_memory(f"@{tmp_path / 'memory'}") == CELLS
        on_stdin(content)
        assert read_memory("-") == CELLS


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_arrays_keep_their_type(tmp_path, on_stdin, dtype):
    for array in (np.array(CELLS, dtype), np.array([CELLS, CELLS], dtype), np.asfortranarray([CELLS, COPIED], dtype)):
        np.save(tmp_path / "memory.npy", array)
        found = read_memory(f"@{tmp_path / 'memory.npy'}")
        on_stdin((tmp_path / "memory.npy").read_bytes())
        for read in (found, read_memory("-")):
            assert isinstance(read, np.ndarray) and read.dtype == dtype and np.array_equal(read, array)


WRONG_MEMORIES = {
    "nothing": ("", "--memory: the memory is empty"),
    "spaces": (" \n", "--memory: the memory is empty"),
    "an empty list": ("[]", "--memory: the memory is empty"),
    "a word": ("1 2 x 4", "--memory: 'x', for cell 2, is not a whole number"),
    "a fraction": ("1, 2.5", "--memory: '2.5', for cell 1, is not a whole number"),
    "an underscore": ("1_0 2 3", "--memory: '1_0', for cell 0, is not a whole number"),
    "a foreign digit": ("1 ٣ 3", "--memory: '٣', for cell 1, is not a whole number"),
    "thousands of digits": ("1 " + "9" * 5000, "for cell 1, is not a whole number"),
    "two commas": ("1, ,2", "there is a comma but no number for cell 1"),
    "a comma at the beginning": (",1,2", "there is a comma but no number for cell 0"),
    "a comma at the end": ("1,2,", "there is a comma but no number for cell 2"),
    "half a list": ("[1, 2", "--memory: this is no JSON list: it is not JSON: Expecting"),
    "a deep list": ("[" * 100_000, "--memory: this is no JSON list"),
    "a list of fractions": ("[1, 2.0]", "--memory: cell 1 is 2.0: the cells of a memory are whole numbers"),
    "a list of words": ('[1, "2"]', "--memory: cell 1 is '2': the cells of a memory are whole numbers"),
    "a list with true": ("[true, 2]", "--memory: cell 0 is True: the cells of a memory are whole numbers"),
    "a list with NaN": ("[NaN]", "--memory: this is no JSON list: it is not JSON: NaN is not a number"),
    "an object": ('{"memory": [1]}', "--memory: cell 0 is {'memory': [1]}: the cells of a memory are whole numbers"),
    "unequal lists": ("[[1, 2, 0], [1, 2]]", "the first has 3 cells, memory 2 has 2"),
    "a number among lists": ("[[1, 2, 0], 1]", "memory 2 of the batch is 1: give a list"),
    "a fraction in a batch": ("[[1, 2, 0], [1, 0.5, 0]]", "cell 1 of memory 2 is 0.5"),
    "no file": ("@", "--memory @ names no file"),
    "a missing file": ("@nothing.txt", "--memory: nothing.txt cannot be read: No such file"),
    "a folder": ("@.", "--memory: . cannot be read: Is a directory"),
    "a name that no file has": ("@a\0b", "--memory: 'a\\x00b' is not a valid file name"),
}


@pytest.mark.parametrize("case", WRONG_MEMORIES)
def test_what_is_no_memory_is_refused_with_its_place(call, case):
    text, words = WRONG_MEMORIES[case]
    outcome = call("run", REVERSE, "--memory", text, "--json")
    assert (outcome.status, outcome.out) == (2, "")
    assert words in outcome.err and outcome.err.count("\n") == 1


WRONG_FILES = {
    "bytes": ("memory", b"\xff\xfe\x01", "memory: this is neither text nor a .npy array"),
    "no array": ("memory.npy", b"1 2 3", "memory.npy: this is no .npy array"),
    "half an array": ("memory", b"\x93NUMPY\x01\x00", "memory: this is no .npy array"),
    "a broken head": ("memory", b"\x93NUMPY\x01\x00\x0a\x00{'descr'::\n", "memory: this is no .npy array"),
    "a pickle": ("memory.npy", pickle.dumps([1, 2, 3]), "memory.npy: this is no .npy array"),
    "an empty file": ("memory.txt", b"", "memory.txt: the memory is empty"),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_file_that_holds_no_memory_is_refused(tmp_path, case):
    name, content, words = WRONG_FILES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_memory(f"@{tmp_path / name}")
    assert words in str(caught.value)


def test_an_array_of_objects_is_not_unpickled(tmp_path):
    np.save(tmp_path / "memory.npy", np.array([1, None], object))
    with pytest.raises(UsageError, match="no .npy array"):
        read_memory(f"@{tmp_path / 'memory.npy'}")


def test_an_array_that_claims_more_than_its_file_holds_is_refused(tmp_path):
    np.save(tmp_path / "memory.npy", np.arange(10))
    content = (tmp_path / "memory.npy").read_bytes()
    (tmp_path / "memory.npy").write_bytes(content.replace(b"(10,)", b"(99,)"))
    with pytest.raises(UsageError, match="no .npy array"):
        read_memory(f"@{tmp_path / 'memory.npy'}")


WRONG_RUNS = {
    "a size smaller than the memory": (
        ["--memory-size", "10"],
        "the memory has 11 cells, and memory size 10 is smaller",
    ),
    "a size of 0": (["--memory-size", "0"], "0 is too small"),
    "a negative limit": (["--max-steps", "-1"], "-1 is negative"),
    "a limit beyond 62 bits": (["--max-steps", str(2**62)], "give at most"),
    "an unknown engine": (["--engine", "steam"], "invalid choice: 'steam'"),
    "a folder that does not exist": (["--out", "nowhere/x.npy"], "there is no folder nowhere"),
    "a folder": (["--out", "."], "--out . is a folder"),
    "no memory": ([], "one of the arguments --memory --input --complexity is required"),
}


@pytest.mark.parametrize("case", WRONG_RUNS)
def test_bad_usage_says_what_to_change(call, case):
    words, message = WRONG_RUNS[case]
    outcome = call("run", REVERSE, *(["--memory", MEMORY] if words else []), *words, "--json")
    assert (outcome.status, outcome.out) == (2, "") and message in outcome.err


def test_values_outside_of_the_memory_are_refused(call):
    outcome = call("run", REVERSE, "--memory", "3 9 0 0 0", "--json")
    assert outcome.status == 2 and "9 in cell 1; a memory of 10 cells could hold them (--memory-size)" in outcome.err
    outcome = call("run", REVERSE, "--memory", "3 -1 0 0 0")
    assert outcome.status == 2 and "-1 in cell 1" in outcome.err


def test_a_program_that_is_none_is_refused(call, tmp_path):
    (tmp_path / "bad.nram").write_text("nram program 1\nregisters: r1\nalways:\n  o1 = JUMP(r9)\n")
    outcome = call("run", tmp_path / "bad.nram", "--memory", MEMORY)
    assert (outcome.status, outcome.out) == (2, "")
    assert "line 4: 'JUMP' is not a module" in outcome.err and "line 4: 'r9' is not a register" in outcome.err
    outcome = call("run", "no-such-program", "--memory", MEMORY)
    assert outcome.status == 2 and "there is no program 'no-such-program'" in outcome.err


# ---- what is written


@pytest.mark.parametrize("name", ["out.npy", "out.json", "out.txt", "out"])
def test_the_memory_can_be_written_and_handed_in_again(call, tmp_path, name):
    path = tmp_path / name
    outcome = call("run", REVERSE, "--memory", MEMORY, "--out", path, "--json")
    assert (outcome.status, outcome.value["memory"]) == (0, REVERSED)
    assert list(read_memory(f"@{path}")) == REVERSED
    assert call("run", REVERSE, "--memory", f"@{path}", "--max-steps", "0", "--json").value["memory"] == REVERSED
    assert f"memory written to {path}" in call("run", REVERSE, "--memory", MEMORY, "--out", path).out


def test_a_batch_is_written_to_what_can_hold_it(call, tmp_path):
    batch = json.dumps([SHORT, SHORT])
    for name in ("out.npy", "out.json"):
        assert call("run", REVERSE, "--memory", batch, "--out", tmp_path / name).status == 0
        assert np.array(read_memory(f"@{tmp_path / name}")).tolist() == [[3, 1, 2, 2, 1]] * 2
    outcome = call("run", REVERSE, "--memory", batch, "--out", tmp_path / "out.txt")
    assert outcome.status == 2 and "needs a file that ends in .npy or .json" in outcome.err
    assert not (tmp_path / "out.txt").exists()


def test_an_array_file_keeps_its_type_and_a_large_one_is_quick(call, tmp_path):
    size = 200_001
    array = np.zeros(size, np.uint32)
    array[0], array[1:100_001] = 100_001, np.arange(1, 100_001)
    np.save(tmp_path / "in.npy", array)
    outcome = call("run", REVERSE, "--memory", f"@{tmp_path / 'in.npy'}", "--out", tmp_path / "out.npy")
    assert outcome.status == 0 and outcome.out.count("\n") < 30
    written = np.load(tmp_path / "out.npy")
    assert written.dtype == np.uint32 and np.array_equal(written[100_001:], array[100_000:0:-1])


# ---- what a person sees


def test_plain_output_marks_what_changed(call):
    out = call("run", REVERSE, "--memory", MEMORY).out.splitlines()
    assert out == [
        "the paper's reverse: halted after 12 steps",
        "memory, 11 cells, 5 changed, in brackets; ^ marks the output cells:",
        "   0:   6   2  10   6   8   9 [ 9][ 8][ 6][10][ 2]",
        "                               ^^  ^^  ^^  ^^  ^^",
        "registers: r1 = 6, r2 = 1, r3 = 1, r4 = 1",
    ]
    out = call("run", REVERSE, "--memory", MEMORY, "--max-steps", "1").out.splitlines()
    assert out[:2] == [
        "the paper's reverse: did not halt within 1 step",
        "memory, 11 cells, none changed; ^ marks the output cells:",
    ]


def test_large_memories_are_cut_unless_all_is_wanted(call):
    words = ["run", REVERSE, "--memory", "6 1 2 3 4 5", "--memory-size", "5000", "--max-steps", "6"]
    cut, full = call(*words).out, call(*words, "--full").out
    assert cut.count("\n") < 20 and "..." in cut and "rows (--full shows all" in cut and "4980:" in cut
    assert "..." not in full and full.count("\n") > 250
    for out in (cut, full):
        assert "[5][4][3][2][1]" in out and "memory, 5000 cells, 5 changed" in out


def test_large_batches_are_cut_unless_all_is_wanted(call):
    words = ["run", REVERSE, "--memory", json.dumps([SHORT] * 25)]
    cut, full = call(*words).out, call(*words, "--full").out
    assert "memory 10 of 25: halted after 6 steps" in cut and "memory 11 of 25" not in cut
    assert "... and 15 more memories (--full shows all)" in cut
    assert "memory 25 of 25" in full and "25 of 25 halted, after at most 6 steps" in full


def test_it_works_in_a_pipe_and_does_not_import_jax():
    code = "import sys; from nram.cli import main; sys.exit(main(sys.argv[1:]) or 'jax' in sys.modules)"
    words = [sys.executable, "-c", code, "run", str(REVERSE), "--memory", "-", "--json"]
    done = subprocess.run(words, input=MEMORY, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr, json.loads(done.stdout)["memory"]) == (0, "", REVERSED)


def test_a_drawn_instance_is_solved_and_checked(call):
    outcome = call("run", "access", "--complexity", "7", "--seed", "3", "--json")
    assert outcome.status == 0
    assert json.loads(outcome.out)["right"] is True
    outcome = call("run", "access", "--complexity", "1000")
    assert outcome.status == 0 and "right: 1 output cell," in outcome.out


def test_on_an_instance_a_program_runs_to_its_limit_whether_it_halts_or_idles(call):
    outcome = call("run", str(IDLING_MERGE), "--complexity", "6")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("right at T(n) = 4n+8: 6 output cells")
    assert "\nmerge: did not halt within 32 steps\n" in outcome.out
    value = call("run", str(IDLING_MERGE), "--complexity", "6", "--json").value
    assert value["right"] and not value["halted"] and value["steps"] == 32 and value["cells"] == list(range(11, 17))
    assert call("run", str(IDLING_MERGE), "--complexity", "6", "--max-steps", "40", "--json").value["steps"] == 40
    halting = call("run", "merge@searched", "--complexity", "6")
    assert halting.status == 0 and "halted after" in halting.out and "right: 6" in halting.out


def test_a_program_whose_card_says_right_under_every_limit_may_idle_on_a_memory(call):
    memory = "3 6 9 1 2 15 4 5 15 0 0 0 0 0 0 0"
    outcome = call("run", str(IDLING_MERGE), "--memory", memory, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    assert (outcome.value["steps"], outcome.value["halted"]) == (64 * 16 + 1024, False)
    assert outcome.value["memory"][9:13] == [1, 2, 4, 5]
    shown = call("run", str(IDLING_MERGE), "--memory", json.dumps([json.loads(f"[{memory.replace(' ', ',')}]")] * 2))
    assert shown.status == 0 and "its card says that it is right under every limit" in shown.out


@pytest.mark.parametrize(
    "memory", ["3 9 0 3 4 0 0 0 0 0", "3 9 0 9 4 0 0 0 0 0"], ids=["no such value", "past the end"]
)
def test_no_cells_are_marked_on_a_memory_that_is_no_input_of_the_task(call, memory):
    outcome = call("run", "listsearch", "--memory", memory)
    assert outcome.status == 0 and "^" not in outcome.out


def test_the_results_of_a_layout_are_marked(call, tmp_path):
    file = tmp_path / "first.nram"
    text = "nram program 1\nlayout: values[] 0 ->first\nregisters: r1\nalways:\n o1 = READ(0)\n WRITE(2, o1)\n halt\n"
    file.write_text(text)
    out = call("run", file, "--memory", "3 0 0 0").out.splitlines()
    assert out[2:4] == ["  0:  3  0 [3] 0", "            ^"]


def test_output_cells_are_marked_in_every_row(call):
    out = call("run", "reverse", "--complexity", "30").out.splitlines()
    rows = [i for i, line in enumerate(out) if re.match(r" +[0-9]+: ", line)]
    cells = [cell for i in rows for cell in re.findall(r"[0-9]+", out[i])[1:]]
    marks = [mark for i in rows for mark in ([out[i + 1]] if "^" in out[i + 1] else []) for mark in mark.split()]
    assert len(cells) == 61 and len(marks) == 30 and set(marks) == {"^^"}
    for i in rows:  # a mark stands below the number that it marks
        for found in re.finditer(r"\^+", out[i + 1] if "^" in out[i + 1] else ""):
            assert out[i][found.start() : found.end()].strip().isdigit()


def test_a_wrong_answer_to_a_drawn_instance_is_a_failure(call, tmp_path):
    file = tmp_path / "wrong.nram"
    file.write_text("nram program 1\ntask: copy\nregisters: r1\n\nalways:\n    halt\n")
    outcome = call("run", file, "--complexity", "3")
    assert outcome.status == 1 and "WRONG" in outcome.out
    assert json.loads(call("run", file, "--complexity", "3", "--json").out)["right"] is False


def test_what_belongs_to_an_instance_does_not_go_with_a_memory(call):
    outcome = call("run", "access", "--memory", "1 2 0", "--seed", "1")
    assert outcome.status == 2 and "--complexity instead of --memory" in outcome.err


def test_values_beyond_the_cells_are_given_with_the_largest_value(call):
    """In a memory of 2,000,000,001 cells, of which those given are shown."""
    words = ["run", "increment@searched", "--memory", "1999999998 7 0", "--largest-value", "2000000000", "--json"]
    outcome = call(*words)
    assert (outcome.status, outcome.value["memory"][:2], len(outcome.value["memory"])) == (0, [1999999999, 8], 3)
    outcome = call(*words, "--memory-size", "9")
    assert outcome.status == 2 and "leave out one of it and --memory-size" in outcome.err
    outcome = call(*words, "--engine", "python")
    assert outcome.status == 2 and "the interpreter holds every cell" in outcome.err
