"""Every way to train gives the same run: the command line, the Python API, `nram reproduce` and `nram learn`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support.training_runs import ending, shared_compilation

import nram
from nram.cli import main
from nram.errors import NramError, UsageError
from nram.extensions import known_task
from nram.learning import by_training
from nram.learning.callbacks import LearningCallbacks
from nram.learning.job import LearningJob
from nram.learning.parts import split
from nram.learning.task import training_tasks
from nram.programs.files import read_program
from nram.reproduction import job as reproduction
from nram.reproduction.examining import Plan
from nram.reproduction.job import ReproductionJob
from nram.tasks.example_files import ExampleFile, read_examples
from nram.training import trainer
from nram.training.callbacks import Interrupted, Report, TrainingCallbacks
from nram.training.checkpoint import save_arrays
from nram.training.config import CullConfig, TrainConfig
from nram.training.job import TrainingJob
from nram.training.run_folder import RunFolder
from nram.training.settings import load_config

SETTINGS = {
    "groups": [],
    "registers": 2,
    "hidden": 8,
    "modules": ["READ", "INC", "WRITE"],
    "batch": 4,
    "validation": 8,
    "check_every": 10,
    "stages": [
        {"max_complexity": 2, "steps": 20, "population": 4},
        {"max_complexity": 2, "steps": 10, "population": 2},
    ],
}
OVERRIDES = [f"{key}={json.dumps(value)}" for key, value in SETTINGS.items()]
WORDS = [word for override in OVERRIDES for word in ("--set", override)]


@pytest.fixture(scope="module", autouse=True)
def quick_runs():
    with shared_compilation():
        yield


def config_of(task: str) -> TrainConfig:
    return load_config(task, overrides=OVERRIDES, seed=3)


@pytest.fixture(scope="module")
def examples(tmp_path_factory) -> ExampleFile:
    """Examples of a small problem: the number in cell 1 goes to cell 0."""
    file = tmp_path_factory.mktemp("examples") / "first.jsonl"
    rows = [([0, a, *rest, 0], a) for a in (1, 2) for rest in ([], [1], [2], [1, 2], [2, 1, 1])]
    file.write_text("\n".join(json.dumps({"input": m, "output": [a, *m[1:]], "cells": [0]}) for m, a in rows))
    return read_examples(file)


@pytest.fixture(scope="module")
def task(examples) -> str:
    """The task of the training examples, known by its name in this process."""
    return training_tasks(split(examples.examples, 0, "").training, "first")[0].name


@pytest.fixture(scope="module")
def by_job(task, tmp_path_factory):
    """The run as the job itself makes it."""
    path = tmp_path_factory.mktemp("job") / "run"
    TrainingJob.open(path, config_of(task), ["train"]).run("cpu")
    return ending(path)


def test_the_command_line_trains_the_same_run(task, by_job, tmp_path):
    words = ["train", task, "--seed", "3", "--device", "cpu", "--out", str(tmp_path / "run"), *WORDS]
    assert main(words) == 1  # so few steps teach it nothing
    assert ending(tmp_path / "run") == by_job
    assert json.loads((tmp_path / "run" / "run.json").read_text())["arguments"] == words


def test_the_python_api_trains_the_same_run_and_records_the_command_for_it(task, by_job, tmp_path):
    run = nram.train(task, tmp_path / "run", seed=3, settings=SETTINGS, device="cpu")
    assert ending(run.path) == by_job
    record = json.loads((run.path / "run.json").read_text())
    assert record["arguments"] == ["train", task, "--seed", "3", *WORDS]


def test_reproduce_trains_the_same_run(task, by_job, tmp_path, monkeypatch):
    monkeypatch.setitem(reproduction.TABLE, task, None)
    monkeypatch.setattr(reproduction, "load_config", lambda name, seed: config_of(name))
    job = ReproductionJob([], [task], ("trained",), Plan(at=2, seed=3), tmp_path, "cpu")
    job.run_training(TrainingCallbacks(), lambda: False)
    assert ending(tmp_path / "runs" / f"{task}-3") == by_job


# ---- learning


class StopAfter(TrainingCallbacks):
    """Asks for a stop after some reports."""

    def __init__(self, count: int):
        self.left = count

    def report(self, report: Report) -> None:
        self.left -= 1

    def stopping(self) -> bool:
        return self.left <= 0


class WithTraining(LearningCallbacks):
    def __init__(self, training: TrainingCallbacks):
        self.training = training


@pytest.fixture
def learning(examples, task, monkeypatch):
    """A function from a folder to a job that trains a single small run."""
    monkeypatch.setattr(by_training, "configurations", lambda job, parts: iter([config_of(task)]))
    return lambda folder: LearningJob(examples, folder, method="train", device="cpu", resume=True)


def test_learning_trains_the_same_run(by_job, learning, tmp_path):
    learning(tmp_path).run()
    assert ending(tmp_path / "training" / "0") == by_job


def test_the_programs_of_a_finished_run_are_scored_after_a_kill(learning, tmp_path, monkeypatch):
    """The process is killed after the run has ended and before its programs are scored."""
    whole = learning(tmp_path / "whole").run()
    job = learning(tmp_path / "killed")
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(by_training, "best_members", lambda *arguments: sys.exit())
        job.run()
    assert (job.folder / "training" / "0" / "result.json").exists()
    again = job.run()
    assert whole.program is not None and again.program is not None and again.training is not None
    assert again.program.states == whole.program.states
    assert (again.training.runs, again.training.scored) == (1, 1)
    third = job.run()  # nothing is scored twice
    assert third.training is None and third.program is not None and third.program.states == whole.program.states


class FullDisk(TrainingCallbacks):
    """From the first report on, the report of the job and its program cannot be written."""

    def __init__(self, folder: Path):
        self.folder = folder

    def report(self, report: Report) -> None:
        for name in ("report.json", "program.nram"):
            (self.folder / name).unlink(missing_ok=True)
            (self.folder / name).symlink_to("/dev/full")


def test_a_trained_program_that_cannot_be_saved_is_saved_elsewhere_once(learning, tmp_path, monkeypatch):
    job, current = learning(tmp_path / "learned"), tmp_path / "current"
    current.mkdir()
    monkeypatch.chdir(current)
    with pytest.raises(NramError, match="cannot write .*program.nram: No space left on device") as failure:
        job.run(WithTraining(FullDisk(job.folder)))
    (elsewhere,) = current.iterdir()
    assert read_program(elsewhere).origin == "trained"
    assert f"it was saved as {elsewhere} instead" in str(failure.value)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_learning_that_was_stopped_and_resumed_ends_like_undisturbed_learning(by_job, learning, tmp_path, count):
    whole = learning(tmp_path / "whole").run()
    stop, job = StopAfter(count), learning(tmp_path / "parts")
    stopped = job.run(WithTraining(stop), stop.stopping)
    assert stopped.program is not None and not (job.folder / "training" / "0" / "result.json").exists()
    resumed = job.run()
    assert ending(job.folder / "training" / "0") == by_job
    assert whole.training is not None and whole.training.best is not None
    assert resumed.training is not None and resumed.training.best is not None
    assert resumed.training.best.program == whole.training.best.program
    assert resumed.judgement is not None and whole.judgement is not None
    assert resumed.judgement.training.right >= whole.judgement.training.right
    again = job.run()  # the run is finished: nothing is trained
    assert again.training is None or again.training.runs == 0


PAIRS = [(a, b) for a in (1, 2, 3) for b in (1, 2, 3)]


def small(configuration: TrainConfig) -> TrainConfig:
    """Its first group alone, with as little work as SETTINGS."""
    configuration = configuration.group_configs[0]
    stage = replace(configuration.stages[-1], steps=10, population=2, keep=None, cull=CullConfig())
    amounts = {name: SETTINGS[name] for name in ("batch", "validation", "check_every")}
    return replace(configuration, **amounts, machine=config_of(configuration.task).machine, stages=(stage,))


@pytest.fixture
def learned_from(tmp_path, monkeypatch):
    """A function from memories before and after to the end of the first run that learns from them."""
    every = by_training.configurations
    monkeypatch.setattr(by_training, "configurations", lambda job, parts: map(small, islice(every(job, parts), 1)))

    def learn(where: str, rows: list[tuple[list[int], list[int], int]]):
        file = tmp_path / where / "examples.jsonl"
        file.parent.mkdir()
        lines = ({"input": start, "output": end, "cells": [0], "steps": steps} for start, end, steps in rows)
        file.write_text("\n".join(map(json.dumps, lines)))
        learned = LearningJob(read_examples(file), file.parent / "out", method="train", device="cpu").run()
        return {one.size for one in learned.parts.held_out}, ending(file.parent / "out" / "training" / "0")

    return learn


def test_training_never_looks_at_held_out_examples(learned_from):
    """Other held-out examples, with other answers, memories and step limits, leave every bit of the run as it was."""
    training = [([0, a, b, 0, 0], [b, a, b, 0, 0], 9) for a in (1, 2) for b in (0, 3, 4)]
    held_out = [([0, a, b, 1, 0], [1, a, b, 1, 0], 9) for a in (1, 2) for b in (1, 3)]
    others = [([0, a, a, 2, *[0] * 20], [a + 9, a, a, 2, *[0] * 20], 99) for a in (2, 3, 4, 5)]
    sizes, whole = learned_from("whole", training + held_out)
    assert sizes == {3} and learned_from("others", training + others) == ({3}, whole)


def test_answers_are_examples_of_the_runs_that_follow(tmp_path, monkeypatch):
    """With an answer another run is trained, and the run without it stays."""
    rows = [{"input": [0, a, b, 0, 0], "output": [a * b % 5, a, b, 0, 0], "cells": [0], "steps": 9} for a, b in PAIRS]
    (tmp_path / "products.jsonl").write_text("\n".join(map(json.dumps, rows)))
    examples, every = read_examples(tmp_path / "products.jsonl"), by_training.configurations
    monkeypatch.setattr(by_training, "configurations", lambda job, parts: map(small, islice(every(job, parts), 1)))
    job = LearningJob(examples, tmp_path / "out", method="train", device="cpu", resume=True)
    assert (first := job.run().training) is not None and first.scored == 1
    line = json.dumps({"input": [0, 0, 0, 0, 0], "output": [4, 0, 0, 0, 0], "cells": [0], "steps": 9})
    (job.folder / "answers.jsonl").write_text(line)
    assert (second := job.run().training) is not None and (second.runs, second.scored) == (1, 1)
    assert job.run().training is None  # all is done
    folders = sorted((job.folder / "training").iterdir())
    given = [known_task(RunFolder.open(path).config.task).examples for path in folders]
    inputs = [one.given()[0].input for one in given if one is not None]
    zeros = [sum(not memory.any() for memory in memories) for memories in inputs]
    assert folders[0].name == "0" and zeros == [0, 1] and len(inputs[1]) == len(inputs[0]) + 1


class Slow(TrainingCallbacks):
    """A clock by which every round takes 30 s, and nothing else takes any time."""

    def __init__(self):
        self.reports: list[Report] = []

    def report(self, report: Report) -> None:
        self.reports.append(report)

    def monotonic(self) -> float:
        return 30.0 * len(self.reports)


def test_a_run_with_a_budget_says_when_it_ends_and_starts_no_round_that_would_end_later(task, tmp_path, monkeypatch):
    slow, saves = Slow(), []
    monkeypatch.setattr(trainer, "time", slow)
    monkeypatch.setattr(trainer, "save_arrays", lambda *arguments: saves.append(save_arrays(*arguments)))
    config = config_of(task)
    config = replace(config, stages=(replace(config.stages[0], steps=10**6),))
    run = TrainingJob.open(tmp_path / "run", config, ["train"])
    with pytest.raises(Interrupted, match="stopped at step 30 of stage 0"):
        run.run("cpu", slow, until=110.0)
    assert [one.budget_left for one in slow.reports] == [110, 80, 50]
    notice = slow.reports[-1].notice
    assert notice is not None and "Time: the run ends with its budget, in about 50 s; all steps" in notice
    assert len(saves) == 4  # at the start and after every round, and not again at the end


class SlowToCompile(Slow):
    """A clock by which compiling a stage takes 40 s, every round 10 s, and nothing else takes any time."""

    compiled = 0

    def activity(self, text: str) -> None:
        self.compiled += text.startswith("compiling")

    def monotonic(self) -> float:
        return 40.0 * self.compiled + 10.0 * len(self.reports)


@pytest.mark.parametrize(("until", "where"), [(75.0, "step 30 of stage 0"), (95.0, "step 0 of stage 1")])
def test_a_round_that_compiled_does_not_end_a_run_before_its_budget(task, tmp_path, monkeypatch, until, where):
    """The rounds of stage 0 end at 50, 60 and 70 s. Stage 1 compiles first, and the run is stopped after that."""
    slow = SlowToCompile()
    monkeypatch.setattr(trainer, "time", slow)
    config = config_of(task)
    config = replace(config, stages=(replace(config.stages[0], steps=30 if until > 80 else 50), config.stages[1]))
    run = TrainingJob.open(tmp_path / "run", config, ["train"])
    with pytest.raises(Interrupted, match=f"stopped at {where}"):
        run.run("cpu", slow, until=until)
    assert len(slow.reports) == 3


def test_learning_gives_its_runs_the_budget_that_is_left(examples, task, tmp_path, monkeypatch):
    config = config_of(task)
    endless = replace(config, stages=(replace(config.stages[0], steps=10**9),))
    monkeypatch.setattr(by_training, "configurations", lambda job, parts: iter([endless]))
    seen = Slow()
    job = LearningJob(examples, tmp_path, budget=99, method="train", device="cpu")
    job.run(WithTraining(seen), lambda: bool(seen.reports))
    left = seen.reports[0].budget_left
    assert left is not None and 0 < left < 99


def test_learning_ends_at_the_first_check_with_a_program_that_fits(monkeypatch, tmp_path):
    """Nearly every program leaves the last cell as it is, so some member is right from the beginning."""
    rows = [{"input": [0, a, b, *[0] * 9], "output": [0, a, b, *[0] * 9], "cells": [11], "steps": 2} for a, b in PAIRS]
    (tmp_path / "nothing.jsonl").write_text("\n".join(map(json.dumps, rows)))
    file = read_examples(tmp_path / "nothing.jsonl")
    every = by_training.configurations
    monkeypatch.setattr(by_training, "configurations", lambda job, parts: map(small, every(job, parts)))
    learned = LearningJob(file, tmp_path / "out", method="train", device="cpu").run()
    assert learned.found and learned.training is not None and (learned.training.runs, learned.training.scored) == (1, 0)
    assert not (tmp_path / "out" / "training" / "0" / "result.json").exists()


# ---- callbacks and refusals


class Log(TrainingCallbacks):
    def __init__(self):
        self.calls: list[str] = []

    def started(self, config, path, device):
        self.calls.append("started")

    def warning(self, text):
        self.calls.append(text)

    def ended(self):
        self.calls.append("ended")


def test_a_run_that_is_stopped_is_ended_and_one_continued_elsewhere_is_warned_about(task, tmp_path):
    job, log = TrainingJob.open(tmp_path / "run", config_of(task), []), Log()
    with pytest.raises(Interrupted):
        job.run("cpu", log, stopping=lambda: True)
    assert log.calls == ["started", "ended"]
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**record, "device": "an abacus"}))
    log = Log()
    TrainingJob.open(tmp_path / "run", config_of(task), [], resume=True).run("cpu", log)
    warning, *rest = log.calls
    assert "device was an abacus, is" in warning and "may differ" in warning and rest == ["started", "ended"]


def test_opening_a_job_writes_nothing_and_compares_what_was_given(task, tmp_path: Path):
    path = tmp_path / "run"
    job = TrainingJob.for_task(task, path, overrides=OVERRIDES, seed=3)
    assert not path.exists() and job.result is None
    job.run("cpu")
    with pytest.raises(UsageError, match="holds a run already"):
        TrainingJob.for_task(task, path)
    ways: list[dict[str, Any]] = [{}, {"seed": 3}, {"overrides": OVERRIDES, "seed": 3}]
    for same in ways:
        assert TrainingJob.for_task(task, path, resume=True, **same).config == job.config
    with pytest.raises(UsageError, match="seed: 3 in the run, 4 asked for"):
        TrainingJob.for_task(task, path, resume=True, seed=4)
    with pytest.raises(UsageError, match="another configuration"):
        TrainingJob.for_task(task, path, resume=True, overrides=["batch=5"])
    with pytest.raises(UsageError, match=f"a run of the task '{task}'"):
        TrainingJob.for_task("copy", path, resume=True)
