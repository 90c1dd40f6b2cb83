"""The families of beliefs: how a belief is stored, what it predicts, how a rule's step is applied to it."""

from onlinevi.families.base import Box, Family
from onlinevi.families.full import FullBelief, FullCovariance
from onlinevi.families.low_rank import LowRank, LowRankBelief
from onlinevi.families.meanfield import MeanField
from onlinevi.families.point import Point

__all__ = ["Box", "Family", "FullBelief", "FullCovariance", "LowRank", "LowRankBelief", "MeanField", "Point"]
