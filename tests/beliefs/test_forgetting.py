"""Forgetting: against natural parameters, against dense brute force, and over streams that change or stand still."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.any_loss import standing_for
from helpers.catalogue import name, stream
from scipy import sparse
from scipy.linalg import eigh

import onlinevi as ovi
from onlinevi.engine import Belief
from onlinevi.learners.state import State

DIM = 5
PRIOR = {"prior_mean": [0.3, -0.2, 0.0, 1.0, 0.1], "prior_std": [1.0, 0.5, 2.0, 1.0, 3.0]}
FREE = ovi.Box(mean=None, std=None)
MEAN_FIELD, FULL = ovi.MeanField(**PRIOR, box=FREE), ovi.FullCovariance(prior_mean=0.3, prior_std=0.5, box=FREE)
PAIRS = [
    (ovi.SVB(), ovi.MeanField(prior_mean=0.3, prior_std=0.5)),
    (ovi.NGVI(step=0.5, rate=2.0), MEAN_FIELD),
    (ovi.NGVI(), ovi.LowRank(prior_mean=0.3, prior_std=0.5, box=FREE, rank=2)),
]
FULL_RULES = [ovi.NGVI(), ovi.OGAEL(0.003)]


def step(model: ovi.Linear, state: State, x: np.ndarray, y: float) -> tuple[State, State]:
    """The states after an event, with and without the forgetting that follows it."""
    plain = ovi.Linear(loss=model.loss, rule=model.rule, family=model.family)
    bare = State(state.array.copy(), plain.init(state.plan.dim, state.plan.horizon).plan)
    return model.update(state, x, y)[0], plain.update(bare, x, y)[0]


def mixed(family: ovi.Family, belief: object, discount: float) -> object:
    """γλ + (1 − γ)λ₁ by the family's own natural parameters; of a low-rank precision the columns stay columns."""
    here, prior = family.natural(belief), family.natural(family.init(DIM))
    parts = [discount * now + (1.0 - discount) * first for now, first in zip(here, prior, strict=True)]
    if isinstance(family, ovi.LowRank):
        parts[2] = np.sqrt(discount) * here.factor
    return family.from_natural(type(here)(*parts))


