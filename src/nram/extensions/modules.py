"""Modules from outside this package: a Python file named by its path, or an entry point of another package.

Either is checked before it is used and is then known by its name in this process, as programs name it. Its integer
meaning is watched afterwards. Importing this package imports neither NumPy nor JAX.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nram.errors import UsageError
from nram.extensions import loading as foreign
from nram.extensions import module_checks as checks
from nram.extensions.tables import EquationTwo
from nram.modules import MODULE_NAMES, MODULES, Module

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "nram.modules"
"""The group of entry points in which other packages name their modules."""

ALL = "ALL"  # in a list of modules: the paper's fourteen

_sources: dict[str, str] = {}  # by the name of a module where it comes from, in words
_read: dict[Path, Module] = {}


def get_module(name: str | os.PathLike[str]) -> Module:
    """The module of this name, or the one that this Python file defines."""
    name = os.fspath(name)
    if foreign.is_file_name(name):
        return load_file(Path(name))
    found = find_module(name)
    if found is not None:
        return found
    known = module_names()
    near = get_close_matches(name.upper(), known, n=3, cutoff=0.4)
    if Path(f"{name}.py").is_file():
        near = [f"{name}.py"]
    hint = f"; did you mean {' or '.join(near)}?" if near else f": the modules are {', '.join(known)}."
    raise UsageError(f"unknown module '{name}'{hint} One of one's own is named by its file, like path/to/halve.py")


def module_names() -> tuple[str, ...]:
    """The names of all modules: the paper's fourteen, those registered later, those of installed packages."""
    return (*MODULES, *(name for name in entry_points() if name not in MODULES))


def find_module(name: str) -> Module | None:
    """The module of this name, if it is known here: no file is executed for a name that stands in a program."""
    if name not in MODULES and name in entry_points():
        return load_entry_point(name)
    return MODULES.get(name)


def load_file(path: Path) -> Module:
    """The MODULE of a Python file, from now on known by its name. A process reads a file once."""
    whole, shown = path.resolve(), str(path)
    if whole not in _read:
        found = getattr(foreign.import_file(whole, shown, "module"), "MODULE", None)
        if found is None:
            raise UsageError(f"{shown} defines no MODULE: end it with MODULE = Module(name=..., ...)")
        _read[whole] = _usable(found, shown, str(whole))
    return _read[whole]


def register_module(module: Module) -> Module:
    """Make a module known by its name in this process, and return it as it is then used."""
    return _usable(module, f"the module {getattr(module, 'name', module)!r}", None)


@cache
def entry_points() -> dict[str, list[EntryPoint]]:
    """The modules of other packages that are installed, by name; nothing is imported yet."""
    return foreign.find_entry_points(GROUP)


def load_entry_point(name: str) -> Module:
    if name in MODULE_NAMES:
        raise UsageError(
            f"there is already a module {name}: give that of {foreign.providers_of(entry_points()[name])} another name"
        )
    if name not in MODULES:
        found, shown, file = foreign.import_entry_point(name, entry_points()[name], "module")
        if isinstance(found, Module) and found.name != name:
            raise UsageError(
                f"{shown} registers the module {found.name} under the name {name!r}: give the entry point its name"
            )
        _usable(found, shown, file)
    return MODULES[name]


def find_modules() -> tuple[list[Module], list[str]]:
    """All modules that have a name here, and what is wrong with those of packages that cannot be used."""
    problems = []
    for name in entry_points():
        try:
            load_entry_point(name)
        except UsageError as error:
            problems.append(str(error))
    return list(MODULES.values()), problems


def source_of(module: Module) -> str | None:
    """Where a module of one's own comes from, in words; None for the paper's."""
    return _sources.get(module.name)


def files_of(modules: Iterable[Module]) -> list[Path]:
    """The files that must be named to whoever reads a program with these modules."""
    wanted = {module.name for module in modules}
    return [path for path, module in _read.items() if module.name in wanted]


# ---- lists of modules, as people write them


def words_of(text: str) -> tuple[str, ...]:
    """The names and files of a list like 'READ,INC,halve.py'; 'all' stands for the paper's fourteen."""
    words: list[str] = []
    for word in (part.strip() for part in text.split(",")):
        if foreign.is_file_name(word):
            words.append(word)
        elif word.upper() == ALL:
            words += MODULE_NAMES
        else:
            words.append(word.upper())
    return tuple(words)


def lasting_name(name: str) -> str:
    """What names the same module from any folder: its name, or the whole path of its file."""
    return os.path.abspath(name) if name not in MODULES and foreign.is_file_name(name) else name


# ---- into use


def _usable(found: Any, shown: str, file: str | None) -> Module:
    """The module, checked, watched and known by its name."""
    if not isinstance(found, Module):
        raise UsageError(f"the MODULE of {shown} is a {type(found).__name__}: make it one of nram.modules.Module")
    foreign.refuse(checks.field_problems(found), shown)
    if found.name in MODULE_NAMES:
        raise UsageError(f"{shown}: there is already a module {found.name}: give it another name")
    integer = checks.watched_integer(found, shown, file)
    checks.check_behaviour(found, integer, shown, file)
    fuzzy = found.fuzzy
    if isinstance(fuzzy, EquationTwo):
        fuzzy = EquationTwo(found.name, integer, found.arity)
    module = replace(found, integer=integer, fuzzy=fuzzy, emit=checks.watched_emit(found))
    known = MODULES.get(module.name)
    if known is None:
        MODULES[module.name], _sources[module.name] = module, shown
    elif checks.digest_of(known) != checks.digest_of(module):
        raise UsageError(
            f"{shown}: there is already a module {module.name}, that of {_sources[module.name]}, which does something "
            "else: give one of them another name"
        )
    return MODULES[module.name]
