"""The plots of the docs, made from the raw results in results/.

    python benchmarks/plots.py             # draw them
    python benchmarks/plots.py --check     # draw nothing; exit status 1 if a plot is not of today's results

A plot holds a digest of the figures that it shows, because Matplotlib's versions draw the same figures differently.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nram.cluster.table import share

ROOT = Path(__file__).parent.parent
Curves = dict[str, list[tuple[int, dict[str, Any]]]]  # by name: (updates or examples, share of members or runs)


def examples_needed(files: list[str], _: str) -> Curves:
    """Which share of the runs on so many examples gave an exact program, with and without questions."""
    lines = [json.loads(line) for file in files for line in (ROOT / file).read_text().splitlines()]
    found: Curves = {}
    for ask in sorted({line["ask"] for line in lines}):
        of_number: dict[int, list[bool]] = {}
        for line in lines:
            if line["ask"] == ask:
                of_number.setdefault(line["examples"], []).append(line["exact"])
        name = f"{'with' if ask else 'without'} questions"
        found[name] = [(number, share(sum(right), len(right))) for number, right in sorted(of_number.items())]
    return found


def few_examples(curves: Curves, path: Path) -> bytes:
    from nram.pictures.figures import bytes_of, new_figure, themed
    from nram.pictures.shapes import colour

    with themed("auto"):
        figure = new_figure(7, 3.6)
        axes = figure.add_subplot()
        for name, points in curves.items():
            kind = colour("written" if name.startswith("without") else "read", "auto")
            numbers, shares = zip(*points, strict=True)
            style = "-o" if name.startswith("without") else "--o"  # where both are the same, both are seen
            axes.plot(numbers, [100 * one["share"] for one in shares], style, color=kind, label=name, markersize=4)
            low, high = ([100 * one[end] for one in shares] for end in ("from", "to"))
            axes.fill_between(numbers, low, high, color=kind, alpha=0.15, linewidth=0)
        axes.set_xscale("log", base=2)
        axes.set_xticks(numbers := sorted({number for points in curves.values() for number, _ in points}))
        axes.set_xticklabels(map(str, numbers))
        axes.set_xlabel("examples")
        axes.set_ylabel("runs with an exact program, %")
        axes.set_ylim(0, 102)
        axes.legend(fontsize=8, loc="lower right")
    return bytes_of(figure, path.suffix, "auto")


def converged(files: list[str], subject: str) -> Curves:
    """How many members of a task had converged after how many updates, with and without noise."""
    found: Curves = {}
    for file in files:
        what = "seeds of the best draw" if "seeds" in file else "draws"
        for line in map(json.loads, (ROOT / file).read_text().splitlines()):
            if line["subject"] == subject:
                name = f"{what}, {'no noise' if line['arm'] == 'noise' else 'noise'}"
                found[name] = [(updates, share(soft, line["members"])) for updates, soft, _ in line["curve"]]
    return found


def noise(curves: Curves, path: Path) -> bytes:
    from nram.pictures.figures import bytes_of, new_figure, themed
    from nram.pictures.shapes import colour

    with themed("auto"):
        figure = new_figure(7, 3.6)
        axes = figure.add_subplot()
        for name, points in curves.items():
            kind = colour("written" if "no noise" in name else "read", "auto")
            updates, shares = zip(*points, strict=True)
            style = "-" if "seeds" in name else "--"
            axes.plot(updates, [100 * one["share"] for one in shares], style, color=kind, label=name)
            if "seeds" in name:
                low, high = ([100 * one[end] for one in shares] for end in ("from", "to"))
                axes.fill_between(updates, low, high, color=kind, alpha=0.15, linewidth=0)
        axes.set_xlabel("updates")
        axes.set_ylabel("members that converged, %")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)
    return bytes_of(figure, path.suffix, "auto")


Read = Callable[[list[str], str], Curves]
Draw = Callable[[Curves, Path], bytes]
PLOTS: dict[str, tuple[Read, Draw, str, list[str]]] = {
    "docs/images/noise-listk.svg": (
        converged,
        noise,
        "listk",
        ["results/protocol-h200.jsonl", "results/protocol-seeds-h200.jsonl"],
    ),
    "docs/images/suite-examples.svg": (examples_needed, few_examples, "", ["results/suite-examples.jsonl"]),
}
"""File: how its figures are made, how it is drawn, the task, the raw results."""


def main(words: list[str]) -> int:
    if words not in ([], ["--check"]):
        print("usage: python benchmarks/plots.py [--check]", file=sys.stderr)
        return 2
    stale = False
    for name, (read, draw, subject, files) in PLOTS.items():
        path, curves = ROOT / name, read(files, subject)
        digest = hashlib.sha256(json.dumps(curves).encode()).hexdigest()[:16]
        mark = f"<!-- figures: {digest} -->".encode()
        if path.is_file() and mark in path.read_bytes():
            continue
        stale = True
        if words:
            print(f"{name} does not show today's results: run python benchmarks/plots.py", file=sys.stderr)
        else:
            path.write_bytes(draw(curves, path).rstrip() + b"\n" + mark + b"\n")
            print(name)
    return 1 if words and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
