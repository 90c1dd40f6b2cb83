"""Missing values: the law of the prediction, the step under it, and what stays certain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.adversaries import BOX, family
from helpers.catalogue import labels, name, stream
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

import onlinevi as ovi
from onlinevi.guarantees import certificate, hindsight

FAMILIES = [ovi.Point, ovi.MeanField, ovi.FullCovariance, ovi.LowRank]
RULES = [ovi.OGA(0.1), ovi.SVA(0.1), ovi.SVB()]


def holes(X: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def learner(loss: ovi.Loss, kind: type[ovi.Family], *, rate: float = 1.0, box: Any = None) -> ovi.Linear:
    rule = ovi.OGA(0.1 * rate) if kind is ovi.Point else ovi.Implicit(rate)
    return ovi.Linear(loss=loss, rule=rule, family=kind(box=box), missing=True)  # type: ignore[call-arg]


def started(loss: ovi.Loss, kind: type[ovi.Family], dim: int = 4, **options: Any) -> tuple[ovi.Linear, ovi.State]:
    """A learner with a belief that is no prior."""
    own = learner(loss, kind, **options)
    X, y = stream(loss, count=12, dim=dim)
    return own, own.update_many(own.init(dim), 2.0 * X, y)[0]


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_law_is_that_of_gaussian_rows_and_weights(kind: type[ovi.Family]) -> None:
    own, state = started(ovi.Squared(), kind)
    x, rng = np.array([0.7, np.nan, -1.2, np.nan]), np.random.default_rng(1)
    weights = state.plan.family.sample(state.belief, rng, 400_000)  # type: ignore[attr-defined]
    filled = np.where(np.isnan(x), rng.standard_normal(weights.shape), x)
    drawn = (filled * weights).sum(axis=1)
    mean, std = own.predict(state, x)
    assert mean == pytest.approx(drawn.mean(), abs=5.0 * std / np.sqrt(len(drawn)))
    assert std**2 == pytest.approx(drawn.var(), rel=0.02)
    # And exactly: E[(x·w)²] = Σ_jj + mean_j² for each missing j, beside what the rest gives.
    covariance = getattr(state.belief, "covariance", np.diag(state.std**2))
    lacks, known = np.isnan(x), np.nan_to_num(x)
    blur = (state.mean**2 + np.diag(covariance))[lacks].sum()
    assert mean == pytest.approx(known @ state.mean, rel=1e-13)
    assert std**2 == pytest.approx(known @ covariance @ known + blur, rel=1e-12)


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_loop_predicts_as_predict_does(kind: type[ovi.Family]) -> None:
    own, state = started(ovi.Squared(), kind)
    X = holes(stream(ovi.Squared(), count=30)[0][:, :4], 0.5)
    for x in [*X, np.full(4, np.nan), np.zeros(4)]:
        _, step = own.update(state, x, 0.3)
        assert own.predict(state, x) == pytest.approx((step.prediction, step.spread), rel=1e-12, abs=1e-15)
        mean, std = own.predict(state, sparse.csr_matrix(x[np.newaxis]))
        assert (mean[0], std[0]) == pytest.approx((step.prediction, step.spread), rel=1e-12, abs=1e-15)
    with pytest.raises(ValueError, match="not finite"):
        own.predict(state, [0.0, np.inf, 0.0, np.nan])


@pytest.mark.parametrize("kind", FAMILIES)
def test_full_rows_are_learned_as_without(kind: type[ovi.Family]) -> None:
    own, (X, y) = learner(ovi.Squared(), kind), stream(ovi.Squared())
    plain = ovi.Linear(loss=own.loss, rule=own.rule, family=own.family)
    here, there = (one.update_many(one.init(5), X, y)[0] for one in (own, plain))
    np.testing.assert_allclose(here.array, there.array, rtol=1e-11, atol=1e-14)


def test_any_split_and_sparse_rows_agree() -> None:
    own, (X, y) = learner(ovi.Logistic(), ovi.MeanField), stream(ovi.Logistic())
    X = holes(X, 0.3)
    whole, trace = own.update_many(own.init(5), X, y)
    state = own.init(5)
    for row, label in zip(X, y, strict=True):
        state, _ = own.update(state, row, label)
    assert state == whole
    stored, other = own.update_many(own.init(5), sparse.csr_matrix(X), y)
    np.testing.assert_allclose(stored.array, whole.array, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(other.spread, trace.spread, rtol=1e-11)


def blurred_objective(loss: ovi.Loss, state: ovi.State, x: np.ndarray, y: float, rate: float) -> Any:
    """E[loss] at the wider spread + KL(q‖belief)/rate, as a function of what a generic optimiser moves."""
    belief, kind, known = state.belief, state.plan.family, np.nan_to_num(x)
    dim, full = len(x), hasattr(belief, "factor")
    covariance = getattr(belief, "covariance", np.diag(state.std**2))
    blur = (state.mean**2 + np.diag(covariance))[np.isnan(x)].sum()

    def unpack(free: np.ndarray) -> Any:
        if not full:
            return ovi.Belief(free[:dim], np.exp(free[dim:]))
        factor = np.zeros((dim, dim))
        factor[np.triu_indices(dim)] = free[dim:]
        np.fill_diagonal(factor, np.exp(np.diag(factor)))
        return belief._replace(mean=free[:dim], factor=factor)

    def objective(free: np.ndarray) -> float:
        new = unpack(free)
        a, variance = kind.predict(new, known)
        with np.errstate(all="ignore"):
            cost = loss.expected(y, np.float64(a), np.sqrt(variance + blur), *loss.parameters)[0]
        return float(cost + kind.kl(new, belief) / rate)  # type: ignore[attr-defined]

    if full:
        factor = np.array(belief.factor)
        np.fill_diagonal(factor, np.log(np.diag(factor)))
        start = np.concatenate([belief.mean, factor[np.triu_indices(dim)]])
    else:
        start = np.concatenate([belief.mean, np.log(belief.std)])
    return objective, unpack, start


@pytest.mark.parametrize(("loss", "kind"), [(ovi.Logistic(), ovi.MeanField), (ovi.Squared(), ovi.FullCovariance)])
def test_the_implicit_step_is_the_argmin_under_the_wider_spread(loss: ovi.Loss, kind: type[ovi.Family]) -> None:
    for seed, rate in enumerate((0.3, 4.0)):
        own, state = started(loss, kind, dim=3, rate=rate)
        rng = np.random.default_rng(seed)
        x, y = np.array([1.5, np.nan, -0.8]), float(labels(loss, rng, 1)[0])
        after, _ = own.update(state, x, y)
        objective, unpack, start = blurred_objective(loss, state, x, y, rate)
        found = minimize(objective, start, method="BFGS", options={"gtol": 1e-9})
        best = unpack(found.x)
        np.testing.assert_allclose(after.mean, best.mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(after.std, best.std, rtol=1e-5)


@pytest.mark.parametrize("loss", [ovi.Logistic(), ovi.Absolute()], ids=name)
def test_the_proximal_step_of_a_point_is_under_the_wider_spread(loss: ovi.Loss) -> None:
    own = ovi.Linear(loss=loss, rule=ovi.Implicit(0.7), family=ovi.Point([0.5, -1.0, 2.0], box=None), missing=True)
    state, x, y = own.init(3), np.array([1.0, 0.4, np.nan]), float(labels(loss, np.random.default_rng(2), 1)[0])
    after, step = own.update(state, x, y)
    assert step.spread == 2.0
    known = np.array([1.0, 0.4, 0.0])

    def objective(length: np.ndarray) -> float:
        point = state.mean + length[0] * known
        return float(loss(y, known @ point, 2.0).value + (point - state.mean) @ (point - state.mean) / 1.4)

    length = minimize(objective, [0.0], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-15}).x[0]
    np.testing.assert_allclose(after.mean, state.mean + length * known, atol=1e-6)


def test_a_missing_value_may_cost_a_point_beyond_the_margin() -> None:
    """Its spread reaches back over the margin: the event is not idle, though at the prediction itself the loss is nothing."""
    point = ovi.Linear(loss=ovi.Hinge(), rule=ovi.OGA(0.1), family=ovi.Point([2.0, 3.0]), missing=True)
    before = point.init(2)
    state, _ = point.update(before, [1.0, np.nan], 1.0)
    want = ovi.Hinge()(1.0, 2.0, 3.0)
    np.testing.assert_allclose(state.expected_loss, want.value, rtol=1e-12)
    np.testing.assert_allclose(state.mean, before.mean - 0.1 * want.slope * np.array([1.0, 0.0]), rtol=1e-12)


@pytest.mark.parametrize("rule", [*RULES, ovi.Implicit()], ids=name)
def test_a_row_without_values_moves_no_belief(rule: ovi.Rule) -> None:
    own = ovi.Linear(loss=ovi.Logistic() if isinstance(rule, ovi.Implicit) else ovi.Hinge(), rule=rule, missing=True)
    X, y = stream(own.loss, count=10)
    state, _ = own.update_many(own.init(5, 11), X, y)
    after, step = own.update(state, np.full(5, np.nan), 1.0)
    np.testing.assert_allclose(after.mean, state.mean, rtol=1e-14)
    np.testing.assert_allclose(after.std, state.std, rtol=1e-14)
    assert step.prediction == 0.0
    assert step.spread**2 == pytest.approx((state.mean**2 + state.std**2).sum())
    assert after.count == 11


@given(
    seed=st.integers(0, 2**32),
    game=st.sampled_from([*((ovi.Hinge(), rule) for rule in RULES), (ovi.Squared(), RULES[0])]),
    ridge=st.sampled_from([0, 0.2]),
)
@settings(max_examples=40)
def test_the_certificate_holds_against_weights_that_read_missing_values_as_zero(
    seed: int, game: tuple[ovi.Loss, ovi.Rule], ridge: float
) -> None:
    (loss, rule), rng = game, np.random.default_rng(seed)
    loss = type(loss)(*loss.parameters, ridge=ridge)
    X, y = holes(rng.standard_normal((40, 3)), rng.choice([0.1, 0.5, 0.95]), seed), labels(loss, rng, 40)
    if rng.random() < 0.5:
        y = y[0] * np.ones(40)  # one label throughout: fixed weights gain most
    trace = ovi.learn(X, y, loss=loss, rule=rule, family=family(rule), missing=True)
    live, known = certificate(trace), np.nan_to_num(X)
    best = hindsight(known, y, loss=loss, box=BOX)
    points = np.vstack([rng.uniform(-BOX, BOX, (20, 3)), best.mean, -BOX * np.sign(live.tangents.gradient)])
    totals = np.array([loss(y, known @ u).value.sum() + 20.0 * ridge * u @ u for u in points])
    assert (live.loss - totals <= live.against(points) + live.rounding()).all()
    assert live.lower_bound <= best.value + live.rounding()


def test_without_the_blur_the_certificate_would_fail() -> None:
    """Σ(e1·a + e2·v²) needs the v² that e1 and e2 were taken at."""
    X, y = np.array([[np.nan, 0.01]]), np.array([1.0])
    point = ovi.Point([3.0, 0.0])
    live = certificate(ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.OGA(0.1), family=point, missing=True))
    curvature = ovi.Hinge()(1.0, 0.0, 3.0).curvature
    u = np.array([0.0, 20.0])
    regret = live.loss - ovi.Hinge()(1.0, 0.2).value
    assert live.against(u) - 9.0 * curvature < regret <= live.against(u)


def test_theorems_do_not_speak_of_missing_values() -> None:
    X, y = stream(ovi.Hinge())
    trace = ovi.learn(holes(X, 0.2), y, loss=ovi.Hinge(), rule=ovi.SVA(0.1), missing=True)
    with pytest.raises(ValueError, match=r"missing=True.*certificate\(\) holds"):
        ovi.bounds.after_data(trace, trace.state.belief)


@pytest.mark.parametrize("loss", [ovi.Squared(), ovi.Logistic()], ids=name)
def test_a_fifth_missing_costs_little(loss: ovi.Loss) -> None:
    """It stays near the best fixed weights on rows filled up with zeros, and its own are near those of full rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4_000, 5))
    z = X @ [1.0, -1.0, 0.5, 0.5, 0.0]
    y = z + 0.3 * rng.standard_normal(4_000) if isinstance(loss, ovi.Squared) else np.where(z > 0.0, 1.0, -1.0)
    bare = holes(X, 0.2)
    own = ovi.Linear(loss=loss, rule=ovi.Implicit(), missing=True)
    state, trace = own.update_many(own.init(5), bare, y)
    full = ovi.learn(X, y, loss=loss, rule=ovi.Implicit())
    best = hindsight(np.nan_to_num(bare), y, loss=loss, box=20.0)
    assert trace.average_loss[-1] < 1.1 * best.value
    direction = state.mean @ full.mean / np.linalg.norm(state.mean) / np.linalg.norm(full.mean)
    assert direction > 0.99
    assert (np.sign(z) == np.sign(X @ state.mean)).mean() > 0.96


