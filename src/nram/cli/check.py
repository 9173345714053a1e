"""`nram check`: check a certificate."""

import argparse

from nram.cli.output import ProgressLine, print_json
from nram.cli.program_argument import add_modules, load_modules
from nram.display import counted
from nram.errors import NramError, UsageError
from nram.messages import pasted
from nram.programs.prove import check_certificate
from nram.programs.prove.certificate import invariant_in_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Check a certificate of 'nram prove'. The obligations are made again from the program, the task and the "
        "invariant; they must be those of the file, and z3 must prove each of them, and cvc5 too where it is installed."
    )
    parser.epilog = "The exit status is 0 only if the certificate is right."
    parser.add_argument(
        "certificate",
        type=pasted,
        metavar="CERTIFICATE",
        help="a file that 'nram prove --out' wrote, or a proven program of the zoo (NAME or NAME@ORIGIN)",
    )
    parser.add_argument("--program", metavar="PROGRAM", help="the program that it must be of: a name or a file")
    parser.add_argument("--task", metavar="TASK", help="the file of the task, if it is not a built-in one")
    parser.add_argument("--show", action="store_true", help="print the invariant too")
    add_modules(parser)


def run(arguments: argparse.Namespace) -> int:
    load_modules(arguments)
    try:
        with ProgressLine() as progress:
            found = check_certificate(
                arguments.certificate, program=arguments.program, task=arguments.task, progress=progress.show
            )
    except UsageError:
        raise
    except NramError as error:  # it is no certificate that could be checked
        if arguments.json:
            print_json({"right": False, "problem": str(error)})
        raise
    if arguments.json:
        shown = {"invariant": invariant_in_words(found.certificate.invariant)} if arguments.show else {}
        print_json({**found.to_json(), **shown})
    elif found.right:
        solvers = ", ".join(f"{name} ({took:.1f} s)" for name, took in found.seconds.items())
        program = found.certificate.program
        print(f"RIGHT: {counted(len(found.certificate.obligations), 'obligation')}, each proven by {solvers}.")
        if "cvc5" not in found.seconds:
            print("With pip install 'nram[proof]', cvc5 checks it too, which shares no code with z3.")
        print(f"The program {program.name}, fingerprint {program.fingerprint}. {found.certificate.claim}")
        if arguments.show:
            print("\n".join(["", *invariant_in_words(found.certificate.invariant)]))
    else:
        print(f"REFUSED: {found.problem}.")
    return 0 if found.right else 1
