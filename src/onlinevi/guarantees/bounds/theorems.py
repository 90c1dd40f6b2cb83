"""The theorems before any data are seen: from plain numbers, one function each.

Each bounds the regret Σ E_{q_t}[ℓ_t] − Σ E_{q_u}[ℓ_t] of beliefs q_t against a comparator q_u in the domain, hence for convex
losses also that of the decisions, Σ ℓ_t(θ̂_t) − Σ E_{q_u}[ℓ_t] with θ̂_t the mean of q_t. ``lipschitz`` is L, the longest
gradient of an expected loss in (mean, std); ``count`` is T; ``kl`` is KL(q_u‖prior). ``printed=True`` gives the paper's
statement where that is not what holds; docs/errata.md says why.
"""

from __future__ import annotations

import math

from onlinevi.guarantees.bounds.bound import Bound, non_negative, positive, whole
from onlinevi.guarantees.bounds.domains import Domain


def ewa(*, rate: float, count: int, loss_bound: float, kl: float) -> Bound:
    """Exponential weights, losses in [0, B] (theorem 1): η·B²·T/8 + KL(p‖prior)/η, against any law p.

    >>> from onlinevi import bounds
    >>> bounds.ewa(rate=0.5, count=16, loss_bound=1.0, kl=3.0).value
    7.0
    """
    whole(count)
    positive(rate=rate, loss_bound=loss_bound)
    non_negative(kl=kl)
    terms = {"losses": rate * loss_bound**2 * count / 8.0, "divergence": kl / rate}
    return Bound("EWA", terms, trivial=loss_bound * count)


def sva(
    *,
    rate: float,
    count: int,
    lipschitz: float,
    kl: float,
    strong_convexity: float = 1.0,
    diameter: float = math.inf,
) -> Bound:
    """SVA at a constant rate: η·L²·T/α + KL(q_u‖prior)/η, with KL(·‖prior) α-strongly convex, α = 1/s² in mean field."""
    whole(count)
    positive(rate=rate, strong_convexity=strong_convexity)
    non_negative(lipschitz=lipschitz, kl=kl)
    terms = {"gradients": rate * lipschitz**2 * count / strong_convexity, "divergence": kl / rate}
    return Bound("SVA", terms, trivial=_trivial(lipschitz, diameter, count))


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
    return Bound("SVA, c/√t", terms, trivial=_trivial(lipschitz, diameter, count))


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
    printed: bool = False,
) -> Bound:
    """``sva`` at its best rate: (2L/√α)·√(KL·T). The paper prints the constant 2L/α, which is too small where α > 1."""
    whole(count)
    positive(strong_convexity=strong_convexity)
    non_negative(lipschitz=lipschitz, kl=kl)
    root = strong_convexity if printed else math.sqrt(strong_convexity)
    terms = {"gradients and divergence": 2.0 * lipschitz / root * math.sqrt(kl * count)}
    note = "the least of ηL²T/α + KL/η has √α, not α"
    trivial = _trivial(lipschitz, diameter, count)
    return Bound("SVA at its best rate", terms, not printed, note if printed else "", trivial)


def sva_mean_field(
    *,
    count: int,
    dim: int,
    lipschitz: float,
    distance: float,
    prior_std: float = 1.0,
    std: float | None = None,
    diameter: float = math.inf,
    printed: bool = False,
) -> Bound:
    """SVA at its best rate against every *point* within ``distance`` of the prior's mean: Σ ℓ_t(θ̂_t) − Σ ℓ_t(u).

    The comparator is N(u, std²), by default with std = s/√T. Its spread costs at most L·std·√d an event, and its divergence
    is ½·[distance²/s² + d·(std²/s² − 1 − ln(std²/s²))]: in all, of order L·√(T·(distance² + s²·d·ln T)).
    """
    whole(count)
    positive(dim=dim, lipschitz=lipschitz, prior_std=prior_std)
    non_negative(distance=distance)
    std = prior_std / math.sqrt(count) if std is None else std
    positive(std=std)
    ratio = (std / prior_std) ** 2
    kl = 0.5 * ((distance / prior_std) ** 2 + dim * (ratio - 1.0 - math.log(ratio)))
    main = sva_at_best_rate(count=count, lipschitz=lipschitz, kl=kl, strong_convexity=prior_std**-2.0, printed=printed)
    terms = {**main.terms, "spread": lipschitz * std * math.sqrt(dim) * count}
    return Bound("SVA, mean field", terms, main.valid, main.note, _trivial(lipschitz, diameter, count))


