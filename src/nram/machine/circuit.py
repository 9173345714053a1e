"""One fuzzy circuit: from wire weights, registers and memory to new registers and memory.

These are equations 1 and 3 of the paper. The backward pass is written by hand, for two reasons. First, the
paper's activation clipping is part of it: each coordinate of the gradients with respect to registers,
memory, module inputs and module outputs is cropped to [-C1, C1]. Second, it is several times faster on a
CPU. The gradient of the mixing has the same form as the mixing: the value v receives the sum over wires of
w[wire, v] g[wire], and we go from the last wire to the first. Where JAX derives it, XLA pads and adds the
whole matrix of values once for every wire.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from nram.machine.distributions import certain, renormalise
from nram.machine.wiring import Wiring


def run_circuit(
    wiring: Wiring,
    renormalising: bool,
    clip: Array,
    weights: Array,
    registers: Array,
    memory: Array,
    taken: Array | None = None,
    complete: bool = False,
) -> tuple[Array, Array, Array | None]:
    """New registers [R, M] and memory [M, M] from wire weights [wires, values]; `clip` is C1.

    With `taken`, wires mix values by those weights, and pass gradients by `weights` (a straight-through estimator).
    If `taken` is certain, the forward pass is the discrete machine, and modules that are not in use still learn.
    If `complete`, the third result is the output of every module [modules, M], with its gradient; otherwise None.
    """
    taken = weights if taken is None else taken
    return _circuit(wiring, renormalising, complete, clip, weights, taken, registers, memory)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _circuit(wiring, renormalising, complete, clip, weights, taken, registers, memory) -> Any:
    return _forward_keeping(wiring, renormalising, complete, clip, weights, taken, registers, memory)[0]


def _forward(wiring: Wiring, renormalising: bool, weights: Array, registers: Array, memory: Array):
    size = memory.shape[-1]
    tidy = renormalise if renormalising else lambda x: x
    zero = certain(jnp.zeros((), jnp.int32), size, registers.dtype)
    values = list(registers)
    calls = []  # for each module: the memory that it saw, and its arguments
    wire = 0
    for module in wiring.modules:
        stacked = jnp.stack(values)  # the compiler drops it if no wire reads it
        arguments = []
        for _ in range(module.arity):
            arguments.append(weights[wire, : len(values)] @ stacked)
            wire += 1
        calls.append((memory, tuple(arguments)))
        if module.memory == "writes":
            memory = module.fuzzy(jnp, memory, *arguments)
            values.append(zero)
        elif module.memory == "reads":
            values.append(tidy(module.fuzzy(jnp, memory, *arguments)))
        elif module.arity:
            values.append(tidy(module.fuzzy(jnp, size, *arguments)))
        else:
            values.append(module.fuzzy(jnp, size).astype(registers.dtype))
    stacked = jnp.stack(values)
    new_registers = tidy(weights[wire:] @ stacked)
    return new_registers, memory, (stacked, calls)


def _forward_keeping(wiring: Wiring, renormalising: bool, complete: bool, clip, weights, taken, registers, memory):
    new_registers, new_memory, kept = _forward(wiring, renormalising, taken, registers, memory)
    outputs = kept[0][wiring.registers :] if complete else None
    return (new_registers, new_memory, outputs), (clip, weights, kept)


def _backward(wiring: Wiring, renormalising: bool, complete: bool, residuals, gradients):
    clip, weights, (values, calls) = residuals
    register_gradient, memory_gradient, outputs_gradient = gradients
    size = values.shape[-1]

    def crop(gradient: Array) -> Array:
        return jnp.clip(gradient, -clip, clip)

    memory_gradient = crop(memory_gradient)
    received = list(crop(register_gradient))  # gradients with respect to the wires from `wire` on
    wire = wiring.wires - wiring.registers
    for index in reversed(range(len(wiring.modules))):
        module, (memory, arguments) = wiring.modules[index], calls[index]
        if not module.arity:
            continue
        if module.memory == "writes":
            _, pull = jax.vjp(partial(module.fuzzy, jnp), memory, *arguments)
            memory_gradient, *argument_gradients = pull(memory_gradient)
        else:
            output_gradient = weights[wire:, wiring.registers + index] @ jnp.stack(received)
            output_gradient = crop(output_gradient + outputs_gradient[index] if complete else output_gradient)
            if module.memory == "reads":
                _, pull = jax.vjp(partial(module.fuzzy, jnp), memory, *arguments)
                from_reading, *argument_gradients = pull(output_gradient)
                memory_gradient = memory_gradient + from_reading
            else:
                _, pull = jax.vjp(partial(module.fuzzy, jnp, size), *arguments)
                argument_gradients = pull(output_gradient)
        received = [crop(gradient) for gradient in argument_gradients] + received
        wire -= module.arity
    stacked = jnp.stack(received)
    weight_gradient = stacked @ values.T
    register_gradient = weights[:, : wiring.registers].T @ stacked
    return jnp.zeros_like(clip), weight_gradient, jnp.zeros_like(weights), register_gradient, memory_gradient


_circuit.defvjp(_forward_keeping, _backward)
