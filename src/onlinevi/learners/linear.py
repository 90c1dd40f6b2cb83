"""Learn from one event, a block, or a whole stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from onlinevi.beliefs import Ball, Family, MeanField, Point
from onlinevi.data import Rows, as_events, as_row, as_rows, blocks, typed_row
from onlinevi.engine import SUM, Step, Vector
from onlinevi.engine import loop as linear
from onlinevi.learners.base import BadRow, Learner
from onlinevi.learners.columns import checked, keeping
from onlinevi.learners.described import (
    FOREIGN,
    CheckpointError,
    Described,
    Stored,
    check_finite,
    numbers_of,
    put_numbers,
    sizes_of,
)
from onlinevi.learners.refusals import NOT_FINITE, reason, refusal
from onlinevi.learners.state import Plan, State, aligned_copy, magnitude_at_most
from onlinevi.learners.trace import Events, Forecast, Record, Recorder, Trace
from onlinevi.losses import Loss
from onlinevi.rules import Rule


@dataclass(frozen=True)
class Linear(Learner[State]):
    """Algorithm 2 for predictions that are linear in the weights: a learner of a loss, a rule, and a family of beliefs.

    ``family=None`` takes the one the rule is made for: ``Point()`` for OGA, ``MeanField()`` for the others.
    ``average`` keeps the average of all decisions. ``discount`` < 1 forgets, for streams that change: after each event the
    belief moves back to the prior, λ ← γλ + (1 − γ)λ₁ in natural parameters; 0.99 remembers about 100 events. ``missing``
    reads NaN in a row as a missing value of a standardised feature, N(0, 1): it widens the prediction, and the step leaves its
    weight alone. ``dtype="float32"`` keeps beliefs and rows in single precision, for long rows: about twice as fast, and
    losses to some five digits; the sums over events stay double. ``lazy`` lets a weight forget when a row stores it, for all
    events since: the same to rounding, and sparse rows that forget cost what they store; it needs ``average=False``.

    >>> import onlinevi as ovi
    >>> learner = ovi.Linear(loss=ovi.Squared(), rule=ovi.NGVI(step=1.0))
    >>> state, step = learner.update(learner.init(2), [1.0, 0.0], 3.0)
    >>> state.mean.round(6)[0].item(), step.loss
    (2.0, 9.0)
    """

    loss: Loss
    rule: Rule
    family: Family | None = None
    average: bool = True
    discount: float = 1.0
    missing: bool = False
    dtype: str = "float64"
    lazy: bool = False

    def __post_init__(self) -> None:
        for name, kind in (("loss", Loss), ("rule", Rule), ("family", Family | None)):
            if not isinstance(getattr(self, name), kind):
                given = getattr(self, name)
                hint = f"; write {given.__name__}()" if isinstance(given, type) else ""
                raise TypeError(f"{name}={given!r}: needs a {name} object{hint}")
        if self.family is None:
            object.__setattr__(self, "family", MeanField() if self.rule.gaussian else Point())
        family, rule = self.belief_family, self.rule
        if not (rule.gaussian if family.gaussian else rule.supports_points):
            needs = "a Gaussian family such as MeanField()" if rule.gaussian else "Point()"
            raise ValueError(f"{type(rule).__name__} needs {needs}, not {type(family).__name__}")
        family.check_rule(rule)
        if isinstance(family.box, Ball) and family.box.std is not None:
            rule.check_ball_of_stds(convex=self.loss.convex)
        if family.correlated:
            object.__setattr__(self, "rule", rule.with_covariance())
        if self.loss.ridge > 0.0:
            self.rule.check_ridge(family.correlated)
        if not 0.0 < self.discount <= 1.0:
            raise ValueError(
                f"discount={self.discount!r}: needs 0 < discount ≤ 1; 1 forgets nothing, 0.99 has a memory of 100 events"
            )
        object.__setattr__(self, "dtype", getattr(self.dtype, "__name__", str(self.dtype)))  # numpy's own names too
        if self.dtype not in ("float64", "float32"):
            raise ValueError(f'dtype={self.dtype!r}: needs "float64" or "float32"')
        if self.dtype == "float32" and family.correlated:
            raise ValueError(
                f"dtype='float32': the covariances of {type(family).__name__} need double precision; leave dtype out, "
                "or use MeanField()"
            )
        for name, value, unused in (("discount", self.discount, 1.0), ("robust", self.loss.robust, None)):
            if value != unused and not rule.recursive:
                raise ValueError(
                    f"{name}={value!r}: {type(rule).__name__} makes each belief anew from the sum of all gradients, in which "
                    "no event can be forgotten or count less; use SVB(), NGVI() or Implicit()"
                )

        if self.lazy:
            self._check_lazy()

    @property
    def belief_family(self) -> Family:
        assert self.family is not None
        return self.family

    def _check_lazy(self) -> None:
        """Refuse what cannot be made up for later, all at once."""
        family, needs = self.belief_family, ""
        if not family.forgets_late or isinstance(family.box, Ball):
            needs = f"a family whose coordinates forget apart, such as MeanField() with a Box, not {family}"
        elif self.rule.moves_without_gradient or not self.rule.recursive or self.loss.ridge > 0.0:
            needs = "a rule and a loss that leave weights alone where a row stores nothing, such as Implicit() without a ridge"
        elif self.average or self.dtype != "float64":
            needs = "average=False, and double precision: the average of all decisions asks for each of them"
        if needs:
            raise ValueError(f"lazy=True needs {needs}; leave lazy out, and sparse rows are filled up")

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> State:
        """The state before the first event: the prior. ``horizon`` is the number of events to come, where a rate needs it."""
        if dim < 1:
            raise ValueError(f"dim={dim}: needs at least one feature; for an intercept alone use a column of ones")
        if horizon is not None and horizon < 1:
            raise ValueError(f"horizon={horizon}: needs at least one event")
        return self.plan(dim, horizon).start()

    def plan(self, dim: int, horizon: int | None = None) -> Plan:
        """Everything fixed about a run of this learner over ``dim`` features."""
        return _plan(self, dim, horizon)

    def predict(self, state: State, x: Any) -> tuple[Any, Any]:
        """Mean and std of the prediction at a row, or at each row of a matrix. Changes nothing.

        >>> import onlinevi as ovi
        >>> learner = ovi.Linear(loss=ovi.Squared(), rule=ovi.SVB())
        >>> learner.predict(learner.init(2), [3.0, 4.0])
        (0.0, 5.0)
        """
        checked(state, x)
        mean, variance = prediction_law(state, x)
        std = np.sqrt(variance)
        return (float(mean), float(std)) if np.ndim(mean) == 0 else (mean, std)

    def play(self, state: State, X: Any, y: Vector, weights: Vector) -> tuple[State, Events]:
        rows, plan = self._rows(X), state.plan
        record = np.empty((rows.count, 3))
        array, used = run_block(plan, rows, y, weights, 0, rows.count, state.array, record)
        if used < rows.count:
            raise refusal(plan, rows, y, weights, used)
        return State(array, plan), Events(*record.T)

    def foresee(self, state: State, X: Any) -> Events:
        mean, variance = prediction_law(state, X)
        return Events(mean, np.sqrt(variance), np.full(len(mean), np.nan))

    def contributions(self, state: State, X: Any) -> Any:
        if hasattr(X, "tocsr"):
            added = X.multiply(state.mean).tocsr()
            added.data = np.nan_to_num(added.data)
            return added
        return np.nan_to_num(np.asarray(X, dtype=float)) * state.mean  # a missing value is its mean, 0

    def said(self, events: Events) -> Forecast:
        return forecast_of(self.loss, events, self.score(events))

    def score(self, events: Events) -> Any:
        return self.loss.score(events.prediction, events.spread)

    def update(self, state: State, x: Any, y: float, weight: float = 1.0) -> tuple[State, Step]:
        """Learn from one event. The state given is left as it is; the step says what was predicted before ``y`` was used."""
        plan = self._check(state)
        row = typed_row(x, plan.dtype)
        if row.shape != (plan.dim,):
            raise ValueError(f"x has shape {row.shape}: needs ({plan.dim},), one value a feature")
        array, record, label = state.array.copy(), np.empty((1, 3)), np.empty(1)
        try:
            label[0] = y
        except (TypeError, ValueError):
            raise TypeError(plan.loss.refuse_label(repr(y))) from None
        weights = _NO_WEIGHTS if weight == 1.0 else np.array((weight,), dtype=float)
        used = plan.dense_kernel.run(
            row[np.newaxis], label, weights, array, plan.sizes, plan.settings, plan.prior_and_box, plan.parameters, record
        )
        if used != 1:
            raise BadRow(0, reason(plan, row, float(label[0]), weight))
        if weight == 0.0:
            return state, Step(*self.predict(state, row), 0.0)
        after = State(array, plan)
        if state.columns:
            keeping(after, state.columns)
        return after, Step._make(record.tolist()[0])

    def update_many(self, state: State, X: Any, y: Any, *, weights: Any = None, record: Record = "all") -> tuple[State, Trace]:
        """Learn from a block of rows, in order; the same bits as one event at a time."""
        self._check(state)
        trace = _run(self, state, self._rows(X), y, weights, record)
        return trace.state, trace

    def widen(self, state: State, dim: int) -> State:
        """The state for rows with further columns at the end, ``dim`` in all: as if these had been 0 so far.

        With covariances and a discount nearly so: which coordinates forget when depends on their number.

        >>> import onlinevi as ovi
        >>> learner = ovi.Linear(loss=ovi.Squared(), rule=ovi.SVB())
        >>> state, _ = learner.update(learner.init(1), [1.0], 3.0)
        >>> learner.widen(state, 2).std.round(3).tolist()
        [0.414, 1.0]
        """
        self._check(state)
        wide = state.widened(dim)
        if wide.plan.family != self.family:
            raise ValueError(f"{self.family} has one value a coordinate, none for the new ones: give one value for all")
        return wide

    def as_widened(self, state: State) -> Linear:
        return replace(self, family=state.plan.family)

    def merge(self, states: Sequence[State], start: State | None = None) -> State:
        """Prior + Σ (shard − prior) in natural parameters; the sums over events add up, and so do certificates.

        >>> import numpy as np, onlinevi as ovi
        >>> learner = ovi.Linear(ovi.Squared(), ovi.NGVI(step=1.0))
        >>> shards = [learner.update_many(learner.init(1), np.ones((n, 1)), np.arange(n))[0] for n in (3, 5)]
        >>> merged = learner.merge(shards)
        >>> merged.count, round(float(merged.mean[0]), 6) == round(2.0 * (3.0 + 10.0) / (1.0 + 2.0 * 8), 6)
        (8, True)
        """
        plan = states[0].plan
        if any(state.plan != plan for state in (*states, *(() if start is None else (start,)))):
            raise ValueError("these states have not the same learner, prior and columns: their beliefs do not add up")
        if start is not None and self.discount < 1.0:
            raise ValueError(
                f"discount={self.discount}: each shard has forgotten a part of what all began with, and what is left of it "
                "cannot be told from what was learned; merge in one round"
            )
        if start is not None and not self.rule.recursive:
            raise ValueError(
                f"{type(self.rule).__name__} makes each belief anew from the sum of all gradients, so that none starts from a "
                "merged one: merge in one round, or use SVB(), NGVI() or Implicit()"
            )
        family, origin = plan.family, plan.start() if start is None else start
        array = np.array(origin.array)
        numbers = plan.numbers(array)
        beliefs = [state.belief for state in states]
        if self.discount < 1.0:
            belief = family.merge_forgetful(beliefs)
        else:
            belief = family.merge(beliefs, *(() if start is None else (start.belief,)))
        numbers[plan.parts["belief"]] = family.pack(belief)
        if self.lazy:
            numbers[plan.parts["forgotten"]] = sum(state.count for state in states)
        if any(state.without_sums for state in states):
            array[SUM.count] = sum(state.count for state in states)
            return State(array, plan)

        def added(part: Callable[[State], Any]) -> Any:
            """Of the start, and what each shard has added to it; in the order of the shards."""
            return part(origin) + sum(part(state) - part(origin) for state in states)

        largest = max(state.array[SUM.largest_square] for state in (origin, *states))
        array[: len(SUM)] = added(lambda state: state.array[: len(SUM)])
        array[SUM.largest_square] = largest
        numbers[plan.parts["totals"]] = added(lambda state: state.vector("totals"))
        if plan.average:  # Σ decisions, as far from the count times the new mean as the drift says
            decisions = added(lambda state: state.count * state.average_mean)
            numbers[plan.parts["drift"]] = array[SUM.count] * belief.mean - decisions
        return State(array, plan)

    def describe(self, state: State) -> Described:
        plan = state.plan
        if plan != self.plan(plan.dim, plan.horizon):
            raise CheckpointError(FOREIGN)
        check_finite(state.array[: len(SUM)], "state")
        arrays = {name: state.held(name) for name, where in plan.parts.items() if where.stop > where.start}
        for vector in arrays.values():
            check_finite(vector, "state")
        horizon = None if plan.horizon is None else int(plan.horizon)
        return Described({"dim": int(plan.dim), "horizon": horizon, "sums": numbers_of(state.array, SUMS)}, arrays)

    def restore(self, stored: Stored) -> State:
        dim, horizon = sizes_of(stored.facts)
        held = stored.length("belief")
        if dim > held or self.belief_family.belief_size(dim) != held:  # before anything of that size is made
            raise CheckpointError(f"it claims {dim} features, but has a belief of {held} values")
        plan = self.plan(dim, horizon)
        array = plan.zeros()
        put_numbers(array, stored.facts["sums"], SUMS)
        for name, where in plan.parts.items():
            vector = plan.numbers(array)[where]
            if vector.dtype == np.float64:
                stored.fill(name, vector)
            else:
                doubles = np.empty(len(vector))
                stored.fill(name, doubles)
                with np.errstate(over="ignore"):  # what no float holds is refused below
                    vector[:] = doubles
            check_finite(vector, "state")
        if "magnitude" not in stored.facts["sums"]:  # a file from before it was kept
            array[SUM.magnitude] = magnitude_at_most(State(array.copy(), plan))
        return State(array, plan)

    def _rows(self, X: Any) -> Rows:
        return as_rows(X, filled=self.fills_rows, dtype=None if self.dtype == "float64" else self.dtype)

    @property
    def fills_rows(self) -> bool:
        """Whether every coordinate moves at every event: then zeros left out gain nothing."""
        moves_all = self.rule.moves_without_gradient or self.loss.ridge > 0.0 or (self.discount < 1.0 and not self.lazy)
        return moves_all or self.belief_family.correlated or isinstance(self.belief_family.box, Ball)

    def _check(self, state: State) -> Plan:
        plan = state.plan
        if plan.learner is self:
            return plan
        same = plan.loss is self.loss and plan.rule is self.rule and plan.family is self.family
        same = same and (plan.average, plan.discount, plan.missing, plan.lazy) == (
            self.average,
            self.discount,
            self.missing,
            self.lazy,
        )
        if not (same and plan.dtype == self.dtype) and plan != _plan(self, plan.dim, plan.horizon):
            raise ValueError(
                "this state belongs to another learner: its loss, rule, family, average, discount, missing or dtype differs"
            )
        return plan


def prediction_law(state: State, x: Any) -> tuple[Any, Any]:
    """Mean and variance of the prediction at a row, or at each row of a matrix."""
    x = x if hasattr(x, "tocsr") else np.asarray(as_row(x), dtype=float)
    if x.shape[-1:] != (state.plan.dim,):
        raise ValueError(f"x has {x.shape[-1] if x.ndim else 'no'} features, the belief {state.plan.dim}")
    with np.errstate(invalid="ignore", over="ignore"):  # refused below, with more to say
        mean, variance = state.plan.predict(state.belief, x)
        total = mean + variance
    if not (math.isfinite(total) if x.ndim == 1 else np.isfinite(total).all()):
        raise ValueError(NOT_FINITE)
    return mean, variance


def missing_means(state: State, x: Any) -> Any:
    """Σ mean² over the missing values of a row, or of each row of a matrix: what they add to its variance for good."""
    if not state.plan.missing or hasattr(x, "tocsr"):
        return np.zeros(x.shape[:-1])
    return np.isnan(np.asarray(x, dtype=float)) @ np.square(state.mean)


def learn(
    X: Any,
    y: Any,
    *,
    loss: Loss,
    rule: Rule,
    family: Family | None = None,
    weights: Any = None,
    record: Record = "all",
    average: bool = True,
    discount: float = 1.0,
    missing: bool = False,
    dtype: str = "float64",
    horizon: int | None = None,
) -> Trace:
    """One pass over a stream: predict each row before its label is used, then learn from it.

    X is a matrix (numpy, scipy.sparse) or a table (pandas, polars, pyarrow). ``weights`` multiply the loss, row by row; a
    weight of 0 is as if the row were absent. ``discount``, for streams that change, ``missing``, for NaN in X, and ``dtype``,
    for speed, are those of ``Linear``. ``horizon`` is the number of rows unless given.

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> trace = ovi.learn(X, np.sign(X @ [1.0, -1.0, 0.0]), loss=ovi.Hinge(), rule=ovi.NGVI())
    >>> bool(trace.average_loss[-1] < 0.3), (trace.mean > [1.5, -2.5, -0.5]).tolist()
    (True, [True, True, True])
    """
    learner = Linear(loss=loss, rule=rule, family=family, average=average, discount=discount, missing=missing, dtype=dtype)
    rows = learner._rows(X)
    if rows.count == 0:
        raise ValueError("the stream is empty: X has 0 rows, needs at least one")
    state = learner.init(rows.dim, horizon or rows.count)
    return _run(learner, state, rows, y, weights, record)


SUMS = SUM._asdict()
"""What a file calls the sums at the head of a state."""


def forecast_of(loss: Loss, events: Events, scores: Any) -> Forecast:
    """What a prediction means for the label by its loss alone; ``scores`` are those of classes."""
    if loss.target == "classes":
        probability = loss.probability_of_score(scores, events.spread)
        mean = 2.0 * probability - 1.0
        return Forecast(scores, events.spread, mean, np.sqrt(1.0 - mean * mean), probability, None, None)
    law = loss.label_law(events.prediction, 0.0, np.square(events.spread))
    return Forecast(events.prediction, events.spread, law.mean, None, None, None, None)


COPIES_LAST = 8
"""A sparse block has so many values for each number of the state: it is copied, and looked through, for every block."""


def _run(learner: Linear, state: State, rows: Rows, y: Any, weights: Any, record: Record) -> Trace:
    plan = state.plan
    rows, labels, weights = as_events(rows, y, weights, hint=plan.loss.label_hint, dim=plan.dim)
    recorder = Recorder(record, state, rows, learner)
    try:
        for start, stop in blocks(rows, at_least=COPIES_LAST * len(state.array) if rows.sparse else 0):
            buffer = recorder.buffer(stop - start)
            array, used = run_block(plan, rows, labels, weights, start, stop, state.array, buffer)
            recorder.add(buffer[: int(array[SUM.count]) - state.count])
            state = State(array, plan)
            if used < stop:
                raise refusal(plan, rows, labels, weights, used)
    except (BadRow, KeyboardInterrupt) as stopped:
        stopped.trace = recorder.finish(state)  # type: ignore[union-attr]
        raise
    return recorder.finish(state)


def run_block(
    plan: Plan, rows: Rows, labels: Vector, weights: Vector, start: int, stop: int, before: Vector, buffer: Vector
) -> tuple[Vector, int]:
    """The state behind the rows from start to stop, and the first row not used."""
    array = aligned_copy(before)
    kernel = plan.sparse_kernel if rows.sparse else plan.dense_kernel
    block = rows.block(start, stop), labels[start:stop], weights[start:stop]
    used: int = kernel.run(*block, array, plan.sizes, plan.settings, plan.prior_and_box, plan.parameters, buffer)
    if used != linear.NOT_FINITE:
        return array, start + used
    # Some step overflowed. Halve until it stands alone: any split gives the same bits.
    if stop - start == 1:
        return before.copy(), start
    middle = (start + stop) // 2
    array, used = run_block(plan, rows, labels, weights, start, middle, before, buffer)
    if used < middle:
        return array, used
    recorded = int(array[SUM.count] - before[SUM.count])
    return run_block(plan, rows, labels, weights, middle, stop, array, buffer[recorded:] if len(buffer) else buffer)


_NO_WEIGHTS = np.empty(0)


@lru_cache(maxsize=256)
def _plan(learner: Linear, dim: int, horizon: int | None) -> Plan:
    own = learner.loss, learner.belief_family, learner.rule, learner.average
    plan = Plan(*own, dim, horizon, discount=learner.discount, missing=learner.missing, dtype=learner.dtype, lazy=learner.lazy)
    _ = plan.settings, plan.prior_and_box  # refuse a bad setting now, not at the first event
    object.__setattr__(plan, "learner", learner)
    return plan
