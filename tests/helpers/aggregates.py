"""Learners to weigh, and experts that lose what a table says."""

from __future__ import annotations

from typing import Any

import numpy as np

import onlinevi as ovi
from onlinevi.ewa import Aggregate
from onlinevi.learners.pool import aggregate as module

OWN = ovi.Squared()
LOGISTIC = [ovi.Linear(ovi.Logistic(), ovi.NGVI(rate), discount=d) for rate, d in [(1.0, 1.0), (0.1, 1.0), (1.0, 0.9)]]
SQUARED = [ovi.Linear(OWN, ovi.NGVI(rate), ovi.MeanField(box=None), discount=d) for rate, d in [(0.5, 0.9), (0.1, 1.0)]]
NEVER = 5e-324
"""The least rate: a learner that keeps its prior."""


def experts(loss: ovi.Loss, number: int) -> list[ovi.Linear]:
    """Learners that never learn: the k-th predicts the k-th feature, so that a row is what the experts say."""
    rule = ovi.OGA(NEVER)
    return [ovi.Linear(loss, rule, ovi.Point(prior_mean=unit), average=False) for unit in np.eye(number)]


def hedge(losses: np.ndarray, **settings: Any) -> module.Aggregated:
    """An aggregate whose experts lose what a table says, at least 0: predictions of the label 0 under the absolute loss."""
    return Aggregate(experts(ovi.Absolute(), losses.shape[1]), **settings).run(losses, np.zeros(len(losses)))
