"""The implicit step is the argmin that it claims to be, for every loss and every family, however wild the row."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers.catalogue import LOSSES, labels, name
from helpers.oracles import evaluate, kink
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

import onlinevi as ovi
from onlinevi.engine import ns
from onlinevi.engine.types import Expected

FAMILIES = [ovi.Point, ovi.MeanField, ovi.FullCovariance]
EXACT = 1e-10
STEPS = [
    *((loss, ovi.MeanField) for loss in LOSSES),
    *((loss, ovi.Point) for loss in LOSSES if not isinstance(loss, ovi.Absolute)),
    *((loss, ovi.FullCovariance) for loss in LOSSES if not isinstance(loss, ovi.Absolute | ovi.Pinball)),
]
"""Each takes seconds to compile. A loss meets a family in one number alone, the new variance: beside the mean field there need
not be two losses with a kink of one kind."""


@dataclass(frozen=True)
class Bent(ovi.Loss):
    """A loss of one's own: (z − y)² + e^(z/2), smooth and convex. Under N(a, v²) it adds v² and e^(a/2 + v²/8)."""

    @staticmethod
    def expected(y, a, v):  # type: ignore[no-untyped-def]
        bend = ns.exp(0.5 * a + 0.125 * v * v)
        return Expected((a - y) * (a - y) + v * v + bend, 2.0 * (a - y) + 0.5 * bend, 2.0 + 0.25 * bend)


def prior(family: type[ovi.Family], mean: Any, std: Any, box: ovi.Box | None = None) -> ovi.Family:
    mean, std = np.asarray(mean).tolist(), np.asarray(std).tolist()
    return family(mean, box=box) if family is ovi.Point else family(mean, std, box=box)  # type: ignore[call-arg]


