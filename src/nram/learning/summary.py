"""A learn folder in one line, read from its report. For lists of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from nram.files import read_json
from nram.messages import pasted, shell_command
from nram.records import Span, Tolerant, read_record
from nram.training.summary import Summary

MOST_REPORT = 1 << 24  # bytes of report.json


@dataclass(frozen=True)
class Reported(Tolerant):
    """What lists and pages use of a learn folder's report."""

    found: bool
    program: dict[str, Any] | None = None
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    leaves_open: list[str] = field(default_factory=list)
    question: dict[str, Any] | None = None
    examples: dict[str, Any] = field(default_factory=dict)
    programs: Annotated[list[dict[str, Any]], Span(0, 100)] = field(default_factory=list)


def report_of(path: Path) -> Reported | None:
    """The report of a learn folder; None while there is none."""
    file = path / "report.json"
    return read_record(Reported, read_json(file, MOST_REPORT, "report"), str(file)) if file.is_file() else None


def summary_of_learning(path: Path, running: bool) -> Summary:
    """Of a folder of `nram learn`. NramError: it is damaged."""
    report = report_of(path)
    if running:
        return Summary(None, "running", "Learning from examples.")
    file = report.examples.get("file") if report is not None else None
    again = shell_command("learn", file if isinstance(file, str) else "EXAMPLES", out=path, resume=True)
    if report is None:
        return Summary(None, "stopped", "Nothing was found yet.", again)
    if report.found:
        return Summary(None, "finished", verdict_of(report), shell_command("show", pasted(path / "program.json")))
    return Summary(None, "stopped", verdict_of(report), again)


def verdict_of(report: Reported) -> str:
    if not report.found and report.seconds < 0.05:
        return "NOT FOUND: stopped before the search began."
    what = "FOUND" if report.found else "NOT FOUND"
    asks = ". Other programs fit too, and give other answers elsewhere" if report.question is not None else ""
    return f"{what} in {report.seconds:.1f} s{asks}."
