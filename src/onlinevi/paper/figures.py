"""The paper's Figure 1: six panels, A_t against t for each rule, and the best in hindsight. Two sheets go with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onlinevi.data import replace_figure
from onlinevi.paper.claims import group
from onlinevi.paper.experiments import RULES, Outcome
from onlinevi.paper.panels import PANELS
from onlinevi.paper.sheets import ExactPosterior, Guarantee
from onlinevi.runs.charts import STYLE, Axis, Chart, Line, figure_of, first_step, short, stacked_widths

WIDTHS = dict(zip(RULES, reversed(stacked_widths(len(RULES))), strict=True))
PANEL = (3.4, 2.95)


def draw(runs: Sequence[Outcome], exact: ExactPosterior | None, guarantees: Sequence[Guarantee], folder: Path) -> list[Path]:
    """As PNG and PDF: the figure, what was guaranteed, and for the toy data how far the rules are from the exact posterior."""
    from matplotlib import rc_context

    present = [name for name in PANELS if group(runs, name)]
    panels = [_panel(name, group(runs, name), exact if name == "toy" else None) for name in present]
    figures = {"figure": figure_of(panels, panel=PANEL, legend="below")}
    if guarantees:
        sheet = [_guaranteed(name, [own for own in guarantees if own.data == name]) for name in present]
        figures["guarantees"] = figure_of([chart for chart in sheet if chart.lines], panel=PANEL, legend="below")
    if exact is not None:
        figures["posterior"] = figure_of([_divergences(exact)], panel=(4.6, 3.0))
    with rc_context(STYLE):
        return [path for name, figure in figures.items() for path in _save(figure, folder / name)]


def _save(figure: Any, stem: Path) -> list[Path]:
    paths = [stem.with_suffix(".png"), stem.with_suffix(".pdf")]
    for path in paths:
        metadata = {"Creator": "onlinevi"} if path.suffix == ".pdf" else None
        replace_figure(path, figure, dpi=200, metadata=metadata)
    return paths


def _panel(name: str, runs: Sequence[Outcome], exact: ExactPosterior | None) -> Chart:
    panel, T, lines = PANELS[name], runs[0].T, []
    steps = np.array(runs[0].steps)
    late = steps >= first_step(T)
    for rule in (rule for rule in RULES if group(runs, name, rule)):
        curves = np.array([run.curve for run in group(runs, name, rule)])[:, late]
        mean, spread = curves.mean(axis=0), curves.std(axis=0)
        band = {"low": mean - spread, "high": mean + spread}
        lines.append(Line(rule, rule.lower(), steps[late], mean, width=WIDTHS[rule], **band))
    if exact is not None:  # at the same steps
        lines.append(Line("EWA (exact)", "exact", steps[late], np.array(exact.curve)[late], dash="dash", width=1.4))
    value, gap = float(np.mean([run.hindsight for run in runs])), max((run.hindsight_gap or 0.0) for run in runs)
    level = np.full(2, value)
    lines.append(Line("best in hindsight", "reference", [first_step(T), T], level, width=1.2, low=level - gap, high=level))
    if panel.network:
        constant = np.full(2, np.mean([run.trivial for run in runs]))
        lines.append(Line("best constant", "reference", [first_step(T), T], constant, dash="dot", width=1.2))
    y = Axis.around("average loss $A_t$", np.concatenate([line.values for line in lines]), log_if_positive=1.0)
    how = "best found" if panel.network else f"gap ≤ {short(float(f'{gap:.0e}'))}"
    note = f"T = {T:,}, d = {runs[0].d}; hindsight {value:.4g}, {how}"
    return Chart(name, panel.title, Axis.rows(first_step(T), T, log=True, title="t"), y, tuple(lines), note=note)


def _guaranteed(name: str, guarantees: Sequence[Guarantee]) -> Chart:
    lines = []
    for own in guarantees:
        role = own.rule.lower()
        lines.append(Line(f"{own.rule}, regret", role, own.steps, own.regret, width=1.4))
        lines.append(Line(f"{own.rule}, certificate", role, own.steps, own.certificate, dash="dash", width=1.4))
        if own.theorem is not None:
            lines.append(Line(f"{own.rule}, theorem", role, own.steps, own.theorem, dash="dot", width=1.4))
    return _log_log(name, PANELS[name].title, "regret a step", lines)


def _divergences(exact: ExactPosterior) -> Chart:
    lines = [Line(rule, rule.lower(), exact.divergence_steps, values, width=1.4) for rule, values in exact.divergence.items()]
    return _log_log("posterior", "Toy: how far the rules are from EWA", "KL(q ‖ exact tempered posterior)", lines)


def _log_log(name: str, title: str, y: str, lines: Sequence[Line]) -> Chart:
    values = [value for line in lines for value in line.values]
    last = max((line.steps[-1] for line in lines), default=1.0)
    return Chart(
        name, title, Axis.rows(1.0, last, log=True, title="t"), Axis.around(y, values, log_if_positive=0.0), tuple(lines)
    )
