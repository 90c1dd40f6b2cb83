"""The batch variational posterior: exact Bayes, grids and generic optimisers, and its bound against every belief tried."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest
from helpers.catalogue import LOSSES, name, stream
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

import onlinevi as ovi
from onlinevi.engine.types import Belief, Expected, Real
from onlinevi.guarantees.posterior import BatchVB, batch_vb
from onlinevi.learners.linear import BadRow

SMALLEST = 0.01
TIGHT = ovi.MeanField(prior_mean=0.05, prior_std=0.5, box=ovi.Box((-0.1, 0.2), (0.3, 1.0)))
UNBOUNDED = ovi.MeanField(prior_mean=[0.3, -0.2, 0.0, 1.0], prior_std=[0.5, 2.0, 1.0, 0.3], box=None)
FAMILIES = [ovi.MeanField(), TIGHT, UNBOUNDED]


@dataclass(frozen=True)
class Concave(ovi.Loss):
    convex = False

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        return Expected(-a * a - v * v, -2.0 * a, -2.0)


def value(loss: ovi.Loss, X: np.ndarray, y: np.ndarray, rate: float, family: ovi.MeanField, belief: Belief) -> float:
    """The definition."""
    a, variance = family.predict(belief, X)
    square = np.sum(np.square(belief.mean) + np.square(belief.std))
    return float(loss(y, a, np.sqrt(variance)).value.sum() + 0.5 * loss.ridge * len(y) * square + family.kl(belief) / rate)


def reached(best: BatchVB, tolerance: float = 1e-6) -> bool:
    return 0.0 <= best.gap <= tolerance * max(abs(best.value), SMALLEST)


def inside(family: ovi.MeanField, rng: np.random.Generator, dim: int, near: Belief | None = None) -> Belief:
    """A belief in the box: anywhere, or near another."""
    prior = family.init(dim)
    if near is None:
        mean, std = prior.mean + 2.0 * rng.standard_normal(dim), prior.std * rng.random(dim)
    else:
        size = 10.0 ** rng.uniform(-5, 0)
        mean, std = near.mean + size * rng.standard_normal(dim), near.std * np.exp(size * rng.standard_normal(dim))
    return family.project(Belief(mean, np.maximum(std, 1e-6)))


@pytest.mark.parametrize("family", FAMILIES, ids=["paper", "tight", "unbounded"])
@pytest.mark.parametrize("rate", [1e-3, 0.3, 30.0])
@pytest.mark.parametrize("loss", [*LOSSES, ovi.Hinge(ridge=0.1)], ids=name)
def test_no_belief_is_below_the_lower_bound(loss: ovi.Loss, rate: float, family: ovi.MeanField) -> None:
    X, y = stream(loss, count=60, dim=4)
    best = batch_vb(X, y, loss=loss, rate=rate, family=family)
    assert reached(best)
    assert best.value == pytest.approx(value(loss, X, y, rate, family, best.belief), rel=1e-12)
    assert best.kl == family.kl(best.belief)
    assert family.project(best.belief).mean.tolist() == best.mean.tolist()
    rng = np.random.default_rng(1)
    tried = [inside(family, rng, 4, near) for near in (None, best.belief) for _ in range(15)]
    assert min(value(loss, X, y, rate, family, belief) for belief in tried) >= best.lower_bound - 1e-12 * abs(best.value)


@pytest.mark.parametrize("loss", [*LOSSES, ovi.Squared(ridge=0.2)], ids=name)
def test_it_agrees_with_a_generic_optimiser(loss: ovi.Loss) -> None:
    family, rate = ovi.MeanField(prior_std=0.8), 0.4
    X, y = stream(loss, count=50, dim=3)
    best = batch_vb(X, y, loss=loss, rate=rate, family=family, tolerance=1e-10)

    def objective(point: np.ndarray) -> float:
        return value(loss, X, y, rate, family, Belief(point[:3], np.exp(point[3:])))

    found = minimize(objective, np.zeros(6) - 0.5, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    assert best.value == pytest.approx(found.fun, rel=1e-9)
    assert best.mean == pytest.approx(found.x[:3], abs=1e-4)
    assert best.std == pytest.approx(np.exp(found.x[3:]), abs=1e-4)


@pytest.mark.parametrize("rate", [0.02, 1.0, 50.0])
def test_orthogonal_rows_and_squared_loss_are_exact_bayes(rate: float) -> None:
    rng = np.random.default_rng(0)
    X, y = np.repeat(np.diag([1.0, 0.5, 2.0]), 7, axis=0), rng.standard_normal(21)
    family = ovi.MeanField(prior_mean=[0.1, 0.0, -0.4], prior_std=[1.0, 0.3, 2.0], box=None)
    best = batch_vb(X, y, loss=ovi.Squared(), rate=rate, family=family, tolerance=1e-13)
    precision = np.asarray(family.prior_std) ** -2.0 + 2.0 * rate * (X**2).sum(axis=0)
    mean = (np.asarray(family.prior_mean) / np.asarray(family.prior_std) ** 2 + 2.0 * rate * y @ X) / precision
    assert best.mean == pytest.approx(mean, abs=1e-7)
    assert best.std == pytest.approx(precision**-0.5, rel=1e-6)
    # The evidence: F of the exact posterior is −ln ∫ prior·exp(−rate·Σ loss)/rate.
    residual = rate * y @ y + 0.5 * np.square(np.asarray(family.prior_mean) / family.prior_std).sum()
    evidence = residual - 0.5 * mean @ (precision * mean) + 0.5 * np.log(precision * np.asarray(family.prior_std) ** 2).sum()
    assert best.value == pytest.approx(evidence / rate, rel=1e-10)


@pytest.mark.parametrize("loss", [ovi.Hinge(), ovi.Logistic(), ovi.Absolute()], ids=name)
def test_one_dimension_agrees_with_a_grid(loss: ovi.Loss) -> None:
    X, y = stream(loss, count=30, dim=1)
    best = batch_vb(X, y, loss=loss, rate=0.5)
    means, stds = np.meshgrid(best.mean + np.linspace(-0.5, 0.5, 51), best.std * np.geomspace(0.3, 1.0 / best.std, 50))
    means, stds = np.clip(means, -20, 20).ravel(), np.clip(stds, 1e-3, 1.0).ravel()
    costs = loss(y[:, None], X * means, np.abs(X) * stds).value.sum(axis=0)
    table = costs + 2.0 * 0.5 * (means**2 + stds**2 - 1.0 - 2.0 * np.log(stds))
    assert best.lower_bound - 1e-12 <= table.min()
    assert table.min() <= best.value + 2e-2


@given(seed=st.integers(0, 10_000), rate=st.floats(-3, 5).map(lambda e: 10.0**e), which=st.integers(0, len(LOSSES) - 1))
@settings(max_examples=40, deadline=None)
def test_the_tolerance_is_reached_at_every_rate(seed: int, rate: float, which: int) -> None:
    loss, rng = LOSSES[which], np.random.default_rng(seed)
    X, y = stream(loss, count=int(rng.integers(1, 80)), dim=int(rng.integers(1, 6)), seed=seed)
    assert reached(batch_vb(X, y, loss=loss, rate=rate))


def test_a_sum_of_gradients_alone_is_one_step_of_sva() -> None:
    """With losses that are linear the tangents are the losses, and the posterior is SVA's closed form."""
    X, y = stream(ovi.Hinge(), count=40, dim=3)
    far = X * 1e-2  # the hinge is 1 − yz there, and does not bend
    family = ovi.MeanField(prior_std=2.0, box=None)
    best = batch_vb(far, y, loss=ovi.Hinge(), rate=0.3, family=family, tolerance=1e-14)
    trace = ovi.learn(far, y, loss=ovi.Hinge(), rule=ovi.SVA(0.3), family=family)
    assert best.mean == pytest.approx(trace.mean, rel=1e-6)
    assert best.std == pytest.approx(trace.std, rel=1e-9)


