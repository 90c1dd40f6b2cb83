"""Feature maps against their definitions: kernels, explicit loops, partitions; and what a column that joins does to them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.sparse import csr_matrix

import onlinevi as ovi
from onlinevi.engine import named, using_engine
from onlinevi.learners import Space

MAPS = [
    ovi.Fourier(6),
    ovi.Fourier(8, (0.5, 2.0), seed=3, kernel="laplace"),
    ovi.Fourier(6, kernel="cauchy"),
    ovi.Products(),
    ovi.Products(order=3),
    ovi.Products(buckets=5),
    ovi.Products(order=3, buckets=7, seed=2),
    ovi.Splines(4),
    ovi.Splines(3, degree=1),
    ovi.Trees(3, 2),
    ovi.Relu(5),
    ovi.Unbent(),
    ovi.Beside((ovi.Products(), ovi.Trees(2, 2), ovi.Splines(3))),
]


def dense(found: Any) -> np.ndarray:
    return found.toarray() if hasattr(found, "tocsr") else found


def rows(count: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dim))


@pytest.mark.parametrize("one", MAPS, ids=str)
def test_a_row_has_the_same_bits_in_any_block(one: ovi.FeatureMap) -> None:
    Z = rows(257, 4)
    whole = dense(one.features(Z, 4))
    assert whole.shape == (257, len(one.since(4, 4)))
    assert np.isfinite(whole).all()
    for size in (1, 2, 7, 64):
        parts = [dense(one.features(Z[low : low + size], 4)) for low in range(0, 257, size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes(), size


@pytest.mark.compiled
@pytest.mark.parametrize(
    "one", [ovi.Fourier(6), ovi.Products(order=3), ovi.Products(buckets=5), ovi.Splines(4), ovi.Relu(5)], ids=str
)
def test_loops_say_the_same_compiled_and_take_no_number_for_one(one: ovi.FeatureMap) -> None:
    Z = 3.0 * rows(257, 4)
    whole = one.features(Z, 4)
    for size in (1, 7, 64):
        parts = [one.features(Z[low : low + size], 4) for low in range(0, 257, size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes(), size
    with using_engine("interpreted"):
        np.testing.assert_allclose(one.features(Z, 4), whole, rtol=1e-13, atol=1e-13)
    for odd in (np.nan, np.inf, -np.inf):
        features = one.features(np.array([[0.5, odd, 1.0, -1.0]]), 4)
        bounded = isinstance(one, ovi.Splines | ovi.Relu) and odd == odd
        assert bounded or not np.isfinite(features).all()


@pytest.mark.parametrize("one", MAPS, ids=str)
def test_dense_and_sparse_rows_have_the_same_features(one: ovi.FeatureMap) -> None:
    Z = rows(40, 4)
    Z[np.abs(Z) < 0.7] = 0.0
    if "order=3" in str(one):
        with pytest.raises(ValueError, match=r"use Products\(order=2\)"):
            one.features(csr_matrix(Z), 4)
        return
    np.testing.assert_allclose(dense(one.features(csr_matrix(Z), 4)), dense(one.features(Z, 4)), rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "alone"])
@pytest.mark.parametrize("one", MAPS, ids=str)
def test_columns_that_join_leave_all_features_where_they_are(one: ovi.FeatureMap, keep: bool) -> None:
    Z = np.column_stack([np.ones(30), rows(30, 5)])
    Z[:, 4:] = 0.0
    narrow, wide = Space(one, keep, True, 2, 4), Space(one, keep, True, 2, 6)
    before, after = dense(narrow.of(Z[:, :4])), dense(wide.of(Z))
    assert after[:, : narrow.width].tobytes() == before.tobytes()
    assert not after[:, narrow.width :].any()
    assert wide.names(list("abcde"))[: narrow.width] == narrow.names(list("abc"))
    Z[:, 4:] = rows(30, 2, 1)
    if not isinstance(one, ovi.Trees) or keep:
        assert not np.array_equal(dense(wide.of(Z)), after), "what joins has a part in the features"


@pytest.mark.parametrize("one", MAPS, ids=str)
def test_features_are_told_by_their_columns(one: ovi.FeatureMap) -> None:
    """A share is 0 exactly where a feature does not change with its column, and shares sum to 1."""
    shares, Z = dense(one.shares(3, 3)), rows(400, 3)
    assert len(one.names(["a", "b", "c"], 3)) == len(shares) == len(one.since(3, 3))
    filled = shares.sum(axis=1) > 0.0
    np.testing.assert_allclose(shares.sum(axis=1)[filled], 1.0, atol=1e-12)
    for column in range(3):
        moved = Z.copy()
        moved[:, column] = rows(400, 1, 5 + column)[:, 0]
        changes = (dense(one.features(moved, 3)) != dense(one.features(Z, 3))).any(axis=0)
        assert not (changes & (shares[:, column] == 0.0)).any()
        if "Trees" not in str(one):  # some leaves lie where no row is
            assert changes[shares[:, column] > 0.0].all()


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("kernel", "of"),
    [
        ("gaussian", lambda far: np.exp(-0.5 * far**2)),
        ("laplace", lambda far: np.exp(-far)),
        ("cauchy", lambda far: 1.0 / (1.0 + far**2)),
    ],
)
def test_inner_products_of_fourier_features_come_to_the_kernel(kernel: Any, of: Any) -> None:
    """The error of n waves is that of a mean of n cosines, at most √(½/n) in the root mean square, and falls as √(1/n)."""
    d, scale, seeds = 3, 1.5, 12
    Z = rows(9, d)
    far = np.linalg.norm(Z[:, None] - Z[None], axis=2) / (scale * np.sqrt(d / 2.0))
    errors = []
    for count in (100, 1_600):
        every = [ovi.Fourier(count, scale, seed=seed, kernel=kernel).features(Z, d) for seed in range(seeds)]
        np.testing.assert_allclose((every[0] * every[0]).sum(axis=1), count, rtol=1e-12)
        gaps = np.array([waves @ waves.T / count - of(far) for waves in every])
        errors.append(np.sqrt(np.square(gaps).mean()))
        assert errors[-1] < np.sqrt(0.5 / (count / 2))
        assert np.abs(gaps.mean(axis=0)).max() < 4.5 * np.sqrt(0.5 / (count / 2) / seeds), "unbiased"
    assert 2.5 < errors[0] / errors[1] < 6.4, "four times as exact with sixteen times as many"


@pytest.mark.parametrize("start", [2, 3])
def test_waves_and_ramps_are_those_of_their_directions(start: int) -> None:
    Z, fourier = 50.0 * rows(20, 3), ovi.Fourier(8, seed=5)
    along = Z @ fourier.frequencies(start, 3)
    np.testing.assert_allclose(
        fourier.features(Z, start), np.sqrt(2.0) * np.concatenate([np.cos(along), np.sin(along)], axis=1), atol=1e-11
    )
    at_zero = ovi.Relu(100).features(np.zeros((1, 3)), start)
    assert 30 < (at_zero > 0.0).sum() < 70, "kinks lie on either side"
    relu = ovi.Relu(4, seed=5)
    offsets = np.maximum(relu.features(np.zeros((1, 3)), start)[0], 0.0)
    ends = [relu.features(np.array([[far, 0.0, 0.0]]), start)[0] for far in (-1e3, 1e3, 2e3)]
    for k in range(4):  # a ramp rises on one side alone, evenly
        low, high, twice = (end[k] for end in ends)
        assert (low == 0.0) != (high == 0.0)
        assert high == 0.0 or twice - high == pytest.approx(high - offsets[k], rel=3e-3)


@pytest.mark.compiled
def test_a_tuple_of_scales_is_the_mean_of_their_kernels() -> None:
    Z = rows(2, 2)
    far = np.linalg.norm(Z[0] - Z[1])
    one, other = ovi.Fourier(40_000, (0.5, 2.0)).features(Z, 2)
    assert abs(one @ other / 40_000 - 0.5 * (np.exp(-2.0 * far**2) + np.exp(-(far**2) / 8.0))) < 0.01


def test_directions_are_orthogonal_block_by_block_and_of_the_lengths_of_gaussians() -> None:
    w = ovi.Fourier(10, np.sqrt(2.0 / 4.0)).frequencies(4, 4)
    for block in (w[:, :4], w[:, 4:]):
        products = block.T @ block
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-13)
    many = ovi.Fourier(20_000, np.sqrt(2.0 / 4.0)).frequencies(4, 6)
    np.testing.assert_allclose(many @ many.T / 10_000, np.eye(6), atol=0.06)  # 4 and 2 that joined: N(0, I) all
    assert not np.allclose(many[:4, :4].T @ many[:4, :4], many[:4, :4].T @ many[:4, 4:8])


@pytest.mark.compiled
def test_orthogonal_waves_estimate_the_kernel_better() -> None:
    """Yu et al., 2016: at distances of about σ the variance is a fraction of that of independent directions."""
    d = 16
    x = rows(1, d)[0]
    x *= np.sqrt(d / 2.0) / np.linalg.norm(x)
    spread = []
    for start in (d, 1):  # orthogonal among 16 columns; of one column at the start, only lengths are kept
        waves = [ovi.Fourier(2 * d, np.sqrt(d / start), seed=seed).frequencies(start, d) for seed in range(60)]
        own = [np.cos(x @ w).mean() for w in waves]
        spread.append(np.std(own))
        assert abs(np.mean(own) - np.exp(-0.5)) < 4.0 * np.std(own) / np.sqrt(60)
    assert spread[0] < 0.6 * spread[1]


@pytest.mark.parametrize("order", [2, 3])
def test_products_are_those_of_an_explicit_loop(order: int) -> None:
    Z = rows(7, 4)
    found, names = ovi.Products(order).features(Z, 4), ovi.Products(order).names(list("abcd"), 4)
    place = 0
    for last in range(4):
        for i in range(last + 1):
            np.testing.assert_allclose(found[:, place], Z[:, i] * Z[:, last], rtol=1e-15)
            place += 1
        if order == 3:
            for i, j in product(range(last + 1), repeat=2):
                if i <= j:
                    np.testing.assert_allclose(found[:, place], Z[:, i] * Z[:, j] * Z[:, last], rtol=1e-14)
                    place += 1
    assert place == found.shape[1] == len(set(names))
    assert names[:3] == (["a²", "a·b", "b²"] if order == 2 else ["a²", "a³", "a·b"])


@pytest.mark.compiled
def test_hashed_products_add_up_to_all_and_no_bucket_is_preferred() -> None:
    hashed, Z = ovi.Products(buckets=64, seed=1), rows(5, 40)
    pairs = [(i, j) for j in range(40) for i in range(j + 1)]
    places, signs = hashed._dealt(np.array(pairs))
    expected = np.zeros((5, 64))
    for (first, second), place, sign in zip(pairs, places, signs, strict=True):
        expected[:, place] += sign * Z[:, first] * Z[:, second]
    np.testing.assert_allclose(hashed.features(Z, 40), expected, atol=1e-12)
    held = np.bincount(places, minlength=64)
    assert held.min() > 0
    assert ((held - 820 / 64) ** 2 / (820 / 64)).sum() < 110.0, "χ² of 63 degrees: p > 0.0002"
    assert abs(signs.sum()) < 4.0 * np.sqrt(820)
    unbiased = [
        np.prod([ovi.Products(buckets=16, seed=seed).features(Z[k : k + 1], 40)[0] for k in (0, 1)], axis=0).sum()
        for seed in range(300)
    ]
    exact = float(np.prod(ovi.Products().features(Z[:2], 40), axis=0).sum())
    assert abs(np.mean(unbiased) - exact) < 4.0 * np.std(unbiased) / np.sqrt(300), "inner products stay what they are"


@pytest.mark.parametrize(("knots", "degree"), [(2, 1), (6, 3), (5, 2), (9, 5)])
def test_splines_sum_to_one_are_de_boors_and_make_lines(knots: int, degree: int) -> None:
    one = ovi.Splines(knots, degree, reach=2.5)
    at = np.linspace(-2.5, 2.5, 101)
    found, step = one.features(at[:, None], 1), 5.0 / (knots - 1)
    inner = np.linspace(-2.5, 2.5, knots)
    all_knots = np.concatenate([-2.5 - step * np.arange(degree, 0, -1), inner, 2.5 + step * np.arange(1, degree + 1)])
    exact = np.array([BSpline.basis_element(all_knots[k : k + degree + 2], False)(at) for k in range(one.each)]).T
    exact = np.nan_to_num(exact)[:-1]
    at_zero = np.nan_to_num([BSpline.basis_element(all_knots[k : k + degree + 2], False)(0.0) for k in range(one.each)])
    np.testing.assert_allclose(found[:-1] / np.sqrt(one.each), exact - at_zero, atol=1e-13)
    np.testing.assert_allclose(exact.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)
    greville = -2.5 + step * (np.arange(one.each) - (degree - 1) / 2.0)
    np.testing.assert_allclose(found @ greville / np.sqrt(one.each), at, atol=1e-12)
    np.testing.assert_array_equal(one.features(np.array([[9.0], [0.0]]), 1), [found[-1], np.zeros(one.each)])


def test_nodes_ask_within_their_cells() -> None:
    """So that hardly a leaf is empty where rows are all over the reach."""
    Z = np.random.default_rng(0).uniform(-2.0, 2.0, (3_000, 2))
    held = np.asarray(ovi.Trees(count=5, depth=3, seed=4).features(Z, 2).sum(axis=0))[0]
    assert (held > 0.0).sum() >= 38


def test_leaves_are_cells_that_hold_every_row_once() -> None:
    trees, Z = ovi.Trees(count=5, depth=3, seed=4), rows(500, 2)
    leaves = trees.features(Z, 2).toarray().reshape(500, 5, 8)
    np.testing.assert_array_equal(leaves.sum(axis=2), 1.0)
    for tree, leaf in product(range(5), range(8)):
        inside = Z[leaves[:, tree, leaf] == 1.0]
        if len(inside):
            low, high = inside.min(axis=0), inside.max(axis=0)
            within = np.clip(Z, low, high) == Z
            assert within.all(axis=1).sum() == len(inside), "a cell is a box, and no other row lies in it"


@pytest.mark.parametrize("squash", [3.0, 0.5])
def test_what_inputs_bent_is_straight_again(squash: float) -> None:
    straight = ovi.Inputs(squash=None, intercept=False)
    X = np.random.default_rng(0).standard_t(1.5, (400, 2)) * [1e-3, 50.0]
    kept = straight.update_many(straight.init(2), X)[1]
    bending = ovi.Inputs(squash=squash, intercept=False)
    bent = bending.update_many(bending.init(2), X)[1]
    assert np.abs(kept).max() > 3.0 * squash
    found = ovi.Unbent(squash, 100.0 * squash).features(bent, 2)
    np.testing.assert_allclose(found, kept, rtol=1e-9, atol=1e-12)
    near = ovi.Unbent(squash, squash).features(bent, 2)
    np.testing.assert_allclose(near, np.clip(kept, -squash, squash), rtol=1e-9, atol=1e-12)


def test_what_is_missing_stays_missing_where_a_feature_is_of_one_column() -> None:
    Z = np.array([[1.0, np.nan, 2.5], [1.0, -1.0, np.nan]])
    learner = ovi.Expand(ovi.Unbent(), ovi.Linear(ovi.Squared(), ovi.Implicit(), missing=True), keep=False)
    for rows in (Z, csr_matrix(Z)):
        np.testing.assert_allclose(dense(learner.space(3, 3).of(rows, missing=True)), [[1.0, np.nan, 2.0 + 3**-0.5], Z[1]])
    one = np.empty((1, 3))
    learner.space(3, 3).fill(Z[1:], one, missing=True)
    np.testing.assert_array_equal(one, Z[1:])
    spread = learner.predict(learner.init(3), Z)[1]
    assert (spread > 1.4).all(), "what is missing makes unsure"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: ovi.Fourier(7), "in pairs"),
        (lambda: ovi.Fourier(0), "whole number from 2"),
        (lambda: ovi.Fourier(scale=()), "scale=\\(\\)"),
        (lambda: ovi.Fourier(scale=-1.0), "from 1e-6"),
        (lambda: ovi.Fourier(kernel="matern"), "gaussian"),
        (lambda: ovi.Products(4), "2 or 3"),
        (lambda: ovi.Products(buckets=0), "buckets=0"),
        (lambda: ovi.Products().since(300, 300), "Products\\(buckets=1024\\)"),
        (lambda: ovi.Products(buckets=9).features(np.zeros((1, 2_000)), 1), "give sparse rows"),
        (lambda: ovi.Splines(1), "whole number from 2"),
        (lambda: ovi.Splines(degree=6), "1 to 5"),
        (lambda: ovi.Splines(reach=0.0), "reach=0.0"),
        (lambda: ovi.Trees(depth=13), "2\\^depth"),
        (lambda: ovi.Relu(seed=-1), "seed=-1"),
        (lambda: ovi.Unbent(squash=0.0), "that of Inputs"),
        (lambda: ovi.Unbent(reach=1.0), "reach=1.0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make()


def test_maps_have_names() -> None:
    assert {"fourier", "products", "splines", "trees", "relu", "unbent", "beside"} <= set(named(ovi.FeatureMap))
