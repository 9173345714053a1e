"""Jobs of the page: learning from examples and verification, each in a process of its own (`worker.py`).

A job goes on when its page is closed. The server's end ends it, however the server ends: the process sees that its
standard input is closed, saves its work and stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nram.errors import shown
from nram.explorer.answering import Refused, action, reading, refusal, stream
from nram.explorer.references import Reference, program_of
from nram.explorer.settings import MOST_EXAMPLES, MOST_JOBS, MOST_KEPT_JOBS, Settings
from nram.extensions import task_names
from nram.extensions.modules import files_of
from nram.extensions.tasks import REGISTRY as TASKS
from nram.learning.job import Method
from nram.programs.files import program_from, to_json_text
from nram.programs.ir import Program
from nram.records import Span

if TYPE_CHECKING:
    from nram.explorer.server import Explorer

MOST_BUDGET = 600.0  # seconds
PARTS = 4  # of a verification, each with its budget
MOST_EVENTS = 1000  # of a job; the oldest of those that only show progress are thinned out
MOST_EVENT = 1 << 24  # bytes
MOST_PROGRESS = 1 << 18  # bytes of an event that shows progress
PROGRESS = ("report", "training", "best", "activity", "note")
POLL = 0.1  # seconds between two looks at the events of a job
CLOSING = 12.0  # seconds for all jobs to save, when the server ends; they take less, or end by themselves
SENDING = 5.0  # seconds for the request to reach a process that begins
SUFFIXES = (".csv", ".jsonl", ".json")

Status = Literal["running", "done", "failed", "stopped"]
Kind = Literal["learn", "verify"]


class Events:
    """What a job tells: everything at first, later on a part of what only shows progress."""

    def __init__(self) -> None:
        self._events: list[tuple[int, str, Any]] = []
        self._last = 0
        self._lock = threading.Lock()

    def add(self, name: str, value: Any) -> None:
        with self._lock:
            self._last += 1
            self._events.append((self._last, name, value))
            if len(self._events) > MOST_EVENTS:
                half = len(self._events) // 2
                best = next((number for number, name, _ in reversed(self._events) if name == "best"), None)
                self._events[:half] = [
                    one
                    for index, one in enumerate(self._events[:half])
                    if one[1] not in PROGRESS or index % 2 or one[0] == best
                ]

    def after(self, number: int) -> list[tuple[int, str, Any]]:
        """The events with larger numbers. Numbers ascend from 1, and some are missing."""
        with self._lock:
            if self._last <= number:
                return []
            return [one for one in self._events if one[0] > number]


class Job:
    """A process and the events that it sent."""

    def __init__(self, kind: Kind, name: str, request: Mapping[str, Any]):
        self.id, self.kind, self.name = secrets.token_hex(4), kind, name
        self.began, self.took = time.monotonic(), 0.0
        self.status: Status = "running"
        self.result: dict[str, Any] | None = None
        self.events = Events()
        self.events.add("begin", {"job": self.id, "kind": kind, "name": name})
        self._stop_asked = False
        self._sent = threading.Event()
        # -P: the current folder may hold files of others, and is not searched for modules. A session of its own: Ctrl-C
        # in the terminal is for the server.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "nram.explorer.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input: IO[bytes] = self._process.stdin
        line = json.dumps({kind: dict(request)}).encode() + b"\n"
        threading.Thread(target=self._follow, args=(self._process.stdout, line), daemon=True).start()

    def _follow(self, output: IO[bytes], request: bytes) -> None:
        with contextlib.suppress(OSError):  # the process has ended: it is told below
            self._input.write(request)
            self._input.flush()
        self._sent.set()
        while line := output.readline(MOST_EVENT):
            try:
                name, value = json.loads(line)
            except ValueError:
                continue  # half a line of a process that was killed
            if name == "result":
                self.result = value
            if name == "failed":
                self.status = "failed"
            if name in PROGRESS and len(line) > MOST_PROGRESS:
                continue
            self.events.add(name, value)
        status = self._process.wait()
        for end in (output, self._input):
            with contextlib.suppress(OSError):  # what could not be written
                end.close()
        if self.result is None and self.status != "failed" and not self._stop_asked:
            self.status = "failed"
            self.events.add("failed", {"error": f"the job's process ended without a result (status {status})"})
        self.took = time.monotonic() - self.began
        if self.status != "failed":
            self.status = "stopped" if self._stop_asked else "done"
        self.events.add("end", {"status": self.status})

    @property
    def seconds(self) -> float:
        return round(self.took or time.monotonic() - self.began, 1)

    def stop(self) -> None:
        """Ask the process to save its work and end."""
        self._stop_asked = True
        self._sent.wait(SENDING)
        with contextlib.suppress(OSError, ValueError):  # it has ended
            self._input.write(b"stop\n")
            self._input.flush()

    def close(self, until: float) -> None:
        """Wait for the end of the process, not longer than until this time of `time.monotonic`; then kill it."""
        try:
            self._process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def hang_up(self) -> None:
        """Tell the process that the server ends: it saves its work, and then ends by itself."""
        self._stop_asked = True
        self._sent.wait(SENDING)
        with contextlib.suppress(OSError, ValueError):  # it has ended
            self._input.close()


class Jobs:
    """The jobs of a server: few at once, and those that ended last."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self, kind: Kind, name: str, request: Mapping[str, Any]) -> Job:
        with self._lock:
            if self._closed:
                raise Refused("the server ends", 409)
            if sum(job.status == "running" for job in self._jobs.values()) >= MOST_JOBS:
                raise Refused(f"{MOST_JOBS} jobs run already: wait for one, or stop it", 429)
            ended = [id for id, job in self._jobs.items() if job.status != "running"]
            for id in ended[: len(self._jobs) + 1 - MOST_KEPT_JOBS]:
                del self._jobs[id]
            job = Job(kind, name, request)
            self._jobs[job.id] = job
            return job

    def all(self) -> list[Job]:
        with self._lock:
            return list(self._jobs.values())

    def find(self, id: str) -> Job:
        with self._lock:
            job = self._jobs.get(id)
        if job is None:
            raise Refused(f"there is no job {shown(id)}: it ended long ago, or the server was started again", 404)
        return job

    def program_of(self, id: str) -> Program:
        """The program that a job found, or the best so far."""
        job = self.find(id)
        text = None if job.result is None else job.result.get("program")
        if text is None:
            text = next((value["program"] for _, name, value in reversed(job.events.after(0)) if name == "best"), None)
        if text is None:
            raise Refused(f"the job {id} has no program yet", 409)
        return program_from(text)

    def close(self) -> None:
        """End all jobs. They may save their work."""
        with self._lock:
            self._closed = True
        until = time.monotonic() + CLOSING
        jobs = self.all()
        for job in jobs:
            job.hang_up()
        for job in jobs:
            job.close(until)


