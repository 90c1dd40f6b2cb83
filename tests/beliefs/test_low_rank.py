"""Beliefs whose precision is diagonal plus low rank."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.any_loss import standing_for
from helpers.catalogue import name, stream
from scipy import sparse

import onlinevi as ovi
from onlinevi.beliefs.low_rank import LowRank, LowRankBelief, LowRankNatural

# Few pairs: each is a kernel to compile.
PAIRS = [(ovi.Squared(), ovi.NGVI(0.7)), (ovi.Squared(), ovi.Implicit()), (ovi.Hinge(), ovi.Implicit(0.5))]
EXPLICIT = ovi.Linear(loss=ovi.Squared(), rule=ovi.NGVI(0.7), family=LowRank(rank=2, prior_mean=0.3, prior_std=0.5, box=None))


def precision(belief: LowRankBelief) -> np.ndarray:
    return np.diag(belief.diagonal) + belief.factor @ belief.factor.T


def random_belief(dim: int, rank: int, seed: int) -> LowRankBelief:
    rng = np.random.default_rng(seed)
    return LowRankBelief(rng.standard_normal(dim), rng.random(dim) + 0.2, rng.standard_normal((dim, rank)))


@pytest.mark.parametrize(("loss", "rule"), PAIRS, ids=name)
@pytest.mark.parametrize(("count", "dim", "rank"), [(60, 5, 5), (60, 5, 9), (8, 30, 8)])
def test_a_rank_that_suffices_is_the_full_covariance(loss: ovi.Loss, rule: ovi.Rule, count: int, dim: int, rank: int) -> None:
    X, y = stream(loss, count, dim)
    runs = [
        ovi.learn(X * np.sqrt(dim), y, loss=loss, rule=rule, family=family)
        for family in (LowRank(rank=rank, prior_mean=0.3, prior_std=0.5), ovi.FullCovariance(prior_mean=0.3, prior_std=0.5))
    ]
    for field in ("prediction", "spread", "loss", "mean", "std"):
        np.testing.assert_allclose(getattr(runs[0], field), getattr(runs[1], field), rtol=1e-9, atol=1e-12)
    low, full = (run.state for run in runs)
    np.testing.assert_allclose(low.belief.covariance, full.belief.covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(low.gradient, full.gradient, rtol=1e-9, atol=1e-12)


def test_each_step_is_bayes_then_the_best_factor_with_the_rest_on_the_diagonal() -> None:
    rng = np.random.default_rng(3)
    state = EXPLICIT.init(6)
    for _ in range(25):
        x, y = rng.standard_normal(6) * rng.choice([0.1, 1.0, 10.0]), rng.standard_normal()
        before = state.belief
        state, step = EXPLICIT.update(state, x, y)
        P, growth = precision(before), 0.7 * 2.0
        assert step.spread**2 == pytest.approx(x @ np.linalg.solve(P, x), rel=1e-10)
        whole = P + growth * np.outer(x, x)
        slope = 2.0 * (x @ before.mean - y)
        np.testing.assert_allclose(state.mean, before.mean - 0.7 * slope * np.linalg.solve(whole, x), rtol=1e-8, atol=1e-10)
        left, singular, _ = np.linalg.svd(np.column_stack([before.factor, np.sqrt(growth) * x]), full_matrices=False)
        kept, dropped = left[:, :2] * singular[:2], left[:, 2] * singular[2]
        after = state.belief
        np.testing.assert_allclose(after.factor @ after.factor.T, kept @ kept.T, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(after.diagonal, before.diagonal + dropped**2, rtol=1e-9)
        np.testing.assert_allclose(np.diag(precision(after)), np.diag(whole), rtol=1e-12)
        across = after.factor.T @ after.factor
        assert abs(across[0, 1]) <= 1e-12 * across.max()


def test_the_mean_moves_along_the_exact_covariance() -> None:
    loss, rule = PAIRS[2]
    learner = ovi.Linear(loss=loss, rule=rule, family=LowRank(rank=2, box=None))
    X, y = stream(loss, 30, 7)
    state, _ = learner.update_many(learner.init(7), 3.0 * X, y)
    after, _ = learner.update(state, X[0], -y[0])
    along = np.linalg.solve(precision(state.belief), X[0])
    moved = after.mean - state.mean
    np.testing.assert_allclose(moved, along * (moved @ along) / (along @ along), rtol=1e-9, atol=1e-14)
    assert moved @ along * -y[0] > 0.0


def test_a_block_one_event_at_a_time_and_parts_give_the_same_bits() -> None:
    X, y = stream(EXPLICIT.loss, 16, 300)
    start = EXPLICIT.init(300)
    whole, _ = EXPLICIT.update_many(start, X, y)
    part = single = start
    for low, high in ((0, 7), (7, 8), (8, 16)):
        part, _ = EXPLICIT.update_many(part, X[low:high], y[low:high])
    for row, label in zip(X, y, strict=True):
        single, _ = EXPLICIT.update(single, row, label)
    assert whole == part == single
    assert EXPLICIT.update_many(start, sparse.csr_matrix(X), y)[0] == whole


def test_no_gradient_moves_nothing() -> None:
    X, y = stream(EXPLICIT.loss, 10, 4)
    state, _ = EXPLICIT.update_many(EXPLICIT.init(4), X, y)
    after, _ = EXPLICIT.update(state, np.zeros(4), 1.0)
    for old, new in zip(state.belief, after.belief, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.compiled
def test_many_coordinates_stay_finite() -> None:
    dim, rng = 20_000, np.random.default_rng(5)
    X, y = rng.standard_normal((25, dim)) / np.sqrt(dim), rng.standard_normal(25)
    family = LowRank(rank=10)
    state = ovi.learn(X, y, loss=standing_for(ovi.Squared()), rule=ovi.Implicit(), family=family).state
    belief = state.belief
    assert np.isfinite(state.array).all()
    assert (belief.diagonal >= 1.0).all()
    np.testing.assert_allclose(
        belief.diagonal + np.square(belief.factor).sum(axis=1), 1.0 + 2.0 * np.square(X).sum(axis=0), rtol=1e-12
    )
    assert (belief.std <= 1.0).all()
    assert family.sample(belief, rng, 2).shape == (2, dim)


@pytest.mark.parametrize("scale", [1e6, 1e12, 1e30])
@pytest.mark.parametrize(("loss", "rule"), PAIRS, ids=name)
def test_huge_rows_stay_finite(loss: ovi.Loss, rule: ovi.Rule, scale: float) -> None:
    X, y = stream(loss, 40, 6)
    X[10], X[20], X[30] = scale * X[10], scale * X[10], scale * X[0]
    for rank in (1, 3, 6):
        run = ovi.learn(X, y, loss=loss, rule=rule, family=LowRank(rank=rank))
        assert np.isfinite(run.state.array).all()
        assert (run.spread > 0.0).all()
        assert (run.state.belief.diagonal >= 1.0).all()
        assert (run.std > 0.0).all()


def test_a_huge_row_leaves_the_precision_of_the_others() -> None:
    """The plain identity of Woodbury loses all digits here: W is 1e9 times u's root."""
    X, y = stream(ovi.Squared(), 12, 6)
    X[4] *= 1e9
    runs = [
        ovi.learn(X, y, loss=ovi.Squared(), rule=ovi.Implicit(), family=family)
        for family in (LowRank(rank=6, box=None), ovi.FullCovariance(box=None))
    ]
    np.testing.assert_allclose(runs[0].spread, runs[1].spread, rtol=1e-7)
    again = [ovi.Linear(ovi.Squared(), ovi.Implicit(), run.state.plan.family).update(run.state, X[4], 0.0) for run in runs]
    assert again[0][1].spread == pytest.approx(again[1][1].spread, rel=1e-6)


