"""Writes docs/reference from the code: the command line, the Python API and the settings of training.

python docs/make_reference.py            write the files
python docs/make_reference.py --check    write nothing; exit status 1 if a file differs from what it should be

Everything comes from the parser, the docstrings and the source. So the pages are the same on every terminal and with
every version of Python.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

from reference_api import Source, api_parts, doc, fields, prose, table

from nram.cli import build_parser

HERE = Path(__file__).parent
MADE = "<!-- Generated from the code by docs/make_reference.py. Do not edit: change the code and run it again. -->"


def pages() -> dict[Path, str]:
    """Each file with its expected text."""
    reference = HERE / "reference"
    return {
        reference / "cli.md": _page("The command line", cli_parts()),
        reference / "api.md": _page("The Python API", api_parts()),
        reference / "settings.md": _page("The settings of training", settings_parts()),
    }


def main(words: list[str]) -> int:
    check = words == ["--check"]
    if words and not check:
        print("usage: python docs/make_reference.py [--check]", file=sys.stderr)
        return 2
    stale = {path: text for path, text in pages().items() if not path.is_file() or path.read_text() != text}
    for path, text in stale.items():
        if check:
            print(f"{path.relative_to(HERE.parent)} is out of date: run python docs/make_reference.py", file=sys.stderr)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(path.relative_to(HERE.parent))
    return 1 if check and stale else 0


def _page(title: str, parts: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", MADE, *parts]) + "\n"


# ---- the command line


def cli_parts() -> Iterator[str]:
    parser = build_parser()
    verbs = _subparsers(parser)
    assert verbs is not None
    yield f"{prose(parser.description or '')} {prose(parser.epilog or '')}"
    listed = [(f"[`nram {verb}`](#nram-{verb})", prose(text)) for verb, text in _helps(verbs).items()]
    yield table(("verb", "what it does"), listed)
    for verb in verbs.choices.values():
        yield from _verb_parts(verb, 2)


def _verb_parts(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    subjects = _subparsers(parser)
    yield f"{'#' * level} {parser.prog}"
    yield f"    {_usage(parser)}"
    if parser.description:
        yield prose(parser.description)
    shown = [
        action for action in parser._actions if not isinstance(action, argparse._HelpAction) and action != subjects
    ]
    if shown:
        yield table(("argument", "meaning"), [(f"`{_spelling(action)}`", _help(parser, action)) for action in shown])
    if parser.epilog:
        yield prose(parser.epilog)
    for subject in subjects.choices.values() if subjects is not None else ():
        yield from _verb_parts(subject, level + 1)


def _subparsers(parser: argparse.ArgumentParser) -> argparse._SubParsersAction | None:
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)


def _helps(verbs: argparse._SubParsersAction) -> dict[str, str]:
    return {action.dest: action.help or "" for action in verbs._choices_actions}


def _usage(parser: argparse.ArgumentParser) -> str:
    """The required arguments in the order of the command line. The table lists the rest."""
    words = [parser.prog]
    for action in parser._actions:
        if not action.option_strings:
            words.append(_spelling(action))
    for group in parser._mutually_exclusive_groups:
        if group.required:
            words.append(f"({' | '.join(_spelling(action) for action in group._group_actions)})")
    words += [_spelling(action) for action in parser._actions if action.option_strings and action.required]
    return " ".join([*words, "[options]"])


def _spelling(action: argparse.Action) -> str:
    """An argument as the user types it."""
    value = action.metavar if isinstance(action.metavar, str) else None
    if value is None and action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if value is None:
        value = action.dest.upper()
    if isinstance(action, argparse._SubParsersAction):
        return value
    if not action.option_strings:
        return {"?": f"[{value}]", "*": f"[{value} ...]", "+": f"{value} ..."}.get(str(action.nargs), value)
    name = max(action.option_strings, key=len)
    return name if action.nargs == 0 else f"{name} {value}"


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = action.help or ""
    if "%" in text:
        text %= {**vars(action), "prog": parser.prog}
    exclusive = [
        f"`{_spelling(other).split()[0]}`"
        for group in parser._mutually_exclusive_groups
        if action in group._group_actions
        for other in group._group_actions
        if other is not action
    ]
    return prose(text) + (f"; not together with {', '.join(exclusive)}" if exclusive else "")


# ---- settings


def settings_parts() -> Iterator[str]:
    from nram.training import config

    yield (
        "Change these settings with `nram train TASK --set KEY=VALUE`, or give all of them with `--config FILE`. The "
        "recipe has groups, and `--set` changes it in every group; `groups.1.KEY=VALUE` changes one group. The "
        "defaults hold where the recipe or the file sets nothing. A stage without `max_complexity` has the task's "
        "`trained_up_to`. `nram train TASK --set help` lists the values for a task. "
        "[training.md](../training.md) explains what they do."
    )
    groups = (
        ("The run", config.TrainConfig, ""),
        ("A group, besides machine, hyper, batch, steps, validation and stages", config.GroupConfig, "groups.K."),
        ("The machine", config.MachineConfig, "machine."),
        ("Hyperparameters, drawn by each member", config.HyperConfig, "hyper."),
        ("The curriculum", config.CurriculumConfig, "curriculum."),
        ("A stage", config.StageConfig, "stages.K."),
        ("Culling in a stage", config.CullConfig, "stages.K.cull."),
    )
    for title, kind, prefix in groups:
        source = Source.of(kind.__name__, kind)
        yield f"## {title}"
        yield prose(doc(source.node))
        rows = []
        for part, type_, meaning in fields(source):
            name, _, default = part.strip("`").partition(" = ")
            shared = kind is config.GroupConfig and name in _field_names(config.TrainConfig)
            if name in _field_names(kind) and name != "task" and "Config" not in type_ and not shared:
                shown = f"`{_value(kind, name, default)}`" if default else "required"
                rows.append((f"`{prefix}{name}`", shown, _allowed(kind, name), meaning.strip()))
        yield table(("setting", "default", "allowed", "meaning"), rows)


def _field_names(kind: type) -> set[str]:
    return set(kind.__dataclass_fields__)  # pyright: ignore[reportAttributeAccessIssue]


def _allowed(kind: type, name: str) -> str:
    """The values of a setting that has only a few, or its limits."""
    type_ = get_type_hints(kind, include_extras=True)[name]
    if get_origin(type_) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(type_))
    parts = (type_, *get_args(type_))  # the limits stand in the type, or in that of `X | None`
    span = next((str(limits) for part in parts for limits in getattr(part, "__metadata__", ())), "")
    return f"{span} names" if name == "modules" else span


def _value(kind: type, name: str, default: str) -> str:
    """A default value as the user would write it in a setting."""
    from nram.training.settings import config_to_dict

    value = config_to_dict(getattr(kind, name, default))
    if isinstance(value, list):
        return "all"  # the paper's fourteen modules
    return json.dumps(value) if isinstance(value, bool) or value is None else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
