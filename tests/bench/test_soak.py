"""The soak script: what it reads, its verdict, and a short run of it."""

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def soak(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("soak")


@pytest.fixture
def steady(soak):
    """Two hours of a process that stays as it is."""
    return [soak.Sample("train", 60.0 * i, 700 << 20, 6, 16, 55.0 * i, 180 * i) for i in range(121)]


def test_a_process_that_stays_as_it_is_is_flat_and_as_fast(soak, steady):
    found = soak.verdict(steady)
    assert found["flat"] and found["as_fast"]
    assert found["memory_mib"] == 700 and found["memory_growth"] == 0
    assert found["per_second"] == [3, 3] and found["hours"] == 1.8


def test_what_happens_before_it_is_warm_does_not_count(soak, steady):
    steady[:12] = [replace(one, memory=one.memory // 3, files=1, done=0) for one in steady[:12]]
    assert soak.verdict(steady)["flat"]


def test_memory_that_grows_is_noticed(soak, steady):
    leaking = [replace(one, memory=one.memory + (i << 19)) for i, one in enumerate(steady)]
    found = soak.verdict(leaking)
    assert not found["flat"] and found["as_fast"]
    assert found["memory_mib_per_hour"] == 30


@pytest.mark.parametrize("name", ["files", "threads"])
def test_files_and_threads_that_are_left_open_are_noticed(soak, steady, name):
    leaking = [replace(one, **{name: 16 + i // 40}) for i, one in enumerate(steady)]
    assert not soak.verdict(leaking)["flat"]


def test_a_process_that_gets_slower_is_noticed_but_not_a_busy_machine(soak, steady):
    slower = [replace(one, done=int(180 * min(i, 60 + (i - 60) * 0.8))) for i, one in enumerate(steady)]
    found = soak.verdict(slower)
    assert not found["as_fast"]
    assert found["last_quarter_by_clock"] == found["last_quarter_by_processor"] == pytest.approx(0.8, abs=0.01)
    found = soak.verdict(with_a_busy_half(steady))
    assert found["as_fast"] and found["last_quarter_by_clock"] == pytest.approx(0.5, abs=0.01)


def with_a_busy_half(samples):
    """In the second half others take every second moment of the processor."""
    middle = samples[60]
    return [
        replace(one, done=(one.done + middle.done) // 2, processor=(one.processor + middle.processor) / 2)
        if one.seconds > middle.seconds
        else one
        for one in samples
    ]


def test_it_reads_whole_lines(soak, tmp_path):
    metrics, log = tmp_path / "metrics.jsonl", tmp_path / "search.log"
    assert soak.steps_in(metrics) == 0
    metrics.write_text('{"step": 25}\n{"step": 50}\n{"st')
    assert soak.steps_in(metrics) == 50
    log.write_text("compiling\nchecksum: 5 s, 1.2M candidates, 0.24M a second\nchecksum: 10 s, 2.5M candidates, 0.2")
    assert soak.candidates_in(log) == 2_500_000


@pytest.mark.slow
def test_a_short_run_of_small_jobs(tmp_path):
    small = ["population=8", 'modules=["READ","INC","WRITE"]', "islands=2"]
    words = [word for setting in small for word in ("--set", setting)]
    out = tmp_path / "soak.jsonl"
    command = [sys.executable, SCRIPTS / "soak.py", "--seconds", "12", "--every", "1", "--out", out, *words]
    done = subprocess.run([*command, "--folder", tmp_path / "jobs"], capture_output=True, text=True)
    *samples, last = map(json.loads, out.read_text().splitlines())
    assert last["subject"] == "verdict" and "cpu" in last["device"].lower()
    assert [one["job"] for one in samples] == ["train", "search"] * 13
    assert all(one["memory"] > 1 << 26 and one["files"] >= 3 and one["threads"] >= 1 for one in samples)
    assert json.loads(done.stdout) == last["verdict"]
    assert done.returncode == (not all(one["flat"] and one["as_fast"] for one in last["verdict"].values()))
