"""What a run's folder tells about the run: its status, what went wrong, and cures that work as they are printed."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nram.cli import build_parser
from nram.errors import NramError
from nram.records import read_record
from nram.training import trainer
from nram.training.callbacks import Report, TrainingCallbacks
from nram.training.config import CurriculumConfig, StageConfig, TrainConfig
from nram.training.diagnosis import (
    Diagnosis,
    diagnose,
    failures_text,
    has_left_first_level,
    progress_notice,
    result_text,
)
from nram.training.group import Group, GroupState, work_of_step
from nram.training.history import History, rough_duration
from nram.training.job import TrainingJob
from nram.training.run_folder import Metrics, Result, RunFolder
from nram.training.settings import config_to_dict, load_config, require_usable
from nram.training.trend import Trend

WORDS = ("train", "copy", "--seed", "1", "--device", "cpu", "--set", "registers=3", "--out", "runs/mine", "--resume")
STAGES = (
    StageConfig(6, 500, 32),
    StageConfig(6, 800, 16, keep=8, stop_at=3),
    StageConfig(15, 400, 4, keep=4, stop_at=1),
)
PLAIN = TrainConfig("copy", stages=STAGES)
RECIPE = load_config("copy", seed=1)
PAPER_JOINS = RECIPE.groups[2].joins


def row(stage: int = 0, step: int = 25, **more: Any) -> dict[str, Any]:
    """A line of metrics.jsonl."""
    row = {"stage": stage, "step": step, "max_complexity": (6, 6, 15)[stage % 3], "population": 32, "skipped": 0}
    row |= {"levels": {"1": 32}, "best_error": 0.5, "median_error": 0.8, "solved_soft": 0.0, "solved_hard": 0.0}
    return row | {"seconds": 100.0 * stage + step / 10, "stage_ends": False, "peak_memory": 3 << 29} | more


def result(**more: Any) -> dict[str, Any]:
    plain = {"perfect_members": 0, "examined_members": 0, "best_validation_exact_hard": 0.25, "seconds": 40.0}
    return plain | {"failed_examinations": []} | more


@pytest.fixture
def made(tmp_path):
    """A function that writes a run folder and diagnoses it."""

    def make(
        rows: list[dict[str, Any]],
        ending: dict[str, Any] | None = None,
        words: tuple[str, ...] = WORDS,
        config: TrainConfig | None = None,
    ) -> Diagnosis:
        if config is None:  # one population that goes through its stages
            file = tmp_path / "plain.json"
            file.write_text(json.dumps(config_to_dict(PLAIN)))
            config = load_config("copy", file=file, overrides=["registers=3"], seed=1)
            words = (*words, "--config", str(file))
        run = RunFolder.create(tmp_path / "mine", config, list(words), "a CPU")
        for one in rows:
            run.append_metrics(one)
        if ending is not None:
            run.write_result(ending)
        return diagnose(run)

    return make


FLAT = [row(step=step, best_error=0.3, best_hard=0.1, best_halted=0.5) for step in range(25, 501, 25)]
HIGH = {"levels": {"6": 32}, "best_error": 0.0}
CAUSES = {
    "first level": (FLAT, result()),
    "diverged": ([row(step=step, skipped=8 * step) for step in range(25, 501, 25)], result()),
    "soft, not hard": ([row(solved_soft=0.5, **HIGH), row(1, solved_soft=0.9, **HIGH)], result()),
    "blurred": ([row(solved_hard=0.5, **HIGH)], result(failed_examinations=[("soft", "2T")])),
    "does not halt": ([row(solved_hard=0.5, **HIGH)], result(failed_examinations=[("hard", "2T")])),
    "does not generalise": ([row(solved_hard=0.5, **HIGH)], result(failed_examinations=[("far", "T")])),
    "low level": ([row(levels={"3": 32}, stage_ends=True)], result()),
    "partly right": ([row(best_hard=0.5, **HIGH)], result()),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_is_recognised_and_every_command_works_as_it_is_printed(cause, made):
    rows, ending = CAUSES[cause]
    failures = [{"part": part, "limit": limit, "members": 2} for part, limit in ending["failed_examinations"]]
    found = made(rows, {**ending, "failed_examinations": failures, "examined_members": 2 * len(failures)})
    assert (found.cause, found.status, found.learned) == (cause, "finished", False)
    assert found.verdict.startswith("NOT LEARNED. No member is perfect yet: the best solves 25.0%")
    assert found.explanation and len(found.cures) >= 2
    trained = 0
    for cure in found.cures:
        assert cure.command is not None
        _, verb, *words = shlex.split(cure.command)
        arguments = build_parser([verb, *words]).parse_args([verb, *words])
        if verb != "train":
            continue
        trained += 1
        assert (arguments.task, arguments.device, arguments.resume) == ("copy", "cpu", False)
        assert str(arguments.out).startswith(f"{found.run}-") and cure.command.count("--out") == 1
        keys = [setting.partition("=")[0] for setting in arguments.set]
        assert len(keys) == len(set(keys))
        config = load_config("copy", file=arguments.config, overrides=arguments.set, seed=arguments.seed)
        require_usable(config)
        assert config != load_config("copy", file=arguments.config, overrides=["registers=3"], seed=1)  # it was changed
    assert trained


def test_what_nram_eval_measured_tells_an_unrolled_program_from_a_blurred_one(tmp_path, made):
    rows, ending = CAUSES["soft, not hard"]
    made(rows, ending)
    run = RunFolder.open(tmp_path / "mine")
    for soft, hard, cause in ((0.2, 0.2, "unrolled"), (0.9, 0.1, "blurred")):
        scores = [{"mode": mode, "limit": "T", "exact": exact} for mode, exact in (("soft", soft), ("hard", hard))]
        (run.path / "eval.json").write_text(json.dumps({"perfection": scores}))
        assert diagnose(run).cause == cause
    (run.path / "eval.json").write_text("{")
    assert diagnose(run).cause == "soft, not hard"


def test_a_perfect_run_has_no_cause_and_goes_on_with_extraction(made):
    found = made([row(solved_hard=1.0, **HIGH)], result(perfect_members=2, examined_members=4))
    assert (found.status, found.learned, found.cause, found.cures) == ("finished", True, None, [])
    assert found.verdict.startswith("LEARNED. 2 of the 4 members examined are perfect")
    assert found.next == f"nram extract {found.run}"


def test_a_run_that_is_training_one_that_was_stopped_and_one_that_never_started(tmp_path, made):
    new = made([])
    assert (new.status, new.verdict, new.cures) == ("new", "NOT STARTED. No step was made.", [])
    run = RunFolder.open(tmp_path / "mine")
    with run.locked():
        assert diagnose(run).verdict == "RUNNING. Nothing is measured yet."
        run.append_metrics(row())
        running = diagnose(run)
        assert (running.status, running.cause) == ("running", None)  # too early to say
        assert running.verdict == "RUNNING, at step 25 of stage 0, of 3 stages, after 0:02."
    stopped = diagnose(run)
    assert stopped.status == "stopped" and stopped.verdict.startswith("STOPPED before the end, at step 25 of stage 0")
    assert stopped.next == f"nram train copy --out {run.path} --resume"
    for one in FLAT:
        run.append_metrics(one)
    assert diagnose(run).cause == "first level"  # also before the end


def test_stages_progress_halting_updates_time_and_memory_are_told(made):
    rows = [*FLAT, row(1, 25, levels={"2": 16}, best_hard=0.5, best_halted=0.75, stage_ends=True, skipped=10)]
    found = made(rows, result())
    first, second = found.stages
    assert (first.steps, first.stage_steps, first.highest_level, first.ended) == (500, 500, 1, False)
    assert (first.best_error, first.best_hard, first.improving) == (0.3, 0.1, False)
    assert (second.steps, second.stage_steps, second.highest_level, second.ended) == (25, 800, 2, True)
    assert (first.seconds, second.seconds) == (50.0, 52.5)
    facts = "\n".join(found.facts)
    assert "last got better at 1:42" in facts and "stops by itself on 75% of the validation set" in facts
    assert "Updates: 0.1% were not finite" in facts and "Time: 1:42 on a CPU, with 1.5 GiB of main memory" in facts


def test_failures_of_examinations_in_a_few_words():
    failures = [{"part": "far", "limit": "20n+200", "members": 3}, {"part": "hard", "limit": "2T", "members": 1}]
    assert failures_text(failures) == "3 at n = 50 (20n+200), 1 hard (2T)"
    assert failures_text([]) is None


def test_runs_of_nram_learn_get_words_without_commands(made):
    found = made(FLAT, result(), words=("learn", "mine.jsonl"))
    assert found.cures and all(cure.command is None for cure in found.cures)
    assert any("--budget" in cure.text for cure in found.cures)


def test_without_a_curriculum_levels_say_nothing(made):
    config = replace(PLAIN, curriculum=CurriculumConfig(enabled=False))
    assert made(FLAT, result(), config=config).cause == "partly right"


def test_metrics_of_another_run_are_refused(made):
    with pytest.raises(NramError, match=r"metrics.jsonl cannot be used: it names stages that .*run.json lacks"):
        made([row(7)])


# ---- the trend


def test_noise_is_no_progress_and_small_gains_add_up():
    assert not improving([0.30, 0.28, 0.32, 0.29] * 10)
    assert improving([0.3 - 0.005 * index for index in range(40)])
    assert not improving([0.5, 0.1, *[0.1] * 30])


def improving(errors: list[float]) -> bool:
    trend = Trend()
    for index, error in enumerate(errors):
        trend.add(Metrics(0, 6, float(index), error, error))
    return trend.improving


def test_a_best_member_that_was_lost_is_not_called_progress():
    history = History(RECIPE)
    rows = [(0.4, 0.3), (0.075, 0.396), (0.08, 0.39), (0.41, 0.30), (0.42, 0.29), (0.41, 0.28), (0.41, 0.28)]
    for i, (error, hard) in enumerate(rows):
        found = of_group(0, 25 * (i + 1), seconds=float(i), best_error=error, best_hard=hard)
        history.add(read_record(Metrics, found, "a row"))
        assert history.trends[0].fell_back == (i >= 3)  # of the error, the mean of four reports counts
    assert not history.trends[0].improving
    assert history.trend(0) == "was 39.6%"
    again = of_group(0, 200, seconds=7.0, best_error=0.01, best_hard=0.8)
    history.add(read_record(Metrics, again, "a row"))
    assert history.trends[0].improving and not history.trends[0].fell_back


# ---- a run that does not get started


class Notes(TrainingCallbacks):
    def __init__(self):
        self.notes: list[str] = []
        self.reports: list[Report] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def report(self, report: Report) -> None:
        self.reports.append(report)


SMALL = ("registers=1", "hidden=4", "batch=2", "validation=8", "modules=READ,WRITE", "check_every=50", "population=2")


def test_a_run_in_which_no_member_leaves_the_first_level_says_so_once_with_cures(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "NOTICES", (1e-9,))  # instead of a minute
    notes, file = Notes(), tmp_path / "plain.toml"
    file.write_text("[[stages]]\nmax_complexity = 2\nsteps = 75\npopulation = 2\n")
    words = ["train", "copy", "--config", str(file), "--set", "registers=1"]
    job = TrainingJob.for_task("copy", tmp_path / "run", file=file, overrides=[*SMALL], words=words)
    job.run("cpu", notes)
    written = [row["notice"] for row in job.folder.read_metrics()]
    assert written == [report.notice for report in notes.reports] == [*notes.notes, None, None]
    (notice,) = notes.notes
    first, *_ = notice.splitlines()
    assert first.startswith("After 0:0") and first.endswith("no member is perfect yet.")
    assert "No member has left the first level." in notice and "  Next: the end at step 75." in notice
    assert "--set registers=3" in notice and f"--out {tmp_path / 'run-seed1'}" in notice


def test_where_no_member_can_leave_the_first_level_nothing_is_said():
    config = PLAIN
    assert not has_left_first_level(config, 6, 1)
    assert has_left_first_level(config, 6, 2)
    assert has_left_first_level(config, 1, 1)  # a stage with one level
    assert has_left_first_level(replace(config, curriculum=CurriculumConfig(enabled=False)), 6, 1)


# ---- groups


def of_group(group: int, step: int, stage: int = 0, **more: Any) -> dict[str, Any]:
    """A line of metrics.jsonl of one of the recipe's groups."""
    found = {"group": group, "stage": stage, "step": step, "max_complexity": (5, 15, 15)[stage], "population": 512}
    found |= {"levels": {"1": 512}, "best_error": 0.4, "median_error": 0.8, "solved_soft": 0.0, "solved_hard": 0.0}
    found |= {"best_hard": 0.25, "best_halted": 0.5, "stage_ends": False, "skipped": 0, "checks": 1}
    return found | {"seconds": 10.0 * group + step / 10} | more


