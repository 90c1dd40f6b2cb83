"""A job in a few facts, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from onlinevi.data import ONE
from onlinevi.runs.certainty import certified
from onlinevi.runs.job import Job
from onlinevi.runs.report.document import to_plain
from onlinevi.runs.report.headline import likely
from onlinevi.runs.report.measures import beside
from onlinevi.runs.report.results import ColumnImportance, OneShard, Shards
from onlinevi.runs.results import results_of
from onlinevi.runs.shards import Fleet


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
            "metrics": results.metrics and replace(results.metrics, over_time=None, last_rows=None),
            "beside": beside(results.metrics) if results.metrics else "",
            "alarms": results.alarms,
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
            "importance": by_column(results.importance),
            "features": _features(job),
            "mean": job.state.mean,
            "std": job.state.std,
            "weights": weights(job),
        }
    )
    return document


def metrics_by_name(job: Job) -> dict[str, Any]:
    """How well it has predicted: metrics over all rows by their names, and beside them what they are to be compared with."""
    results = results_of(job)
    summary, measured = results.summary, results.metrics
    assert summary is not None
    bad = {"bad_rows": summary.bad_rows.count, "cells_as_missing": summary.bad_rows.as_missing}
    known = {name: value for name, value in asdict(summary).items() if value is not None}
    facts = {name: value for name, value in known.items() if name not in ("bad_rows", "stopped")} | bad
    if measured is None:
        return facts
    facts |= measured.so_far.learner | {"constant": measured.so_far.constant, "last_label": measured.so_far.last_label}
    facts |= {"skill": measured.skill, "confusion": measured.confusion, "since": measured.since}
    facts |= {} if measured.classes is None else {"classes": [asdict(one) for one in measured.classes]}
    return facts | {"recent": None if measured.recent is None else measured.recent.learner}


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


def weights(job: Job) -> list[dict[str, Any]]:
    """Each feature's weight in the units of the data, the most stds from 0 first; of more than two classes, that of each.

    Where a map makes features of columns, how much each column matters.
    """
    states = job.state.by_class()
    inputs, names = job.learner.inputs, job.class_names if len(states) > 1 else (None,)
    if job.state.space is not None:
        return _sums(job, states, names)
    raw = [inputs.raw_weights(state.inputs, state.mean, state.std) for state in states]
    features = [
        ({} if name is None else {"class": name}) | {"name": job.schema.name(place), "mean": float(mean), "std": float(std)}
        for name, one in zip(names, raw, strict=False)
        for place, (mean, std) in enumerate(zip(one.weights, np.asarray(one.std), strict=True))
    ]
    return sorted(features, key=lambda feature: -abs(feature["mean"]) / (feature["std"] or 1.0))


def _sums(job: Job, states: Any, names: Any) -> list[dict[str, Any]]:
    """The weights of the features of each column, Σ |weight|·share: the largest first."""
    found = [
        ({} if name is None else {"class": name}) | {"name": job.schema.name(place), "importance": float(size)}
        for name, state in zip(names, states, strict=False)
        for place, size in enumerate(state.space.by_column(np.abs(state.mean)))
    ]
    return sorted(found, key=lambda column: -column["importance"])


def by_column(told: ColumnImportance | None) -> list[dict[str, Any]]:
    """How much each column of the data matters, the most first."""
    if told is None:
        return []
    rows = zip(told.names, told.value, told.std, strict=True)
    return [{"name": name, "value": value, "std": std} for name, value, std in rows]


def _features(job: Job) -> list[str]:
    """What each weight is the weight of."""
    if job.state.space is not None:
        return list(job.state.space.names(_names(job)))
    return [*(["intercept"] if job.learner.inputs.intercept else []), *_names(job)]


def _names(job: Job) -> list[str]:
    """The names of the features that the learner has."""
    return [job.schema.name(place) for place in range(job.state.inputs.dim)]
