"""Tasks and modules by name: built-in ones, those of installed packages, and user-defined ones in Python files."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from functools import cached_property
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from nram.errors import UntrustedFile, UsageError
from nram.extensions.loading import (
    find_entry_points,
    import_entry_point,
    import_file,
    is_file_name,
    packages_of,
    require_python_file,
    short,
)


class Named(Protocol):
    @property
    def name(self) -> str: ...


Item = TypeVar("Item", bound=Named)


class Registry(Generic[Item]):
    """The tasks, or the modules, of this process. Both are named and loaded in the same way."""

    def __init__(self, what: str, kind: type[Item], known: dict[str, Item], reserved: Collection[str]):
        self.what = what  # "task" or "module"
        self.kind = kind
        self.known = known  # those that are found by name alone
        self.reserved = reserved  # names that user code cannot define again
        self.constant = what.upper()  # by which a file defines one
        self.from_files: dict[Path, Item] = {}
        self.from_packages: dict[str, Item] = {}

    def check(self, item: Item, shown: str, file: str | None) -> Item:
        """The item, whose functions check their results from now on. UsageError if something is wrong with it."""
        raise NotImplementedError

    def adopt(self, item: Item, shown: str) -> Item:
        """The item as this process uses it."""
        return item

    @cached_property
    def entry_points(self) -> dict[str, list[EntryPoint]]:
        """Those of installed packages, by name; nothing is imported yet."""
        return find_entry_points(f"nram.{self.what}s")

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.known, *(name for name in self.entry_points if name not in self.known))

    def find(self, name: str) -> Item | None:
        """The one of this name, or None. No file is executed for a name that a program file holds."""
        if name in self.known:
            return self.known[name]
        return self.load_entry_point(name) if name in self.entry_points else None

    def get(self, name: str | os.PathLike[str]) -> Item:
        """The one of this name, or the one that this Python file defines.

        This executes the file, so the name must come from the user. Names out of stored data go to `look_up`.
        """
        name = os.fspath(name)
        return self.load_file(Path(name)) if is_file_name(name) else self.look_up(name)

    def look_up(self, name: str) -> Item:
        """The one of this name, or of this file if this process has loaded it: no file is executed."""
        if is_file_name(name):
            return self._loaded(name)
        found = self.find(name)
        if found is not None:
            return found
        spellings = {known.lower(): known for known in self.names}
        near = [spellings[word] for word in get_close_matches(name[:60].lower(), spellings)]
        if os.path.isfile(f"{name}.py"):
            near = [f"{name}.py"]
        hint = f", did you mean {' or '.join(near)}?" if near else "."
        raise UsageError(
            f"there is no {self.what} {short(name)}{hint} The {self.what}s are: {', '.join(self.names)}; "
            f"name a user-defined {self.what} by its file, like path/to/{self.what}.py"
        )

    def _loaded(self, name: str) -> Item:
        """The one of a file that this process has loaded. Files are compared by their real paths, without links."""
        if not name.isprintable():  # a message must show the user which file it is
            raise UsageError(f"{ascii(name)} is not the path of a {self.what}: it holds unprintable characters")
        path = Path(os.path.realpath(name))
        if path not in self.from_files:
            require_python_file(path, name, self.what)
            raise UntrustedFile([(self.what, str(path))])
        return self.from_files[path]

    def load_file(self, path: Path) -> Item:
        """The one that a Python file defines. A process reads a file once, so that a run does not change midway."""
        whole, shown = Path(os.path.realpath(path)), str(path)
        if whole not in self.from_files:
            found = getattr(import_file(whole, shown, self.what), self.constant, None)
            if found is None:
                ending = f"{self.constant} = {self.kind.__name__}(name=..., ...)"
                raise UsageError(f"{shown} defines no {self.constant}: end it with {ending}")
            self.from_files[whole] = self.accept(found, shown, str(whole))
        return self.from_files[whole]

    def key_of(self, item: Item) -> str | None:
        """The whole path or the name by which `get` finds this very item, or None."""
        path = next((path for path, one in self.from_files.items() if one is item), None)
        if path is not None:
            return str(path)
        return item.name if item in (self.known.get(item.name), self.from_packages.get(item.name)) else None

    def load_entry_point(self, name: str) -> Item:
        """The one that an installed package registers under this name."""
        points = self.entry_points[name]
        self.refuse_taken(name, f"that of {packages_of(points)}")
        if name not in self.from_packages:
            found, shown, file = import_entry_point(name, points, self.what)
            if isinstance(found, self.kind) and found.name != name:
                raise UsageError(
                    f"{shown} registers the {self.what} {found.name!r} under the name {name!r}: "
                    f"give the entry point the {self.what}'s name"
                )
            self.from_packages[name] = self.accept(found, shown, file)
        return self.from_packages[name]

    def load(self, names: Sequence[str] = ()) -> tuple[list[Item], list[str]]:
        """Those of these names and files, or all that have a name, and the problems of those that cannot be used."""
        if names:
            return [self.get(name) for name in names], []
        problems = []
        for name in self.entry_points:
            try:
                self.load_entry_point(name)
            except UsageError as error:
                problems.append(str(error))
        return list({**self.known, **self.from_packages}.values()), problems

    def accept(self, found: object, shown: str, file: str | None) -> Item:
        """What user code defines, checked and ready for use. UsageError if it cannot be used."""
        if not isinstance(found, self.kind):
            home = f"nram.{self.what}s.{self.kind.__name__}"
            raise UsageError(f"the {self.constant} of {shown} is a {type(found).__name__}: make it a {home}")
        item = self.check(found, shown, file)
        self.refuse_taken(item.name, f"that of {shown}")
        return self.adopt(item, shown)

    def refuse_taken(self, name: str, whose: str) -> None:
        """UsageError if user code cannot define this name."""
        if name in self.reserved:
            raise UsageError(f"there is already a {self.what} {name!r}: give {whose} another name")
