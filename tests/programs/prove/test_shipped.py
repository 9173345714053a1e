"""The certificates that ship with the zoo, and the level that they give its programs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import nram
from nram.errors import NramError, UsageError
from nram.extensions import get_task
from nram.limits import StepLimit
from nram.programs.files import from_json, to_json
from nram.programs.ir import Constant, Evidence, ProgramError
from nram.programs.library import ZooEntry, find_entry, load_program, zoo_entries
from nram.programs.prove import check_certificate, load_certificate, shipped, shipped_certificate
from nram.programs.text import from_text, to_text

PROVEN = [entry for entry in zoo_entries() if entry.has_certificate]
LONG = ("merge@trained", "merge@searched", "walkbst@trained")  # the largest: the solvers need 6 s and more
RIGHT = Path(__file__).parents[1] / "right"


def test_all_programs_of_the_zoo_are_proven_for_every_length():
    assert len(PROVEN) == len(zoo_entries()) == 20


@pytest.mark.parametrize(
    "entry",
    [pytest.param(one, id=one.title, marks=[pytest.mark.slow] if one.title in LONG else []) for one in PROVEN],
)
def test_a_certificate_that_ships_is_right_for_the_program_that_ships(entry: ZooEntry):
    check = check_certificate(entry.title)
    assert check.problem is None and list(check.seconds) == ["z3", "cvc5"]
    certificate = check.certificate
    assert certificate.program == replace(entry.program, verified=())
    assert (certificate.task, certificate.limit) == (entry.name, entry.program.limit)
    (card,) = [evidence for evidence in entry.program.verified if evidence.method == "inductive"]
    assert (card.task, card.halts) == (entry.name, certificate.invariant.halts)


def test_a_certificate_of_the_zoo_is_used_for_the_same_table_task_and_limit_alone():
    program, task = load_program("copy@searched"), get_task("copy")
    assert program.limit is not None
    found = shipped_certificate(replace(program, name="mine", verified=()), task, program.limit)
    assert found == load_certificate("copy@searched")[0]
    assert shipped_certificate(program, get_task("reverse"), program.limit) is None
    assert shipped_certificate(program, task, StepLimit(9, 9)) is None
    other = load_program(RIGHT / "copy.nram")  # its table is in no zoo
    assert shipped_certificate(other, task, program.limit) is None


def test_a_verification_ends_with_a_proof_for_every_length():
    lines: list[str] = []
    report = nram.verify("swap@searched", exhaustive_up_to=2, symbolic_up_to=2, largest=20, progress=lines.append)
    first, *others = report.findings
    assert (first.method, first.complexity, first.extra_memory) == ("inductive", (2, None), None)
    assert (first.proven, first.limits, first.halts) == (True, ("every",), True)
    assert "inductive" not in {finding.method for finding in others}
    assert lines[-1].startswith("inductive: ")
    assert ": proven for every length, tested on " in repr(report)
    assert "\nproven for every length\n" in str(report)
    assert report.recorded().proven_for_every_length


def test_a_proof_that_is_not_found_is_told_as_such():
    slow = replace(load_program("copy@searched"), limit=StepLimit(9, 9))  # the zoo has no certificate with this limit
    report = nram.verify(slow, exhaustive_up_to=0, symbolic_up_to=0, largest=0, budget=1e-6)
    assert report.verdict == "nothing shown" and not report.proven_for_every_length
    (why,) = [skip.why for skip in report.skipped if skip.method == "inductive"]
    assert re.match(r"no proof was found in \d+ s, which says nothing about the program", why)


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (replace(get_task("copy"), claim=None), "the task copy does not say what it asks for at every length"),
        ("reverse", "the program is wrong already"),
    ],
)
def test_why_no_proof_is_tried(task, why):
    report = nram.verify("copy@searched", task, exhaustive_up_to=2, symbolic_up_to=0, largest=0)
    (skip,) = [skip for skip in report.skipped if skip.method == "inductive"]
    assert skip.why.startswith(why) and skip.complexity == (1, None)


def test_a_program_that_does_harm_after_its_limit_is_not_tried():
    program = Path(__file__).parent.parent / "stopped" / "access.nram"
    report = nram.verify(program, exhaustive_up_to=2, symbolic_up_to=0, largest=0)
    (skip,) = [skip for skip in report.skipped if skip.method == "inductive"]
    assert report.harmful and skip.why == "it must be stopped at T(n)"


def test_a_certificate_that_is_given_must_be_about_the_same(monkeypatch):
    for words, hint in (("reverse@searched", "about another program"), ("copy@trained", "about another program")):
        with pytest.raises(UsageError, match=hint):
            nram.verify("copy@searched", certificate=words)
    slow = replace(load_program("copy@searched"), limit=StepLimit(9, 9))
    with pytest.raises(UsageError, match=r"about T\(n\) = 2n\+4, not 9n\+9"):
        nram.verify(slow, certificate="copy@searched")
    entry = find_entry("merge")
    assert entry is not None and entry.has_certificate
    monkeypatch.setattr(shipped, "find_entry", lambda name: replace(entry, has_certificate=False))
    with pytest.raises(UsageError, match="merge@trained has no certificate"):
        check_certificate("merge")


# ---- evidence


def test_evidence_for_every_n_is_written_and_read_again():
    program = load_program("swap@searched")
    assert "verified: inductive task=swap n=2.. M=every limits=every halts=yes program=" in to_text(program)
    assert from_text(to_text(program)) == program
    value = to_json(program)
    assert value["verified"][0]["complexity"] == [2, None]
    assert from_json(value) == program


def test_a_program_whose_table_changes_loses_the_proof():
    program = load_program("swap@searched")
    first, *rest = program.states[0]
    changed = ((replace(first, registers=(Constant(0),) * 3), *rest),)
    with pytest.raises(ProgramError, match="its evidence belongs to another program"):
        replace(program, states=changed)
    assert not replace(program, states=changed, verified=()).proven_for_every_length


EVERYTHING = Evidence("inductive", "swap", (2, None), None, None, ("every",), True, "")


@pytest.mark.parametrize(
    "evidence",
    [
        replace(EVERYTHING, complexity=(2, 9)),
        replace(EVERYTHING, complexity=(-1, None)),
        replace(EVERYTHING, extra_memory=(0, 2)),
        replace(EVERYTHING, instances=5),
        replace(EVERYTHING, limits=("T",)),
    ],
)
def test_an_inductive_proof_of_less_than_everything_is_no_evidence(evidence):
    program = load_program("swap@searched")
    entry = replace(evidence, fingerprint=program.fingerprint)
    with pytest.raises(ProgramError, match="an inductive proof is one for every n, every M and every limit"):
        replace(program, verified=(entry,))
    assert replace(program, verified=(replace(EVERYTHING, fingerprint=program.fingerprint),)).proven_for_every_length


def test_only_an_inductive_proof_is_for_every_n():
    program = load_program("swap@searched")
    evidence = replace(EVERYTHING, method="symbolic", fingerprint=program.fingerprint)
    with pytest.raises(NramError, match="give the smallest and the largest"):
        replace(program, verified=(evidence,))
