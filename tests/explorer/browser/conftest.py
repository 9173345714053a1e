"""A server in a process of its own and a real browser, shared by the tests of the page.

Where there is no browser, all tests here are skipped. A test fails if the page writes an error to its console.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'")
from playwright.sync_api import Browser, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SLOW = 20_000  # milliseconds: the machine may be busy
expect.set_options(timeout=SLOW)


@dataclass(frozen=True)
class Explorer:
    """The server under test."""

    url: str
    runs: Path
    """The folder whose runs it shows."""

    def link(self, view: str, **values: Any) -> str:
        return f"{self.url}#{view}?{urlencode(values)}"


@pytest.fixture(scope="session")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    folder = tmp_path_factory.mktemp("explorer")
    runs = folder / "runs"
    runs.mkdir()
    command = [sys.executable, "-m", "nram", "serve", "--no-browser", "--json", "--port", "0", "--runs", str(runs)]
    command += ["--out", str(folder / "learned")]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    with process.stdout as output:
        yield Explorer(json.loads(output.readline())["url"], runs)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)


@pytest.fixture(scope="module")  # an event loop runs as long as Playwright does: other tests need none
def browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium: install one, or name it in the variable CHROMIUM")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """`new_page(**options of the context)` opens a page. What is written to a console as an error fails the test."""
    contexts, errors = [], []

    def opened(**options: Any) -> Page:
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SLOW)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("requestfailed", lambda request: errors.append(f"{request.url}: {request.failure}"))
        return page

    yield opened
    for context in contexts:
        context.close()
    # with bad input, by pages that were left, and of a server that is kept busy on purpose
    expected = (
        "the server responded with a status of 4",
        "net::ERR_ABORTED",
        "the server responded with a status of 503",
    )
    assert [words for words in errors if not any(one in words for one in expected)] == []


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    return new_page()


@pytest.fixture
def no_axe_problems() -> Callable[[Page], None]:
    """`no_axe_problems(page)` fails where axe-core finds something serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()

    def checked(page: Page) -> None:
        found = axe.run(page).response["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in serious] == []

    return checked
