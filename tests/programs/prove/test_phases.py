"""merge@trained goes on after its work is done: most of its facts are about the phase before that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nram.extensions import get_task
from nram.programs.ir import Operation
from nram.programs.library import load_program
from nram.programs.prove import Check, check_certificate, prove
from nram.programs.prove.certificate import Certificate, made_certificate
from nram.programs.prove.compared import read_registers
from nram.programs.prove.invariant import Invariant
from nram.programs.prove.obligations import Problem
from nram.terms import Term

PHASE = "+ 1 <= n - 1"  # so many values are written that the next one belongs to the output


def test_registers_from_which_addresses_come():
    names = {repr(name) for name in read_registers(load_program("merge@trained"))}
    assert names == {"r1", "r2", "r4", "r5"}  # r3 is only written to, r6 is only compared with 0


@pytest.fixture(scope="module")
def merge() -> Certificate:
    found = prove("merge@trained").certificate
    assert found is not None
    return found


def checked(merge: Certificate, invariant: Invariant) -> Check:
    return check_certificate(made_certificate(Problem(merge.program, get_task("merge"), merge.limit), invariant))


def in_phase(fact: Term) -> bool:
    return fact.op == "or" and PHASE in repr(fact.parts[0])


@pytest.mark.slow
def test_without_the_facts_about_the_phase_it_is_not_proven(merge):
    facts = tuple(tuple(fact for fact in own if not in_phase(fact)) for own in merge.invariant.facts)
    assert facts != merge.invariant.facts
    assert not checked(merge, replace(merge.invariant, facts=facts)).right


@pytest.mark.slow
def test_facts_about_the_phase_do_not_hold_after_it(merge):
    facts = tuple(tuple(fact.parts[-1] if in_phase(fact) else fact for fact in own) for own in merge.invariant.facts)
    problem = checked(merge, replace(merge.invariant, facts=facts)).problem
    assert problem is not None and "does not prove the obligation" in problem


@pytest.mark.slow
@pytest.mark.parametrize("row", [3, 4])
def test_a_program_that_takes_the_larger_value_is_not_proven(merge, row):
    rows = list(merge.program.states[0])
    operations = [Operation("MAX", one.arguments) if one.module == "MIN" else one for one in rows[row].operations]
    rows[row] = replace(rows[row], operations=tuple(operations))
    mutant = replace(merge.program, states=(tuple(rows),), verified=())
    assert mutant.fingerprint != merge.program.fingerprint
    made = made_certificate(Problem(mutant, get_task("merge"), merge.limit), merge.invariant)
    problem = check_certificate(made).problem
    assert problem is not None and "does not prove the obligation" in problem
