"""Theorem 6's condition computed: masses beside quadrature, and the risk of exponential weights beside what follows."""

from __future__ import annotations

import math

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.ewa import Grid

INTERVAL = ovi.Box((-1.0, 1.0))
PRIORS = [INTERVAL, ovi.MeanField(prior_std=0.4, prior_mean=0.3, box=INTERVAL), ovi.MeanField(prior_std=5.0, box=INTERVAL)]


def density(prior: ovi.MeanField | ovi.Box, axis: np.ndarray) -> np.ndarray:
    """Of one coordinate, as weights that sum to 1 over the centres of equal cells of the box."""
    if isinstance(prior, ovi.Box):
        return np.full(len(axis), 1.0 / len(axis))
    weights = np.exp(-0.5 * np.square((axis - prior.prior_mean) / prior.prior_std))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("prior", PRIORS, ids=["uniform", "Gaussian", "wide Gaussian"])
@pytest.mark.parametrize("point", [0.0, 0.3, -1.0, 0.9])
def test_in_one_dimension_the_mass_is_exact(prior: ovi.MeanField | ovi.Box, point: float) -> None:
    axis = np.linspace(-1.0, 1.0, 40_001)
    middles = 0.5 * (axis[1:] + axis[:-1])
    for radius in (0.01, 0.5, 3.0):
        mass = float(density(prior, middles) @ (np.abs(middles - point) <= radius))
        assert bounds.ball_divergence(prior, [point], radius) == pytest.approx(-math.log(mass), abs=1e-3)


@pytest.mark.parametrize("prior", PRIORS, ids=["uniform", "Gaussian", "wide Gaussian"])
@pytest.mark.parametrize(("point", "slack"), [((0.0, 0.3), 0.1), ((-1.0, 0.9), 0.8)])
def test_in_two_dimensions_it_is_bounded_and_not_by_much(
    prior: ovi.MeanField | ovi.Box, point: tuple[float, float], slack: float
) -> None:
    axis = np.linspace(-1.0, 1.0, 1_001)
    middles = 0.5 * (axis[1:] + axis[:-1])
    weights = density(prior, middles)
    for radius in (0.1, 0.4):
        near = np.hypot(middles[:, None] - point[0], middles[None] - point[1]) <= radius
        exact = -math.log(float(weights @ near @ weights))
        assert exact - 3e-3 <= bounds.ball_divergence(prior, point, radius) <= exact + slack


def test_in_many_dimensions_it_stays_near_the_noncentral_chi_square() -> None:
    """‖θ − point‖²/s² is a mixture of central ones: with 20 + 2k degrees for a Poisson number k."""
    from scipy.special import gammainc

    rng = np.random.default_rng(0)
    point, radius, k = 0.3 * rng.standard_normal(20), 1.5, np.arange(100)
    half = 0.5 * float(np.sum(np.square(point / 0.7)))
    poisson = np.exp(k * math.log(half) - half - np.cumsum(np.log(np.maximum(k, 1))))
    exact = -math.log(float(poisson @ gammainc(10 + k, 0.5 * (radius / 0.7) ** 2)))
    found = bounds.ball_divergence(ovi.MeanField(prior_std=0.7, box=None), point, radius)
    assert exact <= found <= 1.03 * exact
    assert math.isfinite(bounds.ball_divergence(ovi.MeanField(box=None), np.zeros(3_000), 1e-3)), "where masses underflow"
    assert bounds.ball_divergence(INTERVAL, np.zeros(20), 0.1) == pytest.approx(
        20 * math.log(2.0 / 0.1) - 10 * math.log(math.pi) + math.lgamma(11.0)
    )


def test_masses_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="the prior has no mass there"):
        bounds.ball_divergence(INTERVAL, [0.0, 2.0], 0.1)
    with pytest.raises(ValueError, match="needs a box with ends"):
        bounds.ball_divergence(ovi.Box(mean=(-math.inf, math.inf)), [0.0], 0.1)
    with pytest.raises(ValueError, match="radius=0"):
        bounds.ball_divergence(INTERVAL, [0.0], 0.0)
    with pytest.raises(ValueError, match="too few events"):
        bounds.prior_dimension(ovi.MeanField(prior_std=1e-3, box=INTERVAL), [0.5], lipschitz=1.0, count=5)


@pytest.mark.parametrize("prior", PRIORS, ids=["uniform", "Gaussian", "wide Gaussian"])
def test_the_dimension_is_the_least_that_the_condition_allows(prior: ovi.MeanField | ovi.Box) -> None:
    for count in (50, 10_000):
        d = bounds.prior_dimension(prior, [0.5, 0.1], lipschitz=2.0, count=count)
        for dim, enough in ((d, True), (0.999 * d, False)):
            r = bounds.ball_divergence(prior, [0.5, 0.1], dim / (2.0 * count))
            assert (r <= dim * math.log(count / dim) * (1 + 1e-12)) == enough
        assert 0.5 < d < 5.0, "about the dimension of the space"


COUNT = 10
CENTRES = (np.arange(800) + 0.5) / 400.0 - 1.0


