"""Steps that change a std by little: series in place of a root and a division, which take half of an event's time.

Up to the limits the terms left out are below half an ulp. ``Rates.gentle`` says that a step is within them.
"""

from __future__ import annotations

from onlinevi.engine.types import Real

SHRINKING = 1.0 / 40.0
"""The largest 2u for ``shrinkage``."""
ROOTED = 1.0 / 256.0
"""The largest w for ``root_shrinkage``."""


def shrinkage(u: Real) -> Real:
    """1 − h(u), with h(u) = √(1 + u²) − u. What is lost, not what is left: in float32 next to 1 that has few digits."""
    z = u * u
    return u - z * (0.5 - z * (0.125 - z * 0.0625))


def root_shrinkage(w: Real) -> Real:
    """1 − 1/√(1 + w)."""
    return w * (0.5 - w * (0.375 - w * (0.3125 - w * (0.2734375 - w * (0.24609375 - w * 0.2255859375)))))
