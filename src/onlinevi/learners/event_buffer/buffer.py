"""What a learner has learned, changed by one event at a time: in place where compiled loops can, else as a value."""

from __future__ import annotations

from typing import Any

from onlinevi.engine import SUM, Vector
from onlinevi.learners.base import BadRow, Learner
from onlinevi.learners.columns import keeping, names_of
from onlinevi.learners.event_buffer import loops
from onlinevi.learners.event_buffer.loops import REFUSED, Sizes
from onlinevi.learners.inputs import InputState
from onlinevi.learners.inputs.state import UNCENTRED
from onlinevi.learners.kernels import kernel
from onlinevi.learners.linear import Linear
from onlinevi.learners.live import Live
from onlinevi.learners.one_vs_rest import OneVsRest, OneVsRestState
from onlinevi.learners.prepare import Prepare, PrepareState
from onlinevi.learners.refusals import reason
from onlinevi.learners.state import State
from onlinevi.learners.trace import Forecast

WAY_BACK = 64
"""How many events are kept, with the state before them: to learn them anew is the way back from an event that is refused."""


class StateBuffer:
    """A learner of any kind with its state. An event is two rows: its values, and 1 where nothing is said of a column.

    What is not spoken of should be NaN, where it may be missing, or 0.
    """

    def __init__(self, learner: Learner[Any], state: Any) -> None:
        self.learner = learner
        self._put(state)

    @property
    def state(self) -> Any:
        """What was learned, as a value: it stays as it is."""
        if self._since:
            self._keep(keeping(self._live.state, names_of(self._kept)))
        return self._kept

    def _put(self, state: Any) -> None:
        self._going: Live | None = None
        self._keep(state)

    def _keep(self, state: Any) -> None:
        """Remember the state as it is now."""
        self._kept, self._since = state, list[tuple[Vector, float]]()

    @property
    def count(self) -> int:
        """How many events it has learned from."""
        return int(self._kept.count) + len(self._since)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.learner, self.state)

    def learn(self, event: Vector, label: float) -> None:
        """Learn one event; ``BadRow`` where it is refused, and nothing has changed."""
        self._make_room_for(event)
        row = event[: loops.VALUES + 1].copy()
        try:
            self._live.learn(row, label)
        except BaseException:  # some learners may have learned it, others not
            self._going = None
            raise
        self._since.append((row, label))
        if len(self._since) == WAY_BACK:
            self._keep(self.state)

    def _make_room_for(self, event: Vector) -> None:
        """Some learners grow with the rows that they are given; others refuse those of another width."""
        if event.shape[1] != self._kept.width:
            state = self.learner.fitting(self.state, event.shape[1])
            if state is not self._kept:
                self._put(state)

    @property
    def _live(self) -> Live:
        """What goes on; made anew behind an event that was refused, of which some learners may have learned a part."""
        if self._going is None:
            live = self.learner.live(self._kept)
            for row, label in self._since:
                live.learn(row, label)
            self._going = live
        return self._going

    def _said(self, event: Vector) -> Forecast:
        row = event[: loops.VALUES + 1]
        if event.shape[1] != self._kept.width:
            return self.learner.forecast(self.state, row)
        return self.learner.said(self._live.foresee(row))

    def probability(self, event: Vector) -> Any:
        """P(+1) as a number, or of each of several classes as a list; None where there are no probabilities."""
        found = self._said(event).probability
        return None if found is None else found.tolist()[0]

    def held(self, event: Vector) -> Any:
        """Which classes are in the set, as a list; None where the learner has no sets."""
        found = self._said(event).set
        return None if found is None else found.tolist()[0]

    def mean(self, event: Vector) -> float:
        """The mean of the label."""
        return float(self._said(event).mean[0])

    def scores(self, event: Vector) -> list[float]:
        """What is compared among several classes."""
        return self._said(event).prediction[0].tolist()  # type: ignore[no-any-return]


