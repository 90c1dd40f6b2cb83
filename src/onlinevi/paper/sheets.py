"""What the paper's figure does not have: the toy panel's exact posterior, and what was certain of the regret."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onlinevi.engine import Belief
from onlinevi.guarantees import Grid, bounds, certificate, divergences
from onlinevi.learners import Linear
from onlinevi.paper.experiments import RULES, BestWeights, thinned
from onlinevi.paper.panels import Panel, Stream

POINTS = 401
"""Cells of the grid to a side, of width 0.1 over the box."""
GUARANTEED = ("SVA", "SVB", "NGVI")
"""The rules whose guarantees are shown."""


@dataclass(frozen=True)
class ExactPosterior:
    """A_t of EWA, and KL(q‖exact posterior) of each rule's belief at some times."""

    steps: list[int]
    curve: list[float]
    divergence_steps: list[int]
    divergence: dict[str, list[float]]


def exact_posterior(panel: Panel, stream: Stream) -> ExactPosterior:
    """EWA on a grid, tempered at the rate of the paper's SVA, 1/√T, with the same prior and box."""
    grid = Grid(panel.loss, points=POINTS)
    steps, times = thinned(len(stream.y)), thinned(len(stream.y), 40)
    averages = grid.run(stream.X, stream.y).average_loss
    gaussian = [name for name, rule in RULES.items() if rule.gaussian]
    table = divergences(grid, [Linear(panel.loss, RULES[name]) for name in gaussian], stream.X, stream.y, times)
    curve = [float(averages[t - 1]) for t in steps]
    return ExactPosterior(steps, curve, times, dict(zip(gaussian, table.T.tolist(), strict=True)))


@dataclass(frozen=True)
class Guarantee:
    """What was certain of one rule's regret in one panel, at some times: all a step."""

    data: str
    rule: str
    steps: list[int]
    regret: list[float]
    """Against the weights that are best at T, over the same events."""
    certificate: list[float]
    """Against every point of the box, from what the state kept."""
    theorem: list[float] | None
    """Known before the data, against the weights that are best at T; None where the paper has none."""


def guarantee(panel: Panel, rule: str, stream: Stream, best: BestWeights) -> Guarantee:
    """Learn in blocks, and ask the state after each."""
    count, dim = stream.X.shape
    learner = Linear(panel.loss, RULES[rule])
    slope = bounds.lipschitz(stream.X, stream.y, loss=panel.loss, family=learner.belief_family)
    averages = best.averages(panel, stream)
    # A theorem speaks of a Gaussian around the weights. Its spread costs at most L·std·√d a step.
    std = 1.0 / math.sqrt(count)
    comparator = Belief(np.array(best.weights), np.full(dim, std))
    steps = thinned(count, 60)
    state, regret, certified, theorem = learner.init(dim, count), [], [], []
    for start, stop in zip([0, *steps], steps, strict=False):
        state, _ = learner.update_many(state, stream.X[start:stop], stream.y[start:stop], record="none")
        regret.append(state.average_loss - float(averages[stop - 1]))
        certified.append(certificate(state).regret / stop)
        if bounds.theorem_of(learner.rule) is not None:
            theorem.append(bounds.before_data(state, comparator, lipschitz=slope).value / stop + slope * std * math.sqrt(dim))
    return Guarantee(panel.name, rule, steps, regret, certified, theorem or None)
