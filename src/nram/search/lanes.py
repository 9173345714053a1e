"""Sixteen instances at once: a table run on a block of them in the lanes of the processor's vector registers.

The code is LLVM, compiled for this processor when a search begins. Every lane has its own memory, registers and row. At
each step, the lanes that are in the same row run its operations together; most often that is all of them. The modules
are emitted from their one table, so the search knows none of them by name.

    i64 run_block(i64 *frame)    the frame is the kernel's `Frame`; returns the lanes that halted, a bit each
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from llvmlite import ir

from nram.llvm import I1, I16, I32, I64, POINTER, Instructions, optimised_engine
from nram.modules import Module
from nram.search.kernel import AT, CONSTANTS, FIRST_NUMBER, LANES
from nram.search.look_up import store_of

BITS, NUMBERS, WORDS = (ir.VectorType(kind, LANES) for kind in (I1, I32, I64))
POINTERS = ir.VectorType(POINTER, LANES)


class Lanes(Instructions):
    """The primitives of the modules on vectors of numbers. Lanes that are not `at_work` read 0 and write nothing."""

    narrow, wide = NUMBERS, WORDS

    def __init__(self, at: ir.IRBuilder, memory: Any, size: Any, at_work: Any):
        super().__init__(at, memory, size)
        self.at_work = at_work

    def number(self, literal: int) -> Any:
        return _splat(NUMBERS, literal)

    def modulus(self) -> Any:
        unused = self.equal(self.size, self.number(0))  # lanes without an instance, where a division would trap
        return self.choose(unused, self.number(1), self.size)

    def look_up(self, store: int, *arguments: Any) -> Any:
        """What a `TableStore` at this address holds for the arguments."""
        pointer = ir.Constant(I64, store).inttoptr(POINTER)
        place = self._gather(_vector_of_addresses(self.at, pointer, self.size))
        way = self.number(0)
        for argument in arguments:
            way = self.add(self.at.mul(way, self.size), argument)
        return self._gather(_vector_of_addresses(self.at, pointer, self.add(place, way)))

    def read(self, pointer: Any) -> Any:
        return self._gather(self._cells(pointer))

    def gathered(self, index: Any) -> Any:
        """The numbers at these places of an array that all lanes share."""
        return self._gather(_vector_of_addresses(self.at, self.memory, index))

    def _gather(self, addresses: Any) -> Any:
        gather = _intrinsic(self.at, "llvm.masked.gather.v16i32.v16p0", NUMBERS, (POINTERS, I32, BITS, NUMBERS))
        return self.at.call(gather, [addresses, ir.Constant(I32, 4), self.at_work, _splat(NUMBERS, 0)])

    def write(self, pointer: Any, value: Any) -> None:
        scatter = _intrinsic(self.at, "llvm.masked.scatter.v16i32.v16p0", ir.VoidType(), (NUMBERS, POINTERS, I32, BITS))
        self.at.call(scatter, [value, self._cells(pointer), ir.Constant(I32, 4), self.at_work])

    def _cells(self, pointer: Any) -> Any:
        numbers = ir.Constant(NUMBERS, [ir.Constant(I32, lane) for lane in range(LANES)])
        index = self.at.add(self.at.mul(pointer, _splat(NUMBERS, LANES)), numbers)
        return _vector_of_addresses(self.at, self.memory, index)


@lru_cache(maxsize=8)
def run_block_address(modules: tuple[Module, ...], sketch: bool = False) -> int:
    """The address of `run_block`, compiled for operations numbered by their place among these modules.

    In the tables of a sketch the rows are not those of the flags: the frame's `row_of` has their numbers.
    """
    engine = optimised_engine(build_run_block(modules, sketch))
    _engines.append(engine)
    return engine.get_function_address("run_block")


_engines: list[Any] = []  # code lives as long as its engine


def build_run_block(modules: tuple[Module, ...], sketch: bool = False) -> ir.Module:
    unit = ir.Module("lanes")
    function = ir.Function(unit, ir.FunctionType(I64, [POINTER]), "run_block")
    at = ir.IRBuilder(function.append_basic_block("entry"))
    frame = {
        name: at.load(
            at.gep(function.args[0], [ir.Constant(I64, index)], source_etype=I64),
            name=name,
            typ=POINTER if index < FIRST_NUMBER else I64,
        )
        for name, index in AT._asdict().items()
    }
    _Block(at, frame, modules, sketch).emit()
    return unit


class _Block:
    """The body of `run_block`."""

    def __init__(self, at: ir.IRBuilder, frame: dict[str, Any], modules: tuple[Module, ...], sketch: bool):
        self.at = at
        self.sketch = sketch
        self.modules = modules
        self.frame = frame
        self.lanes = at.trunc(frame["lanes"], I16)
        self.size = self._load(NUMBERS, frame["sizes"])
        self.limits = self._load(NUMBERS, frame["limits"])
        self.rows, self.following, self.wrong = (at.alloca(NUMBERS) for _ in range(3))
        self.visited = at.alloca(WORDS)
        self.alive, self.todo, self.halted = (at.alloca(I16) for _ in range(3))

    def emit(self) -> None:
        at, frame = self.at, self.frame
        with self._loop(frame["most_cells"]) as address:
            self._put(frame["memory"], address, self._get(frame["starts"], address))
        for number in range(CONSTANTS):
            self._put(frame["values"], ir.Constant(I64, number), _splat(NUMBERS, number))
        with self._loop(frame["registers"]) as register:
            self._put(frame["values"], at.add(register, ir.Constant(I64, CONSTANTS)), _splat(NUMBERS, 0))
        registers = at.trunc(frame["registers"], I32)
        every_flag = at.sub(at.shl(ir.Constant(I32, 1), registers), ir.Constant(I32, 1))
        at.store(self._rows_of(self._spread(every_flag, NUMBERS)), self.rows)
        at.store(_splat(WORDS, 0), self.visited)
        at.store(self.lanes, self.alive)
        at.store(ir.Constant(I16, 0), self.halted)
        ended = at.function.append_basic_block("ended")
        with self._loop(frame["longest"], ended) as step:
            in_time = at.icmp_unsigned("<", self._spread(at.trunc(step, I32), NUMBERS), self.limits)
            alive = at.and_(at.load(self.alive, typ=I16), at.bitcast(in_time, I16))
            at.store(alive, self.alive)
            at.store(alive, self.todo)
            with self._while_bits(self.todo, none_at_first=ended) as todo:
                self._group(todo)
        self._compare()
        at.store(at.load(self.visited, typ=WORDS), frame["visited"], align=8)
        at.ret(at.zext(at.load(self.halted, typ=I16), I64))

    def _group(self, todo: Any) -> None:
        """One step of all lanes that are in the same row as the first lane that is still to do."""
        at, frame = self.at, self.frame
        first = at.cttz(todo, ir.Constant(I1, 1))
        rows = at.load(self.rows, typ=NUMBERS)
        row = at.extract_element(rows, at.zext(first, I32))
        here = at.and_(todo, at.bitcast(at.icmp_unsigned("==", rows, self._spread(row, NUMBERS)), I16))
        at.store(at.and_(todo, at.not_(here)), self.todo)
        at_work = at.bitcast(here, BITS)
        row = at.zext(row, I64)
        bit = self._spread(at.shl(ir.Constant(I64, 1), row), WORDS)
        marked = at.select(at_work, bit, _splat(WORDS, 0))
        at.store(at.or_(at.load(self.visited, typ=WORDS), marked), self.visited)

        code = self._element(frame["code"], at.mul(at.mul(row, frame["operations"]), ir.Constant(I64, 4)), I16)
        length = at.load(self._element(frame["lengths"], row, I64), typ=I64)
        with self._loop(length) as number:
            self._operation(self._element(code, at.mul(number, ir.Constant(I64, 4)), I16), at_work)

        ending = at.sub(at.mul(at.add(row, ir.Constant(I64, 1)), frame["width"]), ir.Constant(I64, 2))
        ending = self._element(frame["genes"], ending, I16)
        stops = at.icmp_unsigned("!=", at.load(ending, typ=I16), ir.Constant(I16, 0))
        with at.if_else(stops) as (stopping, going_on):
            with stopping:
                at.store(at.and_(at.load(self.alive, typ=I16), at.not_(here)), self.alive)
                at.store(at.or_(at.load(self.halted, typ=I16), here), self.halted)
            with going_on:
                self._move_on(ending, at_work, rows)

    def _operation(self, code: Any, at_work: Any) -> None:
        at, frame = self.at, self.frame
        module, first, second, output = (
            at.zext(at.load(self._element(code, ir.Constant(I64, part), I16), typ=I16), I64) for part in range(4)
        )
        arguments = self._get(frame["values"], first), self._get(frame["values"], second)
        done = at.function.append_basic_block("done")
        unknown = at.function.append_basic_block("unknown")
        choice = at.switch(module, unknown)
        for number, meaning in enumerate(self.modules):
            case = at.function.append_basic_block(meaning.name)
            choice.add_case(ir.Constant(I64, number), case)
            at.position_at_end(case)
            b, given = Lanes(at, frame["memory"], self.size, at_work), arguments[: meaning.arity]
            value = meaning.emit(b, *given) if meaning.emits else b.look_up(store_of(meaning).address, *given)
            if meaning.memory != "writes":
                self._put(frame["values"], output, value)
            at.branch(done)
        at.position_at_end(unknown)
        at.unreachable()
        at.position_at_end(done)

    def _move_on(self, ending: Any, at_work: Any, rows: Any) -> None:
        """Update all registers at once, then find the row that the new flags and the next state select."""
        at, frame = self.at, self.frame
        count = frame["registers"]
        updates = self._element(ending, at.neg(count), I16)
        with self._loop(count) as register:
            source = at.zext(at.load(self._element(updates, register, I16), typ=I16), I64)
            self._put(frame["new_values"], register, self._get(frame["values"], source))
        state = at.zext(at.load(self._element(ending, ir.Constant(I64, 1), I16), typ=I16), I32)
        at.store(self._spread(at.shl(state, at.trunc(count, I32)), NUMBERS), self.following)
        with self._loop(count) as register:
            place = at.add(register, ir.Constant(I64, CONSTANTS))
            new = at.select(at_work, self._get(frame["new_values"], register), self._get(frame["values"], place))
            self._put(frame["values"], place, new)
            flag = self._spread(at.shl(ir.Constant(I32, 1), at.trunc(register, I32)), NUMBERS)
            zero = at.icmp_unsigned("==", new, _splat(NUMBERS, 0))
            flags = at.or_(at.load(self.following, typ=NUMBERS), at.select(zero, flag, _splat(NUMBERS, 0)))
            at.store(flags, self.following)
        at.store(at.select(at_work, self._rows_of(at.load(self.following, typ=NUMBERS)), rows), self.rows)

    def _rows_of(self, situations: Any) -> Any:
        """The rows for states and flags, which are the same numbers unless there is a sketch."""
        if not self.sketch:
            return situations
        every = ir.Constant(BITS, [ir.Constant(I1, 1)] * LANES)
        return Lanes(self.at, self.frame["row_of"], self.size, every).gathered(situations)

    def _compare(self) -> None:
        """Count the output cells that are not as wanted."""
        at, frame = self.at, self.frame
        at.store(_splat(NUMBERS, 0), self.wrong)
        counts = self._load(NUMBERS, frame["counts"])
        memory = Lanes(at, frame["memory"], self.size, at.bitcast(self.lanes, BITS))
        with self._loop(frame["most_outputs"]) as number:
            value = memory.read(self._get(frame["cells"], number))
            differs = at.icmp_unsigned("!=", value, self._get(frame["wanted"], number))
            counts_here = at.icmp_unsigned("<", self._spread(at.trunc(number, I32), NUMBERS), counts)
            one = at.zext(at.and_(differs, counts_here), NUMBERS)
            at.store(at.add(at.load(self.wrong, typ=NUMBERS), one), self.wrong)
        at.store(at.load(self.wrong, typ=NUMBERS), frame["wrong"], align=4)

    # ---- arrays, vectors and loops

    def _element(self, pointer: Any, index: Any, kind: ir.Type) -> Any:
        return self.at.gep(pointer, [index], inbounds=True, source_etype=kind)

    def _load(self, kind: ir.Type, pointer: Any) -> Any:
        return self.at.load(pointer, typ=kind, align=4)

    def _get(self, array: Any, index: Any) -> Any:
        return self._load(NUMBERS, self._element(array, index, NUMBERS))

    def _put(self, array: Any, index: Any, value: Any) -> None:
        self.at.store(value, self._element(array, index, NUMBERS), align=4)

    def _spread(self, value: Any, kind: ir.VectorType) -> Any:
        """The same number in every lane."""
        one = self.at.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
        zeros = ir.Constant(ir.VectorType(I32, LANES), [ir.Constant(I32, 0)] * LANES)
        return self.at.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

    @contextmanager
    def _loop(self, count: Any, after: ir.Block | None = None) -> Iterator[Any]:
        """Repeat the code inside for the numbers below a count."""
        at = self.at
        before, head, body = at.block, at.function.append_basic_block("head"), at.function.append_basic_block("body")
        after = after or at.function.append_basic_block("after")
        at.branch(head)
        at.position_at_end(head)
        number = at.phi(I64)
        number.add_incoming(ir.Constant(I64, 0), before)
        at.cbranch(at.icmp_unsigned("<", number, count), body, after)
        at.position_at_end(body)
        yield number
        number.add_incoming(at.add(number, ir.Constant(I64, 1)), at.block)
        at.branch(head)
        at.position_at_end(after)

    @contextmanager
    def _while_bits(self, bits: Any, none_at_first: ir.Block) -> Iterator[Any]:
        """Repeat the code inside until no bit is left. If there is none at first, branch to `none_at_first`."""
        at = self.at
        body, after = at.function.append_basic_block("group"), at.function.append_basic_block("grouped")
        nothing = ir.Constant(I16, 0)
        at.cbranch(at.icmp_unsigned("!=", at.load(bits, typ=I16), nothing), body, none_at_first)
        at.position_at_end(body)
        yield at.load(bits, typ=I16)
        at.cbranch(at.icmp_unsigned("!=", at.load(bits, typ=I16), nothing), body, after)
        at.position_at_end(after)


def _splat(kind: ir.VectorType, literal: int) -> ir.Constant:
    return ir.Constant(kind, [ir.Constant(kind.element, literal)] * LANES)


def _intrinsic(at: ir.IRBuilder, name: str, result: ir.Type, arguments: tuple[ir.Type, ...]) -> ir.Function:
    known = at.module.globals.get(name)
    return known if known is not None else ir.Function(at.module, ir.FunctionType(result, arguments), name)


def _vector_of_addresses(at: ir.IRBuilder, pointer: Any, index: Any) -> Any:
    """The addresses of the numbers at a vector of indices, which llvmlite takes for one address."""
    addresses: Any = at.gep(pointer, [index], source_etype=I32)
    addresses.type = POINTERS
    return addresses
