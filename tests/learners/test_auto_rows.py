"""What the default is fed: units do not matter, odd, sparse and bad rows are learned from or named, and nothing breaks it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from helpers.autos import BLOCKS, NUMBERS, OFFSETS, UNITS, finite, kind, run, same, stream
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import onlinevi as ovi
from onlinevi.learners.pool.mixer import Mixer

# --- units and odd columns


@pytest.mark.parametrize("loss", [ovi.Logistic(), ovi.Poisson(), ovi.Pinball(0.9)], ids=kind)
def test_units_of_features_do_not_matter(loss: ovi.Loss) -> None:
    X, y = stream(loss, 25)
    plain, scaled = run(loss, X, y), run(loss, X * 2.0 ** np.array([-40, 33]), y)
    np.testing.assert_array_equal(scaled.prediction, plain.prediction)
    np.testing.assert_array_equal(scaled.spread, plain.spread)


@pytest.mark.parametrize("loss", NUMBERS, ids=kind)
@pytest.mark.parametrize("power", [-40, 17])
def test_units_of_labels_do_not_matter(loss: ovi.Loss, power: int) -> None:
    X, y = stream(loss, 40)
    plain, scaled = run(loss, X, y), run(loss, X, y * 2.0**power)
    for name in ("prediction", "label_std", "lower", "upper"):
        np.testing.assert_allclose(getattr(scaled, name) / 2.0**power, getattr(plain, name), rtol=1e-9, atol=1e-9)
    # Before the noise is known the learners' own unit is all there is.
    np.testing.assert_allclose(scaled.spread[1:] / 2.0**power, plain.spread[1:], rtol=1e-9, atol=1e-9)


ODD = {
    "constant": lambda X: np.column_stack([X[:, 0], np.full(len(X), 1e6)]),
    "zero": lambda X: X * [1.0, 0.0],
    "wakes up late": lambda X: np.where((np.arange(len(X)) < 150)[:, None] & [False, True], 0.0, X),
    "twice": lambda X: X[:, [0, 0]],
    "one": lambda X: X[:, :1],
    "huge": lambda X: X * [1e100, 1e-100],
    "one value far out": lambda X: X + np.where(np.arange(2 * len(X)).reshape(-1, 2) == 301, 1e120, 0.0),
    "integers": lambda X: np.round(X).astype(int),
    "32 bits": lambda X: X.astype(np.float32),
    "Fortran": lambda X: np.asfortranarray(X),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", ODD)
def test_odd_columns_are_learned_from_or_left_alone(name: str) -> None:
    X, y = stream(ovi.Squared())
    trace = run(ovi.Squared(), ODD[name](X), y)
    assert finite(trace.state)
    assert np.isfinite(trace.prediction).all()
    assert trace.loss[50:].mean() < 1.1 * y[50:].var()


@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Logistic(), ovi.Poisson()], ids=kind)
@pytest.mark.parametrize("count", [1, 2])
def test_one_row_and_two_rows(loss: ovi.Loss, count: int) -> None:
    X, y = stream(loss, count)
    trace = run(loss, X, y)
    assert finite(trace.state)
    assert trace.prediction[0] == pytest.approx(0.0, abs=1e-12)
    learner = ovi.Auto(loss=loss)
    assert np.isfinite(learner.forecast(trace.state, X[0])[:4]).all()


@pytest.mark.compiled
def test_constant_labels_leave_no_noise() -> None:
    X, _ = stream(ovi.Squared(), 300)
    trace = run(ovi.Squared(), X, np.full(300, 7.0))
    assert finite(trace.state)
    assert trace.prediction[-1] == pytest.approx(7.0, abs=0.05)
    assert trace.state.noise < 1e-3


# --- sparse rows


@pytest.mark.compiled
def test_sparse_rows_of_few_columns_are_learned_as_well() -> None:
    X, y = stream(ovi.Squared(), 300)
    X = (X - OFFSETS) / UNITS * (np.random.default_rng(2).random(X.shape) < 0.7)
    dense, thin = run(ovi.Squared(), X, y), run(ovi.Squared(), sparse.csr_matrix(X), y)
    assert thin.loss[50:].mean() == pytest.approx(dense.loss[50:].mean(), rel=0.1)
    learner = ovi.Auto(loss=ovi.Squared())
    row = learner.forecast(thin.state, sparse.csr_matrix(X[:2]))
    np.testing.assert_allclose(row.prediction, X[:2] @ [1.0, -0.7] + 0.3, atol=0.5)


def test_many_sparse_columns_stay_sparse() -> None:
    rng, count, dim = np.random.default_rng(4), 500, 10_000
    often = np.exp(np.log(dim) * rng.random((count, 8))).astype(int) - 1  # the j-th word is used 1/j as often
    X = sparse.csr_matrix((np.ones(8 * count), (np.repeat(np.arange(count), 8), often.ravel())), shape=(count, dim))
    y = X[:, :20] @ rng.standard_normal(20) + 0.1 * rng.standard_normal(count)
    learner = ovi.Auto(loss=ovi.Squared())
    state, _ = learner.update_many(learner.init(dim, sparse=True), X[:5], y[:5])  # compiled here
    began = time.process_time()
    state, trace = learner.update_many(state, X, y)
    assert time.process_time() - began < 1.0, "filled up with zeros it would move 10⁸ coordinates"
    assert finite(state)
    assert trace.loss[100:].mean() < y.var()


@pytest.mark.compiled
def test_many_sparse_columns_forget_where_the_stream_changes() -> None:
    rng, count, dim = np.random.default_rng(5), 3_000, 300
    X = sparse.random(count, dim, 0.1, format="csr", random_state=rng)
    signal = X @ rng.standard_normal(dim)
    signal[count // 2 :] *= -1.0
    y = np.where(signal + 0.1 * rng.logistic(size=count) > 0.0, 1.0, -1.0)
    state, _ = ovi.Auto().update_many(ovi.Auto().init(dim, sparse=True), X, y)
    lazy = [leaf.plan.lazy for leaf in state.leaves()]
    assert lazy == [False] * 4 + [True] * 2
    assert state.weights[lazy].sum() > 0.9


# --- bad input


@pytest.mark.compiled
@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Logistic()], ids=kind)
def test_a_bad_row_is_named_and_nothing_before_it_is_lost(loss: ovi.Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = stream(loss, 30)
    learner, good = ovi.Auto(loss=loss), run(loss, X[:17], y[:17])
    monkeypatch.setattr(BLOCKS, "BLOCK_VALUES", 20)
    for bad, words in (
        (np.nan, r"row 17: column 1 is nan.*missing=True"),
        (np.inf, "row 17: column 1 is inf"),
        (1e150, "1e\\+145"),
    ):
        broken = np.where((np.arange(30) == 17)[:, None] & [False, True], bad, X)
        with pytest.raises(ovi.BadRow, match=words) as caught:
            learner.update_many(learner.init(2), broken, y)
        assert caught.value.row == 17
        assert same(caught.value.trace.state, good.state)
        np.testing.assert_array_equal(caught.value.trace.prediction, good.prediction)
        np.testing.assert_array_equal(caught.value.trace.lower, good.lower)
    labels = np.where(np.arange(30) == 17, np.nan, y)
    broken = np.where((np.arange(30) == 19)[:, None], np.nan, X)  # the earlier of two bad rows is the one that is named
    for rows in (X, broken):
        with pytest.raises(ovi.BadRow, match="row 17: label nan") as caught:
            learner.update_many(learner.init(2), rows, labels)
        assert caught.value.row == 17
        assert same(caught.value.trace.state, good.state)
    with pytest.raises(ovi.BadRow, match="row 0: column 0 is nan"):
        learner.update(good.state, [np.nan, 0.0], y[0])


@pytest.mark.compiled
def test_missing_values_are_taken_where_they_may_be() -> None:
    X, y = stream(ovi.Squared())
    holes = np.where(np.random.default_rng(5).random(X.shape) < 0.2, np.nan, X)
    learner = ovi.Auto(loss=ovi.Squared(), inputs=ovi.Inputs(missing=True))
    state, trace = learner.update_many(learner.init(2), holes, y)
    assert finite(state)
    assert trace.loss[50:].mean() < 0.75 * y[50:].var()
    known, unknown = (learner.forecast(state, row) for row in (X[0], [np.nan, np.nan]))
    assert unknown.spread > 2.0 * known.spread
    ahead, (_, step) = learner.forecast(state, holes[5]), learner.update(state, holes[5], y[5])
    assert step[:2] == pytest.approx((ahead.prediction, ahead.spread), rel=1e-9)
    with pytest.raises(ValueError, match="another learner"):
        ovi.Auto(loss=ovi.Squared()).update(state, X[0], y[0])
    # Where nothing is missing, it is the same learner.
    full = learner.update_many(learner.init(2), X[:50], y[:50])[1]
    np.testing.assert_allclose(full.prediction, run(ovi.Squared(), X[:50], y[:50]).prediction, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda X, y: ovi.auto(X[:0], y[:0]), ValueError, "stream is empty"),
        (lambda X, y: ovi.auto(X, y[:-1]), ValueError, "30 rows, y 29 labels"),
        (lambda X, y: ovi.auto(X, np.full(30, "yes")), TypeError, "needs numbers"),
        (lambda X, y: ovi.auto(X, np.arange(30.0), loss=ovi.Logistic()), ovi.BadRow, "row 0: label 0.0: Logistic needs"),
        (lambda X, y: ovi.auto(X, -np.ones(30), loss=ovi.Poisson()), ovi.BadRow, "row 0: label -1.0: Poisson needs"),
        (lambda X, y: ovi.auto(X, y, weights=[1.0]), ValueError, "one weight a row"),
        (lambda X, y: ovi.Auto(loss=ovi.Logistic), TypeError, "the default is made for"),
        (lambda X, y: ovi.Auto(loss=ovi.Squared(ridge=0.1)), ValueError, "leave ridge and robust out"),
        (lambda X, y: ovi.Auto(loss=ovi.Squared(robust=5.0)), ValueError, "leave ridge and robust out"),
        (lambda X, y: ovi.Auto(inputs=ovi.Inputs(intercept=False)), ValueError, "needs the intercept"),
        (lambda X, y: ovi.Auto(coverage=1.5), ValueError, "strictly between"),
        (lambda X, y: ovi.Auto().init(0), ValueError, "at least one column"),
        (lambda X, y: ovi.Auto().update(ovi.Auto().init(2), X, 1.0), ValueError, "use update_many"),
        (lambda X, y: ovi.Auto().update(ovi.Auto(loss=ovi.Hinge()).init(2), X[0], 1.0), ValueError, "another learner"),
        (lambda X, y: ovi.Auto().init(2).noise, ValueError, "classes have no noise"),
        (lambda X, y: ovi.auto(X, y).coverage, ValueError, "classes have no noise"),
        (lambda X, y: ovi.Auto().forecast(ovi.Auto().init(2), [np.nan, 0.0]), ovi.BadRow, "column 0 is nan"),
    ],
)
def test_bad_calls_say_what_to_try(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(*stream(ovi.Logistic(), 30))


def test_no_rows_change_nothing() -> None:
    learner = ovi.Auto(loss=ovi.Squared())
    state, trace = learner.update_many(learner.init(2), np.empty((0, 2)), [])
    assert same(state, learner.init(2))
    assert len(trace.loss) == len(trace.lower) == 0


def test_an_interrupted_pass_keeps_what_it_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = stream(ovi.Squared(), 30)
    good, played, plain = run(ovi.Squared(), X[:20], y[:20], effort="light"), [], Mixer.play

    def stops(self: Mixer, *block: Any, **options: Any) -> Any:
        played.append(1)
        if len(played) == 3:
            raise KeyboardInterrupt
        return plain(self, *block, **options)

    monkeypatch.setattr(Mixer, "play", stops)
    monkeypatch.setattr(BLOCKS, "BLOCK_VALUES", 20)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(ovi.Squared(), X, y, effort="light")
    trace = caught.value.trace  # type: ignore[attr-defined]
    assert same(trace.state, good.state)
    np.testing.assert_array_equal(trace.upper, good.upper)


# --- nothing breaks it

SCALES = st.sampled_from([0.0, 1e-100, 1e-8, 1.0, 1e8, 1e100])


@given(
    arrays(float, (12, 3), elements=st.floats(-2.0, 2.0)),
    arrays(float, (12, 3), elements=SCALES),
    st.sampled_from([ovi.Squared(), ovi.Logistic(), ovi.Poisson(), ovi.Pinball(0.9)]),
)
@example(np.full((12, 3), 1e-250), np.full((12, 3), 1e100), ovi.Squared())  # squares of labels are all but 0
@settings(max_examples=60)
def test_no_stream_makes_it_diverge(values: np.ndarray, scales: np.ndarray, loss: ovi.Loss) -> None:
    X, y = (values * scales)[:, :2], (values * scales)[:, 2]
    if isinstance(loss, ovi.Logistic):
        y = np.where(y > 0.0, 1.0, -1.0)
    if isinstance(loss, ovi.Poisson):
        y = np.minimum(np.round(np.abs(y)), 1e12)
    try:
        trace = run(loss, X, y)
    except ovi.BadRow as bad:
        if not isinstance(loss, ovi.Poisson):  # only rates can overflow
            raise
        trace = bad.trace
    assert finite(trace.state)
    assert np.isfinite(trace.prediction).all()
    assert np.isfinite(trace.spread).all()
    assert not np.isnan(trace.lower).any()
    assert not np.isnan(trace.upper).any()
    assert trace.state.weights.sum() == pytest.approx(1.0)


@pytest.mark.compiled
def test_missing_values_widen_intervals_by_the_unit_of_the_labels() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    y = X @ [1.0, 2.0, -1.0, 0.5] + 0.1 * rng.standard_normal(3000)
    X[rng.random(X.shape) < 0.15] = np.nan
    holes, late = np.isnan(X).any(axis=1), np.arange(3000) >= 500
    traces = [ovi.auto(X, k * y, loss=ovi.Squared(), inputs=ovi.Inputs(missing=True)) for k in (1.0, 1024.0)]
    for trace, k in zip(traces, (1.0, 1024.0), strict=True):
        inside, width = (trace.lower <= k * y) & (k * y <= trace.upper), (trace.upper - trace.lower) / k
        for group in (late & holes, late & ~holes):
            assert abs(inside[group].mean() - 0.9) < 0.03
        assert np.median(width[late & holes]) > 4.0 * np.median(width[late & ~holes])
        assert trace.state.noise / k**2 == pytest.approx(0.01, rel=0.3)
    np.testing.assert_allclose(traces[1].prediction, 1024.0 * traces[0].prediction, rtol=1e-8, atol=1e-6)


@pytest.mark.compiled
def test_where_labels_lie_does_not_decide_between_learners() -> None:
    """The first labels far from 0 cost all learners alike, and lay nothing to the features of some."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = X @ [1.0, 2.0, -1.0] + 0.1 * rng.standard_normal(300)
    near, far = (np.square(y - (ovi.auto(X, y + k, loss=ovi.Squared()).prediction - k))[100:].mean() for k in (0.0, 1e4))
    assert near < 0.01 * y.var()
    assert far < 1.02 * near
