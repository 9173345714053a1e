"""The LSTM: a hidden layer, then cells, then the output.

The gates, and the two halves of the cells' input, do not begin at multiples of 32. They move to their lanes through
shared memory.
"""

from __future__ import annotations

from nram.llvm import Value
from nram.machine.kernels.common.lstm import GATES, KEPT, cell_back, cell_forward
from nram.machine.kernels.gpu.networks import Network
from nram.machine.kernels.gpu.shape import LANES


class CellNetwork(Network):
    @property
    def tiles(self) -> int:
        return -(-self.shape.hidden // LANES)

    def start(self) -> list[Value]:
        """The previous output, and the cells."""
        return [self.code.nothing] * (2 * self.tiles)

    def _rows(self, pointer: Value, start: int, count: int) -> list[Value]:
        """`count` numbers from shared memory, in rows of lanes."""
        code = self.code
        tiles = range(-(-count // LANES))
        return [code.part(code.load(pointer, start + tile * LANES), count, tile) for tile in tiles]

    def _second(self, rows: list[Value], state: list[Value], record: Value) -> tuple[list[Value], list[Value]]:
        code, width, layer = self.code, self.shape.hidden, self.shape.layers[1]
        previous, cells = state[: self.tiles], state[self.tiles :]
        code.publish(rows, self.x)
        code.publish(previous, self.x, width)
        rows = self._rows(self.x, 0, 2 * width)
        self._keep(rows, record, layer.x)
        code.publish(rows, self.x)
        code.publish(self._product(layer), self.x)
        gates = [self._rows(self.x, gate * width, width) for gate in range(GATES)]
        said, after = [], []
        for tile, cell in enumerate(cells):
            kept, fresh, output = cell_forward(code, [gate[tile] for gate in gates], cell)
            after.append(fresh)
            said.append(code.part(output, width, tile))
            for index, value in enumerate(kept):
                self._keep([value], record, self._place(index, tile))
        return said, said + after

    def _place(self, number: int, tile: int) -> int:
        """Where a record keeps the gates, the cells before, and tanh of the cells after."""
        return self.shape.record.get("state", 0) + (number * self.tiles + tile) * LANES

    def kept(self, record: Value) -> list[Value]:
        """What the record keeps: the hidden layer's results, then for every tile the values of the cells."""
        code, tiles = self.code, range(self.tiles)
        rows = code.columns(record, self.shape.layers[1].x, self.tiles)
        return rows + [code.load(record, self._place(number, tile)) for tile in tiles for number in range(KEPT)]

    def _second_back(
        self, rows: list[Value], to_state: list[Value], record: Value, kept: list[Value]
    ) -> tuple[list[Value], list[Value]]:
        code, width, layer = self.code, self.shape.hidden, self.shape.layers[1]
        to_previous, to_cells = to_state[: self.tiles], to_state[self.tiles :]
        raw: list[list[Value]] = [[] for _ in range(GATES)]
        before = []
        for tile, (row, carried, to_cell) in enumerate(zip(rows, to_previous, to_cells, strict=True)):
            to_output = code.part(code.add(row, carried), width, tile)
            gates, to_before = cell_back(code, kept[self.tiles + tile * KEPT :][:KEPT], to_output, to_cell)
            for gradients, gate in zip(raw, gates, strict=True):
                gradients.append(gate)
            before.append(to_before)
        for gate, gradients in enumerate(raw):
            code.publish(gradients, self.x, gate * width)
        rows = self._layer_back(layer, self._rows(self.x, 0, GATES * width), record)
        code.publish(rows, self.x)
        to_hidden = [code.part(row, width, tile) for tile, row in enumerate(rows[: self.tiles])]
        return self._rectified_back(to_hidden, kept), self._rows(self.x, width, width) + before
