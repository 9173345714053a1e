"""`nram bench search`: how fast is the search for programs?"""

import argparse

from nram.bench.search import measure
from nram.cli.arguments import positive
from nram.cli.output import note, print_json, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Candidates a second on one core of the search's annealer, on copy and permutation, beside plain loops that "
        "run every candidate on all instances, by the same evaluator, as machine code or by the reference "
        "interpreter, in the same run."
    )
    parser.add_argument("--seconds", type=positive, default=3, help="of each measurement (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    result = measure(arguments.seconds, lambda what: note(f"measuring {what}"))
    if arguments.json:
        print_json(result)
        return 0
    print(f"candidates a second on one core, {result['processor']}\n")
    rows = [["", "", "annealer", "unchanged", "evaluated", "plain evaluator", "plain native", "plain interpreter"]]
    for row in result["tasks"]:
        rates = [f"{row['candidates_per_s']:.0f}", f"{row['unchanged']:.0%}", f"{row['evaluated_per_s']:.0f}"]
        for name in ("evaluator", "native", "interpreter"):
            rates.append(f"{row[f'{name}_per_s']:.0f} (1/{row[f'times_{name}']:.0f})")
        rows.append([row["task"], row["structure"], *rates])
    print(table(rows))
    print(
        "\nA candidate is one proposed change of one row. Unchanged: it does what the program before did, so nothing is"
        "\nrun; the others are evaluated. The plain loops, in Python, run every candidate on "
        f"{result['instances_of_plain_loops']} instances: by the\nannealer's evaluator without its tricks, as a "
        "program compiled to machine code, and as a program in the reference\ninterpreter. In brackets: their speed, "
        "the annealer's being 1."
    )
    return 0
