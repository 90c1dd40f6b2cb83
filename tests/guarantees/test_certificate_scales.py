"""Certificates where floats are at their end: stds that explode, sums that cancel, scales far apart."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.wild_runs import wild_run

import onlinevi as ovi
from onlinevi.guarantees import Certificate, certificate
from onlinevi.learners import linear, state

ROWS = 50
EXPLODING = [
    pytest.param(ovi.SVA(ovi.PerSqrt(1.0)), 2.0, 16, id="SVA"),
    pytest.param(ovi.OGAEL(ovi.PerSqrt(1.0)), 5.0, 5, id="OGA-EL"),
]


def half_planes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((ROWS, 2))
    return X, np.sign(X @ [1.0, -1.0] + rng.standard_normal(ROWS))


def exploding(rule: ovi.Rule, prior_std: float) -> ovi.Linear:
    family = ovi.FullCovariance(prior_std=prior_std, box=ovi.Box(mean=(-2.0, 2.0), std=None))
    return ovi.Linear(ovi.Hinge(ridge=3.0), rule, family)


@pytest.mark.parametrize(("rule", "prior_std", "row"), EXPLODING)
def test_a_covariance_that_explodes_is_refused_with_a_remedy(rule: ovi.Rule, prior_std: float, row: int) -> None:
    learner, (X, y) = exploding(rule, prior_std), half_planes()
    start = learner.init(2, ROWS)
    with pytest.raises(ovi.BadRow, match=r"1,000,000 times as wide as its prior .* lower the rate, .* NGVI\(\)") as caught:
        learner.update_many(start, X, y)
    assert caught.value.row == row
    one_by_one = start
    for k in range(row):
        one_by_one, _ = learner.update(one_by_one, X[k], y[k])
    np.testing.assert_array_equal(caught.value.trace.state.array, one_by_one.array)
    with pytest.raises(ovi.BadRow, match="1,000,000 times"):
        learner.update(one_by_one, X[row], y[row])


@pytest.mark.parametrize(("rule", "prior_std", "row"), EXPLODING)
def test_stds_that_exploded_leave_nothing_certain(
    rule: ovi.Rule, prior_std: float, row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terms of 1e19 cancel in the ridge's sums: what is left of them is rounding, and is said to be."""
    monkeypatch.setattr(state, "EXPLODED", 1e150)
    linear._plan.cache_clear()
    learner, (X, y) = exploding(rule, prior_std), half_planes()
    live = certificate(learner.update_many(learner.init(2, ROWS), X, y)[0])
    linear._plan.cache_clear()
    assert isinstance(live, Certificate)
    assert live.state.std.max() > 1e7
    true = live.loss - ROWS  # u = 0 pays 1 at every event
    assert live.tangents.most(live.box) < true - 100.0, "the sums alone would say something false"
    assert true <= live.against([0.0, 0.0])
    assert true <= live.within(1.0)
    assert true <= live.regret
    assert live.lower_bound <= 1.0


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_no_wild_run_makes_a_false_one(first: int) -> None:
    """experiments/adversary_scales.py plays as many as one likes."""
    for seed in range(first, first + 50):
        verdict = wild_run(seed)
        assert verdict is None or not verdict.false, verdict


def test_without_a_box_or_a_ridge_summands_that_cancel_are_known() -> None:
    """Σ e1·a has summands of 1e9 of both signs; neither the last mean nor the last gradient tells of them."""
    X = np.ones((40, 1)) * np.where(np.arange(40) < 39, 1.0, 1e-9)[:, None]
    y = np.where(np.arange(40) % 2 == 0, 1e9 + 1.0, 1e9 - 1.0)
    live = certificate(ovi.learn(X, y, loss=ovi.Absolute(), rule=ovi.OGA(1e9), family=ovi.Point(box=None)))
    assert live.state.magnitude > 1e9
    assert live.rounding(1.0) > np.finfo(float).eps * live.state.magnitude


def test_a_loss_below_0_of_unknown_size_has_no_certain_regret() -> None:
    class Drop(ovi.Loss):
        nonnegative = False

        @staticmethod
        def expected(y: float, a: float, v: float) -> tuple[float, float, float]:
            return y * a, y + 0.0 * a, 0.0 * a

    live = certificate(ovi.learn(np.ones((3, 1)), [1.0, -1.0, 1.0], loss=Drop(), rule=ovi.OGA(0.1)))
    assert (live.regret, live.lower_bound) == (np.inf, -np.inf)
