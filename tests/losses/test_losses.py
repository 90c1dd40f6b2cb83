"""Every loss against quadrature, its own smoothness, and the three engines it runs in."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest
from helpers.catalogue import LOSSES, labels, name
from helpers.oracles import compiled, expectation, kink
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinevi as ovi
from onlinevi.engine import ns
from onlinevi.engine.types import Expected
from onlinevi.learners.pool.mixing import believed_at
from onlinevi.losses import logistic, normal, speedups

SPREADS = [1e-12, 1e-6, 1e-3, 0.1, 1.0, 4.0, 30.0, 100.0, 1e3]
OFFSETS = [-25.0, -6.0, -1.5, -0.2, 0.0, 0.6, 3.0, 12.0]


def grid(loss: ovi.Loss) -> list[tuple[float, float, float]]:
    """Predictions around the kink on the scale of the spread, and far away on the scale of the data.

    Like the fields of one colour on a chessboard: each spread meets every other offset, and its neighbours meet the others.
    """
    y = {ovi.Hinge: -1.0, ovi.Logistic: 1.0, ovi.Poisson: 3.0}.get(type(loss), 0.7)
    points = [(y, kink(loss, y) + k * max(v, 1e-9), v) for i, v in enumerate(SPREADS) for k in OFFSETS[i % 2 :: 2]]
    points += [(y, a, v) for a, v in itertools.product([-1e3, 1e3, 2.5, -0.3], [1e-12, 0.1, 1.0, 1e3])]
    if isinstance(loss, ovi.Poisson):
        return [(y, a, v) for y, a, v in points if a + v * v / 2 <= 700.0]
    return [(y, a, v) for y, a, v in points if abs(a) <= 1e3]


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_expectation_and_its_derivatives_equal_quadrature(loss: ovi.Loss) -> None:
    fast = compiled(loss, quick=True)
    for y, a, v in grid(loss):
        truth = expectation(loss, y, a, v)
        for engine, result in (("numpy", loss(y, a, v)), ("compiled", fast(y, a, v))):
            for part, (got, want) in enumerate(zip(result, truth, strict=True)):
                # A slope that changes sign is a difference of two numbers near 1: near its zero, digits of those count.
                crosses = part == 1 and isinstance(loss, ovi.Squared | ovi.Absolute | ovi.Pinball | ovi.Poisson)
                scale = max(abs(want), 1e-6) if crosses else abs(want)
                assert abs(got - want) <= 1e-9 * scale + 1e-300, (engine, part, (y, a, v), float(got), want)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_no_nan_no_infinity_and_never_concave(loss: ovi.Loss, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    y = labels(loss, rng, 1)[0]
    top = 600.0 if isinstance(loss, ovi.Poisson) else 1e6
    a = data.draw(st.one_of(st.floats(-top, top), st.just(kink(loss, y))))
    widest = 10.0 if isinstance(loss, ovi.Poisson) else 1e6
    v = data.draw(st.one_of(st.floats(0.0, widest), st.floats(-320, 0).map(lambda e: 10.0**e)))
    value, slope, curvature = loss(y, a, v)
    assert all(math.isfinite(part) for part in (value, slope, curvature))
    assert curvature >= 0.0
    assert value >= loss(y, a).value - 1e-12 * max(1.0, abs(value)), "by Jensen E is at least the loss of the mean"
    assert abs(slope) <= loss.lipschitz * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_a_vanishing_spread_gives_the_point_loss(loss: ovi.Loss) -> None:
    y = labels(loss, np.random.default_rng(3), 40)
    a = np.linspace(-3.1, 2.9, 40)
    point, nearly = loss(y, a), loss(y, a, 1e-9)
    np.testing.assert_allclose(nearly.value, point.value, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(nearly.slope, point.slope, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_a_loss_that_is_flat_is_nothing_there(loss: ovi.Loss) -> None:
    y = labels(loss, np.random.default_rng(5), 401)
    a = y * np.append(np.linspace(-2.0, 2.0, 400), 1.0)  # the hinge's corner last
    flat = np.broadcast_to(loss.is_flat(y, a, *loss.parameters), a.shape)
    nothing = np.all(np.equal(loss(y, a), 0.0), axis=0)
    np.testing.assert_array_equal(flat, nothing if isinstance(loss, ovi.Hinge) else np.zeros(401, dtype=bool))


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_the_slope_at_a_point_is_a_subgradient(loss: ovi.Loss) -> None:
    y = kink_label = labels(loss, np.random.default_rng(4), 1)[0]
    z = np.concatenate([np.linspace(-5.0, 5.0, 101), [kink(loss, kink_label)]])
    value, slope, _ = loss(y, z)
    below = value[:, None] + slope[:, None] * (z[None, :] - z[:, None])
    assert (value[None, :] >= below - 1e-12).all()


@pytest.mark.compiled
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_numpy_compiled_and_jax_agree(loss: ovi.Loss) -> None:
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    y, a, v = labels(loss, rng, 200), 3.0 * rng.standard_normal(200), np.concatenate([rng.random(190) * 4, np.zeros(10)])
    by_numpy = loss(y, a, v)
    fast = compiled(loss)
    by_loop = np.array([fast(*event) for event in zip(y, a, v, strict=True)]).T
    with jax.enable_x64(True):
        traced = jax.jit(lambda y, a, v: loss.expected(y, a, v, *loss.parameters))(y, a, v)
        by_jax = [np.broadcast_to(np.asarray(part), y.shape) for part in traced]
    for mine, looped, jaxed in zip(by_numpy, by_loop, by_jax, strict=True):
        np.testing.assert_allclose(looped, mine, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(jaxed, mine, rtol=1e-12, atol=1e-13)


@pytest.mark.compiled
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not isinstance(loss, ovi.Poisson)], ids=name)
def test_numpy_and_compiled_agree_far_out(loss: ovi.Loss) -> None:
    """The compiler may multiply in another order: no factor may overflow where another is 0."""
    rng = np.random.default_rng(1)
    y, signs = labels(loss, rng, 2000), rng.choice([-1.0, 1.0], 2000)
    a, v = signs * 10.0 ** rng.uniform(0.0, 7.0, 2000), 10.0 ** rng.uniform(-1.0, 4.0, 2000)
    fast = compiled(loss)
    by_loop = np.array([fast(*event) for event in zip(y, a, v, strict=True)]).T
    with np.errstate(all="ignore"):
        for mine, looped in zip(loss(y, a, v), by_loop, strict=True):
            np.testing.assert_allclose(looped, mine, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_lipschitz_within_a_reach_bounds_every_slope(loss: ovi.Loss) -> None:
    y = labels(loss, np.random.default_rng(1), 30)
    bound = loss.lipschitz_within(y, 2.0)
    z = np.linspace(-2.0, 2.0, 401)
    slopes = np.abs(loss(y[:, None], z[None, :]).slope)
    assert slopes.max() <= bound * (1 + 1e-12)
    assert bound <= loss.lipschitz
    assert slopes.max() >= 0.9 * bound, "and it is attained"


@dataclass(frozen=True)
class Exponential(ovi.Loss):
    """A user's loss, e^(−scale·yz): E = e^(−scale·ya + scale²v²/2)."""

    scale: float = 1.0

    @staticmethod
    def expected(y, a, v, scale):  # type: ignore[override, no-untyped-def]
        value = ns.exp(-scale * y * a + 0.5 * scale * scale * v * v)
        return Expected(value, -scale * y * value, scale * scale * value)


