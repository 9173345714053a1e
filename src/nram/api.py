"""The verbs of the command line as functions: search, learn, train, extract, trace, compile. `nram` exports them.

Each returns what it made; the long ones show progress. JAX is imported by `train`, `extract` and `evaluate` alone, and
by `learn` where it trains.
"""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nram.cluster.search import run_search
from nram.display import Displayed, counted, heading, table
from nram.errors import UsageError, check_budget, check_whole, shown
from nram.extensions import known_task
from nram.extras import require
from nram.files import read_bounded, write_atomically
from nram.learning.asking import Ask
from nram.learning.job import ALTERNATIVES, METHODS, PROGRAM, REPORT, SEARCH, TRAINING, Learned, LearningJob
from nram.learning.job import Method as LearningMethod
from nram.limits import StepLimit
from nram.modules import Module
from nram.pictures.trace_records import Trace, record_trace
from nram.programs.ir import Program
from nram.programs.library import as_program, load_sketch
from nram.programs.sketch import Sketch
from nram.programs.testing import COUNT, Tested, run_test
from nram.progress import Progress, is_shown
from nram.runtime import DeviceName, on_devices
from nram.search.callbacks import SILENT
from nram.search.display import SearchProgress
from nram.search.job import SearchJob, Space
from nram.search.state import Outcome
from nram.tasks.base import Instance, Task
from nram.tasks.example_files import MOST_BYTES, Reading, read_examples
from nram.training.callbacks import Report as TrainingReport
from nram.training.callbacks import TrainingCallbacks
from nram.training.evaluated import CURVE, Evaluation
from nram.training.job import TrainingJob
from nram.training.run_folder import RunFolder
from nram.training.settings import flat_settings
from nram.training.trackers import TRACKERS, TrackerName

if TYPE_CHECKING:
    from nram.programs.extract.from_run import Form as ExtractedForm
    from nram.programs.native.aot import Files
    from nram.programs.native.aot import Form as CompiledForm

PathLike: TypeAlias = str | os.PathLike[str]
Example: TypeAlias = Instance | Mapping[str, Any] | tuple[Iterable[int], Iterable[int]]
"""A drawn instance, an object as in a file of examples, or a pair: the memory before and after."""


# ---- search


def find_program(
    source: PathLike | Task | Sequence[Instance],
    *,
    budget: float = 60.0,
    seed: int = 0,
    workers: int | None = None,
    registers: int | None = None,
    repeats: int | None = None,
    states: int | None = None,
    modules: Sequence[str | Module] | None = None,
    start: Program | PathLike | None = None,
    sketch: Sketch | PathLike | None = None,
    library: str = "zoo",
    address: str | None = None,
    take_any: bool = False,
    progress: Progress = "auto",
    seconds: float | None = None,
) -> Outcome:
    """Search for a program within `budget` seconds, without a network, as `nram search` does.

    `source` is a task (an object, a name or a file) or examples (a list of instances, or a JSONL file). Without
    `registers`, `repeats` and `states` small structures are tried first. With any of them only programs of that
    structure are: with 3 registers, each module once and one state where nothing is said. `modules` are those of a
    row in their order, by name, by file or as objects. `start` is a program to be repaired, its name or its file.
    `sketch` is a program with holes, its text or its file: what is written in it stays, and the search fills the holes.
    It says how many registers and states there are. Some chains start at programs of the `library` that do not solve
    the problem already: 'zoo' stands for the searched programs of the zoo, 'none' for no programs, and names or files
    with commas between them for those. With an `address`, chains run on the Ray cluster there: HOST:PORT,
    'auto' for the one of this machine, or 'local' to start Ray here. `workers` is how many run at once. The same seed
    gives the same program wherever they run, but not with `take_any`, which takes the first that any chain finds.
    `progress` shows on standard error how the search goes; 'auto' does so on a terminal and in a notebook. `seconds` is
    the old name of `budget`.

    The outcome has `program`, which is None if none was found, the nearest to it as `best`, and `seconds`. A program
    for a task was right on fresh instances, larger ones among them. `nram.verify` says more of it.
    """
    if seconds is not None:
        warnings.warn(
            "find_program(seconds=...) is now budget=...: the old name goes in nram 0.3", DeprecationWarning, 2
        )
        budget = seconds
    check_budget(budget)
    check_whole(1, registers=registers, repeats=repeats, states=states, workers=workers)
    check_whole(0, seed=seed)
    repaired = None if start is None else as_program(start)
    space = Space(registers, repeats, states, modules)
    holes = None if sketch is None else load_sketch(sketch)
    words = ["--any"] if take_any else []
    job = SearchJob.open(source, space, seed=seed, start=repaired, sketch=holes, library=library, words=words)
    with SearchProgress(job.name) if is_shown(progress) else nullcontext(SILENT) as callbacks:
        return run_search(job, budget, address=address, workers=workers, callbacks=callbacks, take_any=take_any)


