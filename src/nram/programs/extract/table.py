"""Extraction of an MLP or an automaton: the argmax of every wire, for all flags that the controller can see.

An MLP sees R flags, so its table has 2^R rows. An automaton is also in one of S states, so its table has S 2^R. An
LSTM carries a real vector from step to step and has no finite table: see `extract_lstm`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nram.errors import UsageError
from nram.machine.controllers import LSTM, Automaton, Controller
from nram.machine.tables import decisions
from nram.machine.wiring import Wiring
from nram.programs.ir import MAX_REGISTERS, MAX_ROWS, Operation, Output, Program, Register, Row, Value

ROWS_AT_ONCE = 4096  # of the table, in one call of the controller


def extract_table(controller: Controller, wiring: Wiring, **known: Any) -> Program:
    """The raw program of an MLP or an automaton: one row for each combination of flags, with all modules.

    `known` are further fields of the program: name, task, origin, limit, made.
    """
    if isinstance(controller, LSTM):
        raise UsageError("an LSTM has no finite table: use extract_lstm, which needs the task")
    if wiring.registers > MAX_REGISTERS:
        raise UsageError(
            f"{wiring.registers} registers give 2^{wiring.registers} rows: at most {MAX_REGISTERS} can be extracted"
        )
    states = controller.states if isinstance(controller, Automaton) else 1
    if states << wiring.registers > MAX_ROWS:
        raise UsageError(
            f"{states} states and {wiring.registers} registers give {states << wiring.registers} rows: at most "
            f"{MAX_ROWS} can be extracted"
        )
    flags = np.array(list(itertools.product((True, False), repeat=wiring.registers)))
    rows = []
    for state in range(states):
        chosen, halts, following = _decisions(controller, wiring, flags, state, states)
        rows.append(
            tuple(
                row_of(wiring, chosen[i], bool(halts[i]), tuple(map(bool, flags[i])), int(following[i]))
                for i in range(len(flags))
            )
        )
    return Program(wiring.register_names, tuple(rows), **known)


def row_of(
    wiring: Wiring, chosen: Sequence[int], halt: bool, when: tuple[bool | None, ...], next_state: int = 0
) -> Row:
    """The row in which every wire has its chosen source; `chosen` is in the wiring's order of wires."""
    sources = iter(chosen)
    operations = tuple(
        Operation(module.name, tuple(_value(wiring, next(sources)) for _ in module.arguments))
        for module in wiring.modules
    )
    new = tuple(_value(wiring, source) for source in sources)
    return Row(when, operations, new, halt, next_state)


def _value(wiring: Wiring, source: int) -> Value:
    source = int(source)
    return Register(source) if source < wiring.registers else Output(source - wiring.registers)


def _decisions(controller: Controller, wiring: Wiring, flags: np.ndarray, state: int, states: int):
    """The controller's choices for each row of flags: wires, halting, next state."""
    ready = controller.prepare(wiring)
    start = (jax.nn.one_hot(state, states),) if isinstance(controller, Automaton) else ()
    parts = [
        _asked(ready, wiring, jnp.asarray(flags[first : first + ROWS_AT_ONCE], jnp.float32), start)
        for first in range(0, len(flags), ROWS_AT_ONCE)
    ]
    return tuple(np.concatenate([np.asarray(part[i]) for part in parts]) for i in range(3))


_asked = jax.jit(decisions, static_argnums=1)
