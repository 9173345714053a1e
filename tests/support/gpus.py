"""GPUs that are not there: what `nvidia-smi` and the plug-ins of JAX would say of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nram.cluster import gpus as module


class FakeGpus:
    """The GPUs that a study believes to be on this machine."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch):
        self.command, self.patch = folder / "bin" / "nvidia-smi", patch
        self.command.parent.mkdir()
        patch.setenv("PATH", str(self.command.parent), prepend=":")
        patch.delenv("JAX_PLATFORMS", raising=False)
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def have(self, names: Sequence[str], mib: int | None = 81_559, plugin: bool = True) -> None:
        """GPUs with these names, and so many MiB of memory each; None: it does not say."""
        memory = "[N/A]" if mib is None else mib
        lines = [f"""case $1 in *index) echo {name};; *memory.total) echo "{memory}";; esac""" for name in names]
        self.command.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        self.command.chmod(0o755)
        self.patch.setattr(module, "_jax_has_cuda", lambda: plugin)
