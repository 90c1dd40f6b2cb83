"""``onlinevi run``: the same numbers as the library's own, whatever happens on the way."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.run_files import ROWS, table, told, write_rows

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.adapters.cli.progress import Ticker
from onlinevi.learners import Forecast
from onlinevi.runs.checkpoint import load_job
from onlinevi.runs.metrics import BOUNDED, WIDTH, Metrics, Thinned
from onlinevi.runs.run import Places, Run, Stopper
from onlinevi.runs.settings import Settings

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

pytestmark = pytest.mark.compiled


def test_predictions_are_those_of_the_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, said = tmp_path / "rows.csv", tmp_path / "said.csv"
    X, y = write_rows(path, 300)
    call = ["run", str(path), "--target", "sold", "--rule", "implicit", "--drop", "town", "--predictions", str(said), "--json"]
    assert main(call) == 0
    printed = capsys.readouterr()
    assert "two classes: 'no' is −1, 'yes' is +1" in printed.err
    inputs = ovi.Inputs(missing=True)
    linear = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None), average=False, missing=True)
    _, prepared = inputs.update_many(inputs.init(2), X)
    state, trace = linear.update_many(linear.init(3), prepared, y)
    found = table(said)
    assert [int(row["row"]) for row in found] == list(range(300))
    np.testing.assert_array_equal([float(row["loss"]) for row in found], trace.loss)
    probability = ovi.Logistic().probability(trace.prediction, trace.spread)
    np.testing.assert_allclose([float(row["probability"]) for row in found], probability, rtol=1e-9)
    assert [row["label"] for row in found] == ["yes" if label > 0 else "no" for label in y]
    summary = json.loads(printed.out)
    assert summary["average_loss"] == pytest.approx(state.average_loss, rel=1e-12)
    assert summary["error_rate"] == pytest.approx(np.mean([row["label"] != row["prediction"] for row in found]))


def test_labels_that_come_late_are_learned_late(tmp_path: Path) -> None:
    path, said, delay = tmp_path / "rows.csv", tmp_path / "said.ndjson", 7
    X, y = write_rows(path, 60)
    call = ["run", str(path), "--target", "sold", "--rule", "implicit", "--drop", "town", "--predictions", str(said)]
    assert main([*call, "--delay", str(delay), "--out", str(tmp_path / "out")]) == 0
    inputs = ovi.Inputs(missing=True)
    linear = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.MeanField(box=None), average=False, missing=True)
    found = [json.loads(line) for line in said.read_text().splitlines()]
    for t in (0, delay, delay + 1, 30, 59):
        known = max(t - delay, 0)  # rows 0 … t − delay − 1
        scales, prepared = inputs.update_many(inputs.init(2), X[:known])
        state = linear.update_many(linear.init(3), prepared, y[:known])[0]
        mean, spread = linear.predict(state, inputs.apply(scales, X[t]))
        assert found[t]["probability"] == pytest.approx(float(ovi.Logistic().probability(mean, spread)), rel=1e-9)
        assert found[t]["loss"] == pytest.approx(float(ovi.Logistic()(y[t], mean).value), rel=1e-12)
    job = load_job(tmp_path / "out" / "model.ovi")
    assert (job.metrics.count, job.state.count, len(job.late.rows)) == (60, 60 - delay, delay)


def test_numbers_by_the_default_with_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 2))
    y = 50.0 + X @ [3.0, -1.0] + rng.standard_normal(400)
    path, said = tmp_path / "n.csv", tmp_path / "said.csv"
    path.write_text("a,b,price\n" + "\n".join(f"{a!r},{b!r},{c!r}" for a, b, c in np.column_stack([X, y]).tolist()))
    assert main(["run", str(path), "--target", "price", "--predictions", str(said), "--json"]) == 0
    trace = ovi.auto(X, y, loss=ovi.Squared(), inputs=ovi.Inputs(missing=True))
    found = table(said)
    for name, own in (
        ("prediction", trace.prediction),
        ("std", trace.label_std),
        ("lower", trace.lower),
        ("loss", trace.loss),
    ):
        np.testing.assert_array_equal([float(row[name]) for row in found], own)
    inside = [float(row["lower"]) <= float(row["label"]) <= float(row["upper"]) for row in found]
    assert told(capsys)["coverage"] == np.mean(inside)


def test_what_is_asked_wrongly_is_answered(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "many.csv").write_text("a,kind\n" + "".join(f"{k},{k}.5\n" for k in range(101)))
    for call, answer in (
        ([str(tmp_path / "many.csv"), "--target", "kind", "--task", "classes"], "for amounts say --task numbers"),
        ([str(rows), "--target", "price"], "no column is called 'price'"),
        ([str(rows), "--target", "sold", "--loss", "squared"], "choose logistic or hinge"),
        ([str(rows), "--target", "sold", "--predictions", "said.xlsx"], ".ndjson"),
        ([str(rows), "--target", "sold", "--resume"], "nothing to resume from"),
        ([str(rows), "--target", "sold", "--drop", "a,b,town"], "no column is left"),
        ([str(rows), "--target", "sold", "--delay", "-1"], "needs a number of rows from 0"),
        ([str(tmp_path / "none.csv"), "--target", "sold"], "none.csv"),
    ):
        assert main(["run", *call]) == 2
        assert answer in capsys.readouterr().err


def test_effort_and_lags_reach_the_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(tmp_path / "rows.csv", 40)
    call = ["run", str(tmp_path / "rows.csv"), "--target", "sold", "--checkpoint", str(tmp_path / "model.ovi")]
    assert main([*call, "--effort", "light", "--lags", "1"]) == 0
    job = load_job(tmp_path / "model.ovi")
    auto = job.learner.inner  # type: ignore[attr-defined]
    assert isinstance(auto, ovi.Auto)
    assert (auto.effort, auto.lags) == ("light", 1)
    assert [type(own).__name__ for own in job.state.inner.pooled.learners].count("LagState") == 1
    capsys.readouterr()
    assert main(["info", str(tmp_path / "model.ovi")]) == 0
    assert "effort light, lags 1 labels" in capsys.readouterr().out
    for more, message in [
        (["--rule", "svb", "--effort", "light"], "effort='light': how much the default does"),
        (["--rule", "svb", "--lags", "1"], "lags=1: the default takes past labels"),
        (["--lags", "1", "--delay", "2"], "lags=1 with delay=2"),
        (["--lags", "-1"], "needs a number of past labels"),
    ]:
        assert main([*call, "--overwrite", *more]) == 2
        assert message in capsys.readouterr().err


def test_curves_stay_short_and_end_at_the_end() -> None:
    whole, cut, draw = Thinned(8, 1), Thinned(8, 1), random.Random(0)
    values = np.arange(1.0, 1001.0)[:, np.newaxis]
    whole.add(values)
    start = 0
    while start < 1000:
        stop = start + draw.randrange(1, 40)
        cut.add(values[start:stop])
        start = stop
        assert len(cut.table) <= 9
    np.testing.assert_array_equal(whole.table, cut.table)
    assert whole.table[-1] == 1000.0
    assert (np.diff(whole.table[:-1, 0]) == whole.stride).all()


def test_predict_says_what_the_model_says(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, new = tmp_path / "out" / "model.ovi", tmp_path / "new.csv"
    assert main(["run", str(rows), "--target", "sold", "--rule", "implicit", "--out", str(tmp_path / "out")]) == 0
    before = model.read_bytes()
    new.write_text("b,a,town\n100,1,t0\n-50,,t1\n1e200,0,t0\n0,0,never met\n")
    capsys.readouterr()
    assert main(["predict", str(model), str(new), "--bad-rows", "skip"]) == 0
    printed = capsys.readouterr()
    assert "1 bad row left out" in printed.err
    found = list(csv.DictReader(printed.out.splitlines()))
    assert [row["row"] for row in found] == ["0", "1", "3"]
    job = load_job(model)
    places = {job.schema.name(place): place for place in range(job.schema.width)}
    X = np.zeros((3, job.schema.width))
    X[0, [places["a"], places["b"], places["town=t0"]]] = 1.0, 100.0, 1.0
    X[1, [places["a"], places["b"], places["town=t1"]]] = np.nan, -50.0, 1.0
    expected = job.learner.forecast(job.state, X).probability
    assert [float(row["probability"]) for row in found[:2]] == expected.tolist()[:2]
    assert float(found[2]["probability"]) == pytest.approx(float(expected[2]), abs=0.1)
    assert model.read_bytes() == before
    (tmp_path / "other.csv").write_text("c\n1\n")
    assert main(["predict", str(model), str(tmp_path / "other.csv")]) == 2
    assert "none of the columns" in capsys.readouterr().err


def test_info_and_report_tell_of_a_run(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["run", str(rows), "--target", "sold", "--rule", "implicit", "--out", str(out), "--json"]) == 0
    summary = told(capsys)
    assert main(["info", str(out / "model.ovi"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["events"], facts["average_loss"]) == (summary["events"], summary["average_loss"])
    weights = {weight["name"]: weight for weight in facts["weights"]}
    assert weights["a"]["mean"] / weights["b"]["mean"] == pytest.approx(-100.0, rel=0.2), "the rows were made so"
    state = load_job(out / "model.ovi").state
    assert facts["features"][:3] == ["intercept", "a", "b"]
    assert (facts["mean"], facts["std"]) == (state.mean.tolist(), state.std.tolist())
    assert facts["schema"]["columns"] == {"a": "number", "b": "number", "town": "category"}
    assert facts["features"][3:] == [f"town={name}" for name in facts["schema"]["categories"]["town"]]
    assert (facts["schema"]["target"], facts["schema"]["task"]["names"]) == ("sold", ["no", "yes"])
    assert facts["settings"]["rule"] == "implicit"
    live = ovi.certificate(state.alone())
    sure = facts["certificate"]
    assert sure["regret"] == live.within(float(np.linalg.norm(state.mean))) / ROWS
    assert sure["lower_bound"] == summary["average_loss"] - sure["regret"]
    source = facts["source"]
    assert source["sha256"] == hashlib.sha256(rows.read_bytes()).hexdigest()
    assert (source["first_row"], source["last_row"], source["bytes"]) == (0, ROWS - 1, rows.stat().st_size)
    assert main(["info", str(out / "model.ovi")]) == 0
    printed = capsys.readouterr().out
    assert sure["sentence"] in printed
    assert re.search(r"How much each column matters.*\n  a +\d+\.\d % ± \d", printed)
    assert len(printed.splitlines()) < 40
    document = json.loads((out / "run.json").read_text())
    mattering = document["importance"]
    assert sorted(mattering["names"]) == ["a", "b", "town"], "the features of a category are one column"
    assert mattering["value"] == sorted(mattering["value"], reverse=True)
    assert sum(mattering["value"]) == pytest.approx(1.0)
    assert [one["name"] for one in facts["importance"]] == mattering["names"]
    assert document["posterior"]["steps"][-1] <= ROWS
    assert 32 <= len(document["posterior"]["steps"]) <= 64
    assert document["trace"]["steps"][-1] == ROWS
    assert document["trace"]["average_loss"][-1] == summary["average_loss"]
    assert sum(document["calibration"]["count"]) == ROWS
    pytest.importorskip("plotly", reason='plotly is missing: pip install "onlinevi[report]"')
    (out / "report.html").unlink()
    assert main(["report", str(out)]) == 0
    assert "Predict sold" in (out / "report.html").read_text()
    assert main(["report", str(tmp_path)]) == 2


def test_a_plain_learner_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learner = ovi.Linear(ovi.Logistic(), ovi.Implicit())
    ovi.save(tmp_path / "m.ovi", learner, learner.init(2))
    assert main(["info", str(tmp_path / "m.ovi")]) == 2
    assert "no run of a file" in capsys.readouterr().err


def test_quantiles_and_intervals_are_counted_as_hits() -> None:
    y, prediction = np.array([1.0, 2.0, 3.0]), np.array([1.5, 1.5, 3.0])
    forecast = Forecast(prediction, None, prediction, None, None, np.array([-np.inf, 1.0, 4.0]), np.array([np.inf, 2.0, 5.0]))
    quantiles, intervals = Metrics("quantile"), Metrics("numbers")
    for metrics in (quantiles, intervals):
        for event in range(3):  # one at a time, as all at once
            one = Forecast(*(part if part is None else part[event : event + 1] for part in forecast))
            metrics.add(y[event : event + 1], one, np.array([0.5]))
    assert quantiles.hit_rate == pytest.approx(2.0 / 3.0)  # 2.0 lies above its quantile
    assert intervals.hit_rate == pytest.approx(2.0 / 3.0)  # 3.0 lies below its interval
    assert intervals.totals[WIDTH] / intervals.totals[BOUNDED] == 1.0  # the first has no width
    together = Metrics("numbers")
    together.add(y, forecast, np.full(3, 0.5))
    assert together.to_json() == intervals.to_json()


def test_progress_is_one_line(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Run(Settings("sold", rule="implicit"), Places(str(rows))) as run:
        ticker = Ticker(str(rows), 0)
        run.go(Stopper(), ticker)
        ticker.end()
    line = capsys.readouterr().err
    assert re.match(r"\r *\d+ % [━─]* ?[\d,]+ rows, [\d,]+ a second, average loss 0\.\d+", line)
    assert "\n" not in line