@pytest.mark.parametrize(("rule", "family"), PAIRS, ids=name)
def test_a_step_is_followed_by_the_mixture_with_the_prior(rule: ovi.Rule, family: ovi.Family) -> None:
    X, y = stream(ovi.Squared(), count=30, dim=DIM)
    for discount in (0.3, 0.9, 0.999):
        model = ovi.Linear(loss=ovi.Squared(), rule=rule, family=family, discount=discount)
        state = model.init(DIM)
        for x, label in zip(X, y, strict=True):
            state, bare = step(model, state, x, label)
            want = mixed(family, bare.belief, discount)
            np.testing.assert_allclose(state.mean, want.mean, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(state.std, want.std, rtol=1e-11)
            np.testing.assert_array_equal(state.gradient, bare.gradient)


def test_a_point_goes_back_by_its_share() -> None:
    model = ovi.Linear(loss=ovi.Hinge(), rule=ovi.OGA(0.5), family=ovi.Point(prior_mean=[1.0, -1.0]), discount=0.75)
    state, _ = model.update(model.init(2), [1.0, 2.0], 1.0)
    np.testing.assert_allclose(state.mean, [0.75 * 1.5 + 0.25, 0.75 * 0.0 - 0.25])
    still, _ = model.update(state, [100.0, 0.0], 1.0)
    np.testing.assert_allclose(still.mean, 0.75 * state.mean + 0.25 * np.array([1.0, -1.0]))  # the hinge has no slope there
    absent, _ = model.update(state, [1.0, 2.0], 1.0, weight=0.0)
    assert absent == state


@pytest.mark.parametrize("rule", FULL_RULES, ids=name)
@pytest.mark.parametrize("discount", [0.3, 0.5, 0.8, 0.9999])
def test_each_coordinate_gets_back_what_the_prior_lost_there(rule: ovi.Rule, discount: float) -> None:
    """Whatever the rule, and whatever the turns: the share is times γ, or exactly 1, and never below a half."""
    X, y = stream(ovi.Squared(), count=22, dim=DIM)
    model = ovi.Linear(loss=ovi.Squared(), rule=rule, family=FULL, discount=discount)
    state, share, age = model.init(DIM), np.ones(DIM), np.zeros(DIM)
    prior = FULL.natural(FULL.init(DIM))
    precisions = -2.0 * np.diag(prior.second)
    for x, label in zip(X, y, strict=True):
        state, bare = step(model, state, x, label)
        before, after = FULL.natural(bare.belief), FULL.natural(state.belief)
        back = -2.0 * (after.second - discount * before.second) / np.sqrt(np.outer(precisions, precisions))
        share *= discount
        turn = np.abs(np.diag(back) - (1.0 - share)) < np.diag(back)
        np.testing.assert_allclose(back, np.diag(np.where(turn, 1.0 - share, 0.0)), atol=1e-8)
        moved = discount * before.first + np.where(turn, 1.0 - share, 0.0) * prior.first
        np.testing.assert_allclose(after.first, moved, rtol=1e-7, atol=1e-8)
        share, age = np.where(turn, 1.0, share), np.where(turn, 0.0, age + 1.0)
        assert (share >= 0.5).all()
        assert (age < DIM).all()


@pytest.mark.parametrize("discount", [0.5, 0.7, 0.93, 0.99, 0.9999])
@pytest.mark.parametrize("dim", [1, 7, 40])
def test_a_full_precision_is_the_discounted_sum_and_the_prior(dim: int, discount: float) -> None:
    """Over many events: Σ γ^(t−s+1)·κ·xxᵀ + diag(share·P₁), so between half the exact mixture and all of it."""
    X, y = stream(ovi.Squared(), count=300, dim=dim)
    scale = np.linspace(0.5, 2.0, dim)
    family = ovi.FullCovariance(prior_std=scale.tolist(), box=FREE)
    belief = ovi.learn(X, y, loss=ovi.Squared(), rule=ovi.NGVI(), family=family, discount=discount).state.belief
    ages = discount ** np.arange(len(X), 0, -1)
    seen = 2.0 * (X * ages[:, None]).T @ X
    precision = np.linalg.inv(belief.covariance)
    share = np.diag(precision - seen) * scale**2
    np.testing.assert_allclose(precision, seen + np.diag(share / scale**2), rtol=1e-8, atol=1e-8)
    assert (share >= 0.5 - 1e-8).all()
    assert (share <= 1.0 + 1e-8).all()
    turns = -np.log(share) / -np.log(discount)
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-6 / (1.0 - discount), err_msg="a share is a power of γ")
    np.testing.assert_allclose(belief.mean, np.linalg.solve(precision, 2.0 * (y * ages) @ X), rtol=1e-8, atol=1e-9)
    ratios = eigh(precision, seen + np.diag(1.0 / scale**2), eigvals_only=True)
    assert 0.5 - 1e-9 <= ratios.min() <= ratios.max() <= 1.0 + 1e-9


@pytest.mark.compiled
@pytest.mark.parametrize("family", [ovi.MeanField, ovi.LowRank, ovi.FullCovariance])
def test_a_feature_that_never_comes_does_not_wind_up(family: type) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 3)) * [1.0, 0.0, 1e-3]
    X[20_000:, 2] = 0.0
    y = X[:, 0] + 0.1 * rng.standard_normal(60_000)
    for discount in (0.9, 0.9999):
        made = family(prior_mean=2.0, prior_std=0.5)
        squared, kept = standing_for(ovi.Squared()), {"discount": discount, "record": "none"}
        state = ovi.learn(X, y, loss=squared, rule=ovi.NGVI(), family=made, **kept).state
        assert np.isfinite(state.array).all()
        widest = np.sqrt(2.0) if family is ovi.FullCovariance else 1.0
        assert (state.std[1:] >= 0.5 * (1.0 - 1e-3)).all()
        assert (state.std[1:] <= 0.5 * widest * (1.0 + 1e-9)).all()
        np.testing.assert_allclose(state.mean[1:], 2.0, atol=1e-3)


def test_a_std_of_zero_stays_and_divides_nothing() -> None:
    model = ovi.Linear(loss=ovi.Squared(), rule=ovi.OGAEL(1.0), discount=0.5)
    state, _ = model.update(model.init(1), [1.0], 3.0)
    assert state.std[0] == 0.0
    assert state.mean[0] == 6.0


