"""The bounds of NGVI that are not in the paper: each reached, or broken where a term of it is left out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.adversaries import held_at_an_end
from helpers.catalogue import name
from helpers.trials import LinearLoss

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.engine.types import Belief
from onlinevi.guarantees import Setting, SquaredSums, calculate

BOX = ovi.Box((-1.0, 1.0))


def line(rule: ovi.Rule, slopes: np.ndarray, family: ovi.MeanField, target: float) -> tuple[ovi.State, float]:
    """A run of linear losses in one dimension, and its regret to a point."""
    state = ovi.learn(np.ones((len(slopes), 1)), slopes, loss=LinearLoss(), rule=rule, family=family).state
    return state, state.expected_loss - target * float(slopes.sum())


# --- with a floor


def test_a_constant_slope_reaches_the_bound_of_a_floor() -> None:
    """At a floor of 1 and a prior so narrow that its spread costs nothing, with steps that arrive with the last event."""
    count, std = 200, 1e-9
    family = ovi.MeanField(-1.0, std, BOX)
    state, regret = line(ovi.NGVI(2.0 / (count * std**2), floor=1.0), -np.ones(count), family, 1.0)
    u = Belief(np.ones(1), np.zeros(1))
    for bound in (bounds.before_data(state, u, lipschitz=1.0), bounds.after_data(state, u)):
        assert regret == pytest.approx(bound.value, rel=1e-6)
        assert regret > 1.001 * math.fsum(value for term, value in bound.terms.items() if term != "gradients")


def test_the_spread_of_a_floor_costs_what_the_bound_says() -> None:
    """|y − θ| with y = 0 for ever costs E|θ| an event, of which the mean, at 0, pays nothing: e2·v² = √(2/π)·s."""
    count, std = 100, 0.5
    family = ovi.MeanField(0.0, std, BOX)
    state = ovi.learn(np.ones((count, 1)), np.zeros(count), loss=ovi.Absolute(), rule=ovi.NGVI(floor=1.0), family=family).state
    bound = bounds.before_data(state, Belief(np.zeros(1), np.zeros(1)), lipschitz=1.0)
    assert state.expected_loss == pytest.approx(math.sqrt(2.0 / math.pi) * std * count)
    assert bound.terms["spread"] == std * count
    assert state.expected_loss > bound.value - bound.terms["spread"]
    observed = bounds.after_data(state, Belief(np.zeros(1), np.zeros(1)))
    assert observed.terms["spread"] == pytest.approx(state.expected_loss), "one coordinate: Cauchy and Schwarz lose nothing"


def test_the_best_step_and_prior_give_root_t() -> None:
    count, lipschitz, side, floor, dim = 2500, 3.0, 2.0, 0.25, 4
    diameter = side * math.sqrt(dim)
    std = diameter / math.sqrt(count)
    known = {"count": count, "lipschitz": lipschitz, "reach": diameter / (floor * std), "prior_std": std}
    step = bounds.ngvi_floor_best_step(**known)
    best = bounds.ngvi_floor(step=step, **known)
    assert best.value == pytest.approx((1.0 / floor + 1.0) * diameter * lipschitz * math.sqrt(count))
    assert all(bounds.ngvi_floor(step=factor * step, **known).value > best.value for factor in (0.9, 1.1))


def test_what_is_observed_of_a_floor_is_never_above_what_was_promised() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) / math.sqrt(3.0)
    for loss, y in ((ovi.Hinge(), np.sign(X[:, 0])), (ovi.Squared(), X[:, 1]), (ovi.Hinge(ridge=0.1), np.sign(X[:, 0]))):
        family = ovi.MeanField(prior_std=(0.2, 0.5, 0.3), box=BOX)
        state = ovi.learn(X, y, loss=loss, rule=ovi.NGVI(2.0, floor=0.4), family=family).state
        L = bounds.lipschitz(X, y, loss=loss, family=family)
        u = Belief(np.array([1.0, -1.0, 0.3]), np.zeros(3))
        before, after = bounds.before_data(state, u, lipschitz=L), bounds.after_data(state, u, lipschitz=L)
        assert 0.0 < after.value <= before.value
        everywhere = bounds.everywhere(state.plan, lipschitz=L)
        assert everywhere is not None
        assert everywhere(60) == before.value


# --- in scale parameters


def test_without_the_prior_term_the_bound_is_that_of_svb() -> None:
    domain = bounds.box_domain(ovi.MeanField(box=BOX), 3)
    known = {"step": 0.7, "domain": domain}
    squares = np.linspace(0.1, 2.0, 50)
    svb = bounds.svb_convex(count=50, lipschitz=2.0, **known)
    assert bounds.ngvi_scale(count=50, lipschitz=2.0, **known).terms == svb.terms
    assert bounds.ngvi_scale(count=50, lipschitz=2.0, kl=3.0, rate=7.0, **known).value == pytest.approx(svb.value + 50 * 3 / 7)
    observed = bounds.svb_convex_observed(gradient_squares=squares, **known)
    assert bounds.ngvi_scale_observed(gradient_squares=squares, **known).terms == observed.terms


def test_a_prior_that_holds_the_mean_costs_the_divergence() -> None:
    """A strong prior term and a constant slope: the regret is linear, and only the last term of the bound is."""
    count, rate = 2000, 0.5
    family = ovi.MeanField(0.0, 1.0, BOX)
    state, _ = line(ovi.NGVI(ovi.PaperSVB(1.0), rate, parameters="scale"), -np.ones(count), family, 1.0)
    u = Belief(np.ones(1), np.ones(1))
    regret = state.expected_loss - float(-count)
    bound = bounds.before_data(state, u, lipschitz=1.0)
    assert bound.terms["divergence"] == pytest.approx(count * 0.5 / rate)
    assert bound.value - bound.terms["divergence"] < regret <= bound.value


def test_a_stream_that_holds_it_at_an_end_nearly_reaches_the_bound() -> None:
    """SVB's worst stream, with a prior term that costs next to nothing."""
    count, end = 4000, 1e-3
    family = ovi.MeanField(-1.0, end, BOX)
    domain = bounds.box_domain(family, 1)
    step = bounds.svb_best_step(lipschitz=1.0, domain=domain)
    slopes = held_at_an_end(count, int(2.0 * math.sqrt(count) / step), step)
    state, regret = line(ovi.NGVI(ovi.PaperSVB(step), 1e12, parameters="scale"), slopes, family, 1.0)
    assert 0.9 < regret / bounds.before_data(state, Belief(np.ones(1), np.full(1, end)), lipschitz=1.0).value <= 1.0


