"""What is certain of a run, in a sentence and in numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinevi.guarantees import certificate
from onlinevi.learners import html_of
from onlinevi.runs.charts.style import number
from onlinevi.runs.job import Job

NAMED = 8
"""Of more classes than these a sentence names the ends."""


class Certified(NamedTuple):
    """What is certain of the regret; the numbers are None where nothing is."""

    sentence: str
    radius: float | None = None
    """Of the weights of the prepared features that it speaks of, as vectors: the length of those learned."""
    regret: float | None = None
    """A row: no such weights beat the average loss by more."""
    lower_bound: float | None = None
    """No such weights have an average loss below this."""

    def _repr_html_(self) -> str:
        facts = {"regret, a row": self.regret, "best average loss, at least": self.lower_bound}
        told = {name: value for name, value in facts.items() if value is not None}
        return html_of("Certified", {"what": self.sentence, **told})


def certified(job: Job) -> Certified:
    """What is certain of a run's regret, in words and numbers."""
    if job.settings.late:
        return Certified("Labels came late: what is certain of decisions made at once does not speak of this run.")
    try:
        if len(job.state.deciders()) > 1:
            return _certified_classes(job, job.state)
        radius, within = _within(job.state)
    except ValueError as error:
        return Certified(f"Nothing is certain of the regret: {error}.")
    # No loss but that of counts falls below 0, so none can be beaten by more than itself.
    paid, what = job.metrics.average_loss, "average loss"
    if job.settings.weighs:
        paid, what = float(job.state.average_loss), "average loss, each row's times its weight,"
    little = ", which says little" if job.kind != "counts" and within >= paid else ""
    whose = f"fixed weights of {_whose(job)} with a norm up to that of those learned, {number(radius)},"
    if within > 0.0:
        told = f"no {whose} beat the {what} by more than {number(within)}{little}"
    else:
        told = f"all {whose} are worse than the {what}, by {number(-within)} at least"
    sentence = f"Certain, whatever the data: {told}.{_of_whom(job)}"
    return Certified(sentence, radius, within, paid - within)


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
    # Those that no such weights beat at all are not beaten by more than 0.
    most = {name: max(excess, 0.0) for name, excess in within.items()}
    told = [f"{number(most[name])} ({name})" for name in sorted(most, key=lambda name: most[name])]
    few = len(told) <= NAMED
    return Certified(
        "Certain, whatever the data, of each class against the rest: no fixed weights of "
        f"{_whose(job)} with a norm up to that of those learned beat the average loss of its yes or no by more than "
        + (", ".join(told) if few else f"{told[0]} to {told[-1]}, of {len(told)} classes")
        + (f". It says little of {', '.join(little) if few else f'{len(little)} of them'}" if little else "")
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
