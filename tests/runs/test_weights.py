"""How often rows count: by a column, by their class, balanced; in any split, through files, and beside the theory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.run_files import told
from sklearn.utils.class_weight import compute_sample_weight

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.data import BadInput
from onlinevi.runs.class_weights import ClassWeights, as_class_weight

FEW = 120


@pytest.fixture
def rows() -> pd.DataFrame:
    """Two numbers, a rare class, several classes, an amount, and how often each row counts: some not at all."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((FEW, 2)), columns=["a", "b"])
    frame["rare"] = np.where(frame["a"] + rng.standard_normal(FEW) > 1.4, "yes", "no")
    frame["kind"] = rng.choice(["x", "y", "z"], FEW, p=[0.7, 0.2, 0.1])
    frame["price"] = 3.0 * frame["a"] - frame["b"]
    frame["often"] = rng.choice([0.0, 0.5, 1.0, 3.0], FEW)
    return frame


def learned(rows: pd.DataFrame, target: str, *columns: str, **settings: Any) -> tuple[ovi.Model, Any]:
    model = ovi.Model(target, **{"rule": "implicit", **settings})
    return model, model.learn(rows[["a", "b", target, *columns]])


@pytest.mark.parametrize("target", ["rare", "kind", "price"])
@pytest.mark.parametrize("delay", [0, 3])
def test_a_weight_is_what_the_learner_takes(target: str, delay: int, rows: pd.DataFrame) -> None:
    model, said = learned(rows, target, "often", weight="often", delay=delay)
    counted = rows[rows["often"] > 0.0]
    assert model.count == len(counted)
    assert said["prediction"].notna().all()  # those of weight 0 too
    assert model.metrics["average_loss"] == pytest.approx(said["loss"][rows["often"] > 0.0].mean())
    absent, told_of_counted = learned(counted, target, "often", weight="often", delay=delay)
    assert absent.state.mean.tolist() == model.state.mean.tolist()
    assert told_of_counted["loss"].tolist() == said["loss"][rows["often"] > 0.0].tolist()
    if not delay and target == "price":
        learner = model.learner
        X, y = counted[["a", "b"]].to_numpy(), counted["price"].to_numpy()
        state, _ = learner.update_many(learner.init(2), X, y, weights=counted["often"].to_numpy())
        assert state.mean.tolist() == model.state.mean.tolist()
    assert "column often; metrics count" in model.info()["learner"]["weights of rows"]


def test_weights_of_1_change_nothing_and_the_column_is_no_feature(rows: pd.DataFrame) -> None:
    model, said = learned(rows.assign(often=1), "rare", "often", weight="often")
    plain, plainly_said = learned(rows, "rare")
    assert said.equals(plainly_said)
    assert model.state.mean.tolist() == plain.state.mean.tolist()
    assert "often" not in model.job.schema.kinds
    assert len(model.predict(rows[["a", "b"]])) == FEW


@pytest.mark.parametrize("asked", ["balanced", {"yes": 5.0, "no": 0.5}, {"no": 0.0}])
@pytest.mark.parametrize("weight", [None, "often"])
def test_any_split_and_a_file_on_the_way_give_the_same_bits(
    asked: Any, weight: str | None, rows: pd.DataFrame, path: Path
) -> None:
    columns = () if weight is None else (weight,)
    once, said = learned(rows, "rare", *columns, class_weight=asked, weight=weight)
    parts = ovi.Model("rare", rule="implicit", class_weight=asked, weight=weight)
    found = []
    for start, stop in ((0, 50), (50, 51), (51, 58), (58, FEW)):
        found.append(parts.learn(rows[["a", "b", "rare", *columns]][start:stop]))
        parts.save(path)
        parts = ovi.open(path)
    assert parts.state.mean.tolist() == once.state.mean.tolist()
    assert pd.concat(found).equals(said)
    assert once.settings.class_weight == asked


def test_balanced_is_what_has_come_so_far(rows: pd.DataFrame) -> None:
    codes = (rows["rare"] == "yes").to_numpy().astype(int)
    _, weights = ClassWeights("balanced").weigh(codes, ("no", "yes"), None)
    expected = [compute_sample_weight("balanced", codes[: t + 1])[-1] for t in range(FEW)]
    assert weights == pytest.approx(expected)
    own = rows["often"].to_numpy() + 1.0
    _, weights = ClassWeights("balanced").weigh(codes, ("no", "yes"), own)
    assert weights[0] == own[0]
    whole, of_own = own.sum(), own[codes == codes[-1]].sum()
    assert weights[-1] == pytest.approx(own[-1] * whole / (2.0 * of_own))
    plain, _ = learned(rows, "rare")
    balanced, _ = learned(rows, "rare", class_weight="balanced")
    guesses = [model.predict(rows)["prediction"].eq("yes").mean() for model in (plain, balanced)]
    assert guesses[0] < guesses[1]


