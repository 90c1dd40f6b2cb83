"""The families of beliefs: how a belief is stored, what it predicts, how a rule's step is applied to it."""

from onlinevi.beliefs.base import Box, Family, PerCoordinate, PriorAndBox, edges, frozen, named_rows, placed
from onlinevi.beliefs.full import FullBelief, FullCovariance
from onlinevi.beliefs.low_rank import LowRank, LowRankBelief
from onlinevi.beliefs.mean_field import MeanField
from onlinevi.beliefs.point import Point

__all__ = [
    "Box",
    "Family",
    "FullBelief",
    "FullCovariance",
    "LowRank",
    "LowRankBelief",
    "MeanField",
    "PerCoordinate",
    "Point",
    "PriorAndBox",
    "edges",
    "frozen",
    "named_rows",
    "placed",
]
