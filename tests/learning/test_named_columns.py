"""Learning from a table with names: from the file to a program that is called by names."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import nram
from nram.cli import main
from nram.programs.files import program_from, read_program, save_program
from nram.tasks.layout import Layout


def _chosen_value(path: Path) -> Path:
    """The value with index k, in a natural order of columns."""
    rng = Random(3)
    lines = ["values,k,result"]
    for count in range(48):
        values = [rng.randint(1, 9) for _ in range(1 + count // 6)]
        k = rng.randrange(len(values))
        lines.append(f"{' '.join(map(str, values))},{k},{values[k]}")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def learned(tmp_path_factory) -> tuple[Path, Path]:
    """A table, and the folder of what was learned from it."""
    folder = tmp_path_factory.mktemp("named")
    path = _chosen_value(folder / "chosen.csv")
    words = ["--workers", "1", "--budget", "100", "--method", "search", "--out", str(folder / "out")]
    assert main(["learn", str(path), *words]) == 0
    return path, folder / "out"


def test_the_program_of_a_table_is_called_by_names(learned, capsys):
    _, out = learned
    for form in ("program.json", "program.nram"):
        program = read_program(out / form)
        assert program.call(values=[7, 5, 3, 8, 8, 1, 2, 9, 4, 6, 11], k=10) == 11
    assert main(["run", str(out / "program.json"), "--input", "values=7 5 3", "--input", "k=2"]) == 0
    assert capsys.readouterr().out.startswith("result = 3\n")
    assert main(["run", str(out / "program.json"), "--input", "values=[7, 5]", "--input", "k=0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == {"result": 7}


def test_the_report_shows_the_layout_and_what_counted(learned, capsys):
    path, out = learned
    examples = json.loads((out / "report.json").read_text())["examples"]
    assert examples["layout"] == "k ->result values[] 0" and examples["counted"] == "result"
    words = ["learn", str(path), "--out", str(out), "--resume"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert (
        "What counts: result.\nLayout: --layout 'k ->result values[] 0' (edit it to change it)\n  cell 0: k\n" in said
    )
    assert "  from cell 2 on: values, ended by a 0\n" in said
    assert "--input k=0 --input 'values=7 7 8'" in said  # how to try it
    assert main([*words, "--layout", "k->result values 0"]) == 2
    assert "was learned with no --cells, --result and --layout" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--input", "values=1 2"], "k is missing: the inputs are k, values"),
        (["--input", "k"], "has no '='"),
        (["--input", "k=1", "--input", "k=2"], "is given twice"),
        (["--input", "k=x", "--input", "values=1"], "not a whole number"),
    ],
)
def test_bad_inputs_are_refused(learned, capsys, words: list[str], said: str):
    assert main(["run", str(learned[1] / "program.json"), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_program_without_names_takes_no_inputs(capsys):
    assert main(["run", "copy", "--input", "values=1 2"]) == 2
    assert "give --memory instead of --input" in capsys.readouterr().err


def test_a_wrong_example_is_shown_by_name(tmp_path: Path, capsys):
    rows = [{"a": a, "odd": [7, 2, 9, 4, 8, 1, 6, 3, 5, 8][a]} for a in range(10)]
    (tmp_path / "odd.json").write_text(json.dumps(rows))
    words = ["--budget", "2", "--workers", "1", "--method", "search", "--out", str(tmp_path / "out")]
    assert main(["learn", str(tmp_path / "odd.json"), *words]) == 1
    said = capsys.readouterr().out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    wrong = report["training"]["smallest_wrong"] or report["held_out"]["smallest_wrong"]
    expected = rows[wrong["line"] - 1]
    assert wrong["inputs"] == {"a": expected["a"]} and wrong["expected_results"] == {"odd": expected["odd"]}
    assert wrong["obtained_results"]["odd"] != expected["odd"]
    assert f"entry {wrong['line']}, size {expected['a']}" in said
    assert f"given    a = {expected['a']}\n  expected odd = {expected['odd']}\n  obtained odd = " in said
    # The same search goes on from its state; one with another layout is refused.
    assert (tmp_path / "out" / "search.json").is_file()
    assert main(["learn", str(tmp_path / "odd.json"), *words, "--resume"]) == 1
    assert main(["learn", str(tmp_path / "odd.json"), *words, "--resume", "--layout", "odd a"]) == 2


def test_python_learns_from_objects_with_names_and_search_from_the_same_file(tmp_path: Path, capsys):
    rows = [{"x": x, "y": y, "larger": max(x, y)} for x in range(5) for y in range(5)]
    learned = nram.learn(rows, tmp_path / "out", budget=60, method="search", workers=1, result="larger")
    assert learned.found and learned.program is not None and learned.program.call(x=90, y=7) == 90
    file = tmp_path / "out" / "examples.jsonl"
    out = tmp_path / "larger.nram"
    words = ["search", str(file), "--budget", "60", "--workers", "1", "--out", str(out), "--layout", "x->larger y"]
    assert main(words) == 0
    assert (
        "Layout: --layout 'x->larger y' (edit it to change it)\n  cell 0: x, and in its place larger at the end\n"
        in capsys.readouterr().out
    )
    program = read_program(out)
    assert program.call(x=3, y=20) == 20 and "--layout" in dict(program.made)["command"]
    assert main(["search", "copy", "--layout", "x->y"]) == 2
    assert "--layout is for a file of examples" in capsys.readouterr().err


def test_a_program_is_watched_on_named_inputs(tmp_path: Path, capsys):
    """The memory of the example has spare cells, on which the program may depend: the command gives its size."""
    first = program_from("nram program 1\nregisters: r1\n\nalways:\n halt\n")
    file, program = tmp_path / "larger.csv", tmp_path / "first.nram"
    save_program(replace(first, layout=Layout.parse("x->larger y")), program)
    file.write_text("x,y,larger\n" + "".join(f"{x},{y},{max(x, y)}\n" for x in range(4) for y in range(4)))
    assert main(["test", str(program), str(file)]) == 1
    line = next(one for one in capsys.readouterr().out.splitlines() if one.startswith("Watch it: nram "))
    words = shlex.split(line.removeprefix("Watch it: nram "))
    assert words[:6] == ["trace", str(program), "--input", "x=0", "--input", "y=1"]
    assert main(words) == 0
    named = capsys.readouterr().out
    cells = int(words[words.index("--memory-size") + 1]) if "--memory-size" in words else 3
    assert main(["trace", str(program), "--memory", " ".join(["0", "1", *["0"] * (cells - 2)])]) == 0
    assert capsys.readouterr().out == named
    assert main(["trace", str(program), "--input", "x=1", "--complexity", "3"]) == 2
    assert "--input and --complexity exclude each other" in capsys.readouterr().err


def test_cells_are_chosen_for_a_whole_file_from_python(tmp_path: Path):
    memories = [([0, a, b, 0, 0, 0], [a, a, b, 0, 0, 0]) for a in range(1, 5) for b in range(5)]
    learned = nram.learn(memories, tmp_path / "out", budget=60, method="search", workers=1, cells=[0, 2])
    assert learned.found and "What counts: the cells 0 2." in str(learned)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["examples"]["options"] == ["--cells", "0 2"]


@pytest.mark.slow
def test_how_often_a_number_is_in_a_list_is_learned_from_a_table_alone(tmp_path: Path):
    file = Path(nram.__file__).parent / "examples" / "files" / "count.csv"
    learned = nram.learn(file, tmp_path / "out", budget=300, method="search")
    assert learned.found and learned.program is not None
    rng = Random(8)
    for _ in range(50):
        values, x = [rng.randint(1, 30) for _ in range(rng.randint(0, 25))], rng.randint(1, 30)
        assert learned.program.call(values=values, x=x) == values.count(x)
