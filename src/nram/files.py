"""Writing files so that nothing is ever lost or left half written."""

import contextlib
import os
from pathlib import Path

from nram.errors import NramError


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one go: a reader, or a run killed at any moment, sees the old or the new one."""
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
        kept = " (the file from before is intact)" if path.exists() else ""
        raise NramError(f"cannot write {path}: {error.strerror}{kept}") from error
