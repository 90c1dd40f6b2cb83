"""Back into a ball: what the loop does behind a step where a family has one (section 4.2 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.engine import SETTING, Real, ns
from onlinevi.engine.holes import cast


def means_into_ball(views: Any, settings: Any) -> None:
    """The means, which every family has first."""
    scale_back(views[0], settings[SETTING.mean_radius])


def both_into_ball(views: Any, settings: Any) -> None:
    """Means and stds, each into its own ball. Scaled stds stay ≥ 0: that is the nearest point of the ball's positive part."""
    scale_back(views[0], settings[SETTING.mean_radius])
    scale_back(views[1], settings[SETTING.std_radius])


def scale_back(vector: Any, radius: Real) -> None:
    """The point of the ball nearest to the vector, in its place."""
    length = length_in_units(vector, 1.0)
    if not ns.isfinite(length):  # the square overflowed, the vector perhaps did not
        largest = 0.0
        for j in range(len(vector)):
            largest = ns.maximum(largest, np.float64(ns.absolute(vector[j])))
        length = length_in_units(vector, largest)
    if length > radius:
        share = cast(radius / length)
        for j in range(len(vector)):
            vector[j] *= share


def length_in_units(vector: Any, unit: Real) -> Real:
    """‖vector‖, in doubles whatever its numbers are."""
    square = 0.0
    for j in range(len(vector)):
        part = np.float64(vector[j]) / unit
        square += part * part
    return unit * ns.sqrt(square)
