"""The estimators: River's methods, from dicts or tables to events, from labels to ±1, numbers of classes, or numbers."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from river import base

from onlinevi.adapters.river.columns import Columns
from onlinevi.beliefs import Family, MeanField
from onlinevi.engine import Vector
from onlinevi.learners import (
    Auto,
    BadRow,
    ClassesBy,
    Effort,
    Expand,
    FeatureMap,
    Inputs,
    InputState,
    Learner,
    Linear,
    OneVsRest,
    Prepare,
    StateBuffer,
    buffer_for,
    check_classes_by,
    check_of_auto,
    choose_softmax,
    classes_by_of,
    loss_of,
    losses_of,
    rule_of,
    with_sets,
)
from onlinevi.losses import Logistic, Loss, Squared, Target
from onlinevi.rules import Rule

Features: TypeAlias = Mapping[Any, Any]
Absent: TypeAlias = Literal["skip", "zero"]


class _Estimator:
    """What both share: columns, the buffer in which a learner learns, and the settings."""

    _targets: ClassVar[tuple[Target, ...]]
    """The tasks whose losses it takes."""

    def __init__(
        self,
        loss: str | Loss | None = None,
        rule: str | Rule = "auto",
        family: Family | None = None,
        inputs: Inputs | None = None,
        absent: Absent = "skip",
        discount: float = 1.0,
        expand: FeatureMap | None = None,
        effort: Effort | None = None,
        lags: int = 0,
    ) -> None:
        self.loss, self.rule, self.family, self.lags = loss, rule, family, lags
        self.inputs, self.absent, self.discount, self.expand, self.effort = inputs, absent, discount, expand, effort
        if absent not in ("skip", "zero"):
            raise ValueError(f'absent={absent!r}: needs "skip", an absent feature adds nothing, or "zero", it is 0')
        self._inputs = inputs or Inputs(missing=True)
        if absent == "skip" and not self._inputs.missing:
            raise ValueError('absent="skip" needs Inputs(missing=True): without, use absent="zero"')
        self._learner = self._make_learner()
        self._columns = Columns(zeros=absent == "zero")
        self._buffer: StateBuffer | None = None
        self._early: list[float] = []  # labels of events that came before any column: ``Auto`` begins with one

    @abstractmethod
    def _default(self) -> tuple[Loss, Family]:
        """The loss where none is given, and the family of a rule that is given without one."""

    @property
    def _raw_memory_usage(self) -> int:
        """What River shows as memory: the state as it would be pickled. Compiled kernels are shared, and not the model's."""
        return len(pickle.dumps(self))

    def _make_learner(self) -> Learner[Any]:
        """The learner of numbers, or of one class against the rest."""
        loss, family = self._default()
        if self.loss is not None:
            loss = loss_of(self.loss, *self._targets)
        if loss.target not in self._targets:
            raise TypeError(f"loss={loss!r}: this estimator needs one of {', '.join(losses_of(*self._targets))}")
        if self._of_auto:
            if self.family is not None or self.discount != 1.0 or self.expand is not None:
                raise ValueError('rule="auto" chooses families, discounts and maps itself: leave them out, or give a rule')
            return Auto(loss, self._inputs, effort=self.effort or "default", lags=self.lags)
        check_of_auto(self.effort or "default", self.lags)
        rule = rule_of(self.rule)
        own = self.family or (family if rule.gaussian else None)
        leaf = Linear(loss, rule, own, False, self.discount, self._inputs.missing)
        if self.expand is None:
            return Prepare(self._inputs, leaf)
        return Prepare(self._inputs, Expand(self.expand, leaf, intercept=self._inputs.intercept))

    @property
    def names(self) -> list[Any]:
        """The features' names in the order of their columns, "name=value" for categories."""
        return list(self._columns.names)

    @property
    def scales(self) -> InputState | None:
        """The moments of the columns, as ``Inputs`` keeps them; None before the first event."""
        return None if self._buffer is None else self._buffer.state.inputs

    def _states(self) -> list[Any]:
        """What is known of the weights, by class where there are several: beliefs, or pools of them."""
        own = () if self._buffer is None else self._buffer.state.by_class()
        return [state if state.alone() is None else state.alone() for state in own]

    def _learn(self, x: Features, label: float, learner: Learner[Any]) -> None:
        """Learn an event, from which features may join; all is as it was where it is refused."""
        columns, buffer = self._columns, self._buffer
        if buffer is None and self._of_auto and not columns.unknown(x):
            self._early.append(label)
            return
        if buffer is None or not columns.read_plain(x):
            columns, buffer = self._room_for(x, learner)
        try:
            buffer.learn(columns.event, label)
        except BadRow as bad:
            raise self._refusal(columns, bad) from None
        self._columns, self._buffer, self._early = columns, buffer, []

    @property
    def _of_auto(self) -> bool:
        return isinstance(self.rule, str) and self.rule == "auto"

    def _room_for(self, x: Features, learner: Learner[Any]) -> tuple[Columns, StateBuffer]:
        """The columns with one for every feature of x, which they have read, and a buffer for them."""
        columns, buffer = self._columns, self._buffer
        joining = columns.unknown(x)
        joined = columns.joined_by(joining) if joining else columns
        if buffer is None:
            buffer = buffer_for(learner, learner.init(len(joined.names)))
            joined.read({})
            for label in self._early:
                buffer.learn(joined.event, label)
        elif joining:
            state = buffer.state
            scales = columns.widened(state.inputs, joining)
            buffer = buffer_for(learner, learner.widen(state, scales.dim).with_inputs(scales))
        joined.read(x)
        return joined, buffer

    def _read(self, x: Features) -> Vector:
        """The event of a dict, from which nothing joins."""
        columns = self._columns
        if not columns.read_plain(x):
            columns.read(x)
        return columns.event

    def _refusal(self, columns: Columns, bad: BadRow) -> BadRow:
        """A refusal that names the feature, and counts events."""
        why = self._inputs.refusal(columns.values, lambda place: f"feature {columns.names[place]!r}")
        return BadRow(0 if self._buffer is None else self._buffer.count, why or bad.reason)


