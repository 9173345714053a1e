"""Help, the version and bad usage: answered at once, without JAX, with what to change."""

import argparse
import json
import re
import subprocess
import sys
from typing import Any

import pytest
from support.configs import PLAIN

import nram as package
from nram.cli import build_parser
from nram.extensions import task_names

# Runs every command in one process and says how each ended and whether JAX was imported by then.
WITHOUT_JAX = """
import contextlib, io, json, sys
from nram.cli import main

outcomes = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(words)
        except SystemExit as stop:
            status = stop.code
    outcomes.append([status, out.getvalue(), err.getvalue(), "jax" in sys.modules])
print(json.dumps(outcomes))
"""

VERBS = ("tasks", "sample", "train", "eval", "bench")
HELP = [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS), ["bench", "step", "--help"]]
LISTS = [["tasks"], ["sample", "copy", "--json"], ["train", "access", "--set", "help"]]
NOWHERE = "/nowhere/at/all"

# What is asked for, and words that the answer must hold.
BAD: list[tuple[list[str], tuple[str, ...]]] = [
    ([], ("VERB", "learn a program from a file of examples")),
    (["trian"], ("'trian'", "did you mean train?", "nram --help")),
    (["zzz"], ("'zzz'", "tasks", "sample", "train", "eval", "bench")),
    (["train"], ("TASK", "nram train --help")),
    (["train", "acces"], ("'acces'", "did you mean access?", *task_names())),
    (["sample", "Copy"], ("'Copy'", "did you mean copy")),
    (["sample", "lisk"], ("listk", "listsearch")),
    (["bench", "step", "--task", "merg"], ("did you mean merge",)),
    (["train", "access", "--set", "regsters=2"], ("'regsters'", "did you mean machine.registers?")),
    (["train", "access", "--set", "learningrate=1"], ("did you mean hyper.learning_rate?",)),
    (["train", "access", "--set", "stages.0.stepz=1"], ("did you mean stages.0.steps",)),
    (["train", "access", "--set", "stages.7.steps=1"], ("stages.7.steps", "0 to 2")),
    (["train", "access", "--set", "qqqq=1"], ("'qqqq'", "--set help")),
    (["train", "access", "--set", "batch"], ("key=value", "'batch'")),
    (["train", "access", "--set", "batch=none"], ("batch", "whole number")),
    (["train", "access", "--config", NOWHERE], (NOWHERE, "No such file")),
    (["train", "access", "--seed", "x"], ("--seed", "'x' is not a whole number")),
    (["train", "access", "--seed", "4294967296"], ("--seed", "4294967296 is too large", "4294967295")),
    (["eval", "/", "--seed", "4294967296"], ("--seed", "4294967296 is too large")),
    (["train", "access", "--device", "gpx"], ("'gpx'", "did you mean gpu?")),
    (["sample", "access", "--count", "-1"], ("--count", "-1 is negative", "from 0 up")),
    (["sample", "access", "--complexity", "0"], ("--complexity", "0 is too small", "from 1 up")),
    (["sample", "swap", "--complexity", "1"], ("swap", "complexity 1", "from 2 up")),
    (["sample", "access", "--complexity", "5", "--memory-size", "6"], ("at least 7",)),
    (["eval", NOWHERE], (NOWHERE, "does not exist", "nram train TASK")),
    (["eval", "/"], ("/ is not a run", "no run.json")),
    (["eval", __file__], (__file__, "is a file")),
    (["train", "access", "--out", __file__], (f"{__file__} is a file", "--out")),
    (["train", "access", "--out", f"{__file__}/below"], (f"{__file__} is a file", "--out")),
    (["train", "access", "--out", "/"], ("/ is not empty", "--out")),
    (["train", "access", "--out", "/", "--resume"], ("/ is not empty", "no run.json", "--out")),
    (["bench", "step", "--task", "merge", "--memory-size", "6"], ("6 is too small for merge", "7")),
    (["bench", "stop"], ("'stop'", "did you mean step?")),
]


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, ...], list[Any]]:
    commands = [*HELP, *LISTS, *(words for words, _ in BAD)]
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAX, json.dumps(commands)], capture_output=True, text=True, check=True
    )
    return {tuple(words): outcome for words, outcome in zip(commands, json.loads(process.stdout), strict=True)}


