"""`nram bench programs`: how fast are programs as machine code?"""

import argparse

from nram.bench.programs import QUICK, Sizes, measure
from nram.cli.output import note, print_json, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "The programs of the five easy tasks as machine code, beside C written by hand for the same task (of "
        "benchmarks/native, in a checkout with gcc), NumPy and the reference interpreter, in the same run: medians of "
        "calls that take turns. Then the time of a step on memories of up to 10 million cells."
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer repetitions")


def run(arguments: argparse.Namespace) -> int:
    sizes = QUICK if arguments.quick else Sizes()
    result = measure(sizes, lambda what: note(f"measuring {what}"))
    if arguments.json:
        print_json(result)
        return 0
    compiler = result["compiler"] or "no C: it needs gcc and a checkout with benchmarks/native"
    print(f"on {result['processor']}, {compiler}, medians of {result['repeats']} calls\n")
    names = ("native", "c_scalar", "c_fastest", "numpy")
    ratios = ("native_to_c_scalar", "native_to_c_fastest", "native_to_numpy")
    heading = ["microseconds a call", "", "n", "memories", "native", "C -O2", "C -O3", "NumPy"]
    rows = [[*heading, "native / C -O2", "/ C -O3", "/ NumPy"]]
    for row in result["tasks"]:
        label = [row["task"], row["origin"], str(row["complexity"]), str(row["memories"])]
        times = ["-" if row[name] is None else f"{1e6 * row[name]:.1f}" for name in names]
        rows.append(label + times + ["-" if row[name] is None else f"{row[name]:.2f}" for name in ratios])
    print(table(rows))
    print(f"\nC -O2 is scalar ({result['c_scalar']}), C -O3 is {result['c_fastest']}\n")
    rows = [["nanoseconds a step", "", "native", "interpreter", "times faster"]]
    for row in result["tasks"]:
        native, interpreter = row["native_ns_per_step"], row["interpreter_ns_per_step"]
        times = [f"{native:.2f}", f"{interpreter:.0f}", f"{interpreter / native:.0f}"]
        rows.append([row["task"], row["origin"], *times])
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
    return 0
