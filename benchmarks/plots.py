"""The plots of the benchmark page, from the results alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.runs.charts import STYLE, blank, colour

Results = Mapping[str, Any]
LEARNER, CERTIFIED, RECENT = colour("learner"), colour("certified"), colour("recent")
PEER, BARE = "#b5b5b5", "#4d4d4d"
STATE_VECTORS = 4
"""That a row is read beside, of its width: itself, means, stds, and sums of gradients."""


def draw(results: Mapping[str, Results], folder: Path) -> list[Path]:
    """Every plot whose section has results."""
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, plot in PLOTS.items():
        if name in results and _has_numbers(results[name]):
            path = folder / f"bench-{name.replace('_', '-')}.svg"
            # No date and no random names: the same numbers give the same file.
            with rc_context(STYLE | {"svg.hashsalt": name, "svg.fonttype": "none", "axes.axisbelow": True}):
                plot(results[name]).savefig(path, metadata={"Date": None})
            drawn.append(path)
    return drawn


def _has_numbers(results: Results) -> bool:
    return bool(results.get("cases") or results.get("µs") or results.get("events"))


def _colour(name: str) -> str:
    if name.endswith("in C") or name in ("X @ w", "copy of X"):
        return BARE
    is_peer = any(word in name for word in ("scikit-learn", "River", "VW", "JAX", "numpy", "bayesianbandits"))
    return PEER if is_peer else LEARNER


def _passes(results: Results) -> Any:
    """Times a row, a panel for each set of rows, the fastest on top."""
    cases = results["cases"]
    most = max(len(each["ns a row"]) for each in cases.values())
    columns = min(2, len(cases))
    rows = -(-len(cases) // columns)
    figure = blank(5.2 * columns, (0.19 * most + 0.9) * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (case, each) in zip(grid, cases.items(), strict=False):
        times = dict(sorted(each["ns a row"].items(), key=lambda item: -item[1]))
        axes.barh(list(times), list(times.values()), color=[_colour(name) for name in times], log=True)
        for place, value in enumerate(times.values()):
            axes.text(value, place, f" {value:,.0f}", va="center", fontsize=7)
        axes.set_title(case)
        axes.set_xlabel("ns a row")
        axes.tick_params(axis="y", labelsize=7.5, length=0)
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.25, y=0.01)
    for axes in grid[len(cases) :]:
        axes.remove()
    return figure


def _latencies(results: Results) -> Any:
    """The median as a bar, the 99th percentile as a mark."""
    names = list(results["µs"])[::-1]
    figure = blank(9.6, 0.24 * len(names) + 0.9)
    for axes, what in zip(figure.subplots(1, 2, sharey=True), ("predict", "update"), strict=True):
        middle = [results["µs"][name][f"{what} p50"] for name in names]
        high = [results["µs"][name][f"{what} p99"] for name in names]
        axes.barh(names, middle, color=[_colour("" if name.startswith("onlinevi") else name) for name in names], log=True)
        axes.plot(high, names, "|", color=CERTIFIED, markersize=8, markeredgewidth=1.6, label="99th percentile")
        axes.set_title(what)
        axes.set_xlabel("µs")
        axes.tick_params(axis="y", labelsize=7.5, length=0)
        axes.grid(axis="y", visible=False)
    axes.legend(loc="upper right", fontsize=7.5)
    return figure


def _growth(results: Results) -> Any:
    figure = blank(9.6, 6.0)
    grid = figure.subplots(2, 2).ravel()
    for axes, name, of in zip(grid, ("events", "features", "stored values"), ("a pass", "a row", "a row"), strict=False):
        sizes, seconds = _curve(results[name]["seconds"])
        axes.loglog(sizes, seconds, "o-", color=LEARNER, markersize=3)
        axes.loglog(sizes, seconds[-1] * sizes / sizes[-1], ":", color=BARE, label="linear")
        axes.set_title(f"{name}: exponent {results[name]['exponent']:.2f}")
        axes.set_xlabel(name)
        axes.set_ylabel(f"seconds, {of}")
        axes.legend(loc="upper left", fontsize=7.5)
    _mark_caches(grid[1], results)
    for cores, shade in (("1 core", LEARNER), ("2 cores", CERTIFIED)):
        if cores in results["rates"]:
            grid[3].plot(*_curve(results["rates"][cores]), "o-", color=shade, markersize=3, label=cores)
    sizes, _ = _curve(results["rates"]["1 core"])
    grid[3].plot(sizes, sizes, ":", color=BARE, label="one after the other")
    grid[3].set_title("rates pooled")
    grid[3].set_xlabel("rates")
    grid[3].set_ylabel("times one pass")
    grid[3].legend(fontsize=7.5)
    return figure


def fills(room: int) -> int:
    """The width at which a row and the state that it meets fill so many bytes."""
    return room // (8 * STATE_VECTORS)


def _mark_caches(axes: Any, results: Results) -> None:
    sizes, _ = _curve(results["features"]["seconds"])
    for level, room in results["caches"].items():
        width = fills(room)
        if sizes[0] < width < sizes[-1]:
            axes.axvline(width, color=RECENT, linewidth=1)
            axes.text(width, axes.get_ylim()[0], f" {level}", fontsize=7.5, va="bottom")


def _curve(points: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    pairs = sorted((float(size), value) for size, value in points.items())
    sizes, values = np.array(pairs).T
    return sizes, values


PLOTS: dict[str, Callable[[Results], Any]] = {
    "dense": _passes,
    "sparse_rows": _passes,
    "events": _latencies,
    "growth": _growth,
}
