"""Machine code does what the reference interpreter does: same memory, registers, steps and halting."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from nram.extensions import get_task
from nram.modules import PAPER_MODULES
from nram.programs.files import read_program
from nram.programs.interpret import Machine, interpret
from nram.programs.ir import Constant, Operation, Output, Program, Register, Row, Value
from nram.programs.memory import LARGEST_SIZE
from nram.programs.native.jit import compiled
from nram.programs.text import from_text

WRITTEN = Path(__file__).parents[2] / "benchmarks" / "native"

IDLE = from_text("nram program 1\nregisters: r1\n\nalways:\n    r1 := 1\n")

COUNT_UP = from_text("nram program 1\nregisters: r1\n\nalways:\n    WRITE(r1, r1)\n    o2 = INC(r1)\n    r1 := o2\n")


def assert_same(program: Program, memories: Sequence[list[int]], limit: int, steps_at_once: int | None = None) -> None:
    """The batch, run natively, ends as each memory does in the interpreter."""
    batch = np.array(memories, np.int32)
    registers, steps, halted = compiled(program).run_batch(batch, limit, steps_at_once)
    for i, memory in enumerate(memories):
        expected = interpret(program, memory, limit)
        found = batch[i].tolist(), registers[i].tolist(), int(steps[i]), bool(halted[i])
        wanted = expected.memory, expected.registers, expected.steps, expected.halted
        assert found == wanted, f"memory {memory}, limit {limit}, {steps_at_once} steps at once:\n{program}"


def assert_same_on_random_memories(program: Program, rng: Random, largest: int = 20, most_steps: int = 200) -> None:
    for size in (3, rng.randint(4, 8), rng.randint(9, largest)):
        memories = [[rng.randrange(size) for _ in range(size)] for _ in range(2)]
        for limit in (0, 1, rng.randint(2, 9), rng.randint(10, most_steps)):
            assert_same(program, memories, limit, rng.choice([None, None, 1, 7, 30]))


def counting_program(rng: Random) -> Program:
    """A program whose registers mostly go up and down, as in the loops that programs spend their time in."""
    count, states = rng.randint(1, 4), rng.choice([1, 1, 1, 2, 3])

    def row(state: int, when: tuple[bool | None, ...]) -> Row:
        done: list[Operation] = []

        def give(module: str, *arguments: Value) -> Value:
            done.append(Operation(module, arguments))
            return Output(len(done) - 1)

        def any_value() -> Value:
            registers = [Register(rng.randrange(count)) for _ in range(2)]
            return rng.choice([*registers, Constant(rng.randrange(3)), *map(Output, range(len(done)))])

        def new_value(place: int) -> Value:
            itself = Register(place if rng.random() < 0.8 else rng.randrange(count))
            kind = rng.random()
            if kind < 0.35:
                return give(rng.choice(["INC", "INC", "DEC"]), itself)
            if kind < 0.55:
                return give(rng.choice(["ADD", "SUB"]), itself, Constant(rng.randint(1, 2)))
            if kind < 0.7:
                name = rng.choice(["MIN", "MAX", "ADD", "LESS-THAN", "EQUALITY-TEST", "LESS-OR-EQUAL-THAN"])
                return give(name, itself, any_value())
            return give("READ", any_value()) if kind < 0.75 else Register(place) if kind < 0.9 else any_value()

        new = []
        for place in range(count):
            new.append(new_value(place))
            if rng.random() < 0.3:
                give("WRITE", any_value(), any_value())
        following = state if rng.random() < 0.6 else rng.randrange(states)
        return Row(when, tuple(done), tuple(new), rng.random() < 0.08, following)

    def rows(state: int) -> tuple[Row, ...]:
        conditions = [
            tuple(rng.choice((True, False, None, None)) for _ in range(count)) for _ in range(rng.randint(0, 3))
        ]
        return tuple(row(state, when) for when in [*conditions, (None,) * count])

    return Program(tuple(f"r{i + 1}" for i in range(count)), tuple(map(rows, range(states))))


# ---- the same as the interpreter


@pytest.mark.parametrize("part", range(4))
def test_random_counting_programs_end_as_in_the_interpreter(part):
    for seed in range(30 * part, 30 * part + 30):
        rng = Random(seed)
        assert_same_on_random_memories(counting_program(rng), rng, largest=100, most_steps=400)


@pytest.mark.parametrize("module", [module for module in PAPER_MODULES if module.arity > 0], ids=lambda m: m.name)
def test_every_module_is_right_in_loops_where_its_arguments_move(module):
    """r1 and r2 move with all pairs of strides; what the module makes of them goes where r3 points, which moves too."""
    change = {-2: ("SUB", Constant(2)), -1: ("DEC",), 0: None, 1: ("INC",), 2: ("ADD", Constant(2))}
    rng = Random(0)
    for strides in [(-2, 1), (-1, 0), (0, 2), (1, -1), (1, 1), (2, -2)]:
        operations = [Operation(module.name, (Register(0), Register(1))[: module.arity])]
        new: list[Value] = []
        for place, stride in enumerate([*strides, 1]):
            step = change[stride]
            if step is None:
                new.append(Register(place))
            else:
                operations.append(Operation(step[0], (Register(place), *step[1:])))
                new.append(Output(len(operations) - 1))
        operations.append(Operation("WRITE", (Register(2), Output(0))))
        body = Row((None, None, None, False), tuple(operations), (*new, Register(3)))
        begin_reads = tuple(Operation("READ", (value,)) for value in (Constant(0), Constant(1), Constant(2)))
        begin = Row((None,) * 4, begin_reads, (Output(0), Output(1), Output(2), Constant(1)))
        program = Program(("r1", "r2", "r3", "r4"), ((body, begin),))
        for size in (3, 7, 40):
            memories = [[rng.randrange(size) for _ in range(size)] for _ in range(6)]
            assert_same(program, memories, 3 * size)
            assert_same(program, memories, size, steps_at_once=5)


@pytest.mark.parametrize("task_name", ["access", "increment", "copy", "reverse", "swap"])
def test_written_programs_solve_their_tasks_at_every_size_and_stop_at_every_limit(task_name):
    task, program = get_task(task_name), read_program(WRITTEN / f"{task_name}.nram")
    for n in range(task.min_complexity, 12):
        for extra in (0, 1, 5):
            for instance in task.sample(n, 4, seed=n, memory_size=task.least_memory(n) + extra):
                result = program.run(instance.input)
                assert result.halted
                assert [result.memory[cell] for cell in instance.cells] == [
                    instance.output[cell] for cell in instance.cells
                ]
                for limit in range(result.steps + 2):
                    assert_same(program, [instance.input], limit, steps_at_once=3)
    large = task.sample(100_000, 1, seed=0)[0]
    found = program.run(np.array(large.input)).memory
    assert (found[large.cells] == np.array(large.output)[large.cells]).all()


# ---- batches, sizes and limits


def test_a_batch_ends_as_its_memories_do_one_by_one(random_program, random_memory):
    for seed in range(5):
        rng = Random(seed)
        program = random_program(rng, halting=0.2)
        memories = [random_memory(rng, 11) for _ in range(200)]
        assert_same(program, memories, 50)
        assert_same(program, memories, 50, steps_at_once=13)


def test_a_batch_without_memories_has_no_results():
    registers, steps, halted = compiled(IDLE).run_batch(np.zeros((0, 5), np.int32), 10)
    assert registers.shape == (0, 1) and steps.shape == (0,) and halted.shape == (0,)


def test_a_program_that_never_halts_stops_at_its_limit():
    for limit in (0, 1, 2**24 + 1, 10**8):
        result = IDLE.run([0, 0, 0], max_steps=limit)
        assert (result.steps, result.halted) == (limit, False)


@pytest.mark.parametrize("size", [1000, 1 << 20, 5_000_001])
def test_large_memories_wrap_around_at_their_end(size):
    memory = np.zeros((1, size), np.int32)
    registers, steps, halted = compiled(COUNT_UP).run_batch(memory, 2 * size + 3)
    assert (memory[0] == np.arange(size)).all()
    assert (registers[0, 0], steps[0], halted[0]) == (3, 2 * size + 3, False)


class SparseMemory(dict):
    """A memory of zeros, of which only what is written takes room."""

    def __len__(self) -> int:
        return LARGEST_SIZE

    def __missing__(self, address: int) -> int:
        return 0


def test_sums_at_the_largest_memory_do_not_overflow():
    program = from_text(
        """nram program 1
        registers: r1 r2 r3 r4 r5
        when r5 = 0:
            o1 = DEC(0)
            o2 = ADD(o1, o1)
            o3 = SUB(1, o1)
            o4 = INC(o1)
            WRITE(o1, o2)
            o6 = READ(o1)
            r1, r2, r3, r4, r5 := o1, o6, o3, o4, 1
        otherwise:
            o1 = DEC(r1)
            o2 = ADD(r2, r1)
            o3 = SUB(r3, r1)
            WRITE(r1, r2)
            o4 = INC(r4)
            r1, r2, r3, r4 := o1, o2, o3, o4
        """
    )
    try:
        memory = np.zeros((1, LARGEST_SIZE), np.int32)  # the system gives no more than the pages that are touched
    except MemoryError:
        pytest.skip("the system does not give out memory in advance")
    registers, _, _ = compiled(program).run_batch(memory, 1000)
    machine = Machine(program, [])
    cells = machine.memory = SparseMemory()  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(1000):
        machine.compute(machine.choose())
    assert registers[0].tolist() == machine.registers
    assert {address: int(memory[0, address]) for address in cells} == cells


def test_programs_that_do_the_same_share_their_machine_code():
    other = replace(COUNT_UP, name="another", origin="searched")
    assert compiled(other) is compiled(COUNT_UP)
    assert compiled(IDLE) is not compiled(COUNT_UP)


def test_arrays_that_native_code_would_misread_are_refused():
    for wrong in (
        np.zeros((2, 4), np.int64),
        np.zeros(4, np.int32),
        np.zeros((4, 8), np.int32)[:, ::2],
        np.broadcast_to(np.zeros(4, np.int32), (2, 4)),
    ):
        with pytest.raises(ValueError, match="contiguous int32"):
            compiled(IDLE).run_batch(wrong, 5)


def test_a_run_of_centuries_can_be_interrupted():
    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            IDLE.run([0, 0, 0], max_steps=2**61)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---- programs at their limits


def test_tables_too_large_for_code_of_their_own_end_as_in_the_interpreter(random_program):
    for seed in range(5):
        rng = Random(seed)
        program = random_program(rng, full=True, registers=rng.choice([7, 8]), states=rng.choice([1, 2]), halting=0.01)
        assert_same_on_random_memories(program, rng)


def test_a_thousand_states_end_as_in_the_interpreter(random_program):
    rng = Random(0)
    program = random_program(rng, registers=3, states=1024, operations=2, halting=0.001)
    assert_same_on_random_memories(program, rng, most_steps=2000)


def test_a_thousand_operations_in_a_row_end_as_in_the_interpreter(random_program):
    rng = Random(0)
    assert_same_on_random_memories(random_program(rng, registers=2, states=1, operations=1024), rng, most_steps=20)


@pytest.mark.parametrize("rows", [10, 40, 600])
def test_sixteen_registers_with_conditions_of_all_kinds_end_as_in_the_interpreter(rows, random_program):
    rng = Random(rows)
    plain = random_program(rng, registers=16, states=1, operations=3)

    def conditions() -> tuple[bool | None, ...]:
        asked = rng.sample(range(16), 4)
        return tuple(rng.random() < 0.5 if i in asked else None for i in range(16))

    varied = [
        replace(random_program(rng, registers=16, states=1, operations=2).states[0][0], when=conditions())
        for _ in range(rows)
    ]
    program = Program(plain.registers, ((*varied, replace(varied[0], when=(None,) * 16)),))
    assert_same_on_random_memories(program, rng)
