"""The same theorems after the fact: the squared gradients that came, in place of L².

``gradient_squares`` holds ‖∇E_{q_t}[ℓ_t]‖², one an event. A state keeps their sum alone. A constant rate needs no more; for a
rate that falls, ``front_loaded`` gives the most that the weighted sum can be, and it is never above the bound without data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.guarantees.bounds.bound import Bound, non_negative, positive, whole
from onlinevi.guarantees.bounds.domains import Domain

ROUNDING = 1e-9


def sva_observed(*, rate: float, gradient_square: float, kl: float, strong_convexity: float = 1.0) -> Bound:
    """SVA at a constant rate: (η/2α)·Σ‖∇‖² + KL(q_u‖prior)/η; ``gradient_square`` is the sum."""
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


def svb_convex_observed(*, step: float, gradient_squares: Any, domain: Domain) -> Bound:
    """SVB with the rate K/(std²·√t): D₁²·√T/K + (K/2)·Σ‖∇_t‖²/√t."""
    positive(step=step)
    squares = _squares(gradient_squares)
    weighted = float(squares @ (1.0 / np.sqrt(np.arange(1.0, len(squares) + 1.0))))
    terms = {"domain": domain.svb_diameter**2 / step * math.sqrt(len(squares)), "gradients": 0.5 * step * weighted}
    return Bound("SVB, convex, observed", terms)


def svb_strongly_convex_observed(*, gradient_squares: Any, strong_convexity: float) -> Bound:
    """SVB with the rate 2/(H·t·std²): (1/H)·Σ‖∇_t‖²/t."""
    positive(strong_convexity=strong_convexity)
    squares = _squares(gradient_squares)
    weighted = float(squares @ (1.0 / np.arange(1.0, len(squares) + 1.0)))
    return Bound("SVB, strongly convex, observed", {"gradients": weighted / strong_convexity})


def oga_el_observed(*, step: float, gradient_square: float, distance: float) -> Bound:
    """OGA-EL with steps of size κ: (κ/2)·Σ‖∇‖² + ‖u − μ₁‖²/(2κ); ``gradient_square`` is the sum."""
    positive(step=step)
    non_negative(gradient_square=gradient_square, distance=distance)
    return Bound("OGA-EL, observed", {"gradients": 0.5 * step * gradient_square, "distance": distance**2 / (2.0 * step)})


def front_loaded(*, gradient_square: float, count: int, lipschitz: float) -> Vector:
    """Squared gradients with this sum, each at most L², that come as early as they can.

    Beside weights that never grow, no others with this sum weigh more.
    """
    whole(count)
    positive(lipschitz=lipschitz)
    non_negative(gradient_square=gradient_square)
    largest = lipschitz**2
    if gradient_square > largest * count * (1.0 + ROUNDING):
        raise ValueError(
            f"lipschitz={lipschitz!r}: the gradients of {count} events have squares that sum to {gradient_square:.6g}, more "
            "than it allows; bounds.lipschitz(X, y, loss=…, family=…) computes one"
        )
    return np.clip(gradient_square - largest * np.arange(count), 0.0, largest)


def _pairs(rates: Any, gradient_squares: Any) -> tuple[Vector, Vector]:
    squares, rates = _squares(gradient_squares), np.asarray(rates, dtype=float)
    if rates.shape != squares.shape:
        raise ValueError(f"{rates.size} rates and {squares.size} gradients: needs one of each an event")
    if not ((rates > 0.0) & np.isfinite(rates)).all() or (np.diff(rates) > 0.0).any():
        raise ValueError("rates: the theorem needs finite rates > 0 that never grow")
    return rates, squares


def _squares(gradient_squares: Any) -> Vector:
    squares = np.asarray(gradient_squares, dtype=float)
    if squares.ndim != 1 or not squares.size or not ((squares >= 0.0) & np.isfinite(squares)).all():
        raise ValueError("gradient_squares: needs one finite number ≥ 0 an event, at least one event")
    return squares
