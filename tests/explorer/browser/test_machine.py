"""The machine view: what it shows is what the interpreter does, and everything works from the keyboard."""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from nram.explorer.settings import MOST_WAITING
from nram.extensions import get_task
from nram.programs.interpret import Ending, Step, trace
from nram.programs.library import load_program

COUNTER = """nram program 1
name: <img src=x onerror=alert(1)> & co
origin: written
registers: r1

always:
    o1 = READ(0)
    o2 = INC(o1)
    WRITE(0, o2)
    r1 := o2
"""


def states_of(name: str, memory: list[int]) -> list[tuple[list[int], list[int]]]:
    """Memory and registers before every step, and at the end, by the interpreter."""
    found: list[Step | Ending] = [*trace(load_program(name), memory, 1000)]
    return [(one.memory, one.registers) for one in found]


def shown(page: Page) -> tuple[list[int], list[int]]:
    values = page.locator(".cell .value > span:first-child").all_inner_texts()
    registers = page.locator(".register-value").all_inner_texts()
    return [int(word) for word in values], [int(word) for word in registers]


def open_at(page: Page, explorer, **values) -> None:
    page.goto(explorer.link("machine", **values))
    expect(page.locator(".step-words")).to_contain_text(re.compile("Step|End"))


def position(page: Page) -> int:
    return int(page.locator(".time-line").input_value())


@pytest.mark.parametrize("name", ["reverse@searched", "merge@trained"])
def test_every_step_is_the_interpreters(page, explorer, name):
    task = get_task(name.split("@")[0])
    instance = task.sample(3, 1, 4)[0]
    states = states_of(name, instance.input)
    open_at(page, explorer, program=name, task=task.name, n=3, seed=4)
    for index, state in enumerate(states):
        assert position(page) == index
        assert shown(page) == state
        page.keyboard.press("ArrowRight")
    expect(page.locator(".step-words")).to_have_text(re.compile(r"End\. .* Right"))
    for state in reversed(states):
        assert shown(page) == state
        page.keyboard.press("ArrowLeft")
    assert position(page) == 0


def test_one_step_in_all_its_parts(page, explorer):
    """By hand: 'reverse' in its third row, after one step, reads the last element and writes it to the destination."""
    open_at(page, explorer, program="reverse@searched", memory="4 7 8 5 0 0 0 0 0", step=1)
    expect(page.locator(".step-words")).to_have_text(
        "Step 2 of 5: row 3, reads cell 3 = 5, writes 5 to cell 4, r1 becomes 4, r2 becomes 2."
    )
    expect(page.locator(".cell.read")).to_have_attribute("data-cell", "3")
    expect(page.locator(".cell.read .mark")).to_have_text("R r2")
    expect(page.locator(".cell.written")).to_have_attribute("data-cell", "4")
    expect(page.locator(".cell.written .marks")).to_contain_text("← 5")
    expect(page.locator(".registers li").first).to_have_text("r13→ 4")
    expect(page.locator(".reason")).to_have_text("Row 3 applies because no row above it does.")
    lit = page.locator(".listing-row.lit")
    assert lit.locator(".line").all_inner_texts() == [
        "else:\n✓",
        "o1 = INC(r1)\n= 4",
        "o2 = READ(r2)\ncell 3 → 5",
        "WRITE(o1, o2)\ncell 4 ← 5",
        "o4 = DEC(r2)\n= 2",
        "r1, r2 := o1, o4\n= 4, 2",
    ]
    assert page.locator(".listing-row.tried .note").all_inner_texts()[0] == "✗ r1 is 3"
    badges = page.locator(".circuit .badge[visibility=visible]").all_text_contents()
    assert sorted(badges) == ["2", "2", "3", "3", "4", "4", "5"]


def test_keys(page, explorer):
    open_at(page, explorer, program="reverse@searched", n=4, seed=1)
    page.keyboard.press("End")
    end = position(page)
    assert end == 6
    page.keyboard.press("ArrowRight")
    assert position(page) == end
    page.keyboard.press("Home")
    assert position(page) == 0
    page.keyboard.press("PageDown")
    assert position(page) == end
    page.keyboard.press("Home")
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press(" ")
    expect(page.locator(".control.main")).to_have_attribute("aria-label", "Pause")
    expect(page.locator(".step-words")).to_have_text(re.compile("^End"))
    expect(page.locator(".control.main")).to_have_attribute("aria-label", "Play")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("i")
    expect(page.get_by_label("Memory", exact=True)).to_be_focused()
    page.keyboard.press("Home")  # the field's own key now
    assert position(page) == end