def svb_convex(*, step: float, count: int, lipschitz: float, domain: Domain, printed: bool = False) -> Bound:
    """SVB with the rate K/(std²·√t), K = ``step``: (D₁²/K + K·L²)·√T, for stds that may shrink to 0.

    The paper prints D·L·√(2T) for K = √2·D/L, which a stream of linear losses exceeds by a quarter.
    """
    whole(count)
    positive(step=step, lipschitz=lipschitz)
    root, trivial = math.sqrt(count), _trivial(lipschitz, domain.diameter, count)
    if printed:
        needed = math.sqrt(2.0) * domain.diameter / lipschitz
        if not math.isclose(step, needed, rel_tol=1e-9):
            raise ValueError(f"step={step!r}: the printed theorem is for the step √2·D/L = {needed:.6g}")
        terms = {"domain and gradients": domain.diameter * lipschitz * root * math.sqrt(2.0)}
        return Bound("SVB, convex", terms, False, "Σ K·L²/(2√t) is K·L²·√T, not half of it", trivial)
    terms = {"domain": domain.svb_diameter**2 / step * root, "gradients": step * lipschitz**2 * root}
    return Bound("SVB, convex", terms, trivial=trivial)


def svb_best_step(*, lipschitz: float, domain: Domain) -> float:
    """K = D₁/L makes ``svb_convex`` least: 2·D₁·L·√T."""
    positive(lipschitz=lipschitz)
    return domain.svb_diameter / lipschitz


def svb_strongly_convex(*, count: int, lipschitz: float, strong_convexity: float, diameter: float = math.inf) -> Bound:
    """SVB with the rate 2/(H·t·std²) on H-strongly convex losses: L²·(1 + ln T)/H. A ridge λ gives H = λ."""
    whole(count)
    positive(strong_convexity=strong_convexity)
    non_negative(lipschitz=lipschitz)
    terms = {"gradients": lipschitz**2 * (1.0 + math.log(count)) / strong_convexity}
    return Bound("SVB, strongly convex", terms, trivial=_trivial(lipschitz, diameter, count))


def oga_el(*, step: float, count: int, lipschitz: float, distance: float, diameter: float = math.inf) -> Bound:
    """OGA-EL with steps of size κ, ``step``: (κ/2)·L²·T + ‖u − μ₁‖²/(2κ). Its mean-field form at rate η has κ = η·s²."""
    whole(count)
    positive(step=step)
    non_negative(lipschitz=lipschitz, distance=distance)
    terms = {"gradients": 0.5 * step * lipschitz**2 * count, "distance": distance**2 / (2.0 * step)}
    return Bound("OGA-EL", terms, trivial=_trivial(lipschitz, diameter, count))


def oga_el_per_sqrt(*, step: float, count: int, lipschitz: float, diameter: float) -> Bound:
    """OGA and OGA-EL with steps of size κ/√t, κ = ``step``: (D²/(2κ) + κ·L²)·√T, against every point of the domain."""
    whole(count)
    positive(step=step)
    non_negative(lipschitz=lipschitz, diameter=diameter)
    root = math.sqrt(count)
    terms = {"domain": diameter**2 / (2.0 * step) * root, "gradients": step * lipschitz**2 * root}
    return Bound("OGA-EL, κ/√t", terms, trivial=_trivial(lipschitz, diameter, count))


def oga_el_divergence(
    *, step: float, count: int, lipschitz: float, kl: float, strong_convexity: float, diameter: float = math.inf
) -> Bound:
    """OGA-EL from the prior: (κ/2)·L²·T + KL(q_u‖prior)/(α·κ), since (α/2)·‖u − μ₁‖² ≤ KL(q_u‖prior)."""
    whole(count)
    positive(step=step, strong_convexity=strong_convexity)
    non_negative(lipschitz=lipschitz, kl=kl)
    terms = {"gradients": 0.5 * step * lipschitz**2 * count, "divergence": kl / (strong_convexity * step)}
    return Bound("OGA-EL, by divergence", terms, trivial=_trivial(lipschitz, diameter, count))


def _trivial(lipschitz: float, diameter: float, count: int) -> float:
    return lipschitz * diameter * count if lipschitz > 0.0 else 0.0
