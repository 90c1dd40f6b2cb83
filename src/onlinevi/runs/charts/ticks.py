"""Ticks that read well on a logarithmic axis."""

from __future__ import annotations

import math


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; with 2 and 5 between them where these are few."""
    decades = math.log10(high / low)
    steps = (1,) if decades > 3.0 else (1, 3) if decades > 2.0 else (1, 2, 5) if decades > 0.5 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    every = max(1, round(decades / 6.0))
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**k for k in exponents if k % every == 0 for step in steps]
    return [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]


def short(value: float) -> str:
    """A number that fits beside an axis: 0.003, 250, 10k, 2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.3g}"
