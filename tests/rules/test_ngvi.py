"""NGVI beyond its default: in scale parameters and with a floor, and the streams on which it has linear regret without."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.adversaries import crossing, recurring, turning
from helpers.catalogue import LOSSES, name, stream
from helpers.problems import BELIEF, EVENTS, PRIOR, argmin, assert_same, kl
from scipy.sparse import csr_matrix

import onlinevi as ovi
from onlinevi.engine import rates_against_prior
from onlinevi.engine.types import Belief, Gradient, Totals
from onlinevi.rules import ScaleNGVI

NONE = Totals(0.0, 0.0)


# --- in scale parameters


def scale_objective(slope: float, curvature: float, step: float, rate: float):  # type: ignore[no-untyped-def]
    """⟨μ, ∇L̄⟩ + KL(q‖prior)/rate + KL(q‖belief)/step in μ = (mean, std)."""

    def objective(q: Belief) -> float:
        return slope * q.mean + curvature * BELIEF.std * q.std + kl(q, PRIOR) / rate + kl(q, BELIEF) / step

    return objective


@pytest.mark.parametrize(("slope", "curvature"), EVENTS)
@pytest.mark.parametrize(("step", "rate", "per_variance"), [(0.5, 2.0, False), (2.0, 0.4, True)])
def test_ngvi_in_scale_parameters_is_the_argmin(
    slope: float, curvature: float, step: float, rate: float, per_variance: bool
) -> None:
    rates = rates_against_prior(step, rate, per_variance)
    got = ScaleNGVI.new_belief(BELIEF, Gradient(slope, curvature), NONE, rates, PRIOR)
    size = step / BELIEF.std**2 if per_variance else step
    assert_same(got, argmin(scale_objective(slope, curvature, size, rate), BELIEF))


@pytest.mark.parametrize(("slope", "curvature"), EVENTS[1:4])
def test_a_box_clips_its_argmin(slope: float, curvature: float) -> None:
    box = ((-0.1, 0.3), (0.2, 0.5))
    rates = rates_against_prior(0.5, 2.0, False)
    free = ScaleNGVI.new_belief(BELIEF, Gradient(slope, curvature), NONE, rates, PRIOR)
    clipped = Belief(np.clip(free.mean, *box[0]), np.clip(free.std, *box[1]))
    start = Belief(np.mean(box[0]), np.mean(box[1]))
    assert_same(clipped, argmin(scale_objective(slope, curvature, 0.5, 2.0), start, box))


def test_a_std_of_zero_comes_back_by_the_prior_alone() -> None:
    still = Belief(0.3, np.float64(0.0))
    for per_variance, wide in ((True, True), (False, False)):
        got = ScaleNGVI.new_belief(still, Gradient(1.0, 2.0), NONE, rates_against_prior(0.5, 2.0, per_variance), PRIOR)
        assert np.isfinite(got).all()
        assert (got.std > 0.0) == wide


@pytest.mark.parametrize("rate", [0.3, ovi.PerSqrt(2.0), ovi.PaperSVB(1.0), ovi.StronglyConvex(2.0)], ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_without_the_prior_term_it_is_svb_to_the_bit(loss: ovi.Loss, rate: ovi.Rate | float) -> None:
    """So Theorem 3, of SVB, is about NGVI in scale parameters at rate = ∞."""
    X, y = stream(loss, count=30)
    runs = [ovi.learn(X, y, loss=loss, rule=rule) for rule in (ovi.SVB(rate), ovi.NGVI(rate, parameters="scale"))]
    assert np.array_equal(runs[0].state.array, runs[1].state.array)


def test_it_is_svb_with_all_covariances_too() -> None:
    X, y = stream(ovi.Logistic(), count=30)
    rules = (ovi.SVB(ovi.PerSqrt(1.0)), ovi.NGVI(ovi.PerSqrt(1.0), parameters="scale"))
    runs = [ovi.learn(X, y, loss=ovi.Logistic(), rule=rule, family=ovi.FullCovariance()) for rule in rules]
    assert np.array_equal(runs[0].state.array, runs[1].state.array)


def test_a_prior_term_as_weak_as_can_be_changes_as_little() -> None:
    """The bound's last term is KL/rate an event; so is what the prior term moves."""
    X, y = stream(ovi.Hinge(), count=30)
    svb = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB()).mean
    moved = []
    for rate in (1e3, 1e6, 1e9):
        rule = ovi.NGVI(ovi.PaperSVB(1.0), rate, parameters="scale")
        moved.append(float(np.abs(ovi.learn(X, y, loss=ovi.Hinge(), rule=rule).mean - svb).max()))
    assert moved[0] / moved[1] == pytest.approx(1e3, rel=0.05)
    assert moved[1] / moved[2] == pytest.approx(1e3, rel=0.05)


