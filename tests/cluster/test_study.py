"""Studies on this machine: killed, stopped, damaged, and resumed to the same results."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import tomllib
from pathlib import Path

import pytest
from support.gpus import FakeGpus
from support.studies import SEARCH, TRAIN, Sweep, kill, lines_of, processes_of
from support.training_runs import ending

from nram.cli.sweep import _what_is_left
from nram.cluster.callbacks import StudyCallbacks
from nram.cluster.checks import with_digests
from nram.cluster.job import StudyJob
from nram.cluster.plan import trials_of
from nram.cluster.spec_file import spec_from
from nram.cluster.study import Study
from nram.errors import NramError, UsageError
from nram.files import locked

ROOT = Path(__file__).parents[2]


def wait_until(what, seconds: float = 200.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_a_study_that_is_killed_ends_in_the_same_bits(sweep: Sweep):
    """The process of a trial, then the driver, then Ctrl-C: every trial is there once, as if nothing had happened."""
    spec = sweep.spec(TRAIN)
    out, _ = sweep.run(spec, "--out", "calm")
    assert "95% interval" in out
    study = sweep.folder / "killed"
    first = sweep.start(spec, "--out", study)
    wait_until(lambda: list(study.glob("runs/*/metrics.jsonl")) or first.poll() is not None)
    assert kill(study)
    wait_until(lambda: list(processes_of(study)))
    first.kill()
    first.communicate()
    wait_until(lambda: not list(processes_of(study)), 20)  # they end with the driver
    second = sweep.start(spec, "--out", study, "--resume")
    wait_until(lambda: len(list(study.glob("runs/*/run.json"))) or second.poll() is not None)
    second.send_signal(signal.SIGINT)
    _, err = second.communicate(timeout=200)
    if second.returncode == 1:  # a fast machine may be done
        assert "it was stopped" in err
        found = re.search(r"go on with: nram sweep (\S+) --resume", err)
        assert found and Path(found[1]) == study
    out, _ = sweep.run(study, "--resume", "--json")
    summary = json.loads(out)
    assert (summary["finished"], summary["trials"], summary["failed"]) == (True, 2, {})
    lines = lines_of(study)
    assert sorted(line["trial"] for line in lines) == ["access-1", "access-2"]
    assert all(line["ended"] == "finished" and line["command"].startswith("nram train access --seed") for line in lines)
    for trial in ("access-1", "access-2"):
        assert ending(study / "runs" / trial) == ending(sweep.folder / "calm" / "runs" / trial)
    before = (study / "results.jsonl").read_bytes()
    sweep.run(study, "--resume")  # nothing is done again
    assert sorted((study / "results.jsonl").read_bytes().splitlines()) == sorted(before.splitlines())


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study of two searches. Tests take copies."""
    sweep = Sweep(tmp_path_factory.mktemp("searched"))
    sweep.run(sweep.spec(SEARCH), "--out", "study")
    return sweep.folder / "study"


