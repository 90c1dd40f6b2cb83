"""One learner stands behind the command line, scikit-learn and River: the three give the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi.adapters.cli import main

pytest.importorskip("river", reason='river is missing: pip install "onlinevi[river]"')
pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')
pytest.importorskip("sklearn", reason='scikit-learn is missing: pip install "onlinevi[sklearn]"')

from onlinevi import river, sklearn

COUNT, HELD_OUT = 150, 30
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((COUNT + HELD_OUT, 3)) * [1.0, 1e4, 1e-3] + [5.0, 0.0, 1.0]
SCORES = (ROWS - [5.0, 0.0, 1.0]) / [1.0, 1e4, 1e-3] @ RNG.standard_normal((3, 3)) + RNG.gumbel(size=(len(ROWS), 3))
KINDS = np.array(["one", "two", "three"])[SCORES.argmax(axis=1)]
TWO = np.where(SCORES[:, 0] > SCORES[:, 1], "yes", "no")
NUMBERS = 1e3 * SCORES[:, 0]
INPUTS = ovi.Inputs(missing=True)
RULES = {
    "ngvi": (ovi.NGVI(), ovi.MeanField()),
    "ngvi(floor=0.3)": (ovi.NGVI(floor=0.3), ovi.MeanField()),
    "ngvi(step=PaperSVB(1), rate=50, parameters=scale)": (
        ovi.NGVI(ovi.PaperSVB(1.0), 50.0, parameters="scale"),
        ovi.MeanField(),
    ),
    "implicit": (ovi.Implicit(), ovi.MeanField(box=None)),
}
DICTS = [dict(zip("abc", row, strict=True)) for row in ROWS.tolist()]


def by_command(rule: str, labels: np.ndarray, folder: Path, *options: str) -> Any:
    """What is known of held-out labels after ``onlinevi run`` over a file, and the names of the classes."""
    lines = [",".join([*map(repr, row), str(label)]) for row, label in zip(ROWS.tolist(), labels.tolist(), strict=True)]
    (folder / "rows.csv").write_text("\n".join(["a,b,c,label", *lines[:COUNT]]) + "\n")
    model = folder / "model.ovi"
    task = "numbers" if labels.dtype == float else "classes"
    call = ["run", str(folder / "rows.csv"), "--target", "label", "--task", task, "--rule", rule, "--checkpoint", str(model)]
    assert main([*call, *options]) == 0
    saved = ovi.load(model)
    assert saved.state.count == COUNT
    return saved.learner.forecast(saved.state, ROWS[COUNT:])


def river_shares(rule: str, labels: Any) -> Any:
    model = river.OnlineVIClassifier("logistic", RULES[rule][0], RULES[rule][1], INPUTS)
    for x, label in zip(DICTS[:COUNT], labels[:COUNT].tolist(), strict=True):
        model.learn_one(x, label)
    names = np.unique(labels).tolist()
    return np.array([[said[name] for name in names] for said in map(model.predict_proba_one, DICTS[COUNT:])])


def sklearn_shares(rule: str, labels: np.ndarray, **options: Any) -> Any:
    model = sklearn.OnlineVIClassifier("logistic", rule=rule, inputs=INPUTS, **options)
    for start in range(0, COUNT, 40):
        block = slice(start, min(start + 40, COUNT))
        model.partial_fit(ROWS[block], labels[block], classes=np.unique(labels))
    return model.predict_proba(ROWS[COUNT:])


@pytest.mark.parametrize("rule", RULES)
def test_three_classes(rule: str, tmp_path: Path) -> None:
    """River meets the classes as they come; the others know all three from the start, in another order."""
    forecast, said, found = by_command(rule, KINDS, tmp_path), sklearn_shares(rule, KINDS), river_shares(rule, KINDS)
    np.testing.assert_allclose(said, forecast.probability, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(found, forecast.probability, rtol=0.0, atol=1e-12)
    plain = np.exp(forecast.prediction) / (1.0 + np.exp(forecast.prediction))
    assert np.abs(plain / plain.sum(axis=1, keepdims=True) - said).max() > 0.05, "dividing by the sum is something else"


def test_three_classes_by_one_posterior(tmp_path: Path) -> None:
    forecast = by_command("implicit", KINDS, tmp_path, "--classes-by", "softmax", "--family", "full")
    said = sklearn_shares("implicit", KINDS, classes_by="softmax")
    np.testing.assert_allclose(said, forecast.probability, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_two_classes(rule: str, tmp_path: Path) -> None:
    forecast, said = by_command(rule, TWO, tmp_path), sklearn_shares(rule, TWO)
    np.testing.assert_allclose(said[:, 1], forecast.probability, rtol=0.0, atol=1e-12)
    found = river_shares(rule, TWO == "yes")
    np.testing.assert_allclose(found, said, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_numbers(rule: str, tmp_path: Path) -> None:
    numbers = NUMBERS if rule == "implicit" else NUMBERS / 1e3  # other rules keep weights within ±20
    forecast = by_command(rule, numbers, tmp_path)
    model = sklearn.OnlineVIRegressor("squared", rule=rule, inputs=INPUTS).partial_fit(ROWS[:COUNT], numbers[:COUNT])
    np.testing.assert_allclose(model.predict(ROWS[COUNT:]), forecast.mean, rtol=1e-12)
    online = river.OnlineVIRegressor("squared", RULES[rule][0], RULES[rule][1], INPUTS)
    for x, label in zip(DICTS[:COUNT], numbers[:COUNT].tolist(), strict=True):
        online.learn_one(x, label)
    found = [online.predict_one(x) for x in DICTS[COUNT:]]
    np.testing.assert_allclose(found, forecast.mean, rtol=1e-12, atol=1e-12)
