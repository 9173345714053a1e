"""The discretised machine of an LSTM in NumPy: it runs memories of many sizes at once and records every choice.

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
from nram.module_tables import on_batch
from nram.programs.extract.table import row_of
from nram.programs.ir import Flags, Row


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
        self.flags: dict[bytes, Flags] = {}

    def record(
        self, memories: Sequence[Sequence[int]], complexities: Sequence[int], limits: Sequence[int]
    ) -> list[Run]:
        """Run each memory until the machine halts, at most its limit of steps."""
        count, registers = len(memories), self.wiring.registers
        sizes = np.array([len(memory) for memory in memories])
        memory = np.zeros((count, sizes.max(initial=0)), np.int64)
        for i, cells in enumerate(memories):
            memory[i, : len(cells)] = cells
        values = np.zeros((count, registers), np.int64)
        output, cell = np.zeros((2, count, self.width), np.float32)
        halted = np.zeros(count, bool)
        busy = np.zeros(count, int)
        choices: list[list[Choice]] = [[] for _ in range(count)]
        for step in range(max(limits, default=0)):
            going = np.flatnonzero(~halted & (np.asarray(limits) > step))
            if not len(going):
                break
            zero = values[going] == 0
            chosen, halts, output[going], cell[going] = self._decide(zero, output[going], cell[going])
            values[going], changed = self._circuit(chosen, values[going], memory, going, sizes[going])
            halted[going] = halts
            busy[going[changed | halts]] = step + 1
            for i, flags, wires, halt in zip(going, zero, chosen, halts, strict=True):
                choices[i].append(self._choice(flags, wires, bool(halt)))
        runs = []
        for i, start in enumerate(memories):
            ended = memory[i, : len(start)].tolist()
            runs.append(
                Run(tuple(start), complexities[i], tuple(choices[i]), int(busy[i]), tuple(ended), bool(halted[i]))
            )
        return runs

    def _decide(self, zero: np.ndarray, output: np.ndarray, cell: np.ndarray):
        """The LSTM's equations, as in machine/controllers.py: wires, halting, and the next state."""
        hidden, gates, last = self.layers
        x = np.maximum(_dense(hidden, zero.astype(np.float32)), 0)
        admit, keep, fresh, emit = np.split(_dense(gates, np.concatenate([x, output], axis=1)), 4, axis=1)
        cell = _sigmoid(keep) * cell + _sigmoid(admit) * np.tanh(fresh)
        output = _sigmoid(emit) * np.tanh(cell)
        decision = _dense(last, output)
        circuit = self.wiring.wires * self.wiring.values
        logits = decision[:, :circuit].reshape(len(decision), self.wiring.wires, self.wiring.values)
        return np.argmax(logits, axis=2), decision[:, circuit] >= 0, output, cell

    def _circuit(
        self, chosen: np.ndarray, registers: np.ndarray, memory: np.ndarray, going: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Carry out the chosen circuits on the memories `going`: the new registers, and which memories changed."""
        values = np.zeros((len(going), self.wiring.values), np.int64)
        values[:, : self.wiring.registers] = registers
        changed = np.zeros(len(going), bool)
        wire = 0
        for index, module in enumerate(self.wiring.modules, self.wiring.registers):
            wires = chosen[:, wire : wire + module.arity]
            arguments = [np.take_along_axis(values, wires[:, [i]], axis=1)[:, 0] for i in range(module.arity)]
            wire += module.arity
            if module.memory == "writes":
                changed |= memory[going, arguments[0]] != arguments[1]
                memory[going, arguments[0]] = arguments[1]
            elif module.memory == "reads":
                values[:, index] = memory[going, arguments[0]]
            else:
                values[:, index] = on_batch(module, sizes, *arguments)
        return np.take_along_axis(values, chosen[:, wire:], axis=1), changed

    def _choice(self, zero: np.ndarray, chosen: np.ndarray, halts: bool) -> Choice:
        """A choice; equal choices share their parts, because there are few and runs are long."""
        key = chosen.tobytes() + bytes([halts])
        if key not in self.rows:
            self.rows[key] = row_of(self.wiring, chosen.tolist(), halts, (None,) * self.wiring.registers)
        seen = zero.tobytes()
        if seen not in self.flags:
            self.flags[seen] = tuple(zero.tolist())
        return Choice(self.flags[seen], self.rows[key])


def _dense(layer: tuple[np.ndarray, np.ndarray], x: np.ndarray) -> np.ndarray:
    weight, bias = layer
    # Unlike BLAS, einsum gives the same bits in every batch, and it starts no threads for a tiny product.
    return np.einsum("bi,ij->bj", x, weight) + bias


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.float32(0.5) * np.tanh(np.float32(0.5) * x) + np.float32(0.5)
