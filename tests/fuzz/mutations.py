"""Mutations of JSON and TOML values, of text and of bytes. Every choice comes from the random generator given."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any


class Literal(str):
    """Characters that stand in a file as they are, such as NaN or a million brackets."""


class Members(list):
    """The members of an object as [key, value] lists: a key can appear twice."""


DEEP = 100_000
HOSTILE = [
    *map(Literal, ("null", "true", "false", "NaN", "Infinity", "-Infinity", "1e308", "-1e308", "1e400", "-0.0", "0.5")),
    *map(Literal, ("[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "0" + "}" * DEEP, "[" * 200 + "]" * 200, "[" * DEEP)),
    *map(Literal, ("9" * 400, "-" + "9" * 400, "9" * 5000, "0.1e-400", "00", "0x10", "1_000", "'", "", "nan", "inf")),
    *(sign * 2**power + more for power in (7, 8, 15, 16, 31, 32, 53, 63, 64) for sign in (1, -1) for more in (-1, 0)),
    *(-2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 65, 100, 1000, 10**5, 10**6, 10**9, 10**12, 10**18, 10**100),
    *("", " ", "a", "0", "-1", "1e999", "\0", "\x1b[31m", "\ud800", "\u202e", "é", "x" * 1000, "x" * 10**6, "None"),
    *("../../etc/passwd", "/dev/zero", "x.py", "/tmp/x.py", "READ", "WRITE", "copy", "__class__", "%s%n", "{0}", "\n"),
    *([], [[]], [None], [0], [[0]], [1, 2, 3], [""], Members(), Members([["", 0]]), Members([["a", Members()]])),
]
"""Values that break careless readers."""


MOST_REPEATED = 1 << 24  # characters: more tell nothing new, and cost the mutation time and memory


def limited(count: int, part: str) -> int:
    """At most so many repetitions of a part, fewer if it is long."""
    return max(1, min(count, MOST_REPEATED // max(len(part), 1)))


# ---- values


def parse(text: str) -> Any:
    """A JSON value in the form that is mutated here."""
    return json.loads(text, object_pairs_hook=lambda pairs: Members([list(pair) for pair in pairs]))


def to_json(value: Any) -> str:
    """The JSON text of a value. It need not be valid: that is the purpose."""
    if isinstance(value, Literal):
        return value
    if isinstance(value, Members):
        return "{" + ", ".join(f"{json.dumps(key)}: {to_json(inner)}" for key, inner in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_json, value)) + "]"
    return json.dumps(value)


def to_toml(value: Members) -> str:
    """The TOML text of an object, with a line for each member."""
    return "".join(f"{_toml_key(key)} = {_to_inline_toml(inner)}\n" for key, inner in value)


def _to_inline_toml(value: Any) -> str:
    if isinstance(value, Members):
        return "{" + ", ".join(f"{_toml_key(key)} = {_to_inline_toml(inner)}" for key, inner in value) + "}"
    if isinstance(value, list) and not isinstance(value, Members):
        return "[" + ", ".join(map(_to_inline_toml, value)) + "]"
    return to_json(value)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def mutated_value(rng: Random, value: Any, donors: Sequence[Any] = ()) -> Any:
    """A copy of a value with one or a few changes. Donors are other values, of which parts are taken over."""
    root = [copy.deepcopy(value)]
    for _ in range(_how_many(rng)):
        rng.choice(_VALUE_CHANGES)(rng, root, donors)
    return root[0] if root else Literal("")


Place = tuple[list, int]
"""A list, or the members of an object, and an index into it."""


def _place(rng: Random, root: list) -> Place:
    """A random place. Every level is as likely as the others, so that long lists do not attract all changes."""
    holder, index = root, 0
    while True:
        inner = _get((holder, index))
        if not isinstance(inner, list) or not inner or rng.random() < 0.25:
            return holder, index
        holder, index = inner, rng.randrange(len(inner))


def _get(place: Place) -> Any:
    holder, index = place
    return holder[index][1] if isinstance(holder, Members) else holder[index]


def _put(place: Place, value: Any) -> None:
    holder, index = place
    if isinstance(holder, Members):
        holder[index][1] = value
    else:
        holder[index] = value


def _replace(rng: Random, root: list, donors: Sequence[Any]) -> None:
    _put(_place(rng, root), copy.deepcopy(rng.choice(HOSTILE)))


def _change(rng: Random, root: list, donors: Sequence[Any]) -> None:
    """Another value of the same kind, near the old one."""
    place = _place(rng, root)
    old = _get(place)
    if isinstance(old, bool):
        new: Any = not old
    elif isinstance(old, (int, float)):
        new = rng.choice((old + 1, old - 1, -old, old * 2, old + 0.5, float(old), str(old), [old], old * 10**6))
    elif isinstance(old, str):
        new = rng.choice((old + "x", old[:-1], old.upper(), old * 2, old + "\0", " " + old, mutated_text(rng, old)))
    elif isinstance(old, list) and not isinstance(old, Members):
        new = rng.choice((old[:-1], old + old, old[::-1], [old], old[:1] * 1000))
    else:
        new = [old]
    _put(place, new)


def _delete(rng: Random, root: list, donors: Sequence[Any]) -> None:
    holder, index = _place(rng, root)
    if holder is not root:
        del holder[index]


def _repeat(rng: Random, root: list, donors: Sequence[Any]) -> None:
    """The same item or member again, next to itself."""
    holder, index = _place(rng, root)
    if holder is not root:
        count = limited(rng.choice((1, 1, 1, 2, 100, 5000)), to_json([holder[index]]))
        holder[index:index] = [copy.deepcopy(holder[index]) for _ in range(count)]


def _rename(rng: Random, root: list, donors: Sequence[Any]) -> None:
    holder, index = _place(rng, root)
    if isinstance(holder, Members):
        key = holder[index][0]
        others = [other for other, _ in holder]
        holder[index][0] = rng.choice((key + "s", key[:-1], key.upper(), "", "é", "\0", "x" * 10_000, *others))


def _swap(rng: Random, root: list, donors: Sequence[Any]) -> None:
    one, other = _place(rng, root), _place(rng, root)
    if one[0] is not root and other[0] is not root:
        values = copy.deepcopy(_get(one)), copy.deepcopy(_get(other))
        _put(one, values[1])
        _put(other, values[0])


def _splice(rng: Random, root: list, donors: Sequence[Any]) -> None:
    donor = [rng.choice(donors)] if donors else root
    _put(_place(rng, root), copy.deepcopy(_get(_place(rng, donor))))


_VALUE_CHANGES: list[Callable[[Random, list, Sequence[Any]], None]] = [
    *(_replace, _replace, _replace, _change, _change, _delete, _repeat, _rename, _swap, _splice)
]


def _how_many(rng: Random) -> int:
    return rng.choice((1, 1, 1, 1, 2, 2, 3, 6))


# ---- text


WORDS = (
    *("0", "1", "2", "-1", "3.5", "1e9", "9" * 30, "9" * 5000, "nan", "inf", "true", "null", "=", ":=", ":", ",", "#"),
    *("(", ")", "[", "]", "{", "}", '"', "'", "\\", "\t", "\r", "\0", "\ufeff", "\u0663", "\u2028", "\x85", "é", "𝟙"),
    *("x" * 10**5, "READ", "input", "halt", "next", "state", "when", "otherwise", "else", "always", "registers"),
)


def mutated_text(rng: Random, text: str, donors: Sequence[str] = ()) -> str:
    """A text with one or a few changes of its lines, words and characters."""
    for _ in range(_how_many(rng)):
        lines = text.split("\n")
        here = rng.randrange(len(lines))
        change = rng.randrange(9)
        if change == 0:
            del lines[here]
        elif change == 1:
            lines[here:here] = [lines[here]] * limited(rng.choice((1, 1, 2, 1000)), lines[here])
        elif change == 2:
            there = rng.randrange(len(lines))
            lines[here], lines[there] = lines[there], lines[here]
        elif change == 3:
            lines.insert(here, rng.choice((rng.choice(donors) if donors else text).split("\n")))
        elif change == 4:
            lines[here] = lines[here][: rng.randint(0, len(lines[here]))]
        elif change == 5:
            at = rng.randint(0, len(lines[here]))
            lines[here] = lines[here][:at] + rng.choice(WORDS) + lines[here][at:]
        else:
            lines[here] = _with_another_word(rng, lines[here], rng.choice(donors) if donors else text)
        text = "\n".join(lines)
        if rng.random() < 0.03:
            text = rng.choice((text.replace("\n", "\r\n"), "\ufeff" + text, text.replace("\n", "\r"), text[::-1]))
    return text


def _with_another_word(rng: Random, line: str, donor: str) -> str:
    """A line in which a word is replaced, mostly by a word of another file of the same kind."""
    words = re.findall(r"\w+|[^\w\s]+|\s+", line) or [""]
    known = re.findall(r"\w+|[^\w\s]+", donor) or [""]
    words[rng.randrange(len(words))] = rng.choice(known) if rng.random() < 0.8 else rng.choice(WORDS)
    return "".join(words)


# ---- bytes


def mutated_bytes(rng: Random, content: bytes, donors: Sequence[bytes] = ()) -> bytes:
    """Bytes of which some are flipped, cut, inserted, repeated or taken from another file."""
    new = bytearray(content)
    for _ in range(_how_many(rng)):
        size = len(new)
        at = rng.randint(0, size)
        there = min(size, at + rng.choice((1, 2, 8, 64, 1000)))
        change = rng.randrange(7)
        if change == 0 and at < size:
            new[at] ^= 1 << rng.randrange(8)
        elif change == 1 and at < size:
            new[at] = rng.choice((0, 1, 0x0A, 0x20, 0x22, 0x7F, 0x80, 0xC0, 0xFF))
        elif change == 2:
            del new[at:there]
        elif change == 3:
            new[at:at] = rng.randbytes(rng.choice((1, 2, 8, 100)))
        elif change == 4:
            new[at:at] = new[at:there] * rng.choice((1, 2, 100))
        elif change == 5 and donors:
            donor = rng.choice(donors)
            new[at:] = donor[rng.randint(0, len(donor)) :]
        elif change == 6:
            del new[at:]
    return bytes(new)
