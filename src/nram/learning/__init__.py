"""Learning: a file of examples becomes a program, within a time budget. `nram.learn` and `nram learn` call `job`.

job           the whole way, and the folder in which everything is kept
parts         the largest examples are held out
by_search     programs that fit the rest; the held-out examples only test them
by_training   runs of the trainer, on a task that draws from the rest
review        what the examples leave open; columns reads the numbers and lists in their memories
kept          several programs that fit, compared on fresh inputs (probes), and how their steps grow
asking        questions where these programs disagree, and their answers
report        what was shown, and nothing more

Importing this package imports neither JAX nor Numba.
"""

from typing import Any

from nram.deprecated import renamed


def __getattr__(name: str) -> Any:
    if name == "learn_file":
        return renamed("nram.learning.learn_file", "nram.learn")
    raise AttributeError(f"module 'nram.learning' has no attribute {name!r}")
