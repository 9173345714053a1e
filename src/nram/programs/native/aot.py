"""Programs compiled ahead of time: files with a C interface that need neither Python nor nram.

LLVM makes object files and shared libraries for any processor of this computer's architecture. They contain two
functions, one that checks its input and one that does not (see the header that is written beside them). Only a
shared library needs an external tool, a linker.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from llvmlite import ir

from nram.display import Displayed, heading, table
from nram.errors import NramError, UsageError
from nram.files import check_destination, write_result
from nram.llvm import I1, I32, I64, POINTER, element, i32, i64, optimised, parsed, target_machine
from nram.programs.ir import Program
from nram.programs.memory import LARGEST_SIZE, LEAST_SIZE
from nram.programs.native.c_source import BAD_CELL, C_TITLE, REFUSALS, symbol_for, to_c, to_header
from nram.programs.native.instructions import HALTED, START
from nram.programs.native.llvm import build_start
from nram.programs.python_source import function_name, to_python

Form = Literal["object", "shared", "c", "llvm", "python"]
FORMS: tuple[Form, ...] = get_args(Form)
LIBRARY_ENDING = ".dylib" if sys.platform == "darwin" else ".so"
ENDINGS: dict[Form, str] = {"object": ".o", "shared": LIBRARY_ENDING, "c": ".c", "llvm": ".ll", "python": ".py"}
PYTHON_TITLE = "# Written by nram compile, which may overwrite this file.\n"
LINKERS = ("cc", "gcc", "clang")


@dataclass(frozen=True, repr=False)
class Files(Displayed):
    """The files that were written."""

    form: Form
    symbol: str
    """The function that checks its input; in C, with the suffix _unchecked, the one that does not."""
    out: Path
    header: Path | None
    """None for Python."""

    def _brief(self) -> str:
        return f"{self.out}: {self.form}, function {self.symbol}"

    def _repr_html_(self) -> str:
        rows = [("function", self.symbol), ("file", self.out), ("header", self.header)]
        return heading(f"Compiled: {self.form}") + table(rows[: 2 if self.header is None else 3])


def compile_program(
    program: Program, form: Form | None = None, out: Path | None = None, name: str | None = None
) -> Files:
    """Write a program as a file of this form. What is for C gets a header beside it.

    The form defaults to that of the file's suffix, or to an object file. `name` is the name of the function.
    """
    form = form or _form_of(out)
    symbol = function_name(program, name) if form == "python" else symbol_for(program, name)
    if out is None:
        hides = form == "python" and symbol in sys.stdlib_module_names  # copy.py would hide Python's own module
        out = Path(symbol + ("_program" if hides else "") + ENDINGS[form])
    _check_source(out, out)
    if form == "python":
        write_result(out, (PYTHON_TITLE + to_python(program, symbol)).encode())
        return Files(form, symbol, out, None)
    header = out.with_suffix(".h")
    if header == out:
        raise UsageError(f"{out} would be overwritten by the header: use a name that ends in {ENDINGS[form]}")
    _check_source(header, out)
    match form:
        case "object":
            content = object_code({symbol: program})
        case "shared":
            content = shared_library({symbol: program})
        case "c":
            content = to_c(program, symbol).encode()
        case "llvm":
            content = str(parsed(build_module({symbol: program}), target_machine(host=False))).encode()
    write_result(out, content)
    write_result(header, to_header(program, symbol).encode())
    return Files(form, symbol, out, header)


def _check_source(path: Path, out: Path) -> None:
    """Refuse to overwrite source code that nram did not write: the file `out`, or the header beside it."""
    check_destination(path)
    title = {".py": PYTHON_TITLE, ".c": C_TITLE, ".h": C_TITLE}.get(path.suffix)
    if title is None or not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(len(title))
    if start and start != title.encode():
        other = out.with_name(f"{out.stem}_nram{out.suffix}")
        what = f"there is a file {path} that nram did not write"
        raise UsageError(f"{what}: move it, or choose another name, such as --out {other}")


def _form_of(out: Path | None) -> Form:
    if out is None:
        return "object"
    for form, ending in ENDINGS.items():
        if out.suffix == ending:
            return form
    endings = ", ".join(f"{ending} ({form})" for form, ending in ENDINGS.items())
    raise UsageError(f"{out} has an unknown suffix: give --emit, or a name that ends in one of {endings}")


def object_code(programs: Mapping[str, Program]) -> bytes:
    """An object file with these programs; the keys are the names of their functions."""
    machine = target_machine(host=False)
    return machine.emit_object(optimised(build_module(programs), machine))


def shared_library(programs: Mapping[str, Program]) -> bytes:
    linker = _find_linker()
    with tempfile.TemporaryDirectory(prefix="nram-") as folder:
        compiled, linked = Path(folder, "program.o"), Path(folder, "program" + LIBRARY_ENDING)
        compiled.write_bytes(object_code(programs))
        command = [*linker, "-shared", "-o", str(linked), str(compiled)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise NramError(f"{linker[0]} cannot be started: {error.strerror}") from None
        if done.returncode != 0 or not linked.exists():
            reason = done.stderr.strip()[-1000:] or f"it ended with status {done.returncode} and no message"
            raise NramError(f"{linker[0]} could not link the shared library: {reason}")
        return linked.read_bytes()


def _find_linker() -> list[str]:
    chosen = os.environ.get("CC", "").split()
    if chosen:
        return chosen
    for name in LINKERS:
        path = shutil.which(name)
        if path is not None:
            return [path]
    raise NramError(
        f"a shared library needs a linker, and none of {', '.join(LINKERS)} was found: install gcc or clang (on "
        "Debian or Ubuntu 'apt install gcc', on macOS 'xcode-select --install'), or use --emit object or --emit c, "
        "which need no linker"
    )


# ---- the module


def build_module(programs: Mapping[str, Program]) -> ir.Module:
    """An LLVM module with the two functions of the header for each program."""
    module = ir.Module("nram")
    for symbol, program in programs.items():
        unchecked = _add_unchecked(module, symbol, build_start(module, program), len(program.registers))
        _add_checked(module, symbol, unchecked)
    return module


def _declare(module: ir.Module, name: str) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(I32, [POINTER, I64, I64, POINTER, POINTER]), name)
    for argument, word in zip(function.args, ("memory", "size", "max_steps", "steps", "registers"), strict=True):
        argument.name = word
    return function


def _add_unchecked(module: ir.Module, symbol: str, advance: ir.Function, count: int) -> ir.Function:
    function = _declare(module, f"{symbol}_unchecked")
    memory, size, max_steps, steps_out, registers_out = function.args
    at = ir.IRBuilder(function.append_basic_block("entry"))
    registers = at.alloca(I32, i32(count))
    # A fresh run sets the registers to 0, but the walk through tables reads them first.
    for i in range(count):
        at.store(i32(0), element(at, registers, i64(i)))
    arguments = [memory, at.trunc(size, I32), registers, i32(START), max_steps]
    ending = at.call(advance, arguments)
    null = ir.Constant(POINTER, None)
    with at.if_then(at.icmp_unsigned("!=", steps_out, null)):
        at.store(at.extract_value(ending, 0), steps_out)
    with at.if_then(at.icmp_unsigned("!=", registers_out, null)):
        for i in range(count):
            index = i64(i)
            at.store(at.load(element(at, registers, index), typ=I32), element(at, registers_out, index))
    halted = at.icmp_signed("==", at.extract_value(ending, 1), i32(HALTED))
    at.ret(at.zext(halted, I32))
    return function


def _add_checked(module: ir.Module, symbol: str, unchecked: ir.Function) -> None:
    function = _declare(module, symbol)
    memory, size, max_steps, _, _ = function.args
    at = ir.IRBuilder(function.append_basic_block("entry"))

    bad_size = at.or_(at.icmp_signed("<", size, i64(LEAST_SIZE)), at.icmp_signed(">", size, i64(LARGEST_SIZE)))
    conditions: dict[str, Any] = {
        "NO_MEMORY": at.icmp_unsigned("==", memory, ir.Constant(POINTER, None)),
        "BAD_SIZE": bad_size,
        "BAD_LIMIT": at.icmp_signed("<", max_steps, i64(0)),
    }
    for refusal in REFUSALS:
        if refusal is not BAD_CELL:
            with at.if_then(conditions[refusal.name]):
                at.ret(i32(refusal.code))

    before = at.block
    look, good, bad = (function.append_basic_block(name) for name in ("look", "good", "bad"))
    at.branch(look)
    at.position_at_end(look)
    index, all_good = at.phi(I64), at.phi(I1)
    # As an unsigned number, a negative cell is larger than every size.
    cell = at.load(element(at, memory, index), typ=I32)
    still_good = at.and_(all_good, at.icmp_unsigned("<", at.sext(cell, I64), size))
    following = at.add(index, i64(1))
    index.add_incoming(i64(0), before)
    index.add_incoming(following, look)
    all_good.add_incoming(ir.Constant(I1, 1), before)
    all_good.add_incoming(still_good, look)
    end = function.append_basic_block("end")
    at.cbranch(at.icmp_signed("<", following, size), look, end)
    at.position_at_end(end)
    at.cbranch(still_good, good, bad)
    at.position_at_end(bad)
    at.ret(i32(BAD_CELL.code))
    at.position_at_end(good)
    at.ret(at.call(unchecked, list(function.args)))
