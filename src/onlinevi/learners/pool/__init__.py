"""Learners as experts: all run in one pass, exponential weights say how much each counts."""

from onlinevi.learners.pool.experts import Experts, ExpertState, ExpertStep, Weighing
from onlinevi.learners.pool.mixer import PoolState
from onlinevi.learners.pool.played import Played, averages, running
from onlinevi.learners.pool.pool import AdaHedge, Pool, over_rates
from onlinevi.learners.pool.tempered import fixed, next_rate, normalised, schedule, tempering

__all__ = [
    "AdaHedge",
    "ExpertState",
    "ExpertStep",
    "Experts",
    "Played",
    "Pool",
    "PoolState",
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
