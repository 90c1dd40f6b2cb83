"""Lazy OGA-EL: the argmin of Theorem 4 on a box and a ball, how it differs from the greedy one, and its bound under attack."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from helpers.adversaries import OBLIVIOUS
from helpers.trials import LinearLoss, Verdict, opponent
from scipy import sparse
from scipy.optimize import minimize

import onlinevi as ovi
from onlinevi import bounds, checks
from onlinevi.beliefs import Radii, radii
from onlinevi.engine.types import Belief
from onlinevi.guarantees import hindsight

BOXED = ovi.MeanField(0.1, 0.6, ovi.Box((-0.4, 0.3), (0.2, 1.0)))
ROUND = ovi.MeanField(0.1, 0.6, ovi.Ball(mean=0.5))
DOMAINS = pytest.mark.parametrize("family", [BOXED, ROUND], ids=["box", "ball"])


def data(loss: ovi.Loss, count: int = 30, dim: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return OBLIVIOUS[seed % len(OBLIVIOUS)](loss, np.random.default_rng(seed), count, dim)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # older optimisers say so of rounding
@DOMAINS
@pytest.mark.parametrize("rate", [0.5, ovi.PerSqrt(0.8)], ids=["constant", "falling"])
def test_it_is_the_argmin_of_its_problem_over_the_domain(family: ovi.MeanField, rate: float | ovi.Rate) -> None:
    """Σ⟨μ, gradients⟩ + ‖μ − μ₁‖²/(2·rate·s²), by a generic optimiser."""
    X, y = data(ovi.Hinge(), seed=0)
    state = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.LazyOGAEL(rate), family=family).state
    totals, first = state.vector("totals"), family.pack(family.init(3))
    size = (0.5 if rate == 0.5 else 0.8 / math.sqrt(31.0)) * 0.36
    ends = ((-0.4, 0.3), (0.12, 0.6)) if family is BOXED else ((None, None), (0.0, None))
    ball = radii(family, 3) or Radii(math.inf, math.inf)
    inside = [
        {"type": "ineq", "fun": lambda u: ball.mean**2 - u[:3] @ u[:3]},
        {"type": "ineq", "fun": lambda u: ball.std**2 - u[3:] @ u[3:]},
    ]
    want = minimize(
        lambda u: totals @ u + (u - first) @ (u - first) / (2.0 * size),
        first,
        bounds=[ends[0]] * 3 + [ends[1]] * 3,
        constraints=inside if family is ROUND else (),
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 500},
    ).x
    np.testing.assert_allclose(np.concatenate([state.mean, state.std]), want, atol=1e-6)
    free = first - size * totals
    assert np.linalg.norm(free[:3]) > 0.5 if family is ROUND else (free[:3] < -0.4).any() or (free[:3] > 0.3).any()


def test_with_covariances_the_entries_of_the_factor_move_so() -> None:
    X, y = data(ovi.Hinge(), seed=2)
    family = ovi.FullCovariance(0.1, 0.6, ovi.Box((-0.4, 0.3), None))
    state = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.LazyOGAEL(0.2), family=family).state
    first, totals = family.init(3), family.unpack(state.vector("totals"), 3)
    np.testing.assert_allclose(state.mean, np.clip(first.mean - 0.072 * totals.mean, -0.4, 0.3), atol=1e-14)
    moved = first.factor - 0.072 * totals.factor
    np.testing.assert_allclose(state.belief.factor, np.where(np.eye(3), np.maximum(moved, 0.0), moved), atol=1e-14)


def test_without_a_domain_it_is_the_greedy_rule_and_with_one_it_is_not() -> None:
    X, y = data(ovi.Hinge(), seed=2)
    for family, same in ((ovi.MeanField(prior_std=0.6, box=None), True), (ROUND, False), (BOXED, False)):
        greedy, lazy = (
            ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=family).state for rule in (ovi.OGAEL(0.3), ovi.LazyOGAEL(0.3))
        )
        assert np.allclose(greedy.belief, lazy.belief, rtol=0.0, atol=1e-12) == same


def test_the_laws_of_rules_hold(tmp_path: Path) -> None:
    checks.rule(ovi.LazyOGAEL(0.1), compiled=False)
    X, y = data(ovi.Hinge(), dim=5, seed=3)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    learner = ovi.Linear(ovi.Hinge(), ovi.LazyOGAEL(0.3), ovi.MeanField(prior_std=0.6, box=ovi.Box((-0.2, 0.2))))
    dense, _ = learner.update_many(learner.init(5), X, y)
    thin, _ = learner.update_many(learner.init(5), sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.array, dense.array, rtol=1e-12, atol=1e-13)
    ovi.save(tmp_path / "lazy.ovi", learner, dense)
    assert ovi.load(tmp_path / "lazy.ovi").state == dense
    with pytest.raises(ValueError, match="from the sum of all gradients"):
        ovi.Linear(ovi.Hinge(), ovi.LazyOGAEL(), discount=0.9)
    with pytest.raises(ValueError, match="takes no Adaptive rate"):
        ovi.LazyOGAEL(ovi.Adaptive())


@pytest.mark.parametrize("loss", [ovi.Hinge(), ovi.Absolute(), ovi.Squared()], ids=["hinge", "absolute", "squared"])
@DOMAINS
def test_no_stream_breaks_its_bound(loss: ovi.Loss, family: ovi.MeanField) -> None:
    largest = 0.0
    for seed in range(len(OBLIVIOUS)):
        X, y = data(loss, 25, seed=seed)
        rng = np.random.default_rng(seed)
        lipschitz = bounds.lipschitz(X, y, loss=loss, family=family)
        reach = 0.5 / (lipschitz * 5.0 * 0.36)
        for rule in (ovi.LazyOGAEL([reach, 5.0 * reach][seed % 2]), ovi.LazyOGAEL(ovi.PerSqrt(5.0 * reach))):
            state = ovi.learn(X, y, loss=loss, rule=rule, family=family).state
            far = {"box": (-0.4, 0.3)} if family is BOXED else {"box": None, "radius": 0.5}
            best = hindsight(X, y, loss=loss, tolerance=0.01, **far).mean
            means = [best, family.project(Belief(9.0 * rng.standard_normal(3), np.full(3, 0.6))).mean]
            for mean, std in ((mean, std) for mean in means for std in (0.6, 0.2)):
                there, expected, _ = opponent(loss, (X, y), Belief(mean, np.full(3, std)))
                regret, size = state.expected_loss - expected, state.expected_loss + expected
                for bound in (
                    bounds.before_data(state, there, lipschitz=lipschitz),
                    bounds.after_data(state, there, lipschitz=lipschitz),
                ):
                    verdict = Verdict(repr(rule), regret, bound, size)
                    assert not verdict.broken, (seed, verdict)
                    largest = max(largest, verdict.ratio)
    assert largest > 0.4


def test_rates_that_fall_are_weighed_by_their_gradients() -> None:
    X, y = data(ovi.Hinge(), 20, seed=1)
    state = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.LazyOGAEL(ovi.PerSqrt(0.4)), family=BOXED).state
    there = Belief(np.array([0.2, -0.3, 0.1]), np.full(3, 0.3))
    steps = 0.4 * 0.36 / np.sqrt(np.arange(1.0, 21.0))
    bound = bounds.before_data(state, there, lipschitz=1.5)
    distance = np.sum(np.square(there.mean - 0.1)) + np.sum(np.square(there.std - 0.6))
    assert bound.terms["gradients"] == pytest.approx(0.5 * 1.5**2 * steps.sum(), rel=1e-12)
    assert bound.terms["distance"] == pytest.approx(distance / (2.0 * steps[-1]), rel=1e-12)


def test_a_constant_slope_reaches_its_bound() -> None:
    X, y = np.ones((100, 1)), -np.ones(100)
    state = ovi.learn(
        X, y, loss=LinearLoss(), rule=ovi.LazyOGAEL(0.01), family=ovi.MeanField(-0.5, 0.6, ovi.Box((-1.0, 1.0)))
    ).state
    there = Belief(np.array([-0.5 + 100 * 0.0036]), np.array([0.6]))
    regret = state.expected_loss + 100.0 * float(there.mean[0])
    assert regret == pytest.approx(bounds.after_data(state, there).value, rel=1e-9)
