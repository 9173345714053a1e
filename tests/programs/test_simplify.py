"""The simplifier keeps the meaning: its rules are proven for every M, its passes held to the interpreter."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import z3

from nram.errors import UsageError
from nram.extensions import get_task
from nram.modules import PAPER_MODULES
from nram.programs.interpret import interpret
from nram.programs.ir import MODULES, Evidence, Program
from nram.programs.simplify import simplify, size_of
from nram.programs.simplify.conditions import decision_list
from nram.programs.simplify.facts import output_mask
from nram.programs.simplify.rules import RULES, Pattern, Rule
from nram.programs.simplify.specialise import specialise
from nram.programs.text import from_text, table_to_text

PLAIN_MODULES = [module for module in PAPER_MODULES if module.memory == "nothing"]


class Logic:
    """The primitives of the modules as formulas, with M left open."""

    def __init__(self) -> None:
        self.size = z3.Int("M")

    def number(self, literal: int) -> Any:
        return z3.IntVal(literal)

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def sub(self, a: Any, b: Any) -> Any:
        return a - b

    def less(self, a: Any, b: Any) -> Any:
        return a < b

    def equal(self, a: Any, b: Any) -> Any:
        return a == b

    def choose(self, condition: Any, yes: Any, no: Any) -> Any:
        return z3.If(condition, yes, no)


def _proven(claim: Any, *assumptions: Any) -> bool:
    solver = z3.Solver()
    solver.add(*assumptions)
    assert solver.check() == z3.sat, "the assumptions contradict each other"
    solver.add(z3.Not(claim))
    return solver.check() == z3.unsat


def _term(logic: Logic, pattern: Pattern, letters: dict[str, Any]) -> Any:
    if isinstance(pattern, int):
        return logic.number(pattern)
    if isinstance(pattern, str):
        return letters.setdefault(pattern, z3.Int(pattern))
    module = MODULES[pattern[0]]
    return module.emit(logic, *(_term(logic, part, letters) for part in pattern[1:]))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.text)
def test_every_rule_holds_for_every_memory_size(rule: Rule):
    logic, letters = Logic(), {}
    left, right = _term(logic, rule.pattern, letters), _term(logic, rule.rewrite, letters)
    assumptions = [logic.size >= 3, *(z3.And(letter >= 0, letter < logic.size) for letter in letters.values())]
    if rule.positive is not None:
        assumptions.append(letters[rule.positive] > 0)
    if rule.boolean is not None:
        assumptions.append(letters[rule.boolean] < 2)
    assert _proven(left == right, *assumptions)


@pytest.mark.parametrize("module", PLAIN_MODULES, ids=lambda module: module.name)
def test_what_a_module_may_give_holds_for_every_memory_size(module):
    logic = Logic()
    names = [z3.Int(name) for name in module.arguments]

    def is_kind(term: Any, kind: int) -> Any:
        return term >= 3 if kind == 3 else term == kind

    inside = [z3.And(name >= 0, name < logic.size) for name in names]
    output = module.emit(logic, *names)
    for kinds in itertools.product(range(4), repeat=module.arity):
        mask = output_mask(module.name, tuple(1 << kind for kind in kinds))
        claim = z3.Or([is_kind(output, kind) for kind in range(4) if mask >> kind & 1])
        given = [is_kind(name, kind) for name, kind in zip(names, kinds, strict=True)]
        assert _proven(claim, logic.size >= 3, *inside, *given)


def _same(one: Program, other: Program, memory: list[int], limit: int, registers: bool = False) -> bool:
    first, second = interpret(one, memory, limit), interpret(other, memory, limit)
    if (first.memory, first.steps, first.halted) != (second.memory, second.steps, second.halted):
        return False
    held = dict(zip(one.registers, first.registers, strict=True))
    kept = zip(other.registers, second.registers, strict=True)
    return not registers or not first.halted or all(held[name] == value for name, value in kept)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_keep_their_meaning_and_come_out_simple(seed, random_program, random_memory):
    rng = Random(seed)
    for _ in range(50):
        program = random_program(rng, full=rng.random() < 0.3, halting=rng.choice([0, 0.1, 0.3]))
        keep = rng.random() < 0.3
        simple = simplify(program, keep_registers=keep)
        assert simple.operations <= program.operations
        assert simplify(simple, keep_registers=keep) == simple
        for _ in range(8):
            memory, limit = random_memory(rng, rng.randint(3, 9)), rng.choice([0, 1, 2, 3, 5, 10, 30])
            assert _same(program, simple, memory, limit, keep), (str(program), memory, limit)


@pytest.mark.parametrize("seed", range(8))
def test_on_every_memory_of_three_cells_at_every_step(seed, random_program):
    rng = Random(100 + seed)
    for _ in range(4):
        program = random_program(rng, full=rng.random() < 0.3)
        simple = simplify(program)
        for memory in itertools.product(range(3), repeat=3):
            for limit in range(8):
                assert _same(program, simple, list(memory), limit), (str(program), memory, limit)


HEADER = "nram program 1\nregisters: {}\n\n"
# What each pass is there for: a program before and after, in the text form without its header.
CASES = {
    "unreachable rows": (
        "r1",
        """
        when r1 > 0:
            WRITE(0, 2)
        otherwise:
            WRITE(1, 1)
        """,
        "always:\n    WRITE(1, 1)\n",
    ),
    "dead modules": (
        "r1",
        "always:\n o1 = READ(0)\n o2 = INC(o1)\n WRITE(1, o1)",
        "always:\n o1 = READ(0)\n WRITE(1, o1)",
    ),
    "constants": (
        "r1 r2",
        "always:\n z = ZERO()\n a = INC(z)\n b = ADD(a, 1)\n c = MIN(b, r2)\n WRITE(b, c)",
        "always:\n WRITE(2, 0)",
    ),
    "rules": (
        "r1",
        "always:\n a = READ(0)\n b = INC(a)\n c = DEC(b)\n d = ADD(c, 1)\n WRITE(1, d)",
        "always:\n a = READ(0)\n b = INC(a)\n WRITE(1, b)",
    ),
    "common values": (
        "r1",
        "always:\n a = READ(1)\n b = READ(1)\n c = ADD(a, b)\n d = ADD(b, a)\n WRITE(0, c)\n WRITE(2, d)",
        "always:\n a = READ(1)\n c = ADD(a, a)\n WRITE(0, c)\n WRITE(2, c)",
    ),
    "copies": (
        "r1 r2",
        "always:\n a = READ(0)\n b = READ(r2)\n WRITE(1, b)\n r1, r2 := a, a",
        "always:\n b = READ(r1)\n a = READ(0)\n WRITE(1, b)\n r1 := a",
    ),
    "what was just written": (
        "r1",
        "always:\n a = READ(0)\n WRITE(1, a)\n b = READ(1)\n WRITE(2, b)",
        "always:\n a = READ(0)\n WRITE(1, a)\n WRITE(2, a)",
    ),
    "what is there already": ("r1", "always:\n a = READ(0)\n WRITE(0, a)\n halt", "always:\n halt"),
    "what nobody sees": (
        "r1",
        "always:\n WRITE(1, 0)\n a = READ(0)\n WRITE(1, a)",
        "always:\n a = READ(0)\n WRITE(1, a)",
    ),
    "equal rows": (
        "r1",
        """
        when r1 = 0:
            a = READ(r1)
            r1 := a
        otherwise:
            b = READ(r1)
            r1 := b
            halt
        """,
        # The registers' final values do not matter, nor does what they are made of.
        "when r1 = 0:\n a = READ(0)\n r1 := a\notherwise:\n halt",
    ),
    "flags that do not matter": (
        "r1 r2",
        """
        when r1 = 0, r2 = 0:
            a = READ(0)
            b = READ(1)
            WRITE(2, b)
            r1, r2 := a, b
        when r1 > 0, r2 = 0:
            halt
        when r1 > 0, r2 > 0:
            halt
        otherwise:
            a = READ(0)
            b = READ(1)
            WRITE(2, b)
            r1, r2 := a, b
        """,
        "when r1 = 0:\n b = READ(1)\n a = READ(0)\n WRITE(2, b)\n r1 := a\notherwise:\n halt",
    ),
    "registers that only count for themselves": (
        "r1 r2 r3",
        "always:\n a = INC(r2)\n b = READ(r3)\n c = ADD(b, r2)\n WRITE(r1, 1)\n r2, r3 := a, c",
        "always:\n WRITE(0, 1)",
    ),
    "states that do the same": (
        "r1",
        """
        state 0:
        when r1 = 0:
            a = READ(1)
            WRITE(0, a)
            r1 := a
            next 1
        otherwise:
            halt
        state 1:
        when r1 = 0:
            a = READ(1)
            WRITE(0, a)
            r1 := a
            next 0
        otherwise:
            halt
        """,
        "when r1 = 0:\n a = READ(1)\n WRITE(0, a)\n r1 := a\notherwise:\n halt",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_pass_removes_what_it_is_there_for(case):
    registers, before, after = CASES[case]
    simple = simplify(from_text(HEADER.format(registers) + before))
    expected = from_text(HEADER.format(" ".join(simple.registers)) + after)
    assert table_to_text(simple) == table_to_text(expected)


def test_final_registers_are_kept_if_asked_for():
    program = from_text(HEADER.format("r1 r2") + "always:\n a = READ(0)\n r1 := a\n halt")
    assert simplify(program).operations == 0
    kept = simplify(program, keep_registers=True)
    assert interpret(kept, [2, 0, 1], 5).registers[kept.registers.index("r1")] == 2


def test_memory_that_may_overlap_is_left_in_order():
    program = from_text(
        HEADER.format("r1") + "always:\n a = READ(r1)\n WRITE(1, 2)\n b = READ(r1)\n WRITE(0, b)\n r1 := a"
    )
    simple = simplify(program)
    for memory in itertools.product(range(3), repeat=3):
        assert _same(program, simple, list(memory), 4)
    assert simple.operations == 4


def test_what_was_verified_is_not_claimed_of_the_shorter_program():
    program = from_text(HEADER.format("r1") + "always:\n a = READ(0)\n halt")
    shown = Evidence("random", "access", (1, 5), (0, 0), 10, ("T",), True, program.fingerprint)
    program = replace(program, verified=(shown,), made=(("by", "hand"),))
    simple = simplify(program)
    assert simple.made == (("by", "hand"),)
    assert simple.verified == ()
    as_it_is = replace(simple, verified=(replace(shown, fingerprint=simple.fingerprint),))
    assert simplify(as_it_is) == as_it_is


def test_conditions_are_few_and_settle_everything():
    rng = Random(5)
    for width in range(1, 6):
        for _ in range(20):
            flags = [f for f in itertools.product((True, False), repeat=width) if rng.random() < 0.8]
            owners = {f: rng.randrange(3) for f in flags}
            clusters = [[f for f in flags if owners[f] == number] for number in sorted(set(owners.values()))]
            if not clusters:
                continue
            rows = decision_list(clusters)
            assert rows[-1][0] == (None,) * width
            for number, cluster in enumerate(clusters):
                for f in cluster:
                    holds = (all(p is None or p == flag for p, flag in zip(cube, f, strict=True)) for cube, _ in rows)
                    assert rows[next(i for i, held in enumerate(holds) if held)][1] == number


SPECIAL = """
when r1 > 0:
    a = READ(r1)
    WRITE(0, a)
    halt
