"""This library in the study: the default as users start it, as it was, and taken apart, for what each part is worth."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
from peers import Scored
from scipy import sparse
from study_streams import QUANTILE_LEVEL, Stream

import onlinevi as ovi
from onlinevi.ewa import AdaHedge, Pool
from onlinevi.learners import Effort
from onlinevi.learners.default import recipe

Pass: TypeAlias = Callable[[Stream], ovi.Trace]
Entrant: TypeAlias = Callable[[Stream], Scored]

OURS, BEFORE, LIGHT, MOST = "onlinevi.auto", "linear default", "light effort", "most effort"
LOSSES: dict[str, ovi.Loss] = {
    "classification": ovi.Logistic(),
    "regression": ovi.Squared(),
    "quantile": ovi.Pinball(QUANTILE_LEVEL),
    "counts": ovi.Poisson(),
}
"""Several classes are learned with the first of them."""
NUMBERS = ("regression", "quantile")
WARM_UP_ROWS = 20
AS_THEY_ARE = ovi.Inputs(standardise=False, squash=None)
"""Rows in the units they come in, with an intercept."""


def progressive(run: Pass, stream: Stream) -> Scored:
    """One pass, each row predicted before its label is used. A few rows go first, so that compilation is not timed."""
    rows, note = len(stream.y), ""
    with suppress(ovi.BadRow):
        run(replace(stream, X=stream.X[:WARM_UP_ROWS], y=stream.y[:WARM_UP_ROWS]))
    started = time.process_time()
    try:
        trace = run(stream)
    except ovi.BadRow as refused:
        trace, note = refused.trace, f"diverged: row {refused.row} of {rows} refused: {refused.reason}"
    seconds = time.process_time() - started

    def whole(values: np.ndarray) -> np.ndarray:
        missing = [(0, rows - len(values))] + [(0, 0)] * (values.ndim - 1)
        return np.pad(values, missing, constant_values=np.nan)

    finished = len(trace.prediction)
    if stream.task == "classes":
        probability = trace.probability
        return Scored(whole(probability.argmax(axis=1) * 1.0), whole(probability), None, None, seconds, finished, note)
    if stream.task == "classification":
        probability = trace.probability
        answer = np.where(probability > 0.5, 1.0, -1.0)
        return Scored(whole(answer), whole(probability), None, None, seconds, finished, note)
    answer = np.exp(trace.prediction) if stream.task == "counts" else trace.prediction
    has_interval = stream.task == "regression" and len(trace.lower) > 0
    lower, upper = (whole(trace.lower), whole(trace.upper)) if has_interval else (None, None)
    return Scored(whole(answer), None, lower, upper, seconds, finished, note)


def default(stream: Stream, effort: Effort = "default") -> ovi.Trace:
    if stream.task == "classes":
        return one_pass(ovi.Auto(ovi.Logistic(), effort=effort, known=stream.classes), stream)
    return ovi.auto(stream.X, stream.y, loss=LOSSES[stream.task], effort=effort)


def one_pass(learner: ovi.Learner, stream: Stream) -> ovi.Trace:
    state = learner.init(stream.X.shape[1], sparse=sparse.issparse(stream.X))
    return learner.update_many(state, stream.X, stream.y)[1]


def before(stream: Stream) -> ovi.Trace:
    """The default of version 0.1, learners linear in the columns alone. It is what later ones are held against.

    So its choices are values here, and do not change with the recipe.
    """
    loss = LOSSES["classification" if stream.task == "classes" else stream.task]
    inputs = ovi.Inputs(standardise=True, squash=3.0, intercept=True)
    pool = _linear_learners(loss, stream.X.shape[1] + 1, sparse.issparse(stream.X))
    learner: ovi.Learner = ovi.Prepare(inputs, pool)
    if loss.target != "classes":
        learner = ovi.Calibrate(ovi.Calibration(coverage=0.9, step=0.05, memory=100.0), learner)
    return one_pass(ovi.OneVsRest(learner, known=stream.classes) if stream.task == "classes" else learner, stream)


def _linear_learners(loss: ovi.Loss, dim: int, is_sparse: bool) -> Pool:
    """For each prior and each memory one; ``dim`` counts the intercept, which is first."""
    is_narrow, is_number = dim <= 150, loss.target in ("numbers", "quantile")
    stds = (0.3, 1.0, 4.0, 20.0) if is_narrow else (0.03, 0.1, 0.3, 1.0)
    if loss.target == "counts":
        stds = tuple(std / math.sqrt(dim) for std in (0.5, 1.0, 2.0))
    discounts = (1.0, 0.999, 0.99, 0.95, 0.7) if is_narrow or not is_sparse else (1.0,)
    learners = []
    for std, discount in itertools.product(stds, discounts):
        family = ovi.FullCovariance if is_narrow and discount**dim >= 0.25 else ovi.MeanField
        priors = (max(1000.0 if is_number else 1.0, std), *[std] * (dim - 1))
        own = ovi.Squared(robust=7.0) if is_number else loss
        rule = ovi.Implicit(rate=0.5 if is_number else 1.0)
        learners.append(ovi.Linear(own, rule, family(prior_std=priors, box=None), average=False, discount=discount))
    if loss.odds is not None:
        return Pool(learners, rate=1.0, share=1e-4, pool="probability")
    return Pool(learners, rate=AdaHedge(), loss=loss, pool="prediction" if loss.level is None else "quantile")


def on_rows(stream: Stream, inputs: ovi.Inputs) -> ovi.Trace:
    """The default on rows prepared in another way."""
    return ovi.auto(stream.X, stream.y, loss=LOSSES[stream.task], inputs=inputs)


def in_part(stream: Stream, vary: Callable[[Pool], Pool], *, recalibrated: bool = True) -> ovi.Trace:
    """The default with other learners, or with its probabilities as they are pooled."""
    learner, dim, is_sparse = ovi.Auto(loss=LOSSES[stream.task]), stream.X.shape[1], sparse.issparse(stream.X)
    core = recipe.core(recipe.Chosen(learner.loss, learner.effort, sparse=is_sparse), learner.inputs.dim_out(dim))
    bends = isinstance(core, ovi.Recalibrate)
    pool = vary(core.inner if bends else core)
    varied: ovi.Learner = ovi.Prepare(learner.inputs, ovi.Recalibrate(pool) if bends and recalibrated else pool)
    if learner.loss.target != "classes":
        varied = ovi.Calibrate(ovi.Calibration(learner.coverage), varied)
    return one_pass(varied, stream)


def alone(stream: Stream, step: Callable[[float], ovi.Rule], family: ovi.Family) -> ovi.Trace:
    """One learner on the rows as they are, at the rate that makes it Bayesian."""
    _, X = AS_THEY_ARE.update_many(AS_THEY_ARE.init(stream.X.shape[1]), stream.X)
    rule = step(0.5 if stream.task in NUMBERS else 1.0)
    return ovi.learn(X, stream.y, loss=LOSSES[stream.task], rule=rule, family=family, average=False)


def with_leaves(change: Callable[[ovi.Linear], ovi.Linear | None], pool: Pool) -> Pool:
    """Each leaf changed, those behind a map too; None leaves it out."""
    learners = [_with_leaves(change, learner) for learner in pool.learners]
    return replace(pool, learners=[learner for learner in learners if learner is not None])


def _with_leaves(change: Callable[[ovi.Linear], ovi.Linear | None], learner: ovi.Learner) -> ovi.Learner | None:
    if isinstance(learner, ovi.Linear):
        return change(learner)
    if isinstance(learner, Pool):
        return with_leaves(change, learner) if any(_with_leaves(change, own) for own in learner.learners) else None
    inner = _with_leaves(change, learner.inner)
    return None if inner is None else replace(learner, inner=inner)


def not_clipped(pool: Pool) -> Pool:
    """What learners on features say as they say it."""
    clipped = (isinstance(learner, ovi.Expand) and isinstance(learner.inner, ovi.Clip) for learner in pool.learners)
    pairs = zip(pool.learners, clipped, strict=True)
    return replace(pool, learners=[replace(one, inner=one.inner.inner) if clips else one for one, clips in pairs])


def without_map(kinds: tuple[type, ...], pool: Pool) -> Pool:
    """The learners but those on features of these maps."""
    kept = [learner for learner in pool.learners if not (isinstance(learner, ovi.Expand) and isinstance(learner.map, kinds))]
    return replace(pool, learners=kept)


def _as_it_is(pool: Pool) -> Pool:
    return pool


def _explicit(learner: ovi.Linear) -> ovi.Linear:
    return replace(learner, rule=ovi.NGVI(step=learner.rule.rate))


def _mean_field(learner: ovi.Linear) -> ovi.Linear:
    return replace(learner, family=ovi.MeanField(prior_std=learner.family.prior_std, box=None))


def _remembering(learner: ovi.Linear) -> ovi.Linear | None:
    return learner if learner.discount == 1.0 else None


def _not_robust(learner: ovi.Linear) -> ovi.Linear:
    return replace(learner, loss=replace(learner.loss, robust=None))


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
    "explicit steps": partial(in_part, vary=partial(with_leaves, _explicit)),
    "no covariance": partial(in_part, vary=partial(with_leaves, _mean_field)),
    "no forgetting": partial(in_part, vary=partial(with_leaves, _remembering)),
    "no maps": partial(in_part, vary=partial(without_map, (ovi.FeatureMap,))),
    "no splines": partial(in_part, vary=partial(without_map, (ovi.Splines,))),
    "no products": partial(in_part, vary=partial(without_map, (ovi.Products,))),
    "no hinges": partial(in_part, vary=partial(without_map, (ovi.Relu,))),
    "no waves": partial(in_part, vary=partial(without_map, (ovi.Fourier,))),
    "bent alone": partial(in_part, vary=partial(without_map, (ovi.Unbent,))),
}
NOT_RECALIBRATED = {"not recalibrated": partial(in_part, vary=_as_it_is, recalibrated=False)}
NOT_ROBUST = {
    "not robust": partial(in_part, vary=partial(with_leaves, _not_robust)),
    "not clipped": partial(in_part, vary=not_clipped),
}
OF_TASK = {"classification": NOT_RECALIBRATED} | dict.fromkeys(NUMBERS, NOT_ROBUST)

DEFAULT: dict[str, dict[str, Entrant]] = {task: {OURS: partial(progressive, default)} for task in (*LOSSES, "classes")}
OF_OURS: dict[str, Pass] = {BEFORE: before, LIGHT: partial(default, effort="light"), MOST: partial(default, effort="most")}
"""What the default is held against beside its peers: what it was before, and with less and more work an event."""
ALL_OURS = {
    task: entrants | {name: partial(progressive, run) for name, run in OF_OURS.items()} for task, entrants in DEFAULT.items()
}
ABLATION: dict[str, dict[str, Entrant]] = {
    task: {name: partial(progressive, run) for name, run in (LADDER | WITHOUT | OF_TASK.get(task, {})).items()}
    for task in LOSSES
}
