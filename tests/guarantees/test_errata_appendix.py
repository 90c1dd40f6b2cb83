"""Where the paper's print is wrong, section 5 and appendix: each slip as a test that the printed form fails.

The numbers are those of docs/errata.md. The argmin of NGVI is in tests/rules/test_rules.py.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from helpers.trials import LinearLoss

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.engine.types import Belief
from onlinevi.paper import PANELS


def play(slopes: np.ndarray, rule: ovi.Rule, family: ovi.MeanField) -> ovi.Trace:
    return ovi.learn(np.ones((len(slopes), 1)), slopes, loss=LinearLoss(), rule=rule, family=family)


# --- 12. (16), the weights of NGVI


def test_ngvi_forgets_the_oldest_gradients_not_the_latest() -> None:
    """Under linear losses stds stay, and λ of the mean is m/s²: m = −η·s²·Σ w_i·g_i."""
    slopes, step, rate, prior_std = np.array([0.3, -1.0, 0.7, 0.4, -0.2]), 0.8, 2.0, 1.5
    end = play(slopes, ovi.NGVI(step, rate), ovi.MeanField(prior_std=prior_std, box=None)).mean[0]
    beta, i = step / (step + rate), np.arange(1, 6)
    right, printed = beta * (1 - beta) ** (5 - i), beta * (1 - beta) ** (i - 2.0)
    assert end == pytest.approx(-rate * prior_std**2 * right @ slopes)
    assert end != pytest.approx(-rate * prior_std**2 * printed @ slopes, rel=0.1)
    assert printed[0] > printed[-1], "as printed the oldest gradient weighs most"


# --- 13. Algorithm 3 and its argmin


def test_a_step_of_eta_regularises_by_half_a_square_over_eta() -> None:
    slopes, rate = np.array([0.3, -1.0, 0.7, 0.4]), 0.2
    end = play(slopes, ovi.OGAEL(rate), ovi.MeanField(box=None)).mean[0]

    def least(weight: float) -> float:
        """argmin of ⟨m, Σ slopes⟩ + weight·m², by its derivative."""
        return float(-slopes.sum() / (2.0 * weight))

    assert end == pytest.approx(least(1.0 / (2.0 * rate)))
    assert end != pytest.approx(least(1.0 / rate), rel=0.1), "as printed it would go half as far"


def test_the_argmin_form_of_oga_el_is_its_step_without_constraints_only() -> None:
    """Ten slopes to the end of the interval and beyond, then three back: the step has left it, the argmin over M has not."""
    slopes, rate = np.concatenate([-np.ones(10), np.ones(3)]), 0.2
    end = play(slopes, ovi.OGAEL(rate), ovi.MeanField(box=ovi.Box((-1.0, 1.0)))).mean[0]
    grid = np.linspace(-1.0, 1.0, 2_001)
    assert end == pytest.approx(0.4)
    assert grid[np.argmin(grid * slopes.sum() + grid**2 / (2 * rate))] == pytest.approx(1.0)


def test_the_belief_is_a_gaussian_with_variances_std_squared() -> None:
    """e2·std·x² is the derivative in std of the expected loss under N(m, std²), not under N(m, std)."""
    loss, x, mean, std, h = ovi.Hinge(), 0.7, 0.4, 0.3, 1e-6

    def slope(spread) -> float:  # type: ignore[no-untyped-def]
        high, low = (float(loss(1.0, mean * x, abs(x) * spread(std + side * h)).value) for side in (1, -1))
        return (high - low) / (2 * h)

    rule = float(loss(1.0, mean * x, abs(x) * std).curvature) * std * x**2
    assert rule == pytest.approx(slope(lambda s: s), rel=1e-6)
    assert rule != pytest.approx(slope(math.sqrt), rel=0.1)


# --- 14. Theorem 4


@pytest.mark.parametrize(("prior_std", "times"), [(1.0, 1.99), (2.0, 30.0)])
def test_oga_el_exceeds_its_second_printed_bound(prior_std: float, times: float) -> None:
    """A slope that never turns, at the step that arrives with the last event. The excess tends to 2/α²."""
    count, target = 1_000, 1.0
    step = target / count
    family = ovi.MeanField(prior_std=prior_std, box=ovi.Box((-target, target)))
    trace = play(np.full(count, -1.0), ovi.OGAEL(step / prior_std**2), family)  # its mean-field form steps by rate·s²
    kl = family.kl(Belief(np.array([target]), np.array([prior_std])))
    regret = trace.state.expected_loss + target * count
    numbers = {"step": step, "count": count, "lipschitz": 1.0}
    parts = {"kl": kl, "strong_convexity": bounds.kl_strong_convexity(family, 1), **numbers}
    printed, valid = (bounds.oga_el_divergence(printed=flag, **parts) for flag in (True, False))
    assert regret / printed.value == pytest.approx(times, rel=0.01)
    assert regret <= valid.value
    assert (printed.valid, valid.valid) == (False, True)
    first = bounds.oga_el(distance=target, printed=True, **numbers)
    assert first.valid
    assert first.value == pytest.approx(2.0 * bounds.oga_el(distance=target, **numbers).value)
    assert regret <= 0.51 * first.value, "the first holds, and half of it is enough"


# --- 15. Theorem 6


def means_of_exponentials(rates: np.ndarray) -> np.ndarray:
    """Of the laws ∝ exp(−rate·θ) on [0, 1]."""
    return np.where(rates == 0.0, 0.5, 1.0 / np.maximum(rates, 1e-300) - 1.0 / np.expm1(np.maximum(rates, 1e-300)))


def test_the_printed_rate_of_ewa_is_no_number() -> None:
    printed = bounds.ewa_excess_risk(count=1_000, dim=3, loss_bound=2.0, printed=True)
    assert math.isnan(printed.value)
    assert not printed.valid


def test_the_printed_rate_of_ewa_is_eight_times_too_small_with_its_sign_mended() -> None:
    """ℓ(θ) = θ, uniform prior on [0, 1]: d = 1, and exponential weights have exponential laws."""
    count = 1_000
    right = bounds.ewa_rate(count=count, dim=1, loss_bound=1.0)
    mended = math.sqrt(math.log(count) / count) / (2.0 * math.sqrt(2.0))
    assert right == pytest.approx(8.0 * mended)
    claimed = bounds.ewa_excess_risk(count=count, dim=1, loss_bound=1.0).value
    at_right, at_mended = (float(means_of_exponentials(rate * np.arange(count)).mean()) for rate in (right, mended))
    assert at_right <= claimed
    assert at_mended > 1.9 * claimed
    kl = math.log(count)
    costs = [bounds.ewa(rate=rate, count=count, loss_bound=1.0, kl=kl).value for rate in (mended, right)]
    assert costs[0] == pytest.approx(4.0625 * costs[1]), "(8 + 1/8)/2"


def test_no_prior_has_the_printed_mass() -> None:
    """r(ε) = −ln prior(…) ≥ 0 is nowhere ≤ −d·ln(1/ε) < 0; with the minus gone a uniform prior on [0, 1] has d = 1."""
    priors = [ovi.Box(mean=(-1.0, 1.0)), ovi.MeanField(), ovi.MeanField(prior_std=1e-3, box=ovi.Box((-1.0, 1.0)))]
    for prior, radius, dim in product(priors, (1e-6, 0.1, 0.9), (0.1, 1.0, 10.0)):
        assert bounds.ball_divergence(prior, [0.0, 0.0], radius) > -dim * math.log(1.0 / radius)
    restricted, prior_mass = np.full(10, 0.1), np.full(10, 0.01)  # ten of a hundred points
    assert float(restricted @ np.log(restricted / prior_mass)) == pytest.approx(-math.log(prior_mass.sum())), "KL = −ln π(B)"
    assert bounds.prior_dimension(ovi.Box(mean=(0.0, 1.0)), [0.0], lipschitz=1.0, count=1_000) == pytest.approx(1.0)


def test_the_average_decision_generalises_not_the_last() -> None:
    """|θ| at every event: gradient steps of size 1 from 0.9 visit 0.9 and −0.1 in turn."""
    count = 101
    family = ovi.Point(prior_mean=0.9)
    learner = ovi.Linear(loss=ovi.Absolute(), rule=ovi.OGA(1.0), family=family)
    state = learner.init(1)
    for _ in range(count):
        last, state = state, learner.update(state, [1.0], 0.0)[0]
    assert abs(state.average_mean[0]) <= state.average_loss
    assert abs(last.mean[0]) > 1.7 * state.average_loss


# --- 11. Section 5


def test_the_toy_labels_are_signs_and_two_data_sets_are_for_regression() -> None:
    """y ∈ {0, 1} as drawn in print has no hinge loss: (1 − 0·z)₊ is 1 whatever z is."""
    with pytest.raises(ValueError, match="label"):
        ovi.learn(np.ones((1, 2)), [0.0], loss=ovi.Hinge(), rule=ovi.SVB())
    losses = {name: type(panel.loss).__name__ for name, panel in PANELS.items()}
    assert sorted(name for name, loss in losses.items() if loss == "Squared") == ["boston", "california"]
