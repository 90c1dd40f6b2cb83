"""Exponential weights, Theorems 1 and 6 of the paper: losses in [0, B], any law of weights."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from onlinevi.guarantees.bounds.bound import Bound, more_events_than, non_negative, positive, whole
from onlinevi.guarantees.bounds.prior_mass import ewa_prior_risk
from onlinevi.guarantees.bounds.setting import Candidate, Setting
from onlinevi.guarantees.bounds.theorem import Theorem


def ewa(*, rate: float, count: int, loss_bound: float, kl: float) -> Bound:
    """Exponential weights, losses in [0, B], Theorem 1 (3): η·B²·T/8 + KL(p‖prior)/η, against any law p.

    >>> from onlinevi import bounds
    >>> bounds.ewa(rate=0.5, count=16, loss_bound=1.0, kl=3.0).value
    7.0
    """
    whole(count)
    positive(rate=rate, loss_bound=loss_bound)
    non_negative(kl=kl)
    terms = {"losses": rate * loss_bound**2 * count / 8.0, "divergence": kl / rate}
    return Bound("EWA", terms, trivial=loss_bound * count)


def ewa_after(*, rate: float, count: int, loss_bound: float, log_evidence: float) -> Bound:
    """Exponential weights, after the data: Σ ℓ_t(θ̂_t) ≤ −log ∫ prior·exp(−η·Σ ℓ_t)/η + η·B²·T/8, for losses in [0, B].

    By lemma 1 the first term is the infimum over all laws p of Σ E_p[ℓ_t] + KL(p‖prior)/η: theorem 1 against the best p at
    once, its loss included. ``log_evidence`` is that of the posterior after T events at a constant rate; for a convex loss.

    >>> from onlinevi import bounds
    >>> bounds.ewa_after(rate=0.5, count=16, loss_bound=1.0, log_evidence=-3.0).value
    7.0
    """
    whole(count)
    positive(rate=rate, loss_bound=loss_bound)
    if not log_evidence <= 0.0:
        raise ValueError(f"log_evidence={log_evidence!r}: of losses ≥ 0 it is at most 0")
    terms = {"best law": -log_evidence / rate, "losses": rate * loss_bound**2 * count / 8.0}
    return Bound("EWA, after the data", terms, trivial=loss_bound * count)


def ewa_rate(*, count: int, dim: float, loss_bound: float) -> float:
    """η = (2√2/B)·√((d/T)·ln(T/d)), the rate of ``ewa_excess_risk``."""
    more_events_than(dim, count)
    positive(loss_bound=loss_bound)
    return 2.0 * math.sqrt(2.0) / loss_bound * math.sqrt(dim / count * math.log(count / dim))


def ewa_excess_risk(*, count: int, dim: float, loss_bound: float, rate: float | None = None, printed: bool = False) -> Bound:
    """Theorem 6: of exponential weights, E[risk(θ̄_T)] − least risk ≤ B·√((d/2T)·ln(T/d)) + d/T, at the rate ``ewa_rate``.

    The prior must give at least ε^d to {θ : risk(θ) − least risk ≤ ε}, ε = d/T: that is r(ε) = −ln prior{…} ≤ d·ln(1/ε);
    ``prior_dimension`` computes such a d. The paper prints a rate with the root of ln(d/T) < 0: no rate, hence no bound.
    """
    best = ewa_rate(count=count, dim=dim, loss_bound=loss_bound)
    if rate is not None and not math.isclose(rate, best, rel_tol=1e-6):
        raise ValueError(f"rate={rate!r}: this theorem is for the rate {best:.6g}; for another use ewa(rate=…)")
    if printed:
        note = "its rate takes the root of ln(d/T), which is negative for T > d"
        return Bound("EWA, excess risk", {"aggregation": math.nan, "prior mass": dim / count}, False, note, loss_bound)
    terms = {
        "aggregation": loss_bound * math.sqrt(dim / (2.0 * count) * math.log(count / dim)),
        "prior mass": dim / count,
    }
    return Bound("EWA, excess risk", terms, trivial=loss_bound)


class ExponentialWeights(Theorem):
    """Theorem 1. Its rule is no step of the compiled loop: ``Grid``, ``TemperedGaussian`` and ``Experts`` are exact."""

    name, rules, rates = "ewa", (), ()
    rates_in_words = "a constant"

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        if loss_bound is None:
            raise ValueError("rule='ewa': its bounds need the largest loss; give loss_bound")
        eta, best = setting.paper_rate(rate), ewa_rate(count=setting.count, dim=setting.dim, loss_bound=loss_bound)

        def excess_risk(count: int) -> Bound:
            enough = max(count, setting.dim + 1)
            bound = ewa_excess_risk(count=enough, dim=setting.dim, loss_bound=loss_bound)
            return bound if count == enough else replace(bound, trivial=0.0)  # it needs more events than dimensions

        best_point = np.zeros(setting.dim)
        best_point[0] = setting.distance

        near = math.isfinite(setting.loss.lipschitz) and setting.distance <= setting.reach

        def computed(count: int) -> Bound:
            ball: dict[str, Any] = {"prior": setting.family, "point": best_point, "lipschitz": setting.lipschitz}
            return ewa_prior_risk(count=count, loss_bound=loss_bound, rate=rate, **ball)

        return [
            (lambda n: ewa(rate=eta, count=n, loss_bound=loss_bound, kl=setting.kl(n)), f"rate {eta:.4g}"),
            (excess_risk, f"rate {best:.4g}"),
            *([(computed, f"rate {eta:.4g}" if rate is not None else "its best rate")] if near else []),
        ]
