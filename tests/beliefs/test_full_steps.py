"""Each step with a full covariance against the problem it solves, its laws, and its digits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from helpers.any_loss import standing_for
from helpers.catalogue import labels, name, stream
from helpers.full_oracles import (
    CONDITIONING,
    FREE,
    LOSSES,
    RULES,
    UNEQUAL,
    argmin,
    assert_same,
    bayes,
    beliefs,
    divergence_from,
    events,
    expected_loss,
    flat,
    gradients,
    unflat,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinevi as ovi
from onlinevi.beliefs.full import FullBelief

PROBLEMS = [*((loss, FREE) for loss in LOSSES), (ovi.Squared(), UNEQUAL)]
RIDGED = [*PROBLEMS, (ovi.Squared(ridge=0.3), FREE)]
RNG = np.random.default_rng(0)
Divergence = Callable[[FullBelief], float]


# --- every step solves its problem


@pytest.mark.parametrize(("loss", "family"), RIDGED, ids=name)
def test_sva_is_the_argmin_of_all_gradients_against_the_prior(loss: ovi.Loss, family: ovi.FullCovariance) -> None:
    rate, (X, y) = 0.4, events(loss)
    found = beliefs(ovi.Linear(loss=loss, rule=ovi.SVA(rate), family=family), X, y)
    start, total = found[0], gradients(loss, X, y, found[:-1]).sum(axis=0)
    divergence = divergence_from(start)
    assert_same(found[-1], argmin(lambda q: float(total @ flat(*q)) + divergence(q) / rate, start))


@pytest.mark.parametrize(("loss", "family"), PROBLEMS, ids=name)
def test_svb_is_the_argmin_of_its_gradient_against_the_last_belief(loss: ovi.Loss, family: ovi.FullCovariance) -> None:
    rate, (X, y) = 0.4, events(loss)
    found = beliefs(ovi.Linear(loss=loss, rule=ovi.SVB(rate), family=family), X, y)
    for before, after, force in zip(found[:-1], found[1:], gradients(loss, X, y, found[:-1]), strict=True):
        divergence = divergence_from(before)

        def objective(q: FullBelief, divergence: Divergence = divergence, force: np.ndarray = force) -> float:
            return float(force @ flat(*q)) + divergence(q) / rate

        assert_same(after, argmin(objective, before))


@pytest.mark.parametrize(("loss", "family"), PROBLEMS, ids=name)
def test_the_implicit_step_is_the_argmin_of_the_loss_itself(loss: ovi.Loss, family: ovi.FullCovariance) -> None:
    rate, (X, y) = 0.8, events(loss)
    found = beliefs(ovi.Linear(loss=loss, rule=ovi.Implicit(rate), family=family), X, y)
    for before, after, x, label in zip(found[:-1], found[1:], X, y, strict=True):
        divergence = divergence_from(before)

        def objective(q: FullBelief, divergence: Divergence = divergence, x: np.ndarray = x, label: float = label) -> float:
            return expected_loss(loss, x, label, flat(*q)) + divergence(q) / rate

        assert_same(after, argmin(objective, before))


@pytest.mark.parametrize(("loss", "family"), RIDGED, ids=name)
def test_oga_el_is_a_gradient_step_that_keeps_the_diagonal_above_zero(loss: ovi.Loss, family: ovi.FullCovariance) -> None:
    rate, (X, y) = 0.15, events(loss)
    found = beliefs(ovi.Linear(loss=loss, rule=ovi.OGAEL(rate), family=family), X, y)
    scale = np.broadcast_to(np.square(family.prior_std), 2)
    scales = flat(scale, np.tile(scale, (2, 1)))  # the column's
    for before, after, force in zip(found[:-1], found[1:], gradients(loss, X, y, found[:-1]), strict=True):
        want = unflat(flat(*before) - rate * scales * force, 2)
        np.fill_diagonal(want.factor, np.maximum(np.diag(want.factor), 0.0))
        assert_same(after, want, 1e-9)


def test_oga_el_stops_a_diagonal_at_zero() -> None:
    found = beliefs(ovi.Linear(loss=ovi.Squared(), rule=ovi.OGAEL(3.0), family=FREE), *events(ovi.Squared()))
    assert (np.diag(found[1].factor) == 0.0).any()
    assert (np.diag(found[1].factor) >= 0.0).all()


@pytest.mark.parametrize(("loss", "family"), [*PROBLEMS, (ovi.Logistic(), FREE)], ids=name)
def test_ngvi_adds_the_curvature_to_the_precision_and_moves_with_the_new_covariance(
    loss: ovi.Loss, family: ovi.FullCovariance
) -> None:
    X, y = stream(loss, 40, 2)
    weights, step = RNG.exponential(size=40), ovi.PerSqrt(0.7)
    state = ovi.learn(X, y, loss=loss, rule=ovi.NGVI(step=step), family=family, weights=weights).state
    start = family.init(2)
    mean, precision = start.mean, np.linalg.inv(start.covariance)
    for t, (x, label, weight) in enumerate(zip(X, y, weights, strict=True), start=1):
        _, slope, curvature = loss(label, mean @ x, np.sqrt(x @ np.linalg.solve(precision, x)))
        precision = precision + 0.7 / np.sqrt(t) * weight * curvature * np.outer(x, x)
        mean = mean - 0.7 / np.sqrt(t) * weight * slope * np.linalg.solve(precision, x)
    np.testing.assert_allclose(state.mean, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(state.belief.covariance, np.linalg.inv(precision), rtol=1e-10, atol=1e-12)


# --- exact Bayes


@pytest.mark.parametrize("step", [1.0, 0.3, 4.0])
@pytest.mark.parametrize("make", [lambda step: ovi.NGVI(step=step), ovi.Implicit], ids=["NGVI", "Implicit"])
def test_with_the_squared_loss_it_is_bayes_at_one_and_tempered_at_other_rates(make, step: float) -> None:  # type: ignore[no-untyped-def]
    X, y = stream(ovi.Squared(), 120, 5)
    prior = RNG.standard_normal(5), RNG.random(5) + 0.5
    mean, covariance = bayes(X, y, step, *prior)
    family = ovi.FullCovariance(*(part.tolist() for part in prior), box=None)
    for order in (np.arange(120), np.arange(120)[::-1], np.random.default_rng(3).permutation(120)):
        belief = ovi.learn(X[order], y[order], loss=ovi.Squared(), rule=make(step), family=family).state.belief
        np.testing.assert_allclose(belief.mean, mean, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(belief.covariance, covariance, rtol=1e-10, atol=1e-13)


# --- laws


@pytest.mark.parametrize("rule", RULES, ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_rows_with_one_feature_each_make_it_mean_field(loss: ovi.Loss, rule: ovi.Rule) -> None:
    rng = np.random.default_rng(4)
    X, y = np.eye(3)[rng.integers(0, 3, 80)] * rng.standard_normal((80, 1)), labels(loss, rng, 80)
    prior = {"prior_mean": 0.1, "prior_std": 0.7}
    full = ovi.learn(X, y, loss=loss, rule=rule, family=ovi.FullCovariance(**prior, box=None))
    single = ovi.learn(X, y, loss=loss, rule=rule, family=ovi.MeanField(**prior, box=None))
    np.testing.assert_allclose(full.mean, single.mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(full.state.belief.factor, np.diag(single.std), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(full.loss, single.loss, rtol=1e-12, atol=1e-13)
    for sums in ("loss", "expected_loss", "product", "gradient_square"):
        assert getattr(full.state, sums) == pytest.approx(getattr(single.state, sums), rel=1e-12), sums


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_with_one_feature_it_is_mean_field(rule: ovi.Rule) -> None:
    X, y = stream(ovi.Hinge(), 100, 1)
    full = ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=FREE)
    single = ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=ovi.MeanField(box=None))
    np.testing.assert_allclose([full.mean, full.std], [single.mean, single.std], rtol=1e-12)


def permuted(loss: ovi.Loss, rule: ovi.Rule) -> tuple[FullBelief, FullBelief]:
    """A run, and one with its coordinates in another order, brought back to the first."""
    (X, y), order = stream(loss, 60, 4), np.array([2, 0, 3, 1])
    belief = ovi.learn(X, y, loss=loss, rule=rule, family=FREE).state.belief
    other = ovi.learn(X[:, order], y, loss=loss, rule=rule, family=FREE).state.belief
    back = np.argsort(order)
    return belief, FREE.from_covariance(other.mean[back], other.covariance[np.ix_(back, back)])


@pytest.mark.parametrize("rule", CONDITIONING, ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_the_order_of_coordinates_makes_no_difference_to_ngvi_and_implicit(loss: ovi.Loss, rule: ovi.Rule) -> None:
    belief, other = permuted(loss, rule)
    np.testing.assert_allclose(other.mean, belief.mean, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(other.covariance, belief.covariance, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("rule", [ovi.SVA(0.1), ovi.SVB(0.3)], ids=name)
def test_the_order_of_coordinates_matters_to_sva_and_svb(rule: ovi.Rule) -> None:
    belief, other = permuted(ovi.Squared(), rule)
    assert np.abs(other.covariance - belief.covariance).max() > 1e-3


@given(seed=st.integers(0, 2**32), loss=st.sampled_from(LOSSES), rule=st.sampled_from(CONDITIONING), size=st.floats(-3, 3))
@settings(max_examples=60)
def test_no_direction_grows_wider_with_ngvi_and_implicit(seed: int, loss: ovi.Loss, rule: ovi.Rule, size: float) -> None:
    rng = np.random.default_rng(seed)
    learner = ovi.Linear(loss=loss, rule=rule, family=FREE)
    state, directions = learner.init(3), rng.standard_normal((50, 3))
    for label in labels(loss, rng, 5):
        row = rng.standard_normal(3)
        row *= 10.0**size / (1.0 + 10.0**size * (isinstance(loss, ovi.Poisson)))
        after, _ = learner.update(state, row, float(label))
        assert (after.std <= state.std * (1.0 + 1e-15)).all()
        assert (learner.predict(after, directions)[1] <= learner.predict(state, directions)[1] * (1.0 + 1e-14)).all()
        state = after


def test_an_explicit_step_of_svb_can_widen_the_prediction() -> None:
    """At rate·e2·v² = 10 and five features of equal weight the prediction's std grows 4.6 times; alone each shrinks."""
    learner = ovi.Linear(loss=ovi.Squared(), rule=ovi.SVB(5.0), family=FREE)
    x = np.full(5, 5**-0.5)
    state, step = learner.update(learner.init(5), x, 0.0)
    assert step.spread == pytest.approx(1.0)
    assert learner.predict(state, x)[1] == pytest.approx(4.6, abs=0.05)
    single = ovi.Linear(loss=ovi.Squared(), rule=ovi.SVB(5.0), family=ovi.MeanField(box=None))
    assert single.predict(single.update(single.init(5), x, 0.0)[0], x)[1] < 1.0


