"""One event for the learners that share its row, in loops of ``kernels.kernel``: foresee and learn, for one learner or many.

All that they know and leave lies in one array, the buffer: numba looks at each array that it is given, and for one event that
would take longer than the arithmetic. It counts references to views too, so a loop makes few of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinevi.engine import RECORD, SETTING, SUM, Vector, ns, one_pass, positions
from onlinevi.engine.holes import event_at, moments, odds
from onlinevi.engine.layout import as_packed
from onlinevi.learners.inputs.passes import HEAD as MOMENTS_HEAD
from onlinevi.learners.inputs.passes import INTERCEPT, KIND, compiled, write_over
from onlinevi.learners.inputs.state import CENTRED
from onlinevi.learners.one_vs_rest.coupling import BOLDNESS, share_rows, weigh_rows

prepare_rows = compiled(False)

# An event: its values, and 1 where a column is not spoken of at all.
VALUES, ABSENT = range(2)

CHANCE = RECORD.loss
"""Where the probability of +1 stands in what is foreseen, in place of a cost that nobody knows yet."""
INPUT_SETTINGS, LINE, TOTALS = 5, 3, len(BOLDNESS)

REFUSED = -1
"""Returned where the values of an event are refused, before any learner has seen them."""


class Sizes(NamedTuple):
    """How much lies in a buffer: its first numbers."""

    columns: int
    dim: int
    """How many columns a prepared row has."""
    belief: int
    drift: int
    learners: int
    state: int
    """How many numbers the state of a learner has."""
    classes: int
    """How many classes are known; 0 where there is one learner, of two classes or of numbers."""
    coupled: int
    """1 where the classes have probabilities; 0 where they have scores alone."""


SIZE = positions(Sizes)
PREPARED = len(SIZE)
"""Behind the sizes: 1 where the row in the buffer is the event in it, prepared."""
BUFFER_HEAD = PREPARED + 1


class Parts(NamedTuple):
    """Views into a buffer."""

    input_settings: Any
    settings: Any
    before: Any
    """The moments of the columns without this event."""
    after: Any
    """The moments with it, which hold once it is learned."""
    event: Any
    """The event as it came."""
    row: Any
    """The event prepared, as a block of one row."""
    record: Any
    """What each learner has said of the event, and what it cost."""
    label: Any
    states: Any
    kept: Any
    """The states as they were, should one learner refuse."""


class ClassParts(NamedTuple):
    """Views into what lies behind them where there are classes."""

    seen: Any
    """1 for a class that has come."""
    scores: Any
    shares: Any
    """The log-odds and the probability of each class."""
    totals: Any
    totals_before: Any
    """What every boldness has paid, and what it had before this event."""
    cost: Any
    paid: Any
    """What the classes together have paid for this event, and in all."""


def sizes_of(buffer: Any) -> Sizes:
    return Sizes(
        int(buffer[SIZE.columns]),
        int(buffer[SIZE.dim]),
        int(buffer[SIZE.belief]),
        int(buffer[SIZE.drift]),
        int(buffer[SIZE.learners]),
        int(buffer[SIZE.state]),
        int(buffer[SIZE.classes]),
        int(buffer[SIZE.coupled]),
    )


def parts(buffer: Any, sizes: Sizes) -> Parts:
    """The same for Python and for compiled code."""
    settings = BUFFER_HEAD + INPUT_SETTINGS
    before = settings + len(SETTING)
    after = before + MOMENTS_HEAD + 3 * sizes.columns
    event = after + MOMENTS_HEAD + 3 * sizes.columns
    row = event + 2 * sizes.columns
    record = row + sizes.dim
    label = record + LINE * sizes.learners
    states = label + 1
    kept = states + sizes.learners * sizes.state
    end = kept + sizes.learners * sizes.state
    return Parts(
        buffer[BUFFER_HEAD:settings],
        buffer[settings:before],
        buffer[before:after],
        buffer[after:event],
        buffer[event:row],
        buffer[row:record].reshape((1, sizes.dim)),
        buffer[record:label],
        buffer[label:states],
        buffer[states:kept],
        buffer[kept:end],
    )


def class_parts(buffer: Any, sizes: Sizes) -> ClassParts:
    """The same for Python and for compiled code."""
    paid = len(buffer) - 1
    cost = paid - 1
    before = cost - TOTALS
    totals = before - TOTALS
    shares = totals - sizes.classes
    scores = shares - sizes.classes
    seen = scores - sizes.classes
    return ClassParts(
        buffer[seen:scores],
        buffer[scores:shares].reshape((1, sizes.classes)),
        buffer[shares:totals].reshape((1, sizes.classes)),
        buffer[totals:before],
        buffer[before:cost].reshape((1, TOTALS)),
        buffer[cost:paid],
        buffer[paid:],
    )


def new_buffer(sizes: Sizes) -> Vector:
    """Nothing in it but its sizes."""
    rows = 2 * MOMENTS_HEAD + 8 * sizes.columns + sizes.dim
    learners = sizes.learners * (LINE + 2 * sizes.state) + 1
    classes = 3 * sizes.classes + 2 * TOTALS + 2
    buffer = np.zeros(BUFFER_HEAD + INPUT_SETTINGS + len(SETTING) + rows + learners + classes)
    buffer[:PREPARED] = sizes
    return buffer


def prepare(event: Any, buffer: Any, on: Parts) -> bool:
    """Put the event in the units of its columns, if it lies not there already; False where it is refused."""
    columns = np.uint64(event.shape[1])
    news = 0.0 if buffer[PREPARED] > 0.0 else 1.0
    for j in range(columns):
        x, old = event[VALUES, j], on.event[j]
        news += 0.0 if x == old or (x != x and old != old) else 1.0
        news += 0.0 if event[ABSENT, j] == on.event[columns + j] else 1.0
    if news == 0.0:
        return True
    buffer[PREPARED] = 0.0
    if prepare_rows(event[:ABSENT], on.after, on.before, on.input_settings, on.row) != 1:
        return False
    first = np.uint64(on.input_settings[INTERCEPT])
    for j in range(columns):
        # Beside a mean of 0, what is absent adds nothing to the prediction and moves no weight.
        if event[ABSENT, j] > 0.0:
            on.row[0, first + j] = 0.0
        on.event[j], on.event[columns + j] = event[VALUES, j], event[ABSENT, j]
    buffer[PREPARED] = 1.0
    return True


def predict(on: Parts, sizes: Sizes, k: int) -> bool:
    """Record what a learner says of the row; False where it is not finite."""
    packed, record = on.states[k * sizes.state + len(SUM) : (k + 1) * sizes.state], on.record[LINE * k :]
    vectors = as_packed(packed, on.row, (sizes.dim, sizes.belief, sizes.drift)).vectors
    law = moments(vectors, on.row, event_at(on.row, 0))
    record[RECORD.prediction], record[RECORD.spread] = law.prediction, ns.sqrt(law.variance + law.missing_variance)
    return ns.isfinite(record[RECORD.prediction] + record[RECORD.spread])  # type: ignore[no-any-return]


def step(on: Parts, sizes: Sizes, k: int, label: Any, prior_and_box: Any, parameters: Any) -> bool:
    """Let a learner learn the row with this label, and record what it said before; False where it is refused."""
    state, record = on.states[k * sizes.state : (k + 1) * sizes.state], on.record[LINE * k : LINE * (k + 1)]
    on.label[0] = label
    used = one_pass(
        on.row,
        on.label,
        on.label[:0],
        state,
        (sizes.dim, sizes.belief, sizes.drift),
        on.settings,
        prior_and_box,
        parameters,
        record.reshape((1, LINE)),
    )
    return used == 1


def accept(buffer: Any, on: Parts) -> None:
    """All have learned the event: it is one of those that came."""
    write_over(on.before, on.after)
    on.before[KIND] = CENTRED
    buffer[PREPARED] = 0.0


def foresee(event: Any, buffer: Any, parameters: Any) -> int:
    """What the one learner expects of the event. Returns 1; 0 where that is not finite, ``REFUSED`` where the event is."""
    sizes = sizes_of(buffer)
    on = parts(buffer, sizes)
    if not prepare(event, buffer, on):
        return REFUSED
    if not predict(on, sizes, 0):
        return 0
    on.record[CHANCE], _ = odds(on.record[RECORD.prediction], on.record[RECORD.spread], *parameters)
    return 1


def learn(event: Any, buffer: Any, label: Any, prior_and_box: Any, parameters: Any) -> int:
    """The event with its label, for the one learner. Returns 1; 0 where it refuses, ``REFUSED`` where the event is refused."""
    sizes = sizes_of(buffer)
    on = parts(buffer, sizes)
    if not prepare(event, buffer, on):
        return REFUSED
    write_over(on.kept, on.states)
    if not step(on, sizes, 0, label, prior_and_box, parameters):
        write_over(on.states, on.kept)
        return 0
    accept(buffer, on)
    return 1


def foresee_classes(event: Any, buffer: Any, parameters: Any) -> int:
    """The score of every class, and its probability where there are any. Returns how many have one; ``REFUSED`` as above."""
    sizes = sizes_of(buffer)
    on, classes = parts(buffer, sizes), class_parts(buffer, sizes)
    if not prepare(event, buffer, on):
        return REFUSED
    for k in range(sizes.classes):
        if not predict(on, sizes, k):
            return k
    fill_scores(on, classes, sizes, parameters)
    if sizes.coupled > 0:
        share_rows(classes.totals.reshape((1, TOTALS)), classes.scores, classes.shares)
    return sizes.classes


def learn_classes(event: Any, buffer: Any, code: Any, prior_and_box: Any, parameters: Any) -> int:
    """The event with the number of its class: all learners learn it, or none. Returns how many could; ``REFUSED`` as above.

    Behind the learners of the classes known may lie the one that learns "no" at every event.
    """
    sizes = sizes_of(buffer)
    on, classes = parts(buffer, sizes), class_parts(buffer, sizes)
    if not prepare(event, buffer, on):
        return REFUSED
    write_over(on.kept, on.states)
    for k in range(sizes.learners):
        if not step(on, sizes, k, 1.0 if k == code else -1.0, prior_and_box, parameters):
            write_over(on.states, on.kept)
            return k
    classes.seen[int(code)] = 1.0
    classes.cost[0] = 0.0
    if sizes.coupled > 0:
        on.label[0] = code
        fill_scores(on, classes, sizes, parameters)
        weigh_rows(classes.scores, on.label, classes.seen, on.label[:0], classes.totals, classes.totals_before, classes.cost)
    else:
        for k in range(sizes.classes):
            classes.cost[0] += on.record[LINE * k + RECORD.loss]
    classes.paid[0] += classes.cost[0]
    accept(buffer, on)
    return sizes.learners


def fill_scores(on: Parts, classes: ClassParts, sizes: Sizes, parameters: Any) -> None:
    """What is compared among classes: log-odds, where they have probabilities."""
    for k in range(sizes.classes):
        prediction, spread = on.record[LINE * k + RECORD.prediction], on.record[LINE * k + RECORD.spread]
        support, against = odds(prediction, spread, *parameters)
        classes.scores[0, k] = ns.log(support) - ns.log(against) if sizes.coupled > 0 else prediction
