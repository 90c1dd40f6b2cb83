"""The estimators: River's methods, from dicts or tables to rows, from labels to ±1 or numbers."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from river import base

from onlinevi.adapters.river.columns import Columns
from onlinevi.adapters.river.engines import AutoEngine, Engine, LinearEngine
from onlinevi.beliefs import Family, MeanField
from onlinevi.engine import Vector
from onlinevi.learners import Auto, BadRow, Inputs, InputState, Linear
from onlinevi.losses import Hinge, Logistic, Loss, Squared
from onlinevi.rules import NGVI, Implicit, Rule

Features: TypeAlias = Mapping[Any, Any]
Absent: TypeAlias = Literal["skip", "zero"]


class _Estimator:
    """What both share: columns, the engine behind them, and the settings."""

    def __init__(
        self,
        loss: Loss | None = None,
        rule: Rule | Literal["auto"] | None = None,
        family: Family | None = None,
        inputs: Inputs | None = None,
        absent: Absent = "skip",
        discount: float = 1.0,
    ) -> None:
        self.loss, self.rule, self.family = loss, rule, family
        self.inputs, self.absent, self.discount = inputs, absent, discount
        if absent not in ("skip", "zero"):
            raise ValueError(f'absent={absent!r}: needs "skip", an absent feature adds nothing, or "zero", it is 0')
        self._inputs = inputs or Inputs(missing=True)
        if absent == "skip" and not self._inputs.missing:
            raise ValueError('absent="skip" needs Inputs(missing=True): without, use absent="zero"')
        self._learner = self._make_learner()
        self._columns = Columns(zeros=absent == "zero")
        self._engine: Engine | None = None

    @abstractmethod
    def _default(self) -> tuple[Loss, Rule, Family]:
        """What is learned by where nothing is given."""

    @property
    def _raw_memory_usage(self) -> int:
        """What River shows as memory: the state as it would be pickled. Compiled kernels are shared, and not the model's."""
        return len(pickle.dumps(self))

    def _make_learner(self) -> Linear | Auto:
        loss, rule, family = self._default()
        if not isinstance(self.rule, str):
            given = self.loss or loss, self.rule or rule, self.family or family
            return Linear(*given, average=False, discount=self.discount, missing=self._inputs.missing)
        if self.rule != "auto":
            raise ValueError(f'rule={self.rule!r}: needs a rule such as Implicit(), or "auto"')
        if self.family is not None or self.discount != 1.0:
            raise ValueError('rule="auto" chooses families and discounts itself: leave them out')
        return Auto(self.loss or loss, self._inputs)

    @property
    def names(self) -> list[Any]:
        """The features' names in the order of their columns, "name=value" for categories."""
        return list(self._columns.names)

    @property
    def scales(self) -> InputState | None:
        """The moments of the columns, as ``Inputs`` keeps them; None before the first event."""
        return None if self._engine is None else self._engine.scales

    def _take(self, x: Features) -> Engine:
        """Read x; the engine, with a column for every feature of it."""
        columns, engine = self._columns, self._engine
        if engine is not None and columns.read_plain(x):
            return engine
        joining = columns.unknown(x)
        if engine is not None and joining:
            engine.widen([columns.alike(feature) for feature in joining], zeros=columns.zeros)
        if joining:  # last: columns that the engine has not are read by nobody
            columns.add(joining)
        if engine is None:
            self._engine = engine = self._start(len(columns.names))
        columns.read(x)
        return engine

    def _start(self, dim: int) -> Engine:
        learner = self._learner
        return AutoEngine(learner, dim) if isinstance(learner, Auto) else LinearEngine(learner, self._inputs, dim)


