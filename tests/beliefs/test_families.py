"""What a family says about its beliefs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, sparse, stats

import onlinevi as ovi
from onlinevi import Belief, Box, MeanField, Point
from onlinevi.beliefs.mean_field import Expectation, Natural

RNG = np.random.default_rng(0)
Q = Belief(RNG.standard_normal(4), RNG.random(4) + 0.1)
P = Belief(RNG.standard_normal(4), RNG.random(4) + 0.1)


def test_the_prior_is_where_a_belief_starts() -> None:
    belief = MeanField(prior_mean=[1.0, 2.0], prior_std=[0.5, 3.0]).init(2)
    assert belief.mean.tolist() == [1.0, 2.0]
    assert belief.std.tolist() == [0.5, 3.0]
    assert MeanField().kl(MeanField().init(7)) == 0.0


def test_kl_equals_quadrature() -> None:
    def one(j: int) -> float:
        q, p = stats.norm(Q.mean[j], Q.std[j]), stats.norm(P.mean[j], P.std[j])
        low, high = Q.mean[j] - 12 * Q.std[j], Q.mean[j] + 12 * Q.std[j]
        return integrate.quad(lambda t: q.pdf(t) * (q.logpdf(t) - p.logpdf(t)), low, high, epsabs=1e-12, limit=200)[0]

    assert MeanField().kl(Q, P) == pytest.approx(sum(one(j) for j in range(4)), rel=1e-9)
    assert MeanField(prior_mean=0.3, prior_std=2.0).kl(Q) == pytest.approx(
        MeanField().kl(Q, Belief(np.full(4, 0.3), np.full(4, 2.0)))
    )


def test_kl_from_a_collapsed_belief_is_infinite() -> None:
    assert MeanField().kl(Belief(np.zeros(2), np.array([1.0, 0.0]))) == np.inf


@given(mean=st.floats(-50, 50), std=st.floats(1e-3, 50))
@settings(deadline=None)
def test_parameters_go_there_and_back(mean: float, std: float) -> None:
    family, belief = MeanField(), Belief(np.array([mean]), np.array([std]))
    natural = family.from_natural(family.natural(belief))
    assert natural.mean == pytest.approx(belief.mean, rel=1e-15)
    assert natural.std == pytest.approx(belief.std, rel=1e-15)
    moments = family.from_expectation(family.expectation(belief))
    assert moments.mean == belief.mean
    assert moments.std == pytest.approx(belief.std, rel=1e-15 * (2.0 + (mean / std) ** 2))


def test_parameters_of_no_gaussian_are_refused() -> None:
    with pytest.raises(ValueError, match="below 0 everywhere"):
        MeanField().from_natural(Natural(np.zeros(1), np.zeros(1)))
    with pytest.raises(ValueError, match="below E"):
        MeanField().from_expectation(Expectation(np.ones(1), np.zeros(1)))


def test_samples_have_the_belief_as_their_law() -> None:
    draws = MeanField().sample(Q, np.random.default_rng(1), 200_000)
    np.testing.assert_allclose(draws.mean(axis=0), Q.mean, atol=5 * Q.std.max() / 447)
    np.testing.assert_allclose(draws.std(axis=0), Q.std, rtol=0.02)
    assert MeanField().sample(Q, np.random.default_rng(1)).shape == (4,)
    np.testing.assert_array_equal(MeanField().sample(Q, np.random.default_rng(1)), draws.reshape(-1)[:4])
    assert Point().sample(Belief(Q.mean, 0.0 * Q.mean), np.random.default_rng(1)).tolist() == Q.mean.tolist()


def test_merging_shards_is_bayes_on_all_of_them() -> None:
    """With orthogonal rows the natural-gradient step on the squared loss is exact Bayes in each coordinate."""
    rng = np.random.default_rng(2)
    X = np.eye(3)[rng.integers(0, 3, 90)] * rng.standard_normal((90, 1))
    y = rng.standard_normal(90)
    family = MeanField(prior_mean=0.5, prior_std=2.0, box=None)
    run = lambda part: ovi.learn(X[part], y[part], loss=ovi.Squared(), rule=ovi.NGVI(), family=family).state.belief  # noqa: E731
    whole, merged = run(slice(None)), family.merge([run(slice(0, 30)), run(slice(30, 45)), run(slice(45, 90))])
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(merged.std, whole.std, rtol=1e-12)


def test_merging_refuses_what_has_no_natural_parameters() -> None:
    with pytest.raises(ValueError, match="coordinate 1 has std 0"):
        MeanField().merge([Belief(np.zeros(2), np.array([1.0, 0.0]))])
    with pytest.raises(ValueError, match="nothing to merge"):
        MeanField().merge([])
    with pytest.raises(ValueError, match="no Gaussian"):
        MeanField().merge([Belief(np.zeros(1), np.array([9.0]))] * 3)


def test_a_point_says_what_it_has_not() -> None:
    for call in (
        lambda: Point().kl(Q),
        lambda: Point().natural(Q),
        lambda: Point().expectation(Q),
        lambda: Point().merge([Q]),
    ):
        with pytest.raises(TypeError, match=r"a Point has no density.*MeanField"):
            call()


def test_projection_is_the_clip_into_the_box() -> None:
    family = MeanField(prior_std=0.5, box=Box(mean=(-1.0, 2.0), std=(0.2, 1.0)))
    belief = family.project(Belief(np.array([-3.0, 0.0, 5.0]), np.array([0.0, 0.3, 9.0])))
    assert belief.mean.tolist() == [-1.0, 0.0, 2.0]
    assert belief.std.tolist() == [0.1, 0.3, 0.5]
    free = MeanField(box=None).project(Q)
    np.testing.assert_array_equal(free.mean, Q.mean)


def test_predictions_are_linear_maps_of_the_belief() -> None:
    X = np.random.default_rng(3).standard_normal((6, 4))
    mean, variance = MeanField().predict(Q, X)
    np.testing.assert_allclose(variance, np.einsum("ij,j,ij->i", X, Q.std**2, X))
    np.testing.assert_allclose(mean, X @ Q.mean)
    for got, want in zip(MeanField().predict(Q, sparse.csr_matrix(X)), (mean, variance), strict=True):
        np.testing.assert_allclose(got, want)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MeanField(prior_std=0.0), "must be > 0"),
        (lambda: MeanField(prior_std=[1.0, np.nan]), "needs a number"),
        (lambda: Box(mean=(1.0, -1.0)), "low end"),
        (lambda: Box(std=(0.5, 0.1)), "0 ≤ low ≤ high"),
        (lambda: MeanField(prior_mean=30.0).prior_and_box(2), "must lie in the box"),
        (lambda: MeanField(box=Box(std=(1.5, 2.0))).prior_and_box(2), "must lie in the box"),
        (lambda: MeanField(prior_std=[1.0, 1.0, 1.0]).prior_and_box(2), "prior_std has 3 values, the data 2 features"),
        (lambda: Point(prior_mean=[0.0]).prior_and_box(2), "prior_mean has 1 values"),
    ],
)
def test_bad_settings_are_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        make()