FLAT_GROUPS = [of_group(i // 25 % 2, i, seconds=float(i)) for i in range(25, 2025, 25)]
RISING = [of_group(0, i, seconds=float(i), best_error=0.9 - i / 3000) for i in range(25, 2025, 25)]
NEARLY = [
    of_group(0, 100, stage_ends=True, solved_hard=0.1, best_hard=1.0),
    *(
        of_group(0, 1500, 1, stage_ends=True, solved_hard=0.5, best_hard=1.0, attempt=i, failed="4 at n = 50 (T)")
        | {"seconds": 200.0 + i}
        for i in range(3)
    ),
]
GROUP_CAUSES = {
    "partly right": ([*RISING, *({**one, "group": 1} for one in RISING)], []),
    "last stage": (NEARLY, []),
    "diverged": ([of_group(1, step, skipped=60 * step) for step in range(25, 501, 25)], []),
    "blurred": (NEARLY, [("soft", "2T")]),
    "does not halt": (NEARLY, [("hard", "2T")]),
    "does not generalise": (NEARLY, [("far", "T")]),
    "soft, not hard": ([of_group(0, 25, solved_soft=0.5, best_error=0.0)], []),
}


@pytest.mark.parametrize("cause", GROUP_CAUSES)
def test_causes_of_groups_have_cures_whose_commands_work(cause, made):
    rows, failures = GROUP_CAUSES[cause]
    failed = [{"part": part, "limit": limit, "members": 2} for part, limit in failures]
    words = ("train", "copy", "--seed", "1")
    found = made(rows, result(failed_examinations=failed, examined_members=2), words=words, config=RECIPE)
    assert (found.cause, found.machine) == (cause, "3 groups (soft, hard, paper)")
    assert len(found.cures) >= 2
    folders = [cure.command.partition("--out ")[2] for cure in found.cures if cure.command and "--out" in cure.command]
    assert len(folders) == len(set(folders))
    for cure in found.cures:
        assert cure.command is not None
        _, verb, *rest = shlex.split(cure.command)
        arguments = build_parser([verb, *rest]).parse_args([verb, *rest])
        if verb == "train":
            assert load_config("copy", overrides=arguments.set, seed=arguments.seed) != RECIPE, cure.command


def test_the_stages_of_groups_that_take_turns_are_told_apart(made):
    rows = [of_group(0, 25), of_group(1, 25), of_group(0, 50, seconds=14.0, best_hard=0.5, restarts=3)]
    rows += [of_group(0, 25, 1, seconds=15.0), of_group(0, 75, attempt=1, seconds=16.0, restarts=4)]
    found = made(rows, config=RECIPE, words=("train", "copy"))
    assert [(one.group_name, one.stage, one.steps, one.attempts, one.restarts) for one in found.stages] == [
        ("soft", 0, 75, 2, 4), ("soft", 1, 25, 1, 0), ("hard", 0, 25, 1, 0),
    ]  # fmt: skip
    assert [one.seconds for one in found.stages] == [5.0, 1.0, 10.0]
    assert [one.best_hard for one in found.stages] == [0.5, 0.25, 0.25]
    assert found.verdict == (
        "STOPPED before the end, after 0:16. soft: try 2: n <= 5, 75 steps. hard: n <= 6, 25 steps. "
        f"paper: joins at check {PAPER_JOINS}. No member was examined for the result."
    )
    with pytest.raises(NramError, match="it names groups or stages that .*run.json lacks"):
        run = RunFolder.open(Path(found.run))
        run.append_metrics(of_group(3, 25))
        diagnose(run)


def test_a_stopped_run_of_groups_is_judged_only_when_no_group_gets_better(made, tmp_path):
    assert made(RISING, config=RECIPE, words=("train", "copy")).cause is None
    run = RunFolder.open(tmp_path / "mine")
    run.cut_metrics(0)
    for one in FLAT_GROUPS:
        run.append_metrics(one)
    stuck = diagnose(run)
    assert (stuck.status, stuck.cause) == ("stopped", "partly right")
    assert stuck.explanation is not None and "No group got better for 32:" in stuck.explanation
    assert stuck.next == f"nram train copy --out {run.path} --resume"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (89.0, "89 s"),
        (700.0, "12 min"),
        (7898.0, "2 h 12 min"),
        (130_000.0, "36 h"),
        (802_891.0, "9 days"),
    ],
)
def test_a_rough_duration_has_two_figures(seconds, words):
    assert rough_duration(seconds) == words


