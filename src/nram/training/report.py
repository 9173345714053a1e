"""What `nram eval` reports of one trained controller. This module imports JAX."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from nram.extensions import known_task
from nram.limits import LIMIT_NAMES, wrong_cells
from nram.machine import Controller, run_hard
from nram.training.config import TrainConfig
from nram.training.evaluation import Mode, Trial, evaluate, far_of
from nram.training.member import wiring_of


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

    Under every limit at the trained complexity (soft and hard) and far beyond it (hard); then at T(n), with
    complexities uniform up to each point of the curve.
    """
    trained, far = config.trained_up_to, far_of(config)
    modes: tuple[Mode, ...] = ("soft", "hard")
    parts: dict[str, tuple[Mode, int]] = {"soft": ("soft", trained), "hard": ("hard", trained), "far": ("hard", far)}
    points = sorted({trained, *curve})
    total = len(parts) * len(LIMIT_NAMES) + len(points) * len(modes)
    done = 0

    def score(mode: Mode, complexity: int, limit: str, uniform: bool) -> dict[str, float]:
        nonlocal done
        progress(done, total, f"{mode}, n up to {complexity}, limit {limit}")
        done += 1
        trial = Trial(config.task, complexity, count, seed, "test", uniform)
        score = evaluate(config, controller, trial, mode, limit)
        return {"error": score.error, "exact": score.exact, "halted": score.halted}

    rows = {
        part: [
            {"mode": mode, "max_complexity": complexity, "limit": limit, **score(mode, complexity, limit, False)}
            for limit in LIMIT_NAMES
        ]
        for part, (mode, complexity) in parts.items()
    }
    curve_points = [{"max_complexity": n, **{mode: score(mode, n, "T", True) for mode in modes}} for n in points]
    progress(total, total, "done")
    return {
        "task": config.task_name,
        "seed": config.seed,
        "instances": count,
        "test_seed": seed,
        "trained_up_to": trained,
        "far": far,
        "perfect": {part: all(row["exact"] == 1.0 for row in found) for part, found in rows.items()},
        "perfection": [row for found in rows.values() for row in found],
        "curve": curve_points,
    }


def solve(config: TrainConfig, controller: Controller, complexity: int, seed: int) -> dict[str, Any]:
    """Run the discretised machine on one instance, under the longest of the three step limits."""
    task = known_task(config.task)
    instance = task.sample(complexity, 1, seed)[0]
    limit = task.step_limit.longest(complexity)
    result = run_hard(controller, wiring_of(config.machine), jnp.array(instance.input), limit)
    memory = [int(value) for value in result.memory]
    return {
        "task": task.name,
        "input": instance.input,
        "memory": memory,
        "expected": instance.output,
        "cells": instance.cells,
        "right": not wrong_cells(memory, instance),
        "steps": int(result.steps),
        "halted": bool(result.halted),
    }
