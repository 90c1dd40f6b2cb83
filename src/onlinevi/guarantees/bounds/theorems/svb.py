"""Streaming variational Bayes, Theorem 3: its regret for convex and strongly convex losses, and at rates from gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onlinevi.beliefs import edges
from onlinevi.guarantees.bounds.bound import Bound, as_squares, most_regret, non_negative, positive, whole
from onlinevi.guarantees.bounds.comparison import Comparison
from onlinevi.guarantees.bounds.domains import Domain, domain_of
from onlinevi.guarantees.bounds.risk import excess_risk
from onlinevi.guarantees.bounds.setting import Candidate, Setting
from onlinevi.guarantees.bounds.theorem import Theorem
from onlinevi.learners import Plan
from onlinevi.rules import SVB, Adaptive, Explicit, PaperSVB, StronglyConvex


def svb_convex(*, step: float, count: int, lipschitz: float, domain: Domain, printed: bool = False) -> Bound:
    """SVB with the rate K/(std²·√t), K = ``step`` (Theorem 3): (D₁²/K + K·L²)·√T, for stds that may shrink to 0.

    The paper prints (13), D·L·√(2T) for K = √2·D/L, which a stream of linear losses exceeds by a quarter.
    """
    whole(count)
    positive(step=step, lipschitz=lipschitz)
    root, trivial = math.sqrt(count), most_regret(lipschitz, domain.diameter, count)
    if printed:
        D = domain.theorem_diameter
        needed = math.sqrt(2.0) * D / lipschitz
        if not math.isclose(step, needed, rel_tol=1e-9):
            raise ValueError(f"step={step!r}: the printed theorem is for the step √2·D/L = {needed:.6g}")
        terms = {"domain and gradients": D * lipschitz * root * math.sqrt(2.0)}
        return Bound("SVB, convex", terms, False, "Σ K·L²/(2√t) is K·L²·√T, not half of it", trivial)
    terms = {"domain": domain.svb_diameter**2 / step * root, "gradients": step * lipschitz**2 * root}
    return Bound("SVB, convex", terms, trivial=trivial)


def svb_best_step(*, lipschitz: float, domain: Domain) -> float:
    """K = D₁/L makes ``svb_convex`` least: 2·D₁·L·√T."""
    positive(lipschitz=lipschitz)
    return domain.svb_diameter / lipschitz


def svb_strongly_convex(*, count: int, lipschitz: float, strong_convexity: float, diameter: float = math.inf) -> Bound:
    """SVB with the rate 2/(H·t·std²) on H-strongly convex losses (14): L²·(1 + ln T)/H. A ridge λ gives H = λ."""
    whole(count)
    positive(strong_convexity=strong_convexity)
    non_negative(lipschitz=lipschitz)
    terms = {"gradients": lipschitz**2 * (1.0 + math.log(count)) / strong_convexity}
    return Bound("SVB, strongly convex", terms, trivial=most_regret(lipschitz, diameter, count))


def svb_excess_risk(*, step: float, count: int, lipschitz: float, domain: Domain, printed: bool = False) -> Bound:
    """Section 4.2, convex: E[risk(θ̄_T)] − least risk ≤ (D₁²/K + K·L²)/√T, for i.i.d. events; printed D·L·√2/√T.

    At K = D₁/L and means in [−M, M]^d, stds in [0, S]^d, it is 2L·√(d·(2M² + S²)/T); on balls no d is in it.
    """
    return excess_risk(svb_convex(step=step, count=count, lipschitz=lipschitz, domain=domain, printed=printed), count)


def svb_strongly_convex_excess_risk(
    *, count: int, lipschitz: float, strong_convexity: float, diameter: float = math.inf
) -> Bound:
    """Section 4.2, H-strongly convex: E[risk(θ̄_T)] − least risk ≤ L²·(1 + ln T)/(H·T), for i.i.d. events."""
    numbers = {"lipschitz": lipschitz, "strong_convexity": strong_convexity, "diameter": diameter}
    return excess_risk(svb_strongly_convex(count=count, **numbers), count)


def svb_convex_observed(*, step: float, gradient_squares: Any, domain: Domain) -> Bound:
    """SVB with the rate K/(std²·√t): D₁²·√T/K + (K/2)·Σ‖∇_t‖²/√t."""
    positive(step=step)
    squares = as_squares(gradient_squares)
    weighted = float(squares @ (1.0 / np.sqrt(np.arange(1.0, len(squares) + 1.0))))
    terms = {"domain": domain.svb_diameter**2 / step * math.sqrt(len(squares)), "gradients": 0.5 * step * weighted}
    return Bound("SVB, convex, observed", terms)


def svb_strongly_convex_observed(*, gradient_squares: Any, strong_convexity: float) -> Bound:
    """SVB with the rate 2/(H·t·std²): (1/H)·Σ‖∇_t‖²/t."""
    positive(strong_convexity=strong_convexity)
    squares = as_squares(gradient_squares)
    weighted = float(squares @ (1.0 / np.arange(1.0, len(squares) + 1.0)))
    return Bound("SVB, strongly convex, observed", {"gradients": weighted / strong_convexity})


def svb_adaptive(*, constant: float, gradient_square: float, domain: Domain) -> Bound:
    """SVB at c/(std²·√(Σ_{s≤t}‖g_s‖²)): (D₁²/c + c)·√(Σ‖g‖²), for stds that may shrink to 0. Best c = D₁."""
    positive(constant=constant)
    non_negative(gradient_square=gradient_square)
    root = math.sqrt(gradient_square)
    return Bound("SVB, adaptive", {"domain": domain.svb_diameter**2 / constant * root, "gradients": constant * root})


class ConvexSVB(Theorem):
    """SVB at the paper's rate for convex losses, Theorem 3."""

    name, rules, rates = "svb", (SVB,), (PaperSVB, Explicit)
    rates_in_words = "PaperSVB(K), Explicit(L)"
    in_balls = True

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        _require_vanishing(run.plan)
        return svb_convex(step=run.plan.step_rate.c, count=run.count, lipschitz=lipschitz, domain=run.domain)

    def after_data(self, run: Comparison) -> Bound:
        _require_vanishing(run.plan)
        domain = run.domain
        return svb_convex_observed(step=run.plan.step_rate.c, gradient_squares=run.squares(), domain=domain)

    def everywhere(self, plan: Plan, lipschitz: float) -> Callable[[int], float] | None:
        step, domain = plan.step_rate.c, domain_of(plan.family, plan.dim)
        return lambda count: svb_convex(step=step, count=count, lipschitz=lipschitz, domain=domain).value

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        L, domain = setting.lipschitz, setting.domain
        steps = (rate if rate is not None else 1.0, svb_best_step(lipschitz=L, domain=domain))

        def candidate(step: float) -> Candidate:
            return lambda n: svb_convex(step=step, count=n, lipschitz=L, domain=domain), f"rate {step:.4g}/(std²√t)"

        def risk(count: int) -> Bound:
            return svb_excess_risk(step=steps[1], count=count, lipschitz=L, domain=domain)

        return [*(candidate(step) for step in dict.fromkeys(steps)), (risk, f"rate {steps[1]:.4g}/(std²√t)")]