def test_a_notice_says_what_was_reached_what_gets_better_and_how_long_it_may_take(made, tmp_path):
    made([], config=RECIPE, words=("train", "copy"))
    run, history = RunFolder.open(tmp_path / "mine"), History(RECIPE)
    for one in [*FLAT_GROUPS[:60], *(of_group(1, 2000 + i, seconds=1600.0 + i, best_hard=i / 20) for i in range(10))]:
        history.add(read_record(Metrics, one, "a row"))
    lines = progress_notice(run, history, 7800.0).splitlines()
    wait = rough_duration((PAPER_JOINS - 1) * 1609.0)
    assert lines == [
        "After 26:49 no member is perfect yet.",
        "  Reached: the best member of group hard solves 45% of the validation examples",
        "    as a program, up to n = 12; soft error 0.400 at n <= 5. It is still getting",
        "    better.",
        "  Groups: soft flat 24:10, hard better.",
        "  Next: hard: stage 1 when 4 members solve all 64 validation examples, now 0.",
        f"  Next: paper joins at check {PAPER_JOINS}, now 1: in about {wait}.",
        "  Time: all steps take about 2 h 10 min more at the present rate. It ends",
        "    sooner when a member is perfect.",
    ]
    assert progress_notice(run, history, 7800.0, 46.0).splitlines()[:-3] == lines[:-3]
    assert progress_notice(run, history, 7800.0, 46.0).splitlines()[-2:] == [
        "  Time: the run ends with its budget, in about 46 s; all steps would take about",
        "    2 h 10 min. It ends sooner when a member is perfect.",
    ]
    assert progress_notice(run, history, 7800.0, 9000.0).splitlines() == lines
    stage = RECIPE.group_configs[0].stages[0]
    history.add(read_record(Metrics, of_group(0, 2050, seconds=1700.0, best_hard=1.0, waits=True), "a row"))
    words = f"Next: soft: waits up to {stage.halt_within} steps for {stage.stop_at} solved members that also halt."
    assert words in " ".join(progress_notice(run, history, 7800.0).split())
    stuck = History(RECIPE)
    for one in FLAT_GROUPS:
        stuck.add(read_record(Metrics, one, "a row"))
    assert progress_notice(run, stuck, 60.0).endswith(f"No group gets better. What to try: nram doctor {run.path}")
    of_learn = RunFolder.create(tmp_path / "learn", RECIPE, ["learn", "mine.jsonl"], "a CPU")
    assert progress_notice(of_learn, stuck, 60.0).endswith("No group gets better.")  # doctor does not know its task


