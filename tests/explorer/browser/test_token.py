"""The address with a token, opened as nram opens it and as people do: from somewhere else."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from playwright.sync_api import expect

from nram.cli.serve import _private_page


def test_the_token_is_taken_from_a_page_of_the_disk_and_from_a_link(new_page, tmp_path):
    command = [sys.executable, "-m", "nram", "serve", "--no-browser", "--json", "--host", "0.0.0.0", "--port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            page = new_page()
            page.goto(_private_page(tmp_path, url).as_uri())
            expect(page.locator(".step-words")).to_contain_text("Step 1 of")
            assert "token" not in page.url
            other = new_page()
            link = tmp_path / "link.html"
            link.write_text(f'<a href="{url}">Look</a>')
            other.goto(link.as_uri())
            other.get_by_text("Look").click()
            expect(other.locator(".step-words")).to_contain_text("Step 1 of")
            expect(other).to_have_url(re.compile("#machine"))
        finally:
            process.terminate()
