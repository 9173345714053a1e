"""Who stays and who is cloned when every example counts by itself, instead of the mean of all (lexicase selection).

A member is chosen by examples in random sequence: of those that are left, only the best at the next example stay, until
one is left. So what alone can do a rare thing is chosen now and then, however bad at the rest; by the mean it is lost.
"""

import numpy as np

AS_GOOD = 0.02  # an error that is not larger than the least by more


def by_examples(errors: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The rows of errors [members, examples] that are replaced, `count` of them, and for each the row of which it
    becomes a clone. The first row always stays."""
    examples = np.where(np.isfinite(errors), errors, np.inf).T.copy()
    rest, staying = list(range(1, len(errors))), [0]
    while len(rest) > count:
        chosen = _choose(examples, np.array(rest), rng)
        staying.append(chosen)
        rest.remove(chosen)
    stay = np.array(staying)
    return np.array(rest, int), np.array([_choose(examples, stay, rng) for _ in rest], int)


def _choose(examples: np.ndarray, left: np.ndarray, rng: np.random.Generator) -> int:
    for example in rng.permutation(len(examples)):
        own = examples[example, left]
        left = left[own <= own.min() + AS_GOOD]
        if len(left) == 1:
            break
    return int(left[rng.integers(len(left))])
