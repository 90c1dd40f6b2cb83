"""Section 4.1's example made explicit: SVA in mean field at a rate of plain numbers, against points, and its risk."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from onlinevi.guarantees.bounds.bound import Bound, more_events_than, most_regret, non_negative, positive
from onlinevi.guarantees.bounds.constants import narrow_kl
from onlinevi.guarantees.bounds.risk import excess_risk
from onlinevi.guarantees.bounds.setting import Candidate, Setting
from onlinevi.guarantees.bounds.theorem import Theorem
from onlinevi.guarantees.bounds.theorems.sva import sva
from onlinevi.rules import explicit_sva_rate


def sva_explicit_rate(*, count: int, dim: int, lipschitz: float, strong_convexity: float = 1.0) -> float:
    """η = √(α·d·ln(T/d)/T)/L of section 4.1; ``SVA(Explicit(L))`` runs at it."""
    more_events_than(dim, count)
    positive(lipschitz=lipschitz, strong_convexity=strong_convexity)
    return explicit_sva_rate(count, dim, lipschitz, strong_convexity)


def sva_explicit(
    *,
    count: int,
    dim: int,
    lipschitz: float,
    distance: float,
    prior_std: float = 1.0,
    loss_lipschitz: float | None = None,
    diameter: float = math.inf,
) -> Bound:
    """SVA at ``sva_explicit_rate`` against every *point* within ``distance`` of the prior's mean: Σ ℓ_t(θ̂_t) − Σ ℓ_t(u).

    The comparator is the paper's N(u, std²) with std = L·η/(α·√d): (11), and L'·‖std‖ an event for its spread, where
    ``loss_lipschitz`` is L', the loss's own constant, L unless given (the paper has L = 2L'). For large T in all
    (2L/√α)·√(d·T·ln T) with L' = L/2, and 2.5 for 2 with L' = L.
    """
    positive(prior_std=prior_std)
    alpha = prior_std**-2.0
    eta = sva_explicit_rate(count=count, dim=dim, lipschitz=lipschitz, strong_convexity=alpha)
    own = lipschitz if loss_lipschitz is None else loss_lipschitz
    non_negative(distance=distance, loss_lipschitz=own)
    length = lipschitz * eta / alpha
    kl = narrow_kl(dim=dim, distance=distance, prior_std=prior_std, std=length / math.sqrt(dim))
    main = sva(rate=eta, count=count, lipschitz=lipschitz, kl=kl, strong_convexity=alpha)
    terms = {**main.terms, "spread": own * length * count}
    return Bound("SVA, explicit", terms, trivial=most_regret(lipschitz, diameter, count))


def sva_explicit_risk(
    *,
    count: int,
    dim: int,
    lipschitz: float,
    distance: float,
    prior_std: float = 1.0,
    loss_lipschitz: float | None = None,
    diameter: float = math.inf,
    printed: bool = False,
) -> Bound:
    """E[risk(θ̄_T)] − risk(u) ≤ ``sva_explicit``/T for i.i.d. events, every point u within ``distance``: section 4.1's rate.

    ``printed=True``: (2L/α)·√(d·ln(dT)/T), which follows with √α for α, and only as T grows: it leaves out a 1 + o(1).
    """
    numbers = {"lipschitz": lipschitz, "distance": distance, "prior_std": prior_std, "diameter": diameter}
    bound = excess_risk(sva_explicit(count=count, dim=dim, loss_lipschitz=loss_lipschitz, **numbers), count)
    if not printed:
        return bound
    rate = 2.0 * lipschitz * prior_std**2 * math.sqrt(dim * math.log(dim * count) / count)
    note = "the constant that follows is 2L/√α, and it leaves out a 1 + o(1)"
    return Bound(bound.name, {"all": rate}, False, note, bound.trivial)


class ExplicitSVA(Theorem):
    """Section 4.1's rate among what the calculator shows; of runs at it ``ConstantSVA`` speaks."""

    name, rules, rates = "sva", (), ()
    rates_in_words = "Explicit(L)"

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        """None where the stream is no longer than its rows are wide."""
        if not setting.count > setting.dim:
            return []
        alpha, L = setting.strong_convexity, setting.lipschitz
        eta = sva_explicit_rate(count=setting.count, dim=setting.dim, lipschitz=L, strong_convexity=alpha)
        point: dict[str, Any] = {"dim": setting.dim, "distance": setting.distance, "prior_std": setting.prior_std}

        def by_count(bound: Callable[..., Bound]) -> Callable[[int], Bound]:
            def at(count: int) -> Bound:
                found = bound(**point, **setting.at(max(count, setting.dim + 1)))
                return found if count > setting.dim else replace(found, trivial=0.0)  # it needs more events than dimensions

            return at

        return [(by_count(bound), f"rate {eta:.4g}") for bound in (sva_explicit, sva_explicit_risk)]
