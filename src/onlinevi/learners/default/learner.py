"""Learn from any stream with nothing to tune."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, get_args

import numpy as np

from onlinevi.data import as_labels, as_rows
from onlinevi.engine import Vector
from onlinevi.learners.base import Learner, Wrapped, merge_inner
from onlinevi.learners.calibrate import Calibrate
from onlinevi.learners.calibration import Calibrated, Calibration
from onlinevi.learners.class_pool import ClassPool, ClassPoolState
from onlinevi.learners.columns import keeping
from onlinevi.learners.default import recipe
from onlinevi.learners.default.joint import pool_of_classes
from onlinevi.learners.default.recipe import Effort
from onlinevi.learners.described import FOREIGN, CheckpointError, Described, Stored
from onlinevi.learners.inputs import Inputs
from onlinevi.learners.live import Live
from onlinevi.learners.pool import Pool, PoolState
from onlinevi.learners.prepare import Prepare, PrepareState
from onlinevi.learners.recalibrate import Recalibrate
from onlinevi.learners.softmax import Softmax
from onlinevi.learners.trace import Events, Forecast, Record, Trace
from onlinevi.losses import Logistic, Loss, Squared

Core: TypeAlias = Pool | Recalibrate | ClassPool
"""What the default puts its other parts around."""


@dataclass(frozen=True, eq=False, repr=False)
class AutoState(Wrapped):
    """The learner that was put together for a stream, and its state: what the default is made of may change, this goes on."""

    made_of: Learner[Any]
    inner: Any

    @property
    def pooled(self) -> PoolState | ClassPoolState:
        """The learners and their weights."""
        found = self.inner
        while not isinstance(found, PoolState | ClassPoolState):
            found = found.inner
        return found

    @property
    def weights(self) -> Vector:
        """The weights of the learners in the next prediction."""
        return self.pooled.weights

    @property
    def std(self) -> Vector:
        return np.asarray(self.inner.std)

    @property
    def noise(self) -> float:
        """The variance of the noise in the labels, for numbers; for counts, beside that of Poisson's law."""
        return float(self._calibrated.noise)

    @property
    def coverage(self) -> float:
        """The part of the labels that lay in their intervals."""
        return float(self._calibrated.coverage)

    @property
    def calibrated(self) -> Calibrated | None:
        """What the residuals have told, for numbers and counts; None for classes."""
        told: Calibrated | None = getattr(self.inner, "calibrated", None)
        return told

    @property
    def _calibrated(self) -> Calibrated:
        if self.calibrated is None:
            raise ValueError("classes have no noise variance and no intervals: see the probabilities")
        return self.calibrated