# ---- a file of examples


def learn(
    examples: PathLike | Iterable[Example],
    out: PathLike | None = None,
    *,
    budget: float = 300.0,
    seed: int = 0,
    method: LearningMethod = "both",
    workers: int | None = None,
    resume: bool = False,
    steps: str | None = None,
    cells: str | Iterable[int] | None = None,
    result: str | Sequence[str] = (),
    layout: str | None = None,
    alternatives: int = ALTERNATIVES,
    ask: Ask | None = None,
    progress: Progress = "auto",
) -> Learned:
    """Learn a program from examples, as `nram learn` does: by search, then by training, within `budget` seconds.

    Loading, compiling and the report add a few seconds to the budget.
    `examples` is a file, CSV or JSON, or the examples themselves, of lists or arrays: pairs of memories, or objects
    with names such as `{"values": [3, 1, 2], "x": 1, "result": 1}`. These are then written to `examples.jsonl` in the
    folder `out`, where program, picture and report go too (default: `learned/NAME`).

    `steps` is the step limit of examples that name none, such as '3n+10', where n is the size.
    `cells` chooses the cells of a memory that count: 'all', 'changed', or addresses. `result` names the columns with
    the results, `layout` says where the columns lie in memory; by default nram chooses both.

    After the first program that fits, the search looks for `alternatives` others, at most. Where they disagree, `ask`
    is called with a `Question`: its `input`, and in `answers` what the programs answer. It returns the number of an
    answer from 1, the right memory, the right results by name, 'skip', or None to stop. Answers are kept in the folder.
    `progress` shows on standard error how it goes; 'auto' does so on a terminal and in a notebook.

    The result prints as a report. It has `found`, true only if `program` is exact on every example, those held out
    included, `judgement`, the programs in `kept`, an open `question`, and what the examples leave open (`leaves_open`).
    """
    check_budget(budget)
    check_whole(0, seed=seed, alternatives=alternatives)
    check_whole(1, workers=workers)
    if method not in METHODS:
        raise UsageError(f"method is {shown(method)}: give {', '.join(METHODS[:-1])} or {METHODS[-1]}")
    limit = None if steps is None else StepLimit.from_text(steps)
    if steps is not None and limit is None:
        raise UsageError(f"steps is {steps!r}: write it like '3n+10', where n is the size of an example")
    given = None if isinstance(examples, str | os.PathLike) else _as_lines(examples)
    path = Path(examples if isinstance(examples, str | os.PathLike) else "examples.jsonl")
    folder = Path("learned", path.stem) if out is None else Path(out)
    file = read_examples(path if given is None else folder / path, _reading(cells, result, layout), given)
    if given is not None:
        _write_examples(file.path, given)
    job = LearningJob(
        file,
        folder,
        budget=budget,
        seed=seed,
        method=method,
        steps=limit,
        workers=workers,
        resume=resume,
        alternatives=alternatives,
        ask=ask,
    )
    if not is_shown(progress):
        return job.run()
    from nram.learning.display import LearningProgress  # imports rich

    with LearningProgress(job.name, job.file.layout) as display:
        return job.run(display)


def _reading(cells: str | Iterable[int] | None, result: str | Sequence[str], layout: str | None) -> Reading:
    addresses = cells if cells is None or isinstance(cells, str) else " ".join(map(str, cells))
    names = [name.strip() for name in result.split(",")] if isinstance(result, str) else result
    return Reading(addresses, tuple(names), layout)


