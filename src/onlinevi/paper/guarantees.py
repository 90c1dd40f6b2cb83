"""The second sheet: what was certain of the regret while a run went on, beside what it turned out to be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onlinevi.engine import Belief
from onlinevi.guarantees import bounds, certificate
from onlinevi.learners import Linear
from onlinevi.paper.panels import Panel, Stream
from onlinevi.paper.runs import RULES, Line

SHOWN = ("SVA", "SVB", "NGVI")
TIMES = 60


@dataclass(frozen=True)
class Guarantee:
    """For one rule in one panel, at some times: all a step."""

    data: str
    rule: str
    steps: list[int]
    regret: list[float]
    """Against the weights that are best at T, over the same events."""
    certificate: list[float]
    """Against every point of the box, from what the state kept."""
    theorem: list[float] | None
    """Known before the data, against the weights that are best at T; None where the paper has none."""


def guarantee(panel: Panel, rule: str, stream: Stream, line: Line) -> Guarantee:
    """Run in blocks, and look at the state after each."""
    count, dim = stream.X.shape
    learner = Linear(panel.loss, RULES[rule])
    slope = bounds.lipschitz(stream.X, stream.y, loss=panel.loss, family=learner.belief_family)
    averages = line.averages(panel, stream)
    # A theorem speaks of a Gaussian around the weights. Its spread costs at most L·std·√d a step.
    std = 1.0 / math.sqrt(count)
    comparator = Belief(np.array(line.weights), np.full(dim, std))
    steps = np.unique(np.geomspace(1, count, TIMES).round().astype(int)).tolist()
    state, regret, certified, promised = learner.init(dim, count), [], [], []
    for start, stop in zip([0, *steps], steps, strict=False):
        state, _ = learner.update_many(state, stream.X[start:stop], stream.y[start:stop], record="none")
        regret.append(state.average_loss - float(averages[stop - 1]))
        certified.append(certificate(state).regret / stop)
        if bounds.theorem_of(learner.rule) is not None:
            promised.append(bounds.before_data(state, comparator, lipschitz=slope).value / stop + slope * std * math.sqrt(dim))
    return Guarantee(panel.name, rule, steps, regret, certified, promised or None)