def test_a_step_that_overflows_is_refused() -> None:
    learner = ovi.Linear(loss=ovi.Squared(), rule=ovi.NGVI(1e300), family=LowRank(rank=2))
    with pytest.raises(ovi.BadRow, match="overflow"):
        learner.update(learner.init(3), [1e5, 0.0, 1.0], 1.0)


@pytest.mark.parametrize("rule", [ovi.SVA(), ovi.SVB(), ovi.SVB(0.1), ovi.OGAEL(0.1)], ids=name)
def test_rules_for_triangular_factors_are_refused(rule: ovi.Rule) -> None:
    with pytest.raises(ValueError, match="triangular factor"):
        ovi.Linear(loss=ovi.Squared(), rule=rule, family=LowRank(rank=2))


def test_what_has_no_cheap_step_is_refused() -> None:
    with pytest.raises(ValueError, match="prior term"):
        ovi.Linear(loss=ovi.Squared(), rule=ovi.NGVI(rate=1.0), family=LowRank(rank=2))
    for rule in (ovi.NGVI(), ovi.Implicit()):
        with pytest.raises(ValueError, match="ridge"):
            ovi.Linear(loss=ovi.Squared(ridge=0.1), rule=rule, family=LowRank(rank=2))
    with pytest.raises(TypeError, match="E\\[θθᵀ\\] is d × d"):
        LowRank(rank=2).expectation(random_belief(3, 2, 0))


@pytest.mark.parametrize("rank", [0, -1, 1.5, True])
def test_a_rank_below_one_is_refused(rank: int) -> None:
    with pytest.raises(ValueError, match="MeanField"):
        LowRank(rank=rank)


def test_settings_without_a_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="means only"):
        LowRank(rank=1, box=ovi.Box())
    with pytest.raises(ValueError, match="must be > 0"):
        LowRank(rank=1, prior_std=0.0)
    with pytest.raises(ValueError, match="rescale"):
        LowRank(rank=1, prior_std=[1.0, 1e-200])


