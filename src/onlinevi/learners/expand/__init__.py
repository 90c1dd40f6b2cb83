"""Features of rows, fixed before any label is seen: maps, and the learner that puts one before another learner."""

from onlinevi.learners.expand.base import Beside, FeatureMap
from onlinevi.learners.expand.learner import Expand, ExpandState
from onlinevi.learners.expand.products import Products
from onlinevi.learners.expand.projections import Fourier, Relu
from onlinevi.learners.expand.space import Space
from onlinevi.learners.expand.splines import Splines
from onlinevi.learners.expand.trees import Trees
from onlinevi.learners.expand.unbent import Unbent

__all__ = [
    "Beside",
    "Expand",
    "ExpandState",
    "FeatureMap",
    "Fourier",
    "Products",
    "Relu",
    "Space",
    "Splines",
    "Trees",
    "Unbent",
]
