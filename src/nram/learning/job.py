"""A learning job: from a file of examples to a program within a time budget, and the folder in which all is kept.

Search comes first, training with the time that is left.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from nram.display import Displayed, text_block
from nram.errors import NramError, UntrustedFile, UsageError
from nram.extras import missing, require
from nram.files import check_destination, locked, make_folder, read_json, remove_leftovers, write_atomically
from nram.learning.by_search import SearchEnd, learn_by_search
from nram.learning.callbacks import LearningCallbacks
from nram.learning.candidate import Candidate, better
from nram.learning.judgement import Judgement, judgement_of
from nram.learning.parts import Parts, sizes_in_words, split
from nram.learning.report import beginning, to_json, to_text
from nram.limits import StepLimit
from nram.messages import pasted
from nram.pictures.circuits import MAX_OPERATIONS, MAX_ROWS, program_svg
from nram.programs.card import card
from nram.programs.files import from_json, read_program, save_found, save_program
from nram.records import Span, Tolerant, read_record
from nram.tasks.example_files import STEPS_IN_WORDS, ExampleFile

if TYPE_CHECKING:
    from nram.learning.by_training import TrainingEnd
    from nram.programs.ir import Program

Method = Literal["search", "train", "both"]
METHODS: tuple[Method, ...] = get_args(Method)
SEARCH_SHARE = 2 / 3  # of the budget, where training is to follow
LEAST_TRAINING = 30.0  # seconds: in less, stages are hardly compiled
# In the folder:
PROGRAM, TEXT, REPORT, SEARCH, TRAINING = "program.json", "program.nram", "report.json", "search.json", "training"
MOST_BYTES = 1 << 28  # of a report: the program and some examples, in a form that takes much room


@dataclass(frozen=True)
class LearningJob:
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

    @property
    def words(self) -> list[str]:
        """The words of the command after `nram` on which the result depends."""
        words = ["learn", pasted(self.file.path), "--seed", str(self.seed), "--budget", f"{self.budget:g}"]
        words += self.file.reading.words
        if self.method != "both":
            words += ["--method", self.method]
        return words if self.steps is None else [*words, "--steps", self.steps_in_words]

    @property
    def steps_in_words(self) -> str:
        return STEPS_IN_WORDS if self.steps is None else str(self.steps)

    def run(self, callbacks: LearningCallbacks | None = None, stopping: Callable[[], bool] = lambda: False) -> Learned:
        """Search, then train, until a program is exact on every example; the best is kept in any case."""
        callbacks, began = callbacks or LearningCallbacks(), time.monotonic()
        if self.method == "train":
            require("train", "training")
        file = self.file if self.steps is None else self.file.with_steps(self.steps)
        parts = split(file.examples, self.seed, str(file.path))
        self._prepare_folder()
        callbacks.note(beginning(file, parts))
        before = self._before(parts)
        best = before.best
        if best is not None and best.judgement.exact:  # finished before: nothing is done again
            _write_program(self.folder, best.program)  # a process that was killed may not have come so far
            _remove_search(self.folder)
            return Learned(self, parts, best.program, best.judgement, before.refused, None, None, 0.0, False, ())
        check_destination(self.folder / PROGRAM)
        busy = f"another process is learning in {self.folder}: wait for it, stop it, or choose another --out"
        with locked(self.folder / ".lock", busy):
            self._prepare_folder()  # again: another process may have been faster
            remove_leftovers(self.folder)
            return self._learn(parts, began, callbacks, stopping)

    def _learn(self, parts: Parts, began: float, callbacks: LearningCallbacks, stopping: Callable[[], bool]) -> Learned:
        before = self._before(parts)  # again: the process that held the lock may have written since
        best, notes = before.best, list[str]()
        search = training = None

        def left() -> float:
            return self.budget - (time.monotonic() - began)

        def exact() -> bool:
            return best is not None and best.judgement.exact

        def written() -> Learned:
            """The result so far, in the folder."""
            program, judgement = (None, None) if best is None else (self._with_card(best, parts), best.judgement)
            many = before.refused + sum(end.refused for end in (search, training) if end is not None)
            many -= before.refused_by_search if search is not None else 0  # the search counts them from its beginning
            seconds, interrupted = time.monotonic() - began, stopping() and not exact()
            learned = Learned(
                self, parts, program, judgement, many, search, training, seconds, interrupted, tuple(notes)
            )
            _write(learned)
            return learned

        library = missing("train") if self.method == "both" else None
        if library is not None:
            callbacks.note(f"search only: training needs {library}")
        both = self.method == "both" and library is None and self.budget * (1 - SEARCH_SHARE) >= LEAST_TRAINING
        if self.method != "train" and not exact():
            search = learn_by_search(self, parts, left() * (SEARCH_SHARE if both else 1), callbacks, stopping)
            best = better(best, search.best)
        if self.method == "both" and not both and not exact():
            least = LEAST_TRAINING / (1 - SEARCH_SHARE)
            short = f"with a budget below {least:.0f} s all the time goes to the search"
            notes.append(f"nothing was trained: {short if library is None else f'training needs {library}'}")
        if (both or self.method == "train") and not exact() and not stopping():
            written()  # in case the training fails
            callbacks.note("training: loading JAX")
            from nram.learning.by_training import learn_by_training  # imports JAX

            def trained() -> Iterator[TrainingEnd]:
                try:
                    yield from learn_by_training(self, parts, left(), before.scored, callbacks.training, stopping)
                except NramError as error:
                    # A run of `learn` names no file, so there is none to trust.
                    reason = error.reason if isinstance(error, UntrustedFile) else error
                    what = "nothing was trained" if training is None else "the training ended"
                    notes.append(f"{what}: {reason}")

            for training in trained():
                best = better(best, training.best)
                written()  # a process that is killed in the next run loses nothing
        return written()

    def _prepare_folder(self) -> None:
        """Refuse a folder in which something would be lost. Makes it if it does not exist."""
        folder = self.folder
        earlier = [name for name in (SEARCH, TRAINING) if (folder / name).exists()]
        earlier += [REPORT] if (folder / REPORT).is_file() else []
        if earlier and not self.resume:
            raise UsageError(
                f"{folder} holds earlier work ({earlier[0]}): go on with it by --resume, or choose another --out"
            )
        if (folder / PROGRAM).exists() and not earlier:
            raise UsageError(f"{folder} holds a program that was not learned here: choose another --out")
        make_folder(folder)

    def _before(self, parts: Parts) -> _Before:
        """What the job that is resumed had found out. Its record is the report, which is written at once."""
        path = self.folder / REPORT
        if not (self.resume and path.is_file()):
            return _Before()
        report = read_record(_Report, read_json(path, MOST_BYTES, "report"), str(path), "; choose another --out")
        if report.examples.sha256 != self.file.digest:
            raise UsageError(f"{path} is about other examples: choose another --out")
        if report.examples.options != self.file.reading.words:
            given = " ".join(report.examples.options) or "no --cells, --result and --layout"
            raise UsageError(f"{path} was learned with {given}: go on with the same, or choose another --out")
        refused, by_search = report.refused_by_held_out, report.search.refused if report.search else 0
        scored = report.trained.scored if report.trained else 0
        if report.program is None:
            return _Before(None, refused, by_search, scored)
        program = from_json(report.program, str(path))
        how = tuple((key, value) for key, value in program.made if key not in _CARD)
        return _Before(Candidate(program, judgement_of(program, parts), how), refused, by_search, scored)

    def _with_card(self, candidate: Candidate, parts: Parts) -> Program:
        judgement = candidate.judgement
        details = (
            ("examples", f"{self.file.path.name}, SHA-256 {self.file.digest}"),
            (
                "shown",
                f"exact on {judgement.training.right} of {len(parts.training)} training examples "
                f"({sizes_in_words(parts.training)}) and {judgement.held_out.right} of {len(parts.held_out)} held out "
                f"({sizes_in_words(parts.held_out)}); nothing beyond them",
            ),
            ("steps", f"at most {self.steps_in_words} where the file names none"),
            *candidate.how,
        )
        made = card(self.words, self.seed, details)
        return replace(
            candidate.program, name=self.name, task=None, limit=self.steps, made=made, layout=self.file.layout
        )


_CARD = ("command", "seed", "examples", "shown", "steps", "versions", "date")
"""The entries of the card that say nothing about how the program was found."""


@dataclass(frozen=True, repr=False)
class Learned(Displayed):
    """The result of a job."""

    job: LearningJob
    parts: Parts
    program: Program | None
    """With its card; the best there is, whether or not it is right. None if there was no time for any."""
    judgement: Judgement | None
    refused: int
    """Programs that fitted the training examples and were wrong on held-out ones, so these helped to choose."""
    search: SearchEnd | None
    training: TrainingEnd | None
    seconds: float
    interrupted: bool
    notes: tuple[str, ...]

    @property
    def found(self) -> bool:
        return self.judgement is not None and self.judgement.exact

    @property
    def request(self) -> LearningJob:
        """The name of nram 0.1 for `job`."""
        warnings.warn("Learned.request is now Learned.job: the old name goes in nram 0.3", DeprecationWarning, 2)
        return self.job

    def __str__(self) -> str:
        return to_text(self)

    def _brief(self) -> str:
        what = "FOUND" if self.found else "NOT FOUND"
        return f"from {self.job.file.path.name}: {what} in {self.seconds:.1f} s" + (
            "" if self.program is None else f", {self.program!r}"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the circuits and the report."""
        picture = None if self.program is None else self.program._repr_svg_()
        return (picture or "") + text_block(str(self))


