"""Sixteen instances at once: a table run on a block of them in the lanes of the processor's vector registers.

The code is LLVM, compiled for this processor when a search begins. Every lane has its own memory, registers and row. At
each step, the lanes that are in the same row run its operations together; most often that is all of them. The modules
are emitted from their one table, so the search knows none of them by name.

    i64 run_block(i64 *frame)    the frame is the kernel's `Frame`; returns the lanes that halted, a bit each

Where M is small, all values are bytes. Four cells of sixteen lanes are then one vector, and to read from an address of
its own in every lane is to compare the addresses with the numbers of all cells: chains are
faster by a seventh than with the processor's gather and scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from llvmlite import ir

from nram.llvm import I1, I8, I16, I32, I64, POINTER, Instructions, cached, fingerprint, loaded, optimised_object_code
from nram.modules import PAPER_MODULES, Module
from nram.search.kernel import AT, CODE_FIRST, CODE_OUTPUT, CODE_SECOND, CONSTANTS, END, FIRST_NUMBER, LANES, LINE
from nram.search.look_up import store_of

BITS, BYTES, NUMBERS, WORDS = (ir.VectorType(kind, LANES) for kind in (I1, I8, I32, I64))
POINTERS = ir.VectorType(POINTER, LANES)
SOURCES = ("search/lanes.py", "search/kernel.py", "modules.py", "llvm.py")  # all that determines the code
QUARTERS = 4  # cells of a line of bytes


class Lanes(Instructions):
    """The primitives of the modules on vectors of numbers. Lanes that are not `at_work` read 0 and write nothing."""

    narrow, wide = NUMBERS, WORDS

    def __init__(self, at: ir.IRBuilder, memory: Any, size: Any, at_work: Any):
        super().__init__(at, memory, size)
        self.at_work = at_work

    def number(self, literal: int) -> Any:
        kind: Any = self.narrow
        return _splat(kind, literal)

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


class LanesOfBytes(Lanes):
    """The same on bytes. Lanes that are not `at_work` may read anything."""

    narrow, wide = BYTES, NUMBERS

    def __init__(self, at: ir.IRBuilder, memory: Any, lines: Any, size: Any, at_work: Any):
        super().__init__(at, memory, size, at_work)
        self.lines = lines

    def read(self, pointer: Any) -> Any:
        at, kind = self.at, _line_of(I8)
        with at.goto_entry_block():
            found = at.alloca(kind)
        at.store(_splat(kind, 0), found)
        with self._lines_at(pointer) as (line, here):
            at.store(at.select(here, at.load(line, typ=kind, align=4), at.load(found, typ=kind)), found)
        return _folded(at, at.load(found, typ=kind), at.or_)

    def write(self, pointer: Any, value: Any) -> None:
        at, values = self.at, _repeated(self.at, value)
        nowhere = self.number(-1)  # an address beyond every memory of bytes
        with self._lines_at(at.select(self.at_work, pointer, nowhere)) as (line, here):
            at.store(at.select(here, values, at.load(line, typ=_line_of(I8), align=4)), line, align=4)

    @contextmanager
    def _lines_at(self, pointer: Any) -> Iterator[tuple[Any, Any]]:
        """Every line of the memory, and where in it the pointed cells are."""
        at, kind = self.at, _line_of(I8)
        pointers = _repeated(at, pointer)
        quarters = ir.Constant(kind, [ir.Constant(I8, place // LANES) for place in range(QUARTERS * LANES)])
        with _loop(at, self.lines) as number:
            first = _spread(at, at.mul(at.trunc(number, I8), ir.Constant(I8, QUARTERS)), kind)
            here = at.icmp_unsigned("==", pointers, at.add(first, quarters))
            yield at.gep(self.memory, [number], source_etype=kind), here


@lru_cache(maxsize=64)
def run_block_address(modules: tuple[Module, ...], registers: int, sketch: bool = False, of_bytes: bool = False) -> int:
    """The address of `run_block`, compiled for operations numbered by their place among these modules.

    In the tables of a sketch the rows are not those of the flags: the frame's `row_of` has their numbers.

    A search needs the code for several numbers of registers, so it is cached; not with modules of users, whose code may
    be anything.
    """
    kind = registers, sketch, of_bytes

    def compiled() -> bytes:
        return optimised_object_code(build_run_block(modules, *kind))

    if all(module in PAPER_MODULES for module in modules):
        name = fingerprint(("lanes", [module.name for module in modules], kind), SOURCES)
        code = cached(f"{name}.o", compiled)
    else:
        code = compiled()
    engine = loaded(code)
    _engines.append(engine)
    return engine.get_function_address("run_block")


_engines: list[Any] = []  # code lives as long as its engine


def build_run_block(modules: tuple[Module, ...], registers: int, sketch: bool, of_bytes: bool) -> ir.Module:
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
    _Block(at, frame, modules, registers, sketch, of_bytes).emit()
    return unit


class _Block:
    """The body of `run_block`."""

    def __init__(
        self,
        at: ir.IRBuilder,
        frame: dict[str, Any],
        modules: tuple[Module, ...],
        registers: int,
        sketch: bool,
        of_bytes: bool,
    ):
        self.at = at
        self.registers = registers
        self.sketch = sketch
        self.cells = BYTES if of_bytes else NUMBERS
        self.modules = modules
        self.frame = frame
        self.lanes = at.trunc(frame["lanes"], I16)
        self.size = self._load(NUMBERS, frame["sizes"])
        self.limits = self._load(NUMBERS, frame["limits"])
        self.rows = at.alloca(NUMBERS)
        self.visited = at.alloca(WORDS)
        self.alive, self.todo, self.here, self.halted = (at.alloca(I16) for _ in range(4))
        self.row = at.alloca(I64)
        self.code, self.next, self.ending = (at.alloca(POINTER) for _ in range(3))

    def emit(self) -> None:
        at, frame = self.at, self.frame
        line = _line_of(self.cells.element)
        with _loop(at, frame["lines"]) as number:
            start = self._load(line, self._element(frame["starts"], number, line))
            at.store(start, self._element(frame["memory"], number, line), align=4)
        for number in range(CONSTANTS):
            self._put(frame["values"], ir.Constant(I64, number), _splat(self.cells, number))
        for register in range(self.registers):
            self._put(frame["values"], ir.Constant(I64, CONSTANTS + register), _splat(self.cells, 0))
        at.store(self._rows_of(_splat(NUMBERS, (1 << self.registers) - 1)), self.rows)
        self._enter_row_of(ir.Constant(I32, 0))
        at.store(_splat(WORDS, 0), self.visited)
        at.store(self.lanes, self.alive)
        at.store(ir.Constant(I16, 0), self.halted)
        ended = at.function.append_basic_block("ended")
        with _loop(at, frame["longest"], ended) as step:
            in_time = at.icmp_unsigned("<", _spread(at, at.trunc(step, I32), NUMBERS), self.limits)
            alive = at.and_(at.load(self.alive, typ=I16), at.bitcast(in_time, I16))
            at.store(alive, self.alive)
            at.store(alive, self.todo)
            with self._while_bits(self.todo, none_at_first=ended) as todo:
                self._group(todo)
        self._compare()
        at.store(at.load(self.visited, typ=WORDS), frame["visited"], align=8)
        at.ret(at.zext(at.load(self.halted, typ=I16), I64))

    def _group(self, todo: Any) -> None:
        """One step of all lanes that are in one row.

        As long as all lanes stay in the row whose code is at hand, nothing is computed from the row: the processor
        goes on by predicting that they stay, before it knows the flags.
        """
        at = self.at
        at.store(todo, self.here)
        with at.if_then(at.icmp_unsigned("!=", at.and_(todo, at.not_(self._in_row())), ir.Constant(I16, 0))):
            with at.if_then(at.icmp_unsigned("==", at.and_(todo, self._in_row()), ir.Constant(I16, 0))):
                self._enter_row_of(at.zext(at.cttz(todo, ir.Constant(I1, 1)), I32))
            at.store(at.and_(todo, self._in_row()), self.here)
        here = at.load(self.here, typ=I16)
        at.store(at.and_(todo, at.not_(here)), self.todo)
        at_work = at.bitcast(here, BITS)
        bit = _spread(at, at.shl(ir.Constant(I64, 1), at.load(self.row, typ=I64)), WORDS)
        marked = at.select(at_work, bit, _splat(WORDS, 0))
        at.store(at.or_(at.load(self.visited, typ=WORDS), marked), self.visited)

        self._operations(at_work)
        ending = at.load(self.ending, typ=POINTER)
        stops = at.icmp_unsigned("!=", at.load(ending, typ=I16), ir.Constant(I16, 0))
        with at.if_else(stops) as (stopping, going_on):
            with stopping:
                at.store(at.and_(at.load(self.alive, typ=I16), at.not_(here)), self.alive)
                at.store(at.or_(at.load(self.halted, typ=I16), here), self.halted)
            with going_on:
                self._move_on(ending, at_work, at.load(self.rows, typ=NUMBERS))

    def _in_row(self) -> Any:
        """The lanes that are in the row whose code is at hand."""
        at = self.at
        row = _spread(at, at.trunc(at.load(self.row, typ=I64), I32), NUMBERS)
        return at.bitcast(at.icmp_unsigned("==", at.load(self.rows, typ=NUMBERS), row), I16)

    def _enter_row_of(self, lane: Any) -> None:
        """Turn to the row that a lane is in."""
        at, frame = self.at, self.frame
        row = at.zext(at.extract_element(at.load(self.rows, typ=NUMBERS), lane), I64)
        at.store(row, self.row)
        at.store(self._element(frame["code"], at.mul(row, frame["code_width"]), I16), self.code)
        ending = at.sub(at.mul(at.add(row, ir.Constant(I64, 1)), frame["width"]), ir.Constant(I64, 2))
        at.store(self._element(frame["genes"], ending, I16), self.ending)

    def _operations(self, at_work: Any) -> None:
        """Run the operations of the row.

        After each there is a jump of its own to the next, so that the processor learns what follows what.
        """
        at, frame = self.at, self.frame
        cases = [at.function.append_basic_block(meaning.name) for meaning in self.modules]
        end, unknown = at.function.append_basic_block("end"), at.function.append_basic_block("unknown")

        def jump() -> None:
            module = at.load(at.load(self.next, typ=POINTER), typ=I16)
            choice = at.switch(at.add(module, ir.Constant(I16, -END)), unknown)
            for number, case in enumerate([end, *cases]):
                choice.add_case(ir.Constant(I16, number), case)

        at.store(at.load(self.code, typ=POINTER), self.next)
        jump()
        for meaning, case in zip(self.modules, cases, strict=True):
            at.position_at_end(case)
            operation = at.load(self.next, typ=POINTER)
            first, second, output = (
                at.zext(at.load(self._element(operation, ir.Constant(I64, part), I16), typ=I16), I64)
                for part in (CODE_FIRST, CODE_SECOND, CODE_OUTPUT)
            )
            at.store(self._element(operation, ir.Constant(I64, 4), I16), self.next)
            arguments = [self._get(frame["values"], argument) for argument in (first, second)[: meaning.arity]]
            value = self._meaning(meaning, arguments, at_work)
            if meaning.memory != "writes":
                self._put(frame["values"], output, value)
            jump()
        at.position_at_end(unknown)
        at.unreachable()
        at.position_at_end(end)

    def _meaning(self, meaning: Module, arguments: Sequence[Any], at_work: Any) -> Any:
        """What a module gives. Only the paper's are sure to compute with numbers below 2 M, which fit into bytes."""
        at, memory = self.at, self.frame["memory"]
        if self.cells is BYTES and meaning in PAPER_MODULES:
            size = at.trunc(self.size, BYTES)
            return meaning.emit(LanesOfBytes(at, memory, self.frame["lines"], size, at_work), *arguments)
        b = Lanes(at, memory, self.size, at_work)
        if self.cells is BYTES:
            arguments = [at.zext(argument, NUMBERS) for argument in arguments]
        value = meaning.emit(b, *arguments) if meaning.emits else b.look_up(store_of(meaning).address, *arguments)
        return at.trunc(value, BYTES) if self.cells is BYTES else value

    def _move_on(self, ending: Any, at_work: Any, rows: Any) -> None:
        """Update all registers at once, then find the row that the new flags and the next state select."""
        at, values = self.at, self.frame["values"]
        state = at.zext(at.load(self._element(ending, ir.Constant(I64, 1), I16), typ=I16), I32)
        following = _spread(at, at.shl(state, ir.Constant(I32, self.registers)), NUMBERS)
        news = []
        for register in range(self.registers):
            update = self._element(ending, ir.Constant(I64, register - self.registers), I16)
            news.append(self._get(values, at.zext(at.load(update, typ=I16), I64)))
        for register, new in enumerate(news):
            place = ir.Constant(I64, CONSTANTS + register)
            self._put(values, place, at.select(at_work, new, self._get(values, place)))
            zero = at.icmp_unsigned("==", new, _splat(self.cells, 0))
            following = at.or_(following, at.select(zero, _splat(NUMBERS, 1 << register), _splat(NUMBERS, 0)))
        at.store(at.select(at_work, self._rows_of(following), rows), self.rows)

    def _rows_of(self, situations: Any) -> Any:
        """The rows for states and flags, which are the same numbers unless there is a sketch."""
        if not self.sketch:
            return situations
        every = ir.Constant(BITS, [ir.Constant(I1, 1)] * LANES)
        return Lanes(self.at, self.frame["row_of"], self.size, every).gathered(situations)

    def _compare(self) -> None:
        """Count the cells that are not as wanted."""
        at, frame, kind = self.at, self.frame, _line_of(self.cells.element)
        wrong = at.alloca(kind)
        at.store(_splat(kind, 0), wrong)
        with _loop(at, frame["lines"]) as number:
            value, wanted = (
                self._load(kind, self._element(frame[name], number, kind)) for name in ("memory", "wanted")
            )
            matters = at.icmp_unsigned("!=", wanted, _splat(kind, -1))
            one = at.zext(at.and_(at.icmp_unsigned("!=", value, wanted), matters), kind)
            at.store(at.add(at.load(wrong, typ=kind), one), wrong)
        count = _folded(at, at.load(wrong, typ=kind), at.add)
        at.store(at.zext(count, NUMBERS) if self.cells is BYTES else count, frame["wrong"], align=4)

    # ---- arrays, vectors and loops

    def _element(self, pointer: Any, index: Any, kind: ir.Type) -> Any:
        return self.at.gep(pointer, [index], inbounds=True, source_etype=kind)

    def _load(self, kind: ir.Type, pointer: Any) -> Any:
        return self.at.load(pointer, typ=kind, align=4)

    def _get(self, array: Any, index: Any) -> Any:
        return self._load(self.cells, self._element(array, index, self.cells))

    def _put(self, array: Any, index: Any, value: Any) -> None:
        self.at.store(value, self._element(array, index, self.cells), align=4)

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


