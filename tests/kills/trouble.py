"""Troubles of the disk: a folder that becomes full, or read-only, and is well again later."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from pathlib import Path

SIZE = 64 << 20  # of the small disk: room for two checkpoints, since the new one is written beside the old one


class Trouble:
    """No trouble. The others make the folder `place` in such a way that something can go wrong with it."""

    reason = ""
    """What the command must say; empty: there is no trouble."""

    def __init__(self, place: Path):
        self.place = place

    def __enter__(self) -> Trouble:
        self.place.mkdir()
        return self

    def __exit__(self, *exception: object) -> None: ...

    def begin(self) -> None:
        """Make the trouble; called again and again while the command runs."""

    def end(self) -> None:
        """Repair it."""


class FullDisk(Trouble):
    """A small disk, which a large file fills."""

    reason = "No space left on device"

    def __enter__(self) -> Trouble:
        super().__enter__()
        words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(self.place)]
        subprocess.run(words, check=True, capture_output=True)
        self.filling = self.place / "filling"
        return self

    def __exit__(self, *exception: object) -> None:
        subprocess.run(["umount", "--lazy", str(self.place)], check=True)

    def begin(self) -> None:
        with contextlib.suppress(OSError), open(self.filling, "ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def end(self) -> None:
        self.filling.unlink(missing_ok=True)  # the command may have ended before


class ReadOnly(Trouble):
    """A folder that nobody may write to."""

    reason = "Permission denied"

    def _set_mode(self, mode: int) -> None:
        for folder in [self.place, *(path for path in self.place.rglob("*") if path.is_dir())]:
            folder.chmod(mode)

    def begin(self) -> None:
        self._set_mode(0o555)

    def end(self) -> None:
        self._set_mode(0o755)


TROUBLES = {"none": Trouble, "full disk": FullDisk, "read-only": ReadOnly}


def can_mount(folder: Path) -> bool:
    """Whether a small disk can be made here: usually only for root."""
    try:
        with FullDisk(folder / "small disk"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def obey_permissions() -> None:
    """Called in a new process of root's: without these two capabilities, permissions count for it too."""
    if os.geteuid() == 0:
        drop_capability, override, read_search = 24, 1, 2  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        for capability in (override, read_search):
            ctypes.CDLL(None).prctl(drop_capability, capability, 0, 0, 0)
