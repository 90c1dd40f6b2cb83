"""What bounds a pass: its pieces by themselves, with nothing else to wait for.

    python benchmarks/limits.py [--tiny]

Nanoseconds a row. The notes on bars that are missed quote these.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
import numpy as np
from dense import ours, sixteen_rates
from made import COVER_DIM, thin_rows, unit_rows
from reference import c_passes
from section import Size, main
from timing import Work, nanoseconds_a_row

import onlinevi as ovi
from onlinevi.engine import RECORD, many_passes
from onlinevi.engine.kernel import OPTIONS, compose
from onlinevi.ewa import over_rates
from onlinevi.learners.kernels import kernel as kernel_of
from onlinevi.learners.state import aligned_copy
from onlinevi.losses.hinge import Hinge

IN_CACHE, WIDE, STORED, THIN_ROWS, POOLED_ROWS, POOL_BLOCK = 20_000, 1_000_000, 100, 30_000, 50_000, 1_213
evaluate = Hinge.expected


def measure(size: Size) -> dict[str, Any]:
    return {"dense": dense(size), "sparse": sparse(size), "pooled": pooled(size)}


@numba.njit(**OPTIONS)
def roots_and_divisions(rows: int, u: np.ndarray, out: np.ndarray) -> None:
    """SVA's std, one for each weight."""
    for _ in range(rows):
        for j in range(len(u)):
            out[j] = 1.0 / (np.sqrt(1.0 + u[j] * u[j]) + u[j])
        u[0], out[0] = out[0], u[0]


@numba.njit(**OPTIONS)
def fused_oga(X: np.ndarray, y: np.ndarray, rate: float, mean: np.ndarray, total: np.ndarray, sums: np.ndarray) -> None:
    """OGA in one piece, no settings, and less to do, as oga_unchecked in reference.c: what the same compiler makes of it."""
    for i in range(len(y)):
        a = row_square = 0.0
        for j in range(X.shape[1]):
            a += mean[j] * X[i, j]
            row_square += X[i, j] * X[i, j]
        margin = 1.0 - y[i] * a
        if margin <= 0.0:
            continue
        sums[0] += margin
        sums[1] += margin
        sums[2] -= y[i] * a
        sums[3] += row_square
        if not abs(a + sums[3]) < np.inf:
            return
        for j in range(X.shape[1]):
            total[j] -= y[i] * X[i, j]
            mean[j] = min(max(mean[j] + rate * y[i] * X[i, j], -20.0), 20.0)


def losses_in_turn(rows: int, a: float) -> float:
    """Each needs the one before, as in a pass."""
    for _ in range(rows):
        a = a - 0.1 * evaluate(1.0, a, 0.5).slope
    return a


def dense(size: Size) -> dict[str, float]:
    """At d = 54, rows in the cache."""
    rows, repeats = size.rows(IN_CACHE), 5
    X, y = unit_rows(rows, COVER_DIM)
    losses, u, out = compose(losses_in_turn, {}), np.linspace(0.0, 2.0, COVER_DIM), np.empty(COVER_DIM)
    works = {
        "54 roots and 54 divisions": Work(repeats * rows, partial(roots_and_divisions, repeats * rows, u, out)),
        "the expected loss": Work(repeats * rows, partial(losses, repeats * rows, 0.1)),
        "OGA-EL, rows in the cache": ours(X, y, ovi.OGAEL()),
        "SVA, rows in the cache": ours(X, y, ovi.SVA()),
        "OGA, rows in the cache": ours(X, y, ovi.OGA()),
        "OGA fused by hand": Work(rows, lambda: fused_oga(X, y, rows**-0.5, np.zeros(54), np.zeros(54), np.zeros(4))),
    }
    works |= {f"{name} in C": Work(rows, run) for name, run in c_passes(X, y).items() if name == "OGA"}
    return nanoseconds_a_row(works, size.rounds)


@numba.njit(**OPTIONS)
def apart(indices: np.ndarray, starts: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """Touch three numbers of a column where a state has them: in three vectors."""
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            j = indices[k]
            a[j] += 1.0
            b[j] += 1.0
            c[j] += 1.0


@numba.njit(**OPTIONS)
def side_by_side(indices: np.ndarray, starts: np.ndarray, columns: np.ndarray) -> None:
    """The same three beside each other."""
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            j = indices[k]
            columns[j, 0] += 1.0
            columns[j, 1] += 1.0
            columns[j, 2] += 1.0


def sparse(size: Size) -> dict[str, float]:
    """100 of 1,000,000 columns; what a call does once is shared out over its rows."""
    rows = size.rows(THIN_ROWS)
    X, y = thin_rows(rows, WIDE, STORED)
    start = ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB(), average=False).init(WIDE)
    vectors, columns = [np.zeros(WIDE) for _ in range(3)], np.zeros((WIDE, 4))
    works = {
        "three numbers a value, apart": Work(rows, lambda: apart(X.indices, X.indptr, *vectors)),
        "three numbers a value, side by side": Work(rows, lambda: side_by_side(X.indices, X.indptr, columns)),
        "the state copied and looked through": Work(rows, lambda: np.isfinite(aligned_copy(start.array)).all()),
        "SVB": ours(X, y, ovi.SVB()),
    }
    return nanoseconds_a_row(works, size.rounds)


def pooled(size: Size) -> dict[str, float]:
    """Sixteen rates at d = 54: one learner by itself, the passes of all without weighing them, and the pool."""
    X, y = unit_rows(size.rows(POOLED_ROWS), COVER_DIM)
    learner = ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB(), average=False)
    plans = [each.plan(COVER_DIM, len(y)) for each in over_rates(learner, 0.01, 10.0, count=16)]
    kernel = kernel_of(*plans[0].kinds, plans[0].features, loop=many_passes)
    settings, boxes = np.stack([plan.settings for plan in plans]), np.stack([plan.prior_and_box for plan in plans])
    record = np.empty((len(plans), POOL_BLOCK, RECORD.missing_mean_square))

    def passes() -> None:
        states = np.stack([plan.start().array for plan in plans])
        for start in range(0, len(y), POOL_BLOCK):
            labels = y[start : start + POOL_BLOCK]
            block = X[start : start + POOL_BLOCK], labels, np.empty(0), states
            kernel(*block, plans[0].sizes, settings, boxes, plans[0].parameters, record[:, : len(labels)])

    works = {"SVB": ours(X, y, ovi.SVB()), "16 passes": Work(len(y), passes), "16 rates pooled": sixteen_rates(X, y)}
    times = nanoseconds_a_row(works, size.rounds)
    return times | {"weighing": round(times["16 rates pooled"] - times["16 passes"], 1)}


if __name__ == "__main__":
    main("limits", __doc__, measure)
