"""Proofs for every length: right programs are proven, wrong ones never, and certificates cannot be altered."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nram
from nram.errors import NramError, UsageError
from nram.extensions import get_task
from nram.programs.files import read_program
from nram.programs.ir import Constant, Output, Program
from nram.programs.library import limit_for, load_program
from nram.programs.prove import check_certificate, deadline, prove, questions
from nram.programs.prove.certificate import made_certificate, read_certificate
from nram.programs.prove.changes import fewer_changes
from nram.programs.prove.invariant import Range
from nram.programs.prove.obligations import Problem
from nram.programs.prove.search import find_invariant
from nram.programs.prove.solvers import solvers
from nram.tasks.claim import SIZE, memory
from nram.terms import variable

HERE = Path(__file__).parent.parent
EXAMPLES = Path(nram.__file__).parent / "examples"
WRONG = sorted(path.stem for path in (HERE / "wrong").iterdir())
STOPPED = sorted(path.stem for path in (HERE / "stopped").iterdir())


def quiet(line: str) -> None:
    pass


def quick(names: list[str], *chosen: str) -> list[Any]:
    """All of them; those that are not chosen are slow."""
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.slow) for name in names]


def attempt(program: Program, seconds: float = 1.0):
    """Without the tests that come first: what the prover itself says."""
    assert program.task is not None
    task = get_task(program.task)
    problem = Problem(program, task, limit_for(program, task))
    return problem, find_invariant(problem, time.monotonic() + seconds, quiet)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    proof = prove("reverse@searched")
    assert proof.certificate is not None
    path = tmp_path_factory.mktemp("proof") / "reverse.json"
    proof.certificate.save(path)
    return path


# ---- what is proven


@pytest.mark.parametrize(
    "name", ["access@trained", "increment@searched", "copy@searched", "swap@trained", "listk@searched"]
)
def test_programs_of_the_zoo_are_proven_for_every_length(name):
    proof = prove(name)
    assert proof.proven and proof.failures == () and proof.counterexample is None
    assert proof.check is not None and list(proof.check.seconds) == ["z3", "cvc5"] == solvers()
    assert proof.certificate is not None
    assert proof.certificate.claim.startswith("For every n from ") and "it halts within T(n)" in proof.certificate.claim
    assert proof.to_json()["proven"] is True


def test_a_program_that_idles_is_right_from_its_limit_on():
    proof = prove(HERE / "idle" / "access.nram", "access")
    assert proof.certificate is not None
    assert "right whenever it is stopped after T(n) = " in proof.certificate.claim
    assert "halts" not in proof.certificate.claim


def test_a_task_of_ones_own_with_a_reference_loop():
    proof = prove(EXAMPLES / "programs" / "maximum.nram", str(EXAMPLES / "tasks" / "maximum.py"))
    assert proof.certificate is not None
    assert proof.certificate.claim.endswith("It changes no cells but 0.")


def test_a_program_that_is_wrong_comes_with_its_input():
    program = read_program(HERE / "wrong" / "fifth_element.nram")
    proof = prove(program)
    assert not proof.proven and proof.certificate is None
    assert proof.counterexample is not None and proof.counterexample.wrong_cells


def test_a_task_without_a_claim_is_refused():
    task = replace(get_task("copy"), claim=None)
    with pytest.raises(NramError, match="the task copy does not say what it asks for at every length"):
        prove("copy@searched", task)


class Clock:
    """Time that passes by itself: a second each time somebody looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("name", ["copy@searched", "merge@searched"])
@pytest.mark.parametrize("budget", [0, 3, 30, 90])
def test_a_search_ends_soon_after_its_time_is_over(name, budget, monkeypatch):
    """After the first look that comes too late there are only a few more, wherever it was."""
    clock = Clock()
    for module in (deadline, questions):
        monkeypatch.setattr(module, "time", clock)
    program = load_program(name)
    task = get_task(program.task or "")
    found = find_invariant(Problem(program, task, limit_for(program, task)), budget, quiet)
    assert clock.now <= budget + 10
    if budget < 80:
        assert found.invariant is None and found.failures == ("the whole claim: no guess was finished in the time",)


