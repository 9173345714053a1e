"""What the page is told about programs, and the files that it offers."""

from __future__ import annotations

import re

import pytest

from nram.explorer import about
from nram.explorer.about import program_info
from nram.explorer.settings import MOST_CELLS
from nram.extensions import get_task
from nram.modules import MODULES
from nram.pictures.circuits import MAX_OPERATIONS, program_svg
from nram.pictures.shapes import STYLES, style_sheet
from nram.programs.files import program_from
from nram.programs.ir import Operation, Program, Register, Row
from nram.programs.library import load_program, zoo_entries
from nram.programs.text import to_text

HOSTILE = '<img src=x onerror="alert(1)">'


def test_the_start_lists_tasks_and_programs(ask):
    found = ask("/api/start")
    assert {one["name"] for one in found["programs"]} == {entry.title for entry in zoo_entries()}
    assert {one["name"] for one in found["tasks"]} >= {"copy", "merge"}
    assert {one["name"] for one in found["programs"] if one["network"]} == {
        entry.title for entry in zoo_entries() if entry.has_weights
    }


@pytest.mark.parametrize("entry", zoo_entries(), ids=lambda entry: entry.title)
def test_rows_lie_where_the_text_has_them(ask, entry):
    found = ask("/api/program", program={"name": entry.title})
    lines = found["text"].split("\n")
    assert found["title"] == entry.title and found["fingerprint"] == entry.program.fingerprint
    assert len(found["rows"]) == entry.program.rows
    for row in found["rows"]:
        first = row["first_line"] - 1
        assert lines[first : first + len(row["lines"])] == row["lines"]
        for operation in row["operations"]:
            assert operation["words"] in row["lines"][operation["line"]]


@pytest.mark.parametrize("text", ["state", "states"])
def test_rows_of_several_states_lie_where_the_text_has_them(ask, text):
    states = tuple((Row((True,), (), (Register(0),)), Row((None,), (), (Register(0),), next_state=1)) for _ in range(2))
    program = to_text(Program(("r1",), states if text == "states" else states[:1] + states[1:]))
    found = ask("/api/program", program={"text": program})
    lines = found["text"].split("\n")
    assert [lines[row["first_line"] - 1] for row in found["rows"]] == [row["lines"][0] for row in found["rows"]]
    assert [(row["state"], row["row"]) for row in found["rows"]] == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize("entry", zoo_entries(), ids=lambda entry: entry.title)
def test_circuits_have_a_box_for_every_part_and_only_known_looks(entry):
    """The page lays nothing out: boxes, wires and looks are those of the project's own pictures."""
    rules = style_sheet()
    for row in program_info(entry.program)["rows"]:
        scene = row["circuit"]
        operations = entry.program.states[row["state"]][row["row"]].operations
        for part in scene["parts"]:
            assert part["x"] >= 0 and part["x"] + part["width"] <= scene["width"]
            assert part["y"] >= 0 and part["y"] + part["height"] <= scene["height"]
            if part["kind"] == "module":
                assert operations[part["index"]].module == part["name"]
            else:
                assert entry.program.registers[part["index"]] == part["name"]
        groups = {shape["group"] for shape in scene["shapes"] if "group" in shape}
        assert groups <= set(range(len(scene["parts"])))
        kinds = {shape["kind"] for shape in scene["shapes"]}
        assert kinds <= set(STYLES) and all(f".nram-picture .{kind.replace(' ', '.')}{{" in rules for kind in kinds)


def test_a_circuit_that_is_too_large_is_left_out(ask):
    row = Row((None,), (Operation("INC", (Register(0),)),) * (MAX_OPERATIONS + 1), (Register(0),))
    wide = Row(
        (True,),
        tuple(Operation("WRITE", (Register(0), Register(0))) for _ in range(MAX_OPERATIONS + 1)),
        (Register(0),),
    )
    found = ask("/api/program", program={"text": to_text(Program(("r1",), ((wide, row),)))})
    assert [one["circuit"] is None for one in found["rows"]] == [True, False]


def test_a_program_that_takes_long_to_draw_has_its_first_circuits(ask, monkeypatch):
    monkeypatch.setattr(about, "MOST_DRAWN", 20)
    row = Row((None,), (Operation("INC", (Register(0),)),) * 3, (Register(0),))
    rows = tuple((row,) for _ in range(4))
    found = ask("/api/program", program={"text": to_text(Program(("r1",), rows, name="long"))})
    assert [one["circuit"] is None for one in found["rows"]] == [False, False, True, True]


