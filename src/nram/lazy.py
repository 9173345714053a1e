"""Heavy libraries, each imported when something of it is first used.

    from nram.lazy import jax, jnp

Tasks and modules are listed, loaded and sampled without any of them, yet their files also serve JAX and z3.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import z3
else:

    class _Lazy:
        def __init__(self, name: str):
            self.name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self.name), attribute)

    jax, jnp, np, z3 = map(_Lazy, ("jax", "jax.numpy", "numpy", "z3"))

__all__ = ["jax", "jnp", "np", "z3"]