class Step:
    """One event: the beliefs around it, and the prediction's law under both."""

    def __init__(self, loss: ovi.Loss, old: Any, new: Any, x: np.ndarray, y: float, rate: float) -> None:
        self.loss, self.old, self.new, self.x, self.y, self.rate = loss, old, new, x, y, rate
        self.full, self.point = hasattr(old, "factor"), not np.any(old.std)
        self.a, self.a_new = x @ old.mean, x @ new.mean
        if self.full:
            self.w = old.factor @ x
            self.direction, mean_gain, left = old.factor.T @ self.w, self.w @ self.w, new.factor @ x
            self.v, self.v_new = np.sqrt(mean_gain), np.sqrt(left @ left)
        elif self.point:
            self.direction, mean_gain, self.v, self.v_new = x, x @ x, 0.0, 0.0
        else:
            self.w = old.std * x
            self.direction, mean_gain = old.std * self.w, self.w @ self.w
            self.v, self.v_new = np.sqrt(mean_gain), np.sqrt(np.square(new.std * x).sum())
        self.mean_gain, self.pull = mean_gain, rate * mean_gain
        # A prediction is a rounded sum: it is known to a part of its terms, not of itself.
        self.scale = np.abs(x) @ (np.abs(old.mean) + np.abs(new.mean)) + self.v_new
        self.end = self.at(self.a_new)

    def at(self, a: float) -> Expected:
        return evaluate(self.loss, self.y, a, self.v_new)

    def off(self, a: float) -> float:
        """What the root a' = a − pull·e1(a', v') makes 0; increasing."""
        return a - self.a + self.pull * self.at(a).slope

    def divergence(self) -> float:
        """KL(new‖old), or half the squared distance of points; no difference of near-equal numbers."""
        old, new = self.old, self.new
        shift = new.mean - old.mean
        if self.point:
            return 0.5 * float(shift @ shift)
        if self.full:
            ratio = solve_triangular(old.factor, new.factor.T, trans="T").T
            shift, kept = solve_triangular(old.factor, shift, trans="T"), np.diag(ratio)
            upper = np.square(ratio - np.diag(kept)).sum()
        else:
            shift, kept, upper = shift / old.std, new.std / old.std, 0.0
        return 0.5 * float(shift @ shift + upper + ((kept - 1.0) * (kept + 1.0) - 2.0 * np.log(kept)).sum())

    def assert_is_argmin(self) -> None:
        self.check_prediction()
        self.check_mean()
        self.check_no_overshoot()
        self.check_objective()
        if not self.point:
            self.check_precision()

    def check_prediction(self) -> None:
        """The root lies within 1e-10 of the new prediction: also at a kink, and where pull·e2 is huge."""
        near = EXACT * self.scale
        noise = 1e-11 * self.pull * (1.0 + abs(self.y))  # the digits of e1: 2e-12 of 1 for the logistic loss
        assert self.off(self.a_new - near) <= noise
        assert self.off(self.a_new + near) >= -noise

    def check_mean(self) -> None:
        """mean' = mean − rate·e1·Σx: with e1 at the root as the tangent at a' gives it, which magnifies no rounding."""
        shift = -self.rate * self.direction
        stiff = self.pull * self.end.curvature
        if self.point:  # at a kink e1 is what holds the prediction there
            shift = shift * ((self.a - self.a_new) / self.pull if self.pull > 0.0 else 0.0)
            rounding = self.scale
        else:
            shift = shift * (self.end.slope + self.end.curvature * (self.a - self.a_new)) / (1.0 + stiff)
            rounding = self.scale * stiff / (1.0 + stiff)
        share = np.abs(self.direction) / self.mean_gain if self.mean_gain > 0.0 else 0.0 * self.direction
        tolerance = EXACT * (np.abs(self.old.mean) + np.abs(shift) + rounding * share)
        assert (np.abs(self.new.mean - self.old.mean - shift) <= tolerance).all()

    def check_no_overshoot(self) -> None:
        """It stops before the minimiser of a ↦ E(a, v')."""
        side = np.sign(self.a - self.a_new)
        assert side * self.at(self.a_new + side * EXACT * self.scale).slope >= 0.0

    def check_objective(self) -> None:
        """E[loss] + KL/rate does not grow."""
        before, after = evaluate(self.loss, self.y, self.a, self.v).value, self.end.value
        cost = self.divergence() / self.rate
        rounding = 1e-12 * (abs(before) + abs(after) + cost + abs(self.end.slope) * self.scale) + 1e-14 / self.rate
        assert after + cost <= before + rounding

    def check_precision(self) -> None:
        """P' = P + rate·e2·xxᵀ, relative to P'. e2 turns over a spread: a' known to 1e-10 leaves it a range."""
        near = EXACT * self.scale
        places = self.a_new + near * np.array([-1.0, 0.0, 1.0])
        top = np.clip(kink(self.loss, self.y), places[0], places[-1])
        curvatures = [self.at(a).curvature for a in (*places, top)]
        least, most = self.rate * min(curvatures), self.rate * max(curvatures)
        if self.full:
            # In the coordinates where the old belief is standard normal: I + growth·wwᵀ.
            factor = solve_triangular(self.new.factor, self.old.factor.T, trans="T").T
            growth = self.rate * curvatures[1]
            size = 1.0 + growth * np.square(self.w)
            off = factor @ factor.T - np.eye(len(self.w)) - growth * np.outer(self.w, self.w)
            allowed = EXACT + (most - least) * (np.square(self.w) / size).max()
            assert (np.abs(off) / np.sqrt(np.outer(size, size)) <= allowed).all()
        else:
            grown, share = np.square(self.old.std / self.new.std), np.square(self.w)
            assert (grown >= (1.0 + least * share) * (1.0 - EXACT)).all()
            assert (grown <= (1.0 + most * share) * (1.0 + EXACT)).all()


@dataclass(frozen=True)
class Case:
    seed: int
    dim: int
    log_rate: float
    log_weight: float
    log_row: float
    log_std: tuple[float, float]
    events: int

    def step(self, loss: ovi.Loss, family: type[ovi.Family]) -> Step:
        """The step that an event takes, after a few others; a refused row is another test's matter."""
        rng = np.random.default_rng(self.seed)
        x = rng.standard_normal(self.dim) * 10.0**self.log_row
        x[rng.random(self.dim) < 0.1] = 0.0
        std = 10.0 ** rng.uniform(*self.log_std, self.dim)
        std *= min(1.0, SPREADS.get(type(loss), np.inf) / max(np.linalg.norm(std * x), 1e-300))
        mean = rng.standard_normal(self.dim) * (rng.random() < 0.7)
        if isinstance(loss, ovi.Poisson):
            mean *= min(1.0, 20.0 / max(abs(x @ mean), 1e-300))
        rate, weight = 10.0**self.log_rate, 10.0**self.log_weight
        learner = ovi.Linear(loss=loss, rule=ovi.Implicit(rate), family=prior(family, mean, std))
        state, label = learner.init(self.dim), labels(loss, rng, 1)[0]
        for other in labels(loss, rng, self.events):
            state, _ = learner.update(state, x * rng.uniform(-1.0, 1.0, self.dim), other)
        new, _ = learner.update(state, x, label, weight)
        return Step(loss, state.belief, new.belief, x, float(label), rate * weight)


