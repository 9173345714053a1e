"""The progress of a search, shown to a person."""

from __future__ import annotations

from nram.limits import wrong_cells
from nram.progress import PLAIN_SECONDS, ProgressLine, note
from nram.search.callbacks import Best, Report, SearchCallbacks
from nram.tasks.layout import Layout, values_in_words

MOST_NAME = 14  # letters of a name, so that the line has room in 80 columns


class SearchProgress(ProgressLine, SearchCallbacks):
    """A progress line, and a line for every program that is better than those before. On standard error."""

    def __init__(self, name: str, layout: Layout | None = None):
        super().__init__(PLAIN_SECONDS)
        self.name, self.layout = name, layout
        self.more = ""  # for the progress line

    def note(self, text: str) -> None:
        self.clear()
        note(text)

    def report(self, report: Report) -> None:
        if self.live or report.seconds >= PLAIN_SECONDS:
            found = report.counterexamples
            more = f", {found} counterexample{'' if found == 1 else 's'}" if found else ""
            self.show(
                f"{self.name[:MOST_NAME]}: {report.seconds:.0f} s, {report.candidates / 1e6:.1f}M candidates, "
                f"{report.per_second / 1e6:.2f}M a second{more}{self.more}"
            )

    def best(self, best: Best) -> None:
        self.note(f"{best.seconds:6.1f} s  {best_in_words(best, self.layout)}")


def best_in_words(best: Best, layout: Layout | None) -> str:
    """How good a program is that does not fit yet, and what it gets wrong on the smallest example."""
    instance = best.smallest
    wrong = wrong_cells(best.obtained, instance)
    what, given = "does not halt", " ".join(map(str, instance.input))
    if wrong:
        name = layout.name_of(instance.input, wrong[0]) if layout is not None else f"cell {wrong[0]}"
        what = f"{name} is {best.obtained[wrong[0]]} and should be {instance.output[wrong[0]]}"
    if layout is not None:
        given = f"{values_in_words(layout.given(instance.input))}:"
    count = best.structure.registers
    registers = f"{count} register{'' if count == 1 else 's'}"
    return f"{registers}: wrong on {best.wrong} of {best.pool}; on {given} {what}"
