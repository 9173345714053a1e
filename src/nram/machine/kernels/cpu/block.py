"""A block of examples, one per lane: where everything about them lies, step by step.

The forward and the backward pass of `episode.py` share this, as code of one LLVM function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from nram.llvm import I64, POINTER, VOID, Value
from nram.machine.kernels.common.code import internal_function
from nram.machine.kernels.common.specification import CLIP, EPSILON, LOG_EPSILON, PARAMETERS
from nram.machine.kernels.cpu.fuzzy import Fuzzy
from nram.machine.kernels.cpu.lanes import Lanes
from nram.machine.kernels.cpu.mixing import Mixing, Wire
from nram.machine.kernels.cpu.networks import Network, StepStorage
from nram.machine.kernels.cpu.shape import KernelShape

REGISTERS_TOGETHER = 4  # registers whose wires are computed side by side


class Block:
    """One block of examples in the function that runs it."""

    def __init__(self, code: Lanes, shape: KernelShape):
        self.code = code
        self.shape = shape
        context, self.first, self.first_slot = code.function.args
        self.buffers = {
            name: code.at.load(code.place(context, index, POINTER), align=8, typ=POINTER)
            for index, name in enumerate(shape.buffers)
        }
        lanes = shape.vectors.lanes
        self.slots, self.records, self.versions, block = (
            code.place(self.buffers["workspace"], shape.workspace[name] * lanes)
            for name in ("slots", "records", "versions", "block")
        )
        self.parts = {name: code.row(block, offset) for name, offset in shape.block.items()}
        clip, self.epsilon, self.log_epsilon = (
            code.spread(code.load_scalar(self.buffers["options"], index)) for index in (CLIP, EPSILON, LOG_EPSILON)
        )
        self.fuzzy = Fuzzy(code, shape.size, shape.renormalising, self.parts["double"], clip)
        self.mixing = Mixing(code, shape)
        self.network = Network(code, shape, [self.buffers[f"parameter{i}"] for i in range(PARAMETERS)])
        self.wire_groups = _wire_groups(shape)
        self.limit: Value = None  # of every example; the limit and the seeds are known once the examples are read
        self.seeds: list[Value] = []
        self._define_wires()

    # Where things are at step t

    def record(self, step: Value) -> dict[str, Value]:
        """The parts of the step's record. Without a backward pass all steps use the same record."""
        code, shape = self.code, self.shape
        start = code.row(self.records, code.at.mul(step, code.index(shape.record["end"] if shape.gradient else 0)))
        return {name: code.row(start, offset) for name, offset in shape.record.items()}

    def memory(self, step: Value, writes: int) -> Value:
        """The version of the memory in step t after so many WRITEs."""
        code, shape = self.code, self.shape
        if not shape.gradient:
            return self.versions
        version = code.at.add(code.at.mul(step, code.index(shape.writes)), code.index(writes))
        return code.row(self.versions, code.at.mul(version, code.index(shape.cells)))

    def slot(self, step: Value) -> Value:
        """The slot of a step. A narrow block puts several steps into one slot, side by side."""
        code, shape = self.code, self.shape
        if not shape.gradient:
            return self.slots
        lanes = shape.vectors.lanes
        packed = lanes // code.width
        index = code.at.add(self.first_slot, code.at.udiv(step, code.index(packed)))
        start = code.place(self.slots, code.at.mul(index, code.index(shape.slot * lanes)))
        return code.row(start, code.at.urem(step, code.index(packed)))

    def places(self, step: Value) -> StepStorage:
        """Where the network reads and writes in a step."""
        record, parts = self.record(step), self.parts
        return StepStorage(
            slot=self.slot(step),
            kept=record["controller"],
            registers=record["values"],
            state=parts["state"],
            state_gradient=parts["state_gradient"],
            register_gradient=parts["register_gradient"],
            input_gradient=parts["input_gradient"],
        )

    # What both passes do

    def clear(self, start: Value, count: int) -> None:
        self.network.clear(start, count)

    def options(self) -> Value:
        return self.code.place(self.buffers["options"], LOG_EPSILON)

    def wires(self, group: range, logits: Value, record: dict[str, Value]) -> list[Value]:
        """Arguments for the functions of wires: their length, and the logits, weights and norm of each."""
        code, shape = self.code, self.shape
        found = [code.index(shape.wiring.lengths[group[0]])]
        for wire in group:
            start = shape.starts[wire]
            found += [
                code.row(logits, start, self.network.stride),
                code.row(record["weights"], start),
                code.row(record["norms"], wire),
            ]
        return found

    def each_wanted(self, body: Callable[[Value, Value], None]) -> None:
        """`body(offset of a lane's expected value in the memory, offset of the lane among all cells)`."""
        code = self.code

        def cell(c: Value, _: list[Value]) -> list[Value]:
            for lane in range(code.width):
                offset = code.at.add(code.at.mul(c, code.index(code.width)), code.index(lane))
                body(code.at.zext(code.load_whole(self.parts["wanted"], offset), I64), offset)
            return []

        code.repeat(self.shape.size, cell)

    # Softmaxes are functions: they are long, and called for every group of wires

    def _define_wires(self) -> None:
        """A softmax, and its backward pass, for every number of wires that are computed side by side.

        choose        (address of log epsilon, length, then of each wire: logits, weights, norm) -> sum of entropies
        choose_back   the same and then: gradient of the entropy, and of each wire the gradient of its weights
        """
        self.choose, self.choose_back = {}, {}
        for count in {len(group) for group in self.wire_groups} - {0}:
            kinds = [POINTER, I64] + [POINTER] * (3 * count)
            code, mixing = self._function(f"choose{self.code.width}_{count}", self.code.vector, kinds)
            floor, length, wires, _ = _arguments(code, count)
            code.at.ret(mixing.choose(wires, length, floor))
            self.choose[count] = code.function
            if not self.shape.gradient:
                continue
            kinds += [POINTER] * (count + 1)
            code, mixing = self._function(f"choose_back{self.code.width}_{count}", VOID, kinds)
            floor, length, wires, (to_entropy, *gradients) = _arguments(code, count)
            mixing.choose_back(wires, length, gradients, code.load(to_entropy), floor)
            code.at.ret_void()
            self.choose_back[count] = code.function

    def _function(self, name: str, result: ir.Type, kinds: Sequence[ir.Type]) -> tuple[Lanes, Mixing]:
        function = internal_function(self.code.function.module, name, result, kinds)
        code = Lanes(function, self.shape.precision, self.code.width, self.code.accumulators)
        return code, Mixing(code, self.shape)


def _arguments(code: Lanes, count: int) -> tuple[Value, Value, list[Wire], Sequence[Value]]:
    floor, length, *rest = code.function.args
    wires = [Wire(*rest[start : start + 3]) for start in range(0, 3 * count, 3)]
    return code.spread(code.load_scalar(floor)), length, wires, rest[3 * count :]


def _wire_groups(shape: KernelShape) -> list[range]:
    """Wires of the same length that are computed side by side: a module's arguments, then some registers."""
    groups, wire = [], 0
    for module in shape.wiring.modules:
        groups.append(range(wire, wire + module.arity))
        wire += module.arity
    end = wire + shape.registers
    return groups + [range(i, min(i + REGISTERS_TOGETHER, end)) for i in range(wire, end, REGISTERS_TOGETHER)]
