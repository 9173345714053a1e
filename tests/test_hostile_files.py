"""Files made to do harm: every field of every record gets hostile values. They are read or refused, never a traceback.

`tests/fuzz` does the same at random. Here nothing is random: each field and each value has its turn.
"""

import copy
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.configs import plain_config

from nram.cli.memory_argument import read_memory
from nram.errors import NramError, UsageError
from nram.search.instances import Pool
from nram.search.state import Left, Question, SearchState, load_state, save_state
from nram.search.structure import Structure
from nram.tasks import example_files
from nram.tasks.base import Instance
from nram.tasks.example_files import read_examples
from nram.training.checkpoint import _digest, read_description, save_arrays
from nram.training.config import TrainConfig
from nram.training.group import GroupState
from nram.training.job import TrainingJob
from nram.training.run_folder import RunFolder, read_config
from nram.training.settings import config_from_dict, config_to_dict, flat_settings, load_config
from nram.training.trainer import _described_state, _State

CONFIG = plain_config("access", seed=5)
SETTINGS = config_to_dict(CONFIG)
VALUES = [
    None,
    True,
    -1,
    0,
    0.5,
    10**6,
    10**12,
    10**30,
    1e300,
    "",
    "x",
    "a\0b.py",
    "x" * 300,
    [],
    [[]],
    [None],
    [10**12],
]
VALUES += [{}, {"x": 1}, {"": None}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields, and of the first and second entry of every list."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*path, key)
        yield from places(part, (*path, key))


def changed(value: Any) -> Iterator[tuple[str, Any]]:
    """The value with one field replaced, removed or added, and what was done."""
    for hostile in VALUES:
        yield f"all = {hostile!r:.20}", hostile
    for path in places(value):
        for hostile in (*VALUES, "REMOVED", "ADDED"):
            new = copy.deepcopy(value)
            part = new
            for key in path[:-1]:
                part = part[key]
            if hostile == "REMOVED":
                del part[path[-1]]
            elif hostile == "ADDED" and isinstance(part, dict):
                part["more " * 20] = 1
            else:
                part[path[-1]] = hostile
            yield f"{'.'.join(map(str, path))} = {hostile!r:.20}", new


def outcomes(value: Any, read: Callable[[Any], object]) -> dict[str, str]:
    """How each changed value was refused; those that were read are left out."""
    refused = {}
    for what, new in changed(value):
        try:
            read(new)
        except NramError as error:
            refused[what] = str(error)
            assert len(str(error)) < 5000, what
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
    return refused


# ---- settings, run.json, result.json, metrics.jsonl


def test_every_setting_refuses_what_is_not_of_its_type_or_beyond_its_limits():
    refused = outcomes(SETTINGS, config_from_dict)
    for name, value in flat_settings(CONFIG).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not name.startswith("hyper."):
            for hostile in ("True", "1" + "0" * 12, "'x'", "[]"):
                assert name in refused[f"{name} = {hostile}"], (name, hostile)


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("validation=1000000000", "validation is 1000000000: give 8 to 100000"),
        ("machine.repeats=1000000000", "machine.repeats is 1000000000: give 1 to 64"),
        ("registers=100000", "machine.registers is 100000: give 1 to 64"),
        ("population=10000000", "stages.0.population is 10000000: give 1 to 65536"),
        ("repeats=64", "a circuit has 896 operations, and the most is 512"),
        ("steps_per_item=1000000", "an episode would have 4000014 steps, and the most is 1000000"),
        ("learning_rate=1e39", "hyper.learning_rate: 1e+39 is too large: the most is 1e+38"),
        ("steps_constant=1e400", "steps_constant is '1e400', not a whole number or null"),
        (f"seed={'9' * 5000}", "seed is "),
    ],
)
def test_settings_that_would_exhaust_the_computer_are_refused(override, told):
    with pytest.raises(UsageError) as refused:
        plain_config("access", override)
    assert told in str(refused.value)


def test_large_settings_together_are_refused_too():
    with pytest.raises(UsageError, match=r"validation is 100000: instances of complexity 20000 have \d+ cells"):
        plain_config("access", "validation=100000", "max_complexity=10000")


@pytest.fixture
def run(tmp_path) -> RunFolder:
    run = RunFolder.create(tmp_path / "run", CONFIG, ["train", "access"], "a device")
    run.append_metrics({"stage": 0, "max_complexity": 3, "seconds": 1.5, "median_error": 0.5, "best_error": 0.25})
    failed = {"part": "far", "limit": "T", "members": 2}
    result = {"perfect_members": 1, "examined_members": 2, "best_validation_exact_hard": 1.0, "seconds": 3.5}
    run.write_result({**result, "failed_examinations": [failed]})
    return run


