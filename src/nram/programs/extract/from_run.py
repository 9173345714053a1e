"""The program of a trained member of a run, with its card. This module imports JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import numpy as np

from nram.errors import UsageError
from nram.extensions import known_task
from nram.limits import StepLimit
from nram.machine import Controller, Wiring
from nram.machine.controllers import LSTM
from nram.programs.card import Entry, card
from nram.programs.extract.lstm import extract_lstm
from nram.programs.extract.table import extract_table
from nram.programs.ir import Program
from nram.programs.simplify import Size, simplify, size_of
from nram.programs.simplify.specialise import specialise
from nram.runtime import on_devices
from nram.tasks.base import Task
from nram.training.config import TrainConfig
from nram.training.member import wiring_of
from nram.training.run_folder import RunFolder

Form = Literal["task", "every-input", "raw"]
"""How much is simplified: for the task's inputs, with the same meaning on every memory, or not at all."""


@dataclass(frozen=True)
class Extraction:
    program: Program
    raw_size: Size
    note: str | None = None
    """How an LSTM became a finite automaton."""

    @property
    def size(self) -> Size:
        return size_of(self.program)


def extract_run(
    folder: RunFolder, member: int = 0, form: Form = "task", on_note: Callable[[str], None] = lambda text: None
) -> Extraction:
    """Extract a member's program and write its card."""
    config, controller, description = folder.load_member(member)
    wiring, task = wiring_of(config.machine), known_task(config.task)
    found = extract_controller(controller, wiring, task, form, on_note)
    details = [("member", str(member)), *training_details(config, description)]
    made = _card(folder, details, form, found.raw_size, found.note)
    return replace(found, program=replace(found.program, made=made))


def extract_controller(
    controller: Controller,
    wiring: Wiring,
    task: Task | None,
    form: Form = "task",
    on_note: Callable[[str], None] = lambda text: None,
) -> Extraction:
    """Extract the program of a controller on the CPU and simplify it. JAX keeps its default device.

    Without a task there is no program of an LSTM, and no program for the task's inputs.
    """
    if task is None and (form == "task" or isinstance(controller, LSTM)):
        what = "the form 'task'" if form == "task" else "an LSTM"
        raise UsageError(f"{what} needs a task, whose instances show what the machine does: give one")
    with on_devices("cpu"):
        program, note = _raw_program(jax.tree.map(np.asarray, controller), wiring, task, on_note)
    raw_size = size_of(program)
    on_note(f"extracted: {raw_size}")
    if form == "every-input":
        program = simplify(program)
    elif form == "task" and task is not None:
        program = specialise(program, task)
    program = replace(program, origin="trained")
    if task is not None:
        program = replace(program, name=task.name, task=task.name, limit=task.step_limit)
    return Extraction(program, raw_size, note)


def _raw_program(
    controller: Controller, wiring: Wiring, task: Task | None, on_note: Callable[[str], None]
) -> tuple[Program, str | None]:
    """The program before it is simplified, and how it was found if that was not by reading a table."""
    if not isinstance(controller, LSTM) or task is None:
        return extract_table(controller, wiring), None
    on_note("the controller is an LSTM: looking for a finite automaton that does the same")
    found = extract_lstm(controller, wiring, task)
    return found.program, (
        f"LSTM merged into a finite automaton ({size_of(found.program)}), the same on {found.instances_compared} fresh "
        f"instances up to n = {found.largest_complexity}"
    )


def training_details(config: TrainConfig, description: dict[str, Any]) -> list[Entry]:
    """For the card of a trained program: which network, and what it was trained on. The description is that of the
    member; up to 0.2 it had no step limit of its own."""
    machine, hyper = config.machine, description.get("hyper", {})
    slack = max(stage.step_slack for stage in config.stages)
    first = config.first_limit
    numbers = (hyper.get("steps_per_item", first.per_item), hyper.get("steps_constant", first.constant))
    limit = StepLimit(*map(int, numbers))
    most = f", at most {known_task(config.task).step_limit}," if config.draw_steps else ""
    return [
        (
            "network",
            f"{machine.controller}, {machine.hidden} hidden units, {machine.registers} registers, "
            f"{len(machine.modules)} modules x {machine.repeats}",
        ),
        ("trained", f"n up to {config.trained_up_to}, T(n) = {limit}{most} and up to {slack} steps more"),
    ]


def _card(folder: RunFolder, details: list[Entry], form: Form, raw_size: Size, note: str | None) -> tuple[Entry, ...]:
    config, record = folder.config, folder.record
    simplified = {
        "task": f"from {raw_size}, for the inputs of {config.task_name}",
        "every-input": f"from {raw_size}, with the same meaning on every memory",
        "raw": "not at all",
    }
    details = [*details, ("simplified", simplified[form])]
    return card(
        record.arguments,
        config.seed,
        details + ([("automaton", note)] if note else []),
        device=record.device,
        versions=record.versions,
        date=record.created,
    )
