"""From a file of examples to a program within a time budget: search first, training with what is left."""

from __future__ import annotations

import json
import re
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nram.errors import NramError, UsageError
from nram.files import write_atomically
from nram.learning.candidate import Candidate, better
from nram.learning.examples import STEPS_IN_WORDS, ExampleFile
from nram.learning.judgement import Judgement, judge
from nram.learning.parts import Parts, sizes_in_words, split
from nram.learning.report import beginning, to_json
from nram.learning.watch import Watch
from nram.limits import StepLimit
from nram.runtime import cpu_cores, versions

if TYPE_CHECKING:
    from nram.learning.by_search import SearchEnd
    from nram.learning.by_training import TrainingEnd
    from nram.programs.ir import Program

Method = Literal["search", "train", "both"]
METHODS: tuple[Method, ...] = ("search", "train", "both")
SEARCH_SHARE = 2 / 3  # of the budget, where training is to follow
LEAST_TRAINING = 30.0  # seconds: in less, stages are hardly compiled


@dataclass(frozen=True)
class Request:
    """What is to be learned, and how."""

    file: ExampleFile
    folder: Path
    budget: float = 300.0
    seed: int = 0
    method: Method = "both"
    steps: StepLimit | None = None
    """T(size) of the examples that name none; None: the default."""
    workers: int | None = None
    device: str = "auto"
    resume: bool = False

    @property
    def name(self) -> str:
        """Of the program, from the file's: a word that is also a name for a task."""
        word = re.sub(r"[^A-Za-z0-9_]+", "-", self.file.path.stem).strip("-")[:40]
        return word if word[:1].isalpha() else f"examples-{word}".rstrip("-")


