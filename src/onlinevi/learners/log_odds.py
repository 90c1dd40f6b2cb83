"""The log-odds that a Gaussian score means under the logistic loss, compiled: in numpy they cost more than the learning."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from onlinevi.engine import Kernel, Vector, compose
from onlinevi.engine.holes import expected
from onlinevi.learners.pool.mixing import believed, log_odds
from onlinevi.losses import Logistic


def fill_log_odds(means: Any, stds: Any, filled: Any) -> None:
    for i in range(len(filled)):
        says = believed(1.0, means[i], stds[i], ())
        filled[i] = log_odds(says.support, says.against)


@cache
def _kernel() -> Kernel:
    return compose(fill_log_odds, {expected: Logistic.expected})


def predicted_log_odds(means: Vector, stds: Vector) -> Vector:
    """log P(+1)/P(−1) with P(+1) = E[1/(1 + e^(−z))], z ~ N(mean, std²)."""
    filled = np.empty(len(means))
    _kernel()(np.array(means), np.array(stds), filled)
    return filled
