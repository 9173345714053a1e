"""Atomic writes: no file is ever lost or half written."""

import contextlib
import os
from pathlib import Path

from nram.errors import NramError


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file at once: even if the process is killed, a reader sees the old file or the new one."""
    temporary = path.with_name(path.name + ".part")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        kept = " (the old file is intact)" if path.exists() else ""
        raise NramError(f"cannot write {path}: {error.strerror}{kept}") from error
