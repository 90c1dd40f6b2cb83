"""Learners as experts: all run in one pass, exponential weights say how much each counts."""

from onlinevi.learners.pool.aggregate import AdaHedge, Aggregate, Aggregated
from onlinevi.learners.pool.experts import Experts, ExpertState, ExpertStep, Weighing
from onlinevi.learners.pool.grid_of_rates import over_rates
from onlinevi.learners.pool.mixer import AggregateState
from onlinevi.learners.pool.played import Played, averages, running
from onlinevi.learners.pool.tempering import fixed, next_rate, normalised, schedule, tempering

__all__ = [
    "AdaHedge",
    "Aggregate",
    "AggregateState",
    "Aggregated",
    "ExpertState",
    "ExpertStep",
    "Experts",
    "Played",
    "Weighing",
    "averages",
    "fixed",
    "next_rate",
    "normalised",
    "over_rates",
    "running",
    "schedule",
    "tempering",
]
