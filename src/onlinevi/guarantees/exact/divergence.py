"""How far the beliefs of learners are from the posterior that they approximate, along a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinevi.data import as_events
from onlinevi.engine import Belief, Vector
from onlinevi.guarantees.exact.grid import Grid, GridPosterior, cuts
from onlinevi.learners import Linear


def divergences(grid: Grid, learners: Sequence[Linear], X: Any, y: Any, steps: Sequence[int]) -> Vector:
    """KL(q‖p), the variational direction, after each of these numbers of events: a row a step, a column a learner.

    q is a learner's belief, p the tempered posterior of the grid's loss, rate and prior, by the variational identity

        KL(q‖p) = KL(q‖prior) + rate·Σ E_q[loss] + log ∫ prior·exp(−rate·Σ loss).

    The grid serves for the last term alone, so a belief of any width is measured; one of width 0 is infinitely far. What q
    has outside of the box counts as if the box went on. One pass for the grid, one for each learner, and a sum over the
    past at each step.
    """
    if grid.prior == "uniform":
        raise ValueError("no Gaussian lies in a box: its divergence to a uniform prior is infinite; use prior='family'")
    for learner in learners:
        if not learner.belief_family.gaussian:
            raise TypeError(f"{learner.rule} keeps a point, which has no density: give a rule with a spread, such as SVA()")
    rows, labels, _ = as_events(X, y, hint=grid.loss.label_hint, filled=True)
    matrix = np.asarray(rows.block(0, rows.count), dtype=float)
    states = [learner.init(rows.dim, rows.count) for learner in learners]
    table = np.empty((len(steps), len(learners)))
    posteriors = grid.posteriors(matrix, labels, steps)
    for row, (posterior, (start, stop)) in enumerate(zip(posteriors, cuts(steps, rows.count), strict=True)):
        for column, learner in enumerate(learners):
            block = matrix[start:stop], labels[start:stop]
            states[column] = learner.update_many(states[column], *block, record="none")[0]
            table[row, column] = _divergence(grid, posterior, states[column].belief, matrix[:stop], labels[:stop])
    return table


def _divergence(grid: Grid, posterior: GridPosterior, belief: Belief, past: Vector, labels: Vector) -> float:
    prediction, variance = grid.family.predict(belief, past)
    cost = float(grid.loss(labels, prediction, np.sqrt(variance)).value.sum())
    cost += 0.5 * grid.loss.ridge * len(labels) * float(np.sum(np.square(belief.mean) + np.square(belief.std)))
    return grid.family.kl(belief) + posterior.rate * cost + posterior.log_evidence