def _as_lines(examples: Iterable[Example]) -> bytes:
    """The examples as the content of a file."""
    return "".join(_line(example, number) + "\n" for number, example in enumerate(examples, 1)).encode()


def _write_examples(file: Path, content: bytes) -> None:
    """Write the examples. Others in the file are replaced only if nothing was learned from them."""
    results = [name for name in (PROGRAM, REPORT, SEARCH, TRAINING) if (file.parent / name).exists()]
    if results and file.exists() and read_bounded(file, MOST_BYTES, "file of examples") != content:
        raise UsageError(
            f"{file} holds other examples, from which {results[0]} was made: choose another folder for out"
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {file.parent}: {error.strerror}; choose another for out") from None
    write_atomically(file, content)


def _line(example: Example, number: int) -> str:
    try:
        if isinstance(example, Instance):
            record = example.as_dict()
        elif isinstance(example, Mapping):
            record = dict(example)
        else:
            before, after = example
            record = {"input": list(before), "output": list(after)}
        return json.dumps(record, default=_plain)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"example {number} cannot be used ({error}): give a pair of memories, before and after, or an object with "
            "'input' and 'output' or with named columns, of whole numbers"
        ) from None


def _plain(value: Any) -> Any:
    """Convert to what JSON can write: the numbers and arrays of NumPy and its like, and other sequences."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, Sequence) else operator.index(value)


# ---- training and extraction


@dataclass(frozen=True, repr=False)
class Run(Displayed):
    """A training run and its folder."""

    path: Path
    """Its folder."""
    result: Mapping[str, Any]
    """What `nram train --json` prints; empty while the run is not finished."""
    trust: bool = False
    """Whether Python files that only the run names are executed."""

    @property
    def finished(self) -> bool:
        return bool(self.result)

    @property
    def perfect(self) -> int:
        """Members that were perfect when they were examined: soft and hard, under every limit, and at n = 50."""
        return self.result.get("perfect_members", 0)

    @property
    def _verdict(self) -> str:
        if not self.finished:
            return "not finished"
        if found := self.result.get("converged"):
            return f"{found['soft']} of {counted(found['members'], 'member')} converged"
        if not self.perfect:
            return f"not learned, the best is right on {self.result['best_validation_exact_hard']:.1%}"
        return f"{self.perfect} of {counted(self.result['examined_members'], 'examined member')} perfect"

    @property
    def members(self) -> list[int]:
        """The ranks of the members that were kept; 0 is the best."""
        return self._folder.members()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run by their names in `nram train --set`."""
        return flat_settings(self._folder.config)

    def metrics(self) -> dict[str, np.ndarray]:
        """The reports of the training as columns of equal length: step, best_error, seconds and the like.

        `levels.3` counts the members on level 3 of the curriculum. A figure that is missing is NaN.
        `pandas.DataFrame(run.metrics())` is the same as a table.
        """
        return _columns([_flat(row) for row in self._folder.read_metrics()])

    def program(self, member: int = 0, form: ExtractedForm = "task") -> Program:
        """The program of a member, as `nram.extract` makes it."""
        return extract(self, member, form)

    def evaluate(self, member: int = 0, *, count: int = 1000, seed: int = 0, device: DeviceName = "auto") -> Evaluation:
        """How good a member is on unseen instances, as `nram.evaluate` measures it."""
        return evaluate(self, member, count=count, seed=seed, device=device)

    @property
    def _folder(self) -> RunFolder:
        return RunFolder.open(self.path, self.trust)

    def _brief(self) -> str:
        return f"{self.path}: {self._verdict}"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        figures = {key: value for key, value in self.result.items() if not isinstance(value, list | dict)}
        return heading(self._brief()) + table((key.replace("_", " "), value) for key, value in figures.items())


