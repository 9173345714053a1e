"""The settings of trials of `nram search` and `nram learn`, which are options of these verbs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from nram.cluster.plan import Trial
from nram.cluster.spec_file import without_null
from nram.errors import UsageError, shown
from nram.extensions.modules import split_names
from nram.limits import StepLimit
from nram.records import Span, members
from nram.search.job import ZOO, Space
from nram.tasks.example_files import Reading


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a trial of `nram search`: its options."""

    registers: Annotated[int | None, Span(1, 64)] = None
    repeats: Annotated[int | None, Span(1, 64)] = None
    states: Annotated[int | None, Span(1, 64)] = None
    modules: str | None = None
    candidates: Annotated[int | None, Span(1, 1 << 60)] = None
    library: str = ZOO
    cells: str | None = None
    result: str | None = None
    layout: str | None = None

    @property
    def space(self) -> Space:
        modules = None if self.modules is None else split_names(self.modules)
        return Space(self.registers, self.repeats, self.states, modules)


class Steps(StepLimit):
    """A step limit in words, as 3n+10."""

    @classmethod
    def parse(cls, value: Any) -> StepLimit:
        limit = cls.from_text(value.replace(" ", "")) if isinstance(value, str) else None
        if limit is None or limit(1) < 1:
            raise ValueError(f"{shown(value)} is not a step limit: write it as '3n+10' or '40'")
        return limit


@dataclass(frozen=True)
class LearnSettings:
    """The settings of a trial of `nram learn`: its options."""

    method: Literal["both", "search", "train"] = "both"
    alternatives: Annotated[int, Span(0, 100)] = 0
    steps: Steps | None = None
    cells: str | None = None
    result: str | None = None
    layout: str | None = None


def reading_of(settings: SearchSettings | LearnSettings) -> Reading:
    names = tuple(name.strip() for name in (settings.result or "").split(",") if name.strip())
    return Reading(settings.cells, names, settings.layout)


def settings_of(trial: Trial) -> SearchSettings | LearnSettings:
    """The checked settings of a trial of `nram search` or `nram learn`."""
    kind = SearchSettings if trial.verb == "search" else LearnSettings
    problems: list[str] = []
    found = members(kind, trial.settings, lambda key: key, lambda text: problems.append(without_null(text)))
    if problems:
        raise UsageError("; ".join(problems))
    return kind(**found)
