"""A job in a few facts, for people and for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi.certificate import certificate
from onlinevi.classes import ClassesState
from onlinevi.job.job import Job
from onlinevi.job.outcome import results
from onlinevi.job.playing import states_of
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
    if job.settings.delay:
        return "Labels came late: what is certain of decisions made at once does not speak of this run."
    if job.merged:
        return "Nothing is certain of the regret: the shards were learned from apart. Their own models have certificates."
    try:
        if isinstance(job.state, ClassesState):
            return _certified_classes(job, job.state)
        radius, within = _within(job.state)
    except ValueError as error:
        return f"Nothing is certain of the regret: {error}."
    # No loss but that of counts falls below 0, so none can be beaten by more than itself.
    little = ", which says little" if job.kind != "counts" and within >= job.account.average_loss else ""
    return (
        f"Certain, whatever the data: no fixed weights of the prepared columns with a norm up to that of those "
        f"learned, {radius:.3g}, beat the average loss by more than {within:.4g}{little}."
    )


def _within(state: Any) -> tuple[float, float]:
    """The norm of the weights learned, and the regret a row against all up to it."""
    live = certificate(state.learned if isinstance(state, PreparedState) else state)
    radius = float(np.linalg.norm(state.mean))
    return radius, live.within(radius) / state.count


def _certified_classes(job: Job, state: ClassesState) -> str:
    """Each class has a yes or no question of its own, and a certificate for it; of the classes together there is none."""
    within = {name: _within(own)[1] for name, own in zip(job.class_names, state.each, strict=False)}
    paid = [(own.learned if isinstance(own, PreparedState) else own).average_loss for own in state.each]
    little = [name for name, loss in zip(within, paid, strict=True) if within[name] >= loss]
    return (
        "Certain, whatever the data, of each class against the rest: no fixed weights of the prepared columns with a norm up "
        "to that of those learned beat the average loss of its yes or no by more than "
        + ", ".join(f"{most:.4g} ({name})" for name, most in within.items())
        + (f". It says little of {', '.join(little)}" if little else "")
        + ". Of the classes together nothing is certain."
    )


def weights(job: Job) -> list[dict[str, Any]]:
    """Each feature's weight in the units of the data, the most stds from 0 first; of more than two classes, that of each."""
    inputs, names = job.learner.inputs, job.class_names if isinstance(job.state, ClassesState) else (None,)
    raw = [inputs.raw_weights(state.inputs, state.mean, state.std) for state in states_of(job.state)]
    found = [
        ({} if name is None else {"class": name}) | {"name": job.schema.name(place), "mean": float(mean), "std": float(std)}
        for name, own in zip(names, raw, strict=False)
        for place, (mean, std) in enumerate(zip(own.weights, np.asarray(own.std), strict=True))
    ]
    return sorted(found, key=lambda one: -abs(one["mean"]) / (one["std"] or 1.0))
