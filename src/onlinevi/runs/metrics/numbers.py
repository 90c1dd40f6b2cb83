"""Metrics of numbers, counts and quantiles: how far off they were, and how often intervals held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners import Forecast
from onlinevi.losses import Target
from onlinevi.runs.metrics.baselines import NumberBaselines
from onlinevi.runs.metrics.scores import LARGEST, WHOSE, WINDOW, Measured, Scores, mean

HALF = 0.5
"""Of a count, which baselines add to a rate that would be 0: what comes then would be impossible."""
LABEL, ERRORS, HELD, WIDTH, BOUNDED, DEVIANCE = 0, slice(1, 4), 4, 5, 6, slice(7, 10)
SHIFTED, SPREAD = -5, -4
"""Among the totals: Σ (label − the first one), and Σ (label − mean)²; behind them labels held, widths, and their number."""


class NumberScores(Scores):
    """Errors are labels less what was said of them; of quantiles a label is held that lies not above its quantile."""

    extras = ("shifted", "spread", "held", "width", "bounded")

    def __init__(
        self, kind: Target, delay: int = 0, window: int = WINDOW, level: float = 0.5, lead: str | None = None
    ) -> None:
        self.kind, self.level, self.first = kind, level, 0.0
        """The first label: others are told from it, so that sums of large ones keep their digits."""
        who = [f"{what} of {who}" for what in ("error", "deviance")[: 1 + (kind == "counts")] for who in WHOSE]
        self.said = ("label", *who[:3], "held", "width", "bounded", *who[3:])  # type: ignore[misc]
        own = {"numbers": ("rmse", "mae"), "counts": ("deviance", "mae", "rmse"), "quantile": ("pinball",)}[kind]
        self.summed, self.shown = own, own  # type: ignore[misc]
        self.lead = lead if lead in own else own[0]
        super().__init__(window)
        self.said_at_first = len(self.said)
        self.baselines = NumberBaselines(delay, level if kind == "quantile" else None, HALF if kind == "counts" else 0.0)

    def _said(self, y: Vector, forecast: Forecast, loss: Vector) -> Vector:
        labels, own = (np.clip(part, -LARGEST, LARGEST) for part in (y, forecast.mean))
        self.first = self.first if self.count else float(labels[0])
        said = np.column_stack([own, *self.baselines.say(labels, own)])
        if self.kind == "quantile":
            held, width = labels <= own, np.full(len(y), np.inf)
        else:
            held, width = (forecast.lower <= y) & (y <= forecast.upper), forecast.upper - forecast.lower
        bounded = np.isfinite(width)
        table = [labels - self.first, labels[:, None] - said, held, np.where(bounded, width, 0.0), bounded]
        if self.kind == "counts":
            table.append(poisson_deviance(labels[:, None], np.where(said > 0.0, said, HALF)))
        return np.column_stack(table)

    def _terms(self, said: Vector) -> Vector:
        errors = said[:, ERRORS]
        parts = {"mae": np.abs(errors), "rmse": np.square(errors), "deviance": said[:, DEVIANCE]}
        if self.kind == "quantile":
            parts["pinball"] = np.maximum(self.level * errors, (self.level - 1.0) * errors)
        return np.column_stack([parts[name] for name in self.summed])

    def _extras(self, said: Vector) -> Vector:
        """What a label adds to the spread about the mean is, by Welford's formula, its square gap to the mean before it."""
        before = np.cumsum(np.concatenate([[self.totals[SHIFTED]], said[:, LABEL]]))[:-1]
        count = self.totals[0] + np.arange(len(said))
        gap = said[:, LABEL] - before / np.maximum(count, 1.0)
        return np.column_stack([said[:, LABEL], count / (count + 1.0) * np.square(gap), said[:, HELD : BOUNDED + 1]])

    def _measured(self, events: int, sums: Vector, recent: Vector | None) -> Measured:
        if recent is None:
            held, spread = self.totals[SPREAD + 1 :], self.totals[SPREAD]
        else:
            held = recent[:, HELD : BOUNDED + 1].sum(axis=0)
            spread = np.square(recent[:, LABEL] - recent[:, LABEL].mean()).sum() if events else 0.0
        found = []
        for who in range(len(WHOSE)):
            totals = dict(zip(self.summed, sums[who :: len(WHOSE)], strict=False))
            values = {name: mean(total, events) for name, total in totals.items()}
            if self.kind == "numbers":
                values = {"rmse": values["rmse"], "r2": 1.0 - mean(totals["rmse"], spread), "mae": values["mae"]}
            values |= {"rmse": float(np.sqrt(values["rmse"]))} if "rmse" in values else {}
            if who == 0:
                values["coverage"] = mean(held[0], events)
                values |= {} if self.kind == "quantile" else {"width": mean(held[1], held[2])}
            found.append(values)
        return Measured(events, *found)

    def _shown(self, name: str, sums: Vector) -> Vector:
        means = super()._shown(name, sums)
        return np.sqrt(means) if name == "rmse" else means

    def last_rows(self) -> tuple[Vector, Vector]:
        """The labels of the last rows, and what the learner said of each."""
        self.settle()
        recent = self.recent.astype(float)
        labels = self.first + recent[:, LABEL]
        return labels, labels - recent[:, 1]

    def _add_extras(self, other: NumberScores) -> None:
        """Spreads about two means are one about the mean of all (Chan, Golub and LeVeque)."""
        if not other.count:
            return
        self.baselines.add_up(other.baselines)
        self.first = self.first if self.count else other.first
        moved = other.count * (other.first - self.first)
        if self.count:
            gap = self.totals[SHIFTED] / self.count - (other.totals[SHIFTED] + moved) / other.count
            self.totals[SPREAD] += gap * gap * self.count * other.count / (self.count + other.count)
        self.totals[SHIFTED] += moved

    def _own(self) -> dict[str, Any]:
        return {"first": self.first, "baselines": self.baselines.to_json()}

    def _restore_own(self, saved: Mapping[str, Any]) -> None:
        self.first = saved["first"]
        self.baselines.restore(saved["baselines"])


def poisson_deviance(counts: Vector, rates: Vector) -> Vector:
    """2·(y·log(y/rate) − y + rate), 0 where they are the same."""
    logs = np.where(counts > 0.0, counts, 1.0) / rates
    return np.asarray(2.0 * (np.where(counts > 0.0, counts * np.log(logs), 0.0) - counts + rates))
