"""The GPUs of a machine, and how many trials share one where a study does not say it.

JAX is not asked: it would take memory of every GPU in the process of the command.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points

from nram.display import counted

ROOM = 16.0  # GiB of a GPU for each trial
MOST_SHARING = 8
MIB = 1 / 1024  # GiB


@dataclass(frozen=True)
class Gpus:
    """The GPUs that trials may use, of one machine or of several."""

    count: int
    memory: float | None = None
    """GiB of the smallest one; None if it is not known."""
    usable: bool = True
    """Whether JAX is installed with what it needs for them."""

    @property
    def sharing(self) -> int:
        """How many trials share a GPU if the study does not say it.

        The groups of the recipe need up to 11.5 GiB together, as `stage_bytes` counts. Of 12 runs side by side on 140
        GiB, one once ran out of memory.
        """
        return 1 if self.memory is None else max(1, min(MOST_SHARING, int(self.memory // ROOM)))

    @property
    def share(self) -> float:
        """The same as the part of a GPU that a trial has. It is rounded down, so that all of them fit for Ray."""
        return int(10_000 / self.sharing) / 10_000

    @property
    def words(self) -> str:
        each = "each" if self.count > 1 else "it"
        return f"{self.sharing} trials share {each}" if self.sharing > 1 else "a trial has one for itself"


def together(found: Iterable[Gpus]) -> Gpus:
    """The GPUs of several machines: those that JAX can use, if there are any."""
    every = [gpus for gpus in found if gpus.count]
    chosen = [gpus for gpus in every if gpus.usable] or every
    memories = [gpus.memory for gpus in chosen if gpus.memory is not None]
    memory = min(memories) if chosen and len(memories) == len(chosen) else None
    return Gpus(sum(gpus.count for gpus in chosen), memory, all(gpus.usable for gpus in chosen))


def gpus_here() -> Gpus:
    """The GPUs that this process may use."""
    names = gpu_names()
    return gpus_of_machine(len(names)) if names else Gpus(0)


def gpus_of_machine(count: int) -> Gpus:
    """So many GPUs of this machine, with what is known of them."""
    sizes = [int(line) for line in _nvidia_smi("memory.total") if line.isdigit()]
    return Gpus(count, min(sizes) * MIB if sizes else None, _jax_has_cuda())


def gpu_names() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    if os.environ.get("JAX_PLATFORMS") == "cpu":  # the user wants cores
        return []
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [word.strip() for word in given.split(",") if word.strip() and word.strip() != "-1"]
    return [line for line in _nvidia_smi("index") if line.isdigit()]


def _nvidia_smi(what: str) -> list[str]:
    """A line for each GPU of this machine; none if there is no driver."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    words = [command, f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
        return [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return []


def _jax_has_cuda() -> bool:
    """Whether a plug-in of JAX for CUDA is installed, as nram[cuda] does it."""
    return any("cuda" in plugin.name for plugin in entry_points(group="jax_plugins"))


def decided(gpus: Gpus, whose: str) -> tuple[float, str | None]:
    """The part of a GPU that each trial of training has where the study does not say it, and what to tell the user."""
    if not gpus.count:
        return 0.0, None
    has = f"{whose} has {counted(gpus.count, 'GPU')}"
    if not gpus.usable:
        return 0.0, f"{has}, which JAX cannot use: the trials run on cores; pip install 'nram[cuda]' changes that"
    return gpus.share, f"{has}: {gpus.words} ('[resources] gpus = 0' in the specification trains on cores)"
