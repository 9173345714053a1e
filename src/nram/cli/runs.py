"""`nram runs`: runs and studies on disk, what they reached and how to go on; `nram runs clean` frees space."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nram.cli.output import note, print_json, table
from nram.cluster.listing import DEFAULT, Entry, Removable, entries, removable, remove
from nram.display import counted
from nram.errors import NramError, UsageError
from nram.messages import visible

CLEAN = "clean"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List training runs, learn folders and studies, the newest first: what each has reached, and the command to go "
        f"on with. 'nram runs {CLEAN}' removes what is needed no more: checkpoints of finished runs, and temporary "
        "files that killed processes have left. It shows them first, and asks."
    )
    parser.epilog = (
        "Runs that can still go on keep their checkpoints, and a folder in which a process works is left alone. A "
        f"folder that is called {CLEAN} is written ./{CLEAN}."
    )
    parser.add_argument(
        "folders",
        nargs="*",
        metavar="FOLDER",
        help=f"runs, studies, or folders with them (default: {', '.join(DEFAULT)})",
        type=Path,
    )
    parser.add_argument("--yes", action="store_true", help=f"with {CLEAN}: remove without asking")
    parser.add_argument(
        "--unlearned",
        action="store_true",
        help=f"with {CLEAN}: also the checkpoints of trials of studies that ended without having learned; such a run "
        "can then neither go on nor be extracted",
    )


def run(arguments: argparse.Namespace) -> int:
    words = arguments.words[1:]
    clean = bool(arguments.folders) and str(arguments.folders[0]) == CLEAN and f"./{CLEAN}" not in words
    folders = arguments.folders[1:] if clean else arguments.folders
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder: name a run, a study, or a folder with them")
    for name in ("yes", "unlearned"):
        if getattr(arguments, name) and not clean:
            raise UsageError(f"--{name} is for 'nram runs {CLEAN}'")
    found = entries(folders or map(Path, DEFAULT))
    if clean:
        return _clean(arguments, found, folders)
    lines = [(entry, entry.summary()) for entry in found]
    if arguments.json:
        print_json([_as_json(entry) | asdict(summary) for entry, summary in lines])
    elif not lines:
        print(f"no runs in {', '.join(map(str, folders or DEFAULT))}")
    else:
        for entry, summary in lines:
            print(visible(f"{entry.path}  {entry.kind}, {summary.status}: {summary.words}"))
            if summary.next is not None:
                print(visible(f"    {summary.next}"))
    return 0


def _as_json(entry: Entry) -> dict[str, Any]:
    return {"path": str(entry.path), "kind": entry.kind, "modified": entry.modified}


def _clean(arguments: argparse.Namespace, found: list[Entry], named: list[Path]) -> int:
    files: list[Removable] = []
    busy = []
    for entry in found:
        try:
            files += removable(entry, arguments.unlearned)
        except NramError as error:
            if entry.path in named:
                raise UsageError(f"{error}; nothing was removed") from None
            busy.append(str(error))
    for line in busy:
        note(f"nram runs: {line}: it is left alone")
    total = sum(one.bytes for one in files)
    if not arguments.json:
        rows = [[str(one.path), _size(one.bytes), one.why] for one in files]
        print(visible(table([["file", "size", "what it is"], *rows])) if rows else "there is nothing to remove")
    removed = bool(files) and (arguments.yes or _agreed(files, total))
    freed = remove(files) if removed else 0
    if arguments.json:
        listed = [{"path": str(one.path), "bytes": one.bytes, "why": one.why} for one in files]
        print_json({"files": listed, "bytes": total, "removed": removed, "in_use": busy})
    elif removed:
        print(f"{_size(freed)} freed")
    elif files:
        print("nothing was removed")
    return 0 if removed or not files else 1


def _agreed(files: list[Removable], total: int) -> bool:
    """Ask the user. Without a terminal nobody can answer."""
    if not sys.stdin.isatty():
        note("nram runs: say --yes to remove them")
        return False
    print(f"Remove {counted(len(files), 'file')}, {_size(total)}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
