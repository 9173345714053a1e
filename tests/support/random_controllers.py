"""Controllers with random weights."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from nram.machine import Wiring, init_controller


def random_controllers(
    kind, wiring: Wiring, seed: int, shape: tuple[int, ...] = (), *, output_scale=1.0, halt_scale=1.0, halt_bias=0.0
) -> Any:
    """Controllers with random weights and biases, `shape` of them stacked, made without compiling anything.

    `output_scale` is that of the output layer, `halt_scale` and `halt_bias` concern its halting scalar.
    """
    make = partial(init_controller, kind, wiring, hidden=8, states=3)
    template = jax.eval_shape(lambda key: make(key=key), jax.random.key(0))
    rng = np.random.default_rng(seed)

    def fill(leaf) -> np.ndarray:
        scale = leaf.shape[0] ** -0.5 if len(leaf.shape) == 2 else 0.3
        return rng.normal(scale=scale, size=(*shape, *leaf.shape))

    controller = jax.tree.map(fill, template)
    weight, bias = output_scale * controller.output.weight, output_scale * controller.output.bias
    weight[..., wiring.logits] *= halt_scale
    bias[..., wiring.logits] = halt_scale * bias[..., wiring.logits] + halt_bias
    controller = eqx.tree_at(lambda c: (c.output.weight, c.output.bias), controller, (weight, bias))
    return jax.tree.map(jnp.asarray, controller)
