"""This library in the study: the default as users start it, and the default taken apart, for what each part is worth."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
from peers import Scored
from scipy import sparse
from streams import QUANTILE_LEVEL, Stream

import onlinevi as ovi
from onlinevi.ewa import Pool
from onlinevi.learners.default import recipe

Pass: TypeAlias = Callable[[Stream], ovi.Trace]
Entrant: TypeAlias = Callable[[Stream], Scored]

OURS = "onlinevi.auto"
LOSSES: dict[str, ovi.Loss] = {
    "classification": ovi.Logistic(),
    "regression": ovi.Squared(),
    "quantile": ovi.Pinball(QUANTILE_LEVEL),
    "counts": ovi.Poisson(),
}
NUMBERS = ("regression", "quantile")
WARM_UP_ROWS = 20
AS_THEY_ARE = ovi.Inputs(standardise=False, squash=None)
"""Rows in the units they come in, with an intercept."""


def progressive(run: Pass, stream: Stream) -> Scored:
    """One pass, each row predicted before its label is used. A few rows go first, so that compilation is not timed."""
    rows, note = len(stream.y), ""
    with suppress(ovi.BadRow):
        run(replace(stream, X=stream.X[:WARM_UP_ROWS], y=stream.y[:WARM_UP_ROWS]))
    started = time.perf_counter()
    try:
        trace = run(stream)
    except ovi.BadRow as refused:
        trace, note = refused.trace, f"diverged: row {refused.row} of {rows} refused: {refused.reason}"
    seconds = time.perf_counter() - started

    def whole(values: np.ndarray) -> np.ndarray:
        return np.pad(values, (0, rows - len(values)), constant_values=np.nan)

    finished = len(trace.prediction)
    if stream.task == "classification":
        probability = trace.probability
        answer = np.where(probability > 0.5, 1.0, -1.0)
        return Scored(whole(answer), whole(probability), None, None, seconds, finished, note)
    answer = np.exp(trace.prediction) if stream.task == "counts" else trace.prediction
    has_interval = stream.task == "regression" and len(trace.lower) > 0
    lower, upper = (whole(trace.lower), whole(trace.upper)) if has_interval else (None, None)
    return Scored(whole(answer), None, lower, upper, seconds, finished, note)


def default(stream: Stream) -> ovi.Trace:
    return ovi.auto(stream.X, stream.y, loss=LOSSES[stream.task])


def on_rows(stream: Stream, inputs: ovi.Inputs) -> ovi.Trace:
    """The default on rows prepared in another way."""
    return ovi.auto(stream.X, stream.y, loss=LOSSES[stream.task], inputs=inputs)


def pooling(stream: Stream, vary: Callable[[Pool], Pool]) -> ovi.Trace:
    """The default with other learners."""
    learner, dim, is_sparse = ovi.Auto(loss=LOSSES[stream.task]), stream.X.shape[1], sparse.issparse(stream.X)
    prepared = learner.inputs.dim_out(dim)
    pool = vary(recipe.pool(learner.loss, prepared, sparse=is_sparse, missing=False))
    varied: ovi.Learner = ovi.Prepare(learner.inputs, pool)
    if learner.loss.target != "classes":
        varied = ovi.Calibrate(ovi.Calibration(learner.coverage), varied)
    return varied.update_many(varied.init(dim, sparse=is_sparse), stream.X, stream.y)[1]


def alone(stream: Stream, step: Callable[[float], ovi.Rule], family: ovi.Family) -> ovi.Trace:
    """One learner on the rows as they are, at the rate that makes it Bayesian."""
    _, X = AS_THEY_ARE.update_many(AS_THEY_ARE.init(stream.X.shape[1]), stream.X)
    rule = step(0.5 if stream.task in NUMBERS else 1.0)
    return ovi.learn(X, stream.y, loss=LOSSES[stream.task], rule=rule, family=family, average=False)


def with_learners(change: Callable[[ovi.Linear], ovi.Linear | None], pool: Pool) -> Pool:
    """Each learner changed; None leaves it out."""
    return replace(pool, learners=[new for new in map(change, pool.learners) if new is not None])


def _explicit(learner: ovi.Linear) -> ovi.Linear:
    return replace(learner, rule=ovi.NGVI(step=learner.rule.rate))


def _mean_field(learner: ovi.Linear) -> ovi.Linear:
    return replace(learner, family=ovi.MeanField(prior_std=learner.family.prior_std, box=None))


def _remembering(learner: ovi.Linear) -> ovi.Linear | None:
    return learner if learner.discount == 1.0 else None


def _not_robust(learner: ovi.Linear) -> ovi.Linear:
    return replace(learner, loss=replace(learner.loss, robust=None))


def _one_prior(pool: Pool) -> Pool:
    stds = sorted({learner.family.prior_std[-1] for learner in pool.learners})
    return with_learners(lambda learner: learner if learner.family.prior_std[-1] == stds[1] else None, pool)


# From the paper's step to the default, one part after the other.
LADDER: dict[str, Pass] = {
    "explicit": partial(alone, step=ovi.NGVI, family=ovi.MeanField(box=None)),
    "implicit": partial(alone, step=ovi.Implicit, family=ovi.MeanField(box=None)),
    "implicit, covariance": partial(alone, step=ovi.Implicit, family=ovi.FullCovariance(box=None)),
    "aggregate, unscaled": partial(on_rows, inputs=AS_THEY_ARE),
}
# The default without one of its parts; the last rung of the ladder is the one without scaling.
WITHOUT: dict[str, Pass] = {
    "no squash": partial(on_rows, inputs=ovi.Inputs(squash=None)),
    "explicit steps": partial(pooling, vary=partial(with_learners, _explicit)),
    "no covariance": partial(pooling, vary=partial(with_learners, _mean_field)),
    "no forgetting": partial(pooling, vary=partial(with_learners, _remembering)),
    "one prior": partial(pooling, vary=_one_prior),
}
NOT_ROBUST = {"not robust": partial(pooling, vary=partial(with_learners, _not_robust))}

DEFAULT: dict[str, dict[str, Entrant]] = {task: {OURS: partial(progressive, default)} for task in LOSSES}
ABLATION: dict[str, dict[str, Entrant]] = {
    task: {
        name: partial(progressive, run) for name, run in (LADDER | WITHOUT | (NOT_ROBUST if task in NUMBERS else {})).items()
    }
    for task in LOSSES
}
