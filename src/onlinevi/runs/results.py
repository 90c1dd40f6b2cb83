"""A job as the document that reports are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from onlinevi.data import NUMBERS
from onlinevi.engine import Vector, __version__
from onlinevi.runs.hindsight import InHindsight
from onlinevi.runs.job import Job
from onlinevi.runs.metrics import BOUNDED, HIT, LOSS, STEP, WIDEST, WIDTH, certified_regret
from onlinevi.runs.promises import promised_regret, risk_of
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
    Shards,
    Source,
    Summary,
    Task,
    ThroughputCurve,
)
from onlinevi.runs.run import Ended

SHOWN = 200
"""Columns of the data that are told of."""
FEWEST_TIMES, MOST_TIMES = 3, 64
"""Points of the curve of speed: with fewer it is not shown."""
NOT_LOOKED_BACK = InHindsight()
NAMED = 6
"""Classes that are named in a sentence."""


def results_of(job: Job, stopped: Ended = "end", back: InHindsight = NOT_LOOKED_BACK, shards: Shards | None = None) -> Results:
    """What the run knows so far, what looking back at its rows has shown, and the shards that it is the sum of."""
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
        shards=shards,
        risk=risk_of(job, back.belief),
    )


def _head(job: Job) -> Head:
    schema, notes, position = job.schema, job.notes, job.position
    classes = list(schema.task.names) if schema.task is not None and job.kind == "classes" else None
    columns = len(schema.kinds) or schema.width
    what = f" ({either(classes)})" if classes else f" (its {job.settings.level:g} quantile)" if job.kind == "quantile" else ""
    sentence = f"Predict {job.settings.target}{what} from {columns} {'column' if columns == 1 else 'columns'}"
    settings = {"learner": job.settings.rule, "loss": str(job.learner.loss), "missing values": job.settings.missing}
    settings |= {"family": job.settings.family} if job.settings.family else {}
    settings |= {"ball": f"{job.settings.ball:g}"} if job.settings.ball else {}
    settings |= {"features": job.settings.expand} if job.settings.expand else {}
    settings |= {"effort": job.settings.effort} if job.settings.effort != "default" else {}
    settings |= {"lags": f"{job.settings.lags} labels"} if job.settings.lags else {}
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
    """Names as a phrase, such as a, b or c; of many, the first few."""
    shown = [*names[:NAMED], f"{len(names) - NAMED} others"] if len(names) > NAMED + 1 else list(names)
    return f"{', '.join(shown[:-1])} or {shown[-1]}"


def _summary(job: Job, stopped: Ended) -> Summary:
    metrics, rejected, seconds = job.metrics, job.rejected, job.seconds or None
    classes, hit_rate = job.kind == "classes", metrics.hit_rate
    refused = RefusedRows(
        rejected.count, dict(rejected.reasons), [RefusedRow(**row) for row in rejected.first], rejected.as_missing
    )
    return Summary(
        events=metrics.count,
        average_loss=metrics.average_loss,
        error_rate=1.0 - hit_rate if classes else None,
        coverage=None if classes else hit_rate,
        seconds=seconds,
        rows_per_second=metrics.count / seconds if seconds else None,
        bad_rows=refused,
        stopped=stopped,
    )


def _trace(job: Job) -> LossCurve:
    table = job.metrics.curve.table
    since = np.diff(table[:, [STEP, LOSS]], axis=0, prepend=0.0)
    return LossCurve(table[:, STEP].tolist(), (since[:, 1] / since[:, 0]).tolist(), (table[:, LOSS] / table[:, STEP]).tolist())


def _coverage(job: Job) -> CoverageCurve:
    table = job.metrics.curve.table
    steps = table[:, STEP]
    width = np.divide(table[:, WIDTH], table[:, BOUNDED], out=np.full(len(table), np.nan), where=table[:, BOUNDED] > 0.0)
    target = job.settings.level if job.kind == "quantile" else job.settings.coverage
    return CoverageCurve(
        steps.tolist(), (table[:, HIT] / steps).tolist(), target, None if job.kind == "quantile" else width.tolist()
    )


def _reliability(job: Job) -> ReliabilityBins:
    predicted, happened, count = job.metrics.bins[:, job.metrics.bins[2] > 0.0]
    return ReliabilityBins((predicted / count).tolist(), (happened / count).tolist(), count.tolist())


def _regret(job: Job, back: InHindsight) -> RegretCurve | None:
    """The regret at the snapshots, and at the end. Shards that were learned from apart have no course in common."""
    if job.merged:
        return None
    steps, certified = list(job.snapshots.steps), list(job.snapshots.certified)
    if job.metrics.count > (steps[-1] if steps else 0):
        steps.append(job.metrics.count)
        certified.append(None if job.settings.delay else certified_regret(job.state))
    certain = [value for value in certified if value is not None]
    promise = promised_regret(job)
    if not steps or not (certain or promise or back.total_loss is not None):
        return None
    return RegretCurve(
        [float(step) for step in steps],
        certain if len(certain) == len(steps) else None,
        None if back.total_loss is None else _observed(job, back.total_loss, steps),
        None if promise is None else [promise(step) for step in steps],
    )


def _observed(job: Job, best: Vector, steps: list[int]) -> list[float]:
    """The regret a row against the best weights, whose total losses are given.

    The curve has the total of every snapshot: its stride divides theirs.
    """
    totals = {int(row[STEP]): float(row[LOSS]) for row in job.metrics.curve.table}
    return [(totals[step] - float(best[step - 1])) / step for step in steps]


def _throughput(job: Job) -> ThroughputCurve | None:
    """Rows a second over stretches of about the same length: a short one says more of the clock than of the speed."""
    stretch, ends = job.metrics.count / MOST_TIMES, [(0.0, 0.0)]
    for events, seconds in job.clock.table.tolist():
        if events - ends[-1][0] >= stretch and seconds > ends[-1][1]:
            ends.append((events, seconds))
    if len(ends) <= FEWEST_TIMES:
        return None
    speed = [(now[0] - then[0]) / (now[1] - then[1]) for then, now in pairwise(ends)]
    return ThroughputCurve([events for events, _ in ends[1:]], speed)


def _posterior(job: Job) -> PosteriorPath | None:
    if job.state is None or job.state.space is not None:  # of features, whose weights are not to be read one by one
        return None
    shape = len(job.state.by_class()), job.schema.width
    if math.prod(shape) > WIDEST:
        return None
    padded = [[_padded(part, shape) for part in snapshot] for snapshot in job.snapshots.weights]
    means, stds = [mean.tolist() for mean, _ in padded], [std.tolist() for _, std in padded]
    steps = [float(step) for step in job.snapshots.steps]
    features = [job.schema.name(place) for place in range(job.schema.width)]
    whose = [f"{name}: " for name in job.class_names[: shape[0]]] if shape[0] > 1 else [""]
    return PosteriorPath([name + feature for name in whose for feature in features], steps, means, stds)


def _padded(weights: Any, shape: tuple[int, int]) -> Vector:
    """A snapshot's weights, class by class. Of classes and features that joined later there was nothing to say before."""
    table, known = np.full(shape, np.nan), np.atleast_2d(weights)
    table[: known.shape[0], : known.shape[1]] = known
    return table.ravel()


def _data(job: Job) -> list[Column] | None:
    if job.state is None:
        return None
    inputs, schema, columns = job.state.inputs, job.schema, []
    for place in range(min(schema.width, inputs.dim, SHOWN)):
        kind = schema.kind(place)
        missing = int(inputs.lag[place]) if kind in NUMBERS else 0
        columns.append(Column(schema.name(place), str(kind), float(inputs.mean[place]), float(inputs.std[place]), missing))
    return columns
