"""Who imports whom, read from the source of a package without importing it.

Imports for the type checker alone do not count. Names that are imported as strings (`import_module`) are not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One imported module of the package, or one imported library."""

    importer: str
    imported: str
    late: bool
    """Whether it stands inside a function."""
    line: int

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}: {self.imported}"


def read_imports(root: Path) -> list[Import]:
    """The imports of all files of the package in this folder."""
    files = {_module_name(path, root): path for path in sorted(root.rglob("*.py"))}
    return [one for name, path in files.items() for one in _imports_of(name, path, root.name, files)]


def _module_name(path: Path, root: Path) -> str:
    """The module of a file. The package itself is called `package.__init__`, so that no other name begins with it."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join((root.name, *(parts[:-1] if parts[1:] and parts[-1] == "__init__" else parts)))


def _imports_of(name: str, path: Path, package: str, known: Collection[str]) -> Iterator[Import]:
    for node, late in _import_nodes(ast.parse(path.read_text()), late=False):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}: imports name the whole package"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            found = {one if one in known else node.module for one in whole}
        else:
            found = {alias.name for alias in node.names}
        for imported in sorted(found):
            home = imported.partition(".")[0]
            ours = f"{package}.__init__" if imported == package else imported
            yield Import(name, ours if home == package else home, late, node.lineno)


def _import_nodes(tree: ast.AST, late: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, late
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for other in node.orelse:
                yield from _import_nodes(other, late)
        else:
            yield from _import_nodes(node, late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def layer_of(module: str, layers: Iterable[str]) -> str | None:
    """The most specific of the layers that a module belongs to."""
    inside = [layer for layer in layers if module == layer or module.startswith(f"{layer}.")]
    return max(inside, key=len, default=None)


def layer_problems(imports: Iterable[Import], allowed: Mapping[str, Collection[str]]) -> list[str]:
    """Imports at the top of a file that go to another layer than its own and those that it may import."""
    problems = []
    for one in imports:
        if one.late or "." not in one.imported:  # a library
            continue
        here, there = layer_of(one.importer, allowed), layer_of(one.imported, allowed)
        if here is None or there is None:
            problems.append(f"{one}: {one.importer if here is None else one.imported} is in no layer")
        elif here != there and there not in allowed[here]:
            problems.append(f"{one}: {here} may not import {there}")
    return problems


def order_problems(allowed: Mapping[str, Collection[str]]) -> list[str]:
    """Layers that may import one that does not come before them: without any, there are no cycles."""
    before: set[str] = set()
    problems = []
    for layer, others in allowed.items():
        problems += [f"{layer} comes before {other}, which it may import" for other in others if other not in before]
        before.add(layer)
    return problems


def reached_libraries(imports: Iterable[Import], start: str) -> dict[str, str]:
    """The libraries that importing a module imports, each with the module that does."""
    by_importer: dict[str, list[Import]] = {}
    for one in imports:
        if not one.late:
            by_importer.setdefault(one.importer, []).append(one)
    libraries: dict[str, str] = {}
    package = start.partition(".")[0]
    waiting, seen = [start], set()
    while waiting:
        module = waiting.pop()
        parts = module.split(".")
        packages = [f"{package}.__init__", *(".".join(parts[:end]) for end in range(2, len(parts) + 1))]
        for name in packages:  # importing a module imports the packages it is in
            if name in seen:
                continue
            seen.add(name)
            for one in by_importer.get(name, ()):
                if one.imported.partition(".")[0] == package:
                    waiting.append(one.imported)
                else:
                    libraries.setdefault(one.imported, name)
    return libraries
