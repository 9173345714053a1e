"""The two solvers that check certificates. Both read the same text in SMT-LIB 2, and they share no code."""

from __future__ import annotations

from typing import Any

from nram.extras import missing, require
from nram.lazy import z3

MOST_SECONDS = 60  # for one obligation


def solvers() -> list[str]:
    """The names of those that are installed; z3 is needed."""
    require("verify", "a proof")
    return ["z3"] if missing("proof") else ["z3", "cvc5"]


def answer(solver: str, text: str) -> str:
    """What the solver says about a file: unsat, sat, unknown, or why it cannot read it."""
    try:
        return _z3(text) if solver == "z3" else _cvc5(text)
    except (z3.Z3Exception, RuntimeError) as error:  # cvc5 raises RuntimeError
        return f"error: {' '.join(str(error).split())[:200]}"


def _z3(text: str) -> str:
    solver = z3.Solver()
    solver.set("timeout", 1000 * MOST_SECONDS)
    solver.from_string(text)
    found = str(solver.check())
    if found == "unknown" and "keyboard" in solver.reason_unknown():  # z3 swallows Ctrl-C
        raise KeyboardInterrupt
    return found


def _cvc5(text: str) -> str:
    import cvc5 as library  # it has no types

    cvc5: Any = library
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("tlimit-per", str(1000 * MOST_SECONDS))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
    symbols, said = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        said += str(command.invoke(solver, symbols))
    return said.strip() or "unknown"
