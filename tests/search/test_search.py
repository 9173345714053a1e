"""The search as a whole: the same result from the same seed, saved and resumed, and counterexamples that count."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nram import find_program
from nram.errors import NramError, UsageError
from nram.extensions import get_task
from nram.programs.files import read_program, save_program, to_json_text
from nram.programs.interpret import interpret
from nram.programs.library import load_program
from nram.search import engine
from nram.search.callbacks import Best, Report, SearchCallbacks
from nram.search.counterexamples import find_counterexamples
from nram.search.display import SearchProgress
from nram.search.engine import Search
from nram.search.instances import Pool, task_pool
from nram.search.job import SearchJob, Space
from nram.search.schedule import STRUCTURES, Chain, outdone, round_of_chains, still_promising, strategies_of
from nram.search.state import Question, SearchState, load_state, save_state
from nram.search.structure import Structure
from nram.tasks.base import Instance
from nram.tasks.example_files import read_examples

ACCESS = get_task("access")
SMALL = (Structure(2), Structure(3))


def _search(pool: Pool | None = None, judge=lambda program: [], **settings) -> Search:
    return Search(pool or task_pool(ACCESS, 0), judge, structures=settings.pop("structures", SMALL), **settings)


def test_access_is_found_short_and_right():
    outcome = _search(judge=lambda program: find_counterexamples(program, ACCESS, 1), seconds=120).run()
    program = outcome.program
    assert program is not None and program.origin == "searched" and program.operations <= 8
    for instance in ACCESS.sample(40, 30, seed=4, memory_size=60):
        ending = interpret(program, instance.input, instance.steps)
        assert ending.halted and ending.memory[0] == instance.output[0]


def test_the_progress_line_fits_into_80_columns_and_uses_plain_words(capsys):
    report = Report(
        round=30, candidates=9_999_900_000, chains=500, seconds=9999.0, per_second=9.99e6, counterexamples=99
    )
    SearchProgress("a-name-of-forty-letters-in-a-file-of-mine").report(report)
    line = capsys.readouterr().err
    assert line == "a-name-of-fort: 9999 s, 9999.9M candidates, 9.99M a second, 99 counterexamples\n"
    assert len(line) <= 80
    best = Best(Structure(3), 2, 48, 1.0, Instance([1, 0, 0], [1, 1, 0], [1], [1], 9), [1, 0, 0], load_program("copy"))
    SearchProgress("sum").best(best)
    assert capsys.readouterr().err.startswith("   1.0 s  3 registers: wrong on 2 of 48; on 1 0 0 cell 1 is 0")


def test_who_waits_for_machine_code_is_told_before_the_search_begins(monkeypatch):
    monkeypatch.setattr(engine, "SILENT_SECONDS", 0.0)
    told: list[str] = []

    class Listening(SearchCallbacks):
        def note(self, text):
            told.append(text)

        def report(self, report):
            told.append("report")

    structure = Structure(2, modules=("READ", "INC", "DEC", "WRITE"))  # of no other test: its code is not there yet
    _search(structures=(structure,), most_candidates=1).run(Listening())
    assert told[0] == "compiling the search (once)" and told.count("compiling the search (once)") == 1


def test_the_number_of_workers_does_not_change_the_result():
    found = [_search(seed=7, workers=workers).run() for workers in (1, 3)]
    assert found[0].program == found[1].program and found[0].structure == found[1].structure
    assert found[0].state.candidates == found[1].state.candidates


def test_what_speaks_against_a_program_joins_the_pool_and_the_search_goes_on():
    tiny = Pool(tuple(ACCESS.sample(1, 3, seed=0)))
    asked = []

    def judge(program):
        asked.append(program)
        return find_counterexamples(program, ACCESS, len(asked))

    outcome = _search(tiny, judge, seconds=120).run()
    assert outcome.program is not None and len(asked) > 1
    assert outcome.state.counterexamples and not find_counterexamples(outcome.program, ACCESS, 99)


def test_a_search_that_goes_on_from_its_file_ends_like_one_left_alone(tmp_path: Path):
    task = get_task("merge")
    settings = {"structures": (Structure(2, 1),), "seed": 3, "most_candidates": 2_000_000}
    states: list[SearchState] = []
    whole = _search(task_pool(task, 3), **settings).run(on_round=states.append)
    question = Question("merge", 3, settings["structures"])
    # Late enough for chains that go on from what others have left.
    saved = next(state for state in states if state.left)
    save_state(tmp_path / "saved", question, saved)
    again = _search(task_pool(task, 3), **settings, state=load_state(tmp_path / "saved", question)).run()
    assert again.state.candidates == whole.state.candidates and again.program == whole.program
    assert (again.best is None) == (whole.best is None) and again.best == whole.best
    with pytest.raises(UsageError, match="another seed"):
        load_state(tmp_path / "saved", Question("merge", 4, settings["structures"]))


def test_a_search_stopped_in_the_middle_of_a_round_goes_on_to_the_same_end():
    task, calls = get_task("merge"), 0

    def stop_soon() -> bool:
        nonlocal calls
        calls += 1
        return calls > 40

    settings = {"structures": (Structure(2, 1),), "seed": 5, "most_candidates": 1_500_000}
    whole = _search(task_pool(task, 5), **settings).run()
    stopped = _search(task_pool(task, 5), **settings).run(stopping=stop_soon)
    assert stopped.stopped and stopped.resumable.round < whole.state.round
    again = _search(task_pool(task, 5), **settings, state=stopped.resumable).run()
    assert (again.state.candidates, again.state.chains, again.best) == (
        whole.state.candidates,
        whole.state.chains,
        whole.best,
    )


BAD_INSTANCES = {
    "a value that is no address": Instance([9, 0, 0, 0], [0, 0, 0, 0], [0], [0], 5),
    "an output cell outside": Instance([1, 0, 0, 0], [0, 0, 0, 0], [4], [4], 5),
    "no output cell": Instance([1, 0, 0, 0], [0, 0, 0, 0], [], [], 5),
    "endless": Instance([1, 0, 0, 0], [0, 0, 0, 0], [0], [0], 2_000_000_000),
}


@pytest.mark.parametrize("case", BAD_INSTANCES)
def test_instances_that_would_lead_the_kernel_astray_are_refused(case):
    with pytest.raises(UsageError, match="instance 1 cannot be searched by"):
        find_program([BAD_INSTANCES[case]])


@pytest.mark.parametrize("shape", [(0, 1, 1), (7, 1, 1), (3, 9, 1), (5, 1, 3)])
def test_structures_beyond_what_the_kernel_can_hold_are_refused(shape):
    with pytest.raises(UsageError, match="can be searched|cannot be searched"):
        Structure(*shape)


def test_a_saved_table_that_is_none_is_refused(tmp_path: Path):
    state = SearchState(best_cost=1.0, best_genes=np.full((4, Structure(2).width), 3000, np.int16))
    question = Question("access", 0, (Structure(2),))
    save_state(tmp_path / "saved", question, replace(state, best_structure=Structure(2)))
    with pytest.raises(NramError, match="does not fit R2 x1"):
        load_state(tmp_path / "saved", question)


def test_out_of_time_the_best_so_far_is_kept():
    merge = get_task("merge")
    outcome = _search(task_pool(merge, 0), structures=(Structure(3, 1),), seconds=1.5).run()
    assert outcome.program is None and outcome.stopped and outcome.best is not None


def _round(number: int, going_on: Collection[Structure] = (), passed_over: Collection[Structure] = ()) -> list[Chain]:
    return round_of_chains(
        number, 0, STRUCTURES, lambda one: strategies_of(number, going_on=one in going_on), passed_over
    )


def test_chains_go_on_from_a_table_as_long_as_this_gains_something():
    one, other, third = STRUCTURES[:3]
    going_on = {chain.structure for chain in _round(4, {one}) if chain.strategy.goes_on}
    assert going_on == {one}
    assert still_promising(2, {}, {one: 5.0}, {one}) == set()  # the chains were too short
    assert still_promising(3, {}, {one: 5.0}, {one}) == {one}
    before, now = {one: 5.0, other: 5.0, third: 5.0}, {one: 4.0, other: 5.0, third: 5.0}
    assert still_promising(4, before, now, {one, other}) == {one, third}  # the third had no chains


def test_every_structure_gets_its_share_and_chains_grow():
    rounds = [_round(number) for number in range(10)]
    assert {chain.structure for chain in rounds[-1]} == set(STRUCTURES)
    assert {chain.structure for chain in rounds[-2]} < set(STRUCTURES)
    longest = [max(chain.budget for chain in chains) for chains in rounds]
    assert longest == sorted(longest) and longest[0] < longest[-1]
    seeds = [chain.seed for chains in rounds for chain in chains]
    assert len(set(seeds)) == len(seeds)


def test_structures_that_come_nearest_get_most_chains_and_none_is_left_out():
    costs = {structure: float(index) for index, structure in enumerate(STRUCTURES)}
    del costs[STRUCTURES[4]]  # nothing is known about it
    passed_over = outdone(costs)
    assert passed_over == {STRUCTURES[3], *STRUCTURES[5:]} and not outdone({STRUCTURES[0]: 1.0})
    early, late = (_round(n, passed_over=passed_over) for n in (2, 3))
    assert early == _round(2)
    of = {structure: [chain.strategy for chain in late if chain.structure == structure] for structure in STRUCTURES[:5]}
    assert [len(of[structure]) for structure in STRUCTURES[:5]] == [5, 5, 5, 1, 5]
    assert of[STRUCTURES[3]] == [strategies_of(3)[0]]


def test_where_answers_are_single_cells_most_chains_start_with_small_instances():
    single = {task: task_pool(get_task(task), 0).has_single_answers for task in ("listk", "walkbst", "copy", "merge")}
    assert single == {"listk": True, "walkbst": True, "copy": False, "merge": False}
    for number in range(12):
        small = [strategy.small_first for strategy in strategies_of(number, single_answers=True)]
        assert sum(small) > len(small) / 2 and len(small) == len(strategies_of(number))


BAD_EXAMPLES = {
    "not json": ("nonsense", "line 1: it cannot be read (it is not JSON"),
    "no object": ("[1, 2]", "is not an object"),
    "unknown key": ('{"input": [1,0,0], "output": [0,0,0], "cell": [1]}', "'cell' is unknown"),
    "unequal": ('{"input": [1,0,0], "output": [1,0]}', "they must be as many"),
    "too large": ('{"input": [1,0,7], "output": [1,0,0]}', "values outside 0..2"),
    "nothing asked": ('{"input": [1,0,0], "output": [1,0,0]}', "no cell counts"),
    "contradiction": (
        '{"input": [1,0,0], "output": [0,0,0]}\n{"input": [1,0,0], "output": [2,0,0]}',
        "different outputs",
    ),
    "empty": ("", "there are no examples"),
}


@pytest.mark.parametrize("case", BAD_EXAMPLES)
def test_examples_that_cannot_be_used_are_refused_with_their_line(case, tmp_path: Path):
    text, words = BAD_EXAMPLES[case]
    file = tmp_path / "examples.jsonl"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        read_examples(file)
    assert words in str(error.value)


def test_a_file_of_examples_becomes_a_program(tmp_path: Path, capsys, monkeypatch):
    from nram.cli import main

    monkeypatch.chdir(tmp_path)
    lines = [
        json.dumps({"input": one.input, "output": one.output, "cells": one.cells})
        for n in range(1, 7)
        for one in ACCESS.sample(n, 12, seed=n, memory_size=n + 4)
    ]
    Path("examples.jsonl").write_text("\n".join(lines))
    status = main(["search", "examples.jsonl", "--registers", "2", "--workers", "1", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert status == 0 and said["found"]
    program = read_program("examples.nram")
    assert (program.origin, program.task) == ("searched", None)
    for one in ACCESS.sample(6, 12, seed=6, memory_size=10):
        assert program.run(one.input).memory[0] == one.output[0]


def test_a_damaged_program_is_repaired(tmp_path: Path, capsys):
    from nram.cli import main

    wrong = "nram program 1\ntask: access\nregisters: r1\n\nwhen r1 = 0:\n a = READ(0)\n r1 := a\notherwise:\n"
    (tmp_path / "wrong.nram").write_text(wrong + " a = READ(r1)\n WRITE(0, a)\n halt\n")
    out = tmp_path / "right.nram"
    words = ["search", "access", "--from", str(tmp_path / "wrong.nram"), "--out", str(out), "--verify-budget", "1"]
    assert main(words) == 0
    assert "RIGHT UNDER EVERY LIMIT" in capsys.readouterr().out
    repaired = read_program(out)
    assert repaired.origin == "repaired" and repaired.verified and repaired.rows == 2


def test_not_found_says_how_close_it_came_and_how_to_go_on(tmp_path: Path, capsys):
    from nram.cli import main

    out = tmp_path / "merge.nram"
    words = ["search", "merge", "--registers", "2", "--candidates", "1000", "--out", str(out)]
    assert main(words) == 1
    said = capsys.readouterr().out
    assert "no program found" in said and "expected" in said and "--resume" in said
    assert read_program(out).task == "merge" and out.with_name("merge.nram.search").exists()
    assert main(words) == 2
    assert "go on with it by --resume" in capsys.readouterr().err
    earlier = out.stat().st_ino
    assert main([*words, "--resume"]) == 1  # an earlier best of the same search is replaced
    assert out.stat().st_ino != earlier and not (tmp_path / "merge.best.nram").exists()


def test_a_best_does_not_replace_a_program_that_was_there(tmp_path: Path, capsys):
    from nram.cli import main

    words = ["search", "merge", "--registers", "2", "--candidates", "1000", "--json", "--out"]
    right = load_program("merge@searched")
    drafts = {"right.json": to_json_text(right), "draft.json": to_json_text(load_program("copy")), "none.json": "text"}
    for name, content in drafts.items():
        out, best = tmp_path / name, tmp_path / name.replace(".json", ".best.json")
        out.write_text(content)
        for resume in ([], ["--resume"]):
            assert main([*words, str(out), *resume]) == 1
            assert json.loads(capsys.readouterr().out)["out"] == str(best)
            assert out.read_text() == content and read_program(best).task == "merge"


def test_a_found_program_takes_the_place_of_an_earlier_best_and_of_nothing_else(tmp_path: Path):
    out, best, state = (tmp_path / name for name in ("a.nram", "a.best.nram", "a.nram.search"))
    job = SearchJob.open("access", Space())
    outcome = job.run(60.0)
    assert outcome.program is not None
    wrong = replace(load_program("copy"), name="access", task="access", origin="searched")
    cases = [
        (wrong, True, False),
        (wrong, False, True),
        (outcome.program, True, True),
        (load_program("copy"), True, True),
    ]
    for program, resumed, kept in cases:
        save_program(program, best)
        state.write_text("")
        replace(job, resumed=resumed, saved=state).remove_state(outcome, out)
        assert (best.exists(), state.exists()) == (kept, False)


@pytest.mark.parametrize("name", ["a" * 250 + ".nram", "a." + "b" * 253])
def test_the_files_of_a_search_have_names_that_are_short_enough(tmp_path: Path, capsys, name):
    from nram.cli import main

    out = tmp_path / name
    words = ["search", "merge", "--registers", "2", "--candidates", "1000", "--out", str(out)]
    assert [main(words), main(words), main([*words, "--resume"])] == [1, 2, 1], capsys.readouterr().err
    out.write_text("kept")
    assert main([*words, "--resume"]) == 1
    assert len({file.name for file in tmp_path.iterdir()}) == 3 and out.read_text() == "kept"


def test_two_names_of_one_file_share_its_state_and_its_lock(tmp_path: Path, capsys):
    from nram.cli import main

    real, link = tmp_path / "real.nram", tmp_path / "link.nram"
    link.symlink_to("real.nram")
    words = ["search", "merge", "--registers", "2", "--candidates", "1000", "--out"]
    with SearchJob.open("merge", Space()).saved_beside(real, resume=False):
        assert main([*words, str(link)]) == 2
    assert f"another process is searching for {link}" in capsys.readouterr().err
    assert main([*words, str(link)]) == 1
    assert main([*words, str(real)]) == 2
    assert f"{real}.search holds a search already" in capsys.readouterr().err
    assert link.is_symlink() and read_program(real).task == "merge"