def test_a_hundred_thousand_rows_take_seconds() -> None:
    X, y = stream(ovi.Hinge(), count=100_000, dim=54)
    start = time.perf_counter()
    assert reached(batch_vb(X, y, loss=ovi.Hinge(), rate=ovi.PerHorizon(1.0)))
    assert time.perf_counter() - start < 20.0  # about one on an idle machine


def test_sparse_rows_zeros_and_a_rate_per_horizon() -> None:
    X, y = stream(ovi.Logistic(), count=64, dim=4)
    X[::3] = 0.0
    best = batch_vb(sparse.csr_array(X), y, loss=ovi.Logistic(), rate=ovi.PerHorizon(2.0))
    same = batch_vb(X, y, loss=ovi.Logistic(), rate=0.25)
    assert best.rate == 0.25
    assert best.mean.tolist() == same.mean.tolist()
    assert repr(best).startswith("BatchVB(value=")


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"loss": Concave()}, ValueError, "not convex"),
        ({"loss": ovi.Hinge}, TypeError, r"write Hinge\(\)"),
        ({"rate": ovi.PerSqrt(1.0)}, ValueError, "one posterior has one rate"),
        ({"rate": ovi.PaperSVB(1.0)}, ValueError, "one posterior has one rate"),
        ({"rate": -1.0}, ValueError, "a rate must be > 0"),
        ({"family": ovi.Point()}, TypeError, "needs MeanField"),
        ({"tolerance": 0.0}, ValueError, "tolerance must be > 0"),
        ({"y": [1.0]}, ValueError, "needs one label a row"),
        ({"y": [1.0, 0.5, -1.0]}, BadRow, "row 1: label 0.5"),
        ({"X": [[1.0], [np.nan], [0.0]]}, BadRow, "row 1: a feature is nan"),
        ({"X": np.zeros((3, 0))}, ValueError, "at least one of each"),
        ({"X": np.zeros((3, 2001))}, ValueError, "at most 2000"),
        ({"loss": ovi.Poisson(), "y": [1.0, 2.0, 0.0], "X": [[1e3]] * 3}, ValueError, "overflows under the prior"),
    ],
)
def test_what_it_refuses(settings: dict, error: type[Exception], match: str) -> None:
    given = {"X": [[1.0], [2.0], [0.0]], "y": [1.0, -1.0, 1.0], "loss": ovi.Hinge(), "rate": 1.0, **settings}
    with pytest.raises(error, match=match):
        batch_vb(given.pop("X"), given.pop("y"), **given)
