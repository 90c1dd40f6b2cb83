"""Any differentiable model, by JAX; see ``onlinevi.learners.differentiable``."""

from onlinevi.learners.differentiable import (
    Differentiable,
    Linearised,
    ModelState,
    ModelTrace,
    MonteCarlo,
    ReLUNetwork,
    flatten,
)

__all__ = ["Differentiable", "Linearised", "ModelState", "ModelTrace", "MonteCarlo", "ReLUNetwork", "flatten"]
