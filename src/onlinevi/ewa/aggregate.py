"""Learners as experts: weigh them by what they have cost so far, and predict with their weighted mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinevi.ewa.experts import Experts, ExpertState
from onlinevi.ewa.played import Played, averages, running
from onlinevi.learner import Linear
from onlinevi.losses import Loss
from onlinevi.rows import as_labels, as_rows
from onlinevi.rules.rates import PerHorizon, Rate
from onlinevi.state import State
from onlinevi.types import Step, Vector


@dataclass(frozen=True, eq=False)
class AggregateState:
    """The learners' states, and the weights over them."""

    learners: tuple[State, ...]
    experts: ExpertState
    loss: float = 0.0
    """Σ loss at the mixed predictions."""

    @property
    def weights(self) -> Vector:
        """The weights of the next prediction: a probability vector."""
        return self.experts.weights

    @property
    def count(self) -> int:
        return self.experts.count

    @property
    def average_loss(self) -> float:
        return self.loss / self.count if self.count else float("nan")

    def __repr__(self) -> str:
        return f"AggregateState(count={self.count}, learners={len(self.learners)}, average_loss={self.average_loss:.6g})"


@dataclass(frozen=True, eq=False)
class Aggregated(Played[AggregateState]):
    """The events of one pass, and the state after it; ``spread`` is the std of the mixture of the learners' predictions."""

    weights: Vector
    """A row an event: the weights of the learners before its label was seen."""


@dataclass(frozen=True)
class Aggregate:
    """Exponential weights over learners: the prediction is their weighted mean, weights as in ``Experts``.

    For a convex loss in [0, B] the total loss exceeds the best learner's by at most rate·B²·T/8 + ln N/rate. ``loss=None``
    takes the one the learners share. It is the loss of a prediction: a ridge is the learners' own affair.

    >>> import onlinevi as ovi
    >>> from onlinevi.ewa import Aggregate
    >>> learners = [ovi.Linear(ovi.Absolute(), ovi.SVA(rate)) for rate in (1e-6, 0.5)]
    >>> played = Aggregate(learners, rate=0.1).run([[1.0]] * 200, [3.0] * 200)
    >>> played.state.weights.round(3).tolist()
    [0.0, 1.0]
    """

    learners: Sequence[Linear]
    rate: Rate | float = PerHorizon(1.0)
    loss: Loss | None = None
    prior: Sequence[float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "learners", tuple(self.learners))
        if not self.learners or not all(isinstance(learner, Linear) for learner in self.learners):
            raise TypeError(f"learners={self.learners!r}: needs one learner or more, such as Linear(loss, rule)")
        object.__setattr__(self, "prior", self.experts.prior)
        _ = self.experts.init(len(self.learners), horizon=1)  # refuse a bad setting now, not at the first event
        if self.loss is None:
            losses = {learner.loss for learner in self.learners}
            if len({(type(loss), loss.parameters) for loss in losses}) > 1:
                raise ValueError(f"the learners have different losses, {losses}: say which one to weigh them by, loss=…")
            object.__setattr__(self, "loss", self.learners[0].loss)
        if not self.shared_loss.convex:
            raise ValueError(f"{self.loss} is not convex: the mean of predictions may cost more than all of them")

    @property
    def shared_loss(self) -> Loss:
        assert self.loss is not None
        return self.loss

    @property
    def experts(self) -> Experts:
        return Experts(self.rate, self.prior)

    def init(self, dim: int, horizon: int | None = None) -> AggregateState:
        """Every learner's prior, and the prior weights; ``horizon`` is the number of events to come, where a rate needs it."""
        states = tuple(learner.init(dim, horizon) for learner in self.learners)
        return AggregateState(states, self.experts.init(len(states), horizon))

    def predict(self, state: AggregateState, x: Any) -> tuple[Any, Any]:
        """Mean and std of the mixed prediction at a row, or at each row of a matrix. Changes nothing."""
        each = [learner.predict(own, x) for learner, own in zip(self.learners, state.learners, strict=True)]
        means, stds = (np.moveaxis(np.asarray(part), 0, -1) for part in zip(*each, strict=True))
        mean, std = _mixture(state.weights, means, stds)
        return (float(mean), float(std)) if mean.ndim == 0 else (mean, std)

    def update(self, state: AggregateState, x: Any, y: float) -> tuple[AggregateState, Step]:
        """Learn from one event. The state given is left as it is; the step says what was predicted before ``y`` was used."""
        state, played = self.update_many(state, np.asarray(x, dtype=float)[None, :], [y])
        return state, Step(float(played.prediction[0]), float(played.spread[0]), float(played.loss[0]))

    def update_many(self, state: AggregateState, X: Any, y: Any) -> tuple[AggregateState, Aggregated]:
        """Learn from a block of rows, in order; the same bits as one event at a time."""
        labels = as_labels(y, self.shared_loss.label_hint)
        traces = [learner.update_many(own, X, labels)[1] for learner, own in zip(self.learners, state.learners, strict=True)]
        predictions = np.column_stack([trace.prediction for trace in traces])
        experts, weighing = self.experts.update_many(state.experts, self.shared_loss(labels[:, None], predictions).value)
        prediction, spread = _mixture(weighing.weights, predictions, np.column_stack([trace.spread for trace in traces]))
        loss = np.array(self.shared_loss(labels, prediction).value)
        sums = running(state.loss, loss)
        after = AggregateState(tuple(trace.state for trace in traces), experts, float(sums[-1]))
        return after, Aggregated(after, prediction, spread, loss, averages(sums, state.count), weighing.weights)

    def run(self, X: Any, y: Any, *, horizon: int | None = None) -> Aggregated:
        """One pass over a stream. ``horizon`` is the number of rows unless given."""
        rows = as_rows(X)
        if rows.count == 0:
            raise ValueError("the stream is empty: X has 0 rows, needs at least one")
        return self.update_many(self.init(rows.dim, horizon or rows.count), X, y)[1]


def _mixture(weights: Vector, means: Vector, stds: Vector) -> tuple[Vector, Vector]:
    """Mean and std of a mixture, its parts along the last axis."""
    mean = np.asarray((weights * means).sum(axis=-1))
    square = weights * (np.square(stds) + np.square(means - mean[..., None]))
    return mean, np.sqrt(square.sum(axis=-1))
