"""What a theorem promised of a run's regret before its data, where one speaks of its rule, its rate and its loss."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from onlinevi.beliefs import PRIOR_STD, edges
from onlinevi.guarantees import bounds
from onlinevi.learners import Plan
from onlinevi.rules import OGA, OGAEL, SVA, SVB, PaperSVB, PerSqrt
from onlinevi.runs.job import Job


def promised_regret(job: Job) -> Callable[[int], float] | None:
    """The most that the regret can be, a row, after so many events, against every point of the rule's box; None without one.

    No prepared value exceeds the squash c, so no row of d columns and the intercept is longer than √(1 + c²·d).
    """
    leaf = None if job.state is None else job.state.alone()
    if leaf is None or job.settings.delay or job.had_missing:
        return None
    plan, squash = leaf.plan, job.learner.inputs.squash
    if squash is None or not (plan.loss.convex and math.isfinite(plan.loss.lipschitz)):
        return None
    if plan.family.correlated or not np.isfinite(edges(plan.family, plan.dim)).all():
        return None
    lipschitz = plan.loss.lipschitz * math.sqrt(1.0 + squash**2 * (plan.dim - 1))
    total = _total(plan, lipschitz)
    return None if total is None else lambda count: total(count) / count


def _total(plan: Plan, lipschitz: float) -> Callable[[int], float] | None:
    """The theorem of a rule at its rate."""
    domain, rate = bounds.box_domain(plan.family, plan.dim), plan.rule.step_rate
    variance = float(np.max(plan.frame[PRIOR_STD])) ** 2
    match plan.rule:
        case SVB() if isinstance(rate, PaperSVB):
            return lambda count: bounds.svb_convex(step=rate.c, count=count, lipschitz=lipschitz, domain=domain).value
        case SVA() if isinstance(rate, PerSqrt):
            return lambda count: _sva(plan, rate.c, lipschitz, count)
        case OGA() | OGAEL() if isinstance(rate, PerSqrt):
            own = {"step": rate.c * variance, "lipschitz": lipschitz, "diameter": domain.diameter}
            return lambda count: bounds.oga_el_per_sqrt(count=count, **own).value
    return None


def _sva(plan: Plan, step: float, lipschitz: float, count: int) -> float:
    """Against the farthest corner u, by way of N(u, std²) with std = s/√T, whose spread costs at most L·std·√d an event."""
    prior = plan.family.init(plan.dim)
    low, high, _, _ = edges(plan.family, plan.dim)
    farthest = np.maximum(np.abs(low - prior.mean), np.abs(high - prior.mean)) / prior.std
    kl = 0.5 * float(np.sum(np.square(farthest) + 1.0 / count - 1.0 + math.log(count)))
    alpha = bounds.kl_strong_convexity(plan.family, plan.dim)
    main = bounds.sva_per_sqrt(step=step, count=count, lipschitz=lipschitz, kl=kl, strong_convexity=alpha)
    return main.value + lipschitz * float(np.linalg.norm(prior.std)) * math.sqrt(count)
