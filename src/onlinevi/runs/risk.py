"""What is likely of new rows, by the rows of a run: errors of the guesses made along the way, and of the belief at the end."""

from __future__ import annotations

from onlinevi.guarantees import PacBayes, tempered_bound
from onlinevi.runs.job import Job
from onlinevi.runs.report.results import Risk

DELTA = 0.05


def risk_of(job: Job, belief: PacBayes | None = None) -> Risk | None:
    """The bounds of a run for classes, with that of its belief where its rows were looked at again; None without any.

    The guesses were made before their rows were seen, so that their errors need no second look. It is not so known of a run
    that went on from a model, whose rows may be the same, and of shards.
    """
    if job.kind != "classes" or not job.metrics.count or job.before or job.merged:
        return None
    guesses = float(tempered_bound(1.0 - job.metrics.hit_rate, 0.0, job.metrics.count, DELTA))
    if belief is None:
        return Risk(DELTA, guesses)
    return Risk(DELTA, guesses, belief.gibbs_risk, belief.vote_risk, belief.kl)