def test_cells_that_the_program_may_change_are_not_listed_twice(certificate):
    found = read_certificate(certificate)
    problem, n = Problem(found.program, get_task("reverse"), found.limit), variable("n")
    more = (Range(n + 2, n + 2), *found.invariant.changes, Range(memory(0) + 1, memory(0) + 1))
    again = fewer_changes(problem, replace(found.invariant, changes=more), time.monotonic() + 60)
    assert again == found.invariant
    assert fewer_changes(problem, again, time.monotonic() + 60) == again
    wide = (Range(memory(0) + 1, SIZE - 1), Range(memory(0), memory(0)))
    assert fewer_changes(problem, replace(found.invariant, changes=wide), time.monotonic() + 60) == found.invariant


# ---- what is never proven


@pytest.mark.parametrize("name", quick(WRONG, "tie", "too_early", "third_place"))
def test_a_wrong_program_is_never_proven(name):
    _, found = attempt(read_program(HERE / "wrong" / f"{name}.nram"))
    assert found.failures


@pytest.mark.parametrize("name", quick(STOPPED, "access"))
def test_a_program_that_must_be_stopped_in_time_is_never_proven(name):
    program = read_program(HERE / "stopped" / f"{name}.nram")
    _, found = attempt(replace(program, task=program.task or "copy"))
    assert found.failures


def changed(program: Program, row: int, operation: int, argument: int, value: Any) -> Program:
    """The program with another argument of one operation."""
    rows = list(program.states[0])
    operations = list(rows[row].operations)
    arguments = list(operations[operation].arguments)
    arguments[argument] = value
    operations[operation] = replace(operations[operation], arguments=tuple(arguments))
    rows[row] = replace(rows[row], operations=tuple(operations))
    return replace(program, states=(tuple(rows),), verified=())


def test_an_invariant_of_a_right_program_does_not_prove_a_mutant(certificate):
    found = read_certificate(certificate)
    task = get_task("reverse")
    program = load_program("reverse@searched")
    # WRITE(o1, o2) becomes WRITE(o1, 1): wrong, and the invariant that is right for the other program is not enough.
    mutant = changed(program, 2, 2, 1, Constant(1))
    assert mutant.fingerprint != program.fingerprint
    check = check_certificate(made_certificate(Problem(mutant, task, found.limit), found.invariant))
    assert check.problem is not None and check.problem.startswith("z3 does not prove the obligation 'place ")
    same = changed(program, 2, 2, 1, Output(1))
    assert same.fingerprint == program.fingerprint


# ---- certificates


def test_a_certificate_is_read_again_and_right(certificate):
    check = check_certificate(certificate, program="reverse@searched")
    assert check.right and check.to_json()["obligations"] == len(check.certificate.obligations)
    found = read_certificate(certificate)
    again = json.loads(certificate.read_text())
    assert json.loads(json.dumps(found.to_json())) == again


def test_a_certificate_of_another_program_is_refused(certificate):
    problem = check_certificate(certificate, program="copy@searched").problem
    assert problem is not None and problem.startswith("it is of another program than copy, ")
    with pytest.raises(UsageError, match="about the task reverse, not about copy"):
        check_certificate(certificate, task="copy")


def without_an_obligation(form: dict[str, Any]) -> None:
    del form["obligations"][3]


def with_an_obligation_twice(form: dict[str, Any]) -> None:
    form["obligations"].append(form["obligations"][0])


def with_another_obligation(form: dict[str, Any]) -> None:
    form["obligations"][2]["smt2"] = form["obligations"][2]["smt2"].replace(
        "(check-sat)", "(assert false)\n(check-sat)"
    )


def with_a_fact_less(form: dict[str, Any]) -> None:
    form["places"][1]["facts"].pop()


def with_a_place_less(form: dict[str, Any]) -> None:
    form["places"].pop()


def with_false_as_a_fact(form: dict[str, Any]) -> None:
    for place in form["places"]:
        place["facts"].append("1 <= 0")


def with_an_unknown_name(form: dict[str, Any]) -> None:
    form["places"][0]["facts"].append("secret <= 3")


