"""The runs view: the list, one run with live curves, its members, several runs compared."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from nram.programs.library import find_entry, zoo_weights
from nram.training.run_folder import RunFolder, read_config
from nram.training.settings import load_config

HOSTILE = "<img src=x onerror=alert(1)>"
RESULT = {"perfect_members": 0, "examined_members": 2, "best_validation_exact_hard": 0.25, "seconds": 40.0}


def row(number: int, group: int = 0, **more: Any) -> dict[str, Any]:
    row = {"stage": 0, "step": 25 * number, "max_complexity": 5, "population": 1024, "levels": {"1": 1000, "2": 24}}
    row |= {"best_error": 1 / (1 + number), "median_error": 0.9, "solved_soft": 0.1, "solved_hard": 0.05}
    return row | {"best_hard": number / 20, "seconds": 30.0 * number, "group": group, "restarts": number // 4} | more


@pytest.fixture
def make(explorer):
    """A function that makes a run with so many reports of each group. The runs are removed at the end."""
    made: list[RunFolder] = []

    def make(name: str, reports: int = 0, groups: int = 1, seed: int = 1) -> RunFolder:
        run = RunFolder.create(explorer.runs / name, load_config("copy", seed=seed), ["train", "copy"], "a CPU")
        made.append(run)
        for number in range(1, reports + 1):
            for group in range(groups):
                run.append_metrics(row(number, group))
        return run

    yield make
    for run in made:
        shutil.rmtree(run.path)


def seen(page: Page, hidden: bool = False) -> None:
    """Tell the page that it is seen, or that it is not."""
    page.evaluate(
        """(hidden) => {
          Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def points(page: Page, chart: str, line: int = 0) -> int:
    """How many points a line of a chart has."""
    path = page.locator(".curve-panel", has=page.get_by_role("heading", name=chart)).locator(
        ".curve > path:first-child"
    )
    return len(re.findall("[MLV]", path.nth(line).get_attribute("d") or ""))


def readout(page: Page, chart: str):
    return page.locator(".curve-panel", has=page.get_by_role("heading", name=chart)).locator(".curve-readout")


def test_the_list_shows_every_run(page, explorer, make, no_axe_problems):
    make("steady", 3)
    make(HOSTILE, 1)
    (make("broken").path / "run.json").write_text("{")
    page.goto(explorer.link("runs"))
    table = page.get_by_role("table")
    expect(table.get_by_role("row", name="steady")).to_contain_text("‖ stopped")
    expect(table.get_by_role("row", name="steady")).to_contain_text("15% right as a program")
    expect(table.get_by_role("row", name="broken")).to_contain_text("✗ damaged")
    expect(table.get_by_role("row", name="broken").get_by_role("link")).to_have_count(0)
    assert page.locator("main img").count() == 0
    no_axe_problems(page)
    make("later")  # the list is looked at again while it is shown
    expect(table.get_by_role("row", name="later")).to_contain_text("new")
    page.get_by_role("link", name=HOSTILE).click()
    expect(page.get_by_role("heading", name=HOSTILE)).to_be_visible()
    page.get_by_role("link", name="← All runs").click()
    expect(table).to_be_visible()


def test_a_live_run_is_drawn_as_it_grows(page, explorer, make):
    run = make("live", 4)
    with run.locked():
        page.goto(explorer.link("runs", run="live"))
        expect(page.locator(".run-detail .tag")).to_have_text("▶ running")
        line = page.locator(".curve > path:first-child").first
        expect(line).to_have_attribute("d", re.compile("^M[^L]*(L[^L]*){3}$"))
        run.append_metrics(row(5))
        run.append_metrics(row(6, best_hard=1.0))
        expect(line).to_have_attribute("d", re.compile("^M[^L]*(L[^L]*){5}$"))
        assert points(page, "Solved") == 6
        run.cut_metrics(3)  # resumed from an older checkpoint
        expect(line).to_have_attribute("d", re.compile("^M[^L]*(L[^L]*){2}$"))
        run.append_metrics(row(4, group=1))
        expect(page.locator(".curve-legend").first).to_contain_text("hard: best")
    expect(page.locator(".run-detail .tag")).to_have_text("‖ stopped")
    run.write_result(RESULT)
    seen(page)  # a run that is stopped is looked at again when the page is
    expect(page.locator(".run-detail .tag")).to_have_text("✓ finished")
    expect(page.locator(".run-told")).to_contain_text("NOT LEARNED")
    expect(page.locator(".run-told")).to_contain_text("What may help")


def test_a_run_without_measurements_says_when_there_will_be_curves(page, explorer, make):
    run = make("fresh")
    with run.locked():
        page.goto(explorer.link("runs", run="fresh"))
        command = page.locator(".run-command")
        expect(command).to_have_text("The curves come with the first measurement.")
        expect(page.locator(".group-filter")).to_be_hidden()
        run.append_metrics(row(1))
        expect(page.locator(".group-filter")).to_be_visible()
        expect(command).to_be_empty()


def test_values_are_read_with_the_keyboard_and_the_mouse(page, explorer, make, no_axe_problems):
    make("read", 10, groups=3)
    page.goto(explorer.link("runs", run="read"))
    chart = page.get_by_role("group", name="Solved: arrow keys read the values")
    told = readout(page, "Solved")
    chart.focus()
    page.keyboard.press("End")
    expect(told).to_contain_text("At 5:00: soft: best as a program 50%")
    expect(told).to_contain_text("paper: members, soft 10%")
    page.keyboard.press("ArrowLeft")
    expect(told).to_contain_text("At 4:30: soft: best as a program 45%")
    page.keyboard.press("Home")
    expect(told).to_contain_text("At 0:30: soft: best as a program 5%")
    page.keyboard.press("Escape")
    expect(told).to_have_text("")
    chart.hover()
    expect(told).to_contain_text(re.compile("At [23]:[03]0: "))
    # A group that is not wanted is left out, and lines have different dashes and marks.
    legend = page.locator(".curve-legend").first
    expect(legend.locator("li")).to_have_count(6)
    styles = legend.locator(".curve").evaluate_all(
        "found => found.map((one) => [one.firstChild.getAttribute('stroke-dasharray'), one.lastChild.outerHTML].join())"
    )
    assert len(set(styles)) == 6
    page.get_by_label("paper").uncheck()
    expect(legend.locator("li")).to_have_count(4)
    no_axe_problems(page)


def test_a_member_opens_its_machine_and_its_network(page, explorer, make):
    run = make("trained", 1)
    entry = find_entry("access@trained")
    assert entry is not None
    with zoo_weights(entry) as path:
        record = json.loads((run.path / "run.json").read_text())
        config = read_config(path)
        shutil.rmtree(run.path)
        RunFolder.create(run.path, config, record["arguments"], "a CPU")
        (run.path / "best").mkdir()
        shutil.copy(path, run.path / "best" / "0.safetensors")
    page.goto(explorer.link("runs", run="trained"))
    page.get_by_role("button", name="Member 0: machine").click()
    expect(page.locator(".machine-view .title-line h2")).to_have_text("access, member 0 of trained")
    expect(page.locator(".step-words")).to_contain_text("Step 1")
    page.keyboard.press("4")  # its own network, not one of the zoo
    expect(page.locator(".network-view .title-line h2")).to_have_text("member 0 of trained")
    page.goto(explorer.link("runs", run="trained"))
    page.get_by_role("button", name="Member 0: network").click()
    expect(page.locator(".network-view .title-line h2")).to_contain_text("trained")
    expect(page.locator(".network-view canvas").first).to_be_visible()


def test_runs_are_compared(page, explorer, make, no_axe_problems):
    make("one", 6, groups=2)
    make("other", 4, seed=2)
    page.goto(explorer.link("runs"))
    button = page.get_by_role("button", name="Compare")
    expect(button).to_be_disabled()
    page.get_by_label("Compare one").check()
    page.get_by_label("Compare other").check()
    page.get_by_role("button", name="Compare 2 runs").click()
    expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
    expect(page.locator(".run-comparison tbody tr")).to_have_count(2)
    page.get_by_role("group", name="Best member as a program, so far").focus()
    page.keyboard.press("End")
    expect(readout(page, "Best member as a program, so far")).to_have_text("At 3:00: one 30%, other 20%")
    no_axe_problems(page)
    page.reload()  # the link restores it
    expect(page.locator(".run-comparison tbody tr")).to_have_count(2)


def test_a_run_that_is_gone_is_explained(page, explorer):
    page.goto(explorer.link("runs", run="<b>gone</b>"))
    expect(page.locator(".runs-view .problem")).to_contain_text("there is no run '<b>gone</b>'")


def test_on_a_phone_and_in_the_dark(new_page, explorer, make, no_axe_problems):
    make("pocket", 5, groups=3)
    page = new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto(explorer.link("runs"))
    words = page.locator(".runs .words").first.bounding_box()
    assert words is not None and words["width"] > 300  # a line of its own
    for link in (explorer.link("runs"), explorer.link("runs", run="pocket")):
        page.goto(link)
        expect(page.get_by_text("pocket").locator("visible=true").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        no_axe_problems(page)
    letters = page.locator(".curves text").first.evaluate("one => one.getBoundingClientRect().height")
    assert letters > 9  # a small chart has no smaller letters


def streams(page: Page) -> list[str]:
    """The names of the runs whose events the page asks for, from now on."""
    found: list[str] = []
    page.on("request", lambda one: found.append(one.url) if "/events" in one.url else None)
    return found


def test_runs_that_are_stopped_hold_no_connection(page, explorer, make):
    """A browser allows six connections to a server, for all its tabs: the second one would wait for ever."""
    names = [make(f"still-{number}", 2).path.name for number in range(7)]
    asked = streams(page)
    page.goto(explorer.link("runs", run=names[0], other="|".join(names[1:])))
    expect(page.locator(".run-comparison tbody tr")).to_have_count(7)
    other = page.context.new_page()
    other.goto(explorer.link("runs", run=names[0]))
    expect(other.get_by_role("heading", name="still-0")).to_be_visible()
    assert asked == []


def test_few_of_the_running_runs_hold_a_connection(page, explorer, make):
    runs = [make(f"busy-{number}", 2) for number in range(3)]
    asked = streams(page)
    with contextlib.ExitStack() as locks:
        for run in runs:
            locks.enter_context(run.locked())
        page.goto(explorer.link("runs", run="busy-0", other="busy-1|busy-2"))
        expect(page.locator(".run-comparison tbody tr")).to_have_count(3)
        for run in runs:
            run.append_metrics(row(3))
        for line in range(3):
            path = page.locator(".curve > path:first-child").nth(line)
            expect(path).to_have_attribute("d", re.compile("^M(.*[HV]){4}"))
        assert len({url.split("/events")[0] for url in asked}) == 2


def test_a_page_that_is_not_seen_holds_no_connection(page, explorer, make):
    run = make("watched", 2)
    asked = streams(page)
    with run.locked():
        with page.expect_request("**/events/**"):
            page.goto(explorer.link("runs", run="watched"))
        expect(page.locator(".run-detail .tag")).to_have_text("▶ running")
        with page.expect_event("requestfailed", lambda one: "/events" in one.url):
            seen(page, hidden=True)
        run.append_metrics(row(3))
        with page.expect_request("**/events/**"):
            seen(page)
        expect(page.locator(".curve > path:first-child").first).to_have_attribute(
            "d", re.compile("^M[^L]*(L[^L]*){2}$")
        )
        with page.expect_event("requestfailed", lambda one: "/events" in one.url):
            page.get_by_role("link", name="Machine").click()  # the same when the view is left
    assert len(asked) >= 2


def test_metrics_that_become_unreadable_are_told_once(page, explorer, make):
    run = make("spoiled", 2)
    asked = streams(page)
    with run.locked():
        page.goto(explorer.link("runs", run="spoiled"))
        expect(page.locator(".run-detail .tag")).to_have_text("▶ running")
        with (run.path / "metrics.jsonl").open("a") as file:
            file.write("[1, 2]\n")
        expect(page.locator(".runs-view .problem")).to_contain_text("metrics.jsonl")
        expect(page.locator(".run-detail")).to_be_visible()  # what was shown stays
        assert len(asked) == 1


def test_a_stream_that_is_refused_says_why(page, explorer, make):
    run = make("refused", 2)
    words = "too many pages watch this server: close some of them"
    page.route("**/events/**", lambda route: route.fulfill(status=429, json={"error": words}))
    with run.locked():
        page.goto(explorer.link("runs", run="refused"))
        expect(page.locator(".runs-view .problem")).to_have_text(words)


def test_links_with_damaged_names_say_so(page, explorer):
    page.goto(f"{explorer.url}#runs?run=x&other=%25E0%25A4%25A")
    expect(page.locator(".runs-view .problem")).to_contain_text("the names of its runs cannot be read")
    page.goto(explorer.link("runs", run="a/../b"))
    expect(page.locator(".runs-view .problem")).to_contain_text("“a/../b” is not the name of a run")
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()


def test_a_run_that_comes_late_is_not_shown_in_place_of_another(page, explorer, make):
    """Nor is it listened to."""
    late, soon = make("late", 3), make("soon", 2)
    asked = streams(page)
    held: list[Route] = []
    page.route("**/api/runs/late", lambda route: held.append(route))
    with late.locked(), soon.locked():
        with page.expect_request("**/api/runs/late"):
            page.goto(explorer.link("runs", run="late"))
        page.goto(explorer.link("runs", run="soon"))
        expect(page.get_by_role("heading", name="soon")).to_be_visible()
        with page.expect_response("**/api/runs/late"):
            held[0].continue_()
        expect(page.get_by_role("heading", name="soon")).to_be_visible()
        assert not any("late" in url for url in asked)