def train(
    task: PathLike | Task,
    out: PathLike | None = None,
    *,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    protocol: str | None = None,
    device: DeviceName = "auto",
    resume: bool = False,
    trust: bool = False,
    progress: Progress = "auto",
    on_report: Callable[[TrainingReport], None] = lambda report: None,
    track: TrackerName | Sequence[TrackerName] = (),
) -> Run:
    """Train a population of machines on a task, as `nram train` does; minutes on a CPU.

    `task` is a name, a file, or a task registered with `nram.register_task`. `settings` are laid over the recipe:
    `{"registers": 3, "machine.hidden": 32}`; `nram train TASK --set help` lists them. `protocol="paper"` takes the
    place of the recipe. The run goes to `out` (default: `runs/TASK-SEED`). `resume` continues a run that exists, and
    warns if it was started on another device or with other versions; Python files of user-defined modules that only the
    run names are executed with `trust` alone. `progress` shows how the run goes on standard error or below a notebook's
    cell; 'auto' does so in a notebook and on a terminal. `on_report` is called with the state of the run after every
    few steps. `track="tensorboard"` also sends the scalars of these reports to tools that draw them: 'tensorboard',
    'mlflow' or 'wandb'.
    """
    from nram.training.display import training_display  # rich

    job = TrainingJob.for_task(
        _known_name(task),
        None if out is None else Path(out),
        seed=seed,
        protocol=protocol,
        overrides=[_override(key, value) for key, value in (settings or {}).items()],
        resume=resume,
        trust=trust,
    )
    names: Sequence[TrackerName] = [track] if isinstance(track, str) else track
    if unknown := set(names).difference(TRACKERS):
        raise UsageError(f"track names {', '.join(map(shown, sorted(unknown)))}: give some of {', '.join(TRACKERS)}")
    callbacks = _ApiCallbacks(training_display(progress, "nram.train"), on_report)
    return Run(job.folder.path, job.run(device, callbacks, track=names), trust)


@dataclass
class _ApiCallbacks(TrainingCallbacks):
    """Passes everything on to a display, reports also to the caller. Warnings are Python's."""

    display: TrainingCallbacks
    on_report: Callable[[TrainingReport], None]

    def __post_init__(self) -> None:
        self.started, self.activity, self.note = self.display.started, self.display.activity, self.display.note
        self.ended = self.display.ended

    def report(self, report: TrainingReport) -> None:
        self.display.report(report)
        self.on_report(report)

    def warning(self, text: str) -> None:
        warnings.warn(text, stacklevel=4)  # shown at the line that calls `train`


def _override(key: str, value: Any) -> str:
    try:
        return f"{key}={json.dumps(value, default=_plain)}"
    except (TypeError, ValueError):
        raise UsageError(f"the setting {key!r} is {value!r:.60}: give a number, a word, or a list of them") from None


def _known_name(task: PathLike | Task) -> str:
    """What a run's configuration calls the task: it must be found again by it."""
    if not isinstance(task, Task):
        return os.fspath(task)
    try:
        if known_task(task.name) is task:
            return task.name
    except UsageError:
        pass
    raise UsageError(
        f"a run names its task and does not hold it: pass the path of the file of {task.name!r}, or make it known "
        "first with nram.register_task(task)"
    )


def extract(run: Run | PathLike, member: int = 0, form: ExtractedForm = "task", *, trust: bool = False) -> Program:
    """The program of a trained member of a run, as `nram extract` makes it. Member 0 is the best.

    `form` says how much it is simplified: for the inputs of the run's task ('task'), with the same meaning on every
    memory ('every-input'), or not at all ('raw').

    A run may name the Python files of a user-defined task and modules. They are executed if this process has loaded
    them already (`nram.get_task(file)`, `nram.get_module(file)`), or with `trust`; otherwise the run is refused.
    """
    folder = _opened(run, trust)
    folder.member_file(member)  # a refusal does not wait for JAX
    require("train", "extraction")
    from nram.programs.extract.from_run import extract_run

    return extract_run(folder, member, form).program


def load_run(path: PathLike, trust: bool = False) -> Run:
    """The training run in a folder, finished or not.

    A run may name the Python files of a user-defined task and modules. They are executed if this process has loaded
    them already (`nram.get_task(file)`, `nram.get_module(file)`), or with `trust`.
    """
    folder = RunFolder.open(Path(path), trust)
    _ = folder.config  # what cannot be used is refused now, not later
    return Run(folder.path, folder.result or {}, trust)


