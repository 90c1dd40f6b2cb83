"""Charts as Plotly reads them. Colours are named by role: the page has them for light and for dark paper."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinevi.runs.charts.chart import Axis, Chart, Line, Points
from onlinevi.runs.charts.style import shortened

CLOSEST = 0.075
"""How near names beside a chart may come, as a part of its height."""
LONGEST = 24
"""How many characters of a name are shown."""


def plotly_figure(chart: Chart) -> dict[str, Any]:
    """Plotly's data and axes, and the names beside the lines' ends."""
    return {
        "data": [trace for line in chart.lines for trace in _line(line, chart.y)]
        + [_points(points, chart) for points in chart.points],
        "xaxis": _axis(chart.x),
        "yaxis": _axis(chart.y),
        "labels": _labels(chart.lines, chart.y) if has_key(chart) else [],
        "switched": chart.switched_on is not None,
    }


def has_key(chart: Chart) -> bool:
    """Whether the names of its lines must be said: not where there is one, or where each has its switch."""
    return len(chart.lines) > 1 and chart.switched_on is None


def _axis(axis: Axis) -> dict[str, Any]:
    ends = [math.log10(end) for end in (axis.low, axis.high)] if axis.log else [axis.low, axis.high]
    layout = {"title": {"text": axis.title}, "range": ends, "separatethousands": True, "zeroline": axis.zero}
    ticks = {"tickvals": list(axis.ticks), "ticktext": [as_text(text) for text in axis.ticks.values()]} if axis.ticks else {}
    return layout | ticks | ({"type": "log"} if axis.log else {})


def _line(line: Line, axis: Axis) -> list[dict[str, Any]]:
    """Its band, as one closed path, and the line."""
    common: dict[str, Any] = {"type": "scatter", "mode": "lines"}
    band = []
    if line.low is not None and line.high is not None:
        path = {"x": [*line.steps, *reversed(line.steps)], "y": [*axis.shown(line.high), *axis.shown(line.low)[::-1]]}
        band = [
            common | path | {"fill": "toself", "fillcolor": line.role, "line": {"width": 0}, "hoverinfo": "skip", "name": ""}
        ]
    mode = "lines+markers" if line.is_short else "lines"
    style = {"color": line.role, "width": line.width, "dash": line.dash}
    shown = {"mode": mode, "name": as_text(line.name), "x": line.steps, "y": axis.shown(line.values)}
    return [*band, common | shown | {"line": style, "marker": {"color": line.role}}]


def _points(points: Points, chart: Chart) -> dict[str, Any]:
    count = np.ones(len(points.x)) if points.count is None else np.asarray(points.count)
    size = np.full(len(count), points.size) if points.count is None else 8.0 + 22.0 * np.sqrt(count / count.sum())
    rows = "" if points.count is None else "<br>%{customdata:,} rows"
    hover = f"{chart.x.title} %{{x:.4~g}}, {chart.y.title} %{{y:.4~g}}{rows}<extra></extra>"
    trace: dict[str, Any] = {"type": "scatter", "mode": "markers", "name": as_text(points.name), "x": points.x, "y": points.y}
    trace |= {"customdata": count, "hovertemplate": hover}
    trace |= {"marker": {"color": points.role, "size": size, "line": {"width": 0}, "opacity": float(points.dots)}}
    for side, lengths in (("error_x", points.across), ("error_y", points.up)):
        if lengths is not None:
            trace[side] = {"type": "data", "array": lengths, "color": "recent", "thickness": 1.5, "width": 0}
    return trace


def _labels(lines: Sequence[Line], axis: Axis) -> list[dict[str, Any]]:
    """The lines' names beside their ends, moved apart where they would touch."""
    ends = []
    for line in lines:
        shown = axis.shown(line.values)
        values = shown[np.isfinite(shown)]
        if len(values):
            ends.append((min(max(axis.place(float(values[-1])), 0.0), 1.0), line))
    ends.sort(key=lambda end: end[0])
    places = spread_out([place for place, _ in ends])
    return [{"text": as_text(line.name), "y": y, "color": line.role} for y, (_, line) in zip(places, ends, strict=True)]


def spread_out(places: Sequence[float]) -> list[float]:
    """Places in order in [0, 1], moved up, then down from the top, until none are closer than ``CLOSEST``."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + CLOSEST) if moved else place)
    ceiling = 1.0
    for k in reversed(range(len(moved))):
        moved[k] = min(moved[k], ceiling)
        ceiling = moved[k] - CLOSEST
    return moved


def as_text(name: str) -> str:
    """A name as Plotly must get it to show it as it is, for it reads tags."""
    return html.escape(shortened(name, LONGEST), quote=False)
