"""The error on new rows of classifiers drawn from a belief, bounded from the rows that it was learned from (PAC-Bayes).

A belief q over weights is a random classifier: draw the weights, say the sign of the prediction. Of a Gaussian its error on a
row is closed form, Φ(−y·a/v). What must be fixed before the data is the prior, and that alone: the bounds hold for all q at
once, however q was found, and at all times at once. docs/guarantees.md has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onlinevi.data import as_events, as_labels, as_rows
from onlinevi.engine import Belief, Vector
from onlinevi.guarantees.risk import check_delta
from onlinevi.guarantees.sources import decider
from onlinevi.learners import InputState, State, Trace
from onlinevi.losses import Hinge, normal_cdf

TEMPERS = 8.0 * 0.5 ** (0.5 * np.arange(24.0))
"""The rates of the mixture for rows that are not independent; the best for T rows of risk R is near √(2·cost/(T·R))."""

RATIOS = 2.0 ** np.arange(-8.0, 8.25, 0.25)
"""How much longer beside its covariance a mean is made in search of the belief that speaks best for its vote."""

BLOCK_VALUES = 1 << 20
HALVINGS = 60


@dataclass(frozen=True)
class PacBayes:
    """With probability ≥ 1 − delta over the rows, for this belief as for any other, and behind any number of rows."""

    count: int
    """Rows."""
    kl: float
    """KL(belief‖prior); of a pool, that of the weights and the mean of its learners' own."""
    gibbs_error: float
    """The share of the rows that weights drawn from the belief get wrong, in expectation."""
    vote_error: float
    """The share that the vote gets wrong: of one Gaussian, its mean."""
    gibbs_risk: float
    """What the chance to be wrong at a new row exceeds for no weights drawn from the belief, in expectation over them."""
    vote_risk: float
    """The same of the vote, which takes the likelier sign under the belief; of one Gaussian that is the mean's sign."""
    delta: float
    adapted: bool
    """Whether rows were prepared as they came: then each risk is the average over the ways in which they were prepared."""

    def __repr__(self) -> str:
        return (
            f"PacBayes(gibbs_risk={self.gibbs_risk:.4g}, vote_risk={self.vote_risk:.4g}, gibbs_error={self.gibbs_error:.4g}, "
            f"vote_error={self.vote_error:.4g}, kl={self.kl:.4g}, count={self.count}, delta={self.delta:g})"
        )


class PlayedRisk(NamedTuple):
    """With probability ≥ 1 − delta each, at every event t at once."""

    decisions: Vector
    """The chance to be wrong at a new row, of the t decisions so far on average: of one picked at random among them."""
    gibbs: Vector | None
    """The same of weights drawn from the belief behind the decision; None of a pool, whose prediction is no Gaussian."""


def pac_bayes(source: Any, X: Any, y: Any, *, delta: float = 0.05, adapted: bool = False) -> PacBayes:
    """Bounds on the error at new rows: of weights drawn from the belief of a trace or a state, and of their vote.

    X and y are the rows, i.i.d., none of which had a part in choosing the prior, the columns or their scales; the belief may
    have learned from them in any way. Labels are −1 and +1, or those that the trace names. ``adapted`` says that each row was
    prepared by what came before it. Behind ``Prepare`` or ``auto`` that is known, rows are prepared once more as they were,
    and a missing value is 0. It is Seeger's and Maurer's bound for i.i.d. rows, Catoni's for adapted ones.

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> trace = ovi.learn(X, np.sign(X[:, 0]), loss=ovi.Hinge(), rule=ovi.NGVI())
    >>> risk = ovi.pac_bayes(trace, X, np.sign(X[:, 0]))
    >>> risk.gibbs_error < risk.gibbs_risk < 0.03, risk.gibbs_risk < risk.vote_risk < 0.06
    (True, True)
    """
    check_delta(delta)
    parts = _components(source)
    X, online = _prepared(source, X)
    rows, labels, _ = as_events(X, _signs(source, y), hint=Hinge.label_hint, dim=parts[0].state.plan.dim, filled=True)
    if rows.count == 0:
        raise ValueError("the stream is empty: X has 0 rows, needs at least one")
    standardised = _margins(parts, rows, labels)
    adapted, weights = adapted or online, np.array([part.weight for part in parts])
    kl = sum(part.divergence for part in parts)
    wrong = weights @ normal_cdf(-standardised)
    gibbs_error = float(wrong.mean())
    gibbs_risk = _risk(gibbs_error, kl, rows.count, delta, adapted=adapted)
    vote_risk = gibbs_risk
    if len(parts) == 1 and math.isfinite(kl):
        vote_risk = min(gibbs_risk, _stretched(parts[0].state, standardised[0], kl, delta, adapted=adapted))
    return PacBayes(
        rows.count,
        kl,
        gibbs_error,
        float((wrong >= 0.5).mean()),
        gibbs_risk,
        min(2.0 * vote_risk, 1.0),
        delta,
        adapted,
    )


