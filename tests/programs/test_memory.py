"""What may be a memory, and what comes back for it."""

from typing import Any

import numpy as np
import pytest

from nram.errors import UsageError
from nram.programs.execute import execute
from nram.programs.memory import default_max_steps, prepare_memory
from nram.programs.text import from_text

HEAD = "nram program 1\nregisters: r1 r2\n"
ADD_ONE = from_text(HEAD + "always:\n o1 = READ(r1)\n o2 = INC(o1)\n WRITE(r1, o2)\n r1 := 1\n halt\n")
LAST = from_text(HEAD + "always:\n o1 = DEC(0)\n WRITE(0, o1)\n r2 := o1\n halt\n")
FOREVER = from_text(HEAD + "always:\n r1 := 1\n")

REFUSED: dict[str, tuple[Any, int | None, str]] = {
    "nothing": ([], None, "the memory is empty"),
    "nothing, even if it is to be padded": ([], 5, "the memory is empty"),
    "a batch of nothing": ([[], []], 5, "memory 1 is empty"),
    "no list": (None, None, "the memory is None: give a list of whole numbers"),
    "a number": (7, None, "the memory is 7: give a list"),
    "a text": ("1 2 3", None, "the memory is '1 2 3': give a list"),
    "bytes": (b"123", None, "the memory is b'123': give a list"),
    "an object": ({1: 2}, None, "the memory is {1: 2}: give a list"),
    "a set": ({1, 2, 0}, None, "the memory is {0, 1, 2}: give a list"),
    "too few cells": ([1, 0], None, "a memory of 2 cells is too small: it needs at least 3 .'memory_size' pads."),
    "too few cells after padding": ([0], 2, "a memory of 2 cells is too small"),
    "too small a size": ([0, 0, 0, 0], 3, "the memory has 4 cells, and memory size 3 is smaller: raise it"),
    "a negative size": ([0, 0, 0], -5, "memory size -5 is smaller"),
    "too large a size": ([0, 0, 0], 2**31, "a memory of 2147483648 cells is too large"),
    "a size too large to print": ([0, 0, 0], 10**6000, "a memory of a huge int cells is too large"),
    "a size with a fraction": ([0, 0, 0], 5.0, "memory size is 5.0: give a whole number"),  # pyright: ignore
    "a size that is true": ([0, 0, 0], True, "memory size is True: give a whole number"),
    "a value too large": (
        [0, 3, 0],
        None,
        "values must lie in 0..2 in a memory of 3 cells: 3 in cell 1; a memory of 4",
    ),
    "a negative value": ([0, 0, -1], 9, "values must lie in 0..8 in a memory of 9 cells: -1 in cell 2$"),
    "many values too large": ([9] * 7, None, "9 in cell 4 and 2 more; a memory of 10 cells could hold them"),
    "a value too large in a batch": ([[0, 1, 2], [0, 0, 5]], None, "5 in cell 2 of memory 2"),
    "a value beyond 32 bits": ([0, 2**40, 0], None, "1099511627776 in cell 1$"),
    "a value beyond 64 bits": ([0, 10**6000, 0], None, "a number beyond 64 bits"),
    "an unsigned value beyond 63 bits": (
        np.array([2**64 - 1, 0, 0], np.uint64),
        None,
        "18446744073709551615 in cell 0$",
    ),
    "a fraction": ([0, 1.0, 0], None, "cell 1 is 1.0: the cells of a memory are whole numbers"),
    "a fraction in a batch": ([[0, 1, 0], [0, 0, 0.5]], None, "cell 2 of memory 2 is 0.5"),
    "true": ([0, True, 0], None, "cell 1 is True"),
    "a text among numbers": ([0, "1", 0], None, "cell 1 is '1'"),
    "None among numbers": ([0, None, 0], None, "cell 1 is None"),
    "memories of unequal sizes": ([[0] * 4, [0] * 4, [0] * 3], None, "the first has 4 cells, memory 3 has 3; pad them"),
    "a number among memories": ([[0] * 4, 0], None, "memory 2 of the batch is 0: give a list"),
    "a memory among numbers": ([0, [0] * 4], None, "memory 1 of the batch is 0: give a list"),
    "three axes": ([[[0, 0, 0]]], None, r"cell 0 of memory 1 is \[0, 0, 0\]"),
    "an array of three axes": (np.zeros((1, 1, 3), int), None, "the memory has 3 axes"),
    "an array of no axis": (np.array(3), None, "the memory has 0 axes"),
    "an array of fractions": (np.zeros(3), None, "the memory is of type float64"),
    "an array of truth values": (np.zeros(3, bool), None, "the memory is of type bool"),
    "an array of texts": (np.array(["1", "2", "3"]), None, "the memory is of type <U1"),
    "an array of anything": (np.array([0, None, 0], object), None, "cell 1 is None"),
    "an empty array": (np.zeros(0, int), None, "a memory of 0 cells is too small"),
    "an array in a batch that is no memory": ([np.zeros(3), [0, 0, 0]], None, "the memory is of type float64"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_memory_is_refused(case):
    memory, size, words = REFUSED[case]
    with pytest.raises(UsageError, match=words):
        prepare_memory(memory, size)


@pytest.mark.parametrize(
    "memory",
    [
        [1, 2, 0],
        (1, 2, 0),
        range(1, 4),
        iter([1, 2, 3]),
        np.array([1, 2, 0]),
        np.array([1, 2, 3], object),
        [np.int8(1), 2, 0],
    ],
    ids=lambda memory: type(memory).__name__,
)
def test_a_memory_is_padded_with_zeros(memory):
    prepared = prepare_memory(memory, 6)
    assert prepared.dtype == np.int32 and prepared.shape == (6,)
    assert prepared[:2].tolist() == [1, 2] and prepared[3:].tolist() == [0, 0, 0]


def test_every_memory_of_a_batch_is_padded():
    for memory in ([[1, 2, 0], [4, 0, 0]], [np.array([1, 2, 0]), (4, 0, 0)], np.array([[1, 2, 0], [4, 0, 0]])):
        assert prepare_memory(memory, 5).tolist() == [[1, 2, 0, 0, 0], [4, 0, 0, 0, 0]]
    assert prepare_memory(np.zeros((0, 4), int)).shape == (0, 4)


def test_padding_makes_room_for_values():
    with pytest.raises(UsageError):
        prepare_memory([5, 0, 0], 5)
    assert prepare_memory([5, 0, 0], 6).tolist() == [5, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_what_was_given_is_never_changed(kind):
    one, batch = kind([0, 1, 2]), kind([kind([0, 1, 2]), kind([2, 1, 0])])
    for memory in (one, batch):
        before = np.array(memory)
        prepare_memory(memory)[...] = 0
        execute(ADD_ONE, memory, engine="python")
        assert np.array_equal(before, memory)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, ">i4"])
def test_an_array_gives_an_array_of_its_type(dtype):
    one = execute(ADD_ONE, np.array([0, 1, 2], dtype), engine="python")
    assert isinstance(one.memory, np.ndarray) and one.memory.dtype == dtype and one.memory.tolist() == [1, 1, 2]
    batch = execute(ADD_ONE, np.array([[0, 1, 2], [2, 1, 0]], dtype), memory_size=4, engine="python")
    assert batch.memory.dtype == dtype and batch.memory.tolist() == [[1, 1, 2, 0], [3, 1, 0, 0]]
    assert [batch.registers.tolist(), batch.steps.tolist(), batch.halted.tolist()] == [[[1, 0]] * 2, [1, 1], [True] * 2]


@pytest.mark.parametrize(("dtype", "size"), [(np.int8, 128), (np.int8, 129), (np.uint8, 256), (np.uint8, 300)])
def test_a_type_that_cannot_hold_every_value_of_the_memory_is_widened(dtype, size):
    result = execute(LAST, np.array([0, 1, 2], dtype), memory_size=size, engine="python")
    assert result.memory[0] == size - 1
    assert result.memory.dtype == (dtype if size - 1 <= np.iinfo(dtype).max else np.int32)


def test_lists_give_lists_of_plain_integers():
    one = execute(ADD_ONE, [0, 1, 2], engine="python")
    assert (one.memory, one.registers, one.steps, one.halted) == ([1, 1, 2], [1, 0], 1, True)
    assert {type(value) for value in (*one.memory, *one.registers, one.steps)} == {int} and one.halted is True
    batch = execute(ADD_ONE, [[0, 1, 2], [2, 1, 0]], engine="python")
    assert (batch.memory, batch.registers) == ([[1, 1, 2], [0, 1, 0]], [[1, 0], [1, 0]])
    assert (batch.steps, batch.halted) == ([1, 1], [True, True])


def test_an_empty_batch_is_a_batch():
    result = execute(ADD_ONE, np.zeros((0, 4), np.int32), engine="python")
    assert result.memory.shape == (0, 4) and result.registers.shape == (0, 2) and len(result.steps) == 0


def test_without_a_limit_it_runs_64_steps_a_cell_and_1024_more():
    result = execute(FOREVER, [0] * 7, engine="python")
    assert (result.steps, result.halted) == (64 * 7 + 1024, False) and default_max_steps(7) == 1472
    assert execute(FOREVER, [0] * 7, memory_size=9, engine="python").steps == 64 * 9 + 1024
    assert execute(FOREVER, [0] * 7, 5, engine="python").steps == 5
    assert execute(FOREVER, [0] * 7, np.int64(0), engine="python").steps == 0  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("limit", [-1, 1.5, True, "9", 2**62, 10**6000], ids=type)
def test_what_is_no_limit_is_refused(limit):
    with pytest.raises(UsageError, match="max_steps is"):
        execute(FOREVER, [0] * 3, limit, engine="python")


def test_an_unknown_engine_is_refused():
    with pytest.raises(UsageError, match="there is no engine 'steam'"):
        execute(ADD_ONE, [0, 0, 0], engine="steam")


SUM = from_text(
    "nram program 1\nregisters: i v total\n"
    "when i = 0:\n a = READ(1)\n i, v, total := 1, a, a\n"
    "else when v = 0:\n WRITE(0, total)\n halt\n"
    "else:\n j = INC(i)\n a = READ(j)\n t = ADD(total, a)\n i, v, total := j, a, t\n"
)


def test_values_may_be_larger_than_the_number_of_cells():
    """It is a memory of so many cells, of which only those given come back, and the step limit is theirs."""
    cells = [0, 700, 800, 0]
    narrow, wide = SUM.run(cells, largest_value=1999), SUM.run(cells, memory_size=2000)
    assert narrow.memory == wide.memory[:4] == [1500, 700, 800, 0]
    assert (narrow.registers, narrow.steps, narrow.halted) == (wide.registers, wide.steps, wide.halted)
    assert SUM.run(cells, largest_value=999).memory[0] == 500  # sums wrap around at one more
    assert FOREVER.run(cells, largest_value=1999).steps == default_max_steps(4)
    ending = SUM.run(np.array([0, 10**9, 10**9, 0]), largest_value=2**31 - 2)
    assert isinstance(ending.memory, np.ndarray) and ending.memory.tolist() == [2 * 10**9, 10**9, 10**9, 0]


@pytest.mark.parametrize(
    ("memory", "options", "message"),
    [
        ([0, 5, 0, 0], {"largest_value": 4}, "values must lie in 0..4"),
        ([0, 5, 0, 0], {"largest_value": 3}, "the largest value is 3: for 4 cells give 4 to 2147483646"),
        ([0, 5, 0, 0], {"largest_value": 2**31 - 1}, "the largest value is 2147483647: for 4 cells"),
        ([0, 5, 0, 0], {"largest_value": 9.5}, "the largest value is 9.5: give a whole number"),
        ([[0, 5, 0, 0]], {"largest_value": 9}, "run the memories of a batch one by one"),
        ([0, 5, 0, 0], {"largest_value": 9, "memory_size": 9}, "leave the memory size out"),
    ],
)
def test_a_largest_value_that_cannot_be_is_refused(memory, options, message):
    with pytest.raises(UsageError, match=message):
        SUM.run(memory, **options)