VALUES = st.floats(-1e50, 1e50) | st.sampled_from([1e200, -1e308, np.inf, -np.inf]) | st.sampled_from([0.0, 1.0, -1.0, np.nan])


@given(row=st.lists(VALUES, min_size=3, max_size=3), kind=st.sampled_from(FAMILIES))
@settings(max_examples=150)
def test_no_nan_enters_a_state(row: list[float], kind: type[ovi.Family]) -> None:
    own, state = started(ovi.Squared(), kind, dim=3)
    if np.nanmax(np.abs(row), initial=0.0) > 1e50:
        with pytest.raises(ovi.BadRow, match=r"is inf|is -inf|overflow"):
            own.update(state, row, 0.5)
        return
    after, step = own.update(state, row, 0.5)
    assert np.isfinite(after.array).all()
    assert np.isfinite(step).all()


def test_nan_is_refused_unless_asked_for() -> None:
    plain = ovi.Linear(loss=ovi.Squared(), rule=ovi.Implicit())
    with pytest.raises(ovi.BadRow, match=r"feature 1 is nan: needs finite numbers; set Linear\(missing=True\)"):
        plain.update(plain.init(2), [0.0, np.nan], 1.0)
    own = ovi.Linear(loss=ovi.Squared(), rule=plain.rule, family=plain.family, missing=True)
    with pytest.raises(ValueError, match="missing or dtype differs"):
        own.update(plain.init(2), [0.0, np.nan], 1.0)
    with pytest.raises(ovi.BadRow, match="feature 1 is inf: needs finite numbers; drop"):
        own.update(own.init(2), [np.nan, np.inf], 1.0)
