"""The theorem of a run: what it promised before the data, what it says after them, and what of all points at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onlinevi.beliefs import Ball, FullBelief, FullCovariance, LowRank, edges
from onlinevi.engine import Belief
from onlinevi.guarantees.bounds.bound import Bound, most_regret, non_negative
from onlinevi.guarantees.bounds.comparison import Comparison, bounded
from onlinevi.guarantees.bounds.constants import require_convex
from onlinevi.guarantees.bounds.domains import require_inside
from onlinevi.guarantees.bounds.table import no_theorem, theorem_of
from onlinevi.guarantees.bounds.theorem import UNCHANGING, Theorem
from onlinevi.guarantees.bounds.theorems.sva import ConstantSVA
from onlinevi.guarantees.certificates import SquaredSums
from onlinevi.guarantees.posterior import BatchVB
from onlinevi.guarantees.sources import Alone, leaf
from onlinevi.learners import Plan
from onlinevi.rules import NGVI, Implicit


def before_data(run: Alone, comparator: Belief | FullBelief, *, lipschitz: float) -> Bound:
    """What the theorem of the run's rule promised about ``state.expected_loss`` − Σ E_{q_u}[ℓ_t], q_u the comparator.

    ``lipschitz`` is L of the stream and the box, as ``bounds.lipschitz`` computes it; with weights, times the largest one.
    For N(m, CᵀC) it is Theorem 2 in (m, C), where α = 1/s² and L' hold too; the comparator may be a ``FullBelief``.
    """
    compared = _checked(Comparison(leaf(run), comparator, lipschitz))
    return _with_trivial(_theorem(compared.plan).before_data(compared, lipschitz), compared, lipschitz)


def after_data(
    run: Alone, comparator: Belief | FullBelief, *, lipschitz: float | None = None, gradient_squares: Any = None
) -> Bound:
    """The same with the gradients that came, never above ``before_data``.

    At a rate that falls with time (PaperSVB, PerSqrt) the sum that a state keeps does not fix the weighted sum of the
    theorem. Give ``gradient_squares``, one an event, for the exact one; or ``lipschitz`` for the most that it can be.
    """
    compared = _checked(Comparison(leaf(run), comparator, lipschitz, gradient_squares))
    bound = _theorem(compared.plan).after_data(compared)
    return bound if lipschitz is None else _with_trivial(bound, compared, lipschitz)


def total_loss(run: Alone, best: BatchVB, *, lipschitz: float | None = None) -> Bound:
    """(11) on Σ ℓ_t(θ̂_t) of SVA itself, no comparator left: inf_q {Σ E_q[ℓ_t] + KL(q‖prior)/η} + (η/2α)·Σ‖∇‖².

    ``best`` is ``batch_vb`` of the same data, loss, family and rate, which computes the infimum. With ``lipschitz`` the last
    term is the theorem's, η·L²·T/α.
    """
    compared = _checked(Comparison(leaf(run), best.belief))
    rule = compared.plan.rule
    if not isinstance(theorem_of(rule), ConstantSVA):
        raise ValueError(f"{rule}: this bound is for SVA at a rate that does not change, such as PerHorizon(1.0)")
    rate = compared.rate
    if not math.isclose(rate, best.rate, rel_tol=1e-9):
        raise ValueError(f"best has the rate {best.rate:.6g}, the run {rate:.6g}: call batch_vb with the run's")
    squares = 0.5 * compared.state.gradient_square if lipschitz is None else lipschitz**2 * compared.count
    terms = {"expected loss": best.expected_loss, "divergence": best.kl / rate}
    return Bound("SVA, total loss", {**terms, "gradients": rate * squares / compared.strong_convexity})


def squared_total_loss(run: Alone, sums: SquaredSums, *, largest_residual: float) -> Bound:
    """On Σ ℓ_t(θ̂_t) of squared losses under all covariances: inf_u {Σ ℓ_t(u) + ‖u − m₁‖²/(2α·s²)} + B²·ln det(I + 2α·s²·XᵀX).

    It is for NGVI and Implicit at a step α that does not change, which are the same there, without a box. ``sums`` are those
    of all rows, B is the largest |y − θ̂_t·x| of the run: √max(trace.loss). It is not the paper's; docs/ngvi.md has the proof.
    """
    state = leaf(run)
    plan, step = state.plan, state.plan.rule.step_rate
    steps_as_bayes = isinstance(plan.family, FullCovariance) and type(plan.rule) in (NGVI, Implicit)
    if not (steps_as_bayes and isinstance(step, UNCHANGING) and plan.loss.quadratic and not plan.loss.ridge):
        raise ValueError(
            f"{plan.rule} with {plan.family} and {plan.loss}: this bound is for NGVI(step) or Implicit(rate) at a step that "
            "does not change, FullCovariance(box=None) and Squared() without a ridge"
        )
    bounded_means = np.isfinite(edges(plan.family, plan.dim)[:2]).any()
    if bounded_means or _forgets(plan) is not None or plan.missing or not state.unit_weights or sums.count != state.count:
        raise ValueError(
            "this bound is for means without a box (box=None), a rule that forgets nothing and counts every event alike, rows "
            "without missing values or weights, and the sums of all of them"
        )
    non_negative(largest_residual=largest_residual)
    prior, double = plan.family.init(plan.dim), 2.0 * step.schedule(plan.horizon).scale
    weight = 1.0 / (double * np.square(prior.std))
    best = np.linalg.solve(sums.rows + np.diag(weight), sums.products + weight * prior.mean)
    least = float(sums.total(best)) + float(weight @ np.square(best - prior.mean))
    _, logs = np.linalg.slogdet(np.eye(plan.dim) + double * sums.rows * np.outer(prior.std, prior.std))
    return Bound("squared loss, total loss", {"best": least, "log determinant": largest_residual**2 * float(logs)})


def everywhere(plan: Plan, *, lipschitz: float) -> Callable[[int], float] | None:
    """The most that the regret of such a run can be after so many events, in total, against every point of its box.

    It is known before any data. None where no theorem says so of the rule, its rate, its beliefs and its loss.
    """
    theorem = theorem_of(plan.rule)
    if theorem is None or not plan.loss.convex or _outside_theory(plan) is not None or not bounded(plan):
        return None
    return theorem.everywhere(plan, lipschitz)


def _theorem(plan: Plan) -> Theorem:
    theorem = theorem_of(plan.rule)
    if theorem is None:
        raise ValueError(no_theorem(plan.rule))
    return theorem


def _checked(run: Comparison) -> Comparison:
    """The comparison, refused where an assumption that all theorems make does not hold."""
    plan = run.plan
    require_convex(plan.loss)
    outside = _outside_theory(plan)
    if outside is not None:
        raise ValueError(outside)
    if plan.missing:
        raise ValueError(
            "missing=True: the theorems would speak of comparators blurred by the same missing values; certificate() holds"
        )
    if run.count == 0:
        raise ValueError("the run is empty: a bound needs at least one event")
    require_inside(Belief(run.belief.mean, run.belief.std), plan.family, plan.dim)
    return run


def _outside_theory(plan: Plan) -> str | None:
    """Why no theorem speaks of such a run, where that is so."""
    theorem = theorem_of(plan.rule)
    if isinstance(plan.family.box, Ball) and theorem is not None and not theorem.in_balls:
        return f"{plan.family.box}: the theorem of {plan.rule} is proved for a Box, not for a ball; certificate() holds"
    if isinstance(plan.family, LowRank):
        return f"{plan.family}: cut back to its rank, no belief is the argmin that a theorem speaks of; certificate() holds"
    if plan.family.correlated and not (theorem is not None and theorem.with_covariances):
        return (
            f"{plan.rule} with a full covariance: in (m, C) there are theorems of SVA at rates that fall with time or not at "
            "all, and of OGAEL at a constant one; certificate() holds for any"
        )
    return _forgets(plan)


def _forgets(plan: Plan) -> str | None:
    """Why its rule is another than that of the theorems, where events count less, early or outlying."""
    if plan.discount < 1.0:
        return f"discount={plan.discount}: the theorems are about rules that forget nothing; certificate() holds for any"
    if plan.loss.robust is not None:
        return f"{plan.loss}: the theorems are about rules that count every event alike; certificate() holds for any"
    return None


def _with_trivial(bound: Bound, run: Comparison, lipschitz: float) -> Bound:
    return replace(bound, trivial=most_regret(lipschitz, run.diameter, run.count))
