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

    Even and odd powers run side by side, which halves the chain of multiplications a processor waits for. Interpolated at
    Chebyshev points; tests/test_losses.py computes the coefficients anew.
    """
    q = (x - 3.75) / (x + 3.75)
    s = q * q
    even = 1.752560461090395e-08
    even = even * s - 2.1417377757617212e-07
    even = even * s + 1.6957121903295755e-06
    even = even * s - 1.139939149641738e-05
    even = even * s + 5.162577762063891e-05
    even = even * s + 0.0002937215349257143
    even = even * s - 0.009746581222643222
    even = even * s - 0.05869339838338856
    even = even * s - 0.10880393015489652
    even = even * s + 0.0035854154857922218
    even = even * s + 1.2375126308378261
    odd = -2.03292172142306e-09
    odd = odd * s + 1.9199785285935027e-08
    odd = odd * s - 5.1766286258511114e-08
    odd = odd * s - 9.78099927946729e-07
    odd = odd * s + 2.2386666286993252e-05
    odd = odd * s - 0.00029015491299394817
    odd = odd * s + 0.0017556260305671993
    odd = odd * s + 0.028362277396913042
    odd = odd * s + 0.09230432116176848
    odd = odd * s + 0.08227673849011187
    odd = odd * s - 0.14024059858554686
    return (even + q * odd) / (1.0 + 2.0 * x)
