"""Sequential variational approximation, Theorem 2: its regret at a constant rate, at falling ones, at ones from gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from onlinevi.beliefs import edges, radii
from onlinevi.engine import Belief, Vector, rate_at
from onlinevi.guarantees.bounds.bound import Bound, as_squares, most_regret, non_negative, positive, whole
from onlinevi.guarantees.bounds.comparison import Comparison
from onlinevi.guarantees.bounds.constants import kl_strong_convexity, narrow_kl
from onlinevi.guarantees.bounds.risk import excess_risk
from onlinevi.guarantees.bounds.setting import Candidate, Setting
from onlinevi.guarantees.bounds.theorem import UNCHANGING, UNCHANGING_IN_WORDS, Theorem
from onlinevi.learners import Plan
from onlinevi.rules import SVA, Adaptive, Explicit, PerSqrt, Rate, Rule


def sva(
    *,
    rate: float,
    count: int,
    lipschitz: float,
    kl: float,
    strong_convexity: float = 1.0,
    diameter: float = math.inf,
) -> Bound:
    """SVA at a constant rate (Theorem 2): η·L²·T/α + KL(q_u‖prior)/η, KL(·‖prior) α-strongly convex, 1/s² in mean field."""
    whole(count)
    positive(rate=rate, strong_convexity=strong_convexity)
    non_negative(lipschitz=lipschitz, kl=kl)
    terms = {"gradients": rate * lipschitz**2 * count / strong_convexity, "divergence": kl / rate}
    return Bound("SVA", terms, trivial=most_regret(lipschitz, diameter, count))


def sva_excess_risk(
    *,
    rate: float,
    count: int,
    lipschitz: float,
    kl: float,
    strong_convexity: float = 1.0,
    diameter: float = math.inf,
) -> Bound:
    """(12): E[risk(θ̄_T)] − E_{q_u}[risk] ≤ η·L²/α + KL(q_u‖prior)/(η·T), for i.i.d. events.

    >>> from onlinevi import bounds
    >>> bounds.sva_excess_risk(rate=0.1, count=100, lipschitz=1.0, kl=2.0)
    Bound(SVA, excess risk: 0.3 = 0.1 (gradients) + 0.2 (divergence))
    """
    gradients = {"lipschitz": lipschitz, "strong_convexity": strong_convexity, "diameter": diameter}
    return excess_risk(sva(rate=rate, count=count, kl=kl, **gradients), count)


def sva_per_sqrt(
    *,
    step: float,
    count: int,
    lipschitz: float,
    kl: float,
    strong_convexity: float = 1.0,
    diameter: float = math.inf,
) -> Bound:
    """SVA with the rates c/√t, c = ``step``: (c·L²/α + KL(q_u‖prior)/c)·√T. It is ``sva_schedule`` with Σ 1/√t ≤ 2√T."""
    whole(count)
    positive(step=step, strong_convexity=strong_convexity)
    non_negative(lipschitz=lipschitz, kl=kl)
    root = math.sqrt(count)
    terms = {"gradients": step * lipschitz**2 / strong_convexity * root, "divergence": kl / step * root}
    return Bound("SVA, c/√t", terms, trivial=most_regret(lipschitz, diameter, count))


def sva_best_rate(*, count: int, lipschitz: float, kl: float, strong_convexity: float = 1.0) -> float:
    """The rate that makes ``sva`` least: √(α·KL/T)/L."""
    whole(count)
    positive(lipschitz=lipschitz, kl=kl, strong_convexity=strong_convexity)
    return math.sqrt(strong_convexity * kl / count) / lipschitz


def sva_at_best_rate(
    *,
    count: int,
    lipschitz: float,
    kl: float,
    strong_convexity: float = 1.0,
    diameter: float = math.inf,
) -> Bound:
    """``sva`` at its best rate: (2L/√α)·√(KL·T)."""
    whole(count)
    positive(strong_convexity=strong_convexity)
    non_negative(lipschitz=lipschitz, kl=kl)
    terms = {"gradients and divergence": 2.0 * lipschitz / math.sqrt(strong_convexity) * math.sqrt(kl * count)}
    return Bound("SVA at its best rate", terms, trivial=most_regret(lipschitz, diameter, count))


def sva_mean_field(
    *,
    count: int,
    dim: int,
    lipschitz: float,
    distance: float,
    prior_std: float = 1.0,
    std: float | None = None,
    diameter: float = math.inf,
) -> Bound:
    """SVA at its best rate against every *point* within ``distance`` of the prior's mean: Σ ℓ_t(θ̂_t) − Σ ℓ_t(u).

    The comparator is N(u, std²), by default with std = s/√T. Its spread costs at most L·std·√d an event, its divergence is
    ``narrow_kl``: in all, of order L·√(T·(distance² + s²·d·ln T)).
    """
    whole(count)
    positive(dim=dim, lipschitz=lipschitz, prior_std=prior_std)
    non_negative(distance=distance)
    std = prior_std / math.sqrt(count) if std is None else std
    positive(std=std)
    kl = narrow_kl(dim=dim, distance=distance, prior_std=prior_std, std=std)
    main = sva_at_best_rate(count=count, lipschitz=lipschitz, kl=kl, strong_convexity=prior_std**-2.0)
    terms = {**main.terms, "spread": lipschitz * std * math.sqrt(dim) * count}
    return Bound("SVA, mean field", terms, trivial=most_regret(lipschitz, diameter, count))


def sva_observed(*, rate: float, gradient_square: float, kl: float, strong_convexity: float = 1.0) -> Bound:
    """SVA at a constant rate, (11) with what came: (η/2α)·Σ‖∇‖² + KL(q_u‖prior)/η; ``gradient_square`` is the sum."""
    positive(rate=rate, strong_convexity=strong_convexity)
    non_negative(gradient_square=gradient_square, kl=kl)
    return Bound("SVA, observed", {"gradients": 0.5 * rate * gradient_square / strong_convexity, "divergence": kl / rate})


def sva_observed_best_rate(*, gradient_square: float, kl: float, strong_convexity: float = 1.0) -> float:
    """The rate that would have made ``sva_observed`` least, √(2α·KL/Σ‖∇‖²), had the gradients been the same."""
    positive(gradient_square=gradient_square, kl=kl, strong_convexity=strong_convexity)
    return math.sqrt(2.0 * strong_convexity * kl / gradient_square)


def sva_schedule(*, rates: Any, gradient_squares: Any, kl: float, strong_convexity: float = 1.0) -> Bound:
    """SVA with rates that never grow: Σ (η_t/2α)·‖∇_t‖² + KL(q_u‖prior)/η_T."""
    positive(strong_convexity=strong_convexity)
    non_negative(kl=kl)
    rates, squares = _pairs(rates, gradient_squares)
    return Bound("SVA, schedule", {"gradients": 0.5 * float(rates @ squares) / strong_convexity, "divergence": kl / rates[-1]})


def _pairs(rates: Any, gradient_squares: Any) -> tuple[Vector, Vector]:
    squares, rates = as_squares(gradient_squares), np.asarray(rates, dtype=float)
    if rates.shape != squares.shape:
        raise ValueError(f"{rates.size} rates and {squares.size} gradients: needs one of each an event")
    if not ((rates > 0.0) & np.isfinite(rates)).all() or (np.diff(rates) > 0.0).any():
        raise ValueError("rates: the theorem needs finite rates > 0 that never grow")
    return rates, squares


def sva_adaptive(
    *,
    constant: float,
    gradient_square: float,
    largest_gradient: float,
    kl: float,
    diameter: float,
    strong_convexity: float = 1.0,
) -> Bound:
    """SVA at c/√(Σ_{s<t}‖g_s‖²): (KL(q_u‖prior)/c + c/α)·√S + D·G + √(2c/α·√S·D·G), S = Σ‖g‖², G = max‖g‖.

    At c = √(α·KL) the first term is that of the best constant rate for a stream known ahead.
    """
    positive(constant=constant, strong_convexity=strong_convexity)
    non_negative(gradient_square=gradient_square, largest_gradient=largest_gradient, kl=kl, diameter=diameter)
    root = math.sqrt(gradient_square)
    gradients, largest = constant / strong_convexity * root, diameter * largest_gradient
    terms = {"divergence": kl / constant * root, "gradients": gradients, "largest gradient": largest}
    return Bound("SVA, adaptive", {**terms, "both": math.sqrt(2.0 * gradients * largest)})


class ConstantSVA(Theorem):
    """SVA at a rate that does not change, Theorem 2."""

    name, rules = "sva", (SVA,)
    rates, rates_in_words = (*UNCHANGING, Explicit), UNCHANGING_IN_WORDS
    in_balls = with_covariances = True

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        alpha = run.strong_convexity
        return sva(rate=run.rate, count=run.count, lipschitz=lipschitz, kl=run.kl, strong_convexity=alpha)

    def after_data(self, run: Comparison) -> Bound:
        squares, alpha = run.state.gradient_square, run.strong_convexity
        return sva_observed(rate=run.rate, gradient_square=squares, kl=run.kl, strong_convexity=alpha)

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        eta, alpha = setting.paper_rate(rate), setting.strong_convexity
        best = sva_best_rate(
            count=setting.count, lipschitz=setting.lipschitz, kl=setting.kl(setting.count), strong_convexity=alpha
        )
        point: dict[str, Any] = {"dim": setting.dim, "distance": setting.distance, "prior_std": setting.prior_std}
        return [
            (lambda n: sva(rate=eta, kl=setting.kl(n), strong_convexity=alpha, **setting.at(n)), f"rate {eta:.4g}"),
            (lambda n: sva_at_best_rate(kl=setting.kl(n), strong_convexity=alpha, **setting.at(n)), f"rate {best:.4g}"),
            (lambda n: sva_mean_field(**point, **setting.at(n)), f"rate {best:.4g}"),
            (
                lambda n: sva_excess_risk(rate=eta, kl=setting.kl(n), strong_convexity=alpha, **setting.at(n)),
                f"rate {eta:.4g}",
            ),
        ]


class ScheduledSVA(Theorem):
    """SVA at any rates that never grow."""

    name: ClassVar[str] = "sva"
    rules: ClassVar[tuple[type[Rule], ...]] = (SVA,)
    rates: ClassVar[tuple[type[Rate], ...]] = (Rate,)
    rates_in_words = "others that never grow"
    in_balls = with_covariances = True

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        return self._bound(run, np.full(run.count, lipschitz**2))

    def after_data(self, run: Comparison) -> Bound:
        return self._bound(run, run.squares())

    def _bound(self, run: Comparison, squares: Vector) -> Bound:
        schedule = run.plan.rule.step_rate.schedule(run.plan.horizon)
        rates = rate_at(*schedule, np.arange(1.0, run.count + 1.0))
        return sva_schedule(rates=rates, gradient_squares=squares, kl=run.kl, strong_convexity=run.strong_convexity)


class PerSqrtSVA(ScheduledSVA):
    """SVA at the rate c/√t, which has a bound against every point too."""

    rates, rates_in_words = (PerSqrt,), "PerSqrt(c)"
    in_balls = with_covariances = True

    def everywhere(self, plan: Plan, lipschitz: float) -> Callable[[int], float] | None:
        """Against the farthest point u, by way of N(u, std²), std = s/√T, whose spread costs at most L·std·√d an event."""
        step, prior = plan.step_rate.c, plan.family.init(plan.dim)
        farthest = _farthest(plan, prior)
        alpha = kl_strong_convexity(plan.family, plan.dim)

        def at(count: int) -> float:
            kl = 0.5 * (farthest**2 + plan.dim * (1.0 / count - 1.0 + math.log(count)))
            main = sva_per_sqrt(step=step, count=count, lipschitz=lipschitz, kl=kl, strong_convexity=alpha)
            return main.value + lipschitz * float(np.linalg.norm(prior.std)) * math.sqrt(count)

        return at


def _farthest(plan: Plan, prior: Belief) -> float:
    """How far a mean of the domain can be from the prior's, in stds of the prior."""
    ball = radii(plan.family, plan.dim)
    if ball is not None:  # the prior's stds are all alike
        return (ball.mean + float(np.linalg.norm(prior.mean))) / float(prior.std[0])
    low, high, _, _ = edges(plan.family, plan.dim)
    return float(np.linalg.norm(np.maximum(np.abs(low - prior.mean), np.abs(high - prior.mean)) / prior.std))


