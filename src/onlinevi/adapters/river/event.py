"""One event for several learners that share its row, in two compiled loops of ``linear.kernel``: foresee and learn.

All that they know and leave lies in one array, the desk: numba looks at each array that it is given, and for one event that
would take longer than the arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import SETTING, SUM, Vector, ns, one_pass
from onlinevi.engine.holes import event_at, expected, moments
from onlinevi.engine.layout import as_packed
from onlinevi.learners.inputs.passes import HEAD as MOMENTS_HEAD
from onlinevi.learners.inputs.passes import INTERCEPT, compiled

prepare_rows = compiled(False)

# What is said of an event: its values, and 1 where a column is not spoken of at all.
VALUES, UNSAID = range(2)

# The head of a desk: whether the event on it is prepared, and how wide its parts are.
PREPARED, COLUMNS, DIM, BELIEF, LEARNERS, STATE = range(6)
DESK_HEAD, INPUT_SETTINGS = 6, 5

# What is foreseen by a learner. At the label −1 the slope of the logistic loss is the probability of +1.
PREDICTION, SPREAD, SLOPE = range(3)
FORESEEN = 3


class Parts(NamedTuple):
    """Views into a desk."""

    input_settings: Any
    settings: Any
    before: Any
    """The moments of the columns without this event."""
    after: Any
    """The moments with it, which hold once it is learned."""
    said: Any
    """The event as it came."""
    row: Any
    """The event prepared, as a block of one row."""
    foreseen: Any
    states: Any
    kept: Any
    """The states as they were, should one learner refuse."""


def parts(desk: Any) -> Parts:
    """The same for Python and for compiled code."""
    columns, dim, learners = int(desk[COLUMNS]), int(desk[DIM]), int(desk[LEARNERS])
    settings = DESK_HEAD + INPUT_SETTINGS
    before = settings + len(SETTING)
    after = before + MOMENTS_HEAD + 3 * columns
    said = after + MOMENTS_HEAD + 3 * columns
    row = said + 2 * columns
    foreseen = row + dim
    states = foreseen + FORESEEN * learners
    kept = states + learners * int(desk[STATE])
    return Parts(
        desk[DESK_HEAD:settings],
        desk[settings:before],
        desk[before:after],
        desk[after:said],
        desk[said:row],
        desk[row:foreseen].reshape((1, dim)),
        desk[foreseen:states],
        desk[states:kept],
        desk[kept:],
    )


def new_desk(columns: int, dim: int, belief: int, learners: int, state: int) -> Vector:
    """Nothing on it but its sizes."""
    settings = INPUT_SETTINGS + len(SETTING)
    desk = np.zeros(DESK_HEAD + settings + 2 * MOMENTS_HEAD + 8 * columns + dim + learners * (FORESEEN + 2 * state))
    desk[:DESK_HEAD] = 0, columns, dim, belief, learners, state
    return desk


def prepare(said: Any, desk: Any, on: Parts) -> bool:
    """Put the event in the units of its columns, if it lies not there already; False where it is refused."""
    columns = np.uint64(said.shape[1])
    news = 0.0 if desk[PREPARED] > 0.0 else 1.0
    for j in range(columns):
        x, old = said[VALUES, j], on.said[j]
        news += 0.0 if x == old or (x != x and old != old) else 1.0
        news += 0.0 if said[UNSAID, j] == on.said[columns + j] else 1.0
    if news == 0.0:
        return True
    desk[PREPARED] = 0.0
    if prepare_rows(said[:UNSAID], on.after, on.before, on.input_settings, on.row) != 1:
        return False
    first = np.uint64(on.input_settings[INTERCEPT])
    for j in range(columns):
        # Beside a mean of 0, what is unsaid adds nothing to the prediction and moves no weight.
        if said[UNSAID, j] > 0.0:
            on.row[0, first + j] = 0.0
        on.said[j], on.said[columns + j] = said[VALUES, j], said[UNSAID, j]
    desk[PREPARED] = 1.0
    return True


def foresee(said: Any, desk: Any, parameters: Any) -> int:
    """What each learner expects of the event. Returns how many could say; −1 where the event is refused."""
    on = parts(desk)
    if not prepare(said, desk, on):
        return -1
    size, sizes = int(desk[STATE]), (int(desk[DIM]), int(desk[BELIEF]), 0)
    event, learners = event_at(on.row, 0), int(desk[LEARNERS])
    for k in range(learners):
        packed, foreseen = on.states[k * size + len(SUM) : (k + 1) * size], on.foreseen[FORESEEN * k :]
        law = moments(as_packed(packed, on.row, sizes).vectors, on.row, event)
        spread = ns.sqrt(law.variance + law.missing_variance)
        if not ns.isfinite(law.prediction + spread):
            return k
        foreseen[PREDICTION], foreseen[SPREAD] = law.prediction, spread
        foreseen[SLOPE] = expected(-1.0, law.prediction, spread, *parameters).slope
    return learners


def learn(said: Any, desk: Any, labels: Any, prior_and_box: Any, parameters: Any) -> int:
    """The event with a label a learner: all learn, or none. Returns how many could; −1 where the event is refused."""
    on = parts(desk)
    if not prepare(said, desk, on):
        return -1
    size, sizes, nothing = int(desk[STATE]), (int(desk[DIM]), int(desk[BELIEF]), 0), desk[:0]
    record = nothing.reshape((0, 3))
    on.kept[:] = on.states
    for k in range(len(labels)):
        state, label = on.states[k * size : (k + 1) * size], labels[k : k + 1]
        if one_pass(on.row, label, nothing, state, sizes, on.settings, prior_and_box, parameters, record) != 1:
            on.states[:] = on.kept
            return k
    on.before[:] = on.after
    desk[PREPARED] = 0.0
    return len(labels)
