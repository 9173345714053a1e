"""Configurations of a single group, for tests in which the three groups of the recipe would only cost time."""

from pathlib import Path

import nram
from nram.training.config import TrainConfig
from nram.training.settings import load_config

CONFIGS = Path(nram.__file__).parent / "examples" / "configs"
PLAIN = CONFIGS / "access.toml"  # two stages of few members; it suits every task


def plain_config(task: str, *overrides: str, seed: int | None = None) -> TrainConfig:
    """The configuration in the example file of the task, or in that of access."""
    file = CONFIGS / f"{task}.toml"
    return load_config(task, file=file if file.is_file() else PLAIN, overrides=list(overrides), seed=seed)