@contextmanager
def _loop(at: ir.IRBuilder, count: Any, after: ir.Block | None = None) -> Iterator[Any]:
    """Repeat the code inside for the numbers below a count."""
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


def _line_of(kind: ir.IntType) -> ir.VectorType:
    """A cache line."""
    return ir.VectorType(kind, LINE * 32 // kind.width)


def _spread(at: ir.IRBuilder, value: Any, kind: ir.VectorType) -> Any:
    """The same number in every place of a vector."""
    one = at.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
    return _shuffled(at, one, [0] * kind.count)


def _repeated(at: ir.IRBuilder, lanes: Any) -> Any:
    """A line that holds a vector of bytes four times."""
    return _shuffled(at, lanes, list(range(LANES)) * QUARTERS)


def _folded(at: ir.IRBuilder, line: Any, join: Callable[[Any, Any], Any]) -> Any:
    """For every lane its cells of a line, joined."""
    while line.type.count > LANES:
        half = line.type.count // 2
        line = join(_shuffled(at, line, range(half)), _shuffled(at, line, range(half, 2 * half)))
    return line


def _shuffled(at: ir.IRBuilder, vector: Any, places: Iterable[int]) -> Any:
    mask = [ir.Constant(I32, place) for place in places]
    return at.shuffle_vector(
        vector, ir.Constant(vector.type, ir.Undefined), ir.Constant(ir.VectorType(I32, len(mask)), mask)
    )


def _splat(kind: ir.VectorType, literal: int) -> ir.Constant:
    return ir.Constant(kind, [ir.Constant(kind.element, literal)] * kind.count)


def _intrinsic(at: ir.IRBuilder, name: str, result: ir.Type, arguments: tuple[ir.Type, ...]) -> ir.Function:
    known = at.module.globals.get(name)
    return known if known is not None else ir.Function(at.module, ir.FunctionType(result, arguments), name)


def _vector_of_addresses(at: ir.IRBuilder, pointer: Any, index: Any) -> Any:
    """The addresses of the numbers at a vector of indices, which llvmlite takes for one address."""
    addresses: Any = at.gep(pointer, [index], source_etype=I32)
    addresses.type = POINTERS
    return addresses
