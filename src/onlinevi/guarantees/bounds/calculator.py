"""Every bound that speaks of a rule, from a handful of numbers known before any data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

from onlinevi.beliefs import Box, MeanField
from onlinevi.guarantees.bounds.adaptive import oga_el_adaptive, sva_adaptive, svb_adaptive
from onlinevi.guarantees.bounds.bound import Bound, informative_from
from onlinevi.guarantees.bounds.domains import Domain, box_domain
from onlinevi.guarantees.bounds.risk import ewa_excess_risk, ewa_rate
from onlinevi.guarantees.bounds.theorems import (
    ewa,
    oga_el,
    oga_el_divergence,
    sva,
    sva_at_best_rate,
    sva_best_rate,
    sva_mean_field,
    svb_best_step,
    svb_convex,
    svb_strongly_convex,
)
from onlinevi.learners import Plan
from onlinevi.losses import Hinge, Logistic, Loss
from onlinevi.rules import OGAEL, SVA, SVB, Adaptive, Rule

Candidate: TypeAlias = tuple[Callable[[int], Bound], str]
"""A bound as a function of the number of events, and the rate it is for."""

RULES = ("ewa", "oga-el", "sva", "svb", "ngvi")


@dataclass(frozen=True)
class Setting:
    """What is known ahead: the stream's length and width, the longest row, the prior, the box, and how far u may be."""

    count: int
    dim: int
    loss: Loss
    row_norm: float = 1.0
    distance: float = 1.0
    """‖u − prior mean‖ of the weights to compete with."""
    prior_std: float = 1.0
    reach: float = 20.0
    """Means lie in [−reach, reach]."""

    @cached_property
    def domain(self) -> Domain:
        return box_domain(self.family, self.dim)

    @cached_property
    def family(self) -> MeanField:
        return MeanField(prior_std=self.prior_std, box=Box(mean=(-self.reach, self.reach)))

    def constant(self, rule: Rule) -> float:
        """The one that a rule's Adaptive rate takes from the box."""
        return Plan(self.loss, self.family, rule, False, self.dim, None).step_rate.c

    @cached_property
    def lipschitz(self) -> float:
        """L of the loss in the weights, on rows of this length."""
        if not math.isfinite(self.loss.lipschitz):
            kind = type(self.loss).__name__
            raise ValueError(f"{kind} is Lipschitz on bounded data only: use bounds.lipschitz(X, y, loss=…) and the theorems")
        return self.loss.lipschitz * self.row_norm + self.loss.ridge * self.domain.radius

    @property
    def strong_convexity(self) -> float:
        return 1.0 / (self.prior_std * self.prior_std)

    def kl(self, count: int) -> float:
        """KL(q_u‖prior) of the comparator N(u, std²), std = prior_std/√count."""
        spread = -1.0 + 1.0 / count + math.log(count)
        return 0.5 * ((self.distance / self.prior_std) ** 2 + self.dim * spread)

    def at(self, count: int) -> dict[str, Any]:
        """The numbers that most theorems share, for a stream of this length."""
        return {"count": count, "lipschitz": self.lipschitz, "diameter": self.domain.diameter}


@dataclass(frozen=True)
class Entry:
    """A bound, the rate it is for, and from which T on it says something (None: never)."""

    bound: Bound
    """Its trivial bound is the regret of never learning, where the loss at 0 is known: 1 a step for the hinge."""
    rate: str
    informative_from: int | None


def calculate(setting: Setting, rule: str, *, rate: float | None = None, loss_bound: float | None = None) -> list[Entry]:
    """The bounds of a rule at the paper's rate (or ``rate``), at its best one, and at ``Adaptive()``.

    NGVI has none: see ``certificate``.

    The comparator is N(u, std²) with std = prior_std/√T, for u at ``distance`` from the prior mean.

    >>> import onlinevi as ovi
    >>> entries = calculate(Setting(count=10_000, dim=54, loss=ovi.Hinge()), "sva")
    >>> [(entry.bound.name, round(entry.bound.value)) for entry in entries]
    [('SVA', 22318), ('SVA at its best rate', 2981), ('SVA, mean field', 3716), ('SVA, adaptive', 13372)]
    """
    match rule:
        case "ewa":
            candidates = _ewa(setting, rate, loss_bound)
        case "oga-el":
            candidates = _oga_el(setting, rate)
        case "sva":
            candidates = _sva(setting, rate)
        case "svb":
            candidates = _svb(setting, rate)
        case "ngvi":
            candidates = []
        case _:
            raise ValueError(f"rule={rule!r}: needs one of {', '.join(RULES)}")
    found = [(partial(_against_never_learning, bound_at, setting.loss), size) for bound_at, size in candidates]
    return [Entry(bound_at(setting.count), size, informative_from(bound_at)) for bound_at, size in found]


def _against_never_learning(bound_at: Callable[[int], Bound], loss: Loss, count: int) -> Bound:
    """Who predicts 0 throughout has at most this regret, for losses ≥ 0 that are the same at 0 for either label."""
    bound = bound_at(count)
    if not isinstance(loss, Hinge | Logistic) or bound.name.endswith("risk"):
        return bound
    return replace(bound, trivial=min(bound.trivial, float(loss(1.0, 0.0).value) * count))


