"""Lanes of a GPU's warp need not be in step: what one stores, others may read only after a sync, and vice versa.

The code is written once more by a back end that notes, for every region of a warp's shared memory, what has happened to
it since the last sync. Loops are written twice in a row, so that the end of one round meets the beginning of the next.
"""

from collections import defaultdict
from typing import Any

import pytest
from llvmlite import ir
from support.emulated_gpu import HostWarps, emulated_shape

from nram.extensions import select_modules
from nram.llvm import I32, POINTER, VOID
from nram.machine.kernels.common.specification import specify
from nram.machine.kernels.gpu.frame import Frame, Position, Tables
from nram.machine.kernels.gpu.kernel import run_example
from nram.machine.wiring import Wiring
from nram.modules import MODULE_NAMES


class WatchedWarps(HostWarps):
    """Vector code that is never run, and the hazards in it."""

    def __init__(self, function, precision):
        super().__init__(function, precision)
        self.regions: dict[int, str] = {}
        self.stored: dict[str, set[str]] = defaultdict(set)
        self.read: dict[str, set[str]] = defaultdict(set)
        self.hazards: set[str] = set()
        self.syncs = 0

    def region(self, pointer) -> str | None:
        while id(pointer) not in self.regions:
            if not isinstance(pointer, ir.GEPInstr):
                return None
            pointer = pointer.pointer
        return self.regions[id(pointer)]

    def note(self, pointer, how: str, stores: bool) -> None:
        """Rows of the tape are read and stored by the same lanes, and so is what each lane has of its own: an expected
        value in the tape, a wire. All else may be by others."""
        region = self.region(pointer)
        if region is None:
            return
        own, other = (self.stored, self.read) if stores else (self.read, self.stored)
        for former in other[region]:
            if how != former or how == "uniform" or (how == "row" and region != "tape"):
                self.hazards.add(f"{region}: {how} {'stored' if stores else 'read'} after {former}")
        own[region].add(how)

    def sync(self) -> None:
        self.syncs += 1
        self.stored.clear()
        self.read.clear()

    def load(self, pointer, offset=0):
        self.note(pointer, "row", stores=False)
        return super().load(pointer, offset)

    def store(self, value, pointer, offset=0) -> None:
        self.note(pointer, "row", stores=True)
        super().store(value, pointer, offset)

    def load_each(self, pointer, index, where=None, whole=False):
        self.note(pointer, "each", stores=False)
        return super().load_each(pointer, index, where, whole)

    def store_each(self, value, pointer, index, where=None, whole=False) -> None:
        self.note(pointer, "each", stores=True)
        super().store_each(value, pointer, index, where, whole)

    def load_scalar(self, pointer, offset=0, kind=None):
        self.note(pointer, "uniform", stores=False)
        return super().load_scalar(pointer, offset, kind)

    def store_uniform(self, value, pointer, offset=0) -> None:
        self.note(pointer, "uniform", stores=True)
        super().store_uniform(value, pointer, offset)

    def quad(self, pointer, offset=0):
        self.note(pointer, "uniform", stores=False)
        return super().quad(pointer, offset)

    def repeat(self, *arguments, **more):
        super().repeat(*arguments, **more)
        return super().repeat(*arguments, **more)


def watched(names, controller: Any = "mlp", **changes) -> WatchedWarps:
    settings: dict[str, Any] = {"hidden": 40, "states": 3, "size": 6, "steps": 3, "batch": 4, "renormalising": True}
    settings |= {"controller": controller, "loss": "expected"} | changes
    shape = emulated_shape(specify(Wiring(3, select_modules(names)), **settings))
    names = list(shape.buffers)
    kind = ir.FunctionType(VOID, [*[POINTER] * (len(names) + 3), I32, I32, I32])
    code = WatchedWarps(ir.Function(ir.Module("watched"), kind, "watched"), shape.precision)
    *pointers, member, block, warp = code.function.args
    table, sources, shared = pointers[len(names) :]
    buffers = dict(zip(names, pointers, strict=False))
    frame = Frame(code, shape, buffers, Tables(table, sources), shared, Position(member, block, warp))
    code.regions = {id(pointer): name for name, pointer in frame.own.items()}
    run_example(frame)
    return code


@pytest.mark.parametrize(("controller", "loss"), [("mlp", "expected"), ("lstm", "average"), ("automaton", "expected")])
def test_no_lane_meets_what_another_does_without_a_sync_between(controller, loss):
    code = watched(MODULE_NAMES, controller, loss=loss)
    assert not code.hazards
    assert code.syncs > 20


@pytest.mark.parametrize("name", ["READ", "WRITE", "MIN"])
def test_a_module_alone_is_as_careful(name):
    assert not watched((name,)).hazards


def test_a_missing_sync_would_be_noticed(monkeypatch):
    monkeypatch.setattr(WatchedWarps, "publish", WatchedWarps.store_columns)
    assert watched(("READ", "WRITE")).hazards
