"""Steps beside the problems that they solve: a belief, a prior and events, and an optimiser that knows no closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from onlinevi.engine.types import Belief, Prior

BELIEF, PRIOR = Belief(0.4, 0.6), Prior(-0.2, 0.8)
EVENTS = [(1.3, 0.5), (-2.0, 3.0), (0.0, 0.0), (0.7, 40.0), (-30.0, 0.01), (1e-4, 1e-4)]
"""(gradient in the mean, curvature)."""


def kl(q: Belief, p: Belief | Prior) -> float:
    ratio = q.std / p.std
    return 0.5 * (((q.mean - p.mean) / p.std) ** 2 + ratio**2 - 1.0 - 2.0 * math.log(ratio))


def argmin(objective, start: Belief, bounds=((None, None), (None, None))) -> Belief:  # type: ignore[no-untyped-def]
    """A generic optimiser over (mean, log std), restarted until it settles."""
    low, high = bounds[1]
    box = [bounds[0], (np.log(low) if low else -60.0, np.log(high) if high else 20.0)]
    x = np.array([start.mean, np.log(start.std)])

    def at(x: np.ndarray) -> float:
        mean, log_std = x.tolist()  # Python's own numbers are faster one at a time
        return objective(Belief(mean, math.exp(log_std)))

    for _ in range(2):
        x = minimize(at, x, method="L-BFGS-B", bounds=box, tol=1e-16).x
        x = minimize(at, x, method="Nelder-Mead", bounds=box, options={"xatol": 1e-12, "fatol": 1e-16, "maxiter": 1000}).x
    return Belief(x[0], np.exp(x[1]))


def assert_same(got: Belief, want: Belief) -> None:
    # An optimiser that compares values finds a minimum to the root of their precision.
    assert got.mean == pytest.approx(want.mean, rel=1e-6, abs=2e-7)
    assert got.std == pytest.approx(want.std, rel=1e-6, abs=2e-7)