class AdaptiveSVA(Theorem):
    """SVA at ``Adaptive`` rates: the same bound before and after the data."""

    name, rules, rates = "sva", (SVA,), (Adaptive,)
    rates_in_words = "Adaptive()"
    in_balls = True

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        return self._bound(run, lipschitz**2 * run.count, lipschitz)

    def after_data(self, run: Comparison) -> Bound:
        return self._bound(run, run.state.gradient_square, run.state.largest_gradient)

    def _bound(self, run: Comparison, gradient_square: float, largest_gradient: float) -> Bound:
        return sva_adaptive(
            constant=run.plan.step_rate.c,
            gradient_square=gradient_square,
            largest_gradient=largest_gradient,
            kl=run.kl,
            diameter=run.domain.diameter,
            strong_convexity=run.strong_convexity,
        )

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        c, L, D = setting.constant(SVA(Adaptive())), setting.lipschitz, setting.domain.diameter

        def bound(count: int, gradient_square: float) -> Bound:
            gradients = {"gradient_square": gradient_square, "largest_gradient": L}
            kl, alpha = setting.kl(count), setting.strong_convexity
            return sva_adaptive(constant=c, kl=kl, diameter=D, strong_convexity=alpha, **gradients)

        return [setting.by_gradients(bound, f"rate {c:.4g}/√Σ‖g‖²")]