def test_the_time_line_and_the_position(page, explorer):
    open_at(page, explorer, program="merge@searched", n=6)
    line = page.get_by_label("Time line")
    box = line.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert 0 < position(page) < int(line.get_attribute("max") or 0)
    page.get_by_label("After").fill("3")
    page.keyboard.press("Enter")
    expect(page.locator(".step-words")).to_contain_text("Step 4 of")
    paths = page.get_by_label("Cells that steps 1 to")
    paths.click(position={"x": 44 + 26 * 5.5, "y": 20})  # the sixth step
    expect(page.locator(".step-words")).to_contain_text("Step 6 of")
    page.keyboard.press("g")
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    expect(page.locator(".step-words")).to_contain_text("Step 6 of")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("step=3"))


def test_cells_are_edited_from_the_keyboard(page, explorer):
    open_at(page, explorer, program="reverse@searched", memory="4 7 8 5 0 0 0 0 0")
    page.locator("button.value").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Memory", exact=True)).to_have_value("4 2 8 5 0 0 0 0 0")
    expect(page.locator(".cell .value > span:first-child").nth(1)).to_have_text("2")
    page.locator("button.value").nth(2).click()
    page.keyboard.type("9")
    page.keyboard.press("Enter")
    expect(page.locator(".input-panel .error").first).to_have_text(re.compile("with 9 cells the values are 0 to 8"))


BAD = [
    ("Memory", "1 2 x 4", "Cell 2: “x” is not a whole number from 0 up."),
    ("Memory", "1 2 9 4", "Cell 2 holds 9, but with 4 cells the values are 0 to 3."),
    ("Memory", "", "Type the memory"),
    ("Memory", "1 0", "A memory has at least 3 cells."),
    ("Memory", "1 <b>2</b> 0 0", "Cell 1: “<b>2</b>” is not"),
    ("Cells", "5000", "3 to 4,096 cells."),
    ("Cells", "2", "3 to 4,096 cells."),
    ("Step limit", "-1", "0 to 10,000,000 steps."),
    ("n", "4000", "needs more than 4096 cells"),
    ("n", "100000", "A whole number, 1 to 4,096."),
]


def test_bad_input_is_told_at_the_field(page, explorer):
    good = {"Memory": "4 7 8 5 0 0 0 0 0", "n": "3"}
    open_at(page, explorer, program="reverse@searched", memory=good["Memory"])
    for field, words, problem in BAD:
        control = page.get_by_label(field, exact=True)
        control.fill(words)
        control.press("Enter") if field == "n" else None
        error = page.locator(f"#{control.get_attribute('id')}-error")
        expect(error).to_contain_text(problem)
        expect(control).to_have_attribute("aria-invalid", "true")
        assert error.locator("*").count() == 0
        if field != "Memory":
            control.fill(good.get(field, ""))
    page.get_by_label("Memory", exact=True).fill(good["Memory"])
    expect(page.locator(".input-panel .field > .error").first).to_be_hidden()
    expect(page.locator(".step-words")).to_contain_text("Step 1 of")


def test_a_sample_is_drawn(page, explorer):
    open_at(page, explorer, program="merge@searched")
    page.get_by_label("n", exact=True).fill("4")
    page.get_by_label("Seed").fill("7")
    page.get_by_role("button", name="Sample").click()
    instance = get_task("merge").sample(4, 1, 7)[0]
    expect(page.get_by_label("Memory", exact=True)).to_have_value(" ".join(map(str, instance.input)))
    outputs = page.locator(".cell.output")
    expect(outputs).to_have_count(len(instance.cells))
    assert outputs.evaluate_all("cells => cells.map(cell => Number(cell.dataset.cell))") == instance.cells
    expect(page).to_have_url(re.compile("seed=7"))