def test_the_result_says_whether_perfect_members_halt():
    def text(perfect: int, halting: int | None) -> str:
        return result_text(Result(perfect, 4, 1.0, 22.0, halting_members=halting)).partition("(after 22 s).")[2]

    assert text(1, 1) == " It halts by itself within T(n)."
    assert text(2, 2) == " All halt by themselves within T(n)."
    assert text(3, 1) == " 1 of them halts by itself within T(n)."
    assert text(3, 2) == " 2 of them halt by themselves within T(n)."
    assert text(1, 0) == " It does not halt within T(n), and idles without damage."
    assert text(2, 0) == " They do not halt within T(n), and idle without damage."
    assert text(2, None) == ""  # the result of an older version


def test_the_work_that_is_left_counts_all_steps_of_all_stages_and_less_once_a_member_is_perfect():
    config = RECIPE.group_configs[0]
    first, last = (work_of_step(config, stage) for stage in config.stages)

    def left(**state: Any) -> int:
        hooks: Any = None  # of a group that trains
        return Group(config, [], hooks, again=True, state=GroupState(begun=True, **state)).work_left

    assert left() == 40_000 * first + 1500 * last
    assert left(step=1000) == 39_000 * first + 1500 * last
    assert left(stage=1, step=100, first_steps=1000) == 39_000 * first + 1400 * last  # it may start again
    # It waits 100 steps for a member that halts, from the check that found a perfect one.
    assert left(stage=1, step=1100, first_steps=1000, perfect=1, enough_at=1100) == 100 * last
    assert left(stage=1, step=1125, first_steps=1000, perfect=1, enough_at=1100) == 75 * last
    assert left(stage=1, step=1450, first_steps=1000, perfect=1, enough_at=1450) == 50 * last  # 1500 steps at most
    assert left(stage=1, step=100, done=True) == 0