@dataclass(frozen=True)
class Auto(Learner[AutoState]):
    """The recommended learner: features of any unit, no rate, no horizon, streams that change, outliers.

    ``loss`` says what is to be predicted: ``Logistic()`` or ``Hinge()`` classes ±1, ``Squared()`` numbers, ``Absolute()`` or
    ``Pinball(0.9)`` medians and quantiles, ``Poisson()`` counts. ``coverage`` is that of the intervals of numbers and counts.
    For missing values set ``inputs=Inputs(missing=True)``. It is ``Calibrate(Prepare(inputs, Pool(…)))`` for numbers, and
    ``Prepare(inputs, Recalibrate(Pool(…)))`` for two classes; rows with more columns than before widen it by themselves.

    ``effort`` is how much an event may cost: "light" draws straight boundaries, "default" bent ones too, by learners on
    splines, products, hinges and waves of the columns, "most" has more of these. ``lags`` past labels are columns too, for
    streams in time order. ``one_of_many`` says that it tells one class from the rest beside others, with fewer learners.
    ``known`` classes 0, 1, 2, … are told apart by one posterior over the weights of all (``Softmax``): the labels are their
    numbers, and where it ``grows`` others join as they come.

    >>> import numpy as np, onlinevi as ovi
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2)) * [1e-3, 1e6] + [5.0, 0.0]
    >>> learner = ovi.Auto(loss=ovi.Squared())
    >>> state, trace = learner.update_many(learner.init(2), X, X @ [2e3, 3e-6] + 0.1 * rng.standard_normal(300))
    >>> forecast = learner.forecast(state, [5.0, 1e6])
    >>> bool(abs(forecast.mean - 10003.0) < 1.0), 0.85 < state.coverage < 0.95
    (True, True)
    """

    loss: Loss = field(default_factory=Logistic)
    inputs: Inputs = field(default_factory=Inputs)
    coverage: float = 0.9
    effort: Effort = "default"
    lags: int = 0
    one_of_many: bool = False
    known: int | None = None
    grows: bool = True

    def __post_init__(self) -> None:
        if self.effort not in get_args(Effort):
            raise ValueError(f"effort={self.effort!r}: needs one of {', '.join(map(repr, get_args(Effort)))}")
        if type(self.lags) is not int or self.lags < 0:
            raise ValueError(f"lags={self.lags!r}: needs a number of past labels from 0; try 2")
        if not isinstance(self.loss, Loss):
            hint = f"; write {self.loss.__name__}()" if isinstance(self.loss, type) else ""
            raise TypeError(f"loss={self.loss!r}: the default is made for a loss object such as Squared(){hint}")
        if self.loss.ridge > 0.0 or self.loss.robust is not None:
            raise ValueError(f"{self.loss}: the default chooses priors and robustness itself; leave ridge and robust out")
        if self.known is not None:
            self._check_classes(self.known)
        if not self.inputs.intercept:
            raise ValueError("the default needs the intercept: leave it on in inputs")
        _ = Calibration(self.coverage)

    def _check_classes(self, known: int) -> None:
        if self.loss.odds is None:
            raise ValueError(f"known={known!r}: one posterior of several classes needs probabilities; use Logistic()")
        if self.lags or self.one_of_many:
            raise ValueError(f"known={known!r}: labels of several classes are no columns; leave lags and one_of_many out")
        Softmax(known, grows=self.grows)

    @property
    def several(self) -> bool:
        return self.known is not None

    @property
    def pooled(self) -> bool:
        return self.several

    def among_many(self) -> Auto:
        return replace(self, one_of_many=True)

    def init(self, dim: int, horizon: int | None = None, *, sparse: bool = False) -> AutoState:
        """The state before the first event. ``sparse`` says that rows will be sparse: then many columns cost nothing."""
        self.inputs.init(dim)  # refuses a number of columns that is none
        chosen = recipe.Chosen(
            self.loss, self.effort, self.lags, self.one_of_many, sparse, self.inputs.missing, self.inputs.squash
        )
        made_of = _composed(self, self._core(chosen, self.inputs.dim_out(dim)))
        return AutoState(made_of, made_of.init(dim))

    def _core(self, chosen: recipe.Chosen, dim: int) -> Core:
        return recipe.core(chosen, dim) if self.known is None else pool_of_classes(chosen, self.known, dim, grows=self.grows)

    def fitting(self, state: AutoState, dim: int) -> AutoState:
        """The state, widened where rows have more columns than it."""
        missing = {leaf.plan.missing for leaf in state.leaves()}
        if state.made_of.loss != self.loss or missing != {self.inputs.missing}:
            raise ValueError("this state belongs to another learner: its loss or its missing values differ")
        if dim < state.inputs.dim:
            raise ValueError(
                f"X has {dim} columns, the state {state.inputs.dim}: new ones may join at the end, none can leave; "
                "fill it with 0, or with NaN and Inputs(missing=True)"
            )
        return state if dim == state.inputs.dim else self.widen(state, dim)

    def play(self, state: AutoState, X: Any, y: Vector, weights: Vector) -> tuple[AutoState, Events]:
        inner, events = state.made_of.play(state.inner, X, y, weights)
        return AutoState(state.made_of, inner), events

    def foresee(self, state: AutoState, X: Any) -> Events:
        return state.made_of.foresee(state.inner, X)

    def look(self, state: AutoState, X: Any, y: Vector) -> Events:
        state = self._fitted(state, X)
        return state.made_of.look(state.inner, X, y)

    def contributions(self, state: AutoState, X: Any) -> Any:
        return state.made_of.contributions(state.inner, X)

    def live(self, state: AutoState) -> Live:
        return AutoLive(state) if type(self) is Auto else super().live(state)

    def said(self, events: Events) -> Forecast:
        return self._smallest.said(events)

    def score(self, events: Events) -> Any:
        return self._smallest.score(events)

    @cached_property
    def _smallest(self) -> Learner[Any]:
        """The default for two columns: what predictions mean does not depend on their number."""
        return _composed(self, self._core(recipe.Chosen(self.loss, "light", missing=self.inputs.missing), 2))

    def widen(self, state: AutoState, dim: int) -> AutoState:
        """The state for rows with further columns at the end, ``dim`` in all. The learners stay of the kind they are."""
        prepared = state.inner if self.loss.target == "classes" else state.inner.inner
        wide = PrepareState(
            self.inputs.widen(state.inputs, dim), prepared.inner.widened(self.inputs.dim_out(dim)), self.inputs
        )
        inner = wide if self.loss.target == "classes" else replace(state.inner, inner=wide)
        return keeping(AutoState(state.made_of.as_widened(inner), inner), state.columns)

    def merge(self, states: Sequence[AutoState], start: AutoState | None = None) -> AutoState:
        made_of = _composed(self, _core_of(states[0].made_of))
        return AutoState(made_of, merge_inner(made_of, states, start))

    def describe(self, state: AutoState) -> Described:
        self._check(state)
        return Described({}, parts={"made_of": (state.made_of, state.inner)}, configs={"made_of": state.made_of})

    def restore(self, stored: Stored) -> AutoState:
        made_of = stored.config("made_of")
        if not isinstance(made_of, Learner):
            raise CheckpointError(f"its learner is made of {made_of!r}, no learner")
        state = AutoState(made_of, stored.part("made_of", made_of))
        self._check(state)
        return state

    def _check(self, state: AutoState) -> None:
        core = _core_of(state.made_of)
        if not isinstance(core, Core) or state.made_of != _composed(self, core):
            raise CheckpointError(FOREIGN)


