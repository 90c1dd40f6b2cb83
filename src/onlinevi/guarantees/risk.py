"""The risk of the averaged decision (Theorem 5), bounded from the losses of the run itself: no data are held out.

A decision is made before its row is seen. On i.i.d. rows its loss is therefore an unbiased look at its own risk, and the
running sum of (risk − loss) is a martingale. By convexity the average decision's risk is at most the average of the risks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.beliefs import Ball, Box
from onlinevi.data import as_rows
from onlinevi.engine import Vector
from onlinevi.guarantees.bounds.risk import online_to_batch_confident
from onlinevi.learners import Trace
from onlinevi.losses import Loss

BETS = 0.9 * 0.5 ** np.arange(24.0)
"""The mixture's rates, times the bound: the best one for n losses of variance s² is near √(2·ln(1/δ)/n)/s."""

NEWTON_STEPS = 3

SLACK = 1e-12
"""A bound is raised by this share of it: a loss at a corner may be rounded up."""

CHUNK = 1 << 11


def risk_bound(trace: Trace, delta: float, *, bound: float) -> Vector:
    """With probability ≥ 1 − delta, at every event t at once: the risk of the average decision so far is at most this.

    For i.i.d. rows and a convex loss in [0, bound], row weights and ridge included. As it holds at all t, one may stop when
    it is small enough. The trace must hold every event from the first: ``record="all"``.

    >>> import numpy as np, onlinevi as ovi
    >>> from onlinevi.guarantees import risk_bound
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (1000, 2))
    >>> family = ovi.MeanField(box=ovi.Box(mean=(-2.0, 2.0)))
    >>> trace = ovi.learn(X, X[:, 0], loss=ovi.Hinge(), rule=ovi.NGVI(), family=family)
    >>> bool(risk_bound(trace, 0.05, bound=5.0)[-1] < 0.06)
    True
    """
    return mean_bound(_losses(trace), delta, bound=bound)


def fixed_risk_bound(trace: Trace, delta: float, *, bound: float) -> float:
    """The same at the last event only, which must be chosen ahead: A_T + bound·√(ln(1/delta)/2T) (Azuma, Hoeffding)."""
    losses = _losses(trace)
    _check(losses, delta, bound)
    known = online_to_batch_confident(average_loss=float(losses.mean()), count=len(losses), loss_bound=bound, failure=delta)
    return min(known.value, bound)


def mean_bound(losses: Any, delta: float, *, bound: float) -> Vector:
    """With probability ≥ 1 − delta, at every t at once: the average of the first t conditional means is at most this.

    ``losses`` lie in [0, bound]; each may depend on all before it, and so may its mean. Further axes in front are further
    streams. An empirical-Bernstein confidence sequence (Howard, Ramdas, McAuliffe and Sekhon, 2021, theorem 4): with any
    guess g_t made before loss_t, e^(rate·Σ(mean_t − loss_t) − ψ(rate)·Σ(loss_t − g_t)²) is a supermartingale, where
    ψ(rate) = −ln(1 − rate) − rate for a bound of 1. Mixed over rates, it exceeds 1/delta with probability ≤ delta (Ville).
    """
    losses = np.asarray(losses, dtype=float)
    _check(losses, delta, bound)
    shares = losses / bound
    times = np.arange(1.0, shares.shape[-1] + 1.0)
    sums = np.cumsum(shares, axis=-1)
    guesses = (0.5 + sums - shares) / times  # the mean of those before, and one half
    variation = np.cumsum((shares - guesses) ** 2, axis=-1)
    return np.minimum((sums + deviation(variation, delta)) / times, 1.0) * bound


def deviation(variation: Vector, delta: float) -> Vector:
    """The root s of mean over rates of e^(rate·s − ψ(rate)·variation) = 1/delta.

    The logarithm of that mean is increasing and convex in s. One rate alone gives a point above the root; from there each
    Newton step stays above it, so any number of them is valid.
    """
    flat, result = variation.ravel(), np.empty(variation.size)
    cost = -np.log1p(-BETS) - BETS
    target = math.log(len(BETS) / delta)
    for start in range(0, len(flat), CHUNK):
        spent = cost * flat[start : start + CHUNK, None]
        root = ((target + spent) / BETS).min(axis=1)
        for _ in range(NEWTON_STEPS):
            exponents = BETS * root[:, None] - spent
            largest = exponents.max(axis=1)
            terms = np.exp(exponents - largest[:, None])
            total = terms.sum(axis=1)
            root = root - (largest + np.log(total) - target) * total / (terms @ BETS)
        result[start : start + CHUNK] = root
    return result.reshape(variation.shape)


@dataclass(frozen=True)
class LossSums:
    """What ``mean_bound`` needs of the losses of one stream, in six numbers and for any bound to come.

    The guess before loss_t is (bound/2 + S)/t, S the sum of those before. With a_t = loss_t − S/t, the squared distance is
    a_t² − bound·a_t/t + bound²/(4t²): three sums.
    """

    count: int = 0
    total: float = 0.0
    least: float = math.inf
    largest: float = -math.inf
    squares: float = 0.0
    """Σ a_t²."""
    slopes: float = 0.0
    """Σ a_t/t."""

    def add(self, losses: Any) -> LossSums:
        """With further losses of the same stream."""
        losses = np.asarray(losses, dtype=float)
        if not losses.size:
            return self
        times = self.count + np.arange(1.0, len(losses) + 1.0)
        sums = np.cumsum(np.concatenate([[self.total], losses]))
        gaps = losses - sums[:-1] / times
        return LossSums(
            self.count + len(losses),
            float(sums[-1]),
            min(self.least, float(losses.min())),
            max(self.largest, float(losses.max())),
            self.squares + float(gaps @ gaps),
            self.slopes + float((gaps / times).sum()),
        )

    def variation(self, bound: float) -> float:
        """Σ (loss_t − guess_t)²/bound², at least: what rounding takes is given back."""
        from scipy.special import polygamma

        inverse_squares = math.pi**2 / 6.0 - float(polygamma(1, self.count + 1))  # Σ 1/t²
        size = self.squares / bound**2 + abs(self.slopes) / bound + 0.25 * inverse_squares
        exact = self.squares / bound**2 - self.slopes / bound + 0.25 * inverse_squares
        return max(exact, 0.0) + 4.0 * float(np.finfo(float).eps) * (self.count + 8.0) * size


