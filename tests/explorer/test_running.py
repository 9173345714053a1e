"""Pieces of runs are what the interpreter does, wherever they begin."""

from __future__ import annotations

import threading
from random import Random

import pytest
from support.random_programs import random_memory, random_program

from nram.errors import shown
from nram.explorer import running
from nram.explorer.settings import MOST_CELLS, MOST_STEPS
from nram.extensions import get_task
from nram.programs.interpret import Ending, Step, interpret, trace
from nram.programs.library import load_program, zoo_entries
from nram.programs.text import to_text

COUNTER = """nram program 1
registers: low high

else when low > 0:
    o1 = INC(low)
    low := o1
else:
    o1 = INC(high)
    o2 = INC(low)
    WRITE(high, o2)
    low, high := o2, o1
""".replace("else when low", "when low")


def check_piece(answer, program, memory, limit, start, count):
    """The answer has the steps that the interpreter carries out."""
    told = list(trace(program, memory, limit))
    steps = [one for one in told if isinstance(one, Step)]
    ending = told[-1]
    assert isinstance(ending, Ending)
    assert (answer["total"], answer["halted"]) == (ending.steps, ending.halted)
    assert answer["ending"] == {"memory": ending.memory, "registers": ending.registers}
    start = min(start, ending.steps)
    assert answer["start"] == start
    here = steps[start] if start < len(steps) else ending
    assert (answer["memory"], answer["registers"]) == (here.memory, here.registers)
    assert len(answer["steps"]) == min(count, len(steps) - start)
    for found, step in zip(answer["steps"], steps[start:], strict=False):
        assert (found["state"], found["row"], found["registers"]) == (step.state, step.row, step.registers)
        assert (found["arguments"], found["outputs"]) == (step.arguments, step.outputs)
    memories = [step.memory for step in steps[start:]] + [ending.memory]
    memory = list(answer["memory"])
    for found, after in zip(answer["steps"], memories[1:], strict=False):
        for pointer, value in found["writes"]:
            memory[pointer] = value
        assert memory == after


@pytest.mark.parametrize("entry", zoo_entries(), ids=lambda entry: entry.title)
def test_programs_of_the_zoo(ask, entry):
    instance = get_task(entry.name).sample(6, 1, 3)[0]
    for start, count in ((0, 3), (2, 5), (7, 100), (1000, 5)):
        answer = ask(
            "/api/trace",
            program={"name": entry.title},
            memory=instance.input,
            max_steps=instance.steps,
            start=start,
            count=count,
        )
        check_piece(answer, entry.program, instance.input, instance.steps, start, count)


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(ask, monkeypatch, seed):
    """Also where most of a run is skipped in machine code."""
    monkeypatch.setattr(running, "NEAR", 5)
    rng = Random(seed)
    program = random_program(rng, halting=0.05)
    memory = random_memory(rng, rng.randint(3, 12))
    for start in (0, 3, 17, 40):
        answer = ask(
            "/api/trace", program={"text": to_text(program)}, memory=memory, max_steps=45, start=start, count=10
        )
        check_piece(answer, program, memory, 45, start, 10)


def test_a_run_of_a_million_steps(ask):
    """Its last steps are reached in machine code, and are right."""
    program = {"text": COUNTER}
    memory = [0] * 1500
    end = ask("/api/trace", program=program, memory=memory, max_steps=1_000_000, start=999_990, count=2000)
    assert (end["total"], end["halted"], len(end["steps"])) == (1_000_000, False, 10)
    assert end["steps"][-1]["next"] == end["ending"]["registers"]
    before = ask("/api/trace", program=program, memory=memory, max_steps=999_990, start=999_990)
    assert before["ending"] == {"memory": end["memory"], "registers": end["registers"]}


def test_many_steps_of_a_program_with_states_are_refused_in_words(ask, monkeypatch):
    monkeypatch.setattr(running, "MOST_INTERPRETED", 100)
    text = "nram program 1\nregisters: r1\n\nstate 0:\nalways:\n    next 1\n\nstate 1:\nalways:\n    next 0\n"
    answer = ask("/api/trace", 400, program={"text": text}, memory=[0, 0, 0], max_steps=1000)
    assert "fewer steps" in answer["error"]
    found = ask("/api/trace", program={"text": text}, memory=[0, 0, 0])  # the default is not more than can be shown
    assert (found["total"], found["limit"]) == (100, 100)


def test_many_clients_at_once_get_their_own_answers(client):
    """Each steps through a run of its own; all answers are those of the interpreter."""
    program, wrong = load_program("merge@searched"), []

    def step_through(seed: int) -> None:
        instance = get_task("merge").sample(4, 1, seed)[0]
        for start in range(0, 8, 2):
            body = {"program": {"name": "merge@searched"}, "memory": instance.input, "max_steps": instance.steps}
            answer = client.post("/api/trace", json={**body, "start": start, "count": 2}).json()
            expected = interpret(program, instance.input, min(start, answer["total"]))
            if answer["memory"] != expected.memory or answer["registers"] != expected.registers:
                wrong.append((seed, start))

    threads = [threading.Thread(target=step_through, args=(seed,)) for seed in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"memory": [1, 2, 9]}, "values must lie in 0..2"),
        ({"memory": []}, "memory"),
        ({"memory": [1, -1, 2]}, "values"),
        ({"memory": [True, 1, 2]}, "memory"),
        ({"memory": [0] * (MOST_CELLS + 1)}, "entries"),
        ({"memory": "1 2 3"}, "a list"),
        ({"memory_size": 2}, "smaller"),
        ({"max_steps": -1}, "max_steps"),
        ({"max_steps": MOST_STEPS + 1}, "max_steps"),
        ({"count": 10**9}, "count"),
        ({"start": 1.5}, "start"),
        ({"program": {}}, "names no program"),
        ({"program": {"name": "nobody"}}, "choose one of the list"),
        ({"program": {"name": "/etc/passwd"}}, "choose one of the list"),
        ({"program": {"name": "../../pyproject.toml"}}, "choose one of the list"),
        ({"program": {"text": ""}}, "not a program"),
        ({"program": {"text": "x" * 300_000}}, "characters"),
        ({"surprise": 1}, "unknown"),
    ],
    ids=shown,
)
def test_bad_requests_are_refused_in_words(client, change, words):
    body = {"program": {"name": "access@searched"}, "memory": [0, 1, 2, 0], **change}
    answer = client.post("/api/trace", json=body)
    assert answer.status_code in (400, 404, 413)
    assert words in answer.json()["error"]
