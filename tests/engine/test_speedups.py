"""Every speed-up gives what the plain source gives: small steps by series, steps of sparse rows as vectors."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from helpers.catalogue import name
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import onlinevi as ovi
from onlinevi.engine import SETTING, ns
from onlinevi.engine.speedups import ROOTED, SHRINKING, Speedup, root_shrinkage, shrinkage
from onlinevi.engine.types import Belief, Gradient, Prior, Rates, Totals
from onlinevi.learners import kernels
from onlinevi.learners.kernels import PLAIN, speedup_of

ULP = float(np.finfo(float).eps)
SERIES = [ovi.SVB(), ovi.SVB(0.3), ovi.NGVI(), ovi.Implicit(), ovi.NGVI(0.5, parameters="scale")]


@given(share=st.one_of(st.floats(0.0, 1.0), st.floats(0.999, 1.0), st.floats(-300, 0).map(lambda e: 10.0**e)))
@settings(deadline=None)
def test_the_series_are_exact_up_to_their_limits(share: float) -> None:
    u, w = 0.5 * SHRINKING * share, ROOTED * share
    with mpmath.workdps(40):
        h, root = mpmath.sqrt(1 + mpmath.mpf(u) ** 2) - mpmath.mpf(u), 1 / mpmath.sqrt(1 + mpmath.mpf(w))
        assert abs((1 - h) - shrinkage(u)) <= ULP * h
        assert abs((1 - root) - root_shrinkage(w)) <= ULP * root


def test_a_little_beyond_their_limits_they_are_not() -> None:
    """The limits are no smaller than they must be, or the series would never be used."""
    u, w = 2.0 * SHRINKING, 2.0 * ROOTED
    assert abs(shrinkage(u) - (1.0 + u - np.hypot(1.0, u))) > ULP
    assert abs(root_shrinkage(w) - (1.0 - 1.0 / np.sqrt(1.0 + w))) > ULP


@pytest.mark.parametrize("rule", SERIES, ids=name)
@given(share=st.floats(0.0, 1.0), std=st.floats(1e-100, 10.0), slope=st.floats(-10.0, 10.0))
@settings(max_examples=50, deadline=None)
def test_a_small_step_is_the_step(rule: ovi.Rule, share: float, std: float, slope: float) -> None:
    step, per_variance, speedup = 0.7, rule.step_rate.per_variance, speedup_of(type(rule))
    assert speedup.small_step is not None
    curvature = share * speedup.limit / (step * (1.0 if per_variance else std * std))
    rates, prior = Rates(step, 0.0, per_variance), Prior(0.0, 1.0)
    arguments = Belief(0.3, std), Gradient(slope, curvature), Totals(slope, 0.0), rates, prior
    small, exact = speedup.small_step(*arguments), rule.new_belief(*arguments)
    assert small.std == pytest.approx(exact.std, rel=4.0 * ULP)
    assert small.mean - 0.3 == pytest.approx(exact.mean - 0.3, rel=1e-14, abs=4.0 * ULP)


@pytest.mark.parametrize("rule", [ovi.SVB(), ovi.NGVI(), ovi.SVA(0.01), ovi.OGAEL(0.01), ovi.OGA(0.01)], ids=name)
def test_by_small_steps_or_not_a_stream_ends_at_the_same_belief(rule: ovi.Rule) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 5)) / 3.0
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(400) > 0.0, 1.0, -1.0)
    start = ovi.Linear(ovi.Hinge(), rule, average=False).init(5)
    plan, ends = start.plan, []
    for limit in (plan.small_step, 0.1 * plan.small_step, -1.0):
        with_limit, array = plan.settings.copy(), np.array(start.array)
        with_limit[SETTING.small_step] = limit
        used = plan.dense_kernel(
            X, y, np.empty(0), array, plan.sizes, with_limit, plan.prior_and_box, plan.parameters, np.empty((0, 3))
        )
        assert used == len(y)
        ends.append(array)
    np.testing.assert_allclose(ends[0], ends[-1], rtol=1e-12)
    np.testing.assert_allclose(ends[1], ends[-1], rtol=1e-12)
    if rule in (ovi.SVB(), ovi.NGVI()):
        assert not np.array_equal(ends[0], ends[-1]), "some steps must have been small, and others not"
        assert not np.array_equal(ends[0], ends[1])


def test_no_step_is_small_where_more_than_the_loss_moves_the_spreads() -> None:
    def limit(rule: ovi.Rule, loss: ovi.Loss, family: ovi.Family) -> float:
        return ovi.Linear(loss, rule, family).init(2).plan.small_step

    assert limit(ovi.SVB(), ovi.Hinge(), ovi.MeanField()) == SHRINKING
    assert limit(ovi.SVB(), ovi.Hinge(), ovi.MeanField(prior_std=np.array([1.0, 2.0]), box=None)) == SHRINKING
    assert limit(ovi.SVB(), ovi.Hinge(ridge=0.1), ovi.MeanField()) < 0.0
    assert limit(ovi.NGVI(rate=0.5), ovi.Hinge(), ovi.MeanField()) < 0.0
    assert limit(ovi.SVB(), ovi.Hinge(), ovi.MeanField(box=ovi.Box(std=(0.1, 1.0)))) < 0.0


class Own(ovi.SVB):
    """A rule made from another, with a step of its own."""

    @staticmethod
    def new_belief(belief: Belief, gradient: Gradient, totals: Totals, rates: Rates, prior: Prior) -> Belief:
        return belief


class Renamed(ovi.SVB):
    """A rule made from another, with the same step."""


def test_a_speedup_belongs_to_a_step() -> None:
    assert speedup_of(Renamed) == speedup_of(ovi.SVB) != Speedup()
    assert speedup_of(Own) == speedup_of(ovi.OGA) == Speedup()


@pytest.mark.parametrize("rule", [ovi.NGVI(0.5), ovi.Implicit(0.5)], ids=name)
def test_steps_of_sparse_rows_are_the_same_as_vectors(rule: ovi.Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    X = sparse.random(40, 300, 0.4, format="csr", random_state=7, data_rvs=rng.standard_normal)
    assert np.diff(X.indptr).max() > ns.SCRATCH, "a row must take more than one turn"
    y, taken = rng.choice([-1.0, 1.0], 40), []
    parts, advance = (ovi.Hinge, ovi.MeanField, type(rule), PLAIN), ovi.MeanField.advance_vectorised
    for vectorised in (advance, None):
        monkeypatch.setattr(ovi.MeanField, "advance_vectorised", vectorised)
        kernel = kernels.kernel.__wrapped__(*parts, sparse=True)
        plan = ovi.Linear(ovi.Hinge(), rule).plan(300, 40)
        array = np.array(plan.start().array)
        block = (X.data, X.indices, X.indptr), y, np.empty(0)
        assert kernel(*block, array, plan.sizes, plan.settings, plan.prior_and_box, plan.parameters, np.empty((0, 3))) == 40
        taken.append(array)
    np.testing.assert_array_equal(*taken)
