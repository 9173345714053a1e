"""What a training run shows: a panel that fits the terminal, an HTML panel in a notebook, few lines in a log.

A run has groups, or, with a file of settings, one population that goes through its stages.
"""

import io
import re
import sys
import types
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from nram.training import display
from nram.training.callbacks import Report, TrainingCallbacks
from nram.training.config import CurriculumConfig, StageConfig, TrainConfig
from nram.training.display import GroupsPanel, Panel, TrainingDisplay, training_display
from nram.training.history import rough_duration
from nram.training.run_folder import RunFolder
from nram.training.settings import load_config

STAGES = (
    StageConfig(6, 500, 32),
    StageConfig(6, 800, 16, keep=8, stop_at=3),
    StageConfig(15, 400, 4, keep=4, stop_at=1),
)
PLAIN = TrainConfig("copy", seed=1, stages=STAGES)
RECIPE = load_config("copy", seed=1)
_, HARD_JOINS, PAPER_JOINS = (group.joins for group in RECIPE.groups)
TITLE = "nram train copy, seed 1, on 2 x x86_64 CPU"
START = Report(
    stage=0,
    step=25,
    stage_steps=500,
    stage_ends=False,
    max_complexity=6,
    population=32,
    levels={1: 32},
    loss=1.5,
    best_error=0.451,
    median_error=0.731,
    best_exact=0.3,
    solved_soft=0.0,
    solved_hard=None,
    best_hard=None,
    best_halted=None,
    perfect=0,
    examined=0,
    failed=None,
    skipped=0,
    seconds=12.0,
    example_steps_per_s=1_234_567.0,
    seconds_left=83.0,
    peak_memory=1 << 30,
    notice=None,
)
CHECKED = replace(
    START, step=200, levels={1: 24, 4: 1, 6: 7}, best_error=0.012, solved_soft=0.125, solved_hard=0.0, best_hard=0.974
)
EARLY = replace(
    CHECKED, stage=1, step=50, stage_steps=800, stage_ends=True, population=16, levels={6: 16}, best_hard=1.0
)
FAILED = "3 at n = 50 (20n+200), 1 hard (2T)"
EXAMINED = replace(
    EARLY, stage=2, stage_steps=400, stage_ends=False, max_complexity=15, population=4, levels={7: 2, 8: 2}, examined=4,
    failed=FAILED, solved_hard=1.0,
)  # fmt: skip
PERFECT = replace(EXAMINED, step=100, stage_ends=True, failed=None, perfect=4, solved_soft=0.0, seconds=17.9)


def panel_of(*reports: Report, config: TrainConfig | None = None, path: str = "runs/copy-1") -> Panel:
    config = config or PLAIN
    panel = (GroupsPanel if config.groups else Panel)(config, TITLE, path)
    for report in reports:
        panel.add(report)
    return panel


