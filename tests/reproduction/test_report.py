"""The words of the table: what is trained, searched, right at T alone and right under every limit."""

import json

import pytest

from nram.extensions import get_task, task_names
from nram.limits import LIMIT_NAMES
from nram.programs.library import find_entry
from nram.reproduction.examining import Examined, Pair, Plan, Row
from nram.reproduction.figure import draw_generalisation
from nram.reproduction.measuring import Measure
from nram.reproduction.models import Model
from nram.reproduction.paper import TABLE
from nram.reproduction.report import (
    Reproduction,
    curve_cells,
    detail_cells,
    line_cells,
    percent,
    table_cells,
    to_json,
    to_markdown,
)

PLAN = Plan(count=100, at=50)


def measure(n: int, wrong: tuple[int, int, int] = (0, 0, 0), count: int = 100, limits=LIMIT_NAMES) -> Measure:
    shares = {name: number / count / 2 for name, number in zip(limits, wrong, strict=False)}
    return Measure(n, count, shares, dict(zip(limits, wrong, strict=False)))


def model(task: str, origin) -> Model:
    entry = find_entry(f"{task}@searched")
    assert entry is not None
    found = get_task(task)
    return Model(found, origin, f"{task}@{origin}", "nram ...", 10, found.step_limit, None, entry.program)


def examined(task="copy", origin="trained", soft=(0, 0, 0), hard=(0, 0, 0), far=(0, 0, 0), same=100, beyond=(0, 0, 0)):
    trained = origin == "trained"
    return Examined(
        model(task, origin),
        Pair(measure(10) if trained else None, measure(10, hard), 100 if trained else None),
        Pair(measure(50, soft) if trained else None, measure(50, far), same if trained else None),
        (measure(1000, beyond, count=5),),
        tuple(Pair(measure(n, limits="T"), measure(n, limits="T"), 100) for n in (10, 50)) if trained else (),
    )


def reproduction(*ones: Examined, origins=None) -> Reproduction:
    rows = (Row(get_task("copy"), ones),)
    return Reproduction(PLAN, rows) if origins is None else Reproduction(PLAN, rows, origins)


def cells(table: Reproduction) -> dict[str, str]:
    heading, row = table_cells(table)
    return dict(zip(heading, row, strict=True))


def test_the_paper_s_rows_are_the_ten_tasks_in_its_order():
    assert tuple(TABLE) == task_names()[:10]
    for name, row in TABLE.items():
        assert row.complexity.endswith(f"<= {get_task(name).trained_up_to}")


def test_our_columns_stand_beside_those_of_the_paper():
    row = cells(reproduction(examined(), examined(origin="searched")))
    assert row["paper: train error"] == row["ours: train error"] == "0"
    assert row["paper: generalisation"] == row["ours: at n = 50"] == "perfect"
    assert row["paper: discretisation"] == row["ours: discretisation"] == "perfect"
    assert row["ours: program of the network"] == row["searched program"] == "all right to n = 1,000"


def test_without_a_trained_model_the_row_says_so_and_a_searched_program_does_not_fill_the_gap():
    table = reproduction(examined(origin="searched"))
    row = cells(table)
    assert row["ours: train error"] == "not trained yet"
    assert [row[name] for name in ("ours: n up to", "ours: at n = 50", "ours: discretisation")] == ["-"] * 3
    assert row["ours: program of the network"] == "-"
    assert row["searched program"] == "all right to n = 1,000"
    assert ["", "trained", "not trained yet", "", "", "", ""] in line_cells(table)
    found = to_json(table)["tasks"][0]
    assert (found["status"], found["trained"], found["repaired"]) == ("not trained yet", None, None)
    assert found["searched"]["at_trained_complexity"]["soft"] is None


def test_what_was_not_asked_for_is_not_called_untrained():
    assert cells(reproduction(origins=("searched",)))["ours: train error"] == "not asked for"