def test_a_wrong_output_is_marked(page, explorer):
    open_at(page, explorer, program="reverse@searched", task="copy", n=3)
    page.keyboard.press("End")
    expect(page.locator(".step-words")).to_contain_text("Wrong in")
    wrong = page.locator(".cell.wrong").first
    expect(wrong.locator(".expected")).to_contain_text("≠")
    expect(wrong.locator(".sr")).to_contain_text("wrong, expected")


def test_a_link_restores_the_state(page, new_page, explorer):
    open_at(page, explorer, program="merge@trained", n=4, seed=2)
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("step=3"))
    other = new_page()
    other.goto(page.url)
    expect(other.locator(".step-words")).to_have_text(page.locator(".step-words").inner_text())
    assert shown(other) == shown(page)


def test_a_link_with_more_cells_than_the_sample_restores_it(page, new_page, explorer):
    open_at(page, explorer, program="copy@searched", task="copy", n=3, seed=2)
    sample = page.get_by_label("Memory", exact=True).input_value()
    page.get_by_label("Cells", exact=True).fill("20")
    expect(page.locator(".cell")).to_have_count(20)
    expect(page).to_have_url(re.compile("size=20"))
    other = new_page()
    other.goto(page.url)
    expect(other.locator(".cell")).to_have_count(20)
    expect(other.get_by_label("Memory", exact=True)).to_have_value(sample)
    other.keyboard.press("End")
    expect(other.locator(".step-words")).to_contain_text("Right: all 3 output cells")


def test_a_link_with_a_bad_memory_can_be_mended(page, explorer):
    page.goto(explorer.link("machine", program="copy@searched", memory="1 2 99"))
    error = page.locator(".input-panel .error").first
    expect(error).to_contain_text("Cell 2 holds 99")
    assert page.locator(".cell").count() == 0
    page.get_by_label("Memory", exact=True).fill("1 2 0")
    expect(page.locator(".step-words")).to_contain_text("Step 1 of")
    expect(error).to_be_hidden()


def test_back_and_forth_in_the_history(page, explorer):
    open_at(page, explorer, program="reverse@searched", memory="4 7 8 5 0 0 0 0 0", step=2)
    page.get_by_role("button", name="Show or edit").click()
    expect(page.get_by_label("Text of the program")).to_be_visible()
    page.go_back()
    expect(page.locator(".step-words")).to_contain_text("Step 3 of")


def test_a_million_steps_of_a_program_with_a_hostile_name(page, explorer):
    open_at(page, explorer, program=f"text:{COUNTER}", memory="1 2 3", size=4096, steps=1_000_000)
    expect(page.locator(".machine-view .title-line h2")).to_have_text("<img src=x onerror=alert(1)> & co")
    assert page.locator("main img").count() == 0
    assert page.locator(".cell").count() < 200
    page.keyboard.press("End")
    expect(page.locator(".step-words")).to_contain_text("Stopped at the limit of 1,000,000 steps")
    assert shown(page)[0][0] == (1 + 1_000_000) % 4096
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".step-words")).to_contain_text("Step 1,000,000 of 1,000,000")
    page.get_by_label("After").fill("500000")
    page.keyboard.press("Enter")
    expect(page.locator(".step-words")).to_contain_text("Step 500,001 of 1,000,000")
    assert shown(page)[0][0] == (1 + 500_000) % 4096
    page.get_by_label("Show from cell").fill("4000")
    page.keyboard.press("Enter")
    expect(page.locator(".cell[data-cell='4095']")).to_be_visible()
    expect(page.locator(".cell[data-cell='0']")).to_be_visible()  # it is read


def test_a_file_is_opened(page, explorer):
    open_at(page, explorer, program="reverse@searched")
    file = {"name": "counter.nram", "mimeType": "text/plain", "buffer": COUNTER.encode()}
    page.locator(".machine-view input[type=file]").set_input_files(file)  # pyright: ignore[reportArgumentType]
    expect(page.locator(".machine-view .title-line h2")).to_contain_text("& co")
    expect(page).to_have_url(re.compile("program=text"))


