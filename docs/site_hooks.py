"""Hooks of the documentation site (mkdocs.yml): pages for files outside docs/, and programs that run in the page.

Pages link to examples, sources and CONTRIBUTING.md by relative paths. These work wherever the repository is shown, but
the site is made of docs/ alone. So each file that a page links to gets its own page under repository/, and the links
lead there. `docs/at-work.md` shows the zoo's program of every task; its frames are pages of `nram export-page`.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

from nram.explorer.export import exported_page, task_inputs
from nram.extensions import get_task
from nram.programs.library import zoo_entries

ROOT = Path(__file__).parents[1]
FOLDER = "repository"
IN_NAVIGATION = ("CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"(\]\()([^()\s#]+)((?:#[^()\s]*)?\))")
LANGUAGES = {".py": "python", ".c": "c", ".toml": "toml", ".jsonl": "json"}
COPIED = {".ipynb", ".png", ".svg"}  # these files are offered as they are
CODE_HEAD = "---\nsearch:\n  exclude: true\n---\n\n"  # the search covers the prose, not the sources

_markdown: dict[str, str] = {}
"""Page of the site -> the repository path from which its links start. Pages of code have no links."""


def on_files(files, config):
    """Add a page for every file outside docs/ that some page links to."""
    _markdown.clear()
    waiting = list(IN_NAVIGATION)
    for file in files.documentation_pages():
        _markdown[file.src_uri] = f"docs/{file.src_uri}"
        waiting += _links_out(file.content_string, f"docs/{file.src_uri}")
    added = set()
    while waiting:
        path = waiting.pop()
        page = _page_of(path)
        if page in added or not (ROOT / path).exists():  # mkdocs itself reports a link that leads nowhere
            continue
        added.add(page)
        if Path(path).suffix in COPIED:
            files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
            continue
        content = _content(path)
        files.append(File.generated(config, page, content=content))
        if not content.startswith(CODE_HEAD):
            _markdown[page] = f"{path}/README.md" if (ROOT / path).is_dir() else path
            waiting += _links_out(content, _markdown[page])
    for entry in zoo_entries():
        if entry.origin == "trained":
            page = exported_page(entry.program, task_inputs(entry.program, get_task(entry.name)))
            files.append(File.generated(config, f"at-work/{entry.name}.html", content=page))
    return files


def on_page_markdown(markdown, page, config, files):
    """Turn links between repository paths into links between pages of the site."""
    here = page.file.src_uri
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]  # the tabs above are enough there
    if here not in _markdown:
        return markdown

    def in_site(link: re.Match[str]) -> str:
        target = _target(link[2], _markdown[here])
        if target is None:
            return link[0]
        uri = target.removeprefix("docs/") if target.startswith("docs/") else _page_of(target)
        return link[1] + posixpath.relpath(uri, posixpath.dirname(here)) + link[3]

    return LINK.sub(in_site, markdown)


def _links_out(text: str, origin: str) -> list[str]:
    """The paths outside docs/ that a text links to."""
    targets = (_target(link[2], origin) for link in LINK.finditer(text))
    return [target for target in targets if target is not None and not target.startswith("docs/")]


def _target(link: str, origin: str) -> str | None:
    """The repository path that a link leads to; None if there is no such path."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    return path if not path.startswith("..") and (ROOT / path).exists() else None


def _page_of(path: str) -> str:
    """The site's page for a repository path: a folder is its index, other text gets a page around it."""
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    elif Path(path).suffix not in (".md", *COPIED):
        path = f"{path}.md"
    return f"{FOLDER}/{path}"


def _content(path: str) -> str:
    """The Markdown of a path's page."""
    file = ROOT / path
    if (file / "README.md").is_file():
        return (file / "README.md").read_text()
    if file.is_dir():
        names = sorted(entry.name for entry in file.iterdir() if entry.is_file())
        return f"# {path}\n\n" + "".join(f"- [{name}]({name})\n" for name in names)
    if file.suffix == ".md":
        return file.read_text()
    return f"{CODE_HEAD}# {path}\n\n~~~~{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text().rstrip()}\n~~~~\n"
