"""Jobs of the page: learning and verification in processes of their own, and what becomes of these processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient
from support.explorer import HEADERS

from nram.explorer import jobs, worker
from nram.explorer.jobs import Events, safe_name
from nram.explorer.settings import MOST_EXAMPLES
from nram.files import is_leftover

WRONG = Path(__file__).parents[1] / "programs" / "wrong"
SAME = "x,result\n" + "".join(f"{n},{n}\n" for n in range(1, 13))
"""Examples of a rule that is found at once."""


def unlearnable() -> str:
    """Examples without a rule, for a job that goes on."""
    rng = Random(3)
    numbers = [[rng.randrange(1, 9) for _ in range(6)] for _ in range(60)]
    return "\n".join(json.dumps({"values": row[:5], "result": row[5]}) for row in numbers)


@pytest.fixture
def follow(client: TestClient) -> Callable[[str], list[tuple[str, Any]]]:
    """All events of a job, until it ends."""

    def followed(job: str) -> list[tuple[str, Any]]:
        answer = client.get(f"/api/jobs/{job}/events")
        assert answer.headers["content-type"].startswith("text/event-stream")
        return events_of(answer.text)

    return followed


def events_of(text: str) -> list[tuple[str, Any]]:
    blocks = [block.split("\n", 1) for block in text.split("\n\n") if block.startswith("event: ")]
    return [(name.removeprefix("event: "), json.loads(value.removeprefix("data: "))) for name, value in blocks]


def wait_for(true: Callable[[], Any], what: str) -> Any:
    for _ in range(600):
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


# ---- learning


def test_learning_from_start_to_result(ask, follow, client, settings):
    job = ask("/api/learn", name="../../My rule!.csv", content=SAME, budget=60, method="search")["job"]
    events = follow(job)
    names = [name for name, _ in events]
    assert names[0] == "begin" and names[-2:] == ["result", "end"] and "note" in names
    result = dict(events)["result"]
    folder = settings.kept / "My-rule"
    assert result["found"] and result["report"].startswith("FOUND") and result["folder"] == str(folder)
    assert result["json"]["search"]["candidates"] > 0 and result["program"].startswith("nram program 1")
    assert (folder / "My-rule.csv").read_text() == SAME
    assert json.loads((folder / "report.json").read_text())["found"]
    # The page opens the program, and the folder is a run of the list.
    small = result["example"]
    run = ask("/api/trace", program={"job": job}, memory=small["memory"], max_steps=small["steps"], start=0, count=10)
    assert [run["ending"]["memory"][cell] for cell in small["cells"]] == [max(small["memory"])] != [0]
    listed = client.get("/api/runs").json()["runs"]
    assert [(one["id"], one["kind"], one["status"]) for one in listed] == [("My-rule", "learn", "finished")]
    shown = client.get("/api/runs/My-rule").json()
    assert shown["members"][0] == 0 and shown["verdict"].startswith("FOUND")
    again = ask("/api/program", program={"run": "My-rule"})
    assert again["fingerprint"] == ask("/api/program", program={"job": job})["fingerprint"]
    assert follow(job) == events  # a page that comes later sees the same


def test_examples_with_problems_are_refused_with_their_lines_and_leave_nothing(ask, follow, settings):
    events = follow(ask("/api/learn", name="bad.csv", content="x,result\n1,1\n2,two\n")["job"])
    assert [name for name, _ in events] == ["begin", "failed", "end"]
    error = dict(events)["failed"]["error"]
    assert error.startswith("bad.csv cannot be used") and "line 3: result holds 'two'" in error
    assert dict(events)["end"] == {"status": "failed"} and list(settings.kept.iterdir()) == []


def test_too_few_examples_leave_nothing(ask, follow, settings):
    for _ in range(2):
        error = dict(follow(ask("/api/learn", name="few.csv", content="x,result\n1,1\n2,2\n3,3\n")["job"]))["failed"][
            "error"
        ]
        assert "few.csv" in error and str(settings.kept) not in error
        assert list(settings.kept.iterdir()) == []


def test_a_job_that_is_stopped_keeps_its_best(ask, follow, client, settings, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_JOBS", 1)
    learned = settings.kept / "hard"
    (learned / "mine").mkdir(parents=True)
    job = ask("/api/learn", name="hard.jsonl", content=unlearnable(), budget=600, method="search")["job"]
    assert "run already" in ask("/api/learn", 429, name="other.jsonl", content=SAME)["error"]
    wait_for(lambda: client.get("/api/jobs").json()["jobs"][0]["seconds"] > 0 and has(client, job, "best"), "a best")
    assert ask("/api/program", program={"job": job})["rows"]  # the best so far can be looked at
    assert ask(f"/api/jobs/{job}/stop") == {}
    events = follow(job)
    result = dict(events)["result"]
    assert not result["found"] and result["interrupted"] and dict(events)["end"] == {"status": "stopped"}
    best = [value for name, value in events if name == "best"][-1]
    assert best["wrong"] > 0 and best["cells"] and "wrong on" in best["text"]
    assert best["program"].startswith("nram program 1")
    report = [value for name, value in events if name == "report"][-1]
    assert {"candidates", "per_second", "seconds", "counterexamples", "rounds", "refused"} <= set(report)
    # A new folder was made beside the one that was there, and its search can go on.
    assert result["folder"] == str(settings.kept / "hard-2") and list(learned.iterdir()) == [learned / "mine"]
    assert {"hard.jsonl", "report.json", "search.json"} <= {path.name for path in Path(result["folder"]).iterdir()}


def has(client: TestClient, job: str, name: str) -> bool:
    explorer = client.app.state.explorer  # type: ignore[attr-defined]
    return any(event == name for _, event, _ in explorer.jobs.find(job).events.after(0))


def test_requests_for_learning_are_bounded(ask):
    for wrong in (
        {"content": ""},
        {"content": SAME, "budget": 601},
        {"content": SAME, "method": "guess"},
        {"content": SAME, "seed": -1},
        {"content": "x" * (MOST_EXAMPLES + 1)},
    ):
        assert "the request cannot be used" in ask("/api/learn", 400, name="x", **wrong)["error"]


@pytest.mark.parametrize(
    ("given", "content", "name"),
    [
        ("sum.csv", "a,b\n", "sum.csv"),
        ("/etc/passwd", "a,b\n", "passwd.csv"),
        ("..\\..\\x.JSON", "[", "x.json"),
        ("..", "{}", "examples.jsonl"),
        ("", " [1]", "examples.json"),
        ("<img src=x>.jsonl", "", "img-src-x.jsonl"),
        ("-o\n--out.csv", "", "o-out.csv"),
        ("n" * 500, "", "n" * 40 + ".csv"),
    ],
)
def test_names_of_files_are_words(given, content, name):
    assert safe_name(given, content) == name


# ---- verification


def test_a_wrong_program_has_a_counterexample_that_the_machine_shows(ask, follow):
    program = {"text": (WRONG / "last_element.nram").read_text()}
    result = dict(follow(ask("/api/verify", program=program, budget=5)["job"]))["result"]
    assert not result["right"] and result["proven"] == []
    assert any("the program is wrong already" in words for words in result["undecided"])
    found = result["counterexample"]
    run = ask("/api/trace", program=program, memory=found["memory"], max_steps=found["steps"], start=0, count=100)
    wrong = [cell for cell in found["cells"] if run["ending"]["memory"][cell] != found["expected"][cell]]
    assert wrong != [] and f"cell {wrong[0]} holds" in found["words"]


def test_a_right_program_is_proven_and_tested(ask, follow):
    events = follow(ask("/api/verify", program={"name": "access"}, budget=1)["job"])
    result = dict(events)["result"]
    assert result["right"] and result["proven"] and result["tested"] and result["counterexample"] is None
    assert any(name == "note" and value["text"].startswith("exhaustive: n = 1") for name, value in events)


def test_the_page_cannot_make_a_job_load_a_python_file(ask, tmp_path):
    file = tmp_path / "task.py"
    file.write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    assert "there is no task" in ask("/api/verify", 404, program={"name": "copy"}, task=str(file))["error"]
    text = (WRONG / "last_element.nram").read_text().replace("task: increment", f"task: {file}")
    assert "there is no task" in ask("/api/verify", 404, program={"text": text})["error"]
    assert not (tmp_path / "executed").exists()


# ---- processes


def test_a_process_that_ends_badly_is_a_failure_with_a_message(ask, follow, client):
    job = ask("/api/learn", name="hard.jsonl", content=unlearnable(), budget=600, method="search")["job"]
    os.kill(client.app.state.explorer.jobs.find(job)._process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    events = follow(job)
    assert "ended without a result" in dict(events)["failed"]["error"] and events[-1] == ("end", {"status": "failed"})
    assert "there is no job 'nope'" in client.get("/api/jobs/nope/events").json()["error"]
    assert "there is no job" in ask("/api/jobs/nope/stop", 404)["error"]


def test_a_job_outlives_its_page_and_ends_with_the_server_however_that_ends(tmp_path):
    command = [sys.executable, "-m", "nram", "serve", "--port", "0", "--no-browser", "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            body = {"name": "hard.jsonl", "content": unlearnable(), "budget": 600, "method": "search"}
            with requested(url, "POST", "/api/learn", json.dumps(body)) as answer:
                job = json.load(answer)["job"]
            for _ in range(2):  # a page closes, and another one comes
                with requested(url, "GET", f"/api/jobs/{job}/events") as answer:
                    assert answer.readline() == b"event: begin\n"
                    assert any(line == b"event: best\n" for line in answer)
            (worker,) = children_of(server.pid)
        finally:
            server.kill()
    wait_for(lambda: not is_alive(worker), "the end of the job's process")
    folder = tmp_path / "learned" / "hard"
    assert json.loads((folder / "report.json").read_text())["interrupted"]
    assert [path for path in folder.rglob("*") if is_leftover(path) or path.name == ".lock"] == []


@contextlib.contextmanager
def requested(url: str, method: str, path: str, body: str | None = None) -> Iterator[HTTPResponse]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request(method, path, body, HEADERS)
    with contextlib.closing(connection), connection.getresponse() as answer:
        yield answer


def children_of(parent: int) -> list[int]:
    return [one for one in processes() if status_of(one)[1] == parent]


def is_alive(one: int) -> bool:
    return status_of(one)[0] not in ("", "Z")


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def status_of(one: int) -> tuple[str, int]:
    """The state and the parent of a process; no state if it has ended."""
    with contextlib.suppress(OSError):
        state, parent = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[:2]
        return state, int(parent)
    return "", 0


def test_a_job_that_does_not_stop_in_time_ends_and_leaves_no_half_written_file(tmp_path, monkeypatch):
    reader, writer = os.pipe()
    ended = threading.Event()
    monkeypatch.setattr(worker, "GRACE_ALONE", 0.0)
    monkeypatch.setattr(worker.os, "_exit", lambda status: ended.set())
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / ".01234567-89abcdef.part").touch()
    (tmp_path / "report.json").touch()
    stopping = worker._Stopping(reader)
    stopping.folder = tmp_path
    stopping.listen(b"", at_once=False)
    assert not stopping.asked
    os.close(writer)  # the server is gone
    assert ended.wait(30) and stopping.asked
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["report.json", "training"]
    os.close(reader)


def test_processes_end_without_complaint(tmp_path):
    """Also while a thread waits for the server's word."""
    work = {"kept": str(tmp_path), "file": "x.csv", "content": SAME, "budget": 20.0, "method": "search", "seed": 0}
    work |= {"cells": None, "result": None, "layout": None}
    command = [sys.executable, "-m", "nram.explorer.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(json.dumps({"learn": work}).encode() + b"\n")
        process.stdin.flush()
        events = [json.loads(line) for line in process.stdout]
        assert process.wait(30) == 0 and events[-1][0] == "result"
        assert process.stderr.read() == b""


# ---- events


def test_progress_is_thinned_out_and_the_rest_is_kept():
    events = Events()
    events.add("begin", {})
    for number in range(20 * jobs.MOST_EVENTS):
        events.add("report", number)
    events.add("result", {})
    events.add("end", {})
    found = events.after(0)
    assert len(found) <= jobs.MOST_EVENTS
    assert [name for _, name, _ in found if name != "report"] == ["begin", "result", "end"]
    numbers = [number for number, _, _ in found]
    assert numbers == sorted(set(numbers)) and numbers[1] < 2 * jobs.MOST_EVENTS  # some of the beginning is left
    assert events.after(numbers[-3]) == found[-2:] and events.after(numbers[-1]) == []


def test_old_jobs_are_forgotten(ask, follow, client, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_KEPT_JOBS", 2)
    found = []
    for _ in range(3):
        found.append(ask("/api/learn", name="bad.csv", content="x,result\n1,one\n")["job"])
        follow(found[-1])
    kept = [one["job"] for one in client.get("/api/jobs").json()["jobs"]]
    assert kept == found[1:] and client.get(f"/api/jobs/{found[0]}/events").status_code == 404


def test_the_best_so_far_outlives_many_reports():
    events = Events()
    events.add("best", {"wrong": 9})
    for number in range(3000):
        events.add("report", {"candidates": number})
    names = [name for _, name, _ in events.after(0)]
    assert len(names) <= 1000 and names.count("best") == 1
    events.add("best", {"wrong": 3})
    for number in range(3000):
        events.add("report", {"candidates": number})
    assert [value for _, name, value in events.after(0) if name == "best"][-1] == {"wrong": 3}
