"""What full covariances say about their beliefs: divergences, draws, parameters, and merging."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from helpers.catalogue import stream
from helpers.full_oracles import FREE, assert_same, dense_kl, random_belief
from hypothesis import given
from hypothesis import strategies as st

import onlinevi as ovi
from onlinevi.beliefs.full import FullBelief, FullExpectation, FullNatural

Q, P = random_belief(1), random_belief(2)


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
        (lambda: ovi.FullCovariance(prior_std=[1.0, 1.0]).prior_and_box(3), "prior_std has 2 values, the data 3 features"),
        (lambda: ovi.FullCovariance(prior_mean=30.0).prior_and_box(2), "must lie in the box"),
    ],
)
def test_what_it_cannot_do_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_forgetful_shards_know_no_less_than_the_prior_together() -> None:
    """Where no direction is below the prior it is the merge; where one is, as after forgetting by turns, it is the prior's."""
    rng = np.random.default_rng(0)
    family = ovi.FullCovariance(prior_std=(2.0, 1.0, 0.5), box=None)
    A = rng.standard_normal((5, 3))
    known = family.from_natural(
        type(family.natural(family.init(3)))(A.sum(0), family.natural(family.init(3)).second - A.T @ A)
    )
    assert_same(family.merge_forgetful([known] * 3), family.merge([known] * 3), 1e-9)
    wider = family.from_covariance(np.zeros(3), np.diag([4.0, 1.2, 0.25]))
    with pytest.raises(ValueError, match="positive definite"):
        family.merge([wider] * 8)
    np.testing.assert_allclose(family.merge_forgetful([wider] * 8).covariance, np.diag([4.0, 1.0, 0.25]), atol=1e-12)
