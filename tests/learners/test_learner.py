"""What people call: one event, a block, a stream; and what they are told when the data are bad."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from helpers.catalogue import LOSSES, RULES, learner, name, stream
from scipy import sparse

import onlinevi as ovi

HINGE = ovi.Linear(loss=ovi.Hinge(), rule=ovi.NGVI())


def test_one_event_says_what_was_predicted_before_the_label() -> None:
    state = HINGE.init(2)
    state, first = HINGE.update(state, [3.0, 4.0], 1.0)
    assert first == (0.0, 5.0, 1.0)
    prediction, spread = HINGE.predict(state, [3.0, 4.0])
    _, second = HINGE.update(state, [3.0, 4.0], 1)
    assert second == pytest.approx((prediction, spread, max(0.0, 1.0 - prediction)))


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_nothing_mutates_a_state_the_caller_holds(rule: ovi.Rule) -> None:
    X, y = stream(ovi.Squared(), count=20)
    model = learner(ovi.Squared(), rule)
    state, _ = model.update_many(model.init(5, horizon=20), X, y)
    before = state.array.copy()
    model.update(state, X[0], 3.0)
    model.update_many(state, X, y)
    model.predict(state, X)
    np.testing.assert_array_equal(state.array, before)
    for view in (state.array, state.mean, state.std, state.gradient):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1.0


def test_predictions_for_rows_matrices_and_sparse_matrices() -> None:
    X, y = stream(ovi.Hinge(), count=30)
    state = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI()).state
    mean, std = HINGE.predict(state, X)
    assert HINGE.predict(state, X[4]) == pytest.approx((mean[4], std[4]))
    for got, want in zip(HINGE.predict(state, sparse.csr_matrix(X)), (mean, std), strict=True):
        np.testing.assert_allclose(got, want)
    with pytest.raises(ValueError, match="x has 3 features, the belief 5"):
        HINGE.predict(state, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="not finite"):
        HINGE.predict(state, [np.nan] * 5)


BAD_ROWS = [
    (lambda X, y: X.__setitem__((7, 2), np.nan), "row 7: feature 2 is nan"),
    (lambda X, y: X.__setitem__((7, 2), np.inf), "row 7: feature 2 is inf"),
    (lambda X, y: X.__setitem__((7, 2), 1e200), "row 7: the step would overflow"),
    (lambda X, y: y.__setitem__(7, np.nan), "row 7: label nan"),
    (lambda X, y: y.__setitem__(7, np.inf), "row 7: label inf"),
    (lambda X, y: y.__setitem__(7, -1.0), "row 7: label -1.0: Poisson needs a count ≥ 0"),
    (lambda X, y: y.__setitem__(7, 0.0), r"row 7: label 0.0: (Hinge|Logistic) needs −1 or \+1.*2\*y − 1"),
]


@pytest.mark.parametrize("rule", RULES, ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_bad_rows_are_refused_with_their_number(loss: ovi.Loss, rule: ovi.Rule) -> None:
    for spoil, message in BAD_ROWS:
        if ("Poisson" in message) > isinstance(loss, ovi.Poisson) or ("Hinge" in message) > isinstance(
            loss, ovi.Hinge | ovi.Logistic
        ):
            continue
        X, y = stream(loss, count=12)
        good_X, good_y = X[:7].copy(), y[:7].copy()
        spoil(X, y)
        model = learner(loss, rule)
        start = model.init(5, horizon=12)
        for matrix in (X, sparse.csr_matrix(X)) if isinstance(loss, ovi.Hinge) else (X,):
            with pytest.raises(ovi.BadRow, match=message) as refused:
                model.update_many(start, matrix, y)
            assert refused.value.row == 7
            kept = refused.value.trace
            assert kept.state.count == 7
            assert len(kept.loss) == 7
        assert start == model.init(5, horizon=12)
        want, _ = model.update_many(start, good_X, good_y)
        np.testing.assert_allclose(kept.state.array, want.array, rtol=1e-13, atol=1e-13)
        with pytest.raises(ovi.BadRow, match=message.replace("row 7", "row 0")):
            model.update(start, X[7], y[7])


def test_a_step_that_would_overflow_is_refused_where_it_happens() -> None:
    """Every row is finite; an absurd rate without a box is what overflows."""
    X, y = stream(ovi.Squared(), count=200)
    model = ovi.Linear(loss=ovi.Squared(), rule=ovi.SVB(ovi.Constant(1e60)), family=ovi.MeanField(prior_std=1e60, box=None))
    with pytest.raises(ovi.BadRow, match=r"overflow.*lower the rate") as refused:
        model.update_many(model.init(5), X, y)
    kept = refused.value.trace.state
    assert np.isfinite(kept.array).all()
    assert kept.count == refused.value.row
    want, _ = model.update_many(model.init(5), X[: kept.count], y[: kept.count])
    assert kept == want


def test_an_overflowing_accumulator_is_refused() -> None:
    model = ovi.Linear(loss=ovi.Absolute(), rule=ovi.SVB())
    state, _ = model.update(model.init(1), [1.0], 6e307)
    with pytest.raises(ovi.BadRow, match="overflow"):
        model.update(state, [1.0], 6e307)
    assert np.isfinite(state.array).all()


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_bad_weights_are_refused(weight: float) -> None:
    with pytest.raises(ovi.BadRow, match="row 1: weight"):
        ovi.learn(np.ones((3, 1)), [1, -1, 1], loss=ovi.Hinge(), rule=ovi.SVB(), weights=[1.0, weight, 1.0])
    with pytest.raises(ovi.BadRow, match="weight"):
        HINGE.update(HINGE.init(1), [1.0], 1.0, weight=weight)


def test_a_weight_of_zero_leaves_the_state() -> None:
    state = HINGE.init(1)
    same, step = HINGE.update(state, [2.0], 1.0, weight=0.0)
    assert same == state
    assert step == (0.0, 2.0, 0.0)
    trace = ovi.learn(np.ones((3, 1)), [1, 1, 1], loss=ovi.Hinge(), rule=ovi.SVB(), weights=[0.0, 0.0, 0.0])
    assert trace.state.count == 0
    assert len(trace.average_loss) == 0
    for own in (ovi.Auto(ovi.Logistic()), ovi.OneVsRest(ovi.Linear(ovi.Logistic(), ovi.NGVI()), 3)):
        known, _ = own.update(own.init(1), [1.0], 1.0)
        same, step = own.update(known, [2.0], 1.0, weight=0.0)
        assert same is known
        assert step.prediction == pytest.approx(own.update(known, [2.0], 1.0)[1].prediction, rel=1e-14)
        assert step.loss == 0.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ovi.learn(np.ones((0, 3)), [], loss=ovi.Hinge(), rule=ovi.SVB()), ValueError, "the stream is empty"),
        (lambda: ovi.learn(np.ones((3, 0)), [1, 1, 1], loss=ovi.Hinge(), rule=ovi.SVB()), ValueError, "at least one feature"),
        (lambda: ovi.learn(np.ones(3), [1, 1, 1], loss=ovi.Hinge(), rule=ovi.SVB()), ValueError, r"X\.reshape\(-1, 1\)"),
        (lambda: ovi.learn(np.ones((3, 1)), [1, 1], loss=ovi.Hinge(), rule=ovi.SVB()), ValueError, "X has 3 rows, y 2 labels"),
        (
            lambda: ovi.learn(np.ones((2, 1)), ["spam", "ham"], loss=ovi.Hinge(), rule=ovi.SVB()),
            TypeError,
            r"'spam'.*np\.where",
        ),
        (lambda: ovi.learn([["a", "b"]], [1], loss=ovi.Hinge(), rule=ovi.SVB()), TypeError, "encode categories"),
        (lambda: ovi.learn(np.ones((2, 1)), [[1], [1]], loss=ovi.Hinge(), rule=ovi.SVB()), ValueError, r"y\.ravel"),
        (lambda: ovi.learn(np.ones((2, 1)), [1, 1], loss=ovi.Hinge, rule=ovi.SVB()), TypeError, r"write Hinge\(\)"),
        (lambda: ovi.learn(np.ones((2, 1)), [1, 1], loss=ovi.Hinge(), rule="svb"), TypeError, "needs a rule object"),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.SVA(), ovi.Point()), ValueError, "SVA needs a Gaussian family"),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.OGA(), ovi.MeanField()), ValueError, r"OGA needs Point\(\)"),
        (lambda: HINGE.update(HINGE.init(2), [1.0], 1), ValueError, r"needs \(2,\)"),
        (lambda: HINGE.update(HINGE.init(1), [1.0], "spam"), TypeError, r"label 'spam': Hinge needs −1 or \+1"),
        (lambda: HINGE.update_many(HINGE.init(2), np.ones((1, 3)), [1]), ValueError, "X has 3 features, the state 2"),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.SVB()).update(HINGE.init(1), [1.0], 1), ValueError, "another learner"),
        (lambda: HINGE.init(0), ValueError, "dim=0"),
        (lambda: HINGE.init(1, horizon=0), ValueError, "horizon=0"),
        (
            lambda: ovi.learn(np.ones((2, 1)), [1, 1], loss=ovi.Hinge(), rule=ovi.SVB(), weights=[1]),
            ValueError,
            "one weight a row",
        ),
        (lambda: ovi.learn(np.ones((2, 1)), [1, 1], loss=ovi.Hinge(), rule=ovi.SVB(), record="some"), ValueError, "thinned"),
    ],
)
def test_bad_calls_say_what_to_try(call, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        call()


def test_the_average_decision_is_kept_only_if_asked() -> None:
    X, y = stream(ovi.Hinge(), count=10)
    trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB(), average=False)
    with pytest.raises(ValueError, match="average=True"):
        trace.average_mean  # noqa: B018


def test_states_survive_pickling() -> None:
    X, y = stream(ovi.Hinge(), count=10)
    state = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB()).state
    again = pickle.loads(pickle.dumps(state))
    assert again == state
    model = ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB())
    assert model.update(again, X[0], y[0])[0] == model.update(state, X[0], y[0])[0]


def test_an_interrupted_pass_keeps_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    from onlinevi.data import rows

    X, y = stream(ovi.Hinge(), count=50)
    monkeypatch.setattr(rows, "BLOCK_VALUES", 50)
    block = rows.DenseRows.block

    def interrupt(self, start: int, stop: int):  # type: ignore[no-untyped-def]
        if start == 30:
            raise KeyboardInterrupt
        return block(self, start, stop)

    monkeypatch.setattr(rows.DenseRows, "block", interrupt)
    with pytest.raises(KeyboardInterrupt) as stopped:
        ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB())
    assert stopped.value.trace.state.count == 30
    assert len(stopped.value.trace.loss) == 30
