"""The panels of a figure, each on axes that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.guarantees import Certificate, Hindsight
from onlinevi.learners import Trace, reliability
from onlinevi.runs.charts.style import CERTIFIED, LEARNER, RECENT, REFERENCE, first_step
from onlinevi.runs.charts.ticks import log_ticks, short

MOST_WEIGHTS = 20
LAST = 100
"""How many of the last intervals are drawn."""


def logarithmic(axes: Any, which: str, values: Any) -> None:
    """A logarithmic axis over these values, which are above 0."""
    from matplotlib.ticker import NullLocator

    room = (max(values) / min(values)) ** 0.04 if max(values) > min(values) else 1.5
    low, high = min(values) / room, max(values) * room
    ticks = log_ticks(low, high)
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis = getattr(axes, f"{which}axis")
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(ticks, [short(tick) for tick in ticks])


def title(axes: Any, text: str, x: str, y: str) -> None:
    axes.set_title(text, loc="left", fontweight="bold")
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def loss(axes: Any, *, trace: Trace, best: Hindsight | None) -> None:
    """The average loss so far, and the best in hindsight with its gap."""
    first = min(first_step(trace.steps[-1]), trace.steps[-1])
    late = trace.steps >= first
    axes.plot(trace.steps[late], trace.average_loss[late], color=LEARNER, linewidth=2.0, label="average so far")
    if best is not None:
        axes.axhline(best.value, color=REFERENCE, linewidth=1.2, label="best in hindsight")
        axes.axhspan(best.lower_bound, best.value, color=REFERENCE, alpha=0.25, linewidth=0)
        axes.legend()
    logarithmic(axes, "x", trace.steps[late])
    title(axes, "Loss", "row", "average loss")


def regret(axes: Any, *, certificates: Sequence[Certificate], trace: Trace, best: Hindsight | None) -> None:
    """What was certain of the regret at each moment, a row; and what it was in the end."""
    taken = sorted(certificates, key=lambda each: each.count)
    counts = np.array([each.count for each in taken])
    certain = np.array([each.regret for each in taken]) / counts
    axes.plot(counts, certain, color=CERTIFIED, marker="." if len(taken) < 10 else None, linewidth=2.0, label="certified")
    shown = certain.tolist()
    if best is not None:
        shown.append(trace.state.average_loss - best.value)
        axes.plot([trace.state.count], shown[-1:], "o", color=LEARNER, label="observed")
        axes.legend()
    logarithmic(axes, "x", [*counts, trace.state.count])
    if min(shown) > 0.0:
        logarithmic(axes, "y", shown)
    title(axes, "Regret", "row", "regret a row")


def weights(axes: Any, *, mean: Vector, std: Vector, names: Sequence[str]) -> None:
    """Means with ±2 std, those furthest from 0 in stds; for points, the largest."""
    score = np.abs(mean) / np.where(std > 0.0, std, 1.0)
    order = np.argsort(-score, kind="stable")[:MOST_WEIGHTS][::-1]
    places = np.arange(len(order))
    axes.axvline(0.0, color="#999999", linewidth=0.8)
    axes.hlines(places, (mean - 2.0 * std)[order], (mean + 2.0 * std)[order], color=RECENT, linewidth=3.0)
    axes.plot(mean[order], places, "o", color=LEARNER, markersize=4)
    size = min(9.0, 110.0 / len(order))
    # A name may hold a $, which matplotlib would read as mathematics.
    axes.set_yticks(places, [names[k] for k in order], fontsize=size, parse_math=False)
    axes.grid(visible=False, axis="y")
    few = f" (the surest {len(order)} of {len(mean)})" if len(order) < len(mean) else ""
    title(axes, "Weights", f"mean ± 2 std{few}", "")


def reliable(axes: Any, *, probability: Vector, y: Vector) -> None:
    """What was said against what happened; a bar is how far chance alone would take a bin."""
    bins = reliability(probability, y)
    chance = 2.0 * np.sqrt(bins.predicted * (1.0 - bins.predicted) / bins.count)
    axes.plot([0, 1], [0, 1], "--", color=REFERENCE, linewidth=1.0)
    axes.errorbar(bins.predicted, bins.observed, chance, fmt="none", color=RECENT)
    axes.scatter(bins.predicted, bins.observed, s=15.0 + 200.0 * bins.count / bins.count.sum(), color=LEARNER, zorder=3)
    axes.set_ylim(-0.05, 1.05)
    title(axes, "Probabilities", "probability said", "part that happened")


def intervals(axes: Any, *, trace: Trace, y: Vector) -> None:
    """The last intervals, and the labels that came."""
    own = slice(max(1, len(y) - LAST), None)  # the first event has no interval
    steps, low, high, labels = (part[own] for part in (trace.steps, trace.lower, trace.upper, y))
    held = (low <= labels) & (labels <= high)
    axes.fill_between(steps, low, high, color=RECENT, alpha=0.6, linewidth=0, step="mid")
    axes.plot(steps[held], labels[held], ".", color=LEARNER, markersize=4, label="inside")
    axes.plot(steps[~held], labels[~held], ".", color=CERTIFIED, markersize=5, label="outside")
    axes.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.6, 1.0), borderaxespad=0.1, handletextpad=0.1)
    title(axes, "Intervals", "row", "label")


def coverage(axes: Any, *, trace: Trace, y: Vector) -> None:
    """How often labels lay in their intervals so far, against how often they should."""
    assert trace.state.calibrated is not None
    held = ((trace.lower <= y) & (y <= trace.upper))[1:]
    running = np.cumsum(held) / np.arange(1.0, len(held) + 1.0)
    late = len(running) // 20
    axes.plot(trace.steps[1:][late:], running[late:], color=LEARNER, linewidth=2.0, label="so far")
    axes.axhline(trace.state.calibrated.target, color=REFERENCE, linestyle="--", linewidth=1.0, label="asked for")
    axes.legend()
    title(axes, "Coverage", "row", "part in its interval")
