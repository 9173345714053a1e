"""Networks on the page: what their machine consists of, and the distributions of every step."""

from __future__ import annotations

import base64
import threading

import numpy as np
import pytest

from nram.errors import NramError
from nram.explorer import networks
from nram.explorer.answering import Refused
from nram.explorer.runs import Turns
from nram.pictures.soft_traces import record_soft_trace
from nram.programs.library import find_entry, zoo_weights
from nram.soft_machine import load_machine
from nram.training.member import machine_options, wiring_of
from nram.training.run_folder import RunFolder, load_weights

MEMORY = [3, 1, 4, 1, 5, 0, 0, 2]
STEPS = 7


@pytest.fixture
def weights():
    """The trained network of the zoo for access, as a file of a run has it."""
    entry = find_entry("access@trained")
    assert entry is not None
    with zoo_weights(entry) as path:
        return load_weights(path)


def heat(found, name, *shape):
    values = np.frombuffer(base64.b64decode(found[name]), np.uint8).reshape(shape)
    return values / 255


def test_distributions_are_those_of_a_soft_trace(ask, weights):
    config, controller, _ = weights
    wiring = wiring_of(config.machine)
    network = ask("/api/network", network={"name": "access"})
    found = ask("/api/soft", network={"name": "access"}, memory=MEMORY, max_steps=STEPS)
    expected = record_soft_trace(controller, wiring, MEMORY, STEPS, machine_options(config))
    size = len(MEMORY)
    assert (found["memory_size"], found["steps"], found["registers"]) == (size, STEPS, wiring.registers)
    half = 0.5 / 255 + 1e-6  # what rounding to a byte may change
    for name, whole in (("tape", expected.memory), ("register_heat", expected.registers)):
        assert np.abs(heat(found, name, *whole.shape) - whole).max() <= half
    assert np.allclose(found["willing"], expected.willing, atol=1e-5)
    assert np.allclose(found["finish"], expected.finish, atol=1e-5) and sum(found["finish"]) == pytest.approx(
        1, abs=1e-4
    )
    assert found["best"]["memory"] == expected.memory.argmax(-1).tolist()
    assert found["best"]["registers"] == expected.registers.argmax(-1).tolist()
    assert (network["wires"], network["values"]) == (list(wiring.wire_names), list(wiring.value_names))
    recorded = np.asarray(load_machine("access")(MEMORY, STEPS).wires)
    assert np.abs(heat(found, "wires", STEPS, wiring.wires, wiring.values) - recorded).max() <= half


def test_a_network_is_described(ask, weights):
    config = weights[0]
    found = ask("/api/network", network={"name": "access@trained"})
    assert found["task"] == "access" and found["title"] == "access@trained of the zoo"
    assert found["registers"] == config.machine.registers and found["modules"] == list(config.machine.modules)
    assert found["trained_up_to"] == config.trained_up_to and found["limit"] == str(config.first_limit)


def test_the_memory_may_be_padded(ask):
    found = ask("/api/soft", network={"name": "access"}, memory=[1, 2, 0], memory_size=8, max_steps=2)
    assert found["best"]["memory"][0] == [1, 2, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"network": {"name": "nope"}}, 404, "there is no network 'nope': choose one of access@trained"),
        ({"network": {"name": "<b>\n"}}, 404, "there is no network '<b>\\n'"),
        ({"network": {"name": "count@searched"}}, 404, "there is no network"),
        ({"network": {}}, 400, "names no network"),
        ({"network": {"run": "../copy"}}, 404, "there is no run"),
        ({"memory": [0] * 65}, 400, "memory has 65 entries: give 1 to 64"),
        ({"memory": []}, 400, "memory has 0 entries"),
        ({"memory": [1, 0]}, 400, "too small"),
        ({"memory": [9, 0, 0]}, 400, "9"),
        ({"memory": [-1, 0, 0]}, 400, "-1"),
        ({"memory": ["a", 0, 0]}, 400, "not a whole number"),
        ({"max_steps": 0}, 400, "max_steps is 0"),
        ({"max_steps": 257}, 400, "max_steps is 257"),
        ({"memory_size": 100}, 400, "memory_size is 100"),
    ],
)
def test_what_is_wrong_is_refused(ask, changed, status, words):
    body = {"network": {"name": "access"}, "memory": [1, 0, 0], "max_steps": 3, **changed}
    assert words in ask("/api/soft", status, **body)["error"]


def test_a_member_of_a_run_is_a_network_and_a_program(ask, weights, settings):
    config, controller, description = weights
    run = RunFolder.create(settings.folders[0] / "mine", config, ["train", "access"], "a CPU")
    assert "has no trained member yet" in ask("/api/network", 400, network={"run": "mine"})["error"]
    run.save_member(0, controller, description)
    of_zoo = ask("/api/soft", network={"name": "access"}, memory=MEMORY, max_steps=STEPS)
    assert ask("/api/soft", network={"run": "mine", "member": 0}, memory=MEMORY, max_steps=STEPS) == of_zoo
    assert ask("/api/network", network={"run": "mine"})["title"] == "member 0 of mine"
    program = ask("/api/program", program={"run": "mine", "member": 0})
    assert program["task"] == "access" and program["origin"] == "trained"
    given = ask("/api/sample", task="access", complexity=4, seed=1)
    trace = ask("/api/trace", program={"run": "mine"}, memory=given["input"], start=0, count=10)
    assert [trace["ending"]["memory"][cell] == given["output"][cell] for cell in given["cells"]] == [True]
    assert "has no member 3" in ask("/api/program", 400, program={"run": "mine", "member": 3})["error"]
    # The file is replaced by another one, so what was loaded before is not shown any more.
    file = run.path / "best" / "0.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\1")
    for path in ("/api/network", "/api/soft", "/api/program"):
        body = {"program": {"run": "mine"}} if path == "/api/program" else {"network": {"run": "mine"}}
        more = {"memory": MEMORY, "max_steps": STEPS} if path == "/api/soft" else {}
        assert "altered" in ask(path, 400, **body, **more)["error"]


def test_compiled_code_is_bounded(ask, monkeypatch):
    body = {"network": {"name": "access"}, "memory": [1, 2, 0], "max_steps": 2}
    networks._compiled.clear()
    before = ask("/api/soft", **body)
    monkeypatch.setattr(networks, "MOST_COMPILED", 1)
    ask("/api/soft", **{**body, "memory_size": 8})
    assert len(networks._compiled) == 1
    assert ask("/api/soft", **body) == before and len(networks._compiled) == 1


def test_requests_for_jax_wait_for_each_other_and_few_may_wait():
    turns, order = Turns(2), []
    inside, leave = threading.Event(), threading.Event()

    def first():
        with turns.taken():
            inside.set()
            leave.wait(30)
            order.append("first")

    def second():
        with turns.taken():
            order.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(30)
    threads[1].start()
    while turns._places._value:  # until the second waits too
        pass
    with pytest.raises(Refused, match="too many requests wait") as refused, turns.taken():
        pass
    assert refused.value.status == 429 and isinstance(refused.value, NramError)
    leave.set()
    for thread in threads:
        thread.join(30)
    assert order == ["first", "second"]
    with turns.taken():  # the places are free again
        pass
