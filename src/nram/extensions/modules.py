"""User-defined modules. Once loaded, a module is known by its name in this process, as programs name it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from nram.errors import UsageError
from nram.extensions.loading import is_file_name, refuse
from nram.extensions.module_checks import check_behaviour, checked_integer, digest_of, field_problems, kept_within
from nram.extensions.registry import Registry
from nram.module_tables import EquationTwo
from nram.modules import MODULE_NAMES, MODULES, Module

ALL = "ALL"  # in a list of modules: the paper's fourteen


class ModuleRegistry(Registry[Module]):
    def __init__(self) -> None:
        super().__init__("module", Module, MODULES, reserved=MODULE_NAMES)
        self.sources: dict[str, str] = {}  # where a user-defined module comes from, by its name

    def check(self, item: Module, shown: str, file: str | None) -> Module:
        refuse(field_problems(item), shown)
        integer = checked_integer(item, shown, file)
        check_behaviour(item, integer, shown, file)
        fuzzy = item.fuzzy
        if isinstance(fuzzy, EquationTwo):
            fuzzy = EquationTwo(item.name, integer, item.arity)
        return replace(item, integer=integer, fuzzy=fuzzy, emit=kept_within(item))

    def adopt(self, item: Module, shown: str) -> Module:
        known = self.known.setdefault(item.name, item)
        source = self.sources.setdefault(item.name, shown)
        if digest_of(known) != digest_of(item):
            raise UsageError(
                f"{shown}: there is already a module {item.name}, that of {source}, which does something else: "
                "give one of them another name"
            )
        return known


REGISTRY = ModuleRegistry()


def get_module(name: str | os.PathLike[str]) -> Module:
    """The module of this name, or the one that this Python file defines. Executes the file: the user must name it."""
    return REGISTRY.get(name)


def module_names() -> tuple[str, ...]:
    """The names of all modules: the paper's fourteen, those registered later, those of installed packages."""
    return REGISTRY.names


def find_module(name: str) -> Module | None:
    """The module of this name, or None. No file is executed for a name that a program file holds."""
    return REGISTRY.find(name)


def register_module(module: Module) -> Module:
    """Make a module known by its name in this process, and return it as programs use it."""
    return REGISTRY.accept(module, f"the module {getattr(module, 'name', module)!r}", None)


def select_modules(names: Iterable[str], repeats: int = 1) -> tuple[Module, ...]:
    """The modules of these names, or of files that are loaded, in this order; the whole sequence repeated."""
    chosen = tuple(map(REGISTRY.look_up, names))
    if not chosen:
        raise UsageError("the machine needs at least one module")
    if repeats < 1:
        raise UsageError(f"repeats is {repeats}: the module sequence must appear at least once")
    return chosen * repeats


def split_names(text: str) -> tuple[str, ...]:
    """The names and files of a list like 'READ,INC,halve.py'; 'all' stands for the paper's fourteen."""
    names: list[str] = []
    for word in (part.strip() for part in text.split(",")):
        if is_file_name(word):
            names.append(word)
        elif word.upper() == ALL:
            names += MODULE_NAMES
        else:
            names.append(word.upper())
    return tuple(names)


def source_of(module: Module) -> str | None:
    """Where a user-defined module comes from, in words; None for a built-in one."""
    return REGISTRY.sources.get(module.name)


def files_of(modules: Iterable[Module]) -> list[Path]:
    """The files of these modules: to read a program that uses them, a command must name them."""
    wanted = {module.name for module in modules}
    return [path for path, module in REGISTRY.from_files.items() if module.name in wanted]
