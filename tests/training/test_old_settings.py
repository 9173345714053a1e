"""Settings of earlier versions are read: from the zoo's weights, from run folders and from configuration files."""

import json
from pathlib import Path

import pytest
from support.configs import plain_config

import nram
from nram.errors import UsageError
from nram.training.config import CullConfig, HyperConfig, StageConfig
from nram.training.old_settings import RENAMED, converted
from nram.training.ranges import Range
from nram.training.run_folder import RunFolder, read_config
from nram.training.settings import config_from_dict, config_to_dict, load_config

OLD_STAGE = {
    **{"max_complexity": 6, "steps": 500, "population": 16, "extra_memory": 1, "extra_steps": 0, "step_slack": 3},
    **{"hard": True, "keep": 4, "cull": 0.25, "forget": 0.5, "waver": 0.75, "hardness": 2.0, "sharing": 0.0},
    **{"lexicase": True, "islands": 2, "patience": 7, "stop_at": 5},
}
SOFT_STAGE = {"max_complexity": 6, "steps": 100, "population": 8}
OLD = {"task": "copy", "seed": 3, "stages": [OLD_STAGE, SOFT_STAGE]}
CULL = CullConfig(share=0.25, redraw=0.5, soften=0.75, exponent=2.0, lexicase=True, islands=2, patience=Range((7.0,)))
STAGE = StageConfig(6, 500, 16, extra_memory=1, step_slack=3, straight_through=True, keep=4, stop_at=5, cull=CULL)


def test_every_old_setting_of_a_stage_finds_its_new_name():
    config = config_from_dict(OLD)
    assert config.stages == (STAGE, StageConfig(6, 100, 8)) and config.seed == 3
    assert set(RENAMED) | {"sharing", "extra_steps"} <= set(OLD_STAGE)


def test_today_s_settings_are_left_alone():
    today = config_to_dict(config_from_dict(OLD))
    assert converted(today) == today and config_from_dict(today).stages[0] == STAGE


def test_a_run_folder_of_the_old_format_is_opened_and_stays_as_it_is(tmp_path: Path):
    record = json.dumps({"format": 1, "config": OLD, "arguments": [], "versions": {"nram": "0.1.0"}, "device": "cpu"})
    (tmp_path / "run.json").write_text(record)
    assert RunFolder.open(tmp_path).config.stages[0] == STAGE
    assert (tmp_path / "run.json").read_text() == record


def test_a_configuration_file_of_the_old_version_is_read(tmp_path: Path):
    file = tmp_path / "old.json"
    file.write_text(json.dumps(OLD))
    assert load_config("copy", file=file).stages[0] == STAGE


@pytest.mark.parametrize("name", ["sharing", "extra_steps"])
def test_a_setting_that_is_gone_is_refused_where_it_meant_something(name):
    with pytest.raises(UsageError, match=f"stages.0.{name} is 2, but this setting no longer exists"):
        config_from_dict({**OLD, "stages": [{**OLD_STAGE, name: 2}, SOFT_STAGE]})


@pytest.mark.parametrize(("old", "new"), [("hard=true", "straight_through"), ("stages.0.waver=0.5", "cull.soften")])
def test_an_old_name_on_the_command_line_works_and_warns(old, new):
    with pytest.warns(DeprecationWarning, match=f"is now called {new}"):
        config = plain_config("merge", old, "stages.2.straight_through=false")
    now = f"{new}=true" if "hard" in old else f"stages.0.{new}=0.5"
    assert config == plain_config("merge", now, "stages.2.straight_through=false")


def test_the_wire_penalty_is_read_under_its_old_name(tmp_path: Path):
    group = {"hyper": {"entropy_penalty": 0.2, "noise": 0.1}, "stages": [SOFT_STAGE]}
    alone, grouped = {"task": "copy", **group}, {"task": "copy", "groups": [group, {"stages": [SOFT_STAGE]}]}
    assert config_from_dict(alone).hyper == HyperConfig(noise=Range((0.1,)), wire_penalty=Range((0.2,)))
    file = tmp_path / "old.json"
    file.write_text(json.dumps(grouped))
    old, new = load_config("copy", file=file).groups
    assert old.hyper == config_from_dict(alone).hyper and new.hyper == HyperConfig()
    with pytest.raises(UsageError, match="hyper.entropy_penalty is unknown"):  # which of both is meant?
        config_from_dict({**alone, "hyper": {"entropy_penalty": 0.2, "wire_penalty": 0.3}})


@pytest.mark.parametrize("key", ["entropy_penalty", "hyper.entropy_penalty"])
def test_the_old_name_of_the_wire_penalty_on_the_command_line_works_and_warns(key):
    with pytest.warns(DeprecationWarning, match=f"'{key}' is now called hyper.wire_penalty: .* in nram 0.4"):
        assert plain_config("merge", f"{key}=0.5").hyper.wire_penalty == Range((0.5,))
    with pytest.warns(DeprecationWarning, match=f"'{key}' is now called hyper.wire_penalty"):
        config = load_config("merge", overrides=[f"groups.1.{key}=0.5"])
    assert [group.hyper.wire_penalty == Range((0.5,)) for group in config.groups] == [False, True, False]


def test_a_removed_setting_on_the_command_line_is_refused():
    with pytest.raises(UsageError, match="the setting 'sharing' no longer exists"):
        load_config("merge", overrides=["sharing=0"])


def test_all_weights_of_the_zoo_say_how_they_were_trained():
    zoo = Path(nram.__file__).parent / "zoo"
    configs = {path.parent.name: read_config(path) for path in zoo.glob("*/weights.safetensors")}
    assert len(configs) == 10
    merge = configs["merge@trained"].stages
    assert [stage.straight_through for stage in merge] == [True, True, False]
    assert merge[0].cull == CullConfig(
        share=0.25, redraw=0.0, soften=0.5, exponent=2.0, lexicase=True, islands=8, patience=Range((40.0,))
    )
