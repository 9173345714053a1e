"""Every fuzzy meaning and its gradient, by all three implementations of the algebra: the same as JAX derives."""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from llvmlite import ir
from support.emulated_gpu import HostWarps

from nram.algebra import Arrays, d, evaluate
from nram.llvm import POINTER, VOID, loaded, object_code
from nram.machine.kernels.cpu.fuzzy import Fuzzy as LaneFuzzy
from nram.machine.kernels.cpu.lanes import Lanes
from nram.machine.kernels.gpu.arrangement import QUAD
from nram.machine.kernels.gpu.fuzzy import Fuzzy as WarpFuzzy
from nram.machine.kernels.gpu.shape import LANES, up
from nram.modules import PAPER_MODULES, Module

FORMULAS = [module for module in PAPER_MODULES if module.memory == "nothing" and module.arity]
EXAMPLES = 4
ALIGNMENT = 64


def by_jax(module: Module, rows: np.ndarray) -> list[np.ndarray]:
    """The output and the gradients of the arguments. `rows` are [arguments and the output's gradient, M]."""
    *arguments, gradient = rows
    output, pull = jax.vjp(lambda *given: module.fuzzy(jnp, len(gradient), *given), *map(jnp.asarray, arguments))
    return [np.asarray(output), *map(np.asarray, pull(jnp.asarray(gradient)))]


def by_arrays(module: Module, rows: np.ndarray) -> list[np.ndarray]:
    arrays: Any = Arrays(np, rows.shape[-1])
    operations = {name: getattr(arrays, name) for name in dir(arrays) if not name.startswith("_")}
    operations |= {
        "multiply": np.multiply,
        "multiply_add": lambda x, y, z: x * y + z,
        "slope": lambda gradient: gradient[1] - gradient[0],
    }
    formula: Any = module.fuzzy
    terms = [formula.output(module.arity), *formula.gradients(module.arity)]
    known = {d.argument(index): row for index, row in enumerate(rows)}
    return [evaluate(term, operations, known) for term in terms]


def runner(code) -> Callable[..., None]:
    """The function whose code ends here, to be called with its buffers."""
    code.at.ret_void()
    engine = loaded(object_code(code.function.module))
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(code.function.args))
    run = kind(engine.get_function_address(code.function.name))
    return lambda *buffers: engine and run(*(buffer.ctypes.data for buffer in buffers))


def function_of(count: int) -> ir.Function:
    return ir.Function(ir.Module("fuzzy"), ir.FunctionType(VOID, [POINTER] * count), "run")


def room(*shape: int) -> np.ndarray:
    """Zeros at an aligned address."""
    whole = np.zeros(np.prod(shape, dtype=int) + ALIGNMENT)
    start = -whole.ctypes.data % ALIGNMENT // whole.itemsize
    return whole[start : start + np.prod(shape, dtype=int)].reshape(shape)


def by_lanes(module: Module, examples: np.ndarray) -> np.ndarray:
    """[examples, rows, M] -> [examples, output and gradients, M], examples in lanes."""
    width, count, size = examples.shape
    given, made, scratch = room(count, size, width), room(count, size, width), room(2, size, width)
    given[:] = np.moveaxis(examples, 0, -1)
    code = Lanes(function_of(3), "float64", width, 12)
    source, target, spare = code.function.args
    fuzzy = LaneFuzzy(code, size, False, spare, code.number(np.inf))
    rows, (out, *received) = ([code.row(begin, i * size) for i in range(count)] for begin in (source, target))
    fuzzy.forward(module, rows[:-1], out, None, None)
    fuzzy.backward(module, rows[:-1], rows[-1], received, None, None)
    runner(code)(given, made, scratch)
    return np.moveaxis(made, -1, 0)


def by_warps(module: Module, examples: np.ndarray) -> np.ndarray:
    """The same, a warp per example."""
    _, count, size = examples.shape
    row = up(size, LANES)
    columns = row // LANES
    code = HostWarps(function_of(3), "float64")
    source, target, spare = code.function.args
    shape: Any = SimpleNamespace(size=size, columns=columns, row=row, rows=up(size, QUAD), renormalising=False)
    fuzzy, tapes = WarpFuzzy(code, shape, spare, code.number(np.inf)), cast(Any, None)
    *arguments, gradient = (code.columns(source, i * row, columns) for i in range(count))
    found = [fuzzy.forward(module, arguments, tapes), *fuzzy.backward(module, arguments, gradient, tapes)]
    for i, result in enumerate(found):
        code.store_columns(result, target, i * row)
    run, results = runner(code), []
    for example in examples:
        given, made = room(count, row), room(count, row)
        given[:, :size] = example
        run(given, made, room(row))
        results.append(made[:, :size])
    return np.array(results)


@pytest.mark.parametrize("size", [3, 8, 33])
@pytest.mark.parametrize("module", FORMULAS, ids=lambda module: module.name)
def test_outputs_and_gradients_are_those_of_jax(module, size, float64):
    rng = np.random.default_rng(size)
    examples = rng.dirichlet(np.ones(size), (EXAMPLES, module.arity + 1))
    examples[:, -1] = rng.normal(size=(EXAMPLES, size))
    expected = np.array([by_jax(module, example) for example in examples])
    arrays = np.array([by_arrays(module, example) for example in examples])
    for found in (arrays, by_lanes(module, examples), by_warps(module, examples)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