@pytest.mark.parametrize(("before", "after", "u"), [(0.7, 0.2, 0.4), (0.2, 0.7, 0.05), (0.5, 0.5, 0.0), (1e-3, 1.0, 1.0)])
def test_the_identity_of_the_proof(before: float, after: float, u: float) -> None:
    """(σ² − σ'²)(1 − u/σ') = (σ − u)² − (σ' − u)² − u(σ − σ')²/σ': stds that grow telescope too."""
    left = (before**2 - after**2) * (1.0 - u / after)
    assert left == pytest.approx(
        (before - u) ** 2 - (after - u) ** 2 - u * (before - after) ** 2 / after, rel=1e-12, abs=1e-15
    )


# --- squared losses, all covariances


def squared_run(rule: ovi.Rule, count: int = 150) -> tuple[np.ndarray, np.ndarray, ovi.Trace, ovi.FullCovariance]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((count, 3)) * [1.0, 0.2, 3.0]
    y = X @ [1.0, -2.0, 0.5] + rng.standard_t(3, count)
    family = ovi.FullCovariance(prior_mean=0.3, prior_std=(1.0, 2.0, 0.5), box=None)
    return X, y, ovi.learn(X, y, loss=ovi.Squared(), rule=rule, family=family), family


@pytest.mark.parametrize("rule", [ovi.NGVI(0.7), ovi.NGVI(0.01), ovi.Implicit(0.7)], ids=name)
def test_the_total_squared_loss_is_known_exactly(rule: ovi.Rule) -> None:
    """Σ loss = inf_u {Σ (y − ⟨u, x⟩)² + ‖u − m₁‖²/(2α·s²)} + Σ r²·2αv²/(1 + 2αv²): the last is (α/2)·Σ e1²·v²_{t+1}."""
    X, y, trace, family = squared_run(rule)
    step, start = rule.step_rate.c, family.init(3)
    stacked = np.vstack([X, np.diag(1.0 / (math.sqrt(2.0 * step) * start.std))])
    goals = np.concatenate([y, start.mean / (math.sqrt(2.0 * step) * start.std)])
    least = float(np.linalg.lstsq(stacked, goals, rcond=None)[1][0])
    growth = 2.0 * step * np.square(trace.spread)
    assert trace.state.loss == pytest.approx(least + float(trace.loss @ (growth / (1.0 + growth))), rel=1e-13)

    sums, largest = SquaredSums.empty(3).update(X, y), math.sqrt(trace.loss.max())
    bound = bounds.squared_total_loss(trace, sums, largest_residual=largest)
    assert bound.terms["best"] == pytest.approx(least, rel=1e-12)
    assert bound.terms["log determinant"] == pytest.approx(largest**2 * float(np.log1p(growth).sum()), rel=1e-10)
    assert least < trace.state.loss <= bound.value


