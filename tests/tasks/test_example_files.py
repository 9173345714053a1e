"""Files of examples: two forms that say the same, what is refused and with which cure, and what is held out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nram.cli import main
from nram.errors import UsageError
from nram.learning.parts import cautions, split
from nram.limits import StepLimit
from nram.tasks.example_files import read_examples


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


def test_the_cells_that_count_are_those_that_change_and_steps_grow_with_size_and_memory(tmp_path: Path):
    lines = '{"input": [0,5,0,0,0,0], "output": [5,5,0,1,0,0]}', "", '{"input": [1,1,1], "output": [0,1,1], "steps": 3}'
    text = "\n".join(lines)
    found = read_examples(_file(tmp_path, text))
    first, second = found.examples
    assert first.instance.cells == [0, 3] and first.size == 1 and first.instance.steps == 2 * (1 + 6) + 8
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
    "lengths": ('{"input": [1,0,0], "output": [1,0]}', ("line 1", "they must be as many", "zeros")),
    "nothing asked": ('{"input": [1,0,0], "output": [1,0,0]}', ("line 1: no cell counts", "name in 'cells'")),
    "too long": (json.dumps({"input": [1] * 5000, "output": [0] * 5000}), ("line 1", "too long", "at most 4096")),
    "no steps": ('{"input": [1,0,0], "output": [0,0,0], "steps": 0}', ("line 1: steps is 0",)),
    "addresses": ('{"input": [1,0,0], "output": [0,0,0], "cells": [3]}', ("line 1: cells has addresses outside 0..2",)),
    "a list of examples": ('[{"input": [1,0,0], "output": [0,0,0]}]', ("line 1", "one object a line, not a list")),
    "not whole": ('{"input": [1,0,0.5], "output": [0,0,0]}', ("line 1: 'input' is", "whole numbers")),
    "no output": ('{"input": [1,0,0]}', ("line 1 has no 'output'",)),
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
    "no header": ("0 2 0,2 2 0\n", "line 1 is no header"),
    "commas": ("input,output\n0,2,0,2,2,0\n", "line 2 has 6 columns"),
    "words": ("input,output\n0 two 0,2 2 0\n", "line 2: 'input' is '0 two 0'"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_tables_that_cannot_be_used_are_refused_with_their_line(case: str, tmp_path: Path):
    text, words = BAD_TABLES[case]
    with pytest.raises(UsageError) as error:
        read_examples(_file(tmp_path, text, "examples.csv"))
    assert words in str(error.value)


def test_all_problems_are_told_at_once_but_no_more_than_one_can_read(tmp_path: Path):
    with pytest.raises(UsageError) as error:
        read_examples(_file(tmp_path, "nonsense\n" * 3 + '{"input": [9,0,0], "output": [0,7,0], "cells": [4]}\n'))
    said = str(error.value)
    assert said.count("is not JSON") == 3 and "input has values" in said and "output has values" in said
    assert "addresses outside" in said
    with pytest.raises(UsageError) as error:
        read_examples(_file(tmp_path, "nonsense\n" * 1000))
    assert str(error.value).count("\n") < 30 and "980 problems more" in str(error.value)


def test_too_few_examples_are_refused_with_how_many_there_should_be(tmp_path: Path):
    with pytest.raises(UsageError, match="3 different examples, which are too few: give at least 5"):
        _parts(tmp_path, [1, 2, 3])


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
