"""The pictures of docs/explorer.md: `python docs/make_screenshots.py` opens the explorer in a browser and takes them.

It needs Playwright and a Chromium on the PATH. The picture of a run needs a run: by default one of `nram train copy`,
which is made first.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
VIEWS = {
    "explorer-machine": "machine?program=merge@searched&task=merge&n=5&seed=0&step=4",
    "explorer-network": "network?program=merge@trained&task=merge&n=4&seed=0&step=6",
    "explorer-runs": "runs?run=copy-1",
}
SIZE = {"width": 1280, "height": 860}


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        nram = [sys.executable, "-m", "nram"]
        subprocess.run([*nram, "train", "copy", "--seed", "1"], check=True, cwd=folder)
        serve = [*nram, "serve", "--no-browser", "--port", "0", "--json"]
        with (
            subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, cwd=folder) as server,
            sync_playwright() as playwright,
        ):
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            for name, view in VIEWS.items():
                page = browser.new_page(viewport=SIZE, color_scheme="light")
                take(page, f"{url}#{view}", IMAGES / f"{name}.png")
            browser.close()
            server.terminate()


def take(page: Page, url: str, out: Path) -> None:
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(2500)  # a network is compiled first
    page.screenshot(path=out)
    print(out)


if __name__ == "__main__":
    main()