def test_the_log_determinant_grows_with_the_dimension_and_the_logarithm_of_time() -> None:
    X, y, trace, _ = squared_run(ovi.NGVI(0.7))
    sums, largest = SquaredSums.empty(3).update(X, y), math.sqrt(trace.loss.max())
    known = {"dim": 3, "row_norm": float(np.linalg.norm(X, axis=1).max()), "prior_std": 2.0, "largest_residual": largest}
    first = bounds.squared_total_loss(trace, sums, largest_residual=largest).terms["log determinant"]
    assert first <= bounds.ngvi_squared(step=0.7, count=150, **known).value
    later = [bounds.ngvi_squared(step=0.7, count=10**k, **known).value for k in (4, 5, 6)]
    assert later[2] - later[1] == pytest.approx(later[1] - later[0], rel=1e-3)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"rule": ovi.SVB(ovi.PerSqrt(1.0))}, r"NGVI\(step\) or Implicit\(rate\)"),
        ({"rule": ovi.NGVI(ovi.PerSqrt(1.0))}, "does not change"),
        ({"loss": ovi.Absolute()}, r"Squared\(\) without a ridge"),
        ({"family": ovi.MeanField(box=None)}, r"FullCovariance\(box=None\)"),
        ({"family": ovi.FullCovariance()}, "means without a box"),
        ({"discount": 0.9}, "forgets nothing"),
        ({"weights": np.full(20, 2.0)}, "weights"),
    ],
)
def test_other_runs_are_refused(change: dict, match: str) -> None:
    X, y = np.ones((20, 1)), np.arange(20.0)
    parts = {"loss": ovi.Squared(), "rule": ovi.NGVI(), "family": ovi.FullCovariance(box=None)} | change
    trace = ovi.learn(X, y, **parts)
    with pytest.raises(ValueError, match=match):
        bounds.squared_total_loss(trace, SquaredSums.empty(1).update(X, y), largest_residual=20.0)


def test_the_calculator_shows_what_a_floor_and_scale_parameters_promise() -> None:
    entries = calculate(Setting(10_000, 5, ovi.Hinge(), reach=1.0), "ngvi")
    assert [entry.bound.name for entry in entries] == ["NGVI, floor", "NGVI, floor", "NGVI, scale"]
    diameter = 2.0 * math.sqrt(5.0)
    assert entries[1].bound.value == pytest.approx(11.0 * diameter * 100.0)
    assert entries[1].informative_from is not None
