"""Messages: commands that can be pasted, options or arguments for their reader, names without control characters.

Messages are written for the command line: they say `--max-steps`. The same errors reach callers in Python. There
options are shown as arguments (`max_steps`) and commands as calls.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from typing import Any

_on_command_line = False
_FLAGS = ("resume", "trust")
_PYTHON_NAMES = {"emit": "form", "set": "settings"}
"""Options whose argument in Python has another name."""
_COMMAND_OR_OPTION = re.compile(
    r"(?P<command>(?<!\w)'[a-z][\w-]+ [^'\n]*')"  # a command in quotes is for a shell in any case
    r"|(?<![\w/.'-])--(?P<name>[a-z][a-z-]*)"
    r"(?:[ =](?P<value>[A-Z][\w:/.]*\w/?|[0-9][\w+]*|[\w./-]+\.py\b|[\w.]+=\w+))?"
)


@contextlib.contextmanager
def on_command_line() -> Iterator[None]:
    """Messages are for the command line while this lasts."""
    global _on_command_line
    before, _on_command_line = _on_command_line, True
    try:
        yield
    finally:
        _on_command_line = before


def in_python() -> bool:
    """Whether messages are for callers in Python."""
    return not _on_command_line


def addressed(text: str) -> str:
    """A message for its reader: as it is on the command line; in Python, arguments instead of options."""
    return _COMMAND_OR_OPTION.sub(_argument, text) if in_python() else text


def _argument(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    match name:
        case None:
            return found["command"]
        case "set" if value:
            key, _, setting = value.partition("=")
            return f"settings={{{key!r}: {setting if setting.isdigit() else repr(setting)}}}"
        case "module" if value:
            return f"nram.get_module({value!r})"
        case _ if name in _FLAGS:
            return f"{name}=True"
    argument = _PYTHON_NAMES.get(name, name.replace("-", "_"))
    return f"'{argument}'" if value is None else f"{argument}={value if value.isdigit() else repr(value)}"


def command(verb: str, *values: Any, **options: Any) -> str:
    """A command for the reader of a message: for a shell, or as the call in Python that does the same.

    A call leaves out the files of modules: in Python they are loaded beforehand.
    """
    if not in_python():
        return shell_command(verb, *values, **options)
    given = {name: value for name, value in options.items() if value is not None and name != "module"}
    words = [repr(_plain(value)) for value in values]
    words += [f"{name}={_plain(value)!r}" for name, value in given.items()]
    return f"nram.{verb}({', '.join(words)})"


def shell_command(verb: str, *values: Any, **options: Any) -> str:
    """The command `nram VERB VALUES --OPTION VALUE ...`, quoted for a shell.

    An option with True has no value, one with a list is repeated, and one with None is left out.
    """
    words = ["nram", verb, *map(pasted, values)]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                words.append(f"--{name.replace('_', '-')}")
                words += [] if one is True else [pasted(one)]
    return " ".join(map(_quoted, words))


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float) else str(value)


def pasted(value: Any) -> str:
    """A value as a word of a command. One that begins with a dash is a file, and would be read as an option."""
    return f"./{value}" if str(value).startswith("-") else str(value)


def _quoted(word: str) -> str:
    """A word for a shell: numbers and words in double quotes, as docs write them, anything else as Python quotes it."""
    return f'"{word}"' if " " in word and word.replace(" ", "").isalnum() else shlex.quote(word)


def visible(text: str) -> str:
    """The text with control and unprintable characters escaped; line breaks stay.

    A name from a file cannot move the cursor, change colours or hide what a line says.
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
