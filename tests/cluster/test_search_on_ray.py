"""One search on a real Ray cluster of several nodes on this machine: as on threads, whatever is lost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.ray_cluster import RayCluster

import nram
from nram.cluster.search import run_search
from nram.errors import NramError, UsageError
from nram.search.job import SearchJob, Space
from nram.search.state import Outcome

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'nram[cluster]'")

MODULE = """
import nram
MODULE = nram.Module("HALVE", ("a",), integer=lambda size, a: a // 2)
"""
# Eight rounds, which take a core about twelve seconds. No program of one register can merge.
MERGE = ("merge", "--registers", "2", "--seed", "3", "--candidates", "6000000", "--budget", "500", "--json")
PERMUTATION = ("permutation", "--seed", "0", "--budget", "500", "--verify-budget", "0", "--json")


def _search(subject: str, space: Space, address: str | None = None, **options) -> Outcome:
    return run_search(SearchJob.open(subject, space, seed=1), 100, address=address, **options)


@pytest.mark.slow
def test_the_same_program_on_a_cluster_as_on_threads(cluster: RayCluster):
    here = _search("listk", Space())
    assert here.program is not None and here.state.chains > 2
    for workers in (1, 2):
        assert _search("listk", Space(), cluster.address, workers=workers).state == here.state


def test_modules_from_files_are_loaded_where_chains_run(cluster: RayCluster, tmp_path: Path):
    file = tmp_path / "halve.py"
    file.write_text(MODULE)
    space = Space(registers=2, modules=("READ", "INC", str(file), "ADD", "WRITE"))
    assert _search("access", space, cluster.address).state == _search("access", space).state
    assert _search("access", space, cluster.address, take_any=True).program is not None
    file.unlink()
    with pytest.raises(UsageError, match=f"there is no file {file}"):
        _search("access", space, cluster.address)


def test_an_address_without_a_cluster_is_refused():
    with pytest.raises(NramError, match="run nram search on a machine of the cluster"):
        nram.find_program("access", address="ray://there:10001")


def _start(folder: Path, *words: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "nram", "search", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )


def _ended(process: subprocess.Popen[str], status: int = 1) -> dict:
    out, err = process.communicate(timeout=500)
    assert process.returncode == status, err
    return json.loads(out)


def _workers() -> Iterator[int]:
    """The processes of Ray that run a chain now."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"ray::nram chain" in (process / "cmdline").read_bytes():
                yield int(process.name)


def _wait_for_chains(process: subprocess.Popen[str]) -> list[int]:
    end = time.monotonic() + 60
    while not (found := list(_workers())) and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("words, status", [(MERGE, 1), (PERMUTATION, 0)], ids=["no program", "a program"])
def test_lost_workers_and_machines_change_nothing(cluster: RayCluster, tmp_path: Path, words, status):
    calm = _ended(_start(tmp_path, *words, "--out", "calm.nram"), status)
    process = _start(tmp_path, *words, "--out", "lost.nram", "--address", cluster.address)
    killed = 0
    while process.poll() is None and killed < 10:
        for number in _wait_for_chains(process)[:1]:
            time.sleep(0.3)
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
                killed += 1
        if killed == 5:
            cluster.lose_node()
            killed += 1
    lost = _ended(process, status)
    assert killed >= 3
    for one in (lost, calm):
        one["program"]["made"].pop("date")
    assert all(lost[name] == calm[name] for name in ("program", "candidates", "chains"))
    states = [path.read_bytes() for path in tmp_path.glob("*.nram.search")]
    assert len(states) == 2 * status and len(set(states)) == status


@pytest.mark.slow
def test_a_search_that_is_stopped_on_a_cluster_goes_on_without_one_and_back(cluster: RayCluster, tmp_path: Path):
    calm = _ended(_start(tmp_path, *MERGE, "--out", "calm.nram"))
    state = tmp_path / "stopped.nram.search"
    for number, address in enumerate(((), ("--address", cluster.address), ())):
        process = _start(tmp_path, *MERGE, "--out", "stopped.nram", "--resume", *address)
        end, before = time.monotonic() + 100, state.stat().st_mtime_ns if number else 0
        while not (state.exists() and state.stat().st_mtime_ns != before):  # a round has ended
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        process.send_signal((signal.SIGINT, signal.SIGTERM, signal.SIGINT)[number])
        said = _ended(process)
        assert said["candidates"] < calm["candidates"] and list(_workers()) == []
    whole = _ended(_start(tmp_path, *MERGE, "--out", "stopped.nram", "--resume", "--address", cluster.address))
    assert whole["candidates"] == calm["candidates"]
    assert state.read_bytes() == (tmp_path / "calm.nram.search").read_bytes()
