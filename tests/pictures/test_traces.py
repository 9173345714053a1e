"""Traces: every form shows what the interpreter did, and says what it leaves out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from nram.errors import NramError, UsageError
from nram.extensions import get_task
from nram.pictures.figures import luminance
from nram.pictures.heatmaps import BLACK, OUTLINE, READ, WHITE, WRITTEN, draw_heatmap, heatmap
from nram.pictures.heatmaps import COLOURS as MAP
from nram.pictures.shapes import COLOURS
from nram.pictures.trace_html import trace_to_html
from nram.pictures.trace_records import MAX_STEPS
from nram.pictures.trace_svg import trace_to_svg
from nram.pictures.traces import Trace, record_trace, trace_to_json, trace_to_latex, trace_to_text
from nram.programs.interpret import Ending, Step, trace
from nram.programs.ir import Program
from nram.programs.text import from_text

PAPER_MEMORY = [6, 2, 10, 6, 8, 9, 0, 0, 0, 0, 0, 0]
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = """</title><script>alert("x")</script> & $\\frac{$ % #_{}~^\\"""


def a_trace(program: Program, n: int, steps: int | None = None) -> Trace:
    instance = get_task("copy").sample(n, 1, 0)[0]
    return record_trace(program, instance.input, steps, instance=instance)


def groups_of(text: str) -> tuple[list[list[str]], list[list[list[str]]]]:
    """The headings and the lines of a table, as words in groups of columns; rules and gaps are skipped."""
    lines = [line for line in text.split("\n\n")[0].splitlines() if "|" in line]
    table = [[group.strip() for group in line.split("|")] for line in lines]
    full = [[group.split() for group in line] for line in table if len(line) == 6]
    return full[0], full[1:]


def interpreted(program: Program, memory: list[int], limit: int) -> tuple[list[Step], Ending]:
    *steps, ending = trace(program, memory, limit)
    assert isinstance(ending, Ending)
    return [step for step in steps if isinstance(step, Step)], ending


# ---- as text


def test_the_paper_s_table(copy_program):
    _, rows = groups_of(trace_to_text(record_trace(copy_program, PAPER_MEMORY, 11)))
    assert [" ".join(sum(rows[i][:5], [])) for i in (0, 1, 9, 10)] == [
        "1 6 2 10 6 8 9 0 0 0 0 0 0 0 0 0 0 p:0 p:0 a:6",
        "2 6 2 10 6 8 9 0 0 0 0 0 0 0 5 0 1 p:1 p:6 a:2",
        "10 6 2 10 6 8 9 2 10 6 8 0 0 0 5 4 5 p:5 p:10 a:9",
        "11 6 2 10 6 8 9 2 10 6 8 9 0 0 5 5 5 p:5 p:10 a:9",
    ]
    assert [row[5] for row in rows] == [["1"], *[["2"]] * 10, []]


def test_every_cell_of_the_text_is_what_the_interpreter_did(random_programs):
    touched = several = 0
    for rng, program in random_programs(60):
        size, limit = rng.randint(3, 12), rng.randint(0, 12)
        memory = [rng.randrange(size) for _ in range(size)]
        steps, ending = interpreted(program, memory, limit)
        text = trace_to_text(record_trace(program, memory, limit), width=None, most_steps=None)
        head, rows = groups_of(text)
        assert head[1] == [str(cell) for cell in range(size)]
        assert head[2] == list(program.registers)
        assert len(rows) == len(steps) + 1
        for row, step in zip(rows, steps, strict=False):
            operations = program.states[step.state][step.row].operations
            given = list(zip((operation.module for operation in operations), step.arguments, strict=True))
            reads = [f"p:{p[0]}" for module, p in given if module == "READ"]
            writes = [f"p:{p[0]} a:{p[1]}" for module, p in given if module == "WRITE"]
            assert row[0] == [str(step.number)]
            assert row[1] == list(map(str, step.memory))
            assert row[2] == list(map(str, step.registers))
            assert " ".join(row[3]) == ", ".join(reads)
            assert " ".join(row[4]) == ", ".join(writes)
            place = f"{step.row + 1}" if len(program.states) == 1 else f"{step.state}:{step.row + 1}"
            assert row[5] == [place]
            touched += len(reads) + len(writes)
            several += len(writes) > 1 and len(reads) > 1
        assert rows[-1][:3] == [["end"], list(map(str, ending.memory)), list(map(str, ending.registers))]
        count = f"{ending.steps} step{'' if ending.steps == 1 else 's'}"
        said = f"halted by itself after {count}" if ending.halted else f"stopped at the limit of {count}"
        assert said in text
    assert touched > 200 and several > 10


def test_a_drawn_instance_is_judged_and_its_output_cells_are_marked(copy_program):
    right = trace_to_text(a_trace(copy_program, 3, 7))
    assert "right: all 3 output cells are as expected" in right
    head, marks = right.splitlines()[0], next(line for line in right.splitlines() if "^" in line)
    marked = [match.end() - 1 for match in re.finditer(r"\d+", head.split("|")[1])]
    assert [i for i, at in enumerate(marked) if marks.split("|")[1][at : at + 1] == "^"] == [4, 5, 6]
    early = a_trace(copy_program, 3, 3)
    assert early.instance is not None
    wrong = trace_to_text(early)
    assert f"WRONG in 2 of 3 output cells: cell 5 holds 0, not {early.instance.output[5]}" in wrong


def test_a_run_that_idles_is_said_to_and_shown_once(copy_program):
    text = trace_to_text(record_trace(copy_program, PAPER_MEMORY))
    assert "stopped at the limit of 1792 steps; nothing changes from step 11 on" in text
    _, rows = groups_of(text)
    assert [row[0][0] for row in rows] == [*map(str, range(1, 12)), "1792", "end"]
    assert "left out: 1780 of 1792 steps" in text


def test_a_run_that_only_looks_idle_for_a_while_is_not_said_to():
    counting = from_text(
        "nram program 1\nregisters: r1\nstate 0:\nalways:\n next 1\n"
        "state 1:\nwhen r1 = 0:\n r1 := 1\notherwise:\n next 0\n"
    )
    assert "nothing changes" not in trace_to_text(record_trace(counting, [0, 0, 0], 20))


@pytest.mark.parametrize(("width", "most_steps"), [(60, 4), (90, 7), (120, 40), (200, 11)])
def test_what_is_left_out_is_counted_and_what_is_shown_is_right(copy_program, width, most_steps):
    run = a_trace(copy_program, 60, 121)
    text = trace_to_text(run, width=width, most_steps=most_steps)
    head, rows = groups_of(text)
    shown = [int(word) for word in head[1] if word != "..."]
    assert max(map(len, text.split("\n\n")[0].splitlines()[:-1])) <= max(width, 75)
    everything = [list(memory) for memory in run.memories()]
    for row in rows[:-1]:
        memory = everything[int(row[0][0]) - 1]
        assert row[1] == ["..." if word == "..." else str(memory[int(word)]) for word in head[1]]
    assert f"{121 - len(shown)} of 121 cells" in text
    assert f"and {121 - (len(rows) - 1)} of 121 steps" in text
    assert f"... | {121 - (len(rows) - 1)} steps" in text
    # A gap stands exactly where addresses are missing.
    previous = -1
    gap = False
    for word in head[1]:
        if word == "...":
            gap = True
            continue
        assert gap == (int(word) != previous + 1)
        previous, gap = int(word), False
    assert gap == (previous != 120)


def test_the_cells_that_the_shown_steps_touch_come_first(copy_program):
    head, rows = groups_of(trace_to_text(a_trace(copy_program, 60, 121), width=100, most_steps=4))
    touched = {int(number) for row in rows for word in row[3] + row[4] for number in re.findall(r"p:(\d+)", word)}
    assert touched <= {int(word) for word in head[1] if word != "..."}


def test_a_trace_without_steps_shows_the_memory(copy_program):
    _, rows = groups_of(trace_to_text(record_trace(copy_program, [1, 2, 0], 0)))
    assert rows == [[["end"], ["1", "2", "0"], ["0"] * 4, [], [], []]]


def test_a_run_too_long_to_keep_is_refused():
    endless = from_text("nram program 1\nregisters: a\nalways:\n a := 1\n")
    with pytest.raises(UsageError, match="max_steps"):
        record_trace(endless, [0, 0, 0], MAX_STEPS + 1)
    with pytest.raises(UsageError, match="one memory"):
        record_trace(endless, [[0, 0, 0], [0, 0, 1]])


# ---- as JSON


def test_json_tells_every_step_and_replays(random_programs):
    for rng, program in random_programs(20):
        size = rng.randint(3, 9)
        memory = [rng.randrange(size) for _ in range(size)]
        steps, ending = interpreted(program, memory, 8)
        value = trace_to_json(record_trace(program, memory, 8))
        assert [step["memory"] for step in value["steps"]] == [step.memory for step in steps]
        assert [step["registers"] for step in value["steps"]] == [step.registers for step in steps]
        assert [(s["state"], s["row"]) for s in value["steps"]] == [(step.state, step.row + 1) for step in steps]
        assert value["ending"] == {
            "memory": ending.memory,
            "registers": ending.registers,
            "steps": ending.steps,
            "halted": ending.halted,
        }
        replayed = list(memory)
        for step in value["steps"]:
            assert step["memory"] == replayed
            for write in step["writes"]:
                replayed[write["pointer"]] = write["value"]
        assert replayed == ending.memory


# ---- as LaTeX


def columns_in(tabular: str) -> int:
    """How many columns a tabular declares."""
    spec = re.search(r"\\begin\{tabular\}\{(.*)\}$", tabular, re.MULTILINE)
    assert spec is not None
    letters = re.sub(r">\{\\columncolor\[gray\]\{0\.8\}\}", "", spec[1]).replace("|", "")
    assert set(letters) == {"c"}
    return len(letters)


def body_rows(latex: str) -> list[list[str]]:
    return [line.removesuffix(r" \\").split(" & ") for line in latex.splitlines() if line.endswith(r"\\")]


@pytest.mark.parametrize("n", [3, 30])
def test_every_row_of_the_tabular_has_all_its_columns(copy_program, n):
    run = a_trace(copy_program, n, 2 * n + 1)
    latex = trace_to_latex(run)
    head, *rows = body_rows(latex)
    assert {len(row) for row in (head, *rows)} == {columns_in(latex)}
    assert head[0] == r"\textbf{Step}" and r"$r_{2}$" in head
    everything = [list(memory) for memory in run.memories()]
    for row in rows:
        if row[0] == "end" or row[0].isdigit():
            memory = everything[-1 if row[0] == "end" else int(row[0]) - 1]
            for name, cell in zip(head[1:], row[1:], strict=True):
                if name.isdigit():
                    assert cell == str(memory[int(name)])
    left_out = [line for line in latex.splitlines() if line.startswith("% left out")]
    assert left_out == ([] if n == 3 else ["% left out: 39 of 61 cells and 21 of 61 steps"])
    gray = latex.count(r"\columncolor")
    assert run.instance is not None
    assert gray == len([name for name in head if name.isdigit() and int(name) in run.instance.cells]) > 0
    assert len(body_rows(trace_to_latex(run, most_cells=None, most_steps=None))) == 2 * n + 3


def test_latex_escapes_what_has_a_meaning_there(copy_program):
    program = replace(copy_program, registers=("a_b", "_x", "r12", "plain"), name=HOSTILE)
    latex = trace_to_latex(record_trace(program, PAPER_MEMORY, 3))
    for name in (r"\texttt{a\_b}", r"\texttt{\_x}", "$r_{12}$", r"\texttt{plain}"):
        assert name in body_rows(latex)[0]
    # A program's name stands in a comment of one line.
    assert [line for line in latex.splitlines() if "frac" in line] == [latex.splitlines()[0]]
    assert latex.startswith("% ")


# ---- as HTML


class Page(HTMLParser):
    """The table of a page, and whether all tags match."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[tuple[str, set[str]]]] = []
        self.tags: set[str] = set()
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append(("", set((dict(attrs).get("class") or "").split())))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            words, kinds = self.rows[-1][-1]
            self.rows[-1][-1] = (words + data, kinds)


def test_the_page_shows_every_cell_and_marks_changes_reads_and_writes(copy_program):
    run = a_trace(copy_program, 4, 9)
    captions, head, *rows = Page(trace_to_html(run)).rows
    assert [words for words, _ in captions if words] == ["memory, by address", "registers"]
    memories = [list(memory) for memory in run.memories()]
    size = len(run.start)
    assert [words for words, _ in head[1 : size + 1]] == [str(cell) for cell in range(size)]
    assert run.instance is not None
    assert [i - 1 for i, (_, kinds) in enumerate(head) if "asked" in kinds] == run.instance.cells
    changes = 0
    for i, row in enumerate(rows):
        cells = row[1 : size + 1]
        assert [int(words) for words, _ in cells] == memories[i]
        changed = {cell for cell, (_, kinds) in enumerate(cells) if "changed" in kinds}
        assert changed == {c for c in range(size) if i and memories[i][c] != memories[i - 1][c]}
        changes += len(changed)
        # A frame is around the value that was read, or around the value that was written.
        written = {access.pointer: access.value for access in run.steps[i - 1].writes} if i else {}
        read = {access.pointer: access.value for access in run.steps[i].reads} if i < len(run.steps) else {}
        for kind, values in (("written", written), ("read", read)):
            assert {cell: int(words) for cell, (words, kinds) in enumerate(cells) if kind in kinds} == values
    assert changes == 4
    assert len(rows) == 10 and rows[-1][0][0] == "end"


def test_the_page_needs_nothing_else_and_escapes_names(copy_program):
    page = trace_to_html(record_trace(replace(copy_program, name=HOSTILE), PAPER_MEMORY, 11))
    assert "script" not in Page(page).tags
    assert not re.search(r"https?:|src=|@import|url\(", page)


def test_the_page_says_what_it_leaves_out(copy_program):
    run = a_trace(copy_program, 20, 41)
    page = trace_to_html(run, most_cells=10, most_steps=6)
    assert "31 of 41 cells" not in page  # gaps take columns too
    found = re.search(r"left out: (\d+) of 41 cells and 35 of 41 steps", page)
    assert found is not None
    head = Page(page).rows[1]
    assert sum(words.isdigit() for words, _ in head) == 41 - int(found[1])
    assert "35 left out" in page
    assert "left out" not in trace_to_html(run)


# ---- as colours


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_heat_map_is_written_in_the_format_of_its_ending(copy_program, tmp_path, ending, magic):
    path = tmp_path / f"map.{ending}"
    draw_heatmap(a_trace(replace(copy_program, name=HOSTILE + " 複製"), 5, 11), path)
    assert path.read_bytes().startswith(magic)


def test_a_heat_map_of_a_run_without_steps_or_accesses(tmp_path):
    idle = from_text("nram program 1\nregisters: a_rather_long_name_of_a_register\nalways:\n halt\n")
    for limit in (0, 5):
        draw_heatmap(record_trace(idle, [0, 1, 2], limit), tmp_path / "map.png")
        assert (tmp_path / "map.png").stat().st_size > 1000


def marked(figure, marker: str) -> list[tuple[int, int, str]]:
    """Column and line of the marks of one shape, with the number that stands there."""
    axes = figure.axes[0]
    corners = {"o": 26, "s": 5}[marker]
    numbers = {text.get_position(): text.get_text() for text in axes.texts}
    shapes = [c for c in axes.collections if len(c.get_paths()[0].vertices) == corners]
    places = [(int(x), int(y)) for shape in shapes for x, y in np.asarray(shape.get_offsets())]
    return sorted((x, y, numbers[x, y]) for x, y in places)


def test_a_heat_map_marks_what_was_read_what_was_written_and_the_output_cells(copy_program):
    run = a_trace(copy_program, 4, 9)
    figure = heatmap(run)
    steps = run.steps
    reads = [(a.pointer, i, str(a.value)) for i, step in enumerate(steps) for a in step.reads]
    writes = [(a.pointer, i + 1, str(a.value)) for i, step in enumerate(steps) for a in step.writes]
    assert marked(figure, "o") == sorted(reads) and marked(figure, "s") == sorted(writes)
    bars = [
        np.mean(patch.get_path().transformed(patch.get_patch_transform()).get_extents().intervalx)
        for patch in figure.axes[0].patches
    ]
    assert sorted(bars) == pytest.approx(sorted(run.output_cells))
    assert run.outcome()[1] in figure.get_suptitle()
    assert not heatmap(record_trace(copy_program, PAPER_MEMORY, 3)).axes[0].patches


def test_marks_and_numbers_can_be_seen_on_every_colour_of_a_heat_map():
    def contrast(one, other) -> float:
        low, high = sorted(luminance(to_rgb(colour)) + 0.05 for colour in (one, other))
        return high / low

    for value in range(256):
        ground = MAP(value)
        for mark in (READ, WRITTEN):
            assert max(contrast(mark, ground), contrast(OUTLINE, ground)) >= 3, value
            assert contrast(mark, OUTLINE) >= 7
        assert max(contrast(WHITE, ground), contrast(BLACK, ground)) >= 4.5


def test_numbers_have_the_ink_with_more_contrast(copy_program):
    figure = heatmap(a_trace(copy_program, 5, 11))
    for axes in figure.axes[:2]:
        for text in axes.texts:
            ground = luminance(MAP(int(text.get_text()) / 10)[:3])
            black = (ground + 0.05) / (luminance(to_rgb(BLACK)) + 0.05)
            white = (luminance(to_rgb(WHITE)) + 0.05) / (ground + 0.05)
            assert text.get_color() == (BLACK if black > white else WHITE) or abs(black - white) < 0.3


def test_a_heat_map_as_svg_has_colours_for_dark_pages_too(copy_program, tmp_path):
    path = tmp_path / "map.svg"
    draw_heatmap(a_trace(copy_program, 3, 7), path)
    page = path.read_text()
    (rules,) = re.findall(r"prefers-color-scheme:dark\)\{(.*?)\}</style>", page)
    for name in ("ground", "ink", "pale", "output"):
        light, dark = COLOURS[name]
        assert f'[style*="fill: {light}"]{{fill:{dark}!important}}' in rules
    assert WHITE not in rules and READ not in rules  # the colours of the map and its marks stay
    draw_heatmap(a_trace(copy_program, 3, 7), path, "dark")
    assert "prefers-color-scheme" not in path.read_text() and COLOURS["ground"][1] in path.read_text()


def test_frames_in_the_picture_of_a_table_are_around_what_was_read_and_written(copy_program):
    run = a_trace(copy_program, 3, 7)
    root = ElementTree.fromstring(trace_to_svg(run))
    numbers = [(float(t.get("x", "")), float(t.get("y", "")), t.text or "") for t in root.iter(f"{SVG}text")]

    def framed(kind: str) -> list[int]:
        found = []
        for rect in root.iter(f"{SVG}rect"):
            x, y, wide, high = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
            if rect.get("class") == kind:
                found += [
                    int(word) for a, b, word in numbers if x < a < x + wide and y < b < y + high and word.isdigit()
                ]
        return sorted(found)

    assert framed("written") == sorted(access.value for step in run.steps for access in step.writes)
    assert framed("read") == sorted(access.value for step in run.steps for access in step.reads)
    assert framed("asked") == sorted(run.output_cells)
    assert {"memory, by address", "registers"} <= {word for _, _, word in numbers}


def test_heat_maps_that_cannot_be_are_refused(copy_program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what cannot be written is saved in the current folder
    run = a_trace(copy_program, 2, 3)
    with pytest.raises(UsageError, match=r"\.png, \.svg, \.pdf"):
        draw_heatmap(run, tmp_path / "map.gif")
    with pytest.raises(NramError, match="cannot write"):
        draw_heatmap(run, Path(tmp_path / "nowhere" / "map.png"))
    with pytest.raises(UsageError, match="max_steps"):
        draw_heatmap(record_trace(copy_program, [0, 0, 0], 200, memory_size=120_000), tmp_path / "map.png")