def evaluate(
    run: Run | PathLike,
    member: int = 0,
    *,
    count: int = 1000,
    seed: int = 0,
    device: DeviceName = "auto",
    trust: bool = False,
) -> Evaluation:
    """Measure how well a trained member of a run does on unseen instances, as `nram eval` does. Writes nothing.

    The member is run as the continuous machine (soft) and as a discrete program (hard): at the trained complexity under
    three step limits, and on a curve up to n = 50. `count` is the number of instances for each figure.
    """
    check_whole(1, count=count)
    check_whole(0, member=member, seed=seed)
    folder = _opened(run, trust)
    folder.member_file(member)
    require("train", "evaluating")
    with on_devices(device):
        config, controller, _ = folder.load_member(member)
        from nram.training.report import evaluation_report

        found = evaluation_report(config, controller, count=count, seed=seed, curve=CURVE)
    return Evaluation({"run": str(folder.path), "member": member, **found}, folder.read_metrics())


def _opened(run: Run | PathLike, trust: bool) -> RunFolder:
    return RunFolder.open(run.path, run.trust or trust) if isinstance(run, Run) else RunFolder.open(Path(run), trust)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A line of the metrics without a mapping in it."""
    levels = {f"levels.{level}": count for level, count in row.get("levels", {}).items()}
    return {**{key: value for key, value in row.items() if key != "levels"}, **levels}


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    names = dict.fromkeys(name for row in rows for name in row)
    missing = {name: 0 if name.startswith("levels.") else np.nan for name in names}
    values = {name: [row.get(name) for row in rows] for name in names}
    return {name: np.array([missing[name] if v is None else v for v in column]) for name, column in values.items()}


# ---- what one does with a program


def test(
    program: Program | PathLike,
    source: PathLike | Task | Iterable[Example],
    *,
    count: int = COUNT,
    complexity: int | None = None,
    seed: int = 0,
    cells: str | Iterable[int] | None = None,
    result: str | Sequence[str] = (),
    layout: str | None = None,
) -> Tested:
    """Test a program on examples that it was not made from, as `nram test` does.

    `program` is a program, its name or its file. `source` is a task (an object, a name or a .py file), a file of
    examples, or the examples themselves, as for `learn`, which also explains `cells`, `result` and `layout`. Of a
    task, `count` instances are drawn, half with n = `complexity` and half with smaller n.

    The result prints as a report. It has `right`, `wrong` and `score`, whose `smallest` is the smallest wrong example,
    and `growth`, which says how the steps grow with the size. Right means under every step limit from T(n) up.
    """
    check_whole(1, count=count, complexity=complexity)
    check_whole(0, seed=seed)
    program = as_program(program)
    if isinstance(source, str | os.PathLike):
        source = os.fspath(source)
    reading = _reading(cells, result, layout)
    if isinstance(source, str | Task):
        return run_test(program, source, count=count, complexity=complexity, seed=seed, reading=reading)
    return run_test(program, _as_lines(source), complexity=complexity, reading=reading)


def trace(
    program: Program | PathLike,
    start: Instance | Sequence[int],
    max_steps: int | None = None,
    memory_size: int | None = None,
) -> Trace:
    """Run a program step by step on a memory, or on an instance of a task, and keep what happened.

    `program` is a program, its name or its file. The trace prints as a table and is a picture in a notebook. An
    instance has a step limit: the program is stopped there unless it halts before, or at `max_steps` if that is given.
    The trace says whether the end is right.
    """
    program = as_program(program)
    if not isinstance(start, Instance):
        return record_trace(program, start, max_steps, memory_size)
    if memory_size is not None:
        raise UsageError("an instance has its memory: draw it with another memory_size instead")
    return record_trace(program, start.input, start.steps if max_steps is None else max_steps, instance=start)


def compile_program(
    program: Program | PathLike,
    out: PathLike | None = None,
    *,
    form: CompiledForm | None = None,
    name: str | None = None,
) -> Files:
    """Write a program as a file for C, with its header beside it, or as Python source, as `nram compile` does.

    `form` is 'object', 'shared' (which needs a C compiler to link it), 'c', 'llvm' or 'python' (a readable function
    that needs no nram); by default what the ending of `out` tells, and else an object file. `name` is that of the
    function. In Python nothing need be compiled beforehand: `Program.run` is machine code already.
    """
    from nram.programs.native.aot import compile_program as compile_to_file

    return compile_to_file(as_program(program), form, None if out is None else Path(out), name)
