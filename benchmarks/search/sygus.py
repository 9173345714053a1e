"""Cell by cell: cvc5's SyGuS looks for the value of an output cell as an expression, without a loop.

The unknown is one function of the memory at the start and the address of an output cell. Its grammar has our modules,
the address, 0, 1, 2, and a choice by a value's being 0, which is all that a flag tells. An answer is right for every n
and every M, as a program is, but it is no program of the machine: it says nothing of how to go from cell to cell.

`LOOP_FREE` lists the problems of examples/suite that have such an answer. Everything else carries something from one
cell to the next, or follows pointers for as many steps as there are elements.

Examples are those of the search's pool, and fresh ones, in memories of 16 cells: numbers are bit vectors of four bits,
whose sums wrap around at M = 16 as ours do. A wrong cell joins the examples. cvc5 may build decision trees over its
examples, which is quick but may copy them, or enumerate expressions by their size alone: it has turns with both.

    .venv/bin/python benchmarks/search/sygus.py TASK|FILE [--timeout SECONDS] [--seed S]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nram.extensions import get_task
from nram.modules import PAPER_MODULES
from nram.search.counterexamples import CHECKS
from nram.search.instances import task_pool
from nram.tasks import Instance, Task

cvc5: Any = import_module("cvc5")  # its names are not known to type checkers
Kind = cvc5.Kind

LOOP_FREE = ("clamp", "replace", "rotate", "differences", "fill", "add_arrays", "exchange", "reverse_in_place")
BITS = 4
CELLS = 1 << BITS  # of every memory that cvc5 sees
FIRST_EXAMPLES = 4
FIRST_TURN = 2.0  # seconds; every further turn has twice as many
FRESH = 300  # instances of CELLS cells beside those of the pool

Expression = Callable[[Sequence[int], int], int]
"""The value of a cell after the run: of the memory before it, and the address."""


@dataclass(frozen=True)
class Expressed:
    """The result. Without an expression, the time ran out or cvc5 found none."""

    expression: Expression | None
    text: str
    seconds: float
    questions: int
    """To cvc5."""


def express(task: Task, seed: int, timeout: float) -> Expressed:
    """Find an expression that is right on the pool and generalises, until the timeout."""
    began = time.monotonic()
    known = _cells(task, seed)
    examples = {False: known[:FIRST_EXAMPLES], True: known[:FIRST_EXAMPLES]}
    seconds, questions = FIRST_TURN, 0
    while known and time.monotonic() < began + timeout:
        for trees, some in examples.items():
            end = min(time.monotonic() + seconds, began + timeout)
            while time.monotonic() < end:
                questions += 1
                asked = Question(trees, end - time.monotonic(), seed)
                body = asked.answer(some)
                if body is None:
                    break
                expression = asked.expression(body)
                wrong = next((one for one in known if one not in some and _is_wrong(expression, *one)), None)
                if wrong is not None:
                    some.append(wrong)
                elif not any(_is_wrong(expression, *one) for one in _fresh_cells(task, seed)):
                    return Expressed(expression, asked.text(body), time.monotonic() - began, questions)
                else:
                    break  # right wherever M is 16: cvc5 cannot be told what is wrong
        seconds *= 2
    return Expressed(None, "", time.monotonic() - began, questions)


Cell = tuple[tuple[int, ...], int, int]
"""The memory before, an address, and the value wanted there."""


def _cells(task: Task, seed: int) -> list[Cell]:
    """The output cells of all instances of CELLS cells, those of small instances first."""
    instances = [one for one in task_pool(task, seed).instances if len(one.input) == CELLS]
    fitting = [n for n in range(task.min_complexity, CELLS) if task.least_memory(n) <= CELLS]
    for n in fitting:
        instances += task.sample(n, FRESH // len(fitting), 31_000 + seed, CELLS)
    return list(dict.fromkeys(_of_instances(instances)))


def _fresh_cells(task: Task, seed: int) -> Iterator[Cell]:
    """Those of the instances on which the search checks a program, in memories of other sizes."""
    for n, count in CHECKS:
        if n >= task.min_complexity:
            for extra in (0, 1, n // 2 + 2, 2 * n + 5):
                yield from _of_instances(task.sample(n, count // 8, 77_000 + seed, task.least_memory(n) + extra))


def _of_instances(instances: Sequence[Instance]) -> Iterator[Cell]:
    for one in instances:
        yield from ((tuple(one.input), cell, one.output[cell]) for cell in one.cells)


def _is_wrong(expression: Expression, memory: Sequence[int], cell: int, wanted: int) -> bool:
    return expression(memory, cell) != wanted


class Question:
    """One question to cvc5. Every question has a solver of its own: it takes examples once."""

    def __init__(self, trees: bool, seconds: float, seed: int):
        self.solver = solver = cvc5.Solver()
        solver.setOption("sygus", "true")
        solver.setOption("sygus-enum", "fast")  # 0.06 s instead of 11.8 s on access
        solver.setOption("tlimit-per", str(max(1, int(1000 * seconds))))
        solver.setOption("seed", str(seed))
        solver.setLogic("BV")
        self.sort = solver.mkBitVectorSort(BITS)
        self.memory = [solver.mkVar(self.sort, f"m{i}") for i in range(CELLS)]
        self.address = solver.mkVar(self.sort, "cell")
        self.modules = {str(one): one for one in self._modules(trees)}

    def _modules(self, trees: bool) -> Iterator[Any]:
        """The modules as functions. Sums and differences are those of bit vectors, and INC and DEC follow from them."""
        term, number = self.solver.mkTerm, self._number
        x, y, z = (self.solver.mkVar(self.sort, name) for name in "xyz")
        found = self.memory[-1]
        for address in reversed(range(CELLS - 1)):
            found = term(Kind.ITE, term(Kind.EQUAL, x, number(address)), self.memory[address], found)
        yield self.solver.defineFun("READ", [*self.memory, x], self.sort, found)
        less, equal = term(Kind.BITVECTOR_ULT, x, y), term(Kind.EQUAL, x, y)
        yield self._module("LESS-THAN", [x, y], term(Kind.ITE, less, number(1), number(0)))
        yield self._module("EQUALITY-TEST", [x, y], term(Kind.ITE, equal, number(1), number(0)))
        yield self._module("MIN", [x, y], term(Kind.ITE, less, x, y))
        yield self._module("MAX", [x, y], term(Kind.ITE, less, y, x))
        chosen = term(Kind.ITE, term(Kind.EQUAL, x, number(0)), y, z)
        if not trees:  # the same without ITE, which cvc5 would take for the node of a tree
            zero = term(Kind.BITVECTOR_COMP, x, number(0))
            zero = term(self.solver.mkOp(Kind.BITVECTOR_ZERO_EXTEND, BITS - 1), zero)
            other = term(Kind.BITVECTOR_SUB, number(1), zero)
            parts = (term(Kind.BITVECTOR_MULT, zero, y), term(Kind.BITVECTOR_MULT, other, z))
            chosen = term(Kind.BITVECTOR_ADD, *parts)
        yield self._module("IF-ZERO", [x, y, z], chosen)

    def _module(self, name: str, arguments: list[Any], body: Any) -> Any:
        return self.solver.defineFun(name, arguments, self.sort, body)

    def _number(self, value: int) -> Any:
        return self.solver.mkBitVector(BITS, value)

    def answer(self, examples: Sequence[Cell]) -> Any:
        """The body of a function that is right on the examples, or None."""
        solver, term = self.solver, self.solver.mkTerm
        any_value = solver.mkVar(self.sort, "value")
        grammar = solver.mkGrammar([*self.memory, self.address], [any_value])
        rules = [*map(self._number, range(3)), self.address]
        rules += [term(kind, any_value, any_value) for kind in (Kind.BITVECTOR_ADD, Kind.BITVECTOR_SUB)]
        for name, module in self.modules.items():
            given = self.memory if name == "READ" else [any_value] * (2 if name == "IF-ZERO" else 1)
            rules.append(term(Kind.APPLY_UF, module, *given, any_value))
        grammar.addRules(any_value, rules)
        function = solver.synthFun("f", [*self.memory, self.address], self.sort, grammar)
        for memory, cell, wanted in examples:
            value = term(Kind.APPLY_UF, function, *map(self._number, (*memory, cell)))
            solver.addSygusConstraint(term(Kind.EQUAL, value, self._number(wanted)))
        if not solver.checkSynth().hasSolution():
            return None
        return solver.getSynthSolution(function)[1]  # of a lambda

    def expression(self, body: Any) -> Expression:
        """The same with our modules, for memories of any size."""

        def value(memory: Sequence[int], cell: int) -> int:
            return _value(body, memory, cell, {})

        return value

    def text(self, body: Any) -> str:
        everything = " ".join(f"m{i}" for i in range(CELLS)) + " "
        return str(body).replace(everything, "")


def _value(term: Any, memory: Sequence[int], cell: int, known: dict[int, int]) -> int:
    """The value of an expression, where sums wrap around at the size of this memory. `known` is by terms' numbers."""
    number = term.getId()
    if number not in known:
        known[number] = _computed(term, memory, cell, known)
    return known[number]


