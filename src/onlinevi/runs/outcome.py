"""A job as the document that reports are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from onlinevi.engine import Vector, __version__
from onlinevi.runs.account import BOUNDED, HIT, LOSS, STEP, WIDTH
from onlinevi.runs.job import Job
from onlinevi.runs.looking_back import LookedBack
from onlinevi.runs.moments import WIDEST, certified_regret
from onlinevi.runs.promised import promised
from onlinevi.runs.report.results import (
    Column,
    CoverageCurve,
    Head,
    LossCurve,
    PosteriorPath,
    RefusedRow,
    RefusedRows,
    RegretCurve,
    ReliabilityBins,
    Results,
    Source,
    Summary,
    Task,
    ThroughputCurve,
)

SHOWN = 200
"""Columns of the data that are told of."""
FEWEST_TIMES, MOST_TIMES = 3, 64
"""Points of the curve of speed: with fewer it is not shown."""
NOT_LOOKED_BACK = LookedBack()
NAMED = 6
"""Classes that are named in a sentence."""


def results(
    job: Job, stopped: Literal["end", "interrupted", "bad row"] = "end", back: LookedBack = NOT_LOOKED_BACK
) -> Results:
    """What the run knows so far, and what looking back at its rows has shown."""
    classes = job.kind == "classes"
    return Results(
        head=_head(job),
        summary=_summary(job, stopped),
        trace=_trace(job),
        hindsight=back.best,
        without_hindsight=back.why,
        regret=_regret(job, back),
        posterior=_posterior(job),
        calibration=_reliability(job) if classes else _coverage(job),
        throughput=_throughput(job),
        data=_data(job),
    )


def _head(job: Job) -> Head:
    schema, notes, position = job.schema, job.notes, job.position
    classes = list(schema.task.names) if schema.task is not None and job.kind == "classes" else None
    columns = len(schema.kinds) or schema.width
    what = f" ({either(classes)})" if classes else f" (its {job.settings.level:g} quantile)" if job.kind == "quantile" else ""
    sentence = f"Predict {job.settings.target}{what} from {columns} {'column' if columns == 1 else 'columns'}"
    settings = {"learner": job.settings.rule, "loss": str(job.learner.loss), "missing values": job.settings.missing}
    settings |= {"family": job.settings.family} if job.settings.family else {}
    settings |= {"delay": f"{job.settings.delay} rows"} if job.settings.delay else {}
    source = Source(" + ".join(map(str, job.merged)) or "?")
    if position is not None:
        source = Source(position.source, position.sha256, job.settings.first_row, max(position.rows - 1, 0))
    return Head(
        version=__version__,
        command=str(notes.get("command", "")),
        started=str(notes.get("started", "")),
        source=source,
        task=Task(job.kind, job.settings.target, sentence, classes),
        settings=settings,
        columns=[schema.name(place) for place in range(min(schema.width, SHOWN))],
    )


def either(names: Sequence[str]) -> str:
    """In words: a, b or c; of many, the first few."""
    shown = [*names[:NAMED], f"{len(names) - NAMED} others"] if len(names) > NAMED + 1 else list(names)
    return f"{', '.join(shown[:-1])} or {shown[-1]}"


def _summary(job: Job, stopped: Literal["end", "interrupted", "bad row"]) -> Summary:
    account, seconds = job.account, job.seconds or None
    classes, hit_rate = job.kind == "classes", job.account.hit_rate
    refused = RefusedRows(job.left_out.count, dict(job.left_out.reasons), [RefusedRow(**own) for own in job.left_out.first])
    return Summary(
        events=account.count,
        average_loss=account.average_loss,
        error_rate=1.0 - hit_rate if classes else None,
        coverage=None if classes else hit_rate,
        seconds=seconds,
        rows_per_second=account.count / seconds if seconds else None,
        bad_rows=refused,
        stopped=stopped,
    )


def _trace(job: Job) -> LossCurve:
    table = job.account.curve.table
    since = np.diff(table[:, [STEP, LOSS]], axis=0, prepend=0.0)
    return LossCurve(table[:, STEP].tolist(), (since[:, 1] / since[:, 0]).tolist(), (table[:, LOSS] / table[:, STEP]).tolist())


def _coverage(job: Job) -> CoverageCurve:
    table = job.account.curve.table
    steps = table[:, STEP]
    width = np.divide(table[:, WIDTH], table[:, BOUNDED], out=np.full(len(table), np.nan), where=table[:, BOUNDED] > 0.0)
    target = job.settings.level if job.kind == "quantile" else job.settings.coverage
    return CoverageCurve(
        steps.tolist(), (table[:, HIT] / steps).tolist(), target, None if job.kind == "quantile" else width.tolist()
    )


def _reliability(job: Job) -> ReliabilityBins:
    said, happened, count = job.account.bins[:, job.account.bins[2] > 0.0]
    return ReliabilityBins((said / count).tolist(), (happened / count).tolist(), count.tolist())


def _regret(job: Job, back: LookedBack) -> RegretCurve | None:
    """At the moments, and at the end. Of shards that were learned from apart nothing is known."""
    if job.merged:
        return None
    steps, certified = list(job.moments.steps), list(job.moments.certified)
    if job.account.count > (steps[-1] if steps else 0):
        steps.append(job.account.count)
        certified.append(None if job.settings.delay else certified_regret(job.state))
    certain = [value for value in certified if value is not None]
    promise = promised(job)
    if not steps or not (certain or promise or back.lost is not None):
        return None
    return RegretCurve(
        [float(step) for step in steps],
        certain if len(certain) == len(steps) else None,
        None if back.lost is None else _observed(job, back.lost, steps),
        None if promise is None else [promise(step) for step in steps],
    )


def _observed(job: Job, lost: Vector, steps: list[int]) -> list[float]:
    """The curve has the total of every moment: its stride divides theirs."""
    totals = {int(own[STEP]): float(own[LOSS]) for own in job.account.curve.table}
    return [(totals[step] - float(lost[step - 1])) / step for step in steps]


def _throughput(job: Job) -> ThroughputCurve | None:
    """Rows a second over stretches of about the same length: a short one says more of the clock than of the speed."""
    stretch, ends = job.account.count / MOST_TIMES, [(0.0, 0.0)]
    for events, seconds in job.clock.table.tolist():
        if events - ends[-1][0] >= stretch and seconds > ends[-1][1]:
            ends.append((events, seconds))
    if len(ends) <= FEWEST_TIMES:
        return None
    speed = [(now[0] - then[0]) / (now[1] - then[1]) for then, now in pairwise(ends)]
    return ThroughputCurve([events for events, _ in ends[1:]], speed)


def _posterior(job: Job) -> PosteriorPath | None:
    if job.state is None:
        return None
    shape = len(job.state.by_class()), job.schema.width
    if math.prod(shape) > WIDEST:
        return None
    padded = [[_padded(part, shape) for part in own] for own in job.moments.weights]
    means, stds = [mean.tolist() for mean, _ in padded], [std.tolist() for _, std in padded]
    steps = [float(step) for step in job.moments.steps]
    features = [job.schema.name(place) for place in range(job.schema.width)]
    whose = [f"{name}: " for name in job.class_names[: shape[0]]] if shape[0] > 1 else [""]
    return PosteriorPath([own + feature for own in whose for feature in features], steps, means, stds)


def _padded(weights: Any, shape: tuple[int, int]) -> Vector:
    """A moment's weights, class by class. Of classes and features that joined later there was nothing to say before."""
    table, own = np.full(shape, np.nan), np.atleast_2d(weights)
    table[: own.shape[0], : own.shape[1]] = own
    return table.ravel()


def _data(job: Job) -> list[Column] | None:
    if job.state is None:
        return None
    inputs, schema, found = job.state.inputs, job.schema, []
    for place in range(min(schema.width, inputs.dim, SHOWN)):
        kind = schema.kind(place)
        missing = int(inputs.lag[place]) if kind == "number" else 0
        found.append(Column(schema.name(place), str(kind), float(inputs.mean[place]), float(inputs.std[place]), missing))
    return found
