"""The bounds of ``Adaptive`` rates, c/√(Σ‖g‖²): from the gradients that came, or from the most that they can be.

``gradient_square`` is Σ‖g_t‖² and ``largest_gradient`` max ‖g_t‖, as a state keeps them; before data they are at most L²·T and
L, and every bound here grows with both. docs/guarantees.md has the proofs.
"""

from __future__ import annotations

import math

from onlinevi.guarantees.bounds.bound import Bound, non_negative, positive
from onlinevi.guarantees.bounds.domains import Domain


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


def svb_adaptive(*, constant: float, gradient_square: float, domain: Domain) -> Bound:
    """SVB at c/(std²·√(Σ_{s≤t}‖g_s‖²)): (D₁²/c + c)·√(Σ‖g‖²), for stds that may shrink to 0. Best c = D₁."""
    positive(constant=constant)
    non_negative(gradient_square=gradient_square)
    root = math.sqrt(gradient_square)
    return Bound("SVB, adaptive", {"domain": domain.svb_diameter**2 / constant * root, "gradients": constant * root})


def oga_el_adaptive(*, step: float, gradient_square: float, diameter: float) -> Bound:
    """OGA-EL with steps of size κ/√(Σ_{s≤t}‖g_s‖²), κ = ``step``: (D²/(2κ) + κ)·√(Σ‖g‖²). Best κ = D/√2."""
    positive(step=step)
    non_negative(gradient_square=gradient_square, diameter=diameter)
    root = math.sqrt(gradient_square)
    return Bound("OGA-EL, adaptive", {"domain": diameter**2 / (2.0 * step) * root, "gradients": step * root})