# e^(a + v²/2) must be a float.
SPREADS: dict[type[ovi.Loss], float] = {ovi.Poisson: 12.0}

tame = st.builds(
    Case,
    seed=st.integers(0, 10**6),
    dim=st.integers(1, 5),
    log_rate=st.floats(-1.5, 1.5),
    log_weight=st.sampled_from([0.0, -0.7, 0.8]),
    log_row=st.floats(-1.0, 0.5),
    log_std=st.just((-1.0, 0.5)),
    events=st.integers(0, 4),
)
wild = st.builds(
    Case,
    seed=st.integers(0, 10**6),
    dim=st.integers(1, 5),
    log_rate=st.floats(-4.0, 4.0),
    log_weight=st.sampled_from([0.0, -0.7, 0.8]),
    log_row=st.floats(-8.0, 8.0),
    log_std=st.sampled_from([(-8.0, 3.0), (-8.0, -6.0), (1.0, 3.0)]),
    events=st.integers(0, 2),
)


@pytest.mark.parametrize(("loss", "family"), STEPS, ids=name)
@given(case=tame)
@settings(max_examples=20)
def test_the_step_is_the_argmin(loss: ovi.Loss, family: type[ovi.Family], case: Case) -> None:
    case.step(loss, family).assert_is_argmin()


@pytest.mark.parametrize(("loss", "family"), STEPS, ids=name)
@given(case=wild)
@settings(max_examples=20)
def test_the_step_is_the_argmin_for_huge_rows_and_tiny_variances(loss: ovi.Loss, family: type[ovi.Family], case: Case) -> None:
    step = case.step(loss, family)
    assert np.isfinite(step.new.mean).all()
    assert np.isfinite(step.new.std).all()
    if step.full:
        # A triangular factor in floats tells a shrunk direction from its rounding up to 1/ε of growth, not beyond.
        growth = step.rate * step.end.curvature * step.v * step.v
        assume(growth < 1e16)
    step.assert_is_argmin()


def test_a_step_that_hardly_narrows_the_spread_knows_by_how_much() -> None:
    """e1 is near 0 here, so that its digits are those of the new spread."""
    Case(679338, 3, -2.42164, -0.7, 5.0964377, (-8.0, -6.0), 0).step(ovi.Poisson(), ovi.MeanField).assert_is_argmin()


def test_a_loss_of_your_own_takes_the_step_too() -> None:
    for seed, rate, row in itertools.product(range(5), (-1, 0, 1), (-1, 0.5)):
        Case(seed, 3, rate, 0.3, row, (-1.0, 0.5), 2).step(Bent(), ovi.MeanField).assert_is_argmin()


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("seed", range(2))
def test_a_generic_optimiser_finds_the_same_mean_field_belief(loss: ovi.Loss, seed: int) -> None:
    step = Case(seed, 3, 0.3, 0.0, 0.0, (-0.5, 0.2), 2).step(loss, ovi.MeanField)
    old, x, family = step.old, step.x, ovi.MeanField(box=None)

    def objective(p: np.ndarray) -> float:
        std = np.exp(p[3:])
        value = evaluate(loss, step.y, x @ p[:3], np.sqrt(np.square(std * x).sum())).value
        return value + family.kl(old._replace(mean=p[:3], std=std), old) / step.rate

    got = np.concatenate([step.new.mean, np.log(step.new.std)])
    want = minimise(objective, np.concatenate([old.mean, np.log(old.std)]))
    assert got == pytest.approx(want, abs=1e-5)
    assert objective(got) <= objective(want) + 1e-12


