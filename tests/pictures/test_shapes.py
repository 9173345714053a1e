"""Shapes of pictures: everything can be seen on light and on dark pages, and all forms show the same."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.colors import to_rgb

from nram.pictures.circuits import draw_program, program_picture, program_svg
from nram.pictures.figures import bytes_of, luminance, picture_figure
from nram.pictures.shapes import COLOURS, STYLES, Circle, Path, Picture, Rectangle, Text
from nram.programs.text import from_text

SVG = "{http://www.w3.org/2000/svg}"


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, as the accessibility guidelines define it: 1 to 21."""
    low, high = sorted(luminance(to_rgb(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


# What stands on each fill: letters need a contrast of 4.5, lines of 3.
LETTERS = {
    **dict.fromkeys(("ground", "band", "module", "reads", "writes", "register"), ("ink", "pale")),
    **dict.fromkeys(("tag", "changed", "asked"), ("ink",)),
    "stop": ("on_stop",),
    "ground": ("ink", "pale", "read", "written", "output"),
}
LINES = {"ground": ("wire", "kept", "read", "written"), "changed": ("read", "written"), "asked": ("read", "written")}


@pytest.mark.parametrize("dark", [False, True])
def test_letters_and_lines_can_be_seen_on_light_and_dark_pages(dark):
    for pairs, least in ((LETTERS, 4.5), (LINES, 3.0)):
        for fill, inks in pairs.items():
            for ink in inks:
                assert contrast(COLOURS[ink][dark], COLOURS[fill][dark]) >= least, (ink, fill)


def test_every_colour_of_a_light_page_has_its_own_rule_on_a_dark_page(copy_program):
    light, dark = program_svg(copy_program).split("@media (prefers-color-scheme:dark)")
    kinds = {shape.get("class") for shape in ElementTree.fromstring(light + dark).iter() if shape.tag != f"{SVG}g"}
    for kind in kinds - {None, "nram-picture"}:
        selector = ".nram-picture ." + str(kind).replace(" ", ".") + "{"
        assert light.count(selector) == dark.count(selector) == 1, kind
    for part, column in ((light, 0), (dark.split("</style>")[0], 1)):
        found = set(re.findall(r"(?:fill|stroke):(#\w{6})", part)) - {"#d9404f"}  # under the mouse
        assert found <= {pair[column] for pair in COLOURS.values()}


def test_the_rules_of_a_picture_affect_nothing_else_on_a_page(copy_program):
    (style,) = re.findall(r"<style>(.*?)</style>", program_svg(copy_program), re.DOTALL)
    assert all(line.startswith((".nram-picture ", "@media", "}")) for line in style.strip().splitlines())
    assert "id=" not in program_svg(copy_program)


def test_a_figure_has_every_shape_where_the_picture_has_it(copy_program):
    picture = program_picture(copy_program)
    figure = picture_figure(picture, "light")
    assert (figure.get_size_inches() * 96).tolist() == pytest.approx([picture.width, picture.height])
    (axes,) = figure.axes
    texts = [shape for shape in picture.shapes if isinstance(shape, Text)]
    assert [(*text.get_position(), text.get_text()) for text in axes.texts] == [(t.x, t.y, t.words) for t in texts]
    others = [shape for shape in picture.shapes if not isinstance(shape, Text)]
    for shape, patch in zip(others, axes.patches, strict=True):
        box = patch.get_path().transformed(patch.get_patch_transform()).get_extents()
        match shape:
            case Rectangle(x, y, width, height):
                expected = [x, y, x + width, y + height]
            case Circle(x, y, radius):
                expected = [x - radius, y - radius, x + radius, y + radius]
            case Path(points):
                pairs = [pair for point in points for pair in zip(point[::2], point[1::2], strict=True)]
                xs, ys = zip(*pairs, strict=True)
                expected = [min(xs), min(ys), max(xs), max(ys)]
        assert list(box.extents) == pytest.approx(expected, abs=0.5)


def test_every_style_can_be_drawn_and_the_same_picture_gives_the_same_bytes():
    picture = Picture("styles", width=200, height=20 * len(STYLES))
    for i, (kind, style) in enumerate(STYLES.items()):
        picture.shapes.append(Text(5, 20 * i, "word", kind) if style.size else Rectangle(5, 20 * i, 50, 9, kind, 4))
    for theme in ("light", "dark"):
        for suffix in (".png", ".svg", ".pdf"):
            once, again = (bytes_of(picture_figure(picture, theme), suffix) for _ in range(2))
            assert once == again


# ---- long programs


def long_program(rows: int):
    lines = [
        f"state {i}:\nwhen r1 = 0:\n o = INC(r{i % 3 + 1})\n r1 := o\notherwise:\n r2 := r3\n" for i in range(rows)
    ]
    return from_text("nram program 1\nname: long\nregisters: r1 r2 r3\n" + "".join(lines))


@pytest.mark.parametrize("states", [1, 4, 20, 150])
def test_a_long_program_is_neither_a_tower_nor_a_ribbon(states):
    picture = program_picture(long_program(states))
    assert picture.height <= max(1100, 1.3 * picture.width)
    assert picture.width <= 2.5 * max(picture.height, 400)


@pytest.mark.parametrize("columns", [1, 2, 3, 6])
def test_columns_are_read_one_after_the_other_and_never_overlap(columns):
    program = long_program(6)
    shapes = program_picture(program, columns).shapes
    titles = [s for s in shapes if isinstance(s, Text) and s.kind == "title"]
    assert [title.words for title in titles] == ["when r1 = 0", "else"] * 6
    places = [(title.x, title.y) for title in titles]
    assert places == sorted(places)
    assert len({x for x, _ in places}) == columns
    boxes = [s for s in shapes if isinstance(s, Rectangle) and s.kind != "ground"]
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = one.x + one.width <= other.x or other.x + other.width <= one.x
            assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y


def test_a_line_leads_from_every_row_to_the_next_of_its_state_only():
    shapes = program_picture(long_program(3), 1).shapes
    titles = [s for s in shapes if isinstance(s, Text) and s.kind == "title"]
    rails = [s for s in shapes if isinstance(s, Path) and s.kind == "wire kept" and s.group is None]
    arrows = [rail for rail in rails if len(rail.points) == 3]
    reached = [title.words for title in titles if any(abs(a.points[-1][1] - title.y) < 8 for a in arrows)]
    assert len(arrows) == 3 and reached == ["else"] * 3
    assert all(arrow.points[-1][0] < titles[0].x for arrow in arrows)


def test_a_program_is_drawn_into_a_file_of_any_format(copy_program, tmp_path):
    for suffix, magic in ((".svg", b"<svg"), (".dot", b"digraph"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        draw_program(copy_program, tmp_path / f"a{suffix}")
        draw_program(copy_program, str(tmp_path / f"b{suffix}"), row=(0, 1), theme="dark")
        assert all((tmp_path / f"{name}{suffix}").read_bytes().startswith(magic) for name in "ab")
