"""`nram modules`: list the modules, the operations of machines and programs."""

from __future__ import annotations

import argparse
from typing import Any

from nram.cli.output import note, print_json, table
from nram.extensions.modules import REGISTRY, source_of
from nram.module_tables import EquationTwo, table_of
from nram.modules import Module

SHOWN_SIZE = 7  # the M for which the outputs of a user-defined module are shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the modules of nram and of installed packages: their arguments and what they compute. "
        "Check and show the module that a Python file defines."
    )
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="only these, by name or file (default: all)")


def run(arguments: argparse.Namespace) -> int:
    modules, problems = REGISTRY.load(arguments.modules)
    for problem in problems:
        note(f"nram modules: {problem}")
    if arguments.json:
        print_json([_to_json(module) for module in modules])
        return 1 if problems else 0
    rows = [["module", "arguments", "output"]]
    rows += [[module.name, ", ".join(module.arguments), module.meaning or "(not described)"] for module in modules]
    print(table(rows))
    for module in modules:
        if not module.built_in:
            print(f"\n{_in_words(module)}")
    return 1 if problems else 0


def _to_json(module: Module) -> dict[str, Any]:
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
    """The outputs of a user-defined module for one M, and which optional parts it has."""
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
    fuzzy = "defined by the module" if _has_fuzzy(module) else "by equation 2, from all arguments"
    emit = "machine code, C and proofs work" if module.emits else "none: only the interpreter runs it"
    return "\n".join([*lines, f"  fuzzy: {fuzzy}", f"  emit: {emit}"])


def _has_fuzzy(module: Module) -> bool:
    return not isinstance(module.fuzzy, EquationTwo)
