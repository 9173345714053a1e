"""`nram train`: a population of machines learns a task."""

import argparse
import json
import sys
from pathlib import Path

from nram.cli.arguments import add_device, jax_seed
from nram.cli.interruption import interruptible
from nram.cli.output import print_json

WHEN_STUCK = "docs/when-training-is-stuck.md"
PARTS = {
    "hard": "as a discrete program (hard) at the trained size",
    "far": "as a discrete program (hard) at n = 50",
    "soft": "as the continuous machine (soft) at the trained size",
}
"""Of an examination."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Train a population of machines on a task, from scratch or onwards. Without further words the "
        "task's own recipe is used. Ctrl-C saves and stops; --resume goes on to the same result."
    )
    parser.epilog = (
        "A setting is named as in the recipe: machine.registers, hyper.learning_rate, stages.0.steps; the last "
        "part is enough where it is clear (population=64 sets every stage). A hyperparameter may be a number, a "
        "range that members draw from (learning_rate=2e-3..2e-2) or a choice (clip_activations='1|10|inf'). "
        "'--set help' lists all settings with their values."
    )
    parser.add_argument(
        "task",
        metavar="TASK",
        help="what to learn: a name that 'nram tasks' lists, or a file (.py) with a task of one's own",
    )
    parser.add_argument("--seed", type=jax_seed, metavar="S", help="default: 0")
    parser.add_argument("--out", type=Path, metavar="RUN", help="the run's folder (default: runs/TASK-S)")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out; start it if there is none")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings as TOML or JSON, laid over the recipe")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting; may be repeated")
    parser.add_argument(
        "--modules",
        metavar="NAMES",
        help="of the machine in this order, as READ,INC,halve.py,WRITE, with files of one's own; 'all' stands for the "
        "paper's fourteen (short for --set machine.modules=NAMES)",
    )
    add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    from nram.tasks import get_task
    from nram.training.settings import load_config

    get_task(arguments.task)
    if arguments.modules is not None:
        arguments.set = [*arguments.set, f"machine.modules={arguments.modules}"]
    if "help" in arguments.set:
        return _list_settings(arguments)
    config = load_config(arguments.task, file=arguments.config, overrides=arguments.set, seed=arguments.seed)
    out = arguments.out or Path("runs") / f"{config.task_name}-{config.seed}"

    from nram.training.run_folder import RunFolder

    settings = bool(arguments.config or arguments.set)
    folder = RunFolder.for_training(out, config, resume=arguments.resume, settings=settings, seed=arguments.seed)
    config, result = (folder.config, folder.result) if folder.exists else (config, None)
    if result is None:
        result = _train(arguments, folder, config)
    elif not arguments.json:
        print(f"{out} is finished already.", file=sys.stderr)
    if arguments.json:
        print_json({**result, "run": str(out)})
    else:
        _tell(result, out)
    return 0


def _train(arguments, folder, config) -> dict:
    from nram.cli.progress import progress_display
    from nram.runtime import device_name, prepare_devices
    from nram.training.footprint import check_fits
    from nram.training.trainer import train

    devices = prepare_devices(arguments.device)
    check_fits(config, devices)
    if folder.exists:
        for difference in folder.differences(device_name(devices)):
            print(f"nram train: {difference}: the result may differ from an uninterrupted run's", file=sys.stderr)
    else:
        folder = folder.create(folder.path, config, arguments.words, device_name(devices))
    with folder.locked(), progress_display(config, folder.path, devices) as display, interruptible() as stopping:
        return train(folder, config, devices, on_report=display.report, on_note=display.note, stopping=stopping)


def _tell(result: dict, out: Path) -> None:
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
    print(f"Next: nram eval {out}")


def _list_settings(arguments) -> int:
    from nram.training.settings import config_to_dict, flat_settings, load_config

    overrides = [words for words in arguments.set if words != "help"]
    config = load_config(arguments.task, file=arguments.config, overrides=overrides, seed=arguments.seed)
    if arguments.json:
        print_json(config_to_dict(config))
        return 0
    for name, value in flat_settings(config).items():
        if name != "task":
            print(f"{name} = {json.dumps(value)}")
    return 0
