"""`nram modules`: what machines and programs compute with."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from nram.cli.output import print_json, table
from nram.extensions.modules import REGISTRY, get_module, source_of
from nram.module_tables import EquationTwo, table_of
from nram.modules import Module

SHOWN_SIZE = 7  # the M of the values that are shown of a module of one's own


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the modules: their arguments and what they give. Those of installed packages are among them; "
        "a file with a module of one's own (.py) is checked and shown."
    )
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="only these, by name or file (default: all)")


def run(arguments: argparse.Namespace) -> int:
    modules, problems = [get_module(name) for name in arguments.modules], []
    if not arguments.modules:
        modules, problems = REGISTRY.load_all()
    for problem in problems:
        print(f"nram modules: {problem}", file=sys.stderr)
    status = 1 if problems else 0
    if arguments.json:
        print_json([_as_json(module) for module in modules])
        return status
    rows = [["module", "arguments", "what it gives"]]
    rows += [[module.name, ", ".join(module.arguments), module.meaning or "(not told)"] for module in modules]
    print(table(rows))
    for module in modules:
        if not module.built_in:
            print(f"\n{_in_words(module)}")
    return status


def _as_json(module: Module) -> dict[str, Any]:
    value = {
        "name": module.name,
        "arguments": list(module.arguments),
        "memory": module.memory,
        "meaning": module.meaning,
        "built_in": module.built_in,
    }
    if module.built_in:
        return value
    return value | {"source": source_of(module), "fuzzy": _has_fuzzy(module), "emit": module.emits}


def _in_words(module: Module) -> str:
    """What a module of one's own gives for one M, and what of the optional parts it has."""

    values = table_of(module, SHOWN_SIZE).tolist()
    lines = [f"{module.name}, {source_of(module)}: checked"]
    if module.arity == 2:
        first, second = module.arguments
        lines.append(f"  for M = {SHOWN_SIZE}, {first} from 0 downwards, {second} from 0 to the right:")
        lines += [f"    {' '.join(map(str, row))}" for row in values]
    elif module.arity == 1:
        lines.append(f"  for M = {SHOWN_SIZE}, {module.arguments[0]} from 0 up: {' '.join(map(str, values))}")
    else:
        lines.append(f"  for M = {SHOWN_SIZE}: {values}")
    lines.append("  fuzzy: a form of its own" if _has_fuzzy(module) else "  fuzzy: by equation 2, from all arguments")
    lines.append(
        "  emit: machine code, C and proofs work"
        if module.emits
        else "  without emit: programs run in the interpreter, and there is no machine code, C or proof of them"
    )
    return "\n".join(lines)


def _has_fuzzy(module: Module) -> bool:
    return not isinstance(module.fuzzy, EquationTwo)
