"""Streams in wild units for the default, and what its states hold."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from helpers.states import arrays_of

import onlinevi as ovi
from onlinevi.learners import AutoState

LOSSES = [ovi.Logistic(), ovi.Squared(), ovi.Hinge(), ovi.Absolute(), ovi.Pinball(0.9), ovi.Poisson()]
MANY_EVENTS = [*(pytest.param(loss, marks=pytest.mark.compiled) for loss in (ovi.Logistic(), ovi.Squared())), *LOSSES[2:]]
"""The same where there are many events, each a few milliseconds interpreted: two are compiled, for other tests too."""
NUMBERS = [ovi.Squared(), ovi.Absolute(), ovi.Pinball(0.9)]
UNITS, OFFSETS = np.array([1e-3, 1e4]), np.array([5.0, 0.0])
BLOCKS = sys.modules["onlinevi.learners.base"]


def kind(loss: ovi.Loss) -> str:
    return type(loss).__name__


def stream(loss: ovi.Loss, count: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two features in wild units, and labels that follow them."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((count, 2))
    score = Z @ [1.0, -0.7] + 0.3
    if isinstance(loss, ovi.Logistic | ovi.Hinge):
        y = np.where(2.0 * score + rng.logistic(size=count) > 0.0, 1.0, -1.0)
    elif isinstance(loss, ovi.Poisson):
        y = rng.poisson(np.exp(np.minimum(score, 2.0))).astype(float)
    else:
        y = score + 0.3 * rng.standard_normal(count)
    return OFFSETS + UNITS * Z, y


def run(loss: ovi.Loss, X: Any, y: Any, **options: Any) -> Any:
    return ovi.auto(X, y, loss=loss, **options)


def same(one: AutoState, two: AutoState) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(arrays_of(one), arrays_of(two), strict=True))


def finite(state: AutoState) -> bool:
    return all(np.isfinite(part).all() for part in arrays_of(state))
