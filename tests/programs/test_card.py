"""The card of a program: how it came to be."""

from __future__ import annotations

import re

from nram.programs.card import LONGEST_VALUE, card
from nram.programs.ir import Program, Register, Row

PROGRAM = Program(("r1",), ((Row((None,), (), (Register(0),), halt=True),),))


def test_a_card_has_command_seed_details_versions_and_date_in_this_order():
    made = card(["search", "copy", "--out", "x.nram", "--seed", "3", "--json"], 3, [("structure", "R3 x1")])
    assert [key for key, _ in made] == ["command", "seed", "structure", "versions", "date"]
    values = dict(made)
    assert (values["command"], values["seed"]) == ("nram search copy --seed 3", "3")
    assert re.search(r"\bnram \d+\.\d+", values["versions"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", values["date"])


def test_a_card_repeats_what_a_run_recorded():
    made = dict(card(["train", "copy"], 0, [], device="2 x GPU", versions={"nram": "7", "jax": "8"}, date="long ago"))
    assert (made["device"], made["versions"], made["date"]) == ("2 x GPU", "nram 7, jax 8", "long ago")


def test_a_program_accepts_every_card():
    strange = card(["learn", "new\nline.jsonl", "--set", "x" * 5000], 0, [("examples", "tab\t.csv")], versions={})
    program = Program(PROGRAM.registers, PROGRAM.states, made=strange)
    values = dict(program.made)
    assert len(values["command"]) == LONGEST_VALUE and values["command"].endswith("...")
    assert values["examples"] == r"tab\t.csv" and values["versions"] == "unknown"
