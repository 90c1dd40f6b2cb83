"""The paper's figure: six panels, A_t against t for each rule, and the best in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinevi.paper.claims import group, mean_curve
from onlinevi.paper.panels import PANELS
from onlinevi.paper.runs import RULES, Run
from onlinevi.runs import STYLE, blank, first_step
from onlinevi.runs.charts import style

if TYPE_CHECKING:
    from onlinevi.paper.exact import ExactPosterior
    from onlinevi.paper.guarantees import Guarantee

COLOURS = {name: style.RULES[name.lower()] for name in ("OGA", "OGA-EL", "SVA", "SVB", "NGVI")}
WIDTHS = dict(zip(COLOURS, (3.2, 2.5, 1.8, 1.4, 1.4), strict=True))
"""The first drawn are the widest: where rules agree, all stay visible."""
EXACT = {"color": "#555555", "linestyle": (0, (4, 2)), "label": "EWA (exact)"}


def draw(runs: Sequence[Run], exact: ExactPosterior | None, guarantees: Sequence[Guarantee], folder: Path) -> list[Path]:
    """As PNG and PDF: the figure, what was guaranteed, and for the toy data how far the rules are from the exact posterior."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        paths = _save(_panels(runs, exact), folder / "figure")
        paths += _save(_guarantees(guarantees), folder / "guarantees") if guarantees else []
        return paths + (_save(_divergences(exact), folder / "posterior") if exact is not None else [])


def _save(figure: Any, stem: Path) -> list[Path]:
    paths = [stem.with_suffix(".png"), stem.with_suffix(".pdf")]
    for path in paths:
        figure.savefig(path, dpi=200, metadata={"Creator": "onlinevi"} if path.suffix == ".pdf" else None)
    return paths


def _panels(runs: Sequence[Run], exact: ExactPosterior | None) -> Any:
    present = [name for name in PANELS if group(runs, name)]
    figure, grid = _grid(len(present))
    for axes, name in zip(grid, present, strict=False):
        _panel(axes, name, group(runs, name), exact if name == "toy" else None)
    _legend(figure, grid)
    return figure


def _grid(count: int) -> tuple[Any, Any]:
    columns = min(3, count)
    rows = -(-count // columns)
    figure = blank(3.4 * columns, 2.6 * rows + 0.45)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.set_axis_off()
    return figure, grid[:count]


def _legend(figure: Any, grid: Any) -> None:
    handles = {label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles) if len(handles) <= 7 else 4)


def _guarantees(guarantees: Sequence[Guarantee]) -> Any:
    present = list(dict.fromkeys(each.data for each in guarantees))
    figure, grid = _grid(len(present))
    for axes, name in zip(grid, present, strict=True):
        for each in (each for each in guarantees if each.data == name):
            steps, colour = np.array(each.steps), COLOURS[each.rule]
            kinds = (("regret", each.regret, "-"), ("certificate", each.certificate, "--"), ("theorem", each.theorem, ":"))
            for kind, values, line in kinds:
                if values is not None:
                    shown = np.where(np.array(values) > 0.0, values, np.nan)
                    axes.plot(steps, shown, line, color=colour, label=f"{each.rule}, {kind}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(PANELS[name].title, loc="left", fontweight="bold")
        axes.set_xlabel("t")
        axes.set_ylabel("a step")
    _legend(figure, grid)
    return figure


def _panel(axes: Any, name: str, runs: Sequence[Run], exact: ExactPosterior | None) -> None:
    panel, first, low, high = PANELS[name], first_step(runs[0].T), np.inf, -np.inf
    for rule in (rule for rule in RULES if group(runs, name, rule)):
        own = group(runs, name, rule)
        steps, mean = mean_curve(own)
        late = steps >= first
        spread = np.std([run.curve for run in own], axis=0)
        axes.plot(steps[late], mean[late], color=COLOURS[rule], label=rule, linewidth=WIDTHS[rule])
        axes.fill_between(
            steps[late], (mean - spread)[late], (mean + spread)[late], color=COLOURS[rule], alpha=0.10, linewidth=0
        )
        low, high = min(low, mean[late].min()), max(high, mean[late].max())
    if exact is not None:
        late = np.asarray(exact.steps) >= first
        axes.plot(np.asarray(exact.steps)[late], np.asarray(exact.curve)[late], **EXACT)
    line = float(np.mean([run.hindsight for run in runs]))
    gap = max((run.hindsight_gap or 0.0) for run in runs)
    axes.axhline(line, color="black", linewidth=1.2, label="best in hindsight")
    if gap > 0.0:
        axes.axhspan(line - gap, line, color="black", alpha=0.25, linewidth=0)
    note = f"hindsight {line:.4g}, " + ("best found" if panel.network else f"gap ≤ {_short(gap)}")
    axes.set_title(f"{panel.title}\n", loc="left", fontweight="bold")
    subtitle = f"T = {runs[0].T:,}, d = {runs[0].d}; {note}"
    axes.text(0.0, 1.03, subtitle, transform=axes.transAxes, fontsize=7.5, color="#444444", in_layout=False)
    axes.set_xscale("log")
    axes.set_xlim(first, runs[0].T)
    if high / max(line, 1e-12) > 8.0:  # a line far below the curves reads on a logarithmic axis only
        axes.set_yscale("log")
        axes.set_ylim(0.7 * min(line, low), 1.2 * high)
    else:
        low = min(line, low)
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    axes.set_xlabel("t")
    axes.set_ylabel("average loss $A_t$")


def _short(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-")


def _divergences(exact: ExactPosterior) -> Any:
    figure = blank(4.6, 3.0)
    axes = figure.subplots()
    for rule, values in exact.divergence.items():
        axes.plot(exact.divergence_steps, values, color=COLOURS[rule], label=rule, marker=".", markersize=3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("t")
    axes.set_ylabel("KL(q ‖ exact tempered posterior)")
    axes.set_title("Toy: how far the variational rules are from EWA", loc="left", fontweight="bold", fontsize=9)
    axes.legend(ncols=2)
    return figure
