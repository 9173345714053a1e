"""The first plain training step of this project, frozen: the baseline for later speed measurements.

It imports nothing from `nram`, on purpose. Do not improve it. One member is a single-example
function under `vmap`; a population is a second `vmap`. It has everything the
paper's training step has: fuzzy circuit, learned halting, renormalising, activation clipping,
entropy bonus and global clipping with Adam.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

ARITIES = (1, 0, 0, 0, 1, 2, 2, 1, 2, 2, 2, 2, 2, 2)  # the paper's fourteen modules, in its order
READ, ZERO, ONE, TWO, INC, ADD, SUB, DEC, LESS, LESS_EQUAL, EQUAL, MIN, MAX, WRITE = range(14)


@jax.custom_vjp
def renormalise(x):
    return x / jnp.sum(x, axis=-1, keepdims=True)


renormalise.defvjp(lambda x: (renormalise(x), None), lambda _, g: (g,))


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def clip_gradient(x, limit):
    return x


clip_gradient.defvjp(lambda x, limit: (x, None), lambda limit, _, g: (jnp.clip(g, -limit, limit),))


def wire_lengths(registers, repeats):
    """How many values each softmax chooses from: module arguments in order, then the registers."""
    arities = ARITIES * repeats
    lengths = [registers + i for i, arity in enumerate(arities) for _ in range(arity)]
    return lengths + [registers + len(arities)] * registers


def init_params(key, registers, repeats, hidden):
    sizes = [registers, hidden, hidden, sum(wire_lengths(registers, repeats)) + 1]
    params = []
    for fan_in, fan_out in zip(sizes[:-1], sizes[1:], strict=True):
        key, sub = jax.random.split(key)
        params.append((jax.random.normal(sub, (fan_in, fan_out)) / np.sqrt(fan_in), jnp.zeros(fan_out)))
    return params


def rotations(a):
    """Row i is `a` rotated left by i: M copies in rows of M + 1 shift by one position per row."""
    m = a.shape[0]
    return jnp.tile(a, m + 1).reshape(m, m + 1)[:, :m]


def subtract(a, b):
    return b @ rotations(a)


def run_module(kind, memory, args):
    """The module's output and the memory after it."""
    m = memory.shape[0]
    if kind == READ:
        return args[0] @ memory, memory
    if kind in (ZERO, ONE, TWO):
        return jax.nn.one_hot(kind - ZERO, m, dtype=memory.dtype), memory
    if kind == INC:
        return jnp.roll(args[0], 1), memory
    if kind == DEC:
        return jnp.roll(args[0], -1), memory
    a, b = args
    if kind == ADD:
        return subtract(a, jnp.roll(b[::-1], 1)), memory
    if kind == SUB:
        return subtract(a, b), memory
    if kind in (LESS, LESS_EQUAL, EQUAL):
        below = {LESS: jnp.cumsum(a) - a, LESS_EQUAL: jnp.cumsum(a), EQUAL: a}[kind]
        p = jnp.dot(below, b)
        return jnp.zeros(m, memory.dtype).at[0].set(1 - p).at[1].set(p), memory
    if kind == MIN:
        above_a, above_b = jnp.cumsum(a[::-1])[::-1], jnp.cumsum(b[::-1])[::-1]
        return a * above_b + b * (above_a - a), memory
    if kind == MAX:
        below_a, below_b = jnp.cumsum(a), jnp.cumsum(b)
        return a * below_b + b * (below_a - a), memory
    return jax.nn.one_hot(0, m, dtype=memory.dtype), (1 - a)[:, None] * memory + jnp.outer(a, b)


def timestep(params, repeats, clip, registers, memory):
    """One timestep of one example: new registers, new memory, halting logit, mean wire entropy."""
    count, m = registers.shape
    x = registers[:, 0]
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    logits = x @ params[-1][0] + params[-1][1]
    lengths = wire_lengths(count, repeats)
    ends = np.cumsum(lengths)
    wires = [renormalise(jax.nn.softmax(logits[end - n : end])) for n, end in zip(lengths, ends, strict=True)]
    entropy = sum(-jnp.vdot(jnp.asarray(w), jnp.log(jnp.maximum(w, 1e-6))) for w in wires) / len(wires)
    guard = lambda v: clip_gradient(v, clip)  # noqa: E731
    values, wire = list(guard(registers)), iter(wires)
    for kind in list(range(14)) * repeats:
        stacked = jnp.stack(values)
        args = [guard(next(wire) @ stacked) for _ in range(ARITIES[kind])]
        output, memory = run_module(kind, memory, args)
        values.append(guard(renormalise(output)))
    stacked = jnp.stack(values)
    registers = renormalise(jnp.stack([next(wire) @ stacked for _ in range(count)]))
    return registers, guard(memory), logits[-1], entropy


def episode_loss(params, repeats, steps, clip, entropy_weight, start, target, cells):
    """Expected negative log-likelihood over the output cells, less the entropy bonus, of one example."""
    m = start.shape[0]
    registers = jax.nn.one_hot(jnp.zeros(params[0][0].shape[0], int), m)
    memory = jax.nn.one_hot(start, m)
    wanted = jax.nn.one_hot(target, m)

    def body(carry, t):
        registers, memory, running = carry
        registers, memory, x, entropy = timestep(params, repeats, clip, registers, memory)
        stop = jnp.where(t == steps - 1, 1.0, jax.nn.sigmoid(x))
        nll = -jnp.log(jnp.maximum(jnp.sum(memory * wanted, axis=-1), 1e-6))  # pyright: ignore[reportOperatorIssue]
        cost = running * stop * jnp.sum(nll * cells) / jnp.sum(cells)
        return (registers, memory, running * (1 - stop)), (cost, entropy)

    _, (costs, entropies) = jax.lax.scan(body, (registers, memory, jnp.ones(())), jnp.arange(steps))
    return jnp.sum(costs) - entropy_weight * jnp.mean(entropies)


def batch_loss(params, batch, repeats, steps, clip=1.0, entropy_weight=0.1):
    one = partial(episode_loss, params, repeats, steps, clip, entropy_weight)
    return jnp.mean(jax.vmap(one)(*batch))


OPTIMISER = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(5e-3))


def build(repeats, steps):
    """Compiled forward and training functions of a population: leading axis of every argument."""
    loss = partial(batch_loss, repeats=repeats, steps=steps)

    def train(params, state, batch):
        value, gradient = jax.value_and_grad(loss)(params, batch)
        updates, state = OPTIMISER.update(gradient, state)
        return optax.apply_updates(params, updates), state, value

    return jax.jit(jax.vmap(loss)), jax.jit(jax.vmap(train))