class OnlineVIClassifier(_Estimator, base.MiniBatchClassifier):  # type: ignore[misc]
    """A Gaussian belief about the weights of each class, updated in closed form at each event.

    Features are scaled as they come. Classes are learned one against the rest, each as if it had been known from the start;
    for bools there is one learner. ``rule="auto"`` takes ``onlinevi.Auto`` for each class: better, and slower.

    >>> from onlinevi.river import OnlineVIClassifier
    >>> model = OnlineVIClassifier()
    >>> for age, colour, label in [(20, "red", True), (60, "blue", False), (30, "red", True), (50, "blue", False)]:
    ...     model.learn_one({"age": age, "colour": colour}, label)
    >>> model.names, model.predict_one({"age": 25, "colour": "red"})
    (['age', 'colour=red', 'colour=blue'], True)
    """

    def __init__(
        self,
        loss: Loss | None = None,
        rule: Rule | Literal["auto"] | None = None,
        family: Family | None = None,
        inputs: Inputs | None = None,
        absent: Absent = "skip",
        discount: float = 1.0,
    ) -> None:
        if loss is not None and not isinstance(loss, Logistic | Hinge):
            raise TypeError(f"loss={loss!r}: a classifier needs Logistic() or Hinge()")
        super().__init__(loss, rule, family, inputs, absent, discount)
        self.classes: list[Any] = []
        self._two = False

    def _default(self) -> tuple[Loss, Rule, Family]:
        # A narrow prior, for explicit steps: on fifty features a wide one overshoots at the start.
        return Logistic(), NGVI(), MeanField(prior_std=0.5, box=None)

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def states(self) -> dict[Any, Any]:
        """What is known of each class's weights, as values; of bools there is True alone."""
        known = [True] if self._two else self.classes
        return dict(zip(known, [] if self._engine is None else self._engine.states, strict=False))

    def learn_one(self, x: Features, y: Any) -> None:
        engine = self._take(x)
        engine.learn(self._columns, self._signs(engine, y))

    def _signs(self, engine: Engine, y: Any) -> Vector:
        """+1 for the learner of this class, −1 for the others; the last learner is that of all classes yet to come."""
        if not self.classes and isinstance(y, bool | np.bool_):
            self.classes, self._two = [False, True], True
        if self._two:
            if y is not True and y is not False and y not in self.classes:
                raise TypeError(f"label {y!r} after bools: give strings or numbers from the start for more than two classes")
            return _YES if y else _NO
        if y not in self.classes:
            if y is None or y != y:
                raise ValueError(f"label {y!r}: needs a class; drop the event")
            engine.branch()
            self.classes.append(y)
        return np.array([*(1.0 if label == y else -1.0 for label in self.classes), -1.0])

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Any, float]:
        engine, columns = self._engine, self._columns
        if engine is None:
            return {}
        if not columns.read_plain(x):
            columns.read(x)
        return self._shares(engine.probabilities(columns))

    def _shares(self, chances: list[float]) -> dict[Any, float]:
        if self._two:
            return {False: 1.0 - chances[0], True: chances[0]}
        total = sum(chances[:-1])
        if not total > 0.0:
            return dict.fromkeys(self.classes, 1.0 / len(self.classes))
        return {label: chance / total for label, chance in zip(self.classes, chances, strict=False)}

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

    Features are scaled as they come, and the unit of the label does not matter. ``rule="auto"`` takes ``onlinevi.Auto``:
    better, and slower.

    >>> from onlinevi.river import OnlineVIRegressor
    >>> model = OnlineVIRegressor()
    >>> for i in range(300):
    ...     model.learn_one({"size": 50.0 + 37 * i % 100}, 3000.0 * (50.0 + 37 * i % 100))
    >>> bool(abs(model.predict_one({"size": 70.0}) / 210_000.0 - 1.0) < 0.1)
    True
    """

    def _default(self) -> tuple[Loss, Rule, Family]:
        # Half the squared loss is the logarithm of a normal density: in units of the noise, whatever the label's own.
        return Squared(), Implicit(rate=0.5), MeanField(prior_std=4.0, box=None)

    @property
    def state(self) -> Any:
        """What is known of the weights, as a value; None before the first event."""
        return None if self._engine is None else self._engine.states[0]

    def learn_one(self, x: Features, y: float) -> None:
        self._take(x).learn(self._columns, np.array([y], dtype=float))

    def predict_one(self, x: Features) -> float:
        engine, columns = self._engine, self._columns
        if engine is None:
            return 0.0
        if not columns.read_plain(x):
            columns.read(x)
        return engine.mean(columns)

    def learn_many(self, X: Any, y: Any) -> None:
        _each(X, y, self.learn_one)

    def predict_many(self, X: Any) -> Any:
        import pandas as pd

        return pd.Series([self.predict_one(x) for x in _dicts(X)], index=X.index)


_YES, _NO = np.array([1.0]), np.array([-1.0])


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
