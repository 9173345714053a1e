"""What held-out examples and answers decide when programs are trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nram.extensions import known_task
from nram.learning.by_training import WEIGHT, _Tried, configurations
from nram.learning.candidate import FOR_THE_INPUTS, Candidate, better
from nram.learning.job import LearningJob
from nram.learning.judgement import judgement_of
from nram.learning.parts import Parts, split
from nram.programs.files import program_from
from nram.programs.ir import Program
from nram.tasks.example_files import ExampleFile, read_examples

FIRST = "b = READ(1)\n WRITE(0, b)"
SECOND = "b = READ(2)\n WRITE(0, b)"


def program(otherwise: str) -> Program:
    """Copies cell 1 to cell 0 if cell 2 holds 0, and does something else otherwise."""
    rows = ["when r1 = 0:\n a = READ(2)\n r1, r2 := 1, a", f"else when r2 = 0:\n {FIRST}\n halt"]
    return program_from("\n".join(["nram program 1\nregisters: r1, r2\n", *rows, f"else:\n {otherwise}\n halt\n"]))


@pytest.fixture
def file(tmp_path: Path) -> ExampleFile:
    """Cell 1 goes to cell 0; in the three larger examples, which are held out, cell 2 does."""
    starts = [[0, a, b, *[0] * 6] for a, b in [*((a, 0) for a in range(1, 8)), (1, 2), (2, 3), (3, 4)]]
    rows = [{"input": start, "output": [start[2] or start[1], *start[1:]], "cells": [0]} for start in starts]
    (tmp_path / "larger.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return read_examples(tmp_path / "larger.jsonl")


@pytest.fixture
def parts(file) -> Parts:
    made = split(file.examples, 0, "")
    assert [one.size for one in made.held_out] == [2, 2, 2]
    return made


def tried(parts: Parts, raw: Program) -> _Tried:
    made = _Tried(parts)
    made.add_program(raw, ())
    return made


def test_a_form_that_held_out_examples_refuse_is_counted_before_the_other_form_is_tried(parts):
    ended = tried(parts, program(SECOND))
    (candidate,) = ended.fitting
    assert ended.refused == 1 and candidate.program.rows == 3
    assert dict(candidate.how)["simplified"] == "with the same meaning on every memory"
    assert tried(parts, program(FIRST)).refused == 1  # both forms are the same program


def test_held_out_examples_do_not_rank_programs(parts):
    ended = tried(parts, program("WRITE(0, 2)"))  # right on one of them
    assert (ended.refused, ended.fitting) == (2, [])
    assert ended.best is not None and dict(ended.best.how)["simplified"] == FOR_THE_INPUTS
    assert ended.best.judgement.held_out.right == 0
    generous = Parts(parts.training[:4], (*parts.training[4:], *parts.held_out))  # more are held out than not
    always = program_from("nram program 1\nregisters: r1\n\nalways:\n WRITE(0, 2)\n halt\n")
    larger = program_from(str(program(SECOND)).replace("READ(1)", "INC(1)"))  # right on nothing else
    one, other = (Candidate(found, judgement_of(found, generous), ()) for found in (always, larger))
    assert one.judgement.held_out.right < other.judgement.held_out.right
    assert one.judgement.training.right == other.judgement.training.right == 1
    assert better(other, one) == one  # the shorter one


def test_an_accepted_program_is_better_than_any_other(parts):
    first = program_from(f"nram program 1\nregisters: r1\n\nalways:\n {FIRST}\n halt\n")
    short, whole = (Candidate(one, judgement_of(one, parts), ()) for one in (first, program(SECOND)))
    assert short.judgement.training.exact and not short.judgement.exact and whole.judgement.exact
    assert better(short, whole) == better(whole, short) == whole


def test_answers_are_trained_on_and_keep_the_rows_that_they_lead_to(file, parts, tmp_path):
    answer, *rest = parts.held_out
    answered = replace(parts, held_out=tuple(rest), answers=(answer,))
    ended = tried(answered, program(SECOND))
    (candidate,) = ended.fitting
    assert ended.refused == 0 and dict(candidate.how)["simplified"] == FOR_THE_INPUTS
    config = next(configurations(LearningJob(file, tmp_path / "out"), answered))
    assert config.scored_weight == WEIGHT
    pools = known_task(config.task).examples
    assert pools is not None
    inputs = pools.given()[0].input.tolist()
    assert len(inputs) == len(parts.training) + 1 and answer.instance.input in inputs