def test_a_run_that_got_worse_is_not_said_to_get_better(made, tmp_path):
    made([], config=RECIPE, words=("train", "copy"))
    run, history = RunFolder.open(tmp_path / "mine"), History(RECIPE)
    for index in range(3):
        row = of_group(0, 25 * index, seconds=30.0 * index, best_hard=0.3 - index / 50, best_error=0.3 + index / 50)
        history.add(read_record(Metrics, row, "a row"))
    notice = " ".join(progress_notice(run, history, 60.0).split())
    assert "Whether it gets better is not known yet." in notice and "still getting better" not in notice


TWO_GROUPS = """
draw_steps = true
curriculum.enabled = false

[[groups]]
name = "first"
batch = 2
check_every = 5
validation = 8
machine = {registers = 2, hidden = 4, modules = ["READ", "INC", "WRITE"]}

[[groups.stages]]
max_complexity = 2
population = 4
steps = 20
stop_at = 4
cull = {share = 0.5, islands = 2, patience = 1}

[[groups]]
name = "second"
joins = 2
batch = 2
check_every = 5
validation = 8
machine = {registers = 1, hidden = 4, modules = ["READ", "WRITE"]}

[[groups.stages]]
max_complexity = 2
population = 4
steps = 10
stop_at = 1
"""


def test_a_run_of_two_groups_says_where_it_stands_and_is_explained(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "NOTICES", (1e-9, 1e9))  # at once, and never again
    file, notes = tmp_path / "two.toml", Notes()
    file.write_text(TWO_GROUPS)
    job = TrainingJob.for_task("copy", tmp_path / "run", file=file, words=["train", "copy", "--config", str(file)])
    result = job.run("cpu", notes)
    assert {report.group for report in notes.reports} == {0, 1}
    assert [report.checks for report in notes.reports] == list(range(1, 7))
    assert notes.reports[-1].seconds_left == 0
    assert sum(report.restarts for report in notes.reports if report.group == 0) > 0
    (notice,) = [report.notice for report in notes.reports if report.notice]
    assert "Reached: the best member of group first solves" in notice
    assert "Whether it gets better is not known yet." in " ".join(notice.split())
    assert "  Next: second joins at check 2, now 1: in about " in notice and "  Time: all steps take" in notice
    assert notice in notes.notes
    found = diagnose(job.folder)
    assert [(one.group_name, one.steps) for one in found.stages] == [("first", 20), ("second", 10)]
    assert result["group"] in ("first", "second") and result["halting_members"] == 0