class EventBuffer(StateBuffer):
    """The same for ``Prepare(inputs, Linear(…))``, and for several classes of such, in compiled loops that change it in place.

    ``state`` is what ``learner.update_many`` gives on the same rows. Here what is not spoken of adds nothing to a prediction,
    and leaves its weight and its moments alone; NaN is a missing value, which makes unsure.
    """

    def _put(self, state: Any) -> None:
        """Make room for a state, and find the loops that change it there."""
        several = self._several = isinstance(state, OneVsRestState)
        own: tuple[PrepareState, ...] = state.all if several else (state,)
        plan, moments, classes = own[0].inner.plan, own[0].moments, len(state.each) if several else 0
        self._plan, self._loss, self._has_odds = plan, plan.loss, plan.loss.odds is not None
        (dim, belief, drift), size = plan.sizes, len(own[0].inner.array)
        sizes = Sizes(moments.dim, dim, belief, drift, len(own), size, classes, several and self._has_odds)
        self._buffer = loops.new_buffer(sizes)
        on = self._on = loops.parts(self._buffer, sizes)
        on.input_settings[:], on.settings[:], on.before[:] = self.learner.inputs.settings, plan.settings, moments.array
        self._states = on.states.reshape(len(own), -1)
        self._states[:] = [part.inner.array for part in own]
        if several:
            of = self._of_classes = loops.class_parts(self._buffer, sizes)
            of.seen[:], of.totals[:], of.paid[0] = state.seen, state.coupled, state.paid
        foresee, learn = (loops.foresee_classes, loops.learn_classes) if several else (loops.foresee, loops.learn)
        self._foresee = kernel(*plan.kinds, plan.features, loop=foresee)
        self._learn = kernel(*plan.kinds, plan.features, loop=learn)
        self._prior_and_box, self._parameters = plan.prior_and_box, plan.parameters
        self._foreseen, self._learned = (classes, len(own)) if several else (1, 1)

    @property
    def state(self) -> Any:
        moments = InputState(self._on.before.copy())
        own = [PrepareState(moments, State(array.copy(), self._plan), self.learner.inputs) for array in self._states]
        if not self._several:
            return own[0]
        of = self._of_classes
        each, later = own[: len(of.seen)], own[-1] if len(own) > len(of.seen) else None
        return OneVsRestState(tuple(each), later, of.totals.copy(), tuple((of.seen > 0.0).tolist()), float(of.paid[0]))

    @property
    def count(self) -> int:
        return int(self._states[0, SUM.count])

    def learn(self, event: Vector, label: float) -> None:
        if self._several and not (0.0 <= label < self._foreseen and label % 1.0 == 0.0):
            self._join(event, label)
            return
        learned = self._learn.run(event, self._buffer, label, self._prior_and_box, self._parameters)
        if learned != self._learned:
            own = label if not self._several else 1.0 if learned == label else -1.0
            raise self._refusal(event, learned, lambda: reason(self._plan, self._on.row[0], own, 1.0))

    def _join(self, event: Vector, label: float) -> None:
        """The first event of a class: that class is known from now on, unless the event is refused."""
        before = self.state
        self._put(before.joined_by(int(before.codes(label))))
        try:
            self.learn(event, label)
        except BadRow:
            self._put(before)
            raise

    def probability(self, event: Vector) -> Any:
        self._predict(event)
        if self._several:
            return self._of_classes.shares[0].tolist() if self._has_odds else None
        prediction, spread, chance = self._on.record.tolist()
        return chance if self._has_odds else float(self._loss.probability(prediction, spread))

    def mean(self, event: Vector) -> float:
        self._predict(event)
        prediction, spread, _ = self._on.record.tolist()
        return float(self._loss.label_law(prediction, 0.0, spread * spread).mean)

    def scores(self, event: Vector) -> list[float]:
        self._predict(event)
        return self._of_classes.scores[0].tolist()  # type: ignore[no-any-return]

    def _predict(self, event: Vector) -> None:
        said = self._foresee.run(event, self._buffer, self._parameters)
        if said != self._foreseen:
            raise self._refusal(event, said, lambda: "the prediction is not finite: the values are too large to square")

    def _refusal(self, event: Vector, used: int, why: Any) -> BadRow:
        return BadRow(0, str(self.learner.inputs.refusal(event[loops.VALUES])) if used == REFUSED else why())


def buffer_for(learner: Learner[Any], state: Any) -> StateBuffer:
    """The fastest buffer that there is for a learner.

    >>> import numpy as np, onlinevi as ovi
    >>> from onlinevi.learners import buffer_for
    >>> learner = ovi.Prepare(ovi.Inputs(), ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.MeanField(box=None)))
    >>> buffer = buffer_for(learner, learner.init(1))
    >>> for k in range(300):
    ...     buffer.learn(np.array([[37.0 * k % 100.0], [0.0]]), 2.0 * (37.0 * k % 100.0))
    >>> type(buffer).__name__, buffer.count, bool(abs(buffer.mean(np.array([[70.0], [0.0]])) - 140.0) < 2.0)
    ('EventBuffer', 300, True)
    """
    prepare = learner.inner if type(learner) is OneVsRest else learner
    if (
        type(prepare) is not Prepare
        or type(prepare.inner) is not Linear
        or prepare.inner.dtype != "float64"
        or prepare.inner.lazy
    ):
        return StateBuffer(learner, state)
    in_place = not prepare.inputs.fixed and state.inputs.kind != UNCENTRED
    return EventBuffer(learner, state) if in_place else StateBuffer(learner, state)
