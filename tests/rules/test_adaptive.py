"""Rates from the gradients seen: the recursion they define, what they need not know, and the lemma under SVA's bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.adversaries import OBLIVIOUS, held_at_an_end, unit_rows
from helpers.trials import Trial, opponent
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.engine.types import Belief
from onlinevi.rules.base import shrink

LOSS = ovi.Absolute()
RULES = [ovi.OGA, ovi.OGAEL, ovi.SVA, ovi.SVB]
BOX = ovi.Box((-1.0, 2.0))
PRIOR_STD = (0.5, 1.0, 2.0)


def family_of(
    rule: type[ovi.Rule], start: float = 0.2, prior_std: tuple[float, ...] = PRIOR_STD, box: ovi.Box = BOX
) -> ovi.Family:
    """One prior a coordinate throughout: one kernel a rule."""
    starts = (start,) * len(prior_std)
    return ovi.MeanField(starts, prior_std, box) if rule.gaussian else ovi.Point(starts, box)


def events(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """The first three rows say nothing; lengths differ by a factor of a thousand."""
    rng = np.random.default_rng(3)
    X = unit_rows(rng, count, 3) * 10.0 ** rng.uniform(-1.5, 1.5, (count, 1))
    X[:3] = 0.0
    return X, np.where(rng.random(count) < 0.6, 1.0, -1.0)


def by_hand(rule: type[ovi.Rule], c: float, X: np.ndarray, y: np.ndarray) -> list[Belief]:
    """The definition, in numpy: every belief after the first."""
    family = family_of(rule)
    start = family.init(3)
    s = start.std if rule.gaussian else np.ones(3)
    mean, std, squares, totals, found = start.mean, start.std, 0.0, np.zeros((2, 3)), []
    for x, label in zip(X, y, strict=True):
        _, slope, curvature = LOSS(label, mean @ x, math.sqrt(np.square(x) @ np.square(std)))
        gradient = np.stack([slope * x, curvature * std * x * x])
        squares, totals = squares + np.square(gradient).sum(), totals + gradient
        rate = c / math.sqrt(squares) if squares > 0.0 else 0.0
        if rule is ovi.SVA:
            mean, std = 0.2 - rate * s * s * totals[0], s * shrink(0.5 * rate * s * totals[1])
        elif rule is ovi.SVB:
            mean, std = mean - rate * gradient[0], std * shrink(0.5 * rate * curvature * x * x)
        else:
            mean, std = mean - rate * s * s * gradient[0], std - rate * s * s * gradient[1]
        mean, std = family.project(Belief(mean, std))
        found.append(Belief(mean, std))
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_belief_is_that_of_the_recursion_however_the_stream_is_cut(rule: type[ovi.Rule]) -> None:
    X, y = events()
    learner = ovi.Linear(LOSS, rule(ovi.Adaptive()), family_of(rule))
    state = learner.init(3)  # no horizon
    for x, label, want in zip(X, y, by_hand(rule, state.plan.step_rate.c, X, y), strict=True):
        state, _ = learner.update(state, x, label)
        assert state.belief.mean == pytest.approx(want.mean, rel=1e-9, abs=1e-12)
        assert state.std == pytest.approx(want.std, rel=1e-9, abs=1e-12)
    first, _ = learner.update_many(learner.init(3, horizon=7), X[:17], y[:17])
    whole, _ = learner.update_many(first, X[17:], y[17:])
    assert np.array_equal(whole.array, state.array)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_losses_times_a_number_change_no_decision(rule: type[ovi.Rule]) -> None:
    X, y = events()
    parts = {"loss": LOSS, "rule": rule(ovi.Adaptive()), "family": family_of(rule)}
    plain = ovi.learn(X, y, weights=np.full(len(y), 0.5), **parts)
    for factor in (2.0**-30, 2.0, 2.0**60):  # powers of two: not even rounding differs
        scaled = ovi.learn(X, y, weights=np.full(len(y), factor), **parts)
        assert np.array_equal(scaled.prediction, plain.prediction)
        assert np.array_equal(scaled.spread, plain.spread)
        assert scaled.state.largest_gradient == 2.0 * factor * plain.state.largest_gradient
    assert ovi.learn(X, y, weights=np.full(len(y), 3.0), **parts).mean == pytest.approx(plain.mean, rel=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_before_the_first_gradient_the_belief_is_the_prior(rule: type[ovi.Rule]) -> None:
    """Gradients whose squares are 0 as floats count as none; then the least and a huge one follow."""
    learner = ovi.Linear(LOSS, rule(ovi.Adaptive()), family_of(rule))
    state, _ = learner.update_many(learner.init(3), np.array([np.zeros(3), np.full(3, 1e-170)]), [1.0, -1.0])
    assert np.array_equal(state.mean, learner.init(3).mean)
    state, _ = learner.update_many(state, np.array([np.full(3, 1e-150), np.full(3, 1e60)]), [-1.0, 1.0])
    assert np.isfinite(state.array).all()
    assert state.largest_gradient >= 1e60


def test_sva_with_covariances_follows_its_sums() -> None:
    X, y = events()
    state = ovi.learn(X, y, loss=LOSS, rule=ovi.SVA(ovi.Adaptive(0.7)), family=ovi.FullCovariance(0.2, PRIOR_STD)).state
    rate = 0.7 / math.sqrt(state.gradient_square)
    assert state.mean == pytest.approx(0.2 - rate * np.square(PRIOR_STD) * state.gradient, rel=1e-9)


def test_sparse_rows_are_the_same_rows() -> None:
    from scipy import sparse

    X, y = events()
    X = np.where(np.abs(X) > np.median(np.abs(X)), X, 0.0)
    for rule in (ovi.SVB, ovi.SVA):
        parts = {"loss": LOSS, "rule": rule(ovi.Adaptive()), "family": family_of(rule)}
        got, want = (ovi.learn(rows, y, **parts) for rows in (sparse.csr_matrix(X), X))
        assert got.mean == pytest.approx(want.mean, rel=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_constant_from_the_box_is_the_best_one(rule: type[ovi.Rule]) -> None:
    """Found by a generic optimiser too: over the terms that grow with the stream, for the farthest mean."""
    X, y = events()
    family = family_of(rule)
    far = Belief(np.full(3, 2.0), family.init(3).std)

    def growing(log_c: float) -> float:
        state = ovi.learn(X, y, loss=LOSS, rule=rule(ovi.Adaptive(math.exp(log_c))), family=family).state
        terms = bounds.before_data(state, far, lipschitz=1.0).terms
        return sum(terms[part] for part in ("divergence", "domain", "gradients") if part in terms)

    c = ovi.Linear(LOSS, rule(ovi.Adaptive()), family).init(3).plan.step_rate.c
    assert minimize_scalar(growing, bracket=(-1.0, 1.0), tol=1e-9).x == pytest.approx(math.log(c), abs=1e-5)


def stability(sizes: np.ndarray, gain: float, diameter: float) -> float:
    """What SVA's proof sums: min(gain·a²/√(Σ a² before), diameter·a)."""
    before = np.concatenate([[0.0], np.sqrt(np.cumsum(np.square(sizes)))[:-1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.fmin(gain * np.square(sizes) / before, diameter * sizes).sum())


def lemma(sizes: np.ndarray, gain: float, diameter: float) -> float:
    root, largest = math.sqrt(np.square(sizes).sum()), float(sizes.max())
    squares = {"constant": 2.0 * gain, "gradient_square": root**2, "largest_gradient": largest}
    return bounds.sva_adaptive(kl=0.0, diameter=diameter, **squares).value


@settings(max_examples=150, deadline=None)
@given(st.lists(st.just(0.0) | st.floats(1e-9, 1e3), min_size=1, max_size=40).filter(any), st.floats(1e-3, 1e3))
def test_the_lemma_under_the_bound_of_sva(sizes: list[float], gain: float) -> None:
    assert stability(np.array(sizes), gain, 1.0) <= lemma(np.array(sizes), gain, 1.0) * (1.0 + 1e-12)


def test_growing_gradients_come_near_to_the_lemma() -> None:
    """Geometric growth, then equal ones, is what it is about: no slack that would hide a wrong constant."""
    worst = 0.0
    for ratio in (1.1, 1.5, 2.0, 3.0):
        for gain in 10.0 ** np.arange(-3.0, 2.0):
            for tail in (0, 100, 10_000):
                sizes = np.concatenate([ratio ** np.arange(-30.0, 1.0), np.ones(tail)])
                share = stability(sizes, gain, 1.0) / lemma(sizes, gain, 1.0)
                assert share <= 1.0
                worst = max(worst, share)
    assert worst > 0.9


# --- streams made for adaptive rates: losses that are straight on [−1, 1], of any size


def straight(slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels so far away that the absolute loss is a line with these slopes."""
    return np.abs(slopes)[:, None], -4.0 * slopes


def bursts(rng: np.random.Generator, count: int) -> np.ndarray:
    """Tiny ones, then huge ones the other way, over and over."""
    sizes = 10.0 ** np.repeat(np.arange(1 + count // 10), 10)[:count].clip(0, 12)
    return sizes * np.where(np.arange(count) % 10 < 5, -1.0, 1.0) * rng.choice([-1.0, 1.0])


def growing(rng: np.random.Generator, count: int) -> np.ndarray:
    """Each longer than the last, then all as long as the longest."""
    return -(rng.uniform(1.1, 2.5) ** np.arange(count).clip(0, 60))


def alternating(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.where(np.arange(count) % 2 == 0, 1.0, -1.0) * rng.uniform(0.1, 1.0, count)


def zeros_first(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.where(np.arange(count) < count // 2, 0.0, rng.choice([-1.0, 1.0]))


def two_ways(rng: np.random.Generator, count: int) -> np.ndarray:
    """Long one way, then the other for a random while."""
    return np.where(np.arange(count) < rng.integers(count // 2, count), 1.0, -1.0)


@pytest.mark.parametrize("slopes", [bursts, growing, alternating, zeros_first, two_ways], ids=lambda slopes: slopes.__name__)
def test_no_stream_made_for_adaptive_rates_breaks_a_bound(slopes) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    for _ in range(5):
        sizes = slopes(rng, int(rng.integers(20, 120)))
        X, y = straight(sizes)
        start, prior_std = float(rng.uniform(-1.0, 1.0)), float(10.0 ** rng.uniform(-2.0, 0.5))
        for rule in RULES:
            box = ovi.Box((-1.0, 1.0))
            family = family_of(rule, start, (prior_std,), box)
            std = np.array([prior_std if rule.gaussian else 0.0])
            against = [opponent(LOSS, (X, y), Belief(np.array([end]), std)) for end in (-1.0, 0.0, 1.0)]
            for rate in (ovi.Adaptive(), ovi.Adaptive(float(10.0 ** rng.uniform(-2.0, 2.0)))):
                trial = Trial(LOSS, rule(rate), family, X, y)
                for comparator in against:
                    before, after = trial.verdicts(comparator)
                    assert not before.broken
                    assert not after.broken
                    assert after.bound.value <= before.bound.value * (1.0 + 1e-12)


def test_a_mean_held_at_the_wrong_end_nearly_reaches_the_bounds_of_svb_and_of_gradient_steps() -> None:
    """With slopes of size 1 the rate is c/√t: the worst stream for that turns about √T events before the end."""
    slopes = held_at_an_end(10_000, 141, math.sqrt(2.0))
    box = ovi.Box((-1.0, 1.0))
    X, y = straight(slopes)
    against = opponent(LOSS, (X, y), Belief(np.ones(1), np.zeros(1)))
    for rule in (ovi.SVB, ovi.OGA):
        family = family_of(rule, -1.0, (1e-3,), box)
        for verdict in Trial(LOSS, rule(ovi.Adaptive()), family, X, y).judged([against]):
            assert 0.95 < verdict.ratio <= 1.0


def test_nothing_known_ahead_costs_a_small_factor() -> None:
    """Before data: SVB none at all, gradient steps √2, SVA less and less. In regret too, beside the same for known T and L."""
    count, domain = 10**8, bounds.box_domain(ovi.MeanField(), 5)
    squares = {"gradient_square": float(count), "largest_gradient": 1.0}
    tuned = bounds.sva_at_best_rate(count=count, lipschitz=1.0, kl=9.0).value
    assert 1.0 < bounds.sva_adaptive(constant=3.0, kl=9.0, diameter=5.0, **squares).value / tuned < 1.02
    step = bounds.svb_best_step(lipschitz=1.0, domain=domain)
    tuned = bounds.svb_convex(step=step, count=count, lipschitz=1.0, domain=domain).value
    same = bounds.svb_adaptive(constant=domain.svb_diameter, gradient_square=count, domain=domain)
    assert same.value == pytest.approx(tuned)

    rng, box = np.random.default_rng(5), ovi.Box((-3.0, 3.0))
    for stream in OBLIVIOUS[:2]:
        X, y = stream(LOSS, rng, 1000, 4)
        least = ovi.hindsight(X, y, loss=LOSS, box=3.0).value * len(y)
        for rule, kind in ((ovi.SVA, ovi.PerHorizon), (ovi.SVB, ovi.PaperSVB)):
            family = family_of(rule, 0.0, (1.0,) * 4, box)
            adaptive = ovi.learn(X, y, loss=LOSS, rule=rule(ovi.Adaptive()), family=family).state
            informed = rule(kind(adaptive.plan.step_rate.c / np.linalg.norm(X, axis=1).max()))
            tuned = ovi.learn(X, y, loss=LOSS, rule=informed, family=ovi.MeanField(box=box)).state.loss
            assert adaptive.loss - least < 2.5 * (tuned - least)


# --- refusals


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ovi.Adaptive(0.0), "must be > 0"),
        (lambda: ovi.NGVI(ovi.Adaptive()), "NGVI takes no Adaptive rate"),
        (lambda: ovi.NGVI(rate=ovi.Adaptive(1.0)), "NGVI takes no Adaptive rate"),
        (lambda: ovi.Implicit(ovi.Adaptive()), "Implicit takes no Adaptive rate"),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.SVB(ovi.Adaptive()), ovi.FullCovariance()), "divides by the variance of each"),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.SVB(ovi.Adaptive()), ovi.MeanField(box=None)).init(2), "is not bounded"),
        (lambda: ovi.Linear(ovi.Hinge(), ovi.OGA(ovi.Adaptive()), ovi.Point(box=ovi.Box((0, 0)))).init(2), "has no width"),
        (lambda: ovi.batch_vb([[1.0]], [1.0], loss=ovi.Hinge(), rate=ovi.Adaptive()), "one posterior has one rate"),
        (lambda: ovi.ewa.Experts(ovi.Adaptive()).run(np.ones((2, 2))), "falls with gradients"),
    ],
)
def test_where_it_has_no_meaning_it_is_refused(call, match: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=match):
        call()


def test_without_a_box_it_runs_with_a_constant_and_has_no_bound() -> None:
    X, y = events()
    for rule in (ovi.SVA, ovi.SVB):
        state = ovi.learn(X, y, loss=LOSS, rule=rule(ovi.Adaptive(1.0)), family=ovi.MeanField(0.0, PRIOR_STD, None)).state
        with pytest.raises(ValueError, match="bounded domain"):
            bounds.after_data(state, Belief(np.zeros(3), np.ones(3)))
