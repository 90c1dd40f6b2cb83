"""What a theorem promised of a run's regret before its data, where one speaks of its rule, its rate and its loss."""

from __future__ import annotations

import math
from collections.abc import Callable

from onlinevi.guarantees import bounds
from onlinevi.runs.job import Job


def promised_regret(job: Job) -> Callable[[int], float] | None:
    """The most that the regret can be, a row, after so many events, against every point of the rule's box; None without one.

    No prepared value exceeds the squash c, so no row of d columns and the intercept is longer than √(1 + c²·d); of rows of
    features nothing is said.
    """
    leaf = None if job.state is None else job.state.alone()
    if leaf is None or job.settings.delay or job.had_missing or job.state.space is not None:
        return None
    plan, squash = leaf.plan, job.learner.inputs.squash
    if squash is None or not math.isfinite(plan.loss.lipschitz):
        return None
    total = bounds.everywhere(plan, lipschitz=plan.loss.lipschitz * math.sqrt(1.0 + squash**2 * (plan.dim - 1)))
    return None if total is None else lambda count: total(count) / count
