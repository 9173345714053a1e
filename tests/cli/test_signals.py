"""Ctrl-C, SIGTERM and SIGHUP, sent to real processes: they are noticed at once, and never show a traceback."""

import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nram.cli import search
from nram.process import SAME_SECONDS, SIGNALS, interruptible

# The command line, whose training or listing never returns from native code: no Python handler can run there.
BLOCKED = """
import ctypes, sys
from nram.cli import main, tasks
from nram.training.job import TrainingJob

def block(*arguments, **options):
    print("ready", file=sys.stderr, flush=True)
    mutex = ctypes.create_string_buffer(128)
    lock = ctypes.CDLL(None).pthread_mutex_lock
    lock(mutex), lock(mutex)  # it waits for itself

TrainingJob.run = tasks.run = block
sys.exit(main())
"""

# Takes the terminal that it is given as its own, then becomes the command.
ON_A_TERMINAL = """
import os, sys
for number in range(3):
    os.dup2(os.open(sys.argv[1], os.O_RDWR), number)
os.execv(sys.argv[2], sys.argv[2:])
"""


def wait_until(condition: Callable[[], object], process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not condition() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def catches_signals(process: subprocess.Popen) -> bool:
    """Whether nram has prepared the process. Before, Python itself is starting."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(re.findall(r"SigCgt:\s*(\w+)", status)[0], 16)
    return bool(caught >> (SIGNALS[-1] - 1) & 1)


def is_clean(text: str) -> bool:
    return not any(word in text for word in ("Traceback", "Exception ignored", "KeyboardInterrupt", "Error"))


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *words: str | Path):
        self.ours, theirs = pty.openpty()
        command = [sys.executable, "-c", ON_A_TERMINAL, os.ttyname(theirs), sys.executable, "-m", "nram", *words]
        self.process = subprocess.Popen(list(map(str, command)), start_new_session=True)
        wait_until(lambda: catches_signals(self.process), self.process)
        os.close(theirs)
        self.shown = ""

    def type(self, text: bytes) -> None:
        os.write(self.ours, text)

    def read_until(self, word: str) -> None:
        """Until the word is on the screen, or the command has ended."""
        while word not in self.shown:
            try:
                self.shown += os.read(self.ours, 10_000).decode(errors="replace")
            except OSError:  # no process has the terminal open any more
                break

    def end(self) -> int:
        self.read_until("\0")
        return self.process.wait(60)


@pytest.fixture
def blocked(tmp_path):
    """A function that starts the command line with these words, and waits until it is inside native code."""
    script = tmp_path / "blocked.py"
    script.write_text(BLOCKED)
    processes = []

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(script), *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        processes.append(process)
        assert process.stderr is not None and process.stderr.readline() == "ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_command_in_native_code_ends_at_once(blocked, number):
    process = blocked("tasks")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (1, "", "\nnram tasks: interrupted\n")


def test_a_job_in_native_code_is_asked_to_stop_and_the_next_signal_ends_it(blocked):
    process = blocked("train", "access", "--out", "run")
    for _ in range(3):  # a wrapper that passes Ctrl-C on makes several of one
        process.send_signal(signal.SIGINT)
    asked = process.stderr.readline()
    assert asked == "nram train: stopping after this step, then saving; Ctrl-C again stops at once\n"
    time.sleep(SAME_SECONDS + 0.1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (1, "", "\nnram train: interrupted\n")


def test_what_was_ignored_stays_ignored(blocked, tmp_path):
    """nohup ignores SIGHUP, and a script ignores SIGINT for what it starts in the background."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGINT)}
    try:
        process = blocked("tasks")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 1


def test_ctrl_c_while_training_compiles_is_answered_at_once_and_the_run_can_go_on(nram, tmp_path):
    path = tmp_path / "run"
    terminal = Terminal(*nram.train(path))
    terminal.read_until("compiling")
    terminal.type(b"\x03")
    terminal.read_until("stopping after this step")
    assert terminal.end() == 1
    assert re.search(r"stopped at step \d+ of stage \d; go on with: nram train access", terminal.shown)
    assert is_clean(terminal.shown)
    assert (path / "checkpoint.safetensors").is_file() and not (path / "result.json").exists()


def test_a_closed_terminal_stops_a_run_that_is_then_saved(nram, tmp_path):
    path = tmp_path / "run"
    terminal = Terminal(*nram.train(path))
    terminal.read_until("compiling")
    os.close(terminal.ours)  # SIGHUP; whatever is printed from now on fails
    assert terminal.process.wait(120) == 1
    assert (path / "checkpoint.safetensors").is_file() and not (path / "result.json").exists()


def test_a_program_found_while_the_search_is_asked_to_stop_is_kept_and_not_verified(call, tmp_path, monkeypatch):
    out = tmp_path / "my program.nram"

    class stopped_when_found(interruptible):
        def __enter__(self):
            return out.exists

    monkeypatch.setattr(search, "interruptible", stopped_when_found)
    outcome = call("search", "access", "--out", out)
    assert outcome.status == 0 and outcome.out.startswith("found after")
    assert outcome.err.endswith(f"stopped before the verification; go on with: nram verify '{out}'\n")


def test_a_search_stopped_while_it_compiles_leaves_nothing_and_can_start_again(call, tmp_path, monkeypatch):
    class stopped_at_once(interruptible):
        def __enter__(self):
            return lambda: True

    monkeypatch.setattr(search, "interruptible", stopped_at_once)
    for _ in range(2):
        outcome = call("search", "access", "--out", tmp_path / "a.nram")
        assert outcome.status == 1 and "stopped before there was anything to keep" in outcome.err
        assert not list(tmp_path.iterdir())


def test_ctrl_c_at_random_moments_shows_no_traceback(tmp_path):
    searching = ["search", "access", "--out", tmp_path / "found.nram"]
    for words in (["verify", "copy", "--budget", "30"], ["trace", "copy"], searching):
        terminal = Terminal(*words)
        time.sleep(random.uniform(0, 1))
        for _ in range(3):
            if terminal.process.poll() is None:
                terminal.type(b"\x03")
                time.sleep(random.uniform(0, SAME_SECONDS))
        assert terminal.end() in (0, 1)
        assert is_clean(terminal.shown), terminal.shown


VERBS = {
    "tasks": ["tasks"],
    "show": ["show", "copy"],
    "run": ["run", "copy", "--memory", "-"],  # it waits for the memory
    "verify": ["verify", "merge", "--budget", "2"],
    "prove": ["prove", "merge@searched", "--budget", "2", "--out", "merge.json"],
    "train": ["train", "access", "--out", "run", "--resume"],
    "search": ["search", "access", "--out", "found.nram", "--resume", "--verify-budget", "1"],
    "learn": ["learn", "examples.jsonl", "--out", "learned", "--resume", "--budget", "100"],
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_every_50_ms_from_the_start_shows_no_traceback(nram, verb, number, tmp_path):
    words = list(VERBS[verb])
    if verb == "train":
        words += ["--config", str(nram.settings)]
    inputs = [[*range(first, first + size), *[0] * (9 - size)] for size in range(1, 7) for first in range(1, 9 - size)]
    lines = [json.dumps({"input": cells, "output": [cells[0] + 1, *cells[1:]]}) for cells in inputs]
    (tmp_path / "examples.jsonl").write_text("\n".join(lines))
    silent, _ = os.pipe()  # nothing ever comes from there
    for moment in range(40):
        process = subprocess.Popen(
            [sys.executable, "-m", "nram", *words],
            stdin=silent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        wait_until(lambda process=process: catches_signals(process), process)
        time.sleep(0.05 * moment)
        for _ in range(1 + moment % 3):
            process.send_signal(number)
            time.sleep(random.choice([0, 0.01, SAME_SECONDS + 0.1]))
        if verb in ("train", "search", "learn") and process.poll() is None and moment % 3 == 0:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
        assert process.returncode in (0, 1), err
        assert is_clean(out + err), err
