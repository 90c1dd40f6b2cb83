"""The hindsight minimiser: against linear programmes and generic optimisers, and its bound against every point tried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from helpers.catalogue import LOSSES, labels, name, stream
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog, lsq_linear, minimize

import onlinevi as ovi
from onlinevi.engine import ns
from onlinevi.engine.types import Expected, Real
from onlinevi.guarantees import Hindsight, hindsight
from onlinevi.guarantees.comparator import feasible_set
from onlinevi.learners.linear import BadRow

SMALLEST = 0.01
KINKED = [loss for loss in LOSSES if isinstance(loss, ovi.Hinge | ovi.Absolute | ovi.Pinball)]
SMOOTH = [loss for loss in LOSSES if loss not in KINKED]


@dataclass(frozen=True)
class Fourth(ovi.Loss):
    """(y − z)⁴: a loss of one's own, flat where it is least."""

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        gap, variance = a - y, v * v
        value = gap**4 + 6.0 * gap * gap * variance + 3.0 * variance * variance
        return Expected(value, 4.0 * gap**3 + 12.0 * gap * variance, 12.0 * (gap * gap + variance))


@dataclass(frozen=True)
class CurvedKink(ovi.Loss):
    """|y − z| + (y − z)²: its kink hides behind a curvature that is nowhere 0."""

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        plain = ovi.Absolute.expected(y, a, v)
        gap = a - y
        return Expected(plain.value + gap * gap + v * v, plain.slope + 2.0 * gap, plain.curvature + 2.0)


@dataclass(frozen=True)
class Concave(ovi.Loss):
    convex = False

    @staticmethod
    def expected(y: Real, a: Real, v: Real) -> Expected:
        return Expected(ns.minimum(ns.absolute(a - y), 1.0), 0.0 * a, 0.0 * a)


EVERY = [*LOSSES, Fourth(), CurvedKink()]


