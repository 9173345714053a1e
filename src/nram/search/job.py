"""A search job: opened, checked, resumed, run and saved in one place, with the card of its program.

The command line, `nram.find_program` and `nram learn` call it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from nram.display import counted
from nram.errors import NramError, UsageError
from nram.extensions import find_module, get_module, get_task, is_task_file, select_modules, task_names
from nram.files import beside, check_destination, locked, read_bounded, remove_leftovers
from nram.limits import wrong_cells
from nram.messages import pasted
from nram.modules import MODULE_NAMES, Module
from nram.programs.card import card
from nram.programs.execute import Result, execute
from nram.programs.files import read_program
from nram.programs.ir import CONSTANTS, Program
from nram.programs.library import load_program, zoo_entries
from nram.programs.sketch import Sketch
from nram.runtime import cpu_cores
from nram.search.callbacks import SILENT, SearchCallbacks
from nram.search.counterexamples import Counterexamples, counterexamples_of
from nram.search.instances import Pool, task_pool
from nram.search.schedule import CHAINS_OF_ONE_STRUCTURE, FOR_LISTS, FOR_OTHER_MODULES, STRUCTURES
from nram.search.state import Outcome, Question, SearchState, load_state, save_state
from nram.search.structure import Structure, embed, sketched
from nram.tasks.base import Instance, Task
from nram.tasks.example_files import Reading, read_examples
from nram.tasks.layout import Layout

if TYPE_CHECKING:
    from nram.search.engine import RunChain

Source = str | os.PathLike[str] | Task | Sequence[Instance]
"""A task (an object, a name or a file), a file of examples, or instances."""

BEST = "{stem}.best{suffix}"
"""The name of the best program so far where another program has the name of `--out`."""
ZOO, NONE = "zoo", "none"  # libraries by name
REPEATS_IN_SKETCH = (1, 2, 3)
"""How often a place for any operations has each module, if the user does not say."""
MOST_TASK_BYTES = 1 << 24  # of a Python file


@dataclass(frozen=True)
class Space:
    """The programs that a search looks at: those of one structure, or small structures first."""

    registers: int | None = None
    repeats: int | None = None
    states: int | None = None
    modules: Sequence[str | Module] | None = None
    """Of a row in their order, by name, by file or as objects; None: the paper's fourteen."""

    @property
    def _module_names(self) -> tuple[str, ...]:
        modules = MODULE_NAMES
        if self.modules is not None:
            modules = tuple(module.name for module in select_modules(map(_load, self.modules)))
            if all(name in CONSTANTS for name in modules):
                raise UsageError(
                    f"the modules {', '.join(modules)} are constants alone, which are always there: add others"
                )
        return modules

    @property
    def structures(self) -> tuple[Structure, ...]:
        """The structures to try. One that is named gets several chains."""
        modules = self._module_names
        if self.registers is self.repeats is self.states is None:
            if self.modules is None:
                return STRUCTURES
            return tuple(replace(structure, modules=modules) for structure in FOR_OTHER_MODULES)
        return (Structure(self.registers or 3, self.repeats or 1, self.states or 1, modules),) * CHAINS_OF_ONE_STRUCTURE

    def structures_of(self, sketch: Sketch) -> tuple[Structure, ...]:
        """The structures of a sketch. Where any operations may stand, a row may use each module several times."""
        if self.registers is not None or self.states is not None:
            raise UsageError(
                "the sketch says how many registers and states there are: leave --registers and --states out"
            )
        modules = self._module_names
        places = any(row.places for row in sketch.rows)
        if self.repeats is None and places and not sketch.is_open:
            return tuple(sketched(sketch, repeats, modules) for repeats in REPEATS_IN_SKETCH)
        return (sketched(sketch, self.repeats or 1, modules),) * CHAINS_OF_ONE_STRUCTURE

    @property
    def words(self) -> list[str]:
        """The options of `nram search` that mean this."""
        numbers = {"registers": self.registers, "repeats": self.repeats, "states": self.states}
        words = [word for name, value in numbers.items() if value is not None for word in (f"--{name}", str(value))]
        return words if self.modules is None else [*words, "--modules", ",".join(map(_name_of, self.modules))]