@pytest.mark.parametrize("words", HELP + LISTS, ids=" ".join)
def test_help_and_lists_answer_on_standard_output_without_jax(outcomes, words):
    status, out, err, jax_imported = outcomes[tuple(words)]
    assert (status, err, jax_imported) == (0, "", False)
    assert out.strip()


@pytest.mark.parametrize(("words", "expected"), BAD, ids=[" ".join(words) or "nothing" for words, _ in BAD])
def test_bad_usage_exits_with_2_and_says_what_to_change_without_jax(outcomes, words, expected):
    status, out, err, jax_imported = outcomes[tuple(words)]
    assert (status, out, jax_imported) == (2, "", False)
    for word in expected:
        assert word in err
    assert "Traceback" not in err
    assert "did you mean ?" not in err


def test_help_names_every_verb_and_the_exit_statuses(outcomes):
    _, out, _, _ = outcomes[("--help",)]
    for word in (*VERBS, "0 on success", "1 when the work failed", "2 on bad usage"):
        assert word in " ".join(out.split())


def test_help_of_train_names_what_scripts_rely_on(outcomes):
    _, out, _, _ = outcomes[("train", "--help")]
    for option in ("--seed", "--out", "--resume", "--device", "--config", "--set", "--json"):
        assert option in out


def test_the_version_is_that_of_the_package(outcomes):
    assert outcomes[("--version",)][1] == f"nram {package.__version__}\n"


def test_set_help_lists_every_setting_with_its_value(outcomes):
    _, out, _, _ = outcomes[("train", "access", "--set", "help")]
    for line in ("seed = 0", "curriculum.enabled = false", "groups.0.stages.1.max_complexity = 20"):
        assert line in out.splitlines()
    assert 'groups.0.hyper.learning_rate = "0.005..0.03"' in out.splitlines()
    assert "groups.1.machine.registers = 6" in out.splitlines()
    assert not re.search("^(machine|hyper|stages|batch)", out, re.MULTILINE)  # the groups have their own


def test_set_help_lists_the_settings_of_a_file_without_groups(call):
    out = call("train", "access", "--config", PLAIN, "--set", "help").out
    for line in ("seed = 0", "machine.registers = 4", "curriculum.enabled = true", "stages.1.max_complexity = 20"):
        assert line in out.splitlines()


def test_set_help_as_json_with_other_settings_applied(call):
    settings = call("train", "access", "--set", "help", "--set", "registers=9", "--seed", "4", "--json").value
    assert {group["machine"]["registers"] for group in settings["groups"]} == {9}
    assert settings["seed"] == 4


def test_an_old_name_of_a_setting_works_and_says_its_new_name(nram):
    old = nram.run("train", "access", "--config", PLAIN, "--set", "entropy_penalty=0.5", "--set", "help")
    assert old.status == 0 and "hyper.wire_penalty = 0.5" in old.out.splitlines()
    assert old.err == (
        "nram train: the setting 'entropy_penalty' is now called hyper.wire_penalty: the old name goes in nram 0.4\n"
    )


def test_the_installed_command_exits_with_the_status_of_its_work(nram):
    assert nram.run("tasks", "--json").status == 0
    refused = nram.run("sample", "nothing")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith("nram sample: there is no task 'nothing'")


def test_a_reader_that_goes_away_leaves_no_traceback(nram):
    process = nram.start("sample", "copy", "--count", "20000", "--json")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (0, "")


def test_a_run_whose_name_the_system_refuses_is_one_clear_message(call):
    outcome = call("train", "access", "--out", "x" * 300)
    assert outcome.status in (1, 2)
    assert "File name too long" in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_every_argument_of_every_verb_is_explained():
    (verbs,) = (action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    for verb, parser in verbs.choices.items():
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), (
                f"nram {verb}: {action.metavar or action.dest}"
            )
