"""The other views: program, evidence, network, compare; and what is true of all of them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from nram.extensions import get_task
from nram.extras import missing
from nram.pictures.shapes import COLOURS
from nram.programs.library import load_program
from nram.programs.text import to_text

VIEWS = ["machine", "program", "evidence", "network", "compare", "learn", "runs"]
WRONG_REVERSE = re.sub("verified: .*\n", "", to_text(load_program("reverse@searched"))).replace("DEC(r2)", "INC(r2)")

needs_training = pytest.mark.skipif(missing("train") is not None, reason="needs the training library")


def ready(page: Page, view: str) -> None:
    """Wait until a view shows what it has to show."""
    shown = {
        "machine": ".machine-view .step-words:not(:empty)",
        "program": ".program-view .circuit svg",
        "evidence": ".evidence-view .sentences li",
        "network": ".network-view .wires li",
        "compare": ".finding strong",
    }.get(view, "main > section:not([hidden])")
    expect(page.locator(shown).first).to_be_visible(timeout=30_000)


def has_network(view: str) -> bool:
    return view != "network" or missing("train") is None


# ---- program


def test_a_program_is_edited_with_an_error_and_mended(page, explorer):
    page.goto(explorer.link("program", program="reverse@searched"))
    ready(page, "program")
    editor = page.get_by_label("Text of the program")
    good = editor.input_value()
    lines = good.split("\n")
    wrong = lines.index("    halt")
    lines[wrong] = "    hold"
    editor.fill("\n".join(lines))
    problem = page.locator(".problems li")
    expect(problem).to_contain_text("'hold' is not one of")
    expect(page.get_by_role("button", name="Run it")).to_be_disabled()
    problem.get_by_role("button", name=f"Line {wrong + 1}").click()
    assert editor.evaluate("area => area.value.slice(area.selectionStart, area.selectionEnd)") == "    hold"
    page.keyboard.type("    halt")
    expect(problem).to_have_count(0)
    editor.fill(good.replace("o4 = DEC(r2)", "o4 = INC(r2)"))
    expect(page.locator(".program-view .circuit").nth(2)).not_to_contain_text("DEC")
    page.get_by_role("button", name="Run it").click()
    expect(page.locator(".machine-view .step-words")).to_contain_text("Step 1 of")
    page.keyboard.press("End")
    expect(page.locator(".machine-view .step-words")).to_contain_text("Wrong in")


def test_an_edited_text_is_in_the_link_even_with_errors(page, new_page, explorer):
    page.goto(explorer.link("program", program="swap@searched"))
    ready(page, "program")
    page.get_by_label("Text of the program").fill("nram program 1\nregisters: r1\n\nalways:\n    r1 := <b>x</b>\n")
    expect(page.locator(".problems li")).to_contain_text("'<b>x</b>' is not a register")
    expect(page).to_have_url(re.compile("text%3A"))
    other = new_page()
    other.goto(page.url)
    expect(other.locator(".problems li")).to_contain_text("'<b>x</b>' is not a register")
    expect(other.get_by_label("Text of the program")).to_have_value(re.compile("<b>x</b>"))
    assert other.locator("main b").count() == 0


def test_an_error_in_the_text_is_seen_and_goes_with_it(page, explorer):
    page.goto(explorer.link("program", program="walkbst@searched"))
    ready(page, "program")
    editor, facts = page.get_by_label("Text of the program"), page.locator(".program-view .facts")
    expect(facts).to_contain_text("proven")
    good = editor.input_value()
    editor.press("Control+End")
    page.keyboard.type("\n".join(f"    o{number} = NOTHING" for number in range(1, 9)))
    expect(page.locator(".problems li").first).to_be_visible()
    expect(facts).to_have_text("✗ the text has problems")
    seen = editor.evaluate("area => area.scrollHeight - area.scrollTop - area.clientHeight")
    assert seen <= 2  # the line of the cursor is the last one
    editor.fill(good)
    expect(page.locator(".program-view .hint")).not_to_contain_text("Edited.")
    expect(facts).to_contain_text("proven")
    expect(page).to_have_url(re.compile("program=walkbst%40searched"))
    page.goto(explorer.link("program", program="text:nonsense"))
    expect(page.locator(".problems li").first).to_be_visible()
    expect(page.locator(".program-view .hint")).not_to_contain_text("pictures")
    expect(page.get_by_label("Form of the network's program")).to_be_hidden()
    assert page.locator(".program-view .circuit").count() == 0


@pytest.mark.parametrize(
    ("name", "suffix", "words"), [("Text", ".nram", "nram program 1"), ("C", ".c", "#include"), ("SVG", ".svg", "<svg")]
)
def test_files_of_a_program(page, explorer, tmp_path, name, suffix, words):
    page.goto(explorer.link("program", program="copy@searched"))
    ready(page, "program")
    with page.expect_download() as got:
        page.get_by_role("button", name=name, exact=True).click()
    assert got.value.suggested_filename.endswith(suffix)
    got.value.save_as(tmp_path / "file")
    assert words in (tmp_path / "file").read_text()


@needs_training
def test_a_trained_program_as_it_was_extracted(page, new_page, explorer):
    page.goto(explorer.link("program", program="copy@trained"))
    ready(page, "program")
    page.get_by_label("Form of the network's program").select_option("as extracted")
    expect(page.locator(".program-view .facts")).to_contain_text("608 operations")
    page.get_by_role("button", name="Run it").click()
    expect(page.locator(".machine-view .step-words")).to_contain_text("Step 1 of")
    page.keyboard.press("End")
    expect(page.locator(".machine-view .step-words")).to_contain_text("Right")
    other = new_page()
    other.goto(page.url)
    expect(other.locator(".machine-view .facts")).to_contain_text("as extracted")
    other.keyboard.press("2")
    expect(other.get_by_label("Form of the network's program")).to_have_value("raw")


def open_text(page: Page, text: str) -> None:
    file = {"name": "given.nram", "mimeType": "text/plain", "buffer": text.encode()}
    page.locator(".program-view input[type=file]").set_input_files(file)  # pyright: ignore[reportArgumentType]


def test_undo_goes_back_to_the_program_that_was_opened(page, explorer):
    page.goto(explorer.link("program", program="swap@searched"))
    ready(page, "program")
    title, undo = page.locator(".program-view h2"), page.get_by_role("button", name="Undo all changes")
    editor = page.get_by_label("Text of the program")
    open_text(page, to_text(load_program("copy@searched")).replace("name: ", "name: my-"))
    expect(title).to_contain_text("my-")
    expect(undo).to_be_hidden()  # a file that was just opened is not edited
    opened = editor.input_value()
    editor.fill(opened + "\n# more\n")
    expect(undo).to_be_visible()
    page.get_by_role("button", name="Run it").click()  # to another view and back: it is still edited
    ready(page, "machine")
    page.get_by_role("link", name="Program").click()
    expect(editor).to_have_value(re.compile("more"))
    undo.click()
    expect(editor).to_have_value(opened)
    expect(title).to_contain_text("my-")
    expect(undo).to_be_hidden()


@pytest.mark.parametrize("view", ["program", "evidence", "machine"])
def test_a_program_that_comes_late_does_not_replace_another(page, explorer, view):
    page.goto(explorer.link(view, program="swap@searched"))
    ready(page, view)
    held = []

    def hold(route):
        if "merge@searched" in (route.request.post_data or "") and not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/api/program", hold)
    choice = page.locator(f".{view}-view .picker select").first
    with page.expect_request("**/api/program"):
        choice.select_option("merge@searched")
    choice.select_option("copy@searched")
    title = page.locator(f".{view}-view .title-line h2")
    expect(title).to_contain_text("copy")
    with page.expect_response("**/api/program"):
        held[0].continue_()
    expect(title).to_contain_text("copy")
    expect(page).to_have_url(re.compile("copy%40searched"))


# ---- evidence


def test_evidence_in_three_groups(page, explorer):
    page.goto(explorer.link("evidence", program="copy@searched"))
    ready(page, "evidence")
    expect(page.locator(".group-proven li").first).to_contain_text("every memory size and every input")
    expect(page.locator(".group-tested li").first).to_contain_text("random inputs")


def test_a_wrong_program_is_caught_and_its_counterexample_is_watched(page, explorer):
    page.goto(explorer.link("evidence", program=f"text:{WRONG_REVERSE}"))
    expect(page.locator(".group-open li")).to_contain_text("verified")
    page.get_by_label("Seconds for each part").fill("1")
    page.get_by_role("button", name="Verify now").click()
    expect(page.locator(".verdict")).to_contain_text("Wrong", timeout=30_000)
    expect(page).to_have_url(re.compile("job="))
    page.reload()  # the link keeps the verification
    expect(page.locator(".verdict")).to_contain_text("Wrong")
    page.get_by_role("button", name="Watch it go wrong").click()
    ready(page, "machine")
    page.keyboard.press("End")
    expect(page.locator(".machine-view .step-words")).to_contain_text("Wrong in")
    expect(page.locator(".cell.wrong").first).to_be_visible()


def test_a_verified_program_is_saved_with_its_evidence(page, explorer):
    page.goto(explorer.link("evidence", program="access@searched"))
    ready(page, "evidence")
    page.get_by_label("Seconds for each part").fill("1")
    page.get_by_role("button", name="Verify now").click()
    with page.expect_download(timeout=30_000) as got:
        page.get_by_role("button", name="Save with this evidence").click()
    assert got.value.suggested_filename.endswith(".nram")
    assert "\nverified: " in got.value.path().read_text()


def test_a_verification_that_is_gone_is_told(page, explorer):
    page.goto(explorer.link("evidence", program="access@searched", job="0badcafe"))
    expect(page.locator(".verified")).to_contain_text("there is no job '0badcafe'")
    expect(page.get_by_role("button", name="Verify now")).to_be_enabled()


# ---- compare


def test_two_programs_side_by_side(page, explorer):
    page.goto(explorer.link("compare", program="merge@searched", other="merge@trained", n=3, seed=1))
    ready(page, "compare")
    finding = page.locator(".finding")
    expect(finding).to_contain_text("Both are right in the output cells.")
    finding.get_by_role("button", name="Go there").click()
    words = re.search(r"first differ after (\d+) step\S*: cell (\d+)", finding.inner_text())
    assert words is not None
    expect(page.locator(".time-line").last).to_have_value(words[1])
    for side in page.locator(".compare-side").all():
        expect(side.locator(f".cell[data-cell='{words[2]}']")).to_have_class(re.compile("differs"))
    page.keyboard.press("End")
    for words in page.locator(".compare-side .step-words").all():
        expect(words).to_contain_text("Right")
    expect(page).to_have_url(re.compile("other=merge%40trained.*step="))
    page.keyboard.press("1")
    expect(page).to_have_url(re.compile("machine.program=merge%40searched&task=merge&n=3&seed=1"))


# ---- network


@needs_training
def test_a_network_beside_its_program(page, explorer):
    page.goto(explorer.link("network", program="copy@trained", n=4, seed=3))
    ready(page, "network")
    words = page.locator(".network-view .step-words").first
    expect(words).to_contain_text("Before step 1 of")
    page.keyboard.press("End")
    expect(words).to_contain_text("the likeliest value of every cell is that of the program")
    expect(words).to_contain_text("halted with probability 1.00")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".hard-place .step-words")).to_contain_text("Right")
    page.keyboard.press("Home")
    expect(page.locator(".wires li").first).to_contain_text("READ.p")
    tape = page.locator(".heat canvas").first
    values = page.get_by_label("Memory", exact=True).last.input_value()
    expect(tape).to_have_attribute("aria-label", f"Likeliest values of the cells: {values}")
    assert tape.evaluate(
        "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(x => x > 0)"
    )
    box = tape.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 40, box["y"] + box["height"] / 2)
    expect(page.locator(".readout").first).to_contain_text(re.compile(r"cell 0 is \d+ with probability"))


@needs_training
def test_the_network_of_what_was_shown_before(page, explorer):
    """Of an edited program, the one for its task; an input that is too large for networks is replaced."""
    page.goto(explorer.link("program", program="reverse@searched"))
    ready(page, "program")
    editor = page.get_by_label("Text of the program")
    editor.fill(editor.input_value() + "# more\n")
    expect(page.locator(".program-view .hint")).to_contain_text("Edited.")
    page.locator(".program-view h2").click()
    page.keyboard.press("4")
    ready(page, "network")
    expect(page.locator(".network-view .title-line h2")).to_have_text("reverse@trained of the zoo")
    page.goto(explorer.link("machine", program="copy@trained", task="copy", n=50))
    ready(page, "machine")
    page.keyboard.press("4")
    expect(page.locator(".network-view .title-line h2")).to_have_text("copy@trained of the zoo")
    expect(page).to_have_url(re.compile("n=5&"))
    expect(page.locator(".network-view .stage").first).to_be_visible()
    page.goto(explorer.link("network", program="copy@trained", task="copy", n=5, seed=9))
    memory = " ".join(map(str, get_task("copy").sample(5, 1, 9)[0].input))
    expect(page.locator(".network-view").get_by_label("Memory", exact=True)).to_have_value(memory)
    page.keyboard.press("1")  # and back: the machine begins with the input of the network
    expect(page).to_have_url(re.compile("machine.*seed=9"))


@needs_training
def test_a_network_that_is_compiled_says_so(page, explorer):
    held = []
    page.route("**/api/soft", lambda route: held.append(route))
    with page.expect_request("**/api/soft"):
        page.goto(explorer.link("network", program="copy@trained", n=4))
    waiting = page.locator(".network-view .waiting-words")
    expect(waiting).to_have_text(re.compile("is being compiled"))
    expect(waiting).to_have_attribute("role", "status")
    held[0].continue_()
    page.unroute("**/api/soft")
    ready(page, "network")
    expect(waiting).to_be_hidden()
    page.route("**/api/network", lambda route: held.append(route))
    with page.expect_request("**/api/network"):
        page.locator(".network-view .picker select").select_option("access@trained")
    expect(page.locator(".network-view .stage").first).to_be_hidden()  # what was there is another network's
    held[1].continue_()
    page.unroute("**/api/network")
    ready(page, "network")


# ---- all views


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(new_page, explorer, no_axe_problems, scheme):
    page = new_page(color_scheme=scheme)
    for view in filter(has_network, VIEWS if scheme == "light" else ["machine", "evidence", "network", "runs"]):
        page.goto(f"{explorer.url}#{view}")
        ready(page, view)
        no_axe_problems(page)


def test_nothing_scrolls_sideways_on_a_phone(new_page, explorer, no_axe_problems):
    page = new_page(viewport={"width": 375, "height": 812}, has_touch=True)
    for view in filter(has_network, VIEWS):
        page.goto(f"{explorer.url}#{view}")
        ready(page, view)
        assert page.evaluate("document.documentElement.scrollWidth") == 375, view
    page.goto(explorer.link("machine", program="merge@trained", n=20))
    ready(page, "machine")
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    no_axe_problems(page)


@pytest.mark.parametrize(("scheme", "index"), [("light", 0), ("dark", 1)])
def test_colours_are_those_of_the_pictures(new_page, explorer, scheme, index):
    page = new_page(color_scheme=scheme)
    page.goto(explorer.link("machine"))
    ready(page, "machine")
    for name in (
        "ground",
        "ink",
        "pale",
        "line",
        "band",
        "changed",
        "asked",
        "output",
        "read",
        "written",
        "register",
        "tag",
        "stop",
    ):
        value = page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
        assert value == COLOURS[name][index], name


def test_views_are_reached_by_number_and_by_tab(page, explorer):
    page.goto(explorer.url)
    ready(page, "machine")
    page.keyboard.press("2")
    ready(page, "program")
    expect(page.get_by_role("link", name="Program")).to_have_attribute("aria-current", "page")
    page.get_by_role("link", name="Evidence").click()
    ready(page, "evidence")
    page.go_back()
    ready(page, "program")
    page.locator("h1").click()
    page.keyboard.press("1")
    ready(page, "machine")


def test_links_that_make_no_sense_say_so(page, explorer):
    page.goto(explorer.link("machine", program="copy", n=3))
    ready(page, "machine")
    assert page.locator(".machine-view .picker option:checked").inner_text() == "copy@trained ✓"  # of the list
    page.goto(explorer.link("machine", program="<img src=x>@trained"))
    expect(page.locator(".machine-view [role=alert]").first).to_contain_text("there is no program")
    assert page.locator("main img").count() == 0
    assert page.locator(".machine-view .cell").count() == 0  # they were another program's
    page.goto(explorer.link("nothing", step="-5", n="1e9", seed="x"))
    ready(page, "machine")
    expect(page.get_by_text("There is no view “nothing”. This is the view “Machine”.")).to_be_visible()
    page.keyboard.press("2")
    ready(page, "program")
    expect(page.get_by_text("There is no view")).to_be_hidden()
    page.goto(explorer.link("machine", program="text:nonsense"))
    page.get_by_label("Memory", exact=True).first.fill("1 2 0")
    page.get_by_role("button", name="Mend the text").click()
    expect(page.locator(".problems li")).to_contain_text("it is neither JSON")


def test_the_member_and_the_name_of_a_second_run_are_read_from_a_link(page, explorer):
    page.goto(explorer.url)
    ready(page, "machine")
    found = page.evaluate(
        """async () => {
          const { programOf, valuesOf } = await import(new URL("link.js", document.baseURI).href);
          const program = programOf({ other: "run:2:a:b/training/c" }, "other");
          return [program, valuesOf(program, "other").other];
        }"""
    )
    assert found == [{"run": "a:b/training/c", "member": 2}, "run:2:a:b/training/c"]
