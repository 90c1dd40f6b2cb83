"""What is measured of a model, as Prometheus reads it: the same names wherever it learns, in service or in a run."""

from __future__ import annotations

from onlinevi.runs import Job, certified

TOLD = {
    "average_loss": "Average loss of all events, each predicted before its label was used",
    "accuracy": "Of classes, the part that was guessed right",
    "coverage": "The part that lay within its interval, in its set of classes, or not above its quantile",
    "certified_regret": "No fixed weights of the norm of those learned have an average loss lower by more",
}
"""The gauges of what a model has learned, and what they say."""


def figures(job: Job, average_loss: float, hit_rate: float) -> dict[str, float]:
    """Their values; what is certain is asked of the job's state, which is a value."""
    found = {"average_loss": average_loss, "accuracy" if job.kind == "classes" else "coverage": hit_rate}
    regret = certified(job).regret
    return found if regret is None else found | {"certified_regret": regret}
