"""The table of a study: how many trials of each task and variant learned, with Wilson's intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

from nram.cluster.plan import Trial
from nram.cluster.spec import as_word
from nram.cluster.trial import Outcome
from nram.display import text_table

MOST_LEGEND = 30  # variants whose settings are shown


def share(successes: int, tries: int) -> dict[str, Any]:
    """The share of successes, with Wilson's 95% interval."""
    if tries == 0:
        return {"of": 0}
    z, p = 1.959964, successes / tries
    middle = (p + z * z / (2 * tries)) / (1 + z * z / tries)
    half = z * math.sqrt(p * (1 - p) / tries + z * z / (4 * tries * tries)) / (1 + z * z / tries)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return {"of": tries, "are": successes, "share": round(p, 4), "from": round(low, 4), "to": round(high, 4)}


def table_rows(trials: Iterable[Trial], outcomes: dict[str, Outcome]) -> list[dict[str, Any]]:
    """A row for each task and variant, in the order of the specification."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.subject, trial.label), []).append(trial)
    rows = []
    for (subject, label), members in groups.items():
        found = [outcomes[trial.name] for trial in members if trial.name in outcomes]
        learned = [one for one in found if one.learned]
        seconds = [one.seconds for one in learned]
        rows.append(
            {
                "task": members[0].task,
                "subject": subject,
                "label": label,
                "settings": members[0].settings,
                "trials": len(members),
                "learned": share(len(learned), len(found)),
                "out_of_budget": sum(one.ended == "budget" for one in found),
                "stopped_early": sum(one.ended == "stopped early" for one in found),
                "median_seconds": round(statistics.median(seconds), 1) if seconds else None,
                "devices": sorted({one.device for one in found}),
            }
        )
    return rows


def table_text(rows: list[dict[str, Any]]) -> str:
    """The rows for a reader."""
    labels = any(row["label"] for row in rows)
    early = any(row["stopped_early"] for row in rows)
    head = ["task", *(["variant"] if labels else []), "trials", "ended", "learned", "share", "95% interval"]
    head += ["out of budget", *(["stopped early"] if early else []), "median seconds"]
    lines = [head]
    for row in rows:
        learned = row["learned"]
        known = learned["of"] > 0
        line = [row["task"], *([row["label"] or "-"] if labels else []), str(row["trials"]), str(learned["of"])]
        line += [str(learned["are"]), f"{learned['share']:.0%}"] if known else ["-", "-"]
        line.append(f"{learned['from']:.0%} to {learned['to']:.0%}" if known else "-")
        line += [str(row["out_of_budget"]), *([str(row["stopped_early"])] if early else [])]
        line.append("-" if row["median_seconds"] is None else f"{row['median_seconds']:.1f}")
        lines.append(line)
    return text_table(lines)


def legend(rows: list[dict[str, Any]]) -> list[str]:
    """What distinguishes the variants, a line for each."""
    settings = {row["label"]: row["settings"] for row in rows if row["label"]}
    common = [
        name
        for name, value in next(iter(settings.values()), {}).items()
        if len(settings) > 1 and all(name in one and one[name] == value for one in settings.values())
    ]
    lines = []
    for label, one in list(settings.items())[:MOST_LEGEND]:
        words = [f"{name}={as_word(value)}" for name, value in one.items() if name not in common]
        lines.append(f"{label}: {', '.join(words) or 'nothing is changed'}")
    if len(settings) > MOST_LEGEND:
        lines.append(f"and {len(settings) - MOST_LEGEND} variants more: summary.json has them all")
    return lines