def average(loss: ovi.Loss, X: np.ndarray, y: np.ndarray, point: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The definition."""
    weights = np.ones(len(y)) if weights is None else weights
    cost = loss(y, X @ point).value + 0.5 * loss.ridge * point @ point
    return float(weights @ cost / (weights > 0).sum())


def programme(loss: ovi.Loss, X: np.ndarray, y: np.ndarray, box: float) -> float:
    """The least average of a loss max over k of slope_k·z + intercept_k, as a linear programme in (weights, losses)."""
    count, dim = X.shape
    match loss:
        case ovi.Hinge():
            planes = [(-y, np.ones(count)), (0 * y, np.zeros(count))]
        case ovi.Absolute():
            planes = [(1 + 0 * y, -y), (-1 + 0 * y, y)]
        case ovi.Pinball(quantile=tau):
            planes = [(-tau + 0 * y, tau * y), (1 - tau + 0 * y, (tau - 1) * y)]
    left = np.vstack([np.hstack([slope[:, None] * X, -np.eye(count)]) for slope, _ in planes])
    right = -np.concatenate([intercept for _, intercept in planes])
    bounds = [(-box, box)] * dim + [(None, None)] * count
    return float(linprog(np.r_[np.zeros(dim), np.full(count, 1 / count)], left, right, bounds=bounds).fun)


def reached(best: Hindsight, tolerance: float = 1e-4) -> bool:
    return 0.0 <= best.gap <= tolerance * max(best.value, SMALLEST)


@pytest.mark.parametrize("box", [0.3, 20.0])
@pytest.mark.parametrize("loss", KINKED, ids=name)
def test_a_loss_of_lines_agrees_with_its_linear_programme(loss: ovi.Loss, box: float) -> None:
    X, y = stream(loss, count=60, dim=4)
    best = hindsight(X, y, loss=loss, box=box, tolerance=1e-7)
    exact = programme(loss, X, y, box)
    assert reached(best, 1e-7)
    assert best.lower_bound - 1e-11 <= exact <= best.value + 1e-11


@pytest.mark.parametrize("box", [0.3, 20.0])
@pytest.mark.parametrize("loss", [*SMOOTH, Fourth()], ids=name)
def test_a_smooth_loss_agrees_with_a_generic_optimiser(loss: ovi.Loss, box: float) -> None:
    X, y = stream(loss, count=60, dim=4)
    best = hindsight(X, y, loss=loss, box=box)
    found = minimize(
        lambda u: average(loss, X, y, u), best.mean * 0.5, bounds=[(-box, box)] * 4, options={"ftol": 1e-15, "gtol": 1e-12}
    )
    assert reached(best)
    assert best.lower_bound - 1e-12 <= found.fun
    assert best.value <= found.fun + 1e-12
    if loss in SMOOTH:
        assert best.gap < 1e-10
        assert best.mean == pytest.approx(found.x, abs=1e-5)


@pytest.mark.parametrize("box", [(-20.0, 20.0), (-0.1, 0.05), ([-1.0, 0.0, -0.1], [0.0, 0.0, 3.0])])
def test_squared_is_exact(box: tuple[object, object]) -> None:
    X, y = stream(ovi.Squared(), count=50, dim=3)
    best = hindsight(X, y, loss=ovi.Squared(), box=box)
    wide = np.broadcast_to(box[1], 3) - np.broadcast_to(box[0], 3) > 0  # lsq_linear wants low < high
    inner = [np.broadcast_to(end, 3)[wide] for end in box]
    exact = lsq_linear(X[:, wide], y, inner, method="bvls", tol=1e-15)
    assert best.gap < 1e-12
    assert best.value == pytest.approx(2.0 * exact.cost / len(y), rel=1e-12)
    assert best.mean[wide] == pytest.approx(exact.x, abs=1e-9)
    if box == (-20.0, 20.0):
        assert best.mean == pytest.approx(np.linalg.lstsq(X, y)[0], abs=1e-12)


@st.composite
def problems(draw: st.DrawFn) -> tuple[ovi.Loss, np.ndarray, np.ndarray, dict[str, object], np.random.Generator]:
    loss = draw(st.sampled_from(EVERY))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, dim = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    X = rng.standard_normal((count, dim)) * draw(st.sampled_from([0.1, 1.0, 3.0]))
    X = draw(st.sampled_from([X, np.round(X), np.repeat(X[:1], count, axis=0), np.c_[X[:, :-1], np.ones(count)], 0.0 * X]))
    loss = type(loss)(*loss.parameters, ridge=draw(st.sampled_from([0.0, 0.1])))
    size = draw(st.sampled_from([0.1, 1.0, 5.0]))
    low, high = -size * rng.random(dim), size * rng.random(dim)
    domain = draw(
        st.sampled_from([{"box": size}, {"box": (low, high)}, {"box": (high, 2 * high)}, {"box": None, "radius": size}])
    )
    return loss, X, labels(loss, rng, count), domain, rng


def points(domain: dict[str, object], dim: int, rng: np.random.Generator, count: int) -> np.ndarray:
    """Of the domain: half of them on its border."""
    if "radius" in domain:
        draws = rng.standard_normal((count, dim))
        draws /= np.linalg.norm(draws, axis=1, keepdims=True)
        return domain["radius"] * draws * np.where(rng.random((count, 1)) < 0.5, 1.0, rng.random((count, 1)))
    low, high = domain["box"] if isinstance(domain["box"], tuple) else (-domain["box"], domain["box"])
    share = rng.random((count, dim))
    return low + (high - low) * np.where(rng.random((count, 1)) < 0.5, np.round(share), share)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(problems())
def test_no_point_of_the_domain_is_below_the_bound(problem: tuple) -> None:
    loss, X, y, domain, rng = problem
    best = hindsight(X, y, loss=loss, **domain)
    assert reached(best)
    assert best.value == pytest.approx(average(loss, X, y, best.mean), rel=1e-12, abs=1e-14)
    tried = points(domain, X.shape[1], rng, 60)
    near = best.mean + 0.01 * (tried - best.mean)
    everywhere = np.vstack([tried, near])
    there = loss(y, everywhere @ X.T).value.mean(axis=1) + 0.5 * loss.ridge * np.square(everywhere).sum(axis=1)
    assert (best.lower_bound <= there + 1e-12 * np.maximum(1.0, there)).all()
    assert (best.value - best.gap <= there + 1e-12 * np.maximum(1.0, there)).all()
    if "radius" in domain:
        assert np.linalg.norm(best.mean) <= domain["radius"] * (1 + 1e-12)
    elif isinstance(domain["box"], tuple):
        assert (domain["box"][0] <= best.mean).all()
        assert (best.mean <= domain["box"][1]).all()


@pytest.mark.parametrize("loss", EVERY, ids=name)
def test_a_ball_agrees_with_a_generic_optimiser(loss: ovi.Loss) -> None:
    X, y = stream(loss, count=40, dim=3)
    best = hindsight(X, y, loss=loss, box=None, radius=0.4)
    inside = {"type": "ineq", "fun": lambda u: 0.16 - u @ u, "jac": lambda u: -2.0 * u}
    found = minimize(
        lambda u: average(loss, X, y, u), np.zeros(3), constraints=inside, method="SLSQP", options={"ftol": 1e-12}
    )
    assert reached(best)
    assert best.lower_bound <= average(loss, X, y, found.x * min(1.0, 0.4 / np.linalg.norm(found.x))) + 1e-9
    assert best.value <= found.fun + best.gap + 1e-6


@pytest.mark.parametrize("loss", EVERY, ids=name)
def test_weights_are_repeats_and_zero_is_absence(loss: ovi.Loss) -> None:
    loss = type(loss)(*loss.parameters, ridge=0.05)
    X, y = stream(loss, count=30, dim=3)
    weights = np.arange(30) % 3 * 1.0
    best = hindsight(X, y, loss=loss, weights=weights, tolerance=1e-6)
    repeated = np.repeat(np.arange(30), weights.astype(int))
    plain = hindsight(X[repeated], y[repeated], loss=loss, tolerance=1e-6)
    share = len(repeated) / np.count_nonzero(weights)
    assert best.value == pytest.approx(average(loss, X, y, best.mean, weights), rel=1e-12)
    assert best.value == pytest.approx(share * plain.value, abs=3e-6 * max(1.0, best.value))


def test_the_average_is_the_one_that_learn_reports() -> None:
    loss = ovi.Hinge(ridge=0.1)
    X, y = stream(loss)
    weights = np.where(np.arange(60) % 4 == 0, 0.0, 1.5)
    best = hindsight(X, y, loss=loss, weights=weights)
    fixed = ovi.MeanField(prior_mean=best.mean.tolist(), prior_std=1e-9)
    trace = ovi.learn(X, y, loss=loss, rule=ovi.SVB(1e-9), family=fixed, weights=weights)
    assert trace.average_loss[-1] == pytest.approx(best.value, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_sparse_rows_tables_and_small_numbers_are_the_same_data(loss: ovi.Loss) -> None:
    X, y = stream(loss, count=80, dim=4)
    X = np.where(np.abs(X) < 0.3, 0.0, X).astype(np.float32)
    best = hindsight(X.astype(float), y, loss=loss)
    for same in (sparse.csr_matrix(X), sparse.csr_array(X), pd.DataFrame(X), X, np.asfortranarray(X)):
        assert hindsight(same, y, loss=loss).value == pytest.approx(best.value, rel=1e-9)


def test_separable_data_cost_nothing() -> None:
    X = np.array([[1.0, 0.2], [2.0, -0.1], [-1.0, 0.3], [-3.0, 0.0]])
    y = np.sign(X[:, 0])
    assert hindsight(X, y, loss=ovi.Hinge()).value <= 1e-6
    assert hindsight(X, y, loss=ovi.Logistic(), box=5.0).mean[0] == pytest.approx(5.0)  # the further, the better


def test_a_few_thousand_rows_in_several_chunks() -> None:
    X, y = stream(ovi.Hinge(), count=20_000, dim=6)
    best = hindsight(X, y, loss=ovi.Hinge())
    assert reached(best)
    assert best.value == pytest.approx(average(ovi.Hinge(), X, y, best.mean), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_scale_of_labels_and_features_does_not_matter(scale: float) -> None:
    X, y = stream(ovi.Absolute(), count=40, dim=3)
    scales = np.array([1e-3, 1.0, 1e3])
    best = hindsight(X * scales, scale * (y + 3.0), loss=ovi.Absolute(), box=(-1e5 * scale / scales, 1e5 * scale / scales))
    assert reached(best)


def test_poisson_avoids_overflow() -> None:
    X, y = np.array([[1.0], [50.0]]), np.array([400.0, 3.0])
    best = hindsight(X, y, loss=ovi.Poisson(), box=1000.0)  # at most points of this box the loss is infinite
    assert reached(best)
    with pytest.raises(ValueError, match="overflows"):
        hindsight(X, y, loss=ovi.Poisson(), box=(100.0, 200.0))


def test_a_positive_count_everywhere_and_none() -> None:
    best = hindsight(np.ones((3, 1)), np.zeros(3), loss=ovi.Poisson(), box=20.0)
    assert best.mean.tolist() == [-20.0]
    assert best.value == pytest.approx(np.exp(-20.0))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": np.empty((0, 2)), "y": []}, ValueError, "0 rows"),
        ({"X": np.empty((3, 0))}, ValueError, "0 features"),
        ({"X": sparse.csr_matrix((3, 20_000))}, ValueError, "at most 10000"),
        ({"y": [1.0, -1.0]}, ValueError, "3 rows, y 2 labels"),
        ({"y": [1.0, 0.0, 1.0]}, BadRow, "row 1: label 0.0: Hinge needs"),
        ({"y": ["a", "b", "c"]}, TypeError, "needs numbers"),
        ({"X": [[1.0, 2.0], [1.0, 1.0], [np.nan, 1.0]]}, BadRow, "row 2: a feature is nan"),
        ({"X": sparse.csr_matrix([[1.0, 2.0], [0.0, np.inf], [1.0, 1.0]])}, BadRow, "row 1: a feature is inf"),
        ({"weights": [1.0, 1.0]}, ValueError, "one weight a row"),
        ({"weights": [1.0, -1.0, 1.0]}, ValueError, "≥ 0 and finite"),
        ({"weights": [0.0, 0.0, 0.0]}, ValueError, "all weights are 0"),
        ({"loss": ovi.Hinge}, TypeError, r"write Hinge\(\)"),
        ({"loss": Concave()}, ValueError, "not convex"),
        ({"tolerance": 0.0}, ValueError, "must be > 0"),
        ({"box": None}, ValueError, "give a box or a radius"),
        ({"radius": 3.0}, ValueError, "box=None"),
        ({"box": None, "radius": -1.0}, ValueError, "radius must be > 0"),
        ({"box": -1.0}, ValueError, "low ≤ high"),
        ({"box": np.inf}, ValueError, "finite"),
        ({"box": ([0.0, 0.0, 0.0], 1.0)}, ValueError, "one a feature"),
        ({"box": "wide"}, ValueError, "needs one number"),
    ],
    ids=lambda value: "" if not isinstance(value, str) else value,
)
def test_bad_input_is_refused(change: dict[str, object], error: type[Exception], message: str) -> None:
    given_: dict[str, object] = {
        "X": [[1.0, 2.0], [2.0, 1.0], [0.0, 1.0]],
        "y": [1.0, -1.0, 1.0],
        "loss": ovi.Hinge(),
    } | change
    with pytest.raises(error, match=message):
        hindsight(given_.pop("X"), given_.pop("y"), **given_)


def test_a_bad_row_of_weight_0_is_absent() -> None:
    best = hindsight([[1.0], [np.nan]], [1.0, 7.0], loss=ovi.Hinge(), weights=[1.0, 0.0])
    assert best.value <= 1e-6
    assert repr(best).startswith("Hindsight(value=")


def test_one_side_of_the_box_may_be_one_number_and_the_other_one_a_feature() -> None:
    X, y = stream(ovi.Squared(), count=30, dim=3)
    mixed = hindsight(X, y, loss=ovi.Squared(), box=(-0.1, [0.1, 0.2, 3.0]))
    spelled = hindsight(X, y, loss=ovi.Squared(), box=([-0.1] * 3, [0.1, 0.2, 3.0]))
    assert mixed.mean.tolist() == spelled.mean.tolist()


@pytest.mark.parametrize("count", [1, feasible_set.NUMPY_UP_TO, feasible_set.NUMPY_UP_TO + 1])
def test_a_system_is_solved_one_way_or_the_other_and_refused_where_no_curve_has_a_least_point(count: int) -> None:
    rng = np.random.default_rng(count)
    root, truth = rng.standard_normal((count, count + 5)), rng.standard_normal(count)
    hessian = root @ root.T + np.eye(count)
    np.testing.assert_allclose(feasible_set.solved(hessian, hessian @ truth), truth, rtol=1e-8, atol=1e-10)
    with pytest.raises(np.linalg.LinAlgError):
        feasible_set.solved(hessian - 2.0 * np.linalg.eigvalsh(hessian)[-1] * np.eye(count), truth)
