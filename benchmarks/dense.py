"""One pass over dense rows of 54 features, hinge loss: ours against C, a matrix product, and the peers.

    python benchmarks/dense.py [--tiny]

Rows of Cover Type's shape, made and real. Nanoseconds a row, all in turns; who is slow gets fewer rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from made import COVER_DIM, COVER_ROWS, unit_rows
from reference import RULES, c_full_pass, c_passes
from section import Size, left_out, main
from timing import Work, nanoseconds_a_row

import onlinevi as ovi
from onlinevi.datasets import DataUnavailable, load
from onlinevi.ewa import AdaHedge, Aggregate, over_rates

SOME, FEW, FEWEST = 100_000, 4_000, 1_000
"""Rows for those that need µs a row, for those that need tens of them, and for those that need hundreds."""


class Parts(NamedTuple):
    some: slice
    few: slice
    fewest: slice


def measure(size: Size) -> dict[str, Any]:
    cases: dict[str, Any] = {"synthetic": _case(*unit_rows(size.rows(COVER_ROWS), COVER_DIM), size)}
    absent = left_out("scikit-learn", "River", "Vowpal Wabbit", "JAX")
    try:
        cases["Cover Type"] = _case(*cover(size.rows(COVER_ROWS)), size)
    except DataUnavailable as error:
        absent["Cover Type"] = str(error).split(". ")[0]
    return {"cases": cases, "left out": absent}


def cover(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The real rows, each of length 1."""
    data = load("cover")
    X = np.array(data.X[:rows], dtype=np.float64)
    return X / np.linalg.norm(X, axis=1)[:, None], np.array(data.y[:rows])


def ours(X: Any, y: np.ndarray, rule: ovi.Rule, family: ovi.Family | None = None, **settings: Any) -> Work:
    run = partial(ovi.learn, X, y, loss=ovi.Hinge(), rule=rule, family=family, record="none", average=False, **settings)
    return Work(len(y), run)


def sixteen_rates(X: np.ndarray, y: np.ndarray) -> Work:
    learner = ovi.Linear(loss=ovi.Hinge(), rule=ovi.SVB(), average=False)
    pool = Aggregate(over_rates(learner, 0.01, 10.0, count=16), rate=AdaHedge())
    return Work(len(y), lambda: pool.run(X, y))


def _case(X: np.ndarray, y: np.ndarray, size: Size) -> dict[str, Any]:
    works = _own(X, y, size) | _bare(X, y)
    parts = Parts(*(slice(0, size.rows(count)) for count in (SOME, FEW, FEWEST)))
    with tempfile.TemporaryDirectory() as folder:
        works |= _peers(X, y, parts, Path(folder))
        times = nanoseconds_a_row(works, size.rounds)
    return {"dim": X.shape[1], "rows": {name: work.rows for name, work in works.items()}, "ns a row": times}


def _own(X: np.ndarray, y: np.ndarray, size: Size) -> dict[str, Work]:
    some, part = size.rows(SOME), slice(0, size.rows(SOME))
    works = {name: ours(X, y, rule) for name, (rule, _, _) in RULES.items()}
    works |= {f"{name} in C": Work(len(y), run) for name, run in c_passes(X, y).items()}
    works["Implicit"] = ours(X, y, ovi.Implicit())
    works["NGVI, full covariance"] = ours(X[part], y[part], ovi.NGVI(), ovi.FullCovariance())
    in_c = c_full_pass(X[part], y[part])
    if in_c is not None:
        works["NGVI, full covariance in C"] = Work(some, in_c)
    works["SVB, 16 rates pooled"] = sixteen_rates(X[part], y[part])
    return works


def _bare(X: np.ndarray, y: np.ndarray) -> dict[str, Work]:
    """What reading the rows costs alone."""
    copy, weights = np.empty_like(X), np.ones(X.shape[1])
    return {"X @ w": Work(len(y), partial(np.matmul, X, weights)), "copy of X": Work(len(y), partial(np.copyto, copy, X))}


def _peers(X: np.ndarray, y: np.ndarray, parts: Parts, folder: Path) -> dict[str, Work]:
    import rivals

    some, few, fewest = parts
    works = {"numpy loop, SVB": rivals.numpy_pass(X[few], y[few])}
    _same("numpy", rivals.numpy_svb(X[few], y[few]), X[few], y[few])
    if not left_out("scikit-learn"):
        works["scikit-learn SGD, one call"] = rivals.sgd_pass(X, y)
        works["scikit-learn SGD, a call a row"] = rivals.sgd_calls(X[fewest], y[fewest])
    if not left_out("River"):
        works["River LogisticRegression"] = rivals.river_pass(X[few], y[few])
    if not left_out("Vowpal Wabbit"):
        import vowpal

        works |= vowpal.cached_passes(X[some], y[some], folder)
        works["VW, learn calls"] = vowpal.learn_calls(X[few], y[few])
    if not left_out("JAX"):
        works |= _jax(X, y, some, few)
    return works


def _jax(X: np.ndarray, y: np.ndarray, some: slice, few: slice) -> dict[str, Work]:
    from jax_passes import passes

    found: dict[str, Callable[[slice], Callable[[], np.ndarray]]] = passes(X, y)
    _same("JAX", found["JAX scan, SVB"](few)(), X[few], y[few])
    parts = {name: few if "full" in name else some for name in found}
    return {name: Work(len(y[part]), found[name](part)) for name, part in parts.items()}


def _same(name: str, mean: np.ndarray, X: np.ndarray, y: np.ndarray) -> None:
    own = ovi.learn(X, y, loss=ovi.Hinge(), rule=ovi.SVB(), record="none", average=False).mean
    if not np.allclose(mean, own, rtol=1e-5, atol=1e-5):
        raise AssertionError(f"SVB in {name} computes something else")


if __name__ == "__main__":
    main("dense", __doc__, measure)