@pytest.mark.parametrize("loss", [loss for loss, family in STEPS if family is ovi.FullCovariance], ids=name)
def test_a_generic_optimiser_finds_the_same_full_belief(loss: ovi.Loss) -> None:
    step = Case(1, 2, 0.3, 0.0, 0.0, (-0.5, 0.2), 2).step(loss, ovi.FullCovariance)
    old, x, family = step.old, step.x, ovi.FullCovariance(box=None)

    def belief(p: np.ndarray) -> Any:
        return old._replace(mean=p[:2], factor=np.array([[np.exp(p[2]), p[3]], [0.0, np.exp(p[4])]]))

    def objective(p: np.ndarray) -> float:
        a, variance = family.predict(belief(p), x)
        return evaluate(loss, step.y, a, np.sqrt(variance)).value + family.kl(belief(p), old) / step.rate

    def parameters(of: Any) -> np.ndarray:
        factor = of.factor
        return np.array([*of.mean, np.log(factor[0, 0]), factor[0, 1], np.log(factor[1, 1])])

    got, want = parameters(step.new), minimise(objective, parameters(old))
    assert got == pytest.approx(want, abs=1e-5)
    assert objective(got) <= objective(want) + 1e-12


def minimise(objective: Any, start: np.ndarray) -> np.ndarray:
    for _ in range(2):  # again from where it stopped: its picture of the curvature starts anew
        start = minimize(objective, start, method="BFGS", options={"gtol": 1e-8}).x
    return np.asarray(start)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_with_the_squared_loss_a_full_covariance_is_tempered_bayes(rate: float) -> None:
    rng = np.random.default_rng(0)
    X, y, s = rng.standard_normal((40, 4)), rng.standard_normal(40), 0.7
    trace = ovi.learn(X, y, loss=ovi.Squared(), rule=ovi.Implicit(rate), family=ovi.FullCovariance(prior_std=s, box=None))
    precision = np.eye(4) / s**2 + 2.0 * rate * X.T @ X
    belief = trace.state.belief
    assert belief.mean == pytest.approx(np.linalg.solve(precision, 2.0 * rate * X.T @ y), rel=EXACT)
    assert belief.covariance == pytest.approx(np.linalg.inv(precision), rel=EXACT)


@given(
    x=st.lists(st.floats(-3.0, 3.0).filter(lambda v: abs(v) > 1e-3), min_size=1, max_size=4),
    seed=st.integers(0, 100),
    rate=st.floats(0.01, 5.0),
    y=st.sampled_from([-1.0, 1.0]),
)
def test_at_a_point_the_hinge_makes_the_passive_aggressive_step(x: list[float], seed: int, rate: float, y: float) -> None:
    row, mean = np.array(x), np.random.default_rng(seed).standard_normal(len(x))
    learner = ovi.Linear(loss=ovi.Hinge(), rule=ovi.Implicit(rate), family=prior(ovi.Point, mean, mean))
    new, step = learner.update(learner.init(len(x)), row, y)
    want = mean + min(rate, step.loss / (row @ row)) * y * row
    assert new.mean == pytest.approx(want, rel=1e-12, abs=1e-13)


def average_loss_without(spoiled: int, X: np.ndarray, y: np.ndarray, loss: ovi.Loss, rule: ovi.Rule) -> float:
    trace = ovi.learn(X, y, loss=loss, rule=rule, family=ovi.MeanField(box=None))
    return float(np.delete(trace.loss, spoiled).mean())


@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Hinge(), ovi.Absolute()], ids=name)
def test_one_huge_row_does_not_break_a_run(loss: ovi.Loss) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((800, 5)) / np.sqrt(5)
    signal = X @ np.array([2.0, -1.0, 0.5, 0.0, 1.0]) + 0.3 * rng.standard_normal(800)
    y = np.sign(signal) if isinstance(loss, ovi.Hinge) else signal
    spoiled = X.copy()
    spoiled[300] *= 1e6
    clean = average_loss_without(300, X, y, loss, ovi.Implicit(1.0))
    assert average_loss_without(300, spoiled, y, loss, ovi.Implicit(1.0)) < 1.5 * clean
    explicit = average_loss_without(300, spoiled, y, loss, ovi.SVB(1.0))
    assert explicit > 100.0 * clean


