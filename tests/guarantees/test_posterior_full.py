"""The batch variational posterior with all covariances: exact Bayes, a generic optimiser, and its bound against others."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.catalogue import LOSSES, name, stream
from helpers.full_oracles import random_belief
from scipy.optimize import minimize

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.beliefs.full import FullBelief
from onlinevi.guarantees import batch_vb
from onlinevi.guarantees.free_energy import FullFreeEnergy

FREE = ovi.FullCovariance([0.3, -0.2, 0.0], [0.5, 2.0, 1.0], box=None)
TIGHT = ovi.FullCovariance(0.05, 0.5, ovi.Box((-0.1, 0.2), None))
FAMILIES = pytest.mark.parametrize("family", [FREE, TIGHT], ids=["free", "tight"])


def value(loss: ovi.Loss, X: np.ndarray, y: np.ndarray, rate: float, family: ovi.FullCovariance, q: FullBelief) -> float:
    """The definition."""
    a, variance = family.predict(q, X)
    square = np.square(q.mean).sum() + np.square(q.factor).sum()
    return float(loss(y, a, np.sqrt(variance)).value.sum() + 0.5 * loss.ridge * len(y) * square + family.kl(q) / rate)


@FAMILIES
@pytest.mark.parametrize("rate", [1e-3, 0.3, 30.0])
@pytest.mark.parametrize("loss", [*LOSSES, ovi.Hinge(ridge=0.1)], ids=name)
def test_no_belief_is_below_the_lower_bound(loss: ovi.Loss, rate: float, family: ovi.FullCovariance) -> None:
    X, y = stream(loss, count=40, dim=3)
    X = X @ np.array([[1.0, 0.9, 0.0], [0.0, 0.3, 0.4], [0.0, 0.0, 1.0]])
    best = batch_vb(X, y, loss=loss, rate=rate, family=family)
    assert 0.0 <= best.gap <= 1e-6 * max(abs(best.value), 0.01)
    assert best.value == pytest.approx(value(loss, X, y, rate, family, best.belief), rel=1e-12)
    assert family.project(best.belief).mean.tolist() == best.mean.tolist()
    rng, others = np.random.default_rng(1), [random_belief(seed) for seed in range(4)]
    for size in 10.0 ** rng.uniform(-5, -1, 8):
        moved = best.belief.factor + size * np.triu(rng.standard_normal((3, 3)))
        others.append(FullBelief(best.mean + size * rng.standard_normal(3), moved * np.sign(np.diag(moved))[:, None]))
    tried = [value(loss, X, y, rate, family, family.project(other)) for other in others]
    assert min(tried) >= best.lower_bound - 1e-12 * abs(best.value)
    thin = batch_vb(X, y, loss=loss, rate=rate, family=ovi.MeanField(family.prior_mean, family.prior_std, family.box))
    assert best.lower_bound <= thin.value  # mean-field beliefs are some of these


@pytest.mark.parametrize("rate", [0.05, 0.5, 20.0])
def test_for_squared_losses_it_is_exact_bayes(rate: float) -> None:
    X, y = stream(ovi.Squared(), count=30, dim=3)
    best = batch_vb(X, y, loss=ovi.Squared(), rate=rate, family=FREE, tolerance=1e-12)
    prior = np.diag(np.square(FREE.prior_std) ** -1.0)
    precision = prior + 2.0 * rate * X.T @ X
    np.testing.assert_allclose(
        best.mean, np.linalg.solve(precision, prior @ FREE.prior_mean + 2.0 * rate * X.T @ y), rtol=1e-9
    )
    np.testing.assert_allclose(best.belief.covariance, np.linalg.inv(precision), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(best.std, np.sqrt(np.diag(np.linalg.inv(precision))), rtol=1e-5)


@pytest.mark.parametrize("loss", [ovi.Logistic(), ovi.Absolute(), ovi.Poisson(), ovi.Squared(ridge=0.2)], ids=name)
def test_it_agrees_with_a_generic_optimiser(loss: ovi.Loss) -> None:
    X, y = stream(loss, count=30, dim=2)
    X, family, rate = X @ np.array([[1.0, 0.9], [0.0, 0.3]]), ovi.FullCovariance(0.1, 0.8, None), 0.4

    def belief(point: np.ndarray) -> FullBelief:
        return FullBelief(point[:2], np.array([[np.exp(point[2]), point[3]], [0.0, np.exp(point[4])]]))

    want = minimize(lambda p: value(loss, X, y, rate, family, belief(p)), np.zeros(5), method="BFGS", options={"gtol": 1e-8})
    best = batch_vb(X, y, loss=loss, rate=rate, family=family, tolerance=1e-12)
    assert best.value == pytest.approx(float(want.fun), rel=1e-9)
    np.testing.assert_allclose(best.mean, want.x[:2], atol=1e-5)
    np.testing.assert_allclose(best.factor, belief(want.x).factor, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_below_is_the_least_value_of_the_tangent(seed: int) -> None:
    """At any belief, by a generic optimiser."""
    loss, rate, family = ovi.Absolute(ridge=0.1), 0.7, ovi.FullCovariance(0.1, [0.8, 1.4], None)
    X, y = stream(loss, count=10, dim=2, seed=seed)
    here = random_belief(seed, dim=2)
    a, variance = family.predict(here, X)
    _, slope, curvature = loss(y, a, np.sqrt(variance))
    by_mean, by_factor = slope @ X, np.triu((X @ here.factor.T).T @ (curvature[:, None] * X))

    def tangent(q: FullBelief) -> float:
        ridge = 0.5 * loss.ridge * len(y) * (np.square(q.mean).sum() + np.square(q.factor).sum())
        return float(by_mean @ q.mean + np.sum(by_factor * q.factor) + ridge + family.kl(q) / rate)

    def of_point(point: np.ndarray) -> FullBelief:
        return FullBelief(point[:2], np.array([[np.exp(point[2]), point[3]], [0.0, np.exp(point[4])]]))

    least = minimize(lambda p: tangent(of_point(p)), np.zeros(5), method="BFGS", options={"gtol": 1e-9}).fun
    energy = FullFreeEnergy(loss, X, y, rate, family, 1e-6)
    assert energy.look(family.pack(here)).gap == pytest.approx(tangent(here) - least, rel=1e-7)


def test_the_total_loss_of_sva_is_within_its_infimum() -> None:
    """Theorem 2 with the infimum over all Gaussians, where it is attained."""
    for seed in range(6):
        X, y = stream(ovi.Hinge(), count=30, dim=3, seed=seed)
        family = ovi.FullCovariance(prior_std=[0.3, 1.0, 3.0][seed % 3], box=ovi.Box((-2.0, 2.0), None))
        state = ovi.learn(4.0 * X, y, loss=ovi.Hinge(), rule=ovi.SVA(0.3), family=family).state
        best = batch_vb(4.0 * X, y, loss=ovi.Hinge(), rate=0.3, family=family)
        bound = bounds.total_loss(state, best)
        assert state.loss <= state.expected_loss <= bound.value
        assert bounds.after_data(state, best.belief).value == pytest.approx(bound.value - best.expected_loss, rel=1e-9)


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match="80"):
        batch_vb(np.zeros((2, 81)), [1.0, 1.0], loss=ovi.Squared(), rate=1.0, family=ovi.FullCovariance())
    with pytest.raises(TypeError, match=r"needs MeanField\(\) or FullCovariance\(\)"):
        batch_vb(np.eye(2), [1.0, 1.0], loss=ovi.Squared(), rate=1.0, family=ovi.LowRank())  # type: ignore[arg-type]