def test_nothing_is_said_of_new_rows_where_some_are_not_counted(rows: pd.DataFrame) -> None:
    for settings, bounded in (({}, True), ({"class_weight": "balanced"}, True), ({"class_weight": {"yes": 0.0}}, False)):
        assert (learned(rows, "rare", **settings)[0].info()["risk"] is not None) is bounded
    assert learned(rows, "rare", "often", weight="often")[0].info()["risk"] is None


def test_a_weight_of_a_class_that_has_not_come_is_told(rows: pd.DataFrame) -> None:
    """Of several classes more may join: such a weight is no mistake for sure, and may be one."""
    model, _ = learned(rows, "kind", class_weight={"x": 2, "zz": 3})
    told = model.info()["learner"]["weights of rows"]
    assert told.startswith("x 2, zz 3 (no such class so far (did you mean 'z'?)); ")


def test_classes_are_known_by_their_names() -> None:
    assert as_class_weight({True: 2, 0.0: 1}) == {"true": 2.0, "0": 1.0}
    assert as_class_weight(None) is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"class_weight": {"Yes": 2.0}}, r"class_weight has 'Yes' \(did you mean 'yes'\?\): the classes are 'no', 'yes'"),
        ({"class_weight": {"yes": -1.0}}, "class_weight of 'yes' is -1.0: needs a number from 0"),
        ({"class_weight": {"yes": float("nan")}}, "class_weight of 'yes' is nan"),
        ({"class_weight": "even"}, "class_weight='even': needs \"balanced\""),
        ({"weight": "oftn"}, r"no column is called 'oftn' \(did you mean 'often'\?\)"),
        ({"weight": "rare"}, "weight='rare' is what is to be predicted"),
        ({"target": "price", "class_weight": "balanced"}, "class_weight: 'price' has no classes"),
    ],
)
def test_what_cannot_be_weighed_is_refused(settings: dict[str, Any], words: str, rows: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=words):
        ovi.fit(rows, **{"target": "rare", "rule": "implicit", **settings})


@pytest.mark.parametrize(("value", "why"), [(-1.0, "from 0"), (np.nan, "missing"), (np.inf, "from 0"), (None, "missing")])
def test_a_weight_that_is_none_makes_a_bad_row(value: Any, why: str, rows: pd.DataFrame) -> None:
    bad = rows.copy()
    bad.loc[70, "often"] = value
    with pytest.raises(BadInput, match=f"row 70, column 'often': the weight .*{why}"):
        learned(bad, "rare", "often", weight="often")
    model, said = learned(bad, "rare", "often", weight="often", bad_rows="skip")
    assert said["prediction"].isna().sum() == model.metrics["bad_rows"] == 1


def test_the_command_line_weighs(
    rows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows[["a", "b", "rare", "often"]].to_csv("rows.csv", index=False)
    call = ["run", "rows.csv", "--target", "rare", "--rule", "implicit", "--weight", "often", "--class-weight", "balanced"]
    assert main([*call, "--checkpoint", "model.ovi", "--predictions", "said.csv", "--hindsight"]) == 0
    said = capsys.readouterr().err
    assert "weights of rows: column often times balanced; metrics count each row of a weight above 0 once" in said
    assert "rows counted by weights" in said
    model, said = learned(rows, "rare", "often", weight="often", class_weight="balanced")
    assert pd.read_csv("said.csv")["probability"].tolist() == said["probability"].tolist()
    assert ovi.open("model.ovi").state.mean.tolist() == model.state.mean.tolist()
    assert "each row's times its weight" in model.certificate.sentence
    assert main([*call[:-1], "yes=5,no=1", "--json"]) == 0
    assert told(capsys)["events"] == model.count
    assert main(["compare", *call[1:5][:3], "--rules", "implicit,svb", "--weight", "often", "--json"]) == 0
    for wrong in (["--class-weight", "yes=much"], ["--class-weight", "5"]):
        with pytest.raises(SystemExit, match="2"):
            main([*call[:-2], *wrong])
    assert "needs balanced, or class=weight at commas" in capsys.readouterr().err
    assert main([*call, "--workers", "2"]) == 2
    assert "learn from one stream" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["rare", "price"])
@pytest.mark.compiled
def test_the_default_weighs_rows(target: str, rows: pd.DataFrame) -> None:
    model, _ = learned(rows, target, "often", weight="often", rule="auto", effort="light")
    counted = rows[rows["often"] > 0.0]
    absent, _ = learned(counted, target, "often", weight="often", rule="auto", effort="light")
    assert absent.state.mean.tolist() == model.state.mean.tolist()
    plain, _ = learned(counted, target, rule="auto", effort="light")
    assert plain.state.mean.tolist() != model.state.mean.tolist()
