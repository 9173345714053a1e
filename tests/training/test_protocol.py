"""The paper's protocol: members train alone, and the one with the least error at the size of training wins."""

from dataclasses import replace

import jax
import pytest
from support.training_runs import ending, shared_compilation

import nram
from nram.errors import UsageError
from nram.modules import MODULE_NAMES
from nram.tasks import TASKS
from nram.training.callbacks import Interrupted, TrainingCallbacks
from nram.training.config import TrainConfig
from nram.training.diagnosis import result_text
from nram.training.evaluation import Trial, evaluate
from nram.training.population import init_population, member_at
from nram.training.run_folder import RunFolder
from nram.training.selection import compile_validation, ranking
from nram.training.settings import load_config
from nram.training.trainer import train

SMALL = ["registers=2", "hidden=8", "controller=mlp", 'modules=["READ","INC","WRITE"]', "repeats=1"]
SMALL += ["max_complexity=2", "population=6", "steps=40", "check_every=20", "batch=4", "validation=30"]
SMALL += ["learning_rate=0.01..0.05", "noise=0.001"]


@pytest.fixture(scope="module", autouse=True)
def quick_runs():
    with shared_compilation():
        yield


def protocol(task: str = "access", *overrides: str, seed: int = 0) -> TrainConfig:
    return load_config(task, protocol="paper", overrides=list(overrides), seed=seed)


def two_groups(*overrides: str) -> TrainConfig:
    config = protocol("access", *SMALL, *overrides, seed=1)
    assert len(config.groups) == 8
    return replace(config, groups=config.groups[:2])


@pytest.mark.parametrize("task", TASKS)
def test_it_is_the_papers_machine_with_gradient_descent_alone(task):
    for group in protocol(task).group_configs:
        assert group.machine.modules == MODULE_NAMES and group.machine.repeats in (1, 2, 3)
        assert group.machine.renormalise and group.curriculum.enabled and group.loss == "expected"
        (stage,) = group.stages
        assert (stage.cull.share, stage.straight_through, stage.step_slack, stage.stop_at) == (0, False, 0, 0)
        assert stage.max_complexity == TASKS[task].trained_up_to
        assert group.step_limit(7) == TASKS[task].step_limit(7) and not group.draw_steps
        hyper = group.hyper
        assert min(hyper.noise.values) > 0 and min(hyper.entropy_bonus.values) > 0
        assert hyper.time_penalty.values == (0.0,) and hyper.wire_penalty.values == (0.0,)


def test_every_group_draws_a_structure_of_its_own():
    drawn = {group.machine for seed in range(6) for group in protocol(seed=seed).group_configs}
    assert len(drawn) > 12
    for values in ({one.registers for one in drawn}, {one.hidden for one in drawn}, {one.repeats for one in drawn}):
        assert len(values) >= 3
    assert {one.controller for one in drawn} == {"mlp", "lstm"}
    assert protocol(seed=3) == protocol(seed=3) != protocol(seed=4)


def test_a_protocol_stands_in_place_of_the_recipe_and_settings_still_change_it(tmp_path):
    assert all(group.batch == 4 for group in protocol("access", "batch=4").group_configs)
    assert len(protocol("access", "copies=3", "batch=4").groups) == 3
    with pytest.raises(UsageError, match="copies of a group: a whole number from 1 to 16, not 'x'"):
        protocol("access", "copies=x")
    with pytest.raises(UsageError, match="unknown setting 'copies'"):
        load_config("access", overrides=["copies=3"])
    with pytest.raises(UsageError, match="unknown protocol 'papre': choose from paper"):
        load_config("access", protocol="papre")
    with pytest.raises(UsageError, match="give one of them"):
        load_config("access", protocol="paper", file=tmp_path / "settings.toml")
    with pytest.raises(UsageError, match="ranked_by=training needs members that train alone"):
        protocol("access", "cull.share=0.25")
    with pytest.raises(UsageError, match="'0', not|from 1 to 16, not 0"):
        (tmp_path / "none.toml").write_text("[[groups]]\ncopies = 0\n")
        load_config("access", file=tmp_path / "none.toml")


