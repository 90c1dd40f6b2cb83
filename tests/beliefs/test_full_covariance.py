"""Learning with full covariances: any cut, any kind of row, bad rows, and what stays certain."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from helpers.adversaries import BOX, OBLIVIOUS, Oblivious
from helpers.any_loss import standing_for
from helpers.catalogue import name, stream
from helpers.full_oracles import (
    FREE,
    LOSSES,
    RULES,
    UNEQUAL,
    assert_same,
    bayes,
    beliefs,
    events,
    flat,
    gradients,
    random_belief,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.guarantees import SquaredSums, certificate

# --- the learner


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_blocks_and_single_events_give_the_same_bits(rule: ovi.Rule) -> None:
    X, y = stream(ovi.Hinge(), 60, 5)
    learner = ovi.Linear(loss=ovi.Hinge(), rule=rule, family=ovi.FullCovariance(box=ovi.Box(mean=(-0.1, 0.1), std=None)))
    whole, trace = learner.update_many(learner.init(5), X, y)
    thirds = single = learner.init(5)
    furthest = 0.0
    for k in range(3):
        thirds, _ = learner.update_many(thirds, X[20 * k : 20 * (k + 1)], y[20 * k : 20 * (k + 1)])
    for t in range(60):
        mean, std = learner.predict(single, X[t])
        single, step = learner.update(single, X[t], float(y[t]))
        assert (mean, std) == pytest.approx((step.prediction, step.spread), rel=1e-13, abs=1e-14)
        furthest = max(furthest, np.abs(single.mean).max())
        assert (step.prediction, step.spread, step.loss) == (trace.prediction[t], trace.spread[t], trace.loss[t])
    assert thirds == whole
    assert single == whole
    assert furthest == 0.1, "the box holds"


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_sparse_rows_and_float32_rows_are_the_same_rows(rule: ovi.Rule) -> None:
    rng = np.random.default_rng(8)
    X, y = stream(ovi.Hinge(), 60, 5)
    X = (X * (rng.random(X.shape) < 0.5)).astype(np.float32)
    run = partial(ovi.learn, y=y, loss=ovi.Hinge(), rule=rule, family=FREE)
    dense = run(X.astype(float)).state
    assert run(sparse.csr_matrix(X.astype(float))).state == dense
    if rule in RULES[:3]:  # one of each way to take a step
        np.testing.assert_allclose(run(X).state.array, dense.array, rtol=1e-12, atol=1e-13)
    learner = ovi.Linear(loss=ovi.Hinge(), rule=rule, family=FREE)
    for got, want in zip(learner.predict(dense, sparse.csr_matrix(X)), learner.predict(dense, X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("rule", "doubled"),
    [
        (ovi.SVA(0.1), ovi.SVA(0.2)),
        (ovi.SVB(0.1), ovi.SVB(0.2)),
        (ovi.NGVI(step=0.5), ovi.NGVI(step=1.0)),
        (ovi.OGAEL(0.1), ovi.OGAEL(0.2)),
        (ovi.Implicit(0.5), ovi.Implicit(1.0)),
    ],
    ids=name,
)
def test_a_weight_of_two_is_twice_the_loss(rule: ovi.Rule, doubled: ovi.Rule) -> None:
    X, y = stream(ovi.Hinge(), 60, 4)
    weighted = ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=FREE, weights=np.full(60, 2.0)).state
    plain = ovi.learn(X, y, loss=ovi.Hinge(), rule=doubled, family=FREE).state
    assert_same(weighted.belief, plain.belief, 1e-11)
    assert weighted.loss == pytest.approx(2.0 * plain.loss, rel=1e-11)
    np.testing.assert_allclose(weighted.gradient, 2.0 * plain.gradient, rtol=1e-10, atol=1e-11)
    absent = ovi.learn(X, y, loss=ovi.Hinge(), rule=doubled, family=FREE, weights=np.repeat([1.0, 0.0], 30)).state
    first = ovi.learn(X[:30], y[:30], loss=ovi.Hinge(), rule=doubled, family=FREE).state
    assert_same(absent.belief, first.belief, 1e-15)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_the_sums_of_a_run_are_those_of_their_definitions(rule: ovi.Rule) -> None:
    loss = ovi.Squared()
    X, y = events(loss, count=12)
    learner = ovi.Linear(loss=loss, rule=rule, family=UNEQUAL)
    found = beliefs(learner, X, y)[:-1]
    state = ovi.learn(X, y, loss=loss, rule=rule, family=UNEQUAL).state
    slopes = gradients(loss, X, y, found)
    np.testing.assert_allclose(state.gradient, slopes[:, :2].sum(axis=0), rtol=1e-6, atol=1e-8)
    assert state.gradient_square == pytest.approx(np.square(slopes).sum(), rel=1e-6)
    assert state.product == pytest.approx(sum(g @ flat(*q) for g, q in zip(slopes, found, strict=True)), rel=1e-6)
    decisions = [loss(label, q.mean @ x).value for x, label, q in zip(X, y, found, strict=True)]
    assert state.loss == pytest.approx(np.sum(decisions), rel=1e-12)
    np.testing.assert_allclose(state.average_mean, np.mean([q.mean for q in found], axis=0), rtol=1e-11, atol=1e-12)


def test_a_state_is_a_value() -> None:
    X, y = stream(ovi.Hinge(), 60, 4)
    state = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), family=FREE).state
    np.testing.assert_allclose(state.std, np.sqrt(np.diag(state.belief.covariance)), rtol=1e-15)
    np.testing.assert_array_equal(state.belief.factor, np.triu(state.belief.factor))
    for vector in (state.array, state.mean, state.belief.mean, state.belief.factor, state.gradient):
        with pytest.raises(ValueError, match="read-only"):
            vector[0] = 1.0
    for twin in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        assert twin == state
        learner = ovi.Linear(loss=ovi.Hinge(), rule=ovi.NGVI(), family=FREE)
        assert learner.update(twin, X[0], 1.0) == learner.update(state, X[0], 1.0)
    packed = FREE.pack(state.belief)
    assert len(packed) == FREE.belief_size(4) == 14
    for got, want in zip(FREE.unpack(packed, 4), state.belief, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_schedule_and_the_default_rate_of_svb_are_per_sqrt() -> None:
    X, y = stream(ovi.Hinge(), 60, 4)
    run = partial(ovi.learn, X, y, loss=ovi.Hinge(), family=FREE)
    np.testing.assert_array_equal(run(rule=ovi.SVB()).state.array, run(rule=ovi.SVB(ovi.PerSqrt(1.0))).state.array)
    by_hand = [beliefs(ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB(), family=FREE), X[:2], y[:2])]
    assert by_hand[0][1].mean == pytest.approx(-ovi.Hinge()(y[0], 0.0, np.linalg.norm(X[0])).slope * X[0])


# --- bad and small input


@pytest.mark.parametrize("rule", RULES, ids=name)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_a_bad_row_is_refused_and_what_was_learned_before_it_is_kept(bad: float, rule: ovi.Rule) -> None:
    X, y = stream(ovi.Hinge(), 20, 3)
    X[7, 1] = bad
    with pytest.raises(ovi.BadRow, match="row 7") as caught:
        ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=FREE)
    before = ovi.learn(X[:7], y[:7], loss=ovi.Hinge(), rule=rule, family=FREE, horizon=20).state
    assert caught.value.trace is not None
    np.testing.assert_array_equal(caught.value.trace.state.array, before.array)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_rows_of_any_size_leave_a_finite_belief(rule: ovi.Rule) -> None:
    for size in (0.0, 1e-300, 1e-160, 1e-20, 1e3, 1e30):
        X = np.array([[1.0, -2.0, 0.5], [1.0, -2.0, 0.5], [0.0, 3.0, 1.0]]) * size
        if size == 1e30 and isinstance(rule, ovi.SVA | ovi.SVB | ovi.OGAEL):
            with pytest.raises(ovi.BadRow, match=r"row 1: .*1,000,000 times as wide as its prior .*NGVI"):
                ovi.learn(X, [1.0, -1.0, 1.0], loss=ovi.Hinge(), rule=rule, family=FREE)
            continue
        state = ovi.learn(X, [1.0, -1.0, 1.0], loss=ovi.Hinge(), rule=rule, family=FREE).state
        assert state.count == 3
        assert np.isfinite(state.array).all()
        np.testing.assert_allclose(state.gradient, _hinge_gradient(X, rule), rtol=1e-12, atol=0.0)


def _hinge_gradient(X: np.ndarray, rule: ovi.Rule) -> np.ndarray:
    """Σ e1·x along the run, event by event."""
    learner, total = ovi.Linear(loss=ovi.Hinge(), rule=rule, family=FREE), np.zeros(3)
    state = learner.init(3)
    for x, label in zip(X, [1.0, -1.0, 1.0], strict=True):
        total += ovi.Hinge()(label, *learner.predict(state, x)).slope * x
        state, _ = learner.update(state, x, label)
    return total


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_one_row_and_constant_columns_are_streams_too(rule: ovi.Rule) -> None:
    one = ovi.learn(np.ones((1, 3)), [1.0], loss=ovi.Squared(), rule=rule, family=FREE).state
    assert one.mean == pytest.approx(np.full(3, one.mean[0]))
    assert one.mean[0] > 0.0
    X, y = np.ones((500, 3)), np.full(500, 3.0)
    X[:, 2] = 0.0
    state = ovi.learn(X, y, loss=ovi.Squared(), rule=rule, family=FREE).state
    assert np.isfinite(state.array).all()
    assert state.mean.sum() == pytest.approx(3.0, abs=0.1)
    assert (state.mean[2], state.std[2]) == (0.0, pytest.approx(1.0)), "a column of zeros teaches nothing"


@pytest.mark.compiled
def test_two_hundred_features_are_bayes_too() -> None:
    X, y = stream(ovi.Squared(), 300, 200)
    mean, covariance = bayes(X, y, 1.0, np.zeros(200), np.ones(200))
    for rule in (ovi.NGVI(), ovi.Implicit(1.0)):
        belief = ovi.learn(X, y, loss=standing_for(ovi.Squared()), rule=rule, family=FREE).state.belief
        np.testing.assert_allclose(belief.mean, mean, atol=1e-12)
        np.testing.assert_allclose(belief.covariance, covariance, atol=1e-12)


# --- guarantees


BOXED = ovi.FullCovariance(prior_std=0.3, box=ovi.Box(mean=(-BOX, BOX), std=None))


@pytest.mark.parametrize("adversary", OBLIVIOUS, ids=lambda a: a.__name__)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_no_stream_breaks_the_certificate(loss: ovi.Loss, adversary: Oblivious) -> None:
    X, y = adversary(loss, np.random.default_rng(7), 36, 3)
    for rule in RULES:
        try:
            trace = ovi.learn(X, y, loss=loss, rule=rule, family=BOXED, record="none")
        except ovi.BadRow as stopped:  # an explicit step grew until e^z overflowed: what came before has a certificate too
            trace = stopped.trace
        live = certificate(trace)
        rows, seen = X[: live.count], y[: live.count]
        best = ovi.hindsight(rows, seen, loss=loss, box=BOX)
        points = np.vstack([np.random.default_rng(8).uniform(-BOX, BOX, (20, 3)), best.mean, np.zeros(3)])
        totals = loss(seen, points @ rows.T).value.sum(axis=1)
        assert (live.loss - totals <= live.against(points) + live.rounding()).all(), rule
        assert live.loss - live.count * best.value <= live.regret + live.rounding(), rule
        assert live.lower_bound <= best.value + live.rounding(), rule


@given(seed=st.integers(0, 2**32), rule=st.sampled_from(RULES), ridge=st.sampled_from([0.0, 0.2]))
@settings(max_examples=25)
def test_the_certificate_holds_with_weights_and_a_ridge(seed: int, rule: ovi.Rule, ridge: float) -> None:
    rng = np.random.default_rng(seed)
    loss = ovi.Squared(ridge=ridge if isinstance(rule, ovi.SVA | ovi.OGAEL) else 0.0)
    X, y = rng.standard_normal((30, 3)) / 2.0, rng.standard_normal(30)
    for weights in (rng.exponential(size=30), np.ones(30)):
        state = ovi.learn(X, y, loss=loss, rule=rule, family=BOXED, weights=weights).state
        live = certificate(state)
        points = rng.uniform(-BOX, BOX, (30, 3))
        costs = loss(y, points @ X.T).value @ weights
        costs += 0.5 * loss.ridge * weights.sum() * np.square(points).sum(axis=1)
        regrets = live.loss - costs
        assert (regrets <= live.against(points) + live.rounding()).all()
        assert live.against(points).max() <= live.regret + live.rounding()
        sums = SquaredSums.empty(3, ridge=loss.ridge).update(X, y, weights)
        known = certificate(state, exact=sums)
        np.testing.assert_allclose(known.loss - sums.total(points), regrets, rtol=1e-9, atol=1e-9)
        assert (regrets <= known.against(points)).all()


def test_rules_without_a_theorem_of_covariances_are_refused() -> None:
    """Those of SVA and OGA-EL are in tests/guarantees/test_bounds_covariance.py."""
    X, y = stream(ovi.Hinge(), 20, 3)
    others = [rule for rule in RULES if not isinstance(rule, ovi.SVA | ovi.OGAEL)]
    assert len(others) >= 3
    for rule in others:
        state = ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=BOXED).state
        for comparator in (ovi.Belief(np.zeros(3), np.full(3, 0.5)), ovi.Belief(0.0, 0.5), random_belief(1)):
            with pytest.raises(ValueError, match=r"with a full covariance: in \(m, C\)"):
                bounds.before_data(state, comparator, lipschitz=1.0)
            with pytest.raises(ValueError, match=r"with a full covariance: in \(m, C\)"):
                bounds.after_data(state, comparator)
