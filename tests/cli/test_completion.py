"""`nram completion`: real shells complete commands with the script, on a terminal, by the tab key."""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nram.cli import VERBS, build_parser, main

TAB = "\t"
PRINTS = {
    "bash": 'nram() { printf "<%s>" "$@"; echo; }',
    "zsh": 'nram() { printf "<%s>" "$@"; echo; }',
    "fish": 'function nram; printf "<%s>" $argv; echo; end',
}
"""A command nram that shows its words."""
START = {
    "bash": ("bash --norc --noprofile -i", "bind 'set bell-style none'; . ./script"),
    "zsh": ("zsh -f -i", "autoload -U compinit && compinit -u -D; unsetopt beep; . ./script"),
    "fish": ("fish --no-config -i", "source ./script"),
}
"""How each shell starts without the user's settings, and how it reads the script."""


# What a user types, a tab being ->, and the words of the command that it becomes.
TYPED = {
    "veri-> copy@t->": ["verify", "copy@trained"],
    "train wal-> --dev-> g->": ["train", "walkbst", "--device", "gpu"],
    "bench sc-> --pl-> own_p->": ["bench", "scaling", "--plot", "own_program.nram"],
    "bench step --contr-> ls->": ["bench", "step", "--controller", "lstm"],
    "draw own->": ["draw", "own_program.nram"],
    "learn with->": ["learn", "with space.jsonl"],
    "learn with\\ sp->": ["learn", "with space.jsonl"],
    "examples co-> files/su->": ["examples", "copy", "files/sum.jsonl"],
    "exa->": ["examples"],
    "modules LESS-T->": ["modules", "LESS-THAN"],
    "train --device=g->": ["train", "--device=gpu"],
    "verify --seed own->": ["verify", "--seed", "own"],
}


@pytest.mark.parametrize("shell", START)
def test_a_shell_completes_what_is_typed(shell, tmp_path: Path, capsys):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    for name in ("own_program.nram", "with space.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "examples").mkdir()  # its name is also a verb's
    assert dict(zip(TYPED, words_of(shell, list(TYPED), tmp_path), strict=True)) == TYPED


def words_of(shell: str, lines: list[str], folder: Path) -> list[list[str]]:
    """The words that the command nram gets after each of these lines was typed in a shell."""
    command, load = START[shell]
    with subprocess.Popen(
        [sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])", *command.split()],
        cwd=folder,
        env=os.environ | {"HOME": str(folder), "TERM": "xterm", "PS1": "$ "},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as terminal:
        answer(terminal, f"{PRINTS[shell]}; {load}; nram ready\n", "ready")
        found = [
            answer(terminal, f"nram {line.replace('->', TAB)} end{number}\n", f"end{number}")
            for number, line in enumerate(lines)
        ]
        terminal.communicate(b"exit\n", timeout=30)
        return found


def answer(terminal: subprocess.Popen[bytes], text: str, last: str) -> list[str]:
    """Type a text. The words before the last one that the command then shows."""
    assert terminal.stdin is not None and terminal.stdout is not None
    terminal.stdin.write(text.encode())
    terminal.stdin.flush()
    output = ""
    while not (found := re.search(rf"((?:<[^<>]*>)*)<{last}>", output)):
        assert select.select([terminal.stdout], [], [], 30)[0], output
        output += os.read(terminal.stdout.fileno(), 1 << 16).decode(errors="replace")
    return re.findall("<([^<>]*)>", found[1])


def test_every_verb_and_option_is_in_every_script(capsys):
    parser = build_parser()
    (verbs,) = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for shell in START:
        assert main(["completion", shell, "--json"]) == 0
        script = json.loads(capsys.readouterr().out)["script"]
        for verb in VERBS:
            assert re.search(rf"\b{verb}\b", script)
            for option in verbs[verb]._option_string_actions:
                assert re.search(rf"[ ']{option.lstrip('-') if shell == 'fish' else option}[ '\n]", script), option
