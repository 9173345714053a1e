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
import tempfile
import time
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.ray_cluster import RayCluster
from support.studies import SEARCH, TRAIN, Sweep, kill, lines_of, processes_of
from support.training_runs import ending

from nram.cluster.job import StudyJob
from nram.cluster.study import Study
from nram.errors import NramError, UsageError
from nram.files import write_atomically

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'nram[cluster]'")


def kill_worker(*places: Path) -> bool:
    """Kill a worker of Ray that runs a trial in these folders: the parent of its process."""
    for number, _ in processes_of(*places):
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


def test_an_address_without_a_cluster_is_refused_and_nothing_is_left_behind(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch
):
    job = StudyJob.open(sweep.spec(SEARCH), sweep.folder / "studies" / "study", [])
    with pytest.raises(NramError, match="run nram sweep on a machine of the cluster"):
        job.run(address="ray://there:10001")
    for address in ("127.0.0.1:ray", "there", ":6379"):
        with pytest.raises(UsageError, match=f"{address}: give HOST:PORT, auto or local"):
            job.run(address=address)
    ray = import_module("ray")

    def refuse(**options: object) -> None:  # as Ray does where no cluster runs: that of other tests may
        raise ConnectionError("Could not find any running Ray instance. Please specify the one to connect to")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(NramError, match="no Ray cluster runs on this machine: 'ray start --head' starts one"):
        job.run(address="auto")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    began = time.monotonic()
    with pytest.raises(NramError, match=f"no Ray cluster answers at {address}: Connection refused"):
        job.run(address=address)
    assert time.monotonic() - began < 20
    assert [path.name for path in sweep.folder.iterdir()] == ["study.toml"]


def test_resources_that_no_machine_has_are_refused_and_nothing_is_left_behind(cluster: RayCluster, sweep: Sweep):
    spec = sweep.spec(TRAIN + "[resources]\ncores = 7\n")
    _, err = sweep.run(spec, "--out", "study", "--address", cluster.address, status=1)
    assert "a trial needs 7 CPU, and a machine of the cluster has at most 1 CPU\n" in err
    assert not (sweep.folder / "study").exists()


@pytest.mark.slow
def test_a_study_asks_the_machines_of_a_cluster_for_their_gpus(sweep: Sweep):
    """A machine whose GPUs JAX cannot use: the note comes from a task that ran there."""
    machine = RayCluster(1, gpus=2)
    try:
        _, err = sweep.run(
            sweep.spec("seconds = 0.2" + TRAIN), "--out", "study", "--address", machine.address, status=1
        )
    finally:
        machine.close()
    assert "the cluster has 2 GPUs, which JAX cannot use: the trials run on cores" in err
    assert Study(sweep.folder / "study").spec.resources.gpus == 0


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


def test_a_snapshot_takes_the_place_of_what_an_earlier_one_has_left(tmp_path: Path):
    from nram.cluster.storage import Storage
    from nram.cluster.trial import Place

    worker, study = Place(tmp_path / "worker"), Place(tmp_path / "study")
    storage, run = Storage(f"{tmp_path}/kept"), worker.run("x-1")
    for place in (worker, study):
        place.log("x-1").parent.mkdir(parents=True)
    study.log("x-1").touch()
    (run / "best").mkdir(parents=True)
    (run / "best" / "0").touch()
    before = [run / "program.nram.search", run / "best" / "1", worker.paused("x-1")]
    for path in before:
        path.touch()
    storage.save(worker, "x-1")
    storage.restore(study, "x-1")
    for path in before:
        path.unlink()
    storage.save(worker, "x-1")
    storage.restore(study, "x-1")
    files = {str(path.relative_to(study.study)) for path in study.study.rglob("*") if path.is_file()}
    assert files == {"trials/x-1.log", "runs/x-1/best/0"}


@pytest.mark.slow
def test_a_storage_keeps_trials_and_asha_stops_hopeless_ones(cluster: RayCluster, sweep: Sweep):
    text = "budget = 60\nstorage = 'kept'\n" + TRAIN + "[early_stopping]\ngrace = 1\nreduction = 2\n"
    text += "[grid]\nlearning_rate = [1e-9, 3e-3]\n"
    out, _ = sweep.run(sweep.spec(text, "'0..3'"), "--out", "study", "--address", cluster.address, "--json")
    study = sweep.folder / "study"
    lines = lines_of(study)
    assert len(lines) == len({line["trial"] for line in lines}) == 8 and json.loads(out)["finished"]
    # Timing decides which are stopped here. That ASHA stops the right ones is tested in test_early_stopping.py.
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
def test_a_trial_that_ended_in_the_storage_alone_comes_back_as_it_was(cluster: RayCluster, sweep: Sweep):
    """As after a driver that was killed while it came: its run folder is there in part, and no outcome."""
    spec = sweep.spec(f"storage = '{sweep.folder}/kept'\n" + TRAIN, "[3]")
    words = (spec, "--out", "study", "--address", cluster.address)
    sweep.run(*words)
    study, before = sweep.folder / "study", lines_of(sweep.folder / "study")

    def files() -> dict[str, bytes]:
        found = [path for folder in ("runs", "trials") for path in (study / folder).rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in found if path.suffix != ".log"}

    whole = files()
    for path in (study / "trials" / "access-3.json", study / "runs" / "access-3" / "result.json"):
        path.unlink()
    sweep.run(*words, "--resume")
    assert lines_of(study) == before and files() == whole


