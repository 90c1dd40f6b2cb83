"""What a pass of exponential weights over a stream leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from onlinevi.engine import Vector

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class Played(Generic[S]):
    """The events of one pass, and the posterior after it."""

    state: S
    prediction: Vector
    spread: Vector
    """Mean and std of the prediction under the posterior, before the label was seen."""
    loss: Vector
    """The loss at the decision, the posterior mean."""
    average_loss: Vector
    """The average loss since the start of the stream."""


def running(total: float, losses: Vector) -> Vector:
    """The total loss before the first event and after each: one addition an event, so any split gives the same bits."""
    return np.cumsum(np.concatenate([[total], losses]))


def averages(totals: Vector, count: int) -> Vector:
    """Average losses from ``running`` totals that start after ``count`` events."""
    return totals[1:] / (count + np.arange(1.0, len(totals)))
