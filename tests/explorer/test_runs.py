"""Runs on the page: the list, one of them, what a running one adds, and folders that want to do harm."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from nram.errors import NramError
from nram.explorer import folders, runs
from nram.explorer.answering import Refused
from nram.explorer.folders import entries, find_entry
from nram.explorer.runs import COLUMNS, follow_run
from nram.explorer.settings import Settings
from nram.programs.library import load_program
from nram.training import summary
from nram.training.config import StageConfig, TrainConfig
from nram.training.run_folder import RunFolder

CONFIG = TrainConfig("copy", stages=(StageConfig(6, 500, 32), StageConfig(15, 400, 4, keep=4, stop_at=1)))
RESULT = {"perfect_members": 0, "examined_members": 2, "best_validation_exact_hard": 0.25, "seconds": 40.0}
HOSTILE = "<img src=x onerror=alert(1)>"


def row(step: int = 25, **more: Any) -> dict[str, Any]:
    """A line of metrics.jsonl."""
    row = {"stage": 0, "step": step, "max_complexity": 6, "population": 32, "levels": {"1": 30, "2": 2}}
    row |= {"best_error": 1 / step, "median_error": 0.8, "solved_soft": 0.0, "solved_hard": 0.0, "loss": float("nan")}
    return row | {"seconds": step / 10, "stage_ends": False} | more


@pytest.fixture
def make(settings: Settings):
    """A function that makes a run with so many reports."""

    def made(name: str, reports: int = 0, ending: dict[str, Any] | None = None) -> RunFolder:
        run = RunFolder.create(settings.folders[0] / name, CONFIG, ["train", "copy"], "a CPU")
        for number in range(reports):
            run.append_metrics(row(25 * (number + 1)))
        if ending is not None:
            run.write_result(ending)
        return run

    return made


@pytest.fixture
def listed(client):
    """A function that gives the lines of the list by their ids."""
    return lambda: {one["id"]: one for one in client.get("/api/runs").json()["runs"]}


# ---- the list and one run


def test_the_list_tells_how_every_run_stands(make, listed, settings):
    make("new")
    make("stopped", 3)
    make("finished", 2, RESULT)
    (settings.folders[0] / "notes").mkdir()
    with make("running", 1).locked():
        found = listed()
        assert {name: one["status"] for name, one in found.items()} == {
            "new": "new",
            "stopped": "stopped",
            "finished": "finished",
            "running": "running",
        }
    assert {one["task"] for one in found.values()} == {"copy"} and {one["kind"] for one in found.values()} == {"train"}
    assert found["stopped"]["words"] == "After 0:07: error 0.013."
    assert found["finished"]["words"].startswith("NOT LEARNED. No member is perfect yet")
    assert found["new"]["modified"] == pytest.approx(os.stat(settings.folders[0] / "new").st_mtime)
    assert listed()["running"]["status"] == "stopped"  # what was said before is not kept


def test_a_run_has_its_diagnosis_and_its_curves(make, client):
    make("mine", 12, RESULT)
    found = client.get("/api/runs/mine").json()
    assert (found["task"], found["status"], found["lines"], found["members"]) == ("copy", "finished", 12, [])
    assert found["verdict"].startswith("NOT LEARNED") and found["facts"] and found["cures"][0]["command"]
    assert found["command"] == f"nram eval {found['folder']}" and found["machine"].startswith("mlp")
    columns = found["metrics"]["columns"]
    rows = [dict(zip(columns, values, strict=True)) for values in found["metrics"]["rows"]]
    assert [one["step"] for one in rows] == list(range(25, 301, 25))
    assert rows[0]["best_error"] == 1 / 25 and rows[0]["level"] == 2 and rows[0]["solved_hard"] == 0.0


def test_long_runs_are_thinned_out(make, client, monkeypatch):
    monkeypatch.setattr(runs, "MOST_ROWS", 10)
    run = make("long")
    for number in range(1, 61):
        run.append_metrics(row(number, stage_ends=number == 17, stage=0))
    found = client.get("/api/runs/long").json()
    steps = [values[COLUMNS.index("step")] for values in found["metrics"]["rows"]]
    assert steps == [1, 7, 13, 17, 19, 25, 31, 37, 43, 49, 55, 60] and found["lines"] == 60


def test_runs_of_the_same_name_and_those_of_learning_have_their_own_ids(make, listed, settings, client):
    first = make("same", 1)
    learned = settings.kept / "same"
    RunFolder.create(learned / "training" / "0", CONFIG, ["learn", "x.csv"], "a CPU").append_metrics(row())
    (learned / "report.json").write_text(json.dumps({"found": False, "advice": ["more time"], "program": None}))
    found = listed()
    assert set(found) == {"same", "same/training/0", f"{settings.kept}/same"}
    assert found["same"]["kind"] == "train" and found[f"{settings.kept}/same"]["kind"] == "learn"
    assert client.get("/api/runs/same").json()["folder"] == str(first.path)
    assert client.get("/api/runs/same/training/0").json()["folder"] == str(learned / "training" / "0")
    shown = client.get(f"/api/runs/{settings.kept}/same").json()
    assert shown["cures"] == [{"text": "more time", "command": None}] and shown["members"] == []


def test_programs_of_a_learn_folder_have_no_network(settings, ask):
    folder = settings.kept / "pair"
    (folder / "programs").mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps({"found": True, "program": {}}))
    for number, name in enumerate(("copy@searched", "reverse@searched"), 1):
        load_program(name).save(folder / "programs" / f"{number}.nram")
    for member, name in enumerate(("copy", "reverse")):
        found = ask("/api/program", program={"run": "pair", "member": member})
        assert (found["name"], found["network"]) == (name, False)


def test_the_list_is_bounded(make, listed, monkeypatch):
    monkeypatch.setattr(folders, "MOST_ENTRIES", 2)
    for number in range(4):
        os.utime(make(f"run-{number}").path / "run.json", (0, 2e9 + number))
    assert list(listed()) == ["run-3", "run-2"]


# ---- what a running one adds


async def followed(settings: Settings, id: str, line: int = 0) -> AsyncGenerator[tuple[str, Any], None]:
    async for event in follow_run(SimpleNamespace(settings=settings), {"id": id, "line": line}):
        yield event


async def until(events: AsyncIterator[tuple[str, Any]], name: str) -> list[Any]:
    """The values of rows that come before an event of this name, then its value."""
    rows: list[Any] = []
    async with asyncio.timeout(30):
        async for event, value in events:
            if event == name:
                return [*rows, value]
            rows += value["rows"] if event == "rows" else []
    raise AssertionError(f"there was no {name}")


def test_a_running_run_is_followed(make, settings, monkeypatch):
    monkeypatch.setattr(runs, "POLL", 0.01)
    run = make("live", 2)

    async def watch():
        async with aclosing(followed(settings, "live", 1)) as events:
            assert await anext(events) == ("begin", {"line": 1})
            with run.locked():
                found = await until(events, "status")
                assert [one[3] for one in found[:-1]] == [50] and found[-1] == {"status": "running"}
                with open(run.metrics, "a") as file:  # a line that is written in two pieces
                    text = json.dumps(row(75))
                    file.write(text[:30])
                    file.flush()
                    task = asyncio.ensure_future(until(events, "rows"))
                    await asyncio.sleep(0.05)
                    assert not task.done()
                    file.write(text[30:] + "\n")
                assert [one[3] for one in (await task)[-1]["rows"]] == [75]
                run.cut_metrics(1)  # resumed from an older checkpoint
                assert await until(events, "again") == [{}]
                assert [one[3] for one in (await until(events, "rows"))[-1]["rows"]] == [25]
            assert await until(events, "status") == [{"status": "stopped"}]
            run.append_metrics(row(50))
            run.write_result(RESULT)
            found = await until(events, "end")
            assert [one[3] for one in found[:-1]] == [50] and found[-1] == {}

    asyncio.run(watch())


def test_the_stream_of_a_finished_run_ends(make, client):
    make("done", 3, RESULT)
    text = client.get("/api/runs/done/events").text
    names = [line.removeprefix("event: ") for line in text.split("\n") if line.startswith("event: ")]
    assert names == ["begin", "rows", "status", "end"]
    assert client.get("/api/runs/done/events/3").text.count("event: rows") == 0
    assert client.get("/api/runs/nope/events").status_code == 404


def test_lines_without_end_are_refused(make, settings, monkeypatch):
    run = make("flood")
    run.metrics.write_bytes(b"[" * (runs.MOST_LINE + 10))

    async def watch():
        async with aclosing(followed(settings, "flood")) as events:
            await until(events, "status")

    with pytest.raises(NramError, match="has a line of more than 64 KiB"):
        asyncio.run(watch())


# ---- folders that want to do harm


@pytest.mark.parametrize(
    "path", ["../secret", "%2e%2e%2fsecret", "..%2fsecret", "/etc", "%2fetc", "a/../../secret", "..", "mine%00"]
)
def test_an_id_is_no_path(make, client, settings, path):
    make("mine")
    RunFolder.create(settings.folders[0].parent / "secret", CONFIG, ["train"], "a CPU")
    for end in ("", "/events"):
        answer = client.get(f"/api/runs/{path}{end}")
        assert answer.status_code == 404 and "secret/run.json" not in answer.text


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("run.json", b"{", "not JSON"),
        ("run.json", b"\xff\xfe", "not text"),
        ("run.json", b'{"format": 99}', "format 99"),
        ("run.json", b"[" * 3000, "nested"),
        ("run.json", b" " * (summary.MOST_RECORD + 1), "too large"),
        ("result.json", b'{"seconds": "x"}', "cannot be used"),
        ("metrics.jsonl", b"{}\n", "cannot be used"),
        ("metrics.jsonl", b"\xff\n", "cannot be read"),
    ],
)
def test_a_damaged_run_is_a_line_that_says_so(make, listed, client, name, content, words):
    make("good", 1)
    (make("bad", 1).path / name).write_bytes(content)
    found = listed()
    assert found["good"]["status"] == "stopped" and found["bad"]["status"] == "damaged"
    assert words in found["bad"]["words"] and len(found["bad"]["words"]) <= summary.MOST_WORDS + 4
    answer = client.get("/api/runs/bad")
    assert answer.status_code == 400 and "Traceback" not in answer.text and answer.json()["error"]


def test_hostile_names_are_data(make, listed, client, settings):
    make(f"{HOSTILE}\n\x1b[31m", 1)
    name = f"{HOSTILE}\\n\\x1b[31m"
    raw = os.path.join(os.fsencode(settings.folders[0]), b"\xff\xfe")
    os.mkdir(raw)
    with open(os.path.join(raw, b"run.json"), "wb") as file:
        file.write(b"{}")
    found = listed()
    assert found[name]["status"] == "stopped" and found["\ufffd\ufffd"]["status"] == "damaged"
    assert client.get(f"/api/runs/{quote(name)}").json()["task"] == "copy"


def test_links_that_lead_out_are_not_followed(make, listed, client, ask, settings, tmp_path):
    secret = tmp_path / "secret"
    RunFolder.create(secret, CONFIG, ["train"], "a CPU").append_metrics(row(step=1234))
    (settings.folders[0] / "whole").symlink_to(secret)
    inside = make("inside").path
    (inside / "metrics.jsonl").symlink_to(secret / "metrics.jsonl")
    (make("best").path / "best").symlink_to("/")
    (make("loop").path / "result.json").symlink_to("result.json")
    learned = settings.kept / "learned"
    learned.mkdir(parents=True)
    (learned / "report.json").symlink_to(secret / "run.json")
    (make("deep").path / "training").symlink_to(tmp_path)
    found = listed()
    assert {name for name, one in found.items() if one["status"] == "damaged"} == {
        "whole",
        "inside",
        "best",
        "loop",
        "learned",
    }
    assert "leads out of" in found["whole"]["words"] and not any("secret" in name for name in found)
    for name in ("whole", "inside", "best", "learned"):
        answer = client.get(f"/api/runs/{name}")
        assert answer.status_code == 400 and "leads out of" in answer.json()["error"] and "1234" not in answer.text
        assert client.get(f"/api/runs/{name}/events").status_code == 400
        assert "leads out of" in ask("/api/program", 400, program={"run": name})["error"]


@pytest.mark.parametrize("name", [".lock", "metrics.jsonl", "run.json", "eval.json"])
def test_pipes_are_not_waited_for(make, listed, client, name):
    path = make("pipe").path / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert "is not a regular file" in listed()["pipe"]["words"]
    assert client.get("/api/runs/pipe").status_code == 400


def test_a_file_that_becomes_a_link_while_it_is_followed_is_not_read(make, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "POLL", 0.01)
    run = make("mine", 1)
    (tmp_path / "other").write_text(json.dumps(row(1234)) + "\n")

    async def watch():
        async with aclosing(followed(settings, "mine", 1)) as events:
            assert await until(events, "status") == [{"status": "stopped"}]
            run.metrics.unlink()
            run.metrics.symlink_to(tmp_path / "other")
            run.write_result(RESULT)
            assert await until(events, "end") == [{}]  # and no rows

    asyncio.run(watch())


def test_files_of_user_defined_tasks_are_not_executed(make, listed, client, ask, tmp_path):
    file = tmp_path / "task.py"
    file.write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    run = make("own", 1)
    record = json.loads((run.path / "run.json").read_text())
    record["config"]["task"] = str(file)
    (run.path / "run.json").write_text(json.dumps(record))
    (run.path / "best").mkdir()
    (run.path / "best" / "0.safetensors").write_bytes(b"")
    assert listed()["own"] | {"modified": 0} == {
        "id": "own",
        "kind": "train",
        "modified": 0,
        "task": "task",
        "status": "stopped",
        "words": "After 0:02: error 0.040.",
        "next": f"nram train {file} --out {tmp_path / 'runs' / 'own'} --resume",
    }
    for error in (
        client.get("/api/runs/own").json()["error"],
        ask("/api/program", 400, program={"run": "own"})["error"],
        ask("/api/network", 400, network={"run": "own"})["error"],
    ):
        assert str(file) in error and f"nram serve --task {file}" in error
    assert not (tmp_path / "executed").exists()


def test_folders_that_are_not_named_are_not_seen(settings, tmp_path):
    RunFolder.create(tmp_path / "elsewhere" / "run", CONFIG, ["train"], "a CPU")
    assert entries(settings) == []
    with pytest.raises(Refused, match="there is no run"):
        find_entry(settings, "run")
    named = Settings(folders=(tmp_path / "elsewhere", tmp_path / "missing"), kept=tmp_path / "learned")
    assert [one.id for one in entries(named)] == ["run"]
    assert find_entry(named, "run").path == Path(tmp_path / "elsewhere" / "run")
