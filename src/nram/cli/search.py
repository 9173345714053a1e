"""`nram search`: a program straight from examples, by search in the space of programs."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nram.cli.arguments import add_reading, natural, positive, reading_of
from nram.cli.output import note, print_json
from nram.cli.program_argument import add_modules, load_modules, module_options
from nram.cluster.search import run_search
from nram.errors import NramError, UsageError
from nram.extensions.modules import files_of, split_names
from nram.messages import command, pasted
from nram.process import interruptible
from nram.programs.files import save_found, to_json
from nram.programs.ir import Program
from nram.programs.library import is_sketch_file, load_program, load_sketch
from nram.programs.simplify import simplify, size_of
from nram.programs.text import table_to_text
from nram.programs.verify import verify, why_no_proof
from nram.search.display import SearchProgress
from nram.search.job import ZOO, SearchJob, Space
from nram.search.state import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Find a program that solves a task, or fits a file of examples, by search in the space of "
        "programs. Small structures are tried first, chains of candidates grow longer, and what a program that fits "
        "gets wrong elsewhere joins the examples. Ctrl-C keeps the best so far."
    )
    parser.epilog = (
        "The same seed gives the same program, however many workers there are, here or on a cluster; not so with "
        "--any. The exit status is 1 if no program was found: the best so far is then written and shown. It does not "
        "replace a program that was in --out before; it is NAME.best.nram then."
    )
    parser.add_argument(
        "source",
        metavar="TASK|FILE",
        help="a task, by name or by its file (.py), or a file of examples, as 'nram learn' reads it",
    )
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS", help="default: 60")
    parser.add_argument("--candidates", type=positive, metavar="N", help="stop after so many, by whole rounds")
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="default: 0")
    parser.add_argument("--workers", type=positive, metavar="W", help="chains at once (default: one for each core)")
    parser.add_argument(
        "--address",
        metavar="A",
        help="run the chains on the Ray cluster at HOST:PORT; auto: the one of this machine; local: start Ray here",
    )
    parser.add_argument(
        "--any",
        action="store_true",
        help="take the first program that any chain finds: sooner, but the same seed may give another program",
    )
    parser.add_argument("--out", type=Path, metavar="PROGRAM", help="default: NAME.nram in the current folder")
    parser.add_argument("--resume", action="store_true", help="go on with the search that was saved beside --out")
    parser.add_argument("--registers", type=positive, metavar="R", help="look only at programs of this structure")
    parser.add_argument("--repeats", type=positive, metavar="K", help="how often a row may use each module")
    parser.add_argument("--states", type=positive, metavar="S", help="states of the program")
    parser.add_argument(
        "--modules",
        metavar="NAMES",
        help="of a row in this order, as READ,INC,halve.py,WRITE, with files of your own; 'all' stands for the "
        "paper's fourteen (default: all)",
    )
    parser.add_argument(
        "--from",
        dest="start",
        metavar="PROGRAM|SKETCH",
        help="repair a program: begin at it, stay near it; or fill in a sketch, a program with holes ('?'): what is "
        "written in it stays",
    )
    parser.add_argument(
        "--library",
        default=ZOO,
        metavar="zoo|none|PROGRAMS",
        help="programs with commas between them, at which some chains start if they do not solve the problem already "
        "(default: zoo, the searched programs that ship with nram)",
    )
    parser.add_argument(
        "--verify-budget", type=float, default=10.0, metavar="SECONDS", help="of each part of the verification; 0: none"
    )
    add_reading(parser)
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:
    load_modules(arguments)
    if arguments.budget <= 0:
        raise UsageError(f"--budget {arguments.budget:g} leaves no time: give seconds above 0")
    words = [] if arguments.candidates is None else ["--candidates", str(arguments.candidates)]
    words += ["--any"] if arguments.any else []
    start, sketch = arguments.start, None
    if start is not None:
        words += ["--from", start]
        if is_sketch_file(start):
            start, sketch = None, load_sketch(Path(start))
    job = SearchJob.open(
        arguments.source,
        Space(
            arguments.registers,
            arguments.repeats,
            arguments.states,
            None if arguments.modules is None else split_names(arguments.modules),
        ),
        seed=arguments.seed,
        start=None if start is None else load_program(start),
        sketch=sketch,
        library=arguments.library,
        words=words,
        reading=reading_of(arguments),
    )
    out = arguments.out or Path(f"{job.name}.nram")
    with job.saved_beside(out, arguments.resume) as saved_job:
        return _search(arguments, saved_job, out)


def _search(arguments: argparse.Namespace, job: SearchJob, out: Path) -> int:
    with interruptible() as stopping, SearchProgress(job.name, job.layout) as progress:
        outcome = run_search(
            job,
            arguments.budget,
            address=arguments.address,
            workers=arguments.workers,
            candidates=arguments.candidates,
            callbacks=progress,
            stopping=stopping,
            take_any=arguments.any,
        )
        program, place = outcome.program or outcome.best, out
        if program is not None:
            place = job.place_of(outcome, out)
            save_found(program, place)  # still in the job: a signal outside would end the process
    if program is None:
        note("nram search: stopped before there was anything to keep")
        return 1
    if outcome.program is not None:
        job.remove_state(outcome, out)
        if job.task is not None and stopping():
            note(f"nram search: stopped before the verification; go on with: {_verification(program, job, out)}")
            arguments.verify_budget = 0.0
        return _found(arguments, program, job, outcome, out)
    return _not_found(arguments, program, job, outcome, out, place)


# ---- the result


def _found(arguments: argparse.Namespace, program: Program, job: SearchJob, outcome: Outcome, out: Path) -> int:
    report = unsaved = None
    if job.task is not None and arguments.verify_budget > 0:
        reason = why_no_proof(program, job.task)
        note(f"verifying {out}" if reason is None else f"verifying {out} without proofs: {reason}")
        report = verify(program, job.task, budget=arguments.verify_budget)
        program = report.recorded()
        try:
            save_found(program, out)
        except NramError as error:  # the report is printed all the same
            unsaved = error
    right = report is None or report.right
    if arguments.json:
        value = _as_json(arguments, program, outcome, out)
        value["sketch"] = _knowledge_as_json(job, outcome)
        value |= {"right": right, "structure": str(outcome.structure), "verification": report and report.to_json()}
        print_json(value)
    else:
        print(f"found after {outcome.seconds:.1f} s, {outcome.state.candidates:,} candidates, {outcome.structure}:\n")
        print(table_to_text(program))
        for line in _about_sketch(job, outcome, program, out):
            print(line)
        if report is not None:
            print(report.to_text(pasted(out)))
        elif job.task is None:
            if program.layout is not None:
                layout = shlex.join(["--layout", str(program.layout)])
                print(f"Layout: {layout} (edit it to change it)", *program.layout.describe(), sep="\n  ")
            print("It fits every example. Whether it does more than that, only more examples can tell.")
        print(out)
        if job.task is not None and job.source != job.task.name:  # a file: the program alone does not name it
            print(f"Next: {_verification(program, job, out)}")
        if options := module_options(program):
            print(f"Commands that read it need{options}")
    if unsaved is not None:
        raise unsaved
    return 0 if right else 1


def _verification(program: Program, job: SearchJob, out: Path) -> str:
    """The command that verifies the program."""
    assert job.task is not None
    task = None if job.source == job.task.name else job.source
    return command("verify", out, task=task, module=files_of(program.modules))


def _not_found(
    arguments: argparse.Namespace, program: Program, job: SearchJob, outcome: Outcome, out: Path, place: Path
) -> int:
    failures = job.failures(program, outcome.state)
    instances = len(job.pool) + len(outcome.state.counterexamples)
    if arguments.json:
        value = _as_json(arguments, program, outcome, place) | {"wrong": len(failures), "instances": instances}
        print_json(value | {"sketch": _knowledge_as_json(job, outcome)})
        return 1
    print(table_to_text(program))
    print(
        f"no program found in {outcome.seconds:.0f} s and {outcome.state.candidates:,} candidates; this is the best, "
        f"{outcome.structure}: wrong on {len(failures)} of {instances} instances"
    )
    if failures:
        instance, result = min(failures, key=lambda pair: len(pair[0].input))
        print(f"  input    {_words(instance.input)}\n  expected {_words(instance.output)}")
        print(f"  obtained {_words(result.memory)}" + ("" if result.halted else "  (does not halt)"))
    address = [] if arguments.address is None else ["--address", arguments.address]
    again = shlex.join(["nram", *job.words, "--out", pasted(out), *address, "--resume"])
    print(f"{place}{'' if place == out else f' ({out} stays as it is)'}\nGo on: {again} --budget SECONDS")
    return 1


def _as_json(arguments: argparse.Namespace, program: Program, outcome: Outcome, out: Path) -> dict[str, Any]:
    return {
        "found": outcome.program is not None,
        "reproducible": not arguments.any,
        "out": str(out),
        "seconds": outcome.seconds,
        "candidates": outcome.state.candidates,
        "chains": outcome.state.chains,
        "program": to_json(program),
    }


def _knowledge_as_json(job: SearchJob, outcome: Outcome) -> dict[str, Any] | None:
    knowledge = job.knowledge(outcome)
    return None if knowledge is None else asdict(knowledge)


def _about_sketch(job: SearchJob, outcome: Outcome, program: Program, out: Path) -> Iterator[str]:
    """What the sketch gave, and whether the program could be shorter if it did not keep to the sketch."""
    knowledge = job.knowledge(outcome)
    if knowledge is None:
        return
    yield f"Sketch: {knowledge.given} of {knowledge.genes} genes were given. All that is written in it stays as it is."
    try:
        short = simplify(program)
    except UsageError:  # it has too many combinations of flags
        return
    if short.rows + short.operations < program.rows + program.operations:
        yield f"{command('simplify', out)} makes it shorter: {size_of(short)} instead of {size_of(program)}"


def _words(cells: Iterable[int]) -> str:
    return " ".join(map(str, cells))
