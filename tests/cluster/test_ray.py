"""Studies on a real Ray cluster of several nodes on this machine, with kills of processes, workers and nodes."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.ray_cluster import RayCluster
from support.studies import SEARCH, TRAIN, Sweep, kill, lines_of, processes_of
from support.training_runs import ending

from nram.cluster.job import StudyJob
from nram.errors import NramError, UsageError
from nram.files import write_atomically

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'nram[cluster]'")


def kill_worker(study: Path) -> bool:
    """Kill a worker of Ray that runs a trial: the parent of its process."""
    for number, _ in processes_of(study):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            parent = int(words[1])
            if b"ray::" in Path(f"/proc/{parent}/cmdline").read_bytes():
                os.kill(parent, signal.SIGKILL)
                return True
    return False


def wait_for_trial(study: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while not list(processes_of(study)) and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_trial_whose_worker_and_whose_process_are_killed_is_counted_once(cluster: RayCluster, sweep: Sweep):
    study = sweep.folder / "study"
    process = sweep.start(sweep.spec(SEARCH, "[1, 2]"), "--out", study, "--address", cluster.address, "--json")
    wait_for_trial(study, process)
    assert kill_worker(study)
    time.sleep(0.5)
    wait_for_trial(study, process)
    assert kill(study) or process.poll() is not None
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert json.loads(out)["finished"]
    assert sorted(line["trial"] for line in lines_of(study)) == ["access-1", "access-2"]


def test_an_address_without_a_cluster_is_refused(sweep: Sweep):
    job = StudyJob.open(sweep.spec(SEARCH), sweep.folder / "study", [])
    with pytest.raises(NramError, match="run nram sweep on a machine of the cluster"):
        job.run(address="ray://there:10001")


def test_an_address_where_nothing_listens_is_refused_at_once(sweep: Sweep):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    job = StudyJob.open(sweep.spec(SEARCH, "0"), sweep.folder / "study", [])
    began = time.monotonic()
    with pytest.raises(NramError, match=f"no Ray cluster answers at {address}: Connection refused"):
        job.run(address=address)
    assert time.monotonic() - began < 20
    with pytest.raises(UsageError, match="give HOST:PORT, auto or local"):
        StudyJob.open(sweep.folder / "study.toml", job.study.path, [], resume=True).run(address="127.0.0.1:ray")


def test_snapshots_that_were_cut_off_do_not_count(tmp_path: Path):
    from nram.cluster.storage import Storage
    from nram.cluster.trial import Place

    place, other = Place(tmp_path / "a"), Place(tmp_path / "b")
    for one in (place, other):
        one.log("x-1").parent.mkdir(parents=True)
    storage = Storage(f"file://{tmp_path}/kept")
    run = place.run("x-1")
    run.mkdir(parents=True)
    for number in range(4):
        write_atomically(run / "metrics.jsonl", str(number).encode())
        storage.save(place, "x-1")
        storage.save(place, "x-1")  # nothing has changed
    snapshots = sorted((tmp_path / "kept" / "x-1").iterdir())
    assert [path.name[:8] for path in snapshots] == ["00000002", "00000003"]
    snapshots[-1].write_bytes(snapshots[-1].read_bytes()[:-700])
    assert storage.restore(other, "x-1")
    assert (other.run("x-1") / "metrics.jsonl").read_text() == "2"
    assert not storage.restore(other, "y-1")
    write_atomically(place.log("x-1"), b"words")
    storage.save_log(place, "x-1")
    storage.restore_log(other, "x-1")
    assert other.log("x-1").read_text() == "words" and storage.restore(other, "x-1")
    fs = Storage("memory://kept")  # PyArrow does not know it; fsspec does
    fs.save(place, "x-1")
    assert Storage("memory://kept").restore(Place(tmp_path / "c"), "x-1")


@pytest.mark.slow
def test_a_storage_keeps_trials_and_asha_stops_hopeless_ones(cluster: RayCluster, sweep: Sweep):
    text = "budget = 60\nstorage = 'kept'\n" + TRAIN + "[early_stopping]\ngrace = 1\nreduction = 2\n"
    text += "[grid]\nlearning_rate = [1e-9, 3e-3]\n"
    out, _ = sweep.run(sweep.spec(text, "'0..3'"), "--out", "study", "--address", cluster.address, "--json")
    study = sweep.folder / "study"
    lines = lines_of(study)
    assert len(lines) == len({line["trial"] for line in lines}) == 8 and json.loads(out)["finished"]
    assert {line["ended"] for line in lines} <= {"finished", "stopped early"}
    for line in lines:
        assert line["seconds"] > 0
        assert (study / line["run"] / ("result.json" if line["ended"] == "finished" else "run.json")).is_file()


@pytest.mark.slow
def test_a_damaged_snapshot_is_named_and_the_log_comes_back(cluster: RayCluster, sweep: Sweep):
    from nram.cluster.storage import Storage
    from nram.cluster.trial import Place

    spec = sweep.spec(f"storage = '{sweep.folder}/kept'\n" + SEARCH, "[3]")
    job = StudyJob.open(spec, sweep.folder / "study", [])
    with job.study.held():
        job.study.create(job.spec, job.trials, [])
    location = f"{sweep.folder}/kept/study-{job.study.record.id}"
    place = Place(sweep.folder / "damaged")
    place.run("access-3").mkdir(parents=True)
    (place.run("access-3") / "program.nram.search").write_text('{"format": 1, "see')
    place.log("access-3").parent.mkdir()
    place.log("access-3").write_text("what it printed before\n")
    Storage(location).save(place, "access-3")
    Storage(location).save_log(place, "access-3")
    _, err = sweep.run("study", "--resume", "--address", cluster.address, status=1)
    assert f"(its snapshots are in {location}/access-3)" in err and "nram-trial-" not in err
    assert "starts anew when its snapshots are removed" in err
    assert "what it printed before" in job.study.place.log("access-3").read_text()
    shutil.rmtree(f"{location}/access-3")
    sweep.run("study", "--resume", "--address", cluster.address)


@pytest.mark.slow
def test_a_study_goes_on_with_another_cluster_after_its_head_was_lost(sweep: Sweep):
    study, spec = sweep.folder / "study", sweep.spec(TRAIN)
    first = RayCluster(2)
    process = sweep.start_with_log(spec, "--out", study, "--address", first.address)
    wait_for_trial(study, process)
    first.close()  # with all its machines
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(90)  # Ray gives up after a minute
    process.kill()
    process.wait()
    second = RayCluster(2)
    try:
        sweep.run(spec, "--out", study, "--resume", "--address", second.address)
    finally:
        second.close()
    assert sorted(line["trial"] for line in lines_of(study)) == ["access-1", "access-2"]
    sweep.run(spec, "--out", "calm")
    for line in lines_of(study):
        assert ending(study / line["run"]) == ending(sweep.folder / "calm" / line["run"])


@pytest.mark.slow
def test_a_hundred_kills_lose_nothing_and_change_no_bit(sweep: Sweep):
    """Processes of trials, workers, nodes and drivers die at random moments. SEED and KILLS say which and how many."""
    kills, source = int(os.environ.get("KILLS", "100")), random.Random(int(os.environ.get("SEED", "0")))
    seeds = f"'0..{max(3, kills // 4)}'"
    spec = sweep.spec(TRAIN, seeds)
    sweep.run(spec, "--out", "calm")
    study, counted = sweep.folder / "killed", Counter()
    cluster = RayCluster(2)
    words = (spec, "--out", study, "--resume", "--address", cluster.address)
    process = sweep.start_with_log(*words)
    drivers = 1
    try:
        while counted.total() < kills:
            time.sleep(source.uniform(0.5, 6))
            if process.poll() is not None:
                if process.returncode == 0:
                    break
                process = sweep.start_with_log(*words)
                drivers += 1
            match source.choices(("process", "worker", "node", "driver"), (10, 6, 2, 1))[0]:
                case "process":
                    counted["process"] += kill(study, source.choice)
                case "worker":
                    counted["worker"] += kill_worker(study)
                case "node" if list(processes_of(study)):
                    cluster.lose_node()
                    counted["node"] += 1
                case "driver" if list(processes_of(study)):
                    process.kill()
                    counted["driver"] += 1
            print(f"{dict(counted)}, {len(list(study.glob('trials/*.json')))} ended", flush=True)
        process.wait(900)
        for _ in range(20):
            process = sweep.start_with_log(*words)
            process.wait(900)
            if process.returncode == 0:
                break
        assert process.returncode == 0, (sweep.folder / "log.txt").read_text()[-3000:]
    finally:
        process.kill()
        cluster.close()
    print(f"killed {dict(counted)}, {drivers} drivers")
    lines, calm = lines_of(study), lines_of(sweep.folder / "calm")
    assert sorted(line["trial"] for line in lines) == sorted(line["trial"] for line in calm)
    assert all(line["ended"] == "finished" for line in lines)
    for line in lines:
        assert ending(study / line["run"]) == ending(sweep.folder / "calm" / line["run"]), line["trial"]
    assert counted.total() >= kills * 0.8
