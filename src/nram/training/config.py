"""The configuration of a training run: frozen dataclasses. `settings.py` fills them."""

from dataclasses import dataclass, fields, replace
from math import inf
from typing import Annotated, Any, Literal

from nram.errors import UsageError
from nram.extensions import is_file_name, known_task, select_modules
from nram.kinds import ControllerKind, LossKind
from nram.limits import StepLimit
from nram.modules import MODULE_NAMES
from nram.records import Span
from nram.training.ranges import Range

# The limits of single settings stand beside them. They are far beyond anything useful, and low enough that nothing
# overflows: all steps of a run together are counted in 32 bits.
Members = Annotated[int, Span(1, 65_536)]
Steps = Annotated[int, Span(0, 10**8)]
MOST_COMPLEXITY = 10_000
Complexity = Annotated[int, Span(1, MOST_COMPLEXITY)]
MOST_LOOP = 10**6  # time steps of an episode
TimeSteps = Annotated[int, Span(0, MOST_LOOP)]
Share = Annotated[float, Span(0, 1)]
Factor = Annotated[float, Span(1, 1000)]
MOST_SCALE = 1000.0  # of the first weights
Weight = Annotated[float, Span(1e-6, 1e6)]

MOST_SEED = 2**32 - 1
SEED_STEP = 1_000_003  # between the seeds of two groups of a run
MOST_OPERATIONS = 512  # modules of a circuit, repeats included
MOST_VALIDATION_CELLS = 20_000_000  # the validation set is a constant of compiled code
EXAMINED = 4  # members examined for perfection, at a check of the last stage and at the end


@dataclass(frozen=True)
class MachineConfig:
    """The structure of the machine: shared by all members of a population."""

    registers: Annotated[int, Span(1, 64)] = 4  # R; the controller sees of each whether it is 0
    repeats: Annotated[int, Span(1, 64)] = 1  # how often the module sequence is repeated
    modules: Annotated[tuple[str, ...], Span(1, 256)] = MODULE_NAMES  # names, or files, in the order of the circuit
    controller: ControllerKind = "mlp"  # what chooses the circuits
    hidden: Annotated[int, Span(1, 4096)] = 32  # width of every layer of the controller
    states: Annotated[int, Span(1, 1024)] = 4  # of the automaton controller
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
    wire_penalty: Range = Range((0.03, 0.3), continuous=True)  # late weight of the mean entropy of wires
    state_penalty: Range = Range((0.0,))  # late weight of the mean entropy of registers and memory cells
    time_penalty: Range = Range((0.003, 0.1), continuous=True)  # weight of the share of its steps a member uses
    penalty_start: Range = Range((400.0,))  # the step from which the penalties count
    output_scale: Range = Range((1.0, 3.0), continuous=True)  # of the controller's last layer at the start


@dataclass(frozen=True)
class CurriculumConfig:
    """The paper's appendix: a level D per member, raised when the error falls below a threshold."""

    enabled: bool = True  # off: complexities uniform over the whole range
    start: Annotated[int, Span(0, MOST_COMPLEXITY)] = 1  # the first level (at least the task's smallest complexity)
    threshold: Share = 0.1  # share of wrong examples, a moving average, under which D is raised
    interval: Steps = 20  # at least so many steps between two raises


@dataclass(frozen=True)
class CullConfig:
    """Selection within a stage: at every check the worst members are replaced by mutated clones of the best."""

    share: Annotated[float, Span(0, 0.5)] = 0.0  # of the members that are replaced; 0: no culling
    redraw: Annotated[float, Span(0, 1e6)] = 1.0  # wires of a clone that are drawn again, on average
    soften: Share = 0.0  # up to this share of a clone's wires become undecided; their first choice stays first
    margin: Factor = 1.0  # only a member with so many times the error of a clone's parent is replaced; not by lexicase
    exponent: Factor = 4.0  # the larger, the better a member must fit before its discrete form counts
    lexicase: bool = False  # single examples in random order decide, not the mean error
    islands: Members = 1  # parts of the population that are culled and cloned separately
    patience: Range = Range((0.0,))  # checks without progress until an island restarts, by island in turn; 0: never
    restart_scale: Range = Range((0.0,))  # `hyper.output_scale` of half of the islands that restart; 0: not used

    def patience_of(self, island: int) -> int:
        return int(self.patience.values[island % len(self.patience.values)])


