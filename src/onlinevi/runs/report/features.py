"""Which features of a posterior are worth a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinevi.runs.report.results import PosteriorPath

MOST = 8


@dataclass(frozen=True)
class Chosen:
    """A feature's place, and why it is shown."""

    index: int
    why: str


def chosen(path: PosteriorPath) -> list[Chosen]:
    """The surest features, whose mean is the most stds from 0, and those whose mean moved the most, in turn."""
    if not path.steps:
        return []
    mean, std = np.array(path.mean, dtype=float), np.array(path.std, dtype=float)
    # A std of 0 is a point: then the size of the mean is all there is.
    points = not (std[-1] > 0.0).any()
    sure = np.abs(mean[-1]) / (1.0 if points else np.maximum(std[-1], 1e-300))
    moved = mean.max(axis=0) - mean.min(axis=0)
    orders = [np.argsort(-np.nan_to_num(score), kind="stable").tolist() for score in (sure, moved)]
    reasons = ("largest" if points else "surest", "moved most")
    found: dict[int, str] = {}
    while len(found) < min(MOST, len(path.names)):
        for order, why in zip(orders, reasons, strict=True):
            found.setdefault(next(index for index in order if index not in found), why)
            if len(found) == min(MOST, len(path.names)):
                break
    return [Chosen(index, why) for index, why in found.items()]
