"""Find the part of a guessed invariant that proves itself (the Houdini algorithm), and of that the part that is needed.

Obligations are made once, with all facts that were guessed. Then facts are only left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nram.programs.prove.deadline import check_time
from nram.programs.prove.invariant import Invariant
from nram.programs.prove.obligations import Obligation, Problem
from nram.programs.prove.questions import Solver, Translated
from nram.programs.prove.step import row_of
from nram.terms import FALSE, TRUE, Term, both, calls, negated

Numbers = list[set[int]]
"""Of facts, for each place."""


class Houdini:
    """The facts of a guess that are left. A fact is known by the index of its place and its number there."""

    def __init__(self, problem: Problem, guess: Invariant, deadline: float):
        self.problem, self.guess, self.deadline = problem, guess, deadline
        self.translated: Translated = {}
        self.start = problem.start(guess)
        self.obligations: list[list[Obligation]] = []
        """Of each place, once they have been made."""
        self.left = [list(range(len(facts))) for facts in guess.facts]

    def invariant(self) -> Invariant:
        """With the facts that are left."""
        return self._with(self.left)

    def _with(self, kept: Sequence[Iterable[int]]) -> Invariant:
        facts = (tuple(own[i] for i in sorted(numbers)) for own, numbers in zip(self.guess.facts, kept, strict=True))
        return replace(self.guess, facts=tuple(facts))

    def _solver(self, source: int | None, obligation: Obligation) -> Solver:
        """With what is known, and the facts that are left."""
        solver = Solver(self.deadline, self.translated)
        solver.add(*obligation.known)
        if source is not None:
            solver.add(*(obligation.facts[i] for i in self.left[source]))
        return solver

    def _answer(self, source: int, obligation: Obligation) -> str:
        return self._solver(source, obligation).check(negated(both(*obligation.goals)))

    # ---- whether the claim follows

    def refuted(self) -> tuple[str, ...]:
        """What does not follow from all facts that were guessed, at the first such place: no part of them would do."""
        for index in range(len(self.guess.places)):
            check_time(self.deadline)
            own = list(self.problem.at_place(self.guess, index))
            self.obligations.append(own)
            wrong = tuple(one.name for one in own if one.target is None and self._answer(index, one) == "sat")
            if wrong:
                return wrong
        return ()

    def failures(self) -> tuple[str, ...]:
        """What the facts that are left do not prove."""
        return tuple(one.name for index, one in self._claimed() if self._answer(index, one) != "unsat")

    def _claimed(self) -> list[tuple[int, Obligation]]:
        """The obligations that are not about facts."""
        return [(index, one) for index, own in enumerate(self.obligations) for one in own if one.target is None]

    # ---- facts that do not follow

    def drop(self) -> None:
        """Drop the facts that do not follow, until the rest proves itself. `refuted` comes first."""
        if self.start.target is not None:
            self._drop_unproven(None, self.start)
        # Nothing follows a place that halts, so its facts can wait until those of the others are settled.
        final = {i for i, place in enumerate(self.guess.places) if row_of(self.problem.program, place.row).halt}
        waiting = dict.fromkeys(range(len(self.left)))
        while waiting:
            check_time(self.deadline)
            index = next(iter(waiting))
            del waiting[index]
            for one in self.obligations[index]:
                if one.target is not None and one.target not in final and self._drop_unproven(index, one):
                    waiting[one.target] = None
        for index, own in enumerate(self.obligations):
            for one in own:
                if one.target in final:
                    self._drop_unproven(index, one)

    def _drop_unproven(self, source: int | None, obligation: Obligation) -> bool:
        """Whether facts were dropped."""
        assert obligation.target is not None
        before = self.left[obligation.target]
        solver = self._solver(source, obligation)
        goals = obligation.goals
        numbers = [i for i in before if goals[i] != FALSE]
        while numbers:
            answer = solver.check(negated(both(*(goals[i] for i in numbers))))
            if answer == "unsat":
                break
            check_time(self.deadline)
            wrong = set(solver.false_in_model(goals[i] for i in numbers)) if answer == "sat" else set()
            if not wrong:  # the solver does not know: ask for each
                numbers = [i for i in numbers if goals[i] == TRUE or solver.check(negated(goals[i])) == "unsat"]
                break
            numbers = [i for at, i in enumerate(numbers) if at not in wrong]
        self.left[obligation.target] = numbers
        return len(numbers) < len(before)

    # ---- facts that are not needed

    def needed_part(self) -> Invariant:
        """The facts without which the claim, or another needed fact, would not be proven."""
        needed: Numbers = [set() for _ in self.left]
        wanted: dict[tuple[int, int], list[Term]] = {}
        """Goals that have to follow, by place and number of the obligation."""
        for index, own in enumerate(self.obligations):
            for at, one in enumerate(own):
                if one.target is None:
                    wanted[index, at] = list(one.goals)
        while wanted:
            while wanted:
                check_time(self.deadline)
                (index, at), goals = wanted.popitem()
                new = self._core(index, self.obligations[index][at], goals, needed[index])
                self._need(index, new, needed, wanted)
            for index, new in self._missing(needed):
                self._need(index, new, needed, wanted)
        return self._with(needed)

    def _need(self, place: int, new: set[int], needed: Numbers, wanted: dict[tuple[int, int], list[Term]]) -> None:
        """Further facts of a place are needed: they have to follow wherever runs come from."""
        needed[place] |= new
        for source, own in enumerate(self.obligations):
            for at, one in enumerate(own):
                if new and one.target == place:
                    wanted.setdefault((source, at), []).extend(one.goals[i] for i in sorted(new))

    def _missing(self, needed: Numbers) -> list[tuple[int, set[int]]]:
        """Facts that are needed for the cells that they mention: assumptions are put in at these.

        The obligations of the needed facts alone mention fewer cells than those of all facts.
        """
        found = []
        for index in range(len(self.left)):
            check_time(self.deadline)
            for one in self.problem.at_place(self._with(needed), index):
                if not self._proven(one):
                    found += self._restored(index, one, needed)
        return found

    def _restored(self, index: int, obligation: Obligation, needed: Numbers) -> list[tuple[int, set[int]]]:
        """One fact with which the obligation is proven again, of those that mention cells, or else all of them."""
        places = {index, index if obligation.target is None else obligation.target}
        more = [(i, {at}) for i in sorted(places) for at in self.left[i] if at not in needed[i] and self._calls(i, at)]
        for place, new in more:
            check_time(self.deadline)
            tried = [numbers | new if i == place else numbers for i, numbers in enumerate(needed)]
            again = self.problem.at_place(self._with(tried), index)
            if all(self._proven(one) for one in again if one.name == obligation.name):
                return [(place, new)]
        return more

    def _calls(self, place: int, number: int) -> bool:
        return bool(calls([self.guess.facts[place][number]]))

    def _proven(self, obligation: Obligation) -> bool:
        solver = Solver(self.deadline, self.translated)
        solver.add(*obligation.known, *obligation.facts)
        return solver.check(negated(both(*obligation.goals))) == "unsat"

    def _core(self, source: int, obligation: Obligation, goals: list[Term], needed: set[int]) -> set[int]:
        """Further facts that are needed for the goals; all that are left if the solver does not say which."""
        goal = negated(both(*goals))
        solver = Solver(self.deadline, self.translated)
        solver.add(*obligation.known, *(obligation.facts[i] for i in sorted(needed)), goal)
        others = [i for i in self.left[source] if i not in needed]
        return {others[i] for i in solver.core([obligation.facts[i] for i in others])}
