"""`nram train`: a population of machines learns a task."""

import argparse
import json
from pathlib import Path

from nram.cli.arguments import add_device, jax_seed
from nram.cli.doctor import FIRST_CURES, advice_json, print_advice, print_wrapped
from nram.cli.output import print_json
from nram.cli.program_argument import add_modules, load_modules
from nram.cli.run_argument import add_trust, file_options
from nram.messages import command
from nram.process import interruptible
from nram.training.diagnosis import diagnose, failure_text, result_text
from nram.training.display import TrainingDisplay
from nram.training.job import TrainingJob
from nram.training.run_folder import Result
from nram.training.settings import PROTOCOLS, config_to_dict, load_config, used_settings
from nram.training.trackers import TRACKERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Train groups of machines on a task, side by side. Without further settings the one recipe is used, which is "
        "the same for every task. After a minute the run says what it reached and how long it may take. "
        "Ctrl-C saves and stops; --resume continues to the same result as without the interruption."
    )
    parser.epilog = (
        "A setting is named as in the recipe: machine.registers, hyper.learning_rate, stages.0.steps; the last "
        "part is enough where it is clear (population=64 sets every stage). It is set in every group; "
        "groups.1.hidden=8 sets it in one. A hyperparameter may be a number, a range that members draw from "
        "(learning_rate=2e-3..2e-2) or a choice (clip_activations='1|10|inf'). "
        "'--set help' lists all settings with their values. The exit status is 0 only if a member passed its "
        "examination, or, with --protocol paper, if one converged; a finished run that is asked again with --resume "
        "has the same status."
    )
    parser.add_argument(
        "task",
        metavar="TASK",
        help="what to learn: a name that 'nram tasks' lists, or the file (.py) of a user-defined task",
    )
    parser.add_argument("--seed", type=jax_seed, metavar="S", help="default: 0")
    parser.add_argument("--out", type=Path, metavar="RUN", help="the run's folder (default: runs/TASK-S)")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out, or start it if there is none")
    parser.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        help="in place of the recipe. 'paper': the paper's modules and techniques, gradient descent alone, settings "
        "drawn at random, and the winner chosen by its error at the size of training",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings as TOML or JSON, in place of the recipe")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting; may be repeated")
    parser.add_argument(
        "--modules",
        metavar="NAMES",
        help="the machine's modules in this order, as READ,INC,halve.py,WRITE, where a file holds a user-defined "
        "module; 'all' stands for the paper's fourteen (short for --set machine.modules=NAMES)",
    )
    parser.add_argument(
        "--track",
        action="append",
        choices=TRACKERS,
        default=[],
        help="also send the scalars of the run to a tool that draws them; may be repeated. tensorboard: event files in "
        "RUN/tensorboard; mlflow and wandb: a run there, as their environment variables say (docs/training.md)",
    )
    parser.add_argument(
        "--tensorboard", action="append_const", dest="track", const="tensorboard", help="short for --track tensorboard"
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
        protocol=arguments.protocol,
        overrides=arguments.set,
        resume=arguments.resume,
        words=arguments.words,
        trust=arguments.trust,
    )
    with interruptible() as stopping:
        result = job.run(arguments.device, TrainingDisplay("nram train"), stopping, track=arguments.track)
    ending = job.folder.ending
    assert ending is not None
    learned = ending.learned
    if arguments.json:
        advice = advice_json(diagnose(job.folder))
        print_json({**result, "run": str(job.folder.path), "learned": learned, **advice})
    else:
        _print_result(ending, job)
    return 0 if learned else 1


def _print_result(result: Result, job: TrainingJob) -> None:
    files = file_options(job.config)
    print_wrapped(result_text(result))
    if not result.learned:
        for failure in result.failed_examinations:
            print_wrapped(f"Examined under every step limit, {failure_text(failure, result.examined_members)}.")
        print_advice(diagnose(job.folder), FIRST_CURES)
        print(f"More: {command('doctor', job.folder.path, **files)}")
    print(f"Next: {command('eval', job.folder.path, **files)}")


def _list_settings(arguments) -> int:
    overrides = [words for words in arguments.set if words != "help"]
    config = load_config(
        arguments.task,
        file=arguments.config,
        protocol=arguments.protocol,
        overrides=overrides,
        seed=arguments.seed,
        trust=arguments.trust,
    )
    if arguments.json:
        print_json(config_to_dict(config))
        return 0
    for name, value in used_settings(config).items():
        if name != "task":
            print(f"{name} = {json.dumps(value)}")
    return 0
