"""Programs compiled ahead of time: libraries and C source end as the interpreter does, and refuse bad input."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from llvmlite import binding

from nram.errors import UsageError
from nram.limits import StepLimit
from nram.programs.interpret import Ending, interpret
from nram.programs.ir import Program
from nram.programs.native.aot import compile_program, shared_library
from nram.programs.native.c_source import symbol_for, to_c, to_header
from nram.programs.text import from_text

GCC = shutil.which("gcc")
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
needs_gcc = pytest.mark.skipif(GCC is None, reason="needs gcc")

COUNT_UP = from_text(
    """nram program 1
    registers: r1 double left
    when double = 0:
        WRITE(r1, r1)
        o2 = INC(r1)
        r1, left, double := o2, r1, left
    otherwise:
        halt
    """
)


class Case(NamedTuple):
    memory: list[int]
    limit: int
    expected: Ending


def compile_c(sources: list[Path], out: Path, *options: str) -> None:
    command = [str(GCC), *STRICT, *options, "-o", str(out), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def load(path: Path, symbol: str):
    function = getattr(ctypes.CDLL(str(path)), symbol)
    whole, pointer = ctypes.c_int64, ctypes.c_void_p
    function.argtypes = [pointer, whole, whole, pointer, pointer]
    function.restype = ctypes.c_int32
    return function


def call(function, program: Program, memory: list[int], limit: int) -> Ending:
    cells = (ctypes.c_int32 * len(memory))(*memory)
    steps = ctypes.c_int64(-1)
    registers = (ctypes.c_int32 * len(program.registers))()
    code = function(cells, len(memory), limit, ctypes.byref(steps), registers)
    assert code in (0, 1)
    return Ending(list(cells), list(registers), steps.value, code == 1)


def cases_of(program: Program, rng: Random) -> Iterator[Case]:
    for size in (3, rng.randint(4, 20)):
        for limit in (0, 1, rng.randint(2, 9), rng.randint(10, 150)):
            memory = [rng.randrange(size) for _ in range(size)]
            yield Case(memory, limit, interpret(program, memory, limit))


@pytest.fixture(scope="module")
def programs(random_program) -> dict[str, Program]:
    """Random programs, one in ten a full table."""
    made: dict[str, Program] = {}
    for seed in range(1000, 1040):
        rng = Random(seed)
        full = {"full": True, "registers": rng.choice([1, 2]), "states": 1} if seed % 10 == 0 else {}
        made[f"p{seed}"] = random_program(rng, halting=rng.choice([0.0, 0.1, 0.3]), **full)
    return made


@pytest.fixture(scope="module")
def cases(programs) -> dict[str, list[Case]]:
    return {symbol: list(cases_of(program, Random(symbol))) for symbol, program in programs.items()}


@pytest.fixture(scope="module")
def counting_library(tmp_path_factory) -> dict[str, Path]:
    """One program, as a shared library by LLVM and as C source by gcc."""
    folder = tmp_path_factory.mktemp("counting")
    compile_program(COUNT_UP, "shared", folder / "llvm.so", "count_up")
    compile_program(COUNT_UP, "c", folder / "count_up.c", "count_up")
    compile_c([folder / "count_up.c"], folder / "gcc.so", "-O2", "-shared", "-fPIC")
    return {"llvm": folder / "llvm.so", "gcc": folder / "gcc.so"}


both = pytest.mark.parametrize("made_by", ["llvm", "gcc"])


# ---- the same as the interpreter


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "programs.h"

int main(void)
{
    int number, size, limit;
    while (scanf("%d %d %d", &number, &size, &limit) == 3) {
        int32_t *memory = malloc((size_t)size * sizeof *memory);
        int32_t registers[16];
        int64_t steps;
        for (int i = 0; i < size; i++)
            if (scanf("%d", &memory[i]) != 1)
                return 2;
        int32_t code = PROGRAMS[number](memory, size, limit, &steps, registers);
        printf("%d %d :", (int)code, (int)steps);
        for (int i = 0; i < size; i++)
            printf(" %d", (int)memory[i]);
        printf(" :");
        for (int i = 0; i < REGISTERS[number]; i++)
            printf(" %d", (int)registers[i]);
        printf("\\n");
        free(memory);
    }
    return 0;
}
"""


