"""The charts of a report, as plotly reads them. Colours are named by role: the style sheet has them for light and dark."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onlinevi.runs.report.axes import Axis
from onlinevi.runs.report.features import chosen
from onlinevi.runs.report.results import (
    Best,
    CoverageCurve,
    LossCurve,
    Numbers,
    PosteriorPath,
    RegretCurve,
    ReliabilityBins,
    Results,
    ThroughputCurve,
)

CLOSEST = 0.075
"""How near labels beside a chart may come, as a part of its height."""
BLOCKS = 60
FEWEST = 20
"""How many rows a block of recent ones has at least."""
MANY_TIMES = 30.0
"""Values further apart than this read on a logarithmic axis only."""
SHOWN_FIRST = 3
"""Features whose lines are on at first: more bands than this hide each other."""


@dataclass(frozen=True)
class Line:
    """What a chart shows, and its label; a dash makes it a reference. ``role`` names its colour."""

    name: str
    role: str
    steps: Sequence[float]
    values: Sequence[float]
    dash: str = "solid"
    width: float = 2.0


@dataclass(frozen=True)
class Chart:
    """One chart: ``figure`` has plotly's data and axes, and the labels beside the lines' ends."""

    name: str
    title: str
    caption: str
    figure: dict[str, Any]
    lines: tuple[Line, ...] = ()
    features: tuple[tuple[str, str], ...] = ()
    """Name and reason of each feature that can be switched on and off."""


def charts(results: Results) -> list[Chart]:
    """All that the results have data for."""
    calibration: tuple[Chart | None, ...] = ()
    match results.calibration:
        case ReliabilityBins() as bins:
            calibration = (_reliability(bins, guesses=len(results.head.task.classes or ()) > 2) if bins.count else None,)
        case CoverageCurve() as curve if curve.steps:
            calibration = _coverage(curve), _width(curve)
    found = [
        _loss(results.trace, results) if results.trace and results.trace.steps else None,
        _regret(results.regret, results.hindsight) if results.regret and results.regret.steps else None,
        _posterior(results.posterior) if results.posterior and results.posterior.steps and results.posterior.names else None,
        *calibration,
        _throughput(results.throughput) if results.throughput and results.throughput.steps else None,
    ]
    return [chart for chart in found if chart is not None]


def _loss(curve: LossCurve, results: Results) -> Chart:
    last = curve.steps[-1]
    first = min(max(10.0, last / 1000.0), curve.steps[-1])  # earlier averages are of a handful of events
    late = [k for k, step in enumerate(curve.steps) if step >= first]
    steps, average = ([values[k] for k in late] for values in (curve.steps, curve.average_loss))
    at, recent = blocks(curve, first)
    lines = [
        Line("recent rows", "recent", at, recent, width=1.0),
        Line("average so far", "learner", steps, average, width=2.5),
    ]
    caption = "The average loss of all predictions so far, each made before its answer was seen. Lower is better."
    if results.hindsight is not None:
        best = results.hindsight.value
        lines.append(Line("best in hindsight", "reference", [steps[0], last], [best, best], width=1.5))
        exactly = f"to within {results.hindsight.gap:.1g}" if results.hindsight.gap > 1e-9 else "to the last digits"
        among = f" among {results.hindsight.among} of the same prepared columns" if results.hindsight.among else ""
        caption += f" The level line is the best fixed model{among}, chosen with all answers known; it is certified {exactly}."
    elif results.without_hindsight:
        caption += f" There is no line of the best fixed model: {results.without_hindsight}."
    # The blocks are noise around the average: they may leave the frame.
    values = [value for line in lines[1:] for value in line.values]
    log = min(values) > 0.0 and max(values) > MANY_TIMES * min(values)
    return _chart("loss", "Loss", caption, lines, Axis.rows(steps[0], last, log=True), Axis.around("loss", values, log=log))


def blocks(curve: LossCurve, first: float) -> tuple[Numbers, Numbers]:
    """The mean loss of blocks of rows, evenly spaced on a logarithmic axis where they are many, each at its last row."""
    growth = max(curve.steps[-1] / first, 1.0) ** (1.0 / BLOCKS)
    at: Numbers = []
    means: Numbers = []
    total = start = before = 0.0
    for step, loss in zip(curve.steps, curve.loss, strict=True):
        total, before = total + loss * (step - before), step
        if step >= max(first, growth * start, start + FEWEST):
            at.append(step)
            means.append(total / (step - start))
            total, start = 0.0, step
    return at, means


def _regret(curve: RegretCurve, best: Best | None) -> Chart | None:
    caption = "How much better, a row, a fixed model chosen in hindsight could have been."
    lines = []
    if curve.certified is not None:
        lines.append(Line("certified", "certified", curve.steps, curve.certified, width=2.5))
        caption += " The certificate is computed while the run goes on, and holds whatever the data."
    if curve.theorem is not None:
        lines.append(Line("theorem", "promised", curve.steps, curve.theorem, dash="dot"))
        caption += " The theorem is what was known of any data before the first row."
    if curve.observed is not None:
        lines.append(Line("observed", "learner", curve.steps, curve.observed, width=2.0 if len(lines) else 2.5))
        among = f" (of {best.among})" if best is not None and best.among else ""
        caption += f" Observed is against the fixed model that is best for all rows{among}; below 0, it was worse so far."
    if not lines:
        return None
    values = [value for line in lines for value in line.values if math.isfinite(value)] or [1.0]
    above = [value for value in values if value > 0.0]
    log = len(above) > 0.5 * len(values) and max(above) > MANY_TIMES * min(above)
    if log and curve.observed is not None and not any(value > 0.0 for value in curve.observed):
        lines.pop()
        caption += " It was never above 0, so that it has no line here."
    elif log and len(above) < len(values):
        caption += " Where a line has a gap, the regret was not above 0: no fixed model was better."
    rows = Axis.rows(curve.steps[0], curve.steps[-1], log=True)
    return _chart("regret", "Regret", caption, lines, rows, Axis.around("regret a row", values, log=log))


def _posterior(path: PosteriorPath) -> Chart:
    lines, data = [], []
    for k, feature in enumerate(chosen(path)):
        mean, std = ([row[feature.index] for row in rows] for rows in (path.mean, path.std))
        line = Line(_cut(path.names[feature.index]), f"feature-{k}", path.steps, mean)
        low, high = ([m + sign * s for m, s in zip(mean, std, strict=True)] for sign in (-2.0, 2.0))
        data += [_band(path.steps, low, high, line.role), _trace(line, log=False)]
        lines.append(line)
    features = tuple((path.names[each.index], each.why) for each in chosen(path))
    spans = [value for trace in data for value in trace["y"]]
    axis = Axis.around("weight", spans)
    caption = (
        "The weight of a feature as it was learned, and the range it lies in with about 95 % probability (±2 std): shown are "
        "the surest features and those that moved most. Where a range keeps off 0, the sign is sure. Features are compared "
        "on one scale: a weight is that of the column as prepared, in stds from its mean. Choose which."
    )
    figure = {
        "data": data,
        "xaxis": Axis.rows(path.steps[0], path.steps[-1]).plotly(),
        "yaxis": axis.plotly() | {"zeroline": True},
        "labels": [],
        "shown": min(SHOWN_FIRST, len(features)),
    }
    return Chart("posterior", "What it believes", caption, figure, (), features)


def _reliability(bins: ReliabilityBins, *, guesses: bool) -> Chart:
    total = sum(bins.count)
    data = [
        _trace(Line("as said", "reference", [0.0, 1.0], [0.0, 1.0], dash="dash", width=1.2), log=False),
        {
            "type": "scatter",
            "mode": "markers",
            "name": "happened",
            "x": bins.predicted,
            "y": bins.observed,
            "customdata": bins.count,
            "hovertemplate": "said %{x:.2f}, happened %{y:.2f}<br>%{customdata:,} rows<extra></extra>",
            "error_y": {
                "type": "data",
                "array": [_chance(p, n) for p, n in zip(bins.predicted, bins.count, strict=True)],
                "color": "recent",
                "thickness": 1.5,
                "width": 0,
            },
            "marker": {
                "color": "learner",
                "size": [8.0 + 22.0 * math.sqrt(count / total) for count in bins.count],
                "line": {"width": 0},
                "opacity": 1.0,
            },
        },
    ]
    given = "Of the guesses" if guesses else "Of the rows"
    caption = (
        f"{given} that were given a probability, how many turned out so. On the line, probabilities mean what they say. "
        "Large dots are many rows; a bar shows how far off chance alone would take a bin."
    )
    figure = {
        "data": data,
        "xaxis": Axis("probability said", -0.03, 1.03).plotly(),
        "yaxis": Axis("part that happened", -0.05, 1.05).plotly(),
        "labels": [],
    }
    return Chart("reliability", "Are its probabilities right?", caption, figure)


def _chance(probability: float, count: float) -> float:
    return 2.0 * math.sqrt(max(probability * (1.0 - probability), 0.0) / count)


def _coverage(curve: CoverageCurve) -> Chart:
    ends = [curve.steps[0], curve.steps[-1]]
    lines = [
        Line("held the answer", "learner", curve.steps, curve.coverage, width=2.5),
        Line("asked for", "reference", ends, [curve.target] * 2, dash="dash", width=1.2),
    ]
    late = [value for value in curve.coverage[len(curve.coverage) // 10 :] if math.isfinite(value)]
    values = [*late, curve.target, min(curve.target + 0.05, 1.0), max(curve.target - 0.05, 0.0)]
    caption = "Each prediction comes with a range. How often, so far, the answer lay in it, against how often it should."
    return _chart("coverage", "Are its ranges right?", caption, lines, Axis.rows(*ends), Axis.around("part held", values))


def _width(curve: CoverageCurve) -> Chart | None:
    if curve.width is None:
        return None
    line = Line("width", "learner", curve.steps, curve.width, width=1.5)
    caption = "How wide the range was: narrower says more. It is in the units of the answer."
    top = max((value for value in curve.width[len(curve.width) // 10 :] if math.isfinite(value)), default=1.0)
    axis = Axis("width of the range", 0.0, 1.1 * top)
    return _chart("width", "How wide are its ranges?", caption, [line], Axis.rows(curve.steps[0], curve.steps[-1]), axis)


def _throughput(curve: ThroughputCurve) -> Chart:
    line = Line("rows a second", "learner", curve.steps, curve.rows_per_second, width=1.5)
    top = 1.1 * max((value for value in curve.rows_per_second if math.isfinite(value)), default=1.0)
    caption = "Rows learned a second, reading included. It is slow at first where code is compiled."
    rows = Axis.rows(curve.steps[0], curve.steps[-1])
    return _chart("throughput", "Speed", caption, [line], rows, Axis("rows a second", 0.0, top))


def _chart(name: str, title: str, caption: str, lines: Sequence[Line], rows: Axis, axis: Axis) -> Chart:
    labels = _labels(lines, axis) if len(lines) > 1 else []
    data = [_trace(line, log=axis.log) for line in lines]
    figure = {"data": data, "xaxis": rows.plotly(), "yaxis": axis.plotly(), "labels": labels}
    return Chart(name, title, caption, figure, tuple(lines) if len(lines) > 1 else ())


def _trace(line: Line, *, log: bool) -> dict[str, Any]:
    shown = [value if math.isfinite(value) and (value > 0.0 or not log) else None for value in line.values]
    style = {"color": line.role, "width": line.width, "dash": line.dash}
    return {
        "type": "scatter",
        "mode": "lines",
        "name": as_text(line.name),
        "x": list(line.steps),
        "y": shown,
        "line": style,
    }


def _band(steps: Sequence[float], low: Numbers, high: Numbers, role: str) -> dict[str, Any]:
    """The area between two lines, as one closed path."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*steps, *reversed(steps)],
        "y": [*high, *reversed(low)],
        "fill": "toself",
        "fillcolor": f"{role}-soft",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "name": "",
    }


def _labels(lines: Sequence[Line], axis: Axis) -> list[dict[str, Any]]:
    """The lines' names beside their ends, moved apart where they would touch."""
    ends = []
    for line in lines:
        value = next((v for v in reversed(line.values) if math.isfinite(v) and (v > 0.0 or not axis.log)), None)
        if value is not None:
            ends.append((min(max(axis.place(value), 0.0), 1.0), line))
    ends.sort(key=lambda end: end[0])
    places = spread_out([place for place, _ in ends])
    return [{"text": as_text(line.name), "y": y, "color": line.role} for y, (_, line) in zip(places, ends, strict=True)]


def spread_out(places: Sequence[float]) -> list[float]:
    """Places in order in [0, 1], moved up, then down from the top, until none are closer than ``CLOSEST``."""
    moved: Numbers = []
    for place in places:
        moved.append(max(place, moved[-1] + CLOSEST) if moved else place)
    ceiling = 1.0
    for k in reversed(range(len(moved))):
        moved[k] = min(moved[k], ceiling)
        ceiling = moved[k] - CLOSEST
    return moved


def as_text(name: str) -> str:
    """Text as plotly must get it to show it as it is: it reads tags."""
    return html.escape(name, quote=False)


def _cut(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"
