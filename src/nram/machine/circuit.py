"""One fuzzy circuit: from wire weights, registers and memory to new registers and memory.

Equations 1 and 3 of the paper. The backward pass is written out, for two reasons. The activation
clipping of the paper lives inside it (each coordinate of the gradients with respect to registers,
memory, module inputs and module outputs is cropped to [-C1, C1]). And the gradient of the mixing has
the same shape as the mixing: the value v receives sum over wires of w[wire, v] g[wire], wires taken
from the last to the first. Derived automatically, XLA pads and adds the whole matrix of values once
for every wire, which is several times slower on a CPU.
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
) -> tuple[Array, Array]:
    """New registers [R, M] and memory [M, M] from wire weights [wires, values]; `clip` is C1.

    With `taken`, wires mix values by those weights and pass gradients by `weights`: where the former are certain the
    machine is the discrete one, and modules that are not in use yet still learn what they would be good for.
    """
    return _circuit(wiring, renormalising, clip, weights, weights if taken is None else taken, registers, memory)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _circuit(wiring, renormalising, clip, weights, taken, registers, memory) -> Any:
    new_registers, new_memory, _ = _forward(wiring, renormalising, taken, registers, memory)
    return new_registers, new_memory


def _forward(wiring: Wiring, renormalising: bool, weights: Array, registers: Array, memory: Array):
    size = memory.shape[-1]
    tidy = renormalise if renormalising else lambda x: x
    zero = certain(jnp.zeros((), jnp.int32), size, registers.dtype)
    values = list(registers)
    calls = []  # per module: the memory it saw and its arguments
    wire = 0
    for module in wiring.modules:
        stacked = jnp.stack(values)  # dropped by the compiler where no wire reads it
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


def _forward_keeping(wiring, renormalising, clip, weights, taken, registers, memory):
    new_registers, new_memory, kept = _forward(wiring, renormalising, taken, registers, memory)
    return (new_registers, new_memory), (clip, weights, kept)


def _backward(wiring: Wiring, renormalising: bool, residuals, gradients):
    clip, weights, (values, calls) = residuals
    register_gradient, memory_gradient = gradients
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
            output_gradient = crop(weights[wire:, wiring.registers + index] @ jnp.stack(received))
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
