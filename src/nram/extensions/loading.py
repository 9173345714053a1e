"""Code from outside this package: Python files named by their path, and entry points of other packages.

Whatever goes wrong in it is told with the file, the line and what to change, not as a stack of calls.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nram.errors import NramError, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def refuse(problems: Sequence[str], what: str) -> None:
    """UsageError with all the problems, if there are any."""
    if len(problems) == 1:
        raise UsageError(f"{what}: {problems[0]}")
    if problems:
        raise UsageError(f"{what}:\n" + "\n".join(f"  - {problem}" for problem in problems))


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}...{text[-5:]}"


# ---- files


def is_file_name(name: str) -> bool:
    """Whether it names a Python file, rather than what is defined in one."""
    return name.endswith(".py") or os.sep in name


def import_file(path: Path, shown: str, what: str) -> ModuleType:
    """Carry out a Python file that defines `what`, 'task' for one. `shown` is the path as its user wrote it."""
    if path.is_dir():
        raise UsageError(f"{shown} is a folder: name the Python file in it that defines the {what}")
    if not path.is_file():
        raise UsageError(f"there is no file {shown}: a {what} is named by its name, or by the path of its file")
    if path.suffix != ".py":
        raise UsageError(f"{shown} is no Python file: a {what} is defined in a file whose name ends with .py")
    # A name of its own, so that a file called copy.py takes the place of nothing.
    name = f"nram_own_{what}_{next(_numbers)}_{path.stem}"
    loader = SourceFileLoader(name, str(path))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for what lies beside it; last, so that it hides nothing
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what it prints must not stand among the JSON
            # Without the cache of compiled files: a change within a second would be missed.
            exec(loader.source_to_code(loader.get_data(str(path)), str(path)), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(f"{place_of(error, shown, str(path))}: {last_line(error)}") from None
    return module


_numbers = count()


# ---- entry points


def find_entry_points(group: str) -> dict[str, list[EntryPoint]]:
    """What installed packages register in a group, by name; nothing is imported yet."""
    from importlib.metadata import entry_points as find

    found: dict[str, list[EntryPoint]] = {}
    for point in find(group=group):
        found.setdefault(point.name, []).append(point)
    return found


def package_of(point: EntryPoint) -> str:
    """The package that registers an entry point, in words."""
    return f"the package {point.dist.name}" if point.dist is not None else "a package without a name"


def providers_of(points: Sequence[EntryPoint]) -> str:
    return " and ".join(map(package_of, points))


def import_entry_point(name: str, points: Sequence[EntryPoint], what: str) -> tuple[Any, str, str]:
    """What an entry point stands for, the words by which to call it, and the file it comes from."""
    point, *others = points
    if others:
        raise UsageError(f"the {what} {name!r} is registered by {providers_of(points)}: uninstall all but one")
    package = package_of(point)
    shown = f"{point.value} of {package}"
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found = point.load()
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the {what} {name!r}, {shown}, cannot be imported: {last_line(error)}; mend or uninstall {package}"
        ) from None
    return found, shown, getattr(sys.modules.get(point.module), "__file__", None) or point.module


# ---- what goes wrong in it


@contextlib.contextmanager
def calling(what: str, shown: str, file: str | None, cure: str = "") -> Iterator[None]:
    """While a function from outside is called: its errors name their line."""
    try:
        yield
    except NramError:
        raise
    except Exception as error:
        words = f"{place_of(error, shown, file)}: {what} fails: {last_line(error)}"
        raise UsageError(words + (f": {cure}" if cure else "")) from error


def place_of(error: BaseException, shown: str, file: str | None) -> str:
    """The file and, of its lines, the one that was being carried out."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    return f"{shown}, line {lines[-1]}" if lines and lines[-1] else shown


def last_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()
