"""The programs of src/nram/examples/paper go through the tables of the paper, cell for cell."""

from pathlib import Path
from random import Random

import pytest

from nram import get_task
from nram.modules import MODULE_NAMES
from nram.programs.execute import execute
from nram.programs.files import from_json, read_program, to_json
from nram.programs.interpret import Ending, Step, trace
from nram.programs.ir import Constant, Program
from nram.programs.text import from_text

FOLDER = Path(__file__).parents[2] / "src/nram/examples" / "paper"

# Memory, registers, then READ's p and WRITE's p and a, at the start of each step.
COPY = """
 6 2 10 6 8 9 0  0 0 0 0 0   0 0 0 0   0   0  6
 6 2 10 6 8 9 0  0 0 0 0 0   0 5 0 1   1   6  2
 6 2 10 6 8 9 2  0 0 0 0 0   0 5 1 1   1   6  2
 6 2 10 6 8 9 2  0 0 0 0 0   0 5 1 2   2   7 10
 6 2 10 6 8 9 2 10 0 0 0 0   0 5 2 2   2   7 10
 6 2 10 6 8 9 2 10 0 0 0 0   0 5 2 3   3   8  6
 6 2 10 6 8 9 2 10 6 0 0 0   0 5 3 3   3   8  6
 6 2 10 6 8 9 2 10 6 0 0 0   0 5 3 4   4   9  8
 6 2 10 6 8 9 2 10 6 8 0 0   0 5 4 4   4   9  8
 6 2 10 6 8 9 2 10 6 8 0 0   0 5 4 5   5  10  9
 6 2 10 6 8 9 2 10 6 8 9 0   0 5 5 5   5  10  9
"""
# The tables of the appendix: memory and registers.
ACCESS = """
 3 1 12 4 7 12 1 13 8 2 1 3 11 11 12 0   0 0
 3 1 12 4 7 12 1 13 8 2 1 3 11 11 12 0   3 0
 4 1 12 4 7 12 1 13 8 2 1 3 11 11 12 0   3 0
"""
INCREMENT = """
 1 11 3 8 1 2  9 8 5 3 0 0 0 0 0 0    0  0  0  0  0
 2 11 3 8 1 2  9 8 5 3 0 0 0 0 0 0    1  2  2  2  1
 2 12 3 8 1 2  9 8 5 3 0 0 0 0 0 0    2 12 12 12  2
 2 12 4 8 1 2  9 8 5 3 0 0 0 0 0 0    3  4  4  4  3
 2 12 4 9 1 2  9 8 5 3 0 0 0 0 0 0    4  9  9  9  4
 2 12 4 9 2 2  9 8 5 3 0 0 0 0 0 0    5  2  2  2  5
 2 12 4 9 2 3  9 8 5 3 0 0 0 0 0 0    6  3  3  3  6
 2 12 4 9 2 3 10 8 5 3 0 0 0 0 0 0    7 10 10 10  7
 2 12 4 9 2 3 10 9 5 3 0 0 0 0 0 0    8  9  9  9  8
 2 12 4 9 2 3 10 9 6 3 0 0 0 0 0 0    9  6  6  6  9
 2 12 4 9 2 3 10 9 6 4 0 0 0 0 0 0   10  4  4  4 10
"""
REVERSE = """
 8 8 1 3 5 1 1 2 0 0 0 0 0 0 0 0   0 0 0 0
 8 8 1 3 5 1 1 2 0 0 0 0 0 0 0 0   8 0 1 1
 8 8 1 3 5 1 1 2 0 0 0 0 0 0 8 0   8 1 2 1
 8 8 1 3 5 1 1 2 0 0 0 0 0 1 8 0   8 1 3 1
 8 8 1 3 5 1 1 2 0 0 0 0 3 1 8 0   8 1 4 1
 8 8 1 3 5 1 1 2 0 0 0 5 3 1 8 0   8 1 5 1
 8 8 1 3 5 1 1 2 0 0 1 5 3 1 8 0   8 1 6 1
 8 8 1 3 5 1 1 2 0 1 1 5 3 1 8 0   8 1 7 1
 8 8 1 3 5 1 1 2 2 1 1 5 3 1 8 0   8 1 8 1
 8 8 1 3 5 1 1 2 2 1 1 5 3 1 8 0   8 1 9 1
"""
SWAP = """
 4 13 6 10  5 4 6 3 7 1 1 11 13 12 0 0   0  0
 5 13 6 10  5 4 6 3 7 1 1 11 13 12 0 0   1  4
 5 13 6 10 12 4 6 3 7 1 1 11 13 12 0 0   0 13
 5 13 6 10 12 4 6 3 7 1 1 11 13  5 0 0   5  1
"""
TABLES = {"copy": COPY, "access": ACCESS, "increment": INCREMENT, "reverse": REVERSE, "swap": SWAP}
SIZES = {"copy": 12, "access": 16, "increment": 16, "reverse": 16, "swap": 16}
REPEATS = {"copy": 1, "access": 1, "increment": 1, "reverse": 1, "swap": 2}
tables = pytest.mark.parametrize("name", TABLES)