class AutoLive(Live):
    """The live state of what the default is made of."""

    def __init__(self, state: AutoState) -> None:
        self._made_of, self._inner = state.made_of, state.made_of.live(state.inner)

    @property
    def state(self) -> AutoState:
        return AutoState(self._made_of, self._inner.state)

    def learn(self, row: Vector, label: float, again: bool = False) -> Events:
        return self._inner.learn(row, label, again)

    def foresee(self, row: Vector, again: bool = False) -> Events:
        return self._inner.foresee(row, again)


def _core_of(made_of: Any) -> Any:
    """What is around no other learner but those of a pool; what is innermost where there is none such."""
    while not isinstance(made_of, Core) and hasattr(made_of, "inner"):
        made_of = made_of.inner
    return made_of


def _composed(auto: Auto, core: Core) -> Learner[Any]:
    """The default as a composition, around the learners that were chosen for a number of columns."""
    prepared = Prepare(auto.inputs, core)
    return prepared if auto.loss.target == "classes" else Calibrate(Calibration(auto.coverage), prepared)


def auto(
    X: Any,
    y: Any,
    *,
    loss: Loss | None = None,
    weights: Any = None,
    record: Record = "all",
    inputs: Inputs | None = None,
    coverage: float = 0.9,
    effort: Effort = "default",
    lags: int = 0,
) -> Trace:
    """One pass of ``Auto`` over a stream: predict each row before its label is used, then learn from it.

    X and y as for ``learn``. ``loss=None`` reads the kind of task off the labels: two different ones are classes, the smaller
    −1 and the other +1, as ``trace.classes`` tells; more are numbers. Give ``Squared()`` where two values are amounts.

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> trace = ovi.auto(X, np.sign(X @ [1.0, -1.0, 0.0]))
    >>> bool(trace.average_loss[-1] < 0.4), bool((trace.probability[-50:] > 0.5).any())
    (True, True)
    """
    rows = as_rows(X)
    if rows.count == 0:
        raise ValueError("the stream is empty: X has 0 rows, needs at least one")
    classes = None
    if loss is None:
        labels = as_labels(y, Logistic.label_hint)
        values = np.unique(labels)
        if len(values) == 2 and np.isfinite(values).all():
            y, classes = np.where(labels == values[1], 1.0, -1.0), _as_given(y, values)
        loss = Logistic() if len(values) == 2 or np.isin(values, (-1.0, 1.0)).all() else Squared()
    learner = Auto(loss, Inputs() if inputs is None else inputs, coverage, effort, lags)
    state = learner.init(rows.dim, sparse=rows.sparse)
    trace = learner.update_many(state, X, y, weights=weights, record=record)[1]
    trace.classes = classes
    return trace


def _as_given(y: Any, values: Vector) -> tuple[Any, Any] | None:
    """Two labels in the type that they came in; None for −1 and +1, which need no word."""
    if tuple(values) == (-1.0, 1.0):
        return None
    smaller, larger = values.astype(np.asarray(y).dtype).tolist()
    return smaller, larger
