"""Commands in messages can be pasted into a shell, and names in them cannot control the terminal."""

import shlex
import subprocess
from pathlib import Path

import pytest

from nram.messages import command, pasted, visible

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
    text = command("train", name, out=tmp_path / name, resume=True)
    words = ["nram", "train", name, "--out", f"{tmp_path}/{name}", "--resume"]
    assert shlex.split(text) == words
    script = f'nram() {{ printf "%s\\0" nram "$@"; }}; {text}'
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == words
    assert list(tmp_path.iterdir()) == []


def test_options_are_repeated_or_left_out():
    assert command("verify", "x.json", task=None, module=["a.py", Path("b.py")], max_steps=6) == (
        "nram verify x.json --module a.py --module b.py --max-steps 6"
    )
    assert command("run", "copy", memory="4 7 0") == 'nram run copy --memory "4 7 0"'


def test_a_file_whose_name_begins_with_a_dash_is_not_an_option():
    assert command("eval", Path("-run"), out="--help") == "nram eval ./-run --out ./--help"
    assert pasted("run/-x") == "run/-x"


def test_only_characters_that_can_be_seen_reach_the_terminal():
    assert visible("a\x1b[31mb\x07\r\u202ec\nd é") == "a\\x1b[31mb\\x07\\r\\u202ec\nd é"