def _load(module: str | Module) -> str:
    """The name of this module, after its file is loaded if the user names one."""
    return get_module(_name_of(module)).name


def _name_of(module: str | Module) -> str:
    """The name that finds this module again: a program names its modules and does not hold them."""
    if not isinstance(module, Module):
        return module
    if find_module(module.name) is not module:
        raise UsageError(
            f"the module {module.name!r} is not the one known by this name, and a program names its modules: make it "
            "known first, under a name of its own, and give what nram.register_module(module) returns"
        )
    return module.name


@dataclass(frozen=True)
class Library:
    """Known programs, at which some chains start if they do not solve the problem already."""

    name: str
    """As the user named it: the searched programs of the zoo, none, or programs with commas between them."""
    programs: tuple[Program, ...]

    @classmethod
    def named(cls, name: str) -> Library:
        if name == ZOO:  # those that were trained do the same in more operations
            return cls(ZOO, tuple(entry.program for entry in zoo_entries() if entry.origin == "searched"))
        if name == NONE:
            return cls(NONE, ())
        return cls(name, tuple(load_program(one.strip()) for one in name.split(",")))

    @property
    def words(self) -> list[str]:
        """The options of `nram search` that mean this."""
        return [] if self.name == ZOO else ["--library", pasted(self.name)]

    @property
    def digest(self) -> str:
        """What a search depends on."""
        if self.name in (ZOO, NONE):
            return self.name
        return hashlib.sha256("".join(one.fingerprint for one in self.programs).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        if not self.programs:
            return "none: all chains started at random tables, or at what chains before them had left"
        what = f"{counted(len(self.programs), 'searched program')} of the zoo" if self.name == ZOO else self.name
        return f"{what}; some chains started at those that do not solve the problem"


@dataclass(frozen=True)
class Knowledge:
    """What went into a search by a sketch, for the card."""

    digest: str
    holes: int
    given: int
    """Genes that are written."""
    genes: int
    """Genes of a table of this structure."""
    log10_fillings: float
    """The decimal logarithm of how many ways there are to fill the holes."""
    text: str
    """The sketch on one line."""

    def __str__(self) -> str:
        return (
            f"{self.given} of {self.genes} genes given, {counted(self.holes, 'hole')} with 10^{self.log10_fillings:g} "
            f"fillings, digest {self.digest}: {self.text}"
        )


def lock_of(out: Path) -> Path:
    """The lock that a search for the program `out` holds."""
    return beside(out, ".{stem}{suffix}.lock")


@dataclass(frozen=True)
class SearchJob:
    """A search that is ready to run."""

    name: str
    """Of the program."""
    source: str
    """The task or file as the user named it."""
    pool: Pool
    counterexamples: Counterexamples
    """Asked of every program that fits."""
    structures: tuple[Structure, ...]
    seed: int = 0
    task: Task | None = None
    digest: str | None = None
    """Of the file with examples or with the task, if it is one: a search does not go on with other examples."""
    start: Program | None = None
    """The program to be repaired."""
    sketch: Sketch | None = None
    """The program with holes to be filled."""
    layout: Layout | None = None
    """Where the columns of the file lie in memory, if they have names."""
    library: Library = Library(NONE, ())
    """Programs at which some chains start."""
    words: Sequence[str] = ()
    """Of the command that asks for this search, for the card."""
    saved: Path | None = None
    """Where its state is kept between rounds; None: nowhere."""
    resumed: bool = False
    """It goes on from a saved state."""

    @classmethod
    def open(
        cls,
        source: Source,
        space: Space,
        *,
        seed: int = 0,
        start: Program | None = None,
        sketch: Sketch | None = None,
        library: str = ZOO,
        words: Sequence[str] = (),
        reading: Reading | None = None,
    ) -> SearchJob:
        """The search for a program that solves this task or fits these examples."""
        known = Library.named(library)
        given = os.fspath(source) if isinstance(source, os.PathLike) else source
        named = given if isinstance(given, str) else ""
        task = digest = layout = None
        reading = reading or Reading()
        if isinstance(given, Task):
            task = given
        elif named and (named in task_names() or is_task_file(named) or not Path(named).is_file()):
            task = get_task(named)
        if reading.words and (task is not None or not named):
            raise UsageError(f"{reading.words[0]} is for a file of examples: leave it out")
        if task is not None:
            pool = task_pool(task, seed)
        elif named:
            file = read_examples(Path(named), reading)
            pool, digest = Pool(tuple(example.instance for example in file.examples)), file.digest[:16]
            layout = file.layout
        else:
            pool = Pool(tuple(cast(Sequence[Instance], given)))
        if is_task_file(named):
            digest = hashlib.sha256(read_bounded(Path(named), MOST_TASK_BYTES, "task")).hexdigest()[:16]
        if (start is not None or sketch is not None) and library != ZOO:
            raise UsageError("a search from a program or a sketch starts nowhere else: leave --library out")
        structures = space.structures
        if layout is not None and space == Space():
            structures = FOR_LISTS
        if sketch is not None:
            if start is not None:
                raise UsageError("a search starts from a program or from a sketch: leave one of them out")
            structures = space.structures_of(sketch)
        if start is not None:
            structures = (embed(start)[0],) * CHAINS_OF_ONE_STRUCTURE
        name = task.name if task is not None else Path(named).stem or "found"
        return cls(
            name=name,
            source=" ".join([named or name, *reading.words]),
            pool=pool,
            counterexamples=counterexamples_of(task, seed),
            structures=structures,
            seed=seed,
            task=task,
            digest=digest,
            start=start,
            sketch=sketch,
            layout=layout,
            library=known,
            words=[
                *("search", pasted(named or name), "--seed", str(seed)),
                *(*space.words, *known.words, *reading.words, *words),
            ],
        )

    @contextlib.contextmanager
    def saved_beside(self, out: Path, resume: bool) -> Iterator[SearchJob]:
        """The same job, whose state is kept beside the program `out`. With `resume`, a saved search is continued.

        The lock is held until the end, so that no other process searches for the same file.
        """
        check_destination(out)
        saved = beside(out, "{stem}{suffix}.search")
        check_destination(saved)
        busy = f"another process is searching for {out}: wait for it, stop it, or choose another --out"
        with locked(lock_of(out), busy):
            if saved.exists() and not resume:
                raise UsageError(f"{saved} holds a search already: go on with it by --resume, or choose another --out")
            remove_leftovers(beside(out, "{stem}{suffix}"))
            remove_leftovers(saved)
            yield replace(self, saved=saved, resumed=saved.exists())

    def run(
        self,
        budget: float,
        *,
        workers: int | None = None,
        candidates: int | None = None,
        callbacks: SearchCallbacks = SILENT,
        stopping: Callable[[], bool] = lambda: False,
        done: Callable[[SearchState], bool] = lambda state: bool(state.found),
        take_any: bool = False,
        run_chain: RunChain | None = None,
    ) -> Outcome:
        """Search for at most `budget` seconds, from the saved state if there is one. Programs have their card.

        `done` says when the programs found are enough: by default the first is. With `take_any`, the search ends with
        the first program that any chain finds: the same seed may give another one. `run_chain` runs a chain somewhere;
        by default here. `workers` is how many run at once.
        The saved state stays until the caller has saved the program and calls `remove_state`. If the state cannot be
        saved, the search goes on: it may find a program all the same.
        """
        # Not at the top: it imports Numba, which takes a second. A refusal should come at once.
        from nram.search.engine import Search, run_here

        fingerprint = None if self.start is None else self.start.fingerprint
        sketch = None if self.sketch is None else self.sketch.digest
        library = self.library.digest
        question = Question(self.source, self.seed, self.structures, fingerprint, self.digest, sketch, library)
        saved = self.saved
        failed = False

        def save(state: SearchState) -> None:
            nonlocal failed
            if saved is None:
                return
            try:
                save_state(saved, question, state)
                failed = False
            except NramError as error:
                if not failed:
                    callbacks.note(f"{error}; the search goes on without saving")
                failed = True

        search = Search(
            self.pool,
            self.counterexamples,
            seed=self.seed,
            structures=self.structures,
            start=None if self.start is None else embed(self.start),
            library=self.library.programs,
            workers=workers or cpu_cores(),
            seconds=budget,
            most_candidates=candidates,
            state=load_state(saved, question) if saved is not None and saved.exists() else SearchState(),
            done=done,
            take_any=take_any,
            run_chain=run_chain or run_here,
        )
        outcome = search.run(callbacks, save, stopping)
        if outcome.program is None and outcome.best is not None:
            save(outcome.resumable)  # not the last state: a round that was cut short is searched again
        program, best = (self._with_card(one, outcome, take_any) for one in (outcome.program, outcome.best))
        return replace(outcome, program=program, best=best)

    def remove_state(self, outcome: Outcome, out: Path) -> None:
        """Remove the saved state, and an earlier best beside `out`: the program that was found is saved."""
        best = beside(out, BEST)
        for path in (self.saved, best if self._is_earlier_best(best, outcome) else None):
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink()

    def place_of(self, outcome: Outcome, out: Path) -> Path:
        """Where the program of this outcome is saved: `out`, but a mere best replaces only an earlier best."""
        replaces = outcome.program is not None or not out.is_file() or self._is_earlier_best(out, outcome)
        return out if replaces else beside(out, BEST)

    def _is_earlier_best(self, path: Path, outcome: Outcome) -> bool:
        """Whether this search was resumed and has left the program in this file: it has the same name, and is wrong."""
        if not self.resumed:
            return False
        try:
            there = read_program(path)
        except NramError:
            return False
        best = outcome.best
        same = best and (there.name, there.task, there.origin) == (best.name, best.task, best.origin)
        return bool(same and self.failures(there, outcome.state))

    def failures(self, program: Program, state: SearchState) -> list[tuple[Instance, Result]]:
        """The instances, counterexamples included, that a program gets wrong or does not halt on, with its results."""
        instances = self.pool.joined(state.counterexamples).instances
        results = [(instance, execute(program, instance.input, instance.steps)) for instance in instances]
        return [(one, result) for one, result in results if not result.halted or wrong_cells(result.memory, one)]

    def near(self, outcome: Outcome) -> list[Program]:
        """The programs of each structure that come nearest to the pool without fitting it."""
        from nram.search.shortening import simplified

        pool = self.pool.joined(outcome.state.counterexamples)
        return [simplified(one.structure, one.genes, pool) for one in outcome.state.near]

    def knowledge(self, outcome: Outcome) -> Knowledge | None:
        """What the sketch gave to the search; None: there was no sketch."""
        template = None if outcome.structure is None else outcome.structure.template
        if self.sketch is None or template is None:
            return None
        return Knowledge(
            self.sketch.digest, self.sketch.holes, *template.given, round(template.fillings, 1), self.sketch.in_short()
        )

    def _with_card(self, program: Program | None, outcome: Outcome, take_any: bool) -> Program | None:
        details = [("structure", str(outcome.structure)), ("candidates", str(outcome.state.candidates))]
        if take_any:
            details.append(("reproducible", "no: the search took the first program that any of its chains found"))
        if self.start is None and self.sketch is None:
            details.insert(0, ("library", str(self.library)))
        given = self.knowledge(outcome)
        if given is not None:
            details.insert(0, ("sketch", str(given)))
        return program and replace(
            program,
            name=self.name,
            task=None if self.task is None else self.task.name,
            origin="searched" if self.start is None else "repaired",
            limit=None if self.task is None else self.task.step_limit,
            made=card(self.words, self.seed, details),
            layout=self.layout,
        )