def test_every_field_of_run_json(run):
    record = json.loads((run.path / "run.json").read_text())
    record["config"] = {"task": "access", "batch": 4}  # the settings have their own test

    def read(value: Any) -> None:
        (run.path / "run.json").write_text(json.dumps(value))
        opened = RunFolder.open(run.path)
        assert opened.config and opened.differences("another device") is not None

    refused = outcomes(record, read)
    assert "format is True, not a whole number" in refused["format = True"]
    assert "format 1000000 of the run folder" in refused["format = 1000000"]
    for field in ("config", "arguments", "versions", "device", "created"):
        assert (
            field in refused[f"{field} = 10000000000000"[: len(field) + 16]]
            and str(run.path) in refused[f"{field} = True"]
        )


def test_every_field_of_result_and_metrics(run):
    def read_result(value: Any) -> None:
        (run.path / "result.json").write_text(json.dumps(value))
        assert run.result == value

    refused = outcomes(run.result, read_result)
    assert (
        "failed_examinations.0.part is 'x', not one of hard, far, soft" in refused["failed_examinations.0.part = 'x'"]
    )

    def read_metrics(value: Any) -> None:
        run.metrics.write_text(json.dumps(value) + "\n")
        assert run.read_metrics() == [value]

    (row,) = run.read_metrics()
    assert "line 1, cannot be used: seconds is 'x', not a number" in outcomes(row, read_metrics)["seconds = 'x'"]


def test_a_file_that_is_not_a_member_is_left_alone(run):
    (run.path / "best").mkdir()
    for name in ("0", "x", "-1", "1.5", "٣", "9" * 30):
        (run.path / "best" / f"{name}.safetensors").touch()
    assert run.members() == [0]


# ---- states of a search

QUESTION = Question("access", 1, (Structure(1, 1, modules=("READ", "INC")),))


def test_every_field_of_a_search_state(tmp_path):
    structure = QUESTION.structures[0]
    genes = np.zeros((structure.rows, structure.width), np.int16)
    instance = Instance([1, 2, 0], [2, 2, 0], [0], [0], 6)
    state = SearchState(3, 100, 4, (instance,), 2.5, genes, structure, (Left(structure, 2.5, genes),))
    path = tmp_path / "state"
    save_state(path, QUESTION, state)
    assert load_state(path, QUESTION) == state

    def read(value: Any) -> None:
        path.write_text(json.dumps(value))
        found = load_state(path, QUESTION)
        Pool((instance,)).joined(found.counterexamples)
        assert all(structure.holds(one.genes) for one in found.left) and found.round <= 10**6

    save_state(path, QUESTION, state)
    refused = outcomes(json.loads(path.read_text()), read)
    assert all(str(path) in message for message in refused.values())
    for place in ("nram_search", "round", "candidates", "best_cost", "left.0.cost", "counterexamples.0.steps"):
        assert f"{place} = True" in refused and f"{place} = {10**30!r:.20}" in refused
    assert "left.0.structure.registers = 1000000" in refused and "best_genes.0.0 = 1000000" in refused


def test_a_state_without_a_finite_cost_is_json_and_states_of_0_2_are_read(tmp_path):
    structure = QUESTION.structures[0]
    genes = np.zeros((structure.rows, structure.width), np.int16)
    state = SearchState(3, 100, 4, (), math.inf, genes, structure, ())
    save_state(tmp_path / "state", QUESTION, state)
    text = (tmp_path / "state").read_text()
    assert "Infinity" not in text and load_state(tmp_path / "state", QUESTION) == state
    (tmp_path / "state").write_text(text.replace('"best_cost": null', '"best_cost": Infinity'))
    assert load_state(tmp_path / "state", QUESTION) == state


def test_a_structure_of_a_million_registers_is_refused_at_once():
    with pytest.raises(UsageError, match="has too many rows"):
        Structure(10**12)


# ---- weights and checkpoints


def test_every_field_of_the_description_of_weights(tmp_path):
    arrays = {"weight": np.ones((2, 3), np.float32)}
    small = {"task": "access", "machine": {"registers": 2, "hidden": 3}}

    def read(value: Any) -> None:
        save_arrays(tmp_path / "w", arrays, {"config": value} if value is not None else {})
        assert isinstance(read_config(tmp_path / "w"), TrainConfig)

    refused = outcomes(small, read)
    assert "machine.registers is True, not a whole number" in refused["machine.registers = True"]
    assert "does not say how it was trained" in refused["all = None"]


