"""`nram bench`: how fast are the training step, programs, and the search for them?"""

import sys

from nram.cli.output import add_device, add_json, positive, print_json, table


def add_parser(verbs) -> None:
    parser = verbs.add_parser("bench", help="measure speed", description="Measure speed on this machine.")
    subjects = parser.add_subparsers(dest="subject", metavar="SUBJECT", required=True)
    step = subjects.add_parser(
        "step",
        help="the forward pass and the training step",
        description="Example-steps a second (one example through one timestep), forward alone and in training, of the "
        "plain step, of the kernel (fast) and, in the same run, of the frozen reference step of benchmarks/ (MLP "
        "controllers, in a checkout). Pin it to one core (taskset -c 0) to compare them on one core: a population "
        "is spread over all there are.",
    )
    step.add_argument("--task", default="copy", metavar="TASK", help="whose instances (default: %(default)s)")
    step.add_argument("--memory-size", type=positive, default=12, metavar="M", help="cells (default: %(default)s)")
    step.add_argument("--registers", type=positive, default=4, metavar="R", help="how many (default: %(default)s)")
    step.add_argument(
        "--steps", type=positive, default=11, metavar="T", help="timesteps of an episode (default: %(default)s)"
    )
    step.add_argument(
        "--repeats", type=positive, default=1, metavar="K", help="of the 14 modules (default: %(default)s)"
    )
    step.add_argument(
        "--controller", choices=("mlp", "lstm", "automaton"), default="mlp", help="kind (default: %(default)s)"
    )
    step.add_argument("--states", type=positive, default=4, metavar="S", help="of the automaton (default: %(default)s)")
    step.add_argument(
        "--hidden", type=positive, default=65, metavar="H", help="width of its layers (default: %(default)s)"
    )
    step.add_argument(
        "--batch", type=positive, default=50, metavar="B", help="examples a member (default: %(default)s)"
    )
    step.add_argument("--population", type=positive, default=1, metavar="P", help="members (default: %(default)s)")
    step.add_argument("--seconds", type=positive, default=3, help="of each measurement (default: %(default)s)")
    add_device(step)
    add_json(step)
    step.set_defaults(run=run)

    scaling = subjects.add_parser(
        "scaling",
        help="how the training step's time grows with its sizes",
        description="Milliseconds of a training step, plain and by the kernel (fast), as one size changes and the rest "
        "stays as in `nram bench step`. Everything is compiled for every size, so all axes take several minutes.",
    )
    scaling.add_argument(
        "axes",
        nargs="*",
        metavar="AXIS",
        help="memory_size, steps, registers, batch, population or repeats (default: all)",
    )
    scaling.add_argument("--plot", metavar="FILE", help="also draw it, as .png or .svg")
    scaling.add_argument("--seconds", type=positive, default=1, help="of each measurement (default: %(default)s)")
    add_device(scaling)
    add_json(scaling)
    scaling.set_defaults(run=run_scaling)

    programs = subjects.add_parser(
        "programs",
        help="native code beside hand-written C, NumPy and the interpreter",
        description="The programs of the five easy tasks as machine code, beside C written by hand for the same task "
        "(of benchmarks/native, in a checkout with gcc), NumPy and the reference interpreter, in the same run: "
        "medians of calls that take turns. Then the time of a step on memories of up to 10 million cells.",
    )
    programs.add_argument("--quick", action="store_true", help="smaller sizes and fewer repetitions")
    add_json(programs)
    programs.set_defaults(run=run_programs)

    search = subjects.add_parser(
        "search",
        help="candidates a second of the search beside plain loops",
        description="Candidates a second on one core of the search's annealer, on copy and permutation, beside plain "
        "loops that run every candidate on all instances, by the same evaluator, as machine code or by the reference "
        "interpreter, in the same run.",
    )
    search.add_argument("--seconds", type=positive, default=3, help="of each measurement (default: %(default)s)")
    add_json(search)
    search.set_defaults(run=run_search)


