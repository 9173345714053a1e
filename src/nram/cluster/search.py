"""A search whose chains run on this machine, or on a Ray cluster."""

from __future__ import annotations

from typing import Any

from nram.extras import require
from nram.search.callbacks import SILENT, SearchCallbacks
from nram.search.job import SearchJob
from nram.search.state import Outcome

MOST_AT_ONCE = 256
"""Chains that a cluster is given at once, more than a round has: it decides how many run, and may grow."""


def run_search(
    job: SearchJob,
    budget: float,
    *,
    address: str | None = None,
    workers: int | None = None,
    callbacks: SearchCallbacks = SILENT,
    **options: Any,
) -> Outcome:
    """Run a search as `SearchJob.run` does: on threads, or on the Ray cluster at this address."""
    if address is None:
        return job.run(budget, workers=workers, callbacks=callbacks, **options)
    require("cluster", "a search on a cluster")
    from nram.cluster.chains_on_ray import chains_on_ray  # imports Ray

    callbacks.note("starting Ray" if address == "local" else f"joining the Ray cluster at {address}")
    with chains_on_ray(address) as run_chain:
        return job.run(budget, workers=workers or MOST_AT_ONCE, callbacks=callbacks, run_chain=run_chain, **options)
