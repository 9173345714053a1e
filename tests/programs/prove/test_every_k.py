"""Facts about every k: they are proven and used like others, and no more can be proven with them than is true."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nram.extensions import get_task
from nram.programs.ir import Program
from nram.programs.library import load_program
from nram.programs.prove import Check, check_certificate, prove
from nram.programs.prove.certificate import Certificate, made_certificate, read_certificate
from nram.programs.prove.obligations import Problem
from nram.programs.prove.reading import term_from_text

GUARD = "(not ((0 <= k and k + 1 <= visits4)) or "


@pytest.fixture(scope="module")
def reverse() -> Certificate:
    found = prove("reverse@searched").certificate
    assert found is not None
    return found


def checked(certificate: Certificate, program: Program | None = None, **changes: Any) -> Check:
    """The invariant with changes, and the obligations that belong to it."""
    problem = Problem(program or certificate.program, get_task(certificate.task), certificate.limit)
    return check_certificate(made_certificate(problem, replace(certificate.invariant, **changes)))


def with_fact(certificate: Certificate, place: int, fact: str) -> Check:
    facts = list(certificate.invariant.facts)
    facts[place] = (*facts[place], term_from_text(fact))
    return checked(certificate, facts=tuple(facts))


def test_the_loop_of_reverse_is_its_fourth_place(reverse):
    (array,) = reverse.invariant.arrays
    assert array.writers == ((3, 2),)


@pytest.mark.parametrize(
    "fact",
    [
        GUARD + "1 <= written1(k))",  # what was written is positive, as all elements are
        GUARD + "written1(k) = memory(n - k - 1))",
        "(not ((1 <= k and k <= n)) or 1 <= memory(k))",
        "0 <= written1(k)",
    ],
)
def test_a_fact_about_every_k_that_holds_is_proven(reverse, fact):
    assert with_fact(reverse, 3, fact).right


@pytest.mark.parametrize(
    "fact",
    [
        GUARD + "2 <= written1(k))",  # a value may be 1
        "(not ((0 <= k and k <= visits4)) or 1 <= written1(k))",  # one that is not written yet
        "(not (k + 1 <= visits4) or 1 <= written1(k))",  # nothing is written at k < 0
        GUARD + "written1(k) = memory(n - k))",
        "1 <= memory(k)",
        "0 <= k",
        "k = 3",
    ],
)
def test_a_fact_about_every_k_that_does_not_hold_is_refused(reverse, fact):
    problem = with_fact(reverse, 3, fact).problem
    assert problem is not None and "z3 does not prove the obligation" in problem


def test_only_arrays_that_are_listed_have_values(reverse):
    assert with_fact(reverse, 3, "0 <= written2(k)").problem == "the function 'written2' means nothing there"
    assert with_fact(reverse, 3, "0 <= written(k)").problem == "the function 'written' means nothing there"


def test_k_means_nothing_in_an_address(reverse):
    (cell,) = reverse.invariant.cells
    problem = checked(reverse, cells=(replace(cell, address=term_from_text("k")),)).problem
    assert problem is not None and "means nothing there" in problem


# ---- a program that needs them


@pytest.fixture(scope="module")
def permutation(tmp_path_factory) -> Path:
    found = prove("permutation@trained").certificate
    assert found is not None
    path = tmp_path_factory.mktemp("proof") / "permutation.json"
    found.save(path)
    return path


@pytest.mark.slow
def test_permutation_goes_on_after_its_work_and_is_proven(permutation):
    check = check_certificate(permutation, program="permutation@trained")
    assert check.right and list(check.seconds) == ["z3", "cvc5"]


@pytest.mark.slow
def test_without_facts_about_every_k_it_is_not_proven(permutation):
    found = read_certificate(permutation)
    facts = tuple(tuple(one for one in own if "written1(k)" not in repr(one)) for own in found.invariant.facts)
    assert facts != found.invariant.facts
    problem = checked(found, facts=facts).problem
    assert problem is not None and "never row 8" in problem


@pytest.mark.slow
@pytest.mark.parametrize("own_obligations", [False, True])
def test_an_altered_fact_about_every_k_is_refused(permutation, tmp_path, own_obligations):
    text = json.dumps(json.loads(permutation.read_text())["places"])
    changed = text.replace("1 <= written1(k)", "2 <= written1(k)")
    assert changed != text
    form = json.loads(permutation.read_text()) | {"places": json.loads(changed)}
    (tmp_path / "altered.json").write_text(json.dumps(form))
    altered = read_certificate(tmp_path / "altered.json")
    problem = (checked(altered) if own_obligations else check_certificate(altered)).problem
    expected = "z3 does not prove the obligation" if own_obligations else "is not the one that the program"
    assert problem is not None and expected in problem


@pytest.mark.slow
def test_a_loop_that_goes_on_after_a_zero_is_not_proven_by_it(permutation):
    """Without `r2 > 0` in its condition, the loop goes on after it has written 0."""
    found, program = read_certificate(permutation), load_program("permutation@trained")
    rows = list(program.states[0])
    when = list(rows[4].when)
    assert when[0] is False
    when[0] = None
    rows[4] = replace(rows[4], when=tuple(when))
    problem = checked(found, replace(program, states=(tuple(rows),), verified=())).problem
    assert problem is not None and "does not prove the obligation 'place 3: to place 3'" in problem
