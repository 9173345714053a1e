"""Layouts: names of columns to addresses and back, the layout of a table, and what cannot be used."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from nram.errors import UsageError
from nram.programs.files import program_from, to_json, to_json_text
from nram.programs.ir import ProgramError
from nram.programs.library import load_program
from nram.programs.text import from_text, to_text
from nram.tasks.layout import Layout, layout_of, name_problem

Row = dict[str, Any]

TABLES: dict[str, tuple[list[Row], list[str], str]] = {
    "count": (
        [{"values": [3, 1, 2], "x": 1, "result": 1}, {"values": [], "x": 2, "result": 0}],
        ["result"],
        "x ->result values[] 0",
    ),
    "values that may be 0": (
        [{"values": [3, 0], "largest": 3}, {"values": [0, 0, 2], "largest": 2}],
        ["largest"],
        "->largest end:values values[]",
    ),
    "in place": (
        [{"values": v, "sorted": sorted(v)} for v in ([3, 1, 2], [5, 4], [])],
        ["sorted"],
        "values->sorted[] 0",
    ),
    "in cells of its own": (
        [{"values": v, "back": v[::-1]} for v in ([3, 1, 2], [3, 4], [], [0])],
        ["back"],
        "end:values start:back values[] ->back[values]",
    ),
    "two lists": (
        [{"a": [3, 2], "b": [1], "both": [3, 2, 1]}, {"a": [], "b": [4], "both": [4]}],
        ["both"],
        "start:b start:both a[] 0 b[] 0 ->both[] 0",
    ),
    "a result list that may hold 0": (
        [{"values": [3, 3, 2], "kept": [3, 0]}, {"values": [1, 2], "kept": []}],
        ["kept"],
        "start:kept length:kept values[] 0 ->kept[]",
    ),
    "a result of two numbers": (
        [{"values": [3, 3, 2], "ends": [3, 2]}, {"values": [1], "ends": [1, 1]}],
        ["ends"],
        "->ends[2] values[] 0",
    ),
    "a longer result": (
        [{"values": [3], "twice": [3, 3, 3, 3]}, {"values": [1, 2], "twice": [1, 1, 2, 2, 1, 1, 2, 2]}],
        ["twice"],
        "start:twice values[] 0 ->twice[3n] 0",
    ),
    "a sum": (
        [{"values": [3, 3, 2], "sum": 8, "n": 3}, {"values": [1], "sum": 1, "n": 1}],
        ["sum", "n"],
        "->sum ->n values[] 0 M>sum",
    ),
    "a product": ([{"x": 3, "y": 4, "z": 12}, {"x": 9, "y": 9, "z": 81}], ["z"], "x y ->z M=82"),
    "no list": ([{"k": 3, "up": [1, 2, 3]}, {"k": 1, "up": [1]}], ["up"], "k ->up[] 0"),
}


def _inputs(row: Row, layout: Layout) -> Row:
    return {name: row[name] for name in layout.inputs}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_gets_a_layout_in_which_every_name_finds_its_numbers_again(case: str):
    rows, results, text = TABLES[case]
    layout = layout_of(rows, results)
    assert str(layout) == text and Layout.parse(text) == layout
    for row in rows:
        start = layout.memory(_inputs(row, layout))
        end, cells = layout.answer(start, row)
        size = len(start)
        assert all(0 <= number < size for number in start + end)
        assert all(end[i] == start[i] for i in range(size) if i not in cells)
        assert layout.given(start) == _inputs(row, layout)
        assert layout.results(start, end) == {name: row[name] for name in results}
        larger = layout.memory(_inputs(row, layout), size + 5)
        assert larger == start + [0] * 5 and layout.results(larger, layout.answer(larger, row)[0])


def test_the_size_of_the_memory_tells_nothing_about_the_result():
    rng = Random(0)
    rows: list[Row] = []
    for _ in range(40):
        values = [rng.randint(0, 9) for _ in range(rng.randint(1, 6))]
        rows.append(
            {"values": values, "x": rng.randint(0, 9), "sum": sum(values), "kept": [v for v in values if v > 4]}
        )
    layout = layout_of(rows, ["sum", "kept"])
    for row in rows:
        other = row | {"sum": 0, "kept": []}
        start = layout.memory(_inputs(row, layout))
        assert len(layout.answer(start, other)[0]) == len(start) > row["sum"]


def test_the_users_layout_is_completed_from_the_table():
    rows, results, _ = TABLES["count"]
    assert str(layout_of(rows, results, "result x length:values values")) == "->result x length:values values[]"
    assert str(layout_of(rows, ["x"], "values[] 0 x")) == "values[] 0 ->x"
    rows, results, _ = TABLES["in place"]
    assert str(layout_of(rows, results, "values->sorted 0 M=50")) == "values->sorted[] 0 M=50"
    assert str(layout_of(rows, results, "start:sorted values 0 sorted 0")) == "start:sorted values[] 0 ->sorted[] 0"
    own = layout_of(rows, results, "start:sorted values 0 sorted[values]")
    start = own.memory({"values": [2, 1, 1]})
    assert start[0] == 5 and own.answer(start, {"sorted": [1, 1, 2]})[1] == [5, 6, 7]


BAD_LAYOUTS = {
    "x ->result x": "stands in it twice",
    "x values[] 0": "needs an input and a result",
    "->result": "needs an input and a result",
    "x ->result values[]": "nobody knows where values ends: write 'values[] 0'",
    "x ->result end:x": "no list 'x'",
    "values[] 0 length:values ->result": "put it before the lists",
    "values[] 0 ->kept[] 0 x": "an input stands after the result",
    "end:kept values[] 0 ->kept[]": "use length:kept",
    "x ->result[values]": "no input list",
    "values[2n] ->result": "an input list is written values[]",
    "x -> result": "the word '->', which means nothing",
    "x ->result values{} 0": "means nothing",
    " ".join(f"x{i}" for i in range(30)) + " ->y": "16 are the most",
}


@pytest.mark.parametrize("text", BAD_LAYOUTS)
def test_a_layout_that_cannot_be_used_is_refused_with_a_cure(text: str):
    with pytest.raises(UsageError) as error:
        Layout.parse(text)
    assert BAD_LAYOUTS[text] in str(error.value)


BAD_INPUTS: list[tuple[Row, str]] = [
    ({"values": [1, 2]}, "x is missing: the inputs are x, values"),
    ({"values": [1], "x": 1, "y": 2}, "'y' is unknown"),
    ({"values": [1], "lim": 2}, "'lim' is unknown: the inputs are x, values"),
    ({"values": [1], "x": "5 4"}, "x holds '5 4', which is not a whole number from 0 up: write one number"),
    ({"values": [1, -2], "x": 1}, "there are no negative numbers"),
    ({"values": [1, True], "x": 1}, "write 1 for true"),
    ({"values": ["red"], "x": 1}, "replace each text by a number"),
    ({"values": 3, "x": 1}, "write a list of numbers"),
    ({"values": [1.5], "x": 1}, "not a whole number"),
    ({"values": [1, 0, 2], "x": 1}, "values holds a 0, which ends the list"),
    ({"values": [1], "x": 10**9}, "use smaller numbers"),
]


@pytest.mark.parametrize(("inputs", "words"), BAD_INPUTS)
def test_inputs_that_cannot_be_used_are_refused_with_a_cure(inputs: Row, words: str):
    with pytest.raises(UsageError) as error:
        Layout.parse("x ->result values[] 0").memory(inputs)
    assert words in str(error.value)


def test_names_are_words():
    assert name_problem("unit_price2") is None and name_problem("größe") is None
    assert "as Unit_price" in (name_problem("Unit price") or "")
    assert "as c2nd" in (name_problem("2nd") or "") and name_problem("") is not None


def test_a_layout_in_words():
    assert Layout.parse("x ->ends[2] start:kept values[] 0 ->kept[] 0 M>2sum").describe() == [
        "cell 0: x",
        "cells 1 to 2: ends at the end (0 at the start)",
        "cell 3: the address where kept begins",
        "from cell 4 on: values, ended by a 0",
        "then: kept at the end (0 at the start), ended by a 0",
        "memory: larger than 2 times the sum of all inputs",
    ]


# ---- programs with a layout


def test_a_program_with_a_layout_is_called_by_names_and_keeps_it_in_files():
    access = load_program("access")
    program = replace(access, layout=Layout.parse("k->result values[] 0"))
    assert program.call(k=1, values=[7, 5, 3]) == 5
    for again in (from_text(to_text(program)), program_from(to_json_text(program))):
        assert again == program and again.call(k=0, values=[7, 5, 3]) == 7
    assert program.fingerprint == access.fingerprint and "layout" not in to_json(access)
    with pytest.raises(UsageError, match="has no names for its inputs"):
        access.call(k=1)


def test_a_bad_layout_in_a_program_file_is_told():
    program = replace(load_program("access"), layout=Layout.parse("k->result values[] 0"))
    for text in (
        to_text(program).replace("values[] 0", "values[]"),
        json.dumps(to_json(program) | {"layout": "k->result values[]"}),
    ):
        with pytest.raises(ProgramError, match="nobody knows where values ends"):
            program_from(text)
