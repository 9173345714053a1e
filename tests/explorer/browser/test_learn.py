"""The learn view: examples in, a program out, with everything in between."""

from __future__ import annotations

import json
import re
from contextlib import closing
from http.client import HTTPConnection
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect
from support.explorer import HEADERS

SAME = "x,result\n" + "".join(f"{n},{n}\n" for n in range(1, 13))


def hard() -> str:
    """Examples without a rule."""
    rng = Random(5)
    numbers = [[rng.randrange(1, 9) for _ in range(6)] for _ in range(60)]
    return "\n".join(json.dumps({"values": row[:5], "result": row[5]}) for row in numbers)


@pytest.fixture
def form(page: Page, explorer) -> Page:
    page.goto(explorer.link("learn"))
    expect(page.get_by_role("heading", name="Learn a program from examples")).to_be_visible()
    return page


@pytest.fixture(autouse=True)
def no_jobs_left(explorer):
    """Stop what a test has left, so that the next one may start jobs."""
    yield
    for job in asked(explorer.url, "GET", "/api/jobs")["jobs"]:
        if job["status"] == "running":
            asked(explorer.url, "POST", f"/api/jobs/{job['job']}/stop", "{}")
            asked(explorer.url, "GET", f"/api/jobs/{job['job']}/events")


def asked(url: str, method: str, path: str, body: str | None = None) -> Any:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    with closing(connection):
        connection.request(method, path, body, HEADERS)
        answer = connection.getresponse().read()
    return json.loads(answer) if answer.startswith(b"{") else None


def start(page: Page, name: str, content: str) -> None:
    page.get_by_label("Examples", exact=True).fill(content)
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Start").click()


def test_a_job_from_its_start_to_its_result(form, no_axe_problems):
    page = form
    no_axe_problems(page)
    start(page, "mine.csv", SAME)
    result = page.get_by_role("region", name="Result")
    expect(result).to_contain_text("✓ Found")
    expect(result).to_contain_text("exact on every example, held-out ones included")
    expect(page.locator(".learn-live .tag")).to_have_text("✓ done")
    expect(page.locator("#live")).to_contain_text("Found")
    no_axe_problems(page)
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    no_axe_problems(page)
    with page.expect_download() as begun:
        page.get_by_role("button", name="Download program").click()
    assert begun.value.suggested_filename == "mine.nram"
    assert begun.value.path().read_text().startswith("nram program 1\nname: mine\n")
    # The link shows the job again, and the machine view runs its program on an example.
    page.reload()
    expect(page.get_by_role("region", name="Result")).to_contain_text("✓ Found")
    expect(page.locator(".job-list")).to_contain_text("mine.csv")
    page.get_by_role("button", name="Run it in the machine").click()
    page.get_by_role("button", name="To the end").click()
    expect(page.locator(".machine-view .step-words")).to_have_text(re.compile(r"^End\..*Right"))
    expect(page).to_have_url(re.compile(r"run=[^&]*mine[^&]*&member=0"))  # which outlives the server


def test_a_job_that_is_watched_and_stopped(form):
    page = form
    start(page, "hard.jsonl", hard())
    best = page.get_by_role("region", name="The best program so far", exact=True)
    expect(best).to_contain_text(re.compile("wrong on [0-9]+ of [0-9]+; on values = "))
    expect(best.locator("pre")).to_contain_text(re.compile("when|always"))
    candidates = page.locator(".numbers-line dd").first
    expect(candidates).to_have_text(re.compile("^[1-9][0-9,]*$"))
    expect(page.locator(".learn-live .curve path").first).to_have_attribute("d", re.compile("^M"))
    expect(page.get_by_text("What happened")).to_be_visible()
    expect(page.locator(".job-list li").first).to_contain_text(re.compile("running, 0:0[2-9]"))  # it is looked at again
    # Another view, and back: the job goes on.
    page.get_by_role("link", name="Machine").click()
    page.get_by_role("link", name="Learn").click()
    expect(best).to_be_visible()
    page.get_by_role("button", name="Stop and keep the best").click()
    expect(page.locator(".learn-live .tag")).to_have_text("‖ stopped")
    result = page.locator(".learn-result")
    expect(result).to_contain_text("✗ Stopped before a program was right on every example")
    expect(result).to_contain_text("What may help")
    page.get_by_role("button", name="Show the program").click()
    expect(page.locator(".program-view")).to_contain_text("hard")


def test_what_the_best_program_gets_wrong_is_shown_in_the_machine(form):
    page = form
    start(page, "wrong.jsonl", hard())
    page.get_by_role("button", name="See it in the machine").click()
    page.get_by_role("button", name="To the end").click()
    expect(page.locator(".machine-view .step-words")).to_have_text(re.compile("Wrong"))
    page.get_by_role("link", name="Learn").click()
    page.get_by_role("button", name="Stop and keep the best").click()
    expect(page.locator(".learn-live .tag")).to_have_text("‖ stopped")


def test_bad_examples_are_told_with_their_lines(form):
    page = form
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".learn-form .error:visible")).to_have_text("Paste examples, open a file, or try a sample.")
    expect(page.get_by_label("Examples", exact=True)).to_be_focused()
    page.get_by_label("Seconds").fill("9999")
    start(page, "bad.csv", SAME)
    expect(page.locator(".learn-form .error:visible")).to_have_text("1 to 600.")
    page.get_by_label("Seconds").fill("20")
    start(page, "<img src=x onerror=alert(1)>.csv", "x,<b>result</b>\n1,two\n")
    problem = page.locator(".learn-live .problem")
    expect(problem).to_contain_text("line 1: this is no header: '<b>result</b>'")
    expect(page.locator(".learn-live .tag")).to_have_text("✗ failed")
    assert page.locator("main b, main img").count() == 0


def test_a_file_can_be_opened_or_dropped_and_samples_can_be_tried(form, tmp_path):
    page = form
    file = tmp_path / "given.csv"
    file.write_text(SAME)
    page.get_by_label("File of examples").set_input_files(file)
    examples, name = page.get_by_label("Examples", exact=True), page.get_by_label("Name")
    expect(examples).to_have_value(SAME)
    expect(name).to_have_value("given.csv")
    page.locator(".learn-form").evaluate(
        """(form) => {
          const data = new DataTransfer();
          data.items.add(new File(["x,result\\n1,1\\n"], "dropped.csv"));
          form.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }"""
    )
    expect(examples).to_have_value("x,result\n1,1\n")
    expect(name).to_have_value("dropped.csv")
    page.get_by_label("Try a sample").select_option(label="How often x occurs")
    expect(name).to_have_value("count.csv")
    for line in examples.input_value().splitlines()[1:]:
        values, x, result = line.split(",")
        assert values.split().count(x) == int(result)


def test_too_many_jobs_are_refused(form):
    page = form
    for number in range(2):
        start(page, f"many-{number}.jsonl", hard())
        expect(page.get_by_role("heading", name=f"many-{number}.jsonl")).to_be_visible()
    start(page, "third.jsonl", hard())
    expect(page.locator(".learn-form .error:visible")).to_have_text("2 jobs run already: wait for one, or stop it")


def test_a_job_of_an_earlier_server_is_explained(page, explorer):
    page.goto(explorer.link("learn", job="0badcafe"))
    expect(page.get_by_role("heading", name="This job is not known any more")).to_be_visible()
    expect(page.locator(".learn-live .problem")).to_contain_text("in the list of runs")