# --- digits


SCALES = np.array([1.0, 10.0**-3.5, 1e-7])
MIXED = np.array([[1.0, 0.5, -0.3], [0.2, 1.0, 0.4], [0.6, -0.5, 1.0]])
WIDE = ovi.FullCovariance(prior_std=1e7, box=None)


def ill_conditioned(count: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Features whose scales, or whose principal axes, are seven orders of magnitude apart."""
    rng = np.random.default_rng(6)
    Z = rng.standard_normal((count, 3))
    turned = np.linalg.qr(MIXED)[0]
    X = {"scales": Z @ MIXED * SCALES, "scales, last first": Z @ MIXED * SCALES[::-1], "axes": Z * SCALES @ turned}[kind]
    return X, Z @ [1.0, 2.0, 3.0] + rng.standard_normal(count)


@cache
def exact(count: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, covariance and precision of Bayes on such a stream with the prior WIDE, in 50 digits."""
    X, y = ill_conditioned(count, kind)
    with mp.workdps(50):
        precision, product = mp.eye(3) / mp.mpf(1e7) ** 2, mp.zeros(3, 1)
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            row = mp.matrix(x)
            precision += 2 * row * row.T
            product += 2 * mp.mpf(label) * row
        covariance = precision**-1
        mean = covariance * product
        return tuple(np.array(part.tolist(), dtype=float) for part in (mean, covariance, precision))


@pytest.mark.parametrize("rule", [ovi.NGVI(), ovi.Implicit(1.0)], ids=name)
@pytest.mark.parametrize("kind", ["scales", "scales, last first", "axes"])
def test_an_ill_conditioned_stream_keeps_its_digits(kind: str, rule: ovi.Rule) -> None:
    X, y = ill_conditioned(1000, kind)
    mean, covariance, precision = exact(1000, kind)
    assert 5e13 < np.linalg.cond(precision) < 4e14
    belief = ovi.learn(X, y, loss=ovi.Squared(), rule=rule, family=WIDE).state.belief
    unit = np.sqrt(np.diag(covariance))
    # Apart by scale only, nothing is lost. Turned, a rounding of C's entries moves the narrow axes by the condition's root.
    allowed = 1e-8 if kind == "axes" else 1e-11
    assert np.abs((belief.covariance - covariance) / np.outer(unit, unit)).max() < allowed
    assert np.abs((belief.mean - mean[:, 0]) / (unit + np.abs(mean[:, 0]))).max() < allowed


@pytest.mark.compiled
@pytest.mark.parametrize("rule", RULES, ids=name)
def test_a_long_ill_conditioned_stream_leaves_a_covariance(rule: ovi.Rule) -> None:
    rng = np.random.default_rng(7)
    X = (
        rng.standard_normal((200_000, 5))
        @ (np.eye(5) + 0.3 * rng.standard_normal((5, 5)))
        * 10.0 ** np.array([0, -2, -4, -6, -7])
    )
    y = labels(ovi.Hinge(), rng, len(X))
    state = ovi.learn(X, y, loss=standing_for(ovi.Hinge()), rule=rule, family=FREE, record="none").state
    assert state.count == len(X)
    covariance = state.belief.covariance
    np.testing.assert_array_equal(covariance, covariance.T)
    diagonal = np.diag(state.belief.factor)
    assert np.isfinite(covariance).all()
    assert (diagonal >= 0.0 if isinstance(rule, ovi.OGAEL) else diagonal > 0.0).all()


@pytest.mark.compiled
@pytest.mark.parametrize("rule", [ovi.NGVI(), ovi.Implicit(1.0)], ids=name)
def test_two_hundred_thousand_events_lose_few_digits(rule: ovi.Rule) -> None:
    X, y = ill_conditioned(200_000, "scales")
    belief = ovi.learn(X, y, loss=standing_for(ovi.Squared()), rule=rule, family=WIDE, record="none").state.belief
    long = X.astype(np.longdouble) / SCALES
    precision = np.eye(3) * (1e-7 / SCALES) ** 2 + 2.0 * np.einsum("ij,ik->jk", long, long).astype(float)
    mean = np.linalg.solve(precision, 2.0 * np.einsum("ij,i->j", long, y).astype(float))
    scaled = belief.factor / SCALES**-1
    # C·P·Cᵀ is the identity.
    assert np.abs(scaled @ precision @ scaled.T - np.eye(3)).max() < 1e-11
    np.testing.assert_allclose(belief.mean * SCALES, mean, rtol=1e-9)