def test_a_users_loss_compiles_like_ours() -> None:
    loss = Exponential(scale=0.5)
    want = math.exp(-0.5 * 0.3 + 0.125 * 0.04)
    assert loss(1.0, 0.3, 0.2).value == pytest.approx(want, rel=1e-15)
    assert compiled(loss)(1.0, 0.3, 0.2)[0] == pytest.approx(want, rel=1e-15)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    trace = ovi.learn(X, np.sign(X[:, 0]), loss=loss, rule=ovi.SVB())
    assert trace.average_loss[-1] < trace.average_loss[10]
    assert trace.mean[0] > 5 * np.abs(trace.mean[1:]).max()


def test_tables_are_the_interpolants_they_say() -> None:
    """The coefficients of the logistic loss and of the scaled tail, computed anew in 40 digits."""
    with mp.workdps(40):
        functions = {
            "SOFTPLUS": lambda t: mp.log1p(t) / t,
            "SIGMOID": lambda t: 1 / (1 + t),
            "BELL": lambda t: 1 / (1 + t) ** 2,
        }
        for table, function in functions.items():
            fitted = _interpolant(lambda q, f=function: f((q + 1) / 2), 16, lambda q: (q + 1) / 2)
            np.testing.assert_allclose(getattr(logistic, table), fitted, rtol=1e-15, atol=0)
        x = np.concatenate([np.linspace(0.0, 30.0, 601), np.logspace(1.5, 150, 60)])
        truth = [mp.exp(mp.mpf(t) ** 2) * mp.erfc(mp.mpf(t)) if t < 100 else 1 / (mp.mpf(t) * mp.sqrt(mp.pi)) for t in x]
        relative = [abs(mp.mpf(float(got)) / want - 1) for got, want in zip(normal.scaled_tail(x, 1.0), truth, strict=True)]
        assert max(r for r, t in zip(relative, x, strict=True) if t < 100) < 2e-15


