"""`nram examples`: list the examples that ship with nram, and copy them."""

from __future__ import annotations

import argparse
import re
from importlib.resources import files
from pathlib import Path

from nram.cli.output import print_json, table
from nram.errors import UsageError
from nram.files import make_folder, read_bounded, write_atomically
from nram.messages import command

FOLDER = files("nram").joinpath("examples")
MOST_BYTES = 1 << 24  # of a file that stands where an example would be copied to


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the examples that ship with nram, or copy them: files of examples, tasks, modules, programs, a notebook."
    )
    parser.epilog = (
        "The commands in the documentation expect the examples in the folder examples, where 'nram examples copy' "
        "puts them. A file that exists with other content is never replaced."
    )
    parser.add_argument("action", nargs="?", choices=["copy"], help="copy the examples instead of listing them")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="EXAMPLE",
        help="a file or a folder of the list, as sum.jsonl or tasks (default: all)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("examples"), metavar="DIR", help="where copies go (default: examples)"
    )


def run(arguments: argparse.Namespace) -> int:
    examples = example_files()
    if arguments.action == "copy":
        copied = _copy(_chosen(examples, arguments.names), arguments.out)
        if arguments.json:
            print_json({"files": [str(file) for file in copied]})
        elif len(copied) < len(examples):
            print("\n".join(map(str, copied)))
        else:
            first = command("learn", arguments.out / next(iter(examples)))
            print(f"{len(copied)} files in {arguments.out}\nNext: {first}")
        return 0
    if arguments.json:
        print_json([{"name": name, "what": what} for name, what in examples.items()])
        return 0
    print(table([["example", "what it is"], *map(list, examples.items())]))
    print("\n'nram examples copy' copies them into the folder examples,\n'nram examples copy NAME' one of them.")
    return 0


def example_files() -> dict[str, str]:
    """The name of each example, and what it is. They are listed in the README of their folder."""
    listed = re.findall(r"^\| (\S+/\S+) \| (.+) \|$", FOLDER.joinpath("README.md").read_text(), re.MULTILINE)
    return dict(listed)


def _chosen(examples: dict[str, str], names: list[str]) -> list[str]:
    """The examples that these names mean: a file with or without its folder, or a folder."""
    chosen: list[str] = []
    for name in names or [""]:
        wanted = name.rstrip("/")
        found = [one for one in examples if not wanted or wanted == one or wanted in one.split("/")]
        if not found:
            raise UsageError(f"there is no example {name!r}: 'nram examples' lists them")
        chosen += found
    return list(dict.fromkeys(chosen))


def _copy(names: list[str], folder: Path) -> list[Path]:
    """Copy these examples. Nothing is copied if a file would be replaced by one with other content."""
    contents = {folder / name: FOLDER.joinpath(name).read_bytes() for name in names}
    for path, content in contents.items():
        if path.exists() and read_bounded(path, MOST_BYTES, "file") != content:
            raise UsageError(f"{path} exists and differs from the example: move it away, or choose another --out")
    for path, content in contents.items():
        make_folder(path.parent)
        write_atomically(path, content)
    return list(contents)
