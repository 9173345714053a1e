"""Reads the Python API for docs/make_reference.py: signatures, docstrings and comments from the source."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import nram

# ---- Markdown


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |".replace("|  |", "| |") for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def prose(text: str) -> str:
    """Text for Markdown: escapes tags and stars outside code, and keeps text that is laid out in columns as code."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        textwrap.indent(part, "    ") if re.search(r"\S {3,}\S", part) else _escaped(part) for part in paragraphs
    )


def _escaped(text: str) -> str:
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


# ---- the Python API


@dataclass(frozen=True)
class Source:
    """A public name and its source."""

    name: str
    module: ModuleType
    node: ast.AST
    lines: list[str]

    @classmethod
    def of(cls, name: str, value: Any) -> Source:
        text = textwrap.dedent(inspect.getsource(value))
        return cls(name, importlib.import_module(value.__module__), ast.parse(text).body[0], text.splitlines())


def api_parts() -> Iterator[str]:
    yield "These names are the public interface of `import nram`. Everything else may change between versions."
    public = {name: getattr(nram, name) for name in sorted(nram.__all__, key=str.lower)}
    written = [Source.of(f"nram.{name}", value) for name, value in public.items() if callable(value)]
    functions = [source for source in written if isinstance(source.node, ast.FunctionDef)]
    classes = [source for source in written if isinstance(source.node, ast.ClassDef)]
    others, aliases = _types_used(written)
    listed = [*functions, *classes, *others]
    yield table(
        ("name", "what it is"), [(f"[`{s.name}`](#{_anchor(s.name)})", _first_sentence(s.node)) for s in listed]
    )
    yield "## Functions"
    for source in functions:
        yield from _function_parts(source)
    yield "## Classes"
    for source in classes:
        yield from _class_parts(source)
    yield "## Types of arguments and results"
    yield "You do not need to import these types to use them."
    for source in others:
        yield from _class_parts(source)
    yield "### Type aliases"
    yield table(("name", "meaning"), [(f"`{name}`", f"`{meaning}`") for name, meaning in aliases.items()])


def _anchor(name: str) -> str:
    return name.lower().replace(".", "")


def _first_sentence(node: ast.AST) -> str:
    return prose(doc(node).split("\n\n")[0])


def doc(node: ast.AST) -> str:
    documented = isinstance(node, ast.FunctionDef | ast.ClassDef)
    return (ast.get_docstring(node) or "") if documented else ""


def _function_parts(source: Source) -> Iterator[str]:
    assert isinstance(source.node, ast.FunctionDef)
    yield f"### {source.name}"
    yield f"```python\n{_signature(source.node)}\n```"
    yield prose(doc(source.node))


def _signature(node: ast.FunctionDef, of_class: bool = False) -> str:
    """The signature from the source, on several lines if one line would be too long."""
    words = [word for word in _arguments(node.args) if not (of_class and word in ("self", "cls"))]
    returned = "" if node.returns is None else f" -> {_annotation(node.returns)}"
    line = f"{node.name}({', '.join(words)}){returned}"
    if len(line) <= 110:
        return line
    return f"{node.name}(\n{''.join(f'    {word},' + chr(10) for word in words)}){returned}"


def _arguments(given: ast.arguments) -> Iterator[str]:
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + given.defaults
    for argument, default in zip(positional, defaults, strict=True):
        yield _argument(argument, default)
    if given.vararg is not None:
        yield f"*{_argument(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(argument, default)
    if given.kwarg is not None:
        yield f"**{_argument(given.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    type_ = "" if argument.annotation is None else f": {_annotation(argument.annotation)}"
    value = "" if default is None else f"{' = ' if type_ else '='}{ast.unparse(default)}"
    return f"{argument.arg}{type_}{value}"


