"""`nram trace`: show step by step what a program, or the continuous machine of a run, does."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nram.cli.arguments import add_device, add_theme, natural, positive
from nram.cli.memory_argument import HELP, add_input, named_memory, read_memory
from nram.cli.output import print_json, terminal_width
from nram.cli.program_argument import add_modules, add_program, program_of, require_limit
from nram.cli.run_argument import add_trust, open_run
from nram.errors import UsageError
from nram.extensions import known_task
from nram.extras import require
from nram.files import check_destination, write_result
from nram.messages import command
from nram.pictures.trace_html import trace_to_html
from nram.pictures.trace_records import PICTURE_SUFFIXES, Trace
from nram.pictures.traces import record_trace, trace_to_json, trace_to_latex, trace_to_text
from nram.programs.library import find_entry, limit_for, task_of, zoo_weights
from nram.programs.memory import prepare_memory
from nram.runtime import prepare_devices
from nram.training.run_folder import load_weights, read_config

if TYPE_CHECKING:
    from nram.machine import Controller
    from nram.programs.ir import Program
    from nram.tasks.base import Instance, Task
    from nram.training.config import TrainConfig

FORMATS = {".txt": "text", ".tex": "latex", ".html": "html", ".json": "json"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Show memory and registers at the start of every step, and the arguments of READ and WRITE, as in "
        "the paper's tables. The memory is given, or an instance of the program's task is sampled."
    )
    parser.epilog = (
        "--out FILE takes the format from its suffix: .txt, .tex, .html, .json; .png, .svg and .pdf are heat "
        "maps. Rows are counted from 1, states from 0."
    )
    add_program(parser, "; with --soft a run or a name")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--memory", metavar="CELLS", help=f"{HELP}; here only one memory")
    add_input(source)
    parser.add_argument(
        "--task",
        metavar="TASK",
        help="sample an instance of this task (default: the program's task); with --soft, the file of the run's task",
    )
    parser.add_argument("--complexity", type=positive, metavar="N", help="its complexity (default: 5, or the smallest)")
    parser.add_argument("--seed", type=natural, metavar="S", help="seed of the instance (default: 0)")
    parser.add_argument("--memory-size", type=positive, metavar="M", help="pad the memory with zeros to M cells")
    parser.add_argument("--max-steps", type=natural, metavar="N", help="step limit (default: T(n), or until it halts)")
    parser.add_argument("--format", choices=sorted(FORMATS.values()), help="default: text, or by the suffix of --out")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to a file instead of standard output")
    add_theme(parser)
    parser.add_argument("--full", action="store_true", help="show everything, however large it is")
    parser.add_argument(
        "--soft",
        action="store_true",
        help="trace the continuous machine of a run's member, or of the zoo's weights: the most probable values with "
        "their probabilities",
    )
    parser.add_argument("--member", type=natural, metavar="K", help="with --soft: which member (default: 0, the best)")
    add_device(parser)
    add_modules(parser, "the program or the run")
    add_trust(parser)


def run(arguments: argparse.Namespace) -> int:
    form = _form(arguments)
    if arguments.out is not None:
        check_destination(arguments.out)
    if arguments.memory is not None or arguments.input is not None:
        given = [name for name in ("task", "complexity", "seed") if getattr(arguments, name) is not None]
        if given:
            source = "--input" if arguments.memory is None else "--memory"
            raise UsageError(f"{source} and --{given[0]} exclude each other: an instance has its own memory")
    if arguments.soft and arguments.input is not None:
        raise UsageError("--input is for programs with named inputs: with --soft, give --memory")
    return _trace_soft(arguments, form) if arguments.soft else _trace_program(arguments, form)


def _form(arguments) -> str:
    """The format asked for: one of FORMATS, or 'picture'."""
    if arguments.out is None:
        return arguments.format or "text"
    ending = arguments.out.suffix.lower()
    form = "picture" if ending in PICTURE_SUFFIXES else FORMATS.get(ending, arguments.format)
    if form == "picture":
        require("plots", f"a picture ({ending})")
    if form is None:
        raise UsageError(
            f"{arguments.out} has an unknown suffix: use {', '.join((*FORMATS, *PICTURE_SUFFIXES))}, or --format"
        )
    if arguments.format not in (None, form):
        raise UsageError(f"{arguments.out} contradicts --format {arguments.format}: leave one of them out")
    return form


# ---- programs


def _trace_program(arguments, form: str) -> int:
    if arguments.member is not None or arguments.trust:
        option = "--member" if arguments.member is not None else "--trust"
        raise UsageError(f"{option} is for runs: add --soft, or leave it out")
    if (Path(arguments.program) / "run.json").is_file():
        raise UsageError(
            f"{arguments.program} is a training run: --soft traces its continuous machine, "
            f"{command('extract', arguments.program)} makes a program from it"
        )
    program = program_of(arguments)
    trace = _record(arguments, program)
    if form == "picture":
        from nram.pictures.heatmaps import draw_heatmap

        draw_heatmap(trace, arguments.out, arguments.theme)
    words = None if form == "picture" else _in_words(trace, form, arguments)
    return _deliver(arguments, words, lambda: trace_to_json(trace), f"{program.name}: {'; '.join(trace.outcome())}")


def _record(arguments, program: Program) -> Trace:
    memory = None if arguments.memory is None else read_memory(arguments.memory)
    if arguments.input is not None:
        memory = named_memory(program, arguments.input)
    if memory is not None:
        require_limit(program, arguments.max_steps)
        return record_trace(program, memory, arguments.max_steps, arguments.memory_size)
    if program.task is None and arguments.task is None:
        source = "--memory" if program.layout is None else "--input, --memory"
        raise UsageError(f"{program.name} has no task, so no instance can be sampled: give {source} or --task")
    task = task_of(program, arguments.task)
    complexity, instance = _sample(arguments, task)
    limit = limit_for(program, task)(complexity) if arguments.max_steps is None else arguments.max_steps
    return record_trace(program, instance.input, limit, instance=instance)


def _sample(arguments, task: Task) -> tuple[int, Instance]:
    """An instance of a task, with its complexity."""
    complexity = max(5, task.min_complexity) if arguments.complexity is None else arguments.complexity
    return complexity, task.sample(complexity, 1, arguments.seed or 0, arguments.memory_size)[0]


def _in_words(trace: Trace, form: str, arguments) -> str:
    """The trace in one of the text formats."""
    if form == "text":
        return _with_hint(trace_to_text(trace, **_sizes(arguments)), arguments)
    if form == "json":
        return json.dumps(trace_to_json(trace)) + "\n"
    sizes = {"most_cells": None, "most_steps": None} if arguments.full else {}
    return (trace_to_latex if form == "latex" else trace_to_html)(trace, **sizes)


# ---- the continuous machine


def _trace_soft(arguments, form: str) -> int:
    if form in ("latex", "html"):
        raise UsageError(f"a soft trace has no {form} form: use text or JSON, or a picture (--out FILE.png)")
    config, load, title = _weights(arguments)
    memory, limit, instance = _soft_input(arguments, config)
    prepare_devices(arguments.device)
    from nram.pictures.soft_traces import record_soft_trace, soft_trace_to_json, soft_trace_to_text
    from nram.training.member import machine_options, wiring_of

    trace = record_soft_trace(
        load(), wiring_of(config.machine), memory, limit, machine_options(config), instance=instance
    )
    words = None
    if form == "picture":
        from nram.pictures.soft_pictures import draw_soft_trace  # matplotlib

        draw_soft_trace(trace, arguments.out, title, arguments.theme)
    elif form == "json":
        words = json.dumps(soft_trace_to_json(trace, arguments.full)) + "\n"
    else:
        words = f"{title}\n\n" + _with_hint(soft_trace_to_text(trace, **_sizes(arguments)), arguments)
    summary = f"{title}: {'; '.join(trace.outcome())}"
    return _deliver(arguments, words, lambda: soft_trace_to_json(trace, arguments.full), summary)


def _weights(arguments) -> tuple[TrainConfig, Callable[[], Controller], str]:
    """The configuration of a run's member or of a zoo entry, a function that loads the network, and a title."""
    entry = find_entry(arguments.program)
    if entry is None:
        folder, member = open_run(Path(arguments.program), arguments), arguments.member or 0
        title = f"{folder.config.task_name}, member {member} of {folder.path}"
        return folder.member_config(member), lambda: folder.load_member(member)[1], title
    if arguments.member is not None:
        raise UsageError("--member is for runs, and a program of the zoo has only one: leave it out")
    if arguments.task is not None:
        raise UsageError("--task and --soft exclude each other: weights of the zoo have their own task")

    def load() -> Controller:
        with zoo_weights(entry) as path:
            return load_weights(path)[1]

    with zoo_weights(entry) as path:
        return read_config(path), load, f"{entry.title} of the zoo"


