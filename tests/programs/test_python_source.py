"""Programs as Python source: what the text looks like, inputs with names, and names that would break it.

That the functions end as the interpreter does is tested with all other executors, in tests/test_executors.py.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from support.program_cases import IDLING_MERGE
from support.random_programs import random_program

from nram.errors import UsageError
from nram.extensions import register_module
from nram.modules import Module
from nram.programs.interpret import interpret
from nram.programs.ir import Constant, Operation, Output, Program, Register, Row
from nram.programs.library import load_program, zoo_entries
from nram.programs.memory import default_max_steps
from nram.programs.python_source import MOST_ROWS, function_name, to_python
from nram.programs.text import from_text
from nram.tasks.layout import Layout

COPY = IDLING_MERGE.parent / "copy.nram"  # trained; the zoo may have another one day


def function_of(program: Program, name: str = "run") -> Any:
    found: dict[str, Any] = {}
    exec(compile(to_python(program, name), "<emitted>", "exec"), found)
    return found[name]


def body_of(source: str) -> list[str]:
    """The lines below the docstring."""
    return source.split('"""')[2].strip("\n").split("\n")


def test_a_program_reads_like_python():
    source = to_python(load_program(COPY), "copy")
    assert source.startswith('def copy(memory, max_steps=None):\n    """Given an array and a pointer')
    assert "trained by 'nram train copy --seed 1'" in source and "n = 100,000" in source
    assert body_of(source) == [
        "    memory = list(memory)",
        "    size = len(memory)",
        "    if size < 3 or min(memory) < 0 or max(memory) >= size:",
        '        raise ValueError("give at least 3 cells, with numbers from 0 to len(memory) - 1")',
        "    if max_steps is None:",
        "        max_steps = 64 * size + 1024",
        "",
        "    r2 = r3 = 0",
        "    r1 = False",
        "    steps = 0",
        "    while steps < max_steps:",
        "        steps += 1",
        "        if r2 > 0:",
        "            memory[r2] = memory[r3]",
        "            r2 = (r2 + 1) % size",
        "            r1 = r2 <= r3",
        "            r3 = (r3 + 1) % size",
        "        elif not r1:",
        "            r2 = memory[0]",
        "            r3 = 1",
        "        else:",
        "            memory[0] = memory[1]",
        "            return memory, True",
        "    return memory, False",
    ]


@pytest.mark.parametrize("entry", zoo_entries(), ids=lambda entry: entry.title)
def test_the_zoo_as_python_is_short_and_has_narrow_lines(entry):
    source = to_python(entry.program, function_name(entry.program))
    assert max(map(len, source.splitlines())) <= 100
    assert len(body_of(source)) < 20 + 3 * (entry.program.operations + entry.program.rows)


def test_the_source_needs_neither_nram_nor_any_package():
    source = to_python(load_program("reverse@searched"), "reverse")
    code = f"{source}\nprint(reverse([4, 7, 5, 2, 0, 0, 0, 0]))\nprint(reverse((4, 7, 5, 2, 0, 0, 0, 0), 2)[1])"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["([4, 7, 5, 2, 2, 5, 7, 0], True)", "False"], done.stderr


@pytest.mark.parametrize("memory", [[], [0, 1], [0, 1, 3], [0, -1, 1]])
def test_what_is_no_memory_is_refused(memory):
    with pytest.raises(ValueError, match="at least 3 cells"):
        function_of(load_program("copy"))(memory)


def test_the_default_limit_is_that_of_run_and_a_needed_limit_has_none():
    memory = [3, 6, 9, 1, 2, 15, 4, 5, 15, 0, 0, 0, 0, 0, 0, 0]
    merge = load_program(IDLING_MERGE)
    result = merge.run(memory)
    assert function_of(merge)(memory) == (result.memory, False)
    needed = replace(merge, needs_limit=True)
    with pytest.raises(TypeError, match="max_steps"):
        function_of(needed)(memory)
    assert "stopped after T(n) = 4n+8 steps" in " ".join(to_python(needed, "merge").split())


def test_a_row_in_which_nothing_changes_ends_the_run():
    program = from_text("nram program 1\nregisters: r1\nwhen r1 = 0:\n WRITE(0, 1)\n r1 := 1\nelse:\n r1 := r1\n")
    assert "return memory, False  # nothing changes any more" in to_python(program, "run")
    assert function_of(program)([0, 0, 0], 1000) == ([1, 0, 0], False)


# ---- inputs with names

LAYOUTS = {
    "x ->result values[] 0": {"x": 3, "values": [3, 1, 2]},
    "->sum values[] 0 M>2sum": {"values": [2, 3, 1]},
    "end:values values->sorted[]": {"values": [2, 0, 4]},
    "a b ->c": {"a": 3, "b": 1},
    "x ->y": {"x": 0},
    "start:kept values[] 0 ->kept[n] 0": {"values": [1, 2]},
    "length:kept values[] 0 ->kept[2n]": {"values": [3, 1]},
    "start:b a[] 0 b[] 0 ->pair[2] ->least": {"a": [1, 2], "b": [3]},
    "length:values values[] ->moved[values]": {"values": [0, 5]},
    "x y ->steps ->kept[n] 0": {"x": 2, "y": 3},
    "x ->result M=20": {"x": 7},
    "len[] 0 ->memory ->size": {"len": [4, 2]},
    "class lambda n ->o1": {"class": 1, "lambda": 2, "n": 4},
}


