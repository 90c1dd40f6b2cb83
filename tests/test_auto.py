"""The default: what it says before an event is what is recorded, units and splits do not matter, and nothing breaks it."""

from __future__ import annotations

import copy
import pickle
import sys
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.special import expit

import onlinevi as ovi
from onlinevi.auto import AutoState
from onlinevi.ewa.mixer import Mixer

LOSSES = [ovi.Logistic(), ovi.Hinge(), ovi.Squared(), ovi.Absolute(), ovi.Pinball(0.9), ovi.Poisson()]
NUMBERS = [ovi.Squared(), ovi.Absolute(), ovi.Pinball(0.9)]
UNITS, OFFSETS = np.array([1e-3, 1e4]), np.array([5.0, 0.0])
BLOCKS = sys.modules["onlinevi.auto.learner"]


def kind(loss: ovi.Loss) -> str:
    return type(loss).__name__


def stream(loss: ovi.Loss, count: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two features in wild units, and labels that follow them."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((count, 2))
    score = Z @ [1.0, -0.7] + 0.3
    if isinstance(loss, ovi.Logistic | ovi.Hinge):
        y = np.where(2.0 * score + rng.logistic(size=count) > 0.0, 1.0, -1.0)
    elif isinstance(loss, ovi.Poisson):
        y = rng.poisson(np.exp(np.minimum(score, 2.0))).astype(float)
    else:
        y = score + 0.3 * rng.standard_normal(count)
    return OFFSETS + UNITS * Z, y


def run(loss: ovi.Loss, X: Any, y: Any, **options: Any) -> Any:
    return ovi.auto(X, y, loss=loss, **options)


def arrays_of(state: AutoState) -> list[np.ndarray]:
    told = [] if state.calibrated is None else [state.calibrated.array]
    return [state.inputs.array, state.pooled.array, *(own.array for own in state.pooled.learners), *told]


def same(one: AutoState, two: AutoState) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(arrays_of(one), arrays_of(two), strict=True))


def finite(state: AutoState) -> bool:
    return all(np.isfinite(part).all() for part in arrays_of(state))


# --- it learns


def best_constant(loss: ovi.Loss, y: np.ndarray) -> float:
    """The least average loss of any constant prediction, in hindsight."""
    return min(loss(y, np.full(len(y), a)).value.mean() for a in np.linspace(-3.0, 3.0, 301))


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_every_loss_is_learned_in_wild_units(loss: ovi.Loss) -> None:
    X, y = stream(loss)
    trace = run(loss, X, y)
    assert trace.state.count == len(trace.loss) == len(y)
    assert trace.average_loss[-1] == pytest.approx(trace.loss.mean())
    assert trace.loss[50:].mean() < 0.85 * best_constant(loss, y[50:])
    assert finite(trace.state)
    if trace.state.calibrated is not None:
        covered = (trace.lower <= y) & (y <= trace.upper)
        assert trace.coverage == pytest.approx(covered[1:].mean(), abs=1e-12)
        assert trace.coverage == pytest.approx(0.9, abs=0.05)
        assert (trace.upper[1:] - trace.lower[1:]).mean() == pytest.approx(trace.width)


def test_probabilities_are_those_that_are_paid_for() -> None:
    X, y = stream(ovi.Logistic())
    trace = ovi.auto(X, y)
    np.testing.assert_allclose(-np.log(np.where(y > 0.0, trace.probability, 1.0 - trace.probability)), trace.loss, rtol=1e-9)
    # And they are right: among events of a probability about p, a part of about p are +1.
    truth = expit(2.0 * ((X - OFFSETS) / UNITS @ [1.0, -0.7] + 0.3))
    assert np.abs(trace.probability - truth)[100:].mean() < 0.06


def test_a_stream_that_jumps_is_tracked_and_outliers_do_not_ruin_it() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((900, 2))
    weights = np.where(np.arange(900)[:, None] < 450, [1.0, -1.0], [-1.0, 1.0])
    y = (X * weights).sum(axis=1) + 0.1 * rng.standard_normal(900)
    assert run(ovi.Squared(), X, y).loss[550:].mean() < 0.2, "keeping to the old weights costs 8"
    y = X @ [1.0, -1.0] + 0.1 * rng.standard_normal(900)
    wild = y + np.where(rng.random(900) < 0.02, 1e3, 0.0)
    trace = run(ovi.Absolute(), X, wild)
    assert np.median(np.abs(trace.prediction - y)[200:]) < 0.3