def shards_risk_bound(shards: Sequence[LossSums], delta: float, *, bound: float) -> float:
    """With probability ≥ 1 − delta: the risk of the average of all shards' decisions is at most this.

    For i.i.d. rows that were dealt out without looking at them, and a convex loss in [0, bound]. The shards in a row are one
    sequence in which each decision depends on earlier rows only, and the guess before a loss may be its shard's own; so the
    sums of the shards add up to those of ``mean_bound``. It holds behind every shard at once.
    """
    used = [one for one in shards if one.count]
    _check(np.array([edge for one in used for edge in (one.least, one.largest)]), delta, bound)
    count, total = sum(one.count for one in used), sum(one.total for one in used)
    variation = sum(one.variation(bound) for one in used)
    most = (total / bound + float(deviation(np.array([variation]), delta)[0])) / count
    return min(most * (1.0 + SLACK), 1.0) * bound


def loss_bound(loss: Loss, rows: Any, *, box: Box | Ball, labels: Any, dim: int | None = None) -> float:
    """The largest loss of any mean in the box or ball, on such rows with such labels: the ``bound`` that a risk bound needs.

    ``rows`` is a matrix whose rows stand for all that can occur, or one number: no row is longer than that (then ``dim``
    says how many features there are). ``labels`` are all that can occur; every row is taken with every one of them.

    >>> import onlinevi as ovi
    >>> from onlinevi.guarantees import loss_bound
    >>> round(loss_bound(ovi.Hinge(), 1.0, box=ovi.Box(mean=(-3.0, 3.0)), labels=[-1.0, 1.0], dim=4), 9)
    7.0
    """
    if box.mean is None:
        raise ValueError(f"{box}: without bounds on the means no loss is bounded; try Box(mean=(-20, 20))")
    if np.ndim(rows) == 0 and not hasattr(rows, "tocsr"):
        if dim is None or not rows >= 0.0:
            raise ValueError(f"rows={rows!r}: as a number it is the largest length of a row, ≥ 0, and needs dim")
        furthest = _furthest(box, dim)
        low, high = -float(rows) * furthest, float(rows) * furthest
    else:
        matrix = as_rows(rows, filled=True)
        values = np.asarray(matrix.block(0, matrix.count), dtype=float)
        furthest = _furthest(box, matrix.dim)
        low, high = _ends(box, values)
    # A convex loss is largest at an end of the interval of predictions.
    every = np.unique(np.asarray(labels, dtype=float))
    largest = max(float(loss(label, end).value.max()) for label in every for end in (low, high))
    return (largest + 0.5 * loss.ridge * furthest**2) * (1.0 + SLACK)


def _furthest(box: Box | Ball, dim: int) -> float:
    """How long a mean can be."""
    assert box.mean is not None
    if isinstance(box, Ball):
        return float(box.mean)
    ends = [np.abs(np.broadcast_to(np.asarray(bound, dtype=float), (dim,))) for bound in box.mean]
    furthest = np.maximum(*ends)
    if not np.isfinite(furthest).all():
        raise ValueError(f"{box}: without bounds on the means no loss is bounded; try Box(mean=(-20, 20))")
    return float(np.linalg.norm(furthest))


def _ends(box: Box | Ball, rows: Vector) -> tuple[Any, Any]:
    """The least and the largest prediction of each row."""
    assert box.mean is not None
    if isinstance(box, Ball):
        high = box.mean * np.linalg.norm(rows, axis=1)
        return -high, high
    ends = [rows * np.asarray(bound, dtype=float) for bound in box.mean]
    return np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)


def _losses(trace: Trace) -> Vector:
    if not hasattr(trace.state, "plan"):
        raise TypeError(
            f"the trace is of {type(trace.state).__name__}, which has no average decision: needs one of learn(...) or Linear; "
            "mean_bound(trace.loss, delta, bound=...) bounds the average risk of what was predicted"
        )
    if not trace.state.plan.loss.convex:
        raise ValueError(f"{trace.state.plan.loss} is not convex: the average decision may be worse than the decisions")
    if len(trace.steps) != trace.state.count:
        raise ValueError(
            f"the trace holds {len(trace.steps)} of {trace.state.count} events: needs all of them, in one pass from the "
            'first; run learn(..., record="all")'
        )
    return trace.loss


def check_delta(delta: float) -> None:
    """Refuse what is no probability of failure."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta={delta!r}: a probability of failure lies strictly between 0 and 1; try 0.05")


def _check(losses: Vector, delta: float, bound: float) -> None:
    check_delta(delta)
    if not (bound > 0.0 and math.isfinite(bound)):
        raise ValueError(f"bound={bound!r}: needs a finite number > 0 that no loss exceeds; loss_bound computes one")
    if losses.size == 0:
        raise ValueError("no events yet: a risk bound needs at least one")
    outside = ~((losses >= 0.0) & (losses <= bound))
    if outside.any():
        raise ValueError(
            f"a loss of {losses[outside].flat[0]:.6g} lies outside [0, {bound:.6g}]: the guarantee is void; "
            "loss_bound gives a bound that holds for all rows and means of a box"
        )
