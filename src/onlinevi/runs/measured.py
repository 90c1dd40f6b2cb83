"""The metrics and the alarms of a job for its document."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from onlinevi.runs.alarms import WIDEST, Moved
from onlinevi.runs.job import Job
from onlinevi.runs.metrics import Scores
from onlinevi.runs.metrics.by_class import precision_recall_f1
from onlinevi.runs.metrics.classes import ClassScores
from onlinevi.runs.metrics.numbers import NumberScores
from onlinevi.runs.metrics.scores import WHOSE
from onlinevi.runs.report.measures import BASELINES, skill, verdict
from onlinevi.runs.report.results import SetsCurve
from onlinevi.runs.report.scored import Alarms, LastRows, Metrics, MovedColumn, OneAlarm, OneClass, Scored, ScoresOverTime

STRETCHES = 64
"""The most stretches of a run that metrics are told of."""
MOST_ROWS = 500
"""The most rows that are shown one by one."""
MOST_COLUMNS = 5
"""Columns that are told of at an alarm."""


def metrics_of(job: Job) -> Metrics | None:
    """The metrics of a run; None before the first row that was measured."""
    scores = job.metrics.scores
    measured = scores.so_far()
    if not measured.events:
        return None
    so_far = Scored(**asdict(measured))
    recent = None if job.merged else Scored(**asdict(scores.lately()))
    return Metrics(
        so_far=so_far,
        lead=scores.lead,
        recent=recent,
        window=scores.window,
        since=scores.since,
        auc_error=scores.area()[1] if "auc" in measured.learner and isinstance(scores, ClassScores) else None,
        skill={who: skill(so_far, scores.lead, who) for who in BASELINES},
        verdict=verdict(so_far, recent, scores.lead),
        confusion=_confusion(scores, len(job.class_names)) if isinstance(scores, ClassScores) else None,
        classes=_classes(job, scores) if isinstance(scores, ClassScores) else None,
        over_time=None if job.merged else _over_time(scores),
        last_rows=_last_rows(scores) if isinstance(scores, NumberScores) and not job.merged else None,
    )


def alarms_of(job: Job) -> Alarms | None:
    """The alarms of a run; none where they are off, or where shards were learned from side by side."""
    watched = job.alarms
    if watched.alarm is None or job.merged:
        return None
    rang = [
        OneAlarm(
            one.at,
            one.since,
            one.level,
            one.before,
            one.after,
            [MovedColumn(_name(job, each.place), each.before, each.after, each.stds) for each in _by_column(job, moved)],
        )
        for one, moved in watched.rang
    ]
    few = job.state is None or job.state.inputs.dim <= WIDEST
    return Alarms(watched.alarm.delta, watched.count, rang, watched.since, few)


def _by_column(job: Job, moved: list[Moved]) -> list[Moved]:
    """The columns that moved most, each by the one of its features that did; labels below 0 are told of as they are."""
    found: dict[str | int, Moved] = {}
    for one in moved:
        found.setdefault(job.schema.column(one.place) if one.place >= 0 else one.place, one)
    return [*found.values()][:MOST_COLUMNS]


def _name(job: Job, place: int) -> str:
    """What a column is called; below 0 it is the target, or one of its classes."""
    if place >= 0:
        return job.schema.name(place)
    names = job.class_names
    name = names[1:] if len(names) == 2 else names[-1 - place :]
    return f"{job.settings.target}: {name[0]}" if name else job.settings.target


def _confusion(scores: ClassScores, classes: int) -> list[list[int]]:
    """As wide as there are names: of two classes, the second may have yet to come."""
    table = np.zeros((classes, classes), dtype=np.int64)
    known = min(classes, scores.confusion.shape[1])
    table[:known, :known] = scores.confusion[0, :known, :known]
    found: list[list[int]] = table.tolist()
    return found


def _classes(job: Job, scores: ClassScores) -> list[OneClass]:
    """Each class by itself; of two, the second may have yet to come."""
    told = scores.by_class
    confusion = np.array(_confusion(scores, len(job.class_names)))
    columns = [confusion.sum(axis=1), *precision_recall_f1(confusion)]
    columns += [told.calibration_errors(), told.coverage(), told.set_size()]
    weights = job.class_weights.now(job.class_names)
    rows = zip(job.class_names, *(column.tolist() for column in columns), weights, strict=False)
    return [OneClass(*row) for row in rows]


def sets_of(job: Job) -> SetsCurve | None:
    """How often sets held the class so far; none for shards, which have no course in common, and where there are no sets."""
    scores = job.metrics.scores
    if job.merged or not isinstance(scores, ClassScores):
        return None
    steps, sets, held, sizes = scores.sets_over_time()
    if not len(steps):
        return None
    # From the step that lies the window before each, or the one just before it.
    before = np.minimum(np.searchsorted(sets, sets - scores.window, side="right"), np.arange(len(steps))) - 1
    recent = (held - np.append(held, 0.0)[before]) / (sets - np.append(sets, 0.0)[before])
    coverage = job.settings.coverage
    return SetsCurve(steps.tolist(), (held / sets).tolist(), coverage, (sizes / sets).tolist(), recent.tolist())


def _over_time(scores: Scores) -> ScoresOverTime:
    steps, found = scores.over_time(STRETCHES)
    parts = [{name: table[:, place].tolist() for name, table in found.items()} for place in range(len(WHOSE))]
    return ScoresOverTime(steps.tolist(), *parts)


def _last_rows(scores: NumberScores) -> LastRows:
    labels, said = (part[-MOST_ROWS:].tolist() for part in scores.last_rows())
    return LastRows(labels, said)
