"""Runs that no user would start: any loss, ridge, rule, family and box, at scales from 1e-6 to 1e6, judged in long doubles.

What a certificate says of such a run is mostly of no use, and never to be false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import onlinevi as ovi
from onlinevi.guarantees import Certificate, certificate

EXACT = np.longdouble
OWN_SHARE = 1e-15
"""What the judge's own long doubles may be off by, beside the sizes of what they add up."""


@dataclass(frozen=True)
class Verdict:
    """What became of one run."""

    loss: ovi.Loss
    rule: str
    family: str
    refused: bool
    """Whether a row was: then what was learned before it is judged."""
    checked: int
    """How many statements were compared with the truth."""
    false: tuple[str, ...]
    useful: bool
    """Whether the certificate says more than that a loss ≥ 0 can be beaten by no more than itself."""


def value(loss: ovi.Loss, y: Any, z: Any) -> Any:
    """The loss from its definition, in long doubles and without our code."""
    y = y.astype(EXACT)
    match loss:
        case ovi.Squared():
            return (y - z) ** 2
        case ovi.Hinge():
            return np.maximum(1.0 - y * z, 0.0)
        case ovi.Logistic():
            return np.logaddexp(EXACT(0.0), -y * z)
        case ovi.Absolute():
            return np.abs(y - z)
        case ovi.Pinball():
            level = EXACT(loss.parameters[0])
            return np.maximum(level * (y - z), (level - 1.0) * (y - z))
        case _:
            return np.exp(z) - y * z


def power(rng: np.random.Generator, low: float, high: float) -> float:
    """10 to a power between these."""
    return float(10.0 ** rng.uniform(low, high))


def any_loss(rng: np.random.Generator) -> ovi.Loss:
    ridge = 0.0 if rng.random() < 0.4 else power(rng, -3.0, 2.0)
    kind = [ovi.Squared, ovi.Hinge, ovi.Logistic, ovi.Absolute, ovi.Pinball, ovi.Poisson][int(rng.integers(6))]
    return kind(0.1, ridge=ridge) if kind is ovi.Pinball else kind(ridge=ridge)


def any_rule(rng: np.random.Generator) -> ovi.Rule:
    size = power(rng, -3.0, 1.5)
    rate = [size, ovi.PerSqrt(size), ovi.PerHorizon(size)][int(rng.integers(3))]
    kind = int(rng.integers(7))
    if kind < 4:
        return [ovi.OGA, ovi.OGAEL, ovi.SVA, ovi.SVB][kind](rate)
    return [ovi.NGVI(step=size), ovi.NGVI(step=size, rate=power(rng, -1.0, 2.0)), ovi.Implicit(size)][kind - 4]


def any_family(rng: np.random.Generator, rule: ovi.Rule) -> ovi.Family:
    side = power(rng, -1.0, 2.0)
    box = [ovi.Box(mean=(-side, side), std=None), None][int(rng.random() < 0.4)]
    if not rule.gaussian:
        return ovi.Point(box=box)
    prior_std = power(rng, -2.0, 2.0)
    kind = int(rng.integers(4))
    if kind < 2:
        return ovi.FullCovariance(prior_std=prior_std, box=box)
    return ovi.LowRank(rank=1, prior_std=prior_std, box=box) if kind == 2 else ovi.MeanField(prior_std=prior_std, box=box)


def any_learner(rng: np.random.Generator) -> ovi.Linear:
    """Drawn until its parts fit."""
    while True:
        rule = any_rule(rng)
        extra: dict[str, Any] = {"average": rng.random() < 0.7}
        if rng.random() < 0.1:
            extra["discount"] = 0.9
        if rng.random() < 0.1:
            extra["dtype"] = "float32"
        try:
            return ovi.Linear(any_loss(rng), rule, any_family(rng, rule), **extra)
        except ValueError:  # a ridge for SVB with covariances, and the like
            continue


def any_stream(rng: np.random.Generator, loss: ovi.Loss, longest: int) -> tuple[Any, Any, Any]:
    """Rows, labels and weights; scales may change on the way."""
    count, dim = int(rng.integers(2, longest)), int(rng.integers(1, 4))
    X = rng.standard_normal((count, dim)) * power(rng, -6.0, 6.0 if rng.random() < 0.3 else 0.5)
    if rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-3.0, 3.0, (count, 1))
    if isinstance(loss, ovi.Poisson):
        X = np.clip(X, -2.0, 2.0)
        y = rng.poisson(power(rng, -1.0, 2.0), count).astype(float)
    elif loss.target == "classes":
        y = np.where(rng.random(count) < 0.3, -1.0, 1.0) * np.where(X[:, 0] > 0.0, 1.0, -1.0)
    else:
        y = (X @ rng.standard_normal(dim) + rng.standard_normal(count)) * power(rng, -3.0, 3.0) + power(rng, -3.0, 9.0)
    weights = np.ones(count) if rng.random() < 0.7 else rng.exponential(size=count) * power(rng, -3.0, 3.0)
    return X, y, weights


