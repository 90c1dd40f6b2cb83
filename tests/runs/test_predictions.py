"""All of what was predicted: every class's probability, columns passed through, and predictions taken apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from helpers.run_files import table

import onlinevi as ovi
from onlinevi.adapters.cli import main

FEW = 90


@pytest.fixture
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.standard_normal((FEW, 2)), columns=["a", "b"])
    frame.insert(0, "id", [f"r{k:03}" for k in range(FEW)])
    frame["town"] = rng.choice(["Bonn", "Ulm"], FEW)
    frame["when"] = pd.date_range("2024-01-01", periods=FEW).astype(str)
    frame.loc[5, "a"] = np.nan
    frame["kind"] = np.select([frame["b"] > 0.7, frame["b"] < -0.7], ["x, or so", "y"], "z")
    frame["price"] = 30.0 + 3.0 * frame["a"].fillna(0.0) - frame["b"] + (frame["town"] == "Ulm")
    frame["sold"] = np.where(frame["price"] > 30.0, "yes", "no")
    frame["visits"] = rng.poisson(np.exp(0.5 * frame["b"]))
    return frame


TARGETS = {"kind", "price", "sold", "visits"}


def only(rows: pd.DataFrame, target: str) -> pd.DataFrame:
    return rows.drop(columns=[*(TARGETS - {target})])


@pytest.fixture
def said(rows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a run over the rows has written, to a file of this ending, with these options."""
    monkeypatch.chdir(tmp_path)

    def written(target: str, ending: str, *options: str) -> Path:
        only(rows, target).to_csv("rows.csv", index=False)
        call = ["run", "rows.csv", "--target", target, "--rule", "implicit", "--drop", "id", "--checkpoint", "model.ovi"]
        assert main([*call, "--predictions", f"said{ending}", "--overwrite", *options]) == 0
        return tmp_path / f"said{ending}"

    return written


def test_every_class_has_its_probability(said: Any, rows: pd.DataFrame) -> None:
    told = pd.read_csv(said("kind", ".csv"))
    names = ["x, or so", "y", "z"]
    each = told[[f"probability_{name}" for name in names]].to_numpy()
    np.testing.assert_allclose(each.sum(axis=1), 1.0, rtol=1e-12)
    own = each[np.arange(FEW), [names.index(label) for label in told["label"]]]
    np.testing.assert_allclose(told["loss"], -np.log(own), rtol=1e-9)
    assert told["probability"].tolist() == each.max(axis=1).tolist()
    model = ovi.open("model.ovi")
    new = model.predict(only(rows, "kind"))
    np.testing.assert_allclose(new.filter(like="probability_").sum(axis=1), 1.0, rtol=1e-12)
    assert list(pd.read_csv(said("sold", ".csv")).columns) == ["row", "prediction", "probability", "set", "label", "loss"]
    hinge = pd.read_csv(said("kind", ".csv", "--loss", "hinge"))
    assert list(hinge.columns) == ["row", "prediction", "probability", "label", "loss"]
    assert hinge["probability"].isna().all()


def test_a_class_that_joins_has_a_probability_from_the_next_table_on(rows: pd.DataFrame) -> None:
    first = only(rows, "kind")
    model = ovi.fit(first, target="kind", rule="implicit", drop="id")
    late = model.learn(first.assign(kind="late"))
    assert "probability_late" not in late.columns
    assert (model.predict(first)["probability_late"] > 0.0).all()


@pytest.mark.parametrize("ending", [".csv", ".ndjson", ".parquet"])
def test_columns_are_passed_through_as_they_are(ending: str, said: Any, rows: pd.DataFrame) -> None:
    path = said("price", ending, "--keep-columns", "id,when,a")
    read = {".csv": table, ".ndjson": lambda path: list(map(json.loads, path.read_text().splitlines())), ".parquet": None}[
        ending
    ]
    told = pq.read_table(path).to_pylist() if read is None else read(path)
    assert [row["id"] for row in told] == rows["id"].tolist()
    assert [row["when"] for row in told] == rows["when"].tolist()
    assert [row["a"] or "" for row in told] == [field.split(",")[1] for field in Path("rows.csv").read_text().split()[1:]]
    plain = said("price", ".csv")
    assert [float(row["prediction"]) for row in told] == [float(row["prediction"]) for row in table(plain)]
    assert main(["predict", "model.ovi", "rows.csv", "--keep-columns", "id", "-o", f"new{ending}"]) == 0
    model = ovi.open("model.ovi")
    new = model.predict(only(rows, "price"), keep_columns="id,b")
    assert new["id"].tolist() == rows["id"].tolist()
    assert new["b"].tolist() == rows["b"].tolist()
    assert model.learn(only(rows, "price").to_dict("records"), keep_columns=["id"])[-1]["id"] == "r089"


def test_a_row_left_out_does_not_move_the_others(rows: pd.DataFrame) -> None:
    bad = only(rows, "price")
    bad.loc[[3, 40], "price"] = np.nan
    told = ovi.Model("price", rule="implicit", drop="id", bad_rows="skip").learn(bad, keep_columns="id")
    assert told["id"].isna().sum() == 2
    there = told["id"].notna()
    assert told["id"][there].tolist() == rows["id"][there].tolist()