def stream(loss: ovi.Loss, count: int = 12, dim: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.standard_normal((count, dim)), labels(loss, rng, count)


@pytest.mark.parametrize(("loss", "family"), STEPS, ids=name)
def test_a_weight_is_a_rate_and_a_weight_of_zero_no_row(loss: ovi.Loss, family: type[ovi.Family]) -> None:
    X, y = stream(loss)
    start = prior(family, np.zeros(3), np.full(3, 0.6))
    weighted = ovi.learn(X, y, loss=loss, rule=ovi.Implicit(0.4), family=start, weights=np.full(12, 2.5))
    rated = ovi.learn(X, y, loss=loss, rule=ovi.Implicit(0.4 * 2.5), family=start)
    assert weighted.mean == pytest.approx(rated.mean, rel=EXACT, abs=1e-12)
    assert weighted.std == pytest.approx(rated.std, rel=EXACT)
    some = np.arange(12) % 3 > 0
    skipped = ovi.learn(X, y, loss=loss, rule=ovi.Implicit(0.4), family=start, weights=some.astype(float))
    absent = ovi.learn(X[some], y[some], loss=loss, rule=ovi.Implicit(0.4), family=start, weights=np.ones(8))
    assert np.array_equal(skipped.state.array, absent.state.array)


@pytest.mark.parametrize(("loss", "family"), STEPS, ids=name)
def test_any_split_into_blocks_gives_the_same_bits(loss: ovi.Loss, family: type[ovi.Family]) -> None:
    X, y = stream(loss)
    learner = ovi.Linear(loss=loss, rule=ovi.Implicit(0.7), family=prior(family, np.zeros(3), np.full(3, 0.6)))
    whole, _ = learner.update_many(learner.init(3), X, y)
    split = learner.init(3)
    for block in (slice(0, 1), slice(1, 7), slice(7, 12)):
        split, _ = learner.update_many(split, X[block], y[block])
    assert np.array_equal(whole.array, split.array)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_a_box_clips_the_step(loss: ovi.Loss) -> None:
    rng = np.random.default_rng(7)
    box, clipped = ovi.Box(mean=(-0.2, 0.3), std=(0.7, 1.0)), 0
    for _ in range(20):
        x, y = 2.0 * rng.standard_normal(4), labels(loss, rng, 1)[0]
        for family in [family for own, family in STEPS if own == loss]:
            inside = box if family is ovi.MeanField else ovi.Box(box.mean, std=None)  # the others take no bounds for stds
            mean, std = np.array([0.1, -0.1, 0.2, 0.0]), np.array([0.5, 0.9, 1.0, 0.4])
            free, held = (
                ovi.Linear(loss=loss, rule=ovi.Implicit(0.8), family=prior(family, mean, std, bounds))
                for bounds in (None, inside)
            )
            loose, _ = free.update(free.init(4), x, y)
            kept, _ = held.update(held.init(4), x, y)
            want = held.belief_family.project(loose.belief)
            assert np.array_equal(kept.mean, want.mean)
            assert np.array_equal(kept.std, want.std)
            clipped += not np.array_equal(loose.mean, kept.mean)
    assert clipped > 5


@pytest.mark.parametrize("family", FAMILIES)
def test_a_ridge_is_refused(family: type[ovi.Family]) -> None:
    with pytest.raises(ValueError, match=r"Implicit takes no ridge: .* use a smaller prior_std"):
        ovi.Linear(loss=ovi.Hinge(ridge=0.1), rule=ovi.Implicit(), family=family())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_count_whose_rate_overflows_is_refused(family: type[ovi.Family]) -> None:
    learner = ovi.Linear(loss=ovi.Poisson(), rule=ovi.Implicit(), family=prior(family, [1.0, 0.0], [1.0, 1.0]))
    state, _ = learner.update(learner.init(2), [0.5, 1.0], 2.0)
    before = state.array.copy()
    with pytest.raises(ovi.BadRow, match="overflow"):
        learner.update(state, [2000.0, 0.0], 1.0)
    assert np.array_equal(state.array, before)
