"""The best fixed weights of a run's rows, found when the run has ended, and what those rows say of its belief."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.beliefs import edges, radii
from onlinevi.engine import Vector
from onlinevi.guarantees import PacBayes, hindsight, pac_bayes
from onlinevi.runs.job import Job
from onlinevi.runs.promises import DELTA
from onlinevi.runs.replay import NotAgain, replay, too_many
from onlinevi.runs.report.results import Best
from onlinevi.runs.run import Stopped, Stopper

MOST_VALUES = 1 << 21
"""Values of rows that are read once more without being asked for: 16 MB."""
MOST_COLUMNS = 128
"""Of such rows, the intercept included: the minimiser works with all pairs of columns, and is to take seconds."""
REACH = 20.0
"""How far comparators' weights lie from 0 where a learner has no box, in units of the labels for numbers."""


@dataclass(frozen=True, eq=False)
class InHindsight:
    """The best fixed weights, and their total loss behind each event; or why there are none."""

    best: Best | None = None
    total_loss: Vector | None = None
    why: str = ""
    belief: PacBayes | None = None
    """Of two classes, what the belief at the end will get wrong at most."""


def look_back(job: Job, source: str, stopper: Stopper, *, any_size: bool = False) -> InHindsight:
    """Of a run that came to the end of its source, which is read once more."""
    try:
        _check(job, any_size=any_size)
        X, y = replay(job, source, stopper, None if any_size else MOST_VALUES)
        if job.state.space is not None:
            X = job.state.space.of(X)
        domain, among = _comparators(job, y)
        with stopper.waiting():  # Ctrl-C ends the search alone
            best = hindsight(X, y, loss=job.learner.loss, **domain)
    except Stopped:
        return InHindsight(why="the search for it was interrupted")
    except ValueError as error:
        return InHindsight(why=str(error))
    total_loss = np.cumsum(job.learner.loss(y, X @ best.mean).value)
    return InHindsight(Best(best.value, best.gap, among), total_loss, belief=_belief(job, X, y))


def _belief(job: Job, X: Any, y: Vector) -> PacBayes | None:
    """None of a point, which is infinitely far from any prior, and where there are no classes."""
    (state,) = job.state.deciders()
    if job.kind != "classes" or not all(leaf.plan.family.gaussian for leaf in state.leaves()):
        return None
    return pac_bayes(state, X, y, delta=DELTA, adapted=True)


def _check(job: Job, *, any_size: bool) -> None:
    """Refuse at once what would be refused later."""
    if job.state is None:
        raise NotAgain("no row was learned from")
    if job.before:
        raise NotAgain("the run went on from a model, whose rows are not in this file")
    if job.settings.delay:
        raise NotAgain("labels came late, so that rows were learned from otherwise than they were predicted")
    if len(job.state.by_class()) > 1:
        raise NotAgain("there are more than two classes")
    columns = job.state.inputs.dim + 1 if job.state.space is None else job.state.space.width
    if not any_size and columns > MOST_COLUMNS:
        raise NotAgain(f"the rows have more than {MOST_COLUMNS:,} columns; --hindsight looks for it all the same")
    if not any_size and not job.schema.sparse and job.state.count * columns > MOST_VALUES:
        raise too_many(MOST_VALUES)


def _comparators(job: Job, y: Vector) -> tuple[dict[str, Any], str]:
    """Where the weights compared with lie, also in words: in the rule's own box or ball, as its certificate has it."""
    leaf = job.state.alone()
    if leaf is not None:
        plan = leaf.plan
        ball = radii(plan.family, plan.dim)
        if ball is not None and math.isfinite(ball.mean):
            return {"box": None, "radius": ball.mean}, f"weights of length {ball.mean:g} at most"
        low, high, _, _ = edges(plan.family, plan.dim)
        if np.isfinite([low, high]).all():
            return {"box": (low, high)}, f"weights from {low.min():g} to {high.max():g}".replace("-", "−")
    if job.kind in ("classes", "counts"):
        return {"box": REACH}, f"weights up to ±{REACH:g}"
    unit = float(np.abs(y).max()) or 1.0
    if not math.isfinite(REACH * unit):
        raise NotAgain(f"a label of {unit:g} is too large")
    return {"box": REACH * unit}, f"weights up to ±{REACH:g} times the largest label"
