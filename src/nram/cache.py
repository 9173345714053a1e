"""The cache of compiled code on disk: kernels, the search, and what JAX compiles.

What comes from here is executed. So the code lies in folders that nobody but this user can enter or replace. A digest
reveals damage. No error of the cache stops the work: the code is compiled again, and the user is told once.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
from pathlib import Path

from nram.errors import NramError
from nram.files import write_atomically

DIGEST_BYTES = 32  # before the code in a cached file
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

_reported: list[str] = []


def report(problem: str) -> None:
    """Say what is wrong with the cache, once per process: every other problem has most likely the same cause."""
    if not _reported:
        _reported.append(problem)
        logging.getLogger("nram").warning("nram: cache of compiled code: %s; going on without it", problem)


# ---- folders


def cache_folder(name: str, given: str | None = None) -> Path | None:
    """This user's private folder for one kind of compiled code; None, and a report, if there is none that is safe.

    It is in the folder that the user has given, if that is an absolute path.
    """
    home = Path(given) if given and Path(given).is_absolute() else _user_folder()
    if home is None:
        report("this user has no home folder (set XDG_CACHE_HOME to keep compiled code)")
        return None
    try:
        return _private_folder(home / "nram" / name)
    except OSError as error:
        report(f"{error.filename}: {error.strerror}")
    except NramError as error:
        report(str(error))
    return None


def _user_folder() -> Path | None:
    """The folder for caches by the XDG specification, which ignores relative names."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():
        return given
    try:
        home = Path.home()
    except RuntimeError:  # neither HOME nor an entry among the users
        return None
    return home / ".cache" if home.is_absolute() else None


def _private_folder(folder: Path) -> Path:
    """The folder without symbolic links, made where it is missing, and refused if others could change its content.

    The way there is checked from the root down. Where only root and this user can rename what is in a folder, nobody
    can exchange the next one after it was checked.
    """
    resolved = folder.resolve()
    for parent in reversed(resolved.parents):
        mode = _own_folder(parent, (0, os.geteuid()))
        # In a folder with the sticky bit, as /tmp, nobody can rename what belongs to another user.
        if mode & OTHERS_MAY_WRITE and not mode & stat.S_ISVTX:
            raise NramError(f"other users may write to {parent} (chmod go-w cures it)")
    if _own_folder(resolved, (os.geteuid(),)) & (stat.S_IRWXG | stat.S_IRWXO):
        raise NramError(f"{resolved} is open to other users (remove it, or chmod 700 it if you trust what is in it)")
    return resolved


def _own_folder(path: Path, owners: tuple[int, ...]) -> int:
    """The mode of a folder, made if it is missing, that belongs to one of these users."""
    if not path.exists():
        path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NramError(f"{path} is not a folder")
    if status.st_uid not in owners:
        raise NramError(f"{path} belongs to another user")
    return status.st_mode


# ---- files


def load(folder: Path | None, name: str) -> bytes | None:
    """What was stored under this name; None if it is missing, or damaged and removed, or another user's."""
    if folder is None:
        return None
    path = folder / name
    try:
        with open(path, "rb", opener=_open_own) as file:
            content = file.read()
        digest, code = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
        if hashlib.sha256(code).digest() == digest:
            return code
        report(f"{path} is damaged")
    except FileNotFoundError:
        return None
    except OSError as error:
        report(f"{path}: {error.strerror}")
    with contextlib.suppress(OSError):
        path.unlink()  # a pipe or a link must not stand where `store` writes
    return None


def _open_own(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid in (0, os.geteuid()):
        return descriptor
    os.close(descriptor)
    raise PermissionError(0, "not a file of this user")


def store(folder: Path | None, name: str, code: bytes) -> None:
    """Keep code under this name, if that is possible."""
    if folder is None:
        return
    try:
        write_atomically(folder / name, hashlib.sha256(code).digest() + code)
    except (OSError, NramError) as error:
        report(str(error))
