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

from playwright.sync_api import Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).parent / "images"
VIEWS = {
    "explorer-machine": ("machine?program=merge@searched&task=merge&n=5&seed=0&step=4", ".below"),
    "explorer-network": ("network?program=merge@trained&task=merge&n=3&seed=0&step=3", "section:has(> .hard-place)"),
    "explorer-runs": ("runs?run=copy-1", ".curve-panel"),
}
"""Links, and the part of each view at whose end the picture ends."""
SIZE: ViewportSize = {"width": 1280, "height": 1400}
MARGIN = 12  # pixels below the last part: less than to the next one


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
            for name, (view, last) in VIEWS.items():
                page = browser.new_page(viewport=SIZE, color_scheme="light")
                take(page, f"{url}#{view}", last, IMAGES / f"{name}.png")
            browser.close()
            server.terminate()


def take(page: Page, url: str, last: str, out: Path) -> None:
    page.goto(url)
    part = page.locator(f"main > section:not([hidden]) {last}").first
    part.wait_for(timeout=120_000)  # a network is compiled first
    page.wait_for_load_state("networkidle")
    box = part.bounding_box()
    assert box is not None
    page.screenshot(
        path=out, clip={"x": 0, "y": 0, "width": SIZE["width"], "height": box["y"] + box["height"] + MARGIN}
    )
    print(out)


if __name__ == "__main__":
    main()
