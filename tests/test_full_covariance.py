"""Full covariances: each step against the problem it solves, its laws, its digits, and what the package says about them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from adversaries import BOX, OBLIVIOUS, Oblivious
from catalogue import labels, name, stream
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.certificate import SquaredSums, certificate
from onlinevi.families.full import FullBelief, FullExpectation, FullNatural

LOSSES = [ovi.Squared(), ovi.Hinge(), ovi.Poisson()]
FREE = ovi.FullCovariance(box=None)
RULES = [ovi.SVA(0.1), ovi.SVB(ovi.PerSqrt(0.3)), ovi.NGVI(step=0.7), ovi.OGAEL(0.1), ovi.Implicit(0.8)]
CONDITIONING = [ovi.NGVI(step=0.7), ovi.Implicit(0.8)]
"""Rules that add a multiple of xxᵀ to the precision."""
UNEQUAL = ovi.FullCovariance([0.3, -0.5], [0.5, 1.7], box=None)
"""A prior of its own for each coordinate."""
PROBLEMS = [*((loss, FREE) for loss in LOSSES), (ovi.Hinge(), UNEQUAL)]
RIDGED = [*PROBLEMS, (ovi.Squared(ridge=0.3), FREE)]
RNG = np.random.default_rng(0)


def random_belief(seed: int, dim: int = 3) -> FullBelief:
    rng = np.random.default_rng(seed)
    factor = np.triu(rng.standard_normal((dim, dim)), 1) + np.diag(rng.random(dim) + 0.3)
    return FullBelief(rng.standard_normal(dim), factor)


Q, P = random_belief(1), random_belief(2)


# --- dense oracles


def dense_kl(mean: np.ndarray, covariance: np.ndarray, other: np.ndarray, other_covariance: np.ndarray) -> float:
    precision, shift = np.linalg.inv(other_covariance), mean - other
    logs = np.linalg.slogdet(other_covariance)[1] - np.linalg.slogdet(covariance)[1]
    return 0.5 * float(shift @ precision @ shift + np.trace(precision @ covariance) + logs - len(mean))


def flat(mean: np.ndarray, factor: np.ndarray) -> np.ndarray:
    return np.concatenate([mean, factor[np.triu_indices(len(mean))]])


def unflat(point: np.ndarray, dim: int) -> FullBelief:
    factor = np.zeros((dim, dim))
    factor[np.triu_indices(dim)] = point[dim:]
    return FullBelief(point[:dim], factor)


def expected_loss(loss: ovi.Loss, x: np.ndarray, y: float, point: np.ndarray) -> float:
    """E_q[loss], ridge included, from its definition in (mean, C)."""
    belief = unflat(point, len(x))
    own = float(loss(y, belief.mean @ x, np.linalg.norm(belief.factor @ x)).value)
    return own + 0.5 * loss.ridge * float(point @ point)


def gradient(function: Callable[[np.ndarray], float], point: np.ndarray, size: float = 1e-3) -> np.ndarray:
    """By central differences whose first two errors cancel."""

    def slope(direction: np.ndarray) -> float:
        difference = [
            (function(point + h * direction) - function(point - h * direction)) / (2.0 * h) for h in (size, 2 * size, 4 * size)
        ]
        return (64.0 * difference[0] - 20.0 * difference[1] + difference[2]) / 45.0

    return np.array([slope(direction) for direction in np.eye(len(point))])


def argmin(objective: Callable[[FullBelief], float], start: FullBelief) -> FullBelief:
    """A generic optimiser over the mean, the logs of C's diagonal, and the rest of C."""
    dim = len(start.mean)
    diagonal = dim + np.flatnonzero(np.equal(*np.triu_indices(dim)))

    def belief(point: np.ndarray) -> FullBelief:
        entries = point.copy()
        entries[diagonal] = np.exp(point[diagonal])
        return unflat(entries, dim)

    point = flat(start.mean, start.factor)
    point[diagonal] = np.log(point[diagonal])
    for _ in range(2):
        wanted = partial(gradient, lambda p: objective(belief(p)))
        point = minimize(lambda p: objective(belief(p)), point, jac=wanted, method="BFGS", options={"gtol": 1e-11}).x
    return belief(point)


