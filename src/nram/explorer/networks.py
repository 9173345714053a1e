"""Trained networks: what their machine looks like, and what it does on a memory, as distributions.

JAX is imported at the first request for a network. Compiled code is used again: the loop has always the same length, so
only a machine of another shape or a memory of another size is compiled.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from nram.errors import UsageError, shown
from nram.explorer.answering import Refused, action
from nram.explorer.references import Reference
from nram.explorer.runs import JAX_TURNS, open_member
from nram.extras import require
from nram.lazy import jax
from nram.programs.library import find_entry, zoo_entries, zoo_weights
from nram.programs.memory import prepare_memory
from nram.records import Span
from nram.runtime import on_devices
from nram.training.config import TrainConfig
from nram.training.run_folder import read_config

if TYPE_CHECKING:
    from nram.explorer.server import Explorer
    from nram.soft_machine import SoftMachine

MOST_CELLS = 64
MOST_STEPS = 256
MOST_COMPILED = 64  # programs of JAX that are kept


@dataclass(frozen=True)
class NetworkRequest:
    network: Reference


@dataclass(frozen=True)
class SoftRequest:
    network: Reference
    memory: Annotated[list[int], Span(1, MOST_CELLS)]
    max_steps: Annotated[int, Span(1, MOST_STEPS)]
    memory_size: Annotated[int | None, Span(3, MOST_CELLS)] = None


@dataclass(frozen=True)
class _Network:
    """A trained network: where its weights are, and what it was trained for."""

    reference: Mapping[str, Any]
    """What a link says to name it."""
    title: str
    source: str
    """A name of the zoo, or a run's folder."""
    member: int | None
    """Of the run."""
    version: tuple[int, int]
    """What changes with the file of the weights."""
    config: TrainConfig


def show_network(explorer: Explorer, request: NetworkRequest) -> dict[str, Any]:
    """What the machine of a network consists of."""
    network = _find(explorer, request.network)
    with JAX_TURNS.taken():
        machine = _loaded(network.source, network.member, network.version)
    config = network.config
    return {
        "network": network.reference,
        "title": network.title,
        "task": config.task_name,
        "registers": machine.wiring.registers,
        "modules": [module.name for module in machine.wiring.modules],
        "wires": list(machine.wire_names),
        "values": list(machine.value_names),
        "limit": str(config.first_limit),
        "trained_up_to": config.trained_up_to,
        "parameters": machine.parameters,
        "controller": type(machine.controller).__name__,
        "most": {"cells": MOST_CELLS, "steps": MOST_STEPS},
    }


def run_soft(explorer: Explorer, request: SoftRequest) -> dict[str, Any]:
    """The distributions of every step on a memory of whole numbers."""
    network = _find(explorer, request.network)
    memory = prepare_memory(request.memory, request.memory_size).tolist()
    steps = request.max_steps
    with JAX_TURNS.taken():
        machine = _loaded(network.source, network.member, network.version)
        _forget_compiled(machine, len(memory))
        with on_devices("cpu"):
            recording = machine(memory, MOST_STEPS, steps, keep_memory=True)
        # Step T takes what is left of the probability of stopping: what comes later is not looked at.
        tape, registers = (np.asarray(one)[: steps + 1] for one in (recording.memory, recording.registers))
        wires, willing, finish = (
            np.asarray(one)[:steps] for one in (recording.wires, recording.willing, recording.finish)
        )
    return {
        "memory_size": len(memory),
        "steps": steps,
        "registers": machine.wiring.registers,
        "tape": _quantised(tape),
        "register_heat": _quantised(registers),
        "wires": _quantised(wires),
        "willing": _rounded(willing),
        "finish": _rounded(finish),
        "best": {"memory": tape.argmax(-1).tolist(), "registers": registers.argmax(-1).tolist()},
    }


def _find(explorer: Explorer, reference: Reference) -> _Network:
    """The network that a request means."""
    if reference.run is not None:
        entry, run, version = open_member(explorer.settings, reference.run, reference.member)
        config = run.member_config(reference.member)
        title = f"member {reference.member} of {entry.id}"
        name = {"run": reference.run, "member": reference.member}
        return _Network(name, title, str(entry.path), reference.member, version, config)
    if reference.name is None:
        raise UsageError("the request names no network: give name, or run and member")
    require("train", "a network")
    found = None if reference.name in explorer.settings.programs else find_entry(reference.name)
    if found is not None and not found.has_weights:  # a bare name means the program that was trained
        same = (entry for entry in zoo_entries() if entry.name == reference.name and entry.has_weights)
        found = next(same, None)
    if found is None:
        names = ", ".join(entry.title for entry in zoo_entries() if entry.has_weights)
        raise Refused(f"there is no network {shown(reference.name)}: choose one of {names}", 404)
    with zoo_weights(found) as path:
        return _Network(
            {"name": found.title}, f"{found.title} of the zoo", found.title, None, (0, 0), read_config(path)
        )


@lru_cache(maxsize=16)
def _loaded(source: str, member: int | None, version: tuple[int, int]) -> SoftMachine:
    from pathlib import Path

    from nram.soft_machine import load_machine  # JAX

    with on_devices("cpu"):
        return load_machine(source) if member is None else load_machine(Path(source), member)


_compiled: set[Any] = set()
"""The shapes that JAX has compiled code for."""


def _forget_compiled(machine: SoftMachine, cells: int) -> None:
    """Empty JAX's memory of compiled code when it holds too many shapes."""
    shape = (machine.wiring, type(machine.controller), machine.parameters, machine.renormalising, cells)
    if shape not in _compiled and len(_compiled) >= MOST_COMPILED:
        jax.clear_caches()
        _compiled.clear()
    _compiled.add(shape)


def _quantised(probabilities: np.ndarray) -> str:
    """Probabilities as bytes, 255 for certain, in base64."""
    return base64.b64encode(np.clip(np.rint(255 * probabilities), 0, 255).astype(np.uint8).tobytes()).decode()


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), 6) for value in values]


ROUTES = [action("/api/network", NetworkRequest, show_network), action("/api/soft", SoftRequest, run_soft)]