def test_members_are_validated_at_the_size_of_training_alone_soft_and_hard():
    config = protocol("access", *SMALL, "registers=3").group_configs[0]
    population = init_population(config, 6)
    score = compile_validation(config, config.stages[0], jax.devices())(population)
    trial = Trial("access", 2, 32, config.seed, "validation", uniform=True)  # whole batches
    for member in range(6):
        controller = member_at(population.members.controller, member)
        soft, hard = (evaluate(config, controller, trial, mode) for mode in ("soft", "hard"))
        assert score.soft[member] == pytest.approx(soft.error, abs=1e-6)
        assert score.error[member] == pytest.approx(hard.error, abs=1e-6)
    assert len(set(score.soft)) > 1
    assert list(score.soft[ranking(population, score)]) == sorted(score.soft)


def test_all_groups_have_the_same_updates_and_the_least_soft_error_wins(tmp_path):
    config = two_groups()
    result = train(RunFolder.create(tmp_path / "run", config, [], "cpu"), config, jax.devices())
    run = RunFolder.open(tmp_path / "run")
    scores, groups = [], set()
    assert result["converged"]["members"] == 12 and result["converged"]["updates"] == 40
    for rank in run.members():
        of_member, controller, description = run.load_member(rank)
        trial = Trial("access", 2, 32, of_member.seed, "validation", uniform=True)
        scores.append(evaluate(of_member, controller, trial, "soft").error)
        assert description["steps"] == 40
        groups.add(description["group"])
    assert groups == {0, 1}  # 8 of 12 members are kept
    assert scores == sorted(scores)
    rows = list(run.read_progress())
    last = {row.group: row for row in rows}
    assert {row.step for row in last.values()} == {40}
    best = min(scores)
    assert result["converged"]["soft"] >= sum(score == 0 for score in scores)
    assert (best == 0) == (result["converged"]["soft"] > 0)


def test_groups_of_different_structures_take_turns_by_updates(tmp_path):
    """So a run that is stopped has members with the same number of updates."""
    config = two_groups("groups.1.repeats=2")
    train(run := RunFolder.create(tmp_path / "run", config, [], "cpu"), config, jax.devices())
    assert [(row.group, row.step) for row in run.read_progress()] == [(0, 20), (1, 20), (0, 40), (1, 40)]


def test_a_stopped_run_ends_in_the_same_bits(tmp_path):
    config = two_groups()
    train(RunFolder.create(tmp_path / "whole", config, [], "cpu"), config, jax.devices())

    class StopAfter(TrainingCallbacks):
        seen = 0

        def report(self, report) -> None:
            self.seen += 1

    callbacks, run = StopAfter(), RunFolder.create(tmp_path / "parts", config, [], "cpu")
    with pytest.raises(Interrupted):
        train(run, config, jax.devices(), callbacks, lambda: callbacks.seen >= 3)
    train(run, config, jax.devices())
    assert ending(tmp_path / "whole") == ending(tmp_path / "parts")


@pytest.mark.slow
def test_python_trains_by_the_protocol_too(tmp_path):
    small = {"population": 6, "steps": 20, "check_every": 20, "batch": 4, "validation": 30, "max_complexity": 2}
    settings = small | {
        "modules": ["READ", "INC", "WRITE"],
        "registers": 2,
        "repeats": 1,
        "hidden": 8,
        "controller": "mlp",
    }
    run = nram.train("access", tmp_path / "run", seed=1, protocol="paper", settings=settings, device="cpu")
    assert run.settings["ranked_by"] == "training" and run.result["converged"]["members"] == 48
    assert f"{run.result['converged']['soft']} of 48 members converged" in repr(run)


def test_the_result_says_how_many_converged_and_what_the_winner_does(tmp_path):
    config = two_groups()
    folder = RunFolder.create(tmp_path / "run", config, [], "cpu")
    train(folder, config, jax.devices())
    ended = folder.ending
    assert ended is not None and ended.converged is not None
    found = ended.converged
    text = result_text(replace(ended, converged=replace(found, soft=3, both=2)))
    assert text.startswith("3 of 12 members converged (error 0 at the size of training), 2 of them also as programs, ")
    assert "after 40 updates each. The winner is " in text
    none = replace(ended, converged=replace(found, soft=0, both=0))
    assert result_text(none).startswith("None of 12 members converged (error 0 at the size of training), after ")
    assert not none.learned
