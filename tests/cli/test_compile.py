"""`nram compile`: what is written, what is said, and what is refused."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_linker = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a linker")

PROGRAM = """nram program 1
name: double increment
registers: r1

when r1 = 0:
    o1 = READ(0)
    o2 = INC(o1)
    o3 = INC(o2)
    WRITE(0, o3)
    r1 := 1
otherwise:
    halt
"""


@pytest.fixture
def program(tmp_path, monkeypatch) -> Path:
    """A program's file; files without a folder go beside it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.nram"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize(
    ("form", "out"),
    [
        ("object", "nram_double_increment.o"),
        ("c", "nram_double_increment.c"),
        ("llvm", "nram_double_increment.ll"),
        pytest.param("shared", "nram_double_increment.so", marks=needs_linker),
    ],
)
def test_each_form_is_written_with_a_header_beside_it(form, out, program, call):
    if form == "shared" and sys.platform == "darwin":
        out = out.replace(".so", ".dylib")
    outcome = call("compile", program, "--emit", form, "--json")
    assert outcome.status == 0, outcome.err
    value = outcome.value
    assert (value["emit"], value["out"], value["header"]) == (form, out, "nram_double_increment.h")
    assert (value["symbol"], value["registers"]) == ("nram_double_increment", ["r1"])
    assert Path(out).stat().st_size > 0
    assert "int32_t nram_double_increment(" in Path(value["header"]).read_text()


@pytest.mark.parametrize("words", [("--emit", "python"), ("--out", "double_increment.py")])
def test_python_source_is_one_file_that_can_be_imported(words, program, call):
    outcome = call("compile", program, *words)
    assert outcome.status == 0 and "from double_increment import double_increment" in outcome.out
    outcome = call("compile", program, *words, "--json")
    value = outcome.value
    assert (value["emit"], value["out"], value["symbol"]) == ("python", "double_increment.py", "double_increment")
    assert value["header"] is None and value["unchecked_symbol"] is None
    assert sorted(path.name for path in Path().iterdir()) == ["double_increment.py", "program.nram"]
    code = "from double_increment import double_increment; print(double_increment([2, 0, 0, 0, 0]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "([4, 0, 0, 0, 0], True)\n", done.stderr


@needs_linker
def test_a_library_does_what_the_program_does(program, call, tmp_path):
    outcome = call("compile", program, "--out", tmp_path / "library.so", "--name", "twice", "--json")
    assert (outcome.status, outcome.value["emit"]) == (0, "shared"), outcome.err
    cells = (ctypes.c_int32 * 4)(3, 0, 0, 0)
    steps = ctypes.c_int64()
    function = ctypes.CDLL(outcome.value["out"])[outcome.value["symbol"]]
    limits = ctypes.c_int64(4), ctypes.c_int64(100)
    assert function(cells, *limits, ctypes.byref(steps), None) == 1
    assert (list(cells), steps.value) == ([1, 0, 0, 0], 2)


def test_a_program_of_the_zoo_is_named_by_its_task(program, call):
    outcome = call("compile", "copy", "--out", "copy.c")
    assert outcome.status == 0, outcome.err
    assert "copy.c" in outcome.out and "nram_copy(" in outcome.out
    assert "task copy" in Path("copy.c").read_text()


def test_the_c_source_says_which_row_a_block_is(program, call):
    call("compile", program, "--out", "program.c")
    text = Path("program.c").read_text()
    assert "/* state 0, row 1: when r1 = 0 */" in text and "/* state 0, row 2: else */" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--emit", "pascal"], "choose from"),
        (["--out", "program.exe"], "--emit"),
        (["--emit", "c", "--out", "program.h"], "header"),
        (["--emit", "c", "--out", "."], "folder"),
        (["--name", "1st"], "C function"),
        (["--name", "while"], "another name"),
    ],
)
def test_bad_usage_is_refused_with_what_to_change(words, said, program, call):
    outcome = call("compile", program, *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err
    assert [path.name for path in program.parent.iterdir()] == [program.name]


def test_what_is_no_program_is_refused(program, call):
    program.write_text(PROGRAM.replace("INC(o1)", "INC(o9)"))
    outcome = call("compile", program, "--emit", "object")
    assert outcome.status == 2
    assert "o9" in outcome.err
    assert call("compile", "no-such-task").status == 2


def test_a_folder_that_does_not_exist_is_refused(program, call):
    outcome = call("compile", program, "--out", "nowhere/program.o")
    assert outcome.status == 2
    assert "nowhere/program.o" in outcome.err


def test_without_a_linker_a_shared_library_is_refused_and_the_rest_still_works(program, nram):
    refused = nram.run("compile", program, "--emit", "shared", "--out", "program.so", PATH="", CC="")
    assert refused.status == 1
    assert "gcc" in refused.err and "--emit object" in refused.err and "--emit c" in refused.err
    assert not Path("program.so").exists()
    for out in ("program.o", "program.c"):
        assert nram.run("compile", program, "--out", out, PATH="", CC="").status == 0


def test_a_linker_that_fails_is_quoted(program, nram):
    failing = nram.run("compile", program, "--emit", "shared", CC="false")
    assert failing.status == 1 and "false could not link" in failing.err
    missing = nram.run("compile", program, "--emit", "shared", CC="no-such-compiler")
    assert missing.status == 1 and "no-such-compiler cannot be started" in missing.err


def test_a_file_of_python_does_not_hide_a_module_of_python(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = call("compile", "copy", "--emit", "python")
    assert outcome.status == 0 and "from copy_program import copy" in outcome.out
    assert [file.name for file in tmp_path.iterdir()] == ["copy_program.py"]


@pytest.mark.parametrize("words", [["python", "a.py"], ["c", "a.c"], ["object", "a.h"], ["llvm", "a.h"]])
def test_source_that_nram_did_not_write_is_not_overwritten(words, program, call):
    form, name = words
    Path(name).write_text("my own work\n")
    out = name if form in ("python", "c") else "a.o"
    outcome = call("compile", program, "--emit", form, "--out", out)
    assert outcome.status == 2 and f"{name} that nram did not write" in outcome.err
    other = Path(out).with_name(f"a_nram{Path(out).suffix}")
    assert f"--out {other}" in outcome.err
    assert Path(name).read_text() == "my own work\n" and not other.exists()
    for _ in range(2):  # what nram wrote is overwritten
        assert call("compile", program, "--emit", form, "--out", other).status == 0