when r2 > 0:
    WRITE(1, 2)
    halt
otherwise:
    k = READ(0)
    s = INC(k)
    r1, r2 := s, k
"""


def test_for_a_task_rows_that_its_inputs_never_reach_are_dropped():
    """k + 1 is 0 only if k is M - 1, and no input of access has that."""
    program = from_text(HEADER.format("r1 r2") + SPECIAL)
    assert simplify(program).rows == 3
    special = specialise(program, get_task("access"))
    assert size_of(special).rows == 2 and special.registers == ("r1",)
    for n in (1, 5, 30):
        for instance in get_task("access").sample(n, 20, seed=n, memory_size=n + 5):
            assert _same(program, special, instance.input, 100)
    assert not _same(program, special, [4, 0, 0, 0, 0], 100)


RARE = """
when r1 > 0, r2 > 0:
    a = READ(r1)
    WRITE(0, a)
    halt
when r1 > 0:
    WRITE(0, r1)
    halt
otherwise:
    k = READ(0)
    s = INC(k)
    r1, r2 := s, k
"""


def test_a_row_that_several_later_inputs_need_is_kept(monkeypatch):
    """Here only inputs that are drawn later have k = 0, and two of them show that the row is missing."""
    task = get_task("access")
    drawn = task.sample(6, 200, seed=0)

    def instances(_, seed: int, count: int):
        yield [one for one in drawn if (one.input[0] == 0) == (seed > 0)][:9], 100

    monkeypatch.setattr("nram.programs.simplify.specialise._instances", instances)
    program = from_text(HEADER.format("r1 r2") + RARE)
    special = specialise(program, task)
    assert all(_same(program, special, one.input, 100) for one in drawn)


# A pointer that was itself read after a write must not be read before it.
READ_THROUGH_A_READ = """
always:
    WRITE(1, r1)
    a = READ(r2)
    b = MAX(a, 2)
    c = READ(b)
    WRITE(0, c)
    d = INC(r1)
    e = READ(0)
    r1, r2 := d, e