Count = Annotated[int, Span(0, 10**12)]


@dataclass(frozen=True)
class _Examples(Tolerant):
    sha256: str
    options: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Searched(Tolerant):
    refused: Count = 0


@dataclass(frozen=True)
class _Trained(Tolerant):
    scored: Count = 0


@dataclass(frozen=True)
class _Report(Tolerant):
    """What is used of report.json when a job is resumed."""

    examples: _Examples
    refused_by_held_out: Count
    search: _Searched | None
    trained: _Trained | None
    program: dict[str, Any] | None


@dataclass(frozen=True)
class _Before:
    """What an earlier process has left in the folder."""

    best: Candidate | None = None
    refused: int = 0
    """Programs that the held-out examples refused."""
    refused_by_search: int = 0
    """Those of them that the search had found."""
    scored: int = 0
    """Training runs whose programs were scored."""


def _write(learned: Learned) -> None:
    """Write the report, then the files that follow from it: whenever the process is killed, nothing is lost."""
    folder, program = learned.job.folder, learned.program
    try:
        write_atomically(folder / REPORT, (json.dumps(to_json(learned), indent=1) + "\n").encode())
        if program is not None:
            _write_program(folder, program)
    except NramError:
        if program is not None:
            save_found(program, folder / TEXT)  # if this fails too, it is shown and saved elsewhere
        raise
    if learned.found:
        _remove_search(folder)


def _remove_search(folder: Path) -> None:
    """Remove the state of the search: the program is found and saved."""
    with contextlib.suppress(OSError):
        (folder / SEARCH).unlink()


def _write_program(folder: Path, program: Program) -> None:
    """Write the program and its picture, unless they are there."""
    with contextlib.suppress(NramError):
        if read_program(folder / PROGRAM) == program:
            return
    largest = max(len(row.operations) for rows in program.states for row in rows)
    picture = folder / "program.svg"
    if program.rows <= MAX_ROWS and largest <= MAX_OPERATIONS:
        write_atomically(picture, program_svg(program).encode())
    else:
        picture.unlink(missing_ok=True)
    save_program(program, folder / TEXT)
    save_program(program, folder / PROGRAM)  # the last one: if it is there, all are