def test_the_normal_law_has_all_its_digits_and_no_side_is_changed_by_rounding() -> None:
    r = np.concatenate([np.linspace(-37.0, 9.0, 2001), [1e-17, 0.0, -1e-17]])
    truth = [mp.ncdf(mp.mpf(float(one))) for one in r]
    assert max(abs(mp.mpf(float(got)) / want - 1) for got, want in zip(normal.normal_cdf(r), truth, strict=True)) < 3e-13
    assert ((normal.normal_cdf(r) >= 0.5) >= (r >= 0.0)).all()
    assert ((normal.normal_cdf(r) <= 0.5) >= (r <= 0.0)).all()
    np.testing.assert_array_equal(normal.normal_cdf([-np.inf, -50.0, 0.0, 50.0, np.inf]), [0.0, 0.0, 0.5, 1.0, 1.0])
    assert np.isnan(normal.normal_cdf(np.nan))


def test_nodes_are_those_of_gauss_and_hermite() -> None:
    """Roots of the n-th polynomial He, and n!/(n·He₍ₙ₋₁₎)² at them, in 40 digits."""
    of_eight = zip(speedups.FEW_HERMITE, speedups.FEW_HERMITE_WEIGHTS, strict=True)
    of_sixteen = zip(speedups.HERMITE, speedups.HERMITE_WEIGHTS, strict=True)
    with mp.workdps(40):
        for n, node, weight in [*((8, *pair) for pair in of_eight), *((16, *pair) for pair in of_sixteen)]:
            root = mp.findroot(lambda t, n=n: _hermite(n, t), mp.mpf(float(node)))
            assert node == pytest.approx(float(root), rel=1e-15)
            assert weight == pytest.approx(float(mp.factorial(n) / (n * _hermite(n - 1, root)) ** 2), rel=1e-15)


def _hermite(order, t):  # type: ignore[no-untyped-def]
    before, now = mp.mpf(1), t
    for k in range(1, order):
        before, now = now, t * now - k * before
    return now


MARGINS = [-0.3, 1.5, 30.0]
QUICK = [0.1, speedups.NARROWEST, 0.35, speedups.NARROW, speedups.MEDIUM]


@pytest.mark.parametrize("v", QUICK, ids="v={}".format)
def test_the_quick_logistic_expectation_equals_quadrature(v: float) -> None:
    for a in MARGINS:
        truth, quick = expectation(ovi.Logistic(), 1.0, a, v), speedups.quick_logistic(1.0, np.float64(a), v)
        np.testing.assert_allclose(quick, truth, rtol=1e-12)


