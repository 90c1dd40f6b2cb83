"""Charts drawn with matplotlib, for figures in files, papers and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from onlinevi.runs.charts.chart import Axis, Chart, Line, Points
from onlinevi.runs.charts.style import SOFT, STYLE, colour

DASHES = {"solid": "-", "dash": "--", "dot": ":"}
CHARACTER, HANDLE = 0.072, 0.75
"""The width in inches of a character in a legend, and of what stands before a name."""


def blank(width: float, height: float) -> Any:
    """An empty figure, made without pyplot: no display is looked for, and nothing stays in a global list."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('a figure needs matplotlib: pip install "onlinevi[plot]"') from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def figure_of(
    charts: Sequence[Chart],
    *,
    panel: tuple[float, float] = (4.4, 3.1),
    legend: Literal["each", "below", "beside"] = "each",
    legend_title: str | None = None,
) -> Any:
    """A matplotlib figure with a panel for each chart, each with its legend or with one for all.

    A legend for below stands in the last place of the grid where no chart does.
    """
    columns = len(charts) if len(charts) < 4 else 2 if len(charts) == 4 else 3
    rows = -(-len(charts) // columns)
    figure = blank(panel[0] * columns, panel[1] * rows)
    from matplotlib import rc_context

    with rc_context(STYLE):
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, chart in zip(grid, charts, strict=False):
            draw(axes, chart)
            if legend == "each":
                _legend(axes, chart)
        free = list(grid[len(charts) :])
        place = free.pop() if legend == "below" and free else None
        for axes in free:
            axes.remove()
        if legend != "each":
            _shared_legend(figure, grid[: len(charts)], legend, legend_title, place)
    return figure


def draw(axes: Any, chart: Chart) -> None:
    """A chart on these axes, without a legend."""
    _axis(axes, "x", chart.x)
    _axis(axes, "y", chart.y)
    for line in chart.lines:
        _line(axes, line, chart.y)
    for points in chart.points:
        _points(axes, points)
    axes.set_title(f"{chart.title}\n" if chart.note else chart.title, loc="left", fontweight="bold")
    if chart.note:
        axes.text(0.0, 1.03, chart.note, transform=axes.transAxes, fontsize=7.5, color=colour("exact"), in_layout=False)


def _line(axes: Any, line: Line, axis: Axis) -> None:
    if line.low is not None and line.high is not None:
        low, high = (np.maximum(edge, axis.low) if axis.log else edge for edge in (line.low, line.high))
        axes.fill_between(line.steps, low, high, color=colour(line.role), alpha=SOFT, linewidth=0)
    style = {"color": colour(line.role), "linewidth": line.width, "linestyle": DASHES[line.dash], "label": line.name}
    if len(line.steps) == 1:  # at the edge of the frame, perhaps
        style |= {"marker": "o", "linestyle": "", "clip_on": False}
    elif line.is_short:
        style |= {"marker": "."}
    axes.plot(line.steps, axis.shown(line.values), zorder=2.0 + 1.0 / (1.0 + line.width), **style)  # the thinner on top


def _points(axes: Any, points: Points) -> None:
    x, y = np.asarray(points.x, dtype=float), np.asarray(points.y, dtype=float)
    if points.across is not None:
        axes.hlines(y, x - points.across, x + points.across, color=colour("recent"), linewidth=3.0)
    if points.up is not None:
        axes.vlines(x, y - points.up, y + points.up, color=colour("recent"), linewidth=2.0)
    if points.count is not None:
        share = np.asarray(points.count) / np.sum(points.count)
        axes.scatter(x, y, s=15.0 + 200.0 * share, color=colour(points.role), label=points.name, zorder=3)
    elif points.dots:
        axes.plot(x, y, "o", color=colour(points.role), markersize=4.0 if len(x) <= 30 else 2.5, label=points.name)


def _axis(axes: Any, which: Literal["x", "y"], axis: Axis) -> None:
    from matplotlib.ticker import NullLocator

    if axis.log:
        axes.set(**{f"{which}scale": "log"})
        getattr(axes, f"{which}axis").set_minor_locator(NullLocator())
    axes.set(**{f"{which}lim": (axis.low, axis.high), f"{which}label": axis.title})
    if axis.ticks:
        # A name may hold a $, which matplotlib would read as mathematics.
        getattr(axes, f"{which}axis").set_ticks(list(axis.ticks), list(axis.ticks.values()), parse_math=False)
    if axis.names:
        axes.tick_params(axis=which, labelsize=min(9.0, 110.0 / len(axis.names)))
        axes.grid(visible=False, axis=which)
    if axis.zero:
        (axes.axvline if which == "x" else axes.axhline)(0.0, color="#999999", linewidth=0.8, zorder=1.8)


def _legend(axes: Any, chart: Chart) -> None:
    # Points leave no corner free: their names stand above.
    above = {"ncols": 2, "loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.1, "handletextpad": 0.1}
    if len(axes.get_legend_handles_labels()[0]) > 1:
        _as_text(axes.legend(**(above if chart.points else {})))


def _shared_legend(figure: Any, grid: Any, where: Literal["below", "beside"], title: str | None, free: Any = None) -> None:
    handles = {label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if free is not None:
        free.set_axis_off()
        _as_text(free.legend(handles.values(), handles.keys(), title=title, alignment="left", loc="center"))
        return
    widths = [HANDLE + CHARACTER * len(name) for name in handles]

    def fits(height: int) -> bool:
        columns = [max(widths[start : start + height]) for start in range(0, len(widths), height)]
        return len(columns) == 1 or sum(columns) <= float(figure.get_figwidth())

    columns = -(-len(widths) // next(height for height in range(1, len(widths) + 1) if fits(height)))
    place = {"loc": "outside right upper"} if where == "beside" else {"loc": "outside lower center", "ncols": columns}
    _as_text(figure.legend(handles.values(), handles.keys(), title=title, alignment="left", **place))


def _as_text(legend: Any) -> None:
    for text in legend.get_texts():
        text.set_parse_math(False)