def _computed(term: Any, memory: Sequence[int], cell: int, known: dict[int, int]) -> int:
    kind, size = term.getKind(), len(memory)
    if kind == Kind.CONST_BITVECTOR:
        return int(term.getBitVectorValue(10)) % size
    if kind == Kind.VARIABLE:
        return cell
    if kind == Kind.APPLY_UF:
        name = str(term[0])
        if name == "READ":
            return memory[_value(term[term.getNumChildren() - 1], memory, cell, known)]
        given = [_value(one, memory, cell, known) for one in list(term)[1:]]
        return given[1 if given[0] == 0 else 2] if name == "IF-ZERO" else INTEGER[name](size, *given)
    given = [_value(one, memory, cell, known) for one in term]
    if kind == Kind.BITVECTOR_ADD:
        return sum(given) % size
    if kind == Kind.BITVECTOR_SUB:
        return (given[0] - given[1]) % size
    raise ValueError(f"cvc5 answers with {kind}, which is not in the grammar")


INTEGER = {module.name: module.integer for module in PAPER_MODULES}


def main() -> None:
    parser = argparse.ArgumentParser(description="Ask cvc5 for the output cells of a task, without a loop.")
    parser.add_argument("task")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    done = express(get_task(arguments.task), arguments.seed, arguments.timeout)
    summary = f"{done.questions} questions, {done.seconds:.1f} s"
    if done.expression is None:
        raise SystemExit(f"none found: {summary}")
    print(done.text)
    print(summary)


if __name__ == "__main__":
    main()
