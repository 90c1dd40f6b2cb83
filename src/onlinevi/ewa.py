"""Exponentially weighted aggregation: exact posteriors, experts, and pools of learners.

See ``onlinevi.guarantees.exact`` for the paper's algorithm 1, ``onlinevi.learners.pool`` for learners as experts.
"""

from onlinevi.guarantees import (
    GaussianPosterior,
    Grid,
    GridPosterior,
    ParticlePosterior,
    Particles,
    TemperedGaussian,
    divergences,
)
from onlinevi.learners import (
    AdaHedge,
    Experts,
    ExpertState,
    ExpertStep,
    Played,
    Pool,
    PoolState,
    Trace,
    Weighing,
    over_rates,
)

Aggregate, AggregateState, Aggregated = Pool, PoolState, Trace

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
    "ParticlePosterior",
    "Particles",
    "Played",
    "Pool",
    "PoolState",
    "TemperedGaussian",
    "Weighing",
    "divergences",
    "over_rates",
]
