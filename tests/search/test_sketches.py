"""Sketches in the search: what is written stays, the holes are filled, and everything else is as in any search."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from nram import find_program
from nram.errors import NramError, UsageError
from nram.extensions import get_task
from nram.limits import wrong_cells
from nram.programs.files import read_program
from nram.programs.interpret import interpret
from nram.programs.ir import Program
from nram.programs.sketch import HOLE
from nram.programs.sketch_text import sketch_from_text
from nram.search import shortening
from nram.search.chains import anneal, blocks_of, random_table, table_costs
from nram.search.counterexamples import find_counterexamples
from nram.search.engine import Search
from nram.search.instances import Pool, task_pool
from nram.search.job import SearchJob, Space
from nram.search.kernel import NOT_HALTING, Annealing
from nram.search.shortening import simplified
from nram.search.state import Outcome, Question, SearchState, load_state, save_state
from nram.search.structure import Structure, sketched
from nram.tasks.base import Instance

ACCESS = get_task("access")


@pytest.fixture(autouse=True)
def _little_shortening(monkeypatch):
    """It takes most of the time, and is the same with a sketch and without."""
    monkeypatch.setattr(shortening, "CHAINS", 1)


def _structure(body: str, repeats: int = 1, registers: str = "r1 r2") -> Structure:
    return sketched(sketch_from_text(f"nram sketch 1\nregisters: {registers}\n\n{body}"), repeats)


# Every kind of hole is in one of them.
VALUES = _structure(
    "when r1 = 0:\n a = READ(?)\n b = INC(a)\n r1, r2 := b, ?\nelse:\n a = READ(?)\n WRITE(0, ?)\n halt\n"
)
MODULES = _structure(
    "when r1 = 0:\n a = ?(0)\n b = ?(a, ?)\n r1 := b\nelse when r2 ?:\n c = ?\n WRITE(0, c)\n halt ?\nelse:\n ?\n"
)
CONDITIONS = _structure(
    "when ?:\n a = READ(0)\n ?\n r1, r2 := ?, a\n"
    "else when r2 > 0, ?:\n a = READ(r1)\n ?\n WRITE(0, a)\n halt\nelse:\n ?\n",
    2,
)
STATES = _structure(
    "state 0:\nwhen r1 ?:\n a = READ(?)\n b = ONE()\n r1 := ?\n next ?\nelse:\n ?\n\n"
    "state 1:\nalways:\n ?\n WRITE(?, r1)\n halt ?\n"
)
EMPTY = _structure("when r1 = 0:\n ?\nelse when r1 > 0:\n r1 := ?\nelse when ?:\n a = READ(?)\n r2 := a\nelse:\n ?\n")
ALL = {"values": VALUES, "modules": MODULES, "conditions": CONDITIONS, "states": STATES, "empty": EMPTY}


def _any_pool(rng: Random, count: int) -> Pool:
    """Instances of no task: any memory, any cells, any wishes."""
    instances = []
    for _ in range(count):
        size = rng.randint(3, 9)
        memory, wish = ([rng.randrange(size) for _ in range(size)] for _ in range(2))
        cells = rng.sample(range(size), rng.randint(1, size))
        instances.append(Instance(memory, wish, cells, cells, rng.choice([1, 2, 5, 20])))
    return Pool(tuple(instances))


def _check_costs(structure: Structure, genes: np.ndarray, pool: Pool) -> None:
    """The kernel scores the table as the interpreter scores its program."""
    template = structure.template
    assert template is not None and template.holds(genes)
    program = structure.program(genes)
    costs = table_costs(structure, genes, blocks_of(pool), len(pool))
    for cost, one in zip(costs, pool.instances, strict=True):
        ending = interpret(program, one.input, one.steps)
        expected = len(wrong_cells(ending.memory, one)) / len(one.cells) + NOT_HALTING * (not ending.halted)
        assert cost == pytest.approx(expected), str(program)


def _keeps(structure: Structure, program: Program) -> None:
    """The program has the rows that are written, in their order, with all that is written in them."""
    assert structure.template is not None
    sketch = structure.template.sketch
    assert program.registers == sketch.registers
    for state, rows in enumerate(sketch.states):
        left = list(program.states[state])
        for row in (row for row in rows if not row.anything):
            found = next(i for i, other in enumerate(left) if _fills(other, row))
            left = left[found + 1 :]


def _fills(row, written) -> bool:
    def alike(value, other) -> bool:
        return other == HOLE or value == other

    if not all(
        alike(value, other) or (other is None and written.any_when)
        for value, other in zip(row.when, written.when, strict=True)
    ):
        return False
    fixed = all(map(alike, (row.halt, row.next_state), (written.halt, written.next_state)))
    modules = [operation.module for operation in row.operations]
    wanted = [operation.module for operation in written.operations]
    if not written.places and None not in wanted:
        fixed &= modules == wanted and all(map(alike, row.registers, written.registers))
        for operation, other in zip(row.operations, written.operations, strict=True):
            fixed &= all(map(alike, operation.arguments, other.arguments))
    rest = iter(modules)  # the operations that are written are there, in their order
    return fixed and all(name in rest for name in wanted if name is not None)


@pytest.mark.parametrize("name", ALL)
def test_costs_are_those_of_the_interpreter_and_chains_change_holes_alone(name):
    structure, rng = ALL[name], Random(1)
    template = structure.template
    assert template is not None
    pool = _any_pool(rng, 20)
    for seed in range(6):
        genes = random_table(structure, seed)
        _check_costs(structure, genes, pool)
        before = genes.copy()
        end = anneal(structure, genes, blocks_of(pool), len(pool), Annealing(seed, 4000, 0.3, 0.1, 0.02, 16))
        assert end.candidates > 0
        _check_costs(structure, genes, pool)
        assert np.array_equal(before[~template.free], genes[~template.free])
        program = simplified(structure, genes, pool)
        _keeps(structure, program)
        for one in pool.instances:  # what holes are made shorter by does not matter on the pool
            endings = [interpret(other, one.input, one.steps) for other in (program, structure.program(genes))]
            assert [(e.memory, e.halted, e.steps) for e in endings[:1]] == [
                (e.memory, e.halted, e.steps) for e in endings[1:]
            ]


@pytest.mark.parametrize("name", ALL)
def test_every_hole_is_tried(name):
    """With nothing to lose, a hot chain changes each gene that a `?` stands for."""
    structure = ALL[name]
    template = structure.template
    assert template is not None
    pool = _any_pool(Random(3), 8)
    first = random_table(structure, 0)
    changed = np.zeros(first.shape, bool)
    for seed in range(25):
        genes = random_table(structure, seed)
        changed |= genes != first
        start = genes.copy()
        anneal(structure, genes, blocks_of(pool), len(pool), Annealing(seed, 3000, 50.0, 50.0, 0.0, 8))
        changed |= genes != start
    for number, slots in enumerate(template.slots):
        for k, slot in enumerate(slots):
            if slot.written is not None:
                assert np.array_equal(changed[number, 3 * k : 3 * k + 3], template.free[number, 3 * k : 3 * k + 3])
        updates = slice(3 * template.count, template.width - (structure.states == 1))
        assert np.array_equal(changed[number, updates], template.free[number, updates])
    assert np.array_equal(changed[len(template.slots) :], template.free[len(template.slots) :])


def test_a_sketch_that_leaves_everything_open_is_searched_like_its_structure():
    plain, hollow = Structure(2), _structure("always:\n ?\n")
    pool = task_pool(ACCESS, 0)
    for seed in range(3):
        ends = []
        for structure in (plain, hollow):
            genes = random_table(structure, seed)
            first = genes.copy()
            end = anneal(structure, genes, blocks_of(pool), len(pool), Annealing(seed, 30_000, 0.3, 0.1, 0.03, 32))
            ends.append((end, first.tolist(), genes.tolist()))
        assert ends[0] == ends[1]
    programs = [_search(structure, seed=4).run() for structure in (plain, hollow)]
    assert programs[0].program == programs[1].program is not None
    assert programs[0].state.candidates == programs[1].state.candidates


def _search(structure: Structure, pool: Pool | None = None, judge=lambda program: [], **settings: Any) -> Search:
    settings = {"seconds": 120, **settings}
    return Search(pool or task_pool(ACCESS, 0), judge, structures=(structure,) * 4, **settings)


def _result(outcome: Outcome) -> tuple:
    return outcome.program, outcome.best, outcome.state.candidates, outcome.state.chains, outcome.structure


def test_a_sketch_with_few_holes_is_filled_at_once():
    outcome = _search(VALUES, judge=lambda program: find_counterexamples(program, ACCESS, 1)).run()
    assert outcome.program is not None and outcome.state.candidates < 5000
    _keeps(VALUES, outcome.program)
    assert [op.module for op in outcome.program.states[0][1].operations] == ["READ", "WRITE"]


@pytest.mark.parametrize("name", ["modules", "conditions"])
def test_the_number_of_workers_does_not_change_the_result(name):
    found = [_search(ALL[name], seed=7, workers=workers, most_candidates=100_000).run() for workers in (1, 3)]
    assert _result(found[0]) == _result(found[1])
    best = found[0].best
    assert best is not None
    _keeps(ALL[name], best)


def test_a_search_that_goes_on_from_its_file_ends_like_one_left_alone(tmp_path: Path):
    structure, task = CONDITIONS, get_task("merge")
    settings: dict[str, Any] = {"seed": 3, "most_candidates": 1_000_000}
    states: list[SearchState] = []
    whole = _search(structure, task_pool(task, 3), **settings).run(on_round=states.append)
    question = Question("merge", 3, (structure,), sketch="one")
    saved = next(state for state in states if state.near)
    save_state(tmp_path / "saved", question, saved)
    again = _search(structure, task_pool(task, 3), **settings, state=load_state(tmp_path / "saved", question)).run()
    assert _result(again) == _result(whole)
    with pytest.raises(UsageError, match="another sketch"):
        load_state(tmp_path / "saved", replace(question, sketch="other"))


@pytest.mark.parametrize("place", ["written", "module", "condition"])
def test_a_saved_table_of_another_sketch_is_refused(tmp_path: Path, place):
    structure = MODULES
    genes = random_table(structure, 0)
    assert structure.holds(genes)
    row, column, value = {"written": (1, -2, 1), "module": (0, 2, 0), "condition": (-1, 1, 3)}[place]
    if place == "written":
        row, column, value = 0, -2, 1  # the first row does not halt
    genes[row, column] = value
    question = Question("access", 0, (structure,))
    save_state(tmp_path / "saved", question, SearchState(best_cost=1.0, best_genes=genes, best_structure=structure))
    with pytest.raises(NramError, match="does not fit R2 x1, a sketch"):
        load_state(tmp_path / "saved", question)


def test_counterexamples_do_not_undo_what_is_written():
    """The program is found with operations that it does not need, because they are written."""
    structure = _structure(
        "when r1 = 0:\n a = READ(?)\n b = INC(?)\n c = DEC(r2)\n r1 := ?\n"
        "else:\n a = READ(?)\n d = MAX(0, a)\n WRITE(0, ?)\n ?\n halt\n"
    )
    tiny = Pool(tuple(ACCESS.sample(1, 3, seed=0)))
    asked = []

    def judge(program):
        asked.append(program)
        return find_counterexamples(program, ACCESS, len(asked))

    outcome = _search(structure, tiny, judge).run()
    assert outcome.program is not None and len(asked) > 1 and outcome.state.counterexamples
    first, second = outcome.program.states[0]
    assert [op.module for op in first.operations] == ["READ", "INC", "DEC"]
    assert [op.module for op in second.operations] == ["READ", "MAX", "WRITE"]  # nothing useless at the '?'
    assert str(first.operations[2].arguments) == "(Register(index=1),)"


def test_a_condition_that_tells_nothing_apart_is_left_out():
    structure = _structure(
        "when r1 = 0, ?:\n a = READ(0)\n b = INC(a)\n r1 := b\nelse:\n a = READ(?)\n WRITE(0, a)\n halt\n"
    )
    outcome = _search(structure).run()
    assert outcome.program is not None
    assert outcome.program.states[0][0].when == (True, None)


def test_what_was_given_is_counted():
    assert VALUES.template is not None
    # Conditions 2 + 2; first row 2 modules, 2 arguments, 2 registers, halt; second row 2, 3, 2, 1.
    assert VALUES.template.given == (15, 19)
    # Values at the holes: 5 and 7 in the first row, 5 and 6 in the second.
    assert VALUES.template.fillings == pytest.approx(np.log10(5 * 7 * 5 * 6))


@pytest.mark.parametrize(
    ("body", "registers", "words"),
    [
        ("always:\n ?\n", "a b c d e f g", "has 128 rows"),
        ("always:\n a := ?\n", "a b c d e f g h i j k", "a sketch of 11 registers cannot be searched"),
        ("when a = 0, ?:\n halt\nelse:\n halt\n", "a", "leave nothing to choose"),
        ("always:\n halt\nelse:\n ?\n", "a", "leave nothing to choose"),
    ],
)
def test_sketches_beyond_what_the_kernel_can_hold_are_refused(body, registers, words):
    with pytest.raises(UsageError, match=words):
        _structure(body, registers=registers)


def test_a_structure_of_modules_that_do_not_exist_is_refused():
    with pytest.raises(UsageError, match="'NONE' is not a module"):
        Structure(1, 1, 1, ("NONE",), "nram sketch 1\nregisters: r1\n\nalways:\n ?\n")


def test_modules_for_holes_are_those_of_the_search():
    sketch = sketch_from_text("nram sketch 1\nregisters: r1\n\nwhen r1 = 0:\n a = ?(r1)\n r1 := a\nelse:\n ?\n")
    template = sketched(sketch, 1, ("READ", "ADD", "WRITE")).template
    assert template is not None and [m.name for m in template.slots[0][0].modules] == ["READ"]
    with pytest.raises(UsageError, match="none of the modules has an output and takes 1 arguments"):
        _ = sketched(sketch, 1, ("ADD", "WRITE"))


# ---- as users meet it

SKETCH = """nram sketch 1
registers: here

