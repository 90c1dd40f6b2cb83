"""The families of beliefs: how a belief is stored, what it predicts, how a rule's step is applied to it."""

from onlinevi.beliefs.base import (
    Ball,
    Box,
    Family,
    PerCoordinate,
    PriorAndBox,
    Radii,
    edges,
    frozen,
    longest_mean,
    named_rows,
    placed,
    radii,
    with_floor,
)
from onlinevi.beliefs.full import FullBelief, FullCovariance
from onlinevi.beliefs.low_rank import LowRank, LowRankBelief
from onlinevi.beliefs.mean_field import MeanField
from onlinevi.beliefs.point import Point

__all__ = [
    "Ball",
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
    "Radii",
    "edges",
    "frozen",
    "longest_mean",
    "named_rows",
    "placed",
    "radii",
    "with_floor",
]
