"""Learners as experts: each runs as if alone, an aggregate follows its definition, and what cannot be is refused."""

from __future__ import annotations

import itertools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.catalogue import name, stream
from helpers.pools import LOGISTIC, OWN, SQUARED, hedge
from scipy.sparse import csr_array

import onlinevi as ovi
from onlinevi.engine.kernel import compose
from onlinevi.ewa import AdaHedge, Pool, PoolState
from onlinevi.learners.base import BadRow
from onlinevi.learners.pool import members
from onlinevi.learners.pool import pool as module
from onlinevi.learners.pool.mixing import exponentiate

# --- many learners in one loop

ROBUST = ovi.Squared(robust=2.0)
MIXED = [
    ovi.Linear(OWN, ovi.NGVI(0.5)),
    ovi.Linear(OWN, ovi.NGVI(0.5), discount=0.9),
    ovi.Linear(OWN, ovi.NGVI(0.1), ovi.MeanField(prior_std=0.3, box=None), discount=0.99),
    ovi.Linear(OWN, ovi.NGVI(0.3), average=False, discount=0.9),
    ovi.Linear(ROBUST, ovi.NGVI(0.5), discount=0.9),
    ovi.Linear(OWN, ovi.OGA(0.05)),
    ovi.Linear(OWN, ovi.NGVI(0.2), ovi.FullCovariance(), discount=0.95),
]


def assert_alone(learners: list[ovi.Linear], X: Any, y: np.ndarray, weights: np.ndarray | None = None) -> None:
    state = Pool(learners, AdaHedge()).run(X, y, weights=weights).state
    for learner, together in zip(learners, state.learners, strict=True):
        alone, _ = learner.update_many(learner.init(X.shape[1], len(y)), X, y, weights=weights)
        assert alone == together


