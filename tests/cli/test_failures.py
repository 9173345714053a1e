"""What goes wrong is one line on standard error. Closed streams are no error, a full disk is one."""

import fcntl
import json
import os
import subprocess
import sys
import termios
import time

import pytest

from nram.cli import tasks
from nram.programs.library import load_program
from nram.programs.text import to_text

CAPACITY = 1 << 16  # of a pipe
REPORT = "this is a bug in nram. Please report it to the project's issue tracker"

# The command line with errors that Python reports by itself: in a thread, in a destructor, as a warning.
ELSEWHERE = """
import sys, threading, warnings
from nram.cli import main, tasks

class Bad:
    def __del__(self):
        raise KeyError("destructor")

def fail():
    raise KeyError("thread")

def run(arguments):
    warnings.warn("a warning\\x1b[31m")
    Bad()
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    return 0

tasks.run = run
sys.exit(main())
"""


def recurse(arguments):
    return recurse(arguments)


def raising(error):
    def run(arguments):
        raise error

    return run


def test_endless_recursion_is_one_line(call, monkeypatch):
    monkeypatch.setattr(tasks, "run", recurse)
    outcome = call("tasks")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("nram tasks: RecursionError: maximum recursion depth exceeded: " + REPORT)
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KeyError("a\nb\x1b[2J"), f"KeyError: 'a\\nb\\x1b[2J': {REPORT}"),
        (ValueError("two\nlines \x1b[2J"), f"ValueError: two lines \\x1b[2J: {REPORT}"),
        (AssertionError(), f"AssertionError: {REPORT}"),
        (MemoryError(), "out of memory: use a smaller population, batch or memory"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), "out of memory: use a smaller"),
        (ImportError("no numba"), "ImportError: no numba: a library that nram needs is missing or damaged"),
        (OSError(28, "No space left on device", "x\x1b"), "x\\x1b: No space left on device"),
        (OSError("strange"), f"OSError: strange: {REPORT}"),
        (KeyboardInterrupt(), "interrupted"),
        (ValueError("x" * 10_000), "ValueError: xxx"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_any_error_is_one_line_and_status_1(call, monkeypatch, error, expected):
    monkeypatch.setattr(tasks, "run", raising(error))
    outcome = call("tasks")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith(f"nram tasks: {expected}")
    assert outcome.err.count("\n") == 1 and len(outcome.err) < 1000


def test_nram_debug_shows_the_traceback_as_well(call, monkeypatch):
    monkeypatch.setenv("NRAM_DEBUG", "1")
    monkeypatch.setattr(tasks, "run", raising(KeyError("x")))
    outcome = call("tasks")
    assert outcome.status == 1
    assert outcome.err.startswith("Traceback") and "in run\n    raise error\n" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("nram tasks: KeyError: 'x': this is a bug")


def test_errors_in_threads_and_destructors_and_warnings_are_single_lines():
    command = [sys.executable, "-c", ELSEWHERE, "tasks"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    warning, thread = done.stderr.splitlines()
    assert warning == "nram tasks: a warning\\x1b[31m"
    assert thread.startswith(f"nram tasks: KeyError: 'thread': {REPORT}")


def test_a_damaged_library_is_one_line(nram, tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError('half installed')")
    outcome = nram.run("run", "copy", "--memory", "1 2", PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == (
        "nram run: ImportError: half installed: a library that nram needs is missing or damaged: install nram again\n"
    )


# ---- closed streams


def shell(words: str) -> tuple[int, str, str]:
    script = f'nram() {{ "{sys.executable}" -m nram "$@"; }}; {words}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


WRONG = "sample nothing"
COMMANDS = {"zoo": 0, "zoo --json": 0, "--help": 0, "sample copy --json": 0, WRONG: 2, "show": 2}


@pytest.mark.parametrize("words", COMMANDS)
def test_closed_streams_are_no_error(words):
    assert shell(f"nram {words} >&- 2>&- <&-") == (COMMANDS[words], "", "")


def test_notes_do_not_move_to_another_stream():
    """Python would print what is meant for a closed standard error on standard output."""
    assert shell(f"nram {WRONG} 2>&-") == (2, "", "")
    status, out, err = shell("nram simplify copy --json 2>&-")
    assert (status, err) == (0, "") and out.startswith('{"out": null')


def test_a_closed_standard_input_is_empty():
    assert shell("nram run copy --memory - <&-") == (
        2,
        "",
        "nram run: standard input: the memory is empty: give its cells\n",
    )


def test_a_reader_that_goes_away_does_not_change_the_status():
    right = "nram verify copy --budget 1 --symbolic 0 --largest 5 --max-n 2"
    assert shell(f"{right} | head -c 1; exit ${{PIPESTATUS[0]}}")[0] == 0
    status, _, err = shell(f"{right} --task reverse | head -c 1; exit ${{PIPESTATUS[0]}}")
    assert status == 1 and "Traceback" not in err


@pytest.mark.parametrize("words", ["zoo", "zoo --json", "--help", "sample copy --count 2000 --json"])
def test_a_full_disk_is_one_line(words):
    name = f"nram {words.split()[0]}".removesuffix(" --help")
    assert shell(f"nram {words} > /dev/full") == (1, "", f"{name}: standard output: No space left on device\n")


def test_a_full_pipe_that_does_not_block_is_waited_for():
    """Somebody who shares the pipe has made it so; Python would end with a traceback, and half the output."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    command = [sys.executable, "-m", "nram", "sample", "copy", "--count", "3000", "--json"]
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, text=True) as process:
        waiting = bytearray(4)
        while int.from_bytes(waiting, sys.byteorder) < CAPACITY and process.poll() is None:
            fcntl.ioctl(writer, termios.FIONREAD, waiting)
            time.sleep(0.01)
        os.close(writer)
        with open(reader, "rb") as file:
            printed = file.read()
        assert process.stderr is not None
        assert (process.wait(), process.stderr.read()) == (0, "")
    assert len(printed) > 2 * CAPACITY
    assert len(json.loads(printed)) == 3000


def test_a_full_disk_behind_standard_error_does_not_stop_the_work():
    status, out, _ = shell("nram simplify copy 2> /dev/full")
    assert status == 0 and "WRITE" in out


def test_names_that_are_not_text_can_be_printed(tmp_path):
    status, out, err = shell(f"cd {tmp_path}; nram draw copy --out $'\\xff.svg'")
    assert (status, err) == (0, "") and "\\udcff.svg" in out


# ---- names that would control the terminal

ESCAPE = "\x1b[2J\u202e"


@pytest.mark.parametrize(
    "words",
    [
        [ESCAPE],
        ["show", ESCAPE],
        ["tasks", f"{ESCAPE}.py"],
        ["modules", "bad.py"],
        ["show", "bad.nram"],
        ["learn", "bad.jsonl"],
        ["eval", "run"],
        ["eval", ESCAPE],
        ["search", ESCAPE],
        ["run", "copy", "--memory", f"1 {ESCAPE}"],
        ["train", "access", "--set", f"{ESCAPE}=1"],
        ["train", "access", "--config", "bad.toml"],
        ["train", "access", "--out", "run", "--resume"],
    ],
    ids=lambda words: " ".join(words).replace(ESCAPE, "NAME"),
)
def test_a_name_cannot_control_the_terminal(call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {
        "bad.py": f"raise ValueError({ESCAPE!r})",
        "bad.nram": to_text(load_program("copy")).replace("name: copy", f"name: {ESCAPE}"),
        "bad.jsonl": json.dumps({"input": [1, 2], "output": ESCAPE, ESCAPE: 1}),
        "bad.toml": f'"{ESCAPE.encode("unicode_escape").decode().replace(chr(92) + "x", chr(92) + "u00")}" = 1',
        "run/run.json": json.dumps({"format": 2, "config": {"task": ESCAPE, ESCAPE: ESCAPE}, ESCAPE: ESCAPE}),
    }
    (tmp_path / "run").mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    outcome = call(*words)
    assert outcome.status in (1, 2) and outcome.out == ""
    assert "\x1b" not in outcome.err and "\u202e" not in outcome.err
    assert "\\x1b" in outcome.err or "task" in outcome.err