def _soft_input(arguments, config) -> tuple[list[int], int, Instance | None]:
    """The memory, the step limit, and the instance if one was sampled."""
    if arguments.memory is None:
        complexity, instance = _sample(arguments, known_task(config.task))
        limit = config.step_limit(complexity) if arguments.max_steps is None else arguments.max_steps
        return instance.input, limit, instance
    if arguments.max_steps is None:
        raise UsageError("give --max-steps: the number of steps of the continuous machine on this memory")
    memory = prepare_memory(read_memory(arguments.memory), arguments.memory_size)
    if memory.ndim != 1:
        raise UsageError("a trace is of one memory, not of a batch: give one")
    return memory.tolist(), arguments.max_steps, None


# ---- output


def _sizes(arguments) -> dict[str, Any]:
    return {"width": None, "most_steps": None} if arguments.full else {"width": terminal_width()}


def _with_hint(text: str, arguments) -> str:
    return text if arguments.full or "\nleft out: " not in text else f"{text.rstrip()} (--full shows everything)\n"


def _deliver(arguments, words: str | None, value: Callable[[], Any], summary: str) -> int:
    """Write the text to --out, or else to standard output. With --json, standard output gets the value."""
    if arguments.out is not None and words is not None:
        write_result(arguments.out, words.encode())
    if arguments.json:
        print_json(value())
    elif arguments.out is None:
        print(words, end="")
    else:
        print(f"{summary}\n{arguments.out}")
    return 0
