"""The exported page, opened from the disk: it runs its program by itself, and allows nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from nram.explorer.export import exported_page, task_inputs
from nram.extensions import get_task
from nram.programs.files import program_from
from nram.programs.interpret import Ending, Step, trace
from nram.programs.library import load_program

HOSTILE = '</script><script>document.title="taken"</script><img src=x onerror="document.title=1">'


def open_page(page: Page, path: Path, program, inputs) -> None:
    path.write_text(exported_page(program, inputs))
    page.goto(path.as_uri())
    expect(page.locator(".step-words")).not_to_be_empty()


def shown(page: Page) -> tuple[list[int], list[int]]:
    values = page.locator(".cell .value > span:first-child").all_inner_texts()
    return [int(word) for word in values], [int(word) for word in page.locator(".register-value").all_inner_texts()]


@pytest.mark.parametrize("name", ["merge@searched", "walkbst@trained"])
def test_it_steps_like_the_interpreter_without_a_server(page, tmp_path, name):
    program, task = load_program(name), get_task(name.partition("@")[0])
    inputs = task_inputs(program, task, 3)
    open_page(page, tmp_path / "page.html", program, inputs)
    found: list[Step | Ending] = [*trace(program, inputs[0]["input"], inputs[0]["steps"])]
    for state in found:
        assert shown(page) == (state.memory, state.registers)
        page.keyboard.press("ArrowRight")
    expect(page.locator(".step-words")).to_contain_text("Right")


def test_another_input_and_one_that_is_typed(page, tmp_path):
    program = load_program("reverse@searched")
    inputs = task_inputs(program, get_task("reverse"))
    open_page(page, tmp_path / "page.html", program, inputs)
    page.get_by_label("Input").select_option("4")
    expect(page.get_by_label("Memory", exact=True)).to_have_value(" ".join(map(str, inputs[4]["input"])))
    page.get_by_label("Memory", exact=True).fill("3 6 5 0 0 0 0")
    expect(page.get_by_label("Input")).to_have_value("typed")
    page.locator("h1").click()
    page.keyboard.press("End")
    expect(page.locator(".step-words")).to_contain_text("End")
    assert shown(page)[0] == [3, 6, 5, 5, 6, 0, 0]
    page.get_by_label("Memory", exact=True).fill("1 2 x 0")
    expect(page.locator(".export-inputs .error").nth(1)).to_contain_text("“x” is not a whole number")
    page.get_by_label("Memory", exact=True).fill("3 1")
    expect(page.locator(".export-inputs .error").nth(1)).to_contain_text("at least 3 cells")


def test_a_cell_is_edited(page, tmp_path):
    program = load_program("reverse@searched")
    inputs = task_inputs(program, get_task("reverse"), 3)
    open_page(page, tmp_path / "page.html", program, inputs)
    value = (inputs[0]["input"][1] + 1) % len(inputs[0]["input"])
    page.locator("button.value").nth(1).click()
    page.keyboard.type(str(value))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Input")).to_have_value("typed")
    assert shown(page)[0][1] == value


def test_the_link_restores_input_and_position(page, new_page, tmp_path):
    program = load_program("copy@searched")
    path = tmp_path / "page.html"
    open_page(page, path, program, task_inputs(program, get_task("copy")))
    page.get_by_label("Input").select_option("3")
    page.locator("h1").click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("#3.2$"))
    other = new_page()
    other.goto(page.url)
    expect(other.locator(".step-words")).to_have_text(page.locator(".step-words").inner_text())


def test_a_hostile_name_stays_text(page, tmp_path):
    rows = "when constructor = 0:\n    constructor := 1\nelse:\n    halt\n"
    text = f"nram program 1\nname: {HOSTILE}\nregisters: constructor toString\n\n{rows}"
    open_page(page, tmp_path / "page.html", program_from(text), [{"input": [1, 2, 0], "steps": 10}])
    expect(page.locator("h1")).to_have_text(HOSTILE)
    assert page.locator("img").count() == 0
    assert "taken" not in page.title()[:5]
    page.keyboard.press("End")
    expect(page.locator(".step-words")).to_contain_text("halted after 2 steps")


def test_nothing_else_may_run_in_it(browser, tmp_path):
    """Its policy refuses a script that is added, and every request."""
    page = browser.new_page()
    program = load_program("access@searched")
    path = tmp_path / "page.html"
    path.write_text(exported_page(program, task_inputs(program, get_task("access"))))
    path.write_text(path.read_text().replace("</body>", "<script>document.title = 'taken'</script></body>"))
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(path.as_uri())
    expect(page.locator(".step-words")).not_to_be_empty()
    assert page.title() != "taken"
    found = page.evaluate("fetch('data:,x').then(() => 'allowed', () => 'refused')")
    assert found == "refused"
    assert any("Content Security Policy" in words for words in refused)
    page.close()


def test_it_is_usable_on_a_phone_and_by_everybody(new_page, tmp_path, no_axe_problems):
    program = load_program("merge@trained")
    for scheme in ("light", "dark"):
        page = new_page(viewport={"width": 375, "height": 800}, color_scheme=scheme, bypass_csp=True)  # for axe
        open_page(page, tmp_path / f"{scheme}.html", program, task_inputs(program, get_task("merge")))
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        no_axe_problems(page)


def test_the_data_of_a_page_can_be_read_by_programs(tmp_path):
    """It is JSON in an element of its own."""
    program = load_program("access@searched")
    text = exported_page(program, task_inputs(program, get_task("access")))
    start = text.index('<script type="application/json" id="data">') + len('<script type="application/json" id="data">')
    data = json.loads(text[start : text.index("</script>", start)])
    assert program_from(json.dumps(data["table"])) == program


def test_a_word_that_is_no_value_for_a_cell_changes_nothing(page, tmp_path):
    program = load_program("reverse@searched")
    inputs = task_inputs(program, get_task("reverse"), 3)
    open_page(page, tmp_path / "page.html", program, inputs)
    error = page.locator(".export-inputs .error").nth(1)
    for word, problem in (
        ("9999", "the values are 0 to"),
        ("1 2", "“1 2” is not a value for cell 1"),
        ("", "is not a"),
    ):
        page.locator("button.value").nth(1).click()
        page.locator(".value-input").fill(word)
        page.keyboard.press("Enter")
        expect(error).to_contain_text(problem)
        assert shown(page)[0] == inputs[0]["input"]
    expect(page.get_by_label("Input")).to_have_value("0")


def test_the_link_keeps_a_memory_that_was_typed(page, new_page, tmp_path):
    program = load_program("reverse@searched")
    path = tmp_path / "page.html"
    open_page(page, path, program, task_inputs(program, get_task("reverse")))
    page.get_by_label("Memory", exact=True).fill("3 6 5 0 0 0 0")
    expect(page).to_have_url(re.compile("#m=3,6,5,0,0,0,0&step=0$"))
    page.locator("h1").click()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("&step=1$"))
    other = new_page()
    other.goto(page.url)
    expect(other.locator(".step-words")).to_have_text(page.locator(".step-words").inner_text())
    assert shown(other) == shown(page)


COUNTER = (
    "nram program 1\nname: count\nregisters: r1\n\nalways:\n    o1 = READ(0)\n    o2 = INC(o1)\n    WRITE(0, o2)\n"
)


def test_a_long_run_leaves_the_page_usable(page, tmp_path):
    """And its end is shown at once: it is near a situation that was kept."""
    steps = 2_000_000
    path = tmp_path / "page.html"
    path.write_text(exported_page(program_from(COUNTER), [{"input": [1, 2, 0, 0], "steps": steps}]))
    page.add_init_script(
        """
        window.longest = 0;
        let last = performance.now();
        setInterval(() => {
          window.longest = Math.max(window.longest, performance.now() - last);
          last = performance.now();
        }, 5);
        """
    )
    page.goto(path.as_uri())
    expect(page.locator(".step-words")).to_contain_text("Step 1 of 2,000,000")
    assert page.evaluate("window.longest") < 1000
    page.locator("h1").click()
    page.keyboard.press("End")
    expect(page.locator(".step-words")).to_contain_text("Stopped at the limit of 2,000,000 steps")
    assert shown(page)[0][0] == (1 + steps) % 4


def test_a_link_with_a_bad_memory_shows_the_first_input_and_says_what_is_wrong(page, tmp_path):
    program = load_program("reverse@searched")
    path = tmp_path / "page.html"
    path.write_text(exported_page(program, task_inputs(program, get_task("reverse"))))
    page.goto(f"{path.as_uri()}#m=abc")
    error = page.locator(".export-inputs .error").nth(1)
    expect(error).to_have_text("A memory has at least 3 cells.")
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#m=1,abc,0")
    expect(error).to_have_text("Cell 1: “abc” is not a whole number from 0 up.")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".step-words")).to_contain_text("Step 2 of")
    expect(error).to_be_visible()
