"""What is told of each class: how often its sets held it, how large they were, and whether its probabilities were right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onlinevi.engine import Vector
from onlinevi.runs.metrics.scores import BINS
from onlinevi.runs.metrics.thinned import array_of, text_of

SETS, HELD, SIZES = range(3)
"""Of the rows of a class: how many had sets, how many of these held it, and how many classes they had in all."""
PREDICTED, HAPPENED, COUNT = range(3)
"""Of each bin of probabilities: their sum, how often the class came, how many rows there were."""


class ByClass:
    """Sums with a row a class; any split of the rows gives the same bits."""

    def __init__(self) -> None:
        self.sets = np.zeros((2, 3), dtype=np.int64)
        self.bins = np.zeros((2, 3, BINS))
        """Of the probability of the class against the rest."""

    def widen(self, classes: int) -> None:
        """Make room for classes that join, whose probability was 0 in all rows so far."""
        known, count = len(self.sets), self.bins[0, COUNT].sum()
        if classes > known:
            self.sets = np.pad(self.sets, ((0, classes - known), (0, 0)))
            self.bins = np.pad(self.bins, ((0, classes - known), (0, 0), (0, 0)))
            self.bins[known:, COUNT, 0] = count

    def add(self, codes: Any, probability: Vector, held: Any, size: Any) -> None:
        """Count rows of these classes, whose sets held them or not and had so many classes; −1 where a row has none."""
        there = size >= 0
        for place, values in ((SETS, there), (HELD, held & there), (SIZES, np.where(there, size, 0))):
            np.add.at(self.sets[:, place], codes, values.astype(np.int64))
        classes = np.arange(probability.shape[1])
        places = np.minimum((probability * BINS).astype(int), BINS - 1)
        happened = codes[:, None] == classes
        for row, values in ((PREDICTED, probability), (HAPPENED, happened), (COUNT, np.ones(probability.shape))):
            np.add.at(self.bins[:, row], (classes, places), values)  # in order: any split gives the same bits

    def calibration_errors(self) -> Vector:
        """Of each class mean |probability − share that came| over the rows; NaN where there were none."""
        gaps = np.abs(self.bins[:, PREDICTED] - self.bins[:, HAPPENED]).sum(axis=1)
        rows = self.bins[:, COUNT].sum(axis=1)
        return _share(gaps, rows)

    def coverage(self) -> Vector:
        """Of each class how often its sets held it; NaN where none came."""
        return _share(self.sets[:, HELD], self.sets[:, SETS])

    def set_size(self) -> Vector:
        """Of each class how many classes its sets had, on average."""
        return _share(self.sets[:, SIZES], self.sets[:, SETS])

    def add_up(self, other: ByClass) -> None:
        """Add what another has met of other rows."""
        self.widen(len(other.sets))
        its = len(other.sets)
        self.sets, self.bins = self.sets.copy(), self.bins.copy()
        self.sets[:its] += other.sets
        self.bins[:its] += other.bins
        self.bins[its:, COUNT, 0] += other.bins[0, COUNT].sum()

    def to_json(self) -> dict[str, Any]:
        return {"sets": self.sets.tolist(), "bins": text_of(self.bins)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what ``to_json`` gave."""
        self.sets = np.array(saved["sets"], dtype=np.int64).reshape(-1, 3)
        self.bins = array_of(saved["bins"], 3 * BINS).reshape(-1, 3, BINS)
        if len(self.sets) != len(self.bins):
            raise ValueError(f"its classes are {len(self.sets)} and {len(self.bins)}")


def _share(part: Any, whole: Any) -> Vector:
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0))


def precision_recall_f1(confusion: Any) -> tuple[Vector, Vector, Vector]:
    """Of each class: how many of those taken for it were, how many of it were taken for it, and what both make together."""
    right, said, came = confusion.diagonal(), confusion.sum(axis=0), confusion.sum(axis=1)
    return _share(right, said), _share(right, came), _share(2 * right, said + came)
