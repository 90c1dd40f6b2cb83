"""One pass over sparse rows, hinge loss: ours against Vowpal Wabbit, scikit-learn and River at the same stored values.

    python benchmarks/sparse_rows.py [--tiny]

a9a, and rows made with 10 or 100 values of 100,000 or 1,000,000 columns. Nanoseconds a row, all in turns.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from made import thin_rows
from reference import RULES
from scipy import sparse
from section import Size, left_out, main
from timing import Staged, Work, nanoseconds_a_row

import onlinevi as ovi
from onlinevi.datasets import DataUnavailable, load

SHAPES = {(100_000, 10): 100_000, (100_000, 100): 30_000, (1_000_000, 10): 100_000, (1_000_000, 100): 150_000}
"""Rows for each number of columns and of stored values: of the widest enough for a feature to be met more than a few times."""
FEW = 2_000


def measure(size: Size) -> dict[str, Any]:
    cases, absent = {}, left_out("scikit-learn", "River", "Vowpal Wabbit")
    try:
        data = load("a9a")
        rows = size.rows(len(data.y))
        cases["a9a"] = _case(with_short_indices(data.X[:rows]), data.y[:rows], size)
    except DataUnavailable as error:
        absent["a9a"] = str(error).split(". ")[0]
    for (dim, stored), rows in SHAPES.items():
        cases[f"{stored} of {dim:,}"] = _case(*thin_rows(size.rows(rows), dim, stored), size)
    return {"cases": cases, "forgetting": _forgetting(size), "left out": absent}


def _forgetting(size: Size) -> dict[str, float]:
    """Rows of 100 of 10,000 values with a discount: the time filled up, where every weight forgets, ÷ that of those stored."""
    X, y = thin_rows(size.rows(2_000), 10_000, 100)
    works = {}
    for name, rule in (("NGVI", ovi.NGVI()), ("SVB", ovi.SVB()), ("Implicit", ovi.Implicit())):
        for lazy in (False, True):
            learner = ovi.Linear(ovi.Hinge(), rule, ovi.MeanField(), average=False, discount=0.999, lazy=lazy)
            works[f"{name}, {lazy}"] = Work(
                len(y), Staged(partial(learner.init, X.shape[1], len(y)), partial(_pass, learner, X, y))
            )
    times = nanoseconds_a_row(works, size.rounds)
    return {name: times[f"{name}, False"] / times[f"{name}, True"] for name in ("NGVI", "SVB", "Implicit")}


def _pass(learner: ovi.Linear, X: sparse.csr_array, y: np.ndarray, state: ovi.State) -> object:
    return learner.update_many(state, X, y, record="none")


def with_short_indices(X: Any) -> sparse.csr_array:
    """scikit-learn refuses indices of 64 bits."""
    X = sparse.csr_array(X)
    return sparse.csr_array((X.data.astype(np.float64), X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def from_state(X: sparse.csr_array, y: np.ndarray, rule: ovi.Rule) -> Work:
    """A pass from a state that is there, as VW's table is there when its pass begins."""
    learner = ovi.Linear(loss=ovi.Hinge(), rule=rule, average=False)
    start = partial(learner.init, X.shape[1], len(y))
    return Work(len(y), Staged(start, partial(_pass, learner, X, y)))


def _case(X: sparse.csr_array, y: np.ndarray, size: Size) -> dict[str, Any]:
    works = {name: from_state(X, y, rule) for name, (rule, _, _) in RULES.items()}
    works["X @ w"] = Work(len(y), lambda: X @ np.ones(X.shape[1]))
    with tempfile.TemporaryDirectory() as folder:
        works |= _peers(X, y, slice(0, size.rows(FEW)), Path(folder))
        times = nanoseconds_a_row(works, size.rounds)
    rows = {name: work.rows for name, work in works.items()}
    return {"dim": X.shape[1], "stored a row": X.nnz / len(y), "rows": rows, "ns a row": times}


def _peers(X: sparse.csr_array, y: np.ndarray, few: slice, folder: Path) -> dict[str, Work]:
    import rivals

    works: dict[str, Work] = {}
    if not left_out("scikit-learn"):
        works["scikit-learn SGD, one call"] = rivals.sgd_pass(X, y)
    if not left_out("River"):
        works["River LogisticRegression"] = rivals.river_pass(X[few], y[few])
    if not left_out("Vowpal Wabbit"):
        import vowpal

        works |= vowpal.cached_passes(X, y, folder)
    return works


if __name__ == "__main__":
    main("sparse_rows", __doc__, measure)
