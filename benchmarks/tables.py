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
import math
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nram.cluster.table import share

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(<!-- table: (?P<kind>\S+)(?P<files>[^>]*?) -->\n).*?(<!-- end of table -->)", re.DOTALL)

Lines = dict[str, list[dict[str, Any]]]  # of each subject


def runs(found: Lines) -> list[list[str]]:
    """Whole runs: how many learned their subject, how many of those halt within T(n), and the times."""
    rows = [["", "runs", "learned", "interval", "halts within T(n)", "median time", "longest that learned"]]
    for subject, lines in found.items():
        learned = [line for line in lines if line["learned"]]
        halting = sum(line.get("halting_members", 0) > 0 for line in learned)
        rows.append([subject, str(len(lines)), str(len(learned)), interval(len(learned), len(lines)), str(halting)])
        longest = max((line["seconds"] for line in learned), default=math.inf)
        rows[-1] += [_seconds(median_time(lines)), _seconds(longest)]
    return rows


def median_time(lines: list[dict[str, Any]]) -> float:
    """Until half of the runs had learned their subject; infinite if fewer did."""
    return statistics.median(line["seconds"] if line["learned"] else math.inf for line in lines)


def _seconds(time: float) -> str:
    return f"{time:.0f} s" if time < math.inf else "-"


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


def arms(found: Lines) -> list[list[str]]:
    """Runs in which one thing at a time was switched off: how many learned their subject."""
    names = list(dict.fromkeys(line["arm"] for lines in found.values() for line in lines))
    rows = [["without", *found]]
    for arm in names:
        cells = []
        for lines in found.values():
            tried = [line for line in lines if line["arm"] == arm]
            learned = sum(line["learned"] for line in tried)
            cells.append(f"{learned} of {len(tried)}: {interval(learned, len(tried))}" if tried else "-")
        rows.append([_without(arm), *cells])
    return rows


def converged(found: Lines) -> list[list[str]]:
    """Populations of members that trained alone: how many converged, in each arm."""
    rows = [["", "without", "members", "updates", "converged, soft", "hard", "both"]]
    for subject, lines in found.items():
        for arm in dict.fromkeys(line["arm"] for line in lines):
            parts = [part for line in lines if line["arm"] == arm and (part := _population(line))]
            members = sum(part["members"] for part in parts)
            updates = sorted({f"{part['updates']:,}" for part in parts})
            shares = [_share_of(parts, name, members) for name in ("soft", "hard", "both")]
            rows.append([subject, _without(arm), f"{members:,}", ", ".join(updates), *shares])
    return rows


def _population(line: dict[str, Any]) -> dict[str, Any] | None:
    """How many members had converged at the end of a run or, if it was stopped, at its last check."""
    if line.get("converged") or not line.get("curve"):
        return line.get("converged")
    updates, soft, hard = line["curve"][-1]
    return {"members": line["members"], "soft": soft, "hard": hard, "updates": updates}


def _share_of(parts: list[dict[str, Any]], name: str, members: int) -> str:
    known = all(name in part for part in parts)  # checks do not count members that are right both ways
    return _share(sum(part[name] for part in parts), members) if known else "not counted"


def three_times(found: Lines) -> list[list[str]]:
    """The paper's table three times: the paper, its protocol run by us, and our system."""
    heads = [f"{what}: {who}" for what in ("train error", "at n = 50", "discretised") for who in WHOSE]
    rows = [["task", *heads]]
    for subject, lines in found.items():
        cells = next(line["cells"] for line in lines if "cells" in line)
        first = next(line["first"] for line in lines if "first" in line and line["arm"] == "all")
        errors = {name: _error(value) for name, value in first["errors"].items()}
        discretised = f"{errors['hard_trained']}; at n = 50: {errors['hard_far']}"
        row = [cells["paper: train error"], errors["soft_trained"], cells["ours: train error"]]
        row += [cells["paper: generalisation"], errors["soft_far"], cells["ours: at n = 50"]]
        row += [cells["paper: discretisation"], discretised, cells["ours: discretisation"]]
        rows.append([subject, *row])
    return rows


WHOSE = ("paper", "protocol", "ours")


def _error(value: float) -> str:
    return f"{float(f'{100 * value:.2g}'):g}%" if value else "0"


