"""Every closed form against the problem it solves, and the laws of a step."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.catalogue import GAUSSIAN_RULES, RULES, name
from helpers.problems import BELIEF, EVENTS, PRIOR, argmin, assert_same, kl
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinevi as ovi
from onlinevi.engine import rates_against_prior
from onlinevi.engine.types import Belief, Gradient, Prior, Rates, Totals
from onlinevi.rules.base import shrink


@pytest.mark.parametrize(("slope", "curvature"), EVENTS)
@pytest.mark.parametrize("rate", [0.05, 3.0])
def test_sva_is_the_argmin_of_its_problem(slope: float, curvature: float, rate: float) -> None:
    totals = Totals(slope, curvature * BELIEF.std)
    got = ovi.SVA.new_belief(BELIEF, Gradient(0.0, 0.0), totals, Rates(rate, 0.0, False), PRIOR)
    want = argmin(lambda q: totals.mean * q.mean + totals.std * q.std + kl(q, PRIOR) / rate, Belief(*PRIOR))
    assert_same(got, want)


@pytest.mark.parametrize(("slope", "curvature"), EVENTS)
@pytest.mark.parametrize("rate", [0.05, 3.0])
def test_svb_is_the_argmin_of_its_problem(slope: float, curvature: float, rate: float) -> None:
    got = ovi.SVB.new_belief(BELIEF, Gradient(slope, curvature), Totals(0.0, 0.0), Rates(rate, 0.0, False), PRIOR)
    want = argmin(lambda q: slope * q.mean + curvature * BELIEF.std * q.std + kl(q, BELIEF) / rate, BELIEF)
    assert_same(got, want)


def test_svb_rates_over_the_variance_are_the_same_rule() -> None:
    gradient, rate = Gradient(1.3, 2.0), 0.3
    whitened = ovi.SVB.new_belief(BELIEF, gradient, Totals(0.0, 0.0), Rates(rate, 0.0, True), PRIOR)
    plain = ovi.SVB.new_belief(BELIEF, gradient, Totals(0.0, 0.0), Rates(rate / BELIEF.std**2, 0.0, False), PRIOR)
    assert whitened == pytest.approx(plain, rel=1e-14)


def ngvi_objective(slope: float, curvature: float, step: float, rate: float | None):  # type: ignore[no-untyped-def]
    """⟨μ, ∇_μ L̄⟩ + KL(q‖prior)/rate + KL(q‖belief)/step in expectation parameters μ = (m, m² + std²)."""
    second = 0.5 * curvature
    first = slope - 2.0 * BELIEF.mean * second

    def objective(q: Belief) -> float:
        pull = 0.0 if rate is None else kl(q, PRIOR) / rate
        return first * q.mean + second * (q.mean**2 + q.std**2) + pull + kl(q, BELIEF) / step

    return objective


@pytest.mark.parametrize(("slope", "curvature"), EVENTS)
@pytest.mark.parametrize(("step", "rate"), [(0.3, None), (0.5, 2.0), (2.0, 0.4)])
def test_ngvi_is_the_argmin_of_its_problem(slope: float, curvature: float, step: float, rate: float | None) -> None:
    rates = rates_against_prior(step, np.inf if rate is None else rate, False)
    got = ovi.NGVI.new_belief(BELIEF, Gradient(slope, curvature), Totals(0.0, 0.0), rates, PRIOR)
    assert_same(got, argmin(ngvi_objective(slope, curvature, step, rate), BELIEF))


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0])
def test_the_printed_weight_of_ngvi_is_right_at_rate_one_only(rate: float) -> None:
    """The paper prints 1/β = 1/step + 1/rate in λ' = (1−β)λ + βλ₁ − rate·β·∇; β = step/(step + rate) solves the problem."""
    step, slope, curvature = 0.7, 1.3, 0.5
    printed = 1.0 / (1.0 / step + 1.0 / rate)
    precision = (1 - printed) / BELIEF.std**2 + printed / PRIOR.std**2 + rate * printed * curvature
    shift = printed * (BELIEF.mean - PRIOR.mean) / PRIOR.std**2 + rate * printed * slope
    paper = Belief(BELIEF.mean - shift / precision, precision**-0.5)
    rates = rates_against_prior(step, rate, False)
    ours = ovi.NGVI.new_belief(BELIEF, Gradient(slope, curvature), Totals(0.0, 0.0), rates, PRIOR)
    objective = ngvi_objective(slope, curvature, step, rate)
    excess = objective(paper) - objective(ours)
    assert excess == pytest.approx(0.0, abs=1e-15) if rate == 1.0 else excess > 1e-3


