"""The configuration of a training run: frozen dataclasses. `settings.py` fills them."""

from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, Literal

from nram.errors import UsageError
from nram.modules import MODULE_NAMES, select_modules
from nram.tasks import get_task
from nram.training.ranges import Range


@dataclass(frozen=True)
class MachineConfig:
    """The structure of the machine: shared by all members of a population."""

    registers: int = 4  # R; the controller sees of each whether it is 0
    repeats: int = 1  # how often the module sequence is repeated
    modules: tuple[str, ...] = MODULE_NAMES  # names, or files of one's own, in the order of the circuit
    controller: Literal["mlp", "lstm", "automaton"] = "mlp"  # what chooses the circuits
    hidden: int = 32  # width of every layer of the controller
    states: int = 4  # of the automaton controller
    renormalise: bool = True  # the paper's renormalising layer


@dataclass(frozen=True)
class HyperConfig:
    """What every member draws for itself. A fixed 0 (for the clips: inf) switches a technique off."""

    learning_rate: Range = Range((5e-3, 3e-2), continuous=True)  # of Adam
    beta1: Range = Range((0.9,))  # of Adam: how slowly its mean of gradients moves
    beta2: Range = Range((0.95, 0.99))  # of Adam: the same of their squares
    clip_activations: Range = Range((1.0, 10.0, float("inf")))  # C1 of the paper
    clip_gradient: Range = Range((1.0, 20.0), continuous=True)  # C2
    noise: Range = Range((0.0,))  # eta: the variance of the gradient noise is eta / (1 + t)^0.55
    entropy_bonus: Range = Range((0.05, 1.0), continuous=True)  # its weight at the start
    entropy_half_life: Range = Range((40.0, 150.0), continuous=True)  # steps until it has halved
    entropy_penalty: Range = Range((0.03, 0.3), continuous=True)  # the late penalty's weight
    time_penalty: Range = Range((0.003, 0.1), continuous=True)  # weight of the share of its steps a member uses
    penalty_start: Range = Range((400.0,))  # the step from which both penalties count
    output_scale: Range = Range((1.0, 3.0), continuous=True)  # of the controller's last layer at the start


@dataclass(frozen=True)
class CurriculumConfig:
    """The paper's appendix: a level D per member, raised when the error falls below a threshold."""

    enabled: bool = True  # off: complexities uniform over the whole range
    start: int = 1  # the first level (at least the task's smallest complexity)
    threshold: float = 0.1  # share of wrong examples, a moving average, under which D is raised
    interval: int = 20  # at least so many steps between two raises


