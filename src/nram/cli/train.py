"""`nram train`: a population of machines learns a task."""

import argparse
import json
from pathlib import Path

from nram.cli.arguments import add_device, jax_seed
from nram.cli.output import print_json
from nram.cli.program_argument import add_modules, load_modules
from nram.cli.progress import TrainingDisplay
from nram.cli.run_argument import add_trust, file_options
from nram.messages import command
from nram.process import interruptible
from nram.training.job import TrainingJob
from nram.training.settings import config_to_dict, flat_settings, load_config

WHEN_STUCK = "docs/when-training-is-stuck.md"
PARTS = {
    "hard": "as a discrete program (hard) at the trained size",
    "far": "as a discrete program (hard) at n = 50",
    "soft": "as the continuous machine (soft) at the trained size",
}
"""The parts of an examination."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Train a population of machines on a task. Without further settings the task's recipe is used. "
        "Ctrl-C saves and stops; --resume continues to the same result as without the interruption."
    )
    parser.epilog = (
        "A setting is named as in the recipe: machine.registers, hyper.learning_rate, stages.0.steps; the last "
        "part is enough where it is clear (population=64 sets every stage). A hyperparameter may be a number, a "
        "range that members draw from (learning_rate=2e-3..2e-2) or a choice (clip_activations='1|10|inf'). "
        "'--set help' lists all settings with their values. The exit status is 0 only if a member passed its "
        "examination; a finished run that is asked again with --resume has the same status."
    )
    parser.add_argument(
        "task",
        metavar="TASK",
        help="what to learn: a name that 'nram tasks' lists, or the file (.py) of a user-defined task",
    )
    parser.add_argument("--seed", type=jax_seed, metavar="S", help="default: 0")
    parser.add_argument("--out", type=Path, metavar="RUN", help="the run's folder (default: runs/TASK-S)")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out, or start it if there is none")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings as TOML or JSON, laid over the recipe")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting; may be repeated")
    parser.add_argument(
        "--modules",
        metavar="NAMES",
        help="the machine's modules in this order, as READ,INC,halve.py,WRITE, where a file holds a user-defined "
        "module; 'all' stands for the paper's fourteen (short for --set machine.modules=NAMES)",
    )
    add_modules(parser, "the run or --config FILE")
    add_trust(parser)
    add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    load_modules(arguments)
    if arguments.modules is not None:
        arguments.set = [*arguments.set, f"machine.modules={arguments.modules}"]
    if "help" in arguments.set:
        return _list_settings(arguments)
    job = TrainingJob.for_task(
        arguments.task,
        arguments.out,
        seed=arguments.seed,
        file=arguments.config,
        overrides=arguments.set,
        resume=arguments.resume,
        words=arguments.words,
        trust=arguments.trust,
    )
    with interruptible() as stopping:
        result = job.run(arguments.device, TrainingDisplay("train"), stopping)
    learned = result["perfect_members"] > 0
    if arguments.json:
        print_json({**result, "run": str(job.folder.path), "learned": learned})
    else:
        _print_result(result, job)
    return 0 if learned else 1


def _print_result(result: dict, job: TrainingJob) -> None:
    perfect, examined = result["perfect_members"], result["examined_members"]
    if perfect:
        print(
            f"{perfect} of the {examined} members examined {'is' if perfect == 1 else 'are'} perfect: soft and hard, "
            f"under every step limit, and hard at n = 50 (after {result['seconds']:.0f} s)."
        )
    else:
        best = result["best_validation_exact_hard"]
        print(f"No member is perfect yet: the best solves {best:.1%} of the validation instances, hard.")
        for failure in result.get("failed_examinations", ()):
            part, limit, count = PARTS[failure["part"]], failure["limit"], failure["members"]
            print(f"Examined under every step limit, {count} of {examined} failed {part}, first under {limit}.")
        print(f"What to do about it: {WHEN_STUCK}")
    print(f"Next: {command('eval', job.folder.path, **file_options(job.config))}")


def _list_settings(arguments) -> int:
    overrides = [words for words in arguments.set if words != "help"]
    config = load_config(
        arguments.task, file=arguments.config, overrides=overrides, seed=arguments.seed, trust=arguments.trust
    )
    if arguments.json:
        print_json(config_to_dict(config))
        return 0
    for name, value in flat_settings(config).items():
        if name != "task":
            print(f"{name} = {json.dumps(value)}")
    return 0
