"""The table of the data: what its columns hold, whatever is made of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

import onlinevi as ovi
from onlinevi.runs import Places, Results, Run, Settings, Stopper, charts, results_of
from onlinevi.runs.charts.style import number, uncertain
from onlinevi.runs.data_table import data_table
from onlinevi.runs.report.page import page
from onlinevi.runs.report.results import Column
from onlinevi.runs.results import either

CITIES = [f"c{k}" for k in range(90)]


@pytest.fixture
def messy(tmp_path: Path) -> tuple[Path, list[float]]:
    """So many names that rows are sparse, dates, a flag, and an income with gaps; and what is known of the income."""
    rng = np.random.default_rng(0)
    income = rng.normal(25_000.0, 13_000.0, 400).round(2)
    gaps = rng.random(400) < 0.1
    lines = ["income,city,job,since,owns,paid"]
    for k in range(400):
        city, job = CITIES[k % 90], "" if k % 10 == 0 else "worker" if k % 2 else "clerk"
        day = f"20{10 + k % 9}-0{1 + k % 9}-11"
        lines.append(f"{'' if gaps[k] else income[k]},{city},{job},{day},{k % 4 == 0},{'yes' if income[k] > 24_000 else 'no'}")
    path = tmp_path / "messy.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, income[~gaps].tolist()


def told(path: Path, **settings: object) -> Results:
    with Run(Settings("paid", rule="implicit", **settings), Places(str(path))) as run:  # type: ignore[arg-type]
        run.go(Stopper())
    return results_of(run.job)


@pytest.mark.parametrize("settings", [{}, {"kinds": {"city": "text"}}, {"hash_bits": 6}, {"drop": ("city",)}])
def test_moments_are_those_of_the_column_whether_rows_are_sparse_or_not(
    messy: tuple[Path, list[float]], settings: dict[str, object]
) -> None:
    results = told(messy[0], **settings)
    assert results.data is not None
    assert [column.name for column in results.data] == [
        name
        for name in ("income", "city", "job", "since", "owns")
        if name not in settings.get("drop", ())  # type: ignore[operator]
    ]
    income = results.data[0]
    assert income.mean == pytest.approx(np.mean(messy[1]))
    assert income.std == pytest.approx(np.std(messy[1]))
    assert income.missing == 400 - len(messy[1])


def test_names_are_counted_and_nothing_else_is_said_of_them(messy: tuple[Path, list[float]]) -> None:
    results = told(messy[0])
    assert results.data is not None
    city, job, since, owns = results.data[1:]
    assert city == Column("city", "category", None, None, 0, "90 names; c0 in 1 %")
    assert job == Column("job", "category", None, None, 40, "2 names; worker in 50 %")
    assert (since.kind, since.mean, since.holds) == ("date", None, "5 features")
    assert owns.holds == "true in 25 %"
    words = page(results, "")
    assert "5 columns; 99 features were made of them." in words
    assert "from 5 columns" in words, "the title counts the same"


def test_weights_that_are_not_shown_are_not_shown_with_a_word(messy: tuple[Path, list[float]]) -> None:
    few, many = told(messy[0]), told(messy[0], hash_bits=9)
    assert few.posterior is not None
    assert few.without_posterior == ""
    assert many.posterior is None
    assert "No weights are shown: " in page(many, "")
    assert "weights, and a run keeps track of up to 200" in many.without_posterior
    assert "No weights are shown" not in page(few, "")


def test_numbers_have_the_digits_that_say_something() -> None:
    assert uncertain(241.7, 183.0) == "240 ± 180"
    assert uncertain(1.0e9, 2.5e7) == "(1.000 ± 0.025)e9"
    assert "e+" not in uncertain(1234.5678, 99.4)
    assert number(2_547_663_794.0) == "2.548B"
    assert (number(-4.024e18), number(97_738.2), number(2.057e-09)) == ("-4.024e18", "97,738", "2.057e-9")
    assert charts.short(1e-7) == "1e-7"


def test_of_one_row_or_one_class_it_is_said_so() -> None:
    one = ovi.fit([{"a": 1.0, "y": 3.5}], target="y", rule="implicit", task="numbers")
    said = page(results_of(one.job), "")
    assert "The one row was predicted before its answer was seen" in said
    assert 'id="chart-loss"' not in said
    assert "<dd></dd>" not in said, "a model begun in Python has no command"
    assert '<p class="source">tables in memory</p>' in said
    only = ovi.fit([{"a": float(k), "y": "x"} for k in range(30)], target="y", rule="implicit")
    assert results_of(only.job).head.task.sentence == "Predict y (x, the one so far) from 1 column"


def test_what_is_certain_is_said_as_it_is_meant() -> None:
    """Of a stream whose labels change sides, all fixed weights are worse; of many classes the ends are named."""
    turned = [{"a": 1.0, "y": "up" if k // 60 % 2 else "down"} for k in range(360)]
    sentence = ovi.fit(turned, target="y", effort="light").certificate.sentence
    assert re.search(r": all fixed weights of the prepared columns .* are worse than the average loss, by 0\.\d+ at", sentence)
    many = [{"a": float(k % 12), "y": f"c{k % 12}"} for k in range(120)]
    sentence = ovi.fit(many, target="y", rule="implicit", task="classes").certificate.sentence
    assert re.search(r"by more than [\d.]+ \(c\d+\) to [\d.]+ \(c\d+\), of 12 classes\.", sentence)


def test_only_long_tables_scroll_and_names_that_are_cut_are_told_in_full() -> None:
    long = "a very long name of a class"
    rows = [{f"column {k}": float(k * j % 7) for k in range(30)} | {"y": long if j % 7 > 3 else "no"} for j in range(60)]
    said = page(results_of(ovi.fit(rows, target="y", rule="implicit").job), "")
    assert said.count('class="scroll long"') == 1
    assert '<th title="' + long + '">' in said
    assert "The 15 that matter most, of 30." in said


def test_a_column_without_a_value_is_missing_in_every_row() -> None:
    model = ovi.fit([{"a": float(k % 5), "b": None, "y": float(k % 7)} for k in range(30)], target="y", rule="implicit")
    table = data_table(model.job)
    assert table is not None
    assert [(each.name, each.kind, each.missing) for each in table] == [("a", "number", 0), ("b", "no value yet", 30)]


def test_classes_with_long_names_are_counted_in_the_title() -> None:
    assert either(["no", "yes"]) == "no or yes"
    assert either([f"{k}" for k in range(20)]) == "0, 1, 2, 3, 4, 5 or 14 others"
    assert either([f"class number {k}" for k in range(24)]) == "one of 24 classes"
