"""Natural-gradient variational inference where it has a bound: with a floor, in scale parameters, and for squared losses.

None of these is in the paper, which expects one (section 4.3); docs/ngvi.md has the proofs, and the streams on which NGVI as
it stands has linear regret.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onlinevi.beliefs import edges, named_rows
from onlinevi.engine import Vector
from onlinevi.guarantees.bounds.bound import Bound, most_regret, non_negative, positive, whole
from onlinevi.guarantees.bounds.comparison import Comparison
from onlinevi.guarantees.bounds.domains import Domain, box_domain
from onlinevi.guarantees.bounds.setting import Candidate, Setting
from onlinevi.guarantees.bounds.theorem import UNCHANGING, Theorem
from onlinevi.guarantees.bounds.theorems.svb import svb_convex, svb_convex_observed
from onlinevi.learners import Plan
from onlinevi.rules import NGVI, PaperSVB, Rule, ScaleNGVI

FLOOR = 0.1
"""The floor that the calculator shows."""


def ngvi_floor(
    *, step: float, count: int, lipschitz: float, reach: float, prior_std: float, spread: float | None = None
) -> Bound:
    """NGVI with a floor and no prior term, at a step α: R²/(2α) + (α/2)·s²·L²·T + s·L·T.

    R, ``reach``, is the length of (D_j/least std_j), D the sides of the box of means: ‖D‖/(floor·s) for one prior std s.
    ``spread`` stands for the last s where the loss is Lipschitz on a box only, as the squared one, or has a ridge: ‖s‖, the
    length of all prior stds. At α = R/(s·L·√T) and s = ‖D‖/√T it is (1/floor + 1)·‖D‖·L·√T, at smaller s less.
    """
    whole(count)
    positive(step=step, prior_std=prior_std, reach=reach)
    non_negative(lipschitz=lipschitz)
    observed = ngvi_floor_observed(
        step=step,
        reach=reach,
        energy=(prior_std * lipschitz) ** 2 * count,
        spread=(prior_std if spread is None else spread) * lipschitz * count,
    )
    return Bound("NGVI, floor", observed.terms)


def ngvi_floor_best_step(*, count: int, lipschitz: float, reach: float, prior_std: float) -> float:
    """α = R/(s·L·√T) makes ``ngvi_floor`` least at a given prior: R·s·L·√T + s·L·T."""
    whole(count)
    positive(lipschitz=lipschitz, reach=reach, prior_std=prior_std)
    return reach / (prior_std * lipschitz * math.sqrt(count))


def ngvi_floor_observed(*, step: float, reach: float, energy: float, spread: float) -> Bound:
    """NGVI with a floor: R²/(2α) + (α/2)·Σ_t Σ_j g_{t,j}²·std²_{t+1,j} + Σ_t ⟨γ_t, std_t⟩, against every point of the box.

    ``reach`` R is the length of (D_j/std_j) at the stds behind the last event, ``energy`` and ``spread`` are the two sums.
    """
    positive(step=step)
    non_negative(reach=reach, energy=energy, spread=spread)
    terms = {"domain": reach**2 / (2.0 * step), "gradients": 0.5 * step * energy, "spread": spread}
    return Bound("NGVI, floor, observed", terms)


def ngvi_scale(*, step: float, count: int, lipschitz: float, domain: Domain, kl: float = 0.0, rate: float = math.inf) -> Bound:
    """NGVI in scale parameters at the step K/(std²·√t), K = ``step``: (D₁²/K + K·L²)·√T + T·KL(q_u‖prior)/η, η = ``rate``.

    Stds stay at or below the prior's. At η = ∞ it is Theorem 3 put right, ``svb_convex``; with η = c·√T all of it is O(√T).
    """
    svb = svb_convex(step=step, count=count, lipschitz=lipschitz, domain=domain)
    return replace(svb, name="NGVI, scale", terms={**svb.terms, **_divergence(count, kl, rate)})


def ngvi_scale_observed(
    *, step: float, gradient_squares: Any, domain: Domain, kl: float = 0.0, rate: float = math.inf
) -> Bound:
    """NGVI in scale parameters at the step K/(std²·√t): D₁²·√T/K + (K/2)·Σ‖∇_t‖²/√t + T·KL(q_u‖prior)/η."""
    svb = svb_convex_observed(step=step, gradient_squares=gradient_squares, domain=domain)
    return Bound("NGVI, scale, observed", {**svb.terms, **_divergence(len(gradient_squares), kl, rate)})


def _divergence(count: int, kl: float, rate: float) -> dict[str, float]:
    if rate == math.inf:
        return {}
    positive(rate=rate)
    non_negative(kl=kl)
    return {"divergence": count * kl / rate}


def ngvi_squared(*, step: float, count: int, dim: int, row_norm: float, prior_std: float, largest_residual: float) -> Bound:
    """NGVI and Implicit with all covariances, no box, and squared losses, at a step α: B²·d·ln(1 + 2α·s²·R²·T/d).

    It is on Σ ℓ_t(θ̂_t) − inf_u {Σ ℓ_t(u) + ‖u − m₁‖²/(2α·s²)}; R is ``row_norm`` and B ``largest_residual``, of the decisions.
    """
    whole(count)
    positive(step=step, row_norm=row_norm, prior_std=prior_std)
    non_negative(largest_residual=largest_residual)
    logs = dim * math.log1p(2.0 * step * (prior_std * row_norm) ** 2 * count / dim)
    return Bound("NGVI, squared loss", {"log determinant": largest_residual**2 * logs})


class FloorNGVI(Theorem):
    """NGVI with a floor and no prior term, at a step that does not change; against every point of the box."""

    name, rules, rates = "ngvi", (NGVI,), UNCHANGING
    rates_in_words = "that do not change, with floor=… and no prior term"

    def speaks_of(self, rule: Rule) -> bool:
        return super().speaks_of(rule) and rule.std_floor > 0.0 and rule.prior_rate is None

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        return self._bound(run.plan, run.count, lipschitz)

    def after_data(self, run: Comparison) -> Bound:
        """With the sums that a state keeps: Σ g²std² ≤ s²·Σ‖∇‖², and Σ⟨γ, std⟩ by Cauchy and Schwarz, or less Σ e1·a."""
        state, prior_std = run.state, run.plan.family.init(run.plan.dim).std
        spread = float(np.linalg.norm(prior_std)) * math.sqrt(run.count * state.gradient_square)
        spread = min(spread, max(state.product + state.magnitude, 0.0) if not run.plan.loss.ridge else math.inf)
        if run.lipschitz is not None:
            spread = min(spread, _most_spread(run.plan) * run.lipschitz * run.count)
        return ngvi_floor_observed(
            step=run.rate,
            reach=_reach(run.plan, state.std),
            energy=float(np.max(prior_std)) ** 2 * state.gradient_square,
            spread=spread,
        )

    def everywhere(self, plan: Plan, lipschitz: float) -> Callable[[int], float] | None:
        return lambda count: self._bound(plan, count, lipschitz).value

    def _bound(self, plan: Plan, count: int, lipschitz: float) -> Bound:
        least = np.broadcast_to(named_rows(plan.prior_and_box).std_low, (plan.dim,))
        return ngvi_floor(
            step=plan.step_rate.schedule(plan.horizon).scale,
            count=count,
            lipschitz=lipschitz,
            reach=_reach(plan, least),
            prior_std=float(np.max(plan.family.init(plan.dim).std)),
            spread=_most_spread(plan),
        )

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        L, sides = setting.lipschitz, setting.domain.mean_diameter
        most = math.sqrt(setting.dim) if setting.loss.ridge else 1.0

        def at(step: float | None, prior_std: Callable[[int], float]) -> Callable[[int], Bound]:
            def bound(count: int) -> Bound:
                s = prior_std(count)
                known: dict[str, Any] = {"count": count, "lipschitz": L, "reach": sides / (FLOOR * s), "prior_std": s}
                best = ngvi_floor_best_step(**known) if step is None else step
                trivial = most_regret(L, setting.domain.diameter, count)
                return replace(ngvi_floor(step=best, spread=most * s, **known), trivial=trivial)

            return bound

        def narrow(count: int) -> float:
            return min(setting.prior_std, sides / math.sqrt(count))

        step = rate if rate is not None else 1.0
        return [
            (at(step, lambda n: setting.prior_std), f"step {step:.4g}, floor {FLOOR}"),
            (at(None, narrow), f"its best step, floor {FLOOR}, prior std {narrow(setting.count):.4g}"),
        ]


class ConvexScaleNGVI(Theorem):
    """NGVI in scale parameters at SVB's step for convex losses, with a prior term of an unchanging rate or without."""

    name, rules, rates = "ngvi", (ScaleNGVI,), (PaperSVB,)
    rates_in_words = "PaperSVB(K)"

    def speaks_of(self, rule: Rule) -> bool:
        return super().speaks_of(rule) and (rule.prior_rate is None or isinstance(rule.prior_rate, UNCHANGING))

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        step = run.plan.step_rate.c
        return ngvi_scale(step=step, count=run.count, lipschitz=lipschitz, domain=run.domain, **self._prior_term(run))

    def after_data(self, run: Comparison) -> Bound:
        step, prior_term = run.plan.step_rate.c, self._prior_term(run)
        return ngvi_scale_observed(step=step, gradient_squares=run.squares(), domain=run.domain, **prior_term)

    def _prior_term(self, run: Comparison) -> dict[str, float]:
        plan = run.plan
        if (edges(plan.family, plan.dim)[3] > plan.family.init(plan.dim).std).any():
            raise ValueError(f"{plan.family.box}: the bound needs stds at or below the prior's; set Box(std=(0, 1))")
        rate = plan.rule.prior_rate
        return {} if rate is None else {"kl": run.kl, "rate": rate.schedule(plan.horizon).scale}

    def everywhere(self, plan: Plan, lipschitz: float) -> Callable[[int], float] | None:
        """Without the prior term: with it a point is infinitely far from the prior."""
        if plan.rule.prior_rate is not None:
            return None
        step, domain = plan.step_rate.c, box_domain(plan.family, plan.dim)
        return lambda count: ngvi_scale(step=step, count=count, lipschitz=lipschitz, domain=domain).value

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        step, L = setting.domain.svb_diameter / setting.lipschitz, setting.lipschitz
        eta = rate if rate is not None else math.sqrt(setting.count)

        def bound(count: int) -> Bound:
            return ngvi_scale(step=step, count=count, lipschitz=L, domain=setting.domain, kl=setting.kl(count), rate=eta)

        return [(bound, f"step {step:.4g}/(std²√t), rate {eta:.4g}")]


def _reach(plan: Plan, std: Vector) -> float:
    """‖D/std‖, D the sides of the box of means."""
    box_domain(plan.family, plan.dim)  # refuse a box without ends
    low, high, _, _ = edges(plan.family, plan.dim)
    return float(np.linalg.norm((high - low) / std))


def _most_spread(plan: Plan) -> float:
    """What ⟨γ, std⟩ = e2·v² is at most, in units of L: ∂E/∂v = e2·v ≤ L/‖x‖ and v ≤ s·‖x‖, else Cauchy and Schwarz."""
    prior_std = plan.family.init(plan.dim).std
    plain = math.isfinite(plan.loss.lipschitz) and not plan.loss.ridge
    return float(np.max(prior_std) if plain else np.linalg.norm(prior_std))