# ---- requests


@dataclass(frozen=True)
class LearnRequest:
    name: Annotated[str, Span(0, 1000)]
    """Of the file of examples."""
    content: Annotated[str, Span(1, MOST_EXAMPLES)]
    budget: Annotated[float, Span(1, MOST_BUDGET)] = 60.0
    method: Method = "both"
    seed: Annotated[int, Span(0, 2**32 - 1)] = 0
    cells: str | None = None
    result: str | None = None
    layout: str | None = None


def learn(explorer: Explorer, request: LearnRequest) -> dict[str, str]:
    """Start to learn from the text of a file of examples."""
    file = safe_name(request.name, request.content)
    work = {**vars(request), "file": file, "kept": str(explorer.settings.kept)}
    del work["name"]
    return {"job": explorer.jobs.start("learn", file, work).id}


def safe_name(given: str, content: str) -> str:
    """A name for the file of examples that is a word and a suffix, whatever name was given."""
    path = PurePath(given.replace("\\", "/"))
    word = re.sub(r"[^A-Za-z0-9_]+", "-", path.stem).strip("-")[:40] or "examples"
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        suffix = {"{": ".jsonl", "[": ".json"}.get(content.lstrip()[:1], ".csv")
    return word + suffix


@dataclass(frozen=True)
class VerifyRequest:
    program: Reference
    task: str | None = None
    budget: Annotated[float, Span(1, MOST_BUDGET / PARTS)] = 10.0
    """Of each part."""


def check(explorer: Explorer, request: VerifyRequest) -> dict[str, str]:
    """Start to verify a program."""
    program = program_of(explorer, request.program)
    task = request.task or program.task
    if task is None:
        raise Refused(f"{program.name} does not say which task it is for: choose one")
    if task not in task_names():
        raise Refused(f"there is no task {shown(task)}: choose one of {', '.join(task_names())}", 404)
    work = {
        "program": to_json_text(program),
        "task": task,
        "budget": request.budget,
        "module_files": [str(path) for path in files_of(program.modules)],
        "task_files": [str(path) for path, one in TASKS.from_files.items() if one.name == task],
    }
    return {"job": explorer.jobs.start("verify", f"{program.name} on {task}", work).id}


def list_jobs(explorer: Explorer, parts: Mapping[str, str]) -> dict[str, Any]:
    return {
        "jobs": [
            {"job": job.id, "kind": job.kind, "name": job.name, "status": job.status, "seconds": job.seconds}
            for job in explorer.jobs.all()
        ]
    }


async def follow_job(explorer: Explorer, parts: Mapping[str, str]) -> AsyncIterator[tuple[str, Any]]:
    """All events of a job from its beginning, until it ends."""
    job = explorer.jobs.find(parts["job"])
    last, ended = 0, False
    while not ended:
        for number, name, value in job.events.after(last):
            yield name, value
            last, ended = number, name == "end"
        if not ended:
            await asyncio.sleep(POLL)


async def stop_job(request: Request) -> Response:
    """Ask a job to save its work and end. Its events tell when it has."""
    try:
        job = request.app.state.explorer.jobs.find(request.path_params["job"])
    except Refused as error:
        return refusal(error)
    await run_in_threadpool(job.stop)
    return JSONResponse({})


ROUTES = [
    action("/api/learn", LearnRequest, learn),
    action("/api/verify", VerifyRequest, check),
    reading("/api/jobs", list_jobs),
    stream("/api/jobs/{job}/events", follow_job),
    Route("/api/jobs/{job}/stop", stop_job, methods=["POST"]),
]