def test_keys_on_the_time_line_and_without_letters(page, explorer):
    open_at(page, explorer, program="reverse@searched", n=4, seed=1)
    line = page.get_by_label("Time line")
    line.focus()
    page.keyboard.press("ArrowRight")
    expect(line).to_have_value("1")
    page.keyboard.press(" ")
    expect(page.locator(".control.main")).to_have_attribute("aria-label", "Pause")
    page.keyboard.press(" ")
    page.keyboard.press("?")
    page.get_by_label("Single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    for _ in range(2):  # the browser keeps it
        page.keyboard.press("2")
        page.keyboard.press("i")
        expect(page.get_by_role("link", name="Machine")).to_have_attribute("aria-current", "page")
        expect(page.get_by_label("Memory", exact=True)).not_to_be_focused()
        page.keyboard.press("End")
        expect(page.locator(".step-words")).to_contain_text("End")
        expect(page).to_have_url(re.compile("step=6"))
        page.reload()
        expect(page.locator(".step-words")).to_contain_text("End")
    page.get_by_role("button", name="Help on keys").click()
    page.get_by_label("Single-key shortcuts").check()
    page.get_by_role("button", name="Close").click()
    page.locator("h1").click()
    page.keyboard.press("2")
    expect(page.get_by_role("link", name="Program")).to_have_attribute("aria-current", "page")


def test_a_memory_that_cannot_be_used_leaves_a_stage_that_is_marked(page, explorer):
    open_at(page, explorer, program="reverse@searched", memory="4 7 8 5 0 0 0 0 0")
    memory = page.get_by_label("Memory", exact=True)
    memory.fill("1 2 x")
    expect(page.locator(".stage-place")).to_have_class(re.compile("stale"))
    memory.fill("4 7 8 5 0 0 0 0 1")
    expect(page.locator(".stage-place")).not_to_have_class(re.compile("stale"))


def test_a_server_with_too_many_connections_says_so(page, explorer):
    open_at(page, explorer, program="reverse@searched", memory="4 7 8 5 0 0 0 0 0")
    parts = urlsplit(explorer.url)
    with ExitStack() as opened:
        for _ in range(MOST_WAITING):
            opened.enter_context(socket.create_connection((parts.hostname or "", parts.port or 0)))
        memory = page.get_by_label("Memory", exact=True)
        memory.fill("4 7 8 5 0 0 0 0 1")
        expect(page.locator(".input-panel .error").first).to_contain_text("too many connections")
    expect(page.locator(".stage-place")).to_have_class(re.compile("stale"))
    memory.fill("4 7 8 5 0 0 0 1 1")
    expect(page.locator(".stage-place")).not_to_have_class(re.compile("stale"))


def test_a_stage_that_is_not_shown_any_more_is_not_kept(page, explorer):
    """Each panel listened to the browser's colours for ever, with its whole stage."""
    page.add_init_script(
        """
        window.listeners = 0;
        const add = MediaQueryList.prototype.addEventListener;
        MediaQueryList.prototype.addEventListener = function (...given) {
          window.listeners += 1;
          return add.apply(this, given);
        };
        """
    )
    open_at(page, explorer, program="reverse@searched")
    before = page.evaluate("window.listeners")
    for name in ("copy", "swap", "merge"):
        page.locator(".machine-view .picker select").select_option(f"{name}@searched")
        expect(page.locator(".machine-view .title-line h2")).to_contain_text(name)
        expect(page.locator(".step-words")).to_contain_text("Step 1")
    assert page.evaluate("window.listeners") == before
    page.emulate_media(color_scheme="dark")
    expect(page.locator(".paths canvas")).to_be_visible()


def test_the_marks_of_a_tape_in_several_lines_take_one_line(new_page, explorer):
    page = new_page(viewport={"width": 375, "height": 812})
    open_at(page, explorer, program="merge@searched", n=8, step=4)
    cells = page.locator(".cells")
    expect(cells).to_have_class("cells wrapped")
    assert page.locator(".cell[data-cell='2'] .mark").all_inner_texts() == ["R", "W"]
    assert page.locator(".cell[data-cell='13'] .mark").all_inner_texts() == ["← 5"]
    heights = page.locator(".cell").evaluate_all("cells => cells.map(cell => cell.offsetHeight)")
    assert max(heights) - min(heights) <= 1  # rounded
    page.set_viewport_size({"width": 1400, "height": 812})
    expect(cells).to_have_class("cells")
    assert page.locator(".cell[data-cell='13'] .marks").inner_text().split() == ["W", "o1", "←", "5"]