@pytest.mark.parametrize("version", [0, 2, True, "1", None, 1.0, [1]])
def test_weights_of_an_unknown_format_are_refused(tmp_path, version):
    save_arrays(tmp_path / "w", {"a": np.ones(3, np.float32)}, {"format": version})
    with pytest.raises(NramError, match=r"is in format .* of weights, and this nram reads format 1"):
        read_description(tmp_path / "w")


OLD_STATE = {"stage": 1, "step": 25, "done": False, "seconds": 1.5, "rows": 3, "solved_hard": 0.25, "perfect": 0}
REACHED = GroupState(begun=True, stage=1, step=25, rounds=2, turn=1e6, solved_hard=0.25, best_hard=0.5, best_halted=1.0)


@pytest.mark.parametrize("state", [OLD_STATE, asdict(_State(groups=[REACHED], current=0, seconds=1.5, rows=3))])
def test_every_field_of_the_state_in_a_checkpoint(state):
    """Up to 0.2 the state of the one group and that of the run were one table."""
    refused = outcomes(
        {"state": state}, lambda value: _described_state(Path("file"), value if isinstance(value, dict) else {})
    )
    fields = [*(f"groups.0.{name}" for name in state.get("groups", [{}])[0]), *(state.keys() - {"groups"})]
    assert len(fields) >= 7
    for field in fields:
        assert f"{field} is 'x', not" in refused[f"state.{field} = 'x'"]
        assert f"state.{field} = {10**30!r:.20}" in refused


