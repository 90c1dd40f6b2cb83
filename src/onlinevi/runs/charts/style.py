"""How figures look, here and in the paper's."""

from __future__ import annotations

from typing import Any

STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}
LEARNER, RECENT, REFERENCE, CERTIFIED = "#1f77b4", "#a9cbe6", "black", "#d9730d"
"""One colour a role, as in a report: what the learner did, the best there is, what is certain."""

RULES = {
    "auto": "black",
    "oga": "#e6b400",
    "oga-el": "#d62728",
    "sva": "#1f77b4",
    "svb": "#8e44ad",
    "ngvi": "#2ca02c",
    "implicit": "#d9730d",
}
"""One colour a rule; yellow, red, blue, purple and green are the paper's."""


def first_step(last: float) -> int:
    """Where an axis begins: earlier averages are of a handful of events."""
    return max(10, int(last) // 1000)


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
