"""The models to examine: a network with its program, or a program alone."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nram.errors import NramError
from nram.limits import StepLimit
from nram.programs.ir import ORIGINS, Origin, Program
from nram.programs.library import ZooEntry, find_entry, zoo_weights
from nram.tasks.base import Task
from nram.training.config import TrainConfig
from nram.training.run_folder import RunFolder, load_weights

if TYPE_CHECKING:
    from nram.machine import Controller  # imports JAX, which programs alone do not need


@dataclass(frozen=True)
class Network:
    """A trained controller and the configuration it was trained under."""

    config: TrainConfig
    controller: Controller


@dataclass(frozen=True)
class Model:
    """One thing to examine."""

    task: Task
    origin: Origin
    source: str
    """NAME@ORIGIN in the zoo, or the folder of a run."""
    made: str
    """The command that it came from."""
    trained_up_to: int
    """The largest complexity of its training; of a program that was not trained, that of the task."""
    limit: StepLimit
    """T(n): the program's own, or the task's."""
    network: Network | None
    program: Program | None
    missing: str = ""
    """Why there is no network or no program where there should be one."""


def zoo_models(task: Task, origins: Sequence[Origin] = ORIGINS) -> list[Model]:
    """The zoo's models of a task, in the order of the origins."""
    entries = (find_entry(f"{task.name}@{origin}") for origin in ORIGINS if origin in origins)
    return [_zoo_model(task, entry) for entry in entries if entry is not None]


def _zoo_model(task: Task, entry: ZooEntry) -> Model:
    network = None
    if entry.has_weights:
        with zoo_weights(entry) as path:
            config, controller, _ = load_weights(path)
        network = Network(config, controller)
    missing = network is None and entry.origin == "trained"
    return Model(
        task=task,
        origin=entry.origin,
        source=entry.title,
        made=dict(entry.program.made).get("command", ""),
        trained_up_to=task.trained_up_to if network is None else network.config.trained_up_to,
        limit=entry.program.limit or task.step_limit,
        network=network,
        program=entry.program,
        missing="its weights are not in the zoo" if missing else "",
    )


def run_model(task: Task, folder: RunFolder, on_note: Callable[[str], None] = lambda text: None) -> Model:
    """The best member of a run. An LSTM that does not become a finite automaton has no program."""
    from nram.programs.extract.from_run import extract_run  # JAX

    config, controller, _ = folder.load_member(0)
    program, missing = None, ""
    try:
        program = extract_run(folder, 0, "every-input", on_note).program
    except NramError as error:
        missing = str(error)
    return Model(
        task=task,
        origin="trained",
        source=str(folder.path),
        made=shlex.join(["nram", *folder.record.arguments]),
        trained_up_to=config.trained_up_to,
        limit=task.step_limit,
        network=Network(config, controller),
        program=program,
        missing=missing,
    )