def run(arguments) -> int:
    from nram.errors import UsageError
    from nram.tasks import get_task

    task = get_task(arguments.task)
    complexity = task.largest_complexity(arguments.memory_size)
    if complexity < task.min_complexity:
        least = task.least_memory(task.min_complexity)
        raise UsageError(f"--memory-size {arguments.memory_size} is too small for {task.name}: use {least} or more")

    from nram.runtime import device_name, prepare_devices

    devices = prepare_devices(arguments.device)
    from nram.bench.step import StepShape, measure

    shape = StepShape(
        task=arguments.task,
        memory_size=arguments.memory_size,
        registers=arguments.registers,
        steps=arguments.steps,
        repeats=arguments.repeats,
        controller=arguments.controller,
        hidden=arguments.hidden,
        states=arguments.states,
        batch=arguments.batch,
        population=arguments.population,
    )
    rates = measure(shape, devices, arguments.seconds)
    result = {"configuration": shape._asdict(), "device": device_name(devices), **rates}
    if arguments.json:
        print_json(result)
        return 0
    print(", ".join(f"{name} {value}" for name, value in shape._asdict().items()) + f" on {result['device']}\n")
    rows = [["example-steps a second", "forward", "training", "training, x reference"]]
    base = rates["reference"] and rates["reference"]["train_example_steps_per_s"]
    for name in ("reference", "plain", "fast"):
        rate = rates[name]
        if rate is None:
            rows.append([name, "-", "-", "-"])
            continue
        forward, train = rate["forward_example_steps_per_s"], rate["train_example_steps_per_s"]
        rows.append([name, f"{forward:.0f}", f"{train:.0f}", f"{train / base:.2f}" if base else "-"])
    print(table(rows))
    if rates["why_plain"]:
        print(f"\nno kernel: {rates['why_plain']}")
    return 0


def run_scaling(arguments) -> int:
    from pathlib import Path

    from nram.bench.scaling import BASE, LABELS, check_axes, check_plot, measure_scaling, plot_scaling
    from nram.runtime import device_name, prepare_devices

    axes = check_axes(arguments.axes)
    check_plot(arguments.plot)
    devices = prepare_devices(arguments.device)
    points = measure_scaling(
        axes, devices, arguments.seconds, watch=lambda what: print(f"measuring {what}", file=sys.stderr, flush=True)
    )
    if arguments.plot:
        plot_scaling(points, Path(arguments.plot))
    result = {
        "configuration": BASE._asdict(),
        "device": device_name(devices),
        "points": [
            {"axis": axis, "value": value, "plain_ms": 1e3 * plain, "fast_ms": None if fast is None else 1e3 * fast}
            for axis, value, plain, fast in points
        ],
        "plot": arguments.plot,
    }
    if arguments.json:
        print_json(result)
        return 0
    print(f"milliseconds of a training step on {result['device']}\n")
    rows = [["", "", "plain", "fast", "plain / fast"]]
    for axis, value, plain, fast in points:
        kernel = ["-", "-"] if fast is None else [f"{1e3 * fast:.2f}", f"{plain / fast:.1f}"]
        rows.append([LABELS[axis], str(value), f"{1e3 * plain:.2f}", *kernel])
    print(table(rows))
    if arguments.plot:
        print(f"\ndrawn: {arguments.plot}")
    return 0


def run_programs(arguments) -> int:
    from nram.bench.programs import QUICK, Sizes, measure

    sizes = QUICK if arguments.quick else Sizes()
    result = measure(sizes, lambda what: print(f"measuring {what}", file=sys.stderr, flush=True))
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
        "\nThe step is the same code for every M. Nearby cells stay in the processor's cache; cells far away do not "
        "once the\nmemory outgrows it, and what grows then is the time of the cache."
    )
    return 0


def run_search(arguments) -> int:
    from nram.bench.search import measure

    result = measure(arguments.seconds, lambda what: print(f"measuring {what}", file=sys.stderr, flush=True))
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
