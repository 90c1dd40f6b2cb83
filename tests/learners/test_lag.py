"""Past labels as columns: the same as columns made by hand, and nothing of a label before its time."""

from __future__ import annotations

import numpy as np
import pytest

import onlinevi as ovi

LEAF = ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.FullCovariance(box=None))


def stream(count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = 5.0 + np.cumsum(rng.standard_normal(count))
    return np.column_stack([np.ones(count), rng.standard_normal(count)]), y


def by_hand(X: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """The intercept, the last labels in units of their own, the latest first, and the other columns."""
    lags = np.full((len(y), count), np.nan)
    for k in range(count):
        lags[k + 1 :, k] = y[: len(y) - k - 1]
    inputs = ovi.Inputs(intercept=False, missing=True)
    prepared = inputs.update_many(inputs.init(count), lags)[1]
    return np.column_stack([X[:, :1], np.nan_to_num(prepared), X[:, 1:]])


@pytest.mark.parametrize("count", [1, 3])
def test_columns_are_those_made_by_hand(count: int) -> None:
    X, y = stream()
    learner = ovi.Lag(LEAF, count)
    state, trace = learner.update_many(learner.init(2), X, y)
    want, plain = LEAF.update_many(LEAF.init(2 + count), by_hand(X, y, count), y)
    np.testing.assert_array_equal(trace.prediction, plain.prediction)
    np.testing.assert_array_equal(state.mean, want.mean)
    assert state.last == tuple(y[::-1][:count])


def test_a_forecast_is_what_will_be_recorded_for_the_next_row() -> None:
    X, y = stream()
    learner = ovi.Lag(LEAF, 2)
    state = learner.update_many(learner.init(2), X[:30], y[:30])[0]
    said = learner.forecast(state, X[30:33])
    after, trace = learner.update_many(state, X[30:33], y[30:33])
    assert said.prediction[0] == pytest.approx(trace.prediction[0], rel=1e-12)
    assert said.prediction[1] != pytest.approx(trace.prediction[1], rel=1e-6), "the label between was not known"
    assert after.last == (y[32], y[31])


def test_a_row_of_weight_0_has_no_label_either() -> None:
    X, y = stream()
    used = np.arange(len(y)) % 3 > 0
    learner = ovi.Lag(LEAF, 2)
    weighted = learner.update_many(learner.init(2), X, y, weights=used.astype(float))[0]
    assert weighted.last == learner.update_many(learner.init(2), X[used], y[used])[0].last


def test_what_lags_are_not_made_for_is_refused() -> None:
    X, y = stream(10)
    learner = ovi.Lag(LEAF, 1)
    state = learner.update_many(learner.init(2), X, y)[0]
    with pytest.raises(ValueError, match="shards do not know each other's labels"):
        learner.merge([state, state])
    with pytest.raises(ValueError, match="leave lags out"):
        learner.init(2, sparse=True)
    with pytest.raises(ValueError, match="needs a number of labels from 1"):
        ovi.Lag(LEAF, 0)
    with pytest.raises(ValueError, match="needs a number of past labels"):
        ovi.Auto(lags=-1)
