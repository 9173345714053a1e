"""`nram prove`: prove that a program is right for every length."""

import argparse
from pathlib import Path

from nram.cli.arguments import seconds
from nram.cli.output import ProgressLine, note, print_json, terminal_width
from nram.cli.program_argument import add_modules, add_program, program_of
from nram.display import counted
from nram.files import check_destination
from nram.programs.prove import Proof, prove


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Prove that a program solves its task for every n, every memory size and every input. An invariant is guessed "
        "from runs on small inputs and proven by z3, and by cvc5 where it is installed (pip install 'nram[proof]'). "
        "--out writes a certificate, which 'nram check' checks again."
    )
    parser.epilog = (
        "The exit status is 0 only if the program is proven for every length. If it is wrong on some input, the "
        "smallest one that was found is printed. If no invariant is found, that says nothing about the program."
    )
    add_program(parser)
    parser.add_argument("--task", metavar="TASK", help="the task (default: the program's task)")
    parser.add_argument(
        "--budget",
        type=seconds,
        default=120.0,
        metavar="S",
        help="seconds for the search of an invariant (default: 120)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the certificate to this file")
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:
    program = program_of(arguments)
    if arguments.out:
        check_destination(arguments.out)
    with ProgressLine() as progress:
        proof = prove(program, arguments.task, budget=arguments.budget, progress=progress.show)
    if arguments.out and proof.certificate is not None:
        proof.certificate.save(arguments.out)
    if arguments.json:
        out = str(arguments.out) if arguments.out and proof.proven else None
        print_json({**proof.to_json(), "out": out})
    else:
        print("\n".join(_lines(proof, arguments)))
    if arguments.out and not proof.proven:
        note(f"nram prove: {arguments.out} was not written")
    return 0 if proof.proven else 1


def _lines(proof: Proof, arguments: argparse.Namespace) -> list[str]:
    certificate = proof.certificate
    if certificate is not None and proof.check is not None:
        invariant = certificate.invariant
        solvers = ", ".join(f"{name} ({took:.1f} s)" for name, took in proof.check.seconds.items())
        lines = [
            f"PROVEN FOR EVERY LENGTH ({proof.seconds:.1f} s).",
            certificate.claim,
            f"{counted(len(invariant.places), 'place')}, {counted(sum(map(len, invariant.facts)), 'fact')}, "
            f"{counted(len(certificate.obligations), 'obligation')}, each proven by {solvers}.",
        ]
        return [*lines, f"the certificate: {arguments.out}"] if arguments.out else lines
    if proof.counterexample is not None:
        found = proof.counterexample
        took, where = f"({proof.seconds:.1f} s)", f"on an input of n = {found.complexity}, M = {len(found.memory)}"
        lines = [f"WRONG {took} {where}:"]
        if not found.at_first:
            lines = [
                f"RIGHT ONLY AT T(n) {took}: no proof is tried. The program goes on after T(n) = {proof.limit} steps,",
                f"and is wrong when it is stopped at {found.limit} {where}:",
            ]
        commands = found.commands(str(arguments.program))
        return [*lines, *(f"    {one}" for one in commands), "", found.trace(proof.program, terminal_width()).rstrip()]
    if proof.check is not None:  # a solver ran out of time, say
        return [f"NOT PROVEN ({proof.seconds:.1f} s): an invariant was found, but {proof.check.problem}."]
    listed = [f"  - {name}" for name in proof.failures[:12]]
    more = len(proof.failures) - len(listed)
    return [
        f"NOT PROVEN ({proof.seconds:.1f} s): no invariant was found. That says nothing about the program.",
        "What the best guess does not prove:",
        *listed,
        *([f"  - and {more} more"] if more > 0 else []),
        "'nram verify' shows what is known about it.",
    ]
