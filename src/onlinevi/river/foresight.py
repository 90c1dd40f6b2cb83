"""What several learners that share a row foresee of its label, in one compiled call: a ``loop`` of ``linear.kernel``."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinevi import ns
from onlinevi.contract import expected, keeps_std_total, moments, span, views
from onlinevi.linear import HEAD
from onlinevi.types import Event

# The columns of what is foreseen. At the label −1 the slope of the logistic loss is the probability of +1.
PREDICTION, SPREAD, SLOPE = range(3)


def foresee(prepared: Any, states: Any, sizes: Any, parameters: Any, foreseen: Any) -> bool:
    """Fill ``foreseen``, a row a learner; False where a prediction is not finite."""
    dim, belief_end = sizes[0], HEAD + sizes[1]
    totals_end = belief_end + (sizes[1] if keeps_std_total() else dim)
    event, finite = Event(np.uint64(0), *span(prepared, 0)), True
    for k in range(len(states)):
        law = moments(views(states[k, HEAD:belief_end], states[k, belief_end:totals_end], dim), prepared, event)
        spread = ns.sqrt(law.variance + law.blur)
        foreseen[k, PREDICTION], foreseen[k, SPREAD] = law.prediction, spread
        foreseen[k, SLOPE] = expected(-1.0, law.prediction, spread, *parameters).slope
        finite = finite and ns.isfinite(law.prediction + spread)
    return finite
