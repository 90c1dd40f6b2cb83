"""Gradient descent on the expected loss (Theorem 4), or on that at a point: steps of one size, κ/√t, or from the gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onlinevi.beliefs import edges, named_rows, radii
from onlinevi.engine import Vector, rate_at
from onlinevi.guarantees.bounds.bound import Bound, most_regret, non_negative, positive, whole
from onlinevi.guarantees.bounds.comparison import Comparison, in_steps
from onlinevi.guarantees.bounds.domains import domain_of
from onlinevi.guarantees.bounds.setting import Candidate, Setting
from onlinevi.guarantees.bounds.theorem import UNCHANGING, UNCHANGING_IN_WORDS, Theorem
from onlinevi.guarantees.bounds.theorems.sva import ScheduledSVA, sva_schedule
from onlinevi.learners import Plan
from onlinevi.rules import OGA, OGAEL, Adaptive, LazyOGAEL, PerSqrt


def oga_el(
    *, step: float, count: int, lipschitz: float, distance: float, diameter: float = math.inf, printed: bool = False
) -> Bound:
    """OGA-EL with steps of size κ, ``step`` (Theorem 4): (κ/2)·L²·T + ‖u − μ₁‖²/(2κ). In mean field κ = η·s² at rate η.

    ``printed=True``: κ·L²·T + ‖u − μ₁‖²/κ, the theorem's first bound, which holds and is twice this.
    """
    whole(count)
    positive(step=step)
    non_negative(lipschitz=lipschitz, distance=distance)
    half = 1.0 if printed else 0.5
    terms = {"gradients": half * step * lipschitz**2 * count, "distance": half * distance**2 / step}
    return Bound("OGA-EL", terms, trivial=most_regret(lipschitz, diameter, count))


def lazy_oga_el_schedule(*, steps: Any, gradient_squares: Any, distance: float) -> Bound:
    """Lazy OGA-EL with steps κ_t that never grow: Σ (κ_t/2)·‖∇_t‖² + ‖u − μ₁‖²/(2κ_T), as for SVA with ½‖u − μ₁‖² for KL."""
    non_negative(distance=distance)
    same = sva_schedule(rates=steps, gradient_squares=gradient_squares, kl=0.5 * distance**2)
    return Bound("lazy OGA-EL, schedule", dict(zip(("gradients", "distance"), same.terms.values(), strict=True)))


def oga_el_per_sqrt(*, step: float, count: int, lipschitz: float, diameter: float) -> Bound:
    """OGA and OGA-EL with steps of size κ/√t, κ = ``step``: (D²/(2κ) + κ·L²)·√T, against every point of the domain."""
    whole(count)
    positive(step=step)
    non_negative(lipschitz=lipschitz, diameter=diameter)
    root = math.sqrt(count)
    terms = {"domain": diameter**2 / (2.0 * step) * root, "gradients": step * lipschitz**2 * root}
    return Bound("OGA-EL, κ/√t", terms, trivial=most_regret(lipschitz, diameter, count))


def oga_el_divergence(
    *,
    step: float,
    count: int,
    lipschitz: float,
    kl: float,
    strong_convexity: float,
    diameter: float = math.inf,
    printed: bool = False,
) -> Bound:
    """OGA-EL from the prior (Theorem 4): (κ/2)·L²·T + KL(q_u‖prior)/(α·κ), since (α/2)·‖u − μ₁‖² ≤ KL(q_u‖prior).

    ``printed=True``: κ·L²·T + α·KL/(2κ), the theorem's second bound, which a constant slope exceeds up to 2/α² times.
    """
    whole(count)
    positive(step=step, strong_convexity=strong_convexity)
    non_negative(lipschitz=lipschitz, kl=kl)
    if printed:
        terms = {"gradients": step * lipschitz**2 * count, "divergence": strong_convexity * kl / (2.0 * step)}
        note = "‖u − μ₁‖² ≤ 2·KL/α: α is inverted"
        return Bound("OGA-EL, by divergence", terms, False, note, most_regret(lipschitz, diameter, count))
    terms = {"gradients": 0.5 * step * lipschitz**2 * count, "divergence": kl / (strong_convexity * step)}
    return Bound("OGA-EL, by divergence", terms, trivial=most_regret(lipschitz, diameter, count))


def oga_el_observed(*, step: float, gradient_square: float, distance: float) -> Bound:
    """OGA-EL with steps of size κ: (κ/2)·Σ‖∇‖² + ‖u − μ₁‖²/(2κ); ``gradient_square`` is the sum."""
    positive(step=step)
    non_negative(gradient_square=gradient_square, distance=distance)
    return Bound("OGA-EL, observed", {"gradients": 0.5 * step * gradient_square, "distance": distance**2 / (2.0 * step)})


def oga_el_adaptive(*, step: float, gradient_square: float, diameter: float) -> Bound:
    """OGA-EL with steps of size κ/√(Σ_{s≤t}‖g_s‖²), κ = ``step``: (D²/(2κ) + κ)·√(Σ‖g‖²). Best κ = D/√2."""
    positive(step=step)
    non_negative(gradient_square=gradient_square, diameter=diameter)
    root = math.sqrt(gradient_square)
    return Bound("OGA-EL, adaptive", {"domain": diameter**2 / (2.0 * step) * root, "gradients": step * root})


class ConstantOGAEL(Theorem):
    """OGA and OGA-EL, lazy or not, at a rate that does not change, Theorem 4: at rate η the largest step is κ = η·s²."""

    name, rules = "oga-el", (OGA, OGAEL, LazyOGAEL)
    rates, rates_in_words = UNCHANGING, UNCHANGING_IN_WORDS
    in_balls = with_covariances = True

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        widest, distance = in_steps(run.plan, run.apart)
        return oga_el(step=run.rate * widest**2, count=run.count, lipschitz=lipschitz, distance=distance)

    def after_data(self, run: Comparison) -> Bound:
        widest, distance = in_steps(run.plan, run.apart)
        return oga_el_observed(step=run.rate * widest**2, gradient_square=run.state.gradient_square, distance=distance)

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        step, alpha, L = setting.paper_rate(rate) * setting.prior_std**2, setting.strong_convexity, setting.lipschitz
        away = math.hypot(setting.distance, setting.prior_std * math.sqrt(setting.dim))

        def best(count: int) -> float:
            return away / (L * math.sqrt(count))

        def by_divergence(count: int) -> Bound:
            return oga_el_divergence(step=step, kl=setting.kl(count), strong_convexity=alpha, **setting.at(count))

        return [
            (lambda n: oga_el(step=step, distance=away, **setting.at(n)), f"step {step:.4g}"),
            (lambda n: oga_el(step=best(n), distance=away, **setting.at(n)), f"step {best(setting.count):.4g}"),
            (by_divergence, f"step {step:.4g}"),
        ]


class ScheduledLazyOGAEL(ScheduledSVA):
    """Lazy OGA-EL at any rates that never grow: as SVA, by the distance instead of the divergence."""

    name, rules = "oga-el", (LazyOGAEL,)

    def _bound(self, run: Comparison, squares: Vector) -> Bound:
        widest, distance = in_steps(run.plan, run.apart)
        schedule = run.plan.rule.step_rate.schedule(run.plan.horizon)
        steps = widest**2 * rate_at(*schedule, np.arange(1.0, run.count + 1.0))
        return lazy_oga_el_schedule(steps=steps, gradient_squares=squares, distance=distance)


class PerSqrtOGAEL(Theorem):
    """OGA and OGA-EL at the rate c/√t, against every point of the domain."""

    name, rules, rates = "oga-el", (OGA, OGAEL), (PerSqrt,)
    rates_in_words = "against the whole box PerSqrt(c)"
    in_balls = True

    def everywhere(self, plan: Plan, lipschitz: float) -> Callable[[int], float] | None:
        step = plan.step_rate.c * float(np.max(named_rows(plan.prior_and_box).prior_std)) ** 2
        diameter = domain_of(plan.family, plan.dim).diameter
        return lambda count: oga_el_per_sqrt(step=step, count=count, lipschitz=lipschitz, diameter=diameter).value


def _across(plan: Plan) -> tuple[float, float]:
    """The widest prior std, and the diameter of the domain in the unit of its step: in a ball all steps are alike."""
    domain = domain_of(plan.family, plan.dim)  # refuse one without ends
    if radii(plan.family, plan.dim) is not None:
        return float(np.max(named_rows(plan.prior_and_box).prior_std)), domain.diameter
    mean_low, mean_high, std_low, std_high = edges(plan.family, plan.dim)
    return in_steps(plan, np.stack([mean_high - mean_low, std_high - std_low]))


class AdaptiveOGAEL(Theorem):
    """OGA and OGA-EL at ``Adaptive`` rates: the same bound before and after the data."""

    name, rules, rates = "oga-el", (OGA, OGAEL), (Adaptive,)
    rates_in_words = "Adaptive()"
    in_balls = True

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        return self._bound(run.plan, lipschitz**2 * run.count)

    def after_data(self, run: Comparison) -> Bound:
        return self._bound(run.plan, run.state.gradient_square)

    def _bound(self, plan: Plan, gradient_square: float) -> Bound:
        widest, diameter = _across(plan)
        return oga_el_adaptive(step=plan.step_rate.c * widest**2, gradient_square=gradient_square, diameter=diameter)

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        step, diameter = setting.constant(OGAEL(Adaptive())) * setting.prior_std**2, setting.domain.diameter

        def bound(count: int, gradient_square: float) -> Bound:
            return oga_el_adaptive(step=step, gradient_square=gradient_square, diameter=diameter)

        return [setting.by_gradients(bound, f"step {step:.4g}/√Σ‖g‖²")]
