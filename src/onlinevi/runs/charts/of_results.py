"""The charts of a results document, each a function that gives none where the document has nothing to show.

A new chart is its function, and its name in ``PAGE`` for the report, in ``FIGURE`` for ``onlinevi.plot``, or in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.runs.charts.chart import Axis, Chart, Line, Points, Values
from onlinevi.runs.charts.style import first_step, short
from onlinevi.runs.report.measures import NAMES as METRICS
from onlinevi.runs.report.results import CoverageCurve, LossCurve, PosteriorPath, ReliabilityBins, Results
from onlinevi.runs.report.scored import Numbers

BLOCKS = 60
FEWEST = 20
"""How many rows a block of recent ones has at least."""
MOST_FEATURES, SWITCHED_ON = 8, 3
"""Features that can be shown over time, and those whose lines are on at first: more bands than this hide each other."""
MOST_WEIGHTS, MOST_COLUMNS = 20, 15
FEWEST_STRETCHES = 3
"""Points of a curve of metrics, or of a cloud: fewer show nothing."""


@dataclass(frozen=True)
class PassResults(Results):
    """The results of a pass in memory, with what only a figure shows."""

    intervals: tuple[Vector, Vector, Vector, Vector] | None = None
    """Of the last events: step, lower and upper end, and the label that came."""


def loss(results: Results, *, recent: bool = True) -> Chart | None:
    """The average loss so far, that of recent rows, and the best in hindsight with its gap."""
    if (curve := results.trace) is None or not curve.steps:
        return None
    steps, average = np.array(curve.steps), np.array(curve.average_loss)
    first = first_step(steps[-1])
    late = steps >= first
    lines = [Line("average so far", "learner", steps[late], average[late])]
    caption = "The average loss of all predictions so far, each made before its answer was seen. Lower is better."
    if (best := results.hindsight) is not None:
        ends = np.full(2, best.value)
        lines.append(_level("best in hindsight", steps[late], ends, width=1.5, low=ends - best.gap, high=ends))
        exactly = f"to within {short(float(f'{best.gap:.1g}'))}" if best.gap > 1e-9 else "to the last digits"
        among = f" among {best.among} of the same prepared columns" if best.among else ""
        caption += f" The level line is the best fixed model{among}, chosen with all answers known; it is certified {exactly}."
    elif results.without_hindsight:
        caption += f" There is no line of the best fixed model: {results.without_hindsight}."
    values = np.concatenate([line.values for line in lines])
    x, y = Axis.rows(steps[late][0], steps[-1], log=True), Axis.around("average loss", values, log_if_positive=1.0)
    at, means = blocks(curve, first) if recent else ([], [])
    if at:
        lines.insert(0, Line("recent rows", "recent", at, means, width=1.0))
        y = Axis.around("average loss", np.append(values, means), log_if_positive=0.0 if y.log else 1.0)
    return Chart("loss", "Loss", x, y, tuple(lines), caption=caption)


def blocks(curve: LossCurve, first: float) -> tuple[Numbers, Numbers]:
    """The mean loss of blocks of rows, evenly spaced on a logarithmic axis where they are many, each at its last row."""
    growth = max(curve.steps[-1] / first, 1.0) ** (1.0 / BLOCKS)
    at: Numbers = []
    means: Numbers = []
    total = start = before = 0.0
    for step, value in zip(curve.steps, curve.loss, strict=True):
        total, before = total + value * (step - before), step
        if step >= max(first, growth * start, start + FEWEST):
            at.append(step)
            means.append(total / (step - start))
            total, start = 0.0, step
    return at, means


def compared(results: Results) -> Chart | None:
    """The metric that leads, of stretches of rows, beside what needs no model."""
    metrics = results.metrics
    if metrics is None or (curve := metrics.over_time) is None or len(curve.steps) < FEWEST_STRETCHES:
        return None
    if metrics.lead not in curve.learner:
        return None
    called = METRICS.get(metrics.lead, metrics.lead)
    named = metrics.lead
    lines = (
        Line("this model", "learner", curve.steps, curve.learner[named]),
        Line("always the same", "exact", curve.steps, curve.constant[named], dash="dash", width=1.5),
        Line("same as last time", "certified", curve.steps, curve.last_label[named], dash="dot", width=1.5),
    )
    caption = (
        f"The {called} of stretches of rows, each predicted before its answer was seen, beside what needs no model: always "
        "giving the same answer, and giving the answer of the row before. A model that does not keep away from them is none."
    )
    x = Axis.rows(0.0, curve.steps[-1])
    y = Axis.around(called, np.concatenate([np.asarray(line.values, dtype=float) for line in lines]))
    return Chart("compared", "Metrics", x, y, lines, question="Is it better than no model?", caption=caption)


def residuals(results: Results) -> Chart | None:
    """What was said of the last rows, and what came."""
    if results.metrics is None or (last := results.metrics.last_rows) is None or len(last.label) < FEWEST_STRETCHES:
        return None
    label, said = (np.array(part, dtype=float) for part in (last.label, last.prediction))
    both = np.concatenate([label, said])
    x, y = Axis.around("what was said", both), Axis.around("what came", both)
    lines = (_level("", [x.low, x.high], [x.low, x.high], dash="dash", width=1.2),)
    points = (Points("rows", "learner", said, label, size=5.0),)
    caption = f"The last {len(label):,} rows. On the line, what came is what was said; how far off it, the error."
    return Chart("residuals", "Residuals", x, y, lines, points, question="How far off is it?", caption=caption)


def regret(results: Results) -> Chart | None:
    """What was certain of the regret at each moment, what a theorem said before the data, and what it turned out to be."""
    if (curve := results.regret) is None or not curve.steps:
        return None
    lines: list[Line] = []
    caption = "How much better, a row, a fixed model chosen in hindsight could have been."
    if curve.certified is not None:
        lines.append(_since_known("certified", "certified", curve.steps, curve.certified))
        caption += " The certificate is computed while the run goes on, and holds whatever the data."
    if curve.theorem is not None:
        lines.append(Line("theorem", "theorem", curve.steps, curve.theorem, dash="dot"))
        caption += " The theorem is what was known of any data before the first row."
    if curve.observed is not None:
        lines.append(_since_known("observed", "learner", curve.steps, curve.observed))
        among = f" (of {best.among})" if (best := results.hindsight) is not None and best.among else ""
        caption += f" Observed is against the fixed model that is best for all rows{among}; below 0, it was worse so far."
    if not lines:
        return None
    values = np.concatenate([line.values for line in lines])
    x = Axis.rows(curve.steps[0], curve.steps[-1], log=True)
    y = Axis.around("regret a row", values, log_if_positive=0.5)
    if y.log and lines[-1].name == "observed" and not (np.asarray(lines[-1].values) > 0.0).any():
        lines.pop()
        caption += " It was never above 0, so that it has no line here."
    elif y.log and (values <= 0.0).any():
        caption += " Where a line has a gap, the regret was not above 0: no fixed model was better."
    return Chart("regret", "Regret", x, y, tuple(lines), caption=caption)


def _since_known(name: str, role: str, steps: Numbers, values: Numbers) -> Line:
    """A line from the first to the last moment that has a value."""
    known = np.flatnonzero(np.isfinite(values))
    own = slice(known[0], known[-1] + 1) if len(known) else slice(0)
    return Line(name, role, steps[own], values[own])


def weights(results: Results) -> Chart | None:
    """The weights in the end, mean ± 2 std: those furthest from 0 in stds, and for points, the largest."""
    if (path := results.posterior) is None or not path.steps or not path.names:
        return None
    mean, std = np.array(path.mean[-1], dtype=float), np.array(path.std[-1], dtype=float)
    order = np.argsort(-_sureness(mean, std), kind="stable")[:MOST_WEIGHTS][::-1]
    few = f" (the surest {len(order)} of {len(mean)})" if len(order) < len(mean) else ""
    edges = np.concatenate([(mean - 2.0 * std)[order], (mean + 2.0 * std)[order], [0.0]])
    x = Axis.around(f"mean ± 2 std{few}", edges, zero=True)
    y = Axis("", -0.6, len(order) - 0.4, names=tuple(path.names[k] for k in order))
    points = Points("weights", "learner", mean[order], np.arange(float(len(order))), across=2.0 * std[order])
    return Chart("weights", "Weights", x, y, points=(points,))


def _sureness(mean: Vector, std: Vector) -> Vector:
    """How many stds each mean is from 0. A std of 0 is a point: then the size of the mean is all there is."""
    return np.asarray(np.abs(mean) / (np.maximum(std, 1e-300) if (std > 0.0).any() else 1.0))


def importance(results: Results) -> Chart | None:
    """How much each column matters, the most above, and how sure that is."""
    if (told := results.importance) is None or not told.names:
        return None
    share, std = 100.0 * np.array(told.value[:MOST_COLUMNS])[::-1], 100.0 * np.array(told.std[:MOST_COLUMNS])[::-1]
    # A share is at most all: where the belief leaves more open, the bar goes to the edge.
    most = min(1.06 * float((share + 2.0 * std).max()), 103.0) or 1.0
    x = Axis("share in what is predicted, %", -0.015 * most, most)
    y = Axis("", -0.6, len(share) - 0.4, names=tuple(told.names[:MOST_COLUMNS])[::-1])
    points = Points("share", "learner", share, np.arange(float(len(share))), across=2.0 * std, size=9.0)
    count = max(len(told.names), results.head.of_columns)
    few = f" The {len(share)} that matter most, of {count:,}." if count > len(share) else ""
    caption = (
        "How much of what it predicts comes from each column, all its names and parts together: the shares sum to 100 %. A "
        f"bar is what the belief leaves open, ±2 std. Columns that tell the same may share in any way.{few}"
    )
    return Chart("importance", "Columns", x, y, points=(points,), question="Which columns matter?", caption=caption)


def posterior(results: Results) -> Chart | None:
    """The weights of some features as they were learned, each in the band of ±2 std."""
    if (path := results.posterior) is None or not path.steps or not path.names:
        return None
    means, stds = np.array(path.mean, dtype=float), np.array(path.std, dtype=float)
    lines = []
    for k, (index, why) in enumerate(chosen(path)):
        mean, reach = means[:, index], 2.0 * stds[:, index]
        lines.append(Line(path.names[index], f"feature-{k}", path.steps, mean, low=mean - reach, high=mean + reach, why=why))
    caption = (
        "The weight of a feature as it was learned, and the range it lies in with about 95 % probability (±2 std): shown are "
        "the surest features and those that moved most. Where a range keeps off 0, the sign is sure. Features are compared "
        "on one scale: a weight is that of the column as prepared, in stds from its mean. Choose which."
    )
    edges = np.concatenate([edge for line in lines for edge in (line.low, line.high) if edge is not None])
    x, y = Axis.rows(path.steps[0], path.steps[-1]), Axis.around("weight", edges, zero=True)
    question, on = "What it believes", min(SWITCHED_ON, len(lines))
    return Chart("posterior", "Weights", x, y, tuple(lines), question=question, caption=caption, switched_on=on)


def chosen(path: PosteriorPath) -> list[tuple[int, str]]:
    """The features worth a line, and why: in turn the surest, the most stds from 0, and those whose mean moved most."""
    mean, std = np.array(path.mean, dtype=float), np.array(path.std, dtype=float)
    scores = (_sureness(mean[-1], std[-1]), mean.max(axis=0) - mean.min(axis=0))
    orders = [np.argsort(-np.nan_to_num(score), kind="stable").tolist() for score in scores]
    reasons = ("surest" if (std[-1] > 0.0).any() else "largest", "moved most")
    found: dict[int, str] = {}
    while len(found) < min(MOST_FEATURES, len(path.names)):
        order, why = orders[len(found) % 2], reasons[len(found) % 2]
        found[next(index for index in order if index not in found)] = why
    return list(found.items())


def reliability(results: Results) -> Chart | None:
    """What was said against what happened; a bar is how far chance alone would take a bin."""
    if not isinstance(bins := results.calibration, ReliabilityBins) or not bins.count:
        return None
    said, count = np.array(bins.predicted), np.array(bins.count)
    chance = 2.0 * np.sqrt(np.maximum(said * (1.0 - said), 0.0) / count)
    given = "Of the guesses" if len(results.head.task.classes or ()) > 2 else "Of the rows"
    caption = (
        f"{given} that were given a probability, how many turned out so. On the line, probabilities mean what they say. "
        "Large dots are many rows; a bar shows how far off chance alone would take a bin."
    )
    x, y = Axis("probability said", -0.03, 1.03), Axis("part that happened", -0.05, 1.05)
    lines = (_level("", [0.0, 1.0], [0.0, 1.0], dash="dash", width=1.2),)
    points = (Points("happened", "learner", said, bins.observed, count=count, up=chance),)
    question = "Are its probabilities right?"
    return Chart("reliability", "Probabilities", x, y, lines, points, question=question, caption=caption)


def intervals(results: PassResults) -> Chart | None:
    """The last intervals, and the labels that came."""
    if results.intervals is None or not len(results.intervals[0]):
        return None
    steps, low, high, labels = results.intervals
    held = (low <= labels) & (labels <= high)
    points = (
        Points("", "recent", steps, (low + high) / 2.0, up=(high - low) / 2.0, dots=False),
        Points("inside", "learner", steps[held], labels[held]),
        Points("outside", "certified", steps[~held], labels[~held]),
    )
    x, y = Axis.around("row", steps), Axis.around("label", np.concatenate([low, high, labels]))
    return Chart("intervals", "Intervals", x, y, points=points)


def coverage(results: Results) -> Chart | None:
    """How often labels lay in their ranges so far, against how often they should."""
    if not isinstance(curve := results.calibration, CoverageCurve) or not curve.steps:
        return None
    caption = "Each prediction comes with a range. How often, so far, the answer lay in it, against how often it should."
    told = curve.steps, curve.coverage, curve.target
    return _held("coverage", "Coverage", "Are its ranges right?", "held the answer", caption, *told)


def _held(
    name: str,
    title: str,
    question: str,
    what: str,
    caption: str,
    steps: Numbers,
    coverage: Numbers,
    target: float,
    *beside: Line,
) -> Chart:
    """A share so far against the one that was asked for."""
    late = _settled(steps)
    level = _level("asked for", steps[late], [target] * 2, dash="dash", width=1.2)
    shares = [replace(line, steps=steps[late], values=line.values[late]) for line in beside]
    shares.append(Line(what, "learner", steps[late], coverage[late]))
    held = np.concatenate([line.values for line in shares])
    y = Axis.around("part held", [*held, target, min(target + 0.05, 1.0), max(target - 0.05, 0.0)])
    return Chart(name, title, Axis.rows(steps[late][0], steps[-1]), y, (*shares, level), question=question, caption=caption)


def _settled(steps: Numbers) -> slice:
    """The moments at which a mean over all rows so far is none of a few: behind 50 rows, of a short run a quarter of them, and
    of a long one a fiftieth."""
    fewest = max(steps[-1] / 50.0, min(50.0, steps[-1] / 4.0))
    return slice(next(k for k, step in enumerate(steps) if step >= fewest), None)


def _so_far(title: str, steps: Numbers, values: Numbers) -> tuple[Axis, Axis, Line]:
    """A mean over all rows so far, and axes that hold all of its line."""
    late = _settled(steps)
    line = Line(title, "learner", steps[late], values[late], width=1.5)
    return Axis.rows(steps[late][0], steps[-1]), _from_zero(title, values[late]), line


def width(results: Results) -> Chart | None:
    """How wide the ranges were."""
    if not isinstance(curve := results.calibration, CoverageCurve) or not curve.steps or curve.width is None:
        return None
    caption = "How wide the range was, on average so far: narrower says more. It is in the units of the answer."
    x, y, line = _so_far("width of the range", curve.steps, curve.width)
    return Chart("width", "Width", x, y, (line,), question="How wide are its ranges?", caption=caption)


def sets(results: Results) -> Chart | None:
    """How often the class was in its set so far, against how often it should."""
    if (curve := results.sets) is None or not curve.steps:
        return None
    caption = (
        "Each prediction comes with a set of classes. How often, so far and in recent rows, it held the answer, against how "
        "often it should."
    )
    all_are_recent = curve.recent == curve.coverage
    recent = () if all_are_recent else (Line("recent rows", "recent", curve.steps, curve.recent, width=1.0),)
    told = curve.steps, curve.coverage, curve.target, *recent
    return _held("sets", "Sets", "Are its sets right?", "so far", caption, *told)


def set_size(results: Results) -> Chart | None:
    """How many classes sets had."""
    if (curve := results.sets) is None or not curve.steps:
        return None
    caption = "How many classes a set had, on average so far: fewer say more. It has none where no class is likely enough."
    x, y, line = _so_far("classes in the set", curve.steps, curve.size)
    return Chart("set-size", "Set size", x, y, (line,), question="How large are its sets?", caption=caption)


def throughput(results: Results) -> Chart | None:
    """How many rows were learned a second."""
    if (curve := results.throughput) is None or not curve.steps:
        return None
    caption = "Rows learned a second, reading included. It is slow at first where code is compiled."
    x, y = Axis.rows(curve.steps[0], curve.steps[-1]), _from_zero("rows a second", curve.rows_per_second)
    line = Line("rows a second", "learner", curve.steps, curve.rows_per_second, width=1.5)
    return Chart("throughput", "Speed", x, y, (line,), caption=caption)


def _level(name: str, steps: Values, values: Values, **style: Any) -> Line:
    """A straight line to compare with, from the first step to the last."""
    return Line(name, "reference", [float(steps[0]), float(steps[-1])], values, **style)


def _from_zero(title: str, values: Numbers) -> Axis:
    return Axis(title, 0.0, 1.1 * max((value for value in values if math.isfinite(value)), default=1.0))


PAGE: tuple[Callable[[Results], Chart | None], ...] = (
    compared,
    loss,
    regret,
    importance,
    posterior,
    residuals,
    reliability,
    coverage,
    width,
    sets,
    set_size,
    throughput,
)
"""The charts of a report, in their order."""
FIGURE: tuple[Callable[[PassResults], Chart | None], ...] = (
    partial(loss, recent=False),  # a small panel has no room for the noise
    regret,
    weights,
    reliability,
    intervals,
    coverage,
)
"""The panels of a figure, in their order."""


def charts_of(results: Results) -> list[Chart]:
    """The charts of a report that these results have data for."""
    return [chart for make in PAGE if (chart := make(results)) is not None and _has_course(chart)]


def _has_course(chart: Chart) -> bool:
    """Whether there is more to see than one moment: of one row there is no line."""
    return bool(chart.points) or any(len(set(line.steps)) > 1 for line in chart.lines)