def structures(found: Lines) -> list[list[str]]:
    """Populations of the protocol by their controllers: how many members converged."""
    rows = [["", "without", "controller", "members", "converged, soft", "hard"]]
    for subject, lines in found.items():
        for arm in dict.fromkeys(line["arm"] for line in lines):
            parts = [part for line in lines if line["arm"] == arm for part in line["structures"]]
            for controller in sorted({part["controller"] for part in parts}):
                some = [part for part in parts if part["controller"] == controller]
                members = sum(part["members"] for part in some)
                shares = [_share_of(some, name, members) for name in ("soft", "hard")]
                rows.append([subject, _without(arm), controller, str(members), *shares])
    return rows


def _without(arm: str) -> str:
    """What an arm leaves out: of the recipe, or, as in "paper-noise", of the paper's protocol."""
    protocol, _, left_out = arm.partition("paper")
    if not protocol and arm != left_out:
        return f"{_without(left_out.removeprefix('-') or 'all')}, the paper's protocol"
    return "nothing" if arm == "all" else arm.replace("_", " ")


def _share(successes: int, tries: int) -> str:
    of = share(successes, tries)
    return f"{successes}: {100 * of['share']:.2g}% ({100 * of['from']:.2g}..{100 * of['to']:.2g})" if tries else "-"


def first_members(found: Lines) -> list[list[str]]:
    """The first-ranked members of whole runs: how many are right beyond what chose them."""
    rows = [["", "runs", "soft, n = 50, no error", "hard, n = 50, no error", "halts within T(n)"]]
    for subject, every in found.items():
        lines = [line["first"] for line in every if "first" in line]
        counts = (
            sum(line["errors"]["soft_far"] == 0 for line in lines),
            sum(line["errors"]["hard_far"] == 0 for line in lines),
            sum(line["halts"] for line in lines),
        )
        rows.append([subject, str(len(lines)), *(f"{count}: {interval(count, len(lines))}" for count in counts)])
    return rows


def paper_table(found: Lines) -> list[list[str]]:
    """The paper's table beside ours, as `nram reproduce` prints it."""
    lines = [line["cells"] for lines in found.values() for line in lines]
    return [list(lines[0]), *(list(cells.values()) for cells in lines)]


def overview(found: Lines) -> list[list[str]]:
    """The README's table: runs on a GPU and on two cores, and the zoo's models beside the paper's."""
    programs = {program.task: program for program in trained()}
    heads = ["task", "trained up to", "perfect runs, H200", "median", "perfect runs, two cores", "median"]
    rows = [[*heads, "zoo: soft, n = 50", "zoo: program", "zoo: proven", "paper: generalises", "paper: discretises"]]
    for subject, lines in found.items():
        cells = next(line["cells"] for line in lines if "cells" in line)
        row = [subject, cells["ours: n up to"]]
        for on_gpu in (True, False):
            tried = [line for line in lines if "learned" in line and ("H200" in line["device"]) == on_gpu]
            learned = f"{sum(line['learned'] for line in tried)} of {len(tried)}"
            row += [learned, _seconds(median_time(tried))] if tried else ["not run", "-"]
        kept = ("ours: at n = 50", "ours: program of the network", "paper: generalisation", "paper: discretisation")
        soft, hard, *papers = (cells[name] for name in kept)
        rows.append([*row, soft, hard, _proven(programs[subject]), *papers])
    return rows


def trained() -> list[Any]:
    """The trained programs of the zoo, in the order of the paper's tasks."""
    from nram.extensions import task_names
    from nram.programs.library import zoo_entries

    found = {entry.name: entry.program for entry in zoo_entries() if entry.origin == "trained"}
    return [found[name] for name in task_names() if name in found]


def _proven(program: Any) -> str:
    """Up to which n a program is proven."""
    from nram.programs.ir import largest_n

    return "every n" if program.proven_for_every_length else f"n <= {largest_n(program, 'symbolic')}"


def commands(_: Lines) -> list[list[str]]:
    """The commands that make the numbers of the README, and of results.md."""
    from reproduce import read_results

    rows = [["result", "what", "commands", "needs", "takes"]]
    for one in read_results():
        takes = f"{one.duration} ({one.measured})" if one.measured else one.duration
        lines = f"<br>raw results: `{one.lines}`" if one.lines else ""
        rows.append([one.name, one.what, "<br>".join(f"`{words}`" for words in one.commands) + lines, one.needs, takes])
    return rows


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
    rows = [["program", "operations", "rows", "for every length", "for all values, by z3 alone", "halts by itself"]]
    for program in trained():
        found = [one for one in program.verified if one.method == "symbolic"]
        widest = [one for one in found if one.extra_memory is None] or found
        proofs = [f"n <= {one.complexity[1]}, {_memories(one.extra_memory)}, {_limits(one.limits)}" for one in widest]
        halts = "yes" if program.halts else "no, it idles"
        every = "proven" if program.proven_for_every_length else "not proven"
        rows.append([program.task, str(program.operations), str(program.rows), every, "; ".join(proofs), halts])
    return rows


