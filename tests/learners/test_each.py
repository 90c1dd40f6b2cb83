"""What several states say of a row, against each by itself."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi.learners import Learner, predict_each

ROW = np.array([[0.3, -1.0, 2.0]])
LEARNERS = [
    ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.FullCovariance(box=None)),
    ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.LowRank(rank=1)),
    ovi.Linear(ovi.Hinge(), ovi.OGA(0.1)),
    ovi.Linear(ovi.Squared(), ovi.SVB(), missing=True, discount=0.9),
    ovi.Linear(ovi.Squared(), ovi.Implicit(), dtype="float32"),
    ovi.Prepare(ovi.Inputs(), ovi.Linear(ovi.Squared(), ovi.Implicit())),
    ovi.Pool([ovi.Linear(ovi.Squared(), ovi.Implicit()), ovi.Linear(ovi.Squared(), ovi.Implicit(0.1))], rate=1.0),
]


def learned(learner: Learner, count: int) -> object:
    rng = np.random.default_rng(count)
    return learner.update_many(learner.init(3), rng.standard_normal((count, 3)), rng.choice([-1.0, 1.0], count))[0]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: repr(learner)[:60])
def test_it_is_what_each_says_alone(learner: Learner) -> None:
    states = [learner.init(3), learned(learner, 5), learned(learner, 30)]
    row = np.where(ROW > 1.0, np.nan, ROW) if getattr(learner, "missing", False) else ROW
    mean, std = predict_each(learner, states, row)
    for place, state in enumerate(states):
        alone = learner.predict(state, row)
        assert (mean[place], std[place]) == pytest.approx((alone[0][0], alone[1][0]), rel=1e-6, abs=1e-12)


def test_equal_plans_of_their_own_are_one_call() -> None:
    """A plan is made anew where many others came in between: the bits must not hang on it."""
    learner = LEARNERS[0]
    one, other = learned(learner, 5), learned(learner, 9)
    apart = type(other)(other.array, replace(other.plan))
    assert apart.plan is not other.plan
    assert np.array_equal(predict_each(learner, [one, apart], ROW), predict_each(learner, [one, other], ROW))


def test_what_is_not_finite_is_refused() -> None:
    learner = LEARNERS[0]
    for bad in (math.nan, math.inf, 1e300):
        with pytest.raises(ValueError, match="not finite"):
            predict_each(learner, [learner.init(3), learner.init(3)], np.full((1, 3), bad))


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="2 features"):
        predict_each(LEARNERS[0], [LEARNERS[0].init(3)], np.ones((1, 2)))
