"""The best fixed weights of a run's rows, found when the run has ended, and what those rows say of its belief."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.beliefs import edges, radii
from onlinevi.engine import Vector, one_thread_of_blas
from onlinevi.guarantees import MOST_WEIGHTS, NUMPY_UP_TO, PacBayes, hindsight, pac_bayes
from onlinevi.runs.job import Job
from onlinevi.runs.promises import DELTA
from onlinevi.runs.replay import NotAgain, replay, too_many
from onlinevi.runs.report.results import Best
from onlinevi.runs.run import Stopped, Stopper

MOST_VALUES = 1 << 21
"""Values of rows that are read once more without being asked for: 16 MB."""
MOST_COLUMNS = 128
"""Of such rows, the intercept included: the minimiser works with all pairs of columns, and is to take seconds."""
MOST_WORK = 1 << 33
"""Rows times pairs of weights, for several classes: a third of a second a step of some thirty, on a quiet machine."""
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
        classes = _classes(job)
        wide = X.shape[1] * classes.get("classes", 1) > NUMPY_UP_TO
        with stopper.waiting(), one_thread_of_blas(of_scipy=wide):  # Ctrl-C ends the search alone
            best = hindsight(X, y, loss=job.learner.loss, **domain, **classes)
    except Stopped:
        return InHindsight(why="the search for it was interrupted")
    except ValueError as error:
        return InHindsight(why=str(error))
    paid = best.losses(X, y) if job.learner.several else job.learner.loss(y, X @ best.mean).value
    return InHindsight(Best(best.value, best.gap, among), np.cumsum(paid), belief=_belief(job, X, y))


def _classes(job: Job) -> dict[str, int]:
    """How many there are, where there are several."""
    return {"classes": len(job.state.by_class())} if job.learner.several else {}


def _belief(job: Job, X: Any, y: Vector) -> PacBayes | None:
    """None of a point, which is infinitely far from any prior, and where there are no classes."""
    if job.kind != "classes" or job.learner.several:
        return None
    (state,) = job.state.deciders()
    if not all(leaf.plan.family.gaussian for leaf in state.leaves()):
        return None
    return pac_bayes(state, X, y, delta=DELTA, adapted=True)


def _check(job: Job, *, any_size: bool) -> None:
    """Refuse at once what would be refused later."""
    if job.state is None:
        raise NotAgain("no row was learned from")
    if job.position is not None and job.position.mark is not None:
        raise NotAgain("what came from a broker is not read twice")
    if job.before:
        raise NotAgain("the run went on from a model, whose rows are not in this file")
    if job.settings.late:
        raise NotAgain("labels came late, so that rows were learned from otherwise than they were predicted")
    if job.settings.weighs:
        raise NotAgain("rows counted by weights, and fixed weights are looked for where each counts once")
    if job.learner.several and job.learner.loss.odds is None:
        raise NotAgain("of several classes it is looked for where there are probabilities, and this loss has none")
    columns = job.state.inputs.dim + 1 if job.state.space is None else job.state.space.width
    weights = columns * len(job.state.by_class()) if job.learner.several else 0
    if weights > MOST_WEIGHTS:
        raise NotAgain(f"the classes have {weights:,} weights together, and it is looked for among up to {MOST_WEIGHTS:,}")
    if not any_size and job.state.count * weights**2 > MOST_WORK:
        raise NotAgain(f"{job.state.count:,} rows with {weights:,} weights take long; --hindsight looks for it all the same")
    if not any_size and columns > MOST_COLUMNS:
        raise NotAgain(f"the rows have more than {MOST_COLUMNS:,} features; --hindsight looks for it all the same")
    if not any_size and not job.schema.sparse and job.state.count * columns > MOST_VALUES:
        raise too_many(MOST_VALUES)


def _comparators(job: Job, y: Vector) -> tuple[dict[str, Any], str]:
    """Where the weights compared with lie, also in words: in the rule's own box or ball, as its certificate has it."""
    leaf = None if job.learner.several else job.state.alone()
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
