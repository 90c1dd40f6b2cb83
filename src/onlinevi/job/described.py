"""A job in a few facts, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from onlinevi.certificate import certificate
from onlinevi.columns.categories import ONE
from onlinevi.job.job import Job
from onlinevi.job.outcome import results
from onlinevi.prepared import PreparedState
from onlinevi.report.document import to_plain


class Certified(NamedTuple):
    """What is certain of the regret; the numbers are None where nothing is."""

    sentence: str
    radius: float | None = None
    """Of the weights of the prepared features that it speaks of, as vectors: the length of those learned."""
    regret: float | None = None
    """A row: no such weights beat the average loss by more."""
    lower_bound: float | None = None
    """No such weights have an average loss below this."""


def described(job: Job) -> dict[str, Any]:
    """JSON values."""
    found = results(job)
    summary, position = found.summary, job.position
    assert summary is not None
    document: dict[str, Any] = to_plain(
        {
            "task": found.head.task,
            "events": summary.events,
            "average_loss": summary.average_loss,
            "error_rate": summary.error_rate,
            "coverage": summary.coverage,
            "bad_rows": summary.bad_rows.count,
            "learner": found.head.settings,
            "settings": job.settings.to_json(),
            "source": asdict(found.head.source) | {"bytes": None if position is None else position.bytes},
            "started": found.head.started,
            "version": found.head.version,
            "schema": schema_of(job),
            "certificate": certified(job)._asdict(),
            "features": [*(["intercept"] if job.learner.inputs.intercept else []), *_names(job)],
            "mean": job.state.mean,
            "std": job.state.std,
            "weights": weights(job),
        }
    )
    return document


def schema_of(job: Job) -> dict[str, Any]:
    """The columns with their kinds, the task, and the names of each column of names."""
    schema = job.schema
    categories: dict[str, list[str]] = {name: [] for name, kind in schema.kinds.items() if kind == "category"}
    for column, part in schema.features:
        if part.startswith(ONE):
            categories[column].append(part.removeprefix(ONE))
    return {
        "target": schema.target,
        "task": schema.task,
        "columns": schema.kinds,
        "categories": categories,
        "indices": schema.indices,
        "hashed": schema.hashed,
        "sparse": schema.sparse,
    }


def certified(job: Job) -> Certified:
    """What is certain of the regret, in words and numbers."""
    state = job.state.learned if isinstance(job.state, PreparedState) else job.state
    if job.settings.delay:
        return Certified("Labels came late: what is certain of decisions made at once does not speak of this run.")
    try:
        live = certificate(state)
        radius = float(np.linalg.norm(job.state.mean))
        within = live.within(radius) / job.account.count
    except ValueError as error:
        return Certified(f"Nothing is certain of the regret: {error}.")
    # No loss but that of counts falls below 0, so none can be beaten by more than itself.
    little = ", which says little" if job.kind != "counts" and within >= job.account.average_loss else ""
    sentence = (
        f"Certain, whatever the data: no fixed weights of the prepared columns with a norm up to that of those "
        f"learned, {radius:.3g}, beat the average loss by more than {within:.4g}{little}."
    )
    return Certified(sentence, radius, within, job.account.average_loss - within)


def weights(job: Job) -> list[dict[str, Any]]:
    """Each feature's weight in the units of the data, the most stds from 0 first."""
    raw = job.learner.inputs.raw_weights(job.state.inputs, job.state.mean, job.state.std)
    mean, std = raw.weights, np.zeros(len(raw.weights)) if raw.std is None else raw.std
    sure = np.abs(mean) / np.where(std > 0.0, std, 1.0)
    names = _names(job)
    order = np.argsort(-sure, kind="stable").tolist()
    return [{"name": names[place], "mean": float(mean[place]), "std": float(std[place])} for place in order]


def _names(job: Job) -> list[str]:
    """Of the features that the learner has."""
    return [job.schema.name(place) for place in range(job.state.inputs.dim)]
