"""A block of examples, one per lane: where everything about them lies, step by step.

What the forward and the backward pass of `episode.py` share, as code of one LLVM function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llvmlite import ir

from nram.machine.kernels.cpu.fuzzy import Fuzzy
from nram.machine.kernels.cpu.lanes import I64, POINTER, VOID, Lanes, Value
from nram.machine.kernels.cpu.mixing import Mixing, Wire
from nram.machine.kernels.cpu.networks import Network, Places
from nram.machine.kernels.cpu.shape import KernelShape

PARAMETERS = 6  # weight and bias of three layers
INPUTS = ("order", "memory", "wanted", "shares", "limits", "seeds", "options")
OUTPUTS = ("outcomes", "predicted")
LOSS, ENTROPY, TIME = range(3)  # rows of seeds and outcomes
CLIP, EPSILON, LOG_EPSILON = range(3)  # options


def context_names(shape: KernelShape) -> list[str]:
    """The buffers of a kernel in order: those given, those returned."""
    given = [f"parameter{i}" for i in range(PARAMETERS)] + list(INPUTS)
    gradients = [f"gradient{i}" for i in range(PARAMETERS)] if shape.gradient else []
    return [*given, *OUTPUTS, *gradients, "workspace"]


class Block:
    """One block of examples in the function that runs it."""

    def __init__(self, to: Lanes, shape: KernelShape):
        self.to = to
        self.shape = shape
        context, self.first, self.slot_number = to.function.args
        names = context_names(shape)
        self.buffers = {name: self._pointer(context, number) for number, name in enumerate(names)}
        workspace = self.buffers["workspace"]
        lanes = shape.vectors.lanes
        self.slots, self.records, self.versions, block = (
            to.place(workspace, shape.workspace[name] * lanes) for name in ("slots", "records", "versions", "block")
        )
        self.own = {name: to.row(block, number) for name, number in shape.block.items()}
        options = self.buffers["options"]
        clip, self.epsilon, self.log_epsilon = (
            to.spread(to.load_scalar(options, number)) for number in (CLIP, EPSILON, LOG_EPSILON)
        )
        self.fuzzy = Fuzzy(to, shape.size, shape.renormalising, self.own["double"], clip)
        self.mixing = Mixing(to, shape)
        self.network = Network(to, shape, [self.buffers[f"parameter{i}"] for i in range(PARAMETERS)])
        self.wire_groups = _wire_groups(shape)
        self.limit: Value = None  # of every example; it and the seeds are known once the examples are read
        self.seeds: list[Value] = []
        self._define_wires()

    def _pointer(self, context: Value, number: int) -> Value:
        address = self.to.at.gep(context, [self.to.index(number)], inbounds=True, source_etype=POINTER)
        return self.to.at.load(address, align=8, typ=POINTER)

    # Where things are at step t

    def record(self, step: Value) -> dict[str, Value]:
        to, shape = self.to, self.shape
        begin = to.row(self.records, to.at.mul(step, to.index(shape.record["end"] if shape.gradient else 0)))
        return {name: to.row(begin, number) for name, number in shape.record.items()}

    def memory(self, step: Value, write: int) -> Value:
        """The memory in step t after so many WRITEs."""
        to, shape = self.to, self.shape
        if not shape.gradient:
            return self.versions
        version = to.at.add(to.at.mul(step, to.index(shape.writes)), to.index(write))
        return to.row(self.versions, to.at.mul(version, to.index(shape.cells)))

    def slot(self, step: Value) -> Value:
        """A narrow block puts several steps into one slot, side by side."""
        to, shape = self.to, self.shape
        if not shape.gradient:
            return self.slots
        lanes = shape.vectors.lanes
        packed = lanes // to.width
        number = to.at.add(self.slot_number, to.at.udiv(step, to.index(packed)))
        begin = to.place(self.slots, to.at.mul(number, to.index(shape.slot * lanes)))
        return to.row(begin, to.at.urem(step, to.index(packed)))

    def places(self, step: Value) -> Places:
        record = self.record(step)
        return Places(
            self.slot(step),
            record["controller"],
            record["values"],
            self.own["state"],
            self.own["state_gradient"],
            self.own["register_gradient"],
            self.own["input_gradient"],
        )

    # What both passes do

    def clear(self, place: Value, count: int) -> None:
        self.network.clear(place, count)

    def options(self) -> Value:
        return self.to.place(self.buffers["options"], LOG_EPSILON)

    def wires(self, group: range, logits: Value, record: dict[str, Value]) -> list[Value]:
        """For the functions of wires: their length, and where each finds its logits, weights and norm."""
        to, shape = self.to, self.shape
        found = [to.index(shape.wiring.lengths[group[0]])]
        for wire in group:
            start = shape.starts[wire]
            found += [
                to.row(logits, start, self.network.stride),
                to.row(record["weights"], start),
                to.row(record["norms"], wire),
            ]
        return found

    def each_wanted(self, body: Callable[[Value, Value], None]) -> None:
        """`body(place of a lane's expected value in the memory, place of the cell's lane)`."""
        to = self.to

        def cell(c: Value, _: list[Value]) -> list[Value]:
            for lane in range(to.width):
                at = to.at.add(to.at.mul(c, to.index(to.width)), to.index(lane))
                body(to.at.zext(to.load_whole(self.own["wanted"], at), I64), at)
            return []

        to.repeat(self.shape.size, cell)

    # Functions of their own, called for every group of wires

    def _define_wires(self) -> None:
        self.choose, self.choose_back = {}, {}
        for count in {len(group) for group in self.wire_groups} - {0}:
            kinds = [POINTER, I64] + [POINTER] * (3 * count)
            with self._function(f"choose{self.to.width}_{count}", self.to.vector, kinds) as to:
                floor = to.spread(to.load_scalar(to.function.args[0]))
                length, wires = to.function.args[1], self._chosen(to, count)
                to.at.ret(Mixing(to, self.shape).choose(wires, length, floor))
            self.choose[count] = to.function
            if not self.shape.gradient:
                continue
            kinds += [POINTER] * (count + 1)
            with self._function(f"choose_back{self.to.width}_{count}", VOID, kinds) as to:
                floor = to.spread(to.load_scalar(to.function.args[0]))
                length, wires = to.function.args[1], self._chosen(to, count)
                to_entropy, *gradients = to.function.args[2 + 3 * count :]
                Mixing(to, self.shape).choose_back(wires, length, gradients, to.load(to_entropy), floor)
                to.at.ret_void()
            self.choose_back[count] = to.function

    def _chosen(self, to: Lanes, count: int) -> list[Wire]:
        places = to.function.args[2 : 2 + 3 * count]
        return [Wire(*places[start : start + 3]) for start in range(0, 3 * count, 3)]

    @contextmanager
    def _function(self, name: str, result: ir.Type, kinds: list[ir.Type]) -> Iterator[Lanes]:
        function = ir.Function(self.to.function.module, ir.FunctionType(result, kinds), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        yield Lanes(function, self.shape.precision, self.to.width, self.to.accumulators)


def _wire_groups(shape: KernelShape) -> list[range]:
    """Wires of the same length that are computed side by side: a module's arguments, then some registers."""
    groups, wire = [], 0
    for module in shape.wiring.modules:
        groups.append(range(wire, wire + module.arity))
        wire += module.arity
    together = 4
    for start in range(wire, wire + shape.registers, together):
        groups.append(range(start, min(start + together, wire + shape.registers)))
    return groups
