"""`nram completion`: a script with which a shell completes verbs, options, names and files.

The script is made from the parser of the command line. It is plain shell code, so completing does not start Python.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nram.cli.examples import example_files
from nram.cli.output import print_json
from nram.extensions import module_names, task_names
from nram.programs.library import zoo_entries

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print a script with which your shell completes the verbs and options of nram, the names of tasks, modules, "
        "programs and examples, and files."
    )
    parser.epilog = (
        "bash: 'nram completion bash > ~/.nram_completion', and a line '. ~/.nram_completion' in ~/.bashrc. zsh: the "
        "same with zsh, and the line in ~/.zshrc after compinit. fish: 'nram completion fish > "
        "~/.config/fish/completions/nram.fish'. New shells know it."
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that the script is for")


def run(arguments: argparse.Namespace) -> int:
    from nram.cli import build_parser  # which imports this module

    commands = list(_commands(build_parser(), ()))
    script = _fish(commands) if arguments.shell == "fish" else _filled(SCRIPTS[arguments.shell], commands)
    if arguments.json:
        print_json({"shell": arguments.shell, "script": script})
    else:
        print(script, end="")
    return 0


# ---- what can be completed


@dataclass(frozen=True)
class Values:
    """What may stand in one place of a command."""

    names: tuple[str, ...] = ()
    files: bool = False

    def __add__(self, other: Values) -> Values:
        return Values((*self.names, *other.names), self.files or other.files)


@dataclass(frozen=True)
class Command:
    """nram itself, a verb, or a subject of a verb."""

    words: tuple[str, ...]
    summary: str
    subcommands: tuple[Command, ...]
    options: dict[str, Values | None]
    """Each with its values; None: it takes none."""
    positional: Values

    @property
    def title(self) -> str:
        return " ".join(self.words)


NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "TASK": task_names,
    "MODULE": module_names,
    "PROGRAM": lambda: [name for entry in zoo_entries() for name in (entry.name, entry.title)],
    "CERTIFICATE": lambda: [entry.title for entry in zoo_entries() if entry.has_certificate],
    "EXAMPLE": lambda: [part for name in example_files() for part in (name, name.split("/")[0])],
}
"""The names that can stand where an argument is called so."""
FILES = {"TASK", "MODULE", "PROGRAM", "CERTIFICATE", "EXAMPLES", "FILE", "DIR", "RUN"}


def _commands(parser: argparse.ArgumentParser, words: tuple[str, ...], summary: str = "") -> Iterator[Command]:
    """The command of this parser, and those below it."""
    options: dict[str, Values | None] = {}
    positionals, below = [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {one.dest: one.help or "" for one in action._choices_actions}
            for name, one in action.choices.items():
                below += _commands(one, (*words, name), summaries[name])
        elif action.option_strings:
            options |= dict.fromkeys(action.option_strings, None if action.nargs == 0 else _values(action))
        else:
            positionals.append(action)
    if len(positionals) > 1 and positionals[0].choices is not None:  # as in: nram examples copy NAME
        first, *rest = positionals
        positionals, values = [], sum(map(_values, rest), Values())
        below += [Command((*words, str(name)), "", (), options, values) for name in first.choices or ()]
    positional = sum(map(_values, positionals), Values())
    direct = tuple(one for one in below if len(one.words) == len(words) + 1)
    yield Command(words, summary, direct, options, positional)
    yield from below


def _values(action: argparse.Action) -> Values:
    if action.choices is not None:
        return Values(tuple(map(str, action.choices)))
    kinds = str(action.metavar).split("|")
    written = action.type is Path  # such as --out PROGRAM
    names = [] if written else [name for kind in kinds if kind in NAMES for name in NAMES[kind]()]
    return Values(tuple(dict.fromkeys(names)), written or not FILES.isdisjoint(kinds))


# ---- bash and zsh

SCRIPTS = {}
SCRIPTS["bash"] = """\
# Completes the command nram in bash. Made by: nram completion bash
_nram() {
    local line=${COMP_LINE:0:COMP_POINT} command=${COMP_WORDS[1]} option names= files= name
    local current=${line##*[[:space:]]}
    local -a before
    read -ra before <<< "${line%"$current"}"
    option=${before[${#before[@]} - 1]}
    ((${#before[@]} > 1)) || command=
    case "$command" in
        GROUPS) ((${#before[@]} > 2)) && command+=" ${before[2]}" ;;
    esac
    [[ $current == --*=* ]] && option=${current%%=*} && current=${current#*=}
    CASES
    COMPREPLY=($(compgen -W "$names" -- "$current"))
    if [[ -n $files && $line == *[\\\\\\"\\']* ]]; then
        compopt -o default  # names with quotes are left to the shell
    elif [[ -n $files ]]; then
        while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$current")
        compopt -o filenames
    fi 2> /dev/null
    # The shell replaces only what follows the last of @ = : in a word.
    COMPREPLY=("${COMPREPLY[@]#"${current%"$2"}"}")
}
complete -F _nram nram
"""

SCRIPTS["zsh"] = """\
#compdef nram
# Completes the command nram in zsh. Made by: nram completion zsh
_nram() {
    local command=${words[2]} option=${words[CURRENT - 1]} current=$PREFIX names= files= missing=1
    ((CURRENT > 2)) || command=
    case "$command" in
        GROUPS) ((CURRENT > 3)) && command+=" ${words[3]}" ;;
    esac
    if [[ $current == --*=* ]]; then
        option=${current%%=*}
        compset -P '*='
    fi
    CASES
    [[ -n $names ]] && compadd -- ${=names} && missing=0
    [[ -n $files ]] && _files && missing=0
    return missing
}
if [[ $funcstack[1] == _nram ]]; then
    _nram "$@"
else
    compdef _nram nram
fi
"""


def _filled(script: str, commands: list[Command]) -> str:
    """The script with the table of commands. Names and files are set by the option before the cursor, or else by the
    command."""
    options = [
        (shlex.quote(f"{one.title} {option}"), values)
        for one in commands
        for option, values in one.options.items()
        if values is not None
    ]
    places = [(shlex.quote(f"{one.title}:-") + "*", Values(tuple(one.options))) for one in commands]
    for one in commands:
        names = Values(tuple(below.words[-1] for below in one.subcommands))
        places.append((shlex.quote(f"{one.title}:") + "*", names + one.positional))
    cases = ['case "$command $option" in', *_branches(options)]
    cases += [
        '    *) case "$command:$current" in',
        *(f"    {line}" for line in _branches(places)),
        "    esac ;;",
        "esac",
    ]
    return script.replace("GROUPS", _groups(commands)).replace("CASES", "\n    ".join(cases))


def _branches(table: list[tuple[str, Values]]) -> Iterator[str]:
    """A branch of shell code for each value, with all patterns that lead to it. Those of options come first."""
    patterns: dict[Values, list[str]] = {}
    for pattern, values in table:
        patterns.setdefault(values, []).append(pattern)
    for values, several in patterns.items():
        files = " files=yes" if values.files else ""
        yield f"    {'|'.join(several)}) names={shlex.quote(' '.join(values.names))}{files} ;;"


def _groups(commands: list[Command]) -> str:
    """The verbs that have subjects, as a pattern."""
    return "|".join(one.title for one in commands if one.subcommands and one.words)


# ---- fish

FISH = """\
# Completes the command nram in fish. Made by: nram completion fish
function __nram_at
    set -l words (commandline -opc)
    set -l command $words[2]
    contains -- "$command" GROUPS; and set command (string trim "$command $words[3]")
    test "$command" = "$argv"
end
complete -c nram -f
"""


def _fish(commands: list[Command]) -> str:
    lines = [FISH.replace("GROUPS", _groups(commands).replace("|", " "))]
    for one in commands:
        start = f"complete -c nram -n {shlex.quote(f'__nram_at {one.title}')}"
        lines += [f"{start} -a {below.words[-1]} -d {_fish_quoted(below.summary)}\n" for below in one.subcommands]
        lines += [f"{start}{_fish_values(one.positional)}\n"] if one.positional != Values() else []
        for option, values in one.options.items():
            kind = "-l" if option.startswith("--") else "-s"
            given = "" if values is None else " -r" + _fish_values(values)
            lines.append(f"{start} {kind} {option.lstrip('-')}{given}\n")
    return "".join(lines)


def _fish_values(values: Values) -> str:
    names = f" -a {_fish_quoted(' '.join(values.names))}" if values.names else ""
    return f"{names}{' -F' if values.files else ' -f'}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