def _memories(extra: tuple[int, int] | None) -> str:
    return "every M" if extra is None else f"M up to {extra[1]} more than the least"


def _limits(limits: tuple[str, ...]) -> str:
    return "every limit from T(n) up" if limits == ("every",) else "at " + ", ".join(limits)


def proofs(found: Lines) -> list[list[str]]:
    """Proofs for every length: found by `nram prove`, and checked by both solvers."""
    rows = [["program", "proven", "time", "obligations", "z3", "cvc5"]]
    for subject, (line, *_) in found.items():
        if not line["proven"]:
            rows.append([subject, "no", f"{line['seconds']:.0f} s", "-", "-", "-"])
            continue
        claim = "halts within T(n)" if "it halts within" in line["claim"] else "right from T(n) on"
        times = [f"{line['solvers'][solver]:.2f} s" for solver in ("z3", "cvc5")]
        rows.append([subject, claim, f"{line['seconds']:.0f} s", str(line["obligations"]), *times])
    return rows


def mutants(found: Lines) -> list[list[str]]:
    """What the prover says about mutants of the zoo's programs."""
    lines = [line for lines in found.values() for line in lines if line["kind"] != "control"]
    wrong = [line for line in lines if line["wrong_at"] is not None]  # without a counterexample it is not known
    later = [line for line in wrong if line["wrong_at"] > 3]
    right = [line for line in lines if line["right"]]
    kinds = {
        "wrong at some n <= 3": [line for line in wrong if line["wrong_at"] <= 3],
        "right for n <= 3, wrong later": [line for line in later if line["kind"] == "single"],
        "the same, late change, control proven": [line for line in later if line["kind"] == "late"],
        "the same, late change, control not proven": [line for line in later if "not proven" in line["kind"]],
        "**wrong, together**": wrong,
        "right up to n = 50": [line for line in right if line["kind"] == "single"],
        "the same, late change": [line for line in right if line["kind"] == "late"],
        "**right, together**": right,
    }
    rows = [["mutants", "how many", "all inputs with n <= 3 run", "proven", "proven by the original's invariant"]]
    for name, of in kinds.items():
        counts = (len(of), *(sum(line[part] for line in of) for part in ("all_small", "proven", "proven_as_original")))
        rows.append([name, *map(str, counts)])
    return rows


def explorer(found: Lines) -> list[list[str]]:
    """How fast the explorer's server answers."""
    names = {
        "steps": "a step",
        "million": "a piece of a run of a million steps",
        "states": "a piece of 200,000 steps, two states",
        "networks": "a network, 64 cells",
        "uncached": "the first run of a network, nothing cached",
        "clients": "a step, a hundred clients at once",
    }
    rows = [["", "requests", "median", "95% are faster than", "slowest", "first"]]
    for subject, [line] in found.items():
        first = f"{line['first_ms']:g} ms" if "first_ms" in line else ""
        times = (f"{line[name]:g} ms" for name in ("median_ms", "p95_ms", "most_ms"))
        rows.append([names[subject], f"{line['requests']:,}", *times, first])
    return rows


def ten_tasks(found: Lines) -> list[list[str]]:
    """Searches of the ten tasks. A search without an exact program counts as one that takes forever."""
    heads = ["task", "seeds that found a program", "median time", "from, to", "median candidates"]
    rows = [[*heads, "shortest: operations + rows"]]
    for subject, lines in found.items():
        times = [line["seconds"] if line["exact"] else math.inf for line in lines]
        work = statistics.median(line["candidates"] if line["exact"] else math.inf for line in lines)
        shortest = min(lines, key=lambda line: line["operations"] + line["rows"] if line["exact"] else math.inf)
        rows.append([subject, f"{sum(line['exact'] for line in lines)} of {len(lines)}"])
        rows[-1] += [f"{statistics.median(times):.1f} s", f"{min(times):.1f} to {max(times):.1f} s"]
        rows[-1] += [f"{work / 1e6:.2f} million", f"{shortest['operations']} + {shortest['rows']}"]
    return rows