@pytest.fixture
def study(searched: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in searched.rglob("*"):
        target = copy / path.relative_to(searched)
        if path.is_dir():
            target.mkdir()
        else:
            target.write_bytes(path.read_bytes())
    return copy


def test_a_finished_study(study: Path):
    lines = lines_of(study)
    assert sorted(line["trial"] for line in lines) == ["access-1", "access-2"]
    assert all(line["learned"] and (study / line["run"] / "program.nram").is_file() for line in lines)
    summary = json.loads((study / "summary.json").read_text())
    assert summary["rows"][0]["learned"] == {"of": 2, "are": 2, "share": 1.0, "from": 0.3424, "to": 1.0}


@pytest.mark.parametrize("harm", ["results", "outcome", "outcome of another", "study", "trial twice"])
def test_a_damaged_file_is_repaired_or_named(study: Path, harm: str):
    outcome = study / "trials" / "access-1.json"
    expected = sorted(json.dumps(dict(line, seconds=0, device=0)) for line in lines_of(study))
    if harm == "results":
        (study / "results.jsonl").write_text('{"trial": "acc')
    elif harm == "outcome":
        outcome.write_text(outcome.read_text()[:100])
    elif harm == "outcome of another":
        outcome.write_text((study / "trials" / "access-2.json").read_text())
    elif harm == "study":
        (study / "study.json").write_text((study / "study.json").read_text()[:300])
    else:
        value = json.loads((study / "study.json").read_text())
        value["trials"] *= 2
        (study / "study.json").write_text(json.dumps(value))
    sweep = Sweep(study.parent)
    if harm in ("study", "trial twice"):
        _, err = sweep.run(study, "--resume", status=1)
        assert "study.json cannot be " in err and "restore it from a copy" in err
        return
    _, err = sweep.run(study, "--resume")
    assert ("looked at again" in err) == (harm != "results")
    assert sorted(json.dumps(dict(line, seconds=0, device=0)) for line in lines_of(study)) == expected


def test_two_drivers(study: Path):
    with locked(study / ".lock", "busy"):
        _, err = Sweep(study.parent).run(study, "--resume", status=2)
    assert "another process works on the study" in err


def test_a_study_that_another_command_began_meanwhile_is_refused(sweep: Sweep):
    first, second = (StudyJob.open(sweep.spec(SEARCH), sweep.folder / "study", []) for _ in range(2))
    with first.study.held():
        first.study.create(first.spec, first.trials, [])
    with pytest.raises(UsageError, match="holds a study already"):
        second.run()


def test_another_specification_or_file_is_refused(study: Path, sweep: Sweep):
    with pytest.raises(UsageError, match="holds a study already"):
        StudyJob.open(sweep.spec(SEARCH), study, [])
    with pytest.raises(UsageError, match=r"another specification(.|\n)*- seeds: \[1, 2\] in the study, \[1, 2, 3\]"):
        StudyJob.open(sweep.spec(SEARCH, "[1, 2, 3]"), study, [], resume=True)
    spec = sweep.spec("seconds = 5" + SEARCH)  # how long a command runs may change
    assert StudyJob.open(spec, study, [], resume=True).spec.seconds == 5
    examples = sweep.folder / "a.jsonl"
    examples.write_bytes((ROOT / "src/nram/examples/files/double.jsonl").read_bytes())
    spec.write_text('verb = "learn"\nfiles = ["a.jsonl"]\nbudget = 60\n')
    job = StudyJob.open(spec, sweep.folder / "new", [])
    with job.study.held():
        job.study.create(job.spec, job.trials, [])
    examples.write_text(examples.read_text() + "\n")
    with pytest.raises(UsageError, match="another content of"):
        StudyJob.open(spec, sweep.folder / "new", [], resume=True)


@pytest.mark.parametrize(
    "table",
    [
        '[settings]\nmodules = "READ,own"',
        '[grid]\nmodules = ["READ,own", "READ"]',
        '[arms.a]\nmodules = "own"',
        '[random]\ntrials = 1\n[random.settings]\nmodules = ["READ", "READ,own"]',
        '[settings]\nlibrary = "copy,own"',
    ],
)
def test_another_content_of_a_file_that_a_setting_names_is_refused(sweep: Sweep, table: str):
    own = sweep.folder / ("own.py" if "modules" in table else "own.nram")
    own.write_text("before")
    spec = spec_from(
        tomllib.loads('verb = "search"\ntasks = ["copy"]\nbudget = 9\n' + table.replace("own", own.name)),
        "",
        sweep.folder,
    )
    study = Study(sweep.folder / "study")
    with study.held():
        study.create(spec, with_digests(trials_of(spec)), [])
    study.require_same(spec)
    own.write_text("after")
    with pytest.raises(UsageError, match=f"another content of {own}"):
        study.require_same(spec)


def test_another_recipe_is_said_when_a_study_that_trains_goes_on(sweep: Sweep, monkeypatch: pytest.MonkeyPatch):
    for text, words in ((SEARCH, []), (TRAIN, ["the recipe was abc, is def"])):
        spec = spec_from(tomllib.loads(text.format(seeds=1)), "study.toml", sweep.folder)
        study = Study(sweep.folder / spec.verb)
        monkeypatch.setattr("nram.cluster.study.recipe_digest", lambda: "abc")
        with study.held():
            study.create(spec, trials_of(spec), [])
        assert study.differences() == []
        monkeypatch.setattr("nram.cluster.study.recipe_digest", lambda: "def")
        assert study.differences() == words


def test_the_specifications_of_the_page_begin_and_go_on(sweep: Sweep):
    """No trial runs: a study is written, and opened again with the same specification and from its folder."""
    page = (ROOT / "docs/scale.md").read_text()
    blocks = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert any("inf]" in block for block in blocks) and any("[arms.all]" in block for block in blocks)
    for number, block in enumerate(blocks):
        spec = sweep.folder / f"{number}.toml"
        spec.write_text(block if "tasks =" in block else f'tasks = ["access"]\n{block}')
        study = sweep.folder / str(number)
        job = StudyJob.open(spec, study, [])
        with job.study.held():
            job.study.create(job.spec, job.trials, [])
        for source in (spec, study):
            again = StudyJob.open(source, study, [], resume=True)
            assert (again.spec, again.trials, again.new) == (job.spec, job.trials, False)


def test_a_full_disk_is_named_and_ends_the_command(sweep: Sweep, monkeypatch: pytest.MonkeyPatch):
    """No file can be written any more while the trials run: no trial is counted, none is lost."""
    study = Study(sweep.folder / "study")
    job = StudyJob.open(sweep.spec(SEARCH, "0"), study.path, [])
    with study.held():
        study.create(job.spec, job.trials, [])
    # Root may write where others may not, so a folder stands where the trial wants to write.
    (study.path / "trials" / "access-0.json").mkdir(parents=True)
    studied = StudyJob.open(study.path, None, [], resume=True).run(workers=1)
    assert not studied.finished and "access-0.json" in studied.failed["access-0"]
    assert "1 of 1 trial has not ended, and is not in the table" in _what_is_left(studied)
    assert (study.path / "results.jsonl").read_text() == ""
    (study.path / "trials" / "access-0.json").rmdir()

    def refuse(path: Path, option: str = "--out") -> None:
        raise UsageError(f"cannot write {path}: No space left on device; choose another --out")

    monkeypatch.setattr("nram.cluster.job.check_destination", refuse)
    (study.path / "runs" / "access-0").rename(study.path / "kept")
    (study.path / "runs" / "access-0").write_text("in the way")
    studied = StudyJob.open(study.path, None, [], resume=True).run(workers=1)
    assert studied.trouble is not None and "No space left on device" in studied.trouble
    (study.path / "runs" / "access-0").unlink()
    assert StudyJob.open(study.path, None, [], resume=True).run(workers=1).finished
    assert [line["trial"] for line in lines_of(study.path)] == ["access-0"]


def test_a_clock_that_jumps_changes_nothing(study: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(time, "time", lambda: -1e9)
    (study / "trials" / "access-1.json").unlink()
    assert StudyJob.open(study, None, [], resume=True).run().finished
    sources = [path.read_text() for path in (ROOT / "src/nram/cluster").glob("*.py")]
    assert not any("time.time()" in text for text in sources)


def test_the_seconds_of_a_study_stop_it(sweep: Sweep):
    _, err = sweep.run(sweep.spec("seconds = 0.5" + SEARCH), "--out", "study", "--workers", "1", status=1)
    assert "its seconds are over" in err and "go on with: nram sweep study --resume" in err
    sweep.spec(SEARCH)
    assert len(lines_of(sweep.folder / "study")) < 2


def test_a_budget_ends_a_trial_and_counts_as_not_learned(sweep: Sweep):
    spec = sweep.spec("budget = 0.5\n" + TRAIN, "3")
    out, _ = sweep.run(spec, "--out", "study")
    assert "out of budget" in out
    (line,) = lines_of(sweep.folder / "study")
    assert (line["ended"], line["learned"]) == ("budget", False)


def test_what_needs_ray_is_refused_without_an_address(sweep: Sweep):
    spec = sweep.spec(TRAIN.replace("tasks", "budget = 9\nstorage = 'there'\ntasks", 1))
    with pytest.raises(UsageError, match="storage needs Ray"):
        StudyJob.open(spec, None, []).run()
    assert not (sweep.folder / "studies").exists()


class Noted(StudyCallbacks):
    def __init__(self):
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def begun(sweep: Sweep, text: str, resume: bool = False) -> tuple[Study, list[str]]:
    """A study that begins or goes on, and ends before its first trial; and what it has noted."""
    study, noted = Study(sweep.folder / "study"), Noted()
    StudyJob.open(sweep.spec(text), study.path, [], resume=resume).run(noted, lambda: True)
    return study, noted.notes


def gpus_of(study: Study) -> tuple[float | None, set[float]]:
    return study.spec.resources.gpus, {trial.gpus for trial in study.trials}


def test_a_study_takes_the_gpus_at_hand_and_keeps_to_that(sweep: Sweep, gpus: FakeGpus):
    gpus.have(["0", "1"], mib=143_771)
    study, notes = begun(sweep, TRAIN)
    assert notes == [
        "this machine has 2 GPUs: 8 trials share each ('[resources] gpus = 0' in the specification trains on cores)"
    ]
    assert gpus_of(study) == (0.125, {0.125})
    gpus.have(["0", "1"], mib=16_384)  # where others are at hand, nothing is decided again
    study, notes = begun(sweep, TRAIN, resume=True)
    assert (notes, gpus_of(study)) == ([], (0.125, {0.125}))
    gpus.have([])
    words = r"began on GPUs \(resources.gpus is 0.125\), and this machine has none .*gpus = 0' and another .*out"
    for source in (study.path, sweep.spec(TRAIN)):
        out = None if source == study.path else study.path
        with pytest.raises(UsageError, match=words):
            StudyJob.open(source, out, [], resume=True).run()


def test_a_study_that_began_on_cores_goes_on_on_cores(sweep: Sweep, gpus: FakeGpus):
    gpus.have([])
    study, notes = begun(sweep, TRAIN)
    assert (notes, gpus_of(study)) == ([], (0.0, {0.0}))
    gpus.have(["0"])
    study, notes = begun(sweep, TRAIN, resume=True)
    assert notes == ["this machine has 1 GPU: the study began on cores, and goes on on cores"]
    assert gpus_of(study) == (0.0, {0.0})


@pytest.mark.parametrize(
    ("text", "share", "words"),
    [
        (TRAIN + "[resources]\ngpus = 0\n", 0.0, None),
        (TRAIN + "[resources]\ngpus = 0.5\n", 0.5, None),
        (SEARCH, 0.0, None),
        (TRAIN, 0.0, "this machine has 1 GPU, which JAX cannot use: the trials run on cores; pip install 'nram[cuda]'"),
    ],
)
def test_gpus_are_left_alone_where_they_are_not_wanted(
    sweep: Sweep, gpus: FakeGpus, text: str, share: float, words: str | None
):
    gpus.have(["3"], plugin=words is None)
    study, notes = begun(sweep, text)
    assert gpus_of(study) == (share, {share})
    assert len(notes) == (words is not None) and all(words is not None and words in note for note in notes)


def test_a_finished_study_of_gpus_is_shown_where_there_are_none(study: Path, monkeypatch: pytest.MonkeyPatch):
    value = json.loads((study / "study.json").read_text())
    value["spec"]["resources"]["gpus"] = 0.5
    (study / "study.json").write_text(json.dumps(value | {"spec": {**value["spec"], "verb": "train", "budget": None}}))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert StudyJob.open(study, None, [], resume=True).run().finished


def test_too_many_cores_are_refused(sweep: Sweep):
    spec = sweep.spec(TRAIN + "[resources]\ncores = 4000\n")
    with pytest.raises(UsageError, match="resources.cores is 4000, and this machine has"):
        StudyJob.open(spec, sweep.folder / "study", []).run()


def test_a_folder_that_is_no_study(sweep: Sweep):
    (sweep.folder / "full").mkdir()
    (sweep.folder / "full" / "x").touch()
    with pytest.raises(UsageError, match="not empty and not a study"):
        StudyJob.open(sweep.spec(TRAIN), sweep.folder / "full", [])
    with pytest.raises(UsageError, match="a folder without study.json"):
        StudyJob.open(sweep.folder / "full", None, [], resume=True)


def test_a_study_cannot_begin_where_nothing_can_be_written(sweep: Sweep):
    (sweep.folder / "file").touch()
    job = StudyJob.open(sweep.spec(SEARCH), sweep.folder / "file" / "study", [])
    with pytest.raises(NramError, match="lies below one"):
        job.run()
    assert os.path.isfile(sweep.folder / "file")


def test_a_plot_that_cannot_be_drawn_is_refused_before_anything_runs(sweep: Sweep):
    _, err = sweep.run(sweep.spec(SEARCH), "--plot", "shares.jpg", status=2)
    assert "shares.jpg does not end in .png, .svg, .pdf" in err
    assert not (sweep.folder / "studies").exists()
