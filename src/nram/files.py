"""Files: atomic writes, locks, and bounded, strict readers of text, JSON and TOML.

Everything that nram writes or reads goes through here, so that no file is lost, torn, or read without end.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import re
import secrets
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nram.errors import NotSaved, NramError, UsageError

MOST_DEPTH = 64  # levels of lists and objects in JSON and TOML; nothing that nram writes has more than ten
TRIED_BYTES = 1 << 11  # a full disk has no room for them; an empty file would fit
LEFTOVER = re.compile(r"\.[0-9a-f]{8}-[0-9a-f]{8}\.part")
MOST_NAME_BYTES = 255  # of a file, on all usual file systems
MOST_SHOWN = 1 << 16  # bytes of a result that an error shows
_LONG_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MOST_DEPTH}}}"""
)  # a.b.c. ...
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


# ---- writing


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file at once: even if the process is killed, a reader sees the old file or the new one.

    Any number of processes may write the same file; the last one wins. A device or a pipe is written directly.
    """
    try:
        target, mode = _target(path)
        if mode is not None and not stat.S_ISREG(mode):
            with open(target, "wb") as file:
                file.write(content)
            return
        with _temporary_file(target) as (descriptor, temporary):
            _write_all(descriptor, content)
            if mode is not None:
                os.fchmod(descriptor, mode & 0o777)
            os.fsync(descriptor)
            os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        kept = " (the old file is intact)" if os.path.isfile(path) else ""
        raise NramError(f"cannot write {path}: {error.strerror}{kept}") from error


def check_destination(path: Path, option: str = "--out") -> None:
    """Refuse a file that could not be written, before long work begins. The test writes next to it."""
    another = f"choose another {option}"
    try:
        target, mode = _target(path)
        if mode is None or stat.S_ISREG(mode):
            with _temporary_file(target) as (descriptor, _):
                _write_all(descriptor, bytes(TRIED_BYTES))
        elif stat.S_ISDIR(mode):
            raise UsageError(f"{option} {path} is a folder: name a file in it")
        elif not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except FileNotFoundError:
        raise UsageError(f"cannot write {path}: there is no folder {path.parent}; make it, or {another}") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; {another}") from None
    except ValueError:  # a null character
        raise UsageError(f"{str(path)!r} is not a valid file name") from None


def make_folder(path: Path) -> None:
    """Make the folder that --out names, and those above it, unless it exists."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{path} is a file or lies below one: choose another --out") from None
    except OSError as error:
        raise UsageError(f"cannot make the folder {path}: {error.strerror}; choose another --out") from None


def write_result(path: Path, content: bytes) -> None:
    """Write what took long to make. If that fails, save it elsewhere; the error says where, and shows a text."""
    try:
        write_atomically(path, content)
    except NramError as error:
        saved = _saved_elsewhere(path, content)
        where = "it could not be saved elsewhere" if saved is None else f"it was saved as {saved} instead"
        text = ""
        if len(content) <= MOST_SHOWN or saved is None:
            with contextlib.suppress(UnicodeDecodeError):  # a picture cannot be shown
                text = content.decode().rstrip()
        raise NotSaved(f"{error}; {where}", text) from error


def _saved_elsewhere(path: Path, content: bytes) -> Path | None:
    """A new file with this content: in the current folder, or else in a private temporary folder; None if all fails."""
    for folder in (Path.cwd, lambda: Path(tempfile.mkdtemp(prefix="nram-"))):
        with contextlib.suppress(OSError, NramError):
            place = folder() / f"{path.stem[:40]}-{secrets.token_hex(4)}{path.suffix[:8]}"
            write_atomically(place, content)
            return place
    return None


def remove_leftovers(path: Path) -> None:
    """Remove temporary files that a killed process left: of this file, or of everything in this folder.

    The caller holds the lock of the file or folder, so that nobody else is writing there.
    """
    found = path.rglob(".*.part") if path.is_dir() else path.parent.glob(f"{_prefix(path)}*.part")
    for file in found:
        if is_leftover(file):
            with contextlib.suppress(OSError):
                file.unlink()


def is_leftover(path: Path) -> bool:
    """Whether this is a temporary file of `write_atomically`."""
    return LEFTOVER.fullmatch(path.name) is not None


def _target(path: Path) -> tuple[Path, int | None]:
    """The file behind a link, and its kind and permissions; None if it does not exist.

    A link that another user has put there is not followed. It is replaced, as if nothing were there.
    """
    if path.is_symlink():
        if path.lstat().st_uid not in (0, os.geteuid()):
            return path, None
        if path.is_file() or not path.exists():  # /dev/stdout may lead to a pipe, which has no path
            path = Path(os.path.realpath(path))
    try:
        return path, path.stat().st_mode
    except FileNotFoundError:
        return path, None


def _prefix(path: Path) -> str:
    """How the names of a file's temporary files begin. They are short: names of 255 bytes must work."""
    return f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}-"


@contextlib.contextmanager
def _temporary_file(path: Path) -> Iterator[tuple[int, Path]]:
    """A new file next to `path` that no other process uses. It is removed at the end, unless it was renamed."""
    temporary = path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}.part")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor, temporary
    finally:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            temporary.unlink()


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(folder: Path) -> None:
    """Put a renaming on the disk. Some file systems cannot; the file is complete there all the same."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock file, which is removed at the end. If another process holds it, raise a UsageError that says `busy`.

    A process that is killed loses its lock; the file that it leaves behind does no harm.
    """
    try:
        descriptor = _lock(path)
    except BlockingIOError:
        raise UsageError(busy) from None
    except OSError as error:
        cure = "; remove it" if path.is_dir() or path.is_symlink() else ""
        raise NramError(f"cannot write {path}: {error.strerror}{cure}") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether another process holds a lock file. Nothing is written."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:  # there is no such file
        return False


