"""The configuration of a training run: frozen dataclasses, and the one place that fills them.

A run's configuration is its task's recipe (`nram/recipes/TASK.toml`), then `--config FILE`, then every
`--set key=value`, each laid over the one before. Every problem found is named at once.
"""

import dataclasses
import difflib
import json
import tomllib
import types
import typing
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from nram.errors import UsageError
from nram.modules import MODULE_NAMES, select_modules
from nram.tasks import get_task
from nram.training.ranges import Range


@dataclass(frozen=True)
class MachineConfig:
    """The structure of the machine: shared by all members of a population."""

    registers: int = 4
    repeats: int = 1  # how often the module sequence is repeated
    modules: tuple[str, ...] = MODULE_NAMES
    controller: Literal["mlp", "lstm", "automaton"] = "mlp"
    hidden: int = 32  # width of every layer of the controller
    states: int = 4  # of the automaton controller
    renormalise: bool = True  # the paper's renormalising layer


@dataclass(frozen=True)
class HyperConfig:
    """What every member draws for itself. A fixed 0 (for the clips: inf) switches a technique off."""

    learning_rate: Range = Range((2e-3, 2e-2), continuous=True)
    beta1: Range = Range((0.9,))
    beta2: Range = Range((0.99, 0.999))
    clip_activations: Range = Range((1.0, 10.0, float("inf")))  # C1 of the paper
    clip_gradient: Range = Range((1.0, 20.0), continuous=True)  # C2
    noise: Range = Range((0.0,))  # eta: the variance of the gradient noise is eta / (1 + t)^0.55
    entropy_bonus: Range = Range((0.03, 1.0), continuous=True)  # its weight at the start
    entropy_half_life: Range = Range((40.0, 200.0), continuous=True)  # steps until it has halved
    entropy_penalty: Range = Range((0.01, 0.1), continuous=True)  # the late penalty's weight
    penalty_start: Range = Range((1000.0,))  # the step from which the penalty counts
    output_scale: Range = Range((0.5, 2.0), continuous=True)  # of the controller's last layer at the start


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

    max_complexity: int
    steps: int
    population: int
    extra_memory: int = 0  # cells beyond the least that max_complexity needs
    stop_at: int = 0  # end the stage once so many members are perfect on the validation set; 0: never


@dataclass(frozen=True)
class TrainConfig:
    """Everything that determines a run's result, but for the machine it runs on."""

    task: str
    seed: int = 0
    batch: int = 32
    loss: Literal["expected", "average"] = "expected"  # the paper's loss, or the one of its footnote
    scored_weight: float = 1.0  # weight of the cells to be modified against the other output cells
    epsilon: float = 1e-6  # inside every logarithm
    steps_per_item: int | None = None  # T(n) = steps_per_item * n + steps_constant; None: the task's own
    steps_constant: int | None = None
    step_slack: int = 4  # up to so many steps are added to T(n) at random
    check_every: int = 100  # steps between two looks at the validation set
    validation: int = 192  # validation instances
    jitter: float = 1.5  # clones' hyperparameters are multiplied by up to this factor, or divided by it
    machine: MachineConfig = MachineConfig()
    hyper: HyperConfig = HyperConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    stages: tuple[StageConfig, ...] = field(default=(StageConfig(3, 1000, 32),))

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
        return self.step_limit(stage.max_complexity) + self.step_slack


# ---- from words to dataclasses


def load_config(
    task: str, *, file: Path | None = None, overrides: list[str] | None = None, seed: int | None = None
) -> TrainConfig:
    """The task's recipe, then a file, then `key=value` overrides, checked."""
    get_task(task)
    data: dict[str, Any] = read_recipe(task)
    if file is not None:
        data = _merged(data, _read_toml(file))
    for override in overrides or []:
        _apply_override(data, override)
    if seed is not None:
        data["seed"] = seed
    if data.setdefault("task", task) != task:
        raise UsageError(f"the configuration is for the task '{data['task']}', not '{task}'")
    return config_from_dict(data)


def read_recipe(task: str) -> dict[str, Any]:
    recipe = resources.files("nram") / "recipes" / f"{task}.toml"
    return tomllib.loads(recipe.read_text()) if recipe.is_file() else {}


def config_to_dict(config: Any) -> Any:
    """Plain data from which `config_from_dict` makes the same configuration."""
    if isinstance(config, Range):
        return config.as_config()
    if dataclasses.is_dataclass(config):
        return {f.name: config_to_dict(getattr(config, f.name)) for f in dataclasses.fields(config)}
    if isinstance(config, tuple):
        return [config_to_dict(item) for item in config]
    return config


def config_from_dict(data: dict[str, Any]) -> TrainConfig:
    problems: list[str] = []
    config = _build(TrainConfig, data, "", problems)
    if not problems and config is not None:
        problems = _check(config)
    if problems or config is None:
        raise UsageError("the configuration has problems:\n" + "\n".join(f"  - {p}" for p in problems))
    return config


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text()
    except OSError as error:
        raise UsageError(f"cannot read the configuration {file}: {error.strerror}") from None
    try:
        return json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise UsageError(f"{file} is not valid {'JSON' if file.suffix == '.json' else 'TOML'}: {error}") from None


