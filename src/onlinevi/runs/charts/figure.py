"""Figures of passes: one pass with all that its trace can show, and several learners on the same rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onlinevi.engine import Vector, __version__
from onlinevi.guarantees import Certificate, Hindsight
from onlinevi.learners import Trace, reliability
from onlinevi.runs.charts.chart import Axis, Chart, Line
from onlinevi.runs.charts.of_results import FIGURE, PassResults
from onlinevi.runs.charts.style import first_step, rule_roles, stacked_widths
from onlinevi.runs.charts.with_matplotlib import figure_of
from onlinevi.runs.report import results as part

LAST = 100
"""How many of the last intervals are drawn."""
IN_MEMORY = part.Head(
    __version__, command="", started="", source=part.Source("memory"), task=part.Task("numbers", "label", "")
)
"""The head of results that no command and no file have made."""


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
    ``names`` are those of the features. The labels ``y`` show whether the probabilities or the intervals that the learner
    gave were right.

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> trace = ovi.learn(X, np.sign(X @ [1.0, -1.0, 0.0]), loss=ovi.Hinge(), rule=ovi.NGVI())
    >>> figure = ovi.plot(trace, certificates=ovi.certificate(trace), names=["a", "b", "c"])
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Loss', 'Regret', 'Weights']
    """
    taken = [certificates] if isinstance(certificates, Certificate) else list(certificates)
    inputs = getattr(trace.learner, "inputs", None)
    named = _named(len(trace.mean), names, intercept=inputs is not None and inputs.intercept)
    calibration, intervals = _calibration(trace, y)
    results = PassResults(
        IN_MEMORY,
        trace=part.LossCurve(trace.steps.tolist(), trace.loss.tolist(), trace.average_loss.tolist()),
        hindsight=part.Best(hindsight.value, hindsight.gap) if hindsight is not None else None,
        regret=_regret(trace, taken, hindsight) if taken else None,
        posterior=part.PosteriorPath(named, [float(trace.state.count)], [trace.mean.tolist()], [trace.std.tolist()]),
        calibration=calibration,
        intervals=intervals,
    )
    return figure_of([chart for make in FIGURE if (chart := make(results)) is not None])


def _regret(trace: Trace, certificates: Sequence[Certificate], best: Hindsight | None) -> part.RegretCurve:
    """What was certain at each moment, a row; and what it was in the end."""
    certain = {float(each.count): each.regret / each.count for each in certificates}
    end = {float(trace.state.count): trace.state.average_loss - best.value} if best is not None else {}
    steps = sorted({*certain, *end})
    observed = [end.get(step, math.nan) for step in steps] if end else None
    return part.RegretCurve(steps, [certain.get(step, math.nan) for step in steps], observed)


def _named(dim: int, names: Sequence[str] | None, *, intercept: bool) -> list[str]:
    first = ["intercept"] if intercept else []
    if names is None:
        return first + [f"feature {k}" for k in range(dim - len(first))]
    if len(names) == dim:
        return [str(name) for name in names]
    if len(names) + len(first) == dim:
        return first + [str(name) for name in names]
    raise ValueError(f"{len(names)} names for {dim - len(first)} features: needs one a feature")


def _calibration(trace: Trace, y: Any) -> tuple[Any, Any]:
    """Bins of probabilities for classes; for numbers and counts the coverage so far, and the last intervals."""
    if y is None:
        return None, None
    if trace.probability is None and not hasattr(trace.learner, "coverage"):
        raise ValueError("y shows whether probabilities or intervals were right, and this learner gives neither: leave y out")
    labels = np.asarray(y, dtype=float)
    if labels.shape != trace.steps.shape:
        raise ValueError(
            f'{labels.shape} labels for {len(trace.steps)} recorded events: needs those of this pass, and record="all"'
        )
    if trace.probability is not None:
        bins = reliability(trace.probability, labels)
        return part.ReliabilityBins(bins.predicted.tolist(), bins.observed.tolist(), bins.count.tolist()), None
    columns = [column[1:] for column in (trace.steps, trace.lower, trace.upper, labels)]  # the first event has no interval
    steps, lower, upper, labels = columns
    held = np.cumsum((lower <= labels) & (labels <= upper)) / np.arange(1.0, len(labels) + 1.0)
    curve = part.CoverageCurve(steps.tolist(), held.tolist(), trace.learner.coverage)
    return curve, tuple(column[-LAST:] for column in columns)


def plot_comparison(curves: Mapping[str, tuple[Vector, Vector]]) -> Any:
    """Draw of each learner the average loss up to each step, in the order of the legend; a matplotlib figure.

    >>> import numpy as np
    >>> steps = np.arange(1.0, 101.0)
    >>> figure = plot_comparison({"svb": (steps, 1.0 / steps), "my own": (steps, 2.0 / steps)})
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['svb', 'my own']
    """
    last = max(steps[-1] for steps, _ in curves.values())
    first, lines = first_step(last), []
    roles, widths = rule_roles(list(curves)), stacked_widths(len(curves))
    for (name, (steps, average)), role, width in zip(curves.items(), roles, widths, strict=True):
        late = (steps >= first) & np.isfinite(average)
        lines.append(Line(name, role, steps[late], average[late], width=width))
    values = np.concatenate([line.values for line in lines])
    x, y = Axis.rows(first, last, log=True), Axis.around("average loss", values, log_if_positive=1.0)
    chart = Chart("loss", "Loss", x, y, tuple(lines))
    return figure_of([chart], panel=(6.4, 3.6), legend="beside", legend_title="lowest first")
