"""A job as the document that reports are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from onlinevi.data import Schema
from onlinevi.engine import Vector, __version__, did_you_mean
from onlinevi.learners import Cycle, Importance, importance
from onlinevi.runs.certainty import certified
from onlinevi.runs.data_table import SHOWN, data_table
from onlinevi.runs.hindsight import InHindsight
from onlinevi.runs.job import Job
from onlinevi.runs.measured import alarms_of, metrics_of, sets_of
from onlinevi.runs.metrics import BOUNDED, HIT, LOSS, STEP, WIDEST, WIDTH, certified_regret
from onlinevi.runs.promises import promised_regret, risk_of
from onlinevi.runs.report.results import (
    ClassColumns,
    ColumnImportance,
    CoverageCurve,
    Head,
    LateLabels,
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
from onlinevi.runs.run import How

FEWEST_TIMES, MOST_TIMES = 3, 64
"""Points of the curve of speed: with fewer it is not shown."""
NOT_LOOKED_BACK = InHindsight()
TOLD_BY = 3
"""Columns that are said to tell a class."""
NAMED = 6
"""Classes that are named in a sentence."""
LONG = 60
"""Characters that their names may have together."""


def results_of(job: Job, stopped: How = "end", back: InHindsight = NOT_LOOKED_BACK, shards: Shards | None = None) -> Results:
    """What the run knows so far, what looking back at its rows has shown, and the shards that it is the sum of."""
    classes = job.kind == "classes"
    matters, told_by = importance_of(job)
    return Results(
        head=_head(job),
        summary=_summary(job, stopped),
        trace=_trace(job),
        hindsight=back.best,
        without_hindsight=back.why,
        regret=_regret(job, back),
        posterior=_posterior(job),
        without_posterior=_without_posterior(job),
        calibration=_reliability(job) if classes else _coverage(job),
        sets=sets_of(job),
        throughput=_throughput(job),
        data=data_table(job),
        shards=shards,
        risk=risk_of(job, back.belief),
        metrics=metrics_of(job),
        importance=matters,
        told_by=told_by,
        certificate="" if job.state is None or not job.metrics.count else certified(job).sentence,
        alarms=alarms_of(job),
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
    settings |= {"classes by": job.settings.classes_by} if job.settings.classes_by else {}
    settings |= {"lags": f"{job.settings.lags} labels"} if job.settings.lags else {}
    settings |= {"delay": f"{job.settings.delay} rows"} if job.settings.delay else {}
    settings |= {"decided by": deciding(job)} if job.decisions is not None else {}
    settings |= {"labels": str(job.settings.wait)} if job.settings.wait else {}
    settings |= {"weights of rows": weighing(job)} if job.settings.weighs else {}
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
        features=schema.width,
        of_columns=columns,
    )


def weighing(job: Job) -> str:
    """How rows counted in learning, and that they count once in what is told of it."""
    given, by_class, names = job.settings.weight, job.settings.class_weight, job.class_names
    parts = [] if given is None else [f"column {given}"]
    if isinstance(by_class, str):
        parts.append(by_class)
    elif by_class is not None:
        missing = {name: f" (no such class so far{did_you_mean(name, names)})" for name in by_class if name not in names}
        parts.append(", ".join(f"{name} {weight:g}{missing.get(name, '')}" for name, weight in by_class.items()))
    return f"{' times '.join(parts)}; metrics count each row of a weight above 0 once"


def deciding(job: Job) -> str:
    """What is decided of a row, beside the likeliest class."""
    how = "the likeliest class" if job.settings.cost is None else "the least expected cost"
    return how + (", where the set has one class" if job.settings.abstain else "")


def either(names: Sequence[str]) -> str:
    """Names as a phrase, such as a, b or c; of many, the first few, and where these are long, how many there are."""
    if len(names) == 1:
        return f"{names[0]}, the one so far"
    if sum(map(len, names[:NAMED])) > LONG:
        return f"one of {len(names)} classes"
    shown = [*names[:NAMED], f"{len(names) - NAMED} others"] if len(names) > NAMED + 1 else list(names)
    return f"{', '.join(shown[:-1])} or {shown[-1]}"


def _summary(job: Job, stopped: How) -> Summary:
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
        late=_late(job),
    )


def _late(job: Job) -> LateLabels | None:
    if job.late is None or job.late.wait is None:
        return None
    late, wait, counts = job.late, job.late.wait, asdict(job.late.counts)
    of_rows = ("labelled", "otherwise", "left_out", "crowded", "repeated")
    of_labels = ("early", "duplicates", "too_late", "orphans")
    rows, labels = ({name: counts[name] for name in names} for names in (of_rows, of_labels))
    return LateLabels(wait.limit, wait.otherwise, len(late.rows), len(late.labels), rows, labels, counts["out_of_order"])


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
        certified.append(None if job.settings.late else certified_regret(job.state))
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


def _without_posterior(job: Job) -> str:
    """Why there are no weights over time."""
    if job.state is None:
        return ""
    classes, width = len(job.state.by_class()), job.schema.width
    if job.state.space is not None:
        return "it learns of features that bend the columns, whose weights say nothing one by one"
    if classes * width > WIDEST:
        of = f"{classes:,} classes with {width:,} features each have" if classes > 1 else f"{width:,} features have"
        return f"{of} {classes * width:,} weights, and a run keeps track of up to {WIDEST}; onlinevi info has those of the end"
    return ""


def _padded(weights: Any, shape: tuple[int, int]) -> Vector:
    """A snapshot's weights, class by class. Of classes and features that joined later there was nothing to say before."""
    table, known = np.full(shape, np.nan), np.atleast_2d(weights)
    table[: known.shape[0], : known.shape[1]] = known
    return table.ravel()


def importance_of(job: Job) -> tuple[ColumnImportance | None, list[ClassColumns] | None]:
    """How much the columns of the data matter, and of several classes those that matter most to each."""
    try:
        told = importance(job.state, _cycles(job.schema))
    except ValueError:  # of a learner of one's own, that is linear in nothing
        return None, None
    each = zip(job.class_names, (_of_columns(job, own) for own in told.by_class), strict=False)
    by_class = [ClassColumns(name, own.names[:TOLD_BY], own.value[:TOLD_BY]) for name, own in each if own is not None]
    return _of_columns(job, told), by_class or None


def _cycles(schema: Schema) -> list[Cycle]:
    """The features that tell the time of one date, of its year and of its day."""
    places, found = schema.places, []
    for column in schema.kinds:
        for cycle, count, steps, first in (("year", "month", 12, 1), ("day", "hour", 24, 0)):
            parts = [(column, name) for name in (f"{cycle}_sin", f"{cycle}_cos", count)]
            if all(part in places for part in parts):
                sine, cosine, counted = (places[part] for part in parts)
                found.append(Cycle(sine, cosine, counted, steps, first))
    return found


def _of_columns(job: Job, told: Importance) -> ColumnImportance | None:
    """Of the columns of the data: that of a column of names is what its features have together."""
    names = [job.schema.column(place) if place < job.state.width else name for place, name in enumerate(told.names)]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    places = np.array([numbers[name] for name in names])
    value = np.bincount(places, told.value)
    std = np.minimum(np.sqrt(np.bincount(places, np.square(told.std))), 0.5)  # as that of any share
    order, known = np.argsort(-value, kind="stable")[:SHOWN], list(numbers)
    if not value.any():
        return None
    return ColumnImportance([known[place] for place in order], value[order].tolist(), std[order].tolist())
