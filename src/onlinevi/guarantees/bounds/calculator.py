"""Every bound that speaks of a rule, from a handful of numbers known before any data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from onlinevi.guarantees.bounds.bound import Bound, informative_from
from onlinevi.guarantees.bounds.setting import Setting
from onlinevi.guarantees.bounds.table import THEOREMS
from onlinevi.losses import Loss

RULES = ("ewa", "oga-el", "sva", "svb", "ngvi")
"""The rules of the paper; NGVI has bounds with a floor and in scale parameters, which are not the paper's."""


@dataclass(frozen=True)
class Entry:
    """A bound, the rate it is for, and from which T on it says something (None: never)."""

    bound: Bound
    """Its trivial bound is the regret of never learning, where the loss at 0 is known: 1 a step for the hinge."""
    rate: str
    informative_from: int | None


def calculate(setting: Setting, rule: str, *, rate: float | None = None, loss_bound: float | None = None) -> list[Entry]:
    """The bounds of a rule at the paper's rate (or ``rate``), at its best one, at ``Explicit(L)`` and at ``Adaptive()``.

    Names that end in "risk" are of bounds on E[risk(θ̄_T)] less the least risk, for i.i.d. events (Theorem 5).

    NGVI's are those with a floor, and in scale parameters: as it stands it has none, see ``certificate``.

    The comparator is N(u, std²) with std = prior_std/√T, for u at ``distance`` from the prior mean.

    >>> import onlinevi as ovi
    >>> entries = calculate(Setting(count=10_000, dim=54, loss=ovi.Hinge()), "sva")
    >>> for entry in entries:
    ...     print(f"{entry.bound.name}: {entry.bound.value:.4g}")
    SVA: 2.232e+04
    SVA at its best rate: 2981
    SVA, mean field: 3716
    SVA, excess risk: 2.232
    SVA, explicit: 4416
    SVA, explicit, excess risk: 0.4416
    SVA, adaptive: 1.337e+04
    """
    known = dict.fromkeys((*RULES, *(theorem.name for theorem in THEOREMS)))
    if rule not in known:
        raise ValueError(f"rule={rule!r}: needs one of {', '.join(known)}")
    entries = []
    for theorem in THEOREMS:
        for bound_at, size in theorem.candidates(setting, rate, loss_bound) if theorem.name == rule else ():
            known_at = partial(_against_never_learning, bound_at, setting.loss)
            entries.append(Entry(known_at(setting.count), size, informative_from(known_at)))
    return entries


def _against_never_learning(bound_at: Callable[[int], Bound], loss: Loss, count: int) -> Bound:
    """Who predicts 0 throughout has at most this regret, or excess risk, for losses of classes that are ≥ 0."""
    bound = bound_at(count)
    if loss.target != "classes" or not loss.nonnegative:
        return bound
    at_zero = max(float(loss(label, 0.0).value) for label in (-1.0, 1.0))
    return replace(bound, trivial=min(bound.trivial, at_zero * (1 if bound.name.endswith("risk") else count)))