@needs_gcc
def test_generated_c_never_leaves_its_memory_and_has_no_undefined_behaviour(programs, cases, tmp_path):
    symbols = list(programs)
    (tmp_path / "programs.c").write_text("\n".join(to_c(programs[symbol], symbol) for symbol in symbols))
    kind = "int32_t (*const PROGRAMS[])(int32_t *, int64_t, int64_t, int64_t *, int32_t *)"
    counts = ", ".join(str(len(programs[symbol].registers)) for symbol in symbols)
    (tmp_path / "programs.h").write_text(
        "\n".join(to_header(programs[symbol], symbol) for symbol in symbols)
        + f"static {kind} = {{{', '.join(symbols)}}};\nstatic const int REGISTERS[] = {{{counts}}};\n"
    )
    (tmp_path / "main.c").write_text(MAIN)
    sources = [tmp_path / "main.c", tmp_path / "programs.c"]
    compile_c(sources, tmp_path / "main", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    lines, wanted = [], []
    for number, symbol in enumerate(symbols):
        for memory, limit, expected in cases[symbol]:
            lines.append(" ".join(map(str, [number, len(memory), limit, *memory])))
            cells, registers = (" ".join(map(str, values)) for values in (expected.memory, expected.registers))
            wanted.append(f"{int(expected.halted)} {expected.steps} : {cells} : {registers}")
    done = subprocess.run([str(tmp_path / "main")], input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    assert done.stdout.splitlines() == wanted


def test_programs_too_large_for_code_of_their_own_are_compiled_too(random_program, tmp_path):
    rng = Random(0)
    large = {f"large{i}": random_program(rng, full=True, registers=7, states=2, halting=0.01) for i in range(2)}
    path = tmp_path / "large.so"
    path.write_bytes(shared_library(large))
    for symbol, program in large.items():
        function = load(path, symbol)
        for case in cases_of(program, rng):
            assert call(function, program, case.memory, case.limit) == case.expected


@needs_gcc
def test_an_object_file_is_linked_into_a_c_program(tmp_path):
    files = compile_program(COUNT_UP, "object", tmp_path / "count.o", "count_up")
    main = tmp_path / "main.c"
    assert files.header is not None
    main.write_text(
        f"""#include "{files.header.name}"
        int main(void) {{
            int32_t memory[5] = {{4, 3, 2, 1, 0}}, registers[COUNT_UP_REGISTERS];
            int64_t steps;
            int32_t code = count_up(memory, 5, 100, &steps, registers);
            return code == COUNT_UP_HALTED && steps == 4 && memory[2] == 2 && registers[0] == 3 ? 0 : 1;
        }}"""
    )
    compile_c([main, files.out], tmp_path / "main")
    assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 0


def test_llvm_text_is_read_back_by_llvm(tmp_path):
    files = compile_program(COUNT_UP, "llvm", tmp_path / "count.ll")
    module = binding.parse_assembly(files.out.read_text())
    module.verify()
    assert not module.get_function(files.symbol).is_declaration


# ---- bad input


@needs_gcc
@both
def test_the_checked_function_refuses_bad_input_and_changes_nothing(made_by, counting_library):
    function = load(counting_library[made_by], "count_up")

    def code(memory: list[int] | None, size: int | None = None, limit: int = 10) -> int:
        cells = None if memory is None else (ctypes.c_int32 * len(memory))(*memory)
        found = function(cells, len(memory or []) if size is None else size, limit, None, None)
        assert cells is None or list(cells) == memory
        return found

    assert code(None, 5) == -1
    for size in (2, 1, 0, -1, -(2**62), 2**31, 2**32 + 5, 2**62):
        assert code([0, 0, 0, 0, 0], size) == -2
    for limit in (-1, -(2**63)):
        assert code([0, 0, 0, 0, 0], None, limit) == -3
    for wrong in (-1, 5, 6, 2**31 - 1, -(2**31)):
        for place in range(5):
            assert code([wrong if i == place else i for i in range(5)]) == -4


@needs_gcc
@both
def test_steps_and_registers_may_be_left_out(made_by, counting_library):
    for symbol in ("count_up", "count_up_unchecked"):
        function = load(counting_library[made_by], symbol)
        cells = (ctypes.c_int32 * 6)(5, 5, 5, 5, 5, 5)
        assert function(cells, 6, 2, None, None) == 0
        assert list(cells) == [0, 1, 5, 5, 5, 5]
        assert function(cells, 6, 100, None, None) == 1


# ---- names and files


@needs_gcc
def test_names_of_programs_and_registers_cannot_break_the_source(tmp_path):
    for number, name in enumerate(["*/ int x; /*", "/*/", "a ??/", "back\\slash \\", "ünïcode ✓", "'\"%s%n", "***///"]):
        hostile = replace(COUNT_UP, name=name, task=name, registers=("M", "memory", "int"))
        symbol = symbol_for(hostile)
        source = tmp_path / f"{number}.c"
        source.write_text(to_c(hostile, symbol))
        compile_c([source], tmp_path / f"{number}.so", "-O1", "-shared", "-fPIC")
        memory = [0, 0, 0, 0]
        found = call(load(tmp_path / f"{number}.so", symbol), hostile, memory, 9)
        assert found == interpret(hostile, memory, 9)


def test_the_default_symbol_comes_from_the_name_and_cannot_clash_with_the_c_library():
    assert symbol_for(replace(COUNT_UP, name="access")) == "nram_access"
    assert symbol_for(replace(COUNT_UP, name="Double  increment!")) == "nram_double_increment"
    assert symbol_for(replace(COUNT_UP, name="✓")) == "nram_program"


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "int", "class", "main", "memcpy", "é", "a" * 101, "x;y"])
def test_names_that_c_would_not_take_are_refused(name):
    with pytest.raises(UsageError, match="C"):
        symbol_for(COUNT_UP, name)


