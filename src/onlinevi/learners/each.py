"""What several states of one learner say of the same row: of leaves by one call of the compiled loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinevi.engine import RECORD, Vector, foresee_many
from onlinevi.learners.base import Learner
from onlinevi.learners.kernels import kernel
from onlinevi.learners.refusals import NOT_FINITE
from onlinevi.learners.state import State


def predict_each(learner: Learner[Any], states: Sequence[Any], row: Vector) -> tuple[Vector, Vector]:
    """Mean and std of the prediction of each state at a row, given as a matrix of one. Changes nothing.

    >>> import numpy as np, onlinevi as ovi
    >>> from onlinevi.learners import predict_each
    >>> learner = ovi.Linear(ovi.Squared(), ovi.NGVI(step=1.0))
    >>> after, _ = learner.update(learner.init(1), [1.0], 3.0)
    >>> [said.round(3).tolist() for said in predict_each(learner, [learner.init(1), after], np.ones((1, 1)))]
    [[0.0, 2.0], [1.0, 0.577]]
    """
    plan: Any = getattr(states[0], "plan", None)
    alike = all(type(state) is State and (state.plan is plan or state.plan == plan) for state in states)
    if not alike or plan.dtype != "float64" or row.shape != (1, plan.dim):
        said = [learner.predict(state, row) for state in states]
        return np.array([mean[0] for mean, _ in said]), np.array([std[0] for _, std in said])
    # As pools have it: a loop over covariances takes seconds to compile, and one, which can forget, serves all.
    features = plan.features._replace(forgets=plan.family.correlated or plan.features.forgets)
    records = np.empty((len(states), 1, RECORD.missing_mean_square + plan.missing))
    arrays = np.stack([state.array for state in states])
    kernel(*plan.kinds, features, loop=foresee_many).run(np.ascontiguousarray(row), arrays, plan.sizes, records)
    mean, std = records[:, 0, RECORD.prediction], records[:, 0, RECORD.spread]
    if not math.isfinite(mean.sum() + std.sum()):
        raise ValueError(NOT_FINITE)
    return mean, std
