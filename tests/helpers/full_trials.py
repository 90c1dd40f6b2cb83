"""Theorem 2 for N(m, CᵀC) on trial: streams, rules and comparators with covariances, made to break it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from helpers.adversaries import BOX, OBLIVIOUS, Stream
from helpers.trials import Verdict

import onlinevi as ovi
from onlinevi import bounds
from onlinevi.beliefs.full import FullBelief
from onlinevi.guarantees import hindsight

LOSSES = [ovi.Hinge(), ovi.Absolute(), ovi.Pinball(0.1), ovi.Squared(), ovi.Logistic()]
PRIOR_STDS = [1.0, 0.3, [2.0, 0.5]]


def comparators(loss: ovi.Loss, family: ovi.FullCovariance, data: Stream, rng: np.random.Generator) -> Iterator[FullBelief]:
    """The prior's spread, nearly none, the data's own, and a random one, around good means, far ones and the prior's."""
    X, y = data
    dim = X.shape[1]
    prior = family.init(dim)
    best = hindsight(X, y, loss=loss, box=BOX, tolerance=0.01).mean
    told = np.linalg.inv(np.diag(prior.std**-2.0) + rng.uniform(0.1, 30.0) * X.T @ X)
    random = np.triu(rng.standard_normal((dim, dim)), 1) + np.diag(np.abs(rng.standard_normal(dim)) + 0.05)
    factors = [prior.factor, 0.01 * prior.factor, np.linalg.cholesky(told).T, random]
    for factor in factors:
        yield FullBelief(best, factor)
    yield FullBelief(BOX * rng.choice([-1.0, 1.0], dim), prior.factor)
    yield FullBelief(prior.mean, random)


def rules(lipschitz: float, family: ovi.FullCovariance, dim: int, count: int, kl: float) -> list[ovi.Rule]:
    """Those with a theorem in (m, C): at the best rate, at larger ones, and at rates that fall."""
    alpha = bounds.kl_strong_convexity(family, dim)
    best = bounds.sva_best_rate(count=count, lipschitz=lipschitz, kl=max(kl, 0.1), strong_convexity=alpha)
    return [ovi.SVA(best), ovi.SVA(5.0 * best), ovi.OGAEL(best), ovi.SVA(ovi.PerSqrt(best * math.sqrt(count)))]


def verdicts(seed: int, count: int = 12, dim: int = 2) -> Iterator[Verdict]:
    """All statements about one stream: loss, adversary, prior and rule by turns."""
    rng, loss = np.random.default_rng(seed), LOSSES[seed % len(LOSSES)]
    data = OBLIVIOUS[seed // len(LOSSES) % len(OBLIVIOUS)](loss, rng, count, dim)
    start = [0.0, 0.5 * BOX][seed % 2]
    family = ovi.FullCovariance(start, PRIOR_STDS[seed % 3], ovi.Box((-BOX, BOX), None))
    opponents = list(comparators(loss, family, data, rng))
    # Squared losses are Lipschitz on no domain without bounds: any number makes a rate.
    lipschitz = bounds.lipschitz(*data, loss=loss, family=family) if math.isfinite(loss.lipschitz) else 2.0
    rule = rules(lipschitz, family, dim, count, family.kl(opponents[0]))[seed // 2 % 4]
    learner = ovi.Linear(loss, rule, family, average=False)
    state, sums = learner.init(dim, count), [0.0]
    for row, label in zip(*data, strict=True):
        try:
            state, _ = learner.update(state, row, label)
        except ovi.BadRow:  # explicit steps on squared losses may explode: what came before is judged
            break
        sums.append(state.gradient_square)
    X, y = (part[: state.count] for part in data)
    for belief in opponents:
        mean, variance = family.predict(belief, X)
        against = float(loss(y, mean, np.sqrt(variance)).value.sum())
        regret, size = state.expected_loss - against, abs(state.expected_loss) + abs(against)
        name = f"{type(rule).__name__}{', schedule' if rule.step_rate.varies else ''}"
        yield Verdict(f"{name}, observed", regret, bounds.after_data(state, belief, gradient_squares=np.diff(sums)), size)
        if math.isfinite(loss.lipschitz):
            yield Verdict(name, regret, bounds.before_data(state, belief, lipschitz=lipschitz), size)
