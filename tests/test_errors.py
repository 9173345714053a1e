"""Messages: what a hostile file puts into them cannot control or flood the terminal."""

import pickle

from nram.errors import MOST_CHARACTERS, NotSaved, NramError, UntrustedFile, UsageError
from nram.programs.ir import ProgramError


def test_control_characters_are_escaped_and_line_breaks_stay():
    assert str(UsageError("there is no task '\x1b[31m\x00\u202e\ud800é':\n  - use copy")) == (
        "there is no task '\\x1b[31m\\x00\\u202e\\ud800é':\n  - use copy"
    )


def test_a_long_message_keeps_its_beginning_and_its_end():
    message = str(NramError(f"the setting '{'x' * 10**6}' is unknown: did you mean batch?"))
    assert len(message) <= MOST_CHARACTERS
    assert message.startswith("the setting 'xx") and message.endswith("xx' is unknown: did you mean batch?")


def test_errors_come_back_whole_from_another_process():
    for error in (
        UsageError("no"),
        NotSaved("cannot write it", "the program"),
        UntrustedFile([("task", "/a.py")], "a run"),
        ProgramError(["one thing", "another"]),
    ):
        same = pickle.loads(pickle.dumps(error))
        assert type(same) is type(error) and str(same) == str(error) and same.__dict__ == error.__dict__