when ?:
    a = READ(0)
    b = ?(a, 1)
    here := b
else:
    a = READ(?)
    WRITE(0, ?)
    halt
"""


def test_the_command_line_fills_a_sketch_and_the_card_says_so(tmp_path: Path, capsys):
    from nram.cli import main

    (tmp_path / "sketch.nram").write_text(SKETCH)
    out = tmp_path / "access.nram"
    words = ["search", "access", "--from", str(tmp_path / "sketch.nram"), "--out", str(out)]
    assert main([*words, "--verify-budget", "0"]) == 0
    said = capsys.readouterr().out
    assert "Sketch: 12 of 16 genes were given" in said
    program = read_program(out)
    made = dict(program.made)
    assert program.origin == "searched" and program.registers == ("here",) and "sketch.nram" in made["command"]
    digest = sketch_from_text(SKETCH).digest
    assert made["sketch"].startswith(
        f"12 of 16 genes given, 4 holes with 10^2.6 fillings, digest {digest}: when ?: o1 ="
    )
    useless = SKETCH.replace("WRITE(0, ?)", "b = DEC(here)\n    WRITE(0, ?)")
    (tmp_path / "useless.nram").write_text(useless)
    more = ["search", "access", "--from", str(tmp_path / "useless.nram"), "--verify-budget", "0", "--out", str(out)]
    assert main(more) == 0
    assert f"simplify {out} makes it shorter: 1 register, 1 state, 2 rows, 4 operations" in capsys.readouterr().out
    assert main([*words, "--verify-budget", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sketch"] == {
        "digest": digest,
        "holes": 4,
        "given": 12,
        "genes": 16,
        "log10_fillings": 2.6,
        "text": "when ?: o1 = READ(0); o2 = ?(o1, 1); here := o2 | else: o1 = READ(?); WRITE(0, ?); halt",
    }


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        (SKETCH, ["--registers", "2"], "leave --registers and --states out"),
        (SKETCH.replace("?(a, 1)", "ADD(a, 1)").replace("?", "0"), [], "it is a program"),
        (SKETCH.replace("sketch 1", "program 1"), [], "its first line must be 'nram sketch 1'"),
    ],
)
def test_what_cannot_be_a_sketch_is_refused_before_the_search(tmp_path: Path, capsys, text, more, words):
    from nram.cli import main

    (tmp_path / "sketch.nram").write_text(text.replace("when 0:", "when here = 0:"))
    assert main(["search", "access", "--from", str(tmp_path / "sketch.nram"), *more]) == 2
    assert words in capsys.readouterr().err


def test_find_program_takes_a_sketch_by_its_text():
    outcome = find_program("access", sketch=SKETCH, budget=60)
    assert outcome.program is not None and "sketch" in dict(outcome.program.made)
    assert outcome.program.run([2, 5, 6, 7, 0], memory_size=9).memory[0] == 7
    with pytest.raises(UsageError, match="from a program or from a sketch"):
        find_program("access", sketch=SKETCH, start="access")


def test_places_for_any_operations_are_tried_with_more_and_more_of_them():
    open_, places = (
        sketch_from_text(f"nram sketch 1\nregisters: r1\n\n{body}")
        for body in ("always:\n ?\n", "when r1 = 0:\n ?\nelse:\n halt\n")
    )
    repeats = [one.repeats for one in SearchJob.open("access", Space(), sketch=places).structures]
    assert repeats == [1, 2, 3]
    assert [one.repeats for one in Space(repeats=2).structures_of(places)] == [2] * 4
    assert [one.repeats for one in Space().structures_of(open_)] == [1] * 4
