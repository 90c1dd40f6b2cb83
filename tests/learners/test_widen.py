"""Columns that join late: a widened state is that of a run in which they were 0 so far."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.catalogue import name

import onlinevi as ovi
from onlinevi.ewa import AdaHedge, Aggregate

LEARNERS = [
    ovi.Linear(ovi.Squared(), ovi.OGA(0.1)),
    ovi.Linear(ovi.Squared(), ovi.SVA(0.1)),
    ovi.Linear(ovi.Squared(), ovi.SVB(), average=False),
    ovi.Linear(ovi.Squared(), ovi.NGVI(), ovi.MeanField(prior_mean=0.3, prior_std=2.0), discount=0.9),
    ovi.Linear(ovi.Squared(), ovi.SVA(0.1), ovi.FullCovariance()),
    ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.FullCovariance(box=None)),
    ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.LowRank(rank=2)),
]


def late_columns(count: int = 40, at: int = 25) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose last two of five columns are 0 at first."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, 5)) / 2.0
    y = X @ [1.0, -1.0, 0.5, 2.0, -2.0] + 0.1 * rng.standard_normal(count)
    X[:at, 3:] = 0.0
    return X, y


@pytest.mark.parametrize("learner", LEARNERS, ids=name)
def test_a_widened_state_is_as_if_the_columns_had_been_zero(learner: ovi.Linear) -> None:
    X, y = late_columns()
    narrow, _ = learner.update_many(learner.init(3, 40), X[:25, :3], y[:25])
    whole, _ = learner.update_many(learner.init(5, 40), X[:25], y[:25])
    wide = learner.widen(narrow, 5)
    assert wide.plan == whole.plan
    np.testing.assert_allclose(wide.array, whole.array, rtol=1e-11, atol=1e-13)
    _, after = learner.update_many(wide, X[25:], y[25:])
    _, expected = learner.update_many(whole, X[25:], y[25:])
    np.testing.assert_allclose(after.prediction, expected.prediction, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(after.spread, expected.spread, rtol=1e-9)
    assert narrow.plan.dim == 3, "the state given is left as it is"


def test_a_rank_that_was_cut_to_the_columns_grows_with_them() -> None:
    X, y = late_columns()
    low, full = (ovi.Linear(ovi.Squared(), ovi.Implicit(), kind) for kind in (ovi.LowRank(rank=9), ovi.FullCovariance()))
    states = [own.widen(own.update_many(own.init(3), X[:25, :3], y[:25])[0], 5) for own in (low, full)]
    means = [own.update_many(state, X[25:], y[25:])[0].mean for own, state in zip((low, full), states, strict=True)]
    np.testing.assert_allclose(*means, rtol=1e-7)


def test_what_cannot_be_widened_is_refused() -> None:
    learner = ovi.Linear(ovi.Squared(), ovi.SVB())
    with pytest.raises(ValueError, match="none can leave"):
        learner.widen(learner.init(3), 2)
    assert learner.widen(learner.init(3), 3) == learner.init(3)
    each = ovi.Linear(ovi.Squared(), ovi.SVB(), ovi.MeanField(prior_std=(1.0, 2.0)))
    with pytest.raises(ValueError, match=r"one value a coordinate.*one value for all"):
        each.widen(each.init(2), 3)
    ridge = ovi.Linear(ovi.Squared(ridge=0.1), ovi.SVA(0.1))
    with pytest.raises(ValueError, match="ridge would have moved"):
        ridge.widen(ridge.init(2), 3)
    with pytest.raises(ValueError, match="another learner"):
        learner.widen(each.init(2), 3)


def test_families_with_a_prior_for_each_coordinate_give_new_ones_the_last() -> None:
    family = ovi.MeanField(prior_mean=(0.0, 1.0), prior_std=(3.0, 2.0), box=ovi.Box(mean=((-5.0, -4.0), 20.0)))
    wide = family.widened(4)
    assert (wide.prior_mean, wide.prior_std) == ((0.0, 1.0, 1.0, 1.0), (3.0, 2.0, 2.0, 2.0))
    assert wide.box is not None
    assert wide.box.mean == ((-5.0, -4.0, -4.0, -4.0), 20.0)
    assert ovi.FullCovariance(box=None).widened(4) == ovi.FullCovariance(box=None)


def pool() -> Aggregate:
    """Learners of the default's kernel; the second forgets so little that it does not show."""
    family = ovi.FullCovariance(prior_std=2.0, box=None)
    loss, rule = ovi.Squared(robust=7.0), ovi.Implicit(0.5)
    learners = [ovi.Linear(loss, rule, family, average=False, discount=discount) for discount in (1.0, 1.0 - 1e-12)]
    return Aggregate([*learners, replace(learners[0], rule=ovi.Implicit(0.05))], rate=AdaHedge())


def test_an_aggregate_is_widened_learner_by_learner() -> None:
    X, y = late_columns()
    narrow, _ = pool().update_many(pool().init(3), X[:25, :3], y[:25])
    whole, _ = pool().update_many(pool().init(5), X[:25], y[:25])
    _, after = pool().update_many(pool().widen(narrow, 5), X[25:], y[25:])
    _, expected = pool().update_many(whole, X[25:], y[25:])
    np.testing.assert_allclose(after.prediction, expected.prediction, rtol=1e-8)
    np.testing.assert_allclose(after.weights, expected.weights, rtol=1e-7)


# --- the default


@pytest.mark.compiled
def test_the_default_takes_new_columns_as_they_come() -> None:
    """Its rows are prepared by moments, which a late column has of its own: not as if it had been 0, but as well."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 2)) * [1.0, 50.0]
    y = X @ [1.0, 0.04] + 0.1 * rng.standard_normal(600)
    learner = ovi.Auto(loss=ovi.Squared())
    early = learner.update_many(learner.init(1), X[:200, :1], y[:200])[0]
    wide, trace = learner.update_many(early, X[200:], y[200:])
    assert learner.widen(early, 2).inputs.counts.tolist() == [200.0, 0.0]
    assert (early.inputs.dim, wide.inputs.dim) == (1, 2)
    assert [type(own.plan.family) for own in wide.leaves()] == [type(own.plan.family) for own in early.leaves()]

    padded = np.where(np.arange(600)[:, None] < 200, X * [1.0, 0.0], X)
    from_start = ovi.auto(padded, y, loss=ovi.Squared())
    # Before they join, a column of zeros says nothing; how covariances forget depends a little on the number of columns.
    assert early.average_loss == pytest.approx(from_start.average_loss[199], rel=0.05)
    # After that both learn it: a variance of 4 is its own.
    assert trace.loss[-200:].mean() < 0.3
    assert from_start.loss[-200:].mean() < 0.3


def test_the_default_forecasts_and_updates_at_a_row_with_new_columns() -> None:
    X, y = late_columns()
    learner = ovi.Auto(loss=ovi.Squared())
    state = learner.update_many(learner.init(3), X[:, :3], y)[0]
    assert learner.forecast(state, [*X[0, :3], 7.0]).prediction == pytest.approx(learner.forecast(state, X[0, :3]).prediction)
    after, step = learner.update(state, [*X[0, :3], 7.0], y[0])
    assert after.inputs.dim == 4
    assert step.prediction == pytest.approx(learner.forecast(state, X[0, :3]).prediction)
    for call in (lambda: learner.update(state, X[0, :2], 0.0), lambda: learner.forecast(state, X[:, :2])):
        with pytest.raises(ValueError, match=r"X has 2 columns, the state 3.*none can leave; fill it"):
            call()