def test_the_option_makes_a_rule_of_its_own_class() -> None:
    rule = ovi.NGVI(0.5, 2.0, parameters="scale")
    assert type(rule) is ScaleNGVI
    assert type(replace(ovi.NGVI(0.5, 2.0), parameters="scale")) is ScaleNGVI
    assert rule == replace(ovi.NGVI(0.5, 2.0), parameters="scale") != ovi.NGVI(0.5, 2.0)
    assert type(rule.with_rate(0.1)) is ScaleNGVI
    assert repr(rule) == "NGVI(step=0.5, rate=2.0, parameters='scale')"
    assert eval(repr(rule), {"NGVI": ovi.NGVI}) == rule
    assert repr(ovi.NGVI()) == "NGVI(step=1.0, rate=None)"


# --- with a floor


def floored(X: np.ndarray, y: np.ndarray, loss: ovi.Loss, step: float, floor: float, end: float) -> Belief:
    """The rule as MATH has it, by hand: P' = P + step·e2·x², std kept at floor·s, and the mean moved with that std."""
    mean, std = np.zeros(X.shape[1]), np.full(X.shape[1], 0.8)
    for row, label in zip(X, y, strict=True):
        _, slope, curvature = loss(label, row @ mean, math.sqrt(np.square(row) @ np.square(std)))
        std = np.maximum(1.0 / np.sqrt(1.0 / std**2 + step * curvature * row**2), floor * 0.8)
        mean = np.clip(mean - step * std**2 * slope * row, -end, end)
    return Belief(mean, std)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_with_a_floor_the_mean_moves_with_the_std_that_is_kept(loss: ovi.Loss) -> None:
    X, y = stream(loss, count=40, dim=3)
    family = ovi.MeanField(prior_std=0.8, box=ovi.Box((-1.0, 1.0)))
    want = floored(X, y, loss, 2.0, 0.6, 1.0)
    for rows in (X, csr_matrix(X)):
        got = ovi.learn(rows, y, loss=loss, rule=ovi.NGVI(2.0, floor=0.6), family=family).state
        assert got.std.min() == 0.6 * 0.8
        np.testing.assert_allclose(got.mean, want.mean, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(got.std, want.std, rtol=1e-10)
    clipped = ovi.learn(X, y, loss=loss, rule=ovi.NGVI(2.0), family=replace(family, box=ovi.Box((-1.0, 1.0), (0.6, 1.0))))
    assert not np.allclose(clipped.mean, want.mean), "a box alone moves the mean with the std that it takes back"


def test_a_floor_never_reached_changes_nothing() -> None:
    X, y = stream(ovi.Logistic(), count=40)
    runs = [ovi.learn(X, y, loss=ovi.Logistic(), rule=rule) for rule in (ovi.NGVI(), ovi.NGVI(floor=1e-3))]
    np.testing.assert_allclose(runs[0].mean, runs[1].mean, rtol=1e-13)


def test_a_floor_moves_a_mean_by_the_prior_term_as_well() -> None:
    """With the kept std in place of the new one, all else as NGVI moves it."""
    rates, gradient = rates_against_prior(0.5, 2.0, False), Gradient(1.3, 40.0)
    new = ovi.NGVI.new_belief(BELIEF, gradient, NONE, rates, PRIOR)
    kept = 0.5
    mean = ovi.NGVI.with_kept_std(kept, BELIEF, gradient, rates, PRIOR).mean
    assert mean - BELIEF.mean == pytest.approx((new.mean - BELIEF.mean) * (kept / new.std) ** 2, rel=1e-12)


# --- what is refused


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ovi.NGVI(floor=0.0), "floor=0.0: a floor is a part of the prior's std"),
        (lambda: ovi.NGVI(floor=1.5), "at most 1"),
        (lambda: ovi.NGVI(floor=math.nan), "floor=nan"),
        (lambda: ovi.NGVI(parameters="natural"), 'needs "expectation" or "scale"'),  # type: ignore[arg-type]
        (lambda: ScaleNGVI(parameters="expectation"), r'NGVI\(parameters="scale"\)'),
        (lambda: ovi.NGVI(floor=0.1, parameters="scale"), "has a bound without one"),
        (lambda: ovi.NGVI(ovi.Adaptive(1.0), parameters="scale"), "takes no Adaptive rate"),
        (lambda: ovi.NGVI(1.0, ovi.PaperSVB(1.0), parameters="scale"), "only SVB and"),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.NGVI(floor=0.1), ovi.FullCovariance()), "each weight by itself"),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.NGVI(1.0, 2.0, parameters="scale"), ovi.FullCovariance()), r"O\(d³\)"),
        (
            lambda: ovi.Linear(ovi.Hinge(), ovi.NGVI(ovi.PaperSVB(3.0), parameters="scale"), ovi.FullCovariance()),
            r"use PerSqrt\(c=3.0\)",
        ),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.NGVI(parameters="scale"), ovi.LowRank()), "low-rank precision has not"),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.NGVI(parameters="scale"), ovi.Point()), "needs a Gaussian family"),
    ],
)
def test_what_has_no_step_is_refused(make, match: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=match):
        make()


