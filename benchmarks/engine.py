"""The compiled loop: against C at other widths, against a kernel fused by hand, with other beliefs, on sparse rows, by calls.

    python benchmarks/engine.py [--tiny]

Hinge loss. Every number but the microseconds of a call is a ratio within one interleaved run. ``dense.py`` has C at d = 54.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numba
import numpy as np
from dense import ours
from made import COVER_DIM, COVER_ROWS, thin_rows, unit_rows
from reference import RULES, c_passes
from section import Size, main
from timing import Work, nanoseconds_a_row

import onlinevi as ovi
from onlinevi.engine.kernel import OPTIONS

SHAPES = {2: 1_000_000, 1_000: 30_000, 10_000: 3_000}
SHORT, SHORTEST = 3, 30
"""Rounds for each one of others, where a turn takes tens of milliseconds, or five: a neighbour's noise lasts longer."""


def measure(size: Size) -> dict[str, Any]:
    return {
        "÷ C": {dim: against_c(dim, size.rows(rows), size) for dim, rows in SHAPES.items()},
        "÷ fused by hand": composition(size),
        "÷ SVB, mean field": beliefs(size),
        "dense ÷ sparse, a row": sparsity(size),
        "µs an update": updates(size),
    }


@numba.njit(**OPTIONS)
def fused_svb(X, y, mean, std, total, sums):  # type: ignore[no-untyped-def]
    """SVB with the hinge loss in one piece, no parts, no settings: what composition is measured against."""
    for i in range(len(y)):
        a = variance = row_square = spread_square = 0.0
        for j in range(X.shape[1]):
            x = X[i, j]
            spread = std[j] * x
            a += mean[j] * x
            variance += spread * spread
            row_square += x * x
            spread_square += (spread * x) * (spread * x)
        v, margin = math.sqrt(variance), 1.0 - y[i] * a
        r = margin / v
        active, density = 0.5 * math.erfc(-r * 0.7071067811865476), 0.3989422804014327 * math.exp(-0.5 * r * r)
        slope, curvature = -y[i] * active, density / v
        sums[0] += max(margin, 0.0)
        sums[1] += margin * active + v * density
        sums[2] += slope * a + curvature * variance
        sums[3] += slope * slope * row_square + curvature * curvature * spread_square
        if not math.isfinite(a + variance + sums[1] + sums[2] + sums[3]):
            return
        rate = 1.0 / math.sqrt(i + 1.0)
        for j in range(X.shape[1]):
            x = X[i, j]
            g, u = slope * x, 0.5 * rate * curvature * x * x
            total[j] += g
            mean[j] = min(max(mean[j] - rate * g, -20.0), 20.0)
            std[j] = min(max(std[j] / (math.sqrt(1.0 + u * u) + u), 0.0), 1.0)


def against_c(dim: int, rows: int, size: Size) -> dict[str, float]:
    X, y = unit_rows(rows, dim)
    in_c = c_passes(X, y)
    works = {name: ours(X, y, rule) for name, (rule, _, _) in RULES.items()}
    times = nanoseconds_a_row(works | {f"{name} in C": Work(rows, run) for name, run in in_c.items()}, size.rounds)
    return {name: round(times[name.removesuffix(" unchecked")] / times[f"{name} in C"], 3) for name in in_c}


def composition(size: Size) -> dict[str, float]:
    """What parts, settings and records cost, where nothing is fused by hand."""
    X, y = unit_rows(size.rows(COVER_ROWS), COVER_DIM)

    def fused() -> None:
        fused_svb(X, y, np.zeros(COVER_DIM), np.ones(COVER_DIM), np.zeros(COVER_DIM), np.zeros(4))

    works = {"composed": ours(X, y, ovi.SVB()), "fused": Work(len(y), fused)}
    works["with average and record"] = Work(len(y), partial(ovi.learn, X, y, loss=ovi.Hinge(), rule=ovi.SVB()))
    times = nanoseconds_a_row(works, size.rounds)
    return {name: round(times[name] / times["fused"], 3) for name in works if name != "fused"}


def beliefs(size: Size) -> dict[str, float]:
    """The implicit step and the covariances, as multiples of SVB's mean-field pass at d = 54."""
    X, y = unit_rows(size.rows(200_000), COVER_DIM)
    full = {"NGVI": ovi.NGVI(), "SVB": ovi.SVB(), "SVA": ovi.SVA(0.01), "OGA-EL": ovi.OGAEL(0.01), "Implicit": ovi.Implicit()}
    works = {"SVB": ours(X, y, ovi.SVB()), "Implicit, mean field": ours(X, y, ovi.Implicit())}
    works["Implicit, point"] = ours(X, y, ovi.Implicit(), ovi.Point())
    few = slice(0, len(y) // 10)
    works |= {f"{name}, full": ours(X[few], y[few], rule, ovi.FullCovariance()) for name, rule in full.items()}
    works["Implicit, rank 10"] = ours(X[few], y[few], ovi.Implicit(), ovi.LowRank(rank=10))
    times = nanoseconds_a_row(works, size.rounds)
    return {name: round(times[name] / times["SVB"], 2) for name in works if name != "SVB"}


def sparsity(size: Size) -> dict[str, float]:
    """At 1% density. Ten times the rows where they are sparse: the same work in memory, and time to measure."""
    rows, dim = size.rows(3_000), 10_000
    thin, y = thin_rows(10 * rows, dim, dim // 100)
    full = thin[:rows].toarray()
    dense = {f"{name}, dense": ours(full, y[:rows], rule) for name, (rule, _, _) in RULES.items()}
    times = nanoseconds_a_row(dense | {name: ours(thin, y, rule) for name, (rule, _, _) in RULES.items()}, SHORT * size.rounds)
    return {name: round(times[f"{name}, dense"] / times[name], 1) for name in RULES}


def updates(size: Size) -> dict[str, float]:
    """One call of ``update`` after the other, with nothing between them; ``events.py`` has predictions between."""
    X, y = unit_rows(max(100, size.rows(1_000)), COVER_DIM)
    events = list(zip(X, y.tolist(), strict=True))

    def run(learner: ovi.Linear) -> None:
        state = learner.init(COVER_DIM, len(events))
        for x, label in events:
            state, _ = learner.update(state, x, label)

    learners = {name: ovi.Linear(loss=ovi.Hinge(), rule=rule) for name, (rule, _, _) in RULES.items()}
    works = {name: Work(len(events), partial(run, learner)) for name, learner in learners.items()}
    return {name: round(time / 1e3, 2) for name, time in nanoseconds_a_row(works, SHORTEST * size.rounds).items()}


if __name__ == "__main__":
    main("engine", __doc__, measure)