class OnlineVIClassifier(_Estimator, base.MiniBatchClassifier):  # type: ignore[misc]
    """A Gaussian belief about the weights of each class, updated in closed form at each event.

    Features are scaled as they come. Several classes are told apart by one posterior over the weights of all where ``rule`` is
    "auto" and the loss has probabilities (``classes_by="softmax"``), else each by a learner of its own ("one-vs-rest"); one
    that joins is as if it had been known from the start. For bools there is one learner. By default it is ``onlinevi.Auto``,
    which draws boundaries that bend; ``effort="light"``, straight ones, takes a part of the time, and a single rule, such as
    ``rule="ngvi"``, less still. ``lags=2`` gives the last two labels as columns, for streams in time order whose labels come
    before the next event. With ``coverage``, ``predict_set_one`` has the classes that hold the label as often as it
    asks, on any stream.

    >>> from onlinevi.river import OnlineVIClassifier
    >>> model = OnlineVIClassifier()
    >>> for age, colour, label in [(20, "red", True), (60, "blue", False), (30, "red", True), (50, "blue", False)]:
    ...     model.learn_one({"age": age, "colour": colour}, label)
    >>> model.names, model.predict_one({"age": 25, "colour": "red"})
    (['age', 'colour=red', 'colour=blue'], True)
    """

    _targets = ("classes",)

    def __init__(
        self,
        loss: str | Loss | None = None,
        rule: str | Rule = "auto",
        family: Family | None = None,
        inputs: Inputs | None = None,
        absent: Absent = "skip",
        discount: float = 1.0,
        expand: FeatureMap | None = None,
        effort: Effort | None = None,
        coverage: float | None = None,
        classes_by: ClassesBy | None = None,
        lags: int = 0,
    ) -> None:
        super().__init__(loss, rule, family, inputs, absent, discount, expand, effort, lags)
        self.classes: list[Any] = []
        self.coverage, self.classes_by = coverage, classes_by
        self._two, self._many = False, self._in_sets(self._for_many())
        self._learner = self._in_sets(self._learner)

    def _for_many(self) -> Learner[Any]:
        """The learner of classes that join as they come."""
        check_classes_by(self.classes_by, self.rule)
        if classes_by_of(self.classes_by, self._learner.loss, self.rule, self.lags) == "one-vs-rest":
            return OneVsRest(self._learner.among_many(), known=0)
        if self.lags:
            raise ValueError(f"lags={self.lags}: labels of several classes are no columns; leave classes_by out")
        parts = self._learner.loss, self.rule, self.family, self._inputs, self.expand, self.effort or "default"
        return choose_softmax(*parts, 0, grows=True, discount=self.discount)

    def _in_sets(self, learner: Learner[Any]) -> Learner[Any]:
        """The learner, with sets where these are asked for."""
        if self.coverage is None:
            return learner
        if learner.loss.odds is None:
            raise ValueError(
                f"coverage={self.coverage}: {learner.loss} gives no probabilities to make sets of; use Logistic()"
            )
        return with_sets(learner, self.coverage)[0]

    def _default(self) -> tuple[Loss, Family]:
        # A narrow prior, for explicit steps: on fifty features a wide one overshoots at the start.
        return Logistic(), MeanField(prior_std=0.5, box=None)

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def states(self) -> dict[Any, Any]:
        """What is known of each class's weights, as values; of bools there is True alone."""
        return dict(zip([True] if self._two else self.classes, self._states(), strict=True))

    def learn_one(self, x: Features, y: Any) -> None:
        if self._two:
            if y is not True and y is not False and y not in self.classes:
                raise TypeError(f"label {y!r} after bools: give strings or numbers from the start for more than two classes")
            self._learn(x, 1.0 if y else -1.0, self._learner)
        elif y in self.classes:
            self._learn(x, float(self.classes.index(y)), self._many)
        elif y is None or y != y:
            raise ValueError(f"label {y!r}: needs a class; drop the event")
        elif self.classes or not isinstance(y, bool | np.bool_):
            self._learn(x, float(len(self.classes)), self._many)
            self.classes.append(y)
        else:
            self._learn(x, 1.0 if y else -1.0, self._learner)
            self.classes, self._two = [False, True], True

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Any, float]:
        buffer = self._buffer
        if buffer is None:
            return {}
        try:
            chance = buffer.probability(self._read(x))
        except BadRow as bad:
            raise self._refusal(self._columns, bad) from None
        if self._two:
            return {False: 1.0 - chance, True: chance}
        if chance is None:
            raise NotImplementedError(f"{self._learner.loss} has no probabilities of several classes: use Logistic()")
        return dict(zip(self.classes, chance, strict=True))

    def predict_one(self, x: Features, **kwargs: Any) -> Any:
        buffer = self._buffer
        if buffer is None or self._two or self._learner.loss.odds is not None:
            return super().predict_one(x, **kwargs)
        try:
            return self.classes[int(np.argmax(buffer.scores(self._read(x))))]
        except BadRow as bad:
            raise self._refusal(self._columns, bad) from None

    def predict_set_one(self, x: Features) -> set[Any]:
        """The classes that hold the label as often as ``coverage`` asks; needs it to be given."""
        if self.coverage is None:
            raise ValueError(
                "coverage=None: sets take a rule out of its compiled loop, so they are asked for; give coverage=0.9"
            )
        buffer = self._buffer
        if buffer is None:
            return set()
        try:
            held = buffer.held(self._read(x))
        except BadRow as bad:
            raise self._refusal(self._columns, bad) from None
        return {name for name, there in zip(self.classes, held, strict=True) if there}

    def learn_many(self, X: Any, y: Any) -> None:
        _each(X, y, self.learn_one)

    def predict_proba_many(self, X: Any) -> Any:
        import pandas as pd

        return pd.DataFrame([self.predict_proba_one(x) for x in _dicts(X)], index=X.index, columns=self.classes)

    def predict_many(self, X: Any) -> Any:
        import pandas as pd

        return pd.Series([self.predict_one(x) for x in _dicts(X)], index=X.index)


