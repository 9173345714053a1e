"""LLVM: how modules are compiled for this processor, and a cache of compiled code on disk.

Programs, the search and the training kernels all write LLVM through llvmlite and compile it here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite import binding, ir

from nram.cache import cache_folder, load, store

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
POINTER, VOID = ir.PointerType(), ir.VoidType()

Value = Any  # an LLVM value: llvmlite does not type them

PACKAGE = Path(__file__).parent


def target_machine(host: bool) -> binding.TargetMachine:
    """Code generation for exactly this processor, or for every processor of its architecture."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    if not host:
        return target.create_target_machine(opt=3, reloc="pic", codemodel="default")
    name, features = _processor()
    return target.create_target_machine(cpu=name, features=features, opt=3)


def _processor() -> tuple[str, str]:
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def parsed(module: ir.Module, machine: binding.TargetMachine) -> binding.ModuleRef:
    """The module as LLVM itself holds it, verified."""
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    reference = binding.parse_assembly(str(module))
    reference.verify()
    return reference


def optimised(module: ir.Module, machine: binding.TargetMachine) -> binding.ModuleRef:
    """The module after LLVM's optimisation passes."""
    reference = parsed(module, machine)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(reference, passes)
    return reference


def optimised_engine(module: ir.Module) -> Any:
    """The optimised machine code of a module in memory. The code lives as long as the engine."""
    machine = target_machine(host=True)
    engine = binding.create_mcjit_compiler(optimised(module, machine), machine)
    engine.finalize_object()
    return engine


def object_code(module: ir.Module) -> bytes:
    """Machine code for this processor, by LLVM's code generator without the optimisation passes.

    The kernels are written in the form that the passes would produce. The passes would triple the compile time and
    make nothing faster.
    """
    machine = target_machine(host=True)
    return machine.emit_object(parsed(module, machine))


def optimised_object_code(module: ir.Module) -> bytes:
    """Machine code for this processor, after the optimisation passes."""
    machine = target_machine(host=True)
    return machine.emit_object(optimised(module, machine))


def loaded(code: bytes) -> Any:
    """Object code in memory, ready to be called. The code lives as long as the engine."""
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine(host=True))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


# Instructions


def i32(value: int) -> ir.Constant:
    return ir.Constant(I32, value)


def i64(value: int) -> ir.Constant:
    return ir.Constant(I64, value)


def element(at: ir.IRBuilder, pointer: Any, index: Any, kind: ir.Type = I32) -> Any:
    """The address of an element of an array."""
    return at.gep(pointer, [index], inbounds=True, source_etype=kind)


class Instructions:
    """The primitives of the modules as LLVM instructions on unsigned 32-bit integers: sums stay below 2 M < 2**32.

    A subclass can use vectors of integers instead, by other types and another `number`.
    """

    narrow: ir.Type = I32
    wide: ir.Type = I64

    def __init__(self, at: ir.IRBuilder, memory: Any, size: Any):
        self.at = at
        self.memory = memory
        self.size = size

    def number(self, literal: int) -> Any:
        return ir.Constant(self.narrow, literal)

    def add(self, a: Any, b: Any) -> Any:
        return self.at.add(a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return self.at.sub(a, b)

    def multiply(self, a: Any, b: Any) -> Any:
        product = self.at.mul(self.at.zext(a, self.wide), self.at.zext(b, self.wide))
        return self.at.trunc(self.at.urem(product, self.at.zext(self.modulus(), self.wide)), self.narrow)

    def modulus(self) -> Any:
        """M as a divisor."""
        return self.size

    def divide(self, a: Any, b: Any) -> Any:
        by_zero = self.equal(b, self.number(0))
        quotient = self.at.udiv(a, self.choose(by_zero, self.number(1), b))
        return self.choose(by_zero, self.number(0), quotient)

    def less(self, a: Any, b: Any) -> Any:
        return self.at.icmp_unsigned("<", a, b)

    def equal(self, a: Any, b: Any) -> Any:
        return self.at.icmp_unsigned("==", a, b)

    def choose(self, condition: Any, yes: Any, no: Any) -> Any:
        return self.at.select(condition, yes, no)

    def within(self, value: Any) -> Any:
        return self.choose(self.less(value, self.size), value, self.number(0))

    def read(self, pointer: Any) -> Any:
        return self.read_at(self.at.zext(pointer, I64))

    def write(self, pointer: Any, value: Any) -> None:
        self.write_at(self.at.zext(pointer, I64), value)

    def read_at(self, index: Any) -> Any:
        """The cell at a 64-bit index."""
        value = self.at.load(self._cell(index), typ=I32)
        limits = [i32(0), i32(2**31 - 1)]  # addresses and values are not negative
        value.set_metadata("range", self.at.module.add_metadata(limits))
        return value

    def write_at(self, index: Any, value: Any) -> None:
        self.at.store(value, self._cell(index))

    def _cell(self, index: Any) -> Any:
        return element(self.at, self.memory, index)


# The cache


def fingerprint(specification: object, sources: Iterable[str]) -> str:
    """A digest of everything that determines compiled code.

    That is: the specification (by its `repr`), the processor, the version of LLVM, and all Python code that generates
    the LLVM text, constants included. `sources` names that code: files and folders of this package. To hash the LLVM
    text itself would be simpler, but to write it takes up to a second, and the cache must answer at once.
    """
    versions = llvmlite.__version__, binding.llvm_version_info
    described = repr((specification, _processor(), versions, source_digest(tuple(sources))))
    return hashlib.sha256(described.encode()).hexdigest()


@cache
def source_digest(sources: tuple[str, ...], package: Path = PACKAGE) -> str:
    """A digest of these files, and of all Python files in these folders."""
    digest = hashlib.sha256()
    for source in sources:
        path = package / source
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


def cached(name: str, make: Callable[[], bytes]) -> bytes:
    """The code of this name from the cache; made and stored where it is missing or damaged."""
    folder = cache_folder("llvm")
    code = load(folder, name)
    if code is None:
        code = make()
        store(folder, name, code)
    return code
