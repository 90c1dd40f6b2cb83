"""The certificate of an aggregate and of the default, against the true regret on streams made to break it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers.adversaries import BOX, OBLIVIOUS, Greedy, Oblivious, extremes, family
from helpers.catalogue import stream
from helpers.small_default import of_tests

import onlinevi as ovi
from onlinevi.ewa import AdaHedge, Aggregate, AggregateState
from onlinevi.guarantees import PooledCertificate, SquaredSums, certificate, hindsight
from onlinevi.learners.inputs.inputs import Inputs

DIM, COUNT = 3, 24


def learners(loss: ovi.Loss) -> list[ovi.Linear]:
    rules = (ovi.NGVI(), ovi.NGVI(0.1))
    return [ovi.Linear(loss, rule, family(rule), discount=discount) for rule in rules for discount in (1.0, 0.8)]


AGGREGATES = [
    Aggregate(learners(ovi.Squared(robust=3.0)), AdaHedge()),
    Aggregate(learners(ovi.Absolute()), 0.5, share=0.1),
    Aggregate(learners(ovi.Absolute()), AdaHedge(), pool="quantile"),
    Aggregate(learners(ovi.Logistic()), 1.0, share=0.01, pool="probability"),
    Aggregate(learners(ovi.Logistic()), ovi.PerSqrt(1.0), prior=[1, 2, 3, 4]),
]


def describe(mix: Aggregate) -> str:
    return f"{type(mix.shared_loss).__name__} {type(mix.rate).__name__} share={mix.share} {mix.pool}"


def totals(loss: ovi.Loss, X: np.ndarray, y: np.ndarray, points: np.ndarray, weights: Any = 1.0) -> np.ndarray:
    """Σ ℓ_t at each row of ``points``, from the definition."""
    return (loss(y, points @ X.T).value * weights).sum(axis=1)


def assert_holds(live: PooledCertificate, loss: ovi.Loss, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
    best = hindsight(X, y, loss=loss, box=BOX, weights=weights)
    corners = np.array(list(itertools.product([-BOX, BOX], repeat=X.shape[1])))
    points = np.vstack([corners, np.random.default_rng(0).uniform(-BOX, BOX, (20, X.shape[1])), best.mean])
    regrets = live.loss - totals(loss, X, y, points, weights)
    assert (regrets <= live.against(points) + live.rounding()).all()
    assert (live.against(points) <= live.within(np.linalg.norm(points, axis=1)) + live.rounding()).all()
    assert live.against(points).max() <= live.regret + live.rounding()
    assert live.lower_bound * live.count <= totals(loss, X, y, best.mean[None], weights)[0] + live.rounding()
    assert live.rounding() <= 1e-7 * (1.0 + abs(live.loss) + live.regret), "what is owed to rounding is small"


@pytest.mark.parametrize("mix", AGGREGATES, ids=describe)
def test_no_stream_breaks_it(mix: Aggregate) -> None:
    loss, rng = type(mix.shared_loss)(), np.random.default_rng(0)
    for adversary in OBLIVIOUS:
        X, y = adversary(loss, np.random.default_rng(7), COUNT, DIM)
        for weights in (np.ones(COUNT), rng.exponential(size=COUNT) * (rng.random(COUNT) < 0.8)):
            assert_holds(certificate(mix.run(X, y, weights=weights)), loss, X, y, weights)


def spiteful(mix: Aggregate) -> tuple[AggregateState, np.ndarray, np.ndarray]:
    """Rows on which the learners differ most, each with the label that costs the pooled prediction most."""
    rng, state, X, y = np.random.default_rng(1), mix.init(DIM, COUNT), np.empty((COUNT, DIM)), np.empty(COUNT)
    for t in range(COUNT):
        X[t], _ = Greedy().event(mix.shared_loss, state.learners[int(rng.integers(4))], rng)
        y[t] = max(extremes(mix.shared_loss), key=lambda label: mix.shared_loss(label, mix.predict(state, X[t])[0]).value)
        state, _ = mix.update(state, X[t], y[t])
    return state, X, y


@pytest.mark.parametrize("mix", AGGREGATES, ids=describe)
def test_no_adversary_that_sees_the_prediction_breaks_it(mix: Aggregate) -> None:
    state, X, y = spiteful(mix)
    assert_holds(certificate(state), type(mix.shared_loss)(), X, y, np.ones(COUNT))


def test_it_is_the_least_of_what_the_learners_say() -> None:
    mix, (X, y) = AGGREGATES[1], stream(ovi.Absolute(), count=COUNT, dim=DIM)
    played = mix.run(X, y)
    live, points = certificate(played), np.random.default_rng(0).standard_normal((40, DIM)) * 3.0
    each = [certificate(own) for own in played.state.learners]
    excess = played.state.loss - np.array([own.loss for own in played.state.learners])
    bounds = excess[:, None] + np.array([own.against(points) for own in each])
    own = live.rounding(1.0) - max(one.rounding(1.0) for one in each)
    assert 0.0 < own < 1e-9, "of the pooled loss"
    np.testing.assert_allclose(live.against(points), bounds.min(axis=0) + own, rtol=1e-14)
    assert len(set(bounds.argmin(axis=0))) > 1, "another learner for another point"
    assert live.against(points[0]) == live.against(points)[0]
    least = min(gap + one.regret for gap, one in zip(excess, each, strict=True))
    assert live.regret == pytest.approx(least + own, rel=1e-14)
    assert live.within(2.0) == live.within([1.0, 2.0])[1]
    assert (live.count, live.loss) == (COUNT, played.state.loss)
    assert repr(live).startswith(f"PooledCertificate(events={COUNT}, loss=")
    assert certificate(played.state).regret == live.regret


def test_one_learner_has_the_certificate_it_has_alone() -> None:
    X, y = stream(ovi.Hinge(), dim=DIM)
    trace = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI())
    live = certificate(Aggregate([ovi.Linear(ovi.Hinge(), ovi.NGVI())], 1.0).run(X, y))
    alone = certificate(trace)
    assert live.regret - alone.regret == pytest.approx(live.rounding() - alone.rounding(), rel=1e-4)


def test_a_segment_is_certified_on_its_own() -> None:
    mix, (X, y) = AGGREGATES[1], stream(ovi.Absolute(), count=60, dim=DIM)
    middle, _ = mix.update_many(mix.init(DIM, 60), X[:40], y[:40])
    end, last = mix.update_many(middle, X[40:], y[40:])
    live = certificate(end, since=middle)
    assert live.count == 20
    assert live.loss == pytest.approx(last.loss.sum())
    assert_holds(live, ovi.Absolute(), X[40:], y[40:], np.ones(20))


def test_exact_sums_give_the_regret_itself() -> None:
    mix, (X, y) = AGGREGATES[0], stream(ovi.Squared(), count=COUNT, dim=DIM)
    live = certificate(mix.run(X, y), exact=SquaredSums.empty(DIM).update(X, y))
    points = np.random.default_rng(0).standard_normal((9, DIM))
    over = live.against(points) - (live.loss - totals(ovi.Squared(), X, y, points))
    assert ((over >= 0.0) & (over <= 2.0 * live.rounding())).all()
    assert live.rounding() <= 1e-10 * live.loss
    best = hindsight(X, y, loss=ovi.Squared(), box=BOX)
    assert live.regret == pytest.approx(live.loss - COUNT * best.value, abs=1e-8)


@pytest.mark.parametrize("adversary", [OBLIVIOUS[0], OBLIVIOUS[2], OBLIVIOUS[3]], ids=lambda a: a.__name__)
def test_the_default_is_certified_against_weights_of_its_prepared_rows(adversary: Oblivious) -> None:
    X, y = adversary(ovi.Logistic(), np.random.default_rng(3), 40, 2)
    X = X * [1e3, 1e-3] + [5.0, 0.0]
    trace = ovi.auto(X, y, loss=ovi.Logistic())
    prepared = Inputs().update_many(Inputs().init(2), X)[1]
    points = np.random.default_rng(0).standard_normal((50, prepared.shape[1]))
    points[25:] *= 4.0
    live = certificate(trace)
    regrets = live.loss - totals(ovi.Logistic(), prepared, y, points)
    assert (regrets <= live.against(points) + live.rounding(10.0)).all()
    assert (regrets <= live.within(np.linalg.norm(points, axis=1)) + live.rounding(10.0)).all()
    assert live.loss == trace.state.loss
    assert certificate(trace.state).within(1.0) == live.within(1.0)
    assert "within(1)=" in repr(live)


def test_each_of_several_classes_is_certified_by_the_learners_that_are_heard_by_themselves_too() -> None:
    """There the learners on the columns are a pool inside the pool of all."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2)) * [1e2, 1e-2]
    codes = (X[:, 0] > 50.0).astype(float) + (X[:, 1] > 0.0)
    with of_tests(wanted=True):
        classes = ovi.OneVsRest(ovi.Auto(ovi.Logistic()).among_many(), 3)
        half, _ = classes.update_many(classes.init(2), X[:30], codes[:30])
        state, _ = classes.update_many(half, X[30:], codes[30:])
    prepared = Inputs().update_many(Inputs().init(2), X)[1]
    points = rng.standard_normal((50, prepared.shape[1])) * np.repeat([1.0, 4.0], 25)[:, None]
    for k, own in enumerate(state.by_class()):
        live = certificate(own)
        regrets = live.loss - totals(ovi.Logistic(), prepared, np.where(codes == k, 1.0, -1.0), points)
        assert (regrets <= live.against(points) + live.rounding(10.0)).all()
        assert live.loss == own.loss
        assert len(live.learners) >= 2
        later = certificate(own, since=half.by_class()[k])
        loss = later.loss - totals(ovi.Logistic(), prepared[30:], np.where(codes == k, 1.0, -1.0)[30:], points)
        assert (loss <= later.against(points) + later.rounding(10.0)).all()


