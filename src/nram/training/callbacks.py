"""What a training run tells its caller while it works. No JAX here."""

from dataclasses import dataclass
from pathlib import Path

from nram.errors import NramError
from nram.training.config import TrainConfig


class Interrupted(NramError):
    """The user stopped the run; everything up to the last step is in the checkpoint."""


@dataclass(frozen=True)
class Report:
    """The state of a run after some steps: a line of metrics.jsonl."""

    stage: int
    step: int  # of the stage
    stage_steps: int
    stage_ends: bool  # all its steps are done, or enough members are solved
    max_complexity: int
    population: int
    levels: dict[int, int]  # members per curriculum level
    loss: float | None  # median over members, without those whose loss is not finite
    best_error: float  # the paper's error on the training batches, soft
    median_error: float
    best_exact: float
    solved_soft: float  # share of members
    solved_hard: float | None  # share of members that are perfect on the validation set, at the last check
    best_hard: float | None  # the best member's share of the validation set, as a program, at the last check
    best_halted: float | None  # the share of it on which that member stops by itself; None in a straight-through stage
    perfect: int  # members that passed an examination so far
    examined: int  # members that were examined at the last check
    failed: str | None  # how the others failed, as '3 at n = 50 (T), 1 soft (2T)'
    skipped: int  # updates that were not finite
    seconds: float  # so far, compiling included
    example_steps_per_s: float
    seconds_left: float  # of training at this rate, if no stage ends early
    peak_memory: int | None  # bytes of main memory that the process has used at most
    notice: str | None  # what the run said to the user at this report
    group: int = 0
    waits: bool = False  # the stage could end, and waits for members that also halt within T(n)
    group_name: str | None = None  # None: the run has no groups
    attempt: int = 0  # how often the group went back to its first stage, because none passed the examination
    restarts: int = 0  # islands of the group that restarted so far
    checks: int = 0  # looks at the validation set so far, of all groups
    budget_left: float | None = None  # seconds until the run is stopped; None: it has no budget

    @property
    def highest_level(self) -> int:
        return max(self.levels)


class TrainingCallbacks:
    """Progress callbacks; silent by default."""

    def started(self, config: TrainConfig, path: Path, device: str) -> None:
        """A run starts or continues. `ended` follows in any case."""

    def activity(self, text: str) -> None:
        """What the run is busy with until the next call, apart from training: compiling, examining."""

    def note(self, text: str) -> None:
        """Something worth a line happened."""

    def warning(self, text: str) -> None:
        """Something may change the result."""

    def report(self, report: Report) -> None:
        """Some more steps are done."""

    def ended(self) -> None:
        """The run is finished, stopped or failed."""