def test_a_symbol_may_be_a_word_that_the_compiled_code_uses_itself(tmp_path):
    for name in ("advance", "rows", "left", "M", "memory"):
        compile_program(COUNT_UP, "object", tmp_path / "a.o", name)
        assert f"\0{name}\0".encode() in (tmp_path / "a.o").read_bytes()  # among the object's symbols
        files = compile_program(COUNT_UP, "c", tmp_path / f"{name}.c", name)
        if GCC:
            library = tmp_path / f"{name}.so"
            compile_c([files.out], library, "-shared", "-fPIC")
            assert getattr(ctypes.CDLL(str(library)), name)


def test_the_header_says_when_a_program_must_be_stopped(tmp_path):
    needs = replace(COUNT_UP, limit=StepLimit(2, 4), needs_limit=True)
    assert "T(n) = 2n+4" in to_header(needs, "a")
    assert "T(n)" not in to_header(COUNT_UP, "a")


@needs_gcc
def test_the_header_serves_c_and_cpp_and_may_be_included_twice(tmp_path):
    files = compile_program(COUNT_UP, "object", tmp_path / "count.o")
    assert files.header is not None
    for ending, options in ((".c", STRICT), (".cpp", ["-Wall", "-Wextra", "-Werror"])):
        source = tmp_path / f"user{ending}"
        source.write_text(f'#include "{files.header.name}"\n#include "{files.header.name}"\n')
        done = subprocess.run(
            [str(GCC), *options, "-fsyntax-only", str(source)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_the_ending_of_the_file_tells_what_to_write(tmp_path):
    assert compile_program(COUNT_UP, out=tmp_path / "a.c").form == "c"
    assert compile_program(COUNT_UP, out=tmp_path / "a.ll").form == "llvm"
    assert compile_program(COUNT_UP, out=tmp_path / "a.o").form == "object"
    for wrong in ("a.txt", "a", "a.h"):
        with pytest.raises(UsageError):
            compile_program(COUNT_UP, out=tmp_path / wrong)
    with pytest.raises(UsageError, match="header"):
        compile_program(COUNT_UP, "c", tmp_path / "a.h")
