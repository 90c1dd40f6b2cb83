"""Two small runs as results documents: classes with every guarantee, and numbers with intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import onlinevi as ovi
from onlinevi.engine import using_engine
from onlinevi.engine.types import Belief
from onlinevi.learners.reliable import reliability
from onlinevi.runs.report.results import (
    Best,
    Column,
    ColumnImportance,
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
from onlinevi.runs.report.scored import LastRows, Metrics, Scored, ScoresOverTime

STARTED = "2026-02-03T10:20:30+00:00"


def head(task: Task, path: str, columns: list[str], rows: int, **settings: str) -> Head:
    source = Source(path, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 1, rows)
    return Head("0.1.0", f"onlinevi run {path} --target {task.target}", STARTED, source, task, settings, columns)


def columns_of(X: np.ndarray, names: list[str]) -> list[Column]:
    return [Column(name, "number", float(x.mean()), float(x.std()), 0) for name, x in zip(names, X.T, strict=True)]


@cache
def classes_run() -> Results:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    raw, y, names = bunch.data[order], 2.0 * bunch.target[order] - 1.0, [str(name) for name in bunch.feature_names]
    X = (raw - raw.mean(0)) / raw.std(0) / math.sqrt(raw.shape[1])
    count, dim = X.shape
    learner = ovi.Linear(ovi.Logistic(), ovi.SVA(rate=ovi.Adaptive()), ovi.MeanField(box=ovi.Box(mean=(-3.0, 3.0))))
    best = ovi.hindsight(X, y, loss=learner.loss, box=3.0)
    slope = ovi.bounds.lipschitz(X, y, loss=learner.loss, family=learner.belief_family)
    comparator = Belief(best.mean, np.full(dim, 1.0 / math.sqrt(count)))
    steps = np.unique(np.geomspace(1, count, 60).round().astype(int)).tolist()
    states, traces = [learner.init(dim, count)], []
    for start, stop in zip([0, *steps], steps, strict=False):
        state, trace = learner.update_many(states[-1], X[start:stop], y[start:stop])
        states.append(state)
        traces.append(trace)
    states = states[1:]
    loss, prediction, spread = (
        np.concatenate([getattr(trace, part) for trace in traces]) for part in ("loss", "prediction", "spread")
    )
    times = np.arange(1.0, count + 1.0)
    average = np.cumsum(loss) / times
    theirs = np.cumsum(np.logaddexp(0.0, -y * (X @ best.mean))) / times
    promised = [ovi.bounds.before_data(state, comparator, lipschitz=slope).value / state.count for state in states]
    bins = reliability(learner.loss.probability(prediction, spread), y)
    task = Task("classes", "diagnosis", "Predict diagnosis (malignant or benign) from 30 columns", ["malignant", "benign"])
    bad = RefusedRows(3, {"label is empty": 2, "not a number": 1}, [RefusedRow(17, "not a number", "mean area")])
    numbers = [float(step) for step in steps]
    return Results(
        head=head(task, "data/breast_cancer.csv", names, count, learner="Linear", loss="Logistic()", rule=repr(learner.rule)),
        summary=Summary(count, float(average[-1]), float(np.mean(prediction * y <= 0.0)), None, 0.021, 27_095.0, bad),
        trace=LossCurve(times.tolist(), loss.tolist(), average.tolist()),
        hindsight=Best(best.value, best.gap),
        regret=RegretCurve(
            numbers,
            [ovi.certificate(state).regret / state.count for state in states],
            [float((average - theirs)[step - 1]) for step in steps],
            [each + slope * math.sqrt(dim / count) for each in promised],
        ),
        posterior=PosteriorPath(names, numbers, [s.mean.tolist() for s in states], [s.std.tolist() for s in states]),
        calibration=ReliabilityBins(bins.predicted.tolist(), bins.observed.tolist(), bins.count.tolist()),
        throughput=ThroughputCurve(numbers[-20:], speed(20)),
        data=columns_of(raw, names),
    )


@cache
def numbers_trace() -> tuple[Any, np.ndarray]:
    """A stream of numbers whose law changes half way, learned by the default."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 6))
    weights = np.where(np.arange(2000)[:, None] < 1000, [2.0, -1.0, 0.5, 0.0, 0.0, 0.0], [2.0, 1.0, 0.5, 0.0, 0.0, -1.5])
    y = 3.0 + (X * weights).sum(1) + 0.5 * rng.standard_normal(2000)
    with using_engine("compiled"):
        return ovi.auto(X, y, loss=ovi.Squared()), y


@cache
def numbers_run() -> Results:
    trace, y = numbers_trace()
    names = ["intercept", *(f"sensor {k}" for k in range(1, 7))]
    steps = trace.steps[9::20]
    held = (trace.lower <= y) & (y <= trace.upper)
    coverage, width = np.cumsum(held[1:]) / np.arange(1, len(y)), trace.upper - trace.lower
    task = Task("numbers", "power", "Predict power from 6 columns")
    return Results(
        head=head(task, "sensors.parquet", names[1:], len(y), learner="Auto", loss="Squared()", coverage="0.9"),
        summary=Summary(len(y), trace.state.average_loss, None, trace.coverage, 1.2, 1_667.0),
        trace=LossCurve(trace.steps.tolist(), trace.loss.tolist(), trace.average_loss.tolist()),
        calibration=CoverageCurve(steps.tolist(), coverage[8::20].tolist(), 0.9, width[9::20].tolist()),
        throughput=ThroughputCurve(steps[-20:].tolist(), speed(20)),
    )


def scored(names: list[str], *, numbers: bool = False) -> Results:
    """A run that has what metrics and columns tell, of some classes or of numbers; all of it made up."""
    run = numbers_run() if numbers else classes_run()
    lead, steps = ("rmse" if numbers else "log_loss"), [100.0, 200.0, 300.0, 400.0]
    values = {lead: 0.4, "r2": 0.5} if numbers else {lead: 0.4, "accuracy": 0.8}
    poor = {lead: 0.9} if numbers else {lead: 0.7, "accuracy": 0.5}
    course = ScoresOverTime(steps, {lead: [0.5, 0.4, math.nan, 0.3]}, {lead: [0.7] * 4}, {lead: [0.9] * 4})
    count = len(names)
    metrics = Metrics(
        so_far=Scored(400, values, poor, poor),
        lead=lead,
        recent=Scored(100, values, poor, poor),
        confusion=None if numbers else [[9 * (i == j) + (i + j) % 3 for j in range(count)] for i in range(count)],
        over_time=course,
        last_rows=LastRows([1.0, 2.0, 3.0, 2.5], [1.1, 2.2, 2.7, 2.4]) if numbers else None,
    )
    task = run.head.task if numbers else replace(run.head.task, classes=names)
    return replace(
        run,
        head=replace(run.head, task=task),
        metrics=metrics,
        importance=ColumnImportance([f"{name} column" for name in names], [0.9 / count] * count, [0.1] * count),
        certificate="Certain, whatever the data: a sentence.",
    )


def speed(count: int) -> list[float]:
    """Made up, so that no test waits for a clock."""
    return [4e5 * (1.0 - math.exp(-k / 3.0)) for k in range(1, count + 1)]
