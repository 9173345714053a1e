"""From words to a configuration: recipes, files, overrides, and every problem named at once."""

import json
import math
import random
from dataclasses import replace
from importlib import resources

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nram.errors import UsageError
from nram.extensions import get_task, task_names
from nram.training.config import HyperConfig, StageConfig, TrainConfig, problems_of
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


def test_every_recipe_is_that_of_a_task():
    recipes = [file.name for file in (resources.files("nram") / "recipes").iterdir()]
    assert recipes
    assert {name.removesuffix(".toml") for name in recipes} <= set(task_names())


# ---- files


def test_a_toml_file_is_laid_over_the_recipe(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("batch = 5\n[machine]\nhidden = 7\n[hyper]\nnoise = '0|1'\n")
    config = load_config("swap", file=file)
    recipe = load_config("swap")
    assert config.batch == 5
    assert config.machine == replace(recipe.machine, hidden=7)
    assert config.hyper == replace(recipe.hyper, noise=Range((0.0, 1.0)))
    assert config.stages == recipe.stages


def test_a_json_file_says_the_same_as_the_toml_file(tmp_path):
    toml, as_json = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text("[[stages]]\nmax_complexity = 2\nsteps = 10\npopulation = 3\n")
    as_json.write_text('{"stages": [{"max_complexity": 2, "steps": 10, "population": 3}]}')
    config = load_config("swap", file=toml)
    assert config == load_config("swap", file=as_json)
    assert config.stages == (StageConfig(2, 10, 3),)


def test_the_configuration_that_a_run_stores_can_be_given_as_a_file(tmp_path):
    config = load_config("reverse", overrides=["registers=5"], seed=3)
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
        ("a.toml", b"[[stages]]\nsteps = 3", ("stages.0.max_complexity is missing", "stages.0.population is missing")),
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
    settings = config_to_dict(load_config("access"))
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
            "enabled=false",
            "loss=average",
        ],
    )
    assert (config.machine.registers, config.machine.hidden, config.batch) == (7, 9, 3)
    assert config.machine.modules == ("READ", "WRITE")
    assert not config.curriculum.enabled
    assert config.loss == "average"


def test_a_setting_of_a_stage_is_set_in_one_stage_or_in_all():
    recipe = load_config("access")
    one = load_config("access", overrides=["stages.1.steps=33"])
    assert one.stages == (recipe.stages[0], replace(recipe.stages[1], steps=33))
    every = load_config("access", overrides=["population=5"])
    assert every.stages == tuple(replace(stage, population=5) for stage in recipe.stages)


def test_hyperparameters_are_numbers_ranges_or_choices():
    config = load_config("access", overrides=["learning_rate=2e-3..2e-2", "clip_activations=1|10|inf", "noise=1"])
    assert config.hyper.learning_rate == Range((2e-3, 2e-2), continuous=True)
    assert config.hyper.clip_activations == Range((1.0, 10.0, math.inf))
    assert config.hyper.noise == Range((1.0,))


def test_later_overrides_and_the_seed_argument_win():
    assert load_config("access", overrides=["batch=3", "batch=4"]).batch == 4
    assert load_config("access", overrides=["seed=3"], seed=4).seed == 4


def test_null_gives_back_the_default_of_the_task():
    config = load_config("copy", overrides=["steps_per_item=null", "steps_constant=null"])
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
