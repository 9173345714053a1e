"""Lexicase selection: single examples decide who stays and who is cloned, not the mean error.

A member is chosen by examples in random order: of the candidates that are left, only the best at the next example stay,
until one is left. A member that alone solves a rare example is chosen now and then, however bad it is at the others; a
mean error would lose it.
"""

import numpy as np

TOLERANCE = 0.02  # errors that exceed the least by no more than this are equally good


def choose_by_examples(errors: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The rows of errors [members, examples] to be replaced, `count` of them, and a parent for each.

    The first row always stays.
    """
    examples = np.where(np.isfinite(errors), errors, np.inf).T.copy()
    rest, staying = list(range(1, len(errors))), [0]
    while len(rest) > count:
        chosen = _choose(examples, np.array(rest), rng)
        staying.append(chosen)
        rest.remove(chosen)
    stay = np.array(staying)
    return np.array(rest, int), np.array([_choose(examples, stay, rng) for _ in rest], int)


def _choose(examples: np.ndarray, candidates: np.ndarray, rng: np.random.Generator) -> int:
    for example in rng.permutation(len(examples)):
        errors = examples[example, candidates]
        candidates = candidates[errors <= errors.min() + TOLERANCE]
        if len(candidates) == 1:
            break
    return int(candidates[rng.integers(len(candidates))])
