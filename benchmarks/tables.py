"""The tables of the docs, made from the raw results in results/.

    python benchmarks/tables.py             # write them
    python benchmarks/tables.py --check     # write nothing; exit status 1 if a table differs from what it should be
    python benchmarks/tables.py runs FILE   # print one

A table stands between two comments in a page, and the first says how it is made:

    <!-- table: runs results/recipe-two-cores.jsonl -->
    <!-- end of table -->

Every line of a file in results/ is one run with its command, seed, versions, device, seconds and outcome. Tables about
the zoo are made from the cards of its programs and need no file.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from convergence import share

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(<!-- table: (?P<kind>\S+)(?P<files>[^>]*?) -->\n).*?(<!-- end of table -->)", re.DOTALL)

Lines = dict[str, list[dict[str, Any]]]  # of each subject


def runs(found: Lines) -> list[list[str]]:
    """Whole runs: how many learned their subject, how many of those halt within T(n), and the times."""
    rows = [["", "runs", "learned", "interval", "halts within T(n)", "median time", "longest"]]
    for subject, lines in found.items():
        learned = [line for line in lines if line["learned"]]
        halting = sum(line.get("halting_members", 0) > 0 for line in learned)
        rows.append([subject, str(len(lines)), str(len(learned)), interval(len(learned), len(lines)), str(halting)])
        rows[-1] += [f"{pick(line['seconds'] for line in learned):.0f} s" if learned else "-" for pick in (median, max)]
    return rows


def subjects(found: Lines) -> list[list[str]]:
    """One row for each run."""
    rows = [["", "seed", "learned", "time"]]
    for subject, lines in found.items():
        for line in lines:
            outcome = "yes" if line["learned"] else "no"
            rows.append([subject, str(line["seed"]), outcome, f"{line['seconds']:.0f} s"])
    return rows


def members(found: Lines) -> list[list[str]]:
    """Starting members that trained alone: how many solved the task, soft and hard."""
    rows = [["", "group", "registers", "steps", "soft", "hard"]]
    for subject, lines in found.items():
        for line in lines:
            parts = [line[part] for part in ("soft", "hard")]
            shares = [f"{part['are']} of {part['of']}: {interval(part['are'], part['of'])}" for part in parts]
            rows.append([subject, line["group"], str(line["registers"]), f"{line['steps']:,}", *shares])
    return rows


def trained() -> list[Any]:
    """The trained programs of the zoo, in the order of the paper's tasks."""
    from nram.extensions import task_names
    from nram.programs.library import zoo_entries

    found = {entry.name: entry.program for entry in zoo_entries() if entry.origin == "trained"}
    return [found[name] for name in task_names() if name in found]


def zoo_sizes(_: Lines) -> list[list[str]]:
    """Sizes before and after simplification."""
    from nram.programs.simplify import size_of

    rows = [["task", "extracted", "simplified, for the task's inputs"]]
    for program in trained():
        before = dict(program.made)["simplified"].removeprefix("from ").partition(", for ")[0]
        rows.append([program.task, before, str(size_of(program))])
    return rows


def zoo_models(_: Lines) -> list[list[str]]:
    """Where the trained members come from."""
    rows = [["model", "command", "device", "how it was chosen"]]
    for program in trained():
        made = dict(program.made)
        rows.append([program.task, f"`{made['command']}`", made["device"], made.get("chosen", "see below")])
    return rows


def zoo_proofs(_: Lines) -> list[list[str]]:
    """What is proven about the trained programs."""
    rows = [["program", "operations", "rows", "proven for all values, by z3", "halts by itself"]]
    for program in trained():
        found = [one for one in program.verified if one.method == "symbolic"]
        widest = [one for one in found if one.extra_memory is None] or found
        proofs = [f"n <= {one.complexity[1]}, {_memories(one.extra_memory)}, {_limits(one.limits)}" for one in widest]
        halts = "yes" if program.halts else "no, it idles"
        rows.append([program.task, str(program.operations), str(program.rows), "; ".join(proofs), halts])
    return rows


def _memories(extra: tuple[int, int] | None) -> str:
    return "every M" if extra is None else f"M up to {extra[1]} more than the least"


def _limits(limits: tuple[str, ...]) -> str:
    return "every limit from T(n) up" if limits == ("every",) else "at " + ", ".join(limits)


KINDS: dict[str, Callable[[Lines], list[list[str]]]] = {
    "runs": runs,
    "subjects": subjects,
    "members": members,
    "zoo-sizes": zoo_sizes,
    "zoo-models": zoo_models,
    "zoo-proofs": zoo_proofs,
}


def median(seconds: Any) -> float:
    return statistics.median(seconds)


def interval(successes: int, tries: int) -> str:
    of = share(successes, tries)
    return f"{100 * of['from']:.0f}..{100 * of['to']:.0f}%"


def table(kind: str, files: list[Path]) -> str:
    """A table in Markdown."""
    found: Lines = defaultdict(list)
    for file in files:
        for words in file.read_text().splitlines():
            line = json.loads(words)
            found[Path(line["subject"]).stem].append(line)
    head, *rows = KINDS[kind](found)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)) + "\n"


def made(page: str) -> str:
    """The page with its tables made again."""

    def block(match: re.Match[str]) -> str:
        text = table(match["kind"], [ROOT / name for name in match["files"].split()])
        return f"{match[1]}\n{text}\n{match[4]}"

    return BLOCK.sub(block, page)


def main(words: list[str]) -> int:
    if words and words[0] in KINDS:
        print(table(words[0], [Path(word) for word in words[1:]]), end="")
        return 0
    check = words == ["--check"]
    if words and not check:
        print(f"usage: python benchmarks/tables.py [--check | {'|'.join(KINDS)} FILE ...]", file=sys.stderr)
        return 2
    stale = False
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        page = path.read_text()
        if (expected := made(page)) == page:
            continue
        stale, name = True, path.relative_to(ROOT)
        if check:
            print(f"{name} has a table that is out of date: run python benchmarks/tables.py", file=sys.stderr)
        else:
            path.write_text(expected)
            print(name)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
