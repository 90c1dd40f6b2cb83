"""Streams made to break a guarantee: some fixed ahead, some that see the decision before they choose the row.

Every one gives rows of moderate length (except the heavy-tailed) and labels that its loss takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import onlinevi as ovi

Stream = tuple[np.ndarray, np.ndarray]
Oblivious = Callable[[ovi.Loss, np.random.Generator, int, int], Stream]

BOX = 2.0
"""Half the side of the box of means: small enough for decisions to be pushed into its corners, and for e^z to stay small."""


def family(rule: ovi.Rule, box: float = BOX) -> ovi.Family:
    domain = ovi.Box(mean=(-box, box))
    return ovi.MeanField(box=domain) if rule.gaussian else ovi.Point(box=domain)


def extremes(loss: ovi.Loss) -> tuple[float, float]:
    """Two labels that pull a prediction in opposite directions."""
    return (6.0, 0.0) if isinstance(loss, ovi.Poisson) else (1.0, -1.0)


def labelled(loss: ovi.Loss, scores: np.ndarray) -> np.ndarray:
    """Labels that these scores predict well."""
    if isinstance(loss, ovi.Hinge | ovi.Logistic):
        return np.where(scores >= 0.0, 1.0, -1.0)
    return np.round(np.exp(np.clip(scores, -3.0, 3.0))) if isinstance(loss, ovi.Poisson) else scores


def unit_rows(rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    rows = rng.standard_normal((count, dim))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def random(loss: ovi.Loss, rng: np.random.Generator, count: int, dim: int) -> Stream:
    """Rows of length 1, labels from a random direction with noise: no adversary at all."""
    X = unit_rows(rng, count, dim)
    return X, labelled(loss, X @ rng.standard_normal(dim) * 2.0 + 0.5 * rng.standard_normal(count))


def alternating_signs(loss: ovi.Loss, rng: np.random.Generator, count: int, dim: int) -> Stream:
    """One row, its label turned over each time: every step goes the wrong way."""
    X = np.tile(unit_rows(rng, 1, dim), (count, 1))
    high, low = extremes(loss)
    return X, np.where(np.arange(count) % 2 == 0, high, low)


def drift(loss: ovi.Loss, rng: np.random.Generator, count: int, dim: int) -> Stream:
    """A direction to converge to, then its opposite, when the spreads have shrunk."""
    X, direction = unit_rows(rng, count, dim), 2.0 * rng.standard_normal(dim)
    return X, labelled(loss, X @ direction * np.where(np.arange(count) < count // 2, 1.0, -1.0))


def heavy_tails(loss: ovi.Loss, rng: np.random.Generator, count: int, dim: int) -> Stream:
    """Rows without a variance; for e^z as long as it can bear."""
    X = rng.standard_t(1.2, (count, dim))
    X = np.clip(X, -4.0, 4.0) if isinstance(loss, ovi.Poisson) else X
    return X, labelled(loss, X @ rng.standard_normal(dim) + rng.standard_t(1.5, count))


def repeated_rows(loss: ovi.Loss, rng: np.random.Generator, count: int, dim: int) -> Stream:
    """Two rows over and over, nearly parallel, with opposite labels."""
    first = unit_rows(rng, 1, dim)
    X = np.where(np.arange(count)[:, None] % 3 == 0, first, first + 0.05 * rng.standard_normal(dim))
    high, low = extremes(loss)
    return X, np.where(np.arange(count) % 3 == 0, high, low)


def label_flips(loss: ovi.Loss, rng: np.random.Generator, count: int, dim: int) -> Stream:
    """A clear direction, with three labels in ten turned over."""
    X = 2.0 * unit_rows(rng, count, dim)
    return X, labelled(loss, X @ rng.standard_normal(dim) * np.where(rng.random(count) < 0.3, -1.0, 1.0))


def orthogonal_rows(loss: ovi.Loss, rng: np.random.Generator, count: int, dim: int) -> Stream:
    """One coordinate at a time: nothing learned from a row helps with the next."""
    high, low = extremes(loss)
    return np.eye(dim)[np.arange(count) % dim], np.where(rng.random(count) < 0.5, high, low)


def straight_losses(loss: ovi.Loss, rng: np.random.Generator, count: int, dim: int) -> Stream:
    """Losses that are nearly straight all over the box, so that tangents lose nothing: long one way, then the other."""
    X = np.tile(unit_rows(rng, 1, dim), (count, 1))
    if isinstance(loss, ovi.Hinge | ovi.Logistic):
        X *= 0.9 / (BOX * np.sqrt(dim))  # y·z stays below the kink at 1
    high, low = extremes(loss)
    far = 1.0 if isinstance(loss, ovi.Hinge | ovi.Logistic | ovi.Poisson) else 50.0
    return X, far * np.where(np.arange(count) < rng.integers(count // 4, count), high, low)


OBLIVIOUS: list[Oblivious] = [
    random,
    alternating_signs,
    drift,
    heavy_tails,
    repeated_rows,
    label_flips,
    orthogonal_rows,
    straight_losses,
]


@dataclass(frozen=True)
class Greedy:
    """Sees the decision, and plays the row and label that cost it most beyond what they cost its best opponent.

    The opponent is the corner of the box that the gradients so far point away from. Rows are tried along the decision,
    along the gradients, and at random.
    """

    tries: int = 4
    length: float = 1.0

    def play(self, learner: ovi.Linear, rng: np.random.Generator, count: int, dim: int) -> tuple[ovi.State, Stream]:
        state, rows, labels = learner.init(dim, horizon=count), [], []
        for _ in range(count):
            x, y = self.event(learner.loss, state, rng)
            state, _ = learner.update(state, x, y)
            rows.append(x)
            labels.append(y)
        return state, (np.array(rows), np.array(labels))

    def event(self, loss: ovi.Loss, state: ovi.State, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        ways = np.vstack([state.mean, state.gradient, unit_rows(rng, self.tries, len(state.mean))])
        norms = np.linalg.norm(ways, axis=1)
        X = self.length * ways[norms > 0.0] / norms[norms > 0.0, None]
        opponent = np.where(state.gradient > 0.0, -BOX, BOX)
        X, y = np.repeat(X, 2, axis=0), np.tile(extremes(loss), len(X))
        gain = loss(y, X @ state.mean).value - loss(y, X @ opponent).value
        best = int(np.argmax(gain))
        return X[best], float(y[best])


def held_at_an_end(count: int, last: int, step: float, end: float = 1.0) -> np.ndarray:
    """Slopes ±1 of linear losses on [−end, end] that hold SVB at the wrong end, with the rate step/(std²·√t).

    Up while its next mean stays above −end, else down; and down for the last events.
    """
    slopes, mean = np.empty(count), -end
    for t in range(1, count + 1):
        size = step / math.sqrt(t)
        slopes[t - 1] = 1.0 if mean - size >= -end and t <= count - last else -1.0
        mean = min(max(mean - size * slopes[t - 1], -end), end)
    return slopes


def turning(count: int) -> Stream:
    """|y − θ| with y = 0 for a quarter, then 1: natural gradients learn to be sure of 0, and stay."""
    return np.ones((count, 1)), np.where(np.arange(count) < count // 4, 0.0, 1.0)


def recurring(count: int, ones: float) -> Stream:
    """|y − θ| with y = 0 for 1.5·√T events, then 1 for ones·√T, over and over: for rules that forget within √T events."""
    when = np.arange(count) / math.sqrt(count)
    return np.ones((count, 1)), np.where(when % (1.5 + ones) < 1.5, 0.0, 1.0)


def crossing(count: int) -> Stream:
    """(y − ⟨θ, x⟩)²: 0 at (1, 1) for a quarter, then 1 at (1, −1). The weights (½, −½) lose nothing."""
    first = np.arange(count) < count // 4
    return np.where(first[:, None], [[1.0, 1.0]], [[1.0, -1.0]]), np.where(first, 0.0, 1.0)
