"""The families of beliefs: how a belief is stored, what it predicts, how a rule's step is applied to it."""

from onlinevi.beliefs.base import (
    MEAN_HIGH,
    MEAN_LOW,
    PRIOR_MEAN,
    PRIOR_STD,
    STD_HIGH,
    STD_LOW,
    Box,
    Family,
    PerCoordinate,
    edges,
    frozen,
    placed,
)
from onlinevi.beliefs.full import FullBelief, FullCovariance
from onlinevi.beliefs.low_rank import LowRank, LowRankBelief
from onlinevi.beliefs.mean_field import MeanField
from onlinevi.beliefs.point import Point

__all__ = [
    "MEAN_HIGH",
    "MEAN_LOW",
    "PRIOR_MEAN",
    "PRIOR_STD",
    "STD_HIGH",
    "STD_LOW",
    "Box",
    "Family",
    "FullBelief",
    "FullCovariance",
    "LowRank",
    "LowRankBelief",
    "MeanField",
    "PerCoordinate",
    "Point",
    "edges",
    "frozen",
    "placed",
]