@pytest.mark.parametrize("target", ["price", "sold", "kind", "visits"])
@pytest.mark.parametrize("rule", ["implicit", "auto"])
def test_what_columns_add_and_the_base_are_the_score(target: str, rule: str, rows: pd.DataFrame) -> None:
    effort = {"effort": "light"} if rule == "auto" and target in ("kind", "visits") else {}
    model = ovi.fit(only(rows, target), target=target, rule=rule, drop="id", **effort)
    parts = model.explain(only(rows, target))
    added = parts[["from_a", "from_b", "from_town", "from_when"]]
    np.testing.assert_allclose(parts["base"] + added.sum(axis=1), parts["score"], rtol=1e-9, atol=1e-9)
    assert list(parts.columns) == ["score", "base", *added.columns]
    forecast = model.predict(only(rows, target), explain=True)
    if target == "price":
        np.testing.assert_allclose(forecast["prediction"], parts["score"], rtol=1e-9)
    if target == "sold" and rule == "auto":  # what is pooled and bent is a score already
        np.testing.assert_allclose(forecast["probability"], 1.0 / (1.0 + np.exp(-parts["score"])), rtol=1e-9)
    if target == "kind" and rule == "auto":
        np.testing.assert_allclose(forecast["probability"], np.exp(parts["score"]), rtol=1e-9)
    assert parts["from_a"].iloc[5] == pytest.approx(0.0, abs=1e-9) or rule == "auto"  # a missing value is its mean


def test_what_one_rule_adds_is_its_weights_times_the_prepared_columns(rows: pd.DataFrame) -> None:
    model = ovi.fit(only(rows, "price")[["a", "b", "price"]], target="price", rule="implicit")
    parts, state = model.explain(rows), model.state
    Z = model.learner.inputs.apply(state.inputs, rows[["a", "b"]].to_numpy())
    np.testing.assert_allclose(parts[["from_a", "from_b"]], np.nan_to_num(Z[:, 1:]) * state.mean[1:], rtol=1e-12)
    np.testing.assert_allclose(parts["base"], state.mean[0], rtol=1e-9)
    mapped = ovi.fit(rows[["a", "b", "price"]], target="price", rule="implicit", expand="splines", family="full")
    parts, state = mapped.explain(rows), mapped.state
    np.testing.assert_allclose(parts["base"], state.mean[0], rtol=1e-6)  # all features are of columns
    space = state.space
    features = space.of(mapped.learner.inputs.apply(state.inputs, rows[["a", "b"]].to_numpy()), missing=True)
    of_b = [k for k, name in enumerate(space.names(["a", "b"])) if name.startswith("b")]
    dense = np.nan_to_num(features.toarray() if hasattr(features, "tocsr") else features)
    np.testing.assert_allclose(parts["from_b"], dense[:, of_b] @ state.mean[of_b], rtol=1e-9)


def test_what_the_pool_of_numbers_adds_is_that_of_its_learners(rows: pd.DataFrame) -> None:
    """All but the intercepts, by their weights: nothing is bent there."""
    model = ovi.fit(rows[["a", "b", "price"]], target="price", effort="light")
    pool, parts = model.state.pooled, model.explain(rows)
    intercept = float(sum(weight * leaf.mean[0] for weight, leaf in zip(pool.weights, pool.learners, strict=True)))
    np.testing.assert_allclose(parts["base"], intercept, rtol=1e-9)


def test_a_run_takes_its_predictions_apart_before_the_label(said: Any, rows: pd.DataFrame) -> None:
    told = pd.read_csv(said("price", ".csv", "--explain", "--keep-columns", "id"))
    parts = told.filter(like="from_")
    np.testing.assert_allclose(told["base"] + parts.sum(axis=1), told["score"], rtol=1e-9)
    np.testing.assert_allclose(told["score"], told["prediction"], rtol=1e-9)
    assert told["prediction"].tolist() == pd.read_csv(said("price", ".csv"))["prediction"].tolist()
    before = ovi.fit(only(rows, "price")[:60], target="price", rule="implicit", drop="id")
    now = before.explain(only(rows, "price")[60:61])
    assert told["from_b"][60] == pytest.approx(now["from_b"].iloc[0])


def test_names_and_words_are_taken_together(rows: pd.DataFrame) -> None:
    wide = only(rows, "price").assign(words=[f"one {k} three" for k in range(FEW)])
    for settings in ({"hash_bits": 4}, {}):
        model = ovi.fit(wide, target="price", rule="implicit", kinds={"words": "text", "id": "category"}, **settings)
        parts = model.explain(wide)
        total = parts["base"] + parts.filter(like="from_").sum(axis=1)
        np.testing.assert_allclose(total, parts["score"], rtol=1e-9)
        assert {"from_words", "from_town"} <= {*parts.columns}


def test_a_resumed_file_keeps_its_columns(said: Any, capsys: pytest.CaptureFixture[str], rows: pd.DataFrame) -> None:
    said("kind", ".csv", "--keep-columns", "id", "--rows", "0:40")
    call = ["run", "rows.csv", "--target", "kind", "--rule", "implicit", "--drop", "id", "--checkpoint", "model.ovi"]
    resumed = [*call, "--predictions", "said.csv", "--rows", "0:40", "--resume"]
    assert main([*resumed, "--keep-columns", "id"]) == 0
    assert main([*resumed, "--keep-columns", "when"]) == 2
    assert "resume with the same --keep-columns" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--keep-columns", "idd", "--predictions", "said.csv"], r"no column is called 'idd' (did you mean 'id'?)"),
        (["--keep-columns", "id"], "say where these go, --predictions FILE"),
        (["--explain"], "say where these go, --predictions FILE"),
    ],
)
def test_what_cannot_be_written_is_refused(
    options: list[str], words: str, rows: pd.DataFrame, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    only(rows, "price").to_csv("rows.csv", index=False)
    assert main(["run", "rows.csv", "--target", "price", *options]) == 2
    assert words in capsys.readouterr().err
    model = ovi.fit(only(rows, "price"), target="price", rule="implicit")
    with pytest.raises(ValueError, match="keep_columns=… prediction: predictions have a column of this name"):
        model.predict(rows.assign(prediction=1), keep_columns=["prediction"])
