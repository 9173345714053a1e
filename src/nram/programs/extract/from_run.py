"""The program of a trained member of a run, with the record of how it was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from nram.limits import StepLimit
from nram.programs.card import card
from nram.programs.ir import Program
from nram.programs.simplify import Size, simplify, size_of
from nram.programs.simplify.specialise import specialise
from nram.programs.text import limit_to_text
from nram.tasks import get_task

if TYPE_CHECKING:
    from nram.training.run_folder import RunFolder

Form = Literal["task", "every-input", "raw"]
"""How much is simplified: for the task's inputs, with the same meaning on every memory, or not at all."""


@dataclass(frozen=True)
class Extraction:
    program: Program
    raw_size: Size
    note: str | None = None
    """What else there is to say: how an LSTM became a finite automaton."""

    @property
    def size(self) -> Size:
        return size_of(self.program)


def extract_run(
    folder: RunFolder, member: int = 0, form: Form = "task", on_note: Callable[[str], None] = lambda text: None
) -> Extraction:
    """Extract a member's program and simplify it."""
    from nram.machine.controllers import LSTM
    from nram.programs.extract.table import extract_table
    from nram.training.member import wiring_of

    config = folder.config
    task = get_task(config.task)
    controller, _ = folder.load_member(member)
    wiring = wiring_of(config.machine)
    note = None
    if isinstance(controller, LSTM):
        from nram.programs.extract.lstm import extract_lstm

        on_note("the controller is an LSTM: looking for a finite automaton that does the same")
        found = extract_lstm(controller, wiring, task, step_limit=task.step_limit)
        program = found.program
        note = (
            f"LSTM merged into a finite automaton ({size_of(program)}), the same on {found.instances_compared} fresh "
            f"instances up to n = {found.largest_complexity}"
        )
    else:
        program = extract_table(controller, wiring)
    raw_size = size_of(program)
    on_note(f"extracted: {raw_size}")
    if form == "every-input":
        program = simplify(program)
    elif form == "task":
        program = specialise(program, task)
    made = _made(folder, member, form, raw_size, note)
    program = replace(program, name=task.name, task=task.name, origin="trained", limit=task.step_limit, made=made)
    return Extraction(program, raw_size, note)


def _made(folder: RunFolder, member: int, form: Form, raw_size: Size, note: str | None):
    record = folder.record
    machine = folder.config.machine
    network = f"{machine.controller}, {machine.hidden} hidden units, {machine.registers} registers"
    config = folder.config
    largest = max(stage.max_complexity for stage in config.stages)
    slack = max(stage.step_slack for stage in config.stages)
    limit = StepLimit(config.step_limit(1) - config.step_limit(0), config.step_limit(0))
    simplified = {
        "task": f"from {raw_size}, for the inputs of {folder.config.task_name}",
        "every-input": f"from {raw_size}, with the same meaning on every memory",
        "raw": "not at all",
    }
    details = [
        ("member", str(member)),
        ("network", f"{network}, {len(machine.modules)} modules x {machine.repeats}"),
        ("trained", f"n up to {largest}, T(n) = {limit_to_text(limit)} and up to {slack} steps more"),
        ("simplified", simplified[form]),
    ]
    return card(
        record.get("arguments", []),
        config.seed,
        details + ([("automaton", note)] if note else []),
        device=str(record.get("device", "unknown")),
        versions=record.get("versions", {}),
        date=str(record.get("created", "unknown")),
    )