@pytest.mark.parametrize(
    ("loss", "rule", "family"),
    [
        (ovi.Hinge(), ovi.OGA(0.1), ovi.Point(PRIOR["prior_mean"])),
        (ovi.Squared(), ovi.NGVI(), MEAN_FIELD),
        (ovi.Squared(), ovi.NGVI(), FULL),
    ],
    ids=name,
)
def test_splits_sparse_rows_and_averages(loss: ovi.Loss, rule: ovi.Rule, family: ovi.Family) -> None:
    X, y = stream(loss, count=40, dim=DIM)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    model = ovi.Linear(loss=loss, rule=rule, family=family, discount=0.9)
    whole, _ = model.update_many(model.init(DIM), X, y)
    parts, decisions = model.init(DIM), []
    for cut in (slice(0, 1), slice(1, 17), slice(17, 40)):
        parts, _ = model.update_many(parts, X[cut], y[cut])
    single = model.init(DIM)
    for x, label in zip(X, y, strict=True):
        decisions.append(single.mean)
        single, _ = model.update(single, x, label)
    assert whole == parts == single == model.update_many(model.init(DIM), sparse.csr_matrix(X), y)[0]
    np.testing.assert_allclose(whole.average_mean, np.mean(decisions, axis=0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", [ovi.FullCovariance, ovi.LowRank])
def test_means_stay_in_the_box(kind: type) -> None:
    """With correlated features a mixture of two beliefs in the box can lie outside of it."""
    X, y = stream(ovi.Squared(), count=200, dim=3)
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    means: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for within, seen in means.items():
        family = kind(prior_mean=0.2, box=ovi.Box(mean=(-0.04, 0.2) if within else None, std=None))
        model = ovi.Linear(loss=ovi.Squared(), rule=ovi.NGVI(), family=family, discount=0.8)
        state = model.init(3)
        for x, label in zip(X, 5.0 * y, strict=True):
            state, _ = model.update(state, x, label)
            seen.append(state.mean)
    assert np.min(means[False]) < -0.04 <= np.min(means[True])
    assert np.max(means[False]) > 0.2 == np.max(means[True])


@pytest.mark.parametrize("family", [ovi.MeanField(prior_std=[1.0] * 4), ovi.FullCovariance()], ids=name)
def test_after_a_jump_the_forgetful_are_ahead(family: ovi.Family) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1600, 4))
    truth = np.where(np.arange(1600)[:, None] < 800, [1.0, -1.0, 0.5, 0.0], [-1.0, 1.0, 0.0, 0.5])
    y = (X * truth).sum(axis=1) + 0.3 * rng.standard_normal(1600)
    fixed, forgetful = (
        ovi.learn(X, y, loss=ovi.Squared(), rule=ovi.NGVI(), family=family, discount=discount).loss for discount in (1.0, 0.98)
    )
    assert forgetful[1000:].mean() < 0.12 < 0.4 < fixed[1000:].mean()
    assert fixed[400:800].mean() < forgetful[400:800].mean(), "where nothing changes, memory is better"


def test_what_cannot_forget_is_refused() -> None:
    for discount in (0.0, -0.5, 1.5, float("nan")):
        with pytest.raises(ValueError, match=r"needs 0 < discount ≤ 1"):
            ovi.Linear(loss=ovi.Squared(), rule=ovi.SVB(), discount=discount)
    with pytest.raises(ValueError, match=r"SVA makes each belief anew.*use SVB\(\), NGVI\(\) or Implicit\(\)"):
        ovi.Linear(loss=ovi.Squared(), rule=ovi.SVA(), discount=0.99)
    trace = ovi.learn([[1.0]], [1.0], loss=ovi.Squared(), rule=ovi.SVB(), discount=0.99)
    with pytest.raises(ValueError, match=r"discount=0.99: the theorems are about rules that forget nothing"):
        ovi.bounds.before_data(trace, Belief(np.zeros(1), np.ones(1)), lipschitz=1.0)
    with pytest.raises(ValueError, match="another learner"):
        ovi.Linear(loss=trace.state.plan.loss, rule=trace.state.plan.rule, family=trace.state.plan.family).update(
            trace.state, [1.0], 1.0
        )