# --- one event, a block, any split, records and weights


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_one_event_at_a_time_and_any_split_give_the_same_bits(loss: ovi.Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = stream(loss, 30)
    learner = ovi.Auto(loss=loss)
    whole, trace = learner.update_many(learner.init(2), X, y)
    state, steps = learner.init(2), []
    for row, label in zip(X, y, strict=True):
        state, step = learner.update(state, row, label)
        steps.append(step)
    assert same(state, whole)
    np.testing.assert_array_equal(np.array(steps), np.column_stack([trace.prediction, trace.spread, trace.loss]))
    monkeypatch.setattr(BLOCKS, "BLOCK_VALUES", 14)
    first, before = learner.update_many(learner.init(2), X[:11], y[:11])
    second, after = learner.update_many(first, X[11:], y[11:])
    assert same(second, whole)
    for name in ("prediction", "spread", "loss", "lower", "upper", "label_std", "average_loss"):
        joined = np.concatenate([getattr(before, name), getattr(after, name)])
        np.testing.assert_array_equal(joined, getattr(trace, name))


def test_what_is_recorded_changes_nothing_else() -> None:
    X, y = stream(ovi.Squared(), 60)
    all_, thinned, none = (run(ovi.Squared(), X, y, record=record) for record in ("all", "thinned", "none"))
    assert same(all_.state, thinned.state)
    assert same(all_.state, none.state)
    np.testing.assert_array_equal(thinned.prediction, all_.prediction)
    assert (len(none.loss), len(none.lower), len(thinned.lower), len(all_.lower)) == (0, 0, 0, 60)
    with pytest.raises(ValueError, match='needs "all"'):
        run(ovi.Squared(), X, y, record="some")


@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Logistic()], ids=kind)
def test_a_row_of_weight_0_is_as_if_absent(loss: ovi.Loss) -> None:
    X, y = stream(loss, 40)
    used = np.random.default_rng(1).random(40) < 0.6
    X[~used] *= 1e9
    learner = ovi.Auto(loss=loss)
    weighted = learner.update_many(learner.init(2), X, y, weights=used.astype(float))[0]
    assert same(weighted, learner.update_many(learner.init(2), X[used], y[used])[0])
    state, step = learner.update(weighted, X[0], y[0], weight=0.0)
    assert state is weighted
    assert step[:2] == learner.predict(weighted, X[0])
    double, _ = learner.update(weighted, X[0], y[0], weight=2.0)
    assert double.loss - weighted.loss == pytest.approx(2.0 * (learner.update(weighted, X[0], y[0])[0].loss - weighted.loss))
    for weight in (-1.0, np.nan):
        with pytest.raises(ovi.BadRow, match="row 3: weight"):
            learner.update_many(weighted, X[:5], y[:5], weights=np.where(np.arange(5) == 3, weight, 1.0))


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_a_forecast_is_what_will_be_recorded(loss: ovi.Loss) -> None:
    X, y = stream(loss, 40)
    learner = ovi.Auto(loss=loss)
    state, trace = learner.init(2), run(loss, X, y)
    for start, stop in ((0, 1), (1, 25), (25, 39), (39, 40)):
        said = learner.forecast(state, X[start])
        mean, spread = learner.predict(state, X[start])
        assert (mean, spread) == (said.prediction, said.spread)
        assert (mean, spread) == pytest.approx((trace.prediction[start], trace.spread[start]), rel=1e-8, abs=1e-10)
        if state.calibrated is None:
            assert said.probability == pytest.approx(trace.probability[start], rel=1e-8)
            assert (said.mean, said.std**2) == pytest.approx((2 * said.probability - 1, 1 - said.mean**2))
            assert said.lower is said.upper is None
        else:
            recorded = trace.label_std[start], trace.lower[start], trace.upper[start]
            assert (said.std, said.lower, said.upper) == pytest.approx(recorded, rel=1e-8, abs=1e-10)
            assert said.probability is None
        state, _ = learner.update_many(state, X[start:stop], y[start:stop])
    matrix = learner.forecast(state, X[:5])
    for i in range(5):
        row = learner.forecast(state, X[i])
        for one, many in zip(row, matrix, strict=True):
            assert (one is None) == (many is None)
            assert one is None or one == pytest.approx(many[i], rel=1e-10)


