"""The state of a search between two rounds, in memory and in a file, and how a search ends."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from nram.display import Displayed, counted, heading, shortened, text_block
from nram.errors import NramError, UsageError, shown
from nram.files import parse_json, read_text, require_plain, write_atomically
from nram.programs.files import from_json, to_json
from nram.programs.ir import Program
from nram.records import Span, Tolerant, read_record
from nram.search.instances import Pool
from nram.search.structure import Structure
from nram.tasks.base import Instance

VERSION = 2
MOST_BYTES = 1 << 28
CURE = "; remove it to start the search again"


@dataclass(frozen=True)
class Left:
    """A table that the chains of one structure have left."""

    structure: Structure
    cost: float
    genes: np.ndarray = field(compare=False, repr=False)


@dataclass(frozen=True)
class Found:
    """A program that fits and has no counterexamples."""

    program: Program
    structure: Structure
    candidates: int
    """All that were tried before it was found."""


@dataclass(frozen=True)
class SearchState:
    """All that a search has found out by the end of a round. A file has the same fields."""

    round: int = 0
    candidates: int = 0
    chains: int = 0
    counterexamples: tuple[Instance, ...] = ()
    best_cost: float = inf
    """Of the best table on the whole pool; a wholly wrong instance costs 1."""
    best_genes: np.ndarray | None = field(default=None, compare=False, repr=False)
    best_structure: Structure | None = None
    left: tuple[Left, ...] = ()
    """The best of each structure lately, where later chains may start."""
    near: tuple[Left, ...] = ()
    """The table of each structure that comes nearest to the pool and does not fit it."""
    refused: int = 0
    """Programs that fit the pool and were refused without a counterexample."""
    found: tuple[Found, ...] = ()
    """In the order in which they were found, each once."""
    repeated: int = 0
    """How often a program was found that was among them already."""


@dataclass(frozen=True, repr=False)
class Outcome(Displayed):
    """How a search ended. `program` is the first one found, or None; `best` is the nearest to one in any case."""

    program: Program | None
    best: Program | None
    structure: Structure | None
    state: SearchState
    seconds: float
    stopped: bool
    """Asked to stop, or out of time or candidates, before a program was found."""
    resumable: SearchState
    """The state at the end of the last whole round: a search that goes on from it ends the same."""

    def _brief(self) -> str:
        work = f"{self.seconds:.1f} s, {counted(self.state.candidates, 'candidate')}"
        if self.program is None:
            return f"NOT FOUND in {work}" + ("" if self.best is None else f"; the best so far is wrong: {self.best!r}")
        return f"FOUND in {work}: {self.program!r}"

    def __str__(self) -> str:
        shown = self.program or self.best
        return shortened(self._brief()) + ("" if shown is None else f"\n\n{shown}")

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict and the circuits."""
        shown = self.program or self.best
        return heading(self._brief()) + ("" if shown is None else shown._repr_svg_() or text_block(str(shown)))


@dataclass(frozen=True)
class Question:
    """What is searched for: everything on which the result depends."""

    source: str
    seed: int
    structures: tuple[Structure, ...]
    start: str | None = None
    """The fingerprint of the program to be repaired."""
    digest: str | None = None
    """Of the file with examples or with the task, if it is one."""
    sketch: str | None = None
    """The digest of the sketch, if there is one."""
    library: str = "zoo"
    """The programs at which some chains start."""


@dataclass(frozen=True)
class _Left:
    structure: Structure
    cost: Annotated[float, Span(0, 1e12)]
    genes: list[list[int]]


@dataclass(frozen=True)
class _Found:
    program: dict[str, Any]
    structure: Structure
    candidates: Annotated[int, Span(0, 2**62)]


@dataclass(frozen=True)
class _Saved(Tolerant):
    """The content of a file."""

    nram_search: int
    question: Question
    round: Annotated[int, Span(0, 10**6)]
    candidates: Annotated[int, Span(0, 2**62)]
    chains: Annotated[int, Span(0, 2**62)]
    counterexamples: Annotated[tuple[Instance, ...], Span(0, 100_000)]
    best_cost: Annotated[float | None, Span(0, 1e12)]
    best_genes: list[list[int]] | None
    best_structure: Structure | None
    left: Annotated[tuple[_Left, ...], Span(0, 100)]
    refused: Annotated[int, Span(0, 2**62)] = 0  # 0.2 did not write it, nor those found
    found: Annotated[tuple[_Found, ...], Span(0, 1000)] = ()
    repeated: Annotated[int, Span(0, 2**62)] = 0
    near: Annotated[tuple[_Left, ...], Span(0, 100)] = ()


def save_state(path: Path, question: Question, state: SearchState) -> None:
    found = [asdict(replace(one, program=None)) | {"program": to_json(one.program)} for one in state.found]
    value = {"nram_search": VERSION, "question": asdict(question), **asdict(replace(state, found=())), "found": found}
    if not isfinite(state.best_cost):
        value["best_cost"] = None
    write_atomically(path, (json.dumps(value, default=np.ndarray.tolist) + "\n").encode())


def load_state(path: Path, question: Question) -> SearchState:
    """The state in a file. A file that belongs to another question is refused."""
    try:
        require_plain(path)
        value = parse_json(read_text(path, MOST_BYTES, "search state"), infinite=True)
        version = value.get("nram_search") if isinstance(value, dict) else None
        if type(version) is int and version != VERSION:
            raise UsageError(f"{path} is of version {shown(version)}, and {VERSION} is read: remove it to start again")
        if isinstance(value, dict) and value.get("best_cost") == inf:  # as 0.2 wrote it
            value["best_cost"] = None
        saved = read_record(_Saved, value, str(path), CURE)
        differing = [key for key in asdict(question) if getattr(saved.question, key) != getattr(question, key)]
        if differing:
            raise UsageError(f"{path} is a search with another {', '.join(differing)}: choose another --out")
        _check_instances(saved.counterexamples)
        best = saved.best_structure
        return SearchState(
            round=saved.round,
            candidates=saved.candidates,
            chains=saved.chains,
            counterexamples=saved.counterexamples,
            best_cost=inf if saved.best_cost is None else saved.best_cost,
            best_genes=None if best is None else _genes(saved.best_genes, best, question),
            best_structure=best,
            left=_tables(saved.left, question),
            near=_tables(saved.near, question),
            refused=saved.refused,
            repeated=saved.repeated,
            found=tuple(Found(from_json(one.program, str(path)), one.structure, one.candidates) for one in saved.found),
        )
    except ValueError as error:
        raise NramError(f"{path} cannot be read: {error}{CURE}") from None


def _check_instances(instances: tuple[Instance, ...]) -> None:
    """Refuse what the kernel cannot run on."""
    try:
        if instances:
            Pool(instances)
    except UsageError as error:
        raise ValueError(f"counterexamples: {error}") from None


def _tables(saved: tuple[_Left, ...], question: Question) -> tuple[Left, ...]:
    return tuple(Left(one.structure, one.cost, _genes(one.genes, one.structure, question)) for one in saved)


def _genes(value: Any, structure: Structure, question: Question) -> np.ndarray:
    """The table, as the kernel needs it. It is of a structure that is searched, so its modules are known."""
    try:
        genes = np.array(value, np.int64)
    except (ValueError, OverflowError, TypeError):  # rows of different lengths, huge numbers, none at all
        genes = np.array([])
    if structure not in question.structures or not structure.holds(genes):
        raise ValueError(f"it holds a table that does not fit {structure}")
    return genes.astype(np.int16)