@dataclass(frozen=True)
class StageConfig:
    """One stage: a size of problem, a population, a number of steps."""

    max_complexity: Complexity  # the largest n of its examples, and of the curriculum
    steps: Annotated[int, Span(1, 10**8)]  # of training, a batch each
    population: Members  # members trained side by side
    extra_memory: Annotated[int, Span(0, 10_000)] = 0  # cells beyond the least that max_complexity needs
    step_slack: TimeSteps = 8  # up to so many steps are added to T(n), at random, so that halting is learned
    straight_through: bool = False  # discrete wires in the forward pass, soft ones in the backward pass
    keep: Members | None = None  # members of the stage before that are cloned; None: a quarter of the population
    stop_at: Steps = 0  # end the stage once so many members are perfect on the validation set; 0: never
    halt_within: Steps = 0  # once it could end, it waits so many steps for members that also halt within T(n)
    cull: CullConfig = CullConfig()  # selection within the stage

    @property
    def clones(self) -> int:
        """How many members a check replaces, unless islands restart."""
        return self.cull.islands * int(self.cull.share * (self.population // self.cull.islands))

    @property
    def kept(self) -> int:
        return max(1, self.population // 4) if self.keep is None else self.keep


Batch = Annotated[int, Span(1, 65536)]
CheckEvery = Annotated[int, Span(1, 10**8)]
Validation = Annotated[int, Span(8, 100_000)]
Constant = Annotated[int | None, Span(-MOST_LOOP, MOST_LOOP)]
RankedBy = Literal["program", "training"]
Turns = Literal["progress", "equal"]
DEFAULT_STAGES = (StageConfig(3, 1000, 32),)


@dataclass(frozen=True)
class GroupConfig:
    """Members of one structure and one kind, which a run trains beside other groups."""

    name: str = ""  # in reports
    joins: Steps = 0  # it starts once the run has had so many checks
    machine: MachineConfig = MachineConfig()  # shared by all members
    hyper: HyperConfig = HyperConfig()  # drawn by every member
    batch: Batch = 32  # examples of a training step
    steps_per_item: TimeSteps | None = None  # T(n) = steps_per_item * n + steps_constant; None: the task's own
    steps_constant: Constant = None  # as above
    check_every: CheckEvery = 100  # steps between two looks at the validation set
    validation: Validation = 192  # validation instances
    stages: Annotated[tuple[StageConfig, ...], Span(1, 20)] = DEFAULT_STAGES  # one after another


@dataclass(frozen=True)
class TrainConfig:
    """Everything that determines a run's result, but for the machine it runs on."""

    task: str  # its name, or the whole path of its file
    seed: Annotated[int, Span(0, MOST_SEED)] = 0  # of everything that is drawn
    groups: Annotated[tuple[GroupConfig, ...], Span(0, 16)] = ()  # side by side; none: the settings below are the only
    batch: Batch = 32  # examples of a training step
    loss: LossKind = "expected"  # the paper's loss, or the one of its footnote
    scored_weight: Weight = 1.0  # weight of the cells to be modified against the other output cells
    epsilon: Annotated[float, Span(1e-30, 1)] = 1e-6  # inside every logarithm
    steps_per_item: TimeSteps | None = None  # T(n) = steps_per_item * n + steps_constant; None: the task's own
    steps_constant: Constant = None  # as above
    draw_steps: bool = False  # T(n) is never above the task's own; islands that restart draw theirs, up to that
    check_every: CheckEvery = 100  # steps between two looks at the validation set
    validation: Validation = 192  # validation instances
    turns: Turns = "progress"  # of groups: more for those that get better; or as many steps for each
    ranked_by: RankedBy = "program"  # as programs, up to twice the size; or by soft error at the size of training
    jitter: Factor = 1.5  # clones' hyperparameters are multiplied by up to this factor, or divided by it
    machine: MachineConfig = MachineConfig()  # shared by all members
    hyper: HyperConfig = HyperConfig()  # drawn by every member
    curriculum: CurriculumConfig = CurriculumConfig()  # from small problems to large ones
    stages: Annotated[tuple[StageConfig, ...], Span(1, 20)] = DEFAULT_STAGES  # one after another

    @property
    def group_configs(self) -> tuple["TrainConfig", ...]:
        """A configuration for each group, with a seed of its own. A run without groups is its own group."""
        if not self.groups:
            return (self,)
        shared = [field.name for field in fields(GroupConfig) if field.name not in ("name", "joins")]
        return tuple(
            replace(
                self,
                groups=(),
                seed=(self.seed + SEED_STEP * index) % (MOST_SEED + 1),
                **{name: getattr(group, name) for name in shared},
            )
            for index, group in enumerate(self.groups)
        )

    @property
    def group_names(self) -> tuple[str, ...]:
        return tuple(group.name or f"group {index}" for index, group in enumerate(self.groups))

    @property
    def task_name(self) -> str:
        return known_task(self.task).name

    @property
    def module_files(self) -> list[str]:
        """The files of its user-defined modules, each once."""
        modules = [name for group in self.group_configs for name in group.machine.modules]
        return [name for name in dict.fromkeys(modules) if is_file_name(name)]

    @property
    def trained_up_to(self) -> int:
        """The largest complexity of all stages."""
        return max(stage.max_complexity for group in self.group_configs for stage in group.stages)

    @property
    def first_limit(self) -> StepLimit:
        """The T(n) with which training begins."""
        own = known_task(self.task).step_limit
        per_item = own.per_item if self.steps_per_item is None else self.steps_per_item
        constant = own.constant if self.steps_constant is None else self.steps_constant
        return StepLimit(per_item, constant)

    def step_limit(self, n: Any, per_item: Any = None, constant: Any = None) -> Any:
        """The T(n) of training, with the numbers that a member drew."""
        first = self.first_limit
        limit = (first.per_item if per_item is None else per_item) * n
        limit = limit + (first.constant if constant is None else constant)
        if not self.draw_steps:
            return limit
        own = known_task(self.task).step_limit(n)
        return own + (limit - own) * (limit < own)  # the smaller of both, elementwise

    def memory_size(self, stage: StageConfig) -> int:
        return known_task(self.task).least_memory(stage.max_complexity) + stage.extra_memory

    def by_memory_size(self, stage: StageConfig) -> tuple[StageConfig, ...]:
        """The stage at each of the memory sizes at which it trains in turn."""
        task = known_task(self.task)
        if task.examples is None:
            return (stage,)
        least = task.least_memory(stage.max_complexity)
        sizes = task.examples.memory_sizes(stage.max_complexity)
        return tuple(replace(stage, extra_memory=stage.extra_memory + size - least) for size in sizes)

    def validated_up_to(self, stage: StageConfig) -> int:
        """The largest complexity of the validation set: twice the stage's, or the stage's where that alone counts."""
        task, most = known_task(self.task), (2 if self.ranked_by == "program" else 1) * stage.max_complexity
        return min(most, task.trained_up_to) if task.examples else most

    def validation_cells(self, stage: StageConfig) -> int:
        """The cells of the validation set, whose instances go up to twice the stage's complexity."""
        return self.validation * known_task(self.task).least_memory(2 * stage.max_complexity)

    def penalises_state(self, stage: StageConfig) -> bool:
        """Whether the entropy of registers and memory may count in a stage. Discrete values have none."""
        return max(self.hyper.state_penalty.values) > 0 and not stage.straight_through

    def loop_steps(self, stage: StageConfig) -> int:
        """The length of the compiled loop over time."""
        longest = known_task(self.task).step_limit if self.draw_steps else self.first_limit
        return longest(stage.max_complexity) + stage.step_slack


def problems_of(config: TrainConfig) -> list[str]:
    """Settings that are each within their limits but cannot work together or with the task, a line each."""
    if not config.groups:
        return _group_problems(config)
    found = ((index, line) for index, group in enumerate(config.group_configs) for line in _group_problems(group))
    return [f"groups.{index}: {line}" for index, line in found]


def _trains_alone(stages: tuple[StageConfig, ...]) -> bool:
    return len(stages) == 1 and not stages[0].cull.share and not stages[0].straight_through


def _group_problems(config: TrainConfig) -> list[str]:
    task, machine = known_task(config.task), config.machine
    problems = []
    try:
        select_modules(machine.modules, machine.repeats)
    except UsageError as error:
        problems.append(f"machine: {error}")
    operations = len(machine.modules) * machine.repeats
    checks = {
        f"machine.repeats is {machine.repeats}: with {len(machine.modules)} modules a circuit has {operations} "
        f"operations, and the most is {MOST_OPERATIONS}": operations <= MOST_OPERATIONS,
        "curriculum.threshold must lie between 0 and 1": 0 < config.curriculum.threshold < 1,
        "hyper.entropy_half_life must be positive": min(config.hyper.entropy_half_life.values) > 0,
        "the last stage is straight_through, which leaves wires undecided: add a soft stage, which decides them":
            not config.stages[-1].straight_through,
        "ranked_by=training needs members that train alone: one stage, without culling and straight_through":
            config.ranked_by == "program" or _trains_alone(config.stages),
        "steps_constant leaves no step at the smallest complexity": config.step_limit(task.min_complexity) >= 1,
    }  # fmt: skip
    for name, values in ((field_.name, getattr(config.hyper, field_.name).values) for field_ in fields(HyperConfig)):
        checks[f"hyper.{name} must be finite"] = inf not in values or name.startswith("clip_")
        checks[f"hyper.{name} must be smaller than 1"] = name not in ("beta1", "beta2") or max(values) < 1
    problems += [message for message, fine in checks.items() if not fine]
    for index, stage in enumerate(config.stages):
        problems += _stage_problems(config, stage, f"stages.{index}", last=index == len(config.stages) - 1)
    return problems


def _stage_problems(config: TrainConfig, stage: StageConfig, where: str, last: bool) -> list[str]:
    task, cull = known_task(config.task), stage.cull
    if stage.max_complexity < task.min_complexity:
        return [f"{where}.max_complexity is {stage.max_complexity}: {task.name} starts at {task.min_complexity}"]
    island = stage.population // cull.islands
    # Validation goes up to twice the complexity and, for every second instance, twice the task's step limit.
    longest = max(config.loop_steps(stage), task.step_limit.longest(2 * stage.max_complexity))
    cells = config.validation_cells(stage)
    checks = {
        f"{where}.max_complexity is {stage.max_complexity}: an episode would have {longest} steps, and the most is "
        f"{MOST_LOOP}": longest <= MOST_LOOP,
        f"validation is {config.validation}: instances of complexity {2 * stage.max_complexity} have {cells} cells, "
        f"and the most is {MOST_VALIDATION_CELLS}": cells <= MOST_VALIDATION_CELLS,
        f"{where}.straight_through: the automaton's states are soft; choose another controller":
            not stage.straight_through or config.machine.controller != "automaton",
        f"{where}.straight_through: a discrete machine stops once, so there is no average; set loss=expected":
            not stage.straight_through or config.loss == "expected",
        f"{where}.stop_at is {stage.stop_at}: only {EXAMINED} members are examined in the last stage":
            not last or stage.stop_at <= EXAMINED,
        f"{where}.cull.share is {cull.share}: of an island of {island} that is less than one member":
            cull.share == 0 or cull.share * island >= 1,
        f"{where}.cull.exponent is {cull.exponent}: it must be above 1": cull.exponent > 1,
        f"{where}.cull.lexicase is true but nothing is culled: set {where}.cull.share, for example to 0.25":
            not cull.lexicase or cull.share > 0,
        f"{where}.cull.restart_scale is {cull.restart_scale}: give 0, or numbers up to {MOST_SCALE:g}, as in 12..25":
            cull.restart_scale.values == (0.0,) or all(0 < value <= MOST_SCALE for value in cull.restart_scale.values),
        f"{where}.cull.patience is {cull.patience}: a single island never restarts; set more islands, or "
        "patience 0": max(cull.patience.values) == 0 or cull.islands > 1,
        f"{where}.cull.patience is {cull.patience}: give whole numbers, as in 8 or 4|8|16":
            not cull.patience.continuous and all(value % 1 == 0 for value in cull.patience.values),
        f"{where}.cull.islands is {cull.islands}: it must divide the population of {stage.population}":
            stage.population % cull.islands == 0,
    }  # fmt: skip
    return [message for message, fine in checks.items() if not fine]
