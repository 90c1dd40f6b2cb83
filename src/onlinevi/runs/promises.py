"""What is promised of a run: of its regret by a theorem, before its data, and of new rows by the rows that it has seen."""

from __future__ import annotations

import math
from collections.abc import Callable

from onlinevi.guarantees import PacBayes, bounds, tempered_bound
from onlinevi.runs.job import Job
from onlinevi.runs.report.results import Risk

DELTA = 0.05
"""The chance that a bound on new rows is wrong."""


def promised_regret(job: Job) -> Callable[[int], float] | None:
    """The most that the regret can be, a row, after so many events, against every point of the rule's box; None without one.

    No prepared value exceeds the squash c, so no row of d columns and the intercept is longer than √(1 + c²·d); of rows of
    features nothing is said.
    """
    leaf = None if job.state is None else job.state.alone()
    if leaf is None or job.learner.several or job.settings.late or job.settings.weighs:
        return None
    if job.had_missing or job.state.space is not None:
        return None
    plan, squash = leaf.plan, job.learner.inputs.squash
    if squash is None or not math.isfinite(plan.loss.lipschitz):
        return None
    total = bounds.everywhere(plan, lipschitz=plan.loss.lipschitz * math.sqrt(1.0 + squash**2 * (plan.dim - 1)))
    return None if total is None else lambda count: total(count) / count


def risk_of(job: Job, belief: PacBayes | None = None) -> Risk | None:
    """The bounds of a run for classes, with that of its belief where its rows were looked at again; None without any.

    The guesses were made before their rows were seen, so that their errors need no second look. It is not so known of a run
    that went on from a model, whose rows may be the same, and of shards. Where rows of weight 0 are not counted, those that
    are may be others than new ones.
    """
    if job.kind != "classes" or not job.metrics.count or job.before or job.merged or job.settings.may_leave_out:
        return None
    guesses = float(tempered_bound(1.0 - job.metrics.hit_rate, 0.0, job.metrics.count, DELTA))
    if belief is None:
        return Risk(DELTA, guesses)
    return Risk(DELTA, guesses, belief.gibbs_risk, belief.vote_risk, belief.kl)
