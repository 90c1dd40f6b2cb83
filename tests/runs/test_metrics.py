"""Metrics against River's and scikit-learn's, any split of a stream, the baselines, and what happens at the edges."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as textbook

import onlinevi as ovi
from onlinevi.learners import Forecast
from onlinevi.runs.metrics import Metrics
from onlinevi.runs.metrics.baselines import ClassBaselines, NumberBaselines, RunningQuantile

river = pytest.importorskip("river", reason='river is missing: pip install "onlinevi[river]"')
from river import metrics as rivers  # noqa: E402

COUNT = 1500
KINDS = ("classes", "several", "numbers", "counts", "quantile")


def stream(kind: str, count: int = COUNT, seed: int = 0) -> tuple[np.ndarray, Forecast, np.ndarray]:
    """Labels, what was said of them, and what that cost."""
    rng = np.random.default_rng(seed)
    if kind == "classes":
        y = np.where(rng.random(count) < 0.3, 1.0, -1.0)
        odds = y + 1.5 * rng.standard_normal(count)
        p = 1.0 / (1.0 + np.exp(-odds))
        return y, Forecast(odds, np.ones(count), 2.0 * p - 1.0, None, p, None, None), -np.log(np.where(y > 0.0, p, 1.0 - p))
    if kind == "several":  # a fourth class joins half way: nothing was said of it before
        codes = rng.integers(0, 3, count)
        codes[(rng.random(count) < 0.2) & (np.arange(count) >= count // 2)] = 3
        scores = rng.standard_normal((count, 4)) + 1.5 * (codes[:, None] == np.arange(4))
        joined = int(np.argmax(codes == 3))
        scores[: joined + 1, 3] = -np.inf
        p = np.exp(scores)
        p /= p.sum(axis=1, keepdims=True)
        loss = np.where(np.arange(count) == joined, 1.25, -np.log(np.maximum(p[np.arange(count), codes], 1e-300)))
        return codes.astype(float), Forecast(scores, None, None, None, p, None, None), loss
    said = 100.0 + 3.0 * rng.standard_normal(count)
    y = said + rng.standard_normal(count)
    if kind == "counts":
        said = np.exp(rng.standard_normal(count))
        y = rng.poisson(said).astype(float)
    lower, upper = (None, None) if kind == "quantile" else (said - 1.5, said + 1.5)
    return y, Forecast(said, None, said, None, None, lower, upper), np.abs(y - said)


def part(forecast: Forecast, rows: slice) -> Forecast:
    return Forecast(*(value if value is None else value[rows] for value in forecast))


def measured(kind: str, data: Any, cuts: Any = (), **settings: Any) -> Metrics:
    """The metrics of a stream, cut at these rows; written down and read again at each cut."""
    y, forecast, loss = data
    metrics = Metrics("classes" if kind == "several" else kind, **settings)  # type: ignore[arg-type]
    for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
        rows = slice(start, stop)
        metrics.add(y[rows], part(forecast, rows), loss[rows])
        if cuts and stop < len(y):
            again = Metrics("classes" if kind == "several" else kind, **settings)  # type: ignore[arg-type]
            again.restore(json.loads(json.dumps(metrics.to_json(), allow_nan=False)))
            metrics = again
    return metrics


@pytest.mark.parametrize("window", [COUNT, 300])
def test_two_classes_are_as_river_and_scikit_learn_have_them(window: int) -> None:
    data = y, forecast, _ = stream("classes")
    scores = measured("classes", data, window=window).scores
    found, late = scores.so_far(), scores.lately()
    for one, rows in ((found, slice(0, COUNT)), (late, slice(COUNT - window, COUNT))):
        truth, p = y[rows] > 0.0, forecast.probability[rows]
        oracles = {
            "accuracy": rivers.Accuracy(),
            "balanced_accuracy": rivers.BalancedAccuracy(),
            "f1": rivers.F1(),
            "log_loss": rivers.LogLoss(),
        }
        for name, oracle in oracles.items():
            for label, chance in zip(truth.tolist(), p.tolist(), strict=True):
                oracle.update(label, {True: chance, False: 1.0 - chance} if name == "log_loss" else chance >= 0.5)
            assert one.learner[name] == pytest.approx(oracle.get(), rel=1e-6), name
        assert one.learner["brier"] == pytest.approx(textbook.brier_score_loss(truth, p), rel=1e-6)
        bins = np.minimum((p * 10).astype(int), 9)
        gaps = [abs(p[bins == k].sum() - truth[bins == k].sum()) for k in range(10)]
        assert one.learner["ece"] == pytest.approx(sum(gaps) / len(p), rel=1e-5)
        assert one.events == len(p)
    area, off = scores.area()
    exact = textbook.roc_auc_score(y, forecast.probability)
    assert abs(area - exact) <= off < 0.002
    assert late.learner["auc"] == pytest.approx(textbook.roc_auc_score(y[-window:], forecast.probability[-window:]), abs=1e-9)
    assert scores.confusion[0].tolist() == textbook.confusion_matrix(y, np.where(forecast.probability >= 0.5, 1, -1)).tolist()


def test_several_classes_are_as_river_and_scikit_learn_have_them() -> None:
    data = y, forecast, loss = stream("several")
    scores = measured("several", data).scores
    found, guess, codes = scores.so_far().learner, forecast.guess, y.astype(int)
    oracles = {
        "accuracy": rivers.Accuracy(),
        "balanced_accuracy": rivers.BalancedAccuracy(),
        "f1": rivers.MacroF1(),
        "log_loss": rivers.CrossEntropy(),
    }
    joined = int(np.argmax(codes == 3))
    for name, oracle in oracles.items():
        for label, own, chances in zip(codes.tolist(), guess.tolist(), forecast.probability, strict=True):
            oracle.update(label, dict(enumerate(chances.tolist())) if name == "log_loss" else own)
        unguessed = (34.538776394910684 - loss[joined]) / len(y) if name == "log_loss" else 0.0
        assert found[name] == pytest.approx(oracle.get() - unguessed, rel=1e-9), name
    assert found["brier"] == pytest.approx(textbook.brier_score_loss(codes, forecast.probability, labels=range(4)))
    area, off = scores.area()
    exact = textbook.roc_auc_score(codes, forecast.probability, multi_class="ovr")
    assert abs(area - exact) <= off < 0.02
    assert scores.confusion[0].tolist() == textbook.confusion_matrix(codes, guess).tolist()


@pytest.mark.parametrize("window", [300, 900])
def test_the_area_of_the_last_rows_of_several_classes(window: int) -> None:
    """Of 900 rows the first 150 came before the fourth class did; files of before begin anew, and say nothing till then."""
    data = y, forecast, loss = stream("several")
    whole = measured("several", data, window=window).scores
    exact = textbook.roc_auc_score(y[-window:], forecast.probability[-window:], multi_class="ovr")
    assert whole.lately().learner["auc"] == pytest.approx(exact, abs=0.01)
    cut = measured("several", data, (7, 700, 751), window=window).scores
    assert cut.lately().learner == whole.lately().learner
    saved = measured("several", (y[:-200], part(forecast, slice(0, -200)), loss[:-200]), window=window).to_json()
    assert saved["scores"]["own"].pop("lately")["classes"] == 4
    old = Metrics("classes", window=window)
    old.restore(saved)
    old.add(y[-200:], part(forecast, slice(-200, None)), loss[-200:])
    assert "auc" not in old.scores.lately().learner
    old.add(y[-window:], part(forecast, slice(-window, None)), loss[-window:])
    assert old.scores.lately().learner["auc"] == whole.lately().learner["auc"]


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_numbers_are_as_river_has_them(offset: float) -> None:
    y, forecast, loss = stream("numbers")
    said = forecast.mean + offset
    moved = Forecast(said, None, said, None, None, said - 1.5, said + 1.5)
    scores = measured("numbers", (y + offset, moved, loss)).scores
    for one, rows in ((scores.so_far(), slice(0, COUNT)), (scores.lately(), slice(COUNT - 1000, COUNT))):
        for name, oracle in {"mae": rivers.MAE(), "rmse": rivers.RMSE(), "r2": rivers.R2()}.items():
            for label, own in zip((y + offset)[rows].tolist(), said[rows].tolist(), strict=True):
                oracle.update(label, own)
            assert one.learner[name] == pytest.approx(oracle.get(), rel=1e-5), name
        assert one.learner["coverage"] == np.mean(np.abs(y - forecast.mean)[rows] <= 1.5)
        assert one.learner["width"] == pytest.approx(3.0)


def test_counts_and_quantiles_are_as_scikit_learn_has_them() -> None:
    y, forecast, _ = data = stream("counts")
    found = measured("counts", data).scores.so_far().learner
    assert found["deviance"] == pytest.approx(textbook.mean_poisson_deviance(y, forecast.mean))
    assert found["mae"] == pytest.approx(textbook.mean_absolute_error(y, forecast.mean))
    y, forecast, _ = data = stream("quantile")
    found = measured("quantile", data, level=0.8).scores.so_far().learner
    assert found["pinball"] == pytest.approx(textbook.mean_pinball_loss(y, forecast.mean, alpha=0.8))
    assert found["coverage"] == np.mean(y <= forecast.mean)


@pytest.mark.parametrize("delay", [0, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_any_split_gives_the_same_bits(kind: str, delay: int) -> None:
    data, rng = stream(kind), np.random.default_rng(1)
    settings = {"delay": delay, "window": 400, "level": 0.9}
    whole = measured(kind, data, **settings)
    for cuts in ([1, 2, 3, 700], np.unique(rng.integers(1, COUNT, 12)).tolist(), range(1, COUNT, 400)):
        split = measured(kind, data, cuts, **settings)
        assert split.to_json() == whole.to_json()
        for own, other in ((split.scores.so_far(), whole.scores.so_far()), (split.scores.lately(), whole.scores.lately())):
            assert own == other


@pytest.mark.parametrize("delay", [0, 3])
def test_baselines_of_classes_say_what_was_known(delay: int) -> None:
    codes = np.random.default_rng(0).choice(4, 200, p=[0.5, 0.1, 0.3, 0.1])
    baselines = ClassBaselines(delay)
    parts = [baselines.say(codes[start : start + 17]) for start in range(0, 200, 17)]
    constant, last = (
        [np.concatenate([getattr(one[who], name) for one in parts]) for name in ("guess", "of_label", "square")]
        for who in (0, 1)
    )
    for t in range(200):
        known = codes[: max(t - delay, 0)]
        classes = max(2, codes[: t + 1].max() + 1)
        chances = (np.bincount(known, minlength=classes)[:classes] + 1.0) / (len(known) + classes)
        assert constant[0][t] == np.argmax(chances)
        assert (constant[1][t], constant[2][t]) == pytest.approx((chances[codes[t]], np.square(chances).sum()))
        if len(known):
            before = [(codes[s], codes[s - delay - 1]) for s in range(delay + 1, t - delay)]
            sure = (sum(own == other for own, other in before) + 1.0) / (len(before) + 2.0)
            chances = np.where(np.arange(classes) == known[-1], sure, (1.0 - sure) / (classes - 1))
            assert last[0][t] == known[-1]
            assert (last[1][t], last[2][t]) == pytest.approx((chances[codes[t]], np.square(chances).sum()))


@pytest.mark.parametrize("delay", [0, 3])
def test_baselines_of_numbers_say_what_was_known(delay: int) -> None:
    rng = np.random.default_rng(0)
    y, own = 1e6 + rng.standard_normal(60), rng.standard_normal(60)
    baselines = NumberBaselines(delay)
    constant, last = (
        np.concatenate(part)
        for part in zip(*(baselines.say(y[k : k + 7], own[k : k + 7]) for k in range(0, 60, 7)), strict=True)
    )
    for t in range(60):
        known = y[: max(t - delay, 0)]
        want = (known.mean(), known[-1]) if len(known) else (own[t], own[t])
        assert (constant[t], last[t]) == pytest.approx(want, rel=1e-12)


def test_a_running_quantile_is_near_the_exact_one_and_no_season_fits_its_sample() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(50_000) + 3.0 * (np.arange(50_000) % 16 == 0)
    running = RunningQuantile(0.9)
    said = np.concatenate([running.take(values[k : k + 999])[:-1] for k in range(0, len(values), 999)])
    assert len(running.sample) <= 1024
    for t in (40, 700, 10_000, 49_999):
        below = np.mean(values[:t] <= said[t])
        assert abs(below - 0.9) < 0.04 if t > 500 else abs(below - 0.9) < 0.1
    assert math.isnan(said[0])


def test_a_walk_is_said_best_by_its_last_value() -> None:
    """For quantiles the last value is moved as far as the labels did, so that it is no straw man."""
    walk = np.cumsum(np.random.default_rng(0).standard_normal(3000))
    nothing = np.zeros(3000)
    scores = measured("quantile", (walk, Forecast(nothing, None, nothing, None, None, None, None), nothing), level=0.9).scores
    found = scores.so_far()
    assert found.last_label["pinball"] < 0.2 * found.constant["pinball"]
    assert found.last_label["pinball"] == pytest.approx(0.1755, abs=0.02)  # that of N(0, 1) at its 0.9 quantile


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_shards_are_those_of_all_rows(kind: str) -> None:
    data = y, forecast, loss = stream(kind)
    whole, total = measured(kind, data).scores.so_far(), Metrics("classes" if kind == "several" else kind)  # type: ignore[arg-type]
    for rows in (slice(0, 500), slice(500, 501), slice(501, COUNT)):
        total.add_up(measured(kind, (y[rows], part(forecast, rows), loss[rows])))
    added = total.scores.so_far()
    assert added.events == whole.events
    for name, value in whole.learner.items():
        assert added.learner[name] == pytest.approx(value, rel=1e-9), name
    assert set(added.constant) == set(whole.constant), "each shard has its own baselines"


def test_numbers_beyond_all_measure_leave_finite_sums() -> None:
    y = np.array([1e300, -1e300, 1.0, 1e-300])
    forecast = Forecast(y * 0.0, None, -y, None, None, np.full(4, -np.inf), np.full(4, np.inf))
    metrics = Metrics("numbers")
    metrics.add(y, forecast, np.ones(4))
    again = Metrics("numbers")
    again.restore(json.loads(json.dumps(metrics.to_json(), allow_nan=False)))
    assert again.scores.so_far().learner["mae"] == pytest.approx(0.5e140, rel=0.01)


def test_a_loss_says_by_which_metric_it_is_judged() -> None:
    assert [Metrics("numbers", lead=loss.metric).scores.lead for loss in (ovi.Squared(), ovi.Absolute())] == ["rmse", "mae"]
    assert Metrics("numbers", lead="what a loss of one's own may say").scores.lead == "rmse"


def test_no_probabilities_no_log_loss() -> None:
    y, forecast, loss = stream("several")
    found = measured("several", (y, forecast._replace(probability=None), loss)).scores
    assert "log_loss" not in found.so_far().learner
    assert found.lead == "accuracy"
    assert found.so_far().learner["accuracy"] > found.so_far().constant["accuracy"]


def test_a_file_without_metrics_begins_them_where_it_goes_on() -> None:
    y, forecast, loss = stream("classes")
    old = measured("classes", (y[:100], part(forecast, slice(0, 100)), loss[:100])).to_json()
    del old["scores"]
    metrics = Metrics("classes")
    metrics.restore(old)
    metrics.add(y[100:], part(forecast, slice(100, COUNT)), loss[100:])
    assert (metrics.count, metrics.scores.count, metrics.scores.since) == (COUNT, COUNT - 100, 100)


def test_metrics_over_time_are_of_stretches() -> None:
    y, forecast, loss = stream("numbers")
    steps, found = measured("numbers", (y, forecast, loss)).scores.over_time(8)
    assert steps[-1] == COUNT
    assert 6 <= len(steps) <= 8
    first = int(steps[0])
    assert found["mae"][0, 0] == pytest.approx(np.abs(y - forecast.mean)[:first].mean())
    last = np.abs(y - forecast.mean)[int(steps[-2]) :].mean()
    assert found["mae"][-1, 0] == pytest.approx(last)
