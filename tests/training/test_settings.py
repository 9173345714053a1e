"""From words to a configuration: recipes, files, overrides, and every problem named at once."""

import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.configs import CONFIGS, plain_config

from nram.errors import UsageError
from nram.extensions import get_task, task_names
from nram.training.config import HyperConfig, MachineConfig, StageConfig, TrainConfig, problems_of
from nram.training.ranges import Range
from nram.training.settings import config_from_dict, config_to_dict, load_config, setting_names


def problems_with(*overrides: str, task: str = "access") -> list[str]:
    """The lines in which a configuration is refused."""
    with pytest.raises(UsageError) as refusal:
        load_config(task, overrides=list(overrides))
    heading, *lines = str(refusal.value).splitlines()
    assert heading == "the configuration has problems:"
    assert all(line.startswith("  - ") for line in lines)
    return [line.removeprefix("  - ") for line in lines]


# ---- recipes


@pytest.mark.parametrize("task", task_names())
def test_every_task_has_a_configuration_that_works(task):
    config = load_config(task)
    assert config.task == task
    assert problems_of(config) == []
    assert max(stage.max_complexity for stage in config.stages) >= get_task(task).min_complexity


@pytest.mark.parametrize("task", task_names())
def test_a_configuration_survives_plain_data_and_json(task):
    config = load_config(task, seed=11)
    data = config_to_dict(config)
    assert config_from_dict(data) == config
    assert config_from_dict(json.loads(json.dumps(data))) == config


def test_the_recipe_is_fitted_to_what_the_task_says_about_itself():
    for name in task_names():
        task, config = get_task(name), load_config(name)
        assert config.trained_up_to == task.trained_up_to
        for group in config.group_configs:
            assert group.stages[-1].max_complexity == task.trained_up_to
            assert all(group.step_limit(n) <= task.step_limit(n) for n in range(1, 51))


def test_the_seed_draws_the_structure_of_a_group():
    drawn = {load_config("copy", seed=seed).groups[2].machine.registers for seed in range(20)}
    assert drawn == {4, 5, 6}
    assert load_config("copy", seed=3) == load_config("copy", seed=3)


# ---- example files


@pytest.mark.parametrize("file", sorted(CONFIGS.iterdir()), ids=lambda file: file.name)
def test_every_example_file_suits_the_task_of_its_name(file):
    """So its command in the README works."""
    config = load_config(file.stem, file=file)
    assert problems_of(config) == [] and not config.groups
    assert len(config.stages) >= 2 and config.trained_up_to == get_task(file.stem).trained_up_to
    assert f"nram train {file.stem} --config examples/configs/{file.name}" in (CONFIGS.parent / "README.md").read_text()


# ---- files


def test_a_file_takes_the_place_of_the_recipe(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("batch = 5\n[machine]\nhidden = 7\n[hyper]\nnoise = '0|1'\n")
    machine, hyper = MachineConfig(hidden=7), HyperConfig(noise=Range((0.0, 1.0)))
    assert load_config("swap", file=file) == TrainConfig("swap", batch=5, machine=machine, hyper=hyper)


def test_a_json_file_says_the_same_as_the_toml_file(tmp_path):
    toml, as_json = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text("[[stages]]\nmax_complexity = 2\nsteps = 10\npopulation = 3\n")
    as_json.write_text('{"stages": [{"max_complexity": 2, "steps": 10, "population": 3}]}')
    config = load_config("swap", file=toml)
    assert config == load_config("swap", file=as_json)
    assert config.stages == (StageConfig(2, 10, 3),)


def test_the_configuration_that_a_run_stores_can_be_given_as_a_file(tmp_path):
    config = load_config("reverse", overrides=["registers=5", "max_complexity=30"], seed=3)
    file = tmp_path / "stored.json"
    file.write_text(json.dumps(config_to_dict(config)))
    assert load_config("reverse", file=file) == config


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.toml", b"batch = x", ("it is not TOML", "line 1")),
        ("a.json", b"{batch: 3}", ("it is not JSON", "line 1")),
        ("a.json", b"[1]", ("one JSON object",)),
        ("a.toml", b"\xff\xfe\x00", ("it is not text",)),
        ("a.toml", b'task = "copy"', ("for the task 'copy', not 'access'",)),
        ("a.toml", b"machine = 3", ("machine is 3, not an object",)),
        ("a.toml", b"stages = 3", ("stages is 3, not a list",)),
        ("a.toml", b"[machine]\nregistrs = 3", ("machine.registrs is unknown: did you mean registers",)),
        ("a.toml", b"[[stages]]\nsteps = 3", ("stages.0.population is missing",)),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(tmp_path, name, content, words):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UsageError) as refusal:
        load_config("access", file=file, overrides=["registers=2", "steps=9"])
    for word in words:
        assert word in str(refusal.value)