def _lock(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The process that held the lock may have removed the file since it was opened: then lock the new file.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.lstat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def beside(path: Path, form: str) -> Path:
    """The file that goes with another one: next to it, or to the file behind a link, so that both names share it.

    `form` makes its name from `{stem}` and `{suffix}`. Where that is too long for a name, a digest replaces the stem.
    """
    target, _ = _target(path)
    name = form.format(stem=target.stem, suffix=target.suffix)
    if len(os.fsencode(name)) > MOST_NAME_BYTES:
        digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
        name = form.format(stem=digest, suffix=target.suffix[:16])
    return target.with_name(name)


# ---- reading


def require_plain(path: Path) -> None:
    """Refuse a pipe or a device, here or in this folder. Reading one that somebody else has put there may never end."""
    for found in (path, *path.rglob("*")):
        with contextlib.suppress(OSError):  # what cannot be looked at cannot be opened either
            mode = found.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise UsageError(f"{found} is not a regular file: remove it")


def read_bounded(path: Path, most: int, what: str = "file") -> bytes:
    """The content of a file, pipe or device. More than `most` bytes are refused without reading them all."""
    try:
        with open(path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                size, content = 0, _read_up_to(file, most + 1)
            else:
                size = status.st_size
                content = b"" if size > most else file.read()
    except OSError as error:
        raise NramError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:  # a null character
        raise UsageError(f"{str(path)!r} is not a valid file name") from None
    if max(size, len(content)) > most:
        raise UsageError(f"{path} is too large for a {what}: the most is {_in_words(most)}")
    return content


def _read_up_to(file: Any, most: int) -> bytes:
    parts = []
    while most > 0 and (part := file.read(min(most, 1 << 20))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _in_words(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def read_text(path: Path, most: int, what: str = "file") -> str:
    """The text of a file, at most so many bytes of UTF-8."""
    try:
        return read_bounded(path, most, what).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a {what}: it is not text in UTF-8") from None


def read_json(path: Path, most: int, what: str = "file") -> Any:
    """The JSON value in a file of at most so many bytes."""
    return _parsed(parse_json, path, most, what)


def read_toml(path: Path, most: int, what: str = "file") -> dict[str, Any]:
    """The TOML table in a file of at most so many bytes."""
    return _parsed(parse_toml, path, most, what)


def _parsed(parse: Callable[[str], Any], path: Path, most: int, what: str) -> Any:
    text = read_text(path, most, what)
    try:
        return parse(text)
    except ValueError as error:
        raise NramError(f"{path} cannot be read: {error}") from None


def parse_json(text: str, most_depth: int = MOST_DEPTH, *, infinite: bool = False) -> Any:
    """The value of a JSON text. A ValueError says what is wrong with it.

    Python's reader alone would accept repeated keys, NaN, numbers that overflow to infinity and half characters.
    With `infinite`, NaN and Infinity are read as Python writes them, which is not JSON.
    """
    with _clear_errors("JSON"):
        value = (_INFINITE if infinite else _STRICT).decode(text)
    _check_depth(value, most_depth)
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text holds half a character (a lone surrogate)") from None
    return value


def parse_toml(text: str, most_depth: int = MOST_DEPTH) -> dict[str, Any]:
    """The table of a TOML text. A ValueError says what is wrong with it."""
    if _LONG_KEY.search(text):  # Python's reader would take quadratic time
        raise ValueError(f"its tables are nested more than {MOST_DEPTH} deep")
    with _clear_errors("TOML"):
        value = tomllib.loads(text)
    _check_depth(value, most_depth)
    return value


@contextlib.contextmanager
def _clear_errors(form: str) -> Iterator[None]:
    try:
        yield
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"it is not {form}: {error}") from None
    except RecursionError:
        raise ValueError(f"its lists and objects are nested more than {MOST_DEPTH} deep") from None
    except ValueError as error:
        # Python refuses to convert thousands of digits, and explains it by one of its own settings.
        raise ValueError("a number has too many digits" if "digits" in str(error) else str(error)) from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        name = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"an object has {_shortened(name)} twice")
    return members


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {_shortened(text)} is too large")
    return value


def _not_a_json_number(text: str) -> None:
    raise ValueError(f"it is not JSON: {text} is not a number")


# Made once, because files of examples have many short lines.
_STRICT = json.JSONDecoder(object_pairs_hook=_without_doubles, parse_float=_finite, parse_constant=_not_a_json_number)
_INFINITE = json.JSONDecoder(object_pairs_hook=_without_doubles, parse_float=_finite)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def _check_depth(value: Any, most: int) -> None:
    """Refuse values nested so deep that code which walks them might exceed Python's recursion limit."""
    level = [value]
    for _ in range(most + 1):
        level = [
            part
            for whole in level
            if isinstance(whole, (dict, list))
            for part in (whole.values() if isinstance(whole, dict) else whole)
            if isinstance(part, (dict, list))
        ]
        if not level:
            return
    raise ValueError(f"its lists and objects are nested more than {most} deep")
