"""Every link and picture of the documentation leads somewhere."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]*(?:\([^()]*\)[^()\s]*)*)\)")
CODE = re.compile(r"^```.*?^```|^(?: {4}|\t).*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


def links_of(text: str) -> list[str]:
    """Where the links of a page lead, but for what stands in code and leads out into the web."""
    found = LINK.findall(CODE.sub(lambda code: "`" if code[0].startswith("`") else "", text))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors_of(text: str) -> set[str]:
    """The names that headings get where Markdown is shown: lower case, no signs, a dash for every space."""
    headings = HEADING.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def problem_of(page: Path, link: str) -> str | None:
    path, _, anchor = unquote(link).partition("#")
    target = page if not path else (page.parent / path).resolve()
    if not target.exists():
        return f"{link}: there is no {target.relative_to(ROOT) if target.is_relative_to(ROOT) else target}"
    if not target.is_relative_to(ROOT):
        return f"{link} leads out of the repository"
    if anchor and anchor not in anchors_of(target.read_text()):
        return f"{link}: {target.name} has no heading '{anchor}'"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_exist(page):
    problems = [problem for link in links_of(page.read_text()) if (problem := problem_of(page, link))]
    assert not problems, "\n".join(problems)


def test_the_check_sees_links_pictures_and_headings():
    page = ROOT / "docs" / "README.md"
    text = "[a](gone.md) ![b [c]](images/gone.png) [d](guide.md#gone) `[e](code.md)` [f](https://a.org) [g](guide.md)"
    assert links_of(text) == ["gone.md", "images/gone.png", "guide.md#gone", "guide.md"]
    assert [problem_of(page, link) is None for link in links_of(text)] == [False, False, False, True]


def test_every_page_can_be_reached_from_the_index():
    reached: set[Path] = set()
    waiting = [ROOT / "docs" / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page in PAGES:
            reached.add(page)
            waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links_of(page.read_text())]
    lost = [str(page.relative_to(ROOT)) for page in PAGES if page not in reached and page.parent != ROOT]
    assert not lost, f"no way leads from docs/README.md to {', '.join(lost)}"


def test_every_picture_is_shown_somewhere():
    shown = {
        (page.parent / link).resolve()
        for page in PAGES
        for link in links_of(page.read_text())
        if not link.startswith("#")
    }
    pictures = [path for path in (ROOT / "docs" / "images").iterdir() if path not in shown]
    assert not pictures, f"no page shows {', '.join(path.name for path in pictures)}"
