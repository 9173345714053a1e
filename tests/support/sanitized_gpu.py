"""Cases of the kernels, with and without a gradient, once each on a GPU: a program to run under `compute-sanitizer`.

    compute-sanitizer --tool memcheck python -m support.sanitized_gpu
    compute-sanitizer --tool racecheck python -m support.sanitized_gpu automaton

The words are names of cases; without any, all cases run. A planted fault shows that the tool sees our kernel: the word
`plant-memory` gives it half its workspace, `plant-race` removes the barrier after which the warps of a block use the
weights.
"""

import sys
import time

import jax
import numpy as np

from nram.machine.kernels.common.outcomes import outcomes, outcomes_and_gradient
from nram.machine.kernels.gpu.device import DeviceWarps
from nram.machine.kernels.gpu.shape import WarpShape
from support.kernel_cases import BACKENDS, CASES, Case, Inputs

MEMBERS = 2


def plant(words: list[str]) -> None:
    if "plant-race" in words:
        DeviceWarps.barrier = lambda self: None
    if "plant-memory" in words:
        whole = WarpShape.workspace_scalars
        WarpShape.workspace_scalars = property(lambda shape: whole.fget(shape) // 2)  # pyright: ignore


def run(case: Case) -> None:
    backend = BACKENDS["gpu"]
    inputs, shape = Inputs(case, members=(MEMBERS,)), backend.shape(case)
    alone = backend.of_members(shape, inputs, lambda shape, *given: outcomes(shape, *given[:2]))
    found = backend.of_members(shape, inputs, outcomes_and_gradient)
    for leaf in jax.tree.leaves((alone, found)):
        assert np.all(np.isfinite(np.asarray(leaf))), case.name


def main(words: list[str]) -> None:
    plant(words)
    for case in CASES:
        if case.name in words or not words:
            began = time.monotonic()
            run(case)
            print(f"ran {case.name} ({case.kind}) in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
