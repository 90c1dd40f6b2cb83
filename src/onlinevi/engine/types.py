"""The named values that pass between the layers. They have no logic."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Real: TypeAlias = Any
"""A float in compiled loops, an array in numpy, a tracer in JAX: shared code serves all three."""

Vector: TypeAlias = NDArray[np.float64]


class Belief(NamedTuple):
    """A Gaussian with independent coordinates, or one coordinate of it."""

    mean: Real
    std: Real


class Prior(NamedTuple):
    """The Gaussian that every belief starts from."""

    mean: Real
    std: Real


class Gradient(NamedTuple):
    """The gradient of the expected loss at one event."""

    mean: Real
    curvature: Real
    """The gradient in the std, divided by the std: finite where the std has shrunk to nothing."""


class Totals(NamedTuple):
    """Sums over the events so far of the gradients in the mean and in the std."""

    mean: Real
    std: Real


class Expected(NamedTuple):
    """E = E[loss(y, z)] for z ~ N(a, v²), with its first and second derivative in a."""

    value: Real
    slope: Real
    curvature: Real


class Event(NamedTuple):
    """One row of a stream, or a part of it, as the compiled loop reads it."""

    number: Any
    start: Any
    stop: Any
    """Where its values start and stop."""
    one_by_one: Any
    """Whether they are read one by one rather than in vectors."""


class Slopes(NamedTuple):
    """Derivatives of the expected loss in the prediction: ∂E/∂a and ∂²E/∂a²."""

    slope: Real
    curvature: Real


class Moments(NamedTuple):
    """What one row needs of a belief: the prediction's law, and the sizes of its gradients."""

    prediction: Real
    variance: Real
    mean_gain: Real
    """How far a unit step along the gradient of the mean moves the prediction: the variance, or Σ x² for a point."""
    row_square: Real
    """Σ x², so that ‖∂E/∂mean‖² = slope²·row_square."""
    spread_square: Real
    """So that ‖∂E/∂std‖² = curvature²·spread_square: Σ (std·x²)², or its like for the factor of a covariance."""
    missing_variance: Real
    """What the row's missing values add to the prediction's variance: noise that no step removes. 0 where none is missing."""


class Geometry(Enum):
    """The coordinates in which a rule's step is taken, where a covariance has a triangular factor C, Σ = CᵀC."""

    ENTRIES = "the entries of C, from the prior or from where they are"
    WHITENED = "the factor R of C' = R·C, in which the belief is standard normal"
    PREDICTION = "the prediction alone; the rest of the belief follows by conditioning"


class Rates(NamedTuple):
    """The rates of one step, already evaluated at its time."""

    step: Real
    """The weight of the gradient."""
    pull: Real
    """The weight of the prior, in [0, 1); 0 where a rule has no prior term."""
    per_variance: Real
    """True: ``step`` stands for rate·std² (a schedule that divides by the variance)."""


class StepInputs(NamedTuple):
    """What the loop has found out about an event when the belief is to move."""

    law: Moments
    seen: Slopes
    """At the belief before the step: what the sums keep."""
    taken: Slopes
    """Those that the step follows."""
    ridge: Real
    rates: Rates
    wider: Real
    """What forgetting multiplies a factor of the covariance by: 1 where nothing is forgotten."""
    small: Real
    """Whether the step is small (``speedups``): then it has no ridge and no prior term, and no std can leave its box."""


class Step(NamedTuple):
    """What was predicted for one event before its label was used, and what it cost."""

    prediction: float
    spread: float
    loss: float
