"""Certificates that look right and are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import nram
from nram.extensions import get_task
from nram.limits import StepLimit
from nram.programs.library import load_program
from nram.programs.prove import check_certificate, load_certificate, same_table
from nram.programs.prove.certificate import invariant_in_words, made_certificate
from nram.programs.prove.invariant import Array, History, Invariant, Range, first_place
from nram.programs.prove.obligations import Obligation, Problem
from nram.programs.prove.reading import term_from_text as term
from nram.programs.prove.solvers import answer, solvers
from nram.programs.text import from_text

JUMP = """
from nram.modules import Module

def integer(size, x):
    return x + size if size == 1000 else x  # it leaves 0..M-1, at a size that no check of modules tries

def emit(builder, x):
    return builder.choose(builder.equal(builder.size, builder.number(1000)), builder.add(x, builder.size), x)

MODULE = Module("JUMP", ("x",), integer, emit=emit, meaning="x")
"""

ACCESS = """nram program 1
name: access
task: access
limit: 6
registers: r2

when r2 = 0:
    o1 = READ(0)
    o2 = INC(o1)
    o3 = JUMP(o2)
    r2 := o3
else:
    o1 = READ(r2)
    WRITE(0, o1)
    halt
"""


def test_a_module_that_leaves_the_memory_at_one_size_proves_nothing_there(tmp_path: Path):
    """If its value were taken as it is, the facts would contradict one another at this size, and prove everything."""
    (tmp_path / "jump.py").write_text(JUMP)
    nram.get_module(tmp_path / "jump.py")
    problem = Problem(from_text(ACCESS), get_task("access"), StepLimit(0, 6))

    def checked(value: str):
        history, first = History(1), first_place((0, 0))
        facts = (["r2 = 0", "visits1 = 0", "visits2 = 0"], [f"{value} = r2", "visits1 = 1", "visits2 = 0"])
        terms = tuple(tuple(map(term, some)) for some in facts)
        places, changes = (first, first.then((0, 1), history)), (Range(term("0"), term("0")),)
        return check_certificate(made_certificate(problem, Invariant(history, True, places, terms, (), (), changes)))

    wrong = checked("(if M = 1000 then memory(0) + 1 + M else memory(0) + 1)")
    assert wrong.problem is not None and "does not prove the obligation" in wrong.problem
    wrong = checked("(if M = 1000 then 0 else memory(0) + 1)")  # true, and not enough: the program does not halt then
    assert wrong.problem is not None and "does not prove the obligation" in wrong.problem


def test_a_certificate_about_another_limit_is_not_one_of_the_program():
    certificate, program = load_certificate("swap@searched")
    assert program is not None
    task = get_task("swap")
    slow = made_certificate(Problem(certificate.program, task, StepLimit(500, 900)), certificate.invariant)
    assert check_certificate(slow).right  # what it says is true
    refused = check_certificate(slow, program="swap@searched")
    assert refused.problem == "it is about T(n) = 500n+900, not 8"


def test_programs_are_compared_row_by_row(monkeypatch):
    one, other = load_program("copy@searched"), load_program("reverse@searched")
    assert same_table(one, replace(one, verified=(), name="mine"))
    monkeypatch.setattr(type(one), "fingerprint", property(lambda self: "0" * 16))
    assert not same_table(one, other)


def test_of_arrays_that_overlap_the_later_one_is_told_first():
    certificate, _ = load_certificate("copy@searched")
    (array,) = certificate.invariant.arrays
    later = replace(array, value=term("7"))
    both = replace(certificate.invariant, arrays=(array, later))
    assert isinstance(later, Array)
    words = [line for line in invariant_in_words(both) if "k holds" in line]
    assert "holds 7" in words[0] and "holds 7" not in words[1]


def test_products_of_variables_are_told_to_the_solvers():
    square = Obligation("square", (), (term("a = b"),), (term("(a times a) = (b times b)"),))
    assert "(set-logic QF_UFNIA)" in square.to_smt()
    assert {answer(name, square.to_smt()) for name in solvers()} == {"unsat"}


def test_what_a_solver_cannot_read_is_no_proof():
    for name in solvers():
        assert answer(name, "(set-logic QF_UFLIA)\n(assert (= y 1))\n(check-sat)\n").startswith("error: ")
