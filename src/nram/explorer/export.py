"""A page in one file that shows a program at work: it needs no server and no network, and opens from a disk.

It has the same style sheets and the same scripts as the explorer, put together into one. Its steps come from
`page/engine.js` instead of the server, which carries out the program's table with the modules of `javascript.py`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from nram import __version__
from nram.explorer.about import program_info
from nram.explorer.javascript import modules_script
from nram.explorer.settings import MOST_CELLS, MOST_STEPS
from nram.pictures.shapes import style_sheet
from nram.programs.files import to_json
from nram.programs.ir import Program
from nram.programs.library import limit_for
from nram.tasks import Task

SIZES = (1, 2, 3, 5, 8, 12)  # n of the instances that a page offers
FIRST = 5  # n of those that it begins with
PAGE = files("nram.explorer").joinpath("page")
ENTRY = "export.js"
STYLES = ("style.css", "export.css")
IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)


def exported_page(program: Program, inputs: Sequence[dict[str, Any]]) -> str:
    """The page. It offers these inputs and begins with the first: objects with `input`, `steps` and perhaps more."""
    script = modules_script(program.modules) + bundled(ENTRY)
    style = "\n".join([*(PAGE.joinpath(name).read_text() for name in STYLES), style_sheet()])
    data = {
        "program": program_info(program),
        "table": to_json(program),
        "inputs": list(inputs),
        "limits": {"cells": MOST_CELLS, "steps": MOST_STEPS},
        "version": __version__,
    }
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<!-- Made by nram {__version__}, Copyright 2026 The nram developers; scripts and styles are under Apache-2.0 -->
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="nram {__version__}">
<title>{escape(program.name)}: a program at work</title>
<style>{style}</style></head>
<body class="exported">
<main id="page"></main>
<noscript>This page needs JavaScript.</noscript>
<script type="application/json" id="data">{_embedded(data)}</script>
<script type="module">{script}</script>
</body></html>
"""


def task_inputs(program: Program, task: Task, first: int = FIRST, seed: int = 0) -> list[dict[str, Any]]:
    """Instances of a task with their answers, two of each size, those with n = `first` before the others."""
    first = max(first, task.min_complexity)
    sizes = [first, *(n for n in SIZES if n >= task.min_complexity and n != first)]
    limit = limit_for(program, task)
    return [
        {**instance.as_dict(), "steps": limit(n), "complexity": n}
        for n in sizes
        for instance in task.sample(n, 2, seed)
    ]


def bundled(entry: str) -> str:
    """A script with all that it imports in front of it, as one. Names at the top of its files differ, by a test."""
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in parts:
            return
        text = PAGE.joinpath(name).read_text()
        for other in IMPORT.findall(text):
            add(other)
        parts[name] = EXPORT.sub("", IMPORT.sub("", text))

    add(entry)
    return "\n".join(parts.values())


def _embedded(data: Any) -> str:
    """JSON that cannot end the element that it is in."""
    return json.dumps(data).replace("<", "\\u003c")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