def chains(found: Lines) -> list[list[str]]:
    """Of how many chains the tables fit, and for how much of the processor's time, in several variants of the code."""
    every = [line for lines in found.values() for line in lines]
    variants = list(dict.fromkeys(line["variant"] for line in every))
    rows = [["", *variants]]
    for subject, lines in {**found, "all": every}.items():
        rows.append([subject])
        for variant in variants:
            same = [line for line in lines if line["variant"] == variant]
            fits, tried, time = (sum(line[name] for line in same) for name in ("fits", "chains", "seconds"))
            rows[-1].append(f"{fits} of {tried}, {time:.0f} s" if same else "")
    return rows


def suite(found: Lines) -> list[list[str]]:
    """Searches of the problems of examples/suite, one row for each problem."""
    heads = ["", "tier", "runs", "found", "exact", "interval", "median time", "median candidates"]
    rows = [[*heads, "shortest: operations + rows"]]
    for subject, lines in found.items():
        rows.append([subject, str(lines[0]["tier"]), *_searched(lines)])
    return rows


def suite_tiers(found: Lines) -> list[list[str]]:
    """The same, one row for each tier and one for all."""
    heads = ["tier", "problems", "exact in a run", "runs", "found", "exact", "interval"]
    rows = [[*heads, "median time", "median candidates"]]
    every = [line for lines in found.values() for line in lines]
    for tier in (*sorted({line["tier"] for line in every}), "all"):
        lines = [line for line in every if tier in (line["tier"], "all")]
        names = {line["problem"] for line in lines}
        solved = {line["problem"] for line in lines if line["exact"]}
        rows.append([str(tier), str(len(names)), str(len(solved)), *_searched(lines)[:-1]])
    return rows


def peers(found: Lines) -> list[list[str]]:
    """Methods side by side on the problems of examples/suite: a row for each problem, and one for all.

    Lines without a method are runs of training, from another file. Problems that only they have are left out.
    """
    subjects = {name: lines for name, lines in found.items() if any("method" in line for line in lines)}
    methods = list(dict.fromkeys(_method(line) for lines in subjects.values() for line in lines))
    methods.sort(key=lambda method: (method not in PEERS, PEERS.index(method) if method in PEERS else method))
    rows = [["", *methods]]
    totals: dict[str, list[bool]] = {method: [] for method in methods}
    for subject, lines in subjects.items():
        row = [subject]
        for method in methods:
            tried = [line for line in lines if _method(line) == method]
            right = [bool(line.get("exact", line.get("learned"))) for line in tried]
            totals[method] += right
            time = median_time([line | {"learned": ok} for line, ok in zip(tried, right, strict=True)]) if tried else 0
            some = f"{sum(right)} of {len(tried)}" if len(tried) > 1 else "yes" if any(right) else "no"
            row.append((f"{some}, {_seconds(time)}" if any(right) and time < math.inf else some) if tried else "")
        rows.append(row)
    shares = [f"{sum(right)} of {len(right)}: {interval(sum(right), len(right))}" for right in totals.values()]
    return [*rows, ["exact runs", *shares]]


def suite_examples(found: Lines) -> list[list[str]]:
    """How many runs on so many examples gave an exact program, without questions and with them."""
    every = [line for lines in found.values() for line in lines]
    numbers = sorted({line["examples"] for line in every})
    rows = [["", "questions", *map(str, numbers)]]
    for subject, lines in {**found, "all": every}.items():
        for ask in sorted({line["ask"] for line in lines}):
            cells = []
            for number in numbers:
                right = [line["exact"] for line in lines if (line["ask"], line["examples"]) == (ask, number)]
                cells.append(f"{sum(right)} of {len(right)}" if right else "")
            rows.append([subject, "with" if ask else "without", *cells])
    return rows


PEERS = ("search", "genetic", "cvc5", "z3", "random", "training")


def _method(line: dict[str, Any]) -> str:
    return line.get("method", "training")


def _searched(lines: list[dict[str, Any]]) -> list[str]:
    """How many runs found a program, how many an exact one, the median time and work of an exact one, and its length.

    A run without an exact program takes forever: with no exact program in half of the runs, there is no median.
    """
    right = [line for line in lines if line["exact"]]
    cells = [str(len(lines)), str(sum(line["found"] for line in lines)), str(len(right))]
    cells.append(interval(len(right), len(lines)))
    cells.append(_seconds(statistics.median(line["seconds"] if line["exact"] else math.inf for line in lines)))
    work = statistics.median(line["candidates"] if line["exact"] else math.inf for line in lines)
    cells.append(f"{work / 1e6:.1f} million" if work < math.inf else "-")
    shortest = min(right, key=lambda line: line["operations"] + line["rows"], default=None)
    return [*cells, f"{shortest['operations']} + {shortest['rows']}" if shortest else "-"]


