"""Learn with any differentiable model, from one event, a block, or a whole stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from onlinevi.beliefs import Ball, Family, FullCovariance, MeanField, Point
from onlinevi.data import BLOCK_VALUES, as_events, as_rows
from onlinevi.engine import RECORD, Geometry, Step, Vector
from onlinevi.learners.base import BadRow, Learner
from onlinevi.learners.columns import checked
from onlinevi.learners.described import CheckpointError, Described, Stored
from onlinevi.learners.differentiable.gradients import Linearised, MonteCarlo
from onlinevi.learners.differentiable.loop import check_model, play, predict
from onlinevi.learners.differentiable.weights import Layout, Model, ModelPlan, ModelState, ModelTrace, Params
from onlinevi.learners.linear import Linear, forecast_of
from onlinevi.learners.refusals import reason
from onlinevi.learners.trace import Events, Forecast, Record, Recorder, Trace
from onlinevi.losses import Loss
from onlinevi.rules import Rule

LARGEST_BLOCK = 512
"""How many rows go to JAX at once, at most: between blocks a pass reports, and can be stopped."""


@dataclass(frozen=True)
class Differentiable(Learner[ModelState]):
    """A learner for any model f(params, x) → prediction that JAX can differentiate.

    ``gradient`` says how the expected loss is differentiated, ``MonteCarlo(samples)`` or ``Linearised()``; a ``Point`` takes
    the gradient at the point. ``family=None`` takes the one that the rule is made for. The loss of a nonconvex model can
    bend down: there a std may grow, up to the box. ``FullCovariance`` takes ``NGVI`` with ``Linearised()``, O(d²) an event
    for d weights; with the squared loss and step 1 that is the extended Kalman filter for noise of variance 1/2.

    >>> import onlinevi as ovi
    >>> learner = Differentiable(lambda params, x: params @ x, loss=ovi.Squared(), rule=ovi.NGVI(), gradient=Linearised())
    >>> learner.learn([[1.0, 0.0]], [3.0], params=np.zeros(2)).params.round(6).tolist()
    [2.0, 0.0]
    """

    model: Model
    loss: Loss
    rule: Rule
    family: Family | None = None
    gradient: MonteCarlo | Linearised = field(default_factory=MonteCarlo)
    average: bool = False

    def __post_init__(self) -> None:
        if not callable(self.model):
            raise TypeError(f"model={self.model!r}: needs a function of (params, x), such as ReLUNetwork(50)")
        try:
            hash(self.model)
        except TypeError:
            raise TypeError(
                f"model={self.model!r} has no hash, by which compiled code is found: wrap it in a function"
            ) from None
        if not isinstance(self.gradient, MonteCarlo | Linearised):
            raise TypeError(f"gradient={self.gradient!r}: needs MonteCarlo(10) or Linearised()")
        parts = Linear(self.loss, self.rule, self.family)  # refuses what does not go together
        object.__setattr__(self, "family", parts.family)
        if self.loss.robust is not None:
            raise ValueError(f"{self.loss}: a bounded influence is offered for linear predictors only; set robust=None")
        _refuse_unoffered(self.rule, parts.belief_family, self.gradient)
        _refuse_flat(self.loss, self.gradient)

    def init(  # type: ignore[override]  # a model's size is that of its weights, not of its rows
        self, params: Params, *, start: Params = None, horizon: int | None = None, seed: int = 0
    ) -> ModelState:
        """The state before the first event. ``params`` gives the shapes of the weights; its values are not read.

        The means start at the prior's, or at ``start``: weights like ``params``, or one flat vector. The prior stays the
        family's. ``seed`` decides the draws of ``MonteCarlo``.
        """
        layout = Layout.of(params)
        if layout.size < 1:
            raise ValueError("params hold no weights: give arrays of the shapes that the model takes")
        if horizon is not None and horizon < 1:
            raise ValueError(f"horizon={horizon}: needs at least one event")
        assert self.family is not None
        plan = ModelPlan(
            self.loss, self.family, self.rule, self.average, layout.size, horizon, self.model, self.gradient, layout, seed
        )
        _ = plan.settings, plan.prior_and_box  # refuse a bad setting now, not at the first event
        return plan.start(start)

    def predict(self, state: ModelState, x: Any) -> tuple[Any, Any]:
        """Mean and std of the prediction at a row, or at each row of a matrix, as an update would record them."""
        checked(state, x)
        plan, rows = self._check(state), np.asarray(x, dtype=float)
        check_model(plan.model, plan.layout, rows.shape[-1])
        mean, std = predict(plan, state.array, np.atleast_2d(rows))
        # A model can make a number of what is none: max(0, NaN) may be 0.
        if not (np.isfinite(rows).all() and np.isfinite(mean + std).all()):
            raise ValueError("the prediction is not finite: x holds NaN, infinity, or values too large for the model")
        return (float(mean[0]), float(std[0])) if rows.ndim == 1 else (mean, std)

    def update(self, state: ModelState, x: Any, y: float, weight: float = 1.0) -> tuple[ModelState, Step]:
        """Learn from one event. The state given is left as it is; the step says what was predicted before ``y`` was used."""
        row = np.asarray(x, dtype=float)
        if weight == 0.0:
            return state, Step(*self.predict(state, row), 0.0)
        after, trace = self.update_many(state, row[np.newaxis], [y], weights=[weight])
        return after, Step(*(float(column[0]) for column in (trace.prediction, trace.spread, trace.loss)))

    def update_many(
        self,
        state: ModelState,
        X: Any,
        y: Any,
        *,
        weights: Any = None,
        record: Record = "all",
        progress: Callable[[int], None] | None = None,
    ) -> tuple[ModelState, ModelTrace]:
        """Learn from a block of rows, in order; the same bits as one event at a time.

        ``progress`` is called with the number of rows learned from, every now and then.
        """
        plan = self._check(state)
        rows, labels, each = as_events(X, y, weights, hint=self.loss.label_hint, filled=True)
        each = np.ones(rows.count) if weights is None else each
        check_model(plan.model, plan.layout, rows.dim)
        recorder = Recorder(record, state, rows, self)
        size = max(1, min(LARGEST_BLOCK, BLOCK_VALUES // plan.dim))
        try:
            for start in range(0, rows.count, size):
                stop = min(start + size, rows.count)
                part = rows.block(start, stop), labels[start:stop], each[start:stop]
                state, bad = _advance(state, *part, size, recorder)
                if bad is not None:
                    raise BadRow(start + bad.row, bad.reason)
                if progress is not None:
                    progress(stop)
        except (BadRow, KeyboardInterrupt) as stopped:
            stopped.trace = _model_trace(recorder.finish(state))  # type: ignore[union-attr]
            raise
        return state, _model_trace(recorder.finish(state))

    def play(self, state: ModelState, X: Any, y: Vector, weights: Vector) -> tuple[ModelState, Events]:
        after, trace = self.update_many(state, X, y, weights=weights if len(weights) else None)
        return after, Events(trace.prediction, trace.spread, trace.loss)

    def foresee(self, state: ModelState, X: Any) -> Events:
        mean, std = self.predict(state, X)
        return Events(mean, std, np.full(len(mean), np.nan))

    def said(self, events: Events) -> Forecast:
        return forecast_of(self.loss, events, self.loss.score(events.prediction, events.spread))

    def widen(self, state: ModelState, dim: int) -> NoReturn:
        raise ValueError("a model has the weights that it has: no columns can join; make a new one")

    def merge(self, states: Sequence[ModelState], start: ModelState | None = None) -> NoReturn:
        raise ValueError("models that were learned apart do not add up: their predictions are not linear in the weights")

    def describe(self, state: ModelState) -> Described:
        raise CheckpointError(f"{self.model!r} is a function, which no checkpoint can hold: keep state.mean and state.std")

    def restore(self, stored: Stored) -> ModelState:
        raise CheckpointError("a model is a function, which no checkpoint can hold")

    def learn(
        self,
        X: Any,
        y: Any,
        *,
        params: Params,
        start: Params = None,
        horizon: int | None = None,
        seed: int = 0,
        weights: Any = None,
        record: Record = "all",
        progress: Callable[[int], None] | None = None,
    ) -> ModelTrace:
        """One pass over a stream: predict each row before its label is used, then learn from it.

        ``params``, ``start`` and ``seed`` are those of ``init``; ``horizon`` is the number of rows unless given.
        """
        rows = as_rows(X, filled=True)
        if rows.count == 0:
            raise ValueError("the stream is empty: X has 0 rows, needs at least one")
        state = self.init(params, start=start, horizon=horizon or rows.count, seed=seed)
        return self.update_many(state, X, y, weights=weights, record=record, progress=progress)[1]

    def _check(self, state: ModelState) -> ModelPlan:
        plan = state.plan
        theirs = plan.model, plan.loss, plan.rule, plan.family, plan.gradient, plan.average
        if theirs != (self.model, self.loss, self.rule, self.family, self.gradient, self.average):
            raise ValueError(
                "this state belongs to another learner: its model, loss, rule, family, gradient or average differs"
            )
        return plan


def _model_trace(trace: Trace) -> ModelTrace:
    parts = trace.steps, trace.prediction, trace.spread, trace.loss, trace.average_loss
    return ModelTrace(trace.state, *parts, trace.learner)


def _refuse_unoffered(rule: Rule, family: Family, gradient: MonteCarlo | Linearised) -> None:
    """Refuse what a linear predictor may have and a model may not."""
    if not isinstance(family, MeanField | Point | FullCovariance):
        raise TypeError(f"family={family!r}: a differentiable model takes MeanField(), FullCovariance() or Point()")
    if type(rule).slopes_after_step is not Rule.slopes_after_step:
        raise ValueError(
            f"{rule} looks for the slopes after its step, which is offered for linear predictors only: "
            "with a model use NGVI() and gradient=Linearised(), or OGA() for a point"
        )
    if isinstance(family.box, Ball) and family.box.std is not None:
        rule.check_ball_of_stds(convex=False)  # a model bends down somewhere, whatever the loss
    if not family.correlated:
        return
    if rule.geometry is not Geometry.PREDICTION:
        raise ValueError(
            f"{rule} has no step for a full covariance over the weights of a model: use NGVI() and gradient=Linearised(), "
            "or MeanField()"
        )
    if not isinstance(gradient, Linearised):
        raise ValueError(
            f"{gradient}: the step on a full covariance needs the model's Jacobian, which draws do not give; "
            "use gradient=Linearised(), or MeanField()"
        )


def _refuse_flat(loss: Loss, gradient: MonteCarlo | Linearised) -> None:
    """Refuse Gauss–Newton curvatures of a loss whose second derivative is 0 wherever there is one: no std would ever move."""
    if not (isinstance(gradient, MonteCarlo) and gradient.gauss_newton):
        return
    if not loss(1.0, np.linspace(-2.0, 2.0, 9)).curvature.any():  # a label that every loss takes
        raise ValueError(
            f"{gradient}: {loss} has no curvature at a point, which Gauss–Newton would take; "
            f"use MonteCarlo({gradient.samples}, centred=True) or Linearised()"
        )


def _advance(
    state: ModelState, rows: Vector, labels: Vector, weights: Vector, size: int, recorder: Recorder
) -> tuple[ModelState, BadRow | None]:
    """The state after a block; or before its first bad row, and that row."""
    plan = state.plan
    valid = np.asarray(plan.loss.valid_label(labels, *plan.parameters)) & np.isfinite(rows).all(axis=1)
    valid &= np.isfinite(weights) & (weights > 0.0)
    absent = weights == 0.0
    refused = np.flatnonzero(~(valid | absent))
    end = int(refused[0]) if len(refused) else len(labels)
    there = np.flatnonzero(~absent[:end])
    used, array, record = play(plan, state.array, rows[there], labels[there], weights[there], size)
    buffer = recorder.buffer(used)
    buffer[:] = record[: len(buffer)]
    recorder.add(buffer)
    after = ModelState(array, plan)
    if used < len(there):
        return after, BadRow(int(there[used]), _not_finite(plan, float(record[used, RECORD.prediction])))
    if end < len(labels):
        return after, BadRow(end, reason(plan, rows[end], float(labels[end]), float(weights[end])))
    return after, None


def _not_finite(plan: ModelPlan, prediction: float) -> str:
    if not np.isfinite(prediction):
        return f"the model predicts {prediction} at the means: scale the features down, or use a smaller box"
    return f"the step would overflow (prediction {prediction:.3g}): {plan.loss.overflow_hint}, or lower the rate"