@pytest.mark.parametrize("box", [((-0.1, 0.3), (0.2, 0.5)), ((-20.0, 20.0), (0.1, 0.8)), ((0.2, 5.0), (0.001, 0.4))])
@pytest.mark.parametrize(("slope", "curvature"), EVENTS)
def test_a_box_clips_the_argmin_of_sva_and_svb(slope: float, curvature: float, box) -> None:  # type: ignore[no-untyped-def]
    """Both problems are separable and convex in each coordinate, so the constrained argmin is the clip."""
    rate, totals = 0.7, Totals(slope, curvature * BELIEF.std)
    problems = {
        ovi.SVA: lambda q: totals.mean * q.mean + totals.std * q.std + kl(q, PRIOR) / rate,
        ovi.SVB: lambda q: slope * q.mean + curvature * BELIEF.std * q.std + kl(q, BELIEF) / rate,
    }
    for rule, objective in problems.items():
        free = rule.new_belief(BELIEF, Gradient(slope, curvature), totals, Rates(rate, 0.0, False), PRIOR)
        clipped = Belief(np.clip(free.mean, *box[0]), np.clip(free.std, *box[1]))
        start = Belief(np.mean(box[0]), np.mean(box[1]))
        assert_same(clipped, argmin(objective, start, box))


@given(u=st.one_of(st.floats(-1e6, 1e6), st.floats(-300, 300).map(lambda e: 10.0**e)))
@settings(deadline=None)
def test_shrink_is_h_without_cancellation(u: float) -> None:
    with np.errstate(over="ignore", divide="ignore"):  # the branch not taken
        h, inverse = float(shrink(np.float64(u))), float(shrink(np.float64(-u)))
    assert 0.0 < h < np.inf
    if abs(u) < 1e100:
        assert h * inverse == pytest.approx(1.0, rel=1e-15)
        assert h - 1.0 / h == pytest.approx(-2.0 * u, rel=1e-12, abs=1e-12), "h solves h − 1/h = −2u"


@pytest.mark.parametrize("rule", [r for r in RULES if not r.moves_without_gradient], ids=name)
def test_a_zero_gradient_changes_nothing(rule: ovi.Rule) -> None:
    rates = Rates(0.3, 0.0, rule.step_rate.per_variance)
    first = rule.new_belief(BELIEF, Gradient(0.4, 0.3), Totals(0.4, 0.3 * 0.6), rates, PRIOR)
    again = rule.new_belief(first, Gradient(0.0, 0.0), Totals(0.4, 0.3 * 0.6), rates, PRIOR)
    assert again == first


convex_event = st.tuples(st.floats(-1e3, 1e3), st.floats(0.0, 1e6), st.floats(1e-6, 10.0), st.floats(1e-100, 1.0))


@pytest.mark.parametrize("rule", GAUSSIAN_RULES, ids=name)
@given(event=convex_event)
@settings(max_examples=80, deadline=None)
def test_a_spread_stays_nonnegative_and_never_grows(rule: ovi.Rule, event: tuple[float, float, float, float]) -> None:
    slope, curvature, rate, std = event
    prior = Prior(0.0, 1.0)
    before = Belief(0.3, np.float64(std))
    pull = 2.0 if rule.prior_rate else np.inf
    rates = rates_against_prior(rate, pull, rule.step_rate.per_variance)
    if rule.keeps_std_total:  # its spread is a function of the sum
        total = Totals(0.0, np.float64(1.0 / std))
        before = rule.new_belief(before, Gradient(0.0, 0.0), total, rates, prior)
        totals = Totals(slope, total.std + curvature * before.std)
    else:
        totals = Totals(slope, 0.0)
    after = rule.new_belief(before, Gradient(slope, curvature), totals, rates, prior)
    assert np.isfinite(after.mean)
    assert np.isfinite(after.std)
    assert after.std >= 0.0
    if type(rule) in (ovi.SVA, ovi.NGVI):
        assert after.std > 0.0
    if rule.prior_rate is None:
        assert after.std <= before.std


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan, np.inf])
def test_a_rate_must_be_positive(bad: float) -> None:
    for make in (ovi.Constant, ovi.PerHorizon, ovi.PerSqrt, ovi.PerStep, ovi.PaperSVB, ovi.StronglyConvex):
        with pytest.raises(ValueError, match="a rate must be > 0"):
            make(bad)
    with pytest.raises(ValueError, match="a rate must be > 0"):
        ovi.SVA(rate=bad).step_rate  # noqa: B018
    with pytest.raises(ValueError, match="a step must be > 0"):
        ovi.NGVI(step=bad)


def test_rates_over_the_variance_are_for_svb_only() -> None:
    for make in (
        lambda r: ovi.SVA(r),
        lambda r: ovi.OGA(r),
        lambda r: ovi.OGAEL(r),
        lambda r: ovi.NGVI(r),
        lambda r: ovi.NGVI(1, r),
    ):
        with pytest.raises(ValueError, match="only SVB"):
            make(ovi.PaperSVB(1.0))


def test_a_rate_that_needs_the_horizon_says_so() -> None:
    with pytest.raises(ValueError, match=r"needs the number of events T.*horizon=T"):
        ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVA()).init(3)
    assert ovi.PerHorizon(2.0).schedule(16).scale == 0.5
    assert ovi.StronglyConvex(4.0).schedule(None) == (0.5, 1.0)


def test_a_wrong_step_is_called_a_step() -> None:
    for step in (-1.0, 0.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"^step=.*: a step must be > 0 and finite"):
            ovi.NGVI(step=step)
