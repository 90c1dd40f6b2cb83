"""One event in one compiled call: prepare the row, then predict or learn, for every learner that shares it.

Made of the passes of ``inputs`` and of the loop of ``linear``, as ``loop`` of ``linear.kernel``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi import ns
from onlinevi.contract import expected, keeps_std_total, moments, span, views
from onlinevi.inputs.passes import INTERCEPT, dense_pass
from onlinevi.linear import HEAD, one_pass
from onlinevi.types import Event

# The columns of what is foreseen. At the label −1 the logistic loss rises by the probability of +1.
PREDICTION, SPREAD, RISE = range(3)

REFUSED_BY_INPUTS = -1
LEARNED = 0


def foresee(
    values: Any, absent: Any, scales: Any, scaling: Any, states: Any, sizes: Any, parameters: Any, foreseen: Any
) -> bool:
    """Fill ``foreseen``, a row a learner, with what is known of this event; False where the row is refused."""
    prepared = np.empty((1, values.shape[1] + int(scaling[INTERCEPT])))
    if not prepare(values, absent, scales.copy(), scaling, prepared):
        return False
    dim, belief_end = sizes[0], HEAD + sizes[1]
    totals_end = belief_end + (sizes[1] if keeps_std_total() else dim)
    event = Event(np.uint64(0), *span(prepared, 0))
    finite = True
    for k in range(len(states)):
        law = moments(views(states[k, HEAD:belief_end], states[k, belief_end:totals_end], dim), prepared, event)
        spread = ns.sqrt(law.variance + law.blur)
        foreseen[k, PREDICTION], foreseen[k, SPREAD] = law.prediction, spread
        foreseen[k, RISE] = expected(-1.0, law.prediction, spread, *parameters).slope
        finite = finite and ns.isfinite(law.prediction + spread)
    return finite


def learn(
    values: Any,
    absent: Any,
    labels: Any,
    scales: Any,
    scaling: Any,
    states: Any,
    sizes: Any,
    settings: Any,
    frame: Any,
    parameters: Any,
) -> int:
    """Learn one event, a label a learner. All or nothing: where a learner refuses, its number from 1 is returned."""
    prepared = np.empty((1, values.shape[1] + int(scaling[INTERCEPT])))
    scales_before, states_before = scales.copy(), states.copy()
    if not prepare(values, absent, scales, scaling, prepared):
        return REFUSED_BY_INPUTS
    for k in range(len(states)):
        used = one_pass(
            prepared, labels[k : k + 1], np.empty(0), states[k], sizes, settings, frame, parameters, np.empty((0, 3))
        )
        if used != 1:
            scales[:], states[:] = scales_before, states_before
            return k + 1
    return LEARNED


def prepare(values: Any, absent: Any, scales: Any, scaling: Any, prepared: Any) -> bool:
    """The row in the units of the learners; what is absent adds nothing, as if it lay at its mean."""
    if dense_pass(values, scales, np.empty(0), scaling, prepared) != 1:
        return False
    first = int(scaling[INTERCEPT])
    for k in range(len(absent)):
        prepared[0, first + absent[k]] = 0.0
    return True
