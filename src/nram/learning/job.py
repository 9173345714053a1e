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
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from nram.display import Displayed, counted, text_block
from nram.errors import NramError, UntrustedFile, UsageError
from nram.extras import missing, require
from nram.files import check_destination, locked, make_folder, read_json, remove_leftovers, write_atomically
from nram.learning.asking import SKIP, STOP, Ask, expected_from, read_answers, save_answer
from nram.learning.by_search import SearchEnd, learn_by_search
from nram.learning.callbacks import LearningCallbacks
from nram.learning.candidate import Candidate, better
from nram.learning.judgement import Judgement, judgement_of
from nram.learning.kept import Comparison, Kept, Question, merged, nearly_fitting, question_about
from nram.learning.parts import Parts, sizes_in_words, split
from nram.learning.report import beginning, to_json, to_text
from nram.learning.review import facts_of, review
from nram.limits import StepLimit
from nram.messages import pasted
from nram.pictures.circuits import MAX_OPERATIONS, MAX_ROWS, program_svg
from nram.programs.card import card
from nram.programs.files import from_json, read_program, save_found, save_program
from nram.records import Span, Tolerant, read_record
from nram.tasks.example_files import STEPS_IN_WORDS, Example, ExampleFile

if TYPE_CHECKING:
    from nram.learning.by_training import TrainingEnd
    from nram.programs.ir import Program

