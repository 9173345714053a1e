"""`nram reproduce`, from the words to the files."""

import json
from pathlib import Path
from typing import NamedTuple

import jax
import pytest

from nram.cli import main

QUICK = ("--count", "20", "--at", "4")


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture(scope="module", autouse=True)
def compiled_programs(tmp_path_factory):
    """The user's cache of compiled programs is left alone."""
    jax.devices()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        yield


@pytest.fixture
def call(capsys):
    def run(*words: str | Path) -> Outcome:
        capsys.readouterr()
        try:
            status = main(["reproduce", *map(str, words)])
        except SystemExit as stop:  # of argparse
            status = stop.code
        assert isinstance(status, int)
        return Outcome(status, *capsys.readouterr())

    return run


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_trained_task_is_measured_soft_and_hard_under_every_limit(call, tmp_path):
    outcome = call("access", *QUICK, "--out", tmp_path, "--json")
    assert outcome.status == 0, outcome.err
    table = json.loads(outcome.out)
    (access,) = table["tasks"]
    assert access["paper"]["generalisation"] == "perfect"
    assert (access["trained"]["source"], access["trained"]["trained_up_to"]) == ("access@trained", 20)
    for place, count in (("at_trained_complexity", 20), ("at_far_complexity", 2)):
        pair = access["trained"][place]
        assert pair["same_outputs"] == pair["soft"]["instances"] == count
        assert pair["soft"]["right_under_every_limit"] and pair["hard"]["right_under_every_limit"]
        assert list(pair["soft"]["limits"]) == ["T", "2T", "20n+200"]
    assert [point["max_complexity"] for point in access["trained"]["curve"]] == [4, 20]
    assert [(one["complexity"], one["right_under_every_limit"]) for one in access["trained"]["beyond"]] == [
        (1000, True),
        (10000, True),
    ]
    assert access["searched"]["at_far_complexity"]["hard"]["right_under_every_limit"]

    files = written(tmp_path)
    assert set(files) == {"table.md", "table.json", "generalisation.svg"}
    assert {**json.loads(files["table.json"]), "files": table["files"]} == table
    assert sorted(table["files"]) == sorted(str(tmp_path / name) for name in files)

    again = call("access", *QUICK, "--out", tmp_path)
    assert again.status == 0, again.err
    assert written(tmp_path) == files  # the same seed, the same bytes
    assert "access" in again.out and "paper" in again.out and "[" not in again.out
    assert "s in all" in again.err


def test_searched_programs_alone_need_no_trained_model_and_stand_in_the_paper_s_order(call, tmp_path):
    words = ("merge", "access", *QUICK, "--origin", "searched", "--out", tmp_path)
    outcome = call(*words)
    assert outcome.status == 0, outcome.err
    assert "not asked for" in outcome.out and "not trained yet" not in outcome.out
    assert outcome.out.count("all right to n = 10,000") == 2
    rows = json.loads((tmp_path / "table.json").read_text())["tasks"]
    assert [(row["task"], row["trained"], row["status"]) for row in rows] == [
        ("access", None, "not asked for"),
        ("merge", None, "not asked for"),
    ]


@pytest.fixture
def finished_run(tmp_path) -> Path:
    """A run of access by its recipe that is finished, with an untrained network as its best member."""
    from nram.training.population import init_population, member_at
    from nram.training.run_folder import RunFolder
    from nram.training.settings import config_to_dict, load_config

    config = load_config("access", seed=5)
    path = tmp_path / "runs" / "access-5"
    folder = RunFolder.create(path, config, ["train", "access", "--seed", "5"], "here")
    group = config.group_configs[0]
    member = member_at(init_population(group, 1).members.controller, 0)
    folder.save_member(0, member, {"config": config_to_dict(group), "group": 0})
    result = {"perfect_members": 0, "examined_members": 0, "best_validation_exact_hard": 0.0, "seconds": 1.5}
    folder.write_result(result)
    return path


def test_train_examines_the_best_member_of_its_run_instead_of_the_zoo_s(call, tmp_path, finished_run):
    outcome = call("--train", "access", "--seed", 5, *QUICK, "--out", tmp_path, "--json")
    assert outcome.status == 0, outcome.err
    assert f"{finished_run} is finished already" in outcome.err
    (row,) = json.loads(outcome.out)["tasks"]
    assert row["trained"]["source"] == str(finished_run)
    assert row["trained"]["made"] == "nram train access --seed 5"
    soft = row["trained"]["at_trained_complexity"]["soft"]
    assert soft["limits"]["T"]["wrong"] > 0 and soft["limits"]["T"]["error"] > 0 and not soft["right_at_T"]
    assert row["searched"]["source"] == "access@searched"


def test_train_refuses_a_run_of_another_configuration(call, tmp_path, finished_run):
    (tmp_path / "runs" / "access-6").symlink_to(finished_run)
    outcome = call("--train", "access", "--seed", 6, *QUICK, "--out", tmp_path)
    assert outcome.status == 2
    assert "seed: 5 in the run, 6 asked for" in outcome.err


@pytest.mark.parametrize(
    "words, told",
    [
        (("maximum",), "not in the paper's Table 1"),
        (("--count", "19"), "give at least 20"),
        (("swap", "--at", "1"), "swap has no instances of complexity 1"),
        (("--origin", "found"), "invalid choice"),
        (("--train", "copy", "--origin", "searched"), "add --origin trained"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(call, tmp_path, words, told):
    outcome = call(*words, "--out", tmp_path / "new")
    assert (outcome.status, outcome.out) == (2, "")
    assert told in outcome.err
    assert not (tmp_path / "new").exists()


def test_a_file_in_the_folder_s_place_is_refused(call, tmp_path):
    (tmp_path / "file").touch()
    for place in ("file", "file/below"):
        outcome = call("access", *QUICK, "--out", tmp_path / place)
        assert outcome.status == 2 and "choose another --out" in outcome.err
