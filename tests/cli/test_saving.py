"""What took long to make is never lost: places are tried before the work, and what cannot be saved is kept elsewhere.

A link to /dev/full stands for a disk that is full at the end: it can be opened, and every write to it fails.
"""

import json
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import pytest

from nram.cli import search
from nram.errors import NramError
from nram.files import write_result
from nram.programs.files import program_from, read_program

UNWRITABLE = Path("/sys")  # not even root may make a file here

# Every verb that works and then writes. 'access' is a task and a program of the zoo.
WRITING = {
    "search": ("search", "access", "--out", "OUT.nram"),
    "learn": ("learn", "EXAMPLES", "--out", "OUT"),
    "verify": ("verify", "access", "--out", "OUT.nram"),
    "prove": ("prove", "access", "--out", "OUT.json"),
    "simplify": ("simplify", "access", "--out", "OUT.nram"),
    "compile": ("compile", "access", "--out", "OUT.o"),
    "draw": ("draw", "access", "--out", "OUT.svg"),
    "trace": ("trace", "access", "--out", "OUT.txt"),
    "trace, a picture": ("trace", "access", "--out", "OUT.png"),
    "run": ("run", "access", "--complexity", "5", "--out", "OUT.json"),
    "reproduce": ("reproduce", "access", "--out", "OUT"),
    "train": ("train", "access", "--out", "OUT"),
    "bench": ("bench", "scaling", "--plot", "OUT.png"),
    "extract": ("extract", "RUN", "--out", "OUT.nram"),
    "eval": ("eval", "RUN", "--plot", "OUT.png"),
}


@pytest.fixture(autouse=True)
def current_folder(tmp_path, monkeypatch) -> Path:
    """An empty current folder, which is not the folder of the output."""
    folder = tmp_path / "current"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def full(tmp_path):
    """A function that makes a file of this name which can be opened and not written."""

    def link(name: str) -> Path:
        path = tmp_path / name
        path.symlink_to("/dev/full")
        return path

    return link


def examples_in(folder: Path) -> Path:
    path = folder / "examples.jsonl"
    rows = [([0, value, other, 0], [value, value, other, 0]) for value in range(1, 4) for other in range(1, 4)]
    path.write_text("\n".join(json.dumps({"input": before, "output": after}) for before, after in rows))
    return path