def decisions(prior: ovi.MeanField | ovi.Box, rate: float) -> np.ndarray:
    """θ̂ after i labels +1 and j labels −1 under |y − θ|, by the definition (2), for all i + j < COUNT."""
    table = np.empty((COUNT, COUNT))
    for i in range(COUNT):
        for j in range(COUNT):
            weights = density(prior, CENTRES) * np.exp(-rate * (i * np.abs(1.0 - CENTRES) + j * np.abs(1.0 + CENTRES)))
            table[i, j] = weights @ CENTRES / weights.sum()
    return table


def expected_risk(prior: ovi.MeanField | ovi.Box, rate: float, likely: float) -> float:
    """E[risk(θ̄_T)], exactly: over all streams of ten labels, +1 with probability ``likely``."""
    table = decisions(prior, rate)
    ups = (np.arange(2**COUNT)[:, None] >> np.arange(COUNT)) & 1
    before = np.cumsum(ups, axis=1) - ups
    average = table[before, np.arange(COUNT) - before].mean(axis=1)
    chances = likely ** ups.sum(axis=1) * (1.0 - likely) ** (COUNT - ups.sum(axis=1))
    return float(chances @ (likely * np.abs(1.0 - average) + (1.0 - likely) * np.abs(1.0 + average)))


@pytest.mark.parametrize("likely", [0.55, 0.8, 1.0])
@pytest.mark.parametrize("prior", PRIORS, ids=["uniform", "Gaussian", "wide Gaussian"])
def test_exponential_weights_keep_to_theorem_6_on_iid_streams(prior: ovi.MeanField | ovi.Box, likely: float) -> None:
    """Losses in [0, 2], 1-Lipschitz; the best point is +1. No error of sampling: all 2¹⁰ streams are played."""
    least = 2.0 * (1.0 - likely)
    near = {"prior": prior, "point": [1.0], "lipschitz": 1.0, "count": COUNT}
    computed = bounds.ewa_prior_risk(loss_bound=2.0, **near)
    rate = 8.0 * computed.terms["losses"] / 2.0**2
    assert expected_risk(prior, rate, likely) - least <= computed.value
    for other in (0.1 * rate, 10.0 * rate):
        bound = bounds.ewa_prior_risk(loss_bound=2.0, rate=other, **near)
        assert bound.value >= computed.value
        assert expected_risk(prior, other, likely) - least <= bound.value
    d = bounds.prior_dimension(**near)
    rate = bounds.ewa_rate(count=COUNT, dim=d, loss_bound=2.0)
    assert expected_risk(prior, rate, likely) - least <= bounds.ewa_excess_risk(count=COUNT, dim=d, loss_bound=2.0).value


@pytest.mark.parametrize("rate", [None, 0.2])
def test_it_is_theorem_1_against_the_prior_on_a_ball(rate: float | None) -> None:
    """At its own ε and η, and no ε of a fine grid makes it less by more than what a step of √2 leaves."""
    near, count = {"prior": PRIORS[1], "point": [0.5]}, 300
    bound = bounds.ewa_prior_risk(lipschitz=2.0, count=count, loss_bound=3.0, rate=rate, **near)
    eta = 8.0 * bound.terms["losses"] / 3.0**2
    assert rate is None or eta == pytest.approx(rate)

    def at(excess: float, eta: float | None) -> float:
        kl = bounds.ball_divergence(*near.values(), excess / 2.0)  # type: ignore[arg-type]
        eta = math.sqrt(8.0 * kl / count) / 3.0 if eta is None else eta
        return excess + bounds.ewa(rate=eta, count=count, loss_bound=3.0, kl=kl).value / count

    assert bound.value == pytest.approx(at(bound.terms["prior mass"], eta))
    least = min(at(float(excess), rate) for excess in np.geomspace(1e-4, 1.0, 300))
    assert least <= bound.value <= 1.03 * least


def test_a_certain_slope_comes_near_what_the_prior_s_mass_promises() -> None:
    """ℓ(θ) = θ on [0, 1] under the uniform prior, 1,000 events: 0.47 of the bound, so no factor of 2.2 is left."""
    count, prior = 1_000, ovi.Box(mean=(0.0, 1.0))
    bound = bounds.ewa_prior_risk(prior=prior, point=[0.0], lipschitz=1.0, count=count, loss_bound=1.0)
    rates = 8.0 * bound.terms["losses"] * np.arange(1, count)
    excess = (0.5 + float(np.sum(1.0 / rates - 1.0 / np.expm1(rates)))) / count
    assert excess / bound.value == pytest.approx(0.466, abs=1e-3)


def test_the_decisions_are_those_of_the_grid() -> None:
    """The oracle of these tests is the learner of the software."""
    prior, labels = ovi.MeanField(prior_std=0.4, prior_mean=0.3, box=INTERVAL), [1.0, -1.0, 1.0]
    played = Grid(loss=ovi.Absolute(), rate=0.7, family=prior, points=100).run(np.ones((3, 1)), labels)
    table = decisions(prior, 0.7)
    assert played.prediction == pytest.approx([table[0, 0], table[1, 0], table[1, 1]], abs=1e-3)