"""


def test_a_read_does_not_move_before_a_write_that_its_pointer_depends_on():
    program = from_text(HEADER.format("r1 r2") + READ_THROUGH_A_READ)
    simple = simplify(program)
    rng = Random(3)
    for _ in range(300):
        memory = [rng.randrange(6) for _ in range(6)]
        assert _same(program, simple, memory, 4), memory


def test_the_longest_rows_are_simplified_without_end_of_the_stack():
    steps = "".join(f"    a{i} = INC({f'a{i - 1}' if i else 'r1'})\n" for i in range(500))
    steps += "".join(f"    b{i} = INC({f'b{i - 1}' if i else 'r2'})\n" for i in range(500))
    rows = f"always:\n{steps}    c = SUB(a499, b499)\n    WRITE(0, c)\n    r1, r2 := 1, c\n"
    assert simplify(from_text(HEADER.format("r1 r2") + rows)).operations == 2


def test_programs_of_several_states_are_simplified(random_program, random_memory):
    rng = Random(77)
    for _ in range(120):
        program = random_program(rng, registers=3, states=rng.choice([2, 3, 4]), operations=3)
        simple = simplify(program)
        for _ in range(4):
            memory = random_memory(rng, rng.randint(3, 7))
            assert _same(program, simple, memory, 12), (str(program), memory)


def test_too_many_flags_are_refused():
    names = " ".join(f"r{i}" for i in range(12))
    reads = "    v0 = READ(0)\n" + "".join(f"    v{i} = READ(v{i - 1})\n" for i in range(1, 12))
    new = f"    {', '.join(f'r{i}' for i in range(12))} := {', '.join(f'v{i}' for i in range(12))}\n"
    rows = f"always:\n{reads}    WRITE(r0, r1)\n{new}"
    with pytest.raises(UsageError, match="combinations of flags"):
        simplify(from_text(HEADER.format(names) + rows))
