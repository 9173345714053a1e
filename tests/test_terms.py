"""Terms: one form for equal sums, and the same meaning in numbers, in text that is read again, and in SMT-LIB."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import z3

from nram.errors import UsageError
from nram.programs.prove.reading import term_from_text
from nram.terms import (
    FALSE,
    TRUE,
    Term,
    both,
    call,
    choose,
    either,
    equal,
    evaluated,
    is_condition,
    is_sound,
    negated,
    number,
    shown,
    smt,
    substituted,
    variable,
)

NAMES = ("n", "M", "r1", "visits3", "cell[memory(0) + 1]", "register[x]")


def random_term(rng: Random, depth: int) -> Term:
    if depth == 0:
        return variable(rng.choice(NAMES)) if rng.random() < 0.7 else number(rng.randint(-3, 3))
    kind = rng.randrange(5)
    a, b = random_term(rng, depth - 1), random_term(rng, depth - 1)
    if kind == 0:
        return a + b
    if kind == 1:
        return a - b * rng.randint(-2, 2)
    if kind == 2:
        return call(rng.choice(("memory", "node")), a)
    if kind == 3:
        return choose(random_condition(rng, depth - 1), a, b)
    return Term("mod", (a, b))


def random_condition(rng: Random, depth: int) -> Term:
    a, b = random_term(rng, depth), random_term(rng, depth)
    kind = rng.randrange(5)
    if kind < 2 or depth == 0:
        return a <= b if kind % 2 else equal(a, b)
    one, other = random_condition(rng, depth - 1), random_condition(rng, depth - 1)
    return negated(one) if kind == 2 else both(one, other) if kind == 3 else either(one, other)


@pytest.mark.parametrize("seed", range(200))
def test_a_term_is_read_again_from_its_text_and_z3_computes_what_we_compute(seed):
    rng = Random(seed)
    term = random_condition(rng, 3) if seed % 2 else random_term(rng, 3)
    assert is_sound(term) and is_condition(term) == bool(seed % 2 or term in (TRUE, FALSE))
    again = term_from_text(shown(term))
    assert shown(again) == shown(term)
    values = {name: rng.randint(1, 9) for name in NAMES}
    functions: dict[str, Any] = {"memory": lambda x: 3 * x % 7, "node": lambda x: x - 2}
    found = evaluated(term, values, functions, {})
    assert evaluated(again, values, functions, {}) == found
    declared = [f"(declare-const |{name}| Int)" for name in NAMES if name != "n"]
    goal = smt(term) if is_condition(term) else f"(= result {smt(term)})"
    text = "\n".join(
        [
            "(declare-const n Int) (declare-const result Int)",
            *declared,
            "(define-fun memory ((x Int)) Int (mod (* 3 x) 7)) (define-fun node ((x Int)) Int (- x 2))",
            *(f"(assert (= {name if name == 'n' else f'|{name}|'} {value}))" for name, value in values.items()),
            f"(assert {goal if not is_condition(term) or found else f'(not {goal})'})",
        ]
    )
    if "mod" in shown(term):
        return  # a remainder by 0 or by a negative number is anything: machines never ask for one
    solver = z3.Solver()
    solver.from_string(text)
    assert solver.check() == z3.sat
    if not is_condition(term):
        value: Any = solver.model().eval(z3.Int("result"))
        assert value.as_long() == int(found)


def test_equal_sums_are_equal_terms():
    n, i = variable("n"), variable("i")
    assert n + i - 1 == i - 1 + n and 2 * n - n == n and n - n == number(0)
    assert (n < n + 1) == TRUE and (n + 1 <= n) == FALSE and equal(n + i, i + n) == TRUE
    assert shown(n - 2 * i + 3) == "n - 2*i + 3" and shown(-i) == "-i"
    assert substituted(call("memory", i + 1), {i: n - 1}) == call("memory", n)


@pytest.mark.parametrize(
    "text",
    ["", "n +", "n n", "(n", "n)", "2*", "memory(", "if n then 1", "n <= ", "n and", "a and b or c", "$", "n = 1 = 2"],
)
def test_what_is_no_term_is_refused(text):
    with pytest.raises(UsageError, match="this is not a term"):
        term_from_text(text)


def test_deep_and_long_texts_are_refused():
    with pytest.raises(UsageError, match="not a term"):
        term_from_text("(" * 100 + "n" + ")" * 100)
    with pytest.raises(UsageError, match="too long"):
        term_from_text("n + " * 10_000 + "n")


def test_numbers_and_conditions_that_stand_in_the_wrong_place_are_noticed():
    n = variable("n")
    assert not is_sound(Term("and", (n, TRUE)))
    assert not is_sound(call("memory", equal(n, 1)))
    assert not is_sound(term_from_text("(n = 1) + 2"))