def assert_same(got: FullBelief, want: FullBelief, tolerance: float = 1e-7) -> None:
    np.testing.assert_allclose(got.mean, want.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(got.factor, want.factor, rtol=tolerance, atol=tolerance)


def beliefs(learner: ovi.Linear, X: np.ndarray, y: np.ndarray) -> list[FullBelief]:
    """Before the first event, and after each."""
    state = learner.init(X.shape[1], len(y))
    found = [state.belief]
    for row, label in zip(X, y, strict=True):
        state, _ = learner.update(state, row, float(label))
        found.append(state.belief)
    return found


def gradients(loss: ovi.Loss, X: np.ndarray, y: np.ndarray, before: list[FullBelief]) -> np.ndarray:
    """Of each expected loss at the belief before it, in (mean, C), by differences."""
    return np.array(
        [gradient(partial(expected_loss, loss, x, label), flat(*q)) for x, label, q in zip(X, y, before, strict=True)]
    )


def events(loss: ovi.Loss, dim: int = 2, count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return 0.7 * rng.standard_normal((count, dim)), labels(loss, rng, count)


# --- every step solves its problem


@pytest.mark.parametrize(("loss", "family"), RIDGED, ids=name)
def test_sva_is_the_argmin_of_all_gradients_against_the_prior(loss: ovi.Loss, family: ovi.FullCovariance) -> None:
    rate, (X, y) = 0.4, events(loss)
    found = beliefs(ovi.Linear(loss=loss, rule=ovi.SVA(rate), family=family), X, y)
    start, total = found[0], gradients(loss, X, y, found[:-1]).sum(axis=0)

    def objective(q: FullBelief) -> float:
        return float(total @ flat(*q)) + dense_kl(q.mean, q.covariance, start.mean, start.covariance) / rate

    assert_same(found[-1], argmin(objective, start))


@pytest.mark.parametrize(("loss", "family"), PROBLEMS, ids=name)
def test_svb_is_the_argmin_of_its_gradient_against_the_last_belief(loss: ovi.Loss, family: ovi.FullCovariance) -> None:
    rate, (X, y) = 0.4, events(loss)
    found = beliefs(ovi.Linear(loss=loss, rule=ovi.SVB(rate), family=family), X, y)
    for before, after, force in zip(found[:-1], found[1:], gradients(loss, X, y, found[:-1]), strict=True):

        def objective(q: FullBelief, before: FullBelief = before, force: np.ndarray = force) -> float:
            return float(force @ flat(*q)) + dense_kl(q.mean, q.covariance, before.mean, before.covariance) / rate

        assert_same(after, argmin(objective, before))


@pytest.mark.parametrize(("loss", "family"), PROBLEMS, ids=name)
def test_the_implicit_step_is_the_argmin_of_the_loss_itself(loss: ovi.Loss, family: ovi.FullCovariance) -> None:
    rate, (X, y) = 0.8, events(loss)
    found = beliefs(ovi.Linear(loss=loss, rule=ovi.Implicit(rate), family=family), X, y)
    for before, after, x, label in zip(found[:-1], found[1:], X, y, strict=True):

        def objective(q: FullBelief, before: FullBelief = before, x: np.ndarray = x, label: float = label) -> float:
            divergence = dense_kl(q.mean, q.covariance, before.mean, before.covariance)
            return expected_loss(loss, x, label, flat(*q)) + divergence / rate

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


def bayes(X: np.ndarray, y: np.ndarray, step: float, prior_mean: np.ndarray, prior_std: np.ndarray) -> tuple:
    precision = np.diag(prior_std**-2.0) + 2.0 * step * X.T @ X
    return np.linalg.solve(precision, prior_mean / prior_std**2 + 2.0 * step * X.T @ y), np.linalg.inv(precision)


@pytest.mark.parametrize("step", [1.0, 0.3, 4.0])
@pytest.mark.parametrize("make", [lambda step: ovi.NGVI(step=step), ovi.Implicit], ids=["NGVI", "Implicit"])
def test_with_the_squared_loss_it_is_bayes_at_one_and_tempered_at_other_rates(make, step: float) -> None:  # type: ignore[no-untyped-def]
    X, y = stream(ovi.Squared(), 300, 5)
    prior = RNG.standard_normal(5), RNG.random(5) + 0.5
    mean, covariance = bayes(X, y, step, *prior)
    family = ovi.FullCovariance(*(part.tolist() for part in prior), box=None)
    for order in (np.arange(300), np.arange(300)[::-1], np.random.default_rng(3).permutation(300)):
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
@settings(max_examples=100)
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


def exact(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, covariance and precision of Bayes with the prior WIDE, in 50 digits."""
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
    X, y = ill_conditioned(2500, kind)
    mean, covariance, precision = exact(X, y)
    assert 5e13 < np.linalg.cond(precision) < 4e14
    belief = ovi.learn(X, y, loss=ovi.Squared(), rule=rule, family=WIDE).state.belief
    unit = np.sqrt(np.diag(covariance))
    # Apart by scale only, nothing is lost. Turned, a rounding of C's entries moves the narrow axes by the condition's root.
    allowed = 1e-8 if kind == "axes" else 1e-11
    assert np.abs((belief.covariance - covariance) / np.outer(unit, unit)).max() < allowed
    assert np.abs((belief.mean - mean[:, 0]) / (unit + np.abs(mean[:, 0]))).max() < allowed


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_a_long_ill_conditioned_stream_leaves_a_covariance(rule: ovi.Rule) -> None:
    rng = np.random.default_rng(7)
    X = (
        rng.standard_normal((200_000, 5))
        @ (np.eye(5) + 0.3 * rng.standard_normal((5, 5)))
        * 10.0 ** np.array([0, -2, -4, -6, -7])
    )
    y = labels(ovi.Hinge(), rng, len(X))
    state = ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=FREE, record="none").state
    assert state.count == len(X)
    covariance = state.belief.covariance
    np.testing.assert_array_equal(covariance, covariance.T)
    diagonal = np.diag(state.belief.factor)
    assert np.isfinite(covariance).all()
    assert (diagonal >= 0.0 if isinstance(rule, ovi.OGAEL) else diagonal > 0.0).all()


@pytest.mark.parametrize("rule", [ovi.NGVI(), ovi.Implicit(1.0)], ids=name)
def test_two_hundred_thousand_events_lose_few_digits(rule: ovi.Rule) -> None:
    X, y = ill_conditioned(200_000, "scales")
    belief = ovi.learn(X, y, loss=ovi.Squared(), rule=rule, family=WIDE, record="none").state.belief
    long = X.astype(np.longdouble) / SCALES
    precision = np.eye(3) * (1e-7 / SCALES) ** 2 + 2.0 * np.einsum("ij,ik->jk", long, long).astype(float)
    mean = np.linalg.solve(precision, 2.0 * np.einsum("ij,i->j", long, y).astype(float))
    scaled = belief.factor / SCALES**-1
    # C·P·Cᵀ is the identity.
    assert np.abs(scaled @ precision @ scaled.T - np.eye(3)).max() < 1e-11
    np.testing.assert_allclose(belief.mean * SCALES, mean, rtol=1e-9)


# --- the learner


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_blocks_and_single_events_give_the_same_bits(rule: ovi.Rule) -> None:
    X, y = stream(ovi.Hinge(), 60, 5)
    learner = ovi.Linear(loss=ovi.Hinge(), rule=rule, family=ovi.FullCovariance(box=ovi.Box(mean=(-0.1, 0.1), std=None)))
    whole, trace = learner.update_many(learner.init(5), X, y)
    thirds = single = learner.init(5)
    furthest = 0.0
    for k in range(3):
        thirds, _ = learner.update_many(thirds, X[20 * k : 20 * (k + 1)], y[20 * k : 20 * (k + 1)])
    for t in range(60):
        mean, std = learner.predict(single, X[t])
        single, step = learner.update(single, X[t], float(y[t]))
        assert (mean, std) == pytest.approx((step.prediction, step.spread), rel=1e-13, abs=1e-14)
        furthest = max(furthest, np.abs(single.mean).max())
        assert (step.prediction, step.spread, step.loss) == (trace.prediction[t], trace.spread[t], trace.loss[t])
    assert thirds == whole
    assert single == whole
    assert furthest == 0.1, "the box holds"


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_sparse_rows_and_float32_rows_are_the_same_rows(rule: ovi.Rule) -> None:
    rng = np.random.default_rng(8)
    X, y = stream(ovi.Hinge(), 60, 5)
    X = (X * (rng.random(X.shape) < 0.5)).astype(np.float32)
    run = partial(ovi.learn, y=y, loss=ovi.Hinge(), rule=rule, family=FREE)
    dense = run(X.astype(float)).state
    assert run(sparse.csr_matrix(X.astype(float))).state == dense
    if rule in RULES[:3]:  # one of each way to take a step
        np.testing.assert_allclose(run(X).state.array, dense.array, rtol=1e-12, atol=1e-13)
    learner = ovi.Linear(loss=ovi.Hinge(), rule=rule, family=FREE)
    for got, want in zip(learner.predict(dense, sparse.csr_matrix(X)), learner.predict(dense, X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("rule", "doubled"),
    [
        (ovi.SVA(0.1), ovi.SVA(0.2)),
        (ovi.SVB(0.1), ovi.SVB(0.2)),
        (ovi.NGVI(step=0.5), ovi.NGVI(step=1.0)),
        (ovi.OGAEL(0.1), ovi.OGAEL(0.2)),
        (ovi.Implicit(0.5), ovi.Implicit(1.0)),
    ],
    ids=name,
)
def test_a_weight_of_two_is_twice_the_loss(rule: ovi.Rule, doubled: ovi.Rule) -> None:
    X, y = stream(ovi.Hinge(), 60, 4)
    weighted = ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=FREE, weights=np.full(60, 2.0)).state
    plain = ovi.learn(X, y, loss=ovi.Hinge(), rule=doubled, family=FREE).state
    assert_same(weighted.belief, plain.belief, 1e-11)
    assert weighted.loss == pytest.approx(2.0 * plain.loss, rel=1e-11)
    np.testing.assert_allclose(weighted.gradient, 2.0 * plain.gradient, rtol=1e-10, atol=1e-11)
    absent = ovi.learn(X, y, loss=ovi.Hinge(), rule=doubled, family=FREE, weights=np.repeat([1.0, 0.0], 30)).state
    first = ovi.learn(X[:30], y[:30], loss=ovi.Hinge(), rule=doubled, family=FREE).state
    assert_same(absent.belief, first.belief, 1e-15)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_the_sums_of_a_run_are_those_of_their_definitions(rule: ovi.Rule) -> None:
    loss = ovi.Hinge()
    X, y = events(loss, count=12)
    learner = ovi.Linear(loss=loss, rule=rule, family=UNEQUAL)
    found = beliefs(learner, X, y)[:-1]
    state = ovi.learn(X, y, loss=loss, rule=rule, family=UNEQUAL).state
    slopes = gradients(loss, X, y, found)
    np.testing.assert_allclose(state.gradient, slopes[:, :2].sum(axis=0), rtol=1e-6, atol=1e-8)
    assert state.gradient_square == pytest.approx(np.square(slopes).sum(), rel=1e-6)
    assert state.product == pytest.approx(sum(g @ flat(*q) for g, q in zip(slopes, found, strict=True)), rel=1e-6)
    decisions = [loss(label, q.mean @ x).value for x, label, q in zip(X, y, found, strict=True)]
    assert state.loss == pytest.approx(np.sum(decisions), rel=1e-12)
    np.testing.assert_allclose(state.average_mean, np.mean([q.mean for q in found], axis=0), rtol=1e-11, atol=1e-12)


def test_a_state_is_a_value() -> None:
    X, y = stream(ovi.Hinge(), 60, 4)
    state = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.NGVI(), family=FREE).state
    np.testing.assert_allclose(state.std, np.sqrt(np.diag(state.belief.covariance)), rtol=1e-15)
    np.testing.assert_array_equal(state.belief.factor, np.triu(state.belief.factor))
    for vector in (state.array, state.mean, state.belief.mean, state.belief.factor, state.gradient):
        with pytest.raises(ValueError, match="read-only"):
            vector[0] = 1.0
    for twin in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        assert twin == state
        learner = ovi.Linear(loss=ovi.Hinge(), rule=ovi.NGVI(), family=FREE)
        assert learner.update(twin, X[0], 1.0) == learner.update(state, X[0], 1.0)
    packed = FREE.pack(state.belief)
    assert len(packed) == FREE.belief_size(4) == 14
    for got, want in zip(FREE.unpack(packed, 4), state.belief, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_schedule_and_the_default_rate_of_svb_are_per_sqrt() -> None:
    X, y = stream(ovi.Hinge(), 60, 4)
    run = partial(ovi.learn, X, y, loss=ovi.Hinge(), family=FREE)
    np.testing.assert_array_equal(run(rule=ovi.SVB()).state.array, run(rule=ovi.SVB(ovi.PerSqrt(1.0))).state.array)
    by_hand = [beliefs(ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB(), family=FREE), X[:2], y[:2])]
    assert by_hand[0][1].mean == pytest.approx(-ovi.Hinge()(y[0], 0.0, np.linalg.norm(X[0])).slope * X[0])


# --- bad and small input


@pytest.mark.parametrize("rule", RULES, ids=name)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_a_bad_row_is_refused_and_what_was_learned_before_it_is_kept(bad: float, rule: ovi.Rule) -> None:
    X, y = stream(ovi.Hinge(), 20, 3)
    X[7, 1] = bad
    with pytest.raises(ovi.BadRow, match="row 7") as caught:
        ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=FREE)
    before = ovi.learn(X[:7], y[:7], loss=ovi.Hinge(), rule=rule, family=FREE, horizon=20).state
    assert caught.value.trace is not None
    np.testing.assert_array_equal(caught.value.trace.state.array, before.array)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_rows_of_any_size_leave_a_finite_belief(rule: ovi.Rule) -> None:
    for size in (0.0, 1e-300, 1e-160, 1e-20, 1e3, 1e30):
        X = np.array([[1.0, -2.0, 0.5], [1.0, -2.0, 0.5], [0.0, 3.0, 1.0]]) * size
        state = ovi.learn(X, [1.0, -1.0, 1.0], loss=ovi.Hinge(), rule=rule, family=FREE).state
        assert state.count == 3
        assert np.isfinite(state.array).all()
        np.testing.assert_allclose(state.gradient, _hinge_gradient(X, rule), rtol=1e-12, atol=0.0)


def _hinge_gradient(X: np.ndarray, rule: ovi.Rule) -> np.ndarray:
    """Σ e1·x along the run, event by event."""
    learner, total = ovi.Linear(loss=ovi.Hinge(), rule=rule, family=FREE), np.zeros(3)
    state = learner.init(3)
    for x, label in zip(X, [1.0, -1.0, 1.0], strict=True):
        total += ovi.Hinge()(label, *learner.predict(state, x)).slope * x
        state, _ = learner.update(state, x, label)
    return total


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_one_row_and_constant_columns_are_streams_too(rule: ovi.Rule) -> None:
    one = ovi.learn(np.ones((1, 3)), [1.0], loss=ovi.Squared(), rule=rule, family=FREE).state
    assert one.mean == pytest.approx(np.full(3, one.mean[0]))
    assert one.mean[0] > 0.0
    X, y = np.ones((500, 3)), np.full(500, 3.0)
    X[:, 2] = 0.0
    state = ovi.learn(X, y, loss=ovi.Squared(), rule=rule, family=FREE).state
    assert np.isfinite(state.array).all()
    assert state.mean.sum() == pytest.approx(3.0, abs=0.1)
    assert (state.mean[2], state.std[2]) == (0.0, pytest.approx(1.0)), "a column of zeros teaches nothing"


def test_two_hundred_features_are_bayes_too() -> None:
    X, y = stream(ovi.Squared(), 300, 200)
    mean, covariance = bayes(X, y, 1.0, np.zeros(200), np.ones(200))
    for rule in (ovi.NGVI(), ovi.Implicit(1.0)):
        belief = ovi.learn(X, y, loss=ovi.Squared(), rule=rule, family=FREE).state.belief
        np.testing.assert_allclose(belief.mean, mean, atol=1e-12)
        np.testing.assert_allclose(belief.covariance, covariance, atol=1e-12)


# --- what the family says about its beliefs


def test_kl_is_the_dense_formula() -> None:
    assert FREE.kl(Q, P) == pytest.approx(dense_kl(Q.mean, Q.covariance, P.mean, P.covariance), rel=1e-12)
    family = ovi.FullCovariance([0.3, -0.5, 0.1], [0.5, 2.0, 1.3])
    prior = family.init(3)
    assert family.kl(Q) == pytest.approx(dense_kl(Q.mean, Q.covariance, prior.mean, prior.covariance), rel=1e-12)
    assert family.kl(prior) == 0.0
    assert FREE.kl(Q, Q) == pytest.approx(0.0, abs=1e-14)
    own = ovi.Belief(np.array([0.3, -1.0]), np.array([0.4, 2.0]))
    assert FREE.kl(FullBelief(own.mean, np.diag(own.std))) == pytest.approx(ovi.MeanField().kl(own), rel=1e-14)


def test_kl_with_a_flat_belief_is_infinite() -> None:
    flat_belief = FullBelief(np.zeros(3), np.triu(np.ones((3, 3))) * [1.0, 0.0, 1.0])
    assert FREE.kl(flat_belief) == np.inf
    assert FREE.kl(Q, flat_belief) == np.inf


def test_samples_have_the_belief_as_their_law() -> None:
    draws = FREE.sample(Q, np.random.default_rng(1), 200_000)
    np.testing.assert_allclose(draws.mean(axis=0), Q.mean, atol=5.0 * Q.std.max() / 447)
    size = np.outer(Q.std, Q.std)
    np.testing.assert_allclose(np.cov(draws.T) / size, Q.covariance / size, atol=0.02)
    assert FREE.sample(Q, np.random.default_rng(1)).shape == (3,)
    np.testing.assert_allclose(FREE.sample(Q, np.random.default_rng(1)), draws[0], rtol=1e-14)


@given(seed=st.integers(0, 2**32), dim=st.integers(1, 6))
def test_parameters_go_there_and_back(seed: int, dim: int) -> None:
    belief = random_belief(seed, dim)
    condition = np.linalg.cond(belief.factor)
    natural = FREE.natural(belief)
    np.testing.assert_allclose(natural.second @ belief.covariance, -0.5 * np.eye(dim), atol=1e-14 * condition**2)
    for back in (
        FREE.from_natural(natural),
        FREE.from_expectation(FREE.expectation(belief)),
        FREE.from_covariance(belief.mean, belief.covariance),
    ):
        np.testing.assert_array_equal(back.factor, np.triu(back.factor))
        assert_same(back, belief, 1e-14 * condition**2 * (1.0 + belief.mean @ belief.mean))
    assert_same(FREE.project(belief), belief, 0.0)
    assert (np.abs(ovi.FullCovariance(box=ovi.Box(mean=(-0.1, 0.1), std=None)).project(belief).mean) <= 0.1).all()


def test_parameters_of_no_gaussian_are_refused() -> None:
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="not positive definite"):
        FREE.from_covariance(np.zeros(2), indefinite)
    with pytest.raises(ValueError, match="no Gaussian has these natural parameters"):
        FREE.from_natural(FullNatural(np.zeros(2), -indefinite))
    with pytest.raises(ValueError, match="not positive definite"):
        FREE.from_expectation(FullExpectation(np.ones(2), np.eye(2)))
    with pytest.raises(ValueError, match=r"singular.*NGVI or Implicit"):
        FREE.natural(FullBelief(np.zeros(2), np.diag([1.0, 0.0])))


def test_merging_shards_is_bayes_on_all_of_them() -> None:
    X, y = stream(ovi.Squared(), 90, 4)
    family = ovi.FullCovariance(prior_mean=0.5, prior_std=[2.0, 1.0, 0.5, 3.0], box=None)

    def run(part: slice) -> FullBelief:
        return ovi.learn(X[part], y[part], loss=ovi.Squared(), rule=ovi.NGVI(), family=family).state.belief

    whole, merged = run(slice(None)), family.merge([run(slice(0, 30)), run(slice(30, 45)), run(slice(45, 90))])
    assert_same(merged, whole, 1e-9)
    assert_same(family.merge([whole]), whole, 1e-12)
    with pytest.raises(ValueError, match="nothing to merge"):
        family.merge([])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ovi.Linear(loss=ovi.Hinge(), rule=ovi.NGVI(rate=1.0), family=FREE), r"O\(d³\).*rate=None"),
        (lambda: ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB(ovi.PaperSVB(1.0)), family=FREE), r"PerSqrt\(1\)"),
        (lambda: ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB(ovi.StronglyConvex(1.0)), family=FREE), r"PerSqrt\(1\)"),
        (lambda: ovi.Linear(loss=ovi.Hinge(), rule=ovi.OGA(0.1), family=FREE), r"OGA needs Point\(\)"),
        (lambda: ovi.Linear(loss=ovi.Hinge(ridge=0.1), rule=ovi.SVB(), family=FREE), "ridge.*prior_std"),
        (lambda: ovi.Linear(loss=ovi.Hinge(ridge=0.1), rule=ovi.NGVI(), family=FREE), "ridge.*prior_std"),
        (lambda: ovi.Linear(loss=ovi.Hinge(ridge=0.1), rule=ovi.Implicit(), family=FREE), "ridge.*prior_std"),
        (lambda: ovi.FullCovariance(box=ovi.Box()), "means only"),
        (lambda: ovi.FullCovariance(prior_std=0.0), "must be > 0"),
        (lambda: ovi.FullCovariance(prior_std=[1.0, 1.0]).frame(3), "prior_std has 2 values, the data 3 features"),
        (lambda: ovi.FullCovariance(prior_mean=30.0).frame(2), "must lie in the box"),
    ],
)
def test_what_it_cannot_do_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# --- guarantees


BOXED = ovi.FullCovariance(prior_std=0.3, box=ovi.Box(mean=(-BOX, BOX), std=None))


@pytest.mark.parametrize("adversary", OBLIVIOUS, ids=lambda a: a.__name__)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_no_stream_breaks_the_certificate(loss: ovi.Loss, adversary: Oblivious) -> None:
    X, y = adversary(loss, np.random.default_rng(7), 60, 3)
    for rule in RULES:
        try:
            trace = ovi.learn(X, y, loss=loss, rule=rule, family=BOXED, record="none")
        except ovi.BadRow as stopped:  # an explicit step grew until e^z overflowed: what came before has a certificate too
            trace = stopped.trace
        live = certificate(trace)
        rows, seen = X[: live.count], y[: live.count]
        best = ovi.hindsight(rows, seen, loss=loss, box=BOX)
        points = np.vstack([np.random.default_rng(8).uniform(-BOX, BOX, (20, 3)), best.mean, np.zeros(3)])
        totals = np.array([loss(seen, rows @ point).value.sum() for point in points])
        assert (live.loss - totals <= live.against(points) + live.rounding()).all(), rule
        assert live.loss - live.count * best.value <= live.regret + live.rounding(), rule
        assert live.lower_bound <= best.value + live.rounding(), rule


@given(seed=st.integers(0, 2**32), rule=st.sampled_from(RULES), ridge=st.sampled_from([0.0, 0.2]))
@settings(max_examples=40)
def test_the_certificate_holds_with_weights_and_a_ridge(seed: int, rule: ovi.Rule, ridge: float) -> None:
    rng = np.random.default_rng(seed)
    loss = ovi.Squared(ridge=ridge if isinstance(rule, ovi.SVA | ovi.OGAEL) else 0.0)
    X, y = rng.standard_normal((30, 3)) / 2.0, rng.standard_normal(30)
    for weights in (rng.exponential(size=30), np.ones(30)):
        state = ovi.learn(X, y, loss=loss, rule=rule, family=BOXED, weights=weights).state
        live = certificate(state)
        points = rng.uniform(-BOX, BOX, (30, 3))
        costs = np.array([loss(y, X @ point).value @ weights for point in points])
        costs += 0.5 * loss.ridge * weights.sum() * np.square(points).sum(axis=1)
        regrets = live.loss - costs
        assert (regrets <= live.against(points) + live.rounding()).all()
        assert live.against(points).max() <= live.regret + live.rounding()
        sums = SquaredSums.empty(3, ridge=loss.ridge).update(X, y, weights)
        known = certificate(state, exact=sums)
        np.testing.assert_allclose(known.against(points), regrets, rtol=1e-9, atol=1e-9)


def test_theorems_in_mean_and_std_are_refused() -> None:
    X, y = stream(ovi.Hinge(), 20, 3)
    for rule in RULES:
        state = ovi.learn(X, y, loss=ovi.Hinge(), rule=rule, family=BOXED).state
        for comparator in (ovi.Belief(np.zeros(3), np.full(3, 0.5)), ovi.Belief(0.0, 0.5), Q):
            with pytest.raises(ValueError, match="these bounds are in"):
                bounds.before_data(state, comparator, lipschitz=1.0)
            with pytest.raises(ValueError, match="these bounds are in"):
                bounds.after_data(state, comparator)