def test_problems_of_a_text_have_their_lines(ask):
    text = "nram program 1\nregisters: r1\n\nalways:\n    o1 = REED(r1)\n    r2 := 1\n"
    found = ask("/api/program", 400, program={"text": text})
    assert [line for line, _ in found["lines"]] == [5, 6]
    assert "REED" in found["lines"][0][1]


def test_names_stay_text(ask):
    """Markup in names is passed on as it is; the page never makes elements of it."""
    text = f"nram program 1\nname: {HOSTILE}\nregisters: r1\n\nalways:\n    halt\n"
    found = ask("/api/program", program={"text": text})
    assert found["name"] == HOSTILE
    svg = ask("/api/download", program={"text": text}, form="svg")["content"]
    assert HOSTILE not in svg and "&lt;img" in svg


@pytest.mark.parametrize("form", ["text", "json", "svg", "c", "python"])
def test_downloads(ask, form):
    found = ask("/api/download", program={"name": "reverse@searched"}, form=form)
    program = load_program("reverse@searched")
    assert re.fullmatch(r"nram_reverse\.\w+", found["name"])
    match form:
        case "text" | "json":
            assert program_from(found["content"]) == program
        case "svg":
            assert found["content"] == program_svg(program)
        case "python":
            memory = get_task("reverse").sample(5, 1, 0)[0]
            names: dict = {}
            exec(found["content"], names)
            function = next(value for name, value in names.items() if "reverse" in name)
            assert function(memory.input, memory.steps)[0] == memory.output
        case _:
            assert "nram_reverse" in found["content"]


def test_evidence_says_what_is_proven_tested_and_open(ask):
    proven = ask("/api/program", program={"name": "copy@searched"})["evidence"]
    assert proven["proven_for_every_length"] and "every n" in proven["proven"][0] and proven["open"] == []
    assert proven["tested"]
    text = to_text(load_program("copy@searched"))
    bare = "\n".join(line for line in text.split("\n") if not line.startswith("verified:"))
    unknown = ask("/api/program", program={"text": bare})["evidence"]
    assert unknown["proven"] == [] and unknown["tested"] == [] and unknown["open"] == ["nothing was verified yet"]


def test_instances_are_those_of_the_command_line(ask):
    found = ask("/api/sample", task="merge", complexity=5, seed=4)
    instance = get_task("merge").sample(5, 1, 4)[0]
    assert found == {**instance.as_dict(), "complexity": 5}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"task": "nobody", "complexity": 3}, 404, "choose one of"),
        ({"task": "./task.py", "complexity": 3}, 404, "choose one of"),
        ({"task": "copy", "complexity": 0}, 400, "complexity"),
        ({"task": "copy", "complexity": MOST_CELLS}, 400, "smaller n"),
        ({"task": "copy", "complexity": 5, "memory_size": 4}, 400, "cells"),
    ],
)
def test_instances_that_cannot_be_drawn(ask, body, status, words):
    assert words in ask("/api/sample", status, **body)["error"]


def test_the_forms_of_a_trained_program(ask):
    """As it was extracted it is long; the shorter forms do the same on instances of the task."""
    found = {
        form: ask("/api/program", program={"name": "access@trained", "form": form}) for form in ("raw", "every-input")
    }
    shortest = ask("/api/program", program={"name": "access@trained"})
    sizes = [len(one["rows"]) for one in (found["raw"], found["every-input"], shortest)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[2]
    assert found["raw"]["program"] == {"name": "access@trained", "form": "raw"}
    instance = get_task("access").sample(6, 1, 1)[0]
    for form in found:
        answer = ask("/api/trace", program={"name": "access@trained", "form": form}, memory=instance.input, max_steps=6)
        assert answer["ending"]["memory"][0] == instance.output[0]
    assert "no network" in ask("/api/program", 400, program={"name": "access@searched", "form": "raw"})["error"]


def test_modules_of_the_zoo_are_the_papers():
    assert {module.name for entry in zoo_entries() for module in entry.program.modules} <= set(MODULES)


def test_an_unknown_module_is_to_be_named_to_the_server(ask):
    text = "nram program 1\nregisters: r1\n\nalways:\n    o1 = NOTHING(r1)\n    halt\n"
    found = ask("/api/program", 400, program={"text": text})
    assert "(nram serve --module" in found["lines"][0][1]
