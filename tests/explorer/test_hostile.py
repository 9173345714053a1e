"""Hostile requests: whatever a field holds, the answer is JSON that says what is wrong, and never a fault of ours."""

from __future__ import annotations

import copy
import json
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from nram.explorer.jobs import Jobs
from nram.programs.library import load_program
from nram.programs.text import to_text

MARKUP = "<script>alert(1)</script>"
NASTY: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**9, 10**30, -(10**30), 1e308, "", "x", MARKUP, "\0", "../../etc/passwd", "/dev/zero",
    "\u202e\u2028", "a" * 5000, [], {}, [[]], [None], [1, 2, 3], ["1", "2"], {"name": MARKUP}, {"text": MARKUP},
    {"run": "../.."}, {"run": MARKUP, "member": -1}, {"job": "0"}, {"text": "nram program 1\n" + "(" * 3000},
    {"text": "{" * 3000}, {"text": '{"nram_program": 1}'}, [[[[[[[[]]]]]]]], "NaN", "1 2 3", "copy", "copy@trained",
)  # fmt: skip
ACCESS = {"name": "access@searched"}
TEXT = {"text": to_text(load_program("reverse@searched"))}
REQUESTS: dict[str, dict[str, Any]] = {
    "/api/start": {},
    "/api/program": {"program": TEXT},
    "/api/download": {"program": TEXT, "form": "c"},
    "/api/sample": {"task": "merge", "complexity": 3, "seed": 1, "memory_size": 30},
    "/api/trace": {"program": TEXT, "memory": [2, 1, 0, 0], "memory_size": 9, "max_steps": 20, "start": 1, "count": 5},
    "/api/network": {"network": {"name": "access"}},
    "/api/soft": {"network": {"name": "access"}, "memory": [0, 1, 2, 0], "max_steps": 3},
    "/api/learn": {"name": "sum.csv", "content": "values,result\n1 2,3\n", "budget": 5, "method": "search", "seed": 0},
    "/api/verify": {"program": ACCESS, "task": "access", "budget": 2},
    "/api/jobs/0/stop": {},
}
COUNT = 60  # of each


def spoiled(value: Any, rng: Random) -> Any:
    """The same value with something hostile in one place of it."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        changed = copy.deepcopy(value)
        key = rng.choice(sorted(changed))
        match rng.randrange(8):
            case 0:
                changed[rng.choice([MARKUP, "__proto__", "", "constructor"])] = rng.choice(NASTY)
            case 1:
                del changed[key]
            case _:
                changed[key] = spoiled(changed[key], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.6:
        changed = list(value)
        changed[rng.randrange(len(changed))] = rng.choice(NASTY)
        return changed
    if isinstance(value, str) and len(value) > 20 and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return (
            value[:at]
            + rng.choice([MARKUP, "\0", "o9", "r99", "\n\n", "when", "=", "é", "2"])
            + value[at + rng.randrange(5) :]
        )
    return rng.choice(NASTY)


@pytest.mark.parametrize("path", REQUESTS)
def test_every_answer_to_a_hostile_request_is_json(client, monkeypatch, path):
    monkeypatch.setattr(Jobs, "start", lambda *words: SimpleNamespace(id="0"))  # processes have their own tests
    rng, refused = Random(path), 0
    for _ in range(COUNT):
        body = spoiled(REQUESTS[path], rng)
        answer = client.post(path, content=json.dumps(body).encode(errors="replace"))
        assert answer.status_code < 500, (body, answer.text[:500])
        assert answer.headers["content-type"] == "application/json"
        found = answer.json()
        if answer.status_code >= 400:
            refused += 1
            assert found["error"] and "Traceback" not in found["error"]
            assert "\0" not in found["error"]
    assert refused > COUNT // 4 or path in ("/api/program", "/api/start")


@pytest.mark.parametrize("name", ["../x", "%2e%2e", "a/b/c", MARKUP, "x" * 5000, "-1", "%00", "\u202e"])
@pytest.mark.parametrize("path", ["/api/runs/{}", "/api/runs/{}/events", "/api/jobs/{}/events", "/api/jobs/{}", "/{}"])
def test_hostile_names_in_addresses(client, path, name):
    answer = client.get(path.format(name))
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]