def _annotation(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


def _class_parts(source: Source) -> Iterator[str]:
    node = source.node
    assert isinstance(node, ast.ClassDef)
    yield f"### {source.name}"
    bases = [ast.unparse(base) for base in node.bases if ast.unparse(base) not in ("NamedTuple",)]
    kind = f"`{source.module.__name__}.{node.name}`" + (f", a subclass of `{', '.join(bases)}`" if bases else "")
    yield f"{kind}. {prose(doc(node))}".rstrip()
    parts = list(fields(source))
    if parts:
        yield table(("field", "type", "meaning"), parts)
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and _is_public(member) and not _is_property(member):
            text = prose(doc(member))
            yield f"```python\n.{_signature(member, of_class=True)}\n```" + (f"\n\n{text}" if text else "")


def fields(source: Source) -> Iterator[tuple[str, str, str]]:
    """The fields of a dataclass or named tuple, and the properties.

    The comment behind a field, or the docstring below it, describes it.
    """
    assert isinstance(source.node, ast.ClassDef)
    body = source.node.body
    for index, member in enumerate(body):
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            comment = source.lines[(member.end_lineno or 1) - 1].encode()[member.end_col_offset or 0 :].decode()
            below = body[index + 1] if index + 1 < len(body) else None
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                comment = f"# {below.value.value}"
            default = "" if (value := _default(member.value)) is None else f" = {value}"
            if not member.target.id.startswith("_"):
                yield (
                    f"`{member.target.id}{default}`",
                    f"`{_annotation(member.annotation)}`",
                    prose(comment.partition("#")[2]),
                )
    for member in body:
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("_") and _is_property(member):
            returned = "" if member.returns is None else f"`{_annotation(member.returns)}`"
            yield f"`{member.name}`", returned, prose(doc(member))


def _default(node: ast.expr | None) -> str | None:
    """The default value, without a cast that is only for the type checker and without Equinox's `field`."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
        node = node.args[1]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "eqx.field":
        node = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), None)
    return None if node is None else ast.unparse(node)


def _is_public(node: ast.FunctionDef) -> bool:
    return not node.name.startswith("_") or node.name == "__call__"


def _is_property(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) in ("property", "cached_property") for decorator in node.decorator_list)


def _types_used(written: list[Source]) -> tuple[list[Source], dict[str, str]]:
    """The other classes and type aliases of this package in the annotations of the public names."""
    known = {(source.module, source.node.name) for source in written if isinstance(source.node, ast.ClassDef)}
    classes: dict[str, Source] = {}
    aliases: dict[str, str] = {}
    for source in written:
        for name in _names_in_types(source.node):
            there, home = _defined(name, source.module)
            value = getattr(home, there, None)
            if inspect.isclass(value) and value.__module__.startswith("nram"):
                if (sys.modules[value.__module__], value.__name__) not in known:
                    classes[name] = Source.of(name, value)
            elif (meaning := _assigned(there, home)) is not None:
                aliases[name] = meaning
    return [classes[name] for name in sorted(classes)], dict(sorted(aliases.items()))


def _assigned(name: str, module: ModuleType) -> str | None:
    """The right-hand side of `name =` in a module, also under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        plain = isinstance(node, ast.Assign) and any(ast.unparse(target) == name for target in node.targets)
        alias = isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name
        if isinstance(node, ast.Assign | ast.AnnAssign) and (plain or alias) and node.value is not None:
            return ast.unparse(node.value)
    return None


def _names_in_types(node: ast.AST) -> list[str]:
    """Names in the annotations of a function, or of the public parts of a class."""
    if isinstance(node, ast.FunctionDef):
        given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        types = [
            annotation for annotation in (*(one.annotation for one in given), node.returns) if annotation is not None
        ]
        return [
            inner.id for one in types for inner in ast.walk(ast.parse(_annotation(one))) if isinstance(inner, ast.Name)
        ]
    if not isinstance(node, ast.ClassDef):
        return []
    names = []
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and _is_public(member):
            names += _names_in_types(member)
        elif isinstance(member, ast.AnnAssign):
            inside = ast.walk(ast.parse(_annotation(member.annotation)))
            names += [inner.id for inner in inside if isinstance(inner, ast.Name)]
    return names


def _defined(name: str, module: ModuleType) -> tuple[str, ModuleType]:
    """The original name of an annotation and its module, also if it is imported under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("nram"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _defined(alias.name, importlib.import_module(node.module))
    return name, module
