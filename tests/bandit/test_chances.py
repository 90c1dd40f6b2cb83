"""How likely each arm is the best: against quadrature that knows no shortcut, and against draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from onlinevi.bandit.chances import Law, chance_of_best, share_of_best

RNG = np.random.default_rng(0)


def by_definition(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """∫ f_a Π F_b by the trapezoid rule, in nodes that are fine about every arm."""
    nodes = np.linspace(-9.0, 9.0, 1501)
    found = []
    for a in range(len(mean)):
        z = np.unique(np.concatenate([(m + v * nodes - mean[a]) / std[a] for m, v in zip(mean, std, strict=True)]))
        s = mean[a] + std[a] * z
        others = [norm.cdf((s - mean[b]) / std[b]) for b in range(len(mean)) if b != a]
        found.append(np.trapezoid(norm.pdf(z) * np.prod(others, axis=0), z))
    return np.array(found)


@pytest.mark.parametrize("arms", [2, 3, 6, 12])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 4.0])
def test_it_is_the_integral(arms: int, ratio: float) -> None:
    """The stds of arms differ by factors up to e^(±8)."""
    for spread in (0.1, 1.0, 5.0):
        mean, std = spread * RNG.standard_normal(arms), np.exp(ratio * RNG.standard_normal(arms))
        found = chance_of_best(mean, std)
        assert found.sum() == pytest.approx(1.0, abs=1e-12)
        assert np.abs(found - by_definition(mean, std)).max() < 1e-5


def test_it_is_how_often_draws_have_it() -> None:
    law = Law(np.array([0.3, 0.0, -0.5, 0.2]), np.array([0.1, 1.0, 2.0, 0.5]))
    shares = share_of_best(law.draws(np.random.default_rng(1), 200_000))
    assert np.abs(chance_of_best(law.mean, law.std) - shares).max() < 4.0 * 0.5 / np.sqrt(200_000)


def test_arms_without_a_spread() -> None:
    one, two = np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    above = norm.cdf(-1.0)
    assert chance_of_best(one, two) == pytest.approx([0.5 * (1.0 - above), 0.5 * (1.0 - above), above])
    assert chance_of_best(one, np.zeros(3)).tolist() == [0.5, 0.5, 0.0]
    assert chance_of_best(np.zeros(1), np.ones(1)).tolist() == [1.0]


def test_arms_that_cannot_win_have_none_and_far_apart_is_certain() -> None:
    assert chance_of_best(np.array([0.0, 1e9, 5.0]), np.array([1.0, 1e-9, 1.0])).tolist() == [0.0, 1.0, 0.0]
    assert chance_of_best(np.array([1e300, -1e300]), np.ones(2)).tolist() == [1.0, 0.0]


def test_draws_of_shared_weights_have_their_covariance() -> None:
    root = RNG.standard_normal((4, 2))  # four arms, two features: the covariance is singular
    law = Law(np.arange(4.0), np.sqrt(np.square(root).sum(axis=1)), root)
    draws = law.draws(np.random.default_rng(2), 100_000)
    assert np.abs(np.cov(draws.T) - law.covariance).max() < 0.05 * np.abs(law.covariance).max()
    assert np.abs(draws.mean(axis=0) - law.mean).max() < 0.05


def test_ties_share() -> None:
    assert share_of_best(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])).tolist() == [0.25, 0.75, 0.0]
