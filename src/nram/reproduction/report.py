"""The figures as JSON and as text: the paper's table with our columns beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nram.limits import LIMIT_NAMES
from nram.programs.ir import ORIGINS, Origin
from nram.reproduction.examining import BEYOND, Examined, Pair, Plan, Row
from nram.reproduction.measuring import Measure
from nram.reproduction.paper import NOTES, SOURCE, TABLE
from nram.runtime import versions
from nram.tasks.base import Task

NOTHING = "-"


@dataclass(frozen=True)
class Reproduction:
    """The whole table."""

    plan: Plan
    rows: tuple[Row, ...]
    origins: tuple[Origin, ...] = ORIGINS
    """Those that were examined."""

    @property
    def trained(self) -> list[tuple[Task, Examined]]:
        """The tasks that have a trained model, with its figures."""
        return [(row.task, one) for row in self.rows if (one := row.of("trained")) is not None]

    def why_missing(self, origin: Origin) -> str:
        """Why a row has nothing of this origin."""
        if origin not in self.origins:
            return "not asked for"
        return "not trained yet" if origin == "trained" else "none in the zoo"


# ---- JSON


def to_json(table: Reproduction) -> dict[str, Any]:
    plan = table.plan
    beyond = [{"complexity": complexity, "instances": count} for complexity, count in BEYOND]
    return {
        "paper": SOURCE,
        "plan": {**asdict(plan), "count_at": plan.count_at, "beyond": beyond, "limits": list(LIMIT_NAMES)},
        "origins": list(table.origins),
        "versions": versions(),
        "tasks": [_row_to_json(table, row) for row in table.rows],
    }


def _row_to_json(table: Reproduction, row: Row) -> dict[str, Any]:
    models = {origin: row.of(origin) for origin in ORIGINS}
    paper = asdict(TABLE[row.task.name])
    del paper["task"]
    return {
        "task": row.task.name,
        "paper": paper,
        "status": "trained" if models["trained"] else table.why_missing("trained"),
        **{origin: None if one is None else _examined_to_json(one) for origin, one in models.items()},
    }


def _examined_to_json(examined: Examined) -> dict[str, Any]:
    model = examined.model
    return {
        "source": model.source,
        "made": model.made,
        "step_limit": str(model.limit),
        "missing": model.missing or None,
        "trained_up_to": model.trained_up_to if model.origin == "trained" else None,
        "at_trained_complexity": _pair_to_json(examined.trained),
        "at_far_complexity": _pair_to_json(examined.far),
        "beyond": [
            {
                "complexity": one.max_complexity,
                "instances": one.instances,
                "right_at_T": one.right_at_limit,
                "right_under_every_limit": one.right_under_every_limit,
            }
            for one in examined.beyond
        ],
        "curve": [_point_to_json(pair) for pair in examined.curve],
    }


def _pair_to_json(pair: Pair) -> dict[str, Any]:
    return {"soft": _measure_to_json(pair.soft), "hard": _measure_to_json(pair.hard), "same_outputs": pair.same}


def _measure_to_json(measure: Measure | None) -> dict[str, Any] | None:
    return measure and {
        "max_complexity": measure.max_complexity,
        "instances": measure.instances,
        "limits": {name: _figures(measure, name) for name in measure.error},
        "right_at_T": measure.right_at_limit,
        "right_under_every_limit": measure.right_under_every_limit,
    }


def _point_to_json(pair: Pair) -> dict[str, Any]:
    return {
        "max_complexity": pair.max_complexity,
        "instances": pair.instances,
        "soft": pair.soft and _figures(pair.soft, "T"),
        "hard": pair.hard and _figures(pair.hard, "T"),
    }


def _figures(measure: Measure, limit: str) -> dict[str, Any]:
    return {"error": measure.error[limit], "exact": measure.exact(limit), "wrong": measure.wrong[limit]}


# ---- words


def table_cells(table: Reproduction) -> list[list[str]]:
    """Table 1: the first row is the heading."""
    others: list[Origin] = [origin for origin in ORIGINS[1:] if any(row.of(origin) for row in table.rows)]
    heading = ["task", "paper: trained on", "ours: n up to", "paper: train error", "ours: train error"]
    heading += ["paper: generalisation", f"ours: at n = {table.plan.at}", "paper: discretisation"]
    heading += ["ours: discretisation", "ours: program of the network", *(f"{origin} program" for origin in others)]
    rows = []
    for row in table.rows:
        paper, trained = TABLE[row.task.name], row.of("trained")
        ours = _trained_cells(trained) if trained else [NOTHING, table.why_missing("trained"), *[NOTHING] * 3]
        cells = [row.task.name, paper.complexity, ours[0], paper.train_error, ours[1], paper.generalisation, ours[2]]
        cells += [paper.discretisation, ours[3], ours[4]]
        found = [row.of(origin) for origin in others]
        rows.append(cells + ["none in the zoo" if one is None else _reach(one) for one in found])
    return [heading, *rows]


def line_cells(table: Reproduction) -> list[list[str]]:
    """The same table with fewer columns, for terminals: a line for the paper and one for each origin."""
    rows = [["task", "", "trained on", "train error", "generalisation", "discretisation", "program"]]
    for row in table.rows:
        paper, trained = TABLE[row.task.name], row.of("trained")
        theirs = [paper.complexity, paper.train_error, paper.generalisation, paper.discretisation]
        rows.append([row.task.name, "paper", *theirs, ""])
        if trained is None:
            rows.append(["", "trained", table.why_missing("trained"), *[""] * 4])
        else:
            complexity, *cells = _trained_cells(trained)
            rows.append(["", "trained", f"n <= {complexity}", *cells])
        for one in row.examined:
            if one is not trained:
                rows.append(["", one.model.origin, *[""] * 4, _reach(one)])
    return rows


def _trained_cells(examined: Examined) -> list[str]:
    trained, far = examined.trained, examined.far
    return [
        str(examined.model.trained_up_to),
        _train_error(trained.soft),
        _generalisation(far.soft),
        _discretisation(trained, far),
        _reach(examined),
    ]


def _train_error(measure: Measure | None) -> str:
    if measure is None:
        return "no weights"
    words = percent(measure.error["T"])
    if measure.error["T"] == 0 and not measure.right_at_limit:
        words += f", {percent(measure.exact())} exact"
    return words + (" at T only" if measure.right_at_limit and not measure.right_under_every_limit else "")


def _generalisation(measure: Measure | None) -> str:
    if measure is None:
        return "no weights"
    if measure.right_under_every_limit:
        return "perfect"
    if measure.right_at_limit:
        return "perfect at T only"
    return f"error {percent(measure.error['T'])}, {percent(measure.exact())} exact"


def _discretisation(trained: Pair, far: Pair) -> str:
    """'Perfect' as in the paper: the same outputs on all instances, right or wrong."""
    if trained.hard is None or far.hard is None:
        return "no program"
    if trained.soft is None or far.soft is None:
        return "no weights"
    if all(pair.same == pair.instances for pair in (trained, far)):
        return "perfect"
    if trained.hard.right_under_every_limit and far.hard.right_under_every_limit:
        return "better: no error left"
    errors = [percent(measure.error["T"]) for measure in (trained.hard, far.hard)]
    return f"error {errors[0]}, {errors[1]} at n = {far.max_complexity}"


def _reach(examined: Examined) -> str:
    """Up to which size the program made no mistake."""
    measures = [pair.hard for pair in (examined.trained, examined.far) if pair.hard is not None]
    measures = sorted([*measures, *examined.beyond], key=lambda one: one.max_complexity)
    if not measures:
        return "no program"
    everywhere = _largest(measures, [one.right_under_every_limit for one in measures])
    at_limit = _largest(measures, [one.right_at_limit for one in measures])
    if at_limit is None:
        return f"wrong at n = {measures[0].max_complexity:,}"
    if everywhere == at_limit:
        return f"all right to n = {at_limit:,}"
    words = "" if everywhere is None else f"all right to n = {everywhere:,}, "
    return f"{words}at T only to n = {at_limit:,}"


def _largest(measures: Sequence[Measure], right: Sequence[bool]) -> int | None:
    """The size up to which all are right."""
    count = right.index(False) if False in right else len(right)
    return measures[count - 1].max_complexity if count else None


def percent(share: float) -> str:
    """The share in percent. It is never rounded to 0 or 100%."""
    if share in (0, 1):
        return "0" if share == 0 else "100%"
    digits = next((d for d in range(1, 7) if 0 < round(100 * share, d) < 100), 7)
    return f"{100 * share:.{digits}f}%"


def curve_cells(table: Reproduction) -> list[list[str]]:
    """The figure as a table: a line for each trained network and one for its program."""
    points = sorted({pair.max_complexity for _, one in table.trained for pair in one.curve})
    rows = [["task", "", *(f"n <= {point}" for point in points)]]
    for task, one in table.trained:
        for mode, words in (("soft", "network"), ("hard", "program")):
            found = {pair.max_complexity: getattr(pair, mode) for pair in one.curve}
            measures = [found.get(point) for point in points]
            cells = [NOTHING if measure is None else percent(measure.error["T"]) for measure in measures]
            rows.append([task.name if mode == "soft" else "", words, *cells])
    return rows


def detail_cells(table: Reproduction) -> list[list[str]]:
    """Every figure under every limit: a line for each model, executor and size."""
    rows = [["model", "T(n)", "run as", "n", "instances", *LIMIT_NAMES]]
    for row in table.rows:
        for one in row.examined:
            head = [one.model.source, str(one.model.limit)]
            trained, far = one.trained, one.far
            lines = [("network", "<=", trained.soft), ("program", "<=", trained.hard)]
            lines += [("network", "=", far.soft), ("program", "=", far.hard)]
            lines += [("program", "=", large) for large in one.beyond]
            for words, sign, measure in lines:
                if measure is not None:
                    size, count = f"{sign} {measure.max_complexity:,}", f"{measure.instances:,}"
                    rows.append([*head, words, size, count, *_under_limits(measure)])
    return rows


def _under_limits(measure: Measure) -> list[str]:
    return [
        "all right" if not wrong else f"{wrong:,} wrong, error {percent(measure.error[name])}"
        for name, wrong in measure.wrong.items()
    ]


def legend(table: Reproduction) -> list[str]:
    plan = table.plan
    sizes = ", ".join(f"{count} at n = {n:,}" for n, count in BEYOND)
    return [
        f"Columns of the paper: {SOURCE}.",
        *NOTES,
        f"Ours: {plan.count:,} unseen instances at the trained complexity, {plan.count_at:,} at n = {plan.at} (half of "
        f"complexities uniform up to it, half of it itself), seed {plan.seed}; programs also on {sizes}.",
        "Ours is 'perfect' where no instance is wrong under any of the step limits T(n), 2T(n) and 20n+200; 'at T "
        "only' where that holds when the machine is stopped at T(n). Errors are those at T(n): wrong cells among "
        "those that should be modified; 'exact' is the share of instances without a wrong output cell.",
        "Discretisation is 'perfect' where program and network put out the same on all these instances, under every "
        "limit. A program is 'all right to n' if no instance was wrong under any limit at any of the sizes above, up "
        "to that one. Searched programs were found without a network: they say nothing of training.",
    ]


# ---- markdown


def to_markdown(table: Reproduction, figure: str) -> str:
    parts = ["# Table 1 of the paper, and ours", _markdown(table_cells(table)), *legend(table)]
    if table.trained:
        parts += ["## Generalisation", f"![error against maximal complexity]({figure})", _markdown(curve_cells(table))]
        parts.append(
            f"Error at T(n) on {table.plan.count_at:,} instances, complexities uniform up to the maximum; 'program' is "
            "the network's discretised form."
        )
    parts += ["## Every limit", _markdown(detail_cells(table))]
    return "\n\n".join(parts) + "\n"


def _markdown(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])
