"""A job in a few facts, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from onlinevi.data import ONE
from onlinevi.guarantees import certificate
from onlinevi.runs.job import Job
from onlinevi.runs.report.document import to_plain
from onlinevi.runs.report.headline import likely
from onlinevi.runs.report.results import OneShard, Shards
from onlinevi.runs.results import results_of
from onlinevi.runs.shards import Fleet


class Certified(NamedTuple):
    """What is certain of the regret; the numbers are None where nothing is."""

    sentence: str
    radius: float | None = None
    """Of the weights of the prepared features that it speaks of, as vectors: the length of those learned."""
    regret: float | None = None
    """A row: no such weights beat the average loss by more."""
    lower_bound: float | None = None
    """No such weights have an average loss below this."""


def shards_told(fleet: Fleet) -> Shards:
    """The shards of a fleet, for a report."""
    assert fleet.job is not None
    each = [
        OneShard(one.name, one.events, one.loss / one.events if one.events else None, one.seconds, *one[5:])
        for one in fleet.shards
    ]
    return Shards(each, fleet.rounds, certified(fleet.job).sentence)


def summarise(job: Job) -> dict[str, Any]:
    """The facts as JSON values: what ``onlinevi info`` prints."""
    results = results_of(job)
    summary, position = results.summary, job.position
    assert summary is not None
    document: dict[str, Any] = to_plain(
        {
            "task": results.head.task,
            "events": summary.events,
            "average_loss": summary.average_loss,
            "error_rate": summary.error_rate,
            "coverage": summary.coverage,
            "bad_rows": summary.bad_rows.count,
            "learner": results.head.settings,
            "settings": job.settings.to_json(),
            "source": asdict(results.head.source) | {"bytes": None if position is None else position.bytes},
            "learned_from": [str(origin) for origin in job.origins],
            "started": results.head.started,
            "version": results.head.version,
            "schema": schema_of(job),
            "certificate": certified(job)._asdict(),
            "risk": None if results.risk is None else asdict(results.risk) | {"sentence": likely(results)},
            "features": _features(job),
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
    """What is certain of a run's regret, in words and numbers."""
    if job.settings.delay:
        return Certified("Labels came late: what is certain of decisions made at once does not speak of this run.")
    try:
        if len(job.state.by_class()) > 1:
            return _certified_classes(job, job.state)
        radius, within = _within(job.state)
    except ValueError as error:
        return Certified(f"Nothing is certain of the regret: {error}.")
    # No loss but that of counts falls below 0, so none can be beaten by more than itself.
    little = ", which says little" if job.kind != "counts" and within >= job.metrics.average_loss else ""
    sentence = (
        f"Certain, whatever the data: no fixed weights of {_whose(job)} with a norm up to that of those "
        f"learned, {radius:.3g}, beat the average loss by more than {within:.4g}{little}.{_of_whom(job)}"
    )
    return Certified(sentence, radius, within, job.metrics.average_loss - within)


def _within(state: Any) -> tuple[float, float]:
    """The norm of the weights learned, and the regret a row against all up to it."""
    live = certificate(state)
    radius = float(np.linalg.norm(state.mean))
    return radius, live.within(radius) / state.count


def _certified_classes(job: Job, state: Any) -> Certified:
    """Each class has a yes or no question of its own, and a certificate for it; of the classes together there is none."""
    within = {name: _within(one)[1] for name, one in zip(job.class_names, state.by_class(), strict=False)}
    paid = [one.average_loss for one in state.by_class()]
    little = [name for name, loss in zip(within, paid, strict=True) if within[name] >= loss]
    return Certified(
        "Certain, whatever the data, of each class against the rest: no fixed weights of "
        f"{_whose(job)} with a norm up to that of those learned beat the average loss of its yes or no by more than "
        + ", ".join(f"{most:.4g} ({name})" for name, most in within.items())
        + (f". It says little of {', '.join(little)}" if little else "")
        + f". Of the classes together nothing is certain.{_of_whom(job)}"
    )


def _whose(job: Job) -> str:
    """What the weights are weights of, in words."""
    return "the prepared columns" if job.state.space is None else f"the {job.state.space}"


def _of_whom(job: Job) -> str:
    """Whose decisions they were, where it is a merge: a certificate must not be taken for one of the merged model."""
    if not job.merged:
        return ""
    return (
        f" It speaks of the decisions that {len(job.merged):,} shards made, each by what it knew, against one set of weights "
        "for all of them; not of what the merged model will decide."
    )


def weights(job: Job) -> list[dict[str, Any]]:
    """Each feature's weight in the units of the data, the most stds from 0 first; of more than two classes, that of each.

    Where a map makes features of columns, how much each column matters.
    """
    states = job.state.by_class()
    inputs, names = job.learner.inputs, job.class_names if len(states) > 1 else (None,)
    if job.state.space is not None:
        return _importance(job, states, names)
    raw = [inputs.raw_weights(state.inputs, state.mean, state.std) for state in states]
    features = [
        ({} if name is None else {"class": name}) | {"name": job.schema.name(place), "mean": float(mean), "std": float(std)}
        for name, one in zip(names, raw, strict=False)
        for place, (mean, std) in enumerate(zip(one.weights, np.asarray(one.std), strict=True))
    ]
    return sorted(features, key=lambda feature: -abs(feature["mean"]) / (feature["std"] or 1.0))


def _importance(job: Job, states: Any, names: Any) -> list[dict[str, Any]]:
    """How much each column matters through its features, Σ |weight|·share: the most first."""
    found = [
        ({} if name is None else {"class": name}) | {"name": job.schema.name(place), "importance": float(size)}
        for name, state in zip(names, states, strict=False)
        for place, size in enumerate(state.space.by_column(np.abs(state.mean)))
    ]
    return sorted(found, key=lambda column: -column["importance"])


def _features(job: Job) -> list[str]:
    """What each weight is the weight of."""
    if job.state.space is not None:
        return list(job.state.space.names(_names(job)))
    return [*(["intercept"] if job.learner.inputs.intercept else []), *_names(job)]


def _names(job: Job) -> list[str]:
    """The names of the features that the learner has."""
    return [job.schema.name(place) for place in range(job.state.inputs.dim)]