# --- units and odd columns


@pytest.mark.parametrize("loss", [ovi.Logistic(), ovi.Poisson(), ovi.Pinball(0.9)], ids=kind)
def test_units_of_features_do_not_matter(loss: ovi.Loss) -> None:
    X, y = stream(loss, 60)
    plain, scaled = run(loss, X, y), run(loss, X * 2.0 ** np.array([-40, 33]), y)
    np.testing.assert_array_equal(scaled.prediction, plain.prediction)
    np.testing.assert_array_equal(scaled.spread, plain.spread)


@pytest.mark.parametrize("loss", NUMBERS, ids=kind)
@pytest.mark.parametrize("power", [-40, 17])
def test_units_of_labels_do_not_matter(loss: ovi.Loss, power: int) -> None:
    X, y = stream(loss, 80)
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


def test_constant_labels_leave_no_noise() -> None:
    X, _ = stream(ovi.Squared(), 300)
    trace = run(ovi.Squared(), X, np.full(300, 7.0))
    assert finite(trace.state)
    assert trace.prediction[-1] == pytest.approx(7.0, abs=0.05)
    assert trace.state.noise < 1e-3


# --- sparse rows


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
    began = time.perf_counter()
    state, trace = learner.update_many(state, X, y)
    assert time.perf_counter() - began < 1.0, "filled up with zeros it would move 10⁸ coordinates"
    assert finite(state)
    assert trace.loss[100:].mean() < y.var()


# --- bad input


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
    good, played, plain = run(ovi.Squared(), X[:20], y[:20]), [], Mixer.play

    def stops(self: Mixer, *block: Any, **options: Any) -> Any:
        played.append(1)
        if len(played) == 3:
            raise KeyboardInterrupt
        return plain(self, *block, **options)

    monkeypatch.setattr(Mixer, "play", stops)
    monkeypatch.setattr(BLOCKS, "BLOCK_VALUES", 20)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(ovi.Squared(), X, y)
    trace = caught.value.trace  # type: ignore[attr-defined]
    assert same(trace.state, good.state)
    np.testing.assert_array_equal(trace.upper, good.upper)


# --- a state is a value


@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Logistic(), ovi.Pinball(0.9)], ids=kind)
def test_a_state_can_be_pickled_and_copied(loss: ovi.Loss) -> None:
    X, y = stream(loss, 40)
    learner = ovi.Auto(loss=loss)
    state = learner.update_many(learner.init(2), X[:30], y[:30])[0]
    expected = learner.update_many(state, X[30:], y[30:])[0]
    for twin in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        assert same(twin, state)
        assert not any(part.flags.writeable for part in arrays_of(twin))
        assert same(learner.update_many(twin, X[30:], y[30:])[0], expected)
    assert not same(state, expected), "the state given is left as it is"
    assert repr(state).startswith("AutoState(count=30, average_loss=")


def test_what_was_learned_can_be_read() -> None:
    X, y = stream(ovi.Squared(), 600)
    trace = run(ovi.Squared(), X, y, inputs=ovi.Inputs(squash=None))
    state = trace.state
    raw = ovi.Inputs(squash=None).raw_weights(state.inputs, state.mean, state.std)
    truth = np.array([1.0, -0.7]) / UNITS
    assert (np.abs(raw.weights - truth) < 4.0 * raw.std).all()
    np.testing.assert_allclose(raw.weights, truth, rtol=0.2)
    assert state.weights.sum() == pytest.approx(1.0)
    assert np.array_equal(trace.mean, state.mean)


# --- nothing breaks it

SCALES = st.sampled_from([0.0, 1e-100, 1e-8, 1.0, 1e8, 1e100])


@given(
    arrays(float, (12, 3), elements=st.floats(-2.0, 2.0)),
    arrays(float, (12, 3), elements=SCALES),
    st.sampled_from([ovi.Squared(), ovi.Logistic(), ovi.Poisson(), ovi.Pinball(0.9)]),
)
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