@dataclass(frozen=True)
class Learned:
    """How it ended."""

    request: Request
    parts: Parts
    program: Program | None
    """With its card; the best there is, whether or not it is right. None if there was no time for any."""
    judgement: Judgement | None
    refused: int
    """Programs that fitted the training examples and were wrong on held-out ones, which so helped to choose."""
    search: SearchEnd | None
    training: TrainingEnd | None
    seconds: float
    interrupted: bool
    notes: tuple[str, ...]

    @property
    def found(self) -> bool:
        return self.judgement is not None and self.judgement.exact

    def __str__(self) -> str:
        from nram.learning.report import to_text

        return to_text(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What a notebook shows."""
        printer.text(str(self))


# ---- the folder


PROGRAM, SEARCH, TRAINING, REPORT = "program.json", "search.json", "training", "report.json"


def prepare_folder(request: Request) -> None:
    """Refuse a folder in which something would be lost. Makes it if it does not exist."""
    folder = request.folder
    unfinished = [name for name in (SEARCH, TRAINING) if (folder / name).exists()]
    if unfinished and not request.resume:
        raise UsageError(f"{folder} holds work that can go on ({unfinished[0]}): use --resume, or choose another --out")
    if (folder / PROGRAM).exists() and not (folder / REPORT).exists() and not unfinished:
        raise UsageError(f"{folder} holds a program that was not learned here: choose another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}; choose another --out") from None


def _before(request: Request, parts: Parts) -> tuple[Candidate | None, int]:
    """The best program of the learning that goes on, and how many the held-out examples have refused."""
    from nram.programs.files import read_program

    path = request.folder / PROGRAM
    if not (request.resume and path.is_file()):
        return None, 0
    program = read_program(path)
    made = dict(program.made)
    if not made.get("examples", "").endswith(request.file.digest):
        raise UsageError(f"{path} was learned from other examples: choose another --out")
    how = tuple((key, value) for key, value in program.made if key not in _CARD)
    try:
        refused = int(json.loads((request.folder / REPORT).read_text())["refused_by_held_out"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NramError(f"{request.folder / REPORT} cannot be read: {error}; choose another --out") from None
    return Candidate(program, judge(program, parts), how), refused


# ---- learning


def learn(request: Request, watch: Watch) -> Learned:
    """Search, then train, until a program is exact on every example; the best is kept in any case."""
    began = time.monotonic()
    file = request.file if request.steps is None else request.file.with_steps(request.steps)
    parts = split(file.examples, request.seed, str(file.path))
    prepare_folder(request)
    watch.note(beginning(file, parts))
    best, refused = _before(request, parts)
    if best is not None and best.judgement.exact:  # finished before: nothing is done or written again
        return Learned(request, parts, best.program, best.judgement, refused, None, None, 0.0, False, ())
    notes: list[str] = []
    search = training = None

    def left() -> float:
        return request.budget - (time.monotonic() - began)

    def exact() -> bool:
        return best is not None and best.judgement.exact

    def so_far() -> Learned:
        """How it stands, written down."""
        program, judgement = (None, None) if best is None else (_with_card(best, request, parts), best.judgement)
        many = refused + sum(end.refused for end in (search, training) if end is not None)
        seconds, interrupted = time.monotonic() - began, watch.stopping() and not exact()
        learned = Learned(
            request, parts, program, judgement, many, search, training, seconds, interrupted, tuple(notes)
        )
        _write(learned)
        return learned

    both = request.method == "both" and request.budget * (1 - SEARCH_SHARE) >= LEAST_TRAINING
    if request.method != "train":
        search = _search(request, parts, watch, left() * (SEARCH_SHARE if both else 1))
        best = better(best, search.best)
    if request.method == "both" and not both and not exact():
        least = LEAST_TRAINING / (1 - SEARCH_SHARE)
        notes.append(f"nothing was trained: with a budget below {least:.0f} s all the time goes to the search")
    if (both or request.method == "train") and not exact() and not watch.stopping():
        so_far()  # whatever becomes of the training
        try:
            training = _train(request, parts, watch, left())
            best = better(best, training.best)
        except NramError as error:
            notes.append(f"nothing was trained: {error}")
    return so_far()


def _search(request: Request, parts: Parts, watch: Watch, seconds: float) -> SearchEnd:
    from nram.learning.by_search import learn_by_search

    return learn_by_search(
        parts,
        _question(request),
        request.folder / SEARCH,
        watch,
        seed=request.seed,
        seconds=seconds,
        workers=request.workers or cpu_cores(),
    )


def _train(request: Request, parts: Parts, watch: Watch, seconds: float) -> TrainingEnd:
    began = time.monotonic()
    watch.note("training: loading JAX")
    from nram.learning.by_training import learn_by_training

    return learn_by_training(
        parts,
        request.name,
        request.folder / TRAINING,
        request.device,
        watch,
        seed=request.seed,
        seconds=seconds - (time.monotonic() - began),
        fixed_steps=request.steps is not None or all(example.own_steps for example in parts.training),
        words=command_of(request),
    )


def _question(request: Request) -> str:
    """All of the request, but for its seed, on which the course of a search depends."""
    steps = "" if request.steps is None else f" {request.steps}"
    return f"examples {request.file.digest}{steps}"


# ---- what is kept


def command_of(request: Request) -> list[str]:
    """The words after `nram`, as far as the result depends on them."""
    words = ["learn", str(request.file.path), "--seed", str(request.seed), "--budget", f"{request.budget:g}"]
    if request.method != "both":
        words += ["--method", request.method]
    if request.steps is not None:
        words += ["--steps", steps_in_words(request)]
    return words


def steps_in_words(request: Request) -> str:
    from nram.programs.text import limit_to_text

    return STEPS_IN_WORDS if request.steps is None else limit_to_text(request.steps)


_CARD = ("command", "seed", "examples", "shown", "steps", "versions", "date")


def _with_card(candidate: Candidate, request: Request, parts: Parts) -> Program:
    file = request.file.path.name
    shown = file if file.isprintable() else file.encode("unicode_escape").decode()
    judgement = candidate.judgement
    command = shlex.join(["nram", *command_of(request)])
    card = (
        ("command", command if command.isprintable() else f"nram learn {shown}"),
        ("seed", str(request.seed)),
        ("examples", f"{shown}, SHA-256 {request.file.digest}"),
        (
            "shown",
            f"exact on {judgement.training.right} of {len(parts.training)} training examples "
            f"({sizes_in_words(parts.training)}) and {judgement.held_out.right} of {len(parts.held_out)} held out "
            f"({sizes_in_words(parts.held_out)}); nothing beyond them",
        ),
        ("steps", f"at most {steps_in_words(request)} where the file names none"),
    )
    made = (*card, *candidate.how, ("versions", ", ".join(f"{key} {value}" for key, value in versions().items())))
    date = ("date", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    return replace(candidate.program, name=request.name, task=None, limit=request.steps, made=(*made, date))


def _write(learned: Learned) -> None:
    from nram.pictures.circuits import MAX_OPERATIONS, MAX_ROWS, program_svg
    from nram.programs.files import save_program

    folder, program = learned.request.folder, learned.program
    if program is not None:
        save_program(program, folder / PROGRAM)
        save_program(program, folder / "program.nram")
        largest = max(len(row.operations) for rows in program.states for row in rows)
        picture = folder / "program.svg"
        if program.rows <= MAX_ROWS and largest <= MAX_OPERATIONS:
            write_atomically(picture, program_svg(program).encode())
        else:
            picture.unlink(missing_ok=True)
    write_atomically(folder / REPORT, (json.dumps(to_json(learned), indent=1) + "\n").encode())