def played_risk(trace: Trace, y: Any, delta: float) -> PlayedRisk:
    """Bounds on the errors at new rows of what was decided along the way, from one pass: no row is looked at again.

    For i.i.d. rows, whatever the learner and however it prepared them: a decision was made before its row was seen. There is
    no divergence in it, and it speaks of no single belief, the last one included. The trace must hold every event.

    >>> import numpy as np, onlinevi as ovi
    >>> from onlinevi.guarantees import played_risk
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> trace = ovi.learn(X, np.sign(X[:, 0]), loss=ovi.Hinge(), rule=ovi.NGVI())
    >>> bool(played_risk(trace, np.sign(X[:, 0]), 0.05).decisions[-1] < 0.02)
    True
    """
    check_delta(delta)
    labels = as_labels(_signs(trace, y), Hinge.label_hint)
    if len(labels) != len(trace.steps) or len(labels) != trace.state.count:
        raise ValueError(
            f"y has {len(labels)} labels, the trace {len(trace.steps)} of {trace.state.count} events: needs all of them, from "
            'the first; run learn(..., record="all")'
        )
    times = np.arange(1.0, len(labels) + 1.0)
    decided = tempered_bound(np.cumsum(labels * trace.prediction <= 0.0) / times, 0.0, times, delta)
    leaf = decider(trace).alone()
    if leaf is None or leaf.plan.missing:
        return PlayedRisk(decided, None)
    wrong = normal_cdf(-_standardised(labels * trace.prediction, trace.spread))
    return PlayedRisk(decided, tempered_bound(np.cumsum(wrong) / times, 0.0, times, delta))


def kl_bound(error: float, cost: float, count: int, delta: float) -> float:
    """The largest R with kl(error‖R) ≤ (cost + ln(ξ/delta))/count, ξ = √π·Γ(count + 1)/Γ(count + ½) < 2·√count.

    By halving, from above: what it gives is never below the root.
    """
    most = (cost + float(kl_price(count)) - math.log(delta)) / count
    low, high = error, 1.0
    for _ in range(HALVINGS if math.isfinite(most) else 0):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bernoulli_kl(error, middle) <= most else (low, middle)
    return high


def kl_price(count: Any) -> Any:
    """ln ξ = ln(4^count/binomial(2·count, count)) ≤ ln(2·√count): what mixing over all chances costs at most."""
    from scipy.special import gammaln

    return 0.5 * math.log(math.pi) + gammaln(np.add(count, 1.0)) - gammaln(np.add(count, 0.5))


def tempered_bound(errors: Any, cost: float, counts: Any, delta: float) -> Vector:
    """The least over the K rates λ of ``TEMPERS`` of (1 − e^(−λ·error − (cost + ln(K/delta))/count))/(1 − e^(−λ)).

    One value for each of ``errors`` and ``counts``, side by side.
    """
    price = (cost + math.log(len(TEMPERS) / delta)) / np.asarray(counts, dtype=float)
    least = np.ones(np.broadcast_shapes(np.shape(errors), np.shape(price)))
    for temper in TEMPERS:
        np.minimum(least, np.expm1(-temper * np.asarray(errors) - price) / math.expm1(-temper), out=least)
    return least


def bernoulli_kl(p: float, q: float) -> float:
    """kl(p‖q) = p·ln(p/q) + (1 − p)·ln((1 − p)/(1 − q))."""
    from scipy.special import rel_entr

    return float(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q))


class _Component(NamedTuple):
    """A Gaussian of the belief."""

    state: State
    weight: float
    divergence: float
    """Its share of KL(belief‖prior)."""


def _components(source: Any) -> list[_Component]:
    """The Gaussians that a belief is a mixture of: KL(Σ w·q‖Σ p·π) ≤ Σ w·(ln(w/p) + KL(q‖π)).

    Of a pool that has learners on features beside those on the columns, the belief is that of the latter.
    """
    state = decider(source)
    if state.alone() is not None:
        return [_component(state, 1.0, 1.0)]
    alike = [k for k, own in enumerate(state.learners) if own.space == state.space and own.alone() is not None]
    weights, before = state.weights[alike], np.exp(state.plan.log_prior)[alike]
    weights = weights / weights.sum() if weights.sum() > 0.0 else before / before.sum()
    parts = zip([state.learners[k].alone() for k in alike], weights.tolist(), (before / before.sum()).tolist(), strict=True)
    return [_component(*part) for part in parts if part[1] > 0.0]


