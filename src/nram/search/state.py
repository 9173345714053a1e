"""A search on disk, between two rounds: enough to go on to the same end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nram.errors import NramError, UsageError
from nram.files import write_atomically
from nram.search.engine import Left, SearchState
from nram.search.structure import Structure
from nram.tasks.base import Instance

VERSION = 2


@dataclass(frozen=True)
class Question:
    """What is searched for, as far as the result depends on it."""

    source: str
    seed: int
    structures: tuple[Structure, ...]
    start: str | None = None
    """The fingerprint of the program to be repaired."""
    digest: str | None = None
    """Of the file with examples or with the task, if it is one."""

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "seed": self.seed,
            "structures": [_structure_to_json(structure) for structure in self.structures],
            "start": self.start,
            "digest": self.digest,
        }


def save_state(path: Path, question: Question, state: SearchState) -> None:
    value = {
        "nram_search": VERSION,
        "question": question.as_json(),
        "round": state.round,
        "candidates": state.candidates,
        "chains": state.chains,
        "counterexamples": [_instance_to_json(instance) for instance in state.counterexamples],
        "best_cost": None if state.best_genes is None else state.best_cost,
        "best_genes": None if state.best_genes is None else state.best_genes.tolist(),
        "best_structure": None if state.best_structure is None else _structure_to_json(state.best_structure),
        "left": [
            {"structure": _structure_to_json(left.structure), "cost": left.cost, "genes": left.genes.tolist()}
            for left in state.left
        ],
    }
    write_atomically(path, (json.dumps(value) + "\n").encode())


def load_state(path: Path, question: Question) -> SearchState:
    """The state in a file; a refusal if it belongs to another question."""
    try:
        value = json.loads(path.read_text())
        if value["nram_search"] != VERSION:
            raise UsageError(
                f"{path} is of version {value['nram_search']}, and {VERSION} is read: remove it to start again"
            )
        if value["question"] != question.as_json():
            differing = [key for key in question.as_json() if value["question"].get(key) != question.as_json()[key]]
            raise UsageError(f"{path} is a search with another {', '.join(differing)}: choose another --out")
        best = value["best_structure"]
        structure = None if best is None else _structure_from_json(best)
        return SearchState(
            round=int(value["round"]),
            candidates=int(value["candidates"]),
            chains=int(value["chains"]),
            counterexamples=tuple(_instance_from_json(instance) for instance in value["counterexamples"]),
            best_cost=float("inf") if value["best_cost"] is None else float(value["best_cost"]),
            best_genes=None if structure is None else _genes(value["best_genes"], structure),
            best_structure=structure,
            left=tuple(_left_from_json(left) for left in value["left"]),
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise NramError(f"{path} cannot be read: {error}; remove it to start the search again") from None


def _structure_to_json(structure: Structure) -> dict[str, Any]:
    return {
        "registers": structure.registers,
        "repeats": structure.repeats,
        "states": structure.states,
        "modules": list(structure.modules),
    }


def _structure_from_json(value: dict[str, Any]) -> Structure:
    return Structure(value["registers"], value["repeats"], value["states"], tuple(value["modules"]))


def _genes(value: Any, structure: Structure) -> np.ndarray:
    genes = np.array(value, np.int64)
    if not structure.holds(genes):
        raise ValueError(f"it holds a table that is none of {structure}")
    return genes.astype(np.int16)


def _left_from_json(value: dict[str, Any]) -> Left:
    structure = _structure_from_json(value["structure"])
    return Left(structure, float(value["cost"]), _genes(value["genes"], structure))


def _instance_to_json(instance: Instance) -> dict[str, Any]:
    return {**instance.as_dict(), "scored": instance.scored}


def _instance_from_json(value: dict[str, Any]) -> Instance:
    return Instance(value["input"], value["output"], value["cells"], value["scored"], value["steps"])
