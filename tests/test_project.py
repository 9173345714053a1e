"""The files around the code agree with each other: versions, supported Pythons, hooks, workflow."""

import re
import tomllib
from pathlib import Path

import yaml

import nram

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def load(name: str):
    return yaml.safe_load((ROOT / name).read_text())


def test_every_place_names_the_same_version():
    assert load("CITATION.cff")["version"] == nram.__version__
    released = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == nram.__version__


def test_the_supported_pythons_are_those_that_the_workflow_tests():
    claimed = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if "Python :: 3." in name]
    assert claimed
    assert load(".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python-version"] == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    for page in ("CONTRIBUTING.md", "docs/compatibility.md"):
        text = (ROOT / page).read_text()
        assert all(version in text for version in claimed)


def test_the_hooks_are_local_and_use_tools_of_the_set_up():
    requirements = " ".join(PROJECT["optional-dependencies"]["dev"])
    for repository in load(".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            assert hook["language"] == "system"
            assert hook["entry"].split()[0].removeprefix(".venv/bin/") in requirements


def test_the_issue_forms_have_what_a_form_needs():
    for name in ("bug", "feature", "question"):
        form = load(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert form["name"] and form["description"]
        assert all(part["attributes"]["label"] for part in form["body"])
