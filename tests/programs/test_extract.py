"""Extraction of tables: the program does on every memory what the discretised machine does."""

from __future__ import annotations

from random import Random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nram.errors import UsageError
from nram.extensions import select_modules
from nram.machine import Wiring, run_hard
from nram.modules import MODULE_NAMES
from nram.programs.extract.table import extract_table, row_of
from nram.programs.interpret import interpret
from nram.programs.ir import Output, Register

PAPER = select_modules(MODULE_NAMES)
FEW = select_modules(["WRITE", "READ", "INC", "READ", "LESS-THAN", "WRITE", "ZERO"])


@pytest.mark.parametrize(
    ("kind", "states", "registers", "modules", "size"),
    [("mlp", 1, 3, PAPER, 7), ("mlp", 1, 4, FEW * 2, 3), ("automaton", 3, 3, PAPER, 6), ("automaton", 3, 2, FEW, 3)],
)
def test_the_program_of_a_random_controller_ends_as_its_hard_machine_does(
    kind, states, registers, modules, size, random_controller, random_memory, quick_jit
):
    wiring, rng, limit = Wiring(registers, modules), Random(f"{kind} {registers}"), 20
    controllers = random_controller(kind, wiring, 5, (12,), halt_bias=-3.0)
    memories = np.array([[random_memory(rng, size) for _ in range(12)] for _ in range(12)])

    def run(controller, memories):
        return jax.vmap(lambda memory: run_hard(controller, wiring, memory, limit))(memories)

    ended = jax.tree.map(np.asarray, quick_jit(jax.vmap(run))(controllers, jnp.asarray(memories)))
    assert 0 < ended.halted.mean() < 1
    for number in range(12):
        program = extract_table(jax.tree.map(lambda leaf: leaf[number], controllers), wiring)  # noqa: B023
        assert [len(rows) for rows in program.states] == [2**registers] * states
        for case in range(12):
            found = interpret(program, memories[number, case].tolist(), limit)
            assert found.memory == ended.memory[number, case].tolist()
            assert found.registers == ended.registers[number, case].tolist()
            assert (found.steps, found.halted) == (ended.steps[number, case], ended.halted[number, case])


def test_a_row_takes_its_wires_in_the_order_of_the_wiring():
    wiring = Wiring(2, select_modules(["READ", "ONE", "WRITE"]))
    row = row_of(wiring, [1, 2, 3, 4, 0], True, (True, None), 5)
    assert [operation.module for operation in row.operations] == ["READ", "ONE", "WRITE"]
    assert [operation.arguments for operation in row.operations] == [(Register(1),), (), (Output(0), Output(1))]
    assert row.registers == (Output(2), Register(0))
    assert (row.when, row.halt, row.next_state) == ((True, None), True, 5)


def test_a_table_of_too_many_rows_is_refused_before_it_is_made(random_controller):
    wiring = Wiring(16, FEW)
    with pytest.raises(UsageError, match="3 states and 16 registers give 196608 rows: at most 65536 can be extracted"):
        extract_table(random_controller("automaton", wiring, 1), wiring)


def test_what_is_known_of_the_program_goes_into_it(random_controller):
    wiring = Wiring(1, FEW)
    program = extract_table(random_controller("mlp", wiring, 0), wiring, name="learned", origin="trained")
    assert (program.name, program.origin, program.registers) == ("learned", "trained", ("r1",))


def test_an_lstm_has_no_table(random_controller):
    wiring = Wiring(1, FEW)
    with pytest.raises(UsageError, match="extract_lstm"):
        extract_table(random_controller("lstm", wiring, 0), wiring)


def test_too_many_registers_for_a_table_are_refused(random_controller):
    wiring = Wiring(17, FEW)
    with pytest.raises(UsageError, match="at most 16"):
        extract_table(random_controller("mlp", wiring, 0), wiring)
