"""`nram export-page`: one HTML file that shows a program at work, without a server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nram.cli.arguments import natural, positive
from nram.cli.memory_argument import HELP, add_input, named_memory, read_memory
from nram.cli.output import print_json
from nram.cli.program_argument import add_modules, add_program, program_of, require_limit
from nram.errors import UsageError
from nram.explorer.export import FIRST, exported_page, task_inputs
from nram.explorer.settings import MOST_CELLS, MOST_STEPS
from nram.files import check_destination, write_result
from nram.programs.library import task_of
from nram.programs.memory import default_max_steps, prepare_memory

if TYPE_CHECKING:
    from nram.programs.ir import Program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write one HTML file that shows a program at work, step by step. It needs no server and no network: open it "
        "from the disk, put it on a web site, show it in a lecture. Readers can type inputs of their own."
    )
    add_program(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the page, NAME.html")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--memory", metavar="CELLS", help=f"the input at the start. {HELP}; here only one memory")
    add_input(source)
    parser.add_argument("--memory-size", type=positive, metavar="M", help="pad that memory with zeros to M cells")
    parser.add_argument("--task", metavar="TASK", help="offer instances of this task (default: the program's task)")
    parser.add_argument("--complexity", type=positive, metavar="N", help=f"begin with this n (default: {FIRST})")
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="of the instances (default: 0)")
    parser.add_argument(
        "--max-steps", type=natural, metavar="N", help="step limit on --memory (default: until it halts)"
    )
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.out.suffix not in (".html", ".htm"):
        raise UsageError(f"{arguments.out} is not the name of a page: let it end in .html")
    check_destination(arguments.out)
    program = program_of(arguments)
    inputs = [*_given(arguments, program), *_instances(arguments, program)]
    if not inputs:
        raise UsageError(f"{program.name} has no task, so it has no inputs to show: give --memory or --task")
    write_result(arguments.out, exported_page(program, inputs).encode())
    if arguments.json:
        print_json({"out": str(arguments.out), "program": program.name, "inputs": len(inputs)})
    else:
        print(f"{arguments.out}: open it in a browser")
    return 0


def _given(arguments: argparse.Namespace, program: Program) -> list[dict[str, Any]]:
    """The input that the user names, if there is one."""
    if arguments.memory is not None:
        memory = prepare_memory(read_memory(arguments.memory), arguments.memory_size)
        if memory.ndim != 1:
            raise UsageError("a page shows one memory, not a batch: give one")
    elif arguments.input is not None:
        memory = prepare_memory(named_memory(program, arguments.input), arguments.memory_size)
    elif arguments.max_steps is not None:
        raise UsageError("--max-steps is for --memory: instances of a task have their T(n)")
    elif arguments.memory_size is not None:
        raise UsageError("--memory-size is for --memory: instances of a task have their size")
    else:
        return []
    require_limit(program, arguments.max_steps)
    if len(memory) > MOST_CELLS:
        raise UsageError(f"a page shows at most {MOST_CELLS} cells, and the memory has {len(memory)}")
    limit = default_max_steps(len(memory)) if arguments.max_steps is None else arguments.max_steps
    if limit > MOST_STEPS:
        raise UsageError(f"a page shows at most {MOST_STEPS} steps: give fewer with --max-steps")
    return [{"input": memory.tolist(), "steps": limit}]


def _instances(arguments: argparse.Namespace, program: Program) -> list[dict[str, Any]]:
    """Instances of the task, that with the n asked for first."""
    if program.task is None and arguments.task is None:
        return []
    task = task_of(program, arguments.task)
    wanted = FIRST if arguments.complexity is None else arguments.complexity
    if task.least_memory(max(wanted, task.min_complexity)) > MOST_CELLS:
        raise UsageError(f"--complexity {wanted} needs more than {MOST_CELLS} cells, the most that a page shows")
    return task_inputs(program, task, wanted, arguments.seed)