@pytest.mark.parametrize("text", LAYOUTS)
def test_named_inputs_give_what_call_gives(text):
    rng, layout, values, ended = Random(text), Layout.parse(text), LAYOUTS[text], 0
    memory = layout.memory(values)
    for _ in range(30):
        program = replace(random_program(rng, halting=0.3), layout=layout, name="f")
        function = function_of(program)
        ending = interpret(program, memory, default_max_steps(len(memory)))  # as `call` does, without compiling
        if ending.halted:
            results = layout.results(memory, ending.memory)
            assert function(*values.values()) == (results if len(results) > 1 else next(iter(results.values())))
            ended += 1
        else:
            with pytest.raises(RuntimeError, match="no result within"):
                function(*values.values())
    assert ended > 5


def test_parameters_have_the_names_of_the_inputs_and_bad_inputs_are_refused():
    program = replace(load_program("access"), layout=Layout.parse("x ->result values[] 0"))
    source = to_python(program, "count")
    assert source.startswith("def count(x, values, max_steps=None):") and "return memory[1]" in source
    function = function_of(program)
    for wrong, message in (({"x": 1, "values": [1, 0]}, "must not hold 0"), ({"x": -1, "values": [1]}, "from 0 up")):
        with pytest.raises(ValueError, match=message):
            function(**wrong)
        with pytest.raises(UsageError):
            program.call(**wrong)


# ---- names


@pytest.mark.parametrize("name", ['a"""\nimport os', "a\\", '"', "'''", "\\N{x}", '"""', "max", "7 zip", "ß", "lambda"])
def test_no_name_breaks_the_source(name):
    name = name.replace("\n", " ")
    program = replace(
        load_program("copy"), name=name, task=None, made=(("command", name), ("shown", name)), verified=()
    )
    (function,) = ast.parse(to_python(program, function_name(program))).body
    assert isinstance(function, ast.FunctionDef) and not hasattr(__builtins__, function.name)
    assert function_of(program, function_name(program))([4, 6, 5, 2, 0, 0, 0])[0][4:7] == [6, 5, 2]


def test_registers_may_have_any_names():
    text = "nram program 1\nregisters: memory size len\nwhen len = 0:\n o1 = READ(memory)\n o2 = MAX(size, o1)\n"
    text += " o3 = INC(o2)\n memory, size, len := o3, o1, o2\nelse:\n o1 = MIN(size, len)\n WRITE(memory, o1)\n halt\n"
    program = from_text(text)
    for memory in ([1, 2, 0], [0, 0, 3, 1], [2, 1, 0, 4, 3]):
        result = program.run(memory)
        assert function_of(program)(memory) == (result.memory, result.halted)


@pytest.mark.parametrize("name", ["", "1a", "a b", "class", "max", "memory", "o1", "é" * 200])
def test_what_is_no_name_for_a_function_is_refused(name):
    with pytest.raises(UsageError, match="not a free name"):
        function_name(load_program("copy"), name)


# ---- limits


def test_long_circuits_stay_readable_for_python():
    operations = [Operation("READ", (Constant(0),))]
    operations += [Operation("MAX", (Output(i), Register(0))) for i in range(400)]
    row = Row((None,), (*operations, Operation("WRITE", (Constant(1), Output(400)))), (Output(400),), halt=True)
    assert function_of(Program(("r1",), ((row,),)))([2, 0, 0])[0] == [2, 2, 0]


def test_a_program_of_too_many_rows_is_refused():
    states = tuple(
        (
            Row(
                (None,),
                (Operation("WRITE", (Constant(state % 3), Constant(state % 2))),),
                (Register(0),),
                False,
                state + 1,
            ),
        )
        for state in range(MOST_ROWS + 5)
    )
    last = (Row((None,), (), (Register(0),), halt=True, next_state=0),)
    with pytest.raises(UsageError, match="compile it as C"):
        to_python(Program(("r1",), (*states, last)), "run")


def test_a_user_defined_module_becomes_a_function_and_one_without_emitted_form_is_refused():
    register_module(
        Module(
            "HALF",
            ("x",),
            lambda M, x: x // 2,
            emit=lambda b, x: b.divide(x, b.number(2)),
            meaning="x / 2, rounded down",
        )
    )
    register_module(Module("SILENT-HALF", ("x",), lambda M, x: x // 2))
    text = "nram program 1\nregisters: r1\nalways:\n o1 = READ(0)\n o2 = {}(o1)\n WRITE(1, o2)\n halt\n"
    source = to_python(from_text(text.format("HALF")), "run")
    assert source.startswith("def half(size, x):\n    # x / 2, rounded down\n    value = x // 2\n")
    assert "memory[1] = half(size, memory[0])" in source
    with pytest.raises(UsageError, match="SILENT-HALF has no emitted form"):
        to_python(from_text(text.format("SILENT-HALF")), "run")
