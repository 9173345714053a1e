"""The page in one file: its parts fit together, and nothing in a program becomes markup or script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from nram.errors import NramError
from nram.explorer.export import EXPORT, IMPORT, PAGE, bundled, exported_page
from nram.explorer.javascript import modules_script
from nram.extensions import register_module
from nram.modules import PAPER_MODULES, Module
from nram.programs.files import program_from
from nram.programs.library import load_program

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(1)">'
INPUT = {"input": [1, 2, 0, 0], "steps": 10}
TOP_LEVEL = re.compile(r"^(?:async )?(?:function|const|let|class) \*?(\w+)", re.MULTILINE)


class Parts(HTMLParser):
    """The elements of a page, and the texts of its scripts and styles."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        kind = dict(attrs).get("type") or ""
        self.inside = f"{tag} {kind}".strip() if tag in ("script", "style") else ""

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside:
            self.texts[self.inside] = self.texts.get(self.inside, "") + data


@pytest.fixture(scope="module")
def page() -> Parts:
    return Parts(exported_page(load_program("merge@searched"), [INPUT]))


def test_it_loads_nothing(page):
    for _, attributes in page.tags:
        assert not {"src", "href", "onclick", "onload", "style"} & set(attributes)
    assert "http" not in page.texts["script module"].replace("http://www.w3.org/", "")
    assert "url(" not in page.texts["style"]


def test_its_policy_allows_its_own_script_and_style_alone(page):
    policy = next(found["content"] for tag, found in page.tags if found.get("http-equiv") == "Content-Security-Policy")
    for text in (page.texts["script module"], page.texts["style"]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_names_of_the_scripts_that_become_one_differ():
    names = TOP_LEVEL.findall(bundled("export.js"))
    assert len(names) > 20
    assert sorted(names) == sorted(set(names))


def test_all_imports_and_exports_are_taken_out():
    script = bundled("export.js")
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    for file in PAGE.iterdir():  # of the other files too, so that each can be exported
        if file.name.endswith(".js"):
            text = EXPORT.sub("", IMPORT.sub("", file.read_text()))
            assert not re.search(r"^\s*(import|export)\b", text, re.MULTILINE), file.name


def test_a_hostile_name_stays_text():
    text = f"nram program 1\nname: {HOSTILE}\nregisters: r1\n\nalways:\n    halt\n"
    found = Parts(exported_page(program_from(text), [INPUT]))
    assert [tag for tag, _ in found.tags].count("script") == 2
    assert "img" not in {tag for tag, _ in found.tags}
    assert json.loads(found.texts["script application/json"])["program"]["name"] == HOSTILE


def test_a_module_without_an_emitted_form_is_refused_in_words():
    silent = register_module(Module("SILENT-ON-PAGES", ("x",), lambda size, x: x))
    with pytest.raises(NramError, match="SILENT-ON-PAGES"):
        modules_script([silent])


def test_all_modules_of_the_paper_have_a_script():
    script = modules_script(PAPER_MODULES)
    assert all(json.dumps(module.name) in script for module in PAPER_MODULES)