def test_a_file_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.toml cannot be read: No such file"):
        load_config("access", file=tmp_path / "nothing.toml")


# ---- overrides


@pytest.mark.parametrize("name", [name for name in setting_names() if "." in name])
def test_the_last_part_of_a_name_means_the_same_as_all_of_it(name):
    settings = config_to_dict(load_config("access").group_configs[1])
    table, last = name.split(".")
    value = json.dumps(settings[table][last])
    assert load_config("access", overrides=[f"{last}={value}"]) == load_config("access", overrides=[f"{name}={value}"])


def test_overrides_reach_the_setting_they_name():
    config = load_config(
        "access",
        overrides=[
            "machine.registers=7",
            "hidden=9",
            "batch=3",
            'modules=["READ","WRITE"]',
            "enabled=true",
            "epsilon=1e-5",
        ],
    )
    for group in config.group_configs:
        assert (group.machine.registers, group.machine.hidden, group.batch) == (7, 9, 3)
        assert group.machine.modules == ("READ", "WRITE")
        assert group.curriculum.enabled
        assert group.epsilon == 1e-5


def test_a_setting_of_a_stage_is_set_in_one_stage_or_in_all():
    plain = plain_config("access")
    one = plain_config("access", "stages.1.steps=33")
    assert one.stages == (plain.stages[0], replace(plain.stages[1], steps=33))
    every = plain_config("access", "population=5")
    assert every.stages == tuple(replace(stage, population=5) for stage in plain.stages)


def test_a_setting_of_a_group_is_set_in_one_group_or_in_all():
    recipe = load_config("access").groups
    every = load_config("access", overrides=["registers=3", "stages.1.steps=33"]).groups
    for before, after in zip(recipe, every, strict=True):
        stages = (before.stages[0], replace(before.stages[1], steps=33), *before.stages[2:])
        assert after == replace(before, machine=replace(before.machine, registers=3), stages=stages)
    one = load_config("access", overrides=["groups.1.hidden=7", "groups.1.stages.2.steps=33", "groups.1.joins=9"])
    first, second, third = recipe
    stages = (*second.stages[:2], replace(second.stages[2], steps=33))
    assert one.groups == (
        first,
        replace(second, joins=9, machine=replace(second.machine, hidden=7), stages=stages),
        third,
    )
    assert one.group_configs[1].machine.hidden == 7


def test_a_configuration_without_groups_is_its_only_group():
    plain = plain_config("access")
    assert plain.group_configs == (plain,)
    groups = load_config("access", seed=4).group_configs
    assert len({group.seed for group in groups}) == 3 and groups[0].seed == 4
    assert all(group.groups == () for group in groups)


def test_hyperparameters_are_numbers_ranges_or_choices():
    config = plain_config("access", "learning_rate=2e-3..2e-2", "clip_activations=1|10|inf", "noise=1")
    assert config.hyper.learning_rate == Range((2e-3, 2e-2), continuous=True)
    assert config.hyper.clip_activations == Range((1.0, 10.0, math.inf))
    assert config.hyper.noise == Range((1.0,))


def test_later_overrides_and_the_seed_argument_win():
    assert plain_config("access", "batch=3", "batch=4").batch == 4
    assert load_config("access", overrides=["seed=3"], seed=4).seed == 4