# --- where the regret is linear


def moved_at_most(step: float, count: int) -> float:
    """The theorem's bound on the mean behind ``turning``: 12·step/(c²·T), c = step·φ(0)/(1 + step·φ(0)/2)."""
    growth = step / math.sqrt(2.0 * math.pi)
    return 12.0 * step / ((growth / (1.0 + 0.5 * growth)) ** 2 * count)


@pytest.mark.parametrize("rule", [ovi.NGVI(), ovi.NGVI(0.5), ovi.Implicit(), ovi.Implicit(0.5)], ids=name)
def test_a_kink_costs_natural_gradients_half_of_the_events(rule: ovi.Rule) -> None:
    count = 1000
    X, y = turning(count)
    trace = ovi.learn(X, y, loss=ovi.Absolute(), rule=rule)
    reached = moved_at_most(rule.step_rate.c, count)
    assert trace.mean[0] <= reached < 1.0
    regret = trace.state.loss - count / 4
    assert regret >= 0.5 * count - 0.75 * count * reached > 0.2 * count
    assert ovi.certificate(trace).against([1.0]) / count >= 0.4, "the certificate shows it while it runs"
    for other in (ovi.SVA(), ovi.SVB(), ovi.NGVI(floor=0.1), ovi.NGVI(ovi.PaperSVB(1.0), parameters="scale")):
        assert ovi.learn(X, y, loss=ovi.Absolute(), rule=other).state.loss < count / 4


def test_a_prior_term_does_not_save_it() -> None:
    """At rate √T it forgets within √T events: labels that turn once cost nothing, those that turn in time do."""
    count = 10_000
    rule = ovi.NGVI(1.0, rate=100.0)
    X, y = recurring(count, 2.0)
    assert ovi.learn(X, y, loss=ovi.Absolute(), rule=rule).state.loss - min(y.sum(), count - y.sum()) > 0.08 * count
    X, y = turning(1000)
    assert ovi.learn(X, y, loss=ovi.Absolute(), rule=ovi.NGVI(1.0, rate=math.sqrt(1000.0))).state.loss < 250.0


@pytest.mark.parametrize("rule", [ovi.NGVI(), ovi.Implicit()], ids=name)
def test_mean_field_natural_gradients_have_no_fast_rate_for_the_squared_loss(rule: ovi.Rule) -> None:
    count = 2000
    X, y = crossing(count)
    apart = ovi.learn(X, y, loss=ovi.Squared(), rule=rule).state.loss
    together = ovi.learn(X, y, loss=ovi.Squared(), rule=rule, family=ovi.FullCovariance()).state.loss
    assert apart / count == pytest.approx(63.0 / 768.0, rel=0.01)
    assert together < 2.0


def test_a_floor_and_a_ball_of_stds_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="stds fall below the floor"):
        ovi.Linear(ovi.Hinge(), ovi.NGVI(floor=0.5), ovi.MeanField(box=ovi.Ball(2.0)))
    learner = ovi.Linear(ovi.Hinge(), ovi.NGVI(floor=0.5), ovi.MeanField(box=ovi.Ball(0.1, std=None)))
    state, _ = learner.update_many(learner.init(2), 3.0 * np.ones((40, 2)), np.ones(40))
    assert np.linalg.norm(state.mean) == pytest.approx(0.1)
    assert state.std.min() == 0.5
