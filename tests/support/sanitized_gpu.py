"""All cases of the kernels, once each on a GPU: a program to run under `compute-sanitizer`.

    compute-sanitizer --tool memcheck python -m support.sanitized_gpu

A planted fault shows that the tool sees our kernel: `memory` gives it half its workspace, `race` takes away the barrier
after which all warps of a block use the weights.
"""

import sys

import jax
import numpy as np

from nram.machine.kernels.gpu.device import DeviceWarps
from nram.machine.kernels.gpu.shape import WarpShape
from support.kernel_cases import BACKENDS, CASES, Inputs

MEMBERS = 3


def plant(fault: str) -> None:
    if fault == "race":
        DeviceWarps.barrier = lambda self: None
    if fault == "memory":
        whole = WarpShape.workspace_scalars
        WarpShape.workspace_scalars = property(lambda shape: whole.fget(shape) // 2)  # pyright: ignore


def main(fault: str) -> None:
    plant(fault)
    backend = BACKENDS["gpu"]
    for case in CASES[:1] if fault else CASES:
        inputs = Inputs(case, members=(MEMBERS,))
        found = backend.outcomes_and_gradient(backend.shape(case), inputs)
        for leaf in jax.tree.leaves(found):
            assert np.all(np.isfinite(np.asarray(leaf))), case.name
        print(f"ran {case.name} ({case.kind})", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
