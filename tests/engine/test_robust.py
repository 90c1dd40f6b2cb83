"""Bounded influence: what an event may do at most, and what a stream with outliers costs with it and without."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.catalogue import name, stream
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinevi as ovi
from onlinevi.engine import SUM
from onlinevi.engine.loop import trust
from onlinevi.engine.types import Belief

FREE = ovi.MeanField(box=None)


@given(slope=st.floats(-1e150, 1e150), usual=st.floats(1e-150, 1e150), bound=st.floats(1.0, 1e6, exclude_min=True))
@settings(deadline=None)
def test_the_influence_of_a_slope_is_bounded(slope: float, usual: float, bound: float) -> None:
    weight = trust(slope, usual, bound)
    assert 0.0 < weight <= 1.0
    if abs(slope) <= 1e100 * bound * usual:
        assert weight * abs(slope) <= 0.5 * bound * usual * (1.0 + 1e-12)
        assert weight == pytest.approx(1.0 / (1.0 + (slope / bound / usual) ** 2))
    assert trust(slope, 0.0, bound) == 1.0, "nothing usual is known"
    if abs(slope) <= usual:
        assert trust(slope, usual, 1e9) == pytest.approx(1.0)


def usual_slopes(slopes: np.ndarray, bound: float, discount: float, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """The weights of a stream of slopes, and the usual slope after it, from the definition."""
    trusts, total, mass = [], 0.0, 0.0
    for slope, weight in zip(slopes, weights, strict=True):
        usual = np.sqrt(total / mass) if mass > 0.0 else 0.0
        trusts.append(1.0 / (1.0 + (slope / (bound * usual)) ** 2) if usual > 0.0 else 1.0)
        total, mass = discount * total + weight * trusts[-1] * slope**2, discount * mass + weight * (slope != 0.0)
    return np.array(trusts), float(np.sqrt(total / mass))


@pytest.mark.parametrize("rule", [ovi.OGA(0.1), ovi.NGVI(), ovi.Implicit()], ids=name)
def test_an_event_counts_as_a_row_of_its_weight(rule: ovi.Rule) -> None:
    """Event by event the belief is that of the plain step at the row weight w; the sums are those of the loss as it is."""
    rng = np.random.default_rng(0)
    loss = ovi.Squared(robust=2.0)
    X, y = stream(loss, count=40)
    y = y * np.where(rng.random(40) < 0.2, 30.0, 1.0)
    model, plain = (ovi.Linear(loss=own, rule=rule) for own in (loss, ovi.Squared()))
    trace = model.update_many(model.init(5, horizon=40), X, y)[1]
    weights, usual = usual_slopes(ovi.Squared()(y, trace.prediction).slope, 2.0, 1.0, np.ones(40))
    assert weights.min() < 0.05 < 0.5 < np.median(weights)
    assert trace.state.usual_slope == pytest.approx(usual)
    state = model.init(5, horizon=40)
    for x, label, weight in zip(X, y, weights, strict=True):
        start = plain.init(5, horizon=40)
        bare = type(state)(state.array.copy(), start.plan)
        after, step = model.update(state, x, label)
        weighted, _ = plain.update(bare, x, label, weight=weight)
        whole, paid = plain.update(bare, x, label)
        part = state.plan.parts["belief"]
        np.testing.assert_allclose(after.array[part], weighted.array[part], rtol=1e-13, atol=1e-15)
        assert step == paid
        for seen in ("loss", "expected_loss", "product", "gradient_square", "weight"):
            assert getattr(after, seen) == pytest.approx(getattr(whole, seen), rel=1e-14)
        np.testing.assert_allclose(after.gradient, whole.gradient, rtol=1e-13, atol=1e-14)
        state = after
    assert state == trace.state, "one by one the same bits"


def test_one_event_is_the_weighted_step_to_the_bit() -> None:
    loss = ovi.Squared(robust=3.0)
    X, y = stream(loss, count=20)
    for rule, family in ((ovi.NGVI(), ovi.MeanField()), (ovi.OGAEL(0.01), ovi.FullCovariance())):
        model = ovi.Linear(loss=loss, rule=rule, family=family)
        plain = ovi.Linear(loss=ovi.Squared(), rule=rule, family=family)
        state, _ = model.update_many(model.init(5), X, y)
        bare = type(state)(state.array.copy(), plain.init(5).plan)
        slope = float(ovi.Squared()(40.0, model.predict(state, X[0])[0]).slope)
        after, _ = model.update(state, X[0], 40.0)
        weighted, _ = plain.update(bare, X[0], 40.0, weight=trust(slope, state.usual_slope, 3.0))
        part = state.plan.parts["belief"]
        np.testing.assert_array_equal(after.array[part], weighted.array[part])


def test_what_is_usual_is_forgotten_and_weighed_as_the_belief_is() -> None:
    rng = np.random.default_rng(3)
    X, y = stream(ovi.Squared(), count=60)
    weights = rng.integers(0, 3, 60) * 0.5
    model = ovi.Linear(loss=ovi.Squared(robust=2.0), rule=ovi.Implicit(), discount=0.9)
    state, trace = model.update_many(model.init(5), X, y, weights=weights)
    present = weights > 0.0
    slopes = ovi.Squared()(y[present], trace.prediction).slope
    assert state.usual_slope == pytest.approx(usual_slopes(slopes, 2.0, 0.9, weights[present])[1])
    parts = model.init(5)
    for cut in (slice(0, 7), slice(7, 8), slice(8, 60)):
        parts, _ = model.update_many(parts, X[cut], y[cut], weights=weights[cut])
    assert parts == state


def test_events_without_a_slope_say_nothing_of_slopes() -> None:
    """Where few events have a slope, as with the hinge once it has learned, those few are the usual ones."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 2))
    X = X[np.abs(X[:, 0]) > 0.5]
    y = np.sign(X[:, 0])
    runs = [ovi.learn(X, y, loss=ovi.Hinge(robust=robust), rule=ovi.OGA(0.1)) for robust in (None, 3.0)]
    assert (runs[1].loss > 0.0).mean() < 0.1
    assert runs[1].state.usual_slope == pytest.approx(1.0, abs=0.1)
    np.testing.assert_allclose(runs[1].mean, runs[0].mean, rtol=0.2, atol=0.2)