def test_the_prior_packs_and_unpacks() -> None:
    family = LowRank(rank=3, prior_mean=[1.0, 2.0], prior_std=[0.5, 4.0])
    belief = family.init(2)
    assert belief.factor.shape == (2, 2)
    np.testing.assert_allclose(belief.std, [0.5, 4.0])
    assert family.kl(belief) == 0.0
    belief = random_belief(5, 3, 1)
    packed = family.pack(belief)
    assert len(packed) == family.belief_size(5)
    for old, new in zip(belief, family.unpack(packed, 5), strict=True):
        np.testing.assert_array_equal(old, new)
    clipped = LowRank(rank=3, box=ovi.Box(mean=(-0.1, 0.1), std=None)).project(belief)
    assert np.abs(clipped.mean).max() == 0.1
    assert clipped.factor is belief.factor


@pytest.mark.parametrize(("dim", "rank"), [(6, 2), (4, 4)])
def test_std_covariance_and_predictions_are_those_of_the_inverse(dim: int, rank: int) -> None:
    family, belief = LowRank(rank=rank), random_belief(dim, rank, 2)
    covariance = np.linalg.inv(precision(belief))
    np.testing.assert_allclose(belief.covariance, covariance, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(belief.std, np.sqrt(np.diag(covariance)), rtol=1e-10)
    X = np.random.default_rng(4).standard_normal((7, dim))
    X[X < -0.5] = 0.0
    for rows in (X, sparse.csr_matrix(X), sparse.csr_array(X)):
        prediction, variance = family.predict(belief, rows)
        np.testing.assert_allclose(prediction, X @ belief.mean, rtol=1e-12)
        np.testing.assert_allclose(variance, np.einsum("ij,jk,ik->i", X, covariance, X), rtol=1e-10)
    prediction, variance = family.predict(belief, X[0])
    assert (np.shape(prediction), variance) == ((), pytest.approx(X[0] @ covariance @ X[0]))


def test_kl_equals_the_dense_formula() -> None:
    def dense(q: LowRankBelief, p: LowRankBelief) -> float:
        P, Q, shift = precision(p), precision(q), q.mean - p.mean
        logs = np.linalg.slogdet(Q)[1] - np.linalg.slogdet(P)[1]
        return 0.5 * (np.trace(P @ np.linalg.inv(Q)) + shift @ P @ shift - len(shift) + logs)

    family, q, p = LowRank(rank=2, prior_mean=0.2, prior_std=2.0), random_belief(6, 2, 3), random_belief(6, 3, 4)
    assert family.kl(q, p) == pytest.approx(dense(q, p), rel=1e-10)
    assert family.kl(q) == pytest.approx(dense(q, family.init(6)), rel=1e-10)
    assert family.kl(q, q) == pytest.approx(0.0, abs=1e-13)


def test_samples_have_the_belief_as_their_law() -> None:
    family, belief = LowRank(rank=2), random_belief(4, 2, 5)
    draws = family.sample(belief, np.random.default_rng(1), 200_000)
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=5 * belief.std.max() / 447)
    np.testing.assert_allclose(np.cov(draws.T), belief.covariance, atol=0.02 * belief.covariance.max())
    np.testing.assert_allclose(family.sample(belief, np.random.default_rng(1)), draws[0], rtol=1e-12)


def test_natural_parameters_go_there_and_back() -> None:
    family, belief = LowRank(rank=2), random_belief(5, 2, 7)
    natural = family.natural(belief)
    np.testing.assert_allclose(natural.first, precision(belief) @ belief.mean, rtol=1e-12)
    back = family.from_natural(natural)
    np.testing.assert_allclose(back.mean, belief.mean, rtol=1e-10)
    np.testing.assert_allclose(precision(back), precision(belief), rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="above 0 everywhere"):
        family.from_natural(LowRankNatural(np.zeros(1), np.zeros(1), np.zeros((1, 1))))


def test_merging_shards_is_bayes_on_all_of_them_while_the_rank_suffices() -> None:
    X, y = stream(ovi.Squared(), 30, 4)
    family = LowRank(rank=4, prior_mean=0.5, prior_std=2.0, box=None)
    run = lambda part: ovi.learn(X[part], y[part], loss=ovi.Squared(), rule=ovi.Implicit(), family=family).state.belief  # noqa: E731
    whole, shards = run(slice(None)), [run(slice(0, 10)), run(slice(10, 15)), run(slice(15, 30))]
    merged = family.merge(shards)
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-9)
    np.testing.assert_allclose(merged.covariance, whole.covariance, rtol=1e-9, atol=1e-12)
    short = LowRank(rank=1, prior_mean=0.5, prior_std=2.0, box=None).merge(shards)
    assert short.factor.shape == (4, 1)
    np.testing.assert_allclose(short.mean, whole.mean, rtol=1e-9)
    np.testing.assert_allclose(np.diag(precision(short)), np.diag(precision(whole)), rtol=1e-9)
    with pytest.raises(ValueError, match="nothing to merge"):
        family.merge([])