def test_learners_of_another_loss_are_left_out() -> None:
    X, y = stream(ovi.Hinge(), count=COUNT, dim=DIM)
    own = [ovi.Linear(loss, ovi.NGVI()) for loss in (ovi.Hinge(), ovi.Logistic(), ovi.Hinge(ridge=0.1))]
    live = certificate(Aggregate(own, 0.5, loss=ovi.Hinge()).run(X, y))
    assert len(live.learners) == 1
    points = np.random.default_rng(0).standard_normal((20, DIM))
    assert (live.loss - totals(ovi.Hinge(), X, y, points) <= live.against(points) + live.rounding()).all()


def test_what_cannot_be_certified_is_refused() -> None:
    X, y = stream(ovi.Absolute(), count=COUNT, dim=DIM)
    own = [ovi.Linear(ovi.Squared(), ovi.NGVI(), ovi.MeanField(box=None))]
    shifted = Aggregate(own, AdaHedge(), loss=ovi.Pinball(0.9), pool="quantile").run(X, y).state
    squared = Aggregate(own, AdaHedge()).run(X, y).state
    ridged = Aggregate([ovi.Linear(ovi.Squared(ridge=0.1), ovi.NGVI())], AdaHedge()).run(X, y).state
    start = Aggregate(own, AdaHedge()).init(DIM)
    for call, message in [
        (lambda: certificate(shifted), "no learner pays the pooled loss, Pinball"),
        (lambda: certificate(ridged), "without a ridge"),
        (lambda: certificate(start), "no events yet"),
        (lambda: certificate(squared, since=squared), "no events yet"),
        (lambda: certificate(start, since=squared), "needs the same pool, and fewer events"),
        (lambda: certificate(squared, since=shifted), "needs the same pool, and fewer events"),
        (lambda: certificate(squared, since=squared.learners[0]), "is no earlier state of this run"),  # type: ignore[call-overload]
        (lambda: certificate(squared).regret, r"use \.within\(radius\)"),
        (lambda: certificate(squared).against([1.0]), "needs 3 values"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