Method = Literal["search", "train", "both"]
METHODS: tuple[Method, ...] = get_args(Method)
SEARCH_SHARE = 2 / 3  # of the budget, where training is to follow
LEAST_TRAINING = 30.0  # seconds: in less, stages are hardly compiled
LEAST_SEARCH = 0.1  # seconds
# In the folder:
PROGRAM, TEXT, REPORT, SEARCH, TRAINING = "program.json", "program.nram", "report.json", "search.json", "training"
PROGRAMS = "programs"  # a folder in it
BEFORE = "program.before.nram"  # a program that was exact until an answer
ALTERNATIVES = 4
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
    alternatives: int = ALTERNATIVES
    """So many further programs that fit are looked for, at most; 0: the search stops at the first."""
    ask: Ask | None = None
    """Called with a question when programs disagree."""
    spent: float = 0.0
    """Seconds of the budget that earlier processes have used."""

    @property
    def name(self) -> str:
        """Of the program, from the file's: a word that is also a name for a task."""
        word = re.sub(r"[^A-Za-z0-9_]+", "-", self.file.path.stem).strip("-")[:40]
        return word if word[:1].isalpha() else f"examples-{word}".rstrip("-")

    @property
    def words(self) -> list[str]:
        """The words of the command after `nram` on which the result depends."""
        options = {name: f"{value:g}" if name == "budget" else str(value) for name, value in self.options.items()}
        return ["learn", pasted(self.file.path), *(word for name in options for word in (f"--{name}", options[name]))]

    @property
    def options(self) -> dict[str, Any]:
        """The arguments on which the result depends, by name."""
        given: dict[str, Any] = {"seed": self.seed, "budget": self.budget, **self.file.reading.options}
        if self.method != "both":
            given["method"] = self.method
        if self.alternatives != ALTERNATIVES:
            given["alternatives"] = self.alternatives
        return given if self.steps is None else {**given, "steps": self.steps_in_words}

    @property
    def steps_in_words(self) -> str:
        return STEPS_IN_WORDS if self.steps is None else str(self.steps)

    def answers(self) -> tuple[Example, ...]:
        """The answers in the folder, with the step limits of this job."""
        answers = read_answers(self.folder) if self.resume or self.ask is not None else None
        if answers is None:
            return ()
        return (answers if self.steps is None else answers.with_steps(self.steps)).examples

    def run(self, callbacks: LearningCallbacks | None = None, stopping: Callable[[], bool] = lambda: False) -> Learned:
        """Search, then train, until programs are exact on every example; the best is kept in any case.

        With `ask`, programs that disagree lead to questions, until they agree or the user stops.
        """
        callbacks = callbacks or LearningCallbacks()
        if self.method == "train":
            require("train", "training")
        file = self.file if self.steps is None else self.file.with_steps(self.steps)
        parts = split(file.examples, self.seed, str(file.path))
        self._prepare_folder()
        callbacks.note(beginning(file, parts))
        work = _Work(self, parts, callbacks, stopping)
        if work.finished and self.ask is None:  # nothing is done again
            learned = work.learned(new_cards=False)
            _write_programs(learned)  # a process that was killed may not have come so far
            _remove_search(self.folder)
            return learned
        check_destination(self.folder / PROGRAM)
        busy = f"another process is learning in {self.folder}: wait for it, stop it, or choose another --out"
        with locked(self.folder / ".lock", busy):
            self._prepare_folder()  # again: another process may have been faster
            remove_leftovers(self.folder)
            # Again: the process that held the lock may have written since.
            return _Work(self, parts, callbacks, stopping).run()

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

    def before(self) -> _Report | None:
        """What was found out before. Its record is the report, which is written at once."""
        path = self.folder / REPORT
        if not path.is_file():
            return None
        report = read_record(_Report, read_json(path, MOST_BYTES, "report"), str(path), "; choose another --out")
        if report.examples.sha256 != self.file.digest:
            raise UsageError(f"{path} is about other examples: choose another --out")
        if report.examples.options != self.file.reading.words:
            given = " ".join(report.examples.options) or "no --cells, --result and --layout"
            raise UsageError(f"{path} was learned with {given}: go on with the same, or choose another --out")
        return report

    def with_card(self, candidate: Candidate, parts: Parts) -> Program:
        judgement = candidate.judgement
        details = (
            ("examples", f"{self.file.path.name}, SHA-256 {self.file.digest}"),
            (
                "shown",
                f"exact on {judgement.training.right} of {judgement.training.examples} training examples "
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


class _Work:
    """The work of a job: what it has found, from before and now."""

    def __init__(self, job: LearningJob, parts: Parts, callbacks: LearningCallbacks, stopping: Callable[[], bool]):
        self.job, self.callbacks, self.stopping = job, callbacks, stopping
        self.facts = facts_of(parts.all, job.file.layout)
        self.comparison = Comparison(self.facts, job.steps, job.seed)
        self.parts = replace(parts, answers=job.answers())
        self.began = time.monotonic() - job.spent
        self.search: SearchEnd | None = None
        self.training: TrainingEnd | None = None
        self.notes: list[str] = []
        self.near: list[Candidate] = []
        self.fitting: list[Kept] = []
        report = self.before = job.before()
        self.skipped = [] if report is None else list(report.skipped)
        self.best: Candidate | None = None
        self.dropped = False  # a program that fitted before is wrong on an answer
        if report is not None:
            where = str(job.folder / REPORT)
            programs = [(from_json(one.program, where), one.exact) for one in report.programs]
            if (job.folder / BEFORE).is_file():  # it fits again if its answer was taken back
                programs.append((read_program(job.folder / BEFORE), False))
            self.best = None if report.program is None else self._candidate(from_json(report.program, where))
            for program, exact in programs:
                candidate = self._candidate(program)
                if candidate.judgement.exact:
                    self.fitting.append(self.comparison.measured(candidate))
                else:
                    self.near.append(candidate)
                    self.dropped |= exact
            if not self.fitting and self.best is not None and self.best.judgement.exact:  # 0.2 kept one program
                self.fitting.append(self.comparison.measured(self.best))
        self.looking = not self.fitting  # for programs

    def _candidate(self, program: Program) -> Candidate:
        how = tuple((key, value) for key, value in program.made if key not in _CARD)
        return Candidate(program, judgement_of(program, self.parts), how)

    def _judged(self, candidate: Candidate) -> Candidate:
        """The same program, judged with every answer so far."""
        return replace(candidate, judgement=judgement_of(candidate.program, self.parts))

    @property
    def finished(self) -> bool:
        """Whether an earlier process has done all."""
        return bool(self.fitting) and not self.dropped

    def run(self) -> Learned:
        while True:
            if self.looking:
                self._look()
            learned = self._written()
            if self.job.ask is None or learned.question is None or self.stopping() or not self._asked(learned.question):
                return learned

    def _left(self) -> float:
        return self.job.budget - (time.monotonic() - self.began)

    def _look(self) -> None:
        """Search, then train, until programs fit."""
        job, stopping = self.job, self.stopping
        library = missing("train") if job.method == "both" else None
        if library is not None:
            self.callbacks.note(f"search only: training needs {library}")
        both = job.method == "both" and library is None and job.budget * (1 - SEARCH_SHARE) >= LEAST_TRAINING
        share = 0.0 if job.method == "train" else SEARCH_SHARE if both else 1.0
        if job.method != "train":
            # At least a moment: a search that goes on then says again what it has reached.
            seconds = max(LEAST_SEARCH, job.budget * share - job.spent) if job.spent else self._left() * share
            self.search = learn_by_search(job, self.parts, self.comparison, seconds, self.callbacks, stopping)
            self.best = better(self.best, self.search.best)
            self.fitting += self.search.fitting
            self.near += self.search.near
        self.looking = False
        if job.method == "both" and not both and not self.fitting:
            least = LEAST_TRAINING / (1 - SEARCH_SHARE)
            short = f"with a budget below {least:.0f} s all the time goes to the search"
            self.notes.append(f"nothing was trained: {short if library is None else f'training needs {library}'}")
        if (both or job.method == "train") and not self.fitting and not stopping():
            self._train(trained_before=max(0.0, job.spent - job.budget * share))

    def _train(self, trained_before: float) -> None:
        self._written()  # in case the training fails
        self.callbacks.note("training: loading JAX")
        from nram.learning.by_training import learn_by_training  # imports JAX

        scored = 0 if self.before is None or self.before.trained is None else self.before.trained.scored

        def trained() -> Iterator[TrainingEnd]:
            try:
                yield from learn_by_training(
                    self.job, self.parts, self._left(), scored, self.callbacks.training, self.stopping, trained_before
                )
            except NramError as error:
                # A run of `learn` names no file, so there is none to trust.
                reason = error.reason if isinstance(error, UntrustedFile) else error
                what = "nothing was trained" if self.training is None else "the training ended"
                self.notes.append(f"{what}: {reason}")

        for self.training in trained():
            self.best = better(self.best, self.training.best)
            self.fitting = [self.comparison.measured(candidate) for candidate in self.training.fitting]
            self._written()  # a process that is killed in the next run loses nothing

    def _asked(self, question: Question) -> bool:
        """Ask the user. Returns False if the user stops."""
        assert self.job.ask is not None and self.facts.columns is not None
        began = time.monotonic()
        reply = self.job.ask(question)
        self.began += time.monotonic() - began  # the user's time is not the job's
        if reply is None or reply == STOP:
            return False
        if isinstance(reply, str) and reply == SKIP:
            self.skipped.append(question.input)
            return True
        save_answer(self.job.folder, question.input, expected_from(reply, question, self.facts.columns))
        self.parts = replace(self.parts, answers=self.job.answers())
        judged = [replace(one, candidate=self._judged(one.candidate)) for one in self.fitting]
        self.fitting = [one for one in judged if one.exact]
        self.near = [*map(self._judged, self.near), *(one.candidate for one in judged if not one.exact)]
        self.best = None if self.best is None else self._judged(self.best)
        self.looking = len(merged(self.fitting)) < 2
        if self.looking:
            left = counted(len(self.fitting), "program")
            self.callbacks.note(f"{left} left that give{'s' if self.fitting else ''} this answer: looking for others")
            _remove_search(self.job.folder)  # the search begins again, with the answer as an example
        return True

    def _written(self) -> Learned:
        """The result so far, in the folder."""
        learned = self.learned()
        _write(learned)
        return learned

    def learned(self, new_cards: bool = True) -> Learned:
        """The result so far. A program from before keeps its card if nothing was done since."""
        job, before = self.job, self.before
        kept = merged(self.fitting)
        best = reduce(better, self.near, self.best)  # after an answer it may be another
        if not kept and best is not None:
            kept = [Kept(best, self.comparison.speed(best.program))]
        front = nearly_fitting(self.near, [one.candidate for one in kept])
        kept += [Kept(one, self.comparison.speed(one.program)) for one in front]
        if new_cards:
            kept = [one.with_program(job.with_card(one.candidate, self.parts)) for one in kept]
        refused = sum(end.refused for end in (self.search, self.training) if end is not None)
        if before is not None:  # the search counts them from its beginning
            refused += before.refused_by_held_out
            refused -= before.search.refused if self.search is not None and before.search is not None else 0
        exact = [one for one in kept if one.exact]
        return Learned(
            job,
            self.parts,
            kept[0].program if kept else None,
            kept[0].candidate.judgement if kept else None,
            refused,
            self.search,
            self.training,
            time.monotonic() - self.began,
            self.stopping() and not exact,
            tuple(self.notes),
            tuple(kept),
            question_about(exact, self.comparison, self.skipped),
            tuple(self.skipped),
            tuple(review(facts_of((*self.parts.all, *self.parts.answers), job.file.layout))),
            len(self.comparison.probes),
        )


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
    kept: tuple[Kept, ...]
    """The programs that fit and differ on some input, the chosen one first; then smaller ones that nearly fit."""
    question: Question | None
    """An input on which programs that fit disagree."""
    skipped: tuple[list[int], ...]
    """Inputs about which the user does not want to be asked."""
    leaves_open: tuple[str, ...]
    """What the examples leave open."""
    probes: int
    """Fresh inputs on which the programs were compared."""

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
class _Program(Tolerant):
    program: dict[str, Any]
    exact: bool


@dataclass(frozen=True)
class _Report(Tolerant):
    """What is used of report.json when a job is resumed."""

    examples: _Examples
    refused_by_held_out: Count
    search: _Searched | None
    trained: _Trained | None
    program: dict[str, Any] | None
    programs: Annotated[tuple[_Program, ...], Span(0, 100)] = ()  # 0.2 did not write it, nor what was skipped
    skipped: Annotated[tuple[list[int], ...], Span(0, 10**6)] = ()
    found: bool = False


def _write(learned: Learned) -> None:
    """Write the report, then the files that follow from it: whenever the process is killed, nothing is lost."""
    folder, program = learned.job.folder, learned.program
    before = learned.job.before()
    try:
        if not learned.found and before is not None and before.found and before.program is not None:
            save_program(from_json(before.program, str(folder / REPORT)), folder / BEFORE)
        write_atomically(folder / REPORT, (json.dumps(to_json(learned), indent=1) + "\n").encode())
        _write_programs(learned)
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


def _write_programs(learned: Learned) -> None:
    """Write the chosen program, its picture and all that are kept, unless they are there."""
    folder, program = learned.job.folder, learned.program
    if program is None:
        return
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
    for number, one in enumerate(learned.kept, 1):
        (folder / PROGRAMS).mkdir(exist_ok=True)
        save_program(one.program, folder / PROGRAMS / f"{number}.nram")
    for path in sorted((folder / PROGRAMS).glob("*.nram"))[:1000]:
        if path.stem.isdecimal() and int(path.stem) > len(learned.kept):  # of an earlier report
            path.unlink()
    save_program(program, folder / PROGRAM)  # the last one: if it is there, all are
