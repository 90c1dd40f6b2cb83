"""Lower bounds for sums of conditional means, which hold at all times at once, whoever chooses what comes next.

A gambler bets that the sum is larger than it is said to be. What is bet on is never below a known bound, and may be as large
as it likes: importance weights have no upper one that is of use. docs/bandits.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import Vector

RATES = np.concatenate([[0.9], 2.0 ** -np.arange(1.0, 17.0)])
"""How boldly is bet, from 0.9 to 10⁻⁵: for sums over a few events and over some 10¹⁰. Each has the same part of the stake."""
COSTS = -np.log1p(-RATES) - RATES
"""ψ(λ) = −ln(1 − λ) − λ: what a rate costs for each unit of variance."""
LARGEST = 1e100
"""Terms are cut off above: what is left has at most their mean, and its square is a number."""
STEPS = 40
"""Newton's steps towards the bound; each stays below it."""
AT_ONCE = 1 << 12
"""Times that are looked at together."""


class Bet(NamedTuple):
    """Terms whose conditional means are at most those that are asked for."""

    terms: Vector
    reach: float
    """None is below −reach."""
    guess: float = 0.5
    """What the first is expected to be."""


class Progress(NamedTuple):
    """What a bet has come to at some times."""

    total: Vector
    variance: Vector
    scale: float

    def evidence(self, target: Vector) -> Vector:
        """The logarithm of what each rate has won if the means sum to this target: a row a time."""
        gained = (self.total - target) / self.scale
        return np.asarray(RATES * gained[:, np.newaxis] - COSTS * self.variance[:, np.newaxis])

    def bounds(self, needed: float) -> Vector:
        """Below which target each rate alone has won as much as this."""
        costs = (needed + COSTS * self.variance[:, np.newaxis]) / RATES
        return np.asarray(self.total - self.scale * costs.min(axis=1))


def progress(bet: Bet, times: Any) -> Progress:
    """What a bet has come to behind so many terms.

    Each term is compared with the mean of those before it, at most 1.
    """
    terms, count = np.minimum(bet.terms, LARGEST), np.arange(1.0, len(bet.terms) + 1.0)
    totals, scale = np.cumsum(terms), bet.reach + 1.0
    before = (bet.guess + np.concatenate([[0.0], totals[:-1]])) / count
    square = np.square((terms - np.minimum(before, 1.0)) / scale)
    return Progress(totals[times - 1], np.cumsum(square)[times - 1], scale)


def log_evidence(bets: Sequence[Bet], targets: Vector) -> Vector:
    """The logarithm of what the gamblers have won, behind each term, against Σ means being these targets.

    They begin with 1 together. As long as the targets are true, they ever have 1/α with probability α at most.
    """
    found = [progress(bet, np.arange(1, len(targets) + 1)).evidence(targets) for bet in bets]
    return np.asarray(np.logaddexp.reduce(np.concatenate(found, axis=1), axis=1) - math.log(len(bets) * len(RATES)))


def lower_bounds(bets: Sequence[Bet], alpha: float, times: Sequence[int]) -> Vector:
    """What Σ means is at least, behind so many terms each: at all times at once with probability 1 − alpha.

    The stake is divided evenly among the bets, and among the rates of each. It is the target at which they have won 1/alpha.

    >>> import numpy as np
    >>> tosses = np.random.default_rng(0).integers(0, 2, 10_000).astype(float)
    >>> (lower_bounds([Bet(tosses, 0.0)], 0.05, [100, 10_000]) / [100, 10_000]).round(2).tolist()
    [0.35, 0.49]
    """
    needed = math.log(len(bets) * len(RATES) / alpha)
    found = []
    for first in range(0, len(times), AT_ONCE):
        made = [progress(bet, np.asarray(times[first : first + AT_ONCE])) for bet in bets]
        target = np.max([one.bounds(needed) for one in made], axis=0)
        slopes = np.concatenate([RATES / one.scale for one in made])
        for _ in range(STEPS):  # the logarithm of what was won is convex in the target: from below no step goes too far
            logs = np.concatenate([one.evidence(target) for one in made], axis=1)
            most = logs.max(axis=1)
            parts = np.exp(logs - most[:, np.newaxis])
            won = most + np.log(parts.sum(axis=1))
            target = target + np.maximum(won - needed, 0.0) * parts.sum(axis=1) / (parts @ slopes)
        found.append(target)
    return np.concatenate(found)