@pytest.mark.parametrize("weighted", [False, True])
def test_learners_in_one_loop_are_each_as_alone(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit, whatever runs beside them and however the stream is cut."""
    X, y = stream(OWN, count=80, dim=4)
    weights = np.random.default_rng(1).integers(0, 3, 80) * 0.7 if weighted else None
    assert_alone(MIXED, X, y, weights)
    monkeypatch.setattr(module, "BLOCK_VALUES", 28)
    assert_alone(MIXED, X, y, weights)
    assert len(members.Members(MIXED, [learner.plan(4, 80) for learner in MIXED]).kinds) == 5, "one loop a kind"


def test_missing_values_and_sparse_rows_too() -> None:
    rng = np.random.default_rng(0)
    X, y = stream(OWN, count=80, dim=4)
    X[rng.random(X.shape) < 0.2] = np.nan
    lacking = [ovi.Linear(OWN, ovi.NGVI(rate), missing=True, discount=d) for rate, d in [(0.5, 0.95), (0.1, 0.9)]]
    assert_alone(lacking, X, y)
    mix = Pool(lacking, AdaHedge())
    state = mix.run(X[:-1], y[:-1]).state
    assert mix.update(state, X[-1], y[-1])[1][:2] == pytest.approx(mix.predict(state, X[-1]), rel=1e-12)
    thin = csr_array(np.where(rng.random(X.shape) < 0.3, rng.standard_normal(X.shape), 0.0))
    assert_alone([ovi.Linear(OWN, ovi.NGVI(step)) for step in (0.5, 0.1)], thin, y, rng.integers(0, 2, 80) * 1.0)


def test_threads_change_no_bit_and_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = stream(OWN, count=80, dim=4)
    mix, before = Pool(MIXED, AdaHedge()), threading.active_count()
    whole = mix.run(X, y)
    monkeypatch.setattr(module, "BLOCK_VALUES", 100)
    for threads in (2, 3, 50):
        shared = mix.run(X, y, threads=threads)
        assert shared.state.learners == whole.state.learners
        assert shared.state.array.tolist() == whole.state.array.tolist()
        assert shared.weights.tolist() == whole.weights.tolist()
    y[61] = np.nan
    with pytest.raises(BadRow, match="row 61: ") as caught:
        mix.run(X, y, threads=2)
    assert caught.value.trace.state.count == 61
    assert threading.active_count() == before
    for bad in (0, -1, 1.5, True, None):
        with pytest.raises(ValueError, match="needs a number of threads"):
            mix.run(X, y, threads=bad)  # type: ignore[arg-type]


def test_a_ridge_is_the_learners_own_affair() -> None:
    X, y = stream(OWN, count=80, dim=4)
    ridged = ovi.Squared(ridge=0.5)
    state = Pool([ovi.Linear(ridged, ovi.NGVI(0.5)), MIXED[0]], AdaHedge(), loss=OWN).run(X, y).state
    trace = ovi.learn(X, y, loss=ridged, rule=ovi.NGVI(0.5))
    assert state.losses[0] == pytest.approx(OWN(y, trace.prediction).value.sum(), rel=1e-12)
    assert state.losses[0] < trace.loss.sum()


# --- laws of every aggregate

AGGREGATES = [
    Pool(LOGISTIC, ovi.PerSqrt(1.0), prior=[0.5, 0.3, 0.2]),
    Pool(LOGISTIC, 0.5, share=0.1, prior=[0.5, 0.3, 0.2]),
    Pool(LOGISTIC, 1.0, share=0.01, pool="probability"),
    Pool(LOGISTIC, AdaHedge(), pool="probability"),
    Pool(SQUARED, AdaHedge()),
    Pool(SQUARED, AdaHedge(), loss=ovi.Pinball(0.9), pool="quantile"),
]


def describe(mix: Pool) -> str:
    return f"{type(mix.rate).__name__} share={mix.share} {mix.pool}"


@pytest.mark.parametrize("mix", AGGREGATES, ids=describe)
def test_any_split_gives_the_same_bits_and_what_is_predicted_is_recorded(mix: Pool) -> None:
    X, y = stream(mix.learners[0].loss, count=61, dim=3)
    importance = np.where(np.arange(61) % 5 == 2, 0.0, 1.5)
    whole, start = mix.run(X, y, weights=importance), mix.init(3, 61)
    for size in (1, 2, 9, 50):
        state, parts = start, []
        for cut in range(0, 61, size):
            part = slice(cut, cut + size)
            state, played = mix.update_many(state, X[part], y[part], weights=importance[part])
            parts.append(played)
        for field in ("prediction", "spread", "loss", "average_loss", "weights"):
            assert np.concatenate([getattr(part, field) for part in parts]).tolist() == getattr(whole, field).tolist()
        assert state.array.tolist() == whole.state.array.tolist()
        assert state.learners == whole.state.learners
    state, event = start, 0
    for row, label, weight in zip(X, y, importance, strict=True):
        said, weights = mix.predict(state, row), state.weights
        assert mix.predict(state, np.stack([row, row]))[0] == pytest.approx([said[0]] * 2)
        state, step = mix.update(state, row, label, weight)
        assert step[:2] == pytest.approx(said, rel=1e-9, abs=1e-12)
        if weight > 0.0:
            assert step.loss == whole.loss[event]
            assert weights == pytest.approx(whole.weights[event], abs=1e-12)
            event += 1
    assert event == whole.state.count == state.count
    with pytest.raises(ValueError, match="read-only"):
        state.array[0] = 1.0
    again, _ = mix.update_many(pickle.loads(pickle.dumps(start)), X, y, weights=importance)
    assert again.array.tolist() == whole.state.array.tolist()
    assert pickle.loads(pickle.dumps(start)).plan._kernel is start.plan._kernel, "a pickled state goes on in the loop there is"


def test_an_aggregate_follows_the_definition() -> None:
    loss = ovi.Logistic()
    X, y = stream(loss, count=50, dim=3)
    prior = np.array([0.5, 0.3, 0.2])
    played = Pool(LOGISTIC, 0.7, prior=prior).run(X, y)
    traces = [one.update_many(one.init(3, 50), X, y)[1] for one in LOGISTIC]
    totals = np.cumsum([trace.loss for trace in traces], axis=1).T
    before = np.vstack([np.zeros(3), totals[:-1]])  # weights depend on the past alone
    weights = prior * np.exp(-0.7 * before)
    weights /= weights.sum(axis=1, keepdims=True)
    predictions = np.array([trace.prediction for trace in traces]).T
    assert played.weights == pytest.approx(weights, abs=1e-12)
    assert played.prediction == pytest.approx((weights * predictions).sum(axis=1), abs=1e-12)
    assert played.loss == pytest.approx(loss(y, played.prediction).value, rel=1e-12)
    assert played.average_loss[-1] == pytest.approx(played.loss.mean())
    assert played.state.average_loss == played.average_loss[-1]
    squares = [trace.spread**2 + trace.prediction**2 for trace in traces]
    assert played.spread**2 + played.prediction**2 == pytest.approx((weights * np.array(squares).T).sum(axis=1))


def test_learners_of_different_losses_are_weighed_by_one() -> None:
    X, y = stream(ovi.Hinge(), count=40, dim=2)
    learners = [ovi.Linear(loss, ovi.NGVI()) for loss in (ovi.Hinge(), ovi.Logistic())]
    with pytest.raises(ValueError, match="different losses"):
        Pool(learners)
    played = Pool(learners, loss=ovi.Hinge()).run(X, y)
    trace = ovi.learn(X, y, loss=ovi.Logistic(), rule=ovi.NGVI())
    assert played.state.losses[1] == pytest.approx(ovi.Hinge()(y, trace.prediction).value.sum())


def test_one_learner_alone_is_itself() -> None:
    X, y = stream(ovi.Hinge(), count=40, dim=2)
    trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI())
    for rate in (ovi.PerHorizon(1.0), AdaHedge()):
        played = Pool([ovi.Linear(ovi.Hinge(), ovi.NGVI())], rate).run(X, y)
        assert played.prediction.tolist() == trace.prediction.tolist()
        assert (played.weights == 1.0).all()


@pytest.mark.parametrize("rate", [0.02, 2.0])
@pytest.mark.parametrize("loss", [ovi.Hinge(), ovi.Absolute()], ids=name)
def test_the_regret_is_below_its_bound(loss: ovi.Loss, rate: float) -> None:
    box, horizon = ovi.Box((-1.0, 1.0)), 120
    learners = [ovi.Linear(loss, ovi.OGA(0.3), ovi.Point(box=box))]
    # The bound asks nothing of the learners: two loops, four learners that differ much.
    learners += [ovi.Linear(loss, ovi.NGVI(step), ovi.MeanField(0.5, box=box)) for step in (0.01, 1.0, 30.0)]
    mix, most = Pool(learners, rate), 3.0
    for seed, adversarial in itertools.product(range(3), (False, True)):
        rng = np.random.default_rng(seed)
        X, y, state = rng.choice([-1.0, 1.0], (horizon, 2)), np.empty(horizon), mix.init(2)
        for t, row in enumerate(X):
            prediction = mix.predict(state, row)[0]
            y[t] = (-1.0 if prediction >= 0.0 else 1.0) if adversarial else rng.choice([-1.0, 1.0])
            state, _ = mix.update(state, row, y[t])
        alone = [ovi.learn(X, y, loss=loss, rule=one.rule, family=one.family).loss.sum() for one in learners]
        assert state.loss - min(alone) <= rate * most**2 * horizon / 8 + np.log(4) / rate
        assert state.losses == pytest.approx(alone)
        assert np.isnan(state.regret_bound), "a bound that needs the range of losses is not made up"


# --- what is refused


def spoiled(row: int, value: float) -> tuple[np.ndarray, np.ndarray]:
    X, y = stream(OWN, count=40, dim=2)
    X[row, 1] = value
    return X, y


@pytest.mark.parametrize("block", [4, 1 << 15])
def test_a_bad_row_keeps_what_was_learned_before(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_VALUES", block)
    weights = np.where(np.arange(40) % 4 == 1, 0.0, 1.0)
    mix = Pool(SQUARED, 0.3)
    for row, value in itertools.product((0, 3, 26), (np.nan, np.inf, 1e300)):
        X, y = spoiled(row, value)
        with pytest.raises(BadRow, match=f"row {row}: ") as caught:
            mix.run(X, y, weights=weights)
        before, _ = mix.update_many(mix.init(2), X[:row], y[:row], weights=weights[:row])
        assert caught.value.row == row
        assert caught.value.trace.state.count == before.count == np.count_nonzero(weights[:row])
        assert caught.value.trace.state.array.tolist() == before.array.tolist()
        assert len(caught.value.trace.loss) == before.count
    with pytest.raises(BadRow, match="row 5: weight -1"):
        mix.run(*stream(OWN, count=9, dim=2), weights=np.where(np.arange(9) == 5, -1.0, 1.0))


def test_a_learner_that_overflows_stops_all_at_its_row() -> None:
    X, y = stream(OWN, count=400, dim=2)
    wild = ovi.Linear(OWN, ovi.OGA(50.0), ovi.Point(box=None))
    with pytest.raises(BadRow) as alone:
        wild.update_many(wild.init(2), X, y)
    with pytest.raises(BadRow, match="would overflow") as together:
        Pool([*SQUARED, wild], AdaHedge()).run(X, y)
    assert 0 < together.value.row == alone.value.row == together.value.trace.state.count
    assert all(np.isfinite(state.array).all() for state in together.value.trace.state.learners)


def test_the_shared_loss_refuses_what_learners_would_take() -> None:
    X, _ = spoiled(30, np.nan)
    weights = np.where(np.arange(40) % 3 == 0, 0.0, 1.0)
    for loss, bad, message in [(ovi.Hinge(), 3.0, "label 3.0: Hinge needs"), (ovi.Poisson(), 1e300, "would overflow")]:
        labels = np.ones(40)
        labels[20] = bad
        with pytest.raises(BadRow, match=f"row 20: .*{message}") as caught:
            Pool(SQUARED, 0.3, loss=loss).run(X, labels, weights=weights)
        assert caught.value.trace.state.count == np.count_nonzero(weights[:20])
        assert np.isfinite(caught.value.trace.state.weights).all()


def test_an_interrupt_is_passed_on_with_what_was_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = stream(OWN, count=40, dim=2)
    advance, mix, calls = members.Members.advance, Pool(SQUARED, 0.3), iter(range(100))

    def interrupted(*arguments: Any) -> Any:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return advance(*arguments)

    monkeypatch.setattr(module, "BLOCK_VALUES", 10)
    monkeypatch.setattr(members.Members, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        mix.run(X, y)
    assert caught.value.trace.state.count == len(caught.value.trace.loss) == 15  # type: ignore[attr-defined]


def started(**settings: Any) -> tuple[Pool, PoolState]:
    mix = Pool(LOGISTIC, **({"rate": 1.0} | settings))
    return mix, mix.init(2)


HINGE = [ovi.Linear(ovi.Hinge(), ovi.SVB())]


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda: Pool([]), TypeError, "one learner or more"),
        (lambda: Pool([ovi.SVB()]), TypeError, "such as Linear"),
        (lambda: Pool(HINGE, loss=ovi.Hinge), TypeError, r"write Hinge\(\)"),
        (lambda: Pool(HINGE, 0.0), ValueError, "a rate must be > 0"),
        (lambda: Pool(HINGE, ovi.Adaptive()), ValueError, "falls with gradients"),
        (lambda: Pool(HINGE, prior=[0.5, 0.5]), ValueError, "2 weights for 1 experts"),
        (lambda: Pool(LOGISTIC, prior=[0.5, 0.5, 0.0]), ValueError, "weight 0 would run and never count; leave it out"),
        (lambda: Pool(HINGE, AdaHedge(), prior=[1.0]), ValueError, "leave prior out, or give a rate"),
        (lambda: Pool(HINGE, 1.0, share=1.0), ValueError, "needs 0 ≤ share < 1; try 0.001"),
        (lambda: Pool(HINGE, 1.0, share=-0.1), ValueError, "needs 0 ≤ share < 1"),
        (lambda: Pool(HINGE, 1.0, share=np.nan), ValueError, "needs 0 ≤ share < 1"),
        (lambda: Pool(HINGE, ovi.PerSqrt(1.0), share=0.1), ValueError, "needs a constant rate, not PerSqrt"),
        (lambda: Pool(HINGE, AdaHedge(), share=0.1), ValueError, "needs a constant rate, not AdaHedge"),
        (lambda: Pool(HINGE, pool="mean"), ValueError, 'needs "prediction", "probability" or "quantile"'),
        (lambda: Pool(HINGE, pool="probability"), ValueError, "gives no probabilities to pool: use Logistic"),
        (lambda: Pool(SQUARED, pool="quantile"), ValueError, r"quantiles need loss=Pinball\(…\) or Absolute"),
        (lambda: Pool(SQUARED, 1.0, ovi.Absolute(), share=0.1, pool="quantile"), ValueError, "no share"),
        (lambda: Pool(HINGE).run(np.empty((0, 2)), []), ValueError, "stream is empty"),
        (lambda: Pool(HINGE).run(np.ones((3, 2)), [1.0]), ValueError, "3 rows, y 1 labels"),
        (lambda: Pool(HINGE).init(2), ValueError, "give horizon=T"),
        (lambda: started()[0].update(started()[1], [1.0], 1.0), ValueError, "X has 1 features, the state 2"),
        (lambda: started()[0].update_many(started()[1], np.ones((1, 3)), [1.0]), ValueError, "X has 3 features, the state 2"),
        (lambda: started()[0].predict(started()[1], [1.0]), ValueError, "X has 1 features, the state 2"),
        (lambda: started()[0].predict(started()[1], [1.0, np.nan]), ValueError, "the prediction is not finite"),
        (lambda: started()[0].update(started(rate=0.5)[1], [1.0, 1.0], 1.0), ValueError, "another pool"),
        (lambda: started()[0].update(started(share=0.1)[1], [1.0, 1.0], 1.0), ValueError, "another pool"),
        (lambda: started()[1].switching_bound(0), ValueError, "needs probabilities pooled at rate 1"),
        (lambda: started(pool="probability")[1].switching_bound(1), ValueError, "without a share"),
        (lambda: started(pool="probability", share=0.1)[1].switching_bound(1), ValueError, "0 events have at most 0"),
    ],
)
def test_bad_input_is_refused(attempt: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        attempt()


def test_a_state_says_what_it_holds() -> None:
    assert repr(Pool(HINGE).init(2, 5)) == "PoolState(count=0, learners=1, average_loss=nan)"
    assert repr(hedge(np.ones((4, 2)), rate=1.0).state) == "PoolState(count=4, learners=2, average_loss=1)"


# --- exponentials


def test_exponentials_are_exact() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([-rng.random(2000), -708.0 * rng.random(2000), [0.0, -5e-324, -708.0, -708.1, -1e300, -np.inf]])
    found = values.copy()
    total = compose(exponentiate, {})(found, 0.0)
    kept = values >= -708.0
    assert (np.abs(found[kept] / np.exp(values[kept]) - 1.0) <= 6e-16).all()
    assert (found[~kept] == 0.0).all()
    assert found[4000] == found[4001] == 1.0
    assert total == pytest.approx(found.sum(), rel=1e-14)