def load(name: str) -> Program:
    return read_program(FOLDER / f"{name}.nram")


def rows_of(name: str) -> list[list[int]]:
    return [[int(word) for word in line.split()] for line in TABLES[name].strip().splitlines()]


def steps_of(name: str) -> list[Step | Ending]:
    """A run on the table's memory, one entry for each of its rows; the last may be the ending."""
    table = rows_of(name)
    return list(trace(load(name), table[0][: SIZES[name]], len(table)))[: len(table)]


def circuits_used(name: str) -> list[int]:
    return [step.row for step in steps_of(name) if isinstance(step, Step)]


def arguments_of(program: Program, step: Step, module: str) -> list[int]:
    """Of the one operation with this module in the row that was carried out."""
    names = [operation.module for operation in program.states[step.state][step.row].operations]
    assert names.count(module) == 1
    return step.arguments[names.index(module)]


@tables
def test_memory_and_registers_are_those_of_the_table_at_every_step(name):
    width = SIZES[name] + len(load(name).registers)
    assert [step.memory + step.registers for step in steps_of(name)] == [row[:width] for row in rows_of(name)]


def test_copy_reads_and_writes_with_the_arguments_of_the_table():
    program = load("copy")
    for step, row in zip(steps_of("copy"), rows_of("copy"), strict=True):
        assert isinstance(step, Step)
        assert [*arguments_of(program, step, "READ"), *arguments_of(program, step, "WRITE")] == row[16:]


def test_in_copy_min_gives_r3_plus_1_until_the_last_step_where_r3_has_reached_r2():
    """The paper's footnote."""
    program = load("copy")
    steps = [step for step in steps_of("copy") if isinstance(step, Step)]
    assert len(steps) == 11
    for step in steps[1:]:
        _, r2, r3, _ = step.registers
        assert arguments_of(program, step, "MIN") == [r3 + 1, r2]
        assert (r3 < r2) == (step.number < 11)
        given = step.outputs[[o.module for o in program.states[0][step.row].operations].index("MIN")]
        assert given == (r3 + 1 if step.number < 11 else r2)


@tables
def test_circuits_change_when_the_paper_says_they_do(name):
    """One circuit throughout for increment, another at step 1 for the others, and for swap one at even steps."""
    used = circuits_used(name)
    if name == "increment":
        assert len(load(name).states[0]) == 1
    elif name == "swap":
        assert used == [0, 1, 2]
    else:
        assert used[0] == 0 and set(used[1:]) == {1}


@tables
def test_every_circuit_fits_into_the_modules_of_the_paper_in_their_order(name):
    program, sequence = load(name), MODULE_NAMES * REPEATS[name]
    assert len(program.states) == 1, "an MLP has no states"
    for row in program.states[0]:
        place = -1
        for operation in row.operations:
            place = sequence.index(operation.module, place + 1)
            for argument in operation.arguments:
                if isinstance(argument, Constant):  # the output of ZERO, ONE or TWO, which must stand before
                    assert place > sequence.index(("ZERO", "ONE", "TWO")[argument.value])
        # Other modules can run unseen, but a WRITE always shows: it must stand there as often as in the sequence.
        assert [operation.module for operation in row.operations].count("WRITE") == REPEATS[name]


@tables
def test_the_forms_parse_back_to_the_same_program(name):
    program = load(name)
    assert from_text(str(program)) == program
    assert from_json(to_json(program)) == program


@pytest.mark.parametrize("name", ["copy", "reverse", "swap"])
def test_it_solves_the_task_under_every_limit(name):
    program, task = load(name), get_task(name)
    limit = program.limit
    assert program.task == name and limit is not None and not program.needs_limit
    for n in (task.min_complexity, 3, 8):
        for extra in (0, 1, 5):
            size = task.least_memory(n) + extra
            for instance in task.sample(n, 5, seed=extra, memory_size=size):
                for steps in (limit(n), limit(n) + 1, 2 * limit(n), size, size + 1, 20 * n + 200):
                    memory = execute(program, instance.input, steps, engine="python").memory
                    assert [memory[c] for c in instance.cells] == [instance.output[c] for c in instance.cells]


def test_increment_is_right_at_its_limit_and_says_that_it_needs_it():
    program, task = load("increment"), get_task("increment")
    assert program.needs_limit and program.limit is not None
    for n in (1, 4, 9):
        for instance in task.sample(n, 5, seed=n, memory_size=16):
            assert execute(program, instance.input, program.limit(n), engine="python").memory == instance.output
            late = execute(program, instance.input, 16 + program.limit(n), engine="python").memory
            assert late != instance.output


def test_access_takes_the_pointer_as_an_address():
    rng, program = Random(0), load("access")
    for _ in range(20):
        memory = [rng.randrange(1, 9), *(rng.randrange(9) for _ in range(8))]
        result = execute(program, memory, engine="python")
        assert result.memory == [memory[memory[0]], *memory[1:]]
        assert (result.steps, result.halted) == (2, True)
