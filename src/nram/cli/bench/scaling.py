"""`nram bench scaling`: how does the time of a training step grow with its sizes?"""

import argparse
from pathlib import Path

from nram.bench.shape import AXES, StepShape, check_axes
from nram.cli.arguments import add_device, positive
from nram.cli.output import note, print_json, table
from nram.errors import UsageError
from nram.extras import require
from nram.files import check_destination
from nram.runtime import device_name, prepare_devices


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Milliseconds of a training step, plain and by the kernel (fast), as one size changes and the rest stays as "
        "in `nram bench step`. Everything is compiled for every size, so all axes take several minutes."
    )
    *others, last = AXES
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=f"{', '.join(others)} or {last} (default: all)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw it, as .png or .svg")
    parser.add_argument("--seconds", type=positive, default=1, help="of each measurement (default: %(default)s)")
    add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    axes = check_axes(arguments.axes)
    if arguments.plot is not None and arguments.plot.suffix.lower() not in (".png", ".svg"):
        raise UsageError(f"cannot tell the kind of picture from '{arguments.plot}': end its name in .png or .svg")
    if arguments.plot is not None:
        require("plots", "--plot")
        check_destination(arguments.plot, "--plot")
    devices = prepare_devices(arguments.device)
    from nram.bench.scaling import measure_scaling, plot_scaling  # imports JAX

    points = measure_scaling(axes, devices, arguments.seconds, on_note=note)
    if arguments.plot:
        plot_scaling(points, arguments.plot)
    result = {
        "configuration": StepShape()._asdict(),
        "device": device_name(devices),
        "points": [
            {"axis": axis, "value": value, "plain_ms": 1e3 * plain, "fast_ms": None if fast is None else 1e3 * fast}
            for axis, value, plain, fast in points
        ],
        "plot": arguments.plot and str(arguments.plot),
    }
    if arguments.json:
        print_json(result)
        return 0
    print(f"milliseconds of a training step on {result['device']}\n")
    rows = [["", "", "plain", "fast", "plain / fast"]]
    for axis, value, plain, fast in points:
        kernel = ["-", "-"] if fast is None else [f"{1e3 * fast:.2f}", f"{plain / fast:.1f}"]
        label, _ = AXES[axis]
        rows.append([label, str(value), f"{1e3 * plain:.2f}", *kernel])
    print(table(rows))
    if arguments.plot:
        print(f"\ndrawn: {arguments.plot}")
    return 0
