"""The rules of the paper's section 3 and appendix, and one beyond: one file an algorithm, one pure step each."""

from onlinevi.rules.base import Rule, shrink
from onlinevi.rules.implicit import Implicit
from onlinevi.rules.lazy_oga_el import LazyOGAEL
from onlinevi.rules.ngvi import NGVI, ScaleNGVI
from onlinevi.rules.oga import OGA
from onlinevi.rules.oga_el import OGAEL
from onlinevi.rules.rates import (
    Adaptive,
    Constant,
    Explicit,
    PaperSVB,
    PerHorizon,
    PerSqrt,
    PerStep,
    Rate,
    StronglyConvex,
    as_rate,
    explicit_sva_rate,
)
from onlinevi.rules.spelling import spelled, split_outside
from onlinevi.rules.sva import SVA
from onlinevi.rules.svb import SVB

__all__ = [
    "NGVI",
    "OGA",
    "OGAEL",
    "SVA",
    "SVB",
    "Adaptive",
    "Constant",
    "Explicit",
    "Implicit",
    "LazyOGAEL",
    "PaperSVB",
    "PerHorizon",
    "PerSqrt",
    "PerStep",
    "Rate",
    "Rule",
    "ScaleNGVI",
    "StronglyConvex",
    "as_rate",
    "explicit_sva_rate",
    "shrink",
    "spelled",
    "split_outside",
]
