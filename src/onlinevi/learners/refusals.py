"""Why the loop refused a row, in words: what came, what is needed, and what to do about it."""

from __future__ import annotations

import numpy as np

from onlinevi.data import Rows, one_row
from onlinevi.engine import Vector
from onlinevi.learners.base import BadRow
from onlinevi.learners.state import EXPLODED, Plan

NOT_FINITE = "the prediction is not finite: x holds NaN, infinity, or values too large to square"


def refusal(plan: Plan, rows: Rows, labels: Vector, weights: Vector, row: int) -> BadRow:
    """The refusal of a row by its number."""
    weight = float(weights[row]) if len(weights) else 1.0
    return BadRow(row, reason(plan, one_row(rows, row), float(labels[row]), weight))


def reason(plan: Plan, row: Vector, label: float, weight: float) -> str:
    """Why the compiled loop refused a row."""
    single = plan.dtype == "float32"
    if not (np.isfinite(weight) and weight >= 0.0):
        return f"weight {weight}: a weight must be ≥ 0 and finite"
    bad = np.flatnonzero(np.isinf(row) if plan.missing else ~np.isfinite(row))
    if len(bad):
        ways = (
            "set Linear(missing=True), drop the row, or fill it in" if np.isnan(row[bad[0]]) else "drop the row, or fill it in"
        )
        ways += " (in float32 all beyond 3.4e38 is infinite)" if single and np.isinf(row[bad[0]]) else ""
        return f"feature {bad[0]} is {row[bad[0]]}: needs finite numbers; {ways}"
    if not plan.loss.valid_label(np.float64(label), *plan.parameters):
        return plan.loss.refuse_label(label)
    largest = np.nanmax(np.abs(row), initial=0.0)
    seen = f"(label {label}, largest feature {largest:.3g})"
    if plan.family.correlated:
        return (
            f"the step would overflow, or the belief has become {EXPLODED:,.0f} times as wide as its prior {seen}: "
            f"{plan.loss.overflow_hint}, lower the rate, ridge or prior_std, or use NGVI() or Implicit(), which never widen"
        )
    ways = f"{plan.loss.overflow_hint}, {'lower the rate, or use float64' if single else 'or lower the rate'}"
    return f"the step would overflow {seen}: {ways}"
