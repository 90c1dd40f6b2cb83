"""Named values that pass between the layers. No logic beyond reading them."""

from __future__ import annotations

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
    """Where every belief starts."""

    mean: Real
    std: Real


class Gradient(NamedTuple):
    """Of the expected loss at one event."""

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


class Moments(NamedTuple):
    """What one row needs of a belief: the prediction's law, and the sizes of its gradients."""

    prediction: Real
    variance: Real
    row_square: Real
    """Σ x², so that ‖∂E/∂mean‖² = slope²·row_square."""
    spread_square: Real
    """Σ (std·x²)², so that ‖∂E/∂std‖² = curvature²·spread_square."""


class Rates(NamedTuple):
    """The rates of one step, already evaluated at its time."""

    step: Real
    """The weight of the gradient."""
    pull: Real
    """The weight of the prior, in [0, 1); 0 where a rule has no prior term."""
    per_variance: Real
    """True: ``step`` stands for rate·std² (a schedule that divides by the variance)."""


class Step(NamedTuple):
    """What was predicted for one event before its label was used, and what it cost."""

    prediction: float
    spread: float
    loss: float