class OnlineVIRegressor(_Estimator, base.MiniBatchRegressor):  # type: ignore[misc]
    """A Gaussian belief about the weights of a linear predictor, updated in closed form at each event.

    Features are scaled as they come, and the unit of the label does not matter. By default it is ``onlinevi.Auto``, which
    learns curves; ``effort="light"``, for lines alone, takes a part of the time, and ``lags=2`` gives the last two labels as
    columns, for streams in time order whose labels come before the next event.

    >>> from onlinevi.river import OnlineVIRegressor
    >>> model = OnlineVIRegressor()
    >>> for i in range(300):
    ...     model.learn_one({"size": 50.0 + 37 * i % 100}, 3000.0 * (50.0 + 37 * i % 100))
    >>> bool(abs(model.predict_one({"size": 70.0}) / 210_000.0 - 1.0) < 0.1)
    True
    """

    _targets = ("numbers", "quantile", "counts")

    def _default(self) -> tuple[Loss, Family]:
        return Squared(), MeanField(prior_std=4.0, box=None)

    @property
    def state(self) -> Any:
        """What is known of the weights, as a value; None before the first event."""
        return next(iter(self._states()), None)

    def learn_one(self, x: Features, y: float) -> None:
        try:
            label = float(y)
        except (TypeError, ValueError):
            raise TypeError(self._learner.loss.refuse_label(repr(y))) from None
        self._learn(x, label, self._learner)

    def predict_one(self, x: Features) -> float:
        buffer = self._buffer
        if buffer is None:
            return 0.0
        try:
            return buffer.mean(self._read(x))
        except BadRow as bad:
            raise self._refusal(self._columns, bad) from None

    def learn_many(self, X: Any, y: Any) -> None:
        _each(X, y, self.learn_one)

    def predict_many(self, X: Any) -> Any:
        import pandas as pd

        return pd.Series([self.predict_one(x) for x in _dicts(X)], index=X.index)


def _dicts(X: Any) -> Iterable[Features]:
    if not hasattr(X, "iloc"):
        raise TypeError(f"X is a {type(X).__name__}: needs a pandas DataFrame, whose columns have names; try X.to_pandas()")
    return X.to_dict("records")  # type: ignore[no-any-return]


def _each(X: Any, y: Any, learn_one: Any) -> None:
    for i, (x, label) in enumerate(zip(_dicts(X), y.tolist(), strict=True)):
        try:
            learn_one(x, label)
        except BadRow as refused:
            raise BadRow(i, refused.reason) from None
