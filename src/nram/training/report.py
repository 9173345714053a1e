"""The full evaluation of one controller: what `nram eval` reports."""

from collections.abc import Callable, Sequence
from typing import Any

from nram.limits import LIMIT_NAMES
from nram.machine import Controller
from nram.training.config import TrainConfig
from nram.training.evaluation import FAR, Mode, Trial, evaluate


def evaluation_report(
    config: TrainConfig,
    controller: Controller,
    *,
    count: int,
    seed: int,
    curve: Sequence[int],
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> dict[str, Any]:
    """Error and exact match on unseen instances.

    Under every limit at the trained complexity (soft and hard) and at FAR (hard); then at T(n), with complexities
    uniform up to each point of the curve.
    """
    trained = max(stage.max_complexity for stage in config.stages)
    modes: tuple[Mode, ...] = ("soft", "hard")
    jobs: list[tuple[Mode, int]] = [("soft", trained), ("hard", trained), ("hard", FAR)]
    points = sorted({trained, *curve})
    total = len(jobs) * len(LIMIT_NAMES) + len(points) * len(modes)
    done = 0

    def score(mode: Mode, complexity: int, limit: str, uniform: bool) -> dict[str, float]:
        nonlocal done
        progress(done, total, f"{mode}, n up to {complexity}, limit {limit}")
        done += 1
        trial = Trial(config.task, complexity, count, seed, "test", uniform)
        return evaluate(config, controller, trial, mode, limit)._asdict()

    perfection = [
        {"mode": mode, "max_complexity": complexity, "limit": limit, **score(mode, complexity, limit, False)}
        for mode, complexity in jobs
        for limit in LIMIT_NAMES
    ]
    curve_points = [{"max_complexity": n, **{mode: score(mode, n, "T", True) for mode in modes}} for n in points]
    progress(total, total, "done")

    def perfect(mode: str, complexity: int) -> bool:
        rows = [row for row in perfection if (row["mode"], row["max_complexity"]) == (mode, complexity)]
        return all(row["exact"] == 1.0 for row in rows)

    return {
        "task": config.task_name,
        "seed": config.seed,
        "instances": count,
        "test_seed": seed,
        "trained_up_to": trained,
        "far": FAR,
        "perfect": {
            "soft": perfect("soft", trained),
            "hard": perfect("hard", trained),
            "far": perfect("hard", FAR),
        },
        "perfection": perfection,
        "curve": curve_points,
    }
