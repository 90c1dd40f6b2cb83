"""The toy panel's exact posterior: EWA on a grid, and how far each variational rule is from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinevi.guarantees import Grid, divergences
from onlinevi.learners import Linear
from onlinevi.paper.panels import Panel, Stream
from onlinevi.paper.runs import RULES, thinned

POINTS = 401
"""Cells of width 0.1 over the box."""
TIMES = 40


@dataclass(frozen=True)
class ExactPosterior:
    """A_t of EWA, and KL(q‖exact posterior) of each rule's belief at some times."""

    steps: list[int]
    curve: list[float]
    divergence_steps: list[int]
    divergence: dict[str, list[float]]


def exact_posterior(panel: Panel, stream: Stream) -> ExactPosterior:
    """Tempered at the rate of the paper's SVA, 1/√T, with the same prior and box."""
    grid = Grid(panel.loss, points=POINTS)
    steps = thinned(len(stream.y))
    averages = grid.run(stream.X, stream.y).average_loss
    times = np.unique(np.geomspace(1, len(stream.y), TIMES).round().astype(int)).tolist()
    gaussian = [name for name, rule in RULES.items() if rule.gaussian]
    table = divergences(grid, [Linear(panel.loss, RULES[name]) for name in gaussian], stream.X, stream.y, times)
    curve = [float(averages[t - 1]) for t in steps]
    return ExactPosterior(steps, curve, times, dict(zip(gaussian, table.T.tolist(), strict=True)))
