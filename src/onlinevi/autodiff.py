"""Any differentiable model, by JAX; see ``onlinevi.learners.differentiable``."""

from onlinevi.learners.differentiable import *
from onlinevi.learners.differentiable import __all__ as __all__