def test_null_gives_back_the_default_of_the_task():
    config = plain_config("copy", "steps_per_item=null", "steps_constant=null")
    assert config.step_limit(5) == get_task("copy").step_limit(5)


# ---- problems


def test_every_problem_is_named_at_once():
    problems = problems_with("regsters=2", "batch=x", "stages.9.steps=1", "noise=loud", "hidden=2.5", "stages.0.keep=a")
    wanted = ("'regsters'", "batch", "stages.9.steps", "hyper.noise", "machine.hidden", "stages.0.keep")
    assert len(problems) == len(wanted)
    for name in wanted:
        assert sum(name in problem for problem in problems) == 1


def test_every_value_that_cannot_work_is_named_at_once():
    problems = problems_with("registers=0", "batch=0", "validation=1", "stages.0.max_complexity=0", "jitter=0.5")
    wanted = (
        "machine.registers is 0",
        "batch is 0",
        "validation is 1",
        "stages.0.max_complexity is 0",
        "jitter is 0.5",
    )
    assert len(problems) == len(wanted)
    for words in wanted:
        assert sum(words in problem for problem in problems) == 1


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("registers=2.5", "machine.registers is 2.5, not a whole number"),
        ("registers=true", "machine.registers is True, not a whole number"),
        ("registers=[1]", "machine.registers is [1], not a whole number"),
        ("jitter=wide", "jitter is 'wide', not a number"),
        ("enabled=1", "curriculum.enabled is 1, not true or false"),
        ("controller=rnn", "machine.controller is 'rnn', not one of mlp, lstm, automaton"),
        ("modules=3", "machine.modules is 3, not a list"),
        ("stages=[]", "stages has 0 entries: give 1 to 20"),
        ("learning_rate=true", "hyper.learning_rate: True is negative or not a number"),
        ("learning_rate=1..0.1", "hyper.learning_rate: the range '1..0.1' needs 0 <= low < high"),
        ("learning_rate=-1", "hyper.learning_rate: -1 is negative or not a number"),
        ("learning_rate=NaN", "hyper.learning_rate: 'NaN' is negative or not a number"),
        ("epsilon=NaN", "epsilon is 'NaN', not a number"),
    ],
)
def test_a_wrong_value_is_refused_with_what_would_be_right(override, problem):
    assert problems_with(override) == [problem]


def test_an_unknown_module_is_named_with_the_nearest():
    (problem,) = problems_with('modules=["REED"]')
    assert "REED" in problem and "READ" in problem


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("regsters", "did you mean machine.registers?"),
        ("machine.hiden", "did you mean machine.hidden?"),
        ("learning_rates", "did you mean hyper.learning_rate?"),
        ("max_complexty", "did you mean stages.0.max_complexity?"),
        ("zzzz", "--set help"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest_names(key, near):
    (problem,) = problems_with(f"{key}=1")
    assert problem.startswith(f"unknown setting '{key}'")
    assert near in problem


def test_too_few_steps_for_the_smallest_instance_are_refused():
    (problem,) = problems_with("steps_constant=0", "steps_per_item=0")
    assert "leaves no step" in problem


def test_a_seed_that_jax_would_cut_short_is_refused():
    assert load_config("access", seed=2**32 - 1).seed == 2**32 - 1
    (problem,) = problems_with(f"seed={2**32}")
    assert "seed" in problem and str(2**32 - 1) in problem


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("groups.3.batch=4", "there is no setting 'groups.3.batch': its groups are 0 (soft), 1 (hard), 2 (paper)"),
        ("groups.0.stages.2.steps=4", "there is no stages.2.steps: the stages are numbered from 0 to 1"),
        ("groups.1.regsters=4", "unknown setting 'regsters': did you mean machine.registers?"),
        ("groups.1.seed=4", "unknown setting 'seed'"),
        ("joins=4", "joins is a setting of each group: name one, as in groups.1.joins=..."),
        ("groups.x.batch=4", "there is no setting 'groups.x.batch': its groups are 0 (soft), 1 (hard), 2 (paper)"),
        ("groups.0=4", "groups.0 is a whole group: name one of its settings, as in groups.0.batch"),
        ("groups.2.batch=0", "groups.2.batch is 0: give 1 to 65536"),
        ("groups.1.straight_through=true", "groups.1: the last stage is straight_through"),
        ("groups.0.patience=1.5", "groups.0: stages.1.cull.patience is 1.5"),
        ("groups.0.registers=4|x", "groups.0.machine.registers is '4|x', not a whole number, nor several, as in 4|5|6"),
    ],
)
def test_a_problem_of_one_group_names_the_group(override, problem):
    assert any(line.startswith(problem) for line in problems_with(override))


