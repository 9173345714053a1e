"""`nram bench programs`: how fast are programs as machine code?"""

import argparse
import json
from pathlib import Path
from typing import Any

from nram.bench.programs import QUICK, Sizes, measure, measured_names
from nram.cli.output import note, print_json, table
from nram.errors import UsageError
from nram.files import check_destination, write_result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "The programs of the zoo and of examples/suite as machine code, beside C written by hand for the same task (of "
        "benchmarks/native, in a checkout with gcc), the reference interpreter and, for five tasks, NumPy: on one "
        "large instance and on many small ones, the least times of calls that take turns. Every answer is checked. "
        "Then the time of a step on memories of up to 10 million cells."
    )
    parser.add_argument("--tasks", metavar="NAMES", help="with commas between them (default: the ten and the suite's)")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer repetitions")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the measurements, one line of JSON each")


def run(arguments: argparse.Namespace) -> int:
    names = measured_names()
    if arguments.tasks is not None:
        chosen = [name.strip() for name in arguments.tasks.split(",")]
        for name in chosen:
            if name not in names:
                raise UsageError(f"there is no task '{name}' to measure: use {', '.join(names)}")
        names = chosen
    if arguments.out is not None:
        check_destination(arguments.out)
    sizes = QUICK if arguments.quick else Sizes()
    result = measure(sizes, names, lambda what: note(f"measuring {what}"))
    if arguments.out is not None:
        write_result(arguments.out, "".join(json.dumps(line) + "\n" for line in result["tasks"]).encode())
    if arguments.json:
        print_json(result)
    else:
        _show(result, sizes)
    return 0


def _show(result: dict[str, Any], sizes: Sizes) -> None:
    compiler = result["compiler"] or "no C: it needs gcc and a checkout with benchmarks/native"
    print(f"on {result['processor']}, {compiler}, the least of {result['repeats']} calls\n")
    names = ("seconds", "c_scalar", "c_fastest", "numpy")
    heading = ["microseconds a call", "", "n", "memories", "native", "C -O2", "C -O3", "NumPy"]
    rows = [[*heading, "native / C -O2", "/ C -O3", "/ NumPy"]]
    for row in result["tasks"]:
        label = [row["subject"], row["program"], row["n"], str(row["memories"])]
        times = [f"{1e6 * row[name]:.1f}" if name in row else "-" for name in names]
        rows.append(label + times)
        rows[-1] += [f"{row['seconds'] / row[name]:.2f}" if name in row else "-" for name in names[1:]]
    print(table(rows))
    print(f"\nC -O2 is scalar ({result['c_scalar']}), C -O3 is {result['c_fastest']}\n")
    rows = [["nanoseconds a step", "", "", "native", "interpreter", "times faster"]]
    for row in result["tasks"]:
        native, interpreter = 1e9 * row["seconds"] / row["steps"], row["interpreter_ns_per_step"]
        times = [f"{native:.2f}", f"{interpreter:.0f}", f"{interpreter / native:.0f}"]
        rows.append([row["subject"], row["program"], row["shape"], *times])
    print(table(rows))
    print(f"\nA step that follows a pointer, {sizes.steps} steps whatever the size of the memory:\n")
    rows = [["M", "ns, to the next cell", "ns, to a cell far away"]]
    rows += [
        [str(row["memory_size"]), f"{row['local_ns']:.2f}", f"{row['scattered_ns']:.2f}"] for row in result["step"]
    ]
    print(table(rows))
    print(
        "\nThe step is the same code for every M. Nearby cells stay in the processor's cache. Cells far away do not "
        "once the\nmemory is larger than the cache: the time that grows then is that of the cache."
    )
