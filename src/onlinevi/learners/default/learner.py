"""Learn from any stream with nothing to tune."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from onlinevi.data import as_labels, as_rows, as_weights
from onlinevi.engine import Step, Vector
from onlinevi.engine.loop import PREDICTION, SPREAD
from onlinevi.learners.calibration import Calibration
from onlinevi.learners.default import recipe
from onlinevi.learners.default.outcome import AutoState, AutoTrace, Forecast, probability_of
from onlinevi.learners.inputs.inputs import Inputs
from onlinevi.learners.linear import BadRow
from onlinevi.learners.pool.mixing import BETWEEN, WITHIN
from onlinevi.learners.trace import Record, Recorder
from onlinevi.losses import Absolute, Hinge, Logistic, Loss, Pinball, Poisson, Squared

BLOCK_VALUES = 1 << 15
"""How many values of rows a block holds: few enough to stay in cache while every learner passes over them."""


@dataclass(frozen=True)
class Auto:
    """The recommended learner: features of any unit, no rate, no horizon, streams that change, outliers.

    ``loss`` says what is to be predicted: ``Logistic()`` or ``Hinge()`` classes ±1, ``Squared()`` numbers, ``Absolute()`` or
    ``Pinball(0.9)`` medians and quantiles, ``Poisson()`` counts. ``coverage`` is that of the intervals of numbers and counts.
    For missing values set ``inputs=Inputs(missing=True)``.

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

    def __post_init__(self) -> None:
        known = Logistic, Hinge, Squared, Absolute, Pinball, Poisson
        if not isinstance(self.loss, known):
            names = ", ".join(f"{kind.__name__}()" for kind in known)
            raise TypeError(f"loss={self.loss!r}: the default is made for {names}; for others use Linear")
        if self.loss.ridge > 0.0 or self.loss.robust is not None:
            raise ValueError(f"{self.loss}: the default chooses priors and robustness itself; leave ridge and robust out")
        if not self.inputs.intercept:
            raise ValueError("the default needs the intercept: leave it on in inputs")
        _ = self._calibration

    @property
    def _calibration(self) -> Calibration:
        return Calibration(self.coverage)

    @property
    def _classes(self) -> bool:
        return isinstance(self.loss, Logistic | Hinge)

    def init(self, dim: int, *, sparse: bool = False) -> AutoState:
        """The state before the first event. ``sparse`` says that rows will be sparse: then many columns cost nothing."""
        inputs, width = self.inputs.init(dim), self.inputs.dim_out(dim)
        pool = recipe.aggregate(self.loss, width, sparse=sparse, missing=self.inputs.missing)
        return AutoState(inputs, pool.init(width), None if self._classes else self._calibration.init())

    def widen(self, state: AutoState, dim: int) -> AutoState:
        """The state for rows with further columns at the end, ``dim`` in all. The learners stay of the kind they are.

        ``update_many`` and ``forecast`` do it by themselves where rows have more columns than the state.
        """
        return AutoState(
            self.inputs.widen(state.inputs, dim), state.pooled.widened(self.inputs.dim_out(dim)), state.calibrated
        )

    def _fitting(self, state: AutoState, dim: int) -> AutoState:
        """The state, if it is one of this learner's, for rows of ``dim`` columns."""
        own = state.pooled.plan
        if own.loss != self.loss or own.plans[0].missing != self.inputs.missing:
            raise ValueError("this state belongs to another learner: its loss or its missing values differ")
        if dim < state.inputs.dim:
            raise ValueError(
                f"X has {dim} columns, the state {state.inputs.dim}: new ones may join at the end, none can leave; "
                "fill it with 0, or with NaN and Inputs(missing=True)"
            )
        return state if dim == state.inputs.dim else self.widen(state, dim)

    def predict(self, state: AutoState, x: Any) -> tuple[Any, Any]:
        """Mean and std of the prediction at a row, or at each row of a matrix, as ``Linear.predict``. Changes nothing."""
        forecast = self.forecast(state, x)
        return forecast.prediction, forecast.spread

    def forecast(self, state: AutoState, x: Any) -> Forecast:
        """What is known of the label at a row, or at each row of a matrix. Changes nothing."""
        x = x if hasattr(x, "shape") else np.asarray(x, dtype=float)
        state = self._fitting(state, x.shape[-1])
        prediction, within, between = state.pooled.plan.pooled(state.pooled, self.inputs.apply(state.inputs, x))
        spread = np.sqrt(state.unit * within + between)
        parts: tuple[Any, ...]
        if state.calibrated is None:
            probability = probability_of(self.loss, prediction, spread)
            mean = 2.0 * probability - 1.0
            parts = prediction, spread, mean, np.sqrt(1.0 - mean * mean), probability, None, None
        else:
            centre, unit, extra = self._law(prediction, within, between)
            bands = self._calibration.bands(state.calibrated, centre, unit, extra)
            parts = prediction, spread, centre, bands.std, None, self._possible(bands.lower), bands.upper
        scalar = np.ndim(prediction) == 0
        return Forecast(*(float(part) if scalar and part is not None else part for part in parts))

    def _law(self, prediction: Any, within: Any, between: Any) -> tuple[Any, Any, Any]:
        """The label's mean, its variance in units of the noise, and the variance that is not noise."""
        if isinstance(self.loss, Poisson):
            rate = np.exp(np.clip(prediction + 0.5 * (within + between), -300.0, 300.0))
            return rate, rate, 0.0 * rate
        return prediction, 1.0 + within, between

    def update(self, state: AutoState, x: Any, y: float, weight: float = 1.0) -> tuple[AutoState, Step]:
        """Learn from one event. The state given is left as it is; the step says what was predicted before ``y`` was used."""
        row, label = np.asarray(x, dtype=float), as_labels([y], self.loss.label_hint)
        if row.ndim != 1:
            raise ValueError(f"x has shape {row.shape}: needs one value a feature; for a matrix use update_many")
        if weight == 0.0:
            return state, Step(*self.predict(state, row), 0.0)
        weights = _NO_WEIGHTS if weight == 1.0 else as_weights([weight], 1)
        after, events, refused = self._play(self._fitting(state, len(row)), row[np.newaxis], label, weights)
        if refused is not None:
            raise refused
        return after, Step._make(events.played[0].tolist())

    def update_many(
        self, state: AutoState, X: Any, y: Any, *, weights: Any = None, record: Record = "all"
    ) -> tuple[AutoState, AutoTrace]:
        """Learn from a block of rows, in order; the same bits as one event at a time."""
        rows, labels = as_rows(X), as_labels(y, self.loss.label_hint)
        if len(labels) != rows.count:
            raise ValueError(f"X has {rows.count} rows, y {len(labels)} labels: needs one label a row")
        state, importance = self._fitting(state, rows.dim), as_weights(weights, rows.count)
        recorder, bands = Recorder(record, state, rows.count), [np.empty((0, 3))]
        size = max(1, BLOCK_VALUES // max(1, int(rows.values_a_row)))
        try:
            for start in range(0, rows.count, size):
                stop = min(start + size, rows.count)
                # A row of weight 0 is as if absent, its features too.
                used = np.arange(start, stop) if not len(importance) else start + np.flatnonzero(importance[start:stop])
                own = importance[used] if len(importance) else importance
                after, events, refused = self._play(state, rows.take(used), labels[used], own)
                buffer = recorder.buffer(len(events.played))
                buffer[:] = events.played[: len(buffer)]
                recorder.add(buffer)
                if record == "all":
                    bands.append(events.bands)
                state = after
                if refused is not None:
                    raise BadRow(int(used[refused.row]), refused.reason)
        except (BadRow, KeyboardInterrupt) as stopped:
            stopped.trace = self._trace(recorder, state, bands)  # type: ignore[union-attr]
            raise
        return state, self._trace(recorder, state, bands)

    def _trace(self, recorder: Recorder, state: AutoState, bands: list[Vector]) -> AutoTrace:
        trace = recorder.finish(state)
        return AutoTrace(trace, self.loss, np.concatenate(bands)[: len(trace.steps)])

    def _play(self, state: AutoState, X: Any, labels: Vector, weights: Vector) -> tuple[AutoState, _Events, BadRow | None]:
        """Rows that fit in cache: the state after them, what was said of them, and the row that was refused, if one was."""
        try:
            inputs, prepared = self.inputs.update_many(state.inputs, X)
            rows = as_rows(prepared, filled=state.pooled.plan.fills_rows)
            pooled, played, refused = state.pooled.plan.play(state.pooled, rows, labels, weights, 0, len(labels))
            if refused is not None:
                raise BadRow(refused.row, refused.why)
        except BadRow as bad:
            before = slice(0, bad.row)
            state, events, earlier = self._play(state, X[before], labels[before], weights[before])
            return state, events, earlier or bad
        if state.calibrated is None:
            return AutoState(inputs, pooled, None), _Events(played[:, :3], np.empty((0, 3))), None
        within, between = played[:, WITHIN], played[:, BETWEEN]
        centre, unit, extra = self._law(played[:, PREDICTION], within, between)
        calibrated, bands = self._calibration.update_many(state.calibrated, labels, centre, unit, extra)
        if not isinstance(self.loss, Poisson):  # the learners' own variances are in units of the noise
            known = np.where(np.isnan(bands.noise), 1.0, bands.noise)
            played[:, SPREAD] = np.sqrt(known * within + between)
        said = np.column_stack([bands.std, self._possible(bands.lower), bands.upper])
        return AutoState(inputs, pooled, calibrated), _Events(played[:, :3], said), None

    def _possible(self, lower: Any) -> Any:
        """The low end of an interval: counts have none below 0."""
        return np.maximum(lower, 0.0) if isinstance(self.loss, Poisson) else lower


_NO_WEIGHTS = np.empty(0)


class _Events(NamedTuple):
    played: Vector
    """Prediction, spread and loss of each event."""
    bands: Vector
    """Std of the label and the ends of its interval; none for classes."""


def auto(
    X: Any, y: Any, *, loss: Loss | None = None, weights: Any = None, record: Record = "all", **settings: Any
) -> AutoTrace:
    """One pass of ``Auto`` over a stream: predict each row before its label is used, then learn from it.

    X and y as for ``learn``. ``loss=None`` reads the kind of task off the labels: ±1 are classes, others numbers.

    >>> import numpy as np, onlinevi as ovi
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> trace = ovi.auto(X, np.sign(X @ [1.0, -1.0, 0.0]))
    >>> bool(trace.average_loss[-1] < 0.2), bool((trace.probability[-100:] > 0.5).any())
    (True, True)
    """
    rows = as_rows(X)
    if rows.count == 0:
        raise ValueError("the stream is empty: X has 0 rows, needs at least one")
    if loss is None:
        classes = np.isin(as_labels(y, Logistic.label_hint), (-1.0, 1.0)).all()
        loss = Logistic() if classes else Squared()
    learner = Auto(loss=loss, **settings)
    state = learner.init(rows.dim, sparse=rows.sparse)
    return learner.update_many(state, X, y, weights=weights, record=record)[1]