class StronglyConvexSVB(Theorem):
    """SVB at the paper's rate for losses that a ridge makes strongly convex, Theorem 3 (14)."""

    name, rules, rates = "svb", (SVB,), (StronglyConvex,)
    rates_in_words = "with a ridge StronglyConvex(ridge)"
    in_balls = True

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        return svb_strongly_convex(count=run.count, lipschitz=lipschitz, strong_convexity=self._strong_convexity(run.plan))

    def after_data(self, run: Comparison) -> Bound:
        convexity = self._strong_convexity(run.plan)
        return svb_strongly_convex_observed(gradient_squares=run.squares(), strong_convexity=convexity)

    def _strong_convexity(self, plan: Plan) -> float:
        needed = plan.step_rate.c
        if not plan.loss.ridge >= needed:
            raise ValueError(
                f"{plan.step_rate} is for losses that are {needed}-strongly convex; {plan.loss} is known to be "
                f"{plan.loss.ridge}-strongly convex, by its ridge"
            )
        _require_vanishing(plan)
        return needed

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        H = setting.loss.ridge
        if H == 0.0:
            return []
        size = f"rate 2/({H:.4g}·t·std²)"
        return [
            (lambda n: svb_strongly_convex(strong_convexity=H, **setting.at(n)), size),
            (lambda n: svb_strongly_convex_excess_risk(strong_convexity=H, **setting.at(n)), size),
        ]


class AdaptiveSVB(Theorem):
    """SVB at ``Adaptive`` rates: the same bound before and after the data."""

    name, rules, rates = "svb", (SVB,), (Adaptive,)
    rates_in_words = "Adaptive()"
    in_balls = True

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        return self._bound(run, lipschitz**2 * run.count)

    def after_data(self, run: Comparison) -> Bound:
        return self._bound(run, run.state.gradient_square)

    def _bound(self, run: Comparison, gradient_square: float) -> Bound:
        _require_vanishing(run.plan)
        return svb_adaptive(constant=run.plan.step_rate.c, gradient_square=gradient_square, domain=run.domain)

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        c, domain = setting.constant(SVB(Adaptive())), setting.domain

        def bound(count: int, gradient_square: float) -> Bound:
            return svb_adaptive(constant=c, gradient_square=gradient_square, domain=domain)

        return [setting.by_gradients(bound, f"rate {c:.4g}/(std²√Σ‖g‖²)")]


def _require_vanishing(plan: Plan) -> None:
    if (edges(plan.family, plan.dim)[2] > 0.0).any():
        raise ValueError(f"{plan.family.box}: the bound of SVB needs stds that may shrink to 0; set Box(std=(0, …))")
