"""`nram new`: write a starting file for a task, a module or a file of examples. It works as it is."""

from __future__ import annotations

import argparse
import re
from importlib.resources import files
from pathlib import Path

from nram.cli.output import print_json
from nram.errors import UsageError
from nram.extensions import module_names, task_names
from nram.files import check_destination, write_atomically
from nram.messages import command

TEMPLATES = files("nram").joinpath("templates")
KINDS = {"task": "my_task.py", "module": "my_module.py", "examples": "my_examples.csv"}
"""The template of each kind."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a starting file for a problem of your own: a task or a module in Python, or a file of examples. It "
        "works as it is and says what to change. A file that exists is not replaced."
    )
    parser.add_argument("kind", choices=list(KINDS), help="what to write")
    parser.add_argument("name", nargs="?", metavar="NAME", help="its name (default: my_task, my_module, my_examples)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: NAME.py, or NAME.csv for examples")


def run(arguments: argparse.Namespace) -> int:
    template = Path(KINDS[arguments.kind])
    name = _checked(arguments.kind, arguments.name or (arguments.out and arguments.out.stem) or template.stem)
    out = arguments.out or Path(name + template.suffix)
    if re.fullmatch(rf"[\w-]+\{template.suffix}", out.name) is None:
        raise UsageError(f"{out}: use letters, digits, - and _ in the file's name, and let it end in {template.suffix}")
    if out.exists():
        raise UsageError(f"{out} exists: choose another --out")
    check_destination(out)
    text = TEMPLATES.joinpath(template.name).read_text().replace(template.name, out.name)
    text = text.replace(template.stem.upper(), name.upper()).replace(template.stem, name)
    write_atomically(out, text.encode())
    next_step = {
        "task": command("search", out),
        "module": command("modules", out),
        "examples": command("learn", out),
    }[arguments.kind]
    if arguments.json:
        print_json({"kind": arguments.kind, "name": name, "file": str(out), "next": next_step})
    else:
        print(f"{out}\nNext: {next_step}")
    return 0


def _checked(kind: str, name: str) -> str:
    """The name, if a task, a module or a file of examples can have it."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,39}", name) is None:
        raise UsageError(f"{name!r} is not a name: use letters, digits, - and _, and begin with a letter")
    taken = {"task": task_names(), "module": module_names(), "examples": ()}[kind]
    if (name.upper() if kind == "module" else name) in taken:
        raise UsageError(f"there is a {kind} {name!r} already: choose another name")
    return name