def forged(header: Any, data: bytes = bytes(24)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
METADATA = {"description": "{}", "digest": "x"}
HEADERS = {
    "half a float": {"a": {**ENTRY, "dtype": "BF16", "shape": [12]}},
    "a quarter of a float": {"a": {**ENTRY, "dtype": "F8_E4M3", "shape": [24]}},
    "an unknown type": {"a": {**ENTRY, "dtype": ["F32"]}},
    "a huge shape": {"a": {**ENTRY, "shape": [2**62, 2**62]}},
    "a shape that overflows": {"a": {**ENTRY, "shape": [2**32, 2**32, 3]}},
    "a negative shape": {"a": {**ENTRY, "shape": [-2, -3]}},
    "a true shape": {"a": {**ENTRY, "shape": [True, 6]}},
    "many axes": {"a": {**ENTRY, "shape": [1] * 100 + [6]}},
    "a smaller shape": {"a": {**ENTRY, "shape": [2, 2]}},
    "beyond the end": {"a": {**ENTRY, "shape": [3, 3], "data_offsets": [0, 36]}},
    "a negative place": {"a": {**ENTRY, "data_offsets": [-24, 0]}},
    "one place": {"a": {**ENTRY, "data_offsets": [0]}},
    "the same place twice": {"a": ENTRY, "b": ENTRY},
    "nothing": {},
    "a list": {"a": [1, 2]},
    "an unknown member": {"a": {**ENTRY, "strides": [1]}},
    "no place": {"a": {"dtype": "F32", "shape": [2, 3]}},
}
METADATAS = [
    None,
    1,
    [],
    {},
    {"description": 1, "digest": "x"},
    {"description": "{}"},
    {"description": "{}", "digest": 2},
]


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_that_lies_is_refused_before_arrays_are_made(tmp_path, case):
    (tmp_path / "w").write_bytes(forged({"__metadata__": METADATA, **HEADERS[case]}))
    with pytest.raises(NramError, match="is damaged"):
        read_description(tmp_path / "w")


@pytest.mark.parametrize("metadata", METADATAS)
def test_metadata_of_other_types_is_refused(tmp_path, metadata):
    (tmp_path / "w").write_bytes(forged({"__metadata__": metadata, "a": ENTRY}))
    with pytest.raises(NramError, match="is damaged"):
        read_description(tmp_path / "w")


def test_other_headers_are_refused(tmp_path):
    twice = json.dumps({"__metadata__": METADATA, "a": ENTRY})[:-1] + f', "a": {json.dumps(ENTRY)}}}'
    contents = [forged(header) for header in (b"", b"{", b"[]", b"null", b"\xff", b"[" * 5000, twice.encode(), 3)]
    contents += [size.to_bytes(8, "little") + b"{}" for size in (0, 1, 3, 2**24, 2**40, 2**64 - 1)]
    for content in contents:
        (tmp_path / "w").write_bytes(content)
        with pytest.raises(NramError, match="is damaged"):
            read_description(tmp_path / "w")


@pytest.mark.parametrize("description", ["", "x", "[]", "3", "NaN", '{"a": 1, "a": 2}', "[" * 5000])
def test_a_description_that_is_not_an_object_is_refused(tmp_path, description):
    array = np.frombuffer(bytes(24), np.float32).reshape(2, 3)
    metadata = {"description": description, "digest": _digest({"a": array}, description)}
    (tmp_path / "w").write_bytes(forged({"__metadata__": metadata, "a": ENTRY}))
    with pytest.raises(NramError, match="has no valid description"):
        read_description(tmp_path / "w")


def test_a_file_larger_than_the_memory_is_refused_without_reading_it(tmp_path):
    with open(tmp_path / "w", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UsageError, match="is too large for a file of weights"):
        read_description(tmp_path / "w")


# ---- without end, and very long


def test_files_without_end_are_refused():
    with pytest.raises(UsageError, match="too large for a memory as text: the most is 64 MiB"):
        read_memory("@/dev/zero")
    with pytest.raises(UsageError, match="too large for a configuration: the most is 1 MiB"):
        load_config("access", file=Path("/dev/zero"))
    with pytest.raises(UsageError, match="too large for a file of examples: the most is 256 MiB"):
        read_examples(Path("/dev/zero"))


def test_repeated_examples_take_no_longer_than_others(tmp_path):
    """Compared each with each, these would take minutes."""
    line = json.dumps({"input": [0, 2, 0], "output": [2, 2, 0]})
    (tmp_path / "equal.jsonl").write_text(f"{line}\n" * 20_000)
    found = read_examples(tmp_path / "equal.jsonl")
    assert (len(found.examples), found.repeated) == (1, 19_999)
    lines = [json.dumps({"input": [0] * 8, "output": [1] * 8, "cells": [k % 8, (k + 1) % 8]}) for k in range(10_000)]
    (tmp_path / "parts.jsonl").write_text("\n".join(lines))
    assert len(read_examples(tmp_path / "parts.jsonl").examples) == 8


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            '{"input": [0, 1, 0], "output": [1, 1, 0], "input": [0, 2, 0]}',
            "line 1: it cannot be read (an object has 'input' twice)",
        ),
        (
            '{"input": [0, 1, 0], "output": [1, 1, 0], "steps": 1000000000000}',
            "give a whole number from 1 to 2147483647",
        ),
        ('{"input": [0, 1, 0], "output": [1, 1, 0], "steps": true}', "steps is True: give a whole number"),
        ('{"input": [0, 1, NaN], "output": [1, 1, 0]}', "NaN is not a number"),
        ('{"input": "' + "0" * 100_000 + '", "output": [1, 1, 0]}', "not a list of whole numbers"),
        ("{\n" * 2000, "line 1, and 999 more (2, 3, 4, 5, ...)"),
    ],
)
def test_bad_example_files_get_the_true_reason(tmp_path, content, told):
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(UsageError) as refused:
        read_examples(tmp_path / "a.jsonl")
    assert told in str(refused.value) and len(str(refused.value)) < 5000


def test_the_number_of_examples_and_lines_is_limited_while_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(example_files, "MOST_EXAMPLES", 1000)
    monkeypatch.setattr(example_files, "MOST_LINES", 2000)
    line = json.dumps({"input": [0, 2, 0], "output": [2, 2, 0]})
    (tmp_path / "a.jsonl").write_text(f"{line}\n" * 1000)
    assert read_examples(tmp_path / "a.jsonl").repeated == 999
    for content, told in ((f"{line}\n" * 1001 + "{", "more than 1000 examples"), ("\n" * 2001, "more than 2000 lines")):
        (tmp_path / "a.jsonl").write_text(content)
        with pytest.raises(UsageError, match=told) as refused:
            read_examples(tmp_path / "a.jsonl")
        assert "line 1002" not in str(refused.value)


def test_a_run_whose_settings_cannot_work_together_is_not_opened(tmp_path):
    """Such settings need not come from a file: `nram learn` makes them from the steps of examples."""
    with pytest.raises(UsageError, match="an episode would have 10000008 steps, and the most is 1000000"):
        TrainingJob.open(tmp_path / "run", replace(CONFIG, steps_per_item=0, steps_constant=10**7), [])
