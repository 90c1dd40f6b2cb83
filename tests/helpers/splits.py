"""Streams dealt out to shards in every way, and what their merged certificate says against what they truly paid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from helpers.adversaries import BOX, OBLIVIOUS, Greedy, Stream

import onlinevi as ovi
from onlinevi.guarantees import certificate

LOSSES = [ovi.Squared(), ovi.Hinge(), ovi.Logistic(), ovi.Absolute(), ovi.Pinball(0.2), ovi.Poisson(), ovi.Hinge(ridge=0.1)]
RULES = [ovi.Implicit(), ovi.NGVI(), ovi.SVA(0.1), ovi.SVB(0.2), ovi.OGAEL(0.1)]

Split = Callable[[np.random.Generator, Stream, int], list[np.ndarray]]


def in_a_row(rng: np.random.Generator, stream: Stream, shards: int) -> list[np.ndarray]:
    cuts = np.sort(rng.integers(0, len(stream[1]) + 1, shards - 1))
    return np.split(np.arange(len(stream[1])), cuts)


def at_random(rng: np.random.Generator, stream: Stream, shards: int) -> list[np.ndarray]:
    home = rng.integers(0, shards, len(stream[1]))
    return [np.flatnonzero(home == k) for k in range(shards)]


def by_label(rng: np.random.Generator, stream: Stream, shards: int) -> list[np.ndarray]:
    """Each shard sees one kind of label: none learns what the others know."""
    return np.array_split(np.argsort(stream[1], kind="stable"), shards)


def by_direction(rng: np.random.Generator, stream: Stream, shards: int) -> list[np.ndarray]:
    return np.array_split(np.argsort(stream[0] @ rng.standard_normal(stream[0].shape[1]), kind="stable"), shards)


def one_and_the_rest(rng: np.random.Generator, stream: Stream, shards: int) -> list[np.ndarray]:
    order = rng.permutation(len(stream[1]))
    return [*np.split(order[: shards - 1], shards - 1), order[shards - 1 :]]


SPLITS: list[Split] = [in_a_row, at_random, by_label, by_direction, one_and_the_rest]


@dataclass(frozen=True)
class Verdict:
    """The worst that was found against a merged certificate."""

    ratio: float
    """Of true regret to certified; at most 1 where it holds."""
    broken: bool
    above_sum: bool
    """Whether it is more than the sum of the shards' certificates, which it may never be."""


def trial(seed: int) -> Verdict | None:
    """One stream, split and learned from; None where a row is refused, or there is no merged belief, as of stds of 0."""
    rng = np.random.default_rng(seed)
    loss, rule = LOSSES[rng.integers(len(LOSSES))], RULES[rng.integers(len(RULES))]
    if loss.ridge > 0.0 and not isinstance(rule, ovi.NGVI):
        rule = ovi.SVB(0.2)
    dim, count, shards = int(rng.integers(1, 5)), int(rng.integers(8, 60)), int(rng.integers(2, 8))
    box = ovi.Box(mean=(-BOX, BOX)) if rng.random() < 0.7 else None
    full = isinstance(rule, ovi.Implicit | ovi.NGVI) and loss.ridge == 0.0 and rng.random() < 0.5
    family = ovi.FullCovariance(box=box and ovi.Box(mean=box.mean, std=None)) if full else ovi.MeanField(box=box)
    learner = ovi.Linear(loss, rule, family, average=bool(rng.random() < 0.8))
    try:
        states, stream, parts = _played(rng, learner, dim, count, shards)
        used = [state for state in states if state.count]
        merged = learner.merge(used)
        if rule.recursive and rng.random() < 0.4:  # a second round, over the same rows
            again = [learner.update_many(merged, stream[0][part], stream[1][part], record="none")[0] for part in parts]
            merged, used, stream = learner.merge(again, merged), [], (np.tile(stream[0], (2, 1)), np.tile(stream[1], 2))
    except ValueError:
        return None
    live = certificate(merged)
    radius = float(rng.uniform(0.5, 3.0))
    points = rng.standard_normal((24, dim))
    points *= (radius * rng.random((24, 1)) ** 0.3) / np.linalg.norm(points, axis=1, keepdims=True)
    away = merged.gradient / max(float(np.linalg.norm(merged.gradient)), 1e-300)
    points = np.vstack([points, -radius * away, _descended(loss, stream, radius)])
    ratio, broken = -math.inf, False
    for u in points:
        paid = math.fsum(loss(stream[1], stream[0] @ u).value) + 0.5 * loss.ridge * len(stream[1]) * float(u @ u)
        true, certified, within = merged.loss - paid, live.against(u), live.within(radius)
        broken |= not (true <= certified and true <= within)
        ratio = max(ratio, true / within if within > 0.0 else -math.inf)
    each = [certificate(state).within(radius) for state in used]
    rounded = 1e-9 * (1.0 + sum(map(abs, each)))  # one sum of all events may round a little worse than the sums of each
    above = bool(used) and live.within(radius) > sum(each) + rounded
    return Verdict(ratio, broken, above)


def _played(
    rng: np.random.Generator, learner: ovi.Linear, dim: int, count: int, shards: int
) -> tuple[list[ovi.State], Stream, list[np.ndarray]]:
    """The shards' states, all rows, and which rows were whose. One in five streams sees each decision before it chooses."""
    if rng.random() < 0.2 and not isinstance(learner.loss, ovi.Squared):
        each = [Greedy(tries=2).play(learner, rng, max(count // shards, 2), dim) for _ in range(shards)]
        each = [(learner.update_many(learner.init(dim), *own, record="none")[0], own) for _, own in each]  # without a horizon
        sizes = np.cumsum([0, *(len(own[1]) for _, own in each)])
        rows = np.vstack([own[0] for _, own in each]), np.concatenate([own[1] for _, own in each])
        return [state for state, _ in each], rows, [np.arange(*pair) for pair in pairwise(sizes)]
    stream = OBLIVIOUS[rng.integers(len(OBLIVIOUS))](learner.loss, rng, count, dim)
    parts = [part for part in SPLITS[rng.integers(len(SPLITS))](rng, stream, shards) if len(part)]
    states = [learner.update_many(learner.init(dim), stream[0][p], stream[1][p], record="none")[0] for p in parts]
    return states, stream, parts


def _descended(loss: ovi.Loss, stream: Stream, radius: float) -> np.ndarray:
    """A point of the ball that is good for all rows: what a certificate is most likely to break at."""
    X, y = stream
    point = np.zeros(X.shape[1])
    for step in range(1, 40):
        slope = loss(y, X @ point).slope
        point = point - radius / np.sqrt(step) * (g / max(np.linalg.norm(g), 1e-12) if (g := X.T @ slope).any() else g)
        point *= min(1.0, radius / max(float(np.linalg.norm(point)), 1e-300))
    return point
