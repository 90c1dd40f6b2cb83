"""What the live certificate costs: one pass with its sums, against the same pass without them.

    python benchmarks/certificate.py [--tiny]

The library always keeps the sums (Σ e1·x, Σ(e1·a + e2·v²), Σ E), so they cannot be switched off there. Here the same loop is
written by hand twice, and only the certificate's lines differ. Ratios of one interleaved run, best of 15.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from made import unit_rows
from section import Size, main
from timing import interleaved

from onlinevi.engine.kernel import OPTIONS

SHAPES = {54: 200_000, 1_000: 10_000}


def loop(*, natural: bool, certified: bool) -> Callable[..., None]:
    """SVB with the paper's rate, or NGVI with step 1, for the hinge loss."""

    @numba.njit(**OPTIONS)
    def run(X, y, mean, std, total, sums):  # type: ignore[no-untyped-def]
        for i in range(len(y)):
            a = variance = 0.0
            for j in range(X.shape[1]):
                spread = std[j] * X[i, j]
                a += mean[j] * X[i, j]
                variance += spread * spread
            v, margin = math.sqrt(variance), 1.0 - y[i] * a
            r = margin / v
            active, density = 0.5 * math.erfc(-r * 0.7071067811865476), 0.3989422804014327 * math.exp(-0.5 * r * r)
            slope, curvature = -y[i] * active, density / v
            sums[0] += max(margin, 0.0)
            if certified:
                sums[1] += margin * active + v * density
                sums[2] += slope * a + curvature * variance
            if not math.isfinite(a) or not math.isfinite(variance):
                return
            rate = 1.0 if natural else 1.0 / math.sqrt(i + 1.0)
            for j in range(X.shape[1]):
                x = X[i, j]
                g, c = slope * x, curvature * x * x
                if certified:
                    total[j] += g
                if natural:
                    new = std[j] / math.sqrt(1.0 + rate * c * std[j] * std[j])
                    mean[j] = min(max(mean[j] - rate * new * new * g, -20.0), 20.0)
                else:
                    u = 0.5 * rate * c
                    new = std[j] / (math.sqrt(1.0 + u * u) + u)
                    mean[j] = min(max(mean[j] - rate * g, -20.0), 20.0)
                std[j] = min(max(new, 0.0), 1.0)

    return run  # type: ignore[no-any-return]


def measure(size: Size) -> dict[str, Any]:
    return {"with ÷ without": {dim: ratios(*unit_rows(size.rows(rows), dim), size) for dim, rows in SHAPES.items()}}


def ratios(X: np.ndarray, y: np.ndarray, size: Size) -> dict[str, float]:
    dim = X.shape[1]

    def job(natural: bool, certified: bool) -> Callable[[], None]:
        run = loop(natural=natural, certified=certified)
        return lambda: run(X, y, np.zeros(dim), np.ones(dim), np.zeros(dim), np.zeros(3))

    rules = {"SVB": False, "NGVI": True}
    jobs = {f"{name} {kept}": job(natural, kept) for name, natural in rules.items() for kept in (False, True)}
    seconds = interleaved(jobs, 2 * size.rounds + 1)
    return {name: round(seconds[f"{name} True"] / seconds[f"{name} False"], 3) for name in rules}


if __name__ == "__main__":
    main("certificate", __doc__, measure)
