"""`verify` as a whole: all its methods together, what they say, and what the program keeps of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import pytest

from nram.errors import UsageError
from nram.extensions import get_task, task_names
from nram.limits import StepLimit
from nram.programs.files import from_json, read_program, to_json
from nram.programs.interpret import interpret
from nram.programs.ir import METHODS, Program
from nram.programs.text import from_text, to_text
from nram.programs.verify import Report, verify
from nram.tasks.base import SymbolicCase, Term

HERE = Path(__file__).parent
ALL_LIMITS = ("T", "2T", "20n+200")
NOTHING = {"exhaustive_up_to": 0, "symbolic_up_to": 0, "largest": 0, "every_length": False}


def program_of(words: str) -> Program:
    return read_program(HERE / f"{words}.nram")


def exhaustive(program: Program, up_to: int, **more: Any) -> Report:
    return verify(program, **{**NOTHING, "exhaustive_up_to": up_to, "budget": 60, **more})


def symbolic(program: Program, up_to: int, **more: Any) -> Report:
    return verify(program, **{**NOTHING, "symbolic_up_to": up_to, "budget": 60, **more})


def random(program: Program, largest: int, **more: Any) -> Report:
    return verify(program, **{**NOTHING, "largest": largest, "budget": 60, **more})


def check_counterexample(report: Report) -> None:
    """It is a legal input on which the interpreter fails as it is told."""
    example = report.counterexample
    assert example is not None
    task, program = report.task, report.program
    n, size = example.complexity, len(example.memory)
    task.check_memory_size(n, size)
    expected, cells = task.oracle(example.memory)
    assert (list(example.expected), list(example.cells)) == (expected, cells)
    ending = interpret(program, example.memory, example.limit)
    assert (list(example.obtained), example.steps, example.halted) == (ending.memory, ending.steps, ending.halted)
    assert example.wrong_cells == tuple(cell for cell in cells if ending.memory[cell] != expected[cell]) != ()
    assert example.at_first == (example.limit == report.limit(n))


# ---- exhaustive


@pytest.mark.parametrize("name", task_names())
def test_every_input_of_the_small_sizes_is_run(name):
    task = get_task(name)
    n = task.min_complexity
    report = exhaustive(program_of(f"right/{name}"), n, extra=1)
    (finding,) = report.findings
    assert task.legal_inputs is not None
    count = sum(1 for more in (0, 1) for _ in task.legal_inputs(n, task.least_memory(n) + more))
    assert (finding.method, finding.complexity, finding.extra_memory) == ("exhaustive", (n, n), (0, 1))
    assert (finding.instances, finding.proven, finding.limits, finding.halts) == (count, True, ALL_LIMITS, True)
    assert report.verdict == "right under every limit"


def test_neighbouring_sizes_are_one_line():
    (finding,) = exhaustive(program_of("right/copy"), 3).findings
    assert (finding.complexity, finding.extra_memory) == ((1, 3), (0, 2))
    assert finding.instances == sum((2 * n + more) ** n for n in (1, 2, 3) for more in (0, 1, 2))


@pytest.mark.parametrize("method", [exhaustive, symbolic, random])
def test_cells_outside_the_output_may_be_overwritten(method):
    assert method(program_of("right/untidy_copy"), 3).verdict == "right under every limit"


def test_both_engines_say_the_same():
    native, python = (
        exhaustive(program_of("right/merge"), 2, extra=0, engine=engine) for engine in ("native", "python")
    )
    parts = [replace(report.findings[0], seconds=0) for report in (native, python)]
    assert parts[0] == parts[1]
    assert parts[0].instances == 2 * 5 + 2 * comb(8, 2) + 7**2


def test_a_size_that_was_not_finished_is_only_tested():
    task = get_task("copy")

    def legal_inputs(n: int, size: int) -> Iterator[list[int]]:
        assert task.legal_inputs is not None
        inputs = task.legal_inputs(n, size)
        return inputs if n == 1 else itertools.cycle(inputs)  # of n = 2 there is no end

    endless = replace(task, legal_inputs=legal_inputs)
    report = verify(program_of("right/copy"), endless, **{**NOTHING, "exhaustive_up_to": None, "budget": 0.5})
    done, unfinished = report.findings
    assert (done.complexity, done.extra_memory, done.proven) == ((1, 1), (0, 2), True)
    assert (unfinished.complexity, unfinished.extra_memory, unfinished.proven) == ((2, 2), (0, 0), False)
    assert unfinished.instances
    (skip,) = [skip for skip in report.skipped if skip.method == "exhaustive"]
    assert (skip.complexity, skip.why) == ((2, None), "out of time")
    assert [evidence.complexity for evidence in report.evidence()] == [(1, 1)]


def test_no_time_shows_nothing():
    report = verify(program_of("right/copy"), budget=1e-9)
    assert (report.verdict, report.findings, report.evidence(), report.right) == ("nothing shown", (), (), False)
    assert {skip.method for skip in report.skipped} == set(METHODS)


def test_a_task_that_cannot_be_listed_is_tested_at_random():
    task = replace(get_task("copy"), legal_inputs=None, symbolic=None, claim=None)
    report = verify(program_of("right/copy"), task, largest=5)
    assert [finding.method for finding in report.findings] == ["random", "random"]
    assert [skip.method for skip in report.skipped] == ["exhaustive", "inductive", "symbolic"]


# ---- wrong programs: by each method that can see it

SMALLEST = [
    # name, what to run all inputs of, the smallest failure in n and M
    ("last_element", 1, 1, 3),
    ("one_value", 1, 1, 4),
    ("fifth_element", 5, 5, 11),
    ("too_early", 4, 4, 5),
    ("never_begins", 2, 2, 5),
    ("third_place", 3, 3, 7),
    ("hops", 4, 4, 11),
    ("tie", 2, 2, 9),
    ("left_only", 3, 3, 14),
]


@pytest.mark.parametrize(("name", "up_to", "n", "size"), SMALLEST)
def test_running_everything_finds_the_smallest_failure(name, up_to, n, size):
    report = exhaustive(program_of(f"wrong/{name}"), up_to, extra=1 if name == "one_value" else 0)
    check_counterexample(report)
    assert report.verdict == "wrong" and report.counterexample is not None
    assert (report.counterexample.complexity, len(report.counterexample.memory)) == (n, size)
    assert all(skip.why == "the program is wrong already" or skip.why == "not asked for" for skip in report.skipped)


@pytest.mark.parametrize(("name", "up_to", "n", "size"), [*SMALLEST, ("large_memory", 0, 1, 17), ("scan", 0, 1, 6)])
def test_proving_finds_the_smallest_failure(name, up_to, n, size):
    report = symbolic(program_of(f"wrong/{name}"), 6)
    check_counterexample(report)
    assert report.verdict == "wrong" and report.counterexample is not None
    assert (report.counterexample.complexity, len(report.counterexample.memory)) == (n, size)
    assert report.counterexample.method == "symbolic"


@pytest.mark.parametrize(
    ("name", "n"),
    [*((name, n) for name, _, n, _ in SMALLEST), ("large_memory", None), ("slow", None), ("scan", 1)],
)
def test_drawing_finds_a_failure_and_then_a_small_one(name, n):
    report = random(program_of(f"wrong/{name}"), 50)
    check_counterexample(report)
    assert report.verdict == "wrong" and report.counterexample is not None
    if n is not None:
        assert report.counterexample.complexity == n


def test_the_smallest_memory_of_a_size_is_given():
    report = exhaustive(program_of("wrong/one_value"), 2)
    assert report.counterexample is not None
    assert report.counterexample.memory == (2, 3, 0, 0)
    report = exhaustive(program_of("wrong/never_begins"), 3)
    assert report.counterexample is not None
    assert report.counterexample.memory == (2, 3, 1, 2, 0)


def test_a_failure_that_all_inputs_of_small_sizes_miss_is_found_by_the_other_methods():
    program = program_of("wrong/large_memory")
    assert exhaustive(program, 3).verdict == "right under every limit"
    assert symbolic(program, 3).verdict == "wrong"
    assert random(program, 20).verdict == "wrong"
    assert verify(program, exhaustive_up_to=3, largest=50).verdict == "wrong"


# ---- limits and halting


def test_idle_programs_are_right_and_do_not_halt():
    for name in ("access", "increment", "copy"):
        report = verify(program_of(f"idle/{name}"), exhaustive_up_to=2, symbolic_up_to=3, largest=50)
        assert report.verdict == "right under every limit"
        assert not any(finding.halts for finding in report.findings)
        assert {finding.limits for finding in report.findings} == {("every",), ALL_LIMITS}


def test_memory_sizes_are_taken_one_by_one_where_all_at_once_is_not_proven():
    task = get_task("swap")

    def symbolic_cases(n: int, size: Term) -> Iterator[SymbolicCase]:
        assert task.symbolic is not None
        for case in task.symbolic(n, size):
            # A contradiction, unless the size is known.
            yield case if isinstance(size, int) else replace(case, assumptions=(size < 0,))

    report = symbolic(program_of("right/swap"), 4, task=replace(task, symbolic=symbolic_cases))
    (finding,) = report.findings
    assert (finding.complexity, finding.extra_memory, finding.limits) == ((2, 4), (0, 2), ("every",))
    (skip,) = [skip for skip in report.skipped if skip.method == "symbolic"]
    assert (skip.complexity, skip.what) == ((2, 4), "every M at once, all limits")


def test_a_wanderer_is_proven_under_every_limit_on_single_memory_sizes():
    report = symbolic(program_of("idle/wanderer"), 2, budget=2)
    # For all sizes at once the time may or may not suffice to go beyond T(n).
    assert all("T" in finding.limits for finding in report.findings if finding.extra_memory is None)
    singles = [finding for finding in report.findings if finding.extra_memory is not None]
    assert all(finding.limits == ("every",) and not finding.halts for finding in singles)
    assert report.verdict == "right under every limit"


@pytest.mark.parametrize("name", ["access", "increment"])
@pytest.mark.parametrize("method", [exhaustive, symbolic, random])
def test_what_must_be_stopped_is_said_to_be_right_only_at_its_limit(name, method):
    report = method(program_of(f"stopped/{name}"), 3)
    check_counterexample(report)
    assert report.verdict == "right only at T(n)" and report.counterexample is not None
    assert not report.counterexample.at_first
    assert report.findings and report.right
    assert all("T" in finding.limits for finding in report.findings)
    assert ("T",) in [finding.limits for finding in report.findings]


def test_harm_between_the_limits_is_seen_by_proofs_alone():
    program = program_of("stopped/alternating")
    assert exhaustive(program, 2).verdict == random(program, 20).verdict == "right under every limit"
    report = verify(program, exhaustive_up_to=2, symbolic_up_to=2, largest=20)
    check_counterexample(report)
    assert report.verdict == "right only at T(n)" and report.counterexample is not None
    assert report.counterexample.limit == 7


def test_nothing_is_said_of_larger_limits_if_nothing_was_shown_of_them():
    report = symbolic(program_of("right/access"), 1)
    (finding,) = report.findings
    less = replace(report, findings=(replace(finding, limits=("T",)),))
    assert (report.verdict, less.verdict) == ("right under every limit", "right only at T(n)")
    assert "nothing is known about larger step limits" in str(less)
    # A lack of time is no property of the program.
    assert not less.recorded().needs_limit


def test_wrong_at_the_limit_outweighs_harm_after_it():
    # The answer is right for n = 1, until step 7 spoils it; for larger n it is wrong from the start.
    text = to_text(program_of("stopped/access")).replace("READ(o2)", "READ(1)")
    report = verify(from_text(text), exhaustive_up_to=2, symbolic_up_to=0, largest=0)
    check_counterexample(report)
    assert report.verdict == "wrong" and report.counterexample is not None
    assert (report.counterexample.complexity, report.counterexample.limit) == (2, 6)


def test_a_limit_beyond_20n_plus_200_leaves_that_one_out():
    report = exhaustive(replace(program_of("right/copy"), limit=StepLimit(0, 500)), 1)
    assert report.findings[0].limits == ("T", "20n+200", "2T")
    assert report.verdict == "right under every limit"


def test_the_limit_of_another_task_is_not_this_ones():
    program = replace(program_of("right/copy"), limit=StepLimit(0, 1))
    assert exhaustive(program, 1).verdict == "wrong"
    assert exhaustive(replace(program, task=None), 1, task="copy").verdict == "wrong"
    assert exhaustive(replace(program, task="reverse"), 1, task="copy").limit == get_task("copy").step_limit


# ---- which task


def test_a_program_can_be_held_against_another_task():
    report = verify(program_of("right/copy"), "reverse", exhaustive_up_to=3, symbolic_up_to=0, largest=0)
    check_counterexample(report)
    assert (report.verdict, report.task.name) == ("wrong", "reverse")
    assert report.counterexample is not None and report.counterexample.complexity == 2


def test_a_program_without_a_task_needs_one():
    with pytest.raises(UsageError, match="name one \\('task'\\)"):
        verify(replace(program_of("right/copy"), task=None))
    with pytest.raises(UsageError, match="did you mean copy"):
        verify(program_of("right/copy"), "copi")


# ---- random instances


def test_random_instances_go_up_to_the_largest_n():
    report = random(program_of("right/increment"), 2000)
    complexities = [finding.complexity for finding in report.findings]
    assert complexities == [(1, 15), (15, 15), (50, 50), (1000, 1000), (2000, 2000)]
    counts = [finding.instances or 0 for finding in report.findings]
    assert sum(counts[:2]) >= 1000 and counts[2:] == [1000, 200, 50]
    for finding in report.findings:
        assert not finding.proven and finding.limits == ALL_LIMITS and finding.halts
        assert finding.extra_memory is not None
        assert finding.extra_memory[0] == 0 < finding.extra_memory[1]


def test_the_largest_n_may_be_the_smallest():
    assert [finding.complexity for finding in random(program_of("right/swap"), 2).findings] == [(2, 2), (2, 2)]
    report = random(program_of("right/swap"), 1)
    assert report.verdict == "nothing shown"
    assert "asked for only up to n = 1" in [skip.why for skip in report.skipped]


def test_the_seed_decides_what_is_drawn():
    # Wrong for one value in many: which counterexample is found is a matter of chance, and of the seed alone.
    program = program_of("wrong/scan")
    found = [random(program, 3, seed=seed).counterexample for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


# ---- what is kept


def test_evidence_goes_into_the_program_and_its_files():
    program = replace(program_of("right/copy"), limit=StepLimit(1, 2))
    report = verify(program, exhaustive_up_to=2, symbolic_up_to=2, largest=50)
    kept = report.recorded()
    assert kept.verified == report.evidence()
    assert {evidence.method for evidence in kept.verified} == set(METHODS)
    assert kept.verified[0].complexity == (1, None) and kept.proven_for_every_length
    assert not kept.needs_limit and kept.limit == StepLimit(1, 2)
    for evidence in kept.verified:
        assert (evidence.task, evidence.fingerprint) == ("copy", program.fingerprint)
    (proof,) = [evidence for evidence in kept.verified if evidence.method == "symbolic"]
    assert (proof.complexity, proof.extra_memory, proof.instances) == ((1, 2), None, None)
    assert (proof.limits, proof.halts) == (("every",), True)
    assert from_text(to_text(kept)) == kept
    assert from_json(json.loads(json.dumps(to_json(kept)))) == kept


def test_evidence_is_replaced_for_its_task_and_kept_for_others():
    program = exhaustive(program_of("right/copy"), 1).recorded()
    # With n = 1 a copy is a reversal.
    both = exhaustive(program, 1, task="reverse").recorded()
    assert [evidence.task for evidence in both.verified] == ["copy", "reverse"]
    assert both.task == "copy"
    again = exhaustive(both, 2).recorded()
    assert [(evidence.task, evidence.complexity) for evidence in again.verified] == [
        ("reverse", (1, 1)),
        ("copy", (1, 2)),
    ]


def test_a_program_that_must_be_stopped_says_so_and_when():
    report = exhaustive(program_of("stopped/access"), 2)
    kept = report.recorded()
    assert kept.needs_limit and kept.limit == get_task("access").step_limit
    assert {evidence.limits for evidence in kept.verified} == {("T",)}
    assert from_text(to_text(kept)) == kept
    doubted = replace(program_of("right/access"), limit=StepLimit(0, 6), needs_limit=True)
    assert exhaustive(doubted, 2).recorded().needs_limit  # too little was shown to take that back
    assert not exhaustive(doubted, 3).recorded().needs_limit


def test_the_report_is_json():
    report = verify(program_of("wrong/tie"), exhaustive_up_to=2)
    value = json.loads(json.dumps(report.to_json()))
    assert (value["verdict"], value["right"], value["task"], value["limit"]) == ("wrong", False, "merge", "4n+8")
    example = value["counterexample"]
    assert example["memory_size"] == len(example["memory"]) == 9
    assert [example["obtained"][cell] == example["expected"][cell] for cell in example["wrong_cells"]] == [
        False for _ in example["wrong_cells"]
    ]
    right = verify(program_of("right/swap"), exhaustive_up_to=2, symbolic_up_to=3, largest=0).to_json()
    assert right["counterexample"] is None and right["proven_for_every_length"]
    assert [finding["complexity"] for finding in right["findings"]] == [[2, None], [2, 2], [2, 3]]
    assert [finding["least_memory"] for finding in right["findings"]] == [[5, None], [5, 5], [5, 6]]


def test_the_report_in_words_says_what_was_proven_and_what_was_not():
    words = str(verify(program_of("right/swap"), exhaustive_up_to=2, symbolic_up_to=3, largest=20, every_length=False))
    proven, _, tested = words.partition("only tested")
    assert "RIGHT UNDER EVERY LIMIT: proven for n <= 3, tested on 1,013 inputs up to n = 20\n" in proven
    assert "every M from the least up" in proven and "n = 2 to 3" in proven
    assert "random" not in proven and "random" in tested
    alone = random(program_of("right/swap"), 20)
    ground = "on all 1,013 inputs tested; nothing is proven"
    assert f"RIGHT UNDER EVERY LIMIT {ground}\n" in str(alone) and ground in repr(alone)
    assert "LIMIT: proven for n <= 2 in small memories\n" in str(exhaustive(program_of("right/swap"), 2))
    words = str(exhaustive(program_of("stopped/access"), 1))
    assert (
        "RIGHT ONLY AT T(n): proven for n <= 1 in small memories. THIS PROGRAM MUST BE STOPPED" in words
        and "limits T " in words
    )


def test_a_counterexample_in_words_has_its_trace_and_how_to_repeat_it():
    report = verify(program_of("wrong/never_begins"), exhaustive_up_to=2)
    words = report.to_text(called="my swap.nram")
    assert "memory    2 3 1 2 0" in words
    assert "cell 2 holds 1, not 2" in words
    assert "nram run 'my swap.nram' --memory \"2 3 1 2 0\" --max-steps 8" in words
    assert "nram trace 'my swap.nram' --memory \"2 3 1 2 0\" --max-steps 8" in words
    assert any(line.split()[:1] == ["step"] for line in words.splitlines())
    assert "nram.trace(report.program, report.counterexample.instance)" in str(report) and "nram run" not in str(report)
    assert report.counterexample is not None and report.counterexample.instance.steps == 8


def test_a_large_counterexample_is_told_in_few_words():
    # It adds 1 if 2, 4, ..., 1024 are all different numbers, that is if M is above 1024.
    doubled = [f"    d{i + 1} = ADD(d{i}, d{i})" for i in range(1, 9)]
    larger = [f"    l{i + 1} = LESS-THAN(d{i}, d{i + 1})" for i in range(1, 9)]
    all_larger = [f"    m{i + 1} = MIN(m{i}, l{i + 1})" for i in range(1, 9)]
    text = (
        "nram program 1\ntask: access\nregisters: r\n\nalways:\n    k = READ(0)\n    place = INC(k)\n"
        "    value = READ(place)\n    d1 = ADD(2, 2)\n    m1 = LESS-THAN(2, d1)\n"
    )
    lines = [*doubled, *larger, *all_larger, "    more = ADD(value, m9)", "    WRITE(0, more)", "    halt"]
    report = symbolic(from_text(text + "\n".join(lines)), 1)
    check_counterexample(report)
    assert report.counterexample is not None
    assert (report.counterexample.complexity, len(report.counterexample.memory)) == (1, 1025)
    words = report.to_text(called="it")
    assert 'nram run it --memory "0 1" --memory-size 1025 --max-steps 6' in words
    assert max(map(len, words.splitlines())) <= 140
    # One that no command line could hold refers to the JSON form.
    example = replace(report.counterexample, memory=(1,) * 5000, expected=(1,) * 5000, obtained=(2,) * 5000)
    words = replace(report, counterexample=example).to_text(called="it")
    assert "--memory @FILE --max-steps 6" in words and "--json" in words
    assert max(map(len, words.splitlines())) <= 140
