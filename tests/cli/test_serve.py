"""`nram serve`: where it listens, what it says, and how it ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
from urllib.parse import urlsplit

import pytest


def started(process) -> str:
    """The address that a server prints when it is ready."""
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)["url"]


def get(url: str) -> tuple[int, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_to_this_machine_alone_until_it_is_stopped(nram, tmp_path, number):
    process = nram.start("serve", "--no-browser", "--port", "0", "--out", tmp_path / "learned", "--json")
    url = started(process)
    assert urlsplit(url).hostname == "127.0.0.1"
    status, page = get(url)
    assert status == 200 and "<title>" in page
    process.send_signal(number)
    outcome = nram.wait(process)
    assert outcome.status == 0
    assert "this machine alone" in outcome.err and "Traceback" not in outcome.err
    with pytest.raises(OSError):
        get(url)


def test_where_others_reach_it_it_asks_for_a_token_and_says_so(nram, tmp_path):
    process = nram.start("serve", "--no-browser", "--host", "0.0.0.0", "--port", "0", "--out", tmp_path, "--json")
    url = started(process)
    assert "?token=" in url
    assert get(url)[0] == 303
    assert get(url.partition("?")[0])[0] == 401
    process.terminate()
    outcome = nram.wait(process)
    assert "others can reach it" in outcome.err and "not encrypted" in outcome.err
    assert "put the IP address of this one into it" in outcome.err  # 127.0.0.1 leads others to themselves
    assert "nram serve: ending; jobs save what they have found; Ctrl-C again" in outcome.err


def test_the_token_can_be_given_in_the_environment(nram, tmp_path):
    words = ("serve", "--no-browser", "--host", "0.0.0.0", "--port", "0", "--out", tmp_path, "--json")
    process = nram.start(*words, NRAM_TOKEN="mine")
    assert started(process).endswith("?token=mine")
    process.terminate()
    assert nram.wait(process).status == 0


def test_a_port_that_is_taken(call):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        outcome = call("serve", "--no-browser", "--port", taken.getsockname()[1])
    assert outcome.status == 2
    assert "choose another --port" in outcome.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--port", "70000"), "ports go up to 65535"),
        (("--port", "-1"), "--port"),
        (("--host", "no.such.host.invalid"), "cannot listen on"),
        (("--runs", "nowhere"), "--runs nowhere is not a folder"),
        (("nobody",), "no such file"),
        (("--module", "nowhere.py"), "nowhere.py"),
    ],
)
def test_bad_usage(call, words, message):
    outcome = call("serve", "--no-browser", *words)
    assert outcome.status == 2
    assert message in outcome.err


# ---- nram export-page


def test_a_page_is_written(call, tmp_path):
    out = tmp_path / "reverse.html"
    outcome = call("export-page", "reverse@searched", "--out", out, "--json")
    assert outcome.status == 0
    assert outcome.value == {"out": str(out), "program": "reverse", "inputs": 12}
    assert out.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("copy", "--out", "copy.txt"), "let it end in .html"),
        (("copy",), "--out"),
        (("copy", "--out", "nowhere/copy.html"), "there is no folder"),
        (("copy", "--out", "copy.html", "--memory", "1 2 x"), "x"),
        (("copy", "--out", "copy.html", "--complexity", "100000"), "more than 4096 cells"),
        (("copy", "--out", "copy.html", "--max-steps", "5"), "--max-steps is for --memory"),
        (("copy", "--out", "copy.html", "--memory-size", "9"), "--memory-size is for --memory"),
        (("copy", "--out", "copy.html", "--memory", "1 2", "--memory-size", "1"), "is smaller"),
        (("copy", "--out", "copy.html", "--memory", "1 2 0", "--max-steps", "99999999999"), "give fewer"),
    ],
)
def test_pages_that_are_refused(call, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    outcome = call("export-page", *words)
    assert outcome.status == 2
    assert message in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_a_program_without_a_task_needs_an_input(call, tmp_path):
    program = tmp_path / "one.nram"
    program.write_text("nram program 1\nregisters: r1\n\nalways:\n    halt\n")
    out = tmp_path / "one.html"
    outcome = call("export-page", program, "--out", out)
    assert outcome.status == 2 and "give --memory or --task" in outcome.err
    assert call("export-page", program, "--out", out, "--memory", "1 2 0").status == 0
    assert call("export-page", program, "--out", out, "--memory", "1 2", "--memory-size", "7").status == 0
    assert '"input": [1, 2, 0, 0, 0, 0, 0]' in out.read_text()
    assert call("export-page", program, "--out", out, "--task", "copy").status == 0