def with_a_function_of_the_memory_now(form: dict[str, Any]) -> None:
    form["arrays"][0]["value"] = "written2(k)"


def with_another_claim(form: dict[str, Any]) -> None:
    form["claim"] = form["claim"].replace("2n+4", "n+1")


def with_a_shorter_limit(form: dict[str, Any]) -> None:
    form["limit"] = "n+1"


def with_fewer_changes(form: dict[str, Any]) -> None:
    form["changes"].pop()


def with_a_row_that_is_not_there(form: dict[str, Any]) -> None:
    form["places"][0]["row"] = [0, 9]


ALTERED = {
    without_an_obligation: "is missing",
    with_an_obligation_twice: "an obligation too many",
    with_another_obligation: "is not the one that the program, the task and the invariant lead to",
    with_a_fact_less: "is not the one that",
    with_a_place_less: "means nothing there",
    with_false_as_a_fact: "is not the one that",
    with_an_unknown_name: "the name 'secret' means nothing there",
    with_a_function_of_the_memory_now: "the function 'written2' means nothing there",
    with_another_claim: "the claim in words is not the one that is proven",
    with_a_shorter_limit: "is not the one that",
    with_fewer_changes: "is not the one that|the claim in words",
    with_a_row_that_is_not_there: "the program has no row 9 in state 0",
}


@pytest.mark.parametrize("alter", ALTERED, ids=lambda alter: alter.__name__)
def test_an_altered_certificate_is_refused(certificate, tmp_path, alter):
    form = json.loads(certificate.read_text())
    alter(form)
    (tmp_path / "altered.json").write_text(json.dumps(form))
    check = check_certificate(tmp_path / "altered.json")
    assert check.problem is not None and re.search(ALTERED[alter], check.problem)


@pytest.mark.parametrize("alter", [with_false_as_a_fact, with_a_shorter_limit, with_fewer_changes])
def test_an_altered_invariant_with_its_own_obligations_is_not_proven(certificate, tmp_path, alter):
    """Somebody who changes the invariant can also make the obligations that belong to it: the solvers refuse them."""
    form = json.loads(certificate.read_text())
    alter(form)
    (tmp_path / "altered.json").write_text(json.dumps(form))
    found = read_certificate(tmp_path / "altered.json")
    made = made_certificate(Problem(found.program, get_task("reverse"), found.limit), found.invariant)
    check = check_certificate(made)
    assert check.problem is not None and "does not prove the obligation" in check.problem


def test_an_array_cannot_grow_by_itself(certificate):
    """A place that writes nothing is listed as a writer: the memory of the invariant would change without a write."""
    found = read_certificate(certificate)
    program, invariant = found.program, found.invariant
    silent = [i for i, place in enumerate(invariant.places) if not program.states[0][place.row[1]].operations[2:]]
    (array,) = invariant.arrays
    grown = replace(array, writers=(*array.writers, (silent[0], 0)))
    problem = Problem(program, get_task("reverse"), found.limit)
    check = check_certificate(made_certificate(problem, replace(invariant, arrays=(grown,))))
    assert check.problem is not None and f"'place {silent[0] + 1}: memory'" in check.problem


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fingerprint": "0" * 16}, "the fingerprints differ"),
        ({"limit": "n^2"}, "is not a step limit"),
        ({"places": []}, "places"),
        ({"cells": ["n = 1"]}, "is not a number"),
        ({"cells": ["n +"]}, "this is not a term"),
        ({"program": "nothing"}, "the program in"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_broken_certificate_is_refused(certificate, tmp_path, change, message):
    form = json.loads(certificate.read_text()) | change
    (tmp_path / "broken.json").write_text(json.dumps(form))
    with pytest.raises(NramError, match=message):
        read_certificate(tmp_path / "broken.json")


def test_a_certificate_of_an_unknown_task_executes_nothing(certificate, tmp_path):
    task = tmp_path / "task.py"
    task.write_text("raise SystemExit('executed')")
    form = json.loads(certificate.read_text()) | {"task": str(task)}
    (tmp_path / "c.json").write_text(json.dumps(form))
    with pytest.raises(UsageError, match="which is not known here"):
        check_certificate(tmp_path / "c.json")