def raylets_of(cluster: RayCluster) -> list[int]:
    """The processes that stand for the machines of a cluster, without its head."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/raylet") and f"--gcs-address={cluster.address}".encode() in words:
                found += [] if b"--head" in words else [int(process.name)]
    return found


@pytest.mark.slow
def test_a_study_says_when_the_last_machine_for_its_trials_is_lost_and_goes_on_with_another(sweep: Sweep):
    study, log, cluster = sweep.folder / "study", sweep.folder / "log.txt", RayCluster(1)
    process = sweep.start_with_log(sweep.spec(TRAIN, "'0..11'"), "--out", study, "--address", cluster.address)
    try:
        wait_for_trial(study, process)
        for number in raylets_of(cluster):
            os.kill(number, signal.SIGKILL)
        end = time.monotonic() + 90  # Ray itself needs some seconds to see it
        while "no machine of the cluster can run a trial now" not in log.read_text():
            assert time.monotonic() < end and process.poll() is None, log.read_text()
            time.sleep(0.2)
        cluster.lose_node()  # which is lost already: another takes its place
        assert process.wait(120) == 0, log.read_text()
    finally:
        process.kill()
        cluster.close()
    assert log.read_text().count("no machine of the cluster") == 1
    assert len(lines_of(study)) == 12


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
    """Processes of trials, workers, nodes and drivers die at random moments.

    One study after another, until there were so many kills: training in the folder of the study, training in a storage,
    searches. SEED and KILLS say which and how many. KILLS_OUT names a file that gets a line for each study with what
    was killed.
    """
    kills, seed = int(os.environ.get("KILLS", "100")), int(os.environ.get("SEED", "0"))
    source, counted, number = random.Random(seed), Counter(), 0
    kinds = {"train": TRAIN, "train, storage": f"storage = '{sweep.folder}/kept'\n{TRAIN}", "search": HARDER}
    while counted.total() < kills:
        kind = list(kinds)[number % len(kinds)]
        seeds = f"'{TRIALS * number}..{TRIALS * (number + 1) - 1}'"
        calm, study = sweep.folder / f"calm-{number}", sweep.folder / f"killed-{number}"
        sweep.run(sweep.spec(kinds[kind.removesuffix(", storage")], seeds), "--out", calm)
        most = min(kills - counted.total(), -(-kills // len(kinds)))
        killed, commands = killed_at_random(sweep, sweep.spec(kinds[kind], seeds), study, most, source)
        lines = lines_of(study)
        assert sorted(line["trial"] for line in lines) == sorted(line["trial"] for line in lines_of(calm))
        assert all(line["ended"] == "finished" for line in lines)
        for line in lines:
            assert reached(study / line["run"], kind) == reached(calm / line["run"], kind), line["trial"]
        counted.update(killed)
        number += 1
        if out := os.environ.get("KILLS_OUT"):
            line = {"study": number, "kind": kind, "killed": killed, "commands": commands, "trials": len(lines)}
            with open(out, "a") as file:
                file.write(json.dumps(line | {"seed": seed}) + "\n")


HARDER = """
verb = "search"
tasks = ["listsearch"]
seeds = {seeds}
budget = 600
"""


def reached(run: Path, kind: str) -> object:
    """What a trial has reached, without times."""
    if kind != "search":
        return ending(run, checkpoint="storage" not in kind)  # which a storage does not keep when a run has ended
    return [line for line in (run / "program.nram").read_text().splitlines() if not line.startswith("made date")]


TRIALS = 26  # of each study that is killed


def killed_at_random(sweep: Sweep, spec: Path, study: Path, most: int, source: random.Random) -> tuple[Counter, int]:
    """Run a study to its end on two nodes, with at most so many kills. Returns what was killed, and the commands."""
    counted, commands = Counter(), 1
    cluster = RayCluster(2)
    words = (spec, "--out", study, "--resume", "--address", cluster.address)
    process = sweep.start_with_log(*words)
    try:
        while counted.total() < most:
            time.sleep(source.uniform(0.5, 6))
            # With a storage, workers have a folder of their own for each trial.
            places = (study, *Path(tempfile.gettempdir()).glob("nram-trial-*"))
            if process.poll() is not None:
                if process.returncode == 0:
                    break
                process = sweep.start_with_log(*words)
                commands += 1
            match source.choices(("process", "worker", "node", "driver"), (10, 6, 2, 1))[0]:
                case "process":
                    counted["process"] += kill(*places, choose=source.choice)
                case "worker":
                    counted["worker"] += kill_worker(*places)
                case "node" if list(processes_of(*places)):
                    cluster.lose_node()
                    counted["node"] += 1
                case "driver" if list(processes_of(*places)):
                    process.kill()
                    counted["driver"] += 1
            print(f"{dict(counted)}, {len(list(study.glob('trials/*.json')))} ended", flush=True)
        process.wait(900)
        for _ in range(20):
            if process.returncode == 0:
                break
            process = sweep.start_with_log(*words)
            commands += 1
            process.wait(900)
        assert process.returncode == 0, (sweep.folder / "log.txt").read_text()[-3000:]
    finally:
        process.kill()
        cluster.close()
    return counted, commands