def only_file_in(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


# ---- before the work


@pytest.mark.skipif(not UNWRITABLE.is_dir(), reason="no folder here that not even root may write to")
@pytest.mark.parametrize("verb", WRITING)
def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(verb, call, trained, tmp_path):
    places = {"OUT": str(UNWRITABLE / "out"), "RUN": str(trained.path), "EXAMPLES": str(examples_in(tmp_path))}
    words = [re.sub("OUT|RUN|EXAMPLES", lambda found: places[found[0]], word) for word in WRITING[verb]]
    outcome = call(*words)
    assert outcome.status in (1, 2) and outcome.out == ""
    (line,) = outcome.err.splitlines()  # no progress: nothing was begun
    assert re.search(f"cannot (write|make the folder) {UNWRITABLE}/out", line)


def test_a_missing_folder_is_refused_before_a_search(call, tmp_path):
    outcome = call("search", "access", "--out", tmp_path / "missing" / "a.nram")
    assert outcome.status == 2
    assert f"there is no folder {tmp_path / 'missing'}" in outcome.err


@pytest.mark.parametrize("verb", ["search", "verify", "simplify", "compile", "run", "trace"])
def test_a_folder_as_a_file_is_refused(verb, call):
    words = ["--memory", "1 2 0 0"] if verb == "run" else ["--format", "text"] if verb == "trace" else []
    words += ["--emit", "object"] if verb == "compile" else []
    outcome = call(verb, "access", *words, "--out", ".")
    assert (outcome.status, outcome.out) == (2, "")
    assert "--out . is a folder: name a file in it" in outcome.err


# ---- after the work


def test_a_searched_program_that_cannot_be_saved_is_shown_and_saved_elsewhere(call, full, tmp_path, current_folder):
    outcome = call("search", "access", "--verify-budget", "0", "--out", full("a.nram"))
    assert outcome.status == 1
    elsewhere = only_file_in(current_folder)
    assert f"cannot write {tmp_path / 'a.nram'}: No space left on device; it was saved as {elsewhere}" in outcome.err
    program = read_program(elsewhere)
    assert program.task == "access"
    shown = outcome.err.partition(f"{elsewhere} instead:\n\n")[2]
    assert program_from(shown) == program


def test_a_searched_program_comes_with_its_report_though_its_evidence_cannot_be_saved(call, tmp_path, monkeypatch):
    out = tmp_path / "a.json"

    def verify_until_the_disk_is_full(*words, **options):
        out.unlink()
        out.symlink_to("/dev/full")
        return verify(*words, **options)

    verify = search.verify
    monkeypatch.setattr(search, "verify", verify_until_the_disk_is_full)
    outcome = call("search", "access", "--verify-budget", "1", "--json", "--out", out)
    assert outcome.status == 1 and f"cannot write {out}: No space left on device; it was saved as" in outcome.err
    assert outcome.value["found"] and outcome.value["verification"]["verdict"].startswith("right")


def test_a_verified_program_that_cannot_be_saved_comes_with_its_report(call, full, current_folder):
    words = ("verify", "access", "--budget", "1", "--max-n", "2", "--symbolic", "0", "--largest", "0")
    outcome = call(*words, "--out", full("a.json"), "--json")
    assert outcome.status == 1
    assert outcome.value["verdict"].startswith("right") and outcome.value["out"] is None
    assert read_program(only_file_in(current_folder)).verified


@pytest.mark.parametrize(
    ("verb", "name"),
    [("simplify", "a.nram"), ("trace", "a.txt"), ("draw", "a.svg"), ("trace", "a.png"), ("compile", "a.o")],
)
def test_other_results_that_cannot_be_saved_are_saved_elsewhere_too(verb, name, call, full, current_folder):
    place = full(name)
    outcome = call(verb, "access", "--out", place)
    assert outcome.status == 1
    elsewhere = only_file_in(current_folder)
    assert f"cannot write {place}: No space left on device; it was saved as {elsewhere} instead" in outcome.err
    assert elsewhere.suffix == place.suffix
    content = elsewhere.read_bytes()
    assert len(content) > 100
    is_text = name not in ("a.png", "a.o")
    assert (content.decode(errors="replace").rstrip() in outcome.err) == is_text


def test_what_cannot_be_saved_anywhere_is_shown(tmp_path):
    """A real failure: the operating system refuses every file of this size."""
    program = (
        "import resource, sys\nfrom pathlib import Path\nfrom nram.files import write_result\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\nwrite_result(Path(sys.argv[1]), b'found ' * 5000)\n"
    )
    failed = subprocess.run([sys.executable, "-c", program, tmp_path / "a"], capture_output=True, text=True)
    assert f"cannot write {tmp_path / 'a'}: File too large; it could not be saved elsewhere:" in failed.stderr
    assert failed.stderr.rstrip().endswith(("\n\n" + "found " * 5000).rstrip())


def test_a_private_temporary_folder_is_the_last_resort(tmp_path, monkeypatch):
    gone, temporary = tmp_path / "gone", tmp_path / "temporary"
    gone.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with pytest.raises(NramError) as failure:
        write_result(Path("/dev/full"), b"found")
    folder = only_file_in(temporary)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert only_file_in(folder).read_bytes() == b"found"
    assert f"it was saved as {only_file_in(folder)} instead:\n\nfound" in str(failure.value)


def test_a_search_goes_on_where_its_state_cannot_be_saved(nram, tmp_path):
    """The operating system refuses files as large as the state. The program is smaller."""
    words = ("search", "merge", "--candidates", "1", "--out", tmp_path / "a.nram")
    outcome = nram.run(*words, slowed=True, LARGEST_FILE="3000")
    assert outcome.status == 1 and "no program found" in outcome.out
    assert f"cannot write {tmp_path / 'a.nram.search'}: File too large; the search goes on" in outcome.err
    assert read_program(tmp_path / "a.nram").task == "merge"


# ---- two processes


LOCKED = {
    "search": (("search", "merge"), "a.nram", ".a.nram.lock", "another process is searching for"),
    "learn": (
        ("learn", "EXAMPLES", "--method", "search"),
        "learned",
        "learned/.lock",
        "another process is learning in",
    ),
}


@pytest.mark.parametrize("verb", LOCKED)
def test_a_second_process_is_refused_and_the_lock_of_a_killed_one_does_not_block(verb, nram, call, tmp_path):
    words, name, lock, message = LOCKED[verb]
    place = tmp_path / "place"
    place.mkdir()
    words = [str(never_learned(tmp_path)) if word == "EXAMPLES" else word for word in words]
    words += ["--workers", "1", "--out", str(place / name)]
    first = nram.start(*words, "--budget", "100")
    try:
        while first.poll() is None and not (place / lock).exists():
            time.sleep(0.01)
        second = call(*words, "--budget", "1")
        assert first.poll() is None
    finally:
        first.send_signal(signal.SIGKILL)
        nram.wait(first)
    assert (second.status, second.out) == (2, "")
    assert f"{message} {place / name}: wait for it, stop it, or choose another --out" in second.err
    assert (place / lock).exists()
    third = call(*words, "--budget", "0.1", "--resume")
    assert third.status == 1 and "another process" not in third.err
    assert not (place / lock).exists()
    assert not list(place.rglob("*.part"))


def never_learned(folder: Path) -> Path:
    """Examples that follow no rule: a search for them does not end soon."""
    rng = Random(1)
    inputs = [[0, *rng.sample(range(1, 12), n), *[0] * (11 - n)] for n in range(2, 10) for _ in range(5)]
    rows = [(memory, rng.randrange(1, 12)) for memory in inputs]
    path = folder / "noise.jsonl"
    path.write_text("\n".join(json.dumps({"input": row, "output": [answer, *row[1:]]}) for row, answer in rows))
    return path
