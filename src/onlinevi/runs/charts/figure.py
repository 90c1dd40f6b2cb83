"""One figure of one pass: the panels that its trace, and what else is given, can fill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from onlinevi.guarantees import Certificate, Hindsight
from onlinevi.learners import Trace
from onlinevi.runs.charts import panels
from onlinevi.runs.charts.style import STYLE, blank


def plot(
    trace: Trace,
    *,
    hindsight: Hindsight | None = None,
    certificates: Certificate | Sequence[Certificate] = (),
    names: Sequence[str] | None = None,
    y: Any = None,
) -> Any:
    """Draw the average loss and the weights after the pass, as a matplotlib figure; ``figure.savefig("run.png")`` keeps it.

    ``hindsight`` adds the best line. ``certificates``, taken as the run went on, add what was certain of the regret.
    ``names`` are those of the features. For a trace of ``auto``, the labels ``y`` show whether its probabilities or its
    intervals were right.

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> trace = ovi.learn(X, np.sign(X @ [1.0, -1.0, 0.0]), loss=ovi.Hinge(), rule=ovi.NGVI())
    >>> figure = ovi.plot(trace, certificates=ovi.certificate(trace), names=["a", "b", "c"])
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Loss', 'Regret', 'Weights']
    """
    taken = [certificates] if isinstance(certificates, Certificate) else list(certificates)
    drawers: list[Callable[[Any], None]] = []
    if len(trace.steps):  # nothing was recorded with record="none"
        drawers.append(partial(panels.loss, trace=trace, best=hindsight))
    if taken:
        drawers.append(partial(panels.regret, certificates=taken, trace=trace, best=hindsight))
    drawers.append(partial(panels.weights, mean=trace.mean, std=trace.std, names=_named(trace, names)))
    drawers += _calibration(trace, y)

    figure = blank(1.0, 1.0)
    from matplotlib import rc_context

    with rc_context(STYLE):
        columns = 3 if len(drawers) == 3 else min(len(drawers), 2)
        rows = -(-len(drawers) // columns)
        figure.set_size_inches(4.4 * columns, 3.1 * rows)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, draw in zip(grid, drawers, strict=False):
            draw(axes)
        for axes in grid[len(drawers) :]:
            axes.remove()
    return figure


def _named(trace: Trace, names: Sequence[str] | None) -> list[str]:
    dim = len(trace.mean)
    inputs = getattr(trace.learner, "inputs", None)
    intercept = ["intercept"] if inputs is not None and inputs.intercept else []
    if names is None:
        return intercept + [f"feature {k}" for k in range(dim - len(intercept))]
    if len(names) == dim:
        return [str(name) for name in names]
    if len(names) + len(intercept) == dim:
        return intercept + [str(name) for name in names]
    raise ValueError(f"{len(names)} names for {dim - len(intercept)} features: needs one a feature")


def _calibration(trace: Trace, y: Any) -> list[Callable[[Any], None]]:
    if y is None:
        return []
    if trace.probability is None and not len(trace.lower):
        raise ValueError("y shows whether probabilities and intervals were right: needs a trace of auto; leave it out")
    labels = np.asarray(y, dtype=float)
    if labels.shape != trace.steps.shape:
        raise ValueError(
            f'{labels.shape} labels for {len(trace.steps)} recorded events: needs those of this pass, and record="all"'
        )
    if trace.probability is not None:
        return [partial(panels.reliable, probability=trace.probability, y=labels)]
    return [partial(panels.intervals, trace=trace, y=labels), partial(panels.coverage, trace=trace, y=labels)]