def native(found: Lines) -> list[list[str]]:
    """Machine code beside C by hand, on one large memory and on many small ones. Ratios above 2 are bold."""
    heads = ["task", "program", "one memory: C", "program / C", "/ C -O3", "many: C for each", "program / C", "/ C -O3"]
    rows = [heads]
    for subject, lines in found.items():
        for program in dict.fromkeys(line["program"] for line in lines):
            row = [subject, program]
            for shape, unit, per in (("one", "us", 1e6), ("many", "ns", 1e9)):
                line = next((line for line in lines if (line["program"], line["shape"]) == (program, shape)), None)
                row += ["-"] * 3 if line is None else _beside_c(line, unit, per)
            rows.append(row)
    return rows


def _beside_c(line: dict[str, Any], unit: str, per: float) -> list[str]:
    ratios = [f"{line['seconds'] / line[name]:.2f}" for name in ("c_scalar", "c_fastest")]
    scalar = f"**{ratios[0]}**" if float(ratios[0]) > 2 else ratios[0]
    return [f"{per * line['c_scalar'] / line['memories']:.1f} {unit}", scalar, ratios[1]]


def overhead(found: Lines) -> list[list[str]]:
    """The same trials by hand and by nram sweep: a row for each round, and the ratio of the sums."""
    ways, parts = ("by hand", "nram sweep"), ("seconds", "processor")
    units = {"seconds": "", "processor": ", of the processor"}
    rows = [["round", *(f"{way}{units[part]}" for part in parts for way in ways)]]
    lines = [line for some in found.values() for line in some]
    for seed in dict.fromkeys(line["seed"] for line in lines):
        of = {line["how"]: line for line in lines if line["seed"] == seed}
        rows.append([str(seed + 1), *(f"{of[way][part]:.1f} s" for part in parts for way in ways)])
    sums = {(way, part): sum(line[part] for line in lines if line["how"] == way) for way in ways for part in parts}
    last = ["all"]
    for part in parts:
        hand, sweep = (sums[way, part] for way in ways)
        last += [f"{hand:.1f} s", f"{sweep:.1f} s ({100 * (sweep / hand - 1):+.1f}%)"]
    return [*rows, last]


def start_up(found: Lines) -> list[list[str]]:
    """The seconds from the command to the first process of a trial, for each size of study and place."""
    rows = [["trials of the study", "on", "starts", "median", "from, to"]]
    lines = [line for some in found.values() for line in some]
    for trials, where in dict.fromkeys((line["trials"], line["where"]) for line in lines):
        seconds = [line["seconds"] for line in lines if (line["trials"], line["where"]) == (trials, where)]
        rows.append([str(trials), where, str(len(seconds)), f"{statistics.median(seconds):.1f} s"])
        rows[-1].append(f"{min(seconds):.1f} to {max(seconds):.1f} s")
    return rows


def scaling(found: Lines) -> list[list[str]]:
    """One search on more and more workers: medians, a row for each place and number of workers."""
    rows = [["", "chains run on", "workers", "runs", "seconds", "candidates per second", "whole process"]]
    for subject, lines in found.items():
        for where, workers in dict.fromkeys((line["where"], line["workers"]) for line in lines):
            same = [line for line in lines if (line["where"], line["workers"]) == (where, workers)]
            names = ("seconds", "per_second", "whole_process")
            seconds, rate, whole = (statistics.median(line[name] for line in same) for name in names)
            rows.append([subject, where, str(workers), str(len(same)), f"{seconds:.1f} s"])
            rows[-1] += [f"{rate / 1e6:.2f} million", f"{whole:.1f} s"]
    return rows


KINDS: dict[str, Callable[[Lines], list[list[str]]]] = {
    "runs": runs,
    "subjects": subjects,
    "members": members,
    "arms": arms,
    "converged": converged,
    "structures": structures,
    "three-times": three_times,
    "first-members": first_members,
    "paper-table": paper_table,
    "overview": overview,
    "proofs": proofs,
    "mutants": mutants,
    "explorer": explorer,
    "native": native,
    "scaling": scaling,
    "overhead": overhead,
    "start-up": start_up,
    "suite": suite,
    "ten-tasks": ten_tasks,
    "chains": chains,
    "suite-tiers": suite_tiers,
    "commands": commands,
    "peers": peers,
    "suite-examples": suite_examples,
    "zoo-sizes": zoo_sizes,
    "zoo-models": zoo_models,
    "zoo-proofs": zoo_proofs,
}


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
