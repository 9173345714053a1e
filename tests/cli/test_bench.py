"""`nram bench step`: rates of the machine and of the frozen reference, in one run."""

import pytest

SHAPE = {"task": "access", "memory_size": 4, "registers": 2, "steps": 2, "repeats": 1, "hidden": 8, "batch": 2}
RATES = {"train_example_steps_per_s", "forward_example_steps_per_s"}


@pytest.fixture(scope="module")
def measured(nram):
    words = [word for name, value in SHAPE.items() for word in ("--" + name.replace("_", "-"), str(value))]
    return nram.run("bench", "step", *words, "--seconds", "1", "--json")


def test_json_has_the_rates_of_plain_and_reference_and_null_where_there_is_no_fast_one(measured):
    assert measured.status == 0, measured.err
    for name in ("plain", "reference"):
        assert measured.value[name].keys() == RATES
        assert all(rate > 0 for rate in measured.value[name].values())
    assert measured.value["fast"] is None


def test_json_says_what_was_measured_and_on_what(measured):
    assert measured.value["configuration"] == {**SHAPE, "controller": "mlp", "states": 4, "population": 1}
    assert measured.value["device"]
