"""What the tests of the command line share: processes of it, and runs that several tests look at."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import pytest
from support.training_runs import ending

# Three modules instead of fourteen: it compiles in seconds, and access is still learned to perfection.
SETTINGS = """
batch = 8
validation = 16
check_every = 40
[machine]
registers = 2
hidden = 8
modules = ["READ", "INC", "WRITE"]
[[stages]]
max_complexity = 3
steps = 150
population = 8
[[stages]]
max_complexity = 3
steps = 400
population = 8
stop_at = 2
"""

# The command line with a checkpoint at every chance, a wait after each report (for a time, or until a file
# exists) and a limit on the size of files.
DRIVER = """
import os, resource, sys, time
from nram.cli import main
from nram.training import run_folder, trainer

trainer.CHECKPOINT_SECONDS = 0
append = run_folder.RunFolder.append_metrics
def append_and_wait(self, row):
    append(self, row)
    time.sleep(float(os.environ.get("PAUSE", 0)))
    while "HOLD" in os.environ and not os.path.exists(os.environ["HOLD"]):
        time.sleep(0.02)
run_folder.RunFolder.append_metrics = append_and_wait
if "LARGEST_FILE" in os.environ:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["LARGEST_FILE"]),) * 2)
sys.exit(main())
"""


class Outcome(NamedTuple):
    """How one command ended."""

    status: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The one JSON value on standard output."""
        return json.loads(self.out, parse_constant=_refuse_constant)


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


class CommandLine:
    """`nram`, in processes of its own and in this one."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.driver = folder / "driver.py"
        self.driver.write_text(DRIVER)
        self.settings = folder / "tiny.toml"
        self.settings.write_text(SETTINGS)

    def start(self, *words: str | Path, slowed: bool = False, **environment: str) -> subprocess.Popen[str]:
        program = [str(self.driver)] if slowed else ["-m", "nram"]
        return subprocess.Popen(
            [sys.executable, *program, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def wait(self, process: subprocess.Popen[str]) -> Outcome:
        out, err = process.communicate(timeout=300)
        return Outcome(process.returncode, out, err)

    def run(self, *words: str | Path, slowed: bool = False, **environment: str) -> Outcome:
        return self.wait(self.start(*words, slowed=slowed, **environment))

    def train(self, out: Path) -> tuple[str | Path, ...]:
        """The words of a run that learns access within seconds."""
        return "train", "access", "--seed", "1", "--config", self.settings, "--out", out


@pytest.fixture(scope="session", autouse=True)
def compiled_programs(tmp_path_factory) -> Iterator[None]:
    """Processes started by these tests share what they have compiled, and the user's cache is left alone."""
    jax.devices()  # JAX is started before a command in this process could choose another number of devices
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
        yield


@pytest.fixture(scope="session")
def nram(tmp_path_factory) -> CommandLine:
    return CommandLine(tmp_path_factory.mktemp("command"))


@pytest.fixture
def call(capsys):
    """A command in this process: much faster, for all that is refused before anything is compiled."""
    from nram.cli import main

    def run(*words: str | Path) -> Outcome:
        capsys.readouterr()
        try:
            status = main([str(word) for word in words])
        except SystemExit as stop:  # of argparse
            status = stop.code
        assert isinstance(status, int)
        return Outcome(status, *capsys.readouterr())

    return run


class Run(NamedTuple):
    """A run on disk, and how its command ended."""

    path: Path
    outcome: Outcome


@pytest.fixture(scope="session")
def trained(nram, tmp_path_factory) -> Run:
    """A run that was left alone, in a pipe, with --json."""
    path = tmp_path_factory.mktemp("trained") / "run"
    outcome = nram.run(*nram.train(path), "--json")
    assert outcome.status == 0, outcome.err
    return Run(path, outcome)


class Interrupted(NamedTuple):
    path: Path  # not to be changed: tests take copies
    outcome: Outcome
    rival: Outcome  # of a second process that wanted to train in the same folder meanwhile

    @property
    def onwards(self) -> list[str]:
        """The words with which it says that one can go on, after 'nram'."""
        found = re.search(r"go on with: nram (.*)$", self.outcome.err, re.MULTILINE)
        assert found is not None, self.outcome.err
        return shlex.split(found[1])


@pytest.fixture(scope="session")
def interrupted(nram, tmp_path_factory) -> Interrupted:
    """The same run after Ctrl-C at its first report, in a folder whose name a shell would split."""
    path = tmp_path_factory.mktemp("interrupted") / "my run"
    go_on = path.parent / "go on"
    process = nram.start(*nram.train(path), slowed=True, HOLD=str(go_on))
    wait_for_rows(process, path, 1)
    assert process.poll() is None, nram.wait(process).err
    rival = nram.run("train", "access", "--out", path, "--resume")
    process.send_signal(signal.SIGINT)
    go_on.touch()
    return Interrupted(path, nram.wait(process), rival)


def wait_for_rows(process: subprocess.Popen[str], path: Path, rows: int) -> None:
    """Until the run has written so many reports or has ended."""
    while process.poll() is None and count_rows(path) < rows:
        time.sleep(0.02)


def count_rows(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return (path / "metrics.jsonl").read_bytes().count(b"\n")
    return 0


@pytest.fixture(scope="session")
def until_rows():
    return wait_for_rows


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@pytest.fixture(scope="session")
def bytes_of():
    """A function from a folder to the bytes of every file in it."""
    return contents


@pytest.fixture(scope="session")
def same_end():
    """A function that compares two finished runs: the same to the bit but for what the clock says."""

    def compare(one: Path, other: Path) -> None:
        assert ending(one) == ending(other)
        for path in (one, other):
            assert not list(path.rglob("*.part"))

    return compare
