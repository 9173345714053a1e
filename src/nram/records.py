"""Checked values from plain data, as JSON and TOML give it. Every problem is reported with the path of its field.

A dataclass describes an object: its annotations say what each field may hold. They can be int, float, bool, str, Any,
a Literal, `X | None`, `list[X]`, `tuple[X, ...]`, `tuple[X, Y]`, `dict[str, X]`, another dataclass, or a class with a
method `parse`. `Annotated[int, Span(1, 16)]` adds limits: of a number, or of the length of a list or an object.
"""

from __future__ import annotations

import difflib
import math
import types
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from nram.errors import NramError, UsageError, shown

T = TypeVar("T")
Wrong = Callable[[str], None]
"""Called with every problem."""

MOST_TOLD = 20  # problems in one message
INVALID: Any = object()
"""Stands for a value with a problem."""

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", list: "a list"}
_WORDS |= {tuple: "a list", dict: "an object", types.NoneType: "null"}


@dataclass(frozen=True)
class Span:
    """The limits of a number, or of how many entries something has. Both are allowed values."""

    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.least} to {self.most}"


class Tolerant:
    """A base of records whose files may have more fields, which are ignored."""

    tolerant: ClassVar[bool] = True


def read_record(kind: type[T], value: Any, where: str, cure: str = "") -> T:
    """The record that plain data describes. Otherwise a NramError in one line: `where`, the problems, and the cure."""
    problems: list[str] = []
    found = checked(kind, value, "", problems.append)
    if problems:
        more = [f"and {len(problems) - 3} problems more"] if len(problems) > 3 else []
        raise NramError(f"{where} cannot be used: {'; '.join(problems[:3] + more)}{cure}")
    return found


def listed(problems: list[str]) -> str:
    """The problems as the end of a message, a line for each."""
    told = [f"  - {problem}" for problem in problems[:MOST_TOLD]]
    if len(problems) > MOST_TOLD:
        told.append(f"  and {len(problems) - MOST_TOLD} problems more")
    return "\n".join([":", *told])


def checked(hint: Any, value: Any, name: str, wrong: Wrong) -> Any:
    """The value as its annotation wants it, or INVALID. `name` is its path."""
    if get_origin(hint) is not Annotated:
        return _typed(hint, value, name, wrong)
    hint, span = get_args(hint)
    found = _typed(hint, value, name, wrong)
    if found is INVALID or found is None:
        return found
    number = isinstance(found, int | float)
    if not span.least <= (found if number else len(found)) <= span.most:
        wrong(f"{name} is {shown(found)}: give {span}" if number else f"{name} has {len(found)} entries: give {span}")
        return INVALID
    return found


def members(kind: type, value: dict[str, Any], named: Callable[[str], str], wrong: Wrong) -> dict[str, Any]:
    """The fields of a dataclass from an object. One that is missing has its default; one with a problem is INVALID."""
    known = _fields(kind)
    if not getattr(kind, "tolerant", False):
        for key in value:
            if key not in known:
                near = difflib.get_close_matches(key[:60], known, n=2, cutoff=0.5)
                hint = f"did you mean {' or '.join(near)}?" if near else "remove it, or correct its spelling"
                wrong(f"{named(key)} is unknown: {hint}")
    found = {}
    for key, (field, hint) in known.items():
        if key in value:
            found[key] = checked(hint, value[key], named(key), wrong)
        elif field.default is not MISSING:
            found[key] = field.default
        elif field.default_factory is not MISSING:
            found[key] = field.default_factory()
        else:
            wrong(f"{named(key)} is missing")
            found[key] = INVALID
    return found


@cache
def _fields(kind: Any) -> dict[str, tuple[Field[Any], Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: (field, hints[field.name]) for field in fields(kind)}


def _typed(hint: Any, value: Any, name: str, wrong: Wrong) -> Any:
    if hint is Any:
        return value
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):  # X | None
        if value is None:
            return None
        hint = get_args(hint)[0]
        if hint in (int, str) and type(value) is not hint:
            return _refused(name, value, f"{_WORDS[hint]} or null", wrong)
        return checked(hint, value, name, wrong)
    if origin is Literal:
        choices = get_args(hint)
        if type(value) is type(choices[0]) and value in choices:
            return value
        return _refused(name, value, f"one of {', '.join(map(str, choices))}", wrong)
    if origin in (list, tuple, dict):
        return _several(origin, get_args(hint), value, name, wrong)
    if hasattr(hint, "parse"):
        return _parsed(hint, value, name, wrong)
    if is_dataclass(hint):
        return _record(hint, value, name, wrong)
    if hint is float and type(value) is int and abs(value) < 1 << 1023:
        return float(value)
    if type(value) is not hint:  # a bool is an int to Python, not here
        return _refused(name, value, _WORDS[hint], wrong)
    if hint is float and not math.isfinite(value):
        return _refused(name, value, "a finite number", wrong)
    return _text(value, name, wrong) if isinstance(value, str) else value


def _joined(name: str, key: str) -> str:
    return f"{name}.{key if key.isidentifier() and len(key) < 60 else shown(key)}".lstrip(".")


def _refused(name: str, value: Any, wanted: str, wrong: Wrong) -> Any:
    wrong(f"{name or 'it'} is {shown(value)}, not {wanted}")
    return INVALID


def _text(value: str, name: str, wrong: Wrong) -> Any:
    """A text that can be printed, and that can be part of a file's name."""
    try:
        value.encode()
    except UnicodeEncodeError:  # half a character
        return _refused(name, value, "a text in UTF-8", wrong)
    return _refused(name, value, "a text without null characters", wrong) if "\0" in value else value


def _several(origin: type, parts: tuple[Any, ...], value: Any, name: str, wrong: Wrong) -> Any:
    """A list, a tuple or an object. Only the entries of a tuple of fixed length can have different types."""
    if origin is dict and isinstance(value, dict):
        found = {key: checked(parts[1], one, _joined(name, key), wrong) for key, one in value.items()}
        return INVALID if _any_invalid(found.values()) else found
    if origin is dict or not isinstance(value, (list, tuple)):
        return _refused(name, value, _WORDS[origin], wrong)
    if origin is tuple and parts[-1] is not Ellipsis and len(value) != len(parts):
        return _refused(name, value, f"a list of {len(parts)}", wrong)
    if parts[0] is int and {int}.issuperset(map(type, value)):  # the same as below, but quick
        return origin(value)
    hints = parts if origin is tuple and parts[-1] is not Ellipsis else parts[:1] * len(value)
    pairs = enumerate(zip(hints, value, strict=True))
    found = [checked(hint, one, f"{name}.{index}", wrong) for index, (hint, one) in pairs]
    return INVALID if _any_invalid(found) else origin(found)


def _any_invalid(values: Iterable[Any]) -> bool:
    return any(one is INVALID for one in values)


def _parsed(hint: Any, value: Any, name: str, wrong: Wrong) -> Any:
    try:
        return hint.parse(value)
    except ValueError as error:
        wrong(f"{name}: {error}")
        return INVALID


def _record(kind: Any, value: Any, name: str, wrong: Wrong) -> Any:
    if not isinstance(value, dict):
        return _refused(name, value, _WORDS[dict], wrong)
    found = members(kind, value, lambda key: _joined(name, key), wrong)
    if _any_invalid(found.values()):
        return INVALID
    try:
        return kind(**found)
    except UsageError as error:  # its own check
        wrong(f"{name}: {error}")
        return INVALID
