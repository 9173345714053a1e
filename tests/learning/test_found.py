"""What FOUND means: what the examples leave open, several programs that fit, questions, and steps against size."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from support.program_cases import IDLING_MERGE

from nram import learn, load_program
from nram.cli import main
from nram.errors import UsageError
from nram.extensions import get_task, task_names
from nram.learning.asking import expected_from, question_in_words, reply_from
from nram.learning.callbacks import LearningCallbacks
from nram.learning.candidate import Candidate
from nram.learning.columns import LayoutColumns
from nram.learning.display import LearningProgress
from nram.learning.job import LearningJob
from nram.learning.judgement import judgement_of
from nram.learning.kept import Answer, Comparison, Kept, Question, merged, nearly_fitting, question_about
from nram.learning.parts import split
from nram.learning.probes import make_probes
from nram.learning.report import to_json, to_text
from nram.learning.review import Facts, facts_of, review
from nram.limits import StepLimit
from nram.programs.files import program_from, read_program
from nram.programs.files import to_json as program_to_json
from nram.programs.growth import growth_of
from nram.programs.ir import Program
from nram.search.callbacks import Report as SearchReport
from nram.tasks.base import Instance
from nram.tasks.example_files import Example, read_examples
from nram.tasks.layout import Layout

TASKS = [name for name in task_names() if "-" not in name]
RIGHT_PROGRAMS = Path(__file__).parents[1] / "programs" / "right"


def _program(rows: str, registers: str = "r1") -> Program:
    return program_from(f"nram program 1\nregisters: {registers}\n\n{rows}")


# The first number and the one in cell 0, added: into cell 1. Both fit as long as no value is above 3.
RIGHT = _program("always:\n a = READ(2)\n b = READ(0)\n c = ADD(a, b)\n WRITE(1, c)\n halt\n")
WRONG = _program(
    "always:\n a = READ(2)\n b = READ(0)\n l = INC(2)\n x = MIN(a, l)\n y = MIN(b, l)\n c = ADD(x, y)\n"
    " WRITE(1, c)\n halt\n"
)
# The same with as many steps as the square of the cells.
SLOW = _program(
    "when r3 > 0:\n a = READ(2)\n b = READ(0)\n c = ADD(a, b)\n WRITE(1, c)\n halt\n"
    "otherwise:\n o1 = INC(r2)\n o2 = EQUALITY-TEST(o1, 0)\n o3 = ADD(r1, o2)\n o4 = EQUALITY-TEST(o3, 0)\n"
    " o5 = MIN(o4, o2)\n r1, r2, r3 := o3, o1, o5\n",
    "r1 r2 r3",
)


def _rows(top: int = 3, sizes=range(1, 9), values: Callable[[Random, int], list[int]] | None = None, room=(3, 8)):
    rng = Random(1)
    for n in sizes:
        for _ in range(6):
            zeros = rng.randrange(*room)
            most = min(top, n + zeros)
            numbers = values(rng, n) if values else [rng.randint(1, most) for _ in range(n)]
            x, cells = rng.randint(1, most), n + 2 + zeros
            start = [x, 0, *numbers, *[0] * zeros]
            yield start, [x, (numbers[0] + x) % cells, *start[2:]]


def _file(folder: Path, rows) -> Path:
    path = folder / "added.jsonl"
    lines = [json.dumps({"input": start, "output": end, "cells": [1]}) for start, end in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def _examples(rows) -> list[Example]:
    return [
        Example(line, Instance(start, end, [1], [1], 100), frozenset([1]), False)
        for line, (start, end) in enumerate(rows, 1)
    ]


# ---- what the examples leave open

OPEN = {
    "low values": ({"top": 3}, "no value is above 3, though the memories have up to 17 cells"),
    "one memory size": ({"top": 99, "sizes": [5], "room": (4, 5)}, "all memories have 11 cells"),
    "gaps": ({"top": 99, "sizes": [1, 2, 3, 6, 7]}, "never 4, 5 long"),
    "sorted": ({"values": lambda rng, n: sorted(rng.randint(1, n) for _ in range(n))}, "in ascending order"),
    "falling": ({"values": lambda rng, n: sorted((rng.randint(1, n) for _ in range(n)), reverse=True)}, "descending"),
    "distinct": ({"values": lambda rng, n: rng.sample(range(1, n + 1), n)}, "never equal"),
}


@pytest.mark.parametrize("case", OPEN)
def test_the_review_says_what_examples_leave_open(case):
    options, said = OPEN[case]
    told = review(facts_of(_examples(_rows(**options))))
    assert any(said in line for line in told), told


@pytest.mark.parametrize("memories", [(6,), (4, 5, 6, 7)])
def test_values_below_what_small_memories_allow_are_noticed(memories):
    rng = Random(4)
    rows = []
    for number in range(30):
        cells = memories[number % len(memories)]
        start = [rng.randint(1, 3), 0, *(rng.randint(1, 3) for _ in range(cells - 3)), 0]
        rows.append((start, [start[0], start[2], *start[2:]]))
    told = review(facts_of(_examples(rows)))
    assert any(f"no value is above 3, though the memories have up to {max(memories)} cells" in one for one in told), (
        told
    )


@pytest.mark.parametrize("seed", range(20))
def test_values_that_fill_their_memories_raise_no_alarm(seed):
    rng = Random(seed)
    rows = []
    for _ in range(40):
        cells = rng.randint(5, 12)
        start = [rng.randint(1, cells - 1), 0, *(rng.randint(1, cells - 1) for _ in range(cells - 4)), 0, 0]
        rows.append((start, [start[0], start[2], *start[2:]]))
    told = review(facts_of(_examples(rows)))
    assert not any("above" in line for line in told), told


NAMED = {
    "low values": (lambda rng: [rng.randint(0, 4) for _ in range(rng.randint(1, 9))], "no value is above 4"),
    "low in one": (lambda rng: [rng.randint(0, 2) for _ in range(rng.randint(1, 9))], "no value in values is above 2"),
    "gaps": (lambda rng: [rng.randint(0, 4) for _ in range(rng.choice([1, 2, 5, 6]))], "values is never 3, 4 long"),
    "order": (lambda rng: sorted(rng.randint(0, 4) for _ in range(rng.randint(1, 6))), "always in ascending order"),
}


@pytest.mark.parametrize("case", NAMED)
def test_the_review_looks_at_columns_and_not_at_the_addresses_of_their_layout(case, tmp_path):
    """The values hold 0, so a cell says where the list ends. That is not a value of the user."""
    values, said = NAMED[case]
    rng = Random(5)
    rows = [{"values": values(rng), "x": rng.randint(0, 4)} for _ in range(60)]
    path = tmp_path / "count.jsonl"
    path.write_text("\n".join(json.dumps({**row, "result": row["values"].count(row["x"])}) for row in rows))
    file = read_examples(path)
    assert "end:values" in str(file.layout)
    facts = facts_of(file.examples, file.layout)
    told = review(facts)
    assert any(said in line for line in told) and not any("above 9" in line for line in told), told
    assert facts.columns is not None and facts.highest["values"] <= 4
    assert any("a value above" in one for one in facts.unlike({"values": [5, 0], "x": 1}, 9))


def test_the_review_names_inputs_and_outputs_that_never_change():
    told = review(facts_of(_examples(([4, 0, *start[2:]], [4, 2, *end[2:]]) for start, end in _rows(top=99))))
    assert any("cell 0 is 4 in every input" in line for line in told)
    assert any("cell 1 is 2 in every output" in line for line in told)
    rows = [([n, 0, *[1] * n, 0, 0], [1, 2, *[1] * n, 0, 0]) for n in range(3, 12)]
    both = [replace(one, instance=replace(one.instance, cells=[0, 1])) for one in _examples(rows)]
    assert sum("in every output" in line for line in review(facts_of(both))) == 1
    assert any("cells 0, 1 are 1, 2 in every output" in line for line in review(facts_of(both)))


def _columns(folder: Path, rows) -> Facts:
    path = folder / "columns.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = read_examples(path)
    return facts_of(file.examples, file.layout)


def test_zero_and_empty_lists_are_named_and_tried_where_no_example_has_them(tmp_path):
    rng = Random(1)
    lists = [[rng.randint(1, 12) for _ in range(n)] for n in range(1, 9) for _ in range(6)]
    rows = [{"values": one, "limit": rng.randint(1, 12), "few": [1, 2], "result": 0} for one in lists]
    facts = _columns(tmp_path, rows)
    told = "\n".join(review(facts))
    assert "limit is never 0" in told and "no list in values is empty" in told and "list in few" not in told
    unlike = {word for probe in make_probes(facts, lambda size, cells: 100) for word in probe.unlike}
    assert {"limit = 0", "an empty list in values"} <= unlike
    rows += [{"values": [], "limit": 3, "few": [1, 2], "result": 0}]
    rows += [{"values": [1], "limit": 0, "few": [1, 2], "result": 0}]
    told = "\n".join(review(_columns(tmp_path, rows)))
    assert "never 0" not in told and "empty" not in told


def test_lists_that_are_equally_long_are_empty_together(tmp_path):
    rng = Random(1)
    sizes = [n for n in range(1, 9) for _ in range(6)]
    rows = [{one: [rng.randint(1, 9) for _ in range(n)] for one in "ab"} | {"result": 0} for n in sizes]
    records = [
        facts.columns.record(probe.input)
        for facts in [_columns(tmp_path, rows)]
        for probe in make_probes(facts, lambda size, cells: 100)
        if facts.columns is not None
    ]
    assert {"a": [], "b": []} in records
    assert all(bool(record["a"]) == bool(record["b"]) for record in records)


def _task_examples(name: str) -> list[Example]:
    task = get_task(name)
    return [
        Example(0, instance, frozenset(), True)
        for n in range(task.min_complexity, 9)
        for extra in (0, 1, 3)
        for instance in task.sample(n, 6, 10 * n + extra, task.least_memory(n) + extra)
    ]


@pytest.mark.parametrize("name", TASKS)
def test_the_review_raises_no_false_alarm_on_the_tasks(name):
    told = [line for line in review(facts_of(_task_examples(name))) if not line.startswith("few examples")]
    assert told == []


@pytest.mark.parametrize("name", TASKS)
def test_right_programs_do_not_disagree_on_probes(name):
    """Probes are inputs of the task, or at least nothing on which right programs differ."""
    facts = facts_of(_task_examples(name))
    comparison = Comparison(facts, None, 0)
    parts = split(facts.examples, 0, "examples")
    kept = []
    # Not those of training: they may differ on what is no input of the task. So may the written merge.
    other = IDLING_MERGE if name == "merge" else RIGHT_PROGRAMS / f"{name}.nram"
    for place in (f"{name}@searched", other):
        program = load_program(place)
        kept.append(comparison.measured(Candidate(program, judgement_of(program, parts), ())))
    assert len(comparison.probes) > 100 and question_about(kept, comparison) is None


# ---- several programs


@pytest.fixture
def compared(tmp_path) -> tuple[Comparison, list[Kept]]:
    """Two programs that fit values up to 3, and the slow one, compared."""
    file = read_examples(_file(tmp_path, _rows()))
    parts = split(file.with_steps(StepLimit(30, 200)).examples, 0, "the file")
    comparison = Comparison(facts_of(parts.all), StepLimit(30, 200), 0)
    kept = [comparison.measured(Candidate(one, judgement_of(one, parts), ())) for one in (SLOW, WRONG, RIGHT)]
    assert all(one.exact for one in kept)
    return comparison, kept


def test_programs_that_fit_and_disagree_lead_to_a_small_question(compared):
    comparison, kept = compared
    question = question_about(kept[1:], comparison)
    assert question is not None and question.unlike[0] == "a value above 3" and max(question.input) > 3
    assert len(question.input) <= 8 and [one.programs for one in question.answers] == [(1,), (2,)]
    right = (question.input[0] + question.input[2]) % len(question.input)
    assert [one.results for one in question.answers if one.programs == (2,)] == [{"cell 1": right}]
    words = "\n".join(question_in_words(question))
    assert "no example has a value above 3" in words and f"cell 1 = {right}   (program 2)" in words
    assert question_about(kept[1:], comparison, [question.input]) is None  # nor others of this kind


def test_equal_programs_are_merged_and_the_faster_is_chosen(compared):
    comparison, kept = compared
    chosen = merged([*kept, comparison.measured(kept[2].candidate)])
    assert chosen[0].program == RIGHT and [one.program for one in chosen].count(RIGHT) == 1
    assert str(chosen[0].speed.growth) == "1 step"


def test_steps_that_grow_with_the_square_are_noticed_before_they_fail(compared):
    """The slow program fits every example. Its limit grows linearly, so it must fail later."""
    comparison, (slow, _, right) = compared
    assert slow.speed.growth is not None and slow.speed.growth.kind == "quadratic"
    broken = slow.speed.broken_from
    assert broken is not None and right.speed.broken_from is None
    assert broken > max(example.size for example in comparison.facts.examples)
    for size, in_time in ((broken - 6, True), (broken + 2, False)):
        start = [3, 0, *[1] * (size - 1), 0, 0, 0]
        assert SLOW.run(start, max_steps=30 * size + 200).halted is in_time


@pytest.mark.parametrize("probes", ["with probes", "without probes"])
def test_limits_of_the_file_itself_are_extrapolated(probes):
    """The examples name their own steps, in a line. Without a rule for the cells that count there are no probes."""
    examples = []
    for line, (start, end) in enumerate(_rows(room=(3, 4)), 1):
        cells = [1] if line % 2 or probes == "with probes" else [0]
        size = sum(map(bool, start))
        examples.append(Example(line, Instance(start, end, cells, cells, 30 * size + 200), frozenset(cells), True))
    comparison = Comparison(facts_of(examples), None, 0)
    assert bool(comparison.long_probes) is (probes == "with probes") and comparison.limit(20, 99) == 800
    assert comparison.speed(RIGHT).broken_from is None
    broken = comparison.speed(SLOW).broken_from
    assert broken is not None
    for size, in_time in ((broken - 2, True), (broken + 2, False)):
        start = [3, 0, *[1] * (size - 1), 0, 0, 0]
        assert SLOW.run(start, max_steps=30 * size + 200).halted is in_time


REPLIES = {
    "2": 2,
    " skip\n": "skip",
    "STOP": "stop",
    "1 2 0 3": [1, 2, 0, 3],
    "1, 2, 0, 3": [1, 2, 0, 3],
    "result=7": {"result": 7},
    "result = 1, kept = [2, 3]": {"result": 1, "kept": [2, 3]},
}


def test_replies_are_numbers_memories_or_values_by_name(compared):
    comparison, kept = compared
    question = question_about(kept[1:], comparison)
    assert question is not None and comparison.facts.columns is not None
    for text, reply in REPLIES.items():
        assert reply_from(text, question) == reply
    for text in ("", "perhaps", "-1", "=", "3 result=1", "result=1 result=2"):
        with pytest.raises(UsageError, match="is no answer"):
            reply_from(text, question)
    columns, answer = comparison.facts.columns, question.answers[1]
    assert expected_from(2, question, columns) == (answer.output, [1])
    assert expected_from(answer.output, question, columns) == (answer.output, [1])
    for reply in (0, 3, [1, 2], [99] * len(question.input), "yes", {"a": 1}):
        with pytest.raises(UsageError, match="answer"):
            expected_from(reply, question, columns)


# ---- the whole way


@pytest.fixture(scope="module")
def learned(tmp_path_factory) -> tuple[LearningJob, Path]:
    """A job that has found two programs, of which one is wrong where the file says nothing."""
    folder = tmp_path_factory.mktemp("added")
    path = _file(folder, _rows())
    words = ["--workers", "1", "--alternatives", "0", "--method", "search", "--out", str(folder / "out")]
    assert main(["learn", str(path), *words]) == 0
    job = LearningJob(read_examples(path), folder / "out", method="search", workers=1, resume=True, alternatives=0)
    report = folder / "out" / "report.json"
    value = json.loads(report.read_text())
    value["programs"] = [{"program": program_to_json(one), "exact": True} for one in (WRONG, RIGHT)]
    report.write_text(json.dumps(value))
    return job, path


def _copy(job: LearningJob, folder: Path) -> LearningJob:
    for name in ("report.json", "program.json", "program.nram"):
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes((job.folder / name).read_bytes())
    return replace(job, folder=folder)


def test_the_report_shows_all_programs_and_the_question(learned, tmp_path, capsys):
    job, path = learned
    result = _copy(job, tmp_path / "out").run()
    text, value = to_text(result), to_json(result)
    assert "Other programs fit too, and give other answers elsewhere." in text.splitlines()[0]
    assert "2 programs fit and differ on fresh inputs" in text and "Which is right?" in text
    assert "no value is above 3" in text and "with a function for ask" in text
    assert [one["exact"] for one in value["programs"]] == [True, True] and value["programs"][0]["chosen"]
    assert value["question"]["answers"][0]["cells"] == [1] and value["leaves_open"]
    assert value["programs"][0]["steps"]["words"] == "1 step"


def test_the_report_says_where_the_program_does_not_halt(learned, tmp_path):
    result = _copy(learned[0], tmp_path / "out").run()
    endless = replace(result, kept=(replace(result.kept[0], endless=3),))
    assert f"every example, but not on 3 of {result.probes} fresh inputs." in to_text(endless)
    assert "It halts by itself on every example.\n" in to_text(result)


def test_programs_that_nearly_fit_stand_apart_in_the_table(learned, tmp_path):
    result = _copy(learned[0], tmp_path / "out").run()
    one = result.kept[0]
    training = replace(one.candidate.judgement.training, right=one.candidate.judgement.training.right - 1)
    near = replace(one.candidate, judgement=replace(one.candidate.judgement, training=training))
    lines = to_text(replace(result, kept=(*result.kept, replace(one, candidate=near)))).splitlines()
    place = lines.index("smaller programs that nearly fit:")
    assert lines[place - 1].startswith(" 2") and lines[place + 1].startswith(" 3")
    assert "nearly fit" not in to_text(result)


def test_what_is_far_from_fitting_is_not_shown_as_nearly_fitting(compared):
    slow, _, fitting = (one.candidate for one in compared[1])

    def right(count: int) -> Candidate:
        training = replace(fitting.judgement.training, right=count)
        return replace(fitting, judgement=replace(fitting.judgement, training=training))

    near, far = right(fitting.judgement.training.examples - 1), right(1)
    assert nearly_fitting([near], [slow]) == [near]
    assert nearly_fitting([far], [slow]) == [] and nearly_fitting([far], []) == [far]


def test_the_verdict_names_the_cells_that_count_if_others_change(learned, tmp_path):
    result = _copy(learned[0], tmp_path / "out").run()
    assert result.judgement is not None
    stray = replace(result.judgement, training=replace(result.judgement.training, stray=5))
    assert "exact in the cells that count on every example" in to_text(replace(result, judgement=stray))
    assert "exact on every example" in to_text(result)


def test_a_letter_is_explained_where_the_steps_use_it(learned, tmp_path):
    result = _copy(learned[0], tmp_path / "out").run()
    assert "It takes 1 step.\n" in to_text(result)
    growth = growth_of([(n, 2 * n) for n in range(1, 9)])
    linear = replace(result.kept[0], speed=replace(result.kept[0].speed, growth=growth))
    assert "It takes about 2n steps (n: the size)." in to_text(replace(result, kept=(linear,)))


def test_after_a_failure_constants_are_asked_for_unless_the_input_has_one(learned, tmp_path):
    result = _copy(learned[0], tmp_path / "out").run()
    assert result.judgement is not None
    wrong = replace(result.judgement, training=replace(result.judgement.training, right=0))
    said = "give it as a cell (programs know only 0, 1 and 2)"
    assert said in to_text(replace(result, judgement=wrong))
    examples = _examples(([5, 0, *start[2:]], [5, 0, *start[2:]]) for start, _ in _rows())
    parts = split(examples, 0, "examples")
    assert said not in to_text(replace(result, judgement=wrong, parts=parts))


def test_an_answer_becomes_an_example_and_wrong_programs_are_dropped(learned, tmp_path):
    job, _ = learned
    asked = []

    def ask(question):
        asked.append(question)
        start = question.input
        return [start[0], (start[0] + start[2]) % len(start), *start[2:]] if len(asked) < 2 else None

    job = replace(_copy(job, tmp_path / "out"), ask=ask, budget=1.0)
    result = job.run()
    assert result.found and result.program is not None and result.program.states == RIGHT.states
    lines = (job.folder / "answers.jsonl").read_text().splitlines()
    assert len(lines) == 1 and json.loads(lines[0])["cells"] == [1]
    again = replace(job, ask=None).run()  # knows the answer, and does nothing again
    assert again.program == result.program and len(again.parts.answers) == 1
    assert "1 answer included" in to_text(again)


def test_an_answer_that_is_added_by_hand_counts(learned, tmp_path):
    job, _ = learned
    job = _copy(job, tmp_path / "out")
    line = {"input": [4, 0, 4, 0, 0, 0, 0, 0, 0, 0], "output": [4, 6, 4, 0, 0, 0, 0, 0, 0, 0], "cells": [1]}
    assert WRONG.run(line["input"]).memory[1] == 6
    (job.folder / "answers.jsonl").write_text(json.dumps(line))
    result = job.run()
    assert result.found and result.program is not None and result.program.states == WRONG.states
    assert result.question is None


def test_questions_are_asked_on_the_command_line(learned, tmp_path, capsys, monkeypatch):
    job, path = learned
    folder = _copy(job, tmp_path / "out").folder
    lines = iter(["what?\n", "9\n", "skip\n"])
    monkeypatch.setattr("sys.stdin", type("Lines", (), {"readline": lambda self: next(lines, "")})())
    words = ["--method", "search", "--alternatives", "0", "--out", str(folder), "--resume", "--ask", "--json"]
    assert main(["learn", str(path), *words]) == 0
    captured = capsys.readouterr()
    assert "is no answer" in captured.err and "there is no answer 9" in captured.err
    assert json.loads(captured.out)["skipped"] and not (folder / "answers.jsonl").exists()


@pytest.fixture
def asked(tmp_path) -> tuple[LayoutColumns, Question]:
    """A question about the input 2 1 of a file with named columns."""
    layout = Layout.parse("->result values[] 0")
    columns, memory = LayoutColumns(layout), [0, 2, 1, 0, 0]
    answers = [Answer({"result": one}, [one, *memory[1:]], [0], (one,)) for one in (1, 2)]
    return columns, Question(memory, 20, (), {"values": [2, 1]}, tuple(answers))


REFUSED = {
    "result=-3": "no negative numbers",
    "result=": "not a whole number",
    "result=1 2": "not a whole number",
    "result=1x": "not a whole number",
    "foo=3": "'foo' is unknown: the results are result",
    "result=1 other=2": "'other' is unknown: the results are result",
    "1 2 3": "give the number of an answer, or result by name, with values from 0 to 4",
    "result=99": "with values from 0 to 4",
    "3": "there is no answer 3",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_reply_that_cannot_be_right_is_refused(asked, text):
    columns, question = asked
    with pytest.raises(UsageError, match=REFUSED[text]):
        expected_from(reply_from(text, question), question, columns)
    assert expected_from(reply_from("result=4", question), question, columns) == ([4, 2, 1, 0, 0], [0])


def test_a_wrong_reply_is_asked_again_and_nothing_is_saved(learned, tmp_path, capsys, monkeypatch):
    job, path = learned
    folder = _copy(job, tmp_path / "out").folder
    lines = iter(["result=1\n", "99 99 99 99 99 99\n", "1 2\n", "stop\n"])
    monkeypatch.setattr("sys.stdin", type("Lines", (), {"readline": lambda self: next(lines)})())
    words = ["--method", "search", "--alternatives", "0", "--out", str(folder), "--resume", "--ask"]
    assert main(["learn", str(path), *words]) == 0
    assert capsys.readouterr().err.count("is no answer") == 3 and not (folder / "answers.jsonl").exists()
    with pytest.raises(UsageError, match="is no answer"):
        replace(job, folder=folder, ask=lambda question: {"result": 99}).run()
    assert not (folder / "answers.jsonl").exists()


def test_a_wrong_answer_loses_no_program_and_can_be_taken_back(learned, tmp_path):
    job, _ = learned
    job = replace(_copy(job, tmp_path / "out"), budget=1e-3)  # no time to find others
    report = json.loads((job.folder / "report.json").read_text())
    nearly = _program("always:\n a = INC(2)\n WRITE(1, a)\n halt\n")
    report["programs"].append({"program": program_to_json(nearly), "exact": False})
    (job.folder / "report.json").write_text(json.dumps(report))

    def ask(question):
        given = {one.output[1] for one in question.answers}
        wrong = next(value for value in range(len(question.input)) if value not in given)
        return [question.input[0], wrong, *question.input[2:]]

    result = replace(job, ask=ask).run()
    assert not result.found and read_program(job.folder / "program.before.nram").states == RIGHT.states
    total = len(result.parts.all) + 1
    assert len(result.kept) == 2
    assert all(
        one.candidate.judgement.training.examples + one.candidate.judgement.held_out.examples == total
        for one in result.kept
    )
    right = [one.candidate.right for one in result.kept]  # of the training examples and the answer
    assert right[0] == max(right) == len(result.parts.learned_from) - 1
    text = to_text(result)
    assert f"right on {total - 1} of {total}" in text and "program.before.nram is the program" in text
    (job.folder / "answers.jsonl").unlink()
    again = job.run()
    assert again.found and again.program is not None and again.program.states == RIGHT.states


def test_a_program_that_is_too_slow_is_found_with_a_warning(learned, tmp_path):
    result = _copy(learned[0], tmp_path / "out").run()
    slow = replace(result.kept[0], speed=replace(result.kept[0].speed, broken_from=17))
    words = to_text(replace(result, kept=(slow,), question=None))
    assert words.splitlines()[0].endswith("held-out ones included, but too slow from size 17 on.")
    assert "From size 17 on that is more than its limit, 2 (size + M) + 8" in words and "20n+200" in words


def test_a_single_program_that_fits_says_how_long_others_were_looked_for(tmp_path):
    rows = [([0, a, b, 0, 0, 0], [a, a, b, 0, 0, 0]) for a in range(1, 5) for b in range(5)]
    path = tmp_path / "first.jsonl"
    path.write_text("\n".join(json.dumps({"input": start, "output": end, "cells": [0]}) for start, end in rows))
    job = LearningJob(read_examples(path), tmp_path / "out", method="search", alternatives=0)
    result = job.run()
    assert result.found and result.search is not None and len(result.search.fitting) == 1
    assert "No other program that fits was looked for." in to_text(result)
    looked = replace(result, job=replace(job, alternatives=4), search=replace(result.search, further=1_234_567))
    assert "No other program that fits was found in 1,234,567 further candidates." in to_text(looked)
    one = result.search.fitting[0]
    agree = replace(result, search=replace(result.search, fitting=(one, one)))
    assert f"They give the same answers on {result.probes} fresh inputs." in to_text(agree)
    assert "They could not be compared" in to_text(replace(agree, probes=0))


def test_programs_that_are_refused_are_told_once_and_counted(learned, capsys):
    job, _ = learned
    parts = split(job.file.examples, 0, "the file")
    with LearningProgress("added") as progress:
        for _ in range(3):
            progress.refused(judgement_of(SLOW, parts))
        progress.report(SearchReport(0, 1_000_000, 3, 100.0, 1e6, 2))
    said = capsys.readouterr().err
    assert said.count("fits every training example") == 1 and "3 wrong on held-out examples" in said


def test_progress_and_report_count_the_same_candidates(tmp_path):
    counts: list[int] = []

    class Counting(LearningCallbacks):
        def report(self, report):
            counts.append(report.candidates)

    path = _file(tmp_path, _rows())
    job = LearningJob(read_examples(path), tmp_path / "out", method="search", alternatives=1)
    result = job.run(Counting())
    assert result.search is not None and counts == sorted(counts) and counts[-1] <= result.search.candidates
    assert 0 < result.search.further < result.search.candidates


@pytest.mark.slow
def test_truthful_answers_lead_from_a_wrong_program_to_the_right_one(tmp_path):
    """The values never exceed 3, so what is found first is wrong on many fresh inputs."""
    rng = Random(77)

    def rows(top, count):
        for n in range(1, 9):
            for _ in range(count):
                zeros = rng.randrange(2, 8)
                most = min(top, n + 1 + zeros)
                values, x = [rng.randint(1, most) for _ in range(n)], rng.randint(1, most)
                start = [x, 0, *values, *[0] * zeros]
                yield start, [x, min(values), *start[2:]]

    path = _file(tmp_path, rows(3, 8))
    fresh = list(rows(99, 60))

    def wrong(program):
        return sum(program.run(start, max_steps=500).memory[1] != end[1] for start, end in fresh)

    def ask(question):
        values = [value for value in question.input[2:] if value]
        return [question.input[0], min(values), *question.input[2:]]

    first = learn(path, tmp_path / "first", budget=120, method="search", alternatives=0)
    asked = learn(path, tmp_path / "asked", budget=600, method="search", ask=ask)
    assert first.program is not None and asked.program is not None
    assert wrong(first.program) > len(fresh) // 20 and wrong(asked.program) == 0
