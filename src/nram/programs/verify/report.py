"""The report of a verification: its verdict, its text, and the evidence that the program keeps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from nram.display import Displayed, counted, heading, shortened, table, text_block
from nram.limits import StepLimit
from nram.messages import shell_command
from nram.programs.files import record_to_json
from nram.programs.ir import Evidence, Program
from nram.programs.verify.counterexample import MANY_CELLS, Counterexample
from nram.programs.verify.findings import Finding, Skipped
from nram.tasks.base import Task

Verdict = Literal["right under every limit", "right only at T(n)", "wrong", "nothing shown"]


@dataclass(frozen=True, repr=False)
class Report(Displayed):
    """The outcome of `verify`."""

    program: Program
    task: Task
    limit: StepLimit
    """The T(n) that was used."""
    findings: tuple[Finding, ...]
    """Where the program was right: proven or only tested."""
    skipped: tuple[Skipped, ...]
    counterexample: Counterexample | None
    """The smallest one found. Those at T(n) come before those under larger limits."""
    seconds: float

    @property
    def verdict(self) -> Verdict:
        if self.counterexample is not None and self.counterexample.at_first:
            return "wrong"
        if not self.findings:
            return "nothing shown"
        beyond = any(set(finding.limits) - {"T"} for finding in self.findings)
        return "right only at T(n)" if self.counterexample is not None or not beyond else "right under every limit"

    @property
    def right(self) -> bool:
        """Right at least at T(n), as far as was checked."""
        return self.verdict in ("right under every limit", "right only at T(n)")

    @property
    def proven_for_every_length(self) -> bool:
        """Right for every n, every memory size and every input: the highest level."""
        return any(finding.method == "inductive" for finding in self.findings)

    def evidence(self) -> tuple[Evidence, ...]:
        """The results that the program's file records. It leaves out sizes whose inputs were only partly run."""
        return tuple(
            Evidence(
                method=finding.method,
                task=self.task.name,
                complexity=finding.complexity,
                extra_memory=finding.extra_memory,
                instances=finding.instances,
                limits=finding.limits,
                halts=finding.halts,
                fingerprint=self.program.fingerprint,
            )
            for finding in self.findings
            if finding.proven or finding.method == "random"
        )

    @property
    def harmful(self) -> bool:
        """It is right at T(n), and wrong under a larger limit."""
        return self.verdict == "right only at T(n)" and self.counterexample is not None

    def _harmless(self) -> bool:
        """It is proven right under larger limits, and not just on the smallest inputs."""
        enough = self.task.min_complexity + 2
        proven = [one.complexity[1] for one in self.findings if one.proven and one.limits != ("T",)]
        return self.verdict == "right under every limit" and any(n is None or n >= enough for n in proven)

    def recorded(self) -> Program:
        """The program with this evidence instead of its earlier evidence for this task, and with `needs_limit` set."""
        others = tuple(evidence for evidence in self.program.verified if evidence.task != self.task.name)
        known = replace(self.program, verified=(*others, *self.evidence()))
        if self.program.task not in (None, self.task.name):
            return known
        needs_limit = self.harmful or (self.program.needs_limit and not self._harmless())
        limit = self.limit if needs_limit else self.program.limit
        return replace(known, task=self.task.name, limit=limit, needs_limit=needs_limit)

    def to_json(self) -> dict[str, Any]:
        example = None
        if self.counterexample is not None:
            trace = self.counterexample.trace(self.program)
            example = {**self.counterexample.to_json(), "trace": trace.splitlines()}
        return {
            "program": self.program.name,
            "fingerprint": self.program.fingerprint,
            "task": self.task.name,
            "limit": str(self.limit),
            "verdict": self.verdict,
            "right": self.right,
            "proven_for_every_length": self.proven_for_every_length,
            "findings": [
                {
                    **finding.to_json(),
                    "least_memory": [None if n is None else self.task.least_memory(n) for n in finding.complexity],
                }
                for finding in self.findings
            ],
            "skipped": [record_to_json(skip) for skip in self.skipped],
            "counterexample": example,
            "seconds": round(self.seconds, 3),
        }

    # ---- text

    def __str__(self) -> str:
        return self.to_text()

    def _brief(self) -> str:
        skipped = counted(len(self.skipped), "part") + " not checked"
        name = shortened(self.program.name, 40)
        return f"on {name} for {self.task.name}: {self.verdict}{self._ground()}; {skipped}, {self.seconds:.1f} s"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        title = heading(f"{self.program.name} on the task {self.task.name}: {self.verdict}{self._ground()}")
        rows = [["proven" if finding.proven else "tested", *_finding_words(finding)] for finding in self.findings]
        rows += [["not checked", *_skip_words(skip)] for skip in self.skipped]
        example = self.counterexample
        wrong = "" if example is None else text_block("\n".join(self._counterexample_lines(example, None, None)))
        return title + table(rows) + wrong

    def to_text(self, called: str | None = None, width: int | None = 120) -> str:
        """The report for people. `called` is how the program is named on the command line; None in Python."""
        parts = [f"{self.program.name} on the task {self.task.name}, T(n) = {self.limit}", ""]
        parts += [self.verdict.upper().replace("T(N)", "T(n)") + self._ground(), ""]
        proven = [finding for finding in self.findings if finding.proven]
        tested = [finding for finding in self.findings if not finding.proven]
        for title, findings in (
            ("proven for every length", [finding for finding in proven if finding.method == "inductive"]),
            ("proven, for every legal input", [finding for finding in proven if finding.method != "inductive"]),
            ("only tested, every instance came out right", tested),
        ):
            if findings:
                parts += [title, *_columns([_finding_words(finding) for finding in findings]), ""]
        if self.skipped:
            parts += ["not checked, or not decided", *_columns([_skip_words(skip) for skip in self.skipped]), ""]
        if self.counterexample is not None:
            parts += self._counterexample_lines(self.counterexample, called, width)
        parts.append(f"{self.seconds:.1f} s")
        return "\n".join(parts) + "\n"

    def _ground(self) -> str:
        """What a verdict of right rests on, and what it leaves open."""
        if not self.right:
            return ""
        only_first = self.verdict == "right only at T(n)"
        findings = [finding for finding in self.findings if only_first or finding.limits != ("T",)]
        every = self._proven_up_to(finding for finding in findings if finding.extra_memory is None)
        small = self._proven_up_to(findings)
        proofs = [f"n <= {every}"] if every is not None else []
        if small is not None and small != every:
            proofs.append(f"n <= {small} in small memories")
        if self.proven_for_every_length:
            proofs = ["every length"]
        tested = [finding for finding in findings if not finding.proven]
        inputs = f"{sum(finding.instances or 0 for finding in tested):,} inputs"
        if proofs:
            ground = f": proven for {' and '.join(proofs)}"
            if tested:
                ground += f", tested on {inputs} up to n = {max(finding.complexity[1] or 0 for finding in tested):,}"
        else:
            ground = f" on all {inputs} tested; nothing is proven"
        if not only_first:
            return ground
        if self.counterexample is None:
            return ground + "; nothing is known about larger step limits"
        return ground + ". THIS PROGRAM MUST BE STOPPED after T(n) steps, it does harm afterwards"

    def _proven_up_to(self, findings: Iterable[Finding]) -> int | None:
        """The n up to which these findings prove every complexity; None if the smallest is not proven."""
        sizes = [one.complexity for one in findings if one.proven]
        proven = {n for low, high in sizes if high is not None for n in range(low, high + 1)}
        n = smallest = self.task.min_complexity
        while n in proven:
            n += 1
        return n - 1 if n > smallest else None

    def _counterexample_lines(self, example: Counterexample, called: str | None, width: int | None) -> list[str]:
        which = "T(n)" if example.at_first else "more than T(n)"
        wrong = example.wrong_cells
        shown = ", ".join(
            f"cell {cell} holds {example.obtained[cell]}, not {example.expected[cell]}" for cell in wrong[:5]
        )
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        where = "in report.counterexample" if called is None else "in --json"
        lines = [
            f"counterexample, the smallest found: n = {example.complexity}, M = {len(example.memory)}, "
            f"limit {example.limit} ({which}), found by {example.method} search",
            f"  memory    {_cells(example.memory, where)}",
            f"  expected  {_cells(example.expected, where)}",
            f"  obtained  {_cells(example.obtained, where)}",
            f"  wrong     {shown}{more}",
            "",
            example.trace(self.program, width),
        ]
        if called is None:
            return [*lines, "repeat it: nram.trace(report.program, report.counterexample.instance)", ""]
        commands = [f"  {words}" for words in example.commands(called)]
        if not commands:
            words = shell_command("run", called, memory="@FILE", max_steps=example.limit)
            commands = [f"  {words}", "  with the memory from --json in the file"]
        return [*lines, "repeat it:", *commands, ""]