def _ewa(setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
    if loss_bound is None:
        raise ValueError("rule='ewa': its bounds need the largest loss; give loss_bound")
    eta, best = _paper(setting, rate), ewa_rate(count=setting.count, dim=setting.dim, loss_bound=loss_bound)

    def excess_risk(count: int) -> Bound:
        enough = max(count, setting.dim + 1)
        bound = ewa_excess_risk(count=enough, dim=setting.dim, loss_bound=loss_bound)
        return bound if count == enough else replace(bound, trivial=0.0)  # it needs more events than dimensions

    return [
        (lambda n: ewa(rate=eta, count=n, loss_bound=loss_bound, kl=setting.kl(n)), f"rate {eta:.4g}"),
        (excess_risk, f"rate {best:.4g}"),
    ]


def _sva(setting: Setting, rate: float | None) -> list[Candidate]:
    eta, alpha = _paper(setting, rate), setting.strong_convexity
    best = sva_best_rate(
        count=setting.count, lipschitz=setting.lipschitz, kl=setting.kl(setting.count), strong_convexity=alpha
    )
    c = setting.constant(SVA(Adaptive()))

    def by_gradients(count: int, gradient_square: float) -> Bound:
        longest = {"largest_gradient": setting.lipschitz, "gradient_square": gradient_square}
        diameter, kl = setting.domain.diameter, setting.kl(count)
        return sva_adaptive(constant=c, kl=kl, diameter=diameter, strong_convexity=alpha, **longest)

    point: dict[str, Any] = {"dim": setting.dim, "distance": setting.distance, "prior_std": setting.prior_std}
    return [
        (lambda n: sva(rate=eta, kl=setting.kl(n), strong_convexity=alpha, **setting.at(n)), f"rate {eta:.4g}"),
        (lambda n: sva_at_best_rate(kl=setting.kl(n), strong_convexity=alpha, **setting.at(n)), f"rate {best:.4g}"),
        (lambda n: sva_mean_field(**point, **setting.at(n)), f"rate {best:.4g}"),
        (partial(_adaptive, setting, by_gradients), f"rate {c:.4g}/√Σ‖g‖²"),
    ]


def _svb(setting: Setting, rate: float | None) -> list[Candidate]:
    L, domain, H = setting.lipschitz, setting.domain, setting.loss.ridge
    steps = (rate if rate is not None else 1.0, svb_best_step(lipschitz=L, domain=domain))
    found: list[Candidate] = [
        (partial(_svb_convex, step, L, domain), f"rate {step:.4g}/(std²√t)") for step in dict.fromkeys(steps)
    ]
    if H > 0.0:
        found.append((lambda n: svb_strongly_convex(strong_convexity=H, **setting.at(n)), f"rate 2/({H:.4g}·t·std²)"))
    c = setting.constant(SVB(Adaptive()))
    by_gradients = partial(_adaptive, setting, lambda n, S: svb_adaptive(constant=c, gradient_square=S, domain=domain))
    return [*found, (by_gradients, f"rate {c:.4g}/(std²√Σ‖g‖²)")]


def _adaptive(setting: Setting, bound: Callable[[int, float], Bound], count: int) -> Bound:
    """A bound of the rate Adaptive, with the most that the squared gradients of a stream of this length sum to."""
    L = setting.lipschitz
    return replace(bound(count, L**2 * count), trivial=L * setting.domain.diameter * count)


def _svb_convex(step: float, lipschitz: float, domain: Domain, count: int) -> Bound:
    return svb_convex(step=step, count=count, lipschitz=lipschitz, domain=domain)


def _oga_el(setting: Setting, rate: float | None) -> list[Candidate]:
    step, alpha = _paper(setting, rate) * setting.prior_std**2, setting.strong_convexity
    away = math.hypot(setting.distance, setting.prior_std * math.sqrt(setting.dim))
    best = away / (setting.lipschitz * math.sqrt(setting.count))
    c = setting.constant(OGAEL(Adaptive()))
    kappa, diameter = c * setting.prior_std**2, setting.domain.diameter
    return [
        (lambda n: oga_el(step=step, distance=away, **setting.at(n)), f"step {step:.4g}"),
        (lambda n: oga_el(step=away / (setting.lipschitz * math.sqrt(n)), distance=away, **setting.at(n)), f"step {best:.4g}"),
        (
            lambda n: oga_el_divergence(step=step, kl=setting.kl(n), strong_convexity=alpha, **setting.at(n)),
            f"step {step:.4g}",
        ),
        (
            partial(_adaptive, setting, lambda n, S: oga_el_adaptive(step=kappa, gradient_square=S, diameter=diameter)),
            f"step {kappa:.4g}/√Σ‖g‖²",
        ),
    ]


def _paper(setting: Setting, rate: float | None) -> float:
    """The paper's rate for this stream, unless one is given."""
    return rate if rate is not None else 1.0 / math.sqrt(setting.count)