def drawn(panel: Panel, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    with console.capture() as captured:
        console.print(panel.render(width))
    return captured.get().splitlines()


# ---- the panel

STATES = {
    "before the first report": (),
    "the first report": (START,),
    "a check": (START, CHECKED),
    "an early end": (START, CHECKED, EARLY),
    "an examination": (START, CHECKED, EARLY, EXAMINED),
    "the end": (START, CHECKED, EARLY, EXAMINED, PERFECT),
}


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("state", STATES)
def test_every_line_fits_the_terminal_and_is_not_cut(state, width):
    panel = panel_of(*STATES[state])
    lines = drawn(panel, width)
    assert max(map(cell_len, lines)) <= width
    assert len(lines) == len(panel.render(width).renderables)  # nothing was wrapped
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_large_runs_and_long_names_fit_too(width):
    stages = (StageConfig(5000, 10**7, 65_536, stop_at=60_000), StageConfig(10_000, 10**8, 60_000, stop_at=4))
    config = TrainConfig("copy", stages=stages)
    report = replace(
        EXAMINED, stage=1, max_complexity=10_000, population=60_000, levels=dict.fromkeys(range(1, 3001), 20),
        skipped=10**9, seconds=10**6, seconds_left=10**7, example_steps_per_s=1e9,
    )  # fmt: skip
    panel = panel_of(replace(START, population=65_536), report, config=config, path="/long" * 40 + "/the-end")
    lines = drawn(panel, width)
    assert max(map(cell_len, lines)) <= width
    assert len(lines) == len(panel.render(width).renderables)
    assert lines[1].rstrip().endswith("/the-end")


def rows_of(panel: Panel, width: int = 80) -> dict[str, str]:
    return {line.split()[0]: line.split(maxsplit=1)[-1].strip() for line in drawn(panel, width)[2:]}


def test_a_panel_says_how_good_the_best_member_is_whether_it_gets_better_and_what_comes_next():
    rows = rows_of(panel_of(START, CHECKED))
    assert rows["best"] == "97.4% right as a program up to n = 12, level 6 of 6, soft error 0.012"
    assert rows["trend"].endswith("getting better: right as a program, level, soft error")
    assert rows["levels"].endswith("24 members on level 1, 7 on level 6")
    assert rows["next"] == "stage 1, n <= 6, best 8 members: at step 500"
    no_better = [replace(CHECKED, step=200 + 25 * index, seconds=12.0 + 10 * index) for index in range(10)]
    assert rows_of(panel_of(START, *no_better))["trend"].endswith("no better for 1:00")
    assert rows_of(panel_of(EARLY))["next"] == "stage 2, n <= 15, best 4 members: at step 800 or once 3 are right"


def test_nothing_is_said_of_a_trend_at_the_first_report():
    panel = panel_of(CHECKED)
    assert "trend" not in rows_of(panel) and "better" not in panel.text()


def test_the_trend_names_the_figure_that_got_better():
    """The share that is right as a program fell from 4.7% to 3.1%, and the soft error with it."""
    first = replace(CHECKED, best_hard=0.047, best_error=0.5)
    panel = panel_of(first, replace(first, step=225, best_hard=0.031, best_error=0.1))
    assert rows_of(panel)["trend"].endswith("getting better: soft error")


def test_the_time_goes_on_between_reports_and_counts_examining(monkeypatch):
    clock = 100.0
    monkeypatch.setattr(display.time, "monotonic", lambda: clock)
    panel = panel_of(START, replace(CHECKED, stage=2))  # no stage follows, so nothing is compiled again
    assert rows_of(panel)["time"].startswith("0:12 gone, about 1:23 left and examining,")
    clock += 3
    assert rows_of(panel)["time"].startswith("0:15 gone, about 1:20 left and examining,")
    panel.begin("examining the best 4 members, also at n = 50")
    clock += 13
    assert rows_of(panel)["time"].startswith("0:28 gone, about 1:23 left and examining,")  # no training meanwhile
    panel.add(replace(CHECKED, stage=2, step=225, seconds=28.0, seconds_left=60.0))
    assert rows_of(panel)["time"].startswith("0:28 gone, about 1:13 left,")  # another examination may come
    panel.begin("examining the best 4 members, also at n = 50")
    clock += 5
    assert rows_of(panel)["time"].startswith("0:33 gone, about 1:08 left,")


def test_a_stage_that_ended_early_has_a_full_bar():
    first, second, third = drawn(panel_of(START, CHECKED, EARLY), 80)[2:5]
    assert second.rstrip().endswith("done early, step 50/800") and third.rstrip().endswith("0/400 steps")
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    with console.capture() as captured:
        console.print(panel_of(START, CHECKED, EARLY).render(80))
    bar = captured.get().splitlines()[3]
    assert "\x1b[32m━" in bar and "\x1b[90m━" not in bar  # green alone, no grey rest


def test_an_examination_is_shown_with_its_result():
    rows = rows_of(panel_of(START, EXAMINED))
    assert rows["examined"] == "4 members: 0 passed; failed 3 at n = 50 (20n+200), 1 hard (2T)"
    assert rows["next"] == "the end, at step 400 or once 1 is examined and perfect"


def test_the_panel_of_a_perfect_run_ends_with_what_was_reached():
    panel = panel_of(START, replace(CHECKED, step=500, stage_ends=True), EARLY, PERFECT)
    panel.ended = True
    rows = rows_of(panel)
    assert rows["best"].startswith("100% right as a program up to n = 30")
    assert rows["trend"].endswith("4 perfect members") and rows["examined"] == "4 members: 4 passed"
    text = "\n".join(drawn(panel, 80))
    assert "soft 0" not in text and "0 soft" not in text and "left" not in text and "next" not in rows
    assert text.count("done early") == 2


def test_work_other_than_training_is_named():
    panel = panel_of(START)
    panel.activity = "compiling for n <= 6"
    assert rows_of(panel)["now"] == "compiling for n <= 6"
    assert rows_of(panel_of())["now"] == "starting"


def test_without_a_curriculum_there_is_no_word_of_levels():
    config = replace(PLAIN, curriculum=CurriculumConfig(enabled=False))
    panel = panel_of(START, CHECKED, config=config)
    assert "level" not in "\n".join(drawn(panel, 80)) + panel.text()


# ---- where it is shown


def test_a_log_gets_few_lines_and_each_stands_alone(capsys):
    shown = TrainingDisplay("nram train", Console(force_terminal=False, stderr=True))
    shown.started(PLAIN, Path("runs/copy-1"), "a CPU")
    shown.activity("compiling for n <= 6")
    for step in range(25, 500, 25):
        shown.report(replace(CHECKED, step=step))
    shown.report(replace(CHECKED, step=500, stage_ends=True))
    shown.ended()
    title, compiling, first, last = capsys.readouterr().err.splitlines()
    assert title.startswith("nram train copy, seed 1, on a CPU: mlp 32, 4 registers") and title.endswith("runs/copy-1")
    assert compiling == "compiling for n <= 6"
    assert first.startswith("stage 0 (n<=6) step 25/500 | best member 97.4% right") and "step 500/500" in last


def test_a_notebook_shows_one_panel_that_is_updated(monkeypatch):
    """IPython is not needed for anything else: its two functions are stood in for."""
    pages: list[str] = []

    class Handle:
        def update(self, page: str) -> None:
            pages.append(page)

    def show(page: str, display_id: bool) -> Handle:
        pages.append(page)
        return Handle()

    module: Any = types.ModuleType("IPython.display")
    module.display, module.HTML = show, str
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(display, "NOTEBOOK_SECONDS", 0.0)
    shown = TrainingDisplay("training", Console(force_jupyter=True))
    shown.started(PLAIN, Path("runs/copy-1"), "a CPU")
    shown.report(CHECKED)
    shown.ended()
    assert len(pages) == 3 and all(page.startswith("<pre>") and page.count("<pre>") == 1 for page in pages)
    assert "starting" in pages[0] and "97.4% right" in pages[1] and "left" not in pages[2]


def test_python_callers_choose(capsys):
    assert type(training_display(False)) is TrainingCallbacks
    assert type(training_display("auto")) is TrainingCallbacks  # standard error is no terminal here
    assert type(training_display(True)) is TrainingDisplay


# ---- groups

SOFT = replace(
    START, stage_steps=16_000, max_complexity=5, population=512, levels={1: 512}, seconds_left=130_000.0,
    best_hard=0.05, solved_hard=0.0, checks=1,
)  # fmt: skip
SOFT_BETTER = replace(
    SOFT, step=425, best_hard=0.615, best_error=0.2, solved_hard=3 / 512, seconds=140.0, checks=17, restarts=12
)
HARD = [
    replace(SOFT_BETTER, group=1, max_complexity=6, step=25 * i, seconds=180.0 + 30 * i, checks=20 + i, best_hard=0.3)
    for i in range(1, 13)
]
LAST = replace(
    SOFT_BETTER, stage=1, step=600, stage_steps=1500, max_complexity=15, population=32, best_hard=1.0, best_error=0.0,
    solved_hard=1.0, seconds=1180.0, checks=54, examined=4, failed="1 soft (20n+200), 1 hard (20n+200)",
)  # fmt: skip
AGAIN = replace(SOFT_BETTER, attempt=1, step=450, seconds=1300.0, checks=60)
WAITS = replace(SOFT_BETTER, step=450, best_hard=1.0, solved_hard=9 / 512, waits=True)  # in its first stage
LAST_WAITS = replace(LAST, step=625, perfect=4, waits=True)
GROUP_STATES = {
    "before the first report": (),
    "the first report": (SOFT,),
    "two groups": (SOFT, SOFT_BETTER, *HARD),
    "the last stage": (SOFT, SOFT_BETTER, *HARD, LAST),
    "a first stage that waits": (SOFT, SOFT_BETTER, *HARD, WAITS),
    "a last stage that waits": (SOFT, SOFT_BETTER, *HARD, LAST, LAST_WAITS),
    "a new try": (SOFT, SOFT_BETTER, *HARD, LAST, AGAIN),
    "the last stage of a new try": (SOFT, LAST, AGAIN, replace(LAST, attempt=1, perfect=2)),
    "a budget": (replace(SOFT, budget_left=46.0),),
    "the end": (SOFT, *HARD, replace(LAST, perfect=3, stage_ends=True)),
}


def groups_panel(*reports: Report) -> GroupsPanel:
    panel = panel_of(*reports, config=RECIPE)
    assert isinstance(panel, GroupsPanel)
    return panel


def test_a_run_with_a_budget_says_how_much_of_it_is_left():
    panel = groups_panel(replace(SOFT, budget_left=76.0))
    panel.reported_at -= 30
    assert re.search(r"about 4[0-6] s of the budget left$", panel.text())
    assert groups_panel(replace(SOFT, budget_left=200_000.0)).text().endswith("about 36 h for all steps")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("state", GROUP_STATES)
def test_the_panel_of_groups_fits_the_terminal_and_is_not_cut(state, width):
    panel = groups_panel(*GROUP_STATES[state])
    lines = drawn(panel, width)
    assert max(map(cell_len, lines)) <= width
    assert len(lines) == len(panel.render(width).renderables) and "…" not in "".join(lines)
    if panel.last is not None:
        assert max(map(len, panel.text().splitlines())) <= 85


def cells_of(panel: GroupsPanel, group: str) -> list[str]:
    (line,) = [line for line in drawn(panel, 80)[3:6] if line.split()[0] == group]
    return [cell for cell in line.strip().split("  ") if cell]


def test_every_group_has_a_line_with_what_it_is_at_and_whether_it_gets_better():
    panel = groups_panel(SOFT, SOFT_BETTER, *HARD)
    assert [cell.strip() for cell in drawn(panel, 80)[2].split("  ") if cell] == [
        "group", "structure", "is at", "right", "trend", "restarts", "time",
    ]  # fmt: skip
    soft, hard, paper = (one.machine for one in RECIPE.group_configs)
    structure = f"{soft.registers} reg {len(soft.modules)}x{soft.repeats}"
    assert [cell.strip() for cell in cells_of(panel, "soft")] == [
        "soft", structure, "n <= 5, 425 steps", "61.5%", "better", "12", "26%",
    ]  # fmt: skip
    assert [cell.strip() for cell in cells_of(panel, "hard")][2:] == [
        "n <= 6, 300 steps",
        "30%",
        "flat 5:30",
        "12",
        "74%",
    ]
    assert [cell.strip() for cell in cells_of(panel, "paper")][2:] == [f"joins at check {PAPER_JOINS}", "-", "-", "-"]
    assert f"mlp {hard.hidden}, {hard.registers} registers" in "\n".join(drawn(panel, 120))


def test_below_stand_the_best_group_what_it_waits_for_and_the_time_of_all_steps():
    rows = rows_of(groups_panel(SOFT, SOFT_BETTER, *HARD))
    assert rows["best"] == "soft: 61.5% right as a program up to n = 10, soft error 0.200"
    assert rows["trend"].endswith("getting better: right as a program, soft error")
    assert rows["next"] == "soft: stage 1 when 8 members solve all 96 validation examples, now 3"
    wait = rough_duration((PAPER_JOINS - 32) * HARD[-1].seconds / 32)
    assert rows["paper"] == f"joins at check {PAPER_JOINS}, now 32: in about {wait}"  # in the line below `next`
    assert "about 36 h for all steps" in rows["time"]


def test_a_group_says_when_it_is_in_its_last_stage_and_when_it_starts_again():
    panel = groups_panel(SOFT, SOFT_BETTER, LAST)
    assert "last stage n <= 15, 600" in cells_of(panel, "soft")
    assert rows_of(panel)["next"] == "soft: ends when 1 member passes, or starts again at step 1500"
    assert rows_of(panel)["examined"] == "4 members: 0 passed; failed 1 soft (20n+200), 1 hard (20n+200)"
    panel.add(AGAIN)
    assert "try 2: n <= 5, 450 steps" in [cell.strip() for cell in cells_of(panel, "soft")]


def test_a_stage_that_waits_for_members_that_halt_says_so():
    first, last = RECIPE.group_configs[0].stages
    assert first.stop_at > 1 == last.stop_at
    words = f"soft: waits up to {first.halt_within} steps for {first.stop_at} solved members that also halt"
    panel = groups_panel(SOFT, WAITS)
    assert rows_of(panel)["next"] == words and f"next: {words}" in panel.text()
    words = f"soft: waits up to {last.halt_within} steps for 1 perfect member that also halts"
    assert rows_of(groups_panel(SOFT, LAST_WAITS))["next"] == words
    # The group that waits goes before the others, even before one whose best member is as good.
    as_good = replace(SOFT_BETTER, best_hard=1.0)
    panel = groups_panel(as_good, replace(WAITS, group=2))
    assert rows_of(panel)["next"].startswith("paper: waits up to ")
    assert groups_panel(WAITS, replace(WAITS, stage_ends=True)).history.next()[0] == "soft: stage 1 begins"


def test_a_run_without_groups_says_too_that_it_waits():
    config = replace(PLAIN, stages=(*STAGES[:-1], replace(STAGES[-1], halt_within=50)))
    panel = panel_of(replace(PERFECT, stage_ends=False, waits=True), config=config)
    assert rows_of(panel)["next"] == "waits up to 50 steps for 1 perfect member that also halts"


def test_what_comes_next_is_what_the_schedule_does():
    """A group whose check has come joins at once, unless another is beyond its first stage."""
    before = replace(SOFT, checks=HARD_JOINS - 1)
    assert (
        groups_panel(before).history.next()[1]
        == f"hard joins at check {HARD_JOINS}, now {HARD_JOINS - 1}: in about 2 s"
    )
    assert groups_panel(replace(SOFT, checks=HARD_JOINS)).history.next()[1] == "hard joins now"
    for first in (replace(LAST, checks=HARD_JOINS), replace(WAITS, checks=HARD_JOINS)):
        assert groups_panel(first).history.next()[1] == "hard joins after the last stage of soft"
    assert groups_panel(replace(SOFT, stage_ends=True)).history.next()[0] == "soft: stage 1 begins"
    assert groups_panel(replace(LAST, perfect=1, stage_ends=True)).history.next() == ["soft: the end"]


def test_a_log_says_what_comes_next_only_when_it_is_new():
    panel = groups_panel(SOFT)
    assert panel.text().count("next: ") == 2
    panel.add(replace(SOFT, step=50, checks=2, seconds=20.0))
    assert panel.text() == "0:20 soft: n <= 5, 50 steps, 5% right, error 0.451"
    panel.add(replace(SOFT, step=100, checks=HARD_JOINS, seconds=30.0))
    assert panel.text().splitlines()[2:] == ["0:30 next: hard joins now", "0:30 about 36 h for all steps"]


def test_a_group_that_was_not_needed_is_not_said_to_join_after_the_end():
    panel = groups_panel(SOFT, replace(LAST, perfect=3, stage_ends=True))
    assert "starts next" in [cell.strip() for cell in cells_of(panel, "hard")]
    panel.ended = True
    assert "did not start" in [cell.strip() for cell in cells_of(panel, "hard")]
    assert "next" not in rows_of(panel) and "left" not in rows_of(panel)["time"]


def test_a_log_has_a_line_for_each_group_that_trained_since(capsys):
    shown = TrainingDisplay("nram train", Console(force_terminal=False, stderr=True))
    shown.started(RECIPE, Path("runs/copy-1"), "a CPU")
    for report in (SOFT, SOFT_BETTER, *HARD, LAST, replace(LAST, step=700, perfect=2, stage_ends=True)):
        shown.report(report)
    shown.ended()
    title, *lines = capsys.readouterr().err.splitlines()
    assert title == "nram train copy, seed 1, on a CPU: 3 groups (soft, hard, paper) -> runs/copy-1"
    assert lines[0] == "0:12 soft: n <= 5, 25 steps, 5% right, error 0.451"
    assert lines[1:3] == [
        "0:12 next: soft: stage 1 when 8 members solve all 96 validation examples, now 0",
        f"0:12 next: hard joins at check {HARD_JOINS}, now 1: in about 84 s",
    ]
    assert lines[3] == "0:12 about 36 h for all steps"
    assert lines[4] == "19:40 soft: last stage ended, 100% right, 2 perfect, 12 restarts"
    assert any(line.startswith("19:40 hard: n <= 6, 300 steps, 30% right") for line in lines[5:])


def test_a_run_that_continues_shows_what_its_groups_did_before(tmp_path):
    run = RunFolder.create(tmp_path / "run", RECIPE, ["train", "copy"], "a CPU")
    for report in (SOFT, SOFT_BETTER, *HARD):
        run.append_metrics(asdict(report))
    run.append_metrics(asdict(replace(SOFT, group=7)))  # of no group: it is left alone
    shown = TrainingDisplay("nram train", Console(force_terminal=True, file=io.StringIO(), width=80))
    shown.started(RECIPE, run.path, "a CPU")
    assert isinstance(shown.panel, GroupsPanel)
    assert "n <= 6, 300 steps" in [cell.strip() for cell in cells_of(shown.panel, "hard")]
    shown.ended()