def test_without_it_and_with_a_wide_bound_nothing_changes() -> None:
    X, y = stream(ovi.Squared())
    plain, wide = (ovi.learn(X, y, loss=ovi.Squared(robust=robust), rule=ovi.NGVI()).state for robust in (None, 1e9))
    assert plain.usual_slope == 0.0 < wide.usual_slope
    same = np.setdiff1d(np.arange(len(plain.array)), [SUM.sloped, SUM.slope_square])
    np.testing.assert_allclose(wide.array[same], plain.array[same], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("factor", [2.0**40, 2.0**-40, 3.0])
def test_predictions_scale_with_the_labels(factor: float) -> None:
    rng = np.random.default_rng(0)
    X, y = stream(ovi.Squared(), count=200)
    y = y * np.where(rng.random(200) < 0.05, 50.0, 1.0)
    one, other = (
        ovi.learn(X, labels, loss=ovi.Squared(robust=5.0), rule=ovi.NGVI(), family=FREE) for labels in (y, factor * y)
    )
    np.testing.assert_allclose(other.prediction, factor * one.prediction, rtol=1e-9, atol=1e-12 * factor)
    np.testing.assert_allclose(other.std, one.std, rtol=1e-12)


@pytest.mark.parametrize("rule", [ovi.NGVI(), ovi.OGA(0.02)], ids=name)
def test_a_stream_with_outliers_is_learned_almost_as_without(rule: ovi.Rule) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((5000, 5))
    clean = X @ rng.standard_normal(5)
    y = clean + 0.3 * rng.standard_normal(5000)
    spoiled = np.where(rng.random(5000) < 0.01, rng.choice([-1.0, 1.0], 5000) * 10.0 * y.std(), y)

    def error(labels: np.ndarray, robust: float | None) -> float:
        trace = ovi.learn(X, labels, loss=ovi.Squared(robust=robust), rule=rule)
        return float(np.mean((trace.prediction - clean)[200:] ** 2))

    best, plain, robust = error(y, None), error(spoiled, None), error(spoiled, 5.0)
    assert robust < 0.2 * plain
    assert robust < 1.5 * best


def test_no_stream_of_slopes_makes_a_state_that_is_not_finite() -> None:
    """From the smallest slopes to the largest and back, with a step that divides by the weight."""
    model = ovi.Linear(loss=ovi.Squared(robust=2.0), rule=ovi.Implicit(), family=FREE, discount=0.9)
    state = model.init(1)
    for label in (0.0, 1e-160, 1e-150, 1e150, -1e10, 0.0, 1e-300, 1.0, 1e150):
        state, _ = model.update(state, [1.0], label)
        assert np.isfinite(state.array).all()
    with pytest.raises(ovi.BadRow, match="row 0"):
        model.update(state, [1.0], 1e200)


def test_what_takes_no_robust_loss_says_so() -> None:
    for robust in (0.0, 1.0, -3.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="needs None or a finite number > 1"):
            ovi.Squared(robust=robust)
    loss = ovi.Pinball(0.9, robust=5.0)
    assert loss.parameters == (0.9,)
    with pytest.raises(ValueError, match=r"robust=5.0: SVA makes each belief anew"):
        ovi.Linear(loss=loss, rule=ovi.SVA())
    with pytest.raises(ValueError, match="counts every event as it is"):
        ovi.ewa.Grid(loss)
    trace = ovi.learn([[1.0]], [1.0], loss=ovi.Hinge(robust=5.0), rule=ovi.OGA(0.1))
    with pytest.raises(ValueError, match="count every event alike"):
        ovi.bounds.after_data(trace, Belief(np.zeros(1), np.zeros(1)))
    X, y = stream(ovi.Squared())
    assert ovi.hindsight(X, y, loss=ovi.Squared(robust=5.0)).value == ovi.hindsight(X, y, loss=ovi.Squared()).value
    with pytest.raises(ValueError, match="offered for linear predictors only"):
        pytest.importorskip("onlinevi.autodiff").Differentiable(np.dot, loss=loss, rule=ovi.NGVI())
