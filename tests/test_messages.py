"""Commands in messages can be pasted into a shell, and names in them cannot control the terminal."""

import shlex
import subprocess
from pathlib import Path

import pytest

from nram.messages import addressed, command, on_command_line, pasted, shell_command, visible

HOSTILE = [
    "my run",
    "it's",
    '"',
    "$(touch pwned)",
    "`touch pwned`",
    "a;b",
    "*",
    "a\nb",
    "~",
    "été",
    "\\",
    "&",
    "#x",
    "!!",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_shell_reads_back_the_words(name, tmp_path):
    text = shell_command("train", name, out=tmp_path / name, resume=True)
    words = ["nram", "train", name, "--out", f"{tmp_path}/{name}", "--resume"]
    assert shlex.split(text) == words
    script = f'nram() {{ printf "%s\\0" nram "$@"; }}; {text}'
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == words
    assert list(tmp_path.iterdir()) == []


def test_options_are_repeated_or_left_out():
    assert shell_command("verify", "x.json", task=None, module=["a.py", Path("b.py")], max_steps=6) == (
        "nram verify x.json --module a.py --module b.py --max-steps 6"
    )
    assert shell_command("run", "copy", memory="4 7 0") == 'nram run copy --memory "4 7 0"'


def test_a_file_whose_name_begins_with_a_dash_is_not_an_option():
    assert shell_command("eval", Path("-run"), out="--help") == "nram eval ./-run --out ./--help"
    assert pasted("run/-x") == "run/-x"


def test_only_characters_that_can_be_seen_reach_the_terminal():
    assert visible("a\x1b[31mb\x07\r\u202ec\nd é") == "a\\x1b[31mb\\x07\\r\\u202ec\nd é"


@pytest.mark.parametrize(
    "written, in_python",
    [
        ("give fewer with --max-steps, or a smaller memory", "give fewer with 'max_steps', or a smaller memory"),
        ("go on with it by --resume, or choose another --out", "go on with it by resume=True, or choose another 'out'"),
        ("name its file (--task path/to/task.py)", "name its file (task='path/to/task.py')"),
        ("name its file (--module path/to/module.py)", "name its file (nram.get_module('path/to/module.py'))"),
        ("train with --set machine.controller=automaton", "train with settings={'machine.controller': 'automaton'}"),
        ("--set stages.0.population=4 or less", "settings={'stages.0.population': 4} or less"),
        ("--count 5 is too small", "count=5 is too small"),
        ("give --emit, or a name", "give 'form', or a name"),
        ("draw one with --row STATE:ROW, or", "draw one with row='STATE:ROW', or"),
    ],
)
def test_options_become_arguments_in_python(written, in_python):
    assert addressed(written) == in_python
    with on_command_line():
        assert addressed(written) == written


@pytest.mark.parametrize("same", ["'nram train TASK --set help' lists them", "cannot read /tmp/a--b/--out", "n--"])
def test_commands_in_quotes_and_names_of_files_stay(same):
    assert addressed(same) == same


def test_commands_become_calls_in_python():
    call = command("train", "copy", out=Path("my run"), resume=True, module=["a.py"], seed=None)
    assert call == "nram.train('copy', out='my run', resume=True)"
    with on_command_line():
        assert command("train", "copy", resume=True) == "nram train copy --resume"
