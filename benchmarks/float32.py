"""Beliefs and rows in 32 bits against 64, hinge loss, mean field: how much faster, and what it costs in loss.

    python benchmarks/float32.py [--tiny]

The rows of the one are given in 32 bits, those of the other in 64.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from dense import ours
from made import unit_rows
from reference import RULES
from section import Size, main
from timing import nanoseconds_a_row

import onlinevi as ovi

SHAPES = {54: 200_000, 1_000: 30_000, 10_000: 3_000}


def measure(size: Size) -> dict[str, Any]:
    if "dtype" not in {field.name for field in fields(ovi.Linear)}:
        return {"left out": {"float32": "this version has no option dtype"}}
    return {"widths": {dim: _width(dim, rows, size) for dim, rows in SHAPES.items()}}


def _width(dim: int, rows: int, size: Size) -> dict[str, dict[str, float]]:
    X, y = unit_rows(size.rows(rows), dim)
    narrow, works = X.astype(np.float32), {}
    for name, (rule, _, _) in RULES.items():
        works[name] = ours(X, y, rule)
        works[f"{name}, float32"] = ours(narrow, y, rule, dtype="float32")
    times = nanoseconds_a_row(works, size.rounds)
    losses = {name: work.job().state.loss / work.rows for name, work in works.items()}  # type: ignore[operator, union-attr]
    return {
        name: {
            "ns a row, float64": times[name],
            "ns a row, float32": times[f"{name}, float32"],
            "times as fast": round(times[name] / times[f"{name}, float32"], 3),
            "difference in average loss": abs(losses[f"{name}, float32"] - losses[name]),
        }
        for name in RULES
    }


if __name__ == "__main__":
    main("float32", __doc__, measure)