def _columns(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = ([f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)] for row in rows)
    return [("  " + "   ".join(cells)).rstrip() for cells in padded]


def _finding_words(finding: Finding) -> list[str]:
    if finding.extra_memory is None:
        memory = "every M from the least up"
    else:
        low, high = (f"least+{more}" if more else "least" for more in finding.extra_memory)
        memory = f"M = {low}" if low == high else f"M = {low} to {high}"
    count = "all values at once" if finding.instances is None else f"{finding.instances:,} inputs"
    limits = "every limit from T up" if finding.limits == ("every",) else f"limits {', '.join(finding.limits)}"
    in_time = "halting in time is not proven" if finding.method == "inductive" else "does not always halt in time"
    halts = "halts by itself" if finding.halts else in_time
    return [finding.method, _range(*finding.complexity), memory, count, limits, halts, f"{finding.seconds:.1f} s"]


def _skip_words(skip: Skipped) -> list[str]:
    return [skip.method, _range(*skip.complexity), skip.what or "all", skip.why]


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"n from {low} up"
    return f"n = {low}" if low == high else f"n = {low} to {high}"


def _cells(values: tuple[int, ...], where: str) -> str:
    if len(values) <= MANY_CELLS:
        return " ".join(map(str, values))
    shown = " ".join(map(str, values[:MANY_CELLS]))
    rest = where if any(values[MANY_CELLS:]) else "all 0"
    return f"{shown} ... ({len(values) - MANY_CELLS} more, {rest})"
