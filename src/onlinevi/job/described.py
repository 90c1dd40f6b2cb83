"""A job in a few facts, for people and for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.certificate import certificate
from onlinevi.job.job import Job
from onlinevi.job.outcome import results
from onlinevi.prepared import PreparedState


def described(job: Job) -> dict[str, Any]:
    """JSON values."""
    document = results(job).to_json()
    head, summary = document["head"], document["summary"]
    said = {name: summary[name] for name in ("events", "average_loss", "error_rate", "coverage")}
    return {
        "task": head["task"]["sentence"],
        **said,
        "bad_rows": summary["bad_rows"]["count"],
        "settings": head["settings"],
        "source": head["source"]["path"],
        "started": head["started"],
        "certificate": certified(job),
        "weights": weights(job),
    }


def certified(job: Job) -> str:
    """What is certain of the regret, in words."""
    state = job.state.learned if isinstance(job.state, PreparedState) else job.state
    if job.settings.delay:
        return "Labels came late: what is certain of decisions made at once does not speak of this run."
    if job.merged:
        return "Nothing is certain of the regret: the shards were learned from apart. Their own models have certificates."
    try:
        live = certificate(state)
        radius = float(np.linalg.norm(job.state.mean))
        within = live.within(radius) / job.account.count
    except ValueError as error:
        return f"Nothing is certain of the regret: {error}."
    # No loss but that of counts falls below 0, so none can be beaten by more than itself.
    little = ", which says little" if job.kind != "counts" and within >= job.account.average_loss else ""
    return (
        f"Certain, whatever the data: no fixed weights of the prepared columns with a norm up to that of those "
        f"learned, {radius:.3g}, beat the average loss by more than {within:.4g}{little}."
    )


def weights(job: Job) -> list[dict[str, Any]]:
    """Each feature's weight in the units of the data, the most stds from 0 first."""
    raw = job.learner.inputs.raw_weights(job.state.inputs, job.state.mean, job.state.std)
    mean, std = raw.weights, np.zeros(len(raw.weights)) if raw.std is None else raw.std
    sure = np.abs(mean) / np.where(std > 0.0, std, 1.0)
    names = [job.schema.name(place) for place in range(len(mean))]
    order = np.argsort(-sure, kind="stable").tolist()
    return [{"name": names[place], "mean": float(mean[place]), "std": float(std[place])} for place in order]
