"""Exponentially weighted aggregation (paper, algorithm 1), exactly: p_t ∝ prior·exp(−rate·Σ losses before t).

It is tempered Bayes. The decision is the posterior mean, and for losses in [0, B] the regret to any law p is at most
rate·B²·T/8 + KL(p‖prior)/rate. With a rate that does not change, this is the recursion p_{t+1} ∝ p_t·exp(−rate·ℓ_t). With
one that does, each p_t takes its own rate for all of the past: the anytime form, not that recursion.

Three settings allow it without approximation: experts, a grid in one or two dimensions, and a Gaussian prior with squared
loss. Learners can be experts too: all run in one compiled loop, and their weights need no rate with ``AdaHedge``.
"""

from onlinevi.ewa.aggregate import AdaHedge, Aggregate, Aggregated
from onlinevi.ewa.divergence import divergences
from onlinevi.ewa.experts import Experts, ExpertState, ExpertStep, Weighing
from onlinevi.ewa.grid import Grid, GridPosterior
from onlinevi.ewa.mixer import AggregateState
from onlinevi.ewa.played import Played
from onlinevi.ewa.rates import over_rates
from onlinevi.ewa.tempered import GaussianPosterior, TemperedGaussian

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
