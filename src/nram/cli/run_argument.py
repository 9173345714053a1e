"""Runs as arguments of verbs, with the Python files of user-defined tasks and modules that they name."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nram.cli.arguments import natural
from nram.cli.program_argument import add_modules, load_modules
from nram.errors import UsageError
from nram.extensions import get_task, is_file_name, known_task
from nram.training.config import TrainConfig
from nram.training.run_folder import RunFolder


def add_run(parser: argparse.ArgumentParser) -> None:
    """The positional argument RUN, and the options that say which member of it and which files may be executed."""
    add_run_folder(parser)
    parser.add_argument(
        "--member", type=natural, default=0, metavar="K", help="index of the member (default: 0, the best)"
    )


def add_run_folder(parser: argparse.ArgumentParser) -> None:
    """The positional argument RUN, and the options that say which files may be executed."""
    parser.add_argument("path", type=Path, metavar="RUN", help="a folder that 'nram train' wrote, like runs/copy-0")
    parser.add_argument("--task", metavar="FILE", help="the file of the run's task, if it is user-defined")
    add_modules(parser, "the run")
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser, what: str = "the run's folder") -> None:
    parser.add_argument(
        "--trust",
        action="store_true",
        help=f"execute the Python files of user-defined tasks and modules that only {what} names",
    )


def open_run(path: Path, arguments: argparse.Namespace) -> RunFolder:
    """The run in this folder, with the member that --member names, if there is such an option.

    Files that the user names are executed.
    """
    load_modules(arguments)
    named = None if arguments.task is None else get_task(arguments.task)
    folder = RunFolder.open(path, arguments.trust)
    if "member" in arguments:
        folder.member_file(arguments.member or 0)  # a refusal does not wait for JAX
    if named is not None and named is not known_task(folder.config.task):
        raise UsageError(f"{path} is a run of the task {folder.config.task!r}: leave out --task {arguments.task}")
    return folder


def file_options(config: TrainConfig) -> dict[str, Any]:
    """The options of `add_run` that name the files of a configuration, for `command`."""
    return {"task": config.task if is_file_name(config.task) else None, "module": list(config.module_files)}
