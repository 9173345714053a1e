"""`nram draw`: pictures of one row, of all rows, in a file or a folder."""

import xml.etree.ElementTree as ElementTree

import pytest

PROGRAM = """
nram program 1
name: two/states & more
registers: r1 r2
state 0:
when r1 = 0:
    o1 = READ(r2)
    WRITE(r2, o1)
    r1 := 1
    next 1
otherwise:
    halt
state 1:
always:
    o1 = DEC(r1)
    r1 := o1
    next 0
"""


@pytest.fixture
def program_file(tmp_path):
    path = tmp_path / "two.nram"
    path.write_text(PROGRAM)
    return path


def words_of(path) -> list[str]:
    return [text.text or "" for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_by_default_all_rows_go_to_a_file_named_after_the_program(call, program_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = call("draw", program_file)
    assert status == 0
    assert "3 rows of two/states & more: two-states-more.svg" in out
    words = words_of(tmp_path / "two-states-more.svg")
    assert {"when r1 = 0", "else", "always", "READ", "WRITE", "DEC"} <= set(words)


def test_one_row_by_its_state_and_number(call, program_file, tmp_path):
    out = tmp_path / "row.svg"
    assert call("draw", program_file, "--row", "1:1", "--out", out).status == 0
    words = words_of(out)
    assert "DEC" in words and "READ" not in words
    assert call("draw", program_file, "--row", "2", "--out", out).status == 0
    assert "else" in words_of(out)


def test_graphviz_by_the_ending(call, program_file, tmp_path):
    outcome = call("draw", program_file, "--out", tmp_path / "all.dot", "--json")
    assert outcome.value == {"program": "two/states & more", "rows": 3, "files": [str(tmp_path / "all.dot")]}
    text = (tmp_path / "all.dot").read_text()
    assert text.startswith('digraph "two/states & more" {') and text.count("subgraph") == 3
    call("draw", program_file, "--row", "0:1", "--out", tmp_path / "one.dot")
    assert '"READ 1" -> "WRITE 1" [headlabel="a"];' in (tmp_path / "one.dot").read_text()


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("SVG", b"<svg")])
def test_a_picture_by_its_suffix(call, program_file, tmp_path, suffix, magic):
    for words in ((), ("--row", "1", "--theme", "dark")):
        out = tmp_path / f"picture{len(words)}.{suffix}"
        assert call("draw", program_file, *words, "--out", out).status == 0
        assert out.read_bytes().startswith(magic)
    assert (tmp_path / f"picture0.{suffix}").read_bytes() != (tmp_path / f"picture4.{suffix}").read_bytes()


def test_columns_and_themes(call, program_file):
    def size(*words):
        root = ElementTree.fromstring(call("draw", program_file, "--out", "-", *words).out)
        return float(root.get("width", "")), float(root.get("height", ""))

    (narrow, tall), (wide, flat) = size("--columns", "1"), size("--columns", "2")
    assert size() == (narrow, tall)
    assert wide > narrow and flat < tall
    auto, light, dark = (call("draw", program_file, "--out", "-", "--theme", t).out for t in ("auto", "light", "dark"))
    assert "prefers-color-scheme:dark" in auto and "prefers" not in light + dark and light != dark


def test_a_folder_gets_a_picture_of_each_row(call, program_file, tmp_path):
    outcome = call("draw", program_file, "--out", f"{tmp_path}/new/rows/", "--json")
    names = ["state-0-row-1.svg", "state-0-row-2.svg", "state-1-row-1.svg"]
    assert outcome.value["files"] == [f"{tmp_path}/new/rows/{name}" for name in names]
    assert sorted(path.name for path in (tmp_path / "new" / "rows").iterdir()) == names
    assert "always" in words_of(tmp_path / "new" / "rows" / "state-1-row-1.svg")


def test_standard_output_takes_the_picture(call, program_file):
    _, out, _ = call("draw", program_file, "--out", "-")
    assert ElementTree.fromstring(out).tag.endswith("svg")
    assert call("draw", program_file, "--out", "-", "--json").status == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--row", "2:1"), "states 0 to 1"),
        (("--row", "0:3"), "rows 1 to 2"),
        (("--row", "0:0"), "is not a row"),
        (("--row", "first"), "is not a row"),
        (("--out", "picture.gif"), ".svg"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, program_file, words, says):
    status, out, err = call("draw", program_file, *words)
    assert status == 2 and out == ""
    assert says in err


def test_a_folder_that_does_not_exist_is_refused(call, program_file, tmp_path):
    status, _, err = call("draw", program_file, "--out", tmp_path / "nowhere" / "x.svg")
    assert status == 2
    assert "cannot write" in err


def test_too_many_rows_for_one_picture_are_refused_with_what_to_do(call, tmp_path):
    conditions = "".join(f"state {i}:\nalways:\n next {(i + 1) % 301}\n" for i in range(301))
    path = tmp_path / "large.nram"
    path.write_text(f"nram program 1\nregisters: r1\n{conditions}")
    status, _, err = call("draw", path, "--out", tmp_path / "large.svg")
    assert status == 2
    assert "--row" in err and "FOLDER/" in err