def test_a_configuration_without_groups_has_no_setting_of_a_group():
    with pytest.raises(UsageError, match=r"there is no setting 'groups.0.batch': it has no groups"):
        plain_config("access", "groups.0.batch=4")


def test_sizes_that_are_asked_for_are_used():
    """Only those of the recipe are fitted to the task, and a stored configuration is used as it is."""
    assert get_task("merge").trained_up_to == 10
    config = load_config("merge", overrides=["max_complexity=30"])
    assert {stage.max_complexity for group in config.groups for stage in group.stages} == {30}
    assert "max_complexity is 0" in problems_with("max_complexity=0", task="merge")[0]


# ---- ranges

positive = st.floats(min_value=1e-9, max_value=1e9)
ordered = st.tuples(st.one_of(st.just(0.0), positive), positive).filter(lambda pair: pair[0] < pair[1])
ranges = st.one_of(
    ordered.map(lambda pair: Range(pair, continuous=True)),
    st.lists(st.one_of(positive, st.sampled_from([0.0, math.inf])), min_size=1, max_size=4).map(
        lambda values: Range(tuple(values))
    ),
)


def inside(wanted: Range, value: float) -> bool:
    return wanted.values[0] <= value <= wanted.values[1] if wanted.continuous else value in wanted.values


@given(ranges)
def test_a_range_survives_its_own_words(wanted):
    assert Range.parse(wanted.as_config()) == wanted
    config = TrainConfig("access", hyper=HyperConfig(clip_gradient=wanted))
    assert config_from_dict(json.loads(json.dumps(config_to_dict(config)))) == config


@given(ranges, st.integers(0, 2**32))
@example(Range((0.135, 0.13500000000000015), continuous=True), 0)
def test_a_draw_is_inside_its_range_and_the_same_from_the_same_seed(wanted, seed):
    value = wanted.draw(random.Random(seed))
    assert inside(wanted, value)
    assert wanted.draw(random.Random(seed)) == value


@given(ranges, st.integers(0, 2**32), st.floats(1, 100))
def test_jitter_stays_inside_the_range_and_within_its_factor(wanted, seed, factor):
    rng = random.Random(seed)
    value = wanted.draw(rng)
    moved = wanted.jitter(value, rng, factor)
    assert inside(wanted, moved)
    if wanted.continuous:
        assert value / factor * (1 - 1e-9) <= moved <= value * factor * (1 + 1e-9)


def test_draws_fill_a_range_evenly_on_the_logarithmic_scale():
    rng = random.Random(0)
    draws = [Range.parse("0.001..10").draw(rng) for _ in range(4000)]
    for decade in range(4):
        share = sum(10.0 ** (decade - 3) <= value < 10.0 ** (decade - 2) for value in draws) / len(draws)
        assert share == pytest.approx(0.25, abs=0.03)


def test_draws_and_jitter_reach_every_choice():
    choice = Range.parse("1|10|inf")
    rng = random.Random(0)
    assert {choice.draw(rng) for _ in range(100)} == {1.0, 10.0, math.inf}
    assert {choice.jitter(10.0, rng, 2.0) for _ in range(300)} == {1.0, 10.0, math.inf}


@pytest.mark.parametrize("words", ["", "a", "1..", "..1", "1||2", "2..1", "0..inf", "-1", "nan", "1..2..3"])
def test_words_that_are_no_range_are_refused(words):
    with pytest.raises(ValueError, match="number|range"):
        Range.parse(words)
