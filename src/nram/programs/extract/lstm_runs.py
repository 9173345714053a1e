"""The discretised machine of an LSTM, which records every choice: the LSTM in NumPy, the circuits in the interpreter.

`machine.hard` must be compiled for every memory size, and it does not report the controller's choices. This machine
does the same steps with the same float32 weights. `extract_lstm` compares its final result with the compiled machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nram.machine.controllers import LSTM
from nram.machine.wiring import Wiring
from nram.programs.extract.table import row_of
from nram.programs.interpret import Machine
from nram.programs.ir import Flags, Program, Register, Row


class Choice(NamedTuple):
    """What the machine saw and did in one step."""

    zero: Flags
    row: Row
    """The circuit, and whether the machine halts; without conditions, and without the states that an LSTM lacks."""


@dataclass(frozen=True)
class Run:
    """One run of the machine: its choices, one for each step, and how it ended."""

    start: tuple[int, ...]
    """The memory at the start."""
    complexity: int
    choices: tuple[Choice, ...]
    busy: int
    """The number of steps up to the last one that changed the memory or halted. After them the machine idles."""
    memory: tuple[int, ...]
    halted: bool


class Recorder:
    """Runs the discretised machine of one LSTM and records its choices."""

    def __init__(self, controller: LSTM, wiring: Wiring):
        self.wiring = wiring
        ready = controller.prepare(wiring)
        layers = (ready.hidden, ready.gates, ready.output)
        self.layers = [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in layers]
        self.width = self.layers[0][1].shape[0]
        self.rows: dict[bytes, Row] = {}
        self.flags: dict[Flags, Flags] = {}
        kept = tuple(map(Register, range(wiring.registers)))
        self.empty = Program(wiring.register_names, ((Row((None,) * wiring.registers, (), kept),),))
        """Its machines carry out the rows that the LSTM chooses."""

    def record(
        self, memories: Sequence[Sequence[int]], complexities: Sequence[int], limits: Sequence[int]
    ) -> list[Run]:
        """Run each memory until the machine halts, at most its limit of steps."""
        count = len(memories)
        machines = [Machine(self.empty, memory) for memory in memories]
        output, cell = np.zeros((2, count, self.width), np.float32)
        choices: list[list[Choice]] = [[] for _ in memories]
        busy = [0] * count
        for step in range(max(limits, default=0)):
            going = [i for i, machine in enumerate(machines) if not machine.halted and step < limits[i]]
            if not going:
                break
            zero = np.array([machines[i].flags for i in going], np.float32)
            chosen, halts, output[going], cell[going] = self._decide(zero, output[going], cell[going])
            for i, wires, halt in zip(going, chosen, halts, strict=True):
                machine = machines[i]
                choice = Choice(self.flags.setdefault(machine.flags, machine.flags), self._row(wires, bool(halt)))
                choices[i].append(choice)
                before = list(machine.memory)
                machine.compute(choice.row)
                if machine.halted or machine.memory != before:
                    busy[i] = step + 1
        return [
            Run(tuple(memory), n, tuple(chosen), steps, tuple(machine.memory), machine.halted)
            for memory, n, chosen, steps, machine in zip(memories, complexities, choices, busy, machines, strict=True)
        ]

    def _decide(self, zero: np.ndarray, output: np.ndarray, cell: np.ndarray):
        """The LSTM's equations, as in machine/controllers.py: wires, halting, and the next state."""
        hidden, gates, last = self.layers
        x = np.maximum(_dense(hidden, zero), 0)
        admit, keep, fresh, emit = np.split(_dense(gates, np.concatenate([x, output], axis=1)), 4, axis=1)
        cell = _sigmoid(keep) * cell + _sigmoid(admit) * np.tanh(fresh)
        output = _sigmoid(emit) * np.tanh(cell)
        decision = _dense(last, output)
        circuit = self.wiring.wires * self.wiring.values
        logits = decision[:, :circuit].reshape(len(decision), self.wiring.wires, self.wiring.values)
        return np.argmax(logits, axis=2), decision[:, circuit] >= 0, output, cell

    def _row(self, chosen: np.ndarray, halts: bool) -> Row:
        """The row of a choice. Equal choices share it, because there are few and runs are long."""
        key = chosen.tobytes() + bytes([halts])
        if key not in self.rows:
            self.rows[key] = row_of(self.wiring, chosen.tolist(), halts, (None,) * self.wiring.registers)
        return self.rows[key]


def _dense(layer: tuple[np.ndarray, np.ndarray], x: np.ndarray) -> np.ndarray:
    weight, bias = layer
    # Unlike BLAS, einsum gives the same bits in every batch, and it starts no threads for a tiny product.
    return np.einsum("bi,ij->bj", x, weight) + bias


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.float32(0.5) * np.tanh(np.float32(0.5) * x) + np.float32(0.5)
