"""`nram bench step` and `nram bench scaling`: the training step, plain and fast, in one run."""

import pytest

SHAPE = {"task": "access", "memory_size": 4, "registers": 2, "steps": 1, "repeats": 1, "hidden": 8, "batch": 2}
RATES = {"train_example_steps_per_s", "forward_example_steps_per_s"}


@pytest.fixture(scope="module")
def measured(nram):
    words = [word for name, value in SHAPE.items() for word in ("--" + name.replace("_", "-"), str(value))]
    quick = "--xla_backend_optimization_level=0"  # compiling takes longest, and the rates themselves do not matter
    return nram.run("bench", "step", *words, "--seconds", "1", "--json", XLA_FLAGS=quick)


@pytest.mark.slow
def test_json_has_the_rates_of_plain_fast_and_reference(measured):
    assert measured.status == 0, measured.err
    for name in ("plain", "fast", "reference"):
        assert measured.value[name].keys() == RATES
        assert all(rate > 0 for rate in measured.value[name].values())
    assert measured.value["why_plain"] is None


@pytest.mark.slow
def test_json_says_what_was_measured_and_on_what(measured):
    assert measured.value["configuration"] == {**SHAPE, "controller": "mlp", "states": 4, "population": 1}
    assert measured.value["device"]


def test_an_axis_that_does_not_exist_is_bad_usage_that_names_those_that_do(nram):
    result = nram.run("bench", "scaling", "width", "--json")
    assert result.status == 2
    assert "memory_size" in result.err and "width" in result.err


def test_a_picture_of_unknown_kind_is_refused_before_anything_is_measured(nram):
    result = nram.run("bench", "scaling", "repeats", "--plot", "scaling.jpeg2")
    assert result.status == 2
    assert ".png or .svg" in result.err
    assert "measuring" not in result.err


@pytest.mark.parametrize("name", ["scaling.png", "scaling.SVG"])
def test_the_picture_has_a_panel_for_every_axis_and_a_line_for_each_path(name, tmp_path):
    from nram.bench.scaling import Point, plot_scaling

    points = [Point("steps", 6, 0.02, 0.002), Point("steps", 11, 0.04, 0.004), Point("batch", 16, 0.01, None)]
    plot_scaling(points, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert content.startswith(b"\x89PNG") or all(word in content for word in (b"<svg", b"batch", b"plain", b"fast"))
