"""Any differentiable model, by JAX: the same rules, rates and boxes as the compiled loop, with gradients found by autodiff.

The only module that imports JAX. Everything runs in 64 bits inside a context: JAX's global setting is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

try:
    import jax
except ModuleNotFoundError as missing:
    raise ImportError("onlinevi.autodiff needs JAX: install it with pip install 'onlinevi[nn]'") from missing
from jax import numpy as jnp

from onlinevi import linear
from onlinevi.families import Family, MeanField, Point
from onlinevi.families.base import MEAN_HIGH, MEAN_LOW, PRIOR_MEAN, PRIOR_STD, STD_HIGH, STD_LOW
from onlinevi.learner import BadRow, Linear, _reason
from onlinevi.losses import Loss
from onlinevi.losses.normal import POINT_MASS
from onlinevi.network import ReLUNetwork
from onlinevi.rows import BLOCK_VALUES, as_labels, as_rows, as_weights
from onlinevi.rules import SVA, Rule
from onlinevi.rules.rates import rate_at
from onlinevi.state import Plan, State
from onlinevi.trace import Record, Recorder, Trace
from onlinevi.types import Belief, Expected, Gradient, Prior, Rates, Real, Step, Totals, Vector

__all__ = ["Differentiable", "Linearised", "ModelState", "ModelTrace", "MonteCarlo", "ReLUNetwork", "flatten"]

Params: TypeAlias = Any
"""Weights in any nesting of dicts, lists and tuples of arrays (a pytree)."""
Model: TypeAlias = Callable[[Params, Real], Real]
Predictor: TypeAlias = Callable[[Real], Real]
"""A model at one row: flat weights → prediction."""

LARGEST_BLOCK = 512
"""How many rows go to JAX at once, at most: it can be stopped, and report, between blocks."""


class View(NamedTuple):
    """What a belief says of one event: its prediction, and E_q[loss] with its gradient."""

    prediction: Real
    spread: Real
    value: Real
    gradient: Gradient


@dataclass(frozen=True)
class MonteCarlo:
    """Unbiased gradients of E_q[loss] from draws θ = mean + std·ε: g = avg ∇ℓ(θ), γ = avg ∇ℓ(θ)·ε.

    The spread of a prediction is the draws' root mean square distance from it. Law: the error falls like 1/√samples.
    """

    samples: int = 10

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples={self.samples}: needs at least one draw an event; try 10")

    def predict(self, predictor: Predictor, belief: Belief, key: Any) -> tuple[Real, Real]:
        return self._law(predictor(belief.mean), jax.vmap(predictor)(belief.mean + belief.std * self._noise(belief, key)))

    def view(self, predictor: Predictor, cost: Callable[[Real, Real], Expected], belief: Belief, key: Any) -> View:
        noise = self._noise(belief, key)
        predictions, pull_back = jax.vjp(jax.vmap(predictor), belief.mean + belief.std * noise)
        costs = cost(predictions, 0.0)
        (gradients,) = pull_back(costs.slope)
        std_gradient = (gradients * noise).mean(axis=0)
        spread_out = belief.std > POINT_MASS  # a std of 0 has no gradient, and γ/std of a tiny one would overflow
        curvature = jnp.where(spread_out, std_gradient / jnp.where(spread_out, belief.std, 1.0), 0.0)
        law = self._law(predictor(belief.mean), predictions)
        return View(*law, costs.value.mean(), Gradient(gradients.mean(axis=0), curvature))

    def _noise(self, belief: Belief, key: Any) -> Real:
        # Drawn in 32 bits: twice as fast, and random numbers are half the cost of a step.
        draws = jax.random.normal(key, (self.samples, *belief.mean.shape), jnp.float32)
        return draws.astype(belief.mean.dtype)

    def _law(self, prediction: Real, predictions: Real) -> tuple[Real, Real]:
        return prediction, jnp.sqrt(jnp.square(predictions - prediction).mean())


@dataclass(frozen=True)
class Linearised:
    """Gradients of E_q[loss] with the model replaced by its tangent at the mean: no draws, exact where it is linear.

    With J = ∂f/∂θ at the mean the prediction is N(f(mean), Σ J²std²), g = e1·J and γ/std = e2·J²: the Gauss–Newton, or
    extended Kalman, form. Curvatures are never negative.
    """

    def predict(self, predictor: Predictor, belief: Belief, key: Any) -> tuple[Real, Real]:
        prediction, slope = jax.value_and_grad(predictor)(belief.mean)
        return prediction, jnp.sqrt(jnp.square(slope * belief.std).sum())

    def view(self, predictor: Predictor, cost: Callable[[Real, Real], Expected], belief: Belief, key: Any) -> View:
        prediction, slope = jax.value_and_grad(predictor)(belief.mean)
        spread = jnp.sqrt(jnp.square(slope * belief.std).sum())
        value, e1, e2 = cost(prediction, spread)
        return View(prediction, spread, value, Gradient(e1 * slope, e2 * jnp.square(slope)))


@dataclass(frozen=True)
class Layout:
    """How the weights lie in one flat vector: leaf after leaf."""

    tree: Any
    shapes: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(params: Params) -> Layout:
        leaves, tree = jax.tree.flatten(params)
        return Layout(tree, tuple(np.shape(leaf) for leaf in leaves))

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def params(self, flat: Real) -> Params:
        ends = np.cumsum([0, *(np.prod(shape, dtype=int) for shape in self.shapes)]).tolist()
        leaves = [flat[start:end].reshape(shape) for start, end, shape in zip(ends, ends[1:], self.shapes, strict=False)]
        return jax.tree.unflatten(self.tree, leaves)


def flatten(params: Params) -> Vector:
    """The weights as one vector, in the order of ``trace.mean``; a family's ``prior_mean`` takes it.

    >>> flatten({"a": [1.0, 2.0], "b": np.zeros((1, 2))}).tolist()
    [1.0, 2.0, 0.0, 0.0]
    """
    return np.concatenate([np.empty(0), *(np.ravel(np.asarray(leaf, dtype=float)) for leaf in jax.tree.leaves(params))])


@dataclass(frozen=True)
class Parts:
    """What a pass is compiled for; the rest it reads as data."""

    model: Model
    layout: Layout
    loss: type[Loss]
    rule: type[Rule]
    gaussian: bool
    gradient: MonteCarlo | Linearised
    average: bool


@dataclass(frozen=True)
class ModelPlan(Plan):
    """A plan whose ``dim`` counts the weights of a model."""

    model: Model
    gradient: MonteCarlo | Linearised
    layout: Layout
    seed: int

    @property
    def compiled_parts(self) -> Parts:
        # At a point there is nothing to draw: the tangent's slope is the gradient itself.
        gradient = self.gradient if self.family.gaussian else Linearised()
        return Parts(self.model, self.layout, type(self.loss), type(self.rule), self.family.gaussian, gradient, self.average)


class ModelState(State):
    """A state over the weights of a model; ``mean`` and ``std`` are flat."""

    __slots__ = ()
    plan: ModelPlan

    @property
    def params(self) -> Params:
        """The decision: the means, in the shape that the model takes."""
        return self.plan.layout.params(self.mean)

    def __reduce__(self) -> tuple[Any, ...]:
        return ModelState, (np.array(self.array), self.plan)


class ModelTrace(Trace):
    """The events of one pass of a model, and the state after it."""

    state: ModelState

    @property
    def params(self) -> Params:
        """The means after the pass, in the shape that the model takes."""
        return self.state.params


class _Running(NamedTuple):
    """A packed state in its parts, in order; those that a run does not keep are empty."""

    head: Real
    mean: Real
    std: Real
    mean_total: Real
    std_total: Real
    drift: Real


def _unpack(parts: Parts, array: Real) -> _Running:
    dim = parts.layout.size
    kept = [1, parts.gaussian, 1, parts.rule.keeps_std_total, parts.average]
    return _Running(*jnp.split(array, np.cumsum([linear.HEAD, *(dim * keep for keep in kept)])[:-1]))


def _belief(parts: Parts, running: _Running) -> Belief:
    return Belief(running.mean, running.std if parts.gaussian else jnp.zeros_like(running.mean))


def _event(
    parts: Parts, running: _Running, x: Real, y: Real, weight: Real, key: Any, settings: Real, frame: Real, parameters: Real
) -> tuple[_Running, Real]:
    """Decide, see the row, pay, update: the game of ``linear.one_pass`` for one row. Returns what is to be recorded too."""
    belief = _belief(parts, running)

    def cost(a: Real, v: Real) -> Expected:
        return parts.loss.expected(y, a, v, *parameters)

    view = parts.gradient.view(
        lambda flat: parts.model(parts.layout.params(flat), x),
        cost,
        belief,
        # By the event's number: how a stream is cut into blocks changes no draw.
        jax.random.fold_in(key, running.head[linear.COUNT].astype(jnp.uint32)),
    )
    pull = weight * settings[linear.RIDGE]
    means, stds = jnp.square(belief.mean).sum(), jnp.square(belief.std).sum()
    paid = weight * cost(view.prediction, 0.0).value + 0.5 * pull * means
    gradient = Gradient(
        weight * view.gradient.mean + pull * belief.mean, weight * view.gradient.curvature + pull * parts.gaussian
    )
    std_gradient = gradient.curvature * belief.std
    head = running.head.at[linear.COUNT].add(1.0)
    head = head.at[linear.LOSS].add(paid)
    head = head.at[linear.EXPECTED].add(weight * view.value + 0.5 * pull * (means + stds))
    head = head.at[linear.PRODUCT].add((gradient.mean * belief.mean + std_gradient * belief.std).sum())
    head = head.at[linear.GRADIENT_SQUARE].add((jnp.square(gradient.mean) + jnp.square(std_gradient)).sum())

    t = head[linear.COUNT]
    rates = Rates(
        rate_at(settings[linear.STEP_SCALE], settings[linear.STEP_POWER], t + settings[linear.LEAD]),
        rate_at(settings[linear.PRIOR_SCALE], settings[linear.PRIOR_POWER], t + settings[linear.LEAD]),
        settings[linear.PER_VARIANCE] > 0.0,
    )
    mean_total = running.mean_total + gradient.mean
    std_total = running.std_total + std_gradient if parts.rule.keeps_std_total else running.std_total
    prior, totals = Prior(frame[PRIOR_MEAN], frame[PRIOR_STD]), Totals(mean_total, std_total)
    new = parts.rule.new_belief(belief, gradient, totals, rates, prior)
    mean = jnp.clip(new.mean, frame[MEAN_LOW], frame[MEAN_HIGH])
    std = jnp.clip(new.std, frame[STD_LOW], frame[STD_HIGH]) if parts.gaussian else running.std
    drift = running.drift + t * (mean - belief.mean) if parts.average else running.drift
    return _Running(head, mean, std, mean_total, std_total, drift), jnp.stack([view.prediction, view.spread, paid])


@partial(jax.jit, static_argnums=0)
def _one_pass(
    parts: Parts,
    rows: Real,
    labels: Real,
    weights: Real,
    count: Real,
    array: Real,
    seed: Real,
    settings: Real,
    frame: Real,
    parameters: Real,
) -> tuple[Real, Real, Real]:
    """The first ``count`` of the rows, up to one whose step is not finite. Returns the rows used, the state and the record.

    A loop with a count rather than a scan: one piece of machine code for every count, hence the same bits for every split.
    """
    key = jax.random.key(seed)

    def go_on(carry: Any) -> Any:
        i, finite, *_ = carry
        return finite & (i < count)

    def body(carry: Any) -> Any:
        i, _, running, record = carry
        after, event = _event(parts, running, rows[i], labels[i], weights[i], key, settings, frame, parameters)
        # A sum is finite only if all its terms are.
        finite = jnp.isfinite(sum(part.sum() for part in after) + event.sum())
        kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, running)
        return i + finite, finite, kept, record.at[i].set(event)

    start = (jnp.asarray(0), jnp.asarray(True), _unpack(parts, array), jnp.zeros((len(labels), 3)))
    used, _, running, record = jax.lax.while_loop(go_on, body, start)
    return used, jnp.concatenate(running), record


@partial(jax.jit, static_argnums=0)
def _predict(parts: Parts, rows: Real, array: Real, seed: Real) -> Any:
    running = _unpack(parts, array)
    key = jax.random.fold_in(jax.random.key(seed), running.head[linear.COUNT].astype(jnp.uint32))

    def at_row(x: Real) -> tuple[Real, Real]:
        return parts.gradient.predict(lambda flat: parts.model(parts.layout.params(flat), x), _belief(parts, running), key)

    return jax.lax.map(at_row, rows, batch_size=LARGEST_BLOCK)


@dataclass(frozen=True)
class Differentiable:
    """A learner for any model f(params, x) → prediction that JAX can differentiate.

    ``gradient`` says how the expected loss is differentiated: ``MonteCarlo(samples)`` or ``Linearised()``; a ``Point`` uses
    the gradient at the point. ``family=None`` takes the one that the rule is made for. A loss of a nonconvex model can bend
    down: then a std may grow, up to the box.

    >>> import onlinevi as ovi
    >>> learner = Differentiable(lambda params, x: params @ x, loss=ovi.Squared(), rule=ovi.NGVI(), gradient=Linearised())
    >>> learner.learn([[1.0, 0.0]], [3.0], params=np.zeros(2)).params.round(6).tolist()
    [2.0, 0.0]
    """

    model: Model
    loss: Loss
    rule: Rule
    family: Family | None = None
    gradient: MonteCarlo | Linearised = MonteCarlo()
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
        linear_learner = Linear(self.loss, self.rule, self.family)  # refuses what does not go together
        object.__setattr__(self, "family", linear_learner.belief_family)
        if not isinstance(self.family, MeanField | Point):
            raise TypeError(f"family={self.family!r}: a differentiable model takes MeanField() or Point()")

    def init(self, params: Params, *, start: Params = None, horizon: int | None = None, seed: int = 0) -> ModelState:
        """The state before the first event. ``params`` gives the shapes of the weights; its values are not read.

        The means start at the prior's, or at ``start``: weights like ``params``, or one flat vector. The prior itself stays
        the family's. ``seed`` decides the draws of ``MonteCarlo``.
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
        _ = plan.settings  # refuse a bad setting now, not at the first event
        array = np.array(plan.start().array)
        if start is not None:
            array[linear.HEAD : linear.HEAD + plan.dim] = _start(plan, start)
        return ModelState(array, plan)

    def predict(self, state: ModelState, x: Any) -> tuple[Any, Any]:
        """Mean and std of the prediction at a row, or at each row of a matrix, as an update would record them."""
        self._check(state)
        rows = np.asarray(x, dtype=float)
        _check_model(state.plan.model, state.plan.layout, rows.shape[-1])
        with jax.enable_x64(True):
            parts, matrix = state.plan.compiled_parts, np.atleast_2d(rows)
            mean, std = (np.asarray(part) for part in _predict(parts, matrix, state.array, state.plan.seed))
        if not np.isfinite(mean + std).all():
            raise ValueError("the prediction is not finite: x holds NaN, infinity, or values too large for the model")
        return (float(mean[0]), float(std[0])) if rows.ndim == 1 else (mean, std)

    def update(self, state: ModelState, x: Any, y: float, weight: float = 1.0) -> tuple[ModelState, Step]:
        """Learn from one event; the state given is left as it is."""
        row = np.asarray(x, dtype=float).reshape(1, -1)
        if weight == 0.0:
            return state, Step(*self.predict(state, row[0]), 0.0)
        after, trace = self.update_many(state, row, [y], weights=[weight])
        return after, Step(float(trace.prediction[0]), float(trace.spread[0]), float(trace.loss[0]))

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

        ``progress`` is called now and then with the number of rows behind.
        """
        self._check(state)
        plan, rows, labels = state.plan, as_rows(X, filled=True), as_labels(y, self.loss.label_hint)
        if len(labels) != rows.count:
            raise ValueError(f"X has {rows.count} rows, y {len(labels)} labels: needs one label a row")
        given = as_weights(weights, rows.count) if weights is not None else np.ones(rows.count)
        _check_model(plan.model, plan.layout, rows.dim)
        recorder = Recorder(record, state, rows.count)
        size = max(1, min(LARGEST_BLOCK, BLOCK_VALUES // plan.dim))
        try:
            for start in range(0, rows.count, size):
                block = slice(start, min(start + size, rows.count))
                state, bad = _advance(state, rows.block(block.start, block.stop), labels[block], given[block], size, recorder)
                if bad is not None:
                    raise BadRow(start + bad.row, bad.reason)
                if progress is not None:
                    progress(block.stop)
        except (BadRow, KeyboardInterrupt) as stopped:
            stopped.trace = ModelTrace(**vars(recorder.finish(state)))  # type: ignore[union-attr]
            raise
        return state, ModelTrace(**vars(recorder.finish(state)))

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
        """One pass over a stream: predict each row before its label is used, then learn from it."""
        rows = as_rows(X, filled=True)
        if rows.count == 0:
            raise ValueError("the stream is empty: X has 0 rows, needs at least one")
        state = self.init(params, start=start, horizon=horizon or rows.count, seed=seed)
        return self.update_many(state, X, y, weights=weights, record=record, progress=progress)[1]

    def _check(self, state: ModelState) -> None:
        plan = state.plan
        theirs = plan.model, plan.loss, plan.rule, plan.family, plan.gradient, plan.average
        if theirs != (self.model, self.loss, self.rule, self.family, self.gradient, self.average):
            raise ValueError("this state belongs to another learner: its model, loss, rule, family or gradient differs")


def _start(plan: ModelPlan, start: Params) -> Vector:
    """Where the means start, refused where the rule or the box would not keep it."""
    shapes, flat = Layout.of(start).shapes, flatten(start)
    if shapes not in (plan.layout.shapes, ((plan.dim,),)):
        raise ValueError(f"start has shapes {shapes}, params {plan.layout.shapes}: give weights like params, or a flat vector")
    belief = plan.family.init(plan.dim)
    if not np.array_equal(plan.family.project(belief._replace(mean=flat)).mean, flat):
        raise ValueError("start must be finite and lie in the box: scale it down, or widen the box")
    if isinstance(plan.rule, SVA) and not np.array_equal(flat, belief.mean):
        raise ValueError("SVA takes every step from the prior, not from start: use MeanField(prior_mean=flatten(start))")
    return flat


def _advance(
    state: ModelState, rows: Any, labels: Vector, weights: Vector, size: int, recorder: Recorder
) -> tuple[ModelState, BadRow | None]:
    """The state after a block, or before its first bad row and that row."""
    plan = state.plan
    valid = np.asarray(plan.loss.valid_label(labels, *plan.parameters)) & np.isfinite(weights) & (weights >= 0.0)
    refused = np.flatnonzero(~(valid & np.isfinite(rows).all(axis=1)) & (weights != 0.0))
    end = int(refused[0]) if len(refused) else len(labels)
    there = np.flatnonzero(weights[:end])  # a weight of 0 is as if the row were absent
    filled, data = np.zeros((size, rows.shape[1])), np.zeros((2, size))
    filled[: len(there)], data[:, : len(there)] = rows[there], (labels[there], weights[there])
    with jax.enable_x64(True):
        used, array, record = _one_pass(
            plan.compiled_parts,
            *(filled, *data, len(there), state.array, plan.seed),
            *(plan.settings, plan.frame, plan.parameters),
        )
        count, array, events = int(used), np.asarray(array), np.asarray(record)
    buffer = recorder.buffer(count)
    buffer[:] = events[: len(buffer)]
    recorder.add(buffer)
    after = ModelState(array, plan)
    if count < len(there):
        return after, BadRow(int(there[count]), _overflow(plan, float(events[count, linear.PREDICTION])))
    if end < len(labels):
        return after, BadRow(end, _reason(plan, rows[end], float(labels[end]), float(weights[end])))
    return after, None


def _overflow(plan: ModelPlan, prediction: float) -> str:
    if not np.isfinite(prediction):
        return f"the model predicts {prediction} at the means: scale the features down, or use a smaller box"
    return f"the step is not finite (prediction {prediction:.3g}): {plan.loss.overflow_hint}, or lower the rate"


@lru_cache(maxsize=256)
def _check_model(model: Model, layout: Layout, features: int) -> None:
    """Refuse a model that does not take such rows, before anything is compiled."""
    weights, row = (jax.ShapeDtypeStruct((size,), jnp.float32) for size in (layout.size, features))
    try:
        shape = np.shape(jax.eval_shape(lambda flat, x: model(layout.params(flat), x), weights, row))
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise ValueError(f"the model refuses a row of {features} features and weights {layout.shapes}: {error}") from error
    if shape != ():
        raise ValueError(f"the model predicts an array of shape {shape}: needs one number a row")
