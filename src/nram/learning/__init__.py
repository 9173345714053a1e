"""Learning: a file of examples becomes a program, within a time budget.

    from nram.learning import learn_file

    learned = learn_file("sum.jsonl", "learned/sum", budget=60)
    print(learned.found, learned.program)

The way of the data:

    examples    read and checked, every problem with its line
    parts       the largest are held out
    by_search   programs that fit the rest; what is held out only judges them
    by_training runs of the trainer, on a task that draws from the rest
    report      what was shown, and nothing more

Importing this package imports neither JAX nor Numba.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nram.learning.learner import Learned, Method

__all__ = ["learn_file"]


def learn_file(
    examples: str | Path,
    out: str | Path,
    *,
    budget: float = 300.0,
    seed: int = 0,
    method: Method = "both",
    workers: int | None = None,
) -> Learned:
    """Learn a program from a file of examples, JSONL or CSV, quietly. Program, picture and report go to `out`."""
    from nram.learning.examples import read_examples
    from nram.learning.learner import Request, learn
    from nram.learning.watch import Watch

    request = Request(
        read_examples(Path(examples)), Path(out), budget=budget, seed=seed, method=method, workers=workers
    )
    return learn(request, Watch())
