"""Balls of means and stds: each step ends at the nearest point, and that is the argmin that the theorems speak of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from helpers.catalogue import GAUSSIAN_RULES, name, stream
from scipy import sparse
from scipy.optimize import minimize

import onlinevi as ovi
from onlinevi.beliefs import radii
from onlinevi.engine.types import Belief, Expected, Real
from onlinevi.ewa import Pool

UNFLOORED = [rule for rule in GAUSSIAN_RULES if not rule.std_floor]
"""A floor takes no ball of stds: tests/rules/test_ngvi.py."""
RADIUS = 0.3
BALL = ovi.Ball(mean=RADIUS)
NARROW = ovi.MeanField(prior_mean=0.05, prior_std=0.7, box=BALL)


@dataclass(frozen=True)
class Bent(ovi.Loss):
    """−½z² + yz: it bends down everywhere, so stds grow."""

    convex = False

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        return Expected(y * a - 0.5 * (a * a + v * v), y - a, -1.0 + 0.0 * a)


def in_ball(rule: ovi.Rule, box: ovi.Ball | None = BALL) -> ovi.Family:
    return ovi.MeanField(prior_std=0.7, box=box) if rule.gaussian else ovi.Point(box=box)


def nearest(vector: np.ndarray, radius: float) -> np.ndarray:
    """By a generic optimiser, among vectors of no more than this length."""
    inside = {"type": "ineq", "fun": lambda u: radius**2 - u @ u, "jac": lambda u: -2.0 * u}
    found = minimize(
        lambda u: (u - vector) @ (u - vector),
        vector * 0.1,
        jac=lambda u: 2.0 * (u - vector),
        constraints=[inside],
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 300},
    )
    return np.asarray(found.x)


@pytest.mark.parametrize("rule", [ovi.OGA(0.1), *UNFLOORED, ovi.Implicit()], ids=name)
def test_a_step_ends_at_the_nearest_point_of_the_ball(rule: ovi.Rule) -> None:
    X, y = stream(ovi.Hinge(), count=25, dim=4)
    held, free = (ovi.Linear(ovi.Hinge(), rule, in_ball(rule, box), average=False) for box in (BALL, None))
    state, bound = held.init(4, 25), 0
    for row, label in zip(3.0 * X, y, strict=True):
        there, _ = free.update(ovi.State(np.array(state.array), free.plan(4, 25)), row, label)
        state, _ = held.update(state, row, label)
        if np.linalg.norm(there.mean) > RADIUS:
            bound += 1
            np.testing.assert_allclose(state.mean, nearest(there.mean, RADIUS), atol=1e-6)
        else:
            np.testing.assert_allclose(state.mean, there.mean, atol=1e-15)
        np.testing.assert_allclose(state.std, there.std, atol=1e-15)  # stds of a convex loss never grow
    assert bound > 3


@pytest.mark.parametrize("rule", [ovi.OGAEL(0.2), ovi.SVB(0.2)], ids=name)
def test_stds_that_grow_are_scaled_back(rule: ovi.Rule) -> None:
    X, y = stream(ovi.Squared(), count=25, dim=3)
    held, free = (ovi.Linear(Bent(), rule, in_ball(rule, box), average=False) for box in (ovi.Ball(0.3, 1.1), None))
    state, radius, bound = held.init(3, 25), 1.1 * 0.7 * np.sqrt(3.0), 0
    assert radii(held.family, 3).std == pytest.approx(radius, rel=1e-15)
    for row, label in zip(X, y, strict=True):
        there, _ = free.update(ovi.State(np.array(state.array), free.plan(3, 25)), row, label)
        state, _ = held.update(state, row, label)
        bound += np.linalg.norm(there.std) > radius
        np.testing.assert_allclose(state.std, nearest(there.std, radius), atol=1e-6)
    assert bound > 3
    assert (state.std > 0.0).all()


def sva_argmin(totals: Belief, rate: float, radius: Belief, prior: Belief) -> Belief:
    """Of Σ⟨μ, gradients⟩ + KL(q‖prior)/rate over both balls, by a generic optimiser."""
    dim = len(totals.mean)

    def at(point: np.ndarray) -> float:
        mean, std = point[:dim], np.exp(point[dim:])
        ratio = std / prior.std
        kl = 0.5 * np.sum(((mean - prior.mean) / prior.std) ** 2 + ratio**2 - 1.0 - 2.0 * np.log(ratio))
        return float(totals.mean @ mean + totals.std @ std + kl / rate)

    inside = [
        {"type": "ineq", "fun": lambda point: radius.mean**2 - point[:dim] @ point[:dim]},
        {"type": "ineq", "fun": lambda point: radius.std**2 - np.exp(2.0 * point[dim:]).sum()},
    ]
    start = np.concatenate([prior.mean, np.log(0.9 * prior.std)])
    found = minimize(at, start, constraints=inside, method="SLSQP", options={"ftol": 1e-15, "maxiter": 500}).x
    return Belief(found[:dim], np.exp(found[dim:]))


@pytest.mark.parametrize("loss", [ovi.Hinge(), ovi.Squared()], ids=name)
def test_sva_in_a_ball_is_the_argmin_of_its_problem(loss: ovi.Loss) -> None:
    X, y = stream(loss, count=40, dim=3, seed=2)
    state = ovi.learn(X, y, loss=loss, rule=ovi.SVA(0.4), family=NARROW).state
    totals = Belief(state.vector("totals")[:3], state.vector("totals")[3:])
    free = NARROW.prior_mean - 0.4 * NARROW.prior_std**2 * totals.mean
    assert np.linalg.norm(free) > RADIUS  # the ball holds it
    want = sva_argmin(totals, 0.4, Belief(*radii(NARROW, 3)), NARROW.init(3))
    np.testing.assert_allclose(state.mean, want.mean, atol=2e-5)
    np.testing.assert_allclose(state.std, want.std, atol=2e-5)


def test_stds_that_would_grow_have_no_radial_argmin_under_sva() -> None:
    """Which is why it is refused: scaled back they miss the minimum over the ball."""
    totals, prior = Belief(np.zeros(2), np.array([-3.0, 0.5])), Belief(np.zeros(2), np.full(2, 0.7))
    radius = 0.7 * np.sqrt(2.0)
    want = sva_argmin(totals, 0.4, Belief(1.0, radius), prior).std
    free = ovi.SVA.new_belief(prior, None, totals, ovi.engine.Rates(0.4, 0.0, False), prior).std
    assert np.linalg.norm(free) > radius
    assert np.linalg.norm(want - free * radius / np.linalg.norm(free)) > 0.01
    with pytest.raises(ValueError, match="no radial projection"):
        ovi.Linear(Bent(), ovi.SVA(0.1), NARROW)
    ovi.Linear(Bent(), ovi.SVA(0.1), replace(NARROW, box=ovi.Ball(RADIUS, None)))


@pytest.mark.parametrize("rule", [ovi.SVA(0.5), ovi.OGAEL(0.5), ovi.NGVI()], ids=name)
def test_means_of_a_full_covariance_stay_in_their_ball(rule: ovi.Rule) -> None:
    X, _ = stream(ovi.Hinge(), count=30, dim=3)
    y = np.sign(X @ [1.0, -2.0, 0.5])
    family = ovi.FullCovariance(box=ovi.Ball(RADIUS, None))
    trace = ovi.learn(3.0 * X, y, loss=ovi.Hinge(), rule=rule, family=family)
    assert np.linalg.norm(trace.mean) == pytest.approx(RADIUS, rel=1e-12)
    if isinstance(rule, ovi.SVA):
        free = -0.5 * trace.state.gradient
        np.testing.assert_allclose(trace.mean, RADIUS * free / np.linalg.norm(free), rtol=1e-12)


@pytest.mark.parametrize("rule", [ovi.OGA(0.5), *UNFLOORED], ids=name)
def test_sparse_rows_forgetting_and_splits(rule: ovi.Rule) -> None:
    X, y = stream(ovi.Hinge(), count=30, dim=5)
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0.0
    learner = ovi.Linear(ovi.Hinge(), rule, in_ball(rule), discount=0.95 if rule.recursive else 1.0)
    whole, _ = learner.update_many(learner.init(5, 30), 3.0 * X, y)
    thin, _ = learner.update_many(learner.init(5, 30), sparse.csr_matrix(3.0 * X), y)
    part, _ = learner.update_many(learner.init(5, 30), 3.0 * X[:11], y[:11])
    parts, _ = learner.update_many(part, 3.0 * X[11:], y[11:])
    assert whole == parts == thin
    assert np.linalg.norm(whole.mean) <= RADIUS * (1.0 + 1e-12)


def test_float32_and_pools() -> None:
    X, y = stream(ovi.Hinge(), count=40, dim=5)
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0.0
    exact, single = (
        ovi.learn(3.0 * X, y, loss=ovi.Hinge(), rule=ovi.SVA(0.5), family=in_ball(ovi.SVA()), dtype=kind)
        for kind in ("float64", "float32")
    )
    np.testing.assert_allclose(single.mean, exact.mean, atol=1e-5)
    held, free = (ovi.Linear(ovi.Hinge(), ovi.SVA(0.5), in_ball(ovi.SVA(), box)) for box in (BALL, None))
    pool = Pool([held, free], rate=1.0)
    assert pool.run(3.0 * X, y).state.learners[0].mean.tolist() == exact.mean.tolist()
    assert pool.run(sparse.csr_matrix(3.0 * X), y).state.learners[0].mean.tolist() == exact.mean.tolist()


def test_a_file_holds_a_ball(tmp_path: Path) -> None:
    X, y = stream(ovi.Hinge(), count=30, dim=5)
    learner = ovi.Linear(ovi.Hinge(), ovi.SVB(), in_ball(ovi.SVB()))
    state, _ = learner.update_many(learner.init(5), X, y)
    ovi.save(tmp_path / "ball.ovi", learner, state)
    saved = ovi.load(tmp_path / "ball.ovi")
    assert (saved.learner, saved.state) == (learner, state)


def test_a_length_that_overflows_when_squared() -> None:
    vector = np.array([3e200, -4e200])
    family = ovi.Point(box=ovi.Ball(10.0))
    state = ovi.learn([[1.0, -1.0]], [1.0], loss=ovi.Absolute(), rule=ovi.OGA(1e200), family=family).state
    np.testing.assert_allclose(state.mean, np.array([1.0, -1.0]) * 10.0 / np.sqrt(2.0), rtol=1e-12)
    np.testing.assert_allclose(family.project(Belief(vector * 1e-200, np.zeros(2))).mean, [3.0, -4.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ovi.Ball(mean=0.0), "a radius must be > 0"),
        (lambda: ovi.Ball(std=0.5), "so needs a number ≥ 1"),
        (lambda: ovi.MeanField(2.0, 1.0, ovi.Ball(3.0)).prior_and_box(4), "must lie in the ball"),
        (lambda: ovi.MeanField(0.0, [1.0, 2.0], ovi.Ball()).prior_and_box(2), "give one prior_std"),
        (lambda: ovi.FullCovariance(box=ovi.Ball()), r"set Ball\(mean=…, std=None\)"),
        (lambda: NARROW.widened(9), "use a Box"),
        (lambda: ovi.batch_vb(np.eye(2), [1.0, 2.0], loss=ovi.Squared(), rate=1.0, family=NARROW), "found in a box"),
    ],
)
def test_what_a_ball_cannot_be_is_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        make()


def test_new_columns_join_in_a_ball() -> None:
    X, y = stream(ovi.Hinge(), count=40, dim=4)
    X[:20, 3] = 0.0
    learner = ovi.Linear(ovi.Hinge(), ovi.SVB(), in_ball(ovi.SVB()))
    thin, _ = learner.update_many(learner.init(3), 3.0 * X[:20, :3], y[:20])
    wide, _ = learner.update_many(learner.widen(thin, 4), 3.0 * X[20:], y[20:])
    at_once, _ = learner.update_many(learner.init(4), 3.0 * X, y)
    np.testing.assert_allclose(wide.mean, at_once.mean, atol=1e-14)
