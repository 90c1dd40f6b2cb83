"""The average losses of several learners on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.runs.charts.panels import logarithmic, title
from onlinevi.runs.charts.style import RULES, STYLE, blank, first_step

FAR = 8.0
"""A highest loss so many times the lowest asks for a logarithmic axis."""


def plot_comparison(curves: Mapping[str, tuple[Vector, Vector]]) -> Any:
    """Of each learner the steps and the average loss up to each, in the order of the legend; a matplotlib figure.

    >>> import numpy as np
    >>> steps = np.arange(1.0, 101.0)
    >>> figure = plot_comparison({"svb": (steps, 1.0 / steps), "my own": (steps, 2.0 / steps)})
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['svb', 'my own']
    """
    figure = blank(6.4, 3.6)
    from matplotlib import rc_context

    last = max(steps[-1] for steps, _ in curves.values())
    first = min(first_step(last), last)
    with rc_context(STYLE):
        axes = figure.subplots()
        shown, lines = [], len(curves)
        for place, (name, (steps, average)) in enumerate(curves.items()):
            late = (steps >= first) & np.isfinite(average)
            # The best lies on top and is the thinnest: where rules agree, all stay visible.
            style = {"color": RULES.get(name), "linewidth": 1.2 + 0.25 * place, "zorder": 2 + lines - place}
            axes.plot(steps[late], average[late], label=name, **style)
            shown += average[late].tolist()
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title="lowest first", alignment="left")
        logarithmic(axes, "x", [first, last])
        if shown and min(shown) > 0.0 and max(shown) > FAR * min(shown):
            logarithmic(axes, "y", shown)
        title(axes, "Loss", "row", "average loss")
    return figure
