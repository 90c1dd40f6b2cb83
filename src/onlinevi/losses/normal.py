"""The standard normal law, shared by the losses with a kink."""

from __future__ import annotations

import math

from onlinevi import ns
from onlinevi.types import Real

SQRT_HALF = math.sqrt(0.5)
INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)

POINT_MASS = 1e-290
"""A spread below this counts as none: density / spread would overflow."""


def bump(r: Real) -> Real:
    """e^(−r²/2): the density without its constant."""
    return ns.exp(-0.5 * r * r)


def cumulative(r: Real, bump_r: Real) -> Real:
    """Φ(r), given bump(r), which its callers need anyway; the left tail keeps its digits."""
    tail = 0.5 * bump_r * scaled_tail(SQRT_HALF * ns.absolute(r))
    return ns.where(r < 0.0, tail, 1.0 - tail)


def scaled_tail(x: Real) -> Real:
    """e^(x²)·erfc(x) for x ≥ 0, to 2e-15: a polynomial in q = (x − 3.75)/(x + 3.75), over 1 + 2x.

    Powers 0, 1, 2 and 3 mod 4 run side by side: a processor waits for a chain of multiplications, not for their number.
    Interpolated at Chebyshev points.
    """
    scale = 1.0 / (1.0 + 2.0 * x)
    q = (x - 3.75) / (x + 3.75)
    s = q * q
    w = s * s
    p0 = 1.752560461090395e-08
    p0 = p0 * w + 1.6957121903295755e-06
    p0 = p0 * w + 5.162577762063891e-05
    p0 = p0 * w - 0.009746581222643222
    p0 = p0 * w - 0.10880393015489652
    p0 = p0 * w + 1.2375126308378261
    p1 = -2.03292172142306e-09
    p1 = p1 * w - 5.1766286258511114e-08
    p1 = p1 * w + 2.2386666286993252e-05
    p1 = p1 * w + 0.0017556260305671993
    p1 = p1 * w + 0.09230432116176848
    p1 = p1 * w - 0.14024059858554686
    p2 = -2.1417377757617212e-07
    p2 = p2 * w - 1.139939149641738e-05
    p2 = p2 * w + 0.0002937215349257143
    p2 = p2 * w - 0.05869339838338856
    p2 = p2 * w + 0.0035854154857922218
    p3 = 1.9199785285935027e-08
    p3 = p3 * w - 9.78099927946729e-07
    p3 = p3 * w - 0.00029015491299394817
    p3 = p3 * w + 0.028362277396913042
    p3 = p3 * w + 0.08227673849011187
    return ((p0 + q * p1) + s * (p2 + q * p3)) * scale