def _merged(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in top.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def setting_names() -> list[str]:
    """Every setting's dotted name; those of a stage have its number (stages.0.steps)."""
    names = []
    for f in dataclasses.fields(TrainConfig):
        nested = typing.get_type_hints(TrainConfig)[f.name]
        if dataclasses.is_dataclass(nested):
            names += [f"{f.name}.{inner.name}" for inner in dataclasses.fields(nested)]
        elif f.name != "task":
            names.append(f.name)
    return names


def _full_name(key: str) -> str:
    """The dotted name that this key means: itself, or the one setting whose last part it is."""
    names = setting_names()
    if key in names:
        return key
    ends = [name for name in names if name.split(".")[-1] == key]
    if len(ends) == 1:
        return ends[0]
    stage_fields = [f.name for f in dataclasses.fields(StageConfig)]
    parts = key.split(".")
    if parts[0] == "stages" and len(parts) == 3 and parts[1].isdigit() and parts[2] in stage_fields:
        return key
    if key in stage_fields:
        return f"stages.*.{key}"
    candidates = names + [f"stages.0.{name}" for name in stage_fields]
    near = difflib.get_close_matches(key, candidates, n=3, cutoff=0.5)
    near += [n for n in candidates if difflib.get_close_matches(key, [n.split(".")[-1]], cutoff=0.6)]
    near = list(dict.fromkeys(near))[:3]
    hint = f"did you mean {' or '.join(near)}?" if near else "'nram train --help' lists the settings"
    raise UsageError(f"unknown setting '{key}': {hint}")


def _apply_override(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals:
        raise UsageError(f"--set takes key=value, not '{override}'")
    name = _full_name(key.strip())
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError:
        value = text.strip()
    first, *rest = name.split(".")
    if first != "stages" or not rest:
        target = data
        for part in (first, *rest)[:-1]:
            target = target.setdefault(part, {})
        target[(first, *rest)[-1]] = value
        return
    stages = data.setdefault("stages", [config_to_dict(stage) for stage in TrainConfig("copy").stages])
    chosen = range(len(stages)) if rest[0] == "*" else [int(rest[0])]
    for index in chosen:
        if index >= len(stages):
            raise UsageError(f"{name}: there are only {len(stages)} stages, numbered from 0")
        stages[index] = {**stages[index], rest[1]: value}


def _build(kind: type, data: Any, where: str, problems: list[str]) -> Any:
    """An instance of the dataclass from plain data; what is wrong is added to `problems`."""
    if not isinstance(data, dict):
        problems.append(f"{where.rstrip('.')} should be a table of settings")
        return None
    hints = typing.get_type_hints(kind)
    values = {}
    for key, value in data.items():
        if key not in hints:
            near = difflib.get_close_matches(key, hints, n=2, cutoff=0.5)
            hint = f": did you mean {' or '.join(near)}?" if near else ""
            problems.append(f"unknown setting '{where}{key}'{hint}")
            continue
        try:
            values[key] = _convert(hints[key], value, f"{where}{key}", problems)
        except (ValueError, TypeError) as error:
            problems.append(f"{where}{key}: {error}")
    required = [f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING]
    missing = [name for name in required if name not in data]
    problems += [f"{where}{name} is missing" for name in missing]
    return None if missing or problems else kind(**values)


def _convert(hint: Any, value: Any, where: str, problems: list[str]) -> Any:
    if hint is Range:
        return Range.parse(value)
    if dataclasses.is_dataclass(hint):
        return _build(typing.cast(type, hint), value, f"{where}.", problems)
    origin = typing.get_origin(hint)
    if origin is Literal:
        if value not in typing.get_args(hint):
            raise ValueError(f"'{value}' should be one of {', '.join(typing.get_args(hint))}")
        return value
    if origin is tuple:
        inner = typing.get_args(hint)[0]
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"'{value}' should be a list")
        return tuple(_convert(inner, item, f"{where}.{i}", problems) for i, item in enumerate(value))
    if origin is types.UnionType:  # `int | None`
        return None if value is None else _convert(typing.get_args(hint)[0], value, where, problems)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ValueError(f"{value!r} should be {'an' if hint is int else 'a'} {hint.__name__}")
    return value


def _check(config: TrainConfig) -> list[str]:
    """What is well formed but cannot work."""
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
    need(config.seed >= 0, f"seed is {config.seed}: it must not be negative")
    need(config.batch >= 1, f"batch is {config.batch}: at least 1 is needed")
    need(config.step_slack >= 0, f"step_slack is {config.step_slack}: it must not be negative")
    need(config.check_every >= 1, f"check_every is {config.check_every}: at least 1 is needed")
    need(config.validation >= 8, f"validation is {config.validation}: at least 8 instances are needed")
    need(config.jitter >= 1, f"jitter is {config.jitter}: a factor of at least 1 is needed")
    need(config.epsilon > 0, f"epsilon is {config.epsilon}: it must be positive")
    need(config.scored_weight > 0, f"scored_weight is {config.scored_weight}: it must be positive")
    need(0 < config.curriculum.threshold < 1, "curriculum.threshold must lie between 0 and 1")
    need(len(config.stages) > 0, "at least one stage is needed")
    need(config.step_limit(task.min_complexity) >= 1, "steps_constant leaves no step at the smallest complexity")
    for index, stage in enumerate(config.stages):
        where = f"stages.{index}"
        need(
            stage.max_complexity >= task.min_complexity,
            f"{where}.max_complexity is {stage.max_complexity}: {config.task} starts at {task.min_complexity}",
        )
        need(stage.steps >= 1, f"{where}.steps is {stage.steps}: at least 1 is needed")
        need(stage.population >= 1, f"{where}.population is {stage.population}: at least 1 is needed")
        need(stage.extra_memory >= 0, f"{where}.extra_memory is {stage.extra_memory}: it must not be negative")
    return problems
