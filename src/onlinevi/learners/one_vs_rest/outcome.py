"""What is known of several classes at a moment, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector
from onlinevi.learners.inputs.state import InputState
from onlinevi.learners.one_vs_rest import coupling


@dataclass(frozen=True, eq=False)
class ClassesState:
    """The state of each class against the rest, and what the labels have told of their coupling."""

    each: tuple[Any, ...]
    later: Any
    """What has learned "no" at every event: a class that joins starts as a copy of it. None where no class can join."""
    coupled: Vector
    """The total log-loss of each boldness (``coupling.py``)."""

    @property
    def inputs(self) -> InputState:
        """The moments of the features: all classes see the same rows."""
        inputs: InputState = self.each[0].inputs
        return inputs

    @property
    def count(self) -> int:
        """How many events it has learned from."""
        return int(self.each[0].count)

    @property
    def mean(self) -> Vector:
        """The mean of the weights of the prepared features, a row a class."""
        return np.stack([own.mean for own in self.each])

    @property
    def std(self) -> Vector:
        return np.stack([own.std for own in self.each])

    def __repr__(self) -> str:
        return f"ClassesState(count={self.count}, classes={len(self.each)})"


class ClassForecast(NamedTuple):
    """What is said of labels to come: a row each, a column for each class."""

    scores: Vector
    """Log-odds against the rest; for a hinge loss, scores. −∞ for a class that was not known yet."""
    probability: Vector | None
    """Of each class; they sum to 1. None for a hinge loss, which has none."""

    @staticmethod
    def of(scores: Vector, totals: Vector | None) -> ClassForecast:
        """``totals`` weigh the coupling, None where there is none."""
        return ClassForecast(scores, None if totals is None else coupling.probabilities(totals, scores))

    @property
    def guess(self) -> Any:
        """The number of the class with the highest score, which is the likeliest."""
        return self.scores.argmax(axis=1)

    @property
    def chance(self) -> Vector:
        """The probability of the guess; NaN where there are no probabilities."""
        if self.probability is None:
            return np.full(len(self.scores), np.nan)
        return np.take_along_axis(self.probability, self.guess[:, None], 1)[:, 0]


class Block(NamedTuple):
    """Rows played together. Of the first one's classes only those ``known`` could be guessed."""

    known: int
    scores: Vector
    weighed: coupling.Weighed | None
    losses: Sequence[Vector]
    """Of each class against the rest: what is paid where there is no coupling."""

    @property
    def loss(self) -> Vector:
        return sum(self.losses, np.zeros(len(self.scores))) if self.weighed is None else self.weighed.loss

    @property
    def said(self) -> list[ClassForecast]:
        before = None if self.weighed is None else self.weighed.before
        if self.known == self.scores.shape[1]:
            return [ClassForecast.of(self.scores, before)]
        cut = ((slice(0, 1), self.known), (slice(1, None), None))
        return [ClassForecast.of(self.scores[rows, :end], None if before is None else before[rows]) for rows, end in cut]


class ClassTrace:
    """What was said of rows before their labels were used, and what it cost."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks

    @cached_property
    def said(self) -> ClassForecast:
        parts = [said for block in self._blocks for said in block.said]
        if len(parts) == 1:
            return parts[0]
        width = max(part.scores.shape[1] for part in parts)
        scores = np.concatenate([_padded(part.scores, width, -np.inf) for part in parts])
        tables = [part.probability for part in parts if part.probability is not None]
        return ClassForecast(scores, np.concatenate([_padded(own, width, 0.0) for own in tables]) if tables else None)

    @cached_property
    def loss(self) -> Vector:
        """−log of the probability said of the row's class; for a hinge loss, the sum of the losses of all classes."""
        return np.concatenate([block.loss for block in self._blocks])


def _padded(table: Vector, width: int, value: float) -> Vector:
    return np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=value)
