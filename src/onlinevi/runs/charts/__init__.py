"""Charts: what they show as data, drawn by matplotlib or by Plotly in one style.

``of_results.py`` makes them from a results document, ``with_matplotlib.py`` and ``with_plotly.py`` draw them.
"""

from onlinevi.runs.charts.chart import Axis, Chart, Line, Points
from onlinevi.runs.charts.figure import plot, plot_comparison
from onlinevi.runs.charts.style import STYLE, colour, first_step, number, short, stacked_widths, uncertain
from onlinevi.runs.charts.with_matplotlib import blank, figure_of

__all__ = ["STYLE", "Axis", "Chart", "Line", "Points", "blank", "colour", "figure_of", "first_step", "plot", "plot_comparison"]
__all__ += ["number", "short", "stacked_widths", "uncertain"]