def test_a_little_beyond_their_limits_nodes_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are no smaller than they must be, or the closed form would be used where it is slower."""
    for limit, spread in (("NARROWEST", 0.5), ("NARROW", 0.75), ("MEDIUM", 1.5)):
        with monkeypatch.context() as patch:
            patch.setattr(speedups, limit, spread)
            off = np.divide(speedups.quick_logistic(1.0, np.float64(0.3), spread), ovi.Logistic()(1.0, 0.3, spread)) - 1.0
            assert 1e-10 < np.abs(off).max() < 1e-3, limit


@given(y=st.sampled_from([-1.0, 1.0]), a=st.floats(-800.0, 800.0), v=st.one_of(st.floats(0.0, 1.2), st.just(0.0)))
@settings(max_examples=100, deadline=None)
def test_the_quick_logistic_expectation_equals_the_plain_one(y: float, a: float, v: float) -> None:
    """To the digits of the plain one's tables."""
    plain, quick = ovi.Logistic()(y, a, v), speedups.quick_logistic(y, np.float64(a), v)
    for got, want, digits in zip(quick, plain, (2e-13, 4e-12, 6e-11), strict=True):
        assert got == pytest.approx(want, rel=digits, abs=1e-300)


class Own(ovi.Logistic):
    """A loss made from another, with an expectation of its own."""

    @staticmethod
    def expected(y, a, v):  # type: ignore[no-untyped-def]
        return ovi.Logistic.expected(y, a, v)


class Renamed(ovi.Logistic):
    """A loss made from another, with the same expectation."""


def test_a_speedup_belongs_to_an_expectation() -> None:
    assert speedups.quick_expected(Renamed) is speedups.quick_logistic
    assert speedups.quick_expected(Own) is Own.expected
    assert speedups.quick_expected(ovi.Hinge) is ovi.Hinge.expected


@pytest.mark.parametrize("v", [0.0, 0.3, 3.0])
def test_both_odds_keep_their_digits(v: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "expected", ovi.Logistic())
    for a in (-60.0, -2.0, 0.0, 0.7, 25.0):
        support, against = ovi.Logistic.odds(a, v)
        assert support == pytest.approx(float(ovi.Logistic()(-1.0, a, v).slope), rel=4e-12)
        assert against == pytest.approx(-float(ovi.Logistic()(1.0, a, v).slope), rel=4e-12)


def _interpolant(function, count, variable):  # type: ignore[no-untyped-def]
    nodes = [mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    matrix = mp.matrix(count, count)
    for i, node in enumerate(nodes):
        for j in range(count):
            matrix[i, j] = variable(node) ** j
    solution = mp.lu_solve(matrix, mp.matrix([function(node) for node in nodes]))
    return [float(solution[i]) for i in range(count)]


@pytest.mark.parametrize("loss", [ovi.Hinge(), ovi.Logistic()], ids=name)
def test_zero_one_labels_are_refused_with_the_mapping(loss: ovi.Loss) -> None:
    with pytest.raises(ValueError, match=r"label 0\.0.*−1 or \+1.*2\*y − 1"):
        loss(np.array([1.0, 0.0]), np.zeros(2))


def test_negative_counts_and_overflowing_rates_are_refused() -> None:
    with pytest.raises(ValueError, match="a count ≥ 0"):
        ovi.Poisson()(-1.0, 0.0)
    assert math.isfinite(ovi.Poisson()(1.0, 700.0).value)
    with pytest.raises(ValueError, match="must stay ≤ 700"):
        ovi.Poisson()(1.0, 700.1)
    with pytest.raises(ValueError, match="must stay ≤ 700"):
        ovi.Poisson()(1.0, 690.0, 5.0)


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_bad_settings_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="ridge"):
        ovi.Squared(ridge=bad)
    with pytest.raises(ValueError, match="quantile"):
        ovi.Pinball(bad)


def test_a_negative_spread_is_refused() -> None:
    with pytest.raises(ValueError, match="spread"):
        ovi.Squared()(0.0, 0.0, -1.0)


def test_a_prediction_of_nothing_favours_neither_class() -> None:
    spreads = np.append(10.0 ** np.linspace(-12.0, 3.0, 61), 0.0)
    np.testing.assert_array_equal(ovi.Logistic().score(np.zeros(62), spreads), 0.0)
    support, against = believed_at(ovi.Logistic(), np.zeros(62), spreads)
    np.testing.assert_array_equal(support, against)
