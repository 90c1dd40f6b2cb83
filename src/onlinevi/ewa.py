"""Exponentially weighted aggregation: exact posteriors, experts, and pools of learners.

See ``onlinevi.guarantees.exact`` for the paper's algorithm 1, ``onlinevi.learners.pool`` for learners as experts.
"""

from onlinevi.guarantees import GaussianPosterior, Grid, GridPosterior, TemperedGaussian, divergences
from onlinevi.learners import (
    AdaHedge,
    Aggregate,
    Aggregated,
    AggregateState,
    Experts,
    ExpertState,
    ExpertStep,
    Played,
    Weighing,
    over_rates,
)

__all__ = [
    "AdaHedge",
    "Aggregate",
    "AggregateState",
    "Aggregated",
    "ExpertState",
    "ExpertStep",
    "Experts",
    "GaussianPosterior",
    "Grid",
    "GridPosterior",
    "Played",
    "TemperedGaussian",
    "Weighing",
    "divergences",
    "over_rates",
]
