"""Specifications of studies: what they mean, and what is said about a bad one."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from nram.cli import build_parser
from nram.cluster.checks import check_trials
from nram.cluster.plan import trials_of
from nram.cluster.spec import Spec
from nram.cluster.spec_file import read_spec, spec_from
from nram.errors import UntrustedFile, UsageError
from nram.programs.files import save_program
from nram.programs.library import load_program


def spec_of(text: str, folder: Path = Path("/nowhere")) -> Spec:
    return spec_from(tomllib.loads(text), "study.toml", folder)


def test_every_combination_is_a_trial_once():
    spec = spec_of(
        """
        tasks = ["copy", "merge"]
        seeds = "0..2"
        [settings]
        noise = 0
        [grid]
        learning_rate = [1e-3, 3e-3]
        "machine.registers" = [3, 4]
        [arms.all]
        [arms.no-lexicase]
        "cull.lexicase" = false
        """
    )
    trials = trials_of(spec)
    assert len(trials) == len({trial.name for trial in trials}) == 2 * 3 * 4 * 2
    assert len({(t.subject, t.seed, str(t.settings)) for t in trials}) == len(trials)
    first = trials[0]
    assert (first.name, first.overrides) == (
        "copy-all-g0-0", ["noise=0", "learning_rate=0.001", "machine.registers=3"],
    )  # fmt: skip
    (one,) = (trial for trial in trials if trial.name == "merge-no-lexicase-g3-2")
    assert one.settings["cull.lexicase"] is False
    assert [trial.seed for trial in trials] == sorted(trial.seed for trial in trials)
    check_trials(spec, trials, trust=False)


def test_a_single_variant_has_no_label():
    assert [trial.name for trial in trials_of(spec_of('tasks = ["copy"]\nseeds = [4, 2]'))] == ["copy-4", "copy-2"]


def test_draws_are_the_same_for_every_task_and_seed_and_stay_in_their_range():
    text = """
    tasks = ["copy", "merge"]
    seeds = "0..1"
    [random]
    trials = 30
    [random.settings]
    learning_rate = {from = 1e-4, to = 1e-1, log = true}
    batch = {from = 8, to = 16, whole = true}
    noise = [0, 0.1]
    """
    trials = trials_of(spec_of(text))
    assert trials == trials_of(spec_of(text))
    drawn: dict[str, set[str]] = {}
    for trial in trials:
        drawn.setdefault(trial.label, set()).add(str(trial.settings))
        assert 1e-4 <= trial.settings["learning_rate"] <= 1e-1
        assert type(trial.settings["batch"]) is int and 8 <= trial.settings["batch"] <= 16
        assert trial.settings["noise"] in (0, 0.1)
    assert len(drawn) == 30 and {len(values) for values in drawn.values()} == {1}
    assert len(set.union(*drawn.values())) == 30


def test_an_arm_may_have_its_own_protocol():
    trials = trials_of(spec_of('tasks = ["copy"]\n[arms.a]\nnoise = 0\n[arms.b]\nprotocol = "paper"\nnoise = 0'))
    assert [(one.label, one.protocol, one.settings) for one in trials] == [
        ("a", None, {"noise": 0}),
        ("b", "paper", {"noise": 0}),
    ]
    assert "--protocol" in trials[1].words and "--protocol" not in trials[0].words


@pytest.mark.parametrize("verb", ["train", "search", "learn"])
def test_the_command_of_a_trial_is_one_that_the_verb_takes(verb: str):
    subjects = 'files = ["a.jsonl"]' if verb == "learn" else 'tasks = ["copy"]'
    settings = {"train": "noise = inf", "search": "registers = 3", "learn": 'steps = "3n+10"'}[verb]
    (trial,) = trials_of(spec_of(f'verb = "{verb}"\n{subjects}\nseeds = 7\nbudget = 9\n[settings]\n{settings}'))
    arguments = build_parser(trial.words).parse_args(trial.words)
    assert (arguments.verb, arguments.seed) == (verb, 7)


def test_a_study_goes_through_json_and_back():
    spec = spec_of(
        'tasks = ["copy"]\nbudget = 9\n[random]\ntrials = 2\n[random.settings]\nnoise = [0, 1]\n[settings]\n'
        "clip_activations = inf"
    )
    assert spec.settings == {"clip_activations": "inf"}
    assert trials_of(spec)[0].overrides[0] == "clip_activations=inf"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('task = ["copy"]', "task is unknown: did you mean tasks"),
        ("seeds = 1", "tasks is missing"),
        ('tasks = ["copy"]\nverb = "trian"', "verb is 'trian', not one of train, search, learn"),
        ('tasks = ["copy"]\nseeds = "9..0"', "seeds: '9..0' is empty: write the smaller seed first"),
        ('tasks = ["copy"]\nseeds = [1, 1]', "seeds: a seed is there twice"),
        ('tasks = ["copy"]\nseeds = 4294967296', "seeds: 4294967296 is not from 0"),
        ('tasks = ["copy", "copy"]', "tasks: 'copy' is there twice"),
        ('tasks = ["copy"]\nbudget = -1', "budget is -1.0: give 0.1 to"),
        ('tasks = ["copy"]\nprotocol = 3', "protocol is 3, not a text"),
        ('tasks = ["copy"]\nverb = "search"', "budget is missing"),
        ('tasks = ["copy"]\nverb = "learn"\nbudget = 1', "'learn' learns files of examples"),
        ('tasks = ["copy"]\n[grid]\nnoise = []', "grid.noise is empty"),
        ('tasks = ["copy"]\n[grid]\nnoise = 3', "grid.noise is 3, not a list"),
        ('tasks = ["copy"]\n[grid]\nnoise = [1, 1]', "grid.noise has a value twice"),
        ('tasks = ["copy"]\n[settings]\nnoise = 1\n[grid]\nnoise = [1, 2]', "grid.noise is in settings too"),
        ('tasks = ["copy"]\n[settings]\nnoise = 2020-01-01', "is a date"),
        (
            'tasks = ["copy"]\n[random]\ntrials = 2\n[random.settings]\nnoise = [0, 2020-01-01]',
            "2020-01-01 is a date",
        ),
        ('tasks = ["copy"]\n[arms."a b"]', "name an arm by at most"),
        ('tasks = ["copy"]\n[resources]\ncpus = 2', "resources.cpus is unknown"),
        ('tasks = ["copy"]\n[resources]\ngpus = 1.5', "resources: gpus is 1.5: give a fraction"),
        ('tasks = ["copy"]\n[random]\ntrials = 2\n[random.settings]\nnoise = {from = 1}', "needs from and to"),
        (
            'tasks = ["copy"]\n[random]\ntrials = 2\n[random.settings]\nnoise = {from = 0, to = 1, log = true}',
            "above 0",
        ),
        ('tasks = ["copy"]\ntrack = ["tensorbord"]', "track.0 is 'tensorbord', not one of tensorboard, mlflow, wandb"),
        ('tasks = ["copy"]\nverb = "search"\nbudget = 1\ntrack = ["wandb"]', "track is for verb = 'train'"),
        ('tasks = ["copy"]\n[arms.a]\nprotocol = "papers"', "arms.a.protocol is 'papers', not one of paper"),
        ('tasks = ["copy"]\nprotocol = "papers"', "protocol is 'papers', not one of paper"),
        ('tasks = ["copy"]\n[early_stopping]\ngrace = 5', "early_stopping needs verb = 'train' and a budget"),
        ('tasks = ["copy"]\nseeds = "0..99999"\n[grid]\nnoise = [1, 2]', "200,000 trials: the most is 100,000"),
    ],
)
def test_a_bad_field_is_named_with_what_to_do(text: str, words: str):
    with pytest.raises(UsageError) as caught:
        spec_of(text)
    assert words in str(caught.value) and "null" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('tasks = ["copyy"]', "tasks.0: "),
        ('tasks = ["copy"]\n[grid]\nlearning_rat = [1, 2]', "grid.learning_rat: unknown setting 'learning_rat'"),
        ('tasks = ["copy"]\n[arms.a]\n[arms.b]\nnoize = 3', "arms.b.noize: unknown setting 'noize'"),
        ('verb = "search"\nbudget = 1\ntasks = ["copy"]\n[settings]\nregister = 3', "did you mean registers"),
        ('verb = "search"\nbudget = 1\nfiles = ["no.jsonl"]', "- files.0: "),
        ('verb = "search"\nbudget = 1\nfiles = ["no"]', "- files.0: "),
        (
            'tasks = ["copy"]\n[grid]\nnoise = [0, 1]\n[arms.no]\nbatch = 8\n[arms.no-restarts]\nbatchh = 3',
            "- arms.no-restarts.batchh: unknown setting 'batchh'",
        ),
        (
            'tasks = ["copy"]\n[settings]\nbatch = 8\n[grid]\nnoise = [0, 1]\n[arms.no-gates]\nbatchh = 3',
            "- arms.no-gates.batchh: unknown setting 'batchh'",
        ),
        ('verb = "search"\nbudget = 1\ntasks = ["copy"]\n[settings]\nregisters = "x"', "not a whole number"),
        (
            'verb = "search"\nbudget = 1\ntasks = ["copy"]\n[settings]\nlibrary = "copy,revers"',
            "- settings.library: library cannot be used: there is no program 'revers'",
        ),
        (
            'verb = "search"\nbudget = 1\ntasks = ["copy"]\n[arms.a]\n[arms.b]\nlibrary = "none,no.nram"',
            "- arms.b.library: library cannot be used: there is no program 'none'",
        ),
    ],
)
def test_a_bad_setting_is_named_before_anything_runs(text: str, words: str):
    spec = spec_of(text)
    with pytest.raises(UsageError) as caught:
        check_trials(spec, trials_of(spec), trust=False)
    told = str(caught.value)
    assert words in told and told.count("\n  - ") == 1 and "null" not in told


def test_a_range_whose_draws_are_wrong_is_named_once():
    spec = spec_of('tasks = ["copy"]\n[random]\ntrials = 9\n[random.settings]\nbatch = {from = 8.5, to = 8.9}')
    with pytest.raises(UsageError) as caught:
        check_trials(spec, trials_of(spec), trust=False)
    (told,) = str(caught.value).split("\n  - ")[1:]
    assert told.startswith("random.settings.batch: ")
    assert told.endswith("not a whole number: write whole = true into its range")


def test_a_bad_file_of_examples_is_named_once_for_all_arms(tmp_path: Path):
    (tmp_path / "good").write_text('{"in": [1], "out": [2]}\n' * 2)
    (tmp_path / "bad").write_text("{")
    spec = spec_of(
        'verb = "learn"\nfiles = ["good", "bad"]\nbudget = 9\n[arms.a]\nmethod = "search"\n[arms.b]', tmp_path
    )
    with pytest.raises(UsageError, match=r"files\.1: line 1") as caught:
        check_trials(spec, trials_of(spec), trust=False)
    assert str(caught.value).count("\n  - ") == 1


def test_files_are_found_beside_the_specification_and_executed_only_if_they_are_named(tmp_path: Path):
    (tmp_path / "mine.py").write_text("raise SystemExit('executed')\n")
    (tmp_path / "study.toml").write_text('tasks = ["mine.py"]\n')
    spec = read_spec(tmp_path / "study.toml")
    assert spec.tasks == (str(tmp_path / "mine.py"),)
    with pytest.raises(UntrustedFile):
        check_trials(spec, trials_of(spec), trust=False)


def test_a_file_that_is_not_toml_is_said_so(tmp_path: Path):
    (tmp_path / "study.toml").write_text("tasks = [")
    with pytest.raises(UsageError, match="it is not TOML"):
        read_spec(tmp_path / "study.toml")


@pytest.mark.parametrize("place", ["settings", "grid", "arms.a", "random.settings"])
def test_files_of_modules_are_executed_only_if_they_are_named(tmp_path: Path, place: str):
    (tmp_path / "mine.py").write_text("raise SystemExit('executed')\n")
    value = '["READ", "mine.py"]'
    value = f"[{value}]" if place in ("grid", "random.settings") else value
    table = f"[random]\ntrials = 1\n[{place}]\n" if place == "random.settings" else f"[{place}]\n"
    for verb in ("train", "search"):
        value = value if verb == "train" else value.replace('["READ", "mine.py"]', '"READ,mine.py"')
        (tmp_path / "study.toml").write_text(
            f'verb = "{verb}"\ntasks = ["copy"]\nbudget = 9\n{table}modules = {value}\n'
        )
        spec = read_spec(tmp_path / "study.toml")
        assert str(tmp_path / "mine.py") in str(trials_of(spec)[0].settings)
        with pytest.raises(UntrustedFile):
            check_trials(spec, trials_of(spec), trust=False)


def test_programs_of_a_library_are_found_beside_the_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("mine.nram", "other"):
        save_program(load_program("copy"), tmp_path / name)
    monkeypatch.chdir("/")
    spec = spec_of(
        'verb = "search"\nbudget = 1\ntasks = ["copy"]\n[grid]\nlibrary = ["zoo", "none", "copy, mine.nram,other"]',
        tmp_path,
    )
    assert spec.grid["library"] == ["zoo", "none", f"copy,{tmp_path / 'mine.nram'},{tmp_path / 'other'}"]
    check_trials(spec, trials_of(spec), trust=False)
