"""Files of examples: two forms that say the same, what is refused and with which cure, and what is held out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nram.cli import main
from nram.errors import UsageError
from nram.learning.parts import cautions, split
from nram.limits import StepLimit
from nram.tasks.example_files import ExampleFile, Reading, read_examples


def _file(tmp_path: Path, text: str, name: str = "examples.jsonl") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def _example(size: int, number: int = 0, room: int = 2) -> str:
    values = [1 + (number + i) % 3 for i in range(size)]
    start = [0, *values, *[0] * (room + number)]
    return json.dumps({"input": start, "output": [1, *start[1:]]})


def _parts(tmp_path: Path, sizes: list[int], seed: int = 0):
    lines = [_example(size, number) for number, size in enumerate(sizes)]
    return split(read_examples(_file(tmp_path, "\n".join(lines))).examples, seed, "the file")


def test_csv_and_jsonl_say_the_same(tmp_path: Path):
    rows = [
        {"input": [0, 2, 0], "output": [2, 2, 0]},
        {"input": [1, 0, 0], "output": [1, 0, 0], "cells": [1, 2]},
        {"input": [3, 0, 1, 0], "output": [0, 0, 1, 0], "cells": [0], "steps": 9},
    ]
    table = "input,output,cells,steps\n0 2 0,2 2 0,,\n1 0 0, 1 0 0 ,1 2,\n3 0 1 0,0 0 1 0,0,9\n"
    read = [
        read_examples(_file(tmp_path, text, name))
        for name, text in (("a.jsonl", "\n".join(map(json.dumps, rows))), ("a.csv", table.replace("\n", "\r\n")))
    ]
    instances = [[example.instance for example in one.examples] for one in read]
    assert instances[0] == instances[1] and len(instances[0]) == 3
    assert [example.line for example in read[1].examples] == [2, 3, 4]


def test_steps_grow_with_size_and_memory(tmp_path: Path):
    lines = '{"input": [0,5,0,0,0,0], "output": [5,5,0,1,0,0]}', "", '{"input": [1,1,1], "output": [0,1,1], "steps": 3}'
    text = "\n".join(lines)
    found = read_examples(_file(tmp_path, text))
    first, second = found.examples
    assert first.size == 1 and first.instance.steps == 2 * (1 + 6) + 8
    assert (second.line, second.size, second.instance.steps) == (3, 3, 3)
    other = found.with_steps(StepLimit(3, 4)).examples
    assert [example.instance.steps for example in other] == [7, 3]  # the file's own number stays


def test_what_is_said_twice_counts_once(tmp_path: Path):
    line = _example(2)
    found = read_examples(_file(tmp_path, f"{line}\n{line}\n{_example(3)}\n"))
    assert (len(found.examples), found.repeated) == (2, 1)


def test_one_input_may_ask_for_different_cells_on_two_lines(tmp_path: Path):
    text = '{"input": [1,0,0], "output": [1,2,0], "cells": [1]}\n{"input": [1,0,0], "output": [2,0,0], "cells": [0]}'
    assert len(read_examples(_file(tmp_path, text)).examples) == 2


REFUSED = {
    "contradiction": (
        '{"input": [1,0,0], "output": [0,0,0]}\n\n{"input": [1,0,0], "output": [2,0,0]}',
        ("lines 1 and 3 have the same input", "cell 0: 0 and 2", "remove one"),
    ),
    "contradiction in a cell that only one line changes": (
        '{"input": [1,0,0], "output": [1,0,2]}\n{"input": [1,0,0], "output": [1,2,0]}',
        ("lines 1 and 2 have the same input",),
    ),
    "value out of range": (
        '{"input": [1,0,7], "output": [1,0,0]}',
        ("line 1: input has values outside 0..2", "7 in cell 2", "add zeros"),
    ),
    "short": (
        '{"input": [1,0], "output": [0,1]}',
        ("line 1: input and output have 2 cells", "3 at least"),
    ),
    "lengths": ('{"input": [1,0,0], "output": [1,0]}', ("line 1", "they must be as many", "zeros")),
    "nothing asked": ('{"input": [1,0,0], "output": [1,0,0]}', ("line 1: no cell counts", "name in 'cells'")),
    "an empty list of cells": ('{"input": [1,0,0], "output": [0,0,0], "cells": []}', ("line 1: no cell counts",)),
    "too long": (json.dumps({"input": [1] * 5000, "output": [0] * 5000}), ("line 1", "too long", "at most 4096")),
    "no steps": ('{"input": [1,0,0], "output": [0,0,0], "steps": 0}', ("line 1: steps is 0",)),
    "addresses": ('{"input": [1,0,0], "output": [0,0,0], "cells": [3]}', ("line 1: cells has addresses outside 0..2",)),
    "no list of examples": ('[{"input": [1,0,0], "output": [0,0,0]}', ("begins with '['", "not a JSON list")),
    "a list of lists": ("[[1, 0, 0], [0, 0, 0]]", ("entry 1, and 1 more (2): it is not an object",)),
    "not whole": ('{"input": [1,0,0.5], "output": [0,0,0]}', ("line 1: 'input' is", "whole numbers")),
    "no output": ('{"input": [1,0,0]}', ("line 1: it has no 'output'",)),
    "nothing": ("\n", ("there are no examples",)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_with_its_line_and_cure(case: str, tmp_path: Path, capsys):
    text, words = REFUSED[case]
    path = _file(tmp_path, text)
    assert main(["learn", str(path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert not (tmp_path / "out").exists()


BAD_TABLES = {
    "no header": ("0 2 0,2 2 0\n", "line 1: this is no header"),
    "commas": ("input,output\n0,2,0,2,2,0\n", "line 2: it has 6 columns"),
    "words": ("input,output\n0 two 0,2 2 0\n", "line 2: 'input' is '0 two 0'"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_tables_that_cannot_be_used_are_refused_with_their_line(case: str, tmp_path: Path):
    text, words = BAD_TABLES[case]
    with pytest.raises(UsageError) as error:
        read_examples(_file(tmp_path, text, "examples.csv"))
    assert words in str(error.value)


def test_all_problems_are_told_at_once_and_each_kind_once(tmp_path: Path):
    with pytest.raises(UsageError) as error:
        read_examples(_file(tmp_path, "nonsense\n" * 3 + '{"input": [9,0,0], "output": [0,7,0], "cells": [4]}\n'))
    said = str(error.value)
    assert said.count("is not JSON") == 1 and "line 1, and 2 more (2, 3): it cannot be read" in said
    assert "input has values" in said and "output has values" in said and "addresses outside" in said
    with pytest.raises(UsageError) as error:
        read_examples(_file(tmp_path, "nonsense\n" * 2000))
    assert str(error.value).count("\n") == 1 and "line 1, and 999 more (2, 3, 4, 5, ...)" in str(error.value)
    lines = [json.dumps({"input": [0, 0, 0], "output": [1, 0, 0], f"key{i}": i}) for i in range(30)]
    with pytest.raises(UsageError, match="and 10 problems more"):
        read_examples(_file(tmp_path, "\n".join(lines)))


# ---- the cells that count


def _read(tmp_path: Path, *rows: dict, **options) -> ExampleFile:
    return read_examples(_file(tmp_path, "\n".join(map(json.dumps, rows))), Reading(**options))


def _cells(file: ExampleFile) -> list[list[int]]:
    return [example.instance.cells for example in file.examples]


SORTED = {"input": [1, 2, 0, 0], "output": [1, 2, 0, 0]}
SWAPPED = {"input": [2, 1, 0, 0], "output": [1, 2, 0, 0]}
LARGER = {"input": [3, 2, 1, 0, 0], "output": [1, 2, 3, 0, 0]}
OWN = {"input": [3, 3, 0, 0], "output": [3, 3, 0, 0], "cells": [3]}


def test_an_address_counts_wherever_it_changes_in_an_example_of_the_same_memory_size(tmp_path: Path):
    file = _read(tmp_path, SORTED, SWAPPED, LARGER, OWN)
    assert _cells(file) == [[0, 1], [0, 1], [0, 2], [3]]
    assert (
        file.counted == "every cell that changes in an example of the same memory size; where an example names "
        "cells, those alone"
    )
    assert _read(tmp_path, SORTED, SWAPPED).counted == "cells 0 to 1; no example changes another"
    assert _read(tmp_path, OWN).counted == "the cells that each example names"


def test_where_nothing_changes_in_any_example_of_a_size_the_cells_of_the_others_count(tmp_path: Path):
    assert _cells(_read(tmp_path, SORTED, LARGER)) == [[0, 2], [0, 2]]


@pytest.mark.parametrize(
    ("cells", "expected", "words"),
    [
        ("all", [[0, 1, 2, 3], [0, 1, 2, 3, 4]], "every cell"),
        ("changed", [[0, 1], [0, 2]], "in each example the cells that it changes"),
        ("0", [[0], [0]], "the cells 0"),
        ("0,2..3", [[0, 2, 3], [0, 2, 3]], "the cells 0,2..3"),
        ("1..n", [[1, 2], [1, 2, 3]], "the cells 1..n"),
        ("n-1 M-1", [[1, 3], [2, 4]], "the cells n-1 M-1"),
    ],
)
def test_the_cells_that_count_can_be_chosen(tmp_path: Path, cells: str, expected: list[list[int]], words: str):
    file = _read(tmp_path, SWAPPED, LARGER, cells=cells)
    assert _cells(file) == expected and file.counted == words
    assert _cells(_read(tmp_path, SWAPPED, OWN, cells=cells))[1] == [3]


def test_chosen_cells_that_cannot_be_used_are_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="line 1: no cell counts: input and output are equal"):
        _read(tmp_path, SORTED, SWAPPED, cells="changed")
    with pytest.raises(UsageError, match="line 1: cells=4 names no cell of a memory of 4 cells"):
        _read(tmp_path, SWAPPED, LARGER, cells="4")
    with pytest.raises(UsageError, match="give all, changed, or addresses"):
        Reading(cells="some")


def test_outputs_contradict_each_other_only_where_they_count(tmp_path: Path):
    other = SWAPPED | {"output": [1, 2, 0, 3]}
    assert len(_read(tmp_path, SWAPPED, other, cells="0").examples) == 1
    with pytest.raises(UsageError, match="lines 1 and 2 have the same input and different outputs"):
        _read(tmp_path, SWAPPED, other)


# ---- other forms


def test_a_json_list_and_lists_in_table_cells_say_the_same_as_lines(tmp_path: Path):
    rows = [SWAPPED, SORTED, OWN]
    table = 'input,output,cells\n"[2, 1, 0, 0]","[1,2,0,0]",\n1 2 0 0,"1, 2, 0, 0",\n3 3 0 0,3 3 0 0,[3]\n'
    expected = _cells(_read(tmp_path, *rows))
    for name, text in (
        ("a.json", json.dumps(rows, indent=2)),
        ("a.jsonl", "\ufeff" + json.dumps(rows)),
        ("a.csv", table),
        (
            "b.csv",
            "\n"
            + table.replace('"1, 2, 0, 0"', "1 2 0 0")
            .replace('"[2, 1, 0, 0]","[1,2,0,0]"', "2 1 0 0,1 2 0 0")
            .replace(",", ";"),
        ),
    ):
        file = read_examples(_file(tmp_path, text, name))
        assert _cells(file) == expected
        assert file.examples[2].where == ("line 4" if name == "a.csv" else "line 5" if name == "b.csv" else "entry 3")


COUNT = [
    {"values": [3, 1, 3], "x": 3, "result": 2},
    {"values": [], "x": 1, "result": 0},
    {"values": [2], "x": 1, "result": 0},
]


def test_columns_with_names_are_laid_out(tmp_path: Path):
    table = "values,x,result\n3 1 3,3,2\n,1,0\n2,1,0\n"
    files = [read_examples(_file(tmp_path, table, "a.csv")), _read(tmp_path, *COUNT)]
    files.append(read_examples(_file(tmp_path, json.dumps(COUNT), "a.json")))
    files.append(read_examples(_file(tmp_path, table.replace("3 1 3", '"[3, 1, 3]"'), "b.csv")))
    for file in files:
        assert str(file.layout) == "x ->result values[] 0" and file.counted == "result"
        assert [example.size for example in file.examples] == [3, 0, 1]
        assert [example.instance.input[:4] for example in file.examples] == [[3, 0, 3, 1], [1, 0, 0, 0], [1, 0, 2, 0]]
        assert _cells(file) == [[1], [1], [1]]
    assert [one.instance for one in files[0].examples] == [one.instance for one in files[1].examples]


def test_results_are_the_columns_with_such_a_name_or_the_last_or_those_chosen(tmp_path: Path):
    rows = [{"answer": 1, "values": [1, 2], "x": 0}, {"answer": 2, "values": [2, 2], "x": 0}]
    assert str(_read(tmp_path, *rows).layout) == "x ->answer values[] 0"
    assert str(_read(tmp_path, *rows, results=("x",)).layout) == "answer ->x values[] 0"
    assert str(_read(tmp_path, *rows, layout="values 0 ->x").layout) == "values[] 0 ->x"
    last = [{"a": 1, "b": 2}, {"a": 2, "b": 3}]
    assert str(_read(tmp_path, *last).layout) == "a ->b"
    memories = [{"input": [1, 2, 0], "output": [1, 1, 0]}, {"input": [2, 2, 0], "output": [2, 2, 0]}]
    assert _read(tmp_path, *memories).layout is None
    assert str(_read(tmp_path, *memories, results=("output",)).layout) == "end:input input->output[]"
    numbers = [{"input": [1, 2], "output": 3}, {"input": [2], "output": 2}]
    assert str(_read(tmp_path, *numbers).layout) == "->output input[] 0"


def test_columns_that_the_layout_does_not_name_may_hold_anything(tmp_path: Path):
    rows = [{"name of shop": "red", **row} for row in COUNT]
    assert str(_read(tmp_path, *rows, layout="x result values 0").layout) == "x ->result values[] 0"
    with pytest.raises(UsageError, match="is no name for a column"):
        _read(tmp_path, *rows)


BAD_NAMED = {
    "negative": ([{"a": [1, -1], "b": 1}, {"a": [-3], "b": 1}], "line 1, and 1 more (2): a holds -1: there are no neg"),
    "a truth value": ([{"a": [1], "b": True}], "line 1: b holds true: write 1 for true"),
    "a text": ([{"a": ["red"], "b": 1}], "replace each text by a number, or delete the column"),
    "a list in a list": (
        [{"a": [[1, 2], [3]], "b": 1}],
        "line 1: a holds [1, 2], which is not a whole number from 0 up: a list",
    ),
    "nothing in a list": (
        [{"a": [1, None], "b": 1}],
        "a holds None, which is not a whole number from 0 up: write one number",
    ),
    "nothing": ([{"a": [1], "b": None}], "b holds None, which is not a whole number from 0 up: write one number"),
    "a fraction": ([{"a": [3.5], "b": 1}], "a holds 3.5, which is not a whole number from 0 up: multiply all"),
    "not a list": ([{"a": [1], "b": 1}, {"a": 2, "b": 1}], "line 2: a is 2: write a list of numbers, as [3, 1, 2]"),
    "a missing column": ([{"a": [1], "b": 1}, {"a": [1]}], "line 2: it has no 'b': give every column"),
    "another column": (
        [{"a": [1], "b": 1}, {"a": [1], "b": 1, "c": 1}],
        "'c' is not on the first line, which has a, b",
    ),
    "one column": ([{"a": [1]}], "it has 1 column: give 2 to 16"),
    "a bad name": ([{"unit price": 1, "b": 2}], "use letters, digits and _, as unit_price"),
    "too large": ([{"a": 5000, "b": 1}], "divide all numbers, or replace them by their ranks"),
    "contradiction": (
        [{"a": [1, 2], "b": [2, 1]}, {"a": [1, 2], "b": [2, 2]}],
        "lines 1 and 2 have the same input and different outputs (b[1]: 1 and 2): remove one of them, or add a column",
    ),
}


@pytest.mark.parametrize("case", BAD_NAMED)
def test_named_columns_that_cannot_be_used_are_refused_with_their_line(case: str, tmp_path: Path):
    rows, words = BAD_NAMED[case]
    with pytest.raises(UsageError) as error:
        _read(tmp_path, *rows)
    assert words in str(error.value)


def test_choices_that_do_not_fit_the_columns_are_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="no column 'y' for the result: the columns are values, x, result"):
        _read(tmp_path, *COUNT, results=("y",))
    with pytest.raises(UsageError, match="the layout has 'y'"):
        _read(tmp_path, *COUNT, layout="y ->result")
    with pytest.raises(UsageError, match="leave out 'cells'"):
        _read(tmp_path, *COUNT, cells="0")


def test_too_few_examples_are_refused_with_how_many_there_should_be(tmp_path: Path):
    with pytest.raises(UsageError, match="3 different examples, which are too few: give at least 5"):
        _parts(tmp_path, [1, 2, 3])
    with pytest.raises(UsageError, match="1 different example, which is too few"):
        _parts(tmp_path, [1])


def test_the_largest_are_held_out_by_whole_sizes(tmp_path: Path):
    parts = _parts(tmp_path, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    assert [example.size for example in parts.held_out] == [5, 5] and parts.longer
    assert [example.size for example in parts.training] == [1, 1, 2, 2, 3, 3, 4, 4]


def test_where_the_largest_size_holds_nearly_all_a_share_of_it_is_held_out_and_that_is_told(tmp_path: Path):
    parts = _parts(tmp_path, [1] + [4] * 19)
    assert len(parts.held_out) == 4 and len(parts.training) == 16 and not parts.longer
    assert not {example.line for example in parts.held_out} & {example.line for example in parts.training}
    assert any("cannot be shown" in caution for caution in cautions(parts))
    assert parts == _parts(tmp_path, [1] + [4] * 19)


NO_CELLS = {
    "99": "cells=99 names no cell of a memory of 5 cells",
    "5..9": "names no cell of a memory of 5 cells",
    "0,99": r"'cells' \(0,99\) names others",
    "3..2": "3..2 runs backwards: write 2..3",
    "9..n": "names no cell of a memory of 5 cells, where n is 2",
}


@pytest.mark.parametrize("cells", NO_CELLS)
def test_cells_that_name_nothing_are_told(cells, tmp_path):
    file = tmp_path / "plain.jsonl"
    file.write_text('{"input": [1, 2, 0, 0, 0], "output": [2, 1, 0, 0, 0]}\n')
    with pytest.raises(UsageError, match=NO_CELLS[cells]):
        read_examples(file, Reading(cells))
