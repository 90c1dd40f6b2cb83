"""Recalibration: it is Bayes' rule over the score and a curve of it, and costs next to nothing where the score is right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import onlinevi as ovi

LEAF = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.FullCovariance(prior_std=(2.0, 2.0), box=None), average=False)
POOL = ovi.Pool([LEAF], rate=1.0, share=1e-4, pool="probability")


def stream(count: int, seed: int = 0, surest: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Labels whose chances are never nearer to 0 and 1 than ``surest`` says."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, 2))
    chance = 0.5 + surest * (expit(3.0 * X @ [1.0, -1.0]) - 0.5)
    return X, np.where(rng.random(count) < chance, 1.0, -1.0)


def test_it_weighs_the_score_and_a_curve_of_it_by_bayes() -> None:
    X, y = stream(60)
    learner = ovi.Recalibrate(POOL, share=0.01)
    state, trace = learner.update_many(learner.init(2), X, y)
    inner, said = POOL.update_many(POOL.init(2), X, y)
    rows = learner._features(said.prediction)
    curve = learner.second.learners[1]
    _, bent = curve.update_many(curve.init(rows.shape[1]), rows, y)
    chances, weights, want = np.stack([said.probability, bent.probability]), np.full(2, 0.5), []
    for chance, label in zip(chances.T, y, strict=True):
        want.append(weights @ chance)
        weights = weights * np.where(label > 0.0, chance, 1.0 - chance)
        weights = 0.99 * weights / weights.sum() + 0.005
    np.testing.assert_allclose(trace.probability, want, rtol=1e-9)
    np.testing.assert_array_equal(trace.spread, said.spread)
    assert state.inner.loss == inner.loss
    assert state.loss == pytest.approx(-np.log(np.where(y > 0.0, want, 1.0 - np.array(want))).sum(), rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_it_never_costs_more_than_its_bound(seed: int) -> None:
    """On labels against the score, too: those are what a curve of it could be led astray by."""
    X, y = stream(80, seed)
    if seed % 2:
        y = np.where(np.arange(80) // 20 % 2, y, -y)
    learner = ovi.Recalibrate(POOL, share=0.05)
    state = learner.update_many(learner.init(2), X, y)[0]
    most = math.log(2.0) - 80 * math.log1p(-0.05 / 2.0)
    assert state.loss <= state.inner.loss + most


@pytest.mark.compiled
def test_what_is_said_too_surely_is_learned() -> None:
    X, y = stream(4000, surest=0.7)
    learner = ovi.Recalibrate(POOL)
    state = learner.update_many(learner.init(2), X, y)[0]
    assert state.loss < state.inner.loss - 10.0
    right, y = stream(4000)
    fine = learner.update_many(learner.init(2), right, y)[0]
    assert fine.loss < fine.inner.loss + 1.0 + math.log(2.0)


def test_a_certificate_speaks_of_what_was_decided() -> None:
    X, y = stream(60)
    learner = ovi.Recalibrate(POOL)
    trace = learner.update_many(learner.init(2), X, y)[1]
    live = ovi.certificate(trace)
    best = ovi.hindsight(X, y, loss=ovi.Logistic(), box=None, radius=3.0)
    assert live.loss == trace.state.loss
    assert trace.state.loss - best.value * len(y) <= live.within(3.0)
    first = learner.update_many(learner.init(2), X[:30], y[:30])[0]
    assert ovi.certificate(trace, since=first).count == 30


def test_what_has_no_probabilities_is_refused() -> None:
    whole: Any
    for whole in (LEAF, ovi.Pool([LEAF], rate=1.0), ovi.Auto()):
        with pytest.raises(ValueError, match="needs a pool of probabilities"):
            ovi.Recalibrate(whole)
