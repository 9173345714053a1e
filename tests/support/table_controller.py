"""A controller made from a program: its table, looked up by state and flags, as one-hot wires.

With it the soft and the hard machine run exactly this program. On flags and states that are certain everything is
exact: the chosen source of a wire has probability 1, the halting scalar is as good as infinite. On soft flags the
table is interpolated multilinearly: every row has the product of its flags' probabilities as its weight, as if the
flags were independent, times the probability of its state. Nothing in it can be trained.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nram.errors import UsageError
from nram.machine.controllers import Decision, State
from nram.machine.wiring import UNREACHABLE, Wiring
from nram.programs.ir import CONSTANTS, Constant, Output, Program, Register, Row, Value

CERTAIN = -UNREACHABLE  # a halting scalar whose sigmoid is exactly 1


class TableController(eqx.Module):
    """For each state and each pattern of flags the sources of all wires, whether to halt, and the next state.

    Patterns are numbered as binary numbers, the first register's flag the highest digit, 1 for 'it is 0'.
    """

    sources: Array  # int32 [S, 2^R, wires]
    halts: Array  # bool [S, 2^R]
    following: Array  # int32 [S, 2^R]

    def prepare(self, wiring: Wiring) -> "TableController":
        return self

    def start(self) -> State:
        return (jax.nn.one_hot(0, self.halts.shape[0]),)

    def decide(self, wiring: Wiring, flags: Array, state: State) -> tuple[Decision, State]:
        share = state[0].astype(flags.dtype)[:, None] * _pattern_probabilities(flags)[None, :]  # [S, 2^R]
        wires = jnp.einsum("sp,spwv->wv", share, jax.nn.one_hot(self.sources, wiring.values, dtype=flags.dtype))
        halt = jnp.sum(jnp.where(self.halts, share, 0))
        following = jnp.einsum("sp,spt->t", share, jax.nn.one_hot(self.following, share.shape[0], dtype=flags.dtype))
        return Decision(_log(wires), _log(halt) - _log(1 - halt)), (following,)

    def harden(self, state: State) -> State:
        return (jax.nn.one_hot(jnp.argmax(state[0]), state[0].shape[0], dtype=state[0].dtype),)


def table_controller(program: Program, wiring: Wiring) -> TableController:
    """The controller that runs this program in this wiring; raises `UsageError` if a row does not fit into it.

    The operations of a row must appear among the wiring's modules in their order. A constant comes from a ZERO, ONE or
    TWO before the module that uses it, or, if it is 0, from a register that is 0 under the row's flags. A WRITE that
    the row does not have writes back what a READ before it found.
    """
    registers, states = len(program.registers), len(program.states)
    if registers != wiring.registers:
        raise UsageError(
            f"the program has {registers} registers and the wiring {wiring.registers}: both must have as many"
        )
    patterns = list(itertools.product((False, True), repeat=registers))
    sources = np.zeros((states, len(patterns), wiring.wires), np.int32)
    halts = np.zeros((states, len(patterns)), bool)
    following = np.zeros((states, len(patterns)), np.int32)
    for state in range(states):
        for pattern, zero in enumerate(patterns):
            index = program.row_for(state, zero)
            row = program.states[state][index]
            try:
                sources[state, pattern] = _row_sources(row, wiring, zero)
            except _Misfit as misfit:
                raise UsageError(f"state {state}, row {index + 1} does not fit into the wiring: {misfit}") from None
            halts[state, pattern], following[state, pattern] = row.halt, row.next_state
    return TableController(jnp.asarray(sources), jnp.asarray(halts), jnp.asarray(following))


def _pattern_probabilities(flags: Array) -> Array:
    probabilities = jnp.ones(1, flags.dtype)
    for flag in flags:
        probabilities = (probabilities[:, None] * jnp.stack([1 - flag, flag])[None, :]).ravel()
    return probabilities


def _log(probability: Array) -> Array:
    """The logarithm, finite also for 0: softmax and sigmoid turn it into 0, and gradients are not NaN."""
    positive = probability > 0
    return jnp.where(positive, jnp.log(jnp.where(positive, probability, 1.0)), -CERTAIN)


class _Misfit(Exception):
    """The reason why a row does not fit."""


def _row_sources(row: Row, wiring: Wiring, zero: tuple[bool, ...]) -> list[int]:
    """The source of every wire, in the wiring's order."""
    module_of = _place_operations(row, wiring, zero)
    operation_at = {module: row.operations[index] for index, module in enumerate(module_of)}

    def source(value: Value, before: int) -> int:
        match value:
            case Register(index):
                return index
            case Output(index):
                return wiring.registers + module_of[index]
            case Constant(number):
                found = _constant_source(number, wiring, zero, before)
                if found is None:
                    raise _Misfit(f"a register takes the constant {number}, and no module gives it")
                return found

    sources: list[int] = []
    reading: tuple[int, int] | None = None  # the last READ since which nothing was written: its pointer, its output
    for position, module in enumerate(wiring.modules):
        operation = operation_at.get(position)
        if operation is not None:
            chosen = [source(argument, position) for argument in operation.arguments]
        elif module.memory == "writes":
            if reading is None:
                raise _Misfit(f"module {position + 1} is a WRITE that it does not use, and no READ is just before it")
            chosen = list(reading)
        else:
            chosen = [0] * module.arity
        if module.memory == "reads":
            reading = chosen[0], wiring.registers + position
        elif operation is not None and module.memory == "writes":
            reading = None
        sources += chosen
    return sources + [source(value, len(wiring.modules)) for value in row.registers]


def _place_operations(row: Row, wiring: Wiring, zero: tuple[bool, ...]) -> list[int]:
    """The position of the module that does each operation: the first one after the previous operation's that can have
    the operation's constants."""
    positions: list[int] = []
    free = 0
    for index, operation in enumerate(row.operations):
        needed = [argument.value for argument in operation.arguments if isinstance(argument, Constant)]
        for position in range(free, len(wiring.modules)):
            if wiring.modules[position].name == operation.module and all(
                _constant_source(constant, wiring, zero, position) is not None for constant in needed
            ):
                positions.append(position)
                free = position + 1
                break
        else:
            behind = f" after module {free}" if free else ""
            having = f" with {' and '.join(map(str, needed))} to be had before it" if needed else ""
            raise _Misfit(f"operation {index + 1} needs a {operation.module}{behind}{having}")
    return positions


def _constant_source(number: int, wiring: Wiring, zero: tuple[bool, ...], before: int) -> int | None:
    """The value from which a module at the position `before` can take a constant, or None."""
    for position, module in enumerate(wiring.modules[:before]):
        if CONSTANTS.get(module.name) == number:
            return wiring.registers + position
    return zero.index(True) if number == 0 and True in zero else None
