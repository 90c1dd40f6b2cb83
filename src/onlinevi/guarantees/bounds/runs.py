"""The theorem of a run: which one speaks of its rule and rate, and with which numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi.beliefs import MeanField, edges, named_rows
from onlinevi.engine import Belief, Vector, rate_at
from onlinevi.guarantees.bounds import adaptive, observed, theorems
from onlinevi.guarantees.bounds.bound import Bound
from onlinevi.guarantees.bounds.constants import kl_strong_convexity, require_convex
from onlinevi.guarantees.bounds.domains import box_domain, require_inside
from onlinevi.guarantees.posterior import BatchVB
from onlinevi.learners import Plan, State, Trace
from onlinevi.rules import OGA, OGAEL, SVA, SVB, Adaptive, PaperSVB, StronglyConvex


def before_data(run: Trace | State, comparator: Belief, *, lipschitz: float) -> Bound:
    """What the theorem of the run's rule promised about ``state.expected_loss`` − Σ E_{q_u}[ℓ_t], q_u the comparator.

    ``lipschitz`` is L of the stream and the box, as ``bounds.lipschitz`` computes it; with weights, times the largest one.
    """
    state, plan = _checked(run, comparator)
    if isinstance(plan.step_rate, Adaptive):
        return _with_trivial(_adaptive(plan, comparator, lipschitz**2 * state.count, lipschitz), state, lipschitz)
    diameter = _diameter(plan)
    numbers: dict[str, Any] = {"count": state.count, "lipschitz": lipschitz, "diameter": diameter}
    match plan.rule:
        case SVA() if plan.rule.step_rate.varies:
            squares = np.full(state.count, lipschitz**2)
            return _with_trivial(_sva_schedule(state, comparator, squares), state, lipschitz)
        case SVA():
            return theorems.sva(rate=_rate(plan), kl=_kl(plan, comparator), strong_convexity=_alpha(plan), **numbers)
        case SVB() if isinstance(plan.rule.step_rate, StronglyConvex):
            return theorems.svb_strongly_convex(strong_convexity=_strong_convexity(plan), **numbers)
        case SVB():
            del numbers["diameter"]
            return theorems.svb_convex(step=_svb_step(plan), domain=box_domain(plan.family, plan.dim), **numbers)
        case OGA() | OGAEL():
            step, distance = _steps(plan, comparator)
            return theorems.oga_el(step=step, distance=distance, **numbers)
    raise ValueError(_no_theorem(plan))


def after_data(
    run: Trace | State, comparator: Belief, *, lipschitz: float | None = None, gradient_squares: Any = None
) -> Bound:
    """The same with the gradients that came, never above ``before_data``.

    At a rate that falls with time (PaperSVB, PerSqrt) the sum that a state keeps does not fix the weighted sum of the
    theorem. Give ``gradient_squares``, one an event, for the exact one; or ``lipschitz`` for the most that it can be.
    """
    state, plan = _checked(run, comparator)
    bound = _after_data(state, plan, comparator, lipschitz, gradient_squares)
    return bound if lipschitz is None else _with_trivial(bound, state, lipschitz)


def total_loss(run: Trace | State, best: BatchVB, *, lipschitz: float | None = None) -> Bound:
    """On Σ ℓ_t(θ̂_t) of SVA itself, no comparator left: inf_q {Σ E_q[ℓ_t] + KL(q‖prior)/η} + (η/2α)·Σ‖∇‖².

    ``best`` is ``batch_vb`` of the same data, loss, family and rate, which computes the infimum. With ``lipschitz`` the last
    term is the theorem's, η·L²·T/α.
    """
    state, plan = _checked(run, best.belief)
    if not isinstance(plan.rule, SVA) or plan.rule.step_rate.varies:
        raise ValueError(f"{plan.rule}: this bound is for SVA at a rate that does not change, such as PerHorizon(1.0)")
    rate = _rate(plan)
    if not math.isclose(rate, best.rate, rel_tol=1e-9):
        raise ValueError(f"best has the rate {best.rate:.6g}, the run {rate:.6g}: call batch_vb with the run's")
    squares = 0.5 * state.gradient_square if lipschitz is None else lipschitz**2 * state.count
    terms = {"expected loss": best.expected_loss, "divergence": best.kl / rate, "gradients": rate * squares / _alpha(plan)}
    return Bound("SVA, total loss", terms)


def _after_data(state: State, plan: Plan, comparator: Belief, lipschitz: float | None, gradient_squares: Any) -> Bound:
    total = state.gradient_square
    if isinstance(plan.step_rate, Adaptive):
        return _adaptive(plan, comparator, total, state.largest_gradient)
    match plan.rule:
        case SVA() if plan.rule.step_rate.varies:
            return _sva_schedule(state, comparator, _squares(state, lipschitz, gradient_squares))
        case SVA():
            return observed.sva_observed(
                rate=_rate(plan), gradient_square=total, kl=_kl(plan, comparator), strong_convexity=_alpha(plan)
            )
        case SVB() if isinstance(plan.rule.step_rate, StronglyConvex):
            convexity = _strong_convexity(plan)
            squares = _squares(state, lipschitz, gradient_squares)
            return observed.svb_strongly_convex_observed(gradient_squares=squares, strong_convexity=convexity)
        case SVB():
            step, domain = _svb_step(plan), box_domain(plan.family, plan.dim)
            squares = _squares(state, lipschitz, gradient_squares)
            return observed.svb_convex_observed(step=step, gradient_squares=squares, domain=domain)
        case OGA() | OGAEL():
            step, distance = _steps(plan, comparator)
            return observed.oga_el_observed(step=step, gradient_square=total, distance=distance)
    raise ValueError(_no_theorem(plan))


def _adaptive(plan: Plan, comparator: Belief, gradient_square: float, largest_gradient: float) -> Bound:
    """The bound of a rate made of the gradients: the same function before and after the data."""
    constant, domain = plan.step_rate.c, box_domain(plan.family, plan.dim)
    match plan.rule:
        case SVA():
            return adaptive.sva_adaptive(
                constant=constant,
                gradient_square=gradient_square,
                largest_gradient=largest_gradient,
                kl=_kl(plan, comparator),
                diameter=domain.diameter,
                strong_convexity=_alpha(plan),
            )
        case SVB():
            _require_vanishing(plan)
            return adaptive.svb_adaptive(constant=constant, gradient_square=gradient_square, domain=domain)
    low, high = edges(plan.family, plan.dim)[0::2], edges(plan.family, plan.dim)[1::2]
    widest, diameter = _in_steps(plan, np.stack(high) - np.stack(low))
    return adaptive.oga_el_adaptive(step=constant * widest**2, gradient_square=gradient_square, diameter=diameter)


def _checked(run: Trace | State, comparator: Belief) -> tuple[State, Plan]:
    state = run.state if isinstance(run, Trace) else run
    require_convex(state.plan.loss)
    if state.plan.family.correlated:
        raise ValueError(
            f"{state.plan.family}: these bounds are in (mean, std), for MeanField() and Point(); certificate() holds"
        )
    if state.plan.discount < 1.0:
        raise ValueError(
            f"discount={state.plan.discount}: the theorems are about rules that forget nothing; certificate() holds for any"
        )
    if state.plan.loss.robust is not None:
        raise ValueError(
            f"{state.plan.loss}: the theorems are about rules that count every event alike; certificate() holds for any"
        )
    if state.plan.missing:
        raise ValueError(
            "missing=True: the theorems would speak of comparators blurred by the same missing values; certificate() holds"
        )
    if state.count == 0:
        raise ValueError("the run is empty: a bound needs at least one event")
    require_inside(comparator, state.plan.family, state.plan.dim)
    return state, state.plan


def _kl(plan: Plan, comparator: Belief) -> float:
    divergence = _mean_field(plan).kl(_spread_out(plan, comparator))
    if not math.isfinite(divergence):
        raise ValueError("the comparator has a std of 0, infinitely far from the prior: give it a spread, such as 0.01")
    return divergence


def _alpha(plan: Plan) -> float:
    return kl_strong_convexity(_mean_field(plan), plan.dim)


def _mean_field(plan: Plan) -> MeanField:
    if not isinstance(plan.family, MeanField):
        raise ValueError(f"{plan.family}: this bound is for MeanField() beliefs")
    return plan.family


def _rate(plan: Plan) -> float:
    """η of a run whose rate does not change."""
    return plan.rule.step_rate.schedule(plan.horizon).scale


def _svb_step(plan: Plan) -> float:
    if not isinstance(plan.rule.step_rate, PaperSVB):
        raise ValueError(
            f"{plan.rule}: SVB has a bound for the rates PaperSVB(K), Adaptive() and, with a ridge, StronglyConvex(ridge)"
        )
    _require_vanishing(plan)
    return plan.rule.step_rate.c


def _strong_convexity(plan: Plan) -> float:
    needed = plan.rule.step_rate.c
    if not plan.loss.ridge >= needed:
        raise ValueError(
            f"{plan.rule.step_rate} is for losses that are {needed}-strongly convex; {plan.loss} is known to be "
            f"{plan.loss.ridge}-strongly convex, by its ridge"
        )
    _require_vanishing(plan)
    return needed


def _require_vanishing(plan: Plan) -> None:
    if (edges(plan.family, plan.dim)[2] > 0.0).any():
        raise ValueError(f"{plan.family.box}: the bound of SVB needs stds that may shrink to 0; set Box(std=(0, …))")


def _steps(plan: Plan, comparator: Belief) -> tuple[float, float]:
    """The largest step κ, and the distance ‖u − μ₁‖ in its unit: coordinates with smaller steps count for more."""
    if plan.rule.step_rate.varies:
        raise ValueError(f"{plan.rule}: this bound is for a rate that does not change, such as PerHorizon(1.0)")
    apart = np.stack([np.asarray(a, dtype=float) - b for a, b in zip(comparator, plan.family.init(plan.dim), strict=True)])
    widest, distance = _in_steps(plan, apart)
    return _rate(plan) * widest**2, distance


def _in_steps(plan: Plan, apart: Vector) -> tuple[float, float]:
    """The widest prior std s, to whose square the largest step is proportional, and a distance in the unit of that step."""
    prior_std = np.broadcast_to(named_rows(plan.prior_and_box).prior_std, (plan.dim,))
    widest = float(prior_std.max())
    return widest, float(np.linalg.norm(apart * (widest / prior_std)))


def _sva_schedule(state: State, comparator: Belief, squares: Vector) -> Bound:
    plan = state.plan
    rates = rate_at(*plan.rule.step_rate.schedule(plan.horizon), np.arange(1.0, state.count + 1.0))
    return observed.sva_schedule(
        rates=rates, gradient_squares=squares, kl=_kl(plan, comparator), strong_convexity=_alpha(plan)
    )


def _squares(state: State, lipschitz: float | None, gradient_squares: Any) -> Vector:
    if gradient_squares is not None:
        squares = np.asarray(gradient_squares, dtype=float)
        if squares.shape != (state.count,) or not math.isclose(squares.sum(), state.gradient_square, rel_tol=1e-6):
            raise ValueError(
                f"gradient_squares has {squares.size} values, sum {squares.sum():.6g}; this run has {state.count} events, "
                f"sum {state.gradient_square:.6g}"
            )
        return squares
    if lipschitz is None:
        raise ValueError(
            f"{state.plan.rule}: its bound weighs early gradients more, of which a state keeps the plain sum; give "
            "lipschitz=bounds.lipschitz(X, y, loss=…, family=…), or gradient_squares, one an event"
        )
    return observed.front_loaded(gradient_square=state.gradient_square, count=state.count, lipschitz=lipschitz)


def _spread_out(plan: Plan, comparator: Belief) -> Belief:
    return Belief(*(np.broadcast_to(np.asarray(part, dtype=float), (plan.dim,)) for part in comparator))


def _diameter(plan: Plan) -> float:
    bounded = np.isfinite(edges(plan.family, plan.dim)).all()
    return box_domain(plan.family, plan.dim).diameter if bounded else math.inf


def _with_trivial(bound: Bound, state: State, lipschitz: float) -> Bound:
    trivial = lipschitz * _diameter(state.plan) * state.count
    return Bound(bound.name, bound.terms, bound.valid, bound.note, trivial)


def _no_theorem(plan: Plan) -> str:
    return f"{plan.rule}: the paper has no bound for it; it has one for SVA, SVB, OGA-EL and exponential weights"