@dataclass(frozen=True)
class StageConfig:
    """One stage: a size of problem, a population, a number of steps."""

    max_complexity: int  # the largest n of its examples, and of the curriculum
    steps: int  # of training, a batch each
    population: int  # members trained side by side
    extra_memory: int = 0  # cells beyond the least that max_complexity needs
    extra_steps: int = 0  # added to T(n)
    step_slack: int = 8  # up to so many steps are added besides, at random, so that halting is learned
    hard: bool = False  # forwards every wire takes its most probable value; only gradients see the others
    keep: int | None = None  # how many of the stage before are cloned; None: a quarter of the population
    cull: float = 0.0  # share of the members that clones of the best replace at every check
    forget: float = 1.0  # wires that such a clone draws anew, on average
    waver: float = 0.0  # up to this share of its wires such a clone makes undecided, keeping their first choice
    hardness: float = 4.0  # the larger, the better a member must fit before its discrete form counts in the culling
    sharing: float = 0.0  # the larger, the more an example counts in the culling that few members of an island can do
    lexicase: bool = False  # in the culling every example counts by itself, in random sequence, instead of their mean
    islands: int = 1  # groups of members that are culled and cloned each by itself
    patience: int = 0  # checks without progress after which an island starts anew; 0: never
    stop_at: int = 0  # end the stage once so many members are perfect on the validation set; 0: never

    @property
    def kept(self) -> int:
        return max(1, self.population // 4) if self.keep is None else self.keep


@dataclass(frozen=True)
class TrainConfig:
    """Everything that determines a run's result, but for the machine it runs on."""

    task: str  # its name, or the whole path of its file
    seed: int = 0  # of everything that is drawn
    batch: int = 32  # examples of a training step
    loss: Literal["expected", "average"] = "expected"  # the paper's loss, or the one of its footnote
    scored_weight: float = 1.0  # weight of the cells to be modified against the other output cells
    epsilon: float = 1e-6  # inside every logarithm
    steps_per_item: int | None = None  # T(n) = steps_per_item * n + steps_constant; None: the task's own
    steps_constant: int | None = None  # as above
    check_every: int = 100  # steps between two looks at the validation set
    validation: int = 192  # validation instances
    jitter: float = 1.5  # clones' hyperparameters are multiplied by up to this factor, or divided by it
    machine: MachineConfig = MachineConfig()  # shared by all members
    hyper: HyperConfig = HyperConfig()  # drawn by every member
    curriculum: CurriculumConfig = CurriculumConfig()  # from small problems to large ones
    stages: tuple[StageConfig, ...] = field(default=(StageConfig(3, 1000, 32),))  # one after another

    @property
    def task_name(self) -> str:
        return get_task(self.task).name

    def step_limit(self, n: Any) -> Any:
        """The T(n) of training."""
        default = get_task(self.task).step_limit
        per_item = default.per_item if self.steps_per_item is None else self.steps_per_item
        constant = default.constant if self.steps_constant is None else self.steps_constant
        return per_item * n + constant

    def memory_size(self, stage: StageConfig) -> int:
        return get_task(self.task).least_memory(stage.max_complexity) + stage.extra_memory

    def loop_steps(self, stage: StageConfig) -> int:
        """The length of the compiled loop over time."""
        return self.step_limit(stage.max_complexity) + stage.extra_steps + stage.step_slack


EXAMINED = 4  # members examined for perfection, at a check of the last stage and at the end


def problems_of(config: TrainConfig) -> list[str]:
    """What is well formed but cannot work, a line each."""
    task, machine = get_task(config.task), config.machine
    problems = []

    def need(condition: bool, message: str) -> None:
        if not condition:
            problems.append(message)

    need(machine.registers >= 1, f"machine.registers is {machine.registers}: at least 1 is needed")
    need(machine.hidden >= 1, f"machine.hidden is {machine.hidden}: at least 1 is needed")
    need(machine.states >= 1, f"machine.states is {machine.states}: at least 1 is needed")
    try:
        select_modules(machine.modules, machine.repeats)
    except UsageError as error:
        problems.append(f"machine: {error}")
    need(0 <= config.seed < 2**32, f"seed is {config.seed}: it must lie between 0 and {2**32 - 1}")
    need(config.batch >= 1, f"batch is {config.batch}: at least 1 is needed")
    need(config.check_every >= 1, f"check_every is {config.check_every}: at least 1 is needed")
    need(config.validation >= 8, f"validation is {config.validation}: at least 8 instances are needed")
    need(config.jitter >= 1, f"jitter is {config.jitter}: a factor of at least 1 is needed")
    need(config.epsilon > 0, f"epsilon is {config.epsilon}: it must be positive")
    need(config.scored_weight > 0, f"scored_weight is {config.scored_weight}: it must be positive")
    need(0 < config.curriculum.threshold < 1, "curriculum.threshold must lie between 0 and 1")
    for field_ in fields(HyperConfig):
        endless = inf in getattr(config.hyper, field_.name).values
        need(not endless or field_.name.startswith("clip_"), f"hyper.{field_.name} must be finite")
    for name in ("beta1", "beta2"):
        need(max(getattr(config.hyper, name).values) < 1, f"hyper.{name} must be smaller than 1")
    need(min(config.hyper.entropy_half_life.values) > 0, "hyper.entropy_half_life must be positive")
    need(config.curriculum.interval >= 0, "curriculum.interval must not be negative")
    need(len(config.stages) > 0, "at least one stage is needed")
    need(
        not config.stages or not config.stages[-1].hard,
        "the last stage is hard, which leaves wires undecided: let a soft one follow, in which they are made crisp",
    )
    need(
        config.step_limit(task.min_complexity) >= 1,
        "steps_constant leaves no step at the smallest complexity",
    )
    for index, stage in enumerate(config.stages):
        where = f"stages.{index}"
        need(
            stage.max_complexity >= task.min_complexity,
            f"{where}.max_complexity is {stage.max_complexity}: {task.name} starts at {task.min_complexity}",
        )
        need(
            not stage.hard or machine.controller != "automaton",
            f"{where}.hard: the states of the automaton are soft; take another controller",
        )
        need(
            not stage.hard or config.loss == "expected",
            f"{where}.hard: a machine that decides when to stop has nothing to average; take loss=expected",
        )
        need(stage.steps >= 1, f"{where}.steps is {stage.steps}: at least 1 is needed")
        need(stage.population >= 1, f"{where}.population is {stage.population}: at least 1 is needed")
        if index == len(config.stages) - 1:
            need(
                stage.stop_at <= EXAMINED,
                f"{where}.stop_at is {stage.stop_at}: only {EXAMINED} members are examined in the last stage",
            )
        need(0 <= stage.cull <= 0.5, f"{where}.cull is {stage.cull}: it must lie between 0 and 0.5")
        need(0 <= stage.forget < inf, f"{where}.forget is {stage.forget}: it must be finite and not negative")
        need(1 < stage.hardness < inf, f"{where}.hardness is {stage.hardness}: it must be finite and above 1")
        need(0 <= stage.waver <= 1, f"{where}.waver is {stage.waver}: it must lie between 0 and 1")
        need(0 <= stage.sharing < inf, f"{where}.sharing is {stage.sharing}: it must be finite and not negative")
        need(
            not stage.lexicase or stage.cull > 0,
            f"{where}.lexicase is true: it is about culling, so it needs {where}.cull, e.g. 0.25",
        )
        island = stage.population // max(stage.islands, 1)
        need(
            stage.cull == 0 or stage.cull * island >= 1,
            f"{where}.cull is {stage.cull}: of an island of {island} that is less than one member",
        )
        need(
            stage.patience == 0 or stage.islands > 1,
            f"{where}.patience is {stage.patience}: a single island never starts anew, so it needs more islands, or 0",
        )
        need(stage.patience >= 0, f"{where}.patience is {stage.patience}: it must not be negative")
        need(
            stage.islands >= 1 and stage.population % max(stage.islands, 1) == 0,
            f"{where}.islands is {stage.islands}: it must divide the population of {stage.population}",
        )
        need(stage.stop_at >= 0, f"{where}.stop_at is {stage.stop_at}: it must not be negative")
        need(stage.kept >= 1, f"{where}.keep is {stage.keep}: at least 1 is needed")
        need(stage.step_slack >= 0, f"{where}.step_slack is {stage.step_slack}: it must not be negative")
        need(stage.extra_steps >= 0, f"{where}.extra_steps is {stage.extra_steps}: it must not be negative")
        need(stage.extra_memory >= 0, f"{where}.extra_memory is {stage.extra_memory}: it must not be negative")
    return problems