def comparators(rng: np.random.Generator, live: Certificate, X: Any, y: Any) -> Any:
    """Points of the box, or of any length without one: 0, ends by the gradients, random ones, and those near the labels."""
    dim = X.shape[1]
    ends = np.where(np.isfinite(live.box.high), live.box.high, power(rng, -3.0, 6.0))
    fitted = np.linalg.lstsq(X, y, rcond=None)[0]
    points = [np.zeros(dim), -ends * np.sign(live.tangents.gradient), live.state.mean, fitted, 0.5 * fitted]
    points += [ends * rng.uniform(-1.0, 1.0, dim) * power(rng, -3.0, 0.0) for _ in range(6)]
    return np.clip(points, live.box.low, live.box.high)


def untrue(live: Certificate, rng: np.random.Generator, X: Any, y: Any, weights: Any) -> Iterator[str]:
    """What a certificate says that the definition denies."""
    loss, points = live.state.plan.loss, comparators(rng, live, X, y)
    with np.errstate(over="ignore", invalid="ignore"):
        z = points.astype(EXACT) @ X.T.astype(EXACT)
        costs = weights.astype(EXACT) * (
            value(loss, y, z) + 0.5 * EXACT(loss.ridge) * np.square(points.astype(EXACT)).sum(axis=1)[:, None]
        )
        totals, own = costs.sum(axis=1), OWN_SHARE * np.abs(costs).sum(axis=1)
        lengths = np.linalg.norm(points, axis=1)
    sane = np.isfinite(totals) & np.isfinite(lengths)
    points, totals, own, lengths = points[sane], totals[sane], own[sane], lengths[sane]
    regrets = EXACT(live.loss) - totals - own
    statements = {"against": live.against(points), "within": live.within(lengths)}
    if live.bounded:
        statements["regret"] = np.full(len(points), live.regret)
        statements["lower bound"] = live.loss - live.count * np.full(len(points), live.lower_bound)
    for name, bound in statements.items():
        slack = 1e-15 * abs(live.loss) if name == "lower bound" else 0.0  # of the difference just taken
        if np.isnan(bound).any():
            yield f"{name}: not a number"
        for k in np.flatnonzero(regrets > bound.astype(EXACT) + slack)[:1]:
            yield f"{name}: true {float(regrets[k]):.17g} > certified {bound[k]:.17g} at u={points[k]}"


def wild_run(seed: int, longest: int = 24) -> Verdict | None:
    """The verdict on one run; None where its first row is refused."""
    rng = np.random.default_rng(seed)
    learner = any_learner(rng)
    X, y, weights = any_stream(rng, learner.loss, longest)
    if learner.dtype == "float32":
        X = X.astype(np.float32).astype(float)
    state, middle = learner.init(X.shape[1], len(y)), None
    refused = False
    for part in np.array_split(np.arange(len(y)), 2):
        try:
            state, _ = learner.update_many(state, X[part], y[part], weights=weights[part], record="none")
        except ovi.BadRow as bad:
            state, refused = bad.trace.state, True
            break
        middle = middle or state
    if state.count == 0:
        return None
    played, lives = state.count, [certificate(state)]
    used = [slice(0, played)]
    if middle is not None and 0 < middle.count < played:
        lives.append(certificate(state, since=middle))
        used.append(slice(middle.count, played))
    false = [
        f"seed {seed}, {learner}, events {rows.start} to {rows.stop}: {said}"
        for live, rows in zip(lives, used, strict=True)
        for said in untrue(live, rng, X[rows], y[rows], weights[rows])
    ]
    with np.errstate(over="ignore"):
        radius = min(float(np.linalg.norm(state.mean)) + 1.0, 1e300)
    names = type(learner.rule).__name__, type(learner.belief_family).__name__
    useful = lives[0].within(radius) < lives[0].loss
    return Verdict(learner.loss, *names, refused, len(lives), tuple(false), bool(useful))
