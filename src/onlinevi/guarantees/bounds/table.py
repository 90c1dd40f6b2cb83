"""Which theorem speaks of which rule at which rate: the one table, which the runs, the promises and the calculator ask."""

from __future__ import annotations

from onlinevi.guarantees.bounds.theorem import Theorem
from onlinevi.guarantees.bounds.theorems.ewa import ExponentialWeights
from onlinevi.guarantees.bounds.theorems.explicit import ExplicitSVA
from onlinevi.guarantees.bounds.theorems.ngvi import ConvexScaleNGVI, FloorNGVI
from onlinevi.guarantees.bounds.theorems.oga_el import AdaptiveOGAEL, ConstantOGAEL, PerSqrtOGAEL, ScheduledLazyOGAEL
from onlinevi.guarantees.bounds.theorems.sva import AdaptiveSVA, ConstantSVA, PerSqrtSVA, ScheduledSVA
from onlinevi.guarantees.bounds.theorems.svb import AdaptiveSVB, ConvexSVB, StronglyConvexSVB
from onlinevi.rules import Rule

THEOREMS: list[Theorem] = [
    ExponentialWeights(),
    ConstantOGAEL(),
    PerSqrtOGAEL(),
    AdaptiveOGAEL(),
    ScheduledLazyOGAEL(),
    ConstantSVA(),
    ExplicitSVA(),
    AdaptiveSVA(),
    PerSqrtSVA(),
    ScheduledSVA(),
    ConvexSVB(),
    StronglyConvexSVB(),
    AdaptiveSVB(),
    FloorNGVI(),
    ConvexScaleNGVI(),
]
"""The first that speaks of a rule counts."""


def register(theorem: Theorem) -> None:
    """Make a theorem known, before those that are.

    >>> from onlinevi import SVB, PerSqrt, bounds
    >>> from onlinevi.guarantees.bounds.table import THEOREMS, theorem_of
    >>> class Mine(bounds.Theorem):
    ...     name, rules, rates, rates_in_words = "mine", (SVB,), (PerSqrt,), "PerSqrt(c)"
    >>> bounds.register(Mine())
    >>> type(theorem_of(SVB(PerSqrt(1.0)))).__name__, theorem_of(SVB(0.1))
    ('Mine', None)
    >>> del THEOREMS[0]
    """
    THEOREMS.insert(0, theorem)


def theorem_of(rule: Rule) -> Theorem | None:
    """The theorem that speaks of a rule at its rate."""
    return next((theorem for theorem in THEOREMS if theorem.speaks_of(rule)), None)


def no_theorem(rule: Rule) -> str:
    """The sentence for a rule that no theorem speaks of, at its rate or at all."""
    kind = type(rule)
    rates = [theorem.rates_in_words for theorem in THEOREMS if kind in theorem.rules]
    if rates:
        return f"{rule}: {kind.__name__} has a bound for the rates {', '.join(rates)}; certificate() holds for any"
    return (
        f"{rule}: the paper has no bound for it; it has one for SVA, SVB, OGA-EL and exponential weights. certificate() holds "
        "for any rule, and bounds.register(theorem) makes one of your own known"
    )
