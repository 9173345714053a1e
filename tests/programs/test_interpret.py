"""The reference interpreter against a second one, written from the definition in other words."""

from random import Random

import pytest

from nram.programs.interpret import Ending, Step, interpret, trace
from nram.programs.ir import Constant, Operation, Output, Program, Register, Row

# Spec and paper: values are 0..M-1, sums and differences are taken mod M, comparisons give 0 or 1.
MEANING = {
    "ZERO": lambda size: 0,
    "ONE": lambda size: 1,
    "TWO": lambda size: 2,
    "INC": lambda size, a: 0 if a == size - 1 else a + 1,
    "ADD": lambda size, a, b: a + b if a + b < size else a + b - size,
    "SUB": lambda size, a, b: a - b if a >= b else a - b + size,
    "DEC": lambda size, a: size - 1 if a == 0 else a - 1,
    "LESS-THAN": lambda size, x, y: 1 if x < y else 0,
    "LESS-OR-EQUAL-THAN": lambda size, x, y: 1 if x <= y else 0,
    "EQUALITY-TEST": lambda size, a, b: 1 if a == b else 0,
    "MIN": lambda size, a, b: sorted((a, b))[0],
    "MAX": lambda size, a, b: sorted((a, b))[1],
}


def oracle(program: Program, memory: tuple[int, ...], limit: int) -> tuple[tuple[int, ...], list[int], int, bool]:
    """Memory, registers, steps and whether it halted; every step makes a new memory."""
    registers, state = [0 for _ in program.registers], 0
    for step in range(limit):
        (row, *_) = [
            row
            for row in program.states[state]
            if not any(
                zero != (value == 0) for zero, value in zip(row.when, registers, strict=True) if zero is not None
            )
        ]
        given: dict[Register | Output | Constant, int] = {Constant(number): number for number in range(3)}
        given |= {Register(place): value for place, value in enumerate(registers)}
        for place, operation in enumerate(row.operations):
            wires = [given[argument] for argument in operation.arguments]
            if operation.module == "READ":
                output = memory[wires[0]]
            elif operation.module == "WRITE":
                memory = memory[: wires[0]] + (wires[1],) + memory[wires[0] + 1 :]
                output = 0
            else:
                output = MEANING[operation.module](len(memory), *wires)
            given[Output(place)] = output
        registers, state = [given[value] for value in row.registers], row.next_state
        if row.halt:
            return memory, registers, step + 1, True
    return memory, registers, limit, False


@pytest.mark.parametrize("full", [False, True], ids=["any", "as extracted"])
def test_it_agrees_with_the_oracle_on_random_programs(random_program, random_memory, full):
    rng = Random(f"oracle {full}")
    halted = written = 0
    for _ in range(250 if full else 1500):
        program = random_program(rng, full=full, halting=rng.choice((0.0, 0.1, 0.5)))
        memory = random_memory(rng, rng.randint(3, 12))
        limit = rng.choice((0, 1, 2, 7, 40))
        expected = oracle(program, tuple(memory), limit)
        given = list(memory)
        ending = interpret(program, memory, limit)
        assert memory == given, "the memory that was given is not changed"
        assert (tuple(ending.memory), ending.registers, ending.steps, ending.halted) == expected
        assert all(0 <= value < len(memory) for value in ending.memory + ending.registers)
        halted += ending.halted
        written += ending.memory != memory
    assert halted > 50 and written > 100


def test_a_trace_tells_every_step_and_ends_as_the_run_does(random_program, random_memory):
    rng = Random("trace")
    for _ in range(200):
        program = random_program(rng)
        memory = random_memory(rng, rng.randint(3, 9))
        *steps, ending = trace(program, memory, 12)
        assert ending == interpret(program, memory, 12)
        assert isinstance(ending, Ending) and len(steps) == ending.steps
        for number, step in enumerate(steps, 1):
            assert isinstance(step, Step) and step.number == number
            before = oracle(program, tuple(memory), number - 1)
            assert (tuple(step.memory), step.registers) == before[:2], "those at the beginning of the step"
            row = program.states[step.state][step.row]
            assert step.row == program.row_for(step.state, [value == 0 for value in step.registers])
            assert [len(given) for given in step.arguments] == [len(o.arguments) for o in row.operations]
            onwards = steps[number] if number < len(steps) else ending
            values = [_value(step, value) for value in row.registers]
            assert onwards.registers == values
            if isinstance(onwards, Step):
                assert onwards.state == row.next_state and not row.halt


def _value(step: Step, value: Register | Output | Constant) -> int:
    match value:
        case Register(index):
            return step.registers[index]
        case Output(index):
            return step.outputs[index]
        case Constant(number):
            return number


def test_an_earlier_write_is_seen_by_a_later_read_and_gives_0():
    write = Operation("WRITE", (Constant(1), Constant(2)))
    row = Row((None, None), (write, Operation("READ", (Constant(1),))), (Output(0), Output(1)), halt=True)
    ending = interpret(Program(("r1", "r2"), ((row,),)), [5, 5, 5, 5, 5, 5], 9)
    assert ending == Ending([5, 2, 5, 5, 5, 5], [0, 2], 1, True)


def test_registers_change_all_at_once():
    swap = Row((None, None), (), (Register(1), Register(0)))
    start = Row((True, True), (), (Constant(1), Constant(2)))
    program = Program(("r1", "r2"), ((start, swap),))
    assert [interpret(program, [0] * 3, steps).registers for steps in range(4)] == [[0, 0], [1, 2], [2, 1], [1, 2]]


def test_without_steps_nothing_happens():
    program = Program(("r1",), ((Row((None,), (), (Constant(1),), halt=True),),))
    assert interpret(program, [1, 2, 0], 0) == Ending([1, 2, 0], [0], 0, False)
    assert list(trace(program, [1, 2, 0], 0)) == [Ending([1, 2, 0], [0], 0, False)]
