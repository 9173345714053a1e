"""The state of a search between two rounds, in memory and in a file, and how a search ends."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nram.errors import NramError, UsageError
from nram.files import write_atomically
from nram.programs.ir import Program
from nram.search.structure import Structure
from nram.tasks.base import Instance

VERSION = 2


@dataclass(frozen=True)
class Left:
    """The best table that the chains of one structure have left lately."""

    structure: Structure
    cost: float
    genes: np.ndarray = field(compare=False)


@dataclass(frozen=True)
class SearchState:
    """All that a search has found out by the end of a round. A file has the same fields."""

    round: int = 0
    candidates: int = 0
    chains: int = 0
    counterexamples: tuple[Instance, ...] = ()
    best_cost: float = float("inf")
    """Of the best table on the whole pool; a wholly wrong instance costs 1."""
    best_genes: np.ndarray | None = field(default=None, compare=False)
    best_structure: Structure | None = None
    left: tuple[Left, ...] = ()
    """Where later chains may start."""


@dataclass(frozen=True)
class Outcome:
    """How a search ended. `program` is the one found, or None; `best` is the nearest to one in any case."""

    program: Program | None
    best: Program | None
    structure: Structure | None
    state: SearchState
    seconds: float
    stopped: bool
    """Asked to stop, or out of time or candidates, before a program was found."""
    resumable: SearchState
    """The state at the end of the last whole round: a search that goes on from it ends the same."""


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


def save_state(path: Path, question: Question, state: SearchState) -> None:
    value = {"nram_search": VERSION, "question": asdict(question), **asdict(state)}
    if state.best_genes is None:
        value["best_cost"] = None
    write_atomically(path, (json.dumps(value, default=np.ndarray.tolist) + "\n").encode())


def load_state(path: Path, question: Question) -> SearchState:
    """The state in a file. A file that belongs to another question is refused."""
    try:
        value = json.loads(path.read_text())
        if value["nram_search"] != VERSION:
            raise UsageError(
                f"{path} is of version {value['nram_search']}, and {VERSION} is read: remove it to start again"
            )
        asked = json.loads(json.dumps(asdict(question)))
        differing = [key for key in asked if value["question"].get(key) != asked[key]]
        if differing:
            raise UsageError(f"{path} is a search with another {', '.join(differing)}: choose another --out")
        best = value["best_structure"] and _structure(value["best_structure"])
        left = [(_structure(one["structure"]), one["cost"], one["genes"]) for one in value["left"]]
        return SearchState(
            round=int(value["round"]),
            candidates=int(value["candidates"]),
            chains=int(value["chains"]),
            counterexamples=tuple(Instance(**instance) for instance in value["counterexamples"]),
            best_cost=float("inf") if value["best_cost"] is None else float(value["best_cost"]),
            best_genes=best and _genes(value["best_genes"], best),
            best_structure=best,
            left=tuple(Left(structure, float(cost), _genes(genes, structure)) for structure, cost, genes in left),
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise NramError(f"{path} cannot be read: {error}; remove it to start the search again") from None


def _structure(value: dict[str, Any]) -> Structure:
    return Structure(**{**value, "modules": tuple(value["modules"])})


def _genes(value: Any, structure: Structure) -> np.ndarray:
    genes = np.array(value, np.int64)
    if not structure.holds(genes):
        raise ValueError(f"it holds a table that does not fit {structure}")
    return genes.astype(np.int16)