def _component(state: State, weight: float, before: float) -> _Component:
    family: Any = state.plan.family
    if not family.gaussian:
        raise TypeError(f"{family} is a point, infinitely far from any prior: give a rule with a spread, such as NGVI()")
    return _Component(state, weight, weight * (math.log(weight / before) + family.kl(state.belief)))


def _margins(parts: list[_Component], rows: Any, labels: Vector) -> Vector:
    """y·a/v: a row for each Gaussian, a value for each event."""
    margins = np.empty((len(parts), rows.count))
    step = max(1, BLOCK_VALUES // rows.dim)
    for start in range(0, rows.count, step):
        behind = min(start + step, rows.count)
        block = np.asarray(rows.block(start, behind), dtype=float)
        if any(part.state.plan.missing for part in parts):
            block = np.where(np.isnan(block), 0.0, block)
        for part, found in zip(parts, margins, strict=True):
            mean, variance = part.state.plan.family.predict(part.state.belief, block)
            found[start:behind] = _standardised(labels[start:behind] * mean, np.sqrt(variance))
    if np.isnan(margins).any():
        row = int(np.isnan(margins).any(axis=0).argmax())
        raise ValueError(f"row {row}: the prediction is not finite; drop the row, or use a learner for missing values")
    return margins


def _standardised(margin: Vector, spread: Vector) -> Vector:
    """margin/spread, and −∞ where both are 0: a sign that is none is wrong."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((margin == 0.0) & (spread == 0.0), -np.inf, margin / spread)


def _risk(error: float, cost: float, count: int, delta: float, *, adapted: bool) -> float:
    if adapted:
        return float(tempered_bound(error, cost, count, delta))
    return kl_bound(error, cost, count, delta)


def _stretched(state: State, margins: Vector, kl: float, delta: float, *, adapted: bool) -> float:
    """The least Gibbs bound among N(c·mean, k²·covariance): the vote of each is that of the mean, and the bound is for all.

    The error depends on r = c/k alone, y·a/v times r. At a given r the least divergence is where its derivative in k is 0.
    """
    prior: Belief = state.plan.family.init(state.plan.dim)
    dim, mean, precision = state.plan.dim, state.mean, np.square(prior.std) ** -1.0
    width, length = float(precision @ np.square(state.std)), float(precision @ np.square(mean))
    across, offset = float(precision @ (mean * prior.mean)), float(precision @ np.square(prior.mean))
    volume = 2.0 * kl - (width + length - 2.0 * across + offset - dim)  # ln det(prior)/det(belief)
    least = 1.0
    for ratio in RATIOS:
        square = width + ratio**2 * length
        scale = (ratio * across + math.sqrt((ratio * across) ** 2 + 4.0 * dim * square)) / (2.0 * square)
        stretched = scale**2 * square - 2.0 * ratio * scale * across + offset - dim - 2.0 * dim * math.log(scale) + volume
        error = float(normal_cdf(-ratio * margins).mean())
        least = min(least, _risk(error, max(0.5 * stretched, 0.0), len(margins), delta, adapted=adapted))
    return least


def _signs(source: Any, y: Any) -> Any:
    """Labels as −1 and +1; anything else is refused."""
    named = getattr(source, "classes", None)
    if named is not None:
        y = np.where(np.asarray(y) == named[1], 1.0, np.where(np.asarray(y) == named[0], -1.0, np.nan))
    labels = as_labels(y, Hinge.label_hint)
    if not np.isin(labels, (-1.0, 1.0)).all():
        odd = labels[~np.isin(labels, (-1.0, 1.0))][0]
        raise ValueError(f"a label of {odd:g}: errors of a sign need classes, as −1 and +1{' or as learned' if named else ''}")
    return labels


def _prepared(source: Any, X: Any) -> tuple[Any, bool]:
    """The rows as the weights had them, and whether they were prepared as they came."""
    state, rows, online = getattr(source, "state", source), X, False
    seen = getattr(state, "inputs", None)
    if seen is not None:
        inputs = getattr(getattr(source, "learner", None), "inputs", None)
        if inputs is None:
            raise TypeError(f"{source!r}: it prepares rows, and a state does not know how: give the trace")
        online = not inputs.fixed
        moments, rows = inputs.update_many(InputState.start(as_rows(X).dim), X) if online else (seen, inputs.apply(seen, X))
        if moments != seen:
            raise ValueError(
                "X are not the rows that were learned from, in their order: prepared once more they come out otherwise"
            )
    if state.space is not None:
        rows = state.space.of(rows, missing=all(leaf.plan.missing for leaf in state.leaves()))
    return rows, online
