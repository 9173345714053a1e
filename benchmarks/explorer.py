"""How fast the explorer's server answers: a line of JSON for each part.

    python benchmarks/explorer.py --out results/explorer.jsonl
    python benchmarks/tables.py explorer results/explorer.jsonl

`steps` asks for one step of each program of the zoo, `million` for pieces of a run of a million steps. `states` asks
for pieces of 200,000 steps of a program with two states, which machine code cannot skip. `networks` asks for whole runs
of the zoo's networks on 64 cells, `uncached` for the first run of each where no compiled code is cached. `clients` lets
a hundred clients step at once, each through a run of its own, and compares every answer with the interpreter. The
server is a process of its own. The clients are on the same machine and need its processor too.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nram
from nram.programs.interpret import interpret
from nram.programs.library import zoo_entries
from nram.runtime import cpu_cores, versions

CLIENTS, STEPS = 100, 30
CELLS = 64
LONG = """nram program 1
registers: low high

when low > 0:
    o1 = INC(low)
    low := o1
else:
    o1 = INC(high)
    o2 = INC(low)
    WRITE(high, o2)
    low, high := o2, o1
"""
TWO_STATES = """nram program 1
registers: r1

state 0:
always:
    o1 = INC(r1)
    r1 := o1
    next 1

state 1:
always:
    WRITE(r1, r1)
    next 0
"""


class Client:
    """One connection to the server."""

    def __init__(self, port: int):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, path: str, **body: Any) -> tuple[float, Any]:
        """The seconds until the answer is there, and the answer."""
        began = time.perf_counter()
        headers = {"Content-Type": "application/json", "X-Nram": "1"}
        self.connection.request("POST", path, json.dumps(body), headers)
        answer = self.connection.getresponse()
        content = answer.read()
        seconds = time.perf_counter() - began
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {content[:300]!r}")
        return seconds, json.loads(content)


@contextmanager
def server(**variables: str) -> Iterator[int]:
    """A server on a port that is free, with these environment variables besides."""
    command = [sys.executable, "-m", "nram", "serve", "--no-browser", "--port", "0", "--json"]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdout=pipe, stderr=null, text=True, env={**os.environ, **variables}) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["port"]
        finally:
            process.terminate()


def steps(port: int) -> dict[str, Any]:
    client, times = Client(port), []
    for entry in zoo_entries():
        instance = nram.get_task(entry.name).sample(20, 1, 0)[0]
        body = {"program": {"name": entry.title}, "memory": instance.input, "max_steps": instance.steps}
        for start in range(20):
            times.append(client.ask("/api/trace", **body, start=start, count=1)[0])
    return summary(times) | {"programs": len(zoo_entries()), "n": 20}


def million(port: int) -> dict[str, Any]:
    client = Client(port)
    body = {"program": {"text": LONG}, "memory": [0] * 1500, "max_steps": 1_000_000, "count": 500}
    first, answer = client.ask("/api/trace", **body, start=0)
    assert answer["total"] == 1_000_000
    times = [client.ask("/api/trace", **body, start=start)[0] for start in range(0, 1_000_000, 20_123)]
    return summary(times) | {"first_ms": _ms(first), "steps": 1_000_000, "piece": 500}


def states(port: int) -> dict[str, Any]:
    client = Client(port)
    body = {"program": {"text": TWO_STATES}, "memory": [0] * 1500, "max_steps": 200_000, "count": 500}
    first, answer = client.ask("/api/trace", **body, start=0)
    assert answer["total"] == 200_000
    times = [client.ask("/api/trace", **body, start=start)[0] for start in range(0, 200_000, 4_123)]
    return summary(times) | {"first_ms": _ms(first), "steps": 200_000, "piece": 500}


def networks(port: int) -> dict[str, Any]:
    client, first, times = Client(port), [], []
    for entry in zoo_entries():
        if not entry.has_weights:
            continue
        task = nram.get_task(entry.name)
        n = max(n for n in range(task.min_complexity, CELLS) if task.least_memory(n) <= CELLS)
        instances = task.sample(n, 4, 0, CELLS)
        body = {"network": {"name": entry.title}, "max_steps": min(task.step_limit(n), 256)}
        seconds = [client.ask("/api/soft", **body, memory=one.input)[0] for one in instances]
        first.append(seconds[0])
        times += seconds[1:]
    return summary(times) | {
        "first_ms": _ms(statistics.median(first)),
        "first_p95_ms": _ms(sorted(first)[int(0.95 * len(first))]),
        "first_most_ms": _ms(max(first)),
        "networks": len(first),
        "cells": CELLS,
    }


def uncached(port: int) -> dict[str, Any]:
    """The first run of each network of the zoo. The server's cache of compiled code is empty at the beginning."""
    found = networks(port)
    return {
        "requests": found["networks"],
        "median_ms": found["first_ms"],
        "p95_ms": found["first_p95_ms"],
        "most_ms": found["first_most_ms"],
        "cells": CELLS,
    }


def clients(port: int) -> dict[str, Any]:
    entries, times, wrong = zoo_entries(), [], []
    together = threading.Barrier(CLIENTS)

    def step_through(number: int) -> None:
        entry, client = entries[number % len(entries)], Client(port)
        instance = nram.get_task(entry.name).sample(20, 1, number)[0]
        body = {"program": {"name": entry.title}, "memory": instance.input, "max_steps": instance.steps}
        client.ask("/api/trace", **body)  # the connection
        together.wait()
        answers = [client.ask("/api/trace", **body, start=start, count=1) for start in range(STEPS)]
        times.extend(seconds for seconds, _ in answers)
        for start, (_, answer) in enumerate(answers):
            expected = interpret(entry.program, instance.input, min(start, answer["total"]))
            if (answer["memory"], answer["registers"]) != (expected.memory, expected.registers):
                wrong.append((number, start))

    threads = [threading.Thread(target=step_through, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return summary(times) | {"clients": CLIENTS, "wrong": len(wrong)}


def summary(seconds: list[float]) -> dict[str, Any]:
    ordered = sorted(seconds)
    return {
        "requests": len(ordered),
        "median_ms": _ms(statistics.median(ordered)),
        "p95_ms": _ms(ordered[int(0.95 * len(ordered))]),
        "most_ms": _ms(ordered[-1]),
    }


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "steps": steps,
    "million": million,
    "states": states,
    "networks": networks,
    "uncached": uncached,
    "clients": clients,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, required=True, help="the file to which a line for each part is added")
    chosen = parser.parse_args()
    with chosen.out.open("a") as out:
        for part in chosen.parts.split(","):
            began = time.perf_counter()
            with (
                tempfile.TemporaryDirectory() as empty,
                server(**({"XDG_CACHE_HOME": empty} if part == "uncached" else {})) as port,
            ):
                found = PARTS[part](port)
            found["seconds"] = round(time.perf_counter() - began, 1)
            line = {"subject": part, "seed": 0, "command": f"benchmarks/explorer.py --parts {part}", **found}
            line |= {"device": f"{cpu_cores()} x {platform.machine()} CPU", "versions": versions()}
            out.write(json.dumps(line) + "\n")
            out.flush()
            print(part, found, flush=True)


if __name__ == "__main__":
    main()