def test_origins_have_columns_of_their_own():
    heading = table_cells(reproduction(examined(), examined(origin="repaired"), examined(origin="searched")))[0]
    assert heading[-3:] == ["ours: program of the network", "repaired program", "searched program"]


@pytest.mark.parametrize(
    "soft, words",
    [
        ((0, 0, 0), "perfect"),
        ((0, 0, 7), "perfect at T only"),
        ((1, 0, 0), "error 0.5%, 99.0% exact"),
    ],
)
def test_generalisation_tells_the_two_strengths_apart(soft, words):
    assert cells(reproduction(examined(soft=soft)))["ours: at n = 50"] == words


@pytest.mark.parametrize(
    "settings, words",
    [
        ({}, "perfect"),
        ({"same": 99, "far": (0, 0, 1)}, "error 0, 0 at n = 50"),
        ({"same": 99, "far": (8, 8, 8)}, "error 0, 4.0% at n = 50"),
        ({"same": 92, "soft": (8, 8, 8)}, "better: no error left"),
        ({"same": 100, "soft": (8, 8, 8), "far": (8, 8, 8)}, "perfect"),  # the same mistakes: the paper's sense
    ],
)
def test_discretisation_is_perfect_if_the_outputs_are_the_same(settings, words):
    assert cells(reproduction(examined(**settings)))["ours: discretisation"] == words


@pytest.mark.parametrize(
    "settings, words",
    [
        ({}, "all right to n = 1,000"),
        ({"beyond": (0, 5, 5)}, "all right to n = 50, at T only to n = 1,000"),
        ({"hard": (0, 1, 1), "beyond": (5, 5, 5)}, "at T only to n = 50"),
        ({"far": (1, 0, 0)}, "all right to n = 10"),
        ({"hard": (1, 0, 0)}, "wrong at n = 10"),
    ],
)
def test_a_program_is_all_right_up_to_the_first_size_with_a_mistake(settings, words):
    assert cells(reproduction(examined(**settings)))["ours: program of the network"] == words


def test_shares_are_rounded_but_never_to_none_or_all():
    assert [percent(share) for share in (0, 1, 0.5, 0.003, 1e-5, 0.99999)] == [
        "0",
        "100%",
        "50.0%",
        "0.3%",
        "0.001%",
        "99.999%",
    ]


def test_the_markdown_has_the_table_the_figure_and_every_limit():
    text = to_markdown(reproduction(examined(beyond=(0, 0, 2))), "generalisation.svg")
    assert "arXiv:1511.06392" in text and "(generalisation.svg)" in text
    assert "| copy@trained | 2n+4 | program | = 1,000 | 5 | all right | all right | 2 wrong, error 20.0% |" in text
    for block in text.split("\n\n"):
        if block.startswith("|"):
            assert len({line.count("|") for line in block.strip().splitlines()}) == 1


def test_details_give_wrong_instances_under_each_limit():
    rows = detail_cells(reproduction(examined(soft=(0, 2, 3))))
    assert ["copy@trained", "2n+4", "network", "= 50", "100", "all right", "2 wrong, error 1.0%"] in [
        r[:7] for r in rows
    ]


def test_the_figure_s_points_are_in_the_json_and_in_a_table():
    table = reproduction(examined())
    points = json.loads(json.dumps(to_json(table)))["tasks"][0]["trained"]["curve"]
    assert [(point["max_complexity"], point["soft"]["error"]) for point in points] == [(10, 0), (50, 0)]
    assert curve_cells(table)[1] == ["copy", "network", "0", "0"]


def test_the_figure_is_the_same_bytes_for_the_same_figures(tmp_path):
    table = Reproduction(PLAN, (Row(get_task("copy"), (examined(),)), Row(get_task("listk"), ())))
    for name in ("one.svg", "two.svg"):
        draw_generalisation(table, tmp_path / name)
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "two.svg").read_text()
    assert "copy" in text and "not trained yet" in text
    assert "perfect" in text and "100%" in text and "prefers-color-scheme:dark" in text
