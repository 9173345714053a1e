"""User code: Python files named by their path, and entry points of other packages.

An error in it is reported with the file, the line and what to change, without a stack trace.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec
from itertools import count
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from nram.errors import NramError, UsageError


def refuse(problems: Sequence[str], where: str) -> None:
    """UsageError with all the problems, if there are any."""
    if len(problems) == 1:
        raise UsageError(f"{where}: {problems[0]}")
    if problems:
        raise UsageError(f"{where}:\n" + "\n".join(f"  - {problem}" for problem in problems))


def short(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # of user code, or of Python: it does not print integers of thousands of digits
        return f"a value of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= 60 else f"{text[:50]}...{text[-5:]}"


# ---- files


def is_file_name(name: str) -> bool:
    """Whether it names a Python file, rather than a task or a module."""
    return name.endswith(".py") or os.sep in name


def lasting_name(name: str) -> str:
    """A name of a task or module that is valid in any folder: a file's whole path, other names as they are."""
    return os.path.abspath(name) if is_file_name(name) else name


def require_python_file(path: Path, shown: str, what: str) -> None:
    """UsageError unless this is a file that may define a task or a module (`what`). Nothing is read."""
    if os.path.isdir(path):
        raise UsageError(f"{shown} is a folder: name the Python file in it that defines the {what}")
    if not os.path.isfile(path):  # not path.is_file(), which raises an error for a name that is too long
        raise UsageError(f"there is no file {shown}: give the name of a {what}, or the path of its file")
    if path.suffix != ".py":
        raise UsageError(f"{shown} is not a Python file: a {what} is defined in a file whose name ends with .py")


def import_file(path: Path, shown: str, what: str) -> ModuleType:
    """Execute a Python file that defines a task or a module (`what`). `shown` is the path as the user wrote it."""
    require_python_file(path, shown, what)
    # A unique name, so that a file called copy.py replaces no other module.
    name = f"nram_user_{what}_{next(_numbers)}_{path.stem}"
    loader = _SourceLoader(name, str(path))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[name] = module
    _neighbours.add(name, str(path.parent))
    try:
        with contextlib.redirect_stdout(sys.stderr):  # so that its prints do not mix with JSON
            loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(f"{line_of(error, shown, str(path))}: {last_line(error)}") from None
    return module


_numbers = count()


class _SourceLoader(SourceFileLoader):
    """A loader without the cache of compiled files: these may be older than the source, or do something else."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Neighbours:
    """A finder of what lies beside a user's file, for the code in that folder alone.

    If the folder were on `sys.path`, libraries would look for plug-ins and optional parts there, and execute files that
    the user's file does not import.
    """

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}  # of each module that was found here, by its name up to the first dot

    def add(self, name: str, folder: str) -> None:
        self.folders[name.partition(".")[0]] = folder
        if self not in sys.meta_path:
            sys.meta_path.append(self)  # last, so that it hides nothing

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        frame = sys._getframe(1)
        while frame is not None and _package_of(frame) == "importlib":
            frame = frame.f_back
        folder = None if frame is None else self.folders.get(_package_of(frame))
        if folder is None or path is not None:  # the parts of a package are found by the package
            return None
        loaders = (ExtensionFileLoader, EXTENSION_SUFFIXES), (_SourceLoader, SOURCE_SUFFIXES)
        spec = FileFinder(folder, *loaders).find_spec(name)
        if spec is not None:
            self.add(name, folder)
        return spec


def _package_of(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]


_neighbours = _Neighbours()


# ---- entry points


def find_entry_points(group: str) -> dict[str, list[EntryPoint]]:
    """What installed packages register in a group, by name; nothing is imported yet."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, []).append(point)
    return found


def packages_of(points: Sequence[EntryPoint]) -> str:
    """The packages that register these entry points, in words."""
    names = (point.dist.name if point.dist is not None else None for point in points)
    return " and ".join(f"the package {name}" if name else "a package without a name" for name in names)


def import_entry_point(name: str, points: Sequence[EntryPoint], what: str) -> tuple[Any, str, str]:
    """What an entry point stands for, how messages refer to it, and the file it comes from."""
    package = packages_of(points)
    if len(points) > 1:
        raise UsageError(f"the {what} {name!r} is registered by {package}: uninstall all but one")
    (point,) = points
    shown = f"{point.value} of {package}"
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found = point.load()
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the {what} {name!r}, {shown}, cannot be imported: {last_line(error)}; mend or uninstall {package}"
        ) from None
    return found, shown, getattr(sys.modules.get(point.module), "__file__", None) or point.module


# ---- errors in user code


@contextlib.contextmanager
def calling(what: str, shown: str, file: str | None, cure: str = "") -> Iterator[None]:
    """A context for calls of user code: its errors become a UsageError that names their line."""
    try:
        yield
    except NramError:
        raise
    except (Exception, SystemExit) as error:
        words = f"{line_of(error, shown, file)}: {what} fails: {last_line(error)}"
        raise UsageError(words + (f": {cure}" if cure else "")) from error


def line_of(error: BaseException, shown: str, file: str | None) -> str:
    """The file, and the line of it that was being executed."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    return f"{shown}, line {lines[-1]}" if lines and lines[-1] else shown


def last_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()
